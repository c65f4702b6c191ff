"""One block of a fitted model, as its family sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.base import BlockPrior, Parameters
from likely.families.statistics import Array
from likely.schema import Column

SampledCells = dict[str, NDArray[Any]]


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


@dataclass(frozen=True)
class LeftOutRows:
    """Training rows: their classes, and the weight of each that is left out."""

    labels: NDArray[np.int64]
    units: Array

    def own(self, classes: int) -> Array:
        """Weight of the row in its own class, rows × classes; 0 elsewhere."""
        return np.where(np.arange(classes) == self.labels[:, None], self.units[:, None], 0.0)

    def some(self, places: Any) -> LeftOutRows:
        """A subset of the rows."""
        return LeftOutRows(self.labels[places], self.units[places])
