"""Places that rows of a network are in: batches, slices, tasks of Spark, databases; and what is to be equal everywhere."""

import functools
import itertools
import weakref

import numpy as np
import pyarrow as pa
import pytest

from databases import quoted
from likely.engines.spark import spark_engine
from likely.engines.spark.spark_frames import SparkRows, first_rows
from likely.networks import _counting as counting
from likely.networks import _row_sums as row_sums
from likely.sources import MissingTokens, open_source
from slices import Slices

ROWS = 600
NUMBERS = itertools.count()
ARCS = "a -> b, b -> c"
NUMERIC = "a -> b, b -> c, a -> x, b -> x, x -> d"


def rows(gaps=False, numeric=False):
    """Dependent categories and numbers; one value, and numbers that are not few, occur in the last rows only."""
    rng = np.random.default_rng(2)
    a = rng.integers(0, 3, ROWS)
    b = np.array(list("xyz"))[(a + (rng.random(ROWS) < 0.3)) % 3].astype(object)
    b[-2:] = "a late value"
    c = np.where(rng.random(ROWS) < 0.8, b == "x", rng.random(ROWS) < 0.5)
    d = np.where(np.arange(ROWS) < 500, a, rng.integers(0, 50, ROWS)).astype(float)
    columns = {"a": a, "b": b.tolist(), "c": c, "x": 1e6 + rng.normal(size=ROWS) + a, "d": d}
    kept = columns if numeric else {name: columns[name] for name in "abc"}
    made = {name: pa.array(cells, mask=rng.random(ROWS) < 0.1 if gaps else None) for name, cells in kept.items()}
    return pa.table(made | {"w": rng.choice([0.0, 0.5, 1.0, 2.0], ROWS)})


class Batches:
    """A table as a source of short batches, of which few may be alive at a time."""

    label, partial, missing = "the batches", False, MissingTokens()

    def __init__(self, table, size=50, most=None):
        self.tables = [table.slice(i, size) for i in range(0, table.num_rows, size)] if isinstance(table, pa.Table) else table
        self.most, self.passes, self.open, self.made = most, 0, 0, []

    def with_target(self, _):
        return self

    def batches(self, kinds=None):
        assert not self.open, "a database has one reader at a time"
        self.passes += 1
        self.open += 1
        try:
            for table in self.tables:
                batch = next(iter(open_source(table).batches()))
                self.made.append(weakref.ref(batch))
                assert self.most is None or sum(each() is not None for each in self.made) <= self.most
                yield batch
                del batch
        finally:
            self.open -= 1


class InBatches:
    """The memory engine, for which the table is too large to be held."""

    def __init__(self, request):
        patch = request.getfixturevalue("monkeypatch")
        patch.setattr(counting, "MOST_HELD", 300)
        patch.setattr(counting, "CHUNK", 400)
        patch.setattr(row_sums, "FEWEST_MERGED", 40)

    def given(self, table):
        return {"data": Batches(table)}


class InSlices:
    """Parts that are counted from copies of the plan, which is made of the first rows."""

    def __init__(self, request):
        pass

    def given(self, table):
        return {"data": table.slice(0, 200), "engine": Slices(table)}


class OnSpark:
    """A Spark table of four partitions, one of them empty; no rows may be streamed to the driver."""

    def __init__(self, request):
        self.session = request.getfixturevalue("spark")
        patch = request.getfixturevalue("monkeypatch")
        patch.setattr(SparkRows, "batches", None)
        planned_from(100, patch)

    def given(self, table):
        frame = self.session.createDataFrame(table)
        empty = self.session.createDataFrame(table.slice(0, 0), frame.schema)
        return {"data": frame.repartition(3).union(empty.coalesce(1)), "engine": "spark"}


def planned_from(most, patch):
    """Columns are planned from so many rows of a Spark table."""
    patch.setattr(spark_engine, "first_rows", functools.partial(first_rows, most=most))


class InDuckdb:
    """A table of a DuckDB file, streamed or grouped by the database."""

    engine = "memory"

    def __init__(self, request):
        self.folder = request.getfixturevalue("tmp_path_factory").mktemp("duckdb")

    def given(self, table):
        duckdb = pytest.importorskip("duckdb", reason="NOT TESTED: DuckDB is not installed")
        path = self.folder / "shop.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table)
            connection.execute('create or replace table "the rows" as select * from given')
        return {"data": str(path), "table": "the rows", "engine": self.engine}


class GroupedInDuckdb(InDuckdb):
    engine = "database"


class InPostgres:
    engine = "auto"

    def __init__(self, request):
        self.server = request.getfixturevalue("postgres")
        request.getfixturevalue("monkeypatch").setattr(counting, "MOST_HELD", 300)

    def given(self, table):
        name = f"network rows {next(NUMBERS)}"
        self.server.put(name, table)
        return {"data": self.server.uri, "query": f"select * from {quoted(name)}", "engine": self.engine}


class GroupedInPostgres(InPostgres):
    engine = "database"


def same(found, expected):
    """Whether two networks have the same columns in the same order, and the same counts but for rounding."""
    assert found.tally.columns == expected.tally.columns
    for name, table in expected.tally.tables.items():
        np.testing.assert_allclose(found.tally.tables[name], table, rtol=1e-12, atol=1e-9)
    for name, moments in expected.tally.moments.items():
        np.testing.assert_allclose(found.tally.moments[name].n, moments.n, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(found.tally.moments[name].mean, moments.mean, rtol=1e-9)
        np.testing.assert_allclose(found.tally.moments[name].scatter, moments.scatter, rtol=1e-8, atol=1e-6)
    assert found.tally.rows == pytest.approx(expected.tally.rows, rel=1e-12)
    assert len(found.trace) == len(expected.trace)
