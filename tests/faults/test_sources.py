"""Files and frames that are empty, ragged, in another encoding or oddly named: read exactly, or refused by name."""

import codecs
import json
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from likely.errors import DataError, LikelyWarning, UsageError
from likely.model.ledger import CALIBRATION
from likely.sources import ReadOptions, open_source
from likely.sources import _json_files as json_files
from likely.sources import csv_files as text_source
from tables import COLUMNS, FORMS, GOOD, cells, learn, written


@pytest.mark.parametrize("kind", FORMS)
def test_the_same_table_in_any_form_is_the_same_model(kind, tmp_path):
    model = learn(written(COLUMNS, kind, tmp_path))
    assert model.tally == learn(COLUMNS).tally
    assert model.predict(written(COLUMNS, kind, tmp_path)).tolist() == COLUMNS["y"]


# ------------------------------------------------------------------ row 1: nothing to learn from


@pytest.mark.parametrize("name", ["e.csv", "e.tsv", "e.parquet", "e.json", "e.jsonl", "e.arrow"])
def test_an_empty_file_is_named(file, name):
    with pytest.raises(DataError, match=rf"{name}' is empty: nothing can be learned from it"):
        learn(file(b"", name))


@pytest.mark.parametrize("content", ["a,b,y\n", "a,b,y", "a,b,y\r\n\r\n", "\ufeffa,b,y\n"])
def test_a_header_alone_has_no_rows(file, content):
    with pytest.raises(DataError, match=r"data.csv' has no rows"):
        learn(file(content))


@pytest.mark.parametrize(
    ("content", "name"),
    [("[]", "e.json"), ("{}", "e.json"), ('{"a": [], "y": []}', "e.json"), ("\n\n", "e.jsonl")],
)
def test_json_without_rows_is_named(file, content, name):
    with pytest.raises(DataError, match=rf"{name}' has no rows"):
        learn(file(content, name))


@pytest.mark.parametrize("empty", [{}, [], pd.DataFrame(), pd.DataFrame({"a": [], "y": []}), pa.table({"y": []})])
def test_a_table_in_memory_without_rows_is_refused(empty):
    with pytest.raises(DataError, match="has no rows"):
        learn(empty)


@pytest.mark.parametrize("content", ["\n", "\na,b,y\n1,2,3\n", ",,\n1,2,3\n", "   \n1\n"])
def test_a_first_line_that_names_nothing_is_no_header(file, content):
    with pytest.raises(DataError, match=r"data.csv' has no header line: its first line must name the columns"):
        learn(file(content))


def test_no_such_file_and_an_unknown_ending_are_named(file):
    for path, reported in [
        ("nowhere.csv", "there is no file 'nowhere.csv'"),
        ("http://example.org/x.csv", "there is no file 'http://example.org/x.csv'"),
        ("s3://bucket/x.parquet", "there is no file 's3://bucket/x.parquet'"),
        ("a\0b.csv", "there is no file 'a\\x00b.csv'"),
        (file("x", "x.docx"), "has an unknown extension: use one of .csv"),
    ]:
        with pytest.raises(DataError) as caught:
            learn(path)
        assert reported in str(caught.value)


