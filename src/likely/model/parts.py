"""Counting and scoring of a part of the rows in another process: it receives a model and returns a tally, both as bytes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from likely.engines import Plan
from likely.engines.adding import total as total_of
from likely.engines.engine import CountedSource, CountTask, Part, PartFunction, PartTask
from likely.engines.memory import tally_source
from likely.engines.spark.tasks import part_row
from likely.engines.targets import as_name
from likely.errors import LikelyWarning, SchemaError, UsageError, no_column
from likely.model import model_file
from likely.model.model import Model
from likely.model.parameters import with_taken
from likely.model.serialization import from_file, model_to_file
from likely.priors import priors
from likely.sources import Batch, MissingTokens, Source, missing_of, open_source
from likely.sources.arrow_rows import ArrowRows, regrouped
from likely.sources.row_access import complete, with_detected_kinds
from likely.sources.wrapper import SourceWrapper
from likely.tally import Tally

SENT = "the model that was sent to this process"
OWN = "parts"  # entry of the header beside those of a model


def to_bytes(model: Model, own: Mapping[str, Any] | None = None) -> bytes:
    """A model as the bytes of its file, with entries of one's own beside it."""
    header, arrays = model_to_file(model)
    return model_file.to_bytes(header | {OWN: dict(own or {})}, arrays)


def from_bytes(content: bytes) -> tuple[Model, dict[str, Any]]:
    """The model, and the entries beside it; damaged bytes are an error."""
    header, arrays, _ = model_file.from_bytes(content, SENT)
    own = header.pop(OWN, {})
    tally, prior, settings, stages, calibration = from_file(header, arrays)
    return Model(tally, prior, **settings, stages=stages, calibration=calibration), own


@dataclass(frozen=True)
class PartPlan:
    """How every part is counted: a model of no rows, and which columns may be dropped.

    Attributes
    ----------
    model : Model
        Columns, families, formats and settings; it has counted nothing.
    droppable : frozenset of str
        Columns that are dropped if they turn out to identify rows.
    refuse_unlabelled : bool
        Whether a row without a label is an error.
    """

    model: Model
    droppable: frozenset[str] = frozenset()
    refuse_unlabelled: bool = False

    @staticmethod
    def of(plan: Plan, gaps: MissingTokens, fields: Mapping[str, Any], *, refuse_unlabelled: bool) -> PartPlan:
        """The plan for parts of a table; `gaps` are the texts that were read as missing where the columns were planned."""
        tally = with_taken(tally_source((), plan), gaps)
        return PartPlan(Model(tally, priors(1.0), **fields), plan.droppable, refuse_unlabelled)

    def read_as_planned(self, rows: Any) -> Source:
        """A stream of rows, read with the formats, missing-value tokens and target of the plan."""
        return self.model.with_target(replace(rows, reading=self.model.reading), self.model.schema.target.name)

    def to_bytes(self) -> bytes:
        """The plan as the bytes of a model file."""
        own = {"droppable": sorted(self.droppable), "refuse_unlabelled": self.refuse_unlabelled}
        return to_bytes(self.model, own)

    @staticmethod
    def from_bytes(content: bytes) -> PartPlan:
        """The plan that `to_bytes` wrote."""
        model, own = from_bytes(content)
        return PartPlan(model, frozenset(own["droppable"]), own["refuse_unlabelled"])

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies for other processes are made from the bytes of a model file."""
        return PartPlan.from_bytes, (self.to_bytes(),)

    def task(self) -> CountTask:
        """The work on one part, for an engine."""
        return CountTask(count_part, self.to_bytes(), columns_read(self.model), total=total_bytes, part=total_part)

    def count(self, rows: Any) -> Part:
        """Count a part of the rows: any source that `learn` takes."""
        source = rows_of_part(self.model, rows)
        columns = tuple(replace(c, taken=()) for c in with_detected_kinds(self.model.schema.columns, source.inner))
        plan = replace(plan_of(self.model), columns=columns, droppable=self.droppable)
        counted = CountedSource(source, plan, self.refuse_unlabelled)
        tally = tally_source(counted.batches(), plan)
        return Part(with_taken(tally, missing_of(source)), counted.rows, counted.without_label)

    def part_to_bytes(self, part: Part) -> bytes:
        """A part as the bytes of a model file."""
        own = {"rows": part.rows, "without_label": part.without_label}
        return to_bytes(replace(self.model, tally=part.tally), own)


def columns_read(model: Model) -> tuple[str, ...]:
    """The columns that a part needs: the target, those of the model, dates from which some are derived, and weights."""
    dates = [part.origin for part in model.reading.parts.values()]
    wanted = [model.schema.target.name, *(c.name for c in model.schema.columns), *dates]
    return (*wanted, *([] if model.weights is None else [model.weights]))


def plan_of(model: Model) -> Plan:
    """Counting plan of a model."""
    target = model.schema.target
    return Plan(target.name, model.blocks, model.schema.columns, as_name(model.weights), model.schema.ignored,
                target_form=target.form, parts=model.reading.parts, sample=model.tally.sample is not None)  # fmt: skip


def rows_of_part(model: Model, rows: Any, *, labelled: bool = True) -> _Completed:
    """A part of the rows, read with the formats and missing-value tokens of a model; `labelled`: they must have its target."""
    return _Completed(model.with_target(open_source(rows, model.reading), model.schema.target.name), model, labelled)


@dataclass(frozen=True)
class _Completed(SourceWrapper):
    """A source with every column of a model; a column that is not there is an error."""

    model: Model
    labelled: bool = True

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        weights = self.model.weights
        needed = [self.model.schema.target.name] if self.labelled else []
        needed += [] if weights is None else [weights]
        for batch in self.inner.batches(kinds):
            for name in needed:
                if name not in batch.names:
                    raise no_column(self.label, name, batch.names, "rows to learn from need it")
            yield complete(batch, self.model.schema.columns, self.inner, "error")


def count_part(state: bytes, batches: Iterator[Any]) -> Iterator[Any]:
    """Count the record batches of a part; yields the bytes of what was counted, or nothing if there are no rows."""
    plan = PartPlan.from_bytes(state)
    for rows in record_batches(plan.model, batches):
        yield part_row(plan.part_to_bytes(plan.count(rows)))


@dataclass(frozen=True)
class WholePart:
    """A part of the rows as any source, instead of record batches."""

    rows: Any


def result_of(run: PartFunction, state: bytes, rows: Any) -> bytes | None:
    """Result of a task on a part of the rows, any source that `learn` takes: bytes, or None if there are no rows."""
    for found in run(state, WholePart(rows)):  # type: ignore[arg-type]
        content: bytes = found["part"][0].as_py()
        return content
    return None


def record_batches(model: Model, batches: Iterator[Any] | WholePart) -> Iterator[Any]:
    """The rows of a part as a source, once; nothing if there are no rows."""
    if isinstance(batches, WholePart):
        yield batches.rows
        return
    stream = _Replayed(batches)
    if stream.empty:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)  # the sum of all parts is what may be doubtful
        yield ArrowRows(stream, model.reading, "a part of the rows")


class _Replayed:
    """Record batches whose first one can be inspected before all are read."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._rest = (batch for batch in batches if batch.num_rows)
        self._first = next(self._rest, None)
        self.empty = self._first is None

    def __iter__(self) -> Iterator[Any]:
        yield self._first
        yield from self._rest


