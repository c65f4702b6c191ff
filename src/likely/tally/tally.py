"""The additive whole: class counts and one sufficient statistic for each block of columns.

Never: rows, priors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, ForgetError, UsageError
from likely.families import Block, Encoded
from likely.families.histogram import Histogram
from likely.families.statistics import Counts, Moments, Scatter, Statistic, finite, subtract_counts
from likely.families.word_counts import Words
from likely.schema import CATEGORY, Column, Schema, places_in
from likely.tally.row_sample import Reservoir

Array = NDArray[np.float64]
Places = dict[str, NDArray[np.intp]]


@dataclass(frozen=True, eq=False)
class Tally:
    """What was counted; tallies of one schema add.

    Attributes
    ----------
    schema : Schema
        What the columns mean.
    blocks : tuple of Block
        The columns as they are modelled, alone or together, each with its family.
    classes : array
        Weight of the rows of each class.
    statistics : tuple of Statistic
        Sufficient statistic of each block.
    rows : int
        Number of rows.
    sample : Reservoir or None
        A sample of the rows, for the calibration; None in a plain model.
    """

    schema: Schema
    blocks: tuple[Block, ...]
    classes: Array
    statistics: tuple[Statistic, ...]
    rows: int = 0
    sample: Reservoir | None = None  # of the rows themselves, for the calibration

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        names = ("schema", "blocks", "statistics", "rows", "sample")
        same = all(getattr(self, name) == getattr(other, name) for name in names)
        return same and np.array_equal(self.classes, other.classes)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Tally) -> Tally:
        """Tally of both sets of rows, with the classes and values of both."""
        if not isinstance(other, Tally):
            return NotImplemented
        a, b = self._aligned(other)
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is refused below
            statistics = tuple(x + y for x, y in zip(a.statistics, b.statistics, strict=True))
            classes = a.classes + b.classes
        _refuse_overflow(a.blocks, statistics, classes)
        sample = None if a.sample is None or b.sample is None else a.sample + b.sample
        return Tally(a.schema, a.blocks, classes, statistics, a.rows + b.rows, sample)

    def __sub__(self, other: Tally) -> Tally:
        """Subtract counted rows; refused where they were not counted or digits would be lost."""
        if not isinstance(other, Tally):
            return NotImplemented
        a, b = self._aligned(replace(other, schema=other.schema.taken_back()))
        # Moments subtract only approximately. Where all rows are kept, the remaining ones are counted again instead.
        kept = a.sample is not None and b.sample is not None and a.sample.complete and b.sample.complete
        statistics: dict[Block, Statistic] = {}
        for block, x, y in zip(a.blocks, a.statistics, b.statistics, strict=True):
            try:
                if not (kept and isinstance(x, Moments | Scatter)) or _holds_expected(block, a, x):
                    statistics[block] = x - y
            except ForgetError as error:
                raise ForgetError(f"column {block.name!r}: {error}", column=block.name) from None
        classes = subtract_counts(a.classes, b.classes)
        if not a.documents_have_rows:
            message = "was learned beside other columns by an older version, whose sample of rows does not support forgetting"
            text = next(block.name for block, s in zip(a.blocks, a.statistics, strict=True) if isinstance(s, Words))
            raise ForgetError(message, column=text, remedy="learn the model anew, or forget after without_rows()")
        sample = None if a.sample is None or b.sample is None else a.sample - b.sample
        if sample is not None:
            again = [block for block in a.blocks if block not in statistics]
            statistics |= {block: _counted_again(block, a.schema, sample) for block in again}
        left = tuple(statistics[block] for block in a.blocks)
        return Tally(a.schema, a.blocks, classes, left, max(a.rows - b.rows, 0), sample)

    def __mul__(self, factor: float) -> Tally:
        """Tally of every row counted `factor` times."""
        if not (factor >= 0 and np.isfinite(factor)):
            raise UsageError(f"a tally cannot be multiplied by {factor!r}: use a number of zero or more")
        statistics = tuple(statistic * factor for statistic in self.statistics)
        sample = None if self.sample is None else self.sample * factor
        rows = round(self.rows * factor)
        return Tally(self.schema, self.blocks, self.classes * factor, statistics, rows, sample)

    __rmul__ = __mul__

    def zero(self) -> Tally:
        """The empty tally: neutral in every sum."""
        return self * 0.0

    def pruned(self, keep_classes: Sequence[Any] = ()) -> Tally:
        """The tally without values and classes of zero weight."""
        target = self.schema.target
        labels = np.array(
            [c for c, label in enumerate(target.values) if self.classes[c] > 0 or label in keep_classes], np.intp
        )
        places: Places = {}
        for block, statistic in zip(self.blocks, self.statistics, strict=True):
            weight = statistic.weight()
            for axis, name in enumerate(self._axes(block), start=1):
                seen = weight.sum(tuple(a for a in range(weight.ndim) if a != axis)) > 0
                if self.sample is not None:  # a row that lacks another cell of its block is kept, though not counted
                    codes = self.sample.columns[name]
                    seen[codes[codes >= 0]] = True
                places[name] = np.flatnonzero(seen)
        columns = tuple(
            replace(c, values=tuple(c.values[i] for i in places[c.name]))
            if c.name in places and len(places[c.name]) < len(c.values)
            else c
            for c in self.schema.columns
        )
        schema = replace(
            self.schema, target=replace(target, values=tuple(target.values[i] for i in labels)), columns=columns
        )
        if schema == self.schema:
            return self
        statistics = tuple(
            statistic.pick([labels, *(places[name] for name in self._axes(block))])
            for block, statistic in zip(self.blocks, self.statistics, strict=True)
        )
        sample = None if self.sample is None else self.sample.moved(*_new_codes(self.schema, labels, places))
        return replace(self, schema=schema, classes=self.classes[labels], statistics=statistics, sample=sample)

    def with_schema(self, schema: Schema) -> Tally:
        """The same counts in a schema with more classes and values."""
        if schema == self.schema:
            return replace(self, schema=schema)
        labels = _places(self.schema.target, schema.target)
        coded = [(c, schema.by_name[c.name]) for c in self.schema.columns if c.kind == CATEGORY]
        moved = {c.name for c, new in coded if c.values != new.values}
        places = {c.name: _places(c, new) if c.name in moved else np.arange(len(c.values)) for c, new in coded}
        sizes = {c.name: len(c.values) for c in schema.columns}
        classes = np.zeros(len(schema.classes))
        np.add.at(classes, labels, self.classes)
        other = self.schema.classes != schema.classes
        statistics = tuple(
            _expanded(
                statistic,
                [labels, *(places[name] for name in self._axes(block))],
                [len(schema.classes), *(sizes[name] for name in self._axes(block))],
            )
            if other or not moved.isdisjoint(block.columns)
            else statistic
            for block, statistic in zip(self.blocks, self.statistics, strict=True)
        )
        gone = {name: places[name] for name in moved}
        sample = None if self.sample is None else self.sample.moved(labels if other else None, gone)
        return replace(self, schema=schema, classes=classes, statistics=statistics, sample=sample)

    def of_classes(self, places: Sequence[int], labels: Sequence[Any]) -> Tally:
        """The tally of some of the classes, under the given labels."""
        index = np.array(places, dtype=np.intp)
        statistics = tuple(
            statistic.pick([index, *(np.arange(len(self.schema.by_name[name].values)) for name in self._axes(block))])
            for block, statistic in zip(self.blocks, self.statistics, strict=True)
        )
        schema = replace(self.schema, target=replace(self.schema.target, values=tuple(labels)))
        sample = None if self.sample is None else self.sample.moved(*_new_codes(self.schema, index, {}))
        return replace(self, schema=schema, classes=self.classes[index], statistics=statistics, sample=sample)

    def with_values(self, named: Mapping[str, Iterable[Any]]) -> Tally:
        """The tally with more values of some columns, with a count of zero."""
        columns = tuple(
            c.union(replace(c, values=tuple(named[c.name]))) if c.kind == CATEGORY and c.name in named else c
            for c in self.schema.columns
        )
        return self.with_schema(replace(self.schema, columns=columns))

    def without(self, name: str, reason: str) -> Tally:
        """The tally without one column, with the reason in the schema."""
        keep = [i for i, block in enumerate(self.blocks) if name not in block.columns]
        columns = tuple(c for c in self.schema.columns if c.name != name)
        schema = replace(self.schema, columns=columns, ignored=(*self.schema.ignored, (name, reason)))
        blocks = tuple(self.blocks[i] for i in keep)
        statistics = tuple(self.statistics[i] for i in keep)
        sample = None if self.sample is None else self.sample.without(name)
        return replace(self, schema=schema, blocks=blocks, statistics=statistics, sample=sample)

    def counted_the_same(self, other: Tally) -> bool:
        """Whether both have the same counts, as from equal rows in any order."""
        if self.rows != other.rows:
            return False
        try:
            a, b = self._aligned(other)
        except UsageError:
            return False
        pairs = zip(a.statistics, b.statistics, strict=True)
        return np.allclose(a.classes, b.classes, rtol=1e-9) and all(x == y or _close(x, y) for x, y in pairs)

    def in_common(self, other: Tally) -> tuple[float, float, float]:
        """Weight of the other's rows in this row sample, weight that was checked, and the share of repeated rows here."""
        a, b = self._aligned(other)
        if a.sample is None or b.sample is None:
            return 0.0, 0.0, 1.0
        single = float((a.sample.weights <= 1.0).sum())
        return *a.sample.in_common(b.sample), 1.0 - single / max(float(a.sample.weights.sum()), 1.0)

    @property
    def documents_have_rows(self) -> bool:
        """Whether most sampled documents have the key of a sampled row; older versions gave them other keys."""
        sample = self.sample
        kept = [s.sample.keys for s in self.statistics if isinstance(s, Words) and s.sample is not None]
        if sample is None or not kept:
            return True
        keys = np.concatenate([own[own < sample.limit] for own in kept])
        return not len(keys) or bool(np.isin(keys, sample.keys).mean() > 0.5)

    @property
    def rows_kept(self) -> int:
        """Number of rows of the table, or documents, that are kept for the calibration."""
        documents = [len(s.sample) for s in self.statistics if isinstance(s, Words) and s.sample is not None]
        return max([0 if self.sample is None else len(self.sample), *documents])

    def without_rows(self, edges: Mapping[str, Array]) -> Tally:
        """The same counts without rows and documents; numbers are rounded as far as bins with these edges allow."""
        statistics: list[Any] = []
        for block, statistic in zip(self.blocks, self.statistics, strict=True):
            if isinstance(statistic, Words):
                statistics.append(statistic.without_sample())
            elif isinstance(statistic, Histogram) and block.name in edges:
                statistics.append(statistic.coarse(edges[block.name]))
            else:
                statistics.append(statistic)
        return replace(self, statistics=tuple(statistics), sample=None)

    def _aligned(self, other: Tally) -> tuple[Tally, Tally]:
        other = other._in_order_of(self)
        one, two = self.with_kinds_of(other), other.with_kinds_of(self)
        schema = one.schema.union(two.schema)
        return one.with_schema(schema), two.with_schema(schema)

    def with_kinds_of(self, other: Tally) -> Tally:
        """The same tally; a column all of whose cells are missing takes its kind from the other tally."""
        learned_kinds: dict[str, Column] = {}
        for mine in self.schema.columns:
            theirs = other.schema.by_name.get(mine.name, mine)
            # Of two inferred kinds always the same one is taken, so that the order of a sum does not matter.
            if mine.guessed and mine.kind != theirs.kind and (not theirs.guessed or theirs.kind > mine.kind):
                learned_kinds[mine.name] = replace(theirs, values=())
        if not learned_kinds:
            return self
        columns = self.schema.by_name | learned_kinds
        statistics = tuple(
            block.nothing([columns[name] for name in block.columns], len(self.classes))
            if learned_kinds.keys() & set(block.columns)
            else statistic
            for block, statistic in zip(self.blocks, self.statistics, strict=True)
        )
        schema = replace(self.schema, columns=tuple(columns[c.name] for c in self.schema.columns))
        sample = None if self.sample is None else self.sample.without_cells(learned_kinds.values())
        return replace(self, schema=schema, statistics=statistics, sample=sample)

    def _in_order_of(self, first: Tally) -> Tally:
        """The same tally with its blocks in the order of another; refused where families or columns differ."""
        if self.blocks == first.blocks:
            return self
        place = {frozenset(block.columns): i for i, block in enumerate(self.blocks)}
        order = [place.get(frozenset(block.columns)) for block in first.blocks]
        for block, at in zip(first.blocks, order, strict=True):
            if at is None or not self.blocks[at].family.counts_like(block.family):
                found = "nothing" if at is None else self.blocks[at].family
                raise UsageError(
                    f"column {block.name!r} is {block.family} in one model and {found} in the other: "
                    f"learn both with the same families and columns{_and_parts(first.schema, block.columns)}"
                )
        if len(order) != len(self.blocks):
            odd = [name for block in self.blocks for name in block.columns if name not in first.schema.by_name]
            same = f"learn both from the same columns{_and_parts(self.schema, odd)}"
            raise UsageError(f"one model has columns that the other has not, such as {odd[:1]}: {same}")
        pairs = zip(first.blocks, order, strict=True)
        statistics = tuple(self._with_column_order(i, block.columns) for block, i in pairs if i is not None)
        return replace(self, blocks=first.blocks, statistics=statistics)

    def _with_column_order(self, at: int, columns: tuple[str, ...]) -> Statistic:
        """The statistic of a block, its columns in the given order."""
        mine, statistic = self.blocks[at].columns, self.statistics[at]
        if mine == columns or not isinstance(statistic, Counts | Scatter):
            return statistic
        if self.blocks[at].family.columns_have_roles:
            raise UsageError(
                f"columns {list(mine)} are trials and successes: name them in the same order in both models"
            )
        coded = self._axes(self.blocks[at])
        numbers = [name for name in mine if name not in coded]
        return statistic.turned(
            [coded.index(n) for n in columns if n in coded], [numbers.index(n) for n in columns if n in numbers]
        )

    def _axes(self, block: Block) -> list[str]:
        """The categorical columns of a block: each is an axis of its statistic."""
        return [name for name in block.columns if self.schema.by_name[name].kind == CATEGORY]


