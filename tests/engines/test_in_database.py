"""A database that counts its own rows gives the tally of the memory engine."""

import datetime as dt
import sqlite3
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import databases
import likely
from commands import document, run
from hostile import hostile
from likely.errors import DataError, UsageError
from tables import learn

SETTINGS = {
    "plain": {},
    "counts": {"families": {"n": "poisson", "select * from x; --": "categorical", "x": "gaussian:class"}},
    "joint categories": {"joint": [("k", "l")], "smoothing": 0.5},
    "weights": {"weights": "w", "families": {"n": "bernoulli"}},
    "missing numbers": {"missing": ["none", "3"]},
    "averaged": {"average": True},
    "joint numbers": {"joint": [("x", "stamp")], "weights": "w"},
}


def weighted(rows=700, start=1.7e5):
    """The hostile table with weights, missing labels, and numbers far from zero, whose raw squares lose digits."""
    table = hostile(rows)
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 4, rows) / 2
    labels = [None if i % 19 == 2 else label for i, label in enumerate(table["y"].to_pylist())]
    stamp = start + rng.normal(size=rows)
    table = table.set_column(6, "y", pa.array(labels)).append_column("w", pa.array(weights))
    pairs = {"k": [f"k{i % 3}" for i in range(rows)], "l": [f"l{i % 7 % 2}" for i in range(rows)]}
    for name, column in pairs.items():
        table = table.append_column(name, pa.array(column))
    return table.append_column("stamp", pa.array(stamp))


def stored(kind, table, tmp_path, request):
    """A source of the table, in a database of this kind."""
    if kind == "relation":
        connection = duckdb.connect()
        connection.register("given", table)
        return {"data": connection.sql("select * from given")}
    if kind == "postgres":
        server = request.getfixturevalue("postgres")
        server.put("orders", table)
        return {"data": server.uri, "table": "orders"}
    path = str(tmp_path / f"shop.{kind}")
    if kind == "duckdb":
        with duckdb.connect(path) as connection:
            connection.register("given", table)
            connection.execute("create table orders as select * from given")
    else:
        made = databases.Sqlite()
        made.put("orders", table)
        made.connection.commit()  # a copy waits for the end of the transaction
        with sqlite3.connect(path) as connection:
            made.connection.backup(connection)
        connection.close()
    return {"data": path, "table": "orders"}


def tallied(one, other):
    """Assert that two models have counted the same: counts exactly, moments up to rounding."""
    assert one.classes == other.classes
    assert one.schema == other.schema
    assert one.tally.rows == other.tally.rows
    assert one.blocks == other.blocks
    np.testing.assert_allclose(one.tally.classes, other.tally.classes, rtol=1e-12)
    for ours, theirs in zip(one.tally.statistics, other.tally.statistics, strict=True):
        for name, array in ours.arrays().items():
            np.testing.assert_allclose(array, theirs.arrays()[name], rtol=1e-8, err_msg=name)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "relation", "postgres"])
def test_the_groups_of_a_database_are_the_tally_of_memory(kind, settings, tmp_path, request):
    table = weighted()
    if kind == "sqlite":  # a truth value is 0 or 1 there, and so a number
        table = table.drop_columns(["Ünï `tick`"])
    ignore = [] if "weights" in settings else ["w"]
    asked = {"plain": True, "unlabelled": "ignore", "ignore": ignore, **settings}
    source = stored(kind, table, tmp_path, request)
    there = learn(source.pop("data"), in_database=True, **asked, **source)
    assert there.engine.startswith("database")
    here = learn(table, **asked)
    tallied(there, here)
    shares = [model.posterior(table).probabilities for model in (there, here)]
    assert np.abs(shares[0] - shares[1]).max() < 1e-9


def test_spreads_of_times_keep_their_digits(tmp_path, request):
    table = weighted(start=1.7e9)
    source = stored("duckdb", table, tmp_path, request)
    model = learn(source["data"], table="orders", plain=True, in_database=True, unlabelled="ignore", ignore=["w"])
    found = model.tally.statistics[[block.name for block in model.blocks].index("stamp")]
    for c, label in enumerate(model.classes):
        x = [Fraction(v) for v, y in zip(table["stamp"].to_pylist(), table["y"].to_pylist(), strict=True) if y == label]
        mean = sum(x) / len(x)
        assert found.mean[c] == pytest.approx(float(mean), rel=1e-15)
        assert found.spread[c] == pytest.approx(float(sum((v - mean) ** 2 for v in x)), rel=1e-12)


