"""Indices of text are read from the pages of a Parquet file as Arrow reads them, whatever wrote or damaged it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from likely.errors import DataError
from likely.kernels import parquet_pages
from likely.kernels.thread_count import limited_to
from likely.sources import ReadOptions, _parquet_indices, open_source
from likely.sources.files import parquet_batches

ROWS = 30_000


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Read indices of files of any size; the names of the columns that were read so."""
    monkeypatch.setattr(_parquet_indices, "MANY_CELLS", 0)
    monkeypatch.setattr(_parquet_indices, "FEWEST_ROWS", 1)
    seen: list[str] = []
    stored = _parquet_indices.TextIndices._stored

    def recorded(self: Any, group: int, names: Any) -> Any:
        found = stored(self, group, names)
        seen.extend(found)
        return found

    monkeypatch.setattr(_parquet_indices.TextIndices, "_stored", recorded)
    return seen


def _table(seed: int = 0, rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"x": rng.normal(size=rows), "y": np.array(["no", "yes"])[rng.integers(0, 2, rows)]}
    for size in (1, 2, 3, 5, 17, 200, 257, 3_000):
        codes = rng.integers(0, size, rows)
        columns[f"c{size}"] = pa.array([f"é {i}" if i else "" for i in codes])
        columns[f"n{size}"] = pa.array([f"{i}" for i in codes], mask=rng.random(rows) < 0.2)
    columns["runs"] = pa.array([f"r{i // 700}" for i in range(rows)])
    columns["gaps"] = pa.array([None if i // 900 % 2 else f"r{i // 700 % 9}" for i in range(rows)])
    columns["nothing"] = pa.nulls(rows, pa.string())
    columns["large"] = pa.array(columns["c17"].to_pylist(), pa.large_string())
    columns["many"] = pa.array([f"{i}" for i in rng.permutation(rows)])
    return pa.table(columns)


def _read(path: Path, names: list[str], rows: int | None = None, reading: ReadOptions | None = None) -> pa.Table:
    """The columns, from their indices."""
    tables = []
    for batch in parquet_batches(str(path), names, reading or ReadOptions(), most=rows):
        batch.validate(full=True)
        tables.append(pa.table({name: _plain(batch[name]) for name in names}))
    return pa.concat_tables(tables)


def _plain(column: Any) -> Any:
    return column.dictionary_decode().cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _expected(table: pa.Table, names: list[str]) -> pa.Table:
    columns = {name: table[name].combine_chunks() for name in names}
    return pa.table({name: c.cast(pa.string()) if pa.types.is_large_string(c.type) else c for name, c in columns.items()})


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "written",
    [
        {},
        {"compression": "none", "row_group_size": 7_001},
        {"compression": "zstd", "data_page_size": 2_000},
        {"compression": "gzip", "max_rows_per_page": 777, "write_page_index": True},
        {"compression": "brotli", "version": "1.0", "write_statistics": False},
        {"compression": "lz4"},
        {"data_page_version": "2.0"},
        {"use_dictionary": ["c5", "n17", "many"], "dictionary_pagesize_limit": 20_000, "write_batch_size": 512},
    ],
)
def test_every_cell_is_that_of_arrow(tmp_path: Path, written: dict[str, Any], threads: int) -> None:
    table, path = _table(), tmp_path / "t.parquet"
    pq.write_table(table, path, **written)
    with limited_to(threads):
        for rows in (None, 4_096):
            assert _read(path, table.column_names, rows).equals(_expected(table, table.column_names))
        assert _read(path, ["n5", "c200"], 999).equals(_expected(table, ["n5", "c200"]))


def test_indices_are_read_where_writers_use_a_dictionary(tmp_path: Path, any_size: list[str]) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(_table(), path)
    _read(path, _table().column_names)
    assert {"y", "c1", "c3000", "n2", "n3000", "runs", "gaps", "large"} <= set(any_size)
    assert not {"x", "many"} & set(any_size)
    any_size.clear()
    _read(path, ["c5"], reading=ReadOptions(memory_limit=10**12))
    assert not any_size


def test_columns_that_cannot_be_missing_and_paths_with_points_are_read(tmp_path: Path, any_size: list[str]) -> None:
    path, inner = tmp_path / "t.parquet", pa.array([{"b": f"in {i % 3}"} for i in range(ROWS)])
    codes = pa.array([f"v{i % 11}" for i in range(ROWS)])
    fields = [pa.field("c", pa.string(), nullable=False), pa.field("a.b", pa.string()), pa.field("a", inner.type)]
    table = pa.table([codes, codes, inner], pa.schema(fields))
    pq.write_table(table, path)
    assert _read(path, ["c", "a.b"]).equals(pa.table({"c": codes, "a.b": codes}))
    assert any_size == ["c"]


def test_files_of_duckdb_are_read(tmp_path: Path, any_size: list[str]) -> None:
    path, table = tmp_path / "t.parquet", _table()
    with duckdb.connect() as connection:
        connection.register("t", table)
        connection.execute(f"copy (select * from t) to '{path}' (format parquet, row_group_size 10000, parquet_version v1)")
    assert _read(path, table.column_names).equals(_expected(table, table.column_names))
    assert {"c200", "n5"} <= set(any_size)


def test_the_model_is_that_of_rows_in_memory(tmp_path: Path) -> None:
    path, table = tmp_path / "t.parquet", _table(1).drop_columns(["many", "nothing"])
    pq.write_table(table, path, row_group_size=11_000)
    assert likely.learn(path, "y") == likely.learn(table, "y")


def _refused_or_read(path: Path) -> dict[str, list[Any]] | None:
    try:
        frames = list(open_source(str(path)).batches({"c": "category", "n": "category"}))
    except DataError:
        return None
    coded = {name: [frame.coded(name) for frame in frames] for name in "cn"}
    return {name: [[*each.values, None][i] for each in parts for i in each.codes.tolist()] for name, parts in coded.items()}


def test_a_damaged_file_is_refused_or_read_as_arrow_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rng = tmp_path / "t.parquet", np.random.default_rng(5)
    codes = rng.integers(0, 9, 400)
    table = pa.table({"c": [f"v{i}" for i in codes], "n": [None if i == 3 else f"v{i // 2}" for i in codes]})
    pq.write_table(table, path, max_rows_per_page=100, compression="none", write_statistics=False)
    data, whole = path.read_bytes(), _refused_or_read(path)
    assert whole == table.to_pydict()
    read = 0
    for bit in rng.permutation(8 * (len(data) - 900))[:1_000].tolist():
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        monkeypatch.setattr(_parquet_indices, "FEWEST_ROWS", 1)
        ours = _refused_or_read(path)
        monkeypatch.setattr(_parquet_indices, "FEWEST_ROWS", 10**9)
        # Arrow refuses headers of which nothing but what is never used is damaged, and takes a column for empty.
        assert ours in (None, _refused_or_read(path), whole), bit
        read += ours is not None
    assert read > 100


@pytest.mark.parametrize("seed", range(20))
def test_any_bytes_are_pages_or_are_none(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(200):
        data = np.append(rng.integers(0, 256, rng.integers(1, 300), np.uint8), np.zeros(parquet_pages.PADDING, np.uint8))
        data[: rng.integers(0, 4)] = 3
        pages = np.zeros((8, parquet_pages.HEADER), np.int64)
        assert parquet_pages.read_headers.fast(data, pages) <= 8
        sizes = np.array([[40, (len(data) - parquet_pages.PADDING) // 2], [25, len(data) - parquet_pages.PADDING]])
        out = np.empty(50, np.int32)
        if parquet_pages.read_indices.fast(data, sizes, 7, 5, bool(rng.integers(2)), out) >= 0:
            assert ((out >= -1) & (out < 5)).all()
