"""Rows of weight one are counted by loops of their own, which give what weighted rows give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likely
from likely.engines.memory import MANY_ROWS
from likely.families.histogram import MANY, Histogram

ROWS = MANY_ROWS + 3_000
NUMBERS = {
    "normal": lambda rng, n: rng.normal(0.0, 2.0, n),
    "rounded": lambda rng, n: np.round(rng.normal(0.0, 2.0, n), 2),
    "small integers": lambda rng, n: rng.integers(-3, 60, n).astype(float),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, -rng.exponential(1.0, n)),
    "minus zero": lambda rng, n: np.where(rng.random(n) < 0.5, -0.0, rng.normal(0.0, 1e-310, n)),
    "many scales": lambda rng, n: np.exp(rng.normal(0.0, 60.0, n)) * rng.choice([-1.0, 1.0], n),
    "largest": lambda rng, n: rng.choice([-1.7e308, 1.0, 1.7e308, 5e-324], n),
    "times": lambda rng, n: 1.7e9 + rng.integers(0, 3_000, n) * 86_400.0,
    "constant": lambda rng, n: np.full(n, -0.1),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
@given(seed=st.integers(0, 2**32 - 1), classes=st.integers(1, 40), missing=st.sampled_from([0.0, 0.3]))
@settings(max_examples=6, deadline=None)
def test_a_window_of_cells_counts_what_a_table_of_cells_counts(name: str, seed: int, classes: int, missing: float) -> None:
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(MANY) < missing, np.nan, NUMBERS[name](rng, MANY))
    labels = rng.integers(-1, classes, MANY)
    units = np.where(labels < 0, classes, labels).astype(np.uint32)
    assert Histogram.of(x, labels, np.ones(MANY), classes, units) == Histogram.of(x, labels, np.ones(MANY), classes)


def test_infinity_is_seen_in_a_window_of_cells() -> None:
    x = np.random.default_rng(0).normal(size=MANY)
    x[77] = -np.inf
    found = Histogram.of(x, np.zeros(MANY, np.int64), np.ones(MANY), 1, np.zeros(MANY, np.uint32))
    assert np.isnan(found.seen).all()


def _table(rng: np.random.Generator) -> pa.Table:
    sizes = [1, 2, 3, 7, 40, 300, 4_000]
    columns = {f"c{n}": pa.array([None if v == 0 else f"v {v}" for v in rng.integers(0, n + 1, ROWS)]) for n in sizes}
    columns |= {name: pa.array(np.where(rng.random(ROWS) < 0.1, np.nan, make(rng, ROWS)), from_pandas=True)
                for name, make in NUMBERS.items()}  # fmt: skip
    labels = rng.choice(np.array(["b", "a", "c"]), ROWS)
    return pa.table(columns | {"y": pa.array([None if rng.random() < 0.05 else label for label in labels])})


@pytest.mark.parametrize("plain", [False, True])
def test_rows_of_weight_one_are_counted_as_a_column_of_ones_counts_them(plain: bool) -> None:
    table = _table(np.random.default_rng(3))
    settings = {"plain": plain, "unlabelled": "ignore", "families": dict.fromkeys(NUMBERS, "binned") if plain else None}
    plan = likely.plan(table, "y", **settings)
    whole = plan.count(table).tally
    weighted = likely.plan(table.append_column("w", pa.array(np.ones(ROWS))), "y", weights="w", **settings)
    ones = weighted.count(table.append_column("w", pa.array(np.ones(ROWS)))).tally
    assert whole.statistics == ones.statistics
    assert whole.sample == ones.sample
    assert whole.schema.columns == ones.schema.columns


def test_many_and_few_rows_at_a_time_give_one_tally(tmp_path) -> None:  # type: ignore[no-untyped-def]
    table = _table(np.random.default_rng(4))
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, row_group_size=ROWS // 2)
    plan = likely.plan(table, "y", unlabelled="ignore")
    few = plan.learn([plan.count(table.slice(i, 5_000)) for i in range(0, ROWS, 5_000)])
    assert few.tally == plan.learn([plan.count(table)]).tally
    assert few.tally.statistics == likely.learn(path, "y", unlabelled="ignore").tally.statistics
