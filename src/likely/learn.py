"""The one loop from rows to a model: look at the columns, choose their families, count."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.belief import with_taken
from likely.calibration import DEPENDENCE
from likely.em import MAX_ITER, Rows, warn_if_stopped, weights_of
from likely.engines import Plan, tally_source
from likely.engines.memory import MOST_VALUES
from likely.engines.targets import opened
from likely.engines.weights import WEIGHT_COLUMN
from likely.errors import DataError, LikelyWarning, UsageError
from likely.filling import filled, has_gaps, say_what_was_filled
from likely.model import Model, with_room
from likely.partly import MORE_ROUNDS, TOL, Choice, partly
from likely.planning import AUTO, derived, plan_for, used_as
from likely.prior import Priors, priors, textbook
from likely.schema import CATEGORY, NUMBER, Column, in_words, look_alikes, ordered, say_alike
from likely.schema import plain as plainly
from likely.selecting import select as select_columns
from likely.selecting import without_idle_parts
from likely.sources import Batch, Frame, Gaps, Reading, Source, for_target, missing_of, open_source, require_rows
from likely.sources.dateparts import with_parts
from likely.sources.gaps import doubt, doubtful, taken_by_column
from likely.tally import Tally

# Where labels are plenty, rows without one are not worth the time: they are tried from so large a part of the rows on.
FEW = 0.5
MOST_CELLS = 50_000_000


def learn(
    data: Any,
    target: Any = None,
    *,
    target_bins: Any = None, families: Any = None, joint: Sequence[Sequence[str]] = (), date_parts: Any = AUTO,
    smoothing: Any = "auto", class_prior: Any = None, weights: Any = None, ignore: Sequence[str] = (),
    missing: Sequence[str] | None = None, classes: Sequence[Any] = (), plain: bool = False, dependence: str = "auto",
    average: bool = False, select: bool | int | str = False, engine: str = "auto", unlabelled: str | float = "auto",
    max_iter: int = MAX_ITER, tol: float = TOL, keep_rows: bool = True, progress: Callable[[int], None] | None = None,
    **how: Any,
) -> Model:  # fmt: skip
    """Count a table into a model of one of its columns.

    `target` names a column or is an array of labels; numbers are cut into `target_bins`, so many quantiles or given edges.
    `families` maps a column (or several) to its family, or is one for all; the rest is chosen, see `model.schema`. Weekday,
    month and hour of dates are used where they tell the class something, or as `date_parts` names them. `plain` is the
    textbook's model, `average` averages it over all choices of columns, `select` keeps the best. `unlabelled` rows are
    shared out if it helps, by EM: for `max_iter` rounds at most, and until its maximum is `tol` nats away. A default model
    holds up to 40,000 rows to be calibrated on; `keep_rows=False` is the same without them. `how` a file is read:
    `encoding`, `decimal`, `thousands`, `dates` and more, see docs/data.md.
    """
    _one_of(engine=(engine, ("auto", "memory")), dependence=(dependence, tuple(DEPENDENCE)))
    check_unlabelled(unlabelled)
    reading = Reading.of(missing, how)
    table = opened(data, target, weights, target_bins, reading)
    plain = plain or average or select is not False or textbook(smoothing)
    plan = plan_for(table, families, joint, ignore, plain, target_bins is None, date_parts)
    counted = Counted(with_parts(table.source, plan.parts), plan, unlabelled, (max_iter, tol))
    tally = without_idle_parts(tally_source(counted.batches(), plan, progress))
    tally = with_taken(tally, gaps := missing_of(table.source))
    require_rows(counted.rows, table.source.label)
    known = table.known | {"average": bool(average), "dependence": dependence, **gaps.remembered()}
    model = _modelled(counted, tally, reading, (smoothing, class_prior, classes), known, select)
    return model if keep_rows else model.without_rows()


def _modelled(
    counted: Counted,
    tally: Tally,
    reading: Reading,
    given: tuple[Any, Any, Sequence[Any]],
    known: dict[str, Any],
    select: bool | int | str,
) -> Model:
    """The model of what was counted, under the priors that were given; what happened on the way is said."""
    smoothing, class_prior, classes = given
    tally = declare(tally, [plainly(label) for label in classes])
    known["declared"] = tuple(tally.schema.target.canonical(plainly(label)) for label in classes)
    prior = priors(smoothing, class_prior, tally.schema.classes, tally.sample is None, tally.blocks)
    helped = by_shares(counted, tally, prior)
    say_what_happened(counted, tally.schema.target, reading, helped)
    for said in _doubts([tally.schema.target, *tally.schema.columns], counted.rows):
        warnings.warn(said, LikelyWarning, stacklevel=3)
    say_many_values(tally)
    if helped:
        warn_if_stopped(helped.converged, helped.rounds, MORE_ROUNDS, stacklevel=4)
        known["weights"] = None if known["weights"] == WEIGHT_COLUMN else known["weights"]
        return replace(helped.model, tally=with_taken(helped.model.tally, missing_of(counted.source)), **known)
    if has_gaps(tally):
        _, batches, parts = _again(counted, tally)
        before, tally = tally, filled(tally, prior, parts, batches)
        say_what_was_filled(before, tally)
    finished = _finished(Model(with_room(tally, prior), prior, **known), counted.source, counted.plan, select)
    reading.check_memory()
    return finished


def _doubts(columns: Sequence[Column], rows: int) -> Iterator[str]:
    """Columns in which a text was taken for missing while another like it is a value, or whose values differ by case alone."""
    for column in columns:
        pair = doubtful(dict(column.taken), column.values, rows)
        if pair:
            yield doubt(column.name, *pair, dict(column.taken)[pair[0]], rows)
        if alike := look_alikes(column.values):
            yield say_alike(column.name, alike)


def check_unlabelled(given: str | float) -> None:
    """What happens to rows without a label: a word that is known, or the weight of each."""
    if isinstance(given, str):
        _one_of(unlabelled=(given, ("auto", "ignore", "error")))
    elif isinstance(given, bool) or not 0 <= given <= 1:
        raise UsageError(f"unlabelled={given!r} is no weight of a row without a label: pass a number from 0 to 1")


def by_shares(counted: Counted, tally: Tally, prior: Priors) -> Choice | None:
    """The model of all rows, those without a label by their shares; None where that does not help, or is not tried."""
    if not counted.without_label or counted.unlabelled in ("ignore", "error"):
        return None
    few = tally.rows * FEW < counted.without_label and counted.rows * len(counted.plan.columns) <= MOST_CELLS
    if len(tally.schema.classes) < 2 or (counted.unlabelled == "auto" and not few):
        return None
    plan, batches, parts = _again(counted, tally)
    made = partly(parts, batches, plan, tally.schema.classes, prior, weights_of(plan))
    found = made.learned(None if counted.unlabelled == "auto" else float(counted.unlabelled), *counted.until)
    return found if found.unlabelled else None


def _again(counted: Counted, tally: Tally) -> tuple[Plan, Callable[[], Iterator[Batch]], Callable[[Any], Any]]:
    """The rows once more, as EM reads them: the plan of the columns that are left, the batches and the labelled parts."""
    known = {column.name for column in tally.schema.columns}  # some may have turned out to be names
    columns = tuple(c for c in counted.plan.columns if c.name in known)
    plan = replace(counted.plan, blocks=tally.blocks, columns=columns, ignored=tally.schema.ignored)
    classes, weights = tally.schema.classes, weights_of(plan)

    def batches() -> Iterator[Batch]:
        return counted.source.batches(plan.kinds())

    def parts(schema: Any) -> Any:
        target = replace(schema.target, values=classes)
        rows = Rows(batches, replace(schema, target=target), weights, labelled=True)
        return list(rows) if counted.rows * len(columns) <= MOST_CELLS else rows

    return plan, batches, parts


def _finished(model: Model, source: Source, plan: Plan, select: bool | int | str) -> Model:
    """The model once all is fitted, if it can be a classifier; what it has to say is said."""
    _refuse_one_class(model, source.label)
    if select is not False:
        model = select_columns(model, source.batches(plan.kinds()), select, plan.weights)
    model = replace(model, weights=None if model.weights == WEIGHT_COLUMN else model.weights).recalibrate()
    for note in (note for parameters in model.block_parameters for note in parameters.notes):
        warnings.warn(note, LikelyWarning, stacklevel=4)
    return model


def _one_of(**settings: tuple[str, tuple[str, ...]]) -> None:
    for name, (given, known) in settings.items():
        if given not in known:
            raise UsageError(f"{name}={given!r} is not known: choose one of {', '.join(known)}")


def _refuse_one_class(model: Model, label: str) -> None:
    if len(model.classes) < 2:
        target = model.schema.target.name
        raise DataError(
            f"column {target!r} has {'only one class, ' + repr(model.classes[0]) if model.classes else 'no class'} "
            f"in {label}: a classifier needs two classes; declare the others with classes=[...] to learn a part",
            column=target,
        )


def declare(tally: Tally, classes: Sequence[Any]) -> Tally:
    """The tally with room for classes that no row has shown yet."""
    if not classes:
        return tally
    column = tally.schema.target
    column = column.union(replace(column, values=tuple(classes)))
    return tally.with_schema(replace(tally.schema, target=column))


@dataclass
class Counted:
    """The batches on their way to the engine, with a note of how many rows passed and how many had no label."""

    source: Source
    plan: Plan
    unlabelled: str | float
    until: tuple[int, float]  # when EM ends: its rounds, and nats to the maximum
    rows: int = 0
    without_label: int = 0

    def batches(self) -> Iterator[Batch]:
        """The rows, with the columns of the plan."""
        for batch in self.source.batches(self.plan.kinds()):
            hidden = batch.coded(self.plan.target)
            outside = (hidden.codes < hidden.low) if hidden.low == 0 else np.zeros(1, bool)
            self.rows += batch.rows
            self.without_label += int(outside.sum())
            if self.unlabelled == "error" and outside.any():
                row = batch.start + int(np.argmax(outside)) + 1
                raise DataError(
                    "has no label", column=self.plan.target, row=row, remedy="fill it in, or pass unlabelled='ignore'"
                )
            yield batch


def say_what_happened(counted: Counted, target: Column, reading: Reading, helped: Choice | None = None) -> None:
    """Nothing is lost without a word: rows that were skipped and rows that had no label."""
    if counted.without_label:
        shared = f"counted by their shares, with weight {helped.unlabelled:g}" if helped else ""
        said = f"{counted.without_label:,} of {counted.rows:,} rows have no {target.name!r}"
        odd = any(token for token, _ in target.taken)
        why = f" ({in_words(dict(target.taken))}; missing=[...] changes what is missing)" if odd else ""
        warnings.warn(f"{said}{why}: they were {shared or 'not counted'}", LikelyWarning, stacklevel=4)
    if reading.rejects:
        shown = "; ".join(reading.rejects[:5])
        said = f"{len(reading.rejects):,} bad rows were skipped, {counted.rows:,} were read: {shown}"
        warnings.warn(said, LikelyWarning, stacklevel=4)


def say_many_values(tally: Tally) -> None:
    """A column with so many values that few rows share one: it is counted as asked, but not without a word."""
    for column in tally.schema.columns:
        if len(column.values) > MOST_VALUES:
            warnings.warn(
                f"column {column.name!r} has {len(column.values):,} different values in {tally.rows:,} rows: most of them "
                f"say little; leave it out with ignore=[{column.name!r}] (--ignore), or group its values",
                LikelyWarning,
                stacklevel=5,
            )


def inspect(
    data: Any, *, target: str | None = None, missing: Sequence[str] | None = None, **how: Any
) -> list[dict[str, Any]]:
    """What Likely sees in a table: each column with its kind, the reason, missing cells and different values."""
    source = for_target(open_source(data, Reading.of(missing, how)), target)
    found: list[dict[str, Any]] = []
    for first in source.batches():
        batch = replace(first, parts=derived(first, AUTO, None, ())) if isinstance(first, Frame) else first
        for name in batch.names:
            kind, reason, used = (*batch.kind(name), True) if name == target else used_as(batch, name)
            if isinstance(batch, Frame) and name in batch.parts:
                reason += ", used where it tells the class something"
            said = {"column": name, "kind": kind or "none", "reason": reason, "used": used}
            found.append(said | _summary(batch, name, kind))
            found[-1] |= _taken(batch, name, kind, missing_of(source))
        break  # the first batch is what the choice is made from
    require_rows(len(found), source.label)
    return found


def _taken(batch: Batch, name: str, kind: str | None, gaps: Gaps) -> dict[str, Any]:
    """What was taken for missing in a column, and what is doubtful in that."""
    taken = taken_by_column(gaps.taken, [name]).get(name, {})
    values = batch.coded(name).values if kind == CATEGORY or (taken and kind != NUMBER) else ()
    pair = doubtful(taken, values, batch.rows)
    said = doubt(name, *pair, taken[pair[0]], batch.rows) if pair else ""
    alike = look_alikes(ordered(values)) if kind == CATEGORY else []
    return {"taken": taken, "doubt": said, "look_alikes": say_alike(name, alike) if alike else ""}


def _summary(batch: Batch, name: str, kind: str | None) -> dict[str, Any]:
    if kind == NUMBER:
        x = batch.numbers([name], 0, batch.rows)[:, 0]
        seen = x[~np.isnan(x)]
        low, high = (float(seen.min()), float(seen.max())) if len(seen) else (None, None)
        return {
            "rows": batch.rows,
            "missing": int(np.isnan(x).sum()),
            "different": len(np.unique(seen)),
            "from": low,
            "to": high,
        }
    try:
        coded = batch.coded(name)
    except DataError:  # neither text nor number
        return {"rows": batch.rows, "missing": batch.rows, "different": 0, "from": None, "to": None}
    seen_codes = coded.codes[(coded.codes >= coded.low)]
    return {
        "rows": batch.rows,
        "missing": batch.rows - len(seen_codes),
        "different": len(np.unique(seen_codes)),
        "from": None,
        "to": None,
    }
