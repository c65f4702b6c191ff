"""Any table that Python writes is read back cell by cell; any bytes at all are a table, a named fault, or both."""

import csv
import io
import re
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from likely.errors import DataError
from likely.sources import ReadOptions, open_source
from likely.sources import _csv_arrow as csv_arrow
from likely.sources import _csv_survey as csv_survey
from likely.sources import csv_files as text_source
from strategies import examples

SIGNS = "\",;|\t\r\n \\'#x1é漢😀\x85\u2028\ufeff\x1a\x0b"
CELLS = st.text(st.sampled_from(SIGNS), max_size=8) | st.text(max_size=8).map(lambda t: t.replace("\0", ""))
TEXTS = CELLS.filter(lambda t: not any(0xD800 <= ord(c) <= 0xDFFF for c in t))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("csv")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_args, **_kwargs):
        pytest.fail("a CSV file made Likely open a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def read(path, on_bad_rows="error"):
    """All cells as text, blank where missing, and the rejects."""
    reading = ReadOptions(on_bad_rows=on_bad_rows)
    source = open_source(str(path), reading)
    rows = []
    for batch in source.batches(dict.fromkeys(source.checked.names, "category")):
        assert batch.start == len(rows)
        columns = [column.to_pylist() for column in batch.columns.values()]
        rows += [["" if cell is None else cell for cell in row] for row in zip(*columns, strict=True)]
    return list(source.checked.names), rows, reading.rejects


def python_readings(data):
    """What Python's csv may make of the bytes: rows of cells, blank lines left out; None where it finds a fault.

    A blank before a quote belongs to neither, and the file is then read without blanks after delimiters; but whether
    the quote opens a cell or closes one is for the reader to tell, so that either reading will do.
    """
    text = data.decode("utf-8-sig")
    readings = []
    for spaced in (False, True) if re.search(r'(^|[,;\t|\r\n]) +"', text) else (False,):
        try:
            found = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=spaced)
            readings.append([row for row in found if row])
        except csv.Error:
            readings.append(None)
    return readings


@st.composite
def written_tables(draw):
    """A table, and how it is written: delimiter, quoting and line ends."""
    width = draw(st.integers(1, 4))
    row = st.lists(TEXTS, min_size=width, max_size=width)
    rows = draw(st.lists(row, max_size=12))
    # Python quotes no lone carriage return when lines end in a feed, and could not read its own file.
    returns = any("\r" in cell for row in rows for cell in row)
    quoting = [csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC] if returns else [csv.QUOTE_ALL, csv.QUOTE_MINIMAL]
    style = {
        "delimiter": draw(st.sampled_from(",;\t|" if width > 1 else ",")),  # which nothing tells in a single column
        "lineterminator": draw(st.sampled_from(["\n", "\r\n"])),
        "quoting": draw(st.sampled_from(quoting)),
    }
    return [f"name {i}" for i in range(width)], rows, style


@given(written_tables(), st.sampled_from([csv_survey.BLOCK, 3, 7]), st.sampled_from([text_source.LONGEST_ROW, 0]))
@examples(1)
def test_what_python_writes_is_read_back_cell_by_cell_by_either_parser(folder, table, block, longest):
    names, rows, style = table
    path = folder / "written.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, **style)
        writer.writerow(names)
        writer.writerows(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_survey, "BLOCK", block)
        patch.setattr(text_source, "LONGEST_ROW", longest)
        if block < 10:
            patch.setattr(csv_arrow, "BLOCK", 1)  # rows at the seams of Arrow's blocks
            patch.setattr(csv_arrow, "FEWEST_ROWS", 1)
        assert read(path) == (names, rows, [])


@given(
    st.lists(st.lists(TEXTS, min_size=2, max_size=2), min_size=1, max_size=8), st.sampled_from(["utf-16", "utf-8-sig"])
)
@settings(max_examples=30)
def test_a_byte_order_mark_sets_the_encoding(folder, rows, encoding):
    path = folder / "marked.csv"
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["a", "b"], *rows])
    assert read(path) == (["a", "b"], rows, [])


