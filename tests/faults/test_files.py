"""Line ends, long cells, names of files, globs; and the same counts whatever the order, batch or thread."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import likely
from likely.engines import memory
from likely.errors import DataError
from likely.kernels import parallel
from likely.sources import _json_files as json_files
from likely.sources import csv_files as text_source
from likely.sources import files, open_source
from tables import COLUMNS, GOOD, cells, learn, parameters_of, written

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
    assert cells(file('a, "b, c", y\n1, "x, y", u\n2, "z", v\n')) == {
        "a": [1, 2],
        "b, c": ["x, y", "z"],
        "y": ["u", "v"],
    }


def test_a_very_long_cell_is_kept_whole(file):
    long = "x" * 5_000_000
    for text in (f"a,y\n{long},u\nz,v\n", f'a,y\n"{long}\n",u\nz,v\n', f'a,y\nz,v\n{long},"u"'):
        found = cells(file(text))["a"]
        assert sorted(len(cell) for cell in found) in ([1, 5_000_000], [1, 5_000_001])


def test_a_cell_longer_than_any_is_refused_with_its_line(file, monkeypatch):
    monkeypatch.setattr(text_source.csv_python, "LONGEST_CELL", 200_000)
    before = csv.field_size_limit(200_000)
    try:
        for cell in ("z" * 300_000, '"' + "z\n" * 150_000):
            with pytest.raises(DataError, match="line 3 opens a quote that is not closed for a very long time"):
                cells(file("a,y\nx,u\n" + cell + ",v\n"))
    finally:
        csv.field_size_limit(before)


# ------------------------------------------------------------------ files and globs


PATTERNS = ["a*b", "a?b", "[x]", "{a,b}", "a'b", 'a"b', " lead", "~x", "$HOME", "#h", "nl\nx", "😀", "**", "%41"]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_file_whose_name_looks_like_a_pattern_is_read_and_no_other(file, name):
    file("z,w\n9,9\n", "axb.csv")
    file("z,w\n9,9\n", "x.csv")
    assert cells(file(GOOD, f"{name}.csv")) == COLUMNS


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "json", "arrow"])
def test_a_later_file_of_a_glob_that_holds_something_else_is_named_with_the_row_in_it(kind, tmp_path):
    for number, cells_of in enumerate([[1.5, 2.5, 3.0, 4.0], ["1.5", "2.5", "2", "1"], ["1.5", "red", "2", "3"]]):
        table = {"a": cells_of, "y": ["p", "q", "p", "q"]}
        Path(written(table, kind, tmp_path)).rename(tmp_path / f"part{number}.{kind}")
        if number == 1:
            model = learn(str(tmp_path / f"part*.{kind}"))
            assert model.tally.rows == 8  # numbers written as text are numbers
    reported = rf"part2\.{kind}': column 'a' has 'red' in row 2, which is not a number"
    with pytest.raises(DataError, match=reported):
        learn(str(tmp_path / f"part*.{kind}"))
    with pytest.raises(DataError, match=reported):
        model.predict(str(tmp_path / f"part*.{kind}"))


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
    model = learn(str(tmp_path / "p*.csv"), plain=True)
    assert model.classes == (0, 1)
    assert [row["count"] for row in model.parameters["a"]] == [2, 2]


def test_a_file_may_be_read_twice_at_once_and_left_half_read(file, monkeypatch):
    monkeypatch.setattr(text_source, "BATCH_ROWS", 2_048)
    source = open_source(file("a,y\n" + "1.5,u\n2.5,v\n" * 5_000))
    first, second = source.batches(), source.batches({"a": "number"})
    next(first)
    next(second)
    assert sum(batch.rows for batch in source.batches()) == 10_000
    assert sum(batch.rows for batch in second) < 10_000


def test_a_file_that_changes_while_it_is_read_is_noticed(file):
    path = file("a,y\n" + "1.5,u\n2.5,v\n" * 50_000)
    source = open_source(path)
    source.checked  # noqa: B018 - its bytes are looked at here
    file("a,y\n" + "1.5,u\n2.5,v\n" * 40_000)
    with pytest.raises(DataError, match="has 100,000 rows, but 80,000 were parsed: do not change a file"):
        list(source.batches())


def test_a_file_whose_name_is_no_text_is_read(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\xfe.csv"
    with open(path, "w", encoding="utf-8") as data:
        data.write(GOOD)
    assert cells(os.fsdecode(path)) == COLUMNS


def test_the_locale_does_not_matter(tmp_path):
    path = tmp_path / "Käse.csv"
    path.write_text("größe,y\n1.5,ü\n2.5,ä\n3.5,ü\n", encoding="utf-8")
    code = "import likely, sys; print(ascii(likely.learn(sys.argv[1], 'y').classes))"
    command = [sys.executable, "-W", "ignore", "-c", code, str(path)]
    root = Path(__file__).resolve().parents[2]
    for utf8 in ("0", "1"):
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": utf8, "PYTHONPATH": str(root / "src")}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.stdout.strip() == ascii(("ä", "ü")), done.stderr


# ------------------------------------------------------------------ row 32: order, batches and threads


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_batches_of_any_size_and_rows_in_any_order_are_counted_alike(kind, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    table = {
        "c": [("u", "v", "w")[i] for i in rng.integers(0, 3, 120)],
        "n": rng.integers(0, 50, 120).tolist(),
        "x": rng.normal(size=120).tolist(),
        "y": [("p", "q")[i] for i in rng.integers(0, 2, 120)],
    }
    whole, calibrated = learn(table, plain=True), learn(table)
    order = rng.permutation(120)
    shuffled = {name: [column[i] for i in order] for name, column in table.items()}
    for rows in (1, 7, 1000):
        for module in (text_source, json_files, files):
            monkeypatch.setattr(module, "BATCH_ROWS", rows)
        for data in (table, shuffled):
            assert learn(written(data, kind, tmp_path)).tally == calibrated.tally
            model = learn(written(data, kind, tmp_path), plain=True)
            assert model.tally.classes.tolist() == whole.tally.classes.tolist()
            assert parameters_of(model)["c"] == parameters_of(whole)["c"]
            for ours, theirs in zip(model.parameters["x"], whole.parameters["x"], strict=True):
                assert ours["mean"] == pytest.approx(theirs["mean"], rel=1e-12)
                assert ours["deviation"] == pytest.approx(theirs["deviation"], rel=1e-12)


def test_any_number_of_threads_counts_exactly_alike(monkeypatch):
    rng = np.random.default_rng(4)
    table = {
        "c": pa.array(rng.choice(["u", "v", "w"], 20_000)),
        "x": rng.normal(size=20_000),
        "z": rng.exponential(size=20_000),
        "y": pa.array(rng.choice(["p", "q"], 20_000)),
    }
    monkeypatch.setattr(parallel, "SLAB_CELLS", 1 << 12)  # many slabs, so that threads have something to share
    found = []
    for number in (1, 2, 7):
        with parallel.workers(number) as pool:
            monkeypatch.setattr(parallel, "pool", lambda pool=pool: pool)
            model = learn(table)
            found.append((model.tally, model.posterior(table).log_joint))
    for tally, joint in found[1:]:
        assert tally == found[0][0]
        assert np.array_equal(joint, found[0][1])


@pytest.mark.parametrize("width", [1, 4, 5])
def test_columns_counted_where_they_stand_give_the_very_same_sums_as_rows(width, monkeypatch):
    rng = np.random.default_rng(width)
    rows = 150_000 // width
    gap = rng.random((width, rows)) < 0.1
    numbers = {f"n{j}": np.where(gap[j], np.nan, rng.normal(j, 1 + j, rows)) for j in range(width)}
    texts = {f"c{j}": np.where(gap[j], "?", rng.integers(0, 3 + j, rows).astype(str)) for j in range(width)}
    table = numbers | {"whole": np.arange(rows) % 7} | texts
    table |= {"y": rng.integers(0, 3, rows).astype(str), "w": rng.choice([0.0, 0.3, 1.7], rows)}
    settings = {"weights": "w", "families": {"whole": "gaussian"} | dict.fromkeys(texts, "categorical")}
    count = likely.plan(pa.table(table), "y", **settings).count  # nothing is fitted to the counts
    apart, called = count(pa.table(table)), []
    monkeypatch.setattr(memory, "_separate_columns", lambda *_: called.append(True) or [])
    assert count(pa.table(table)) == apart
    assert called
