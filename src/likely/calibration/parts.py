"""What a calibration consists of, and how it changes the forms that rows are scored by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.base import Parameters
from likely.families.curve import Weighed
from likely.families.forms import Cells, Lookup, Scaled
from likely.schema import Schema

Array = NDArray[np.float64]
Groups = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Interaction:
    """What some columns say together, beyond what each says alone: rows seen against rows expected, cell by cell."""

    columns: tuple[str, ...]
    groups: tuple[Groups, ...]  # for each column, the group of each value or bin, and last that of a missing cell
    table: Array  # cells × classes
    weight: float
    gain: float  # of log likelihood by leave-one-out, when it was chosen
    error: float  # its standard error

    @property
    def name(self) -> str:
        """The columns, joined by 'with'."""
        return " with ".join(self.columns)

    def form(self, places: Sequence[NDArray[Any]]) -> Cells:
        """The form that scores rows; `places` has, column by column, where each code of today stood then (-1: nowhere)."""
        sizes = [int(groups.max()) + 1 for groups in self.groups]
        strides = np.cumprod([1, *sizes[:0:-1]])[::-1]
        maps = []
        for groups, stride, place in zip(self.groups, strides.tolist(), places, strict=True):
            known = np.append(groups[:-1].astype(np.int64) * stride, [NOWHERE, int(groups[-1]) * stride])
            maps.append(known[place])
        return Cells(tuple(maps), self.weight * self.table)


NOWHERE = -(1 << 40)  # added to any place, it stays below zero: the cell says nothing


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far each column is believed, which columns speak together, and a bias for each class."""

    weights: Mapping[str, float]  # of the blocks
    absent: Mapping[str, tuple[float, Array]]  # of the blocks: weight, and what being there and being missing says
    bias: Array
    temperature: float
    interactions: tuple[Interaction, ...]
    edges: Mapping[str, Array]  # of the bins, as they were when this was fitted
    values: Mapping[str, tuple[Any, ...]]  # of the categories in interactions, as they were; None: forgotten since
    counted: float  # the weight of the rows when this was fitted: other rows now, and it is stale
    gains: Mapping[str, float] = field(default_factory=dict)  # log loss a row that leaving a column out would cost
    copies: Array | None = None  # of a row, in the mean of each class, when this was fitted; None: one
    directions: Mapping[str, Array] = field(
        default_factory=dict
    )  # a linear discriminant: what is added to a column's table

    def applied(self, block: str, parameters: Parameters, values: tuple[Any, ...] | None = None) -> Parameters:
        """The parameters of a block with its weight applied; `values` are today's values of a category."""
        weight = self.weights.get(block)
        if weight is None:
            return parameters
        form: Any = parameters.form
        if isinstance(form, Weighed):
            return replace(parameters, form=replace(form, weight=weight))
        if not isinstance(form, Lookup):
            return replace(parameters, form=Scaled(form, weight))
        # A count of zero without a prior rules a class out, unless the column is not believed at all.
        table = weight * form.table if weight else np.zeros_like(form.table)
        if block in self.absent:
            much, said = self.absent[block]
            table[:-1] += much * said[0]
            table[-1] += much * said[1]
        if block in self.directions:
            added = np.concatenate([self.directions[block], np.zeros((2, table.shape[1]))])
            table += added if values is None else added[self._places(block, values)]
        return replace(parameters, form=replace(form, table=table))

    def without_forgotten(self, schema: Schema) -> Calibration:
        """The same calibration, in which no value is named that the schema does not know any more."""
        kept = {}
        for name, values in self.values.items():
            column = schema.by_name[name]
            today = (None if value is None else column.canonical(value) for value in values)
            kept[name] = tuple(value if value in column.code else None for value in today)
        return self if kept == self.values else replace(self, values=kept)

    def together(self, columns: Mapping[str, tuple[Any, ...] | int]) -> list[Parameters]:
        """What columns say together; `columns` has the values of today's categories, or how many bins there are."""
        found = []
        for each in self.interactions:
            places = [self._places(name, columns[name]) for name in each.columns]
            form = each.form(places)
            found.append(Parameters(each.columns, form, (), each.table.size, 0))
        return found

    def _places(self, name: str, today: tuple[Any, ...] | int) -> NDArray[np.int64]:
        """Where each code of today, then an unseen value and a missing cell, stood when this was fitted."""
        if isinstance(today, int):
            return np.arange(today + 2)
        then = {value: i for i, value in enumerate(self.values[name]) if value is not None}
        known = len(self.values[name])
        return np.array([*(then.get(value, known) for value in today), known, known + 1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Calibration):
            return NotImplemented
        same = (self.weights, self.temperature, self.counted) == (other.weights, other.temperature, other.counted)
        named = [(i.columns, i.weight) for i in self.interactions] == [
            (i.columns, i.weight) for i in other.interactions
        ]
        return same and named and np.array_equal(self.bias, other.bias)

    __hash__ = None  # type: ignore[assignment]
