"""Networks whose rows stay where they are: batches, slices, tasks of Spark and databases give the network of memory."""

import contextlib
import sqlite3
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from commands import document, refused
from likely.engines import grouped_rows
from likely.errors import DataError, ForgetError, ResourceError, UsageError
from likely.networks import _counting as counting
from likely.networks import _database_rows as database_rows
from likely.networks import _part_counts as part_counts
from likely.networks import _row_sums as row_sums
from network_places import (
    ARCS,
    NUMERIC,
    ROWS,
    Batches,
    GroupedInDuckdb,
    GroupedInPostgres,
    InBatches,
    InDuckdb,
    InPostgres,
    InSlices,
    OnSpark,
    planned_from,
    rows,
    same,
)
from slices import Slices

pytestmark = pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning", "ignore::FutureWarning")

SPARK = pytest.param(OnSpark, marks=pytest.mark.xdist_group("spark"))
POSTGRES = [pytest.param(each, marks=pytest.mark.xdist_group("postgres")) for each in (InPostgres, GroupedInPostgres)]


@pytest.fixture(params=[InBatches, InSlices, InDuckdb, GroupedInDuckdb, *POSTGRES, SPARK])
def place(request):
    return request.param(request)


@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("gaps", [False, True])
def test_categories_are_counted_as_in_memory(place, gaps, weights):
    table = rows(gaps)
    found = likely.Network(ARCS).fit(**place.given(table), weights=weights)
    expected = likely.Network(ARCS).fit(table, weights=weights)
    same(found, expected)
    assert "a late value" in found.columns["b"].values
    assert expected.tally.expected is gaps


@pytest.mark.parametrize("gaps", [False, True])
def test_numbers_are_counted_as_in_memory_also_where_first_rows_look_like_categories(place, gaps):
    table = rows(gaps, numeric=True)
    found = likely.Network(NUMERIC).fit(**place.given(table), weights="w", max_iter=4)
    assert found.columns["d"].kind == "number"
    same(found, likely.Network(NUMERIC).fit(table, weights="w", max_iter=4))


def test_hidden_nodes_are_fitted_from_distinct_rows(place):
    table = rows(gaps=True)
    net = likely.Network("h -> a, h -> b, b -> c", hidden={"h": 2})
    same(net.fit(**place.given(table), max_iter=8), net.fit(table, max_iter=8))


def test_an_update_may_lack_the_hidden_node(place):
    net = likely.Network("h -> a, h -> b, b -> c", hidden={"h": 2}).fit(rows().slice(0, 300), max_iter=8)
    same(net.update(**place.given(rows(gaps=True))), net.update(rows(gaps=True)))


@pytest.mark.parametrize("way", [InSlices, SPARK])
def test_missing_tokens_and_numbers_in_text_are_read_as_planned(request, way):
    place = way(request)
    table = rows(numeric=True)
    cells = [f"{x:.3f}".replace(".", ",") for x in np.asarray(table["x"]) - 1e6]
    cells[5::20] = ["?"] * len(cells[5::20])
    table = table.set_column(3, "x", pa.array(cells))
    table = table.set_column(0, "a", pa.array(["?" if i % 19 == 0 else v for i, v in enumerate(["u", "v", "w"] * 200)]))
    net, how = likely.Network("a -> x, a -> b"), {"missing": ["?"], "decimal": ",", "max_iter": 4}
    expected = net.fit(table, **how)
    assert (expected.columns["x"].kind, expected.columns["a"].values) == ("number", ("u", "v", "w"))
    same(net.fit(**place.given(table), **how), expected)


def test_an_update_adds_rows_and_the_values_that_are_new_in_them(place):
    table = rows(gaps=True)
    before = likely.Network(ARCS).fit(rows().slice(0, 300))
    assert "a late value" not in before.columns["b"].values
    same(before.update(**place.given(table)), before.update(table))


def test_complete_rows_are_forgotten_where_they_are(place):
    table = rows()
    net = likely.Network(ARCS).fit(table)
    found = net.forget(**place.given(table.slice(0, 450)))
    same(found, likely.Network(ARCS, values={"b": net.columns["b"].values}).fit(table.slice(450)))
    with pytest.raises(ForgetError, match="missing cells"):
        net.forget(**place.given(rows(gaps=True).slice(0, 450)))


