"""Columns of text of a Parquet file as the indices that it stores, unpacked by compiled loops in half of Arrow's time.

Only what writers usually make is read so: pages of version 1 in which all cells are indices into a small dictionary. All
else, and whatever is damaged, is left to Arrow, and so is the dictionary itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.kernels import parquet_pages as page
from likely.kernels.kernel import worth_compiling
from likely.kernels.parallel import in_parallel
from likely.sources.arrow_arrays import one_chunk

MANY_CELLS = 10_000_000  # of text in a file: from here on the loops are compiled if need be
ARROW = 1.2e-9  # seconds that a cell takes longer with Arrow
FEWEST_ROWS = 100_000  # of a row group: for fewer, finding the pages takes as long as is gained
MOST_BYTES = 1 << 25  # of all columns of a row group, which are in memory while its rows are read
BYTES_A_ROW = 3  # at most, of a column: an index has up to two
MOST_PAGES, LONGEST_PAGE = 1 << 10, 1 << 18  # of a column of a row group, and rows
CODECS = {"UNCOMPRESSED": "", "SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "BROTLI": "brotli"}


@dataclass(frozen=True)
class StoredIndices:
    """A column of a row group: its pages as they are stored, and their dictionary."""

    data: NDArray[np.uint8]
    pages: NDArray[np.int64]
    ends: NDArray[np.int64]  # the row behind each page
    nullable: bool
    codec: Any
    entries: int
    dictionary: Any = None

    @classmethod
    def read(cls, file: Any, column: Any, rows: int, nullable: bool) -> StoredIndices | None:
        """The pages of a column, as its metadata describe it; None if some are of another kind."""
        import pyarrow as pa

        size, start, most = column.total_compressed_size, column.dictionary_page_offset, column.total_uncompressed_size
        if not start or size <= 0 or most > BYTES_A_ROW * rows or column.compression not in CODECS or column.file_path:
            return None
        data, pages = np.zeros(size + page.PADDING, np.uint8), np.zeros((MOST_PAGES, page.HEADER), np.int64)
        file.seek(start)
        if file.readinto(data[:size]) != size or (count := page.read_headers.fast(data, pages)) < 2:
            return None
        first, indices = pages[0], pages[1:count]
        values, unpacked, encoding = (indices[:, each] for each in (page.VALUES, page.UNPACKED, page.ENCODING))
        ends, codec = np.cumsum(values), CODECS[column.compression]
        usual = (
            first[page.KIND] == page.DICTIONARY
            and (indices[:, page.KIND] == page.DATA).all()
            and ((encoding == page.INDICES) | (encoding == page.OLD_INDICES)).all()
            and (not nullable or (indices[:, page.LEVELS] == page.RUNS).all())
            and ((values > 0) & (values <= LONGEST_PAGE) & (unpacked > 0) & (unpacked <= most)).all()
            and ends[-1] == rows
        )
        entries = int(first[page.VALUES])
        return cls(data, indices, ends, nullable, codec and pa.Codec(codec), entries) if usual else None

    def rows(self, start: int, stop: int) -> Any:
        """A dictionary array of some rows; None if the pages are damaged."""
        import pyarrow as pa

        first, last = np.searchsorted(self.ends, [start, stop - 1], side="right")
        pages = self.pages[first : last + 1]
        sizes = np.column_stack([pages[:, page.VALUES], np.cumsum(pages[:, page.UNPACKED])])
        try:
            content = b"".join([*map(self._unpacked, pages.tolist()), bytes(page.PADDING)])
        except (pa.ArrowException, OSError):
            return None
        if len(content) != sizes[-1, 1] + page.PADDING:
            return None
        codes, skipped = np.empty(stop - start, np.int32), start - int(self.ends[first] - pages[0, page.VALUES])
        data, entries = np.frombuffer(content, np.uint8), len(self.dictionary)
        missing = page.read_indices.fast(data, sizes, skipped, entries, self.nullable, codes)
        if missing < 0:
            return None
        there = pa.py_buffer(np.packbits(codes >= 0, bitorder="little")) if missing else None
        made = pa.Array.from_buffers(pa.int32(), len(codes), [there, pa.py_buffer(codes)], missing)
        return pa.DictionaryArray.from_arrays(made, self.dictionary, safe=False)

    def _unpacked(self, one: list[int]) -> Any:
        content = self.data[one[page.START] : one[page.START] + one[page.PACKED]]
        return self.codec.decompress(content, one[page.UNPACKED]) if self.codec else content


@dataclass
class TextIndices:
    """The columns of text of an open Parquet file, read as they are stored where possible.

    Attributes
    ----------
    file : binary file
        The file without a buffer.
    by_arrow : pyarrow.parquet.ParquetFile
        The same file, which makes dictionaries of the columns of text.
    text : sequence of str
        These columns.
    parallel : bool
        Whether columns are read in parallel.
    """

    file: Any
    by_arrow: Any
    text: Sequence[str]
    parallel: bool
    _places: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        wanted = {name for name in self.text if "." not in name}  # others may be the path of a nested column
        kinds = [self.by_arrow.schema.column(j) for j in range(self.by_arrow.metadata.num_columns if wanted else 0)]
        flat = {kind.path: j for j, kind in enumerate(kinds) if not kind.max_repetition_level and kind.max_definition_level < 2}
        self._places = {name: place for name, place in flat.items() if name in wanted}
        cells = self.by_arrow.metadata.num_rows * len(self._places)
        if cells < MANY_CELLS and not worth_compiling(ARROW * cells, page.read_headers, page.read_indices):
            self._places = {}

    def can_read(self, groups: Sequence[int]) -> bool:
        """Whether it may be tried for these row groups."""
        metadata = self.by_arrow.metadata
        return bool(self._places) and all(metadata.row_group(group).num_rows >= FEWEST_ROWS for group in groups)

    def batches(self, group: int, rows: int, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of at most so many rows of a row group, with some of the columns."""
        import pyarrow as pa

        stored, start = self._stored(group, names), 0
        others = [name for name in names if name not in stored]
        for batch in self.by_arrow.iter_batches(rows, row_groups=[group], columns=others, use_threads=self.parallel):
            stop = start + batch.num_rows

            def read(name: str, start: int = start, stop: int = stop) -> Any:
                found = stored[name].rows(start, stop)
                return self._by_arrow(group, name)[start:stop] if found is None else found

            made = in_parallel(read, list(stored)) if self.parallel else map(read, stored)
            columns = dict(zip(batch.schema.names, batch.columns, strict=True)) | dict(zip(stored, made, strict=True))
            yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
            start = stop
        if stored and start != self.by_arrow.metadata.row_group(group).num_rows:
            raise pa.ArrowInvalid("columns do not have the same size")

    def _by_arrow(self, group: int, name: str) -> Any:
        """A column of a row group as Arrow reads it, which raises the error of a damaged one."""
        return one_chunk(self.by_arrow.read_row_group(group, columns=[name], use_threads=self.parallel).column(0))

    def _stored(self, group: int, names: Sequence[str]) -> dict[str, StoredIndices]:
        """The columns of a row group that can be read as they are stored."""
        described, left = self.by_arrow.metadata.row_group(group), MOST_BYTES
        found: dict[str, StoredIndices] = {}
        for name in [name for name in names if name in self._places]:
            column = described.column(self._places[name])
            left -= column.total_compressed_size
            if left < 0:
                break
            nullable = self.by_arrow.schema.column(self._places[name]).max_definition_level > 0
            if (stored := StoredIndices.read(self.file, column, described.num_rows, nullable)) is None:
                del self._places[name]  # row groups are mostly alike
            else:
                found[name] = stored
        some = self.by_arrow.iter_batches(1, row_groups=[group], columns=list(found), use_threads=self.parallel)
        first = next(some, None) if found else None
        if first is None:
            return {}
        read = {name: replace(each, dictionary=first[name].dictionary) for name, each in found.items()}
        return {name: each for name, each in read.items() if len(each.dictionary) == each.entries}
