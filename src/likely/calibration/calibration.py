"""Parameters of a calibration, and how they change the likelihood terms that rows are scored by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.base import Parameters
from likely.families.likelihood_form import ScoringLoop
from likely.families.likelihoods import BinnedGaussian, GaussianComponents, InteractionTable
from likely.plots.shown import Shown, ShownTable
from likely.plots.svg import Svg
from likely.schema import Schema

Array = NDArray[np.float64]
Groups = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Interaction:
    """Interaction of some columns: log ratio of observed to expected rows, by cell and class."""

    columns: tuple[str, ...]
    groups: tuple[Groups, ...]  # by column: the group of each value or bin, and last of a missing cell
    table: Array  # cells × classes
    weight: float
    gain: float  # in leave-one-out log likelihood, when it was selected
    error: float  # its standard error

    @property
    def name(self) -> str:
        """Names of the columns, joined by 'with'."""
        return " with ".join(self.columns)

    def likelihood(self, places: Sequence[NDArray[Any]]) -> InteractionTable:
        """Likelihood term that scores rows; `places` has, by column, the fitted code of each current code (-1: none)."""
        sizes = [int(groups.max()) + 1 for groups in self.groups]
        strides = np.cumprod([1, *sizes[:0:-1]])[::-1]
        maps = []
        for groups, stride, place in zip(self.groups, strides.tolist(), places, strict=True):
            known = np.append(groups[:-1].astype(np.int64) * stride, [UNKNOWN, int(groups[-1]) * stride])
            maps.append(known[place])
        return InteractionTable(tuple(maps), self.weight * self.table)


MOST_DRAWN = 40  # columns of a picture
LOWEST = -50.0  # log density of a joint Gaussian, relative to the best class
UNKNOWN = -(1 << 40)  # any sum with it is negative: the cell contributes nothing


@dataclass(frozen=True, eq=False)
class JointGaussian:
    """Joint Gaussians of several numeric columns, one or several for each class, and the weight of their log density."""

    columns: tuple[str, ...]
    numbers: tuple[Array, ...]  # by column: the number that represents each bin
    components: GaussianComponents
    weight: float = 0.0

    def likelihood(self, edges: Sequence[Array]) -> BinnedGaussian:
        """Likelihood term that scores rows."""
        numbers = tuple(np.append(each, 0.0) for each in self.numbers)
        return BinnedGaussian(tuple(edges), numbers, self.components, LOWEST, self.weight)


@dataclass(frozen=True, eq=False)
class Calibration(Shown):
    """Fitted weights of the columns, interactions, and a bias for each class.

    Attributes
    ----------
    weights : dict
        Weight of each block, fitted by leave-one-out.
    absent : dict
        For each block, the weight of its missingness and the log-odds of present and missing cells.
    bias : array
        Bias of each class.
    temperature : float
        Common weight towards which the column weights are penalised.
    interactions : tuple
        Interactions between columns.
    edges : dict
        Edges of the bins of each binned column, at the time of the fit.
    values : dict
        Values of the categories in interactions, at the time of the fit.
    counted : float
        Weight of all rows at the time of the fit.
    gains : dict
        For each block, the rise of the log loss per row without it.
    copies : array or None
        Mean number of copies of a row in each class, at the time of the fit; None: one.
    directions : dict
        Linear discriminant: added to the table of each column.
    joint : JointGaussian or None
        Joint Gaussians of all numbers, one or several for each class.
    """

    weights: Mapping[str, float]  # by block
    absent: Mapping[str, tuple[float, Array]]  # by block: weight of missingness, and log-odds of present and missing cells
    bias: Array
    temperature: float
    interactions: tuple[Interaction, ...]
    edges: Mapping[str, Array]  # of the bins at fitting time
    values: Mapping[str, tuple[Any, ...]]  # of the categories in interactions at fitting time; None: forgotten since
    counted: float  # weight of the training rows at fitting time; if it differs now, the calibration is stale
    gains: Mapping[str, float] = field(default_factory=dict)  # rise of the log loss per row without the column
    copies: Array | None = None  # mean number of copies of a row in each class at fitting time; None: one
    directions: Mapping[str, Array] = field(default_factory=dict)  # linear discriminant: added to each column's table
    joint: JointGaussian | None = None  # of all numeric columns

    def applied(self, block: str, parameters: Parameters, values: tuple[Any, ...] | None = None) -> Parameters:
        """Parameters of a block with its weight applied; `values` are the current values of a category.

        Parameters
        ----------
        block : str
            Name of the block.
        parameters : Parameters
            Its parameters.
        values : tuple or None, default=None
            Values of a category today, where they may differ from those of the fit.

        Returns
        -------
        Parameters of the block
            The weighted parameters.
        """
        weight = self.weights.get(block)
        if weight is None:
            return parameters
        likelihood: Any = parameters.likelihood.weighted(weight)
        if likelihood.loop is not ScoringLoop.LOOKUP:
            return replace(parameters, likelihood=likelihood)
        table = likelihood.table
        if block in self.absent:
            missing_weight, evidence = self.absent[block]
            table[:-1] += missing_weight * evidence[0]
            table[-1] += missing_weight * evidence[1]
        if block in self.directions:
            added = np.concatenate([self.directions[block], np.zeros((2, table.shape[1]))])
            table += added if values is None else added[self._places(block, values)]
        return replace(parameters, likelihood=likelihood)

    def without_forgotten(self, schema: Schema) -> Calibration:
        """The same calibration without values that the schema no longer has.

        Parameters
        ----------
        schema : Schema
            The schema of today.

        Returns
        -------
        Calibration
            The same weights.
        """
        kept = {}
        for name, values in self.values.items():
            column = schema.by_name[name]
            today = (None if value is None else column.canonical(value) for value in values)
            kept[name] = tuple(value if value in column.code else None for value in today)
        return self if kept == self.values else replace(self, values=kept)

    def interaction_terms(self, columns: Mapping[str, tuple[Any, ...] | int]) -> list[Parameters]:
        """Terms of interactions and joint Gaussian; `columns` has the values of categories, or the number of bins.

        Parameters
        ----------
        columns : mapping of str to tuple or int
            Column → its values, or its number of bins.

        Returns
        -------
        list of Parameters
            One an interaction, then the joint Gaussians.
        """
        found = []
        for each in self.interactions:
            places = [self._places(name, columns[name]) for name in each.columns]
            likelihood = each.likelihood(places)
            found.append(Parameters(each.columns, likelihood, (), each.table.size, 0))
        if self.joint is not None and self.joint.weight > 0:
            joint = self.joint.likelihood([self.edges[name] for name in self.joint.columns])
            held = self.joint.components
            found.append(Parameters(self.joint.columns, joint, (), held.mean.size + held.root.size, 0))
        return found

    def _places(self, name: str, today: tuple[Any, ...] | int) -> NDArray[np.int64]:
        """Code at fitting time of each current code, then of an unseen value and a missing cell."""
        if isinstance(today, int):
            return np.arange(today + 2)
        then = {value: i for i, value in enumerate(self.values[name]) if value is not None}
        known = len(self.values[name])
        return np.array([*(then.get(value, known) for value in today), known, known + 1])

    def _shown_tables(self) -> list[ShownTable]:
        """Weights of the columns, and the interactions."""
        weights = [{"column": name, "weight": w, "log-loss rise": self.gains.get(name)} for name, w in self.weights.items()]
        pairs = [{"columns": i.name, "weight": i.weight, "gain": i.gain, "standard error": i.error} for i in self.interactions]
        return [ShownTable(repr(self), weights), *([ShownTable("Interactions", pairs)] if pairs else [])]

    def to_dict(self) -> dict[str, Any]:
        """Weights, gains, bias and interactions as plain data."""
        weights, interactions = self._shown_tables()[0].rows, self.interactions
        return {
            "weights": [dict(row) for row in weights], "bias": self.bias.tolist(), "temperature": self.temperature,
            "interactions": [{"columns": list(i.columns), "weight": i.weight, "gain": i.gain} for i in interactions],
        }  # fmt: skip

    def plot(self) -> Svg:
        """Bar chart of the column weights, which `.save("x.svg")` writes; also .png and .pdf."""
        from likely.plots.bars import Bar, BarChart, bars_svg

        ranked = sorted(self.weights.items(), key=lambda pair: -pair[1])[:MOST_DRAWN]
        rows = [(name, [Bar(w, value=f"{w:.2f}", tip=f"{name}: {w:.4f}")]) for name, w in ranked]
        return bars_svg(BarChart("Weights of the columns", "1: the evidence counts in full", "weight", rows))

    def __repr__(self) -> str:
        return f"<Calibration: weights of {len(self.weights)} columns, {len(self.interactions)} interactions>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Calibration):
            return NotImplemented
        same = (self.weights, self.temperature, self.counted) == (other.weights, other.temperature, other.counted)
        named = [(i.columns, i.weight) for i in self.interactions] == [
            (i.columns, i.weight) for i in other.interactions
        ]
        return same and named and np.array_equal(self.bias, other.bias)

    __hash__ = None  # type: ignore[assignment]