def test_a_pipe_is_no_file_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="not a regular file"):
        learn(str(tmp_path / "pipe.csv"))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_binary_file_that_was_cut_or_is_another_is_named(kind, file, tmp_path):
    data = Path(written(COLUMNS, kind, tmp_path)).read_bytes()
    for content in (data[: len(data) // 2], b"x" * 100, data[:20]):
        with pytest.raises(DataError, match=rf"bad.{kind}' is not a complete"):
            learn(file(content, f"bad.{kind}"))


# ------------------------------------------------------------------ row 2: ragged rows and quotes


@pytest.mark.parametrize(
    ("bad", "line", "reported"),
    [
        ("9.5,u", 4, "has 2 cells where the header has 3"),
        ("9.5", 4, "has 1 cell where the header has 3"),
        ("9.5,u,no,more", 4, "has 4 cells where the header has 3"),
        ("9.5,u,no,", 4, "has 4 cells where the header has 3"),
        ("9.5;u;no", 4, "has 1 cell where the header has 3"),
        ("9.5\tu\tno", 4, "has 1 cell where the header has 3"),
        ('9.5,"u"x,no', 4, "has a quote in the middle of a cell"),
        ('9.5,"u,no', 4, "opens a quote that is never closed"),
        ("   ", 4, "has 1 cell where the header has 3"),
    ],
)
def test_a_bad_line_is_an_error_with_its_number_or_one_counted_reject(file, bad, line, reported):
    lines = GOOD.splitlines()
    path = file("\n".join([*lines[:3], bad, *lines[3:]]) + "\n")
    with pytest.raises(DataError, match=rf"data.csv' line {line} {reported}.*on_bad_rows='skip'"):
        learn(path)
    with pytest.warns(LikelyWarning, match=rf"1 bad rows were skipped, 4 were read: .*line {line} {reported}"):
        model = likely.learn(path, "y", on_bad_rows="skip")
    assert model.tally == learn(file(GOOD, "good.csv")).tally
    assert model.tally.rows == 4


def test_a_ragged_file_keeps_every_row_or_reports_the_lost_ones(file):
    path = file("a,b\n1,2\n3\n4,5,6\n7,8\n")  # DuckDB's sniffer: one row of four, no error
    with pytest.raises(DataError, match="line 3 has 1 cell"):
        cells(path)
    reading = ReadOptions(on_bad_rows="skip")
    assert cells(path, reading) == {"a": [1, 7], "b": [2, 8]}
    assert [reject.split(" has ")[0] for reject in reading.rejects] == [f"{path!r} line 3", f"{path!r} line 4"]


def test_rejects_are_listed_once_however_often_a_file_is_read(file):
    path = file(GOOD + "1\n2\n" + '"x\n' * 3 + "5.0,u,no\n")
    reading = ReadOptions(on_bad_rows="skip")
    source = open_source(path, reading)
    for _ in range(3):
        assert sum(batch.rows for batch in source.batches()) == 5
        assert sum(batch.rows for batch in source.batches({"a": "number"})) == 5
    assert [int(reject.split(" line ")[1].split()[0]) for reject in reading.rejects] == [6, 7, 8, 9, 10]


def test_a_quote_that_is_never_closed_costs_its_own_line_only(file):
    body = "".join(f"{i}.5,u,no\n{i}.25,v,yes\n" for i in range(500))
    path = file("a,b,y\n" + '7.5,"u,no\n' + body)
    with pytest.raises(DataError, match="line 2 opens a quote that is never closed"):
        learn(path)
    assert learn(path, on_bad_rows="skip").tally.rows == 1000


def test_line_numbers_count_lines_not_rows(file):
    with pytest.raises(DataError, match="line 8 has 1 cell"):
        cells(file('a,b\n1,"x\ny\nz"\n\n\n2,3\n4\n'))
    with pytest.raises(DataError, match=r"line 4 has 3 cells where the header has 2 \(up to line 5\)"):
        cells(file('"a\nq",b\n1,2\n3,"x\ny",5\n'))


def test_a_quote_written_before_the_third_batch_is_not_lost(file, monkeypatch):
    monkeypatch.setattr(text_source, "BATCH_ROWS", 100)
    path = file("a,b\n" + "1,2\n" * 1000 + '3,"x\ny"\n' + "4,5\n" * 1000 + "6\n")
    reading = ReadOptions(on_bad_rows="skip")
    assert len(cells(path, reading)["a"]) == 2001
    assert len(reading.rejects) == 1
    assert "line 2004" in reading.rejects[0]


@pytest.mark.parametrize(("text", "names"), [("a;b\n1;2\n", "ab"), ("a|b\n1|2\n", "ab"), ("a\tb\n1\t2\n", "ab")])
def test_the_delimiter_is_found_in_the_header(file, text, names):
    assert cells(file(text)) == {names[0]: [1], names[1]: [2]}


def test_a_header_is_read_as_the_rows_are(file):
    assert cells(file('"a", "b, c"\n1, "x, y"\n2,z\n')) == {"a": [1, 2], "b, c": ["x, y", "z"]}
    assert cells(file('a,b\n1, "x, y"\n2,z\n')) == {"a": [1, 2], "b": ["x, y", "z"]}
    with pytest.raises(DataError, match=r"data.csv' has no readable header line"):
        cells(file(' """\n1\n'))


def test_json_lines_that_are_none_are_errors_with_their_number_or_counted_rejects(file):
    path = file('{"a": 1, "y": "u"}\n{"a": \n[1]\n\n{"a": 2, "a": 3}\n{"a": 4, "y": "v"}\n', "d.jsonl")
    with pytest.raises(DataError, match=r"d.jsonl' line 2 is not JSON"):
        cells(path)
    reading = ReadOptions(on_bad_rows="skip")
    source = open_source(path, reading)
    for _ in range(3):
        assert sum(batch.rows for batch in source.batches()) == 2
    reported = [reject.split("d.jsonl' ")[1] for reject in reading.rejects]
    assert [text.split(" (")[0] for text in reported] == [
        "line 2 is not JSON", "line 3 contains list, not an object", "line 5 names the column 'a' twice",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        ("{", "is not JSON"),
        ("3", "contains int"),
        ("[1, 2]", "row 1 is int, not a dict"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"a": 1, "a": 2}]', "names the column 'a' twice"),
        ('{"a": [1, 2], "y": [1]}', "column 'y' has 1 rows, but 'a' has 2"),
        ('{"a": [1, 2], "y": 1}', "column 'y' is int, while others are lists"),
        ('{"a": ' + "9" * 5000 + "}", "is not JSON"),
    ],
)
def test_json_that_is_no_table_is_named(file, content, reported):
    with pytest.raises(DataError) as caught:
        learn(file(content, "d.json"))
    assert reported in str(caught.value)
    assert "d.json'" in str(caught.value)


