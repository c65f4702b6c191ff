"""Bad, odd and extreme tables: each is read exactly, or refused with column, value, row or line, and a remedy."""

import codecs
import csv
import json
import os
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from likely.errors import DataError, LikelyWarning, SchemaError, UsageError
from likely.sources import MISSING, Reading, files, objects, open_source
from likely.sources import text as text_source

GOOD = "a,b,y\n1.5,u,no\n2.5,v,yes\n3.5,u,no\n4.0,v,yes\n"
COLUMNS = {"a": [1.5, 2.5, 3.5, 4.0], "b": ["u", "v", "u", "v"], "y": ["no", "yes", "no", "yes"]}


@pytest.fixture
def file(tmp_path):
    """Write a file and give its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def learn(data, target="y", **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        return likely.learn(data, target, **settings)


def tables(model):
    """What is believed of each column, as plain lists."""
    return {name: list(rows) for name, rows in model.parameters.items()}


def cells(data, reading=None, kinds=None):
    """The columns of a source as lists."""
    found = {}
    for batch in open_source(data, reading).batches(kinds):
        for name in batch.names:
            column = batch.columns[name]
            found.setdefault(name, []).extend(column if isinstance(column, list) else column.to_pylist())
    return found


def written(columns, kind, folder):
    """The same table in another form."""
    path = folder / f"table.{kind}"
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if kind == "pandas":
        return pd.DataFrame(columns)
    if kind == "object":
        return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()})
    if kind == "polars":
        return pl.DataFrame(columns, strict=False)
    if kind == "lazy":
        return pl.LazyFrame(columns, strict=False)
    if kind == "pyarrow":
        return pa.table(columns)
    if kind == "rows":
        return rows
    if kind == "dict":
        return columns
    if kind == "parquet":
        pq.write_table(pa.table(columns), path)
    elif kind == "arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.table(columns).schema) as writer:
            writer.write_table(pa.table(columns))
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif kind == "json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    else:
        pd.DataFrame(columns).to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    return str(path)


FORMS = ["dict", "rows", "pandas", "object", "polars", "lazy", "pyarrow", "parquet", "arrow", "jsonl", "json", "csv", "tsv"]


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
    for path, said in [
        ("nowhere.csv", "there is no file 'nowhere.csv'"),
        ("http://example.org/x.csv", "there is no file 'http://example.org/x.csv'"),
        ("s3://bucket/x.parquet", "there is no file 's3://bucket/x.parquet'"),
        ("a\0b.csv", "there is no file 'a\\x00b.csv'"),
        (file("x", "x.xlsx"), "has an ending that is not known: use one of .csv"),
    ]:
        with pytest.raises(DataError) as caught:
            learn(path)
        assert said in str(caught.value)


def test_a_pipe_is_no_file_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="no ordinary file"):
        learn(str(tmp_path / "pipe.csv"))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_binary_file_that_was_cut_or_is_another_is_named(kind, file, tmp_path):
    data = open(written(COLUMNS, kind, tmp_path), "rb").read()
    for content in (data[: len(data) // 2], b"x" * 100, data[:20]):
        with pytest.raises(DataError, match=rf"bad.{kind}' is no whole"):
            learn(file(content, f"bad.{kind}"))


# ------------------------------------------------------------------ row 2: ragged rows and quotes


@pytest.mark.parametrize(
    ("bad", "line", "said"),
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
def test_a_bad_line_is_an_error_with_its_number_or_one_counted_reject(file, bad, line, said):
    lines = GOOD.splitlines()
    path = file("\n".join([*lines[:3], bad, *lines[3:]]) + "\n")
    with pytest.raises(DataError, match=rf"data.csv' line {line} {said}.*on_bad_rows='skip'"):
        learn(path)
    with pytest.warns(LikelyWarning, match=rf"1 bad rows? (was|were) skipped: .*line {line} {said}"):
        model = likely.learn(path, "y", on_bad_rows="skip")
    assert model.tally == learn(file(GOOD, "good.csv")).tally
    assert model.tally.rows == 4


def test_the_ragged_file_of_the_issue_keeps_every_row_or_says_so(file):
    path = file("a,b\n1,2\n3\n4,5,6\n7,8\n")  # DuckDB's sniffer: one row of four, no error
    with pytest.raises(DataError, match="line 3 has 1 cell"):
        cells(path)
    reading = Reading(on_bad_rows="skip")
    assert cells(path, reading) == {"a": [1, 7], "b": [2, 8]}
    assert [reject.split(" has ")[0] for reject in reading.rejects] == [f"{path!r} line 3", f"{path!r} line 4"]


def test_rejects_are_listed_once_however_often_a_file_is_read(file):
    path = file(GOOD + "1\n2\n" + '"x\n' * 3 + "5.0,u,no\n")
    reading = Reading(on_bad_rows="skip")
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
    reading = Reading(on_bad_rows="skip")
    assert len(cells(path, reading)["a"]) == 2001
    assert len(reading.rejects) == 1
    assert "line 2004" in reading.rejects[0]


@pytest.mark.parametrize(("text", "names"), [("a;b\n1;2\n", "ab"), ("a|b\n1|2\n", "ab"), ("a\tb\n1\t2\n", "ab")])
def test_the_header_tells_the_delimiter(file, text, names):
    assert cells(file(text)) == {names[0]: [1], names[1]: [2]}


def test_json_lines_that_are_none_are_errors_with_their_number_or_counted_rejects(file):
    path = file('{"a": 1, "y": "u"}\n{"a": \n[1]\n\n{"a": 2, "a": 3}\n{"a": 4, "y": "v"}\n', "d.jsonl")
    with pytest.raises(DataError, match=r"d.jsonl' line 2 is not JSON"):
        cells(path)
    reading = Reading(on_bad_rows="skip")
    source = open_source(path, reading)
    for _ in range(3):
        assert sum(batch.rows for batch in source.batches()) == 2
    said = [reject.split("d.jsonl' ")[1] for reject in reading.rejects]
    assert [text.split(" (")[0] for text in said] == [
        "line 2 is not JSON", "line 3 holds list, not an object", "line 5 names the column 'a' twice",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("3", "holds int"),
        ("[1, 2]", "row 1 is int, not a dict"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"a": 1, "a": 2}]', "names the column 'a' twice"),
        ('{"a": [1, 2], "y": [1]}', "column 'y' has 1 rows, but 'a' has 2"),
        ('{"a": [1, 2], "y": 1}', "column 'y' is int, while others are lists"),
        ('{"a": ' + "9" * 5000 + "}", "is not JSON"),
    ],
)
def test_json_that_is_no_table_is_named(file, content, said):
    with pytest.raises(DataError) as caught:
        learn(file(content, "d.json"))
    assert said in str(caught.value)
    assert "d.json'" in str(caught.value)


def test_a_key_that_first_comes_late_in_json_lines_is_a_column_of_the_whole_file(file, monkeypatch):
    monkeypatch.setattr(objects, "BATCH_ROWS", 3)
    lines = [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4, "late": "x"}, {"late": "y"}]
    path = file("".join(json.dumps(line) + "\n" for line in lines), "d.jsonl")
    assert cells(path) == {"a": [1, 2, 3, 4, None], "late": [None, None, None, "x", "y"]}
    assert [batch.start for batch in open_source(path).batches()] == [0, 3]


# ------------------------------------------------------------------ row 3: encodings


ACCENTS = "name,y\nÅsa,ja\nÖrjan,nej\nČeněk,ja\n漢字,nej\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("form", ["csv", "jsonl", "json"])
def test_a_byte_order_mark_is_understood_and_is_no_part_of_the_first_name(file, encoding, form):
    rows = [dict(zip(("name", "y"), line.split(","), strict=True)) for line in ACCENTS.splitlines()[1:]]
    text = {"csv": ACCENTS, "json": json.dumps(rows), "jsonl": "\n".join(map(json.dumps, rows))}[form]
    assert cells(file(text.encode(encoding), f"d.{form}")) == cells(file(ACCENTS))


def test_another_encoding_is_refused_with_its_line_and_read_when_named(file):
    text = "name,y\n" + "Asa,ja\n" * 3000 + "Åsa,nej\n"
    for form, said in (("csv", "is not UTF-8 in line 3002"), ("tsv", "is not UTF-8 in line 3002")):
        path = file(text.replace(",", "\t" if form == "tsv" else ",").encode("latin-1"), f"d.{form}")
        with pytest.raises(DataError, match=said + r".*encoding='latin-1' \(--encoding latin-1\)"):
            cells(path)
        assert cells(path, Reading(encoding="latin-1"))["name"][-1] == "Åsa"
    path = file('{"name": "Åsa"}\n'.encode("latin-1"), "d.jsonl")
    with pytest.raises(DataError, match="is not utf-8.*encoding='latin-1'"):
        cells(path)
    assert cells(path, Reading(encoding="latin-1")) == {"name": ["Åsa"]}


def test_utf_16_without_a_mark_is_refused_with_a_hint_and_read_when_named(file):
    path = file(ACCENTS.encode("utf-16-le"))
    with pytest.raises(DataError, match=r"NUL byte in line 1.*--encoding utf-16"):
        cells(path)
    assert cells(path, Reading(encoding="utf-16-le")) == cells(file(ACCENTS, "good.csv"))
    marked = file(codecs.BOM_UTF16_LE + ACCENTS.encode("utf-16-le"), "marked.csv")
    assert cells(marked, Reading(encoding="utf-16-le")) == cells(file(ACCENTS, "good.csv"))


def test_a_nul_byte_is_refused_with_its_line(file):
    with pytest.raises(DataError, match="data.csv' has a NUL byte in line 3"):
        cells(file(b"a,b\n1,2\n3,\x004\n"))


def test_a_file_cut_in_the_middle_of_a_character_is_refused(file):
    with pytest.raises(DataError, match="ends in the middle of a character"):
        cells(file((ACCENTS + "é").encode()[:-1]))


def test_what_is_not_the_named_encoding_is_refused(file):
    with pytest.raises(DataError, match="data.csv' is not ascii"):
        cells(file(ACCENTS), Reading(encoding="ascii"))
    for name in ("klingon", "hex"):
        with pytest.raises(UsageError, match=f"encoding='{name}' is not known"):
            Reading(encoding=name)


@pytest.mark.parametrize("form", ["json", "jsonl", "rows", "dict"])
def test_half_a_character_is_refused_by_column_and_row(form, file):
    rows = [{"a": "x", "y": "u"}, {"a": "\ud800", "y": "v"}]
    data = {
        "json": lambda: file(json.dumps(rows), "d.json"),
        "jsonl": lambda: file("\n".join(map(json.dumps, rows)), "d.jsonl"),
        "rows": lambda: rows,
        "dict": lambda: {"a": ["x", "\ud800"], "y": ["u", "v"]},
    }[form]()
    with pytest.raises(DataError, match=r"column 'a' has '\\ud800' in row 2, which has half a character in it"):
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
    table = {name: [float(i), float(i + 1), float(i), 3.0] for i, name in enumerate(NAMES)} | {"y": ["u", "v", "u", "v"]}
    model = learn(written(table, kind, tmp_path))
    model.save(tmp_path / "m.likely")
    loaded = likely.load(tmp_path / "m.likely")
    assert [column.name for column in loaded.schema.columns] == [column.name for column in model.schema.columns]
    ledger = loaded.explain({name: column[0] for name, column in table.items()})
    assert {entry.name for entry in ledger.entries} == {column.name for column in model.schema.columns}
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
        with pytest.raises(DataError, match="column '1' stands twice"):
            learn(data)


def test_a_nested_field_is_not_taken_for_a_column_of_the_same_path(tmp_path):
    struct = pa.array([{"d": 1.0}, {"d": 2.0}, {"d": 3.0}, {"d": 9.0}])
    table = pa.table({"c": struct, "c.d": [5.0, 6.0, 7.0, 9.0], "y": ["u", "v", "u", "v"]})
    pq.write_table(table, tmp_path / "t.parquet")
    model = learn(str(tmp_path / "t.parquet"))
    assert [column.name for column in model.schema.columns] == ["c.d"]
    assert [row["mean"] for row in model.parameters["c.d"]] == [6.0, 7.5]


# ------------------------------------------------------------------ row 5: missing


TOKENS = ["", " ", "?", "NA", "N/A", "n/a", "NULL", "null", "None", "none", "NaN", "nan", "<NA>", "#N/A", " NA ", "\tNA", "\xa0"]


@pytest.mark.parametrize("kind", FORMS)
def test_what_stands_for_missing_is_the_same_everywhere(kind, tmp_path):
    assert set(TOKENS) >= set(MISSING)
    n = len(TOKENS)
    table = {"t": ["u", "v", *TOKENS], "y": ["p", "q"] * ((n + 2) // 2) + ["p"] * (n % 2)}
    model = learn(written(table, kind, tmp_path))
    assert model.schema.by_name["t"].values == ("u", "v")
    assert sum(row["count"] for row in model.parameters["t"]) == 2
    numbers = table | {"t": ["1.5", "2.5", *TOKENS]}
    model = learn(written(numbers, kind, tmp_path), families={"t": likely.Gaussian()})
    assert sum(row["count"] for row in model.parameters["t"]) == 2


@pytest.mark.parametrize("kind", ["dict", "rows", "pandas", "polars", "pyarrow", "parquet", "jsonl", "csv"])
def test_null_and_nan_are_missing_everywhere(kind, tmp_path):
    table = {"x": [1.0, None, float("nan"), 4.0], "t": ["u", None, "v", "u"], "y": ["p", "q", "p", "q"]}
    model = learn(written(table, kind, tmp_path))
    assert sum(row["count"] for row in model.parameters["x"]) == 2
    assert sum(row["count"] for row in model.parameters["t"]) == 3


@pytest.mark.parametrize("kind", ["dict", "rows", "pandas", "polars", "parquet", "jsonl", "csv"])
def test_a_number_can_stand_for_missing_and_the_given_tokens_replace_the_usual_ones(kind, tmp_path):
    table = {"x": [1.5, -999.0, 2.5, 4.0], "n": [1, -999, 2, 3], "t": ["NA", "-999", "v", "v"], "y": ["p", "q", "p", "q"]}
    for missing in (["-999"], [-999], "-999"):
        model = learn(written(table, kind, tmp_path), missing=missing)
        assert sum(row["count"] for row in model.parameters["x"]) == 3
        assert sum(row["count"] for row in model.parameters["n"]) == 3
        assert model.schema.by_name["t"].values == ("NA", "v")
    array = np.column_stack([table["x"], table["n"], [0, 1, 0, 1]])
    model = learn(array, "x2", missing=[-999])
    assert [sum(row["count"] for row in model.parameters[name]) for name in ("x0", "x1")] == [3, 3]


def test_a_cell_that_is_no_number_is_named_with_its_row_and_a_remedy(file, tmp_path):
    said = r"column 'a' has 'n\.a\.' in row 3, which is not a number: pass missing=\['n\.a\.'\]"
    table = {"a": ["1", "2", "n.a.", "4"], "y": ["u", "v", "u", "v"]}
    for kind in ("dict", "pandas", "polars", "parquet", "jsonl", "csv"):
        with pytest.raises(DataError, match=said):
            learn(written(table, kind, tmp_path), families={"a": "gaussian"})
    model = learn(table | {"a": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(DataError, match=r"column 'a' has 'n\.a\.' in row 2, which is not a number"):
        model.predict(file("a\n1\nn.a.\n"))


# ------------------------------------------------------------------ row 6: extreme numbers


def test_infinity_is_refused_with_its_row(file, tmp_path):
    for value in (float("inf"), float("-inf")):
        table = {"a": [1.0, 2.0, value, 4.0], "y": ["u", "v", "u", "v"]}
        for kind in ("dict", "pandas", "polars", "parquet", "csv", "jsonl"):
            with pytest.raises(DataError, match=r"column 'a' has -?inf in row 3, which is not a finite number"):
                learn(written(table, kind, tmp_path))
        model = learn(table | {"a": [1.0, 2.0, 3.0, 4.0]})
        with pytest.raises(DataError, match=r"column 'a' has -?inf in row 1, which is not a finite number"):
            model.posterior({"a": value})


@pytest.mark.parametrize(
    "numbers",
    [
        [1e149, -1e149, 1.0, 2.0],
        [5e-324, 0.0, 1e-320, 0.0],
        [1e-200, 2e-200, 3e-200, 5e-200],
        [-0.0, 0.0, -0.0, 0.0],
        [2**53 + 1, 2**53 + 3, 2**60, 5],
        [2**63 - 1, -(2**63), 0, 1],
        [2**64 - 1, 0, 1, 2],
        [2**70, 0, 1, 2],
        [1e9 + 0.1, 1e9 + 0.2, 1e9 + 0.3, 1e9 + 0.4],
    ],
)
def test_extreme_numbers_give_finite_posteriors(numbers, tmp_path):
    table = {"a": numbers, "y": ["u", "v", "u", "v"]}
    for kind in ("dict", "csv", "jsonl"):
        model = learn(written(table, kind, tmp_path), families={"a": "gaussian"})
        for far in (0.0, 1e308, -1e308, 5e-324, -0.0):
            shares = model.posterior({"a": far}).probabilities
            assert np.isfinite(shares).all()
            assert shares.sum() == pytest.approx(1.0)


def test_numbers_too_large_for_a_variance_are_refused_with_their_row():
    with pytest.raises(DataError, match=r"column 'a' has 1e\+308 in row 2, which is too large to be squared"):
        learn({"a": [1.0, 1e308, 2.0, 3.0], "y": ["u", "v", "u", "v"]})


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "parquet", "csv", "jsonl"])
def test_whole_numbers_beyond_the_digits_of_a_float_stay_different_labels(kind, tmp_path):
    labels = [2**53 + 1, 2**53 + 2, 2**53 + 1, 2**53 + 2]
    table = {"a": [1.0, 2.0, 1.5, 2.5], "c": labels, "y": labels}
    model = learn(written(table, kind, tmp_path), families={"c": "categorical"})
    assert model.classes == (2**53 + 1, 2**53 + 2)
    assert model.schema.by_name["c"].values == (2**53 + 1, 2**53 + 2)
    assert model.predict([{"a": 1.0, "c": str(2**53 + 1)}]).tolist() == [2**53 + 1]


def test_minus_zero_and_zero_are_one_category():
    model = learn({"c": [0.0, -0.0, 1.5, 0.0], "y": ["u", "v", "u", "v"]}, families={"c": "categorical"})
    assert model.schema.by_name["c"].values == (0.0, 1.5)


def test_a_code_with_leading_zeros_is_no_number(file):
    rows = "".join(f"{zip_code},{y}\n" for zip_code, y in zip(["01234", "01234", "99999", "00501"], "uvuv", strict=True))
    model = learn(file("zip,y\n" + rows))
    assert model.schema.by_name["zip"].values == ("00501", "01234", "99999")
    assert cells(file("x\n0.5\n0\n-0.5\n0e3\n")) == {"x": [0.5, 0.0, -0.5, 0.0]}


# ------------------------------------------------------------------ row 7: columns and classes with nothing to say


@pytest.mark.parametrize("kind", ["dict", "pandas", "parquet", "csv", "jsonl"])
def test_a_column_without_a_cell_is_left_out_and_says_why(kind, tmp_path):
    for nothing in ([None] * 4, ["NA"] * 4, [float("nan")] * 4):
        model = learn(written(COLUMNS | {"void": nothing}, kind, tmp_path))
        assert dict(model.schema.ignored)["void"] == "every cell is missing"
        assert model.predict(written(COLUMNS | {"void": [None] * 4}, kind, tmp_path)).tolist() == COLUMNS["y"]


def test_a_constant_column_and_a_class_of_one_row_learn_with_a_warning():
    table = {"x": [3.0, 3.0, 3.0, 3.0], "c": ["k"] * 4, "z": [1.0, 2.0, 3.0, 9.0], "y": ["u", "u", "u", "v"]}
    with pytest.warns(LikelyWarning, match="does not vary"):
        model = likely.learn(table, "y")
    shares = model.posterior({"x": [3.0, 4.0, -1e9], "c": ["k", "other", None], "z": [1.0, 9.0, None]}).probabilities
    assert np.isfinite(shares).all()
    assert shares.sum(1) == pytest.approx([1.0, 1.0, 1.0])


def test_a_single_class_is_refused_and_can_be_declared(file):
    for data in (COLUMNS | {"y": ["no"] * 4}, file(GOOD.replace("yes", "no"))):
        with pytest.raises(DataError, match="column 'y' has only one class, 'no'.*needs two classes.*classes="):
            learn(data)
        assert learn(data, classes=["no", "yes"]).classes == ("no", "yes")


def test_a_class_that_the_test_rows_lack_is_predicted_all_the_same():
    model = learn(COLUMNS)
    assert model.posterior({"a": [1.5], "b": ["u"]}).probabilities.shape == (1, 2)


# ------------------------------------------------------------------ row 8: what prediction has not seen


def test_an_unseen_value_is_smoothed_and_flagged():
    model = learn(COLUMNS)
    ledger = model.explain({"a": 1e6, "b": "never"})
    flags = {entry.name: entry.flags for entry in ledger.entries}
    assert flags == {"a": ("out of range",), "b": ("unseen",)}
    assert np.isfinite(model.posterior({"a": [1e6], "b": ["never"]}).probabilities).all()


def test_a_cell_that_is_missing_only_in_prediction_says_nothing():
    model = learn(COLUMNS)
    assert model.posterior([{"a": None, "b": None}]).probabilities.tolist() == [[0.5, 0.5]]
    flags = {entry.name: entry.flags for entry in model.explain({"a": None, "b": "?"}).entries}
    assert flags == {"a": ("missing",), "b": ("missing",)}


# ------------------------------------------------------------------ row 10: very wide tables


@pytest.mark.parametrize("kind", ["dict", "csv", "parquet"])
def test_ten_thousand_columns_are_learned_saved_and_explained(kind, tmp_path):
    values = np.random.default_rng(0).normal(size=(10_000, 20)).round(3)
    table = {f"c{i}": column.tolist() for i, column in enumerate(values)} | {"y": ["u", "v"] * 10}
    data = written(table, kind, tmp_path)
    model = learn(data)
    assert len(model.schema.columns) == 10_000
    shares = model.posterior(data).probabilities
    assert np.isfinite(shares).all()
    if kind == "csv":
        model.save(tmp_path / "wide.likely")
        assert likely.load(tmp_path / "wide.likely").tally == model.tally
        assert len(model.explain({name: column[0] for name, column in table.items()}).entries) == 10_000


@pytest.mark.parametrize("kind", ["rows", "csv"])
def test_one_row_of_a_hundred_thousand_columns_is_a_table(kind, file):
    names = [f"c{i}" for i in range(100_000)]
    data = [dict.fromkeys(names, 1.5) | {"y": "u"}]
    if kind == "csv":
        data = file(",".join([*names, "y"]) + "\n" + "1.5," * 100_000 + "u\n")
    model = learn(data, classes=["u", "v"], families=likely.Gaussian())
    assert len(model.schema.columns) == 100_000
    assert np.isfinite(model.posterior(data).probabilities).all()


def test_a_log_likelihood_far_below_the_smallest_float_is_still_a_probability():
    table = {f"c{i}": [0.0, 1.0, 0.5, 1.5] for i in range(400)} | {"y": ["u", "u", "v", "v"]}
    posterior = learn(table).posterior({f"c{i}": [1e150] for i in range(400)})
    assert (posterior.log_joint < -1e302).all()
    assert np.isfinite(posterior.probabilities).all()
    assert posterior.probabilities.sum() == pytest.approx(1.0)


# ------------------------------------------------------------------ row 11: other columns and types in prediction


def test_columns_are_matched_by_name_in_any_order_and_others_do_not_matter(file):
    model = learn(COLUMNS)
    straight = model.posterior(COLUMNS).probabilities
    for data in (
        {"extra": ["?"] * 4, "b": COLUMNS["b"], "a": COLUMNS["a"]},
        pd.DataFrame({"b": COLUMNS["b"], "zz": 1, "a": COLUMNS["a"]}),
        file("b,zz,a\n" + "".join(f"{b},,{a}\n" for a, b in zip(COLUMNS["a"], COLUMNS["b"], strict=True))),
    ):
        assert (model.posterior(data).probabilities == straight).all()


def test_a_missing_column_is_an_error_that_names_it_or_is_missing_on_request(file):
    model = learn(COLUMNS)
    for data in (pd.DataFrame({"a": [1.0]}), file("a,x\n1,2\n"), {"a": [1.0]}):
        with pytest.raises(SchemaError, match="has no column 'b': add it, or pass absent='missing'"):
            model.predict(data)
        assert len(model.predict(data, absent="missing")) == 1
    with pytest.raises(SchemaError, match=r"has none of the columns \['a', 'b'\]"):
        model.predict({"q": [1]}, absent="missing")
    with pytest.warns(LikelyWarning, match="column 'A' is not known: 'a' is meant"):
        model.predict([{"A": 1.0, "b": "u"}])


def test_a_slip_of_the_pen_is_looked_for_in_small_tables_only():
    model = learn({f"column{i}": [1.0, 2.0, 3.0, 4.0] for i in range(2000)} | {"y": COLUMNS["y"]})
    wrong = {f"kolumn{i}": [1.0] for i in range(1, 2000)} | {"column0": [1.0]}
    assert len(model.predict(wrong, absent="missing")) == 1


ONES = [1, "1", 1.0, True, "1.0"]


@pytest.mark.parametrize("known", [(1, 0), ("1", "0"), (1.0, 0.0), (True, False), ("true", "false"), ("TRUE", "FALSE")], ids=str)
def test_one_is_one_however_it_is_written(known):
    model = learn({"c": [*known] * 4, "y": ["u", "v"] * 4}, families={"c": "categorical"})
    expected = model.posterior([{"c": known[0]}]).probabilities
    for value in [True, "1"] if isinstance(known[0], str) and known[0].lower() == "true" else ONES:
        if known == ("1", "0") and value == "1.0":
            continue
        if known[0] in ("true", "TRUE") and value == "1":
            continue
        assert (model.posterior([{"c": value}]).probabilities == expected).all(), value


def test_text_is_matched_letter_by_letter():
    model = learn({"c": ["1", "01", "x", "X"] * 2, "y": ["u", "v", "u", "v"] * 2}, families={"c": "categorical"})
    assert model.schema.by_name["c"].values == ("01", "1", "X", "x")
    flags = [model.explain({"c": value}).entries[0].flags for value in ("1", "01", "001", " x", 1)]
    assert flags == [(), (), ("unseen",), ("unseen",), ()]


def test_numbers_as_text_predict_like_numbers(file):
    model = learn(COLUMNS)
    text = {"a": [str(a) for a in COLUMNS["a"]], "b": COLUMNS["b"]}
    assert (model.posterior(text).probabilities == model.posterior(COLUMNS).probabilities).all()


# ------------------------------------------------------------------ row 12: labels


@pytest.mark.parametrize("labels", [[0, 1], [1.5, 2.5], [True, False], ["a", "b"], [-1, 1]], ids=str)
@pytest.mark.parametrize("kind", ["dict", "rows", "pandas", "polars", "parquet", "jsonl"])
def test_labels_come_back_in_their_own_type(labels, kind, tmp_path):
    table = {"a": [1.0, 9.0, 1.5, 9.5], "y": labels * 2}
    model = learn(written(table, kind, tmp_path))
    assert model.classes == tuple(sorted(labels))
    assert {type(label) for label in model.classes} == {type(labels[0])}
    found = model.predict({"a": [1.0, 9.0]}).tolist()
    assert found == labels
    assert type(found[0]) is type(labels[0])


def test_whole_numbers_are_labels_of_a_csv_file_and_stay_so_in_its_updates(file):
    model = learn(file("a,y\n1.5,0\n9.5,1\n1.0,0\n9.0,1\n"))
    assert model.classes == (0, 1)
    assert model.update(file("a,y\n5.0,2\n1.5,0\n", "more.csv")).classes == (0, 1, 2)
    assert model.predict(file("a\n1\n9\n", "new.csv")).tolist() == [0, 1]
    assert learn(file("a,y\n1.5,00\n9.5,01\n1.0,00\n9.0,01\n")).classes == ("00", "01")
    assert learn(file("a,y\n1.5,0.50\n9.5,1\n1.0,0.50\n9.0,1\n")).classes == ("0.50", "1")


def test_a_target_that_is_not_there_is_named(file):
    for data in (COLUMNS, file(GOOD), pd.DataFrame(COLUMNS)):
        with pytest.raises(SchemaError, match=r"has no column 'Y': it has \['a', 'b', 'y'\]"):
            learn(data, "Y")


def test_rows_without_a_label_are_counted_out_loud_or_refused(file):
    table = COLUMNS | {"y": ["no", None, "no", "yes"]}
    for data in (table, pd.DataFrame(table), file(GOOD.replace("v,yes", "v,", 1))):
        with pytest.warns(LikelyWarning, match="1 of 4 rows have no 'y': they were not counted"):
            assert likely.learn(data, "y").tally.rows == 3
        with pytest.raises(DataError, match="column 'y' has no label in row 2: fill it in"):
            learn(data, unlabelled="error")
    with pytest.raises(DataError, match="column 'y' has no class"):
        learn(COLUMNS | {"y": [None] * 4})


# ------------------------------------------------------------------ row 13: weights and priors


@pytest.mark.parametrize("kind", ["dict", "pandas", "csv", "parquet", "jsonl"])
def test_a_weight_of_zero_equals_removal(kind, tmp_path):
    table = COLUMNS | {"w": [1.0, 1.0, 0.0, 1.0]}
    model = learn(written(table, kind, tmp_path), weights="w")
    rest = {name: [v for i, v in enumerate(column) if i != 2] for name, column in COLUMNS.items()}
    assert tables(model) == tables(learn(rest))


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), None])
def test_other_weights_are_refused_with_their_row(weight, tmp_path):
    table = COLUMNS | {"w": [1.0, 1.0, weight, 1.0]}
    for kind in ("dict", "pandas", "csv"):
        with pytest.raises(DataError, match=r"column 'w' has .* in row 3, which is no weight"):
            learn(written(table, kind, tmp_path), weights="w")
    if weight is not None:
        with pytest.raises(DataError, match=r"in row 3, which is no weight"):
            learn(COLUMNS, weights=table["w"])
    with pytest.raises(DataError, match="there are 3 weights for 4 rows"):
        learn(COLUMNS, weights=[1, 2, 3])
    with pytest.raises(DataError, match="column 'w' has 'heavy' in row 1, which is not a number"):
        learn(COLUMNS | {"w": ["heavy", 1, 1, 1]}, weights="w")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"class_prior": {"no": 0.5, "yes": 0.6}}, "class_prior sums to 1.1: it must sum to 1"),
        ({"class_prior": {"no": -0.5, "yes": 1.5}}, "it must be zero or more"),
        ({"class_prior": {"no": 0.5, "maybe": 0.5}}, "'maybe', which is none of the classes"),
        ({"class_prior": [1.0]}, "1 numbers for 2 classes"),
        ({"smoothing": -1}, "smoothing is -1: it must be zero or more"),
        ({"smoothing": float("nan")}, "it must be zero or more"),
        ({"smoothing": "much"}, "must be a number or a prior"),
        ({"families": "neural"}, "there is no family 'neural'"),
        ({"engine": "abacus"}, "engine='abacus' is not known"),
        ({"on_bad_rows": "cry"}, "on_bad_rows='cry' is not known"),
        ({"unlabelled": "guess"}, "unlabelled='guess' is not known"),
    ],
)
def test_settings_without_meaning_are_refused(settings, said):
    with pytest.raises(UsageError, match=said):
        learn(COLUMNS, **settings)


# ------------------------------------------------------------------ row 31: line ends, long cells, blanks


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("tail", ["", "{end}", "{end}{end}{end}"])
def test_any_line_end_and_blank_lines_at_the_end_are_fine(file, end, tail):
    text = GOOD.rstrip("\n").replace("\n", end) + tail.format(end=end)
    assert cells(file(text)) == COLUMNS


def test_line_ends_may_be_mixed_and_blank_lines_stand_anywhere(file):
    assert cells(file("a,b,y\r\n1.5,u,no\n\n2.5,v,yes\r3.5,u,no\r\n\r\n4.0,v,yes")) == COLUMNS


def test_a_blank_line_in_a_file_of_one_column_is_no_row_and_a_quoted_blank_is_one(file):
    assert cells(file("a\nx\n\ny\n\n\n")) == {"a": ["x", "y"]}
    assert [cell or None for cell in cells(file('a\nx\n""\ny\n'))["a"]] == ["x", None, "y"]


def test_line_breaks_quotes_delimiters_and_tabs_live_in_quoted_cells(file):
    path = file('a,y\n"x\ny",u\n"x\r\ny",v\n"say ""hi""",u\n"a,b\t",v\n" padded ",u\n')
    assert cells(path)["a"] == ["x\ny", "x\r\ny", 'say "hi"', "a,b\t", " padded "]


