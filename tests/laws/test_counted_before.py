"""Statistics shared between batches change no sum: histograms, row samples and tallies of many batches equal those of one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from likely.engines._counted_before import CountedBefore
from likely.families.histogram import Histogram
from likely.kernels.cells import count_cells
from likely.kernels.keys import OPEN
from likely.sources import ReadOptions, files, open_source
from likely.tally.row_sample import most_rows

ROWS = 60_000
KINDS = {
    "normal": lambda rng: rng.normal(size=ROWS),
    "rounded": lambda rng: np.round(rng.normal(size=ROWS), 3),
    "few": lambda rng: rng.integers(-20, 20, ROWS) / 4,
    "wide": lambda rng: rng.normal(size=ROWS) * 10.0 ** rng.integers(-300, 300, ROWS),
    "shifted": lambda rng: np.arange(ROWS) * 0.1 + np.where(rng.random(ROWS) < 0.1, np.nan, 0.0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", [0, 40_000])
def test_a_histogram_counted_with_the_limits_of_another_adds_to_the_same_sum(kind, start):
    rng = np.random.default_rng(1)
    x, y, w = KINDS[kind](rng), rng.integers(0, 2, ROWS), np.ones(ROWS)
    first, second = slice(start, start + 20_000), slice(20_000, 40_000)
    units = y.astype(np.uint32)
    count_cells.prepare()  # arrays count without a hint
    before = Histogram.of(x[first], y[first], w[first], 2, units[first])
    knowing = Histogram.of(x[second], y[second], w[second], 2, units[second], before=before)
    both = np.r_[first, second]
    assert before + knowing == Histogram.of(x[both], y[both], w[both], 2, units[both])
    assert knowing.level >= before.level


def test_the_limit_is_the_first_key_that_a_sample_of_all_rows_drops():
    rng, before, every = np.random.default_rng(0), CountedBefore(), np.zeros(0, np.int64)
    for _ in range(6):
        keys = np.unique(rng.integers(0, 10_000, 400))
        before.add_keys(keys, 900)
        every = np.union1d(every, keys)
        assert before.limit == (every[900] if len(every) > 900 else OPEN)
    assert before.limit < OPEN


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, ROWS)
    columns = {name: pa.array(make(rng), from_pandas=True) for name, make in KINDS.items() if name != "wide"}
    columns["sky"] = pa.array(np.array(["clear", "grey", "dark"])[(rng.random(ROWS) * 2 + y * 0.8).astype(int)])
    labels = np.array(["no", "yes"], object)[y]
    labels[rng.random(ROWS) < 0.01] = None
    return pa.table(columns | {"y": pa.array(labels)})


def test_the_tally_of_many_batches_is_that_of_one(table, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONG_BATCH", 17_000)
    path = tmp_path / "table.parquet"
    pq.write_table(table, path, row_group_size=40_000)
    parts = likely.learn(path, "y", unlabelled="ignore").tally
    whole = likely.learn(table, "y", unlabelled="ignore").tally
    assert parts == whole
    assert parts.sample == whole.sample
    assert len(whole.sample) == most_rows(len(whole.sample.columns)) < whole.rows


@pytest.mark.parametrize(
    ("group", "sizes"),
    [(40_000, [13_334, 13_334, 13_332, 10_000, 10_000]), (10_000, [10_000] * 6), (17_000, [17_000] * 3 + [9_000])],
)
def test_large_row_groups_are_read_in_equal_batches(table, tmp_path, monkeypatch, group, sizes):
    monkeypatch.setattr(files, "LONG_BATCH", 17_000)
    path = tmp_path / "table.parquet"
    pq.write_table(table, path, row_group_size=group)
    batches = list(open_source(path, ReadOptions()).batches())
    assert [batch.rows for batch in batches] == sizes
    assert [batch.start for batch in batches] == [0, *np.cumsum(sizes)[:-1].tolist()]


@pytest.mark.parametrize(("columns", "rows"), [(0, 40_000), (1, 40_000), (200, 40_000), (400, 20_000), (100_000, 1_000)])
def test_fewer_rows_are_kept_of_wide_tables_but_a_thousand_of_any(columns, rows):
    assert most_rows(columns) == rows
