"""Files as people have them: compressed, in workbooks and databases, without a header, in other encodings."""

import bz2
import gc
import gzip
import io
import lzma
import sqlite3
import sys
import zipfile

import duckdb
import pyarrow as pa
import pytest

import likely
from commands import TENNIS, document, run
from likely.cli._model_output import default_output
from likely.errors import DataError, LikelyWarning, UsageError

TABLE = "town,area,hits,y\n" + "".join(f"{'Ulm' if i % 3 else 'Bonn'},{i / 4},{i % 5},{'yn'[i % 2]}\n" for i in range(60))
ROWS = [line.split(",") for line in TABLE.splitlines()]


def zipped(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda content: pa.compress(content, codec="zstd", asbytes=True),
    "zip": lambda content: zipped({"t.csv": content}),
}


@pytest.fixture
def plain(file):
    """The model of the same rows as a CSV file."""
    return likely.learn(file(TABLE, "plain.csv"), "y")


@pytest.fixture
def sqlite(tmp_path):
    """A database with two tables, one of them the usual rows."""
    path = str(tmp_path / "shop.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute('create table "odd ""name" (a)')
        connection.execute("create table orders (town text, area real, hits integer, y text)")
        rows = [(a, float(b), int(c), d) for a, b, c, d in ROWS[1:]]
        connection.executemany("insert into orders values (?, ?, ?, ?)", rows)
    connection.close()
    return path


@pytest.fixture
def duck(tmp_path):
    """The same in DuckDB."""
    path = str(tmp_path / "shop.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("create table orders (town varchar, area double, hits integer, y varchar)")
        connection.executemany("insert into orders values (?, ?, ?, ?)", ROWS[1:])
        connection.execute("create schema s")
        connection.execute("create table s.other as select 1::hugeint a, uuid() b, 2.5::decimal(9,2) c, 'x' y")
    return path


def workbook(path, rows=ROWS, **sheets):
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "first"
    for row in rows:
        book.active.append([_typed(cell) for cell in row])
    for name, more in sheets.items():
        sheet = book.create_sheet(name)
        for row in more:
            sheet.append(row)
    book.save(path)
    return str(path)


def _typed(cell):
    try:
        return float(cell)
    except ValueError:
        return cell


class TestCompressed:
    @pytest.mark.parametrize("packer", PACK)
    @pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
    def test_the_table_inside_is_read(self, packer, kind, file, tmp_path, plain):
        import pyarrow.csv
        import pyarrow.parquet

        content = TABLE.encode()
        if kind != "csv":
            table = pyarrow.csv.read_csv(io.BytesIO(content))
            out = io.BytesIO()
            if kind == "parquet":
                pyarrow.parquet.write_table(table, out)
            else:
                import json

                out.write("\n".join(json.dumps(row) for row in table.to_pylist()).encode())
            content = out.getvalue()
        packed = zipped({f"t.{kind}": content}) if packer == "zip" else PACK[packer](content)
        path = file(packed, "t.zip" if packer == "zip" else f"t.{kind}.{packer}")
        model = likely.learn(path, "y")
        assert model.tally.rows == 60
        assert list(model.predict(path)) == list(plain.predict(path))

    @pytest.mark.parametrize("packer", PACK)
    def test_an_inner_name_without_a_known_extension_is_accepted(self, packer, file):
        packed = zipped({"table": TABLE}) if packer == "zip" else PACK[packer](TABLE.encode())
        assert likely.learn(file(packed, f"t.{packer}"), "y").tally.rows == 60

    @pytest.mark.parametrize("packer", PACK)
    def test_standard_input_may_be_compressed(self, packer, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        reported = document("learn", "-", "--target", "y", stdin=PACK[packer](TABLE.encode()))
        assert reported["rows"] == 60

    @pytest.mark.parametrize("packer", PACK)
    def test_every_cut_is_an_error_that_names_the_file(self, packer, file):
        whole = PACK[packer](TABLE.encode())
        for length in {1, 2, 10, len(whole) // 2, len(whole) - 8, len(whole) - 1}:
            with pytest.raises(DataError, match=r"t\.csv\.|t\.zip"):
                likely.learn(file(whole[:length], "t.zip" if packer == "zip" else f"t.csv.{packer}"), "y")

    @pytest.mark.parametrize("packer", ["gz", "bz2", "xz"])
    def test_a_second_stream_is_read_and_a_damaged_one_refused(self, packer, file):
        head, tail = TABLE[:300].encode(), TABLE[300:].encode()
        assert likely.learn(file(PACK[packer](head) + PACK[packer](tail), f"t.csv.{packer}"), "y").tally.rows == 60
        with pytest.raises(DataError, match="cannot be unpacked"):
            likely.learn(file(PACK[packer](head) + b"garbage", f"u.csv.{packer}"), "y")

    def test_a_bomb_is_stopped_without_being_asked(self, file):
        path = file(gzip.compress(b"a,y\n" + b"1,no\n2,yes\n" * 8_000_000, 1), "t.csv.gz")
        with pytest.raises(DataError, match=r"unpacks to more than 64,000,000 bytes.*--max-unpacked"):
            likely.learn(path, "y")

    @pytest.mark.parametrize("packer", PACK)
    def test_the_limit_holds_for_every_packer(self, packer, file):
        path = file(PACK[packer](TABLE.encode() * 5_000), "t.zip" if packer == "zip" else f"t.csv.{packer}")
        with pytest.raises(DataError, match=r"unpacks to more than 1,000,000 bytes"):
            likely.learn(path, "y", max_unpacked=1_000_000)

    def test_the_limit_can_be_set(self, file, tmp_path):
        path, model = file(gzip.compress(TABLE.encode()), "t.csv.gz"), str(tmp_path / "m.likely")
        with pytest.raises(DataError, match="more than 100 bytes"):
            likely.learn(path, "y", max_unpacked=100)
        assert "more than 500 bytes" in run("learn", path, "--target", "y", "--max-unpacked", "0.5kB", expect=3).stderr
        run("learn", path, "--target", "y", "--max-unpacked", "1MB", "-o", model)
        assert default_output(path) == "t.likely"
        assert "is not a size" in run("inspect", path, "--max-unpacked", "much", expect=2).stderr

    def test_a_zip_of_several_files_needs_the_name_of_one(self, file):
        path = file(zipped({"a.csv": TABLE, "sub/b.csv": "x,y\n1,2\n", "__MACOSX/a.csv": "junk"}), "t.zip")
        with pytest.raises(DataError, match=r"contains 2 files, 'a.csv', 'sub/b.csv': name one with table="):
            likely.learn(path, "y")
        assert likely.learn(path, "y", table="a.csv").tally.rows == 60
        with pytest.raises(DataError, match=r"has no member 'A.csv' \(did you mean 'a.csv'\?\)"):
            likely.learn(path, "y", table="A.csv")
        with pytest.raises(DataError, match="contains no file"):
            likely.learn(file(zipped({}), "empty.zip"), "y")

    def test_the_line_of_a_bad_row_is_that_of_the_file_inside(self, file):
        path = file(gzip.compress(b"a,y\n1,no\n2\n3,yes\n"), "t.csv.gz")
        with pytest.raises(DataError, match=r"t\.csv\.gz' line 3 has 1 cell"):
            likely.learn(path, "y")
        with pytest.warns(LikelyWarning, match=r"1 bad rows were skipped"):
            assert likely.learn(path, "y", on_bad_rows="skip").tally.rows == 2

    def test_the_temporary_file_vanishes(self, file, tmp_path, monkeypatch):
        import tempfile

        aside = tmp_path / "aside"
        aside.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(aside))
        model = likely.learn(file(gzip.compress(TABLE.encode()), "t.csv.gz"), "y")
        assert model.tally.rows == 60
        gc.collect()  # a source that is part of a cycle goes with the next collection
        assert not list(aside.iterdir())


class TestDatabases:
    def test_the_same_model_as_of_a_csv_file(self, sqlite, duck, plain):
        for path in (sqlite, duck):
            model = likely.learn(path, "y", table="orders")
            assert list(model.predict(path, table="orders")) == list(plain.predict(path, table="orders"))
            assert likely.evaluate(path, model=model, table="orders").log_loss == pytest.approx(
                likely.evaluate(path, model=plain, table="orders").log_loss
            )
            assert model.update(path, table="orders").tally.rows == 120
            assert model.update(path, table="orders").forget(path, table="orders").tally.rows == 60
            assert [c["column"] for c in likely.inspect(path, table="orders")] == ROWS[0]

    def test_the_shell_takes_the_same_options(self, sqlite, duck, tmp_path):
        model = str(tmp_path / "m.likely")
        for path in (sqlite, duck):
            assert document("learn", path, "--table", "orders", "--target", "y", "-o", model)["rows"] == 60
            assert run("predict", model, path, "--table", "orders").stdout.count("\n") == 61
            document("evaluate", model, path, "--table", "orders")
            document("inspect", path, "--table", "orders")
            document("curve", path, "--table", "orders", "--target", "y", "--seeds", "1", "--sizes", "20")
            document("cluster", path, "--table", "orders", "-k", "2", "--ignore", "y")
            document("update", model, path, "--table", "orders")

    def test_without_a_name_the_only_table_or_a_list(self, sqlite, duck, tmp_path):
        with pytest.raises(DataError, match=r"has 2 tables: 'odd \"name', 'orders': name one with table= \(--table\)"):
            likely.learn(sqlite, "y")
        with pytest.raises(DataError, match=r"has 2 tables: 'orders', 's.other'"):
            likely.learn(duck, "y")
        with pytest.raises(DataError, match=r"no table 'order' \(did you mean 'orders'\?\)"):
            likely.learn(duck, "y", table="order")
        one = str(tmp_path / "one.db")
        with duckdb.connect(one) as connection:
            connection.execute("create table t as select i / 7 i, i % 2 = 0 y from range(30) r(i)")
        assert likely.learn(one, "y").tally.rows == 30

    def test_wide_types_of_duckdb(self, duck):
        seen = {c["column"]: c["kind"] for c in likely.inspect(duck, table="s.other")}
        assert seen == {"a": "number", "b": "category", "c": "number", "y": "category"}

    def test_views_are_read_but_reach_nothing_else(self, duck, sqlite, file):
        secret = file("a,y\n1,2\n", "secret.csv")
        with duckdb.connect(duck) as connection:
            connection.execute(f"create view outside as select * from read_csv('{secret}')")
            connection.execute("create view inside as select * from orders where area < 5")
        assert likely.learn(duck, "y", table="inside").tally.rows == 20
        with pytest.raises(DataError, match="cannot be read as a DuckDB database"):
            likely.learn(duck, "y", table="outside")
        with sqlite3.connect(sqlite) as connection:
            connection.execute(
                "create view endless as with recursive n(i) as (select 1 union all select i + 1 from n) select i, 1 y from n"
            )
        connection.close()
        with pytest.raises(DataError, match=r"shop\.sqlite' does more than read tables, or is recursive.*pass a plain select"):
            likely.learn(sqlite, "y", table="endless")

    def test_nothing_is_written(self, sqlite, duck, tmp_path):
        from pathlib import Path

        before = {path: Path(path).read_bytes() for path in (sqlite, duck)}
        files = sorted(tmp_path.iterdir())
        for path in before:
            likely.learn(path, "y", table="orders")
        assert before == {path: Path(path).read_bytes() for path in before}
        assert sorted(tmp_path.iterdir()) == files

    def test_a_cut_database_is_refused(self, sqlite, duck, file):
        from pathlib import Path

        for path, ends in ((sqlite, (4096, 30)), (duck, ())):  # DuckDB's last block may be free: nobody misses its end
            whole = Path(path).read_bytes()
            for length in (3, 100, len(whole) // 2, *(len(whole) - end for end in ends)):
                with pytest.raises(DataError, match="cut"):
                    likely.learn(file(whole[:length], "cut" + Path(path).suffix), "y", table="orders")

    def test_mixed_values_of_sqlite(self, tmp_path):
        path = str(tmp_path / "m.sqlite")
        with sqlite3.connect(path) as connection:
            connection.execute("create table t (a, y)")
            connection.executemany("insert into t values (?, ?)", [(1, "n"), ("x", "j"), (None, "n"), (2.5, "j")])
        connection.close()
        model = likely.learn(path, "y")
        assert model.schema.by_name["a"].kind == "category"


class TestWorkbooks:
    def test_the_same_model_as_of_a_csv_file(self, tmp_path, plain):
        path = workbook(tmp_path / "t.xlsx")
        model = likely.learn(path, "y")
        assert model.tally.rows == 60
        assert list(model.predict(path)) == list(plain.predict(path))
        assert {c.name: c.kind for c in model.schema.columns} == {c.name: c.kind for c in plain.schema.columns}

    def test_a_sheet_by_name_or_number(self, tmp_path):
        path = workbook(tmp_path / "t.xlsx", other=[["a", "y"], *([i / 3, i % 2] for i in range(20))])
        with pytest.raises(DataError, match=r"has 2 sheets: 'first', 'other': name one with sheet= \(--sheet\)"):
            likely.learn(path, "y")
        for sheet in ("other", 2, "2"):
            model = likely.learn(path, "y", sheet=sheet)
            assert (model.tally.rows, model.classes) == (20, (0, 1))
        with pytest.raises(DataError, match=r"no sheet 'Others' \(did you mean 'other'\?\)"):
            likely.learn(path, "y", sheet="Others")
        assert document("inspect", path, "--sheet", "first")["rows"] == 60

    def test_dates_gaps_blank_rows_and_no_header(self, tmp_path):
        import datetime as dt

        day = dt.date(2024, 5, 1)
        rows = [["when", "n", "y"], [day, None, "a"], [None, None, None], [day, 2, "b"]]
        path = workbook(tmp_path / "t.xlsx", rows=[], t=rows)
        seen = {c["column"]: c for c in likely.inspect(path, sheet="t")}
        assert [seen[name]["kind"] for name in ("when", "n", "y")] == ["number", "number", "category"]
        assert (seen["n"]["missing"], seen["n"]["rows"]) == (1, 2)
        assert [c["column"] for c in likely.inspect(path, sheet="t", header=False)] == ["c1", "c2", "c3"]

    def test_open_document(self, tmp_path, plain):
        from odf.opendocument import OpenDocumentSpreadsheet
        from odf.table import Table, TableCell, TableRow
        from odf.text import P

        book, sheet = OpenDocumentSpreadsheet(), Table(name="t")
        for row in ROWS:
            line = TableRow()
            for cell in row:
                number = isinstance(_typed(cell), float)
                made = TableCell(valuetype="float", value=cell) if number else TableCell(valuetype="string")
                made.addElement(P(text=cell))
                line.addElement(made)
            sheet.addElement(line)
        book.spreadsheet.addElement(sheet)
        path = str(tmp_path / "t.ods")
        book.save(path)
        assert list(likely.learn(path, "y").predict(path)) == list(plain.predict(path))

    def test_damage_and_bombs_are_refused(self, tmp_path, file):
        from pathlib import Path

        whole = Path(workbook(tmp_path / "t.xlsx")).read_bytes()
        for length in (3, 100, len(whole) // 2, len(whole) - 5):
            with pytest.raises(DataError, match="cannot be read as a workbook"):
                likely.learn(file(whole[:length], "cut.xlsx"), "y")
        with pytest.raises(DataError, match=r"unpacks to 80,000,000 bytes"):
            likely.learn(file(zipped({"xl/workbook.xml": b"\0" * 80_000_000}), "bomb.xlsx"), "y")

    def test_a_missing_library_names_the_extra(self, tmp_path, monkeypatch):
        path = workbook(tmp_path / "t.xlsx")
        monkeypatch.setitem(sys.modules, "python_calamine", None)
        with pytest.raises(UsageError, match=r"pip install 'likely\[excel\]'"):
            likely.learn(path, "y")


class TestOptionsThatDoNotFit:
    def test_an_option_without_meaning_is_refused(self, duck, tmp_path):
        for options, reported in [
            ({"table": "t"}, r"table= \(--table\) is for databases and .zip files: .*tennis.csv' is none"),
            ({"sheet": "t"}, r"sheet= \(--sheet\) is for workbooks"),
            ({"tabel": "t"}, r"'tabel' is not known \(did you mean 'table'\?\)"),
        ]:
            with pytest.raises(UsageError, match=reported):
                likely.learn(TENNIS, "PlayTennis", **options)
        with pytest.raises(UsageError, match="header=False"):
            likely.learn(duck, "y", table="orders", header=False)
        with pytest.raises(UsageError, match=r"encoding= \(--encoding\) is for text files"):
            likely.learn(duck, "y", table="orders", encoding="latin-1")
