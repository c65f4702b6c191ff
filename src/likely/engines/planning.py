"""Planning: kind and family of every column, as asked for or by default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from likely.engines import Plan
from likely.engines.targets import Opened, as_names, refuse_many_values
from likely.errors import DataError, SchemaError, UsageError, asked_family, did_you_mean, no_column
from likely.families import Block, Family, default_for, family, joint_family
from likely.kernels.parallel import side_by_side
from likely.schema import BINS, CATEGORY, NUMBER, TEXT, Column
from likely.sources import EMPTY, Batch, Coded, Frame, Source, require_rows
from likely.sources.date_parts import PARTS, DatePart, possible_parts

ID_NAME = re.compile(r"(^|[_\W])(id|uuid|guid|key|index|idx|nr|no)$", re.IGNORECASE)
INDEX_NAME = re.compile(r"__index_level_\d+__")
UNNAMED = re.compile(r"\s*|Unnamed: \d+")  # what pandas calls its index in a CSV file, and that column when it reads it
FEWEST_ROWS_FOR_ID = 8
AT_FIRST = 16  # rows
FEWEST_WORDS_FOR_TEXT = 5  # on average: fewer make a name or an address
MANY_DOCUMENTS, DIFFERENT = 100, 0.1  # different values, and their share of the rows: fewer are answers to choose from
REST = "*"  # in a mapping from columns: every column that is not named otherwise
AUTO, NONE = "auto", "none"  # parts of dates: those that are informative, and none


def plan_for(
    table: Opened,
    families: Any,
    joint: Sequence[Sequence[str]],
    ignore: Sequence[str],
    *,
    plain: bool = False,
    few_classes: bool = True,
    date_parts: Any = AUTO,
) -> Plan:
    """The plan: every column with its family, chosen from the first rows where none was asked for.

    With `few_classes`, a target that is a quantity rather than a class is refused.
    """
    source, target, weights = table.source, table.target, table.weights
    ignore = (*as_names(ignore), *([weights] if weights is not None else []))
    first = _first_rows(source)
    names = list(first.names)
    target = getattr(source, "target", None) if target is None else target  # folders of texts bring their own
    if target is None:
        raise UsageError(f"target= (--target) is missing: name the column to predict; {source.label} has {names[:20]}")
    if isinstance(first, Frame):
        asked = NONE if plain and date_parts == AUTO else date_parts
        first = replace(first, parts=derived(first, asked, families, (target, *ignore)))
    names = list(first.names)
    aside = [name for name in getattr(source, "shown", ()) if name not in (target, *ignore)]
    if absent := {target, *ignore}.difference(names):
        raise no_column(source.label, next(name for name in (target, *ignore) if name in absent), names)
    if few_classes:
        refuse_many_values(first, target)
    unused = {target, *ignore, *aside}
    plan = plan_columns(first, [n for n in names if n not in unused], target, families, joint, plain=plain)
    left_out = [(name, "asked for") for name in ignore if name != weights]
    left_out += [(name, first.kind(name)[1]) for name in aside]
    ignored = (*left_out, *plan.ignored)
    plan = replace(plan, weights=weights, ignored=ignored, target_form=BINS if table.edges else "")
    if not plan.blocks:
        raise DataError(f"{source.label} has no column to learn from besides {target!r}: {dict(plan.ignored)}")
    return plan


def _first_rows(source: Source) -> Batch:
    first = next(iter(source.batches()), None)
    if first is None or first.rows == 0:
        require_rows(0, source.label)
    assert first is not None
    return first


def derived(batch: Frame, date_parts: Any, families: Any, aside: Sequence[str]) -> dict[str, DatePart]:
    """Columns derived from dates: those asked for; with "auto", all parts of dates for which no family is asked."""
    auto = date_parts == AUTO
    given = _as_mapping(families)
    named = {name for key in given if key != REST for name in as_names(key)}
    if auto and REST in given and len(given) == 1:
        return {}
    wanted = () if auto or date_parts is None or date_parts == NONE else as_names(date_parts)
    if not (auto or wanted):
        return {}
    found: dict[str, DatePart] = {}
    for name in batch.columns:
        for part in possible_parts(batch, name) if name not in aside or not auto else ():
            made = DatePart(name, part, batch.format_code(name), not auto)
            free = name not in named and REST not in given  # its family was left to be chosen
            offered = free or made.name in named if auto else part in wanted or made.name in wanted
            if offered and made.name not in batch.columns:
                found[made.name] = made
    odd = [name for name in wanted if name not in (*PARTS, *found)]
    if odd or (wanted and not found):
        known = [name for column in batch.columns for name in (f"{column}.{p}" for p in possible_parts(batch, column))]
        what = f"there is no {odd[0]!r} of a date{did_you_mean(odd[0], [*PARTS, *known])}" if odd else "there are no dates"
        raise UsageError(f"date_parts={date_parts!r}: {what}; choose from auto, none, {', '.join([*PARTS, *known][:20])}")
    return found


def plan_columns(
    batch: Batch,
    names: Sequence[str],
    target: str,
    families: Any,
    joint: Sequence[Sequence[str]],
    *,
    keep_all: bool = False,
    plain: bool = False,
) -> Plan:
    """Every column with its family: the one asked for, else the default of its kind.

    Columns that only identify rows are left out, unless `keep_all` is set.
    """
    given, inside = _requested_blocks(families, joint, list(names))
    columns: list[Column] = []
    ignored: list[tuple[str, str]] = []
    planned = side_by_side(lambda name: _column(batch, name, given.get(name), inside.get(name), keep_all), names, batch.rows)
    for name, (column, reason) in zip(names, planned, strict=True):
        if column is None:
            ignored.append((name, reason))
        else:
            part = batch.parts.get(name) if isinstance(batch, Frame) else None
            asked = column.asked_for or (part is not None and part.asked)
            columns.append(replace(column, form=_format_code(batch, column), asked_for=asked))
    droppable = frozenset() if keep_all else frozenset(c.name for c in columns if c.name not in given)
    # Where a family was asked for in every column, nothing is fitted on top of the counts.
    sample = not plain and any(c.name not in given and c.kind in (CATEGORY, NUMBER) for c in columns)
    blocks = _blocks(columns, given, plain)
    plan = Plan(target, blocks, tuple(columns), None, tuple(ignored), droppable, sample=sample)
    return replace(plan, parts=batch.parts) if isinstance(batch, Frame) else plan


def _format_code(batch: Batch, column: Column) -> str:
    """Number format of a column as the schema stores it; empty for columns without one."""
    if not isinstance(batch, Frame) or (column.kind != NUMBER and column.name not in batch.parts):
        return ""
    return batch.format_code(column.name)


def _requested_blocks(
    families: Any, joint: Sequence[Sequence[str]], names: list[str]
) -> tuple[dict[str, Block], dict[str, Family]]:
    """The block that each column was asked to be in, and its own family inside of a joint block, where it was given one."""
    families = _for_the_rest(_as_mapping(families), joint, names)
    for block in joint:
        if isinstance(block, str):
            raise UsageError(f"joint={joint!r} names a column where a block is meant: pass joint=[('a', 'b'), ...]")
    known, wanted = set(names), dict[str, Block]()
    asked = chain(families.items(), ((tuple(block), joint_family()) for block in joint))
    blocks, inside = _joined([_sized(family(value), key) for key, value in asked])
    for made in blocks:
        for name in made.columns:
            if name not in known:
                meant = did_you_mean(name, names)
                raise SchemaError(
                    f"there is no column {name!r} for the family {made.family.name}{meant}: the columns are {names[:20]}",
                    column=name,
                )
            if name in wanted and wanted[name] != made:
                raise UsageError(_two_blocks(name, wanted[name], made))
            wanted[name] = made
    return wanted, inside


def _joined(blocks: list[Block]) -> tuple[list[Block], dict[str, Family]]:
    """The blocks, where a family that was given for a column of a joint block is a setting of that block."""
    found, inside = list(blocks), dict[str, Family]()
    for block in [block for block in blocks if len(block.columns) > 1]:
        own = [one for one in blocks if len(one.columns) == 1 and one.columns[0] in block.columns]
        settings = [one.family.joint_settings() for one in own]
        if block.family.column_kind is not None or not own or None in settings:
            continue
        inside |= {one.columns[0]: one.family for one in own}
        found = [_with_settings(block, settings) if one == block else one for one in found if one not in own]
    return found, inside


def _with_settings(block: Block, settings: Sequence[Mapping[str, Any] | None]) -> Block:
    """The joint block with the settings that its columns ask for, which must agree with one another and with its own."""
    made: Any = block.family
    wished = {name: value for each in settings for name, value in (each or {}).items() if value is not None}
    own = {name: value for name, value in made.settings().items() if value is not None}
    if any(each != settings[0] for each in settings) or any(own.get(name, value) != value for name, value in wished.items()):
        raise UsageError(
            f"the joint block {list(block.columns)} has one covariance, and its columns are given families that share it "
            "differently: give all of them the same tie"
        )
    return replace(block, family=replace(made, **wished))


def _as_mapping(families: Any) -> Mapping[Any, Any]:
    """`families` as a mapping from columns to families, in which "*" stands for every column not named otherwise."""
    if isinstance(families, Mapping):
        return {key: value for key, value in families.items() if key != REST or not _is_auto(value)}
    return {} if _is_auto(families) else {REST: families}


def _is_auto(given: Any) -> bool:
    return given is None or (isinstance(given, str) and given == AUTO)


def _for_the_rest(
    families: Mapping[Any, Any], joint: Sequence[Sequence[str]], names: list[str]
) -> Mapping[Any, Any]:
    """The same mapping with the columns that "*" stands for in its place."""
    if REST not in families:
        return families
    own = {key: value for key, value in families.items() if key != REST}
    asked = ((key, family(value)) for key, value in own.items())
    apart = joint_names(joint) | {name for key, made in asked for name in made.block_columns(as_names(key))}
    one, rest = family(families[REST]), [name for name in names if name not in apart]
    if not rest:
        return own
    return own | (dict.fromkeys(rest, one) if one.for_each_column else {tuple(rest): one})


def _two_blocks(name: str, one: Block, other: Block) -> str:
    if len(one.columns) > 1 and len(other.columns) > 1:
        both = f"{list(one.columns)} and {list(other.columns)}"
        return f"column {name!r} is asked to be in two blocks at once, {both}: name it in one, or make them one block"
    return f"column {name!r} is asked to be {one.family.name} and {other.family.name} at once: choose one"


def joint_names(joint: Sequence[Sequence[str]]) -> set[str]:
    """All columns of joint blocks."""
    return {name for block in joint for name in block}


def _sized(made: Family, key: Any) -> Block:
    columns = made.block_columns(as_names(key))
    if len(set(columns)) < len(columns):
        raise UsageError(f"the block {list(columns)} names a column twice: name each once")
    if made.for_each_column and len(columns) > 1:
        raise UsageError(
            f"the family {made.name} takes one column, not {list(columns)}: use Joint or Multinomial for a block"
        )
    return Block(made, columns)


def _column(
    batch: Batch, name: str, block: Block | None, inside: Family | None, keep: bool
) -> tuple[Column | None, str]:
    """The column as it is modelled, or None and the reason why it is left out."""
    kind, nature = batch.kind(name)
    if block is not None:
        if wanted := (inside or block.family).column_kind:
            named = f"{inside.name} in a {block.family.name} block" if inside else block.family.name
            return Column(name, wanted, reason=f"{named} as asked for", asked_for=True), ""
        if guessed := kind is None and nature == EMPTY:  # all cells of it are empty here: another part may have values
            others = {batch.kind(other)[0] for other in block.columns if other != name} - {None}
            kind = NUMBER if others == {NUMBER} else CATEGORY
        if kind is None:
            raise DataError(f"cannot be used: {nature}", column=name)
        return Column(name, kind, reason=f"{nature}, {block.family.name} as asked for", guessed=guessed, asked_for=True), ""
    if keep and kind is None:
        if nature != EMPTY:
            raise DataError(f"cannot be used: {nature}", column=name)
        kind = CATEGORY  # of no values yet
    if kind == CATEGORY and not keep and (words := _words_of_documents(batch.coded(name))):
        return Column(name, TEXT, reason=f"text, {words:.0f} words a row"), ""
    why_not = nature if kind is None else "" if keep else name_like(batch, name, kind)
    return (None, why_not) if kind is None or why_not else (Column(name, kind, reason=nature), "")


def name_like(batch: Batch, name: str, kind: str) -> str:
    """Why a column identifies its rows rather than describing them; empty if it does not."""
    if isinstance(batch, Frame) and name in batch.parts:
        return ""
    if INDEX_NAME.fullmatch(name):
        return "the index that pandas wrote beside the columns"
    if kind == TEXT:
        return ""
    if kind == NUMBER:
        some = batch.numbers([name], 0, min(batch.rows, AT_FIRST))[:, 0]
        if (np.floor(some) < some).any():  # no whole numbers; NaN is not
            return ""
        x = batch.numbers([name], 0, batch.rows)[:, 0]
        x = x[~np.isnan(x)]
        if not len(x):
            return EMPTY
        if len(x) < FEWEST_ROWS_FOR_ID or not np.array_equal(x, np.floor(x)) or len(np.unique(x)) < len(x):
            return ""
        in_a_row = x.max() - x.min() == len(x) - 1
        found = f"{len(x):,} different whole numbers{' in a row' if in_a_row else ''}"
        return (
            f"an ID: {found}; {asked_family(name, 'gaussian')} keeps it"
            if in_a_row or ID_NAME.search(name) or UNNAMED.fullmatch(name)
            else ""
        )
    coded = batch.coded(name)
    seen = _present(coded)
    if not seen:
        return EMPTY
    many = len(coded.values) == seen if seen < 100 else len(coded.values) > seen / 2
    found = f"{len(coded.values):,} different values in {seen:,} rows"
    return (
        f"an ID or a name: {found}; {asked_family(name, 'categorical')} keeps it"
        if many and seen >= FEWEST_ROWS_FOR_ID
        else ""
    )


def used_as(batch: Batch, name: str) -> tuple[str | None, str, bool]:
    """Kind of a column, the reason for it, and whether it is used by default."""
    kind, nature = batch.kind(name)
    column, why_not = _column(batch, name, None, None, keep=False)
    return (column.kind, column.reason, True) if column is not None else (kind, why_not or nature, False)


def _present(coded: Coded) -> int:
    """Number of cells that are not missing."""
    return int(((coded.codes >= coded.low) & (coded.codes < coded.low + len(coded.values))).sum())


def _words_of_documents(coded: Coded) -> float:
    """Mean number of words if the values are documents, most of them different or at least many; 0 if they are not."""
    words, different = words_a_cell(coded), len(coded.values)
    if words < FEWEST_WORDS_FOR_TEXT or different < 2:
        return 0.0
    seen = _present(coded)
    several = different > seen / 2 or (different >= MANY_DOCUMENTS and different > seen * DIFFERENT)
    return words if several and seen >= FEWEST_ROWS_FOR_ID else 0.0


def words_a_cell(coded: Coded) -> float:
    """Mean number of words of the values; 0 if they are no text."""
    some = [value for value in coded.values[:1000] if isinstance(value, str)]
    return sum(len(value.split()) for value in some) / len(some) if some else 0.0


def _blocks(columns: Sequence[Column], given: Mapping[str, Block], plain: bool) -> tuple[Block, ...]:
    """One block for each column, except for joint blocks."""
    blocks: dict[Block, None] = {}
    for column in columns:
        own = Block(default_for(column.kind, plain=plain), (column.name,))
        blocks[given.get(column.name, own)] = None
    _refuse_one_name(blocks)
    return tuple(blocks)


def _refuse_one_name(blocks: Iterable[Block]) -> None:
    """Refuse a column that is called as a block of other columns would be: weights and priors go by these names."""
    named: dict[str, Block] = {}
    for block in blocks:
        other = named.setdefault(block.name, block)
        if other is not block:
            both = f"{list(other.columns)} and {list(block.columns)}"
            raise UsageError(f"{both} would both be called {block.name!r}: rename a column, or do not join these")
