"""Parquet files of predictions have the rows and types of the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likely.cli._parquet_writer import WRITTEN_AT_ONCE, ParquetWriter


def _written(path: Path, *batches: dict[str, pa.Array]) -> pa.Table:
    out = ParquetWriter(str(path))
    for batch in batches:
        out.write(dict(batch))
    out.close()
    return pq.read_table(path)


def _texts(values: list[str | None], rows: int) -> pa.Array:
    return pa.array([values[i % len(values)] for i in range(rows)])


@pytest.mark.parametrize("rows", [10, WRITTEN_AT_ONCE])
def test_texts_in_dictionaries_are_written_as_texts_whatever_the_dictionary_of_each_batch(tmp_path: Path, rows: int) -> None:
    one, two = _texts(["b", None, "a"], rows), _texts(["c", "b", ""], rows)
    numbers = pa.array(np.arange(rows) / 3)
    table = _written(
        tmp_path / "out.parquet",
        {"t": one.dictionary_encode(), "x": numbers, "n": one},
        {"t": two.dictionary_encode(), "x": numbers, "n": two.dictionary_encode()},
        {"t": two, "x": numbers, "n": ["z"] * rows},
    )
    assert table.schema.types == [pa.string(), pa.float64(), pa.string()]
    assert table["t"].to_pylist() == [*one.to_pylist(), *two.to_pylist(), *two.to_pylist()]
    assert table["n"].to_pylist() == [*one.to_pylist(), *two.to_pylist(), *["z"] * rows]
    assert table["x"].to_pylist() == numbers.to_pylist() * 3


def test_types_that_are_not_parquets_own_are_kept(tmp_path: Path) -> None:
    when = pa.array([1_700_000_000_000_000, None], pa.timestamp("us", "Europe/Berlin"))
    long = pa.array(["a", None], pa.large_string())
    table = _written(tmp_path / "out.parquet", {"t": when, "s": long, "c": pa.array(["u", "v"]).dictionary_encode()})
    assert table.schema.types == [when.type, pa.large_string(), pa.string()]
    assert table["c"].to_pylist() == ["u", "v"]


def test_a_dictionary_with_a_null_value_is_written(tmp_path: Path) -> None:
    odd = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int32()), pa.array(["a", None]))
    assert _written(tmp_path / "out.parquet", {"t": odd})["t"].to_pylist() == ["a", None, None]


def test_numbers_declared_as_categories_stay_numbers(tmp_path: Path) -> None:
    odd = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array([7, 8]))
    assert _written(tmp_path / "out.parquet", {"t": odd})["t"].to_pylist() == [8, 7]
