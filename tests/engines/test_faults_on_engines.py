"""Faults and odd tables on every engine: equal tallies, or the same clear error."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from likely.errors import DataError, ResourceError

pytestmark = pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning", "ignore::FutureWarning")


@pytest.fixture
def engine(any_engine):
    """Every engine, those that stream from a database included."""
    return any_engine


PLAIN = {"plain": True, "families": {"big": "categorical"}, "unlabelled": "ignore", "ignore": ["words", "when"]}


def small(rows=300):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, rows)
    a = np.array(["u", "v", "w"])[(y + rng.integers(0, 2, rows)) % 3]
    return pa.table({"a": a, "n": rng.integers(0, 4, rows), "x": rng.normal(y), "class": np.array(["n", "p"])[y]})


def written(table, path, row_group_size=100):
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def test_a_memory_limit_that_is_kept_changes_no_count(engine, tmp_path):
    path = written(small(), tmp_path / "t.parquet")
    found = engine.learn_file(path, memory_limit=40_000_000_000)
    assert found.tally == engine.learn_file(path).tally


def test_a_memory_limit_that_is_too_small_is_an_error_with_the_remedy(engine, tmp_path):
    path = written(small(), tmp_path / "t.parquet")
    with pytest.raises(ResourceError, match=r"memory limit of 20 MB is exceeded.*--memory-limit"):
        engine.learn_file(path, memory_limit=20_000_000)


def test_a_few_kilobytes_that_unpack_to_very_many_rows_are_counted_exactly(engine, tmp_path):
    rows = 1_000_000
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["the same"]))
    y = pa.DictionaryArray.from_arrays(pa.array((np.arange(rows) < 10).astype(np.int32)), pa.array(["n", "p"]))
    path = written(pa.table({"a": same.dictionary_decode(), "class": y.dictionary_decode()}), tmp_path / "t.parquet", rows)
    assert path.stat().st_size < 100_000
    model = engine.learn_file(path, plain=True)
    assert model.tally.rows == rows
    assert model.tally.classes.tolist() == [rows - 10, 10]


NAMES = ["", "a.b", "A", "a", 'say "x"', "`; drop table t; --", "select", "n" * 10_000]


def test_columns_of_odd_names_are_counted_under_their_names(engine):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200)
    names = engine.names(NAMES)
    columns = {name: np.array(["r", "s"])[(y + (rng.random(200) < 0.1 * i)) % 2] for i, name in enumerate(names)}
    table = pa.table(columns | {"class": np.array(["n", "p"])[y]})
    expected = likely.learn(table, "class", engine="memory", plain=True)
    found = engine.learn(table, plain=True)
    assert {c.name for c in found.schema.columns} == set(names)
    assert found.tally.counted_the_same(expected.tally)
    assert engine.score(expected, table)["label"] == expected.predict(table).tolist()


def test_two_columns_of_one_name_are_refused(engine):
    table = pa.table({"a": ["u", "v"] * 4, "class": ["n", "p"] * 4})
    with pytest.raises(DataError, match="column 'a' occurs twice"):
        engine.learn_twice(table, "a", plain=True)


def test_numbers_at_the_ends_of_their_range_have_the_counts_and_finite_scores(engine):
    table = small()
    x = table["x"].to_pylist()
    x[:8] = [1e308, -1e308, 5e-324, -5e-324, -0.0, 0.0, math.nan, None]
    table = table.set_column(2, "x", pa.array(x, pa.float64()))
    for settings in ({"plain": True, "families": {"x": "binned"}}, {}):
        expected = likely.learn(table, "class", engine="memory", **settings)
        found = engine.learn(table, **settings)
        assert found.tally.counted_the_same(expected.tally)
        scores = engine.score(expected, table)
        assert np.isfinite([scores["p_n"], scores["p_p"]]).all()
        np.testing.assert_allclose(scores["p_n"], expected.posterior(table).probabilities[:, 0], rtol=0, atol=1e-12)


def test_rows_are_scored_by_name_whatever_the_order_and_the_types_of_their_columns(engine):
    table = small()
    model = likely.learn(table, "class", engine="memory")
    expected = model.posterior(table).probabilities[:, 0]
    moved = table.select(["x", "class", "n", "a"]).append_column("more", pa.array(["?"] * table.num_rows))
    for kind in (pa.int32(), pa.float64(), pa.string()):
        other = moved.set_column(2, "n", moved["n"].cast(kind))
        np.testing.assert_allclose(engine.score(model, other)["p_n"], expected, rtol=0, atol=1e-12, err_msg=str(kind))


def test_cells_that_are_no_numbers_are_refused_where_numbers_were_learned(engine):
    table = small()
    model = likely.learn(table, "class", engine="memory")
    words = pa.array(["about one"] * table.num_rows)
    with pytest.raises(Exception, match=r"'x'.*'about one'"):
        engine.score(model, table.set_column(2, "x", words))


def test_the_order_of_rows_changes_no_count_and_no_sample(engine, table):
    moved = table.take(np.random.default_rng(3).permutation(table.num_rows))
    found, expected = engine.learn(moved, **PLAIN | {"plain": False}), likely.learn(table, "class", **PLAIN | {"plain": False})
    assert found.tally.counted_the_same(expected.tally)
    assert found.tally.sample == expected.tally.sample


def test_one_value_that_most_rows_have_is_counted_as_any_other(engine):
    rows = 5_000
    a = np.where(np.arange(rows) % 500 == 0, "rare", "most")
    table = pa.table({"a": a, "class": np.array(["n", "p"])[np.arange(rows) % 3 // 2]})
    expected = likely.learn(table, "class", engine="memory", plain=True)
    assert engine.learn(table, plain=True).tally.counted_the_same(expected.tally)


TOKENS = ["NA", "NULL", "?", "", "NaN", "none", "None", "N/A", "<NA>", "ok"]


@pytest.mark.parametrize("missing", [None, ["none", "?"]])
def test_texts_that_look_like_missing_cells_are_values_of_typed_tables_unless_they_are_listed(engine, missing):
    cells = [None if i % 11 == 0 else TOKENS[i % 10] for i in range(300)]
    table = pa.table({"a": cells, "class": ["n" if i % 3 else "p" for i in range(300)]})
    expected = likely.learn(table, "class", engine="memory", plain=True, missing=missing)
    found = engine.learn(table, plain=True, missing=missing)
    assert set(found.schema.by_name["a"].values) == set(TOKENS) - set(missing or ())
    assert found.tally.counted_the_same(expected.tally)
    assert found.schema.by_name["a"].taken == expected.schema.by_name["a"].taken
