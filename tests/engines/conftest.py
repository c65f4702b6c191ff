"""The engines that every test of the contract runs on, and the table that is the same for all of them."""

import datetime as dt
import itertools
import math

import pyarrow as pa
import pytest

import likely
from likely.sources import ReadOptions, open_source

NUMBERS = itertools.count()
SPARK = pytest.mark.xdist_group("spark")  # one cluster, in one process
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC).replace(tzinfo=None)


def hostile_table(rows=400):
    """Nulls, odd names, unicode, tokens that are values, large integers, -0.0, dates, decimals, empty and nested columns."""
    import random

    draw = random.Random(0)
    y = [draw.random() < 0.4 for _ in range(rows)]
    pick = lambda values: [draw.choice(values) for _ in range(rows)]  # noqa: E731
    number = [round(draw.gauss(2 * v, 1), 2) for v in y]
    odd = {3: None, 5: math.nan, 7: -0.0, 11: 0.0, 13: 5e-324, 17: 1e100}
    columns = {
        "c.d": pa.array(pick(["a", "b", None])),
        "A": pa.array(["x" if v and draw.random() < 0.8 else "z" for v in y]),
        "a": pa.array(pick(["none", "NA", "", "?", None])),
        "`; DROP TABLE t; --": pa.array(pick([1, 2, 3, None]), pa.int64()),
        "Ünï çødé": pa.array(pick(["雪", "ß", "👍", "a\tb\n"])),
        "x": pa.array([odd.get(i, v) for i, v in enumerate(number)], pa.float64()),
        "big": pa.array(pick([2**53, 2**53 + 1, 2**62, -(2**62)]), pa.int64()),
        "flag": pa.array(pick([True, False, None])),
        "when": pa.array([START + dt.timedelta(hours=7 * i * (1 + v)) for i, v in enumerate(y)]),
        "price": pa.array([draw.randrange(500) for _ in range(rows)], pa.int32()).cast(pa.decimal128(12, 2)),
        "n": pa.array([draw.randrange(4) + 2 * v for v in y], pa.int32()),
        "empty": pa.nulls(rows, pa.string()),
        "list": pa.array([[1, 2]] * rows),
        "words": pa.array([f"{'rain snow ice' if v else 'sun sand sea'} word{draw.randrange(200)} of day {i}"
                           for i, v in enumerate(y)]),
        "w": pa.array(pick([0.0, 0.5, 1.0, 2.0])),
        "class": pa.array([None if i % 37 == 0 else "yes" if v else "no" for i, v in enumerate(y)]),
    }
    return pa.table(columns)


@pytest.fixture(scope="session")
def whole_table():
    return hostile_table()


@pytest.fixture
def table(request, whole_table):
    """The hostile table, without what the engine of the test cannot store."""
    engine = request.getfixturevalue("engine") if "engine" in request.fixturenames else None
    return engine.held(whole_table) if hasattr(engine, "held") else whole_table


class Memory:
    """All rows at once, in this process."""

    def __init__(self, _request):
        pass

    def held(self, table):
        """The columns that this engine can store."""
        return table

    def names(self, names):
        """Those of some names that columns can have here."""
        return names

    def learn(self, table, target="class", **settings):
        return likely.learn(table, target, engine="memory", **settings)

    def learn_twice(self, table, name, **settings):
        """Learn a table in which a column occurs twice."""
        return self.learn(table.append_column(name, table[name]), **settings)

    def rows(self, table):
        """The table as this engine reads it."""
        return table

    def learn_file(self, path, target="class", **settings):
        return likely.learn(path, target, **settings)

    def score(self, model, rows, **how):
        p = model.posterior(rows, **how)
        found = {f"p_{label}": p.probabilities[:, k].tolist() for k, label in enumerate(p.classes)}
        return found | {"label": p.labels.tolist()}


