"""One contract for every engine: the same hostile table, equal tallies, equal scores, equal errors."""

import itertools
import math
import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from likely.errors import DataError, LikelyError, UsageError

BIG = {"big": "categorical"}
SETTINGS = {
    "default": {"families": BIG, "unlabelled": "ignore"},
    "families": {
        "families": {"n": "poisson", "x": "gaussian", "c.d": "categorical", "price": "binned", ("A", "flag"): "joint", **BIG},
        "weights": "w", "unlabelled": "ignore", "ignore": ["words", "when"],
    },
    "plain": {"plain": True, "families": BIG, "weights": "w", "unlabelled": "ignore", "missing": ["?", "NA"]},
}  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning", "ignore::FutureWarning")


@pytest.fixture
def engine(any_engine):
    """Every engine, those that stream from a database included."""
    return any_engine


@pytest.mark.parametrize("name", SETTINGS)
def test_counts_row_sample_and_scores_equal_those_of_the_memory_engine(engine, name, table):
    expected = likely.learn(table, "class", engine="memory", **SETTINGS[name])
    found = engine.learn(table, **SETTINGS[name])
    assert [name for name, _ in found.schema.ignored] == [name for name, _ in expected.schema.ignored]
    assert [c.name for c in found.schema.columns] == [c.name for c in expected.schema.columns]
    assert found.tally.rows == expected.tally.rows
    assert found.tally.counted_the_same(expected.tally)
    assert found.tally.sample == expected.tally.sample
    assert found.schema.target.taken == expected.schema.target.taken
    shown = engine.score(expected, table)
    p = expected.posterior(table)
    assert shown["label"] == p.labels.tolist()
    for k, label in enumerate(expected.classes):
        np.testing.assert_allclose(shown[f"p_{label}"], p.probabilities[:, k], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.posterior(table).probabilities, p.probabilities, rtol=0, atol=1e-9)


def test_the_calibration_equals_that_of_the_memory_engine(engine, table):
    settings = {"unlabelled": "ignore", "ignore": ["words", "when", "big"]}
    found, expected = engine.learn(table, **settings), likely.learn(table, "class", engine="memory", **settings)
    assert found.calibration.weights == pytest.approx(expected.calibration.weights, abs=1e-9)
    assert [e.columns for e in found.calibration.interactions] == [e.columns for e in expected.calibration.interactions]


def bad_tables(table):
    infinite = pa.array([math.inf if i == 200 else 1.5 for i in range(table.num_rows)])
    one = pa.array(["yes"] * table.num_rows)

    def with_cells(name, cells):
        return table.set_column(table.schema.get_field_index(name), name, cells)

    return {
        "infinity": (with_cells("x", infinite), {"plain": True}, "which is not a finite number"),
        "no label": (table, {"unlabelled": "error"}, "has no label"),
        "negative weight": (with_cells("w", infinite), {"weights": "w"}, "which is no weight"),
        "one class": (with_cells("class", one), {"plain": True}, "only one class"),
        "no column": (table, {"ignore": ["colour"]}, "has no column 'colour'"),
    }


@pytest.mark.parametrize("fault", ["infinity", "no label", "negative weight", "one class", "no column"])
def test_bad_data_is_refused_with_the_same_words(engine, fault, table):
    bad, settings, words = bad_tables(table)[fault]
    with pytest.raises(DataError, match=words):
        engine.learn(bad, **{"families": BIG} | settings)


def test_a_column_that_is_not_there_is_named_when_rows_are_scored(engine, table):
    model = likely.learn(table, "class", engine="memory", plain=True, families=BIG, unlabelled="ignore")
    with pytest.raises(Exception, match="has no column 'A'"):
        engine.score(model, table.drop_columns(["A"]))


def test_folds_by_a_hash_of_the_row_are_equal_on_every_engine_and_in_any_order(engine, table):
    settings = {"ignore": ["words", "when"], "families": BIG, "plain": True, "folds": 3, "folds_by": "hash"}
    expected = likely.evaluate(table, "class", **settings)
    reordered = table.take(np.random.default_rng(0).permutation(table.num_rows))
    found = likely.evaluate(engine.rows(reordered), "class", **settings)
    assert [fold.rows for fold in found.parts] == [fold.rows for fold in expected.parts]
    assert min(fold.rows for fold in found.parts) > table.num_rows / 6
    assert found.total.confusion == expected.total.confusion
    assert found.log_loss == pytest.approx(expected.log_loss, rel=1e-9)