def test_a_blank_between_delimiter_and_quote_belongs_to_neither(file):
    assert cells(file('a, "b, c", y\n1, "x, y", u\n2, "z", v\n')) == {"a": [1, 2], "b, c": ["x, y", "z"], "y": ["u", "v"]}


def test_a_very_long_cell_is_kept_whole(file):
    long = "x" * 5_000_000
    for text in (f"a,y\n{long},u\nz,v\n", f'a,y\n"{long}\n",u\nz,v\n', f'a,y\nz,v\n{long},"u"'):
        found = cells(file(text))["a"]
        assert sorted(len(cell) for cell in found) in ([1, 5_000_000], [1, 5_000_001])


def test_a_cell_longer_than_any_is_refused_with_its_line(file, monkeypatch):
    monkeypatch.setattr(text_source.lines, "LONGEST_CELL", 200_000)
    before = csv.field_size_limit(200_000)
    try:
        for cell in ("z" * 300_000, '"' + "z\n" * 150_000):
            with pytest.raises(DataError, match="line 3 opens a quote that is not closed for a very long time"):
                cells(file("a,y\nx,u\n" + cell + ",v\n"))
    finally:
        csv.field_size_limit(before)


# ------------------------------------------------------------------ files and globs


@pytest.mark.parametrize("name", ["a*b", "a?b", "[x]", "{a,b}", "a'b", 'a"b', " lead", "~x", "$HOME", "#h", "nl\nx", "😀", "**", "%41"])
def test_a_file_whose_name_looks_like_a_pattern_is_read_and_no_other(file, name):
    file("z,w\n9,9\n", "axb.csv")
    file("z,w\n9,9\n", "x.csv")
    assert cells(file(GOOD, f"{name}.csv")) == COLUMNS