@pytest.mark.parametrize("settings", [{}, {"method": "tan", "target": "c"}], ids=["climb", "tan"])
def test_arcs_are_those_of_all_rows_and_columns_that_name_rows_are_left_out(place, settings):
    table = rows().append_column("id", pa.array([f"row {i}" for i in range(ROWS)]))
    given = place.given(table)
    found = likely.Network.learn_structure(given.pop("data"), **given, **settings, ignore=["w"])
    assert found.nodes == ("a", "b", "c")
    expected = likely.Network.learn_structure(rows(), **settings, ignore=["w"])
    assert found.arcs == expected.arcs != ()
    same(found, expected)


def test_arcs_from_rows_with_missing_cells_have_tables_of_all_rows(place):
    given = place.given(rows(gaps=True))
    found = likely.Network.learn_structure(given.pop("data"), **given, ignore=["w"])
    assert found.tally.rows == pytest.approx(ROWS)
    assert ("a" in found.graph.parents["b"]) != ("b" in found.graph.parents["a"])


def test_the_network_names_the_engine_that_counted_it():
    table = rows()
    assert likely.Network(ARCS).fit(table).engine == "memory: the rows are on this machine, and are read in batches"
    assert likely.Network(ARCS).fit(table.slice(0, 9), engine=Slices(table)).engine == "slices: a test"


def test_few_batches_of_a_large_table_are_held_at_a_time(monkeypatch):
    monkeypatch.setattr(counting, "MOST_HELD", 8 * 50 * 4)
    monkeypatch.setattr(counting, "CHUNK", 2 * 50 * 4)
    table = pa.concat_tables([rows(gaps=True)] * 10)
    source = Batches(table, most=13)
    found = likely.Network(ARCS).fit(source)
    assert len(source.made) == 120
    assert source.passes == 1
    same(found, likely.Network(ARCS).fit(table))


def test_rows_that_are_kept_for_em_are_distinct_ones(monkeypatch):
    monkeypatch.setattr(counting, "MOST_HELD", 300)
    monkeypatch.setattr(counting, "CHUNK", 400)
    monkeypatch.setattr(row_sums, "FEWEST_MERGED", 40)
    seen, true = [], row_sums.merged
    monkeypatch.setattr(row_sums, "merged", lambda each: seen.append(each.n) or true(each))
    table, names = rows(gaps=True), ["a", "b", "c", *(f"more {i}" for i in range(60))]
    for name in names[3:]:  # more combinations than one integer can number
        table = table.append_column(name, table["a"])
    for graph in (None, likely.Network(ARCS, nodes=names).graph):
        how = counting.Counting(part_counts.Wanted(names, weights="w"), likely.sources.ReadOptions(), graph=graph)
        found, _ = counting.sums_of(Batches(table), how)
        assert found.rows.n < 60
        assert max(seen) < 200
        assert found.rows.total + (0 if graph is None else found.counted.rows) == np.asarray(table["w"]).sum()
        assert (found.number, found.known["b"]) == (ROWS, ROWS - table["b"].null_count)


def test_sqlite_groups_rows_as_memory_reads_them(tmp_path):
    path = str(tmp_path / "shop.db")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("create table t (a integer, b text, x real, odd, w real)")
        cells = [(i % 3, "uvw"[i * 7 % 3] if i % 11 else None, i % 20 + 0.5, i if i else "none", 1 - i % 2) for i in range(200)]
        connection.executemany("insert into t values (?, ?, ?, ?, ?)", cells)
        connection.commit()
    net = likely.Network("a -> b, b -> x")
    same(net.fit(path, weights="w", engine="database"), net.fit(path, weights="w", engine="memory"))
    with pytest.raises(DataError, match=r"no column 'z'"):
        likely.Network("a -> z").fit(path, engine="database")
    with pytest.raises(UsageError, match="must be the name of one of its columns"):
        net.fit(path, engine="database", weights=[1.0])


