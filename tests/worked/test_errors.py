import pickle

import numpy as np
import pytest

from likely.errors import (
    DataError,
    ForgetError,
    LikelyError,
    LikelyWarning,
    ModelFileError,
    ResourceError,
    SaveError,
    SchemaError,
    UsageError,
)


def test_an_error_names_column_value_row_and_remedy():
    error = DataError(column="age", value="n/a", row=17, remedy="pass missing=['n/a'] or clean it")
    assert str(error) == "column 'age' has 'n/a' in row 17: pass missing=['n/a'] or clean it"
    assert (error.column, error.value, error.row) == ("age", "n/a", 17)
    assert error.remedy == "pass missing=['n/a'] or clean it"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            DataError("not a number", column="age", value="n/a", row=17),
            "column 'age' has 'n/a' in row 17, not a number",
        ),
        (DataError("no rows", remedy="check the path"), "no rows: check the path"),
        (DataError("three cells, two columns", row=4), "three cells, two columns in row 4"),
        (DataError("not a probability", value=-1.5), "value -1.5, not a probability"),
        (DataError("column 'age' has no values", column="age"), "column 'age' has no values"),
        (DataError("row 3 has '?'", row=3, value="?", remedy="clean it"), "row 3 has '?': clean it"),
        (UsageError("no such engine", value="abacus"), "value 'abacus', no such engine"),
        (DataError(column="age", value=np.float64(2.5), row=1), "column 'age' has 2.5 in row 1"),
        (
            DataError("which is not a number", column="age", value="n/a", row=17, remedy="pass missing=['n/a']"),
            "column 'age' has 'n/a' in row 17, which is not a number: pass missing=['n/a']",
        ),
        (DataError("cannot be used: it is empty", column="x"), "column 'x' cannot be used: it is empty"),
        (
            DataError("has no label", column="risk", row=3, remedy="fill it in"),
            "column 'risk' has no label in row 3: fill it in",
        ),
    ],
)
def test_what_the_message_already_contains_is_not_repeated(error, text):
    assert str(error) == text


def test_a_long_value_is_cut():
    assert len(str(DataError(column="note", value="x" * 10_000))) < 120


def test_a_long_message_is_cut_and_its_remedy_is_not():
    error = DataError(f"there is no column {'x' * 10_000!r}", remedy="look at the header")
    assert len(str(error)) < 1_100
    assert str(error).endswith("...: look at the header")


def test_every_error_is_a_likely_error_with_an_exit_code():
    codes = {
        LikelyError: 1,
        ResourceError: 6,
        SaveError: 6,
        UsageError: 2,
        DataError: 3,
        ForgetError: 3,
        SchemaError: 3,
        ModelFileError: 4,
    }
    for kind, code in codes.items():
        assert issubclass(kind, LikelyError)
        assert kind.exit_code == code
    assert all(issubclass(kind, ValueError) for kind in codes if kind not in (LikelyError, ResourceError, SaveError))
    assert issubclass(SaveError, OSError)
    assert issubclass(LikelyWarning, UserWarning)


def test_an_error_survives_the_way_back_from_another_process():
    error = pickle.loads(pickle.dumps(DataError("not a number", column="age", value="n/a", row=17, remedy="clean it")))
    assert str(error) == "column 'age' has 'n/a' in row 17, not a number: clean it"
    assert (error.column, error.value, error.row, error.remedy) == ("age", "n/a", 17, "clean it")