def _and_parts(schema: Schema, names: Sequence[str]) -> str:
    """Addition to a remedy where columns are derived from dates."""
    return " and the same date_parts=" if any("/" in schema.by_name[name].form for name in names) else ""


def _close(x: Statistic, y: Statistic) -> bool:
    """Whether two statistics are equal up to the rounding of their sums."""
    if isinstance(x, Words) and isinstance(y, Words):
        return x.nearly(y)
    if not isinstance(x, Counts | Moments | Scatter):
        return False
    pairs = [(array, y.arrays()[name]) for name, array in x.arrays().items()]
    return all(np.allclose(a, b, rtol=1e-9, atol=1e-12 * float(np.abs(a).max(initial=0.0))) for a, b in pairs)


def _holds_expected(block: Block, tally: Tally, statistic: Moments | Scatter) -> bool:
    """Whether rows with missing cells were counted by their expectation (EM): counting the kept rows again would lose that."""
    if isinstance(statistic, Moments) or tally.sample is None:
        return False
    complete_weight = float(_counted_again(block, tally.schema, tally.sample).weight().sum())
    return float(statistic.n.sum()) > complete_weight * (1 + 1e-9)


def _counted_again(block: Block, schema: Schema, sample: Reservoir) -> Statistic:
    """Count one block again from the row sample, which is complete."""
    names = [name for name in block.columns if schema.by_name[name].kind == CATEGORY]
    codes = [sample.columns[name] for name in names]
    numbers = [sample.columns[name] for name in block.columns if name not in names]
    sizes = np.array([len(schema.by_name[name].values) for name in names], np.int64)
    rows = Encoded(
        np.column_stack(codes) if codes else np.zeros((len(sample), 0), np.int32),
        np.zeros(len(names), np.int64),
        sizes,
        np.column_stack(numbers) if numbers else np.zeros((len(sample), 0)),
    )
    return block.family.count(rows, sample.labels, sample.weights, len(schema.classes))[0]