def test_weights_and_texts_that_a_database_would_read_otherwise_are_refused(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="NOT TESTED: DuckDB is not installed")
    path = str(tmp_path / "shop.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("create table t as select range % 3 as a, '1.5' as x, -1.0 as w from range(100)")
    with pytest.raises(UsageError, match=r"'x' holds numbers or dates stored as text.*--engine memory"):
        likely.Network("a -> x").fit(path, engine="database")
    with pytest.raises(DataError, match=r"'w' has -1\.0.*which is no weight"):
        likely.Network("", nodes=["a"]).fit(path, engine="database", weights="w")


def test_weights_written_as_text_are_refused_in_sqlite_as_memory_refuses_them(tmp_path):
    path = str(tmp_path / "shop.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table t (a text, b text, w)")
        connection.executemany("insert into t values (?, ?, ?)", [("u", "p", 1.0), ("v", "q", "many"), ("u", "q", 2.0)])
    for engine in ("memory", "database"):
        with pytest.raises(DataError, match=r"column 'w' has 'many'.*which is not a number"):
            likely.Network("a -> b").fit(path, table="t", weights="w", engine=engine)


def test_a_table_that_is_read_again_for_the_kind_of_a_column_is_counted_once(monkeypatch):
    monkeypatch.setattr(counting, "MOST_HELD", 300)
    monkeypatch.setattr(counting, "CHUNK", 400)
    source = Batches(rows(numeric=True))
    found = likely.Network(NUMERIC).fit(source)
    assert (source.passes, found.tally.rows) == (2, ROWS)


def test_columns_may_begin_without_a_value(monkeypatch):
    monkeypatch.setattr(counting, "MOST_HELD", 300)
    monkeypatch.setattr(counting, "CHUNK", 200)
    late = [None] * 400 + [0.5 + i for i in range(200)]
    table = rows().append_column("y", pa.array(late)).append_column("z", pa.array([None] * 400 + ["u", "v"] * 100))
    net = likely.Network("a -> y, b -> z")
    expected = net.fit(table, max_iter=3)
    same(net.fit(Batches(table), max_iter=3), expected)
    same(net.fit(table.slice(0, 100), engine=Slices(table), max_iter=3), expected)
    empty = table.set_column(table.column_names.index("z"), "z", pa.nulls(ROWS))
    for given in ({"data": Batches(empty)}, {"data": empty.slice(0, 9), "engine": Slices(empty)}):
        with pytest.raises(DataError, match="holds no value at all"):
            net.fit(**given, max_iter=3)


def test_numbers_that_are_few_in_every_part_and_many_in_all_are_numbers():
    table = rows().append_column("e", pa.array([i // 70 * 5 + i % 5 for i in range(ROWS)]))
    net = likely.Network("a -> e, a -> b")
    found = net.fit(table.slice(0, 60), engine=Slices(table))
    assert found.columns["e"].kind == "number"
    same(found, net.fit(table))


def test_a_column_that_the_first_rows_lack_may_look_different_in_every_part():
    late = [None] * 140 + [1.0, 2.0] * 70 + [0.25 * i for i in range(ROWS - 280)]
    table = rows().append_column("e", pa.array(late))
    net = likely.Network("a -> e, a -> b")
    found = net.fit(table.slice(0, 60), engine=Slices(table), max_iter=3)
    assert found.columns["e"].kind == "number"
    same(found, net.fit(table, max_iter=3))


@pytest.mark.parametrize("first", [[1, 2], [0.5, 1.5]])
def test_numbers_that_texts_follow_are_categories(monkeypatch, first):
    parts = [pa.table({"a": ["u", "v"] * 60, "e": kept * 60}) for kept in (first, first, ["x", "y"])]
    net = likely.Network("a -> e")
    expected = net.fit(Batches(parts))
    monkeypatch.setattr(counting, "MOST_HELD", 100)
    monkeypatch.setattr(counting, "CHUNK", 100)
    source = Batches(parts)
    same(net.fit(source), expected)
    assert (source.passes, expected.columns["e"].values) == (2, (*first, "x", "y"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["c"]), "no column 'c'"),
        (lambda t: t.slice(0, 0), "no rows"),
        (lambda t: t.set_column(3, "w", pa.array([-1.0] * t.num_rows)), "finite numbers of at least 0"),
        (lambda t: t.set_column(3, "w", pa.array([0.0] * t.num_rows)), "all zero"),
    ],
)
def test_a_large_table_is_refused_as_a_small_one(monkeypatch, change, message):
    table = change(rows())
    for source in (table, Batches(table)):
        with pytest.raises(DataError, match=message):
            likely.Network(ARCS).fit(source, weights="w")
        monkeypatch.setattr(counting, "MOST_HELD", 300)


def test_weights_of_a_large_table_may_be_an_array(monkeypatch):
    table = rows()
    w = np.asarray(table["w"])
    expected = likely.Network(ARCS).fit(table, weights=w)
    monkeypatch.setattr(counting, "MOST_HELD", 300)
    same(likely.Network(ARCS).fit(Batches(table), weights=w), expected)
    for wrong in (w[:-1], [*w, 1.0]):
        with pytest.raises(DataError, match="one for each row"):
            likely.Network(ARCS).fit(Batches(table), weights=wrong)


def broken(table):
    """The table with an infinite number in its last row."""
    x = np.asarray(table["x"]).copy()
    x[-1] = np.inf
    return table.set_column(table.column_names.index("x"), "x", pa.array(x))


def test_an_error_in_a_slice_names_the_column():
    table = broken(rows(numeric=True))
    with pytest.raises(DataError, match=r"column 'x'.*not a finite number"):
        likely.Network(NUMERIC).fit(table.slice(0, 200), engine=Slices(table))


@pytest.mark.xdist_group("spark")
def test_an_error_in_a_partition_of_spark_names_the_column(spark, monkeypatch):
    planned_from(100, monkeypatch)
    frame = spark.createDataFrame(broken(rows(numeric=True)))
    with pytest.raises(DataError, match=r"a partition of the Spark table: column 'x'.*not a finite number"):
        likely.Network(NUMERIC).fit(frame, engine="spark")


def test_rows_that_cannot_be_counted_in_parts_are_limited(monkeypatch):
    table = rows(gaps=True, numeric=True)
    monkeypatch.setattr(part_counts, "MOST_BYTES", 2_000)
    with pytest.raises(ResourceError, match=r"different rows cannot be counted where they are.*leave out columns"):
        likely.Network(NUMERIC).fit(table.slice(0, 200), engine=Slices(table))
    complete = rows(numeric=True)
    likely.Network(NUMERIC).fit(complete.slice(0, 200), engine=Slices(complete))


def test_groups_of_a_database_are_limited(tmp_path, monkeypatch):
    pytest.importorskip("duckdb", reason="NOT TESTED: DuckDB is not installed")
    pq.write_table(rows(numeric=True), tmp_path / "a.parquet")
    monkeypatch.setattr(grouped_rows, "MOST_CELLS", 1_000)
    with pytest.raises(ResourceError, match=r"more than 200 different rows.*--engine memory"):
        likely.Network(NUMERIC).fit(str(tmp_path / "a.parquet"), engine="database")
    likely.Network(ARCS).fit(str(tmp_path / "a.parquet"), engine="database")


@pytest.mark.parametrize("late", [False, True])
def test_a_database_counts_complete_rows_by_families_whatever_the_number_of_different_rows(tmp_path, monkeypatch, late):
    pytest.importorskip("duckdb", reason="NOT TESTED: DuckDB is not installed")
    rng = np.random.default_rng(3)
    table = rows()
    for name in ("e", "f", "g"):
        gaps = np.arange(ROWS) % 40 == 0
        cells = rng.integers(0, 12, ROWS)
        cells[0] = 12 if late else 0  # in an incomplete row only: with it the numbers are not few any more
        table = table.append_column(name, pa.array(cells, mask=gaps if name != "e" else None))
    pq.write_table(table, tmp_path / "a.parquet")
    net = likely.Network("a -> b, b -> c, a -> e, c -> f, f -> g" if not late else "a -> b, b -> c, a -> e, c -> f, c -> g")
    expected = net.fit(table, weights="w", max_iter=5)
    assert expected.columns["e"].kind == ("number" if late else "category")
    if late:  # the first rows are not all rows
        monkeypatch.setattr(database_rows, "_any_number", lambda *_: False)
    else:
        monkeypatch.setattr(grouped_rows, "MOST_CELLS", 6 * 200)
    same(net.fit(str(tmp_path / "a.parquet"), engine="duckdb", weights="w", max_iter=5), expected)


def test_what_no_engine_does_is_refused_with_a_remedy():
    table = rows()
    with pytest.raises(UsageError, match="engine='steam' is not known"):
        likely.Network(ARCS).fit(table, engine="steam")
    with pytest.raises(UsageError, match="engine='spark' counts a Spark DataFrame"):
        likely.Network(ARCS).fit(table, engine="spark")
    with pytest.raises(UsageError, match=r"is no database: engine='duckdb' \(--engine duckdb\)"):
        likely.Network(ARCS).fit(table, engine="duckdb")
    with pytest.raises(UsageError, match="weights= of a Spark table must be the name"):
        likely.Network(ARCS).fit(table, engine=Slices(table), weights=np.ones(ROWS))


def test_a_plan_and_a_sum_survive_as_bytes():
    table = rows(gaps=True, numeric=True)
    net = likely.Network(NUMERIC, values={"b": ["x", "y", "z", "a late value"]})
    wanted = part_counts.Wanted(net.nodes, net.declared, (), {"a": "categorical"}, "error", "w")
    plan = part_counts.NetworkPlan.of(table, wanted, likely.sources.ReadOptions(), net.graph, ((), ()))
    again = part_counts.NetworkPlan.from_bytes(plan.to_bytes())
    assert replace(again, wanted=None) == replace(plan, wanted=None)
    assert again.wanted.known == plan.wanted.known
    found = plan.count(iter(table.to_batches()))
    copy = part_counts.PartSums.from_bytes(found.to_bytes())
    assert copy.sums.columns == found.sums.columns
    np.testing.assert_array_equal(copy.sums.rows.codes, found.sums.rows.codes)
    np.testing.assert_array_equal(copy.sums.rows.numbers, found.sums.rows.numbers)
    assert (copy.rows, copy.sums.known, copy.modes) == (found.rows, found.sums.known, found.modes)


@pytest.mark.xdist_group("spark")
def test_tasks_read_the_files_of_a_network_and_queries_refuse_a_spark_table(spark, tmp_path):
    table = rows()
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    frame = spark.read.parquet(str(tmp_path))
    found = likely.Network(ARCS).fit(frame, engine="spark")
    assert found.engine == "spark: asked for; tasks read its Parquet files by themselves"
    same(found, likely.Network(ARCS).fit(table))
    assert likely.Network(ARCS).fit(frame).engine.startswith("memory: the Spark table has 600 rows")
    with pytest.raises(UsageError, match="not read in this process"):
        found.log_likelihood(frame)


@pytest.mark.xdist_group("spark")
def test_the_command_counts_with_spark(spark, tmp_path):
    path = str(tmp_path / "a.parquet")
    pq.write_table(rows(), path)
    told = document("network", "learn", path, "--arcs", ARCS, "--weights", "w", "--engine", "spark")
    assert told["engine"]["name"] == "spark"
    assert told["rows"] == pytest.approx(np.asarray(rows()["w"]).sum())


def test_the_command_counts_in_a_database_and_names_the_engine(tmp_path):
    pytest.importorskip("duckdb", reason="NOT TESTED: DuckDB is not installed")
    path = str(tmp_path / "a.parquet")
    pq.write_table(rows(), path)
    told = document("network", "learn", path, "--ignore", "w", "--engine", "duckdb")
    assert told["engine"] == {"name": "database", "reason": "asked for"}
    assert told["arcs"] == document("network", "learn", path, "--ignore", "w")["arcs"]
    assert "add --engine spark" in refused("network", "learn", path, "--master", "local[2]", code=2)
