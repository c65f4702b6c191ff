"""Counting of a network's rows in parts, in other processes: a plan goes out as bytes, and what was counted comes back."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from likely.engines.engine import CountedSource, CountTask, Engine
from likely.engines.spark.tasks import part_row
from likely.errors import LikelyWarning, ResourceError
from likely.model import model_file
from likely.networks._left_out import naming_columns
from likely.networks._row_sums import Chosen, RowSum, RowSums, total
from likely.networks._table_reader import (
    CHUNK,
    EMPTY,
    FEW,
    STRENGTH,
    KindChangedError,
    TableReader,
    chunks,
    settled,
)
from likely.networks.family_counts import LinearMoments, NetworkTally
from likely.networks.graph import Graph
from likely.networks.rows import FEW_NUMBERS, Rows, Wanted, require_columns
from likely.schema import CATEGORY, NUMBER, Column
from likely.sources import ReadOptions, Source, open_source, require_rows
from likely.sources.arrow_rows import ArrowRows
from likely.sources.number_formats import NumberFormat

SENT = "the network that was sent to this process"
MOST_BYTES = 1 << 28  # of rows that are kept, since they cannot be counted where they are
MOMENTS = ("n", "mean", "scatter")


@dataclass(frozen=True)
class NetworkPlan:
    """How every part is counted.

    Attributes
    ----------
    wanted : Wanted
        The columns.
    modes : mapping of str to str
        What each column holds, as far as it is known.
    graph : Graph or None
        The arcs under which complete rows are counted; None keeps the rows.
    reading : ReadOptions
        Missing-value tokens and number formats.
    left_out : tuple of str
        Columns that are not read, because they name the rows.

    """

    wanted: Wanted
    modes: Mapping[str, str]
    graph: Graph | None
    reading: ReadOptions
    left_out: tuple[str, ...] = ()

    @staticmethod
    def of(sample: Any, wanted: Wanted, reading: ReadOptions, graph: Graph | None, columns: Chosen) -> NetworkPlan:
        """The plan from the first rows of a table: names, kinds and number formats of its columns."""
        source = open_source(sample, reading)
        batches = list(source.batches())
        require_rows(sum(batch.rows for batch in batches), source.label)
        there = list(batches[0].names)
        every = wanted.names is None
        if every:
            wanted = replace(wanted, names=[n for n in there if n not in {*columns[0], wanted.weights}])
        if isinstance(wanted.weights, str):
            require_columns([wanted.weights], there, (), source.label)
        require_columns(wanted.names or (), there, wanted.hidden, source.label)
        modes: dict[str, str] = {}
        while True:
            reader = TableReader(wanted, modes)
            try:
                rows = reader.read(batches)
                break
            except KindChangedError as changed:
                modes[changed.name] = changed.mode
        left = tuple(naming_columns(rows, columns[1])) if every else ()  # or no two rows would be alike
        wanted = replace(wanted, names=[name for name in wanted.names or () if name not in left])
        formats = {name: each for batch in batches for name, each in getattr(batch, "formats", {}).items()}
        tokens = reading.missing if reading.missing is not None else source.missing.tokens
        return NetworkPlan(wanted, reader.modes, graph, ReadOptions(tuple(tokens), formats=formats), left)

    def to_bytes(self) -> bytes:
        """The plan as the bytes of a model file."""
        wanted = self.wanted
        header = {
            "names": list(wanted.names or ()), "known": _written(list((wanted.known or {}).values())),
            "hidden": list(wanted.hidden), "kinds": dict(wanted.kinds or {}), "unseen": wanted.unseen,
            "weights": wanted.weights, "modes": dict(self.modes), "missing": list(self.reading.missing or ()),
            "graph": _written_graph(self.graph),
            "formats": {name: [f.code, list(f.non_numeric), f.description] for name, f in self.reading.formats.items()},
        }  # fmt: skip
        return model_file.to_bytes(header, {})

    @staticmethod
    def from_bytes(content: bytes) -> NetworkPlan:
        """The plan that `to_bytes` wrote."""
        header, _, _ = model_file.from_bytes(content, SENT)
        known = {column.name: column for column in _read(header["known"])}
        wanted = Wanted(header["names"], known, header["hidden"], header["kinds"], header["unseen"], header["weights"])
        formats = {name: NumberFormat(code, tuple(texts), said) for name, (code, texts, said) in header["formats"].items()}
        graph = _read_graph(header["graph"])
        return NetworkPlan(wanted, header["modes"], graph, ReadOptions(tuple(header["missing"]), formats=formats))

    def count(self, batches: Iterator[Any]) -> PartSums | None:
        """What was counted of the record batches of a part; None if it has no rows."""
        source = ArrowRows(batches, self.reading, "a part of the rows")
        reader, found = TableReader(self.wanted, self.modes), RowSum(self.graph, merging=True)
        for some in chunks(source.batches(), None, CHUNK):
            try:
                found.add(reader.read(some))
            except KindChangedError as changed:
                return PartSums(None, {}, {changed.name: changed.mode})
        if not reader.rows:
            return None
        sums = found.total([reader.columns[name] for name in reader.names or ()])
        return checked(PartSums(sums, reader.modes))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a part needs."""
        return (*(self.wanted.names or ()), *([self.wanted.weights] if self.wanted.weights else []))


