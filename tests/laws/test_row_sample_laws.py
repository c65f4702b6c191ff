"""Laws of the sample of rows: the same for any order and split of more rows than are kept, equal rows being one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.kernels.keys import to_keys
from likely.tally import row_sample
from likely.tally.row_sample import Reservoir, sums_of_number_hashes

MOST = 12  # rows of a sample in these tests
NUMBERS = st.one_of(st.integers(0, 30), st.just(None))
ROWS = st.lists(st.tuples(NUMBERS, st.integers(0, 1), st.sampled_from([1.0, 0.5])), min_size=1, max_size=80)


@pytest.fixture(scope="module")
def few():
    """Samples of few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_sample, "FEWEST", MOST)
        patch.setattr(row_sample, "ROWS", MOST)
        yield


def sample(rows, few_keys=False):
    """The sample of some rows; with few keys, several different rows have one."""
    x, labels, weights = (np.array(part, dtype=np.float64) for part in zip(*rows, strict=True))
    keys = to_keys(sums_of_number_hashes([x, labels], ["x", "y"]))
    return Reservoir.of(keys % 7 if few_keys else keys, labels.astype(np.int64), weights, {"x": x})


@pytest.mark.parametrize("few_keys", [False, True])
@given(rows=ROWS, data=st.data())
def test_the_sample_is_the_same_for_any_order_and_split_of_the_rows(few, few_keys, rows, data):
    whole = sample(rows, few_keys)
    assert len(whole) <= MOST
    assert whole.complete == (len({row[:2] for row in rows}) <= MOST)
    assert not whole.complete or whole.weights.sum() == sum(weight for _, _, weight in rows)
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=3)) | {0, len(rows)})
    some = [sample(shuffled[a:b], few_keys) for a, b in pairwise(cuts)]
    assert Reservoir.total(some) == whole
    added = some[0]
    for each in some[1:]:
        added = added + each
    assert added == whole


def test_samples_of_different_limits_add_up_to_that_of_all_rows(few):
    many, more, one = ([(n, 0, 1.0) for n in numbers] for numbers in (range(200), range(200, 230), range(230, 231)))
    parts = [sample(rows) for rows in (many, more, one)]
    assert [part.complete for part in parts] == [False, False, True]
    whole = sample([*many, *more, *one])
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        first, second, third = (parts[i] for i in order)
        assert first + second + third == whole


def test_rows_that_differ_are_kept_apart_under_one_key(few):
    one = sample([(n, 0, 1.0) for n in (3, None, 10, 3, None, 17, 10)], few_keys=True)
    assert len(one) == 4
    assert sorted(one.weights.tolist()) == [1.0, 2.0, 2.0, 2.0]


def test_a_sample_is_multiplied_and_loses_a_column(few):
    one = sample([(1, 0, 1.0), (2, 1, 0.5)])
    wide = replace(one, columns={**one.columns, "z": one.columns["x"] + 1})
    assert sorted((wide * 4.0).weights.tolist()) == [2.0, 4.0]
    assert wide.without("z") == one
    assert len(one * 0.0) == 0


def test_keys_are_those_in_files_that_were_written_before():
    """Another hash would give a sample of other rows, which does not add up with those of the files."""
    keys = to_keys(sums_of_number_hashes([np.array([0.0, -0.0, 1.5, np.nan])], ["x"]))
    assert keys.tolist() == [5987668507296567975, 5987668507296567975, 3301610814527998601, 3488426583922391621]
    of_values = row_sample.hashes(("a", "1", True), "x")
    assert of_values.tolist() == [14659206869469539147, 7621988543103620250, 7621988543103620250]


@given(ROWS, ROWS)
def test_subtracting_rows_undoes_adding_them(few, first, second):
    left = (sample(first) + sample(second)) - sample(second)
    below = sample(first).take(np.flatnonzero(sample(first).keys < left.limit))
    assert (left.keys.tolist(), left.weights.tolist()) == (below.keys.tolist(), below.weights.tolist())


@given(ROWS, ROWS)
def test_rows_in_common_are_weighed_below_the_limit_of_both(few, first, second):
    one, other = sample(first), sample(second)
    limit = min(one.limit, other.limit)
    here, there = ({k: w for k, w in zip(s.keys, s.weights, strict=True) if k < limit} for s in (one, other))
    both = sum(min(here[key], there[key]) for key in here.keys() & there.keys())
    assert one.in_common(other) == pytest.approx((both, sum(there.values())))