JUNK = st.lists(
    st.sampled_from(
        [b'"', b'""', b",", b";", b"\n", b"\r", b"\r\n", b" ", b"x", b"1", b"\t", b"\xc3\xa9", b"\xff", b"\0"]
    ),
    max_size=40,
).map(b"".join)


@given(JUNK | st.binary(max_size=60), st.sampled_from([b"", b"a,b\n", b'"a","b"\r\n']))
@example(b'1,"x\n3,4\n5,6\n', b"a,b\n")  # DuckDB alone: no row, no error
@example(b'1, "x"\n"y" ,2\n', b"a,b\n")
@example(b' ",', b"a,b\n")  # with the blank taken off a quote that is never closed
@example(b'1,"x, "\n', b"a,b\n")
@example(b"1,2\r\r\n3,4\r\r\n", b"a,b\r\r\n")  # DuckDB alone: rows twice
@examples(4)
def test_any_bytes_are_a_table_or_a_named_fault_and_no_line_is_lost(folder, junk, header):
    path = folder / "junk.csv"
    path.write_bytes(header + junk)
    try:
        names, rows, rejects = read(path, "skip")
    except DataError:
        with pytest.raises(DataError, match=r"junk\.csv"):
            read(path)
        return
    assert all(len(row) == len(names) for row in rows)
    assert len(set(rejects)) == len(rejects)
    readings = python_readings(path.read_bytes())
    if None not in readings and all(reading[0] == names for reading in readings):
        fitting = [[row for row in reading[1:] if len(row) == len(names)] for reading in readings]
        found = [len(rows) + len(rejects) == len(reading) - 1 for reading in readings]
        assert rows in [fits for fits, counted in zip(fitting, found, strict=True) if counted]
    if rejects:
        with pytest.raises(DataError, match=r"line \d+"):
            read(path)
    else:
        assert read(path)[1] == rows


@given(
    st.lists(
        st.sampled_from(["1,2", '1,"x\ny"', '1,"x', '"1,2', "1", "1,2,3", '1,"x"y', "", '1,x"y', "3,4"]), max_size=12
    )
)
@examples(2)
def test_every_line_of_a_ragged_file_is_a_row_a_part_of_one_a_reject_or_blank(folder, parts):
    path = folder / "ragged.csv"
    path.write_text("a,b\n" + "".join(f"{part}\n" for part in parts), encoding="utf-8", newline="")
    _, rows, rejects = read(path, "skip")
    lines_of_rows = sum(1 + sum(cell.count("\n") for cell in row) for row in rows)
    rejected = sum(_lines_of(reject) for reject in rejects)
    blank_lines = sum(not line for line in path.read_text(encoding="utf-8").split("\n")[1:-1])
    within_cells = sum(cell.split("\n")[1:-1].count("") for row in rows for cell in row)
    assert lines_of_rows + rejected + blank_lines - within_cells == sum(1 + part.count("\n") for part in parts)


def _lines_of(reject):
    first = int(reject.split(" line ")[1].split(" ")[0])
    return int(reject.split("up to line ")[1].rstrip(")")) - first + 1 if "up to line" in reject else 1


def test_a_file_that_never_ends_its_first_line_is_refused_in_little_memory(folder, monkeypatch):
    monkeypatch.setattr(text_source, "LONGEST_HEADER", 1 << 22)
    path = folder / "endless.csv"
    path.write_bytes(b"x" * (1 << 23))
    with pytest.raises(DataError, match="no header line"):
        read(path)


def test_many_threads_may_read_at_once(folder):
    found = {}

    def work(k):
        path = Path(folder) / f"thread{k}.csv"
        path.write_text("a,b\n" + f"{k},x\n" * 500, encoding="utf-8")
        found[k] = read(path)[1]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(rows == [[str(k), "x"]] * 500 for k, rows in found.items())
    assert len(found) == 6
