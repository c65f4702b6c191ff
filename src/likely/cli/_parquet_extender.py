"""Writer of a Parquet file that has all columns of another one, and some more."""

from __future__ import annotations

import contextlib
from typing import Any, Self

from likely.cli._parquet_writer import ParquetWriter
from likely.sources.parquet_extension import ParquetCopy, ParquetLayout, merge_metadata

MOST_CELLS = 1 << 23  # of the new columns in a row group, which are in memory until it is complete


class ParquetExtender(ParquetWriter):
    """Parquet writer of columns that are added to those of a file, which is copied meanwhile.

    The new columns have the row groups of the copied ones.
    """

    def __init__(self, path: str, layout: ParquetLayout) -> None:
        import pyarrow as pa

        self.copy = ParquetCopy(layout, path)
        self.layout, self.written = layout, 0
        self.waiting: list[Any] = []  # batches of rows of which no row group is complete
        self.rows = 0
        self.behind = Behind(path, layout.end)
        super().__init__(pa.PythonFile(self.behind, "w"))

    def put(self, batch: Any) -> None:
        """Append rows; a row group is written when all its rows are there."""
        import pyarrow as pa

        self.waiting.append(batch)
        self.rows += batch.num_rows
        sizes = self.layout.group_rows
        while self.written < len(sizes) and self.rows >= (size := sizes[self.written]):
            rows = pa.Table.from_batches(self.waiting)
            self.file.write_table(rows.slice(0, size), size)
            self.waiting = rows.slice(size).to_batches()
            self.rows -= size
            self.written += 1

    def compression(self) -> Any:
        """Compression of the columns; none for probabilities, which do not compress."""
        import pyarrow as pa

        return {field.name: "none" if pa.types.is_floating(field.type) else "snappy" for field in self.fields}

    def close(self) -> None:
        """Write the metadata of all columns."""
        self.layout.check_unchanged()  # before its rows are found to be others
        super().close()
        self.behind.file.close()
        self.copy.finish()
        merge_metadata(self.layout, self.behind.file.name, self.fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            if error is None:
                self.close()
        finally:
            self.copy.stop()
            with contextlib.suppress(OSError, ValueError):  # the file is removed, or complete already
                super().close()
            self.behind.file.close()
            self.layout.close()


class Behind:
    """The part of a file behind an offset, as a file of its own: Parquet files are written from the beginning of a file."""

    def __init__(self, path: str, start: int) -> None:
        self.file = open(path, "r+b")  # noqa: SIM115 -- closed by the writer
        self.file.seek(start)
        self.start = start
        self.closed = False

    def write(self, data: Any) -> int:
        """Append bytes."""
        return self.file.write(data)

    def tell(self) -> int:
        """Number of bytes so far."""
        return self.file.tell() - self.start

    def flush(self) -> None:
        """Flush the bytes to the operating system."""
        self.file.flush()

    def close(self) -> None:
        """Do nothing: the file is closed by the writer."""
