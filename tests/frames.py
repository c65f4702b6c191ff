"""One small mixed table with gaps, in every library that makes frames."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

COLUMNS = {
    "colour": ["red", "blue", None, "red", "green", "blue", "red", "green"] * 5,
    "member": [True, False, None, True, False, True, True, False] * 5,
    "age": [31.0, None, 25.5, 40.0, 18.0, 63.0, 22.0, 35.0] * 5,
    "visits": [1, 2, None, 4, 5, 6, 7, 8] * 5,
}
LABELS = ["yes", "no", "no", "yes", "yes", "no", "yes", "no"] * 5


def pandas_frame(columns=COLUMNS):
    frame = pd.DataFrame(columns)
    return frame.astype({"colour": "category", "visits": "Int64"})


FRAMES = {
    "pandas": pandas_frame,
    "pandas of objects": lambda columns=COLUMNS: pd.DataFrame(columns).astype(object),
    "polars": lambda columns=COLUMNS: pl.DataFrame(columns),
    "polars categories": lambda columns=COLUMNS: pl.DataFrame(columns).cast({"colour": pl.Categorical}),
    "arrow": lambda columns=COLUMNS: pa.table(columns),
    "arrow dictionary": lambda columns=COLUMNS: pa.table(columns | {"colour": pa.array(columns["colour"]).dictionary_encode()}),
}  # fmt: skip
EACH_FRAME = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
