"""Counting in a database: what would be counted as something else than in memory is refused by name, or read alike."""

import sqlite3

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import likely
from likely.errors import DataError, UsageError
from tables import learn


def stored(kind, table, tmp_path, request):
    """Data and table of the rows in a database of this kind."""
    if kind == "postgres":
        server = request.getfixturevalue("postgres")
        server.put("spelled", table)
        return server.uri
    path = str(tmp_path / f"a.{kind}")
    if kind == "duckdb":
        with duckdb.connect(path) as connection:
            connection.register("given", table)
            connection.execute("create table spelled as select * from given")
        return path
    with sqlite3.connect(path) as connection:
        names = ", ".join(f'"{name}"' for name in table.schema.names)
        connection.execute(f"create table spelled ({names})")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        connection.executemany(f"insert into spelled values ({', '.join('?' * table.num_columns)})", rows)
    connection.close()
    return path


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_text_that_memory_reads_as_numbers_or_dates_is_refused_with_the_remedy(kind, tmp_path, request):
    columns = {
        "plain": [f"{i % 9}.5" for i in range(40)], "price": [f"${i % 9},200" for i in range(40)],
        "day": [f"2024-01-{1 + i % 9:02}" for i in range(40)],
    }  # fmt: skip
    rest = {"k": [f"k{i % 3}" for i in range(40)], "y": ["n", "p"] * 20}
    for name, cells in columns.items():
        data = stored(kind, pa.table({name: cells} | rest), tmp_path, request)
        what = "dates or times" if name == "day" else "numbers"
        for more in ({}, {"families": {name: "gaussian"}}):
            with pytest.raises(UsageError, match=f"column '{name}' holds {what} stored as text.*cast it in a view"):
                learn(data, table="spelled", plain=True, in_database=True, **more)
        asked = {"families": {name: "categorical"}}
        there = learn(data, table="spelled", plain=True, in_database=True, **asked)
        here = learn(data, table="spelled", plain=True, **asked)
        assert there.schema.by_name[name].values == here.schema.by_name[name].values
        assert learn(data, table="spelled", plain=True, in_database=True, ignore=[name]).tally.rows == 40
        if kind == "duckdb":
            (tmp_path / "a.duckdb").unlink()
        elif kind == "sqlite":
            (tmp_path / "a.sqlite").unlink()


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_parts_of_dates_that_are_stored_as_text_are_refused(kind, tmp_path, request):
    table = pa.table({"day": [f"2024-01-{1 + i % 9:02}" for i in range(40)], "y": ["n", "p"] * 20})
    data = stored(kind, table, tmp_path, request)
    with pytest.raises(UsageError, match="column 'day' holds dates or times stored as text"):
        learn(data, table="spelled", plain=True, in_database=True, ignore=["day"], date_parts=["day.weekday"])


def sqlite_rows(tmp_path, columns, rows):
    path = str(tmp_path / "mixed.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute(f"create table t ({columns})")
        connection.executemany(f"insert into t values ({', '.join('?' * len(rows[0]))})", rows)
    connection.close()
    return path


def test_a_sqlite_column_of_numbers_and_texts_is_counted_as_in_memory(tmp_path):
    mixed = [1, "one", 2.5, "1", None]
    path = sqlite_rows(tmp_path, "x, y", [(mixed[i % 5], i % 2) for i in range(60)])
    there, here = (learn(path, plain=True, in_database=where) for where in (True, False))
    assert there.schema == here.schema
    for name, array in there.tally.statistics[0].arrays().items():
        assert array.tolist() == here.tally.statistics[0].arrays()[name].tolist()


def test_text_among_the_numbers_of_sqlite_is_refused_or_missing_and_never_zero(tmp_path):
    rows = [("none" if i == 70_000 else i % 9, i % 2) for i in range(70_100)]  # beyond the rows of which columns are planned
    path = sqlite_rows(tmp_path, "x, y", rows)
    with pytest.raises(DataError, match=r"'x' has 'none', which is not a number: pass missing=\['none'\]"):
        learn(path, plain=True, in_database=True)
    there, here = (learn(path, plain=True, in_database=where, missing=["none"]) for where in (True, False))
    np.testing.assert_allclose(there.tally.statistics[0].mean, here.tally.statistics[0].mean, rtol=1e-12)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_columns_may_have_the_names_that_the_queries_use(kind, tmp_path, request):
    rng = np.random.default_rng(0)
    names = ["likely__n", "LIKELY__N_", "w", "x0", "y", "used"]
    table = pa.table({name: rng.integers(0, 3, 60) for name in names} | {"n": ["a", "b"] * 30})
    families = {"w": "gaussian", "likely__n": "categorical", "LIKELY__N_": "categorical", "used": "categorical"}
    data = stored(kind, table, tmp_path, request)
    there = learn(data, "n", table="spelled", plain=True, in_database=True, families=families)
    here = learn(table, "n", plain=True, families=families)
    assert there.schema == here.schema
    for ours, theirs in zip(there.tally.statistics, here.tally.statistics, strict=True):
        for name, array in ours.arrays().items():
            np.testing.assert_allclose(array, theirs.arrays()[name], rtol=1e-9)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_as_many_columns_as_a_table_may_have_are_counted(kind, tmp_path, request):
    rng = np.random.default_rng(0)
    columns = {f"c{i}": pa.array(rng.integers(0, 9, 12), pa.int16()) for i in range(1590)}
    table = pa.table(columns | {"y": ["a", "b"] * 6})
    families = dict.fromkeys(columns, "gaussian")
    joint = {tuple(f"c{i}" for i in range(60)): "joint"}
    data = stored(kind, table, tmp_path, request)
    there = learn(data, table="spelled", plain=True, in_database=True, families=families)
    here = learn(table, plain=True, families=families)
    for ours, theirs in zip(there.tally.statistics, here.tally.statistics, strict=True):
        np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-12)
    ignore = [name for name in columns if int(name[1:]) >= 60]
    there = learn(data, table="spelled", plain=True, in_database=True, families=joint, ignore=ignore)
    here = learn(table, plain=True, families=joint, ignore=ignore)
    for ours, theirs in zip(there.tally.statistics, here.tally.statistics, strict=True):
        for name, array in ours.arrays().items():
            np.testing.assert_allclose(array, theirs.arrays()[name], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_columns_of_a_file_that_are_one_to_duckdb_are_refused_instead_of_counted_twice(ending, tmp_path):
    table = pa.table({"a": ["u", "v"] * 20, "A": ["r", "s", "s", "r"] * 10, "y": ["n", "p", "p", "n"] * 10})
    path = tmp_path / f"t.{ending}"
    (pq.write_table if ending == "parquet" else csv.write_csv)(table, path)
    with pytest.raises(DataError, match=r"columns 'a' and 'A' of .* differ only by case.*engine='memory'"):
        likely.learn(path, "y", plain=True, engine="duckdb")
    assert likely.learn(path, "y", plain=True).schema.by_name["A"].values == ("r", "s")
