"""EM over distributed rows: every pass is a task on parts of the rows, whose results add.

The bytes of a model file go out to the tasks; those of a tally come back, with log-likelihood and entropy beside it. A task
is given to an engine as any other count, so that engines know nothing of EM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines import Plan, tally_source
from likely.engines.e_step import ExpectedCounts, LabelledRows
from likely.engines.engine import CountedSource, CountTask, Engine, Part, PartFunction
from likely.engines.spark.tasks import part_row
from likely.families import Block
from likely.families.statistics import Moments, totals
from likely.latent import em
from likely.latent.missing_cells import Observed, RowsOfClasses, observed_cells
from likely.latent.semi_supervised import (
    SemiSupervisedFit,
    blank_model,
    count_by_posteriors,
    hidden_plan,
    log_posteriors,
    plain_model,
)
from likely.model.model import Model
from likely.model.parameters import with_taken
from likely.model.parts import columns_read, from_bytes, plan_of, record_batches, rows_of_part, to_bytes
from likely.priors import Priors, priors
from likely.schema import Schema
from likely.sources import Batch, Source, missing_of
from likely.tally import Tally

READING = ("missing", "missing_labels", "weights", "target_edges")  # settings of a model for reading its rows
LENGTH = 8  # bytes of the field with the length of the first of two models


@dataclass(frozen=True)
class EMPart(Part):
    """The result of one pass of EM over a part of the rows.

    Attributes
    ----------
    log_likelihood, entropy : float
        Those of an E-step.
    moments : list of Moments
        Those of the numeric columns over all rows, where rows are counted as one class.
    observed : Observed or None
        Which cells of a joint block are there.
    """

    log_likelihood: float = 0.0
    entropy: float = 0.0
    moments: Sequence[Moments] = ()
    observed: Observed | None = None

    def __add__(self, other: EMPart) -> EMPart:
        mine, theirs = self.observed, other.observed
        seen = None if mine is None or theirs is None else Observed(mine.seen + theirs.seen, mine.partial + theirs.partial)
        return EMPart(
            self.tally + other.tally,
            self.rows + other.rows,
            log_likelihood=self.log_likelihood + other.log_likelihood,
            entropy=self.entropy + other.entropy,
            moments=totals([self.moments, other.moments]) if self.moments and other.moments else self.moments,
            observed=seen,
        )

    def to_bytes(self, model: Model) -> bytes:
        """The part as the bytes of a model file; numbers beside the tally are written so that no digit is lost."""
        own: dict[str, Any] = {"rows": self.rows, "sums": [self.log_likelihood.hex(), self.entropy.hex()]}
        own["moments"] = [[float(x[0]).hex() for x in (m.n, m.mean, m.spread)] for m in self.moments]
        own["observed"] = None if self.observed is None else [each.tolist() for each in self.observed]
        return to_bytes(Model(self.tally, priors(1.0), **_reading(model)), own)

    @staticmethod
    def from_bytes(content: bytes) -> tuple[EMPart, Model]:
        """The part that `to_bytes` wrote, and its tally as a model."""
        model, own = from_bytes(content)
        log_likelihood, entropy = (float.fromhex(each) for each in own["sums"])
        moments = [Moments(*(np.array([float.fromhex(x)]) for x in each)) for each in own["moments"]]
        seen = own["observed"]
        observed = None if seen is None else Observed(*(np.array(each, np.int64) for each in seen))
        return EMPart(model.tally, own["rows"], 0, log_likelihood, entropy, moments, observed), model


def total_part(contents: Sequence[bytes]) -> EMPart:
    """The sum of several parts; values without weight stay, so that every round has the same parameters."""
    return reduce(lambda a, b: a + b, (EMPart.from_bytes(content)[0] for content in contents))


def total_bytes(contents: Sequence[bytes]) -> bytes:
    """The sum of several parts, from bytes to bytes."""
    return contents[0] if len(contents) == 1 else total_part(contents).to_bytes(EMPart.from_bytes(contents[0])[1])


def _reading(model: Model) -> dict[str, Any]:
    return {name: getattr(model, name) for name in READING}


@dataclass(frozen=True)
class RowsInParts(em.RowsElsewhere):
    """Distributed rows: an engine runs tasks on their parts.

    Attributes
    ----------
    run : callable
        Runs a task on all parts and adds what comes back: an engine's `tally`.
    plan : Plan
        The columns, as they were counted.
    reading : mapping
        Missing-value tokens, weights and edges of the target's bins, by which every part is read.
    wanted : array or None
        The classes whose rows keep their label; None for all.
    labelled : bool
        Whether the rows have a target; those of a mixture have none.
    """

    run: Callable[[CountTask], Part]
    plan: Plan
    reading: Mapping[str, Any]
    wanted: NDArray[np.bool_] | None = field(default=None, compare=False)
    labelled: bool = True

    @staticmethod
    def of(engine: Engine, source: Source, plan: Plan, fields: Mapping[str, Any], *, labelled: bool = True) -> RowsInParts:
        """Distributed rows; `fields` are those of the model that will be fitted."""

        def run(task: CountTask) -> Part:
            return engine.tally(CountedSource(source, plan), lambda: task, None)

        return RowsInParts(run, plan, {name: fields[name] for name in READING if name in fields}, labelled=labelled)

    def _found(self, work: PartFunction, model: Model, state: bytes) -> EMPart:
        found = self.run(CountTask(work, state, columns_read(model), total=total_bytes, part=total_part))
        assert isinstance(found, EMPart)
        return found

    def _sent(self, model: Model) -> Model:
        return replace(model, **self.reading)

    def e_step(self, model: Model, unlabelled: float = 1.0, *, entropy: bool = False) -> ExpectedCounts:
        """Expected counts and log-likelihood of all rows."""
        wanted = None if self.wanted is None else self.wanted.tolist()
        sent = self._sent(model)
        own = {"unlabelled": float(unlabelled).hex(), "entropy": entropy, "wanted": wanted, "labelled": self.labelled}
        state = to_bytes(sent, own)
        found = self._found(e_step_part, sent, state)
        return ExpectedCounts(replace(found.tally, schema=model.schema), found.log_likelihood, found.entropy)

    def pooled(self, plan: Plan) -> tuple[Tally, dict[str, float]]:
        """All rows counted as one class, and the variance of every numeric column."""
        nothing = self._sent(Model(tally_source((), replace(plan, sample=False)), priors(1.0)))
        found = self._found(pool_part, nothing, to_bytes(nothing, {"labelled": self.labelled}))
        tally = em.require_weight(found.tally)
        return tally, em.variances_of(em.numbers_of(tally.schema.columns), found.moments)

    def counted_by(self, plain: Model, blank: Model, pooled: Tally, unlabelled: float) -> Tally:
        """All rows counted by their label or else by the posterior of a model, as the model `blank` counts."""
        k = len(blank.classes)
        # A model file has no words without counts, so those of all rows travel with the counts of all rows.
        whole = replace(blank, tally=blank.tally + pooled.of_classes([0] * k, blank.classes))
        first = to_bytes(self._sent(plain.without_rows()))
        second = to_bytes(self._sent(whole), {"unlabelled": float(unlabelled).hex()})
        state = len(first).to_bytes(LENGTH, "big") + first + second
        found = self._found(start_part, self._sent(plain), state)
        return blank.tally + replace(found.tally, schema=blank.schema)

    # The interface of rows for EM over missing cells.

    def domains(self, names: Sequence[str]) -> Mapping[str, Iterable[Any]]:
        """The values of some categorical columns, also of rows that miss other cells."""
        blocks = tuple(block for block in self.plan.blocks if set(block.columns) & set(names))
        inside = {name for block in blocks for name in block.columns}
        columns = tuple(column for column in self.plan.columns if column.name in inside)
        tally, _ = self.pooled(replace(self.plan, blocks=blocks, columns=columns))
        return {name: tally.schema.by_name[name].values for name in names}

    def observed(self, schema: Schema, block: Block) -> Observed:
        """Which cells of a block are observed, class by class."""
        columns = tuple(schema.by_name[name] for name in block.columns)
        own = replace(schema, columns=columns)
        statistic = block.nothing(columns, len(schema.classes))
        model = self._sent(Model(Tally(own, (block,), np.zeros(len(schema.classes)), (statistic,)), priors(1.0)))
        found = self._found(observed_part, model, to_bytes(model)).observed
        assert found is not None
        return found

    def of_classes(self, schema: Schema, wanted: NDArray[np.bool_]) -> RowsInParts:  # noqa: ARG002
        """The same rows; those of other classes have no label."""
        return replace(self, wanted=wanted)


def fit_in_parts(
    rows: RowsInParts, counted: Tally, prior: Priors, unlabelled: float, *, max_iter: int, tol: float
) -> SemiSupervisedFit:
    """The semi-supervised fit for a given λ over distributed rows; `counted` has the labelled ones."""
    classes = counted.schema.classes
    plain = plain_model(counted, classes, prior)
    if unlabelled == 0.0:
        return SemiSupervisedFit(plain, 0.0)
    pooled, spread = rows.pooled(hidden_plan(rows.plan))
    blank = blank_model(pooled, classes, prior, rows.plan, spread)
    start = replace(blank, tally=rows.counted_by(plain, blank, pooled, unlabelled))
    fit = em.fit_em(start, rows, unlabelled=unlabelled, max_iter=max_iter, tol=tol)
    return SemiSupervisedFit(fit.model, unlabelled, {}, fit.converged or tol <= 0, len(fit.trace))


def _rows_for_em(model: Model, rows: Any, *, labelled: bool = True) -> em.StreamedRows:
    """The rows of a part for EM: labels as positions in the classes of the model, if any, and weights."""
    plan, source = plan_of(model), rows_of_part(model, rows, labelled=labelled)
    kinds, weights = em.kinds_read(plan, labelled=labelled), em.column_weights(plan.weights)
    return em.StreamedRows(lambda: source.batches(kinds), model.schema, weights, labelled=labelled)


def e_step_part(state: bytes, batches: Iterator[Any]) -> Iterator[Any]:
    """The expected counts of a part."""
    model, own = from_bytes(state)
    for rows in record_batches(model, batches):
        parts: Iterable[LabelledRows] = _rows_for_em(model, rows, labelled=own["labelled"])
        if own["wanted"] is not None:
            parts = RowsOfClasses(parts, np.array(own["wanted"], bool))
        found = em.e_step(model, parts, float.fromhex(own["unlabelled"]), entropy=own["entropy"])
        part = EMPart(found.tally, found.tally.rows, 0, found.log_likelihood, found.entropy)
        yield part_row(part.to_bytes(model))


def pool_part(state: bytes, batches: Iterator[Any]) -> Iterator[Any]:
    """The rows of a part as one class, and the moments of its numbers."""
    model, own = from_bytes(state)
    plan, labelled = plan_of(model), own["labelled"]
    weights, names = em.column_weights(plan.weights), em.numbers_of(plan.columns)
    moments: list[list[Moments]] = []

    def measured(source: Any) -> Iterator[Batch]:
        for batch in source.batches(em.kinds_read(plan, labelled=labelled)):
            moments.append(em.number_moments(batch, names, weights(batch)))
            yield batch

    for rows in record_batches(model, batches):
        source = rows_of_part(model, rows, labelled=labelled)
        found = em.pooled_part(measured(source), plan, weights)
        if found is None:
            return
        found = with_taken(found, missing_of(source))
        part = EMPart(found, found.rows, moments=totals(moments) if names else ())
        yield part_row(part.to_bytes(model))


def start_part(state: bytes, batches: Iterator[Any]) -> Iterator[Any]:
    """The rows of a part counted by their label, or else by the posterior of the first of two models."""
    length = int.from_bytes(state[:LENGTH], "big")
    plain, _ = from_bytes(state[LENGTH : LENGTH + length])
    blank, own = from_bytes(state[LENGTH + length :])
    total = blank.tally.zero()
    for rows in record_batches(blank, batches):
        for part in _rows_for_em(blank, rows):
            (logs,) = log_posteriors(plain, [part])
            total = total + count_by_posteriors(part, logs, blank, float.fromhex(own["unlabelled"]))
        yield part_row(EMPart(total, total.rows).to_bytes(blank))


def observed_part(state: bytes, batches: Iterator[Any]) -> Iterator[Any]:
    """Which cells of the block of a model are observed, in a part of the rows."""
    model, _ = from_bytes(state)
    for rows in record_batches(model, batches):
        seen = observed_cells(_rows_for_em(model, rows), model.schema, model.blocks[0])
        yield part_row(EMPart(model.tally, 0, observed=seen).to_bytes(model))
