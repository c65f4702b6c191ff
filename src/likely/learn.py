"""The one loop from rows to a model: look at the columns, choose their families, count."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from likely.engines import Plan, tally_source
from likely.engines.memory import check_weights
from likely.errors import DataError, LikelyWarning, SchemaError, UsageError
from likely.families import (
    Bernoulli,
    Binomial,
    Block,
    Categorical,
    Family,
    Gaussian,
    Joint,
    Multinomial,
    Poisson,
    family,
)
from likely.model import Model
from likely.prior import priors
from likely.schema import CATEGORY, NUMBER, Column, ordered
from likely.sources import EMPTY, Batch, Frame, InMemory, Matrix, Reading, Source, as_tokens, open_source, require_rows
from likely.tally import Tally

ID_NAME = re.compile(r"(^|[_\W])(id|uuid|guid|key|index|idx|nr|no)$", re.IGNORECASE)
FEWEST_ROWS_FOR_ID = 8
WEIGHT_COLUMN = "\0weight"  # no file can hold such a name: for weights that come as an array
NUMERIC = (Gaussian, Poisson, Bernoulli, Binomial, Multinomial)
ENGINES = ("auto", "memory")


def learn(
    data: Any,
    target: str,
    *,
    families: Any = None,
    joint: Sequence[Sequence[str]] = (),
    smoothing: Any = 1.0,
    class_prior: Any = None,
    weights: Any = None,
    ignore: Sequence[str] = (),
    missing: Sequence[str] | None = None,
    classes: Sequence[Any] = (),
    plain: bool = False,
    engine: str = "auto",
    encoding: str | None = None,
    on_bad_rows: str = "error",
    unlabelled: str = "ignore",
    progress: Callable[[int], None] | None = None,
) -> Model:
    """Count a table into a model of one of its columns.

    `families` maps a column (or a tuple of columns) to its family, or is one family for all columns; what it leaves
    open is chosen from the data and shown in `model.schema`. `classes` declares labels that may not occur in these rows.
    """
    if engine not in ENGINES:
        raise UsageError(f"engine={engine!r} is not known: choose one of {', '.join(ENGINES)}")
    if unlabelled not in ("ignore", "error"):
        raise UsageError(f"unlabelled={unlabelled!r} is not known: choose 'ignore' or 'error'")
    reading = Reading(as_tokens(missing), encoding, on_bad_rows)
    source, weight_name = with_weights(open_source(data, reading), weights)
    plan = plan_for(source, target, families, joint, (*ignore, *([weight_name] if weight_name else [])), weight_name)
    counted = Counted(source, plan, unlabelled)
    tally = tally_source(counted.batches(), plan, progress)
    require_rows(counted.rows, source.label)
    say_what_happened(counted, tally.schema.target.name, reading)
    model = Model(declare(tally, classes), priors(smoothing, class_prior, ordered({*tally.schema.classes, *classes})),
                  reading.missing, weight_name if weight_name != WEIGHT_COLUMN else None, tuple(classes))  # fmt: skip
    if len(model.classes) < 2:
        raise DataError(
            f"column {target!r} has {'only one class, ' + repr(model.classes[0]) if model.classes else 'no class'} "
            f"in {source.label}: a classifier needs two classes; declare the others with classes=[...] to learn a part",
            column=target,
        )
    for note in (note for parameters in model.block_parameters for note in parameters.notes):
        warnings.warn(note, LikelyWarning, stacklevel=2)
    return model


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
    unlabelled: str
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


def say_what_happened(counted: Counted, target: str, reading: Reading) -> None:
    """Nothing is lost without a word: rows that were skipped and rows that had no label."""
    if counted.without_label:
        warnings.warn(
            f"{counted.without_label:,} of {counted.rows:,} rows have no {target!r}: they were not counted",
            LikelyWarning,
            stacklevel=3,
        )
    if reading.rejects:
        shown = "; ".join(reading.rejects[:5])
        warnings.warn(f"{len(reading.rejects):,} bad rows were skipped: {shown}", LikelyWarning, stacklevel=3)


def with_weights(source: Source, weights: Any) -> tuple[Source, str | None]:
    """The source with its weights as a column; an array of weights is put beside the rows."""
    if weights is None or isinstance(weights, str):
        return source, weights
    if not isinstance(source, InMemory):
        raise UsageError("weights for a file must be the name of one of its columns")
    w = np.asarray(weights, dtype=np.float64).reshape(-1)
    batch = source.batch
    if len(w) != batch.rows:
        raise DataError(f"there are {len(w)} weights for {batch.rows} rows")
    check_weights(w, "weights")
    import pyarrow as pa

    if isinstance(batch, Matrix):
        return replace(
            source,
            batch=replace(batch, array=np.column_stack([batch.array, w]), columns=(*batch.columns, WEIGHT_COLUMN)),
        ), WEIGHT_COLUMN
    assert isinstance(batch, Frame)
    return replace(source, batch=replace(batch, columns=batch.columns | {WEIGHT_COLUMN: pa.array(w)})), WEIGHT_COLUMN


def plan_for(
    source: Source,
    target: str,
    families: Any,
    joint: Sequence[Sequence[str]],
    ignore: Sequence[str],
    weights: str | None,
) -> Plan:
    """What is to be counted: every column with its family, chosen from the first rows where nothing was said."""
    first = next(iter(source.batches()), None)
    if first is None or first.rows == 0:
        require_rows(0, source.label)
    assert first is not None
    names = list(first.names)
    for wanted in (target, *ignore, *([weights] if weights else [])):
        if wanted not in names:
            raise SchemaError(f"{source.label} has no column {wanted!r}: it has {names[:20]}", column=wanted)
    plan = plan_columns(first, [n for n in names if n != target and n not in ignore], target, families, joint)
    asked = tuple((name, "asked for") for name in ignore if name != weights)
    plan = replace(plan, weights=weights, ignored=(*asked, *plan.ignored))
    if not plan.blocks:
        raise DataError(f"{source.label} has no column to learn from besides {target!r}: {dict(plan.ignored)}")
    return plan


def plan_columns(
    batch: Batch, names: Sequence[str], target: str, families: Any, joint: Sequence[Sequence[str]], keep_all: bool = False
) -> Plan:
    """Every column with its family: the one asked for, else the one that its nature calls for.

    Columns that only name their rows are left out, unless `keep_all` says that every column is meant.
    """
    given = _given(families, joint, list(names))
    columns: list[Column] = []
    ignored: list[tuple[str, str]] = []
    for name in names:
        column, reason = _column(batch, name, given.get(name), keep_all)
        if column is None:
            ignored.append((name, reason))
        else:
            columns.append(column)
    droppable = frozenset() if keep_all else frozenset(c.name for c in columns if c.name not in given)
    return Plan(target, _blocks(columns, given), tuple(columns), None, tuple(ignored), droppable)


def _given(families: Any, joint: Sequence[Sequence[str]], names: list[str]) -> dict[str, Block]:
    """The block that each column was asked to be in."""
    if families is None or families == "auto":
        families = {}
    if not isinstance(families, Mapping):
        one, apart = family(families), joint_names(joint)
        rest = [name for name in names if name not in apart]
        each = one.single or (isinstance(one, Binomial) and isinstance(one.trials, int))
        families = dict.fromkeys(rest, one) if each else {tuple(rest): one}
    wanted: dict[str, Block] = {}
    for key, value in chain(families.items(), ((tuple(block), Joint()) for block in joint)):
        made = _sized(family(value), key)
        for name in made.columns:
            if name not in names:
                raise SchemaError(
                    f"there is no column {name!r} for the family {made.family.name}: the columns are {names[:20]}",
                    column=name,
                )
            if name in wanted and wanted[name] != made and name in joint_names(joint):
                made_of = wanted[name].family
                raise UsageError(f"column {name!r} is asked to be {made_of.name} and joint at once: choose one")
            wanted[name] = made
    return wanted


def joint_names(joint: Sequence[Sequence[str]]) -> set[str]:
    """All columns that are declared dependent."""
    return {name for block in joint for name in block}


def _sized(made: Family, key: Any) -> Block:
    columns = (key,) if isinstance(key, str) else tuple(key)
    if isinstance(made, Binomial) and isinstance(made.trials, str) and len(columns) == 1:
        columns = (*columns, made.trials)
    if made.single and len(columns) > 1:
        raise UsageError(
            f"the family {made.name} takes one column, not {list(columns)}: use Joint or Multinomial for a block"
        )
    return Block(made, columns)


def _column(batch: Batch, name: str, block: Block | None, keep: bool) -> tuple[Column | None, str]:
    """What a column is taken for, and why; None where it is left out."""
    kind, nature = batch.kind(name)
    if block is not None:
        if isinstance(block.family, NUMERIC):
            return Column(name, NUMBER, reason=f"{block.family.name} as asked for"), ""
        if isinstance(block.family, Categorical):
            return Column(name, CATEGORY, reason="categorical as asked for"), ""
        if kind is None:
            raise DataError(f"cannot be used: {nature}", column=name)
        return Column(name, kind, reason=f"{nature}, {block.family.name} as asked for"), ""
    if keep and kind is None:
        if nature != EMPTY:
            raise DataError(f"cannot be used: {nature}", column=name)
        kind = CATEGORY  # of no values yet: it says nothing until some are seen
    why_not = nature if kind is None else "" if keep else _name_like(batch, name, kind)
    return (None, why_not) if kind is None or why_not else (Column(name, kind, reason=nature), "")


def _name_like(batch: Batch, name: str, kind: str) -> str:
    """Why a column names its rows rather than describing them; empty if it does not."""
    if kind == NUMBER:
        x = batch.numbers([name], 0, batch.rows)[:, 0]
        x = x[~np.isnan(x)]
        if not len(x):
            return EMPTY
        if len(x) < FEWEST_ROWS_FOR_ID or not np.array_equal(x, np.floor(x)) or len(np.unique(x)) < len(x):
            return ""
        in_a_row = x.max() - x.min() == len(x) - 1
        return (
            f"an ID: {len(x):,} different whole numbers{' in a row' if in_a_row else ''}"
            if in_a_row or ID_NAME.search(name)
            else ""
        )
    coded = batch.coded(name)
    seen = int(((coded.codes >= coded.low) & (coded.codes < coded.low + len(coded.values))).sum())
    if not seen:
        return EMPTY
    many = len(coded.values) == seen if seen < 100 else len(coded.values) > seen / 2
    return (
        f"an ID or a name: {len(coded.values):,} different values in {seen:,} rows"
        if many and seen >= FEWEST_ROWS_FOR_ID
        else ""
    )


def _blocks(columns: Sequence[Column], given: Mapping[str, Block]) -> tuple[Block, ...]:
    """One block a column, unless some were asked to stand together."""
    blocks: dict[Block, None] = {}
    for column in columns:
        own = Block(Categorical() if column.kind == CATEGORY else Gaussian(), (column.name,))
        blocks[given.get(column.name, own)] = None
    return tuple(blocks)


def inspect(data: Any, *, target: str | None = None, missing: Sequence[str] | None = None, encoding: str | None = None,
            on_bad_rows: str = "error") -> list[dict[str, Any]]:  # fmt: skip
    """What Likely sees in a table: each column with its kind, the reason, missing cells and different values."""
    source = open_source(data, Reading(as_tokens(missing), encoding, on_bad_rows))
    found: list[dict[str, Any]] = []
    for batch in source.batches():
        for name in batch.names:
            kind, nature = batch.kind(name)
            left_out = "" if name == target else (nature if kind is None else _name_like(batch, name, kind))
            found.append({"column": name, "kind": kind or "none", "reason": left_out or nature, "used": kind is not None and not left_out,
                          **_summary(batch, name, kind)})  # fmt: skip
        break  # the first batch is what the choice is made from
    require_rows(len(found), source.label)
    return found


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
    if kind is None:
        return {"rows": batch.rows, "missing": batch.rows, "different": 0, "from": None, "to": None}
    coded = batch.coded(name)
    seen_codes = coded.codes[(coded.codes >= coded.low)]
    return {
        "rows": batch.rows,
        "missing": batch.rows - len(seen_codes),
        "different": len(coded.values),
        "from": None,
        "to": None,
    }
