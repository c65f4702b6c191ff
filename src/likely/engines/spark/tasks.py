"""Functions that run inside the tasks of Spark, from the record batches of a partition to record batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from likely.engines.engine import CountTask, PartTask
from likely.engines.spark._parquet_parts import Piece, read_pieces
from likely.errors import LikelyError
from likely.kernels.thread_count import limited_to

MapFunction = Callable[[Iterator[Any]], Iterator[Any]]
RESULT = "part binary, error string"  # a counted part, or the error that it ended in


def task_function(task: PartTask, *, errors_as_rows: bool = False) -> MapFunction:
    """The function for `mapInArrow`; Spark sends the bytes of the task, and names of functions."""
    return partial(_counted if errors_as_rows else _mapped, task.run, task.state)


def renamed(names: Sequence[str], work: MapFunction, batches: Iterator[Any]) -> Iterator[Any]:
    """Do the work on batches whose columns have their real names again."""
    yield from work(batch.rename_columns(list(names)) for batch in batches)


def _mapped(run: Any, state: bytes, batches: Iterator[Any]) -> Iterator[Any]:
    with limited_to(1):  # Spark runs a task for every core
        yield from run(state, batches)


def _counted(run: Any, state: bytes, batches: Iterator[Any]) -> Iterator[Any]:
    """Counted parts. An error of the data is returned as a result: Spark would repeat the task and hide the message."""
    try:
        yield from _mapped(run, state, batches)
    except LikelyError as error:
        yield _row(None, to_text(error))


def file_function(task: CountTask, parts: Sequence[Sequence[Piece]], columns: Mapping[str, tuple[str, Any]]) -> MapFunction:
    """The function for `mapInArrow` over the numbers of parts: a task reads the row groups of its part and counts them."""
    pieces = [[(piece.path, piece.size, piece.groups) for piece in part] for part in parts]
    return partial(_counted_files, task.run, task.state, pieces, dict(columns))


def _counted_files(run: Any, state: bytes, parts: Any, columns: Any, numbers: Iterator[Any]) -> Iterator[Any]:
    for batch in numbers:
        for i in batch.column(0).to_pylist():
            yield from _counted(run, state, read_pieces([Piece(*each) for each in parts[i]], columns))


def adding_function(task: CountTask) -> MapFunction:
    """The function for `mapInArrow` that adds the parts of a group."""
    return partial(_added, task.total)


def _added(total: Any, batches: Iterator[Any]) -> Iterator[Any]:
    held: list[bytes] = []
    for batch in batches:
        found = batch.to_pydict()
        errors = [error for error in found["error"] if error is not None]
        if errors:
            yield _row(None, errors[0])
            return
        held += found["part"]
    if held:
        yield part_row(total(held))


def part_row(content: bytes) -> Any:
    """A counted part as a record batch of one row."""
    return _row(content, None)


def _row(content: bytes | None, error: str | None) -> Any:
    import pyarrow as pa

    return pa.record_batch([pa.array([content], pa.binary()), pa.array([error], pa.string())], ["part", "error"])


def to_text(error: LikelyError) -> str:
    """An error as JSON: its class, message and column."""
    return json.dumps([type(error).__name__, str(error), error.column if isinstance(error.column, str) else None])


def as_messages(batches: Iterator[Any]) -> Iterator[Any]:
    """Every batch as the bytes of an Arrow stream."""
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        content = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.record_batch([content], ["batch"])
