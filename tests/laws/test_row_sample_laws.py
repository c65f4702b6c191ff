"""Laws of the sample of rows: the same for any order and split of more rows than are kept, equal rows being one."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.kernels.keys import to_keys
from likely.tally import row_sample
from likely.tally.row_sample import Reservoir, sums_of_number_hashes

MOST = 12  # rows of a sample in these tests
ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1), st.sampled_from([1.0, 0.5])), min_size=1, max_size=80)


@pytest.fixture(scope="module")
def few():
    """Samples of few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_sample, "FEWEST", MOST)
        patch.setattr(row_sample, "ROWS", MOST)
        yield


def sample(rows):
    numbers, labels, weights = (np.array(part) for part in zip(*rows, strict=True))
    x = numbers.astype(np.float64)
    keys = to_keys(sums_of_number_hashes([x, labels.astype(np.float64)], ["x", "y"]))
    return Reservoir.of(keys, labels, weights.astype(np.float64), {"x": x})


@given(ROWS, st.data())
def test_the_sample_is_the_same_for_any_order_and_split_of_the_rows(few, rows, data):
    whole = sample(rows)
    assert len(whole) <= MOST
    assert whole.complete == (len({row[:2] for row in rows}) <= MOST)
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=3)) | {0, len(rows)})
    some = [sample(shuffled[a:b]) for a, b in pairwise(cuts)]
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
