"""CSV parser based on Arrow, for regular files: memory is bounded by the block size.

A batch ends at the end of a block, so its rows depend only on the file and the batch size, not on the number of cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likely.sources.csv_files import CheckedCsv

BLOCK = 1 << 19  # bytes that a thread of Arrow parses at a time, with one block read ahead for each core
FEWEST_ROWS = 64  # minimum rows of a block, unless they are very long


def tables(
    checked: CheckedCsv, places: list[int], header: int, most_rows: int, most_bytes: int
) -> Iterator[tuple[int, list[Any]]]:
    """Batches: number of rows, and the requested columns as text, null where a cell is empty."""
    import pyarrow as pa

    waiting: list[Any] = []
    rows = size = 0
    with pa.OSFile(checked.readable) as file:
        for batch in _open(file, checked, places, header, most_bytes):
            bytes_read = batch.get_total_buffer_size()
            if waiting and (rows + batch.num_rows > most_rows or size + bytes_read > most_bytes):
                yield rows, _joined(waiting, places)
                waiting, rows, size = [], 0, 0
            waiting.append(batch)
            rows, size = rows + batch.num_rows, size + bytes_read
    if rows:
        yield rows, _joined(waiting, places)


def _joined(batches: list[Any], places: list[int]) -> list[Any]:
    import pyarrow as pa

    if len(batches) == 1:
        return list(batches[0].columns[: len(places)])
    return [pa.concat_arrays([batch.column(i) for batch in batches]) for i in range(len(places))]


def _open(file: Any, checked: CheckedCsv, places: list[int], header: int, most_bytes: int) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    names = [f"c{i}" for i in range(len(checked.names))]
    wanted = [names[i] for i in places] or names[:1]  # rows are counted even if no column is requested
    longest = checked.survey.longest
    # A row may not span more than two blocks; blocks of a wide table have many rows, to amortise the cost per column.
    block = max(min(BLOCK, most_bytes), min(FEWEST_ROWS * longest, most_bytes), 2 * longest + 4)
    return csv.open_csv(
        file,
        csv.ReadOptions(block_size=block, column_names=names, skip_rows_after_names=header),
        csv.ParseOptions(delimiter=checked.delimiter, newlines_in_values=checked.survey.quoted),
        csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.string()),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