def test_a_key_that_first_comes_late_in_json_lines_is_a_column_of_the_whole_file(file, monkeypatch):
    monkeypatch.setattr(json_files, "BATCH_ROWS", 3)
    lines = [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4, "late": "x"}, {"late": "y"}]
    path = file("".join(json.dumps(line) + "\n" for line in lines), "d.jsonl")
    assert cells(path) == {"a": [1, 2, 3, 4, None], "late": [None, None, None, "x", "y"]}
    assert [batch.start for batch in open_source(path).batches()] == [0, 3]


# ------------------------------------------------------------------ row 3: encodings


NO_ENCODINGS = (
    "klingon", "hex", "rot13", "base64", "zlib", "undefined", "idna", "punycode", "unicode_escape", "unicode-escape",
    "raw_unicode_escape", "", "a\0b", "é", "x" * 10_000, "../utf-8",
)  # fmt: skip
ACCENTS = "name,y\nÅsa,ja\nÖrjan,nej\nČeněk,ja\n漢字,nej\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("form", ["csv", "jsonl", "json"])
def test_a_byte_order_mark_is_understood_and_is_no_part_of_the_first_name(file, encoding, form):
    rows = [dict(zip(("name", "y"), line.split(","), strict=True)) for line in ACCENTS.splitlines()[1:]]
    text = {"csv": ACCENTS, "json": json.dumps(rows), "jsonl": "\n".join(map(json.dumps, rows))}[form]
    assert cells(file(text.encode(encoding), f"d.{form}")) == cells(file(ACCENTS))


def test_another_encoding_is_refused_with_its_line_and_read_when_named(file):
    text = "name,y\n" + "Asa,ja\n" * 3000 + "Åsa,nej\n"
    for form, reported in (("csv", "is not UTF-8 in line 3002"), ("tsv", "is not UTF-8 in line 3002")):
        path = file(text.replace(",", "\t" if form == "tsv" else ",").encode("latin-1"), f"d.{form}")
        with pytest.raises(DataError, match=reported + r".*encoding='latin-1' \(--encoding latin-1\)"):
            cells(path)
        assert cells(path, ReadOptions(encoding="latin-1"))["name"][-1] == "Åsa"
    path = file('{"name": "Åsa"}\n'.encode("latin-1"), "d.jsonl")
    with pytest.raises(DataError, match=r"is not utf-8.*encoding='latin-1'"):
        cells(path)
    assert cells(path, ReadOptions(encoding="latin-1")) == {"name": ["Åsa"]}


def test_utf_16_without_a_mark_is_refused_with_a_hint_and_read_when_named(file):
    path = file(ACCENTS.encode("utf-16-le"))
    with pytest.raises(DataError, match=r"NUL byte in line 1.*--encoding utf-16"):
        cells(path)
    assert cells(path, ReadOptions(encoding="utf-16-le")) == cells(file(ACCENTS, "good.csv"))
    marked = file(codecs.BOM_UTF16_LE + ACCENTS.encode("utf-16-le"), "marked.csv")
    assert cells(marked, ReadOptions(encoding="utf-16-le")) == cells(file(ACCENTS, "good.csv"))


def test_a_nul_byte_is_refused_with_its_line(file):
    with pytest.raises(DataError, match=r"data.csv' has a NUL byte in line 3"):
        cells(file(b"a,b\n1,2\n3,\x004\n"))


def test_a_file_cut_in_the_middle_of_a_character_is_refused(file):
    with pytest.raises(DataError, match="ends in the middle of a character"):
        cells(file((ACCENTS + "é").encode()[:-1]))


def test_what_is_not_the_named_encoding_is_refused(file):
    with pytest.raises(DataError, match=r"data.csv' is not ascii"):
        cells(file(ACCENTS), ReadOptions(encoding="ascii"))
    for name in NO_ENCODINGS:
        with pytest.raises(UsageError, match="is not known as an encoding of text files: try 'utf-8'"):
            ReadOptions(encoding=name)


@pytest.mark.parametrize("form", ["csv", "json", "jsonl"])
def test_lone_surrogates_that_an_encoding_permits_are_bad_data(file, form):
    text = {"csv": "a,y\n+2AA-,p\nb,q\n", "jsonl": '{"a": "+2AA-"}\n', "json": '[{"a": "+2AA-"}]'}[form]
    with pytest.raises(DataError, match="surrogate"):
        cells(file(text, f"d.{form}"), ReadOptions(encoding="utf-7"))


