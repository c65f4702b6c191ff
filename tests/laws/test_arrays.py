"""Values become Arrow arrays, and columns NumPy arrays, exactly as Arrow's own way would have it."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, integer_dtypes

from likely.sources.arrow_arrays import _from_numbers, _from_values, arrow_array, numpy_array

WHOLE = st.integers(-(2**63), 2**63 - 1)
LISTS = st.one_of(
    *(st.lists(st.none() | kind) for kind in (WHOLE, st.floats(), st.booleans(), st.text(), st.integers(), st.none())),
    st.lists(st.none() | st.integers() | st.floats() | st.text() | st.booleans() | st.binary()),
)


def made(make, *given):
    """What comes of it: the type and the values, or the complaint; None where it is left to Arrow."""
    try:
        array = make(*given)
    except Exception as error:
        return type(error)
    if array is None:
        return None
    values = ["nan" if isinstance(v, float) and math.isnan(v) else v for v in array.to_pylist()]
    return array.type, values, array.null_count


@given(LISTS, st.sampled_from([list, tuple]))
@example([math.nan], list)
@example([math.nan, None], tuple)
def test_a_list_becomes_what_arrow_makes_of_it(values, kind):
    expected = made(lambda v: pa.array(v, from_pandas=True), values)
    assert made(_from_values, kind(values)) in (expected, None)
    assert made(arrow_array, kind(values)) == expected


@given(arrays(st.sampled_from([np.float64, np.float32]) | integer_dtypes(endianness="="), st.integers(0, 9)))
def test_an_array_becomes_what_arrow_makes_of_it(values):
    expected = made(lambda v: pa.array(v, from_pandas=True), values)
    assert made(_from_numbers, values) == expected
    assert made(_from_numbers, np.repeat(values, 2)[::2]) == expected
    assert made(arrow_array, values) == expected


@given(st.lists(st.none() | st.integers(-100, 100), max_size=40), st.integers(0, 40), st.integers(0, 40))
@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64()])
def test_a_column_is_looked_at_as_arrow_would_copy_it(kind, values, start, stop):
    column = pa.array(values, kind)[start:stop]
    np.testing.assert_array_equal(numpy_array(column), column.to_numpy(zero_copy_only=False))
    if column.null_count == 0 and len(column):
        assert numpy_array(column).dtype == kind.to_pandas_dtype()
        assert not numpy_array(column).flags.owndata
