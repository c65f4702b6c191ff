"""The additive whole: class counts and one sufficient statistic for each block of columns.

Never: rows, priors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.errors import ForgetError, UsageError
from likely.families import Block
from likely.families.statistics import Moments, Scatter, Statistic, subtract_counts
from likely.families.word_counts import Words
from likely.schema import CATEGORY, Column, Schema
from likely.tally._tally_parts import (
    Array,
    Places,
    codes_in,
    counted_again,
    expanded,
    holds_expected,
    nearly_equal,
    new_codes,
    order_of,
    refuse_overflow,
    with_column_order,
    without_sample,
)
from likely.tally.row_sample import Reservoir


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
        refuse_overflow(a.blocks, statistics, classes)
        sample = None if a.sample is None or b.sample is None else a.sample + b.sample
        return Tally(a.schema, a.blocks, classes, statistics, a.rows + b.rows, sample)

    def __sub__(self, other: Tally) -> Tally:
        """Subtract counted rows; refused where they were not counted or digits would be lost."""
        if not isinstance(other, Tally):
            return NotImplemented
        a, b = self._aligned(replace(other, schema=other.schema.taken_back()))
        if not a.documents_have_rows:
            message = "was learned beside other columns by an older version, whose sample of rows does not support forgetting"
            text = next(block.name for block, s in zip(a.blocks, a.statistics, strict=True) if isinstance(s, Words))
            raise ForgetError(message, column=text, remedy="learn the model anew, or forget after without_rows()")
        # Moments subtract only approximately. Where all rows are kept, the remaining ones are counted again instead.
        kept = a.sample is not None and b.sample is not None and a.sample.complete and b.sample.complete
        statistics: dict[Block, Statistic] = {}
        for block, x, y in zip(a.blocks, a.statistics, b.statistics, strict=True):
            try:
                if not (kept and isinstance(x, Moments | Scatter)) or holds_expected(block, a.schema, a.sample, x):
                    statistics[block] = x - y
            except ForgetError as error:
                raise ForgetError(f"column {block.name!r}: {error}", column=block.name) from None
        classes = subtract_counts(a.classes, b.classes)
        sample = None if a.sample is None or b.sample is None else a.sample - b.sample
        if sample is not None:
            again = [block for block in a.blocks if block not in statistics]
            statistics |= {block: counted_again(block, a.schema, sample) for block in again}
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
        """The tally without values and classes of zero weight.

        Parameters
        ----------
        keep_classes : sequence, default=()
            Labels that stay in any case.

        Returns
        -------
        Tally
            The same counts.
        """
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
        sample = None if self.sample is None else self.sample.moved(*new_codes(self.schema, labels, places))
        return replace(self, schema=schema, classes=self.classes[labels], statistics=statistics, sample=sample)

    def with_schema(self, schema: Schema) -> Tally:
        """The same counts in a schema with more classes and values.

        Parameters
        ----------
        schema : Schema
            A schema that has all classes and values of this one.

        Returns
        -------
        Tally
            The same counts.
        """
        if schema == self.schema:
            return replace(self, schema=schema)
        labels = codes_in(self.schema.target, schema.target)
        coded = [(c, schema.by_name[c.name]) for c in self.schema.columns if c.kind == CATEGORY]
        moved = {c.name for c, new in coded if c.values != new.values}
        places = {c.name: codes_in(c, new) if c.name in moved else np.arange(len(c.values)) for c, new in coded}
        sizes = {c.name: len(c.values) for c in schema.columns}
        classes = np.zeros(len(schema.classes))
        np.add.at(classes, labels, self.classes)
        other = self.schema.classes != schema.classes
        statistics = tuple(
            expanded(
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
        """The tally of some of the classes, under the given labels.

        Parameters
        ----------
        places : sequence of int
            Places of the classes.
        labels : sequence
            Their labels from now on.

        Returns
        -------
        Tally
            Their counts.
        """
        index = np.array(places, dtype=np.intp)
        statistics = tuple(
            statistic.pick([index, *(np.arange(len(self.schema.by_name[name].values)) for name in self._axes(block))])
            for block, statistic in zip(self.blocks, self.statistics, strict=True)
        )
        schema = replace(self.schema, target=replace(self.schema.target, values=tuple(labels)))
        sample = None if self.sample is None else self.sample.moved(*new_codes(self.schema, index, {}))
        return replace(self, schema=schema, classes=self.classes[index], statistics=statistics, sample=sample)

    def with_values(self, named: Mapping[str, Iterable[Any]]) -> Tally:
        """The tally with more values of some columns, with a count of zero.

        Parameters
        ----------
        named : mapping of str to iterable
            Column → values.

        Returns
        -------
        Tally
            The same counts.
        """
        columns = tuple(
            c.union(replace(c, values=tuple(named[c.name]))) if c.kind == CATEGORY and c.name in named else c
            for c in self.schema.columns
        )
        return self.with_schema(replace(self.schema, columns=columns))

    def without(self, name: str, reason: str) -> Tally:
        """The tally without one column, with the reason in the schema.

        Parameters
        ----------
        name : str
            The column; a block that holds it goes with it.
        reason : str
            Why it was left out.

        Returns
        -------
        Tally
            The counts of the others.
        """
        keep = [i for i, block in enumerate(self.blocks) if name not in block.columns]
        columns = tuple(c for c in self.schema.columns if c.name != name)
        schema = replace(self.schema, columns=columns, ignored=(*self.schema.ignored, (name, reason)))
        blocks = tuple(self.blocks[i] for i in keep)
        statistics = tuple(self.statistics[i] for i in keep)
        sample = None if self.sample is None else self.sample.without(name)
        return replace(self, schema=schema, blocks=blocks, statistics=statistics, sample=sample)

    def counted_the_same(self, other: Tally) -> bool:
        """Whether both have the same counts, as from equal rows in any order.

        Parameters
        ----------
        other : Tally
            The other tally.

        Returns
        -------
        bool
            True if all counts are equal, moments up to rounding.
        """
        if self.rows != other.rows:
            return False
        try:
            a, b = self._aligned(other)
        except UsageError:
            return False
        pairs = zip(a.statistics, b.statistics, strict=True)
        return np.allclose(a.classes, b.classes, rtol=1e-9) and all(x == y or nearly_equal(x, y) for x, y in pairs)

    def in_common(self, other: Tally) -> tuple[float, float, float]:
        """Weight of the other's rows in this row sample, weight that was checked, and the share of repeated rows here.

        Parameters
        ----------
        other : Tally
            The tally of other rows.

        Returns
        -------
        (float, float, float)
            The two weights, and the share.
        """
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
        """The same counts without rows and documents; numbers are rounded as far as bins with these edges allow.

        Parameters
        ----------
        edges : mapping of str to array
            Edges of the bins, by block.

        Returns
        -------
        Tally
            The counts.
        """
        pairs = zip(self.blocks, self.statistics, strict=True)
        statistics = [without_sample(statistic, edges.get(block.name)) for block, statistic in pairs]
        return replace(self, statistics=tuple(statistics), sample=None)

    def _aligned(self, other: Tally) -> tuple[Tally, Tally]:
        other = other._in_order_of(self)
        one, two = self.with_kinds_of(other), other.with_kinds_of(self)
        schema = one.schema.union(two.schema)
        return one.with_schema(schema), two.with_schema(schema)

    def with_kinds_of(self, other: Tally) -> Tally:
        """The same tally; a column all of whose cells are missing takes its kind from the other tally.

        Parameters
        ----------
        other : Tally
            The tally of other rows.

        Returns
        -------
        Tally
            The same counts.
        """
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
        order = order_of(self.blocks, self.schema, first.blocks, first.schema)
        pairs = zip(first.blocks, order, strict=True)
        statistics = tuple(
            with_column_order(self.blocks[i], self.statistics[i], block.columns, self._axes(self.blocks[i]))
            for block, i in pairs
        )
        return replace(self, blocks=first.blocks, statistics=statistics)

    def _axes(self, block: Block) -> list[str]:
        """The categorical columns of a block: each is an axis of its statistic."""
        return [name for name in block.columns if self.schema.by_name[name].kind == CATEGORY]