def dated(rows=600):
    """Times around 1970 and far from it, with and without a time zone, some of them missing."""
    start, rng = dt.datetime(1969, 11, 28, 22, 59, 59, 250_000), np.random.default_rng(4)  # noqa: DTZ001 - a naive time
    times = [None if i % 31 == 5 else start + dt.timedelta(minutes=float(m)) for i, m in enumerate(rng.normal(0, 3e6, rows))]
    zoned = [time and time.replace(tzinfo=dt.UTC) for time in times]
    y = [("late" if time and time.hour + time.weekday() > 14 else "early") for time in times]
    return pa.table({
        "when": pa.array(times, pa.timestamp("us")), "zoned": pa.array(zoned, pa.timestamp("us", "UTC")),
        "day": pa.array([time and time.date() for time in times], pa.date32()), "k": [f"k{i % 3}" for i in range(rows)],
        "y": y,
    })  # fmt: skip


@pytest.mark.parametrize("kind", ["duckdb", "relation", "postgres"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_weekday_month_and_hour_are_counted_by_the_database(kind, zone, tmp_path, request, monkeypatch):
    monkeypatch.setenv("PGTZ", zone)
    table = dated()
    parts = ["when.weekday", "when.month", "when.hour", "zoned.hour", "zoned.month", "day.weekday"]
    asked = {"plain": True, "date_parts": parts, "families": {"zoned.hour": "gaussian", "when.hour": "poisson"}}
    source = stored(kind, table, tmp_path, request)
    there = learn(source.pop("data"), in_database=True, **asked, **source)
    tallied(there, learn(table, **asked))
    assert {column.name for column in there.schema.columns} >= set(parts)


def test_only_groups_leave_the_database(tmp_path, request):
    asked = []

    class Watched(likely.sources._relations.Relation):
        def ask(self, build):
            found = super().ask(build)
            asked.append(len(found))
            return found

    table = weighted(5000)
    connection = duckdb.connect()
    connection.register("given", table)
    from likely.sources import ReadOptions

    source = Watched(connection.sql("select * from given"), ReadOptions())
    learn(source, plain=True, engine="duckdb", unlabelled="ignore", ignore=["w"])
    assert max(asked) < 30


def test_what_a_database_does_not_count_is_refused_with_the_remedy(tmp_path, request):
    table = weighted(200)
    source = stored("duckdb", table, tmp_path, request)
    path = source["data"]
    with pytest.raises(UsageError, match="plain=True"):
        learn(path, table="orders", in_database=True)
    with pytest.raises(UsageError, match="joint block 'k with x' of categories and numbers"):
        learn(path, table="orders", plain=True, in_database=True, joint=[("k", "x")], unlabelled="ignore")
    with pytest.raises(UsageError, match="stay in the database"):
        learn(path, table="orders", plain=True, in_database=True, unlabelled=0.5)
    with pytest.raises(DataError, match="has no label in"):
        learn(path, table="orders", plain=True, in_database=True, unlabelled="error")
    with pytest.raises(UsageError, match="no database"):
        learn(table, plain=True, in_database=True)
    with pytest.raises(UsageError, match="reads the rows"):
        learn(path, table="orders", plain=True, in_database=True, target_bins=3)


@pytest.mark.parametrize(("column", "value", "match"), [("x", "inf", "not a finite number"), ("w", "-1", "no weight")])
def test_cells_that_cannot_be_counted_are_refused_by_name(column, value, match, tmp_path, request):
    path = stored("duckdb", weighted(200), tmp_path, request)["data"]
    with duckdb.connect(path) as connection:
        connection.execute(f"update orders set {column} = '{value}'::double where rowid = 17")
    with pytest.raises(DataError, match=match) as error:
        learn(path, table="orders", plain=True, in_database=True, weights="w", unlabelled="ignore")
    assert error.value.column == column


def test_the_command_counts_in_the_database(tmp_path, request):
    path, model = stored("duckdb", hostile(300), tmp_path, request)["data"], str(tmp_path / "m.likely")
    told = document("learn", path, "--table", "orders", "--target", "y", "--plain", "--in-database", "-o", model)
    assert told["rows"] == 300
    tallied(likely.load(model), learn(hostile(300), plain=True))
    run("learn", path, "--table", "orders", "--target", "y", "--in-database", "-o", model, expect=2)


FILES = {"a.parquet": 1, "a.csv": 1, "a.csv.gz": 1, "p*.parquet": 2, "p*.csv": 2}


def filed(table, pattern, tmp_path):
    """The table in one file, or cut into two."""
    parts, rows = FILES[pattern], -(-len(table) // FILES[pattern])
    for i in range(parts):
        path = tmp_path / pattern.replace("*", str(i))
        part = table.slice(i * rows, rows)
        if ".parquet" in pattern:
            pq.write_table(part, path)
            continue
        with pa.CompressedOutputStream(str(path), "gzip") if pattern.endswith(".gz") else path.open("wb") as file:
            pa.csv.write_csv(part, file)
    return str(tmp_path / pattern)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("pattern", FILES)
def test_duckdb_counts_files_as_memory_does(pattern, settings, tmp_path):
    path = filed(weighted(), pattern, tmp_path)
    ignore = [] if "weights" in settings else ["w"]
    asked = {"plain": True, "unlabelled": "ignore", "ignore": ignore, **settings}
    there = learn(path, engine="duckdb", **asked)
    assert there.engine.startswith("database")
    tallied(there, learn(path, engine="memory", **asked))


def test_duckdb_reads_cells_of_csv_files_as_memory_does(tmp_path):
    path = tmp_path / "odd name, 'quoted'.csv"
    cells = ["1;?; u;yes", " 2;0.5;NA;no", '3;1e3;"v;\nw";yes', "NA; 2 ;u;no", "+4;-.5;null;yes", "5;nan;v;None"] * 3
    path.write_text("\ufeffn;x;c;y\n" + "\n".join(cells) + "\n", encoding="utf-8")
    asked = {"families": {"n": "categorical"}, "unlabelled": "ignore", "plain": True}
    found, expected = (likely.learn(str(path), "y", engine=engine, **asked) for engine in ("database", "memory"))
    tallied(found, expected)
    taken = {column.name: dict(column.taken) for column in found.schema.columns}
    assert taken == {"n": {"NA": 3}, "x": {"?": 3, "nan": 3}, "c": {"NA": 3, "null": 3}}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("x,y\n" + '"1,5",a\n"2,5",b\n' * 10, "a decimal comma, written as text"),
        ("x,y\n" + "31.12.2024,a\n01.02.2023,b\n" * 10, "dates .*written as text"),
        ("x,y\n" + "1,a\n2,b\n" * 10 + "3\n", "no regular CSV file, whose rows DuckDB would read differently"),
    ],
)
def test_csv_files_that_duckdb_would_read_differently_are_refused(text, match, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(likely.errors.LikelyError, match=match):
        likely.learn(str(tmp_path / "a.csv"), "y", engine="duckdb", plain=True, on_bad_rows="skip")


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"engine": "duckdb"}, r"engine='duckdb' \(--engine duckdb\)"),
        ({"engine": "database"}, r"engine='database' \(--engine database\)"),
        ({"in_database": True}, r"in_database=True \(--in-database\)"),
    ],
)
def test_a_table_that_no_database_has_is_refused_by_what_was_asked_for(asked, named):
    with pytest.raises(UsageError, match=f"no database: {named} counts") as error:
        learn(hostile(30), plain=True, **asked)
    assert ("in_database" in str(error.value)) == ("in_database" in asked)


def test_the_command_counts_a_file_by_duckdb(tmp_path):
    path, model = filed(hostile(300), "a.csv", tmp_path), str(tmp_path / "m.likely")
    for name in ("duckdb", "database"):
        told = document("learn", path, "--target", "y", "--plain", "--engine", name, "-o", model)
        assert told["engine"]["name"] == "database"
        tallied(likely.load(model), learn(path, plain=True))
    said = run("learn", path, "--target", "y", "--engine", "duckdb", "-o", model, expect=2)
    assert "--plain" in said.stderr
    assert "--engine memory" in said.stderr
    run("predict", model, path, "--engine", "duckdb", expect=2)
