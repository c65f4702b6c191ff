"""One block of a fitted model, as its family sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.base import BlockPrior, Parameters
from likely.families.likelihoods import LookupTable
from likely.families.statistics import Array
from likely.schema import CATEGORY, NUMBER, Column

SampledCells = dict[str, NDArray[Any]]
Totals = Array | dict[Any, Array]  # by class, or for each value by class


@dataclass(frozen=True)
class FittedBlock:
    """One block of a model: its columns, sufficient statistic, prior and parameters."""

    columns: tuple[Column, ...]
    statistic: Any
    prior: BlockPrior
    parameters: Parameters
    class_counts: Array

    @property
    def name(self) -> str:
        """The name of the block in tables and messages."""
        return " with ".join(column.name for column in self.columns)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.class_counts)

    @property
    def likelihood(self) -> Any:
        """The likelihood term of the block."""
        return self.parameters.likelihood

    def log_likelihoods(self, cells: NDArray[Any]) -> Array:
        """Log-likelihood of each row's cells in every class at the block's parameters, all rows counted.

        `cells` are as for `leave_one_out`.
        """
        table, numeric = cells.reshape(len(cells), -1), [column.kind == NUMBER for column in self.columns]
        numbers = np.ascontiguousarray(table[:, numeric], dtype=np.float64)
        names = [column for column in self.columns if column.kind == CATEGORY]
        codes = table[:, [column.kind == CATEGORY for column in self.columns]].astype(np.int64)
        sizes = np.array([len(column.values) for column in names], np.int64)
        codes = np.where((codes >= 0) & (codes < sizes), codes, sizes + 1)
        likelihood = self.likelihood
        if isinstance(likelihood, LookupTable):  # of several columns: an index in their common table
            of_numbers: Any = likelihood
            index = np.ravel_multi_index(tuple(codes.T), tuple(sizes + 2)) if names else of_numbers.codes(numbers[:, 0])
            codes = np.asarray(index)[:, None]
        out = np.zeros((len(cells), self.classes))
        likelihood.add(codes, numbers, out)
        return out


@dataclass(frozen=True)
class LeftOutRows:
    """Training rows: their classes, and the weight of each that is left out."""

    labels: NDArray[np.int64]
    units: Array

    def own(self, classes: int) -> Array:
        """Weight of the row in its own class, rows × classes; 0 elsewhere."""
        return np.where(np.arange(classes) == self.labels[:, None], self.units[:, None], 0.0)

    def take(self, places: Any) -> LeftOutRows:
        """A subset of the rows."""
        return LeftOutRows(self.labels[places], self.units[places])


def cells_of_block(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The cells of a block as `leave_one_out` takes them, from those of its columns."""
    return columns[0] if len(columns) == 1 else np.column_stack(columns).astype(np.float64)