def test_a_glob_reads_files_in_order_and_refuses_one_with_other_columns_by_name(file, tmp_path):
    head, *lines = GOOD.splitlines(keepends=True)
    for i, line in enumerate(lines):
        file(head + line, f"part{i}.csv")
    pattern = str(tmp_path / "part*.csv")
    assert cells(pattern) == COLUMNS
    assert learn(pattern).tally == learn(COLUMNS).tally
    file("a,c,y\n1,2,3\n", "part9.csv")
    with pytest.raises(DataError, match=r"part9.csv' differs from .*part0.csv' in column '[bc]'"):
        learn(pattern)


def test_parts_whose_columns_look_different_are_one_column(file, tmp_path):
    file("a,y\n1.0,0\n9.0,1\n", "p0.csv")
    file("a,y\n1,0\n9,1\nNA,1\n", "p1.csv")
    model = learn(str(tmp_path / "p*.csv"))
    assert model.classes == (0, 1)
    assert [row["count"] for row in model.parameters["a"]] == [2, 2]


# ------------------------------------------------------------------ row 32: order, batches and threads


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_batches_of_any_size_and_rows_in_any_order_are_counted_alike(kind, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    table = {
        "c": [("u", "v", "w")[i] for i in rng.integers(0, 3, 300)],
        "n": rng.integers(0, 50, 300).tolist(),
        "x": rng.normal(size=300).tolist(),
        "y": [("p", "q")[i] for i in rng.integers(0, 2, 300)],
    }
    whole = learn(table)
    order = rng.permutation(300)
    shuffled = {name: [column[i] for i in order] for name, column in table.items()}
    for rows in (1, 7, 100, 1000):
        for module in (text_source, objects, files):
            monkeypatch.setattr(module, "BATCH_ROWS", rows)
        for data in (table, shuffled):
            model = learn(written(data, kind, tmp_path))
            assert model.tally.classes.tolist() == whole.tally.classes.tolist()
            assert tables(model)["c"] == tables(whole)["c"]
            for ours, theirs in zip(model.parameters["x"], whole.parameters["x"], strict=True):
                assert ours["mean"] == pytest.approx(theirs["mean"], rel=1e-12)
                assert ours["deviation"] == pytest.approx(theirs["deviation"], rel=1e-12)