def _refuse_overflow(blocks: Sequence[Block], statistics: Sequence[Statistic], classes: Array) -> None:
    """Refuse a sum that is not finite; counts are finite as long as the class totals are."""
    remedy = "use smaller numbers or weights"
    if not np.isfinite(classes).all():
        raise DataError("the weights of the rows are too large to be added up", remedy=remedy)
    for block, statistic in zip(blocks, statistics, strict=True):
        if isinstance(statistic, Moments | Scatter) and not finite(statistic):
            raise DataError("holds numbers that are too large to be added up", column=block.name, remedy=remedy)


def _new_codes(schema: Schema, labels: NDArray[np.intp], kept: Places) -> tuple[NDArray[np.intp], Places]:
    """New code of each class and value when only some are kept; -1 where it is not."""
    sizes = {column.name: len(column.values) for column in schema.columns}
    return _inverse(labels, len(schema.classes)), {name: _inverse(kept[name], sizes[name]) for name in kept}


def _inverse(kept: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    place = np.full(size, -1, dtype=np.intp)
    place[kept] = np.arange(len(kept))
    return place


def _places(column: Column, larger: Column) -> NDArray[np.intp]:
    return np.array(places_in(larger, column), dtype=np.intp)


def _expanded(statistic: Statistic, maps: list[NDArray[np.intp]], sizes: list[int]) -> Statistic:
    """A statistic on larger domains; values of one code are added."""
    for axis, places in enumerate(maps):
        if len(places) < 2 or np.bincount(places).max() < 2:
            continue
        first = np.sort(np.unique(places, return_index=True)[1])
        if len(first) < len(places):
            rest = np.setdiff1d(np.arange(len(places)), first)
            parts = []
            for kept in (first, rest):
                picks = [kept if a == axis else np.arange(len(each)) for a, each in enumerate(maps)]
                moved = [each[pick] for each, pick in zip(maps, picks, strict=True)]
                parts.append(_expanded(statistic.pick(picks), moved, sizes))
            return parts[0] + parts[1]
    return statistic.expand(maps, sizes)
