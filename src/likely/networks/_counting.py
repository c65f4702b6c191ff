"""Counting of a network's rows where they are: in memory, in batches of any source, in the tasks of Spark, in a database."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from likely.engines.engine import AUTO, DATABASE, Engine, choose
from likely.errors import UsageError
from likely.networks._database_rows import sums_in_database
from likely.networks._part_counts import NetworkPlan, counted_in_parts
from likely.networks._row_sums import RowSum, RowSums
from likely.networks._table_reader import CHUNK, KindChangedError, TableReader, chunks
from likely.networks.graph import Graph
from likely.networks.rows import Rows, Wanted, rows_at_hand, rows_of_batches
from likely.sources import Batch, ReadOptions, Source, open_source, released

MOST_HELD = 1 << 24  # cells of a table that is coded as a whole
BYTES_A_CELL = 40  # while a chunk is coded


@dataclass(frozen=True)
class Counting:
    """How the rows of a table are counted.

    Parameters
    ----------
    wanted : Wanted
        The columns.
    reading : ReadOptions
        How a source is read.
    engine : str or Engine
        Where the rows are counted, as for `likely.learn`.
    graph : Graph or None
        The arcs under which complete rows are counted; None keeps the rows.
    merging : bool
        Whether rows that this process keeps become one where they are alike.
    aside : sequence of str
        Columns that are not read, where all others are.
    asked : collection of str
        Columns that are read even if they name the rows.

    """

    wanted: Wanted
    reading: ReadOptions
    engine: str | Engine = AUTO
    graph: Graph | None = None
    merging: bool = True
    aside: Sequence[str] = ()
    asked: frozenset[Any] = frozenset()


def sums_of(data: Any, how: Counting) -> tuple[RowSums, str]:
    """What is kept of the rows of any source, and the engine that has counted them with the reason why."""
    if isinstance(data, Rows):
        return RowSums.of(data), ""
    where, rows = choose(how.engine, data)
    engine = f"{where.name}: {where.reason}"
    if where.name == DATABASE:
        asked = str(how.engine)
        chosen = (how.aside, how.asked)
        return sums_in_database(rows, how.wanted, how.reading, asked, graph=how.graph, columns=chosen), engine
    if not where.supports_parts:
        return _here(rows, how), engine
    if not (how.wanted.weights is None or isinstance(how.wanted.weights, str)):
        raise UsageError("weights= of a Spark table must be the name of one of its columns")
    plan = NetworkPlan.of(rows, how.wanted, how.reading, how.graph, (how.aside, how.asked))
    found = counted_in_parts(where, open_source(rows, how.reading), plan)
    return found, f"{where.name}: {where.reason}"  # which may have changed meanwhile


def _here(data: Any, how: Counting) -> RowSums:
    """The rows of a source that this process reads: all at once if they are few, else chunk by chunk."""
    at_hand = rows_at_hand(data, how.wanted, how.reading)
    if at_hand is not None:
        return RowSums.of(at_hand)
    source = open_source(data, how.reading)
    most, chunk = _limits(how.reading)
    with released(source):
        batches = iter(source.batches())
        held: list[Batch] = []
        cells = 0
        for batch in batches:
            held.append(batch)
            cells += batch.rows * max(len(batch.names), 1)
            del batch
            if cells > most:
                break
        following = next(batches, None)
        if following is None:
            return RowSums.of(rows_of_batches(held, how.wanted, source.label))
        held.append(following)
        del following
        found = _streamed(source, held, batches, how, chunk)
    how.reading.check_memory()
    return found


def _given_away(held: list[Batch]) -> Iterator[Batch]:
    """The batches, each of which is let go when the next one is asked for."""
    held.reverse()
    while held:
        yield held.pop()


def _limits(reading: ReadOptions) -> tuple[int, int]:
    """Cells of a table that is coded as a whole, and cells of a chunk; fewer within a memory limit."""
    if reading.memory_limit is None:
        return MOST_HELD, CHUNK
    most = max(reading.memory_limit // BYTES_A_CELL // 4, 1)
    return min(MOST_HELD, most), min(CHUNK, most)


def _streamed(source: Source, held: list[Batch], rest: Iterator[Batch], how: Counting, chunk: int) -> RowSums:
    """The sum of all chunks; from the start again where a column turns out to be of another kind than it seemed."""
    modes: dict[str, str] = {}
    while True:
        reader, found = TableReader(how.wanted, modes), RowSum(how.graph, merging=how.merging)
        try:
            for some in chunks(itertools.chain(_given_away(held), rest), None, chunk):
                found.add(reader.read(some))
        except KindChangedError as changed:
            modes[changed.name] = changed.mode
            if isinstance(rest, Generator):  # a database has one reader at a time
                rest.close()
            held, rest = [], iter(source.batches())
            continue
        reader.finish(source.label)
        return found.total([reader.columns[name] for name in reader.names or ()])
