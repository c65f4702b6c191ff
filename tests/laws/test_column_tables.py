"""Long frames are scored column by column, from their codes and numbers as they are: with the digits of short ones."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likely
from likely.engines._column_tables import BinGrid
from likely.errors import DataError
from likely.kernels.parallel import FEW_ROWS
from likely.kernels.table_scores import add_bins, add_lines

FINITE = st.floats(allow_nan=False, allow_infinity=False)
ROWS = FEW_ROWS + 700  # in ranges of rows that are compiled, and a last one


def table(classes: int, categories: int, rows: int = ROWS) -> dict[str, Any]:
    """Categories and numbers with missing cells."""
    rng = np.random.default_rng(categories)
    y = rng.integers(0, classes, rows)
    columns: dict[str, Any] = {}
    for j in range(categories):
        values = (y * rng.integers(0, 2, rows) + rng.integers(0, 3 + j, rows)).tolist()
        columns[f"c{j}"] = pa.array([None if v == 1 else f"v{v}" for v in values]).dictionary_encode()
    for j in range(3):
        x = rng.normal(y, 1.0) * 10.0 ** (50 * j)
        columns[f"x{j}"] = pa.array(np.where(rng.random(rows) < 0.1, np.nan, np.round(x, 1)), from_pandas=True)
    return columns | {"y": pa.array(y.astype(str))}


@pytest.mark.parametrize(("classes", "categories"), [(2, 1), (2, 6), (3, 4), (3, 0)])
def test_long_frames_have_the_scores_of_short_ones(classes: int, categories: int) -> None:
    rows = pa.table(table(classes, categories))
    model = likely.learn(rows.slice(0, 3_000), target="y")
    short = np.concatenate([model.posterior(rows.slice(a, 1_000)).log_joint for a in range(0, ROWS, 1_000)])
    np.testing.assert_array_equal(model.posterior(rows).log_joint, short)
    assert not model.scorer._interactions


@pytest.mark.parametrize("classes", [2, 3])
def test_long_frames_have_the_interactions_of_short_ones(classes: int) -> None:
    rng = np.random.default_rng(3)
    a, b = (np.array(["r", "s", "t"])[rng.integers(0, 3, ROWS)] for _ in range(2))
    x, z = rng.normal(size=ROWS), rng.normal(size=ROWS)
    y = (((a == b) + (x * z > 0)) % classes).astype(str)
    gone = rng.random(ROWS) < 0.1
    columns: dict[str, Any] = {"a": pa.array(a, mask=gone).dictionary_encode(), "b": pa.array(b)}
    rows = pa.table(columns | {"x": pa.array(x, mask=gone), "z": pa.array(z), "y": pa.array(y)})
    model = likely.learn(rows, target="y")
    assert model.scorer._interactions
    few = rows.set_column(1, "b", pa.array(np.where(gone, "new", b)))
    short = np.concatenate([model.posterior(few.slice(i, 1_000)).log_joint for i in range(0, ROWS, 1_000)])
    np.testing.assert_array_equal(model.posterior(few).log_joint, short)


def test_batches_may_have_their_values_in_any_order() -> None:
    rows = pa.table(table(2, 2))
    model = likely.learn(rows, target="y")
    expected = model.posterior(rows).log_joint
    values = rows["c0"].combine_chunks().dictionary
    backwards = pa.array([*values.to_pylist()[::-1], "never seen"])
    codes = pa.array([None if v is None else backwards.to_pylist().index(v) for v in rows["c0"].to_pylist()], pa.int32())
    other = rows.set_column(0, "c0", pa.DictionaryArray.from_arrays(codes, backwards))
    for each in (other, rows, other):
        np.testing.assert_array_equal(model.posterior(each).log_joint, expected)
    assert len(model.scorer._known_places) == 3  # of two columns, one of them with two orders


def test_long_frames_with_numbers_far_out_have_the_scores_of_short_ones() -> None:
    rows = pa.table(table(2, 3))
    model = likely.learn(rows, target="y", plain=True)  # Gaussian terms, whose squares overflow
    far = rows.set_column(3, "x0", pa.array(np.where(np.arange(ROWS) % 9, 1.0, 1e200)))
    short = np.concatenate([model.posterior(far.slice(a, 1_000)).log_joint for a in range(0, ROWS, 1_000)])
    np.testing.assert_array_equal(model.posterior(far).log_joint, short)


def test_infinity_in_a_long_frame_is_refused_with_its_row() -> None:
    columns = table(2, 2)
    model = likely.learn(columns, target="y")
    odd = columns["x1"].to_numpy(zero_copy_only=False).copy()
    odd[ROWS - 7] = -np.inf
    with pytest.raises(DataError, match="not a finite number") as caught:
        model.posterior(columns | {"x1": pa.array(odd)})
    assert (caught.value.column, caught.value.row) == ("x1", ROWS - 6)


@given(st.lists(FINITE, min_size=1, max_size=30, unique=True), st.lists(FINITE | st.just(math.nan), max_size=30))
def test_the_bin_of_a_number_is_the_number_of_edges_not_above_it(edges: list[float], numbers: list[float]) -> None:
    cuts = np.array(sorted(edges))
    x = np.array([*numbers, *edges, *np.nextafter(cuts, 0.0)])
    lines = np.arange(len(cuts) + 3.0)[:, None]
    grid = BinGrid.of(cuts, lines)
    out = np.zeros((len(x), 1))
    infinite = add_bins.fast(x, grid.edges, grid.cells, grid.scale, grid.table, out)
    expected = np.where(np.isnan(x), len(lines) - 1, np.searchsorted(cuts, x, side="right"))
    np.testing.assert_array_equal(out[:, 0], expected)
    assert not infinite
    again = np.zeros((len(x), 1))
    with np.errstate(all="ignore"):
        assert not add_bins.plain(x, grid.edges, grid.cells, grid.scale, grid.table, again)
    np.testing.assert_array_equal(again, out)


@given(st.lists(st.tuples(*[st.integers(-1, 4)] * 4), min_size=1, max_size=20), st.integers(1, 4))
def test_lines_of_four_columns_are_added_in_order(codes: list[tuple[int, ...]], classes: int) -> None:
    rng = np.random.default_rng(len(codes))
    columns = [np.array(column, np.int32) for column in zip(*codes, strict=True)]
    tables = [rng.normal(size=(size, classes)) for size in (6, 1, 4, 5)]  # codes beyond a table read its first line
    for run in (add_lines.plain, add_lines.fast):
        out = np.ones((len(codes), classes))
        run(*columns, *tables, out)
        expected = np.ones_like(out)
        for column, lines in zip(columns, tables, strict=True):
            expected += lines[np.where(column + 1 < len(lines), column + 1, 0)]
        np.testing.assert_array_equal(out, expected)