def total_part(contents: Sequence[bytes]) -> Part:
    """The sum of several parts that `PartPlan.part_to_bytes` wrote."""
    return _added(contents)[1]


def total_bytes(contents: Sequence[bytes]) -> bytes:
    """The sum of several parts, from bytes to bytes."""
    if len(contents) == 1:
        return contents[0]
    model, part = _added(contents)
    return PartPlan(model).part_to_bytes(part)


def _added(contents: Sequence[bytes]) -> tuple[Model, Part]:
    """The plan of the parts, as a model, and their sum."""
    known = [from_bytes(content) for content in contents]
    parts = [Part(model.tally, own["rows"], own["without_label"]) for model, own in known]
    return known[0][0], parts[0] if len(parts) == 1 else total(parts)


def total(parts: Iterable[Part]) -> Part:
    """The sum of several parts; a column that one of them dropped is dropped from all."""
    known = list(parts)
    kept = set.intersection(*({c.name for c in part.tally.schema.columns} for part in known))
    return Part(
        total_of([_without_dropped(part.tally, kept) for part in known]),
        sum(part.rows for part in known),
        sum(part.without_label for part in known),
    )


def _without_dropped(tally: Tally, kept: set[str]) -> Tally:
    for column in tally.schema.columns:
        if column.name not in kept:
            tally = tally.without(column.name, "it names rows")
    return tally