@dataclass(frozen=True)
class PartSums:
    """What was counted of some parts of a table, or columns that are of another kind than was planned.

    Attributes
    ----------
    sums : RowSums or None
        What was counted.
    modes : mapping of str to str
        What the columns hold.
    changed : mapping of str to str
        Columns of another kind than was planned: the table is to be counted again.

    """

    sums: RowSums | None
    modes: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows there were."""
        return 0 if self.sums is None else self.sums.number

    without_label = 0

    def to_bytes(self) -> bytes:
        """The sum as the bytes of a model file."""
        if self.sums is None:
            return model_file.to_bytes({"changed": dict(self.changed)}, {})
        sums, tally = self.sums, self.sums.counted
        header = {
            "changed": {}, "modes": dict(self.modes), "columns": _written(sums.columns), "number": sums.number,
            "known": dict(sums.known), "weight": None if tally is None else tally.rows.hex(),
            "graph": _written_graph(None if tally is None else tally.graph),
        }  # fmt: skip
        arrays = _arrays_of(sums.rows)
        for i, column in enumerate(sums.columns if tally is not None else ()):
            assert tally is not None
            if column.kind == CATEGORY:
                arrays[f"t{i}"] = tally.tables[column.name]
            else:
                arrays |= {f"{key}{i}": getattr(tally.moments[column.name], key) for key in MOMENTS}
        return model_file.to_bytes(header, arrays)

    @staticmethod
    def from_bytes(content: bytes) -> PartSums:
        """The sum that `to_bytes` wrote."""
        header, arrays, _ = model_file.from_bytes(content, SENT)
        if header["changed"]:
            return PartSums(None, {}, header["changed"])
        columns = tuple(_read(header["columns"]))
        tally = None
        if (graph := _read_graph(header["graph"])) is not None:
            tables = {c.name: arrays[f"t{i}"] for i, c in enumerate(columns) if c.kind == CATEGORY}
            moments = {c.name: LinearMoments(*(arrays[f"{key}{i}"] for key in MOMENTS))
                       for i, c in enumerate(columns) if c.kind == NUMBER}  # fmt: skip
            weight = float.fromhex(header["weight"])
            tally = NetworkTally(graph, {c.name: c for c in columns}, tables, moments, weight)
        return PartSums(RowSums(_rows_of(columns, arrays), tally, header["number"], header["known"]), header["modes"])


def _written(columns: Sequence[Column]) -> list[Any]:
    return [[c.name, c.kind, [model_file.to_json(value, c.name) for value in c.values]] for c in columns]


def _read(written: Sequence[Any]) -> list[Column]:
    return [Column(name, kind, tuple(model_file.from_json(v) for v in values)) for name, kind, values in written]


def _written_graph(graph: Graph | None) -> list[Any] | None:
    return None if graph is None else [[node, list(graph.parents[node])] for node in graph.nodes]


def _read_graph(written: Sequence[Any] | None) -> Graph | None:
    return None if written is None else Graph(tuple(n for n, _ in written), {n: tuple(some) for n, some in written})


def _arrays_of(rows: Rows) -> dict[str, Any]:
    """Rows as arrays of a model file, in which all numbers are finite and codes start at 0."""
    codes = rows.codes.astype(np.int32) + 1
    gone = np.isnan(rows.numbers)
    return {
        "codes": codes.astype(np.uint8) if codes.size and codes.max() < 256 else codes,
        "numbers": np.where(gone, 0.0, rows.numbers), "gone": gone.astype(np.uint8), "weights": rows.weights,
    }  # fmt: skip


def _rows_of(columns: tuple[Column, ...], arrays: Mapping[str, Any]) -> Rows:
    codes = np.ascontiguousarray(arrays["codes"].astype(np.int32) - 1)
    numbers = np.where(arrays["gone"] > 0, np.nan, arrays["numbers"])
    return Rows(columns, codes, numbers, np.asarray(arrays["weights"]))


def checked(found: PartSums) -> PartSums:
    """The sum, if the rows that it keeps are few enough to be sent."""
    assert found.sums is not None
    rows = found.sums.rows
    size = rows.codes.nbytes + rows.numbers.nbytes + rows.weights.nbytes
    if size > MOST_BYTES:
        raise ResourceError(
            f"{rows.n:,} different rows cannot be counted where they are (cells are missing, nodes are hidden, or arcs are to "
            f"be learned), and would take {size:,} bytes in one process",
            remedy="leave out columns, merge their values or cut numbers into bins; or learn the arcs from a sample of rows, "
            "and fill in missing cells before the table is counted",
        )
    return found


def added(parts: Sequence[PartSums]) -> PartSums:
    """The sum of several parts."""
    changed: dict[str, str] = {}
    for part in parts:
        changed |= {n: m for n, m in part.changed.items() if STRENGTH[m] > STRENGTH[changed.get(n, EMPTY)]}
    sums = [part.sums for part in parts if part.sums is not None]
    modes: dict[str, str] = {}
    for part in parts:
        for name, mode in part.modes.items():
            one, other = sorted((modes.get(name, EMPTY), mode), key=STRENGTH.__getitem__)
            if one not in (EMPTY, other):
                changed[name] = other
            modes[name] = other
    if changed:
        return PartSums(None, {}, changed)
    found = total(sums)
    many = {c.name: NUMBER for c in found.columns if modes.get(c.name) == FEW and len(c.values) > FEW_NUMBERS}
    return PartSums(None, {}, many) if many else checked(PartSums(found, modes))


def total_part(contents: Sequence[bytes]) -> PartSums:
    """The sum of several parts that `PartSums.to_bytes` wrote."""
    return added([PartSums.from_bytes(content) for content in contents])


def total_bytes(contents: Sequence[bytes]) -> bytes:
    """The sum of several parts, from bytes to bytes."""
    return contents[0] if len(contents) == 1 else total_part(contents).to_bytes()


def count_part(state: bytes, batches: Iterator[Any]) -> Iterator[Any]:
    """Count the record batches of a part; yields the bytes of what was counted, or nothing if there are no rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)  # the sum of all parts is what may be doubtful
        found = NetworkPlan.from_bytes(state).count(batches)
    if found is not None:
        yield part_row(found.to_bytes())


def _given(task: CountTask) -> CountTask:
    return task


def counted_in_parts(engine: Engine, sample: Source, plan: NetworkPlan) -> RowSums:
    """The sum of all parts; counted again where a column turns out to be of another kind than it seemed."""
    nothing: Any = None  # an engine needs the columns of a plan only where it reads the rows itself
    part: Any = total_part
    while True:
        task = CountTask(count_part, plan.to_bytes(), plan.columns, total=total_bytes, part=part)
        found: Any = engine.tally(CountedSource(sample, nothing), partial(_given, task), None)
        if not found.changed:
            break
        plan = replace(plan, modes={**plan.modes, **found.changed})
    columns = {c.name: c for c in found.sums.columns}
    final: RowSums = found.sums.within(tuple(settled(columns, found.modes, plan.wanted.known or {}).values()))
    return replace(final, left_out=plan.left_out)
