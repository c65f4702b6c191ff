"""One pass over the rows of a report: probabilities, true classes, and checks of each column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines.targets import with_labels
from likely.kernels.parallel import cached_property
from likely.model.model import Model
from likely.schema import CATEGORY, NUMBER, TEXT, Column
from likely.sources import Batch, Source, open_source
from likely.sources.row_access import complete, one_row

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_ROWS = 500_000  # whose probabilities are kept for curves and examples
MOST_CELLS = 20_000_000  # rows × classes


@dataclass
class ColumnCheck:
    """Counts for one column: missing cells, values that were never learned, numbers out of range."""

    missing: int = 0
    unseen: int = 0
    outside: int = 0
    examples: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Rows with their posterior, before and after calibration, and their true classes.

    Attributes
    ----------
    probabilities : array
        Rows × classes.
    uncalibrated : array or None
        The same without calibration; None for a model that has none.
    truth : array
        Code of the true class; -1 where it is missing, the number of classes where it is new.
    checks : dict
        Column → ColumnCheck.
    rows : int
        Number of all rows; more than are kept where there are very many.
    labelled : bool
        Whether the rows have the target.
    """

    model: Model
    source: Source
    target: str
    probabilities: Array
    uncalibrated: Array | None
    truth: Ints
    checks: dict[str, ColumnCheck]
    rows: int
    labelled: bool

    @cached_property
    def predicted(self) -> Ints:
        """Code of the most probable class."""
        return np.asarray(self.probabilities.argmax(1), np.int64)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Rows whose true class is known to the model."""
        return (self.truth >= 0) & (self.truth < len(self.model.classes))

    def pick(self, numbers: Sequence[int]) -> dict[int, Batch]:
        """The rows with these numbers, from 0, each as a batch of one row."""
        wanted = sorted(set(numbers))
        found: dict[int, Batch] = {}
        for batch in self.source.batches(_kinds(self.model, self.target if self.labelled else None)):
            rows = complete(batch, self.model.schema.columns, self.source, "missing")
            for number in wanted:
                if batch.start <= number < batch.start + batch.rows:
                    found[number] = one_row(rows, number - batch.start)
            if wanted and batch.start + batch.rows > wanted[-1]:
                break
        return found


def _kinds(model: Model, target: str | None) -> dict[str, str]:
    kinds = {column.name: column.kind for column in model.schema.columns}
    return kinds if target is None else kinds | {target: CATEGORY}


def score_rows(
    model: Model, data: Any, target: str | None, progress: Callable[[int], None] | None, how: Any
) -> JudgedRows:
    """Score the rows of a source once, and check their columns."""
    source, name = with_labels(open_source(data, model.read_as(how)), target or model.schema.target.name)
    assert name is not None
    first = next(iter(source.batches()), None)
    labelled = first is not None and name in first.names
    source = model.with_target(source, name) if labelled else source
    plain = _uncalibrated(model)
    checks = {column.name: ColumnCheck() for column in model.schema.columns}
    kept: list[Array] = []
    before: list[Array] = []
    truth: list[Ints] = []
    rows, most = 0, min(MOST_ROWS, MOST_CELLS // max(len(model.classes), 1))
    for batch in source.batches(_kinds(model, name if labelled else None)):
        whole = complete(batch, model.schema.columns, source, "missing")
        _check(checks, model.schema.columns, whole)
        rows += batch.rows
        if rows - batch.rows < most:
            kept.append(model.posterior_of(whole).probabilities)
            truth.append(_codes(model, batch, name) if labelled else np.full(batch.rows, -1, np.int64))
            if plain is not None:
                before.append(plain.posterior_of(whole).probabilities)
        if progress:
            progress(batch.rows)
    none = np.zeros((0, len(model.classes)))
    return JudgedRows(
        model, source, name, np.concatenate([none, *kept]), np.concatenate([none, *before]) if plain is not None else None,
        np.concatenate([np.zeros(0, np.int64), *truth]), checks, rows, labelled,
    )  # fmt: skip


def _uncalibrated(model: Model) -> Model | None:
    """The same counts without weights, interactions and text calibration; None where there are none."""
    if model.calibration is None and not model.stages:
        return None
    return replace(model, calibration=None, stages={})


def _codes(model: Model, batch: Batch, name: str) -> Ints:
    labels = batch.coded(name)
    places = np.array([*model.schema.target.codes(labels.values), -1], np.int64)
    return places[np.asarray(labels.codes, np.int64) - labels.low]


def _check(checks: dict[str, ColumnCheck], columns: Sequence[Column], batch: Batch) -> None:
    for column in columns:
        check = checks[column.name]
        if column.kind == NUMBER:
            check.missing += int(np.isnan(batch.numbers([column.name], 0, batch.rows)).sum())
            continue
        if column.kind == TEXT:
            check.missing += int(np.asarray(batch.documents(column.name).missing).sum())
            continue
        coded = batch.coded(column.name)
        codes = np.asarray(coded.codes, np.int64) - coded.low
        inside = (codes >= 0) & (codes < len(coded.values))
        check.missing += int((~inside).sum())
        places = np.array(column.codes(coded.values) or [0], np.int64)
        counts = np.bincount(codes[inside], minlength=len(coded.values))[: len(coded.values)]
        for j in np.flatnonzero(places[: len(counts)] == len(column.values)).tolist() if len(counts) else []:
            if counts[j]:
                check.unseen += int(counts[j])
                value = str(coded.values[j])[:40]
                check.examples[value] = check.examples.get(value, 0) + int(counts[j])


def finite(value: Any) -> Any:
    """Plain data for JSON: numbers to six digits, null where they are not finite, labels as text."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return float(f"{number:.6g}") if math.isfinite(number) else None
    if isinstance(value, dict):
        return {str(key): finite(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return value.item() if isinstance(value, np.generic) else str(value)