@dataclass(frozen=True)
class Scoring:
    """Scoring task: adds to every row the label and, on request, the probability of each class.

    Attributes
    ----------
    model : Model
        The model.
    absent : str
        "error" or "missing": what to do when a column of the model is not there.
    prefix : str
        Prefix of the added columns.
    probabilities : bool
        Whether p_<class> is added for each class.
    decisions : mapping
        `costs` and `threshold`, as for `predict`.
    """

    model: Model
    absent: str = "error"
    prefix: str = ""
    probabilities: bool = True
    decisions: Mapping[str, Any] = field(default_factory=dict)

    def task(self) -> PartTask:
        """The work on one part, for an engine."""
        if self.absent not in ("error", "missing"):
            raise UsageError(f"absent={self.absent!r} is not known: choose 'error' or 'missing'")
        classes = [str(label) for label in self.model.classes]
        own = {"absent": self.absent, "prefix": self.prefix, "probabilities": self.probabilities}
        own["decisions"] = json.dumps(self._by_place(), allow_nan=False)
        if len(set(classes)) < len(classes):
            raise UsageError("two classes are written alike, so that p_<class> would occur twice: rename one of them")
        return PartTask(score_part, to_bytes(self.model.without_rows(), own), None, self._added())

    def _added(self) -> tuple[tuple[str, Any], ...]:
        """Names and types of the added columns."""
        import pyarrow as pa

        names = [f"{self.prefix}p_{label}" for label in self.model.classes] if self.probabilities else []
        kind = _label_type(self.model, self.decisions)
        return (f"{self.prefix}label", kind), *((name, pa.float64()) for name in names)

    def check(self, names: Sequence[str], label: str) -> None:
        """Refuse a table that lacks columns of the model, or has those that would be added, before anything runs."""
        if twice := sorted(set(names) & {name for name, _ in self._added()}):
            raise UsageError(f"{label} already has a column {twice[0]!r}: rename the new ones with prefix= (--prefix)")
        derived = self.model.reading.parts
        needed = [derived[c.name].origin if c.name in derived else c.name for c in self.model.schema.columns]
        lacking = [name for name in dict.fromkeys(needed) if name not in set(names)]
        if lacking and self.absent == "error":
            remedy = "add it, or pass absent='missing' (--absent missing) to treat it as missing"
            raise SchemaError(f"{label} has no column {', '.join(map(repr, lacking[:10]))}", column=lacking[0], remedy=remedy)

    def _by_place(self) -> dict[str, Any]:
        """Costs and thresholds with classes as numbers, which JSON keeps whatever their type."""
        costs, threshold = self.decisions.get("costs"), self.decisions.get("threshold")
        place = {label: i for i, label in enumerate(self.model.classes)}
        found: dict[str, Any] = {}
        if costs is not None:
            found["costs"] = [
                [place.get(true, true), [[place.get(d, d), cost] for d, cost in row.items()]] for true, row in costs.items()
            ]
        if threshold is not None:
            many = isinstance(threshold, Mapping)
            found["threshold"] = [[place.get(c, c), p] for c, p in threshold.items()] if many else threshold
        return found


def _decisions(classes: Sequence[Any], written: str) -> dict[str, Any]:
    given: dict[str, Any] = json.loads(written)

    def label(key: Any) -> Any:
        return classes[key] if isinstance(key, int) else key

    if "costs" in given:
        given["costs"] = {label(true): {label(d): c for d, c in row} for true, row in given["costs"]}
    if isinstance(given.get("threshold"), list):
        given["threshold"] = {label(c): p for c, p in given["threshold"]}
    return given


def score_part(state: bytes, batches: Iterator[Any]) -> Iterator[Any]:
    """Add label and probabilities to the record batches of a part."""
    import pyarrow as pa

    model, own = from_bytes(state)
    decisions = _decisions(model.classes, own["decisions"])
    kinds = {column.name: column.kind for column in model.schema.columns}
    for table in regrouped(batches, model.reading.batch_bytes()):
        rows = ArrowRows([table], model.reading, "a part of the rows")
        frame = next(iter(rows.batches(kinds)))
        answers = _answers(model, frame, rows, own, decisions)
        yield pa.record_batch([*table.columns, *answers.values()], [*table.schema.names, *answers])


def _answers(model: Model, batch: Batch, rows: ArrowRows, own: Mapping[str, Any], decisions: Any) -> dict[str, Any]:
    """The added columns of a batch, as Arrow arrays."""
    import pyarrow as pa

    posterior = model.posterior_of(complete(batch, model.schema.columns, rows, own["absent"]))
    decided, p = posterior.decide(**decisions).tolist(), posterior.probabilities
    kind = _label_type(model, decisions)
    labels = [str(label) for label in decided] if pa.types.is_string(kind) else decided
    found = {f"{own['prefix']}label": pa.array(labels, kind)}
    if own["probabilities"]:
        names = [f"{own['prefix']}p_{label}" for label in model.classes]
        found |= {name: pa.array(np.ascontiguousarray(p[:, k])) for k, name in enumerate(names)}
    return found


def _label_type(model: Model, decisions: Mapping[str, Any]) -> Any:
    """The Arrow type of the labels and of decisions that are no class; text if they have no common one."""
    import pyarrow as pa

    others = [d for row in (decisions.get("costs") or {}).values() for d in row if d not in model.classes and d != "*"]
    try:
        return pa.array([*model.classes, *others]).type
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.string()