class Parts(Memory):
    """Slices that are counted apart from copies of the plan, and added: what any scheduler does."""

    def learn(self, table, target="class", **settings):
        import pickle

        plan = likely.plan(table, target, **settings)
        size = max(1, table.num_rows // 5)
        count = pickle.loads(pickle.dumps(plan.count))
        slices = [table.slice(i, size) for i in range(0, table.num_rows, size)]
        return plan.learn(map(count, slices), each=lambda work: map(pickle.loads(pickle.dumps(work)), slices))

    def learn_file(self, path, target="class", **settings):
        import pyarrow.parquet as pq

        file = pq.ParquetFile(path)
        plan = likely.plan(file.read_row_group(0), target, **settings)
        slices = [path.with_name(f"{i}.parquet") for i in range(file.num_row_groups)]
        try:
            for i, each in enumerate(slices):
                pq.write_table(file.read_row_group(i), each)
        except OSError:  # a damaged one: the plan meets it in the file itself
            slices = [path]
        return plan.learn(plan.count(each) for each in slices)


class Stored(Memory):
    """A table of a database, streamed in batches."""

    def store(self, table):
        """Store the table, and return where it is, with the options to read it."""
        raise NotImplementedError

    def rows(self, table):
        where, options = self.store(table)
        return open_source(where, ReadOptions(**options))

    def learn(self, table, target="class", **settings):
        missing = settings.pop("missing", None)
        where, options = self.store(table)
        return likely.learn(where, target, engine="memory", missing=missing, **options, **settings)

    def learn_twice(self, table, name, **settings):
        where, options = self.store(table)
        query = f'select *, "{name}" from "{options["table"]}"'
        return likely.learn(where, "class", engine="memory", query=query, **settings)

    def learn_file(self, path, target="class", **settings):
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
        except OSError:  # a damaged one, which no database can take
            return likely.learn(path, target, **settings)
        return self.learn(table, target, **settings)

    def score(self, model, table, **how):
        where, options = self.store(table)
        return super().score(model, where, **options, **how)


class Duckdb(Stored):
    """A DuckDB file, in which two names that differ only by case are one."""

    def __init__(self, request):
        pytest.importorskip("duckdb", reason="NOT TESTED: DuckDB is not installed")
        self.folder = request.getfixturevalue("tmp_path_factory").mktemp("duckdb")

    def held(self, table):
        return table.drop_columns(["a"])

    def names(self, names):
        return [name for name in names if name not in ("", "a")]

    def store(self, table):
        import duckdb

        path = self.folder / f"{next(NUMBERS)}.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table)
            connection.execute("create table rows as select * from given")
        return path, {"table": "rows"}


class Postgres(Stored):
    """A PostgreSQL table, without a type for lists and for columns without any value."""

    def __init__(self, request):
        self.server = request.getfixturevalue("postgres")

    def held(self, table):
        return table.drop_columns(["list"])

    def names(self, names):
        return [name for name in names if 0 < len(name) < 64]

    def store(self, table):
        name = f"rows {next(NUMBERS)}"  # a reader holds a lock on its table, which could not be replaced
        self.server.put(name, table)
        return self.server.uri, {"table": name}


class Spark:
    """A Spark DataFrame of eight partitions, some of them empty, on a cluster of two workers."""

    def __init__(self, request):
        self.session = request.getfixturevalue("spark")

    def held(self, table):
        """The columns that this engine can store."""
        return table

    def names(self, names):
        """Those of some names that columns can have here."""
        return names

    def frame(self, table, partitions=3):
        frame = self.session.createDataFrame(table)
        return frame.repartition(partitions) if partitions else frame

    def rows(self, table):
        return self.frame(table)

    def learn_file(self, path, target="class", **settings):
        return likely.learn(self.session.read.parquet(str(path)), target, engine="spark", **settings)

    def learn(self, table, target="class", **settings):
        empty = self.session.createDataFrame(table.slice(0, 0), self.frame(table, 0).schema)
        return likely.learn(self.frame(table).union(empty.repartition(2)), target, engine="spark", **settings)

    def learn_twice(self, table, name, **settings):
        """Learn a table in which a column occurs twice."""
        return likely.learn(self.frame(table).selectExpr("*", f"`{name}`"), "class", engine="spark", **settings)

    def score(self, model, table, **how):
        numbered = table.append_column("row number", pa.array(range(table.num_rows)))
        found = model.posterior(self.frame(numbered), **how).toArrow().sort_by("row number")
        names = ["label", *(f"p_{label}" for label in model.classes)]
        assert found.column_names == [*numbered.column_names, *names]
        return found.select(names).to_pydict()


SPARK_ENGINE = pytest.param(Spark, marks=SPARK)


@pytest.fixture(params=[Memory, Parts, SPARK_ENGINE], ids=lambda kind: kind.__name__.lower())
def engine(request):
    return request.param(request)


@pytest.fixture(params=[Memory, Parts, Duckdb, Postgres, SPARK_ENGINE], ids=lambda kind: kind.__name__.lower())
def any_engine(request):
    return request.param(request)