def test_folds_by_a_hash_are_equal_in_files_and_databases(table, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="NOT TESTED: DuckDB is not installed")
    simple = table.select(["A", "n", "x", "class"]).filter(table["class"].is_valid())
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("create table t as select * from simple order by x desc")
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        connection.execute("create table t (A text, n integer, x real, class text)")
        connection.executemany("insert into t values (?, ?, ?, ?)", zip(*simple.to_pydict().values(), strict=True))
    pq.write_table(simple, tmp_path / "a.parquet")
    how = {"target": "class", "folds": 4, "folds_by": "hash"}
    expected = likely.evaluate(simple, **how)
    for name in ("a.duckdb", "a.sqlite", "a.parquet"):
        found = likely.evaluate(tmp_path / name, **how)
        assert [fold.confusion for fold in found.parts] == [fold.confusion for fold in expected.parts], name
    by_position = likely.evaluate(simple, **how | {"folds_by": "auto"})
    assert [fold.confusion for fold in by_position.parts] != [fold.confusion for fold in expected.parts]


def test_folds_by_a_hash_keep_equal_rows_and_groups_in_one_fold(table):
    twice = pa.concat_tables([table, table]).select(["A", "n", "x", "class"])
    how = {"target": "class", "folds": 3, "folds_by": "hash", "plain": True}
    assert all(fold.rows % 2 == 0 for fold in likely.evaluate(twice, **how).parts)
    groups = pa.array([f"group {i % 7}" for i in range(twice.num_rows)])
    found = likely.evaluate(twice.append_column("who", groups), groups="who", **how)
    labelled = [i % 7 for i, label in enumerate(twice["class"].to_pylist()) if label is not None]
    sizes = [labelled.count(i) for i in range(7)]
    sums = {sum(chosen) for k in range(8) for chosen in itertools.combinations(sizes, k)}
    assert all(fold.rows in sums for fold in found.parts)
    assert found.rows == len(labelled)
    with pytest.raises(UsageError, match="groups= as the name of a column"):
        likely.evaluate(twice, groups=groups.to_pylist(), **how)
    with pytest.raises(UsageError, match="folds_by='colour' is not known"):
        likely.evaluate(twice, **how | {"folds_by": "colour"})


def test_an_identifier_that_shows_only_in_the_sum_of_all_parts_is_left_out(engine, tmp_path):
    rows = 120_000
    y = np.arange(rows) % 2
    names = pa.array(["the same"] * 52_000 + [f"row {i}" for i in range(rows - 52_000)])  # after the rows of the plan
    letters = np.array(["x", "y"])[y ^ (np.arange(rows) % 7 == 0)]
    table = pa.table({"a": letters, "name": names, "class": np.array(["n", "p"])[y]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=26_000)
    model = engine.learn_file(tmp_path / "a.parquet", plain=True)
    assert [column.name for column in model.schema.columns] == ["a"]
    assert "different values" in dict(model.schema.ignored)["name"]
    assert model.tally.rows == rows
    assert model.tally.statistics == likely.learn(table.drop_columns(["name"]), "class", plain=True).tally.statistics


def test_a_damaged_file_is_refused_and_never_counted_in_part(engine, tmp_path):
    path = tmp_path / "damaged.parquet"
    numbers = np.random.default_rng(0).normal(size=4_000)
    table = pa.table({"x": numbers, "class": np.array(["n", "p"])[(numbers > 0).astype(int)]})
    pq.write_table(table, path, row_group_size=1_000, use_dictionary=False)
    content = bytearray(path.read_bytes())
    start = pq.read_metadata(path).row_group(3).column(0).data_page_offset
    content[start : start + 2_000] = b"\xff" * 2_000
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"is not a complete Parquet file|Spark could not read or count the table"):
        engine.learn_file(path, plain=True)


def test_an_engine_that_does_not_exist_is_refused(table):
    with pytest.raises(LikelyError, match="engine='abacus' is not known: choose one of auto, memory, spark"):
        likely.learn(table, "class", engine="abacus")


def test_the_engine_and_the_reason_for_it_are_part_of_the_model(table):
    model = likely.learn(table, "class", plain=True, families=BIG)
    assert model.engine == "memory: the rows are on this machine, and are read in batches"
    assert likely.plan(table, "class", families=BIG).parts.model.engine == ""