@pytest.mark.parametrize("form", ["json", "jsonl", "rows", "dict"])
def test_half_a_character_is_refused_by_column_and_row(form, file):
    rows = [{"a": "x", "y": "u"}, {"a": "\ud800", "y": "v"}]
    data = {
        "json": lambda: file(json.dumps(rows), "d.json"),
        "jsonl": lambda: file("\n".join(map(json.dumps, rows)), "d.jsonl"),
        "rows": lambda: rows,
        "dict": lambda: {"a": ["x", "\ud800"], "y": ["u", "v"]},
    }[form]()
    with pytest.raises(DataError, match=r"column 'a' has '\\ud800' in row 2, which contains a lone surrogate"):
        learn(data)


def test_half_a_character_or_a_nul_in_a_name_is_refused(file):
    for name in ("\ud800", "a\0b"):
        for data in ([{name: 1, "y": 2}], {name: [1], "y": [2]}, file(json.dumps([{name: 1}]), "d.json")):
            with pytest.raises(DataError, match="has a name with a NUL or half a character in it"):
                learn(data)


# ------------------------------------------------------------------ row 4: names


NAMES = [
    "", " ", "a", "A", "c.d", "c", "d", '"', "'", '"; DROP TABLE data; --', "c0", "c1", "select", "[x]", "{{7*7}}", "=cmd()",
    "<script>", "😀", "\u202e", "x" * 10_000, "a,b", "a\nb", "a\tb", "%s", "\\", "y.", ".y", "1", "\x1b[31m", "Ünï", "u\u0308",
]  # fmt: skip


@pytest.mark.parametrize("kind", FORMS)
def test_any_name_is_kept_exactly_and_never_the_wrong_column(kind, tmp_path):
    table = {name: [float(2 * i), float(2 * i + 1)] for i, name in enumerate(NAMES)} | {"y": ["u", "v"]}
    found = cells(written(table, kind, tmp_path))
    assert list(found) == list(table)
    assert {name: list(map(float, found[name])) for name in NAMES} == {name: table[name] for name in NAMES}
    model = learn(written(table, kind, tmp_path), families=likely.Gaussian())
    means = {name: [row["mean"] for row in model.parameters[name]] for name in NAMES}
    assert means == {name: table[name] for name in NAMES}


@pytest.mark.parametrize("kind", ["csv", "parquet", "dict"])
def test_odd_names_survive_learning_saving_and_explaining(kind, tmp_path):
    table = {name: [float(i), float(i + 1), float(i), 3.0] for i, name in enumerate(NAMES)} | {
        "y": ["u", "v", "u", "v"]
    }
    model = learn(written(table, kind, tmp_path))
    model.save(tmp_path / "m.likely")
    loaded = likely.load(tmp_path / "m.likely")
    assert [column.name for column in loaded.schema.columns] == [column.name for column in model.schema.columns]
    ledger = loaded.explain({name: column[0] for name, column in table.items()})
    assert {entry.name for entry in ledger.entries} == {CALIBRATION, *(column.name for column in model.schema.columns)}
    assert "\x1b" not in str(ledger)
    assert "<script>" not in ledger._repr_html_()


def test_a_name_that_stands_twice_is_refused_by_name(file, tmp_path):
    twice = pa.table([[1], [2], [3]], names=["a", "a", "y"])
    pq.write_table(twice, tmp_path / "t.parquet")
    for data in (
        file("a,a,y\n1,2,3\n"),
        file('[{"a": 1, "a": 2}]', "t.json"),
        str(tmp_path / "t.parquet"),
        twice,
        pd.DataFrame([[1, 2, 3]], columns=["a", "a", "y"]),
    ):
        with pytest.raises(DataError, match="column 'a'"):
            learn(data)
    for data in (pd.DataFrame([[1, 2]], columns=[1, "1"]), {1: [1], "1": [2]}, [{1: 1, "1": 2}]):
        with pytest.raises(DataError, match="column '1' occurs twice"):
            learn(data)


def test_a_nested_field_is_not_taken_for_a_column_of_the_same_path(tmp_path):
    struct = pa.array([{"d": 1.0}, {"d": 2.0}, {"d": 3.0}, {"d": 9.0}])
    table = pa.table({"c": struct, "c.d": [5.0, 6.0, 7.0, 9.0], "y": ["u", "v", "u", "v"]})
    pq.write_table(table, tmp_path / "t.parquet")
    model = learn(str(tmp_path / "t.parquet"), plain=True)
    assert [column.name for column in model.schema.columns] == ["c.d"]
    assert [row["mean"] for row in model.parameters["c.d"]] == [6.0, 7.5]
