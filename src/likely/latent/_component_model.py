"""What a result of EM shows of the model that it has, one line each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.families import Block, Parameters
from likely.model.model import Model
from likely.model.parameter_tables import ParameterTable
from likely.model.parameters import ParameterCount
from likely.priors import Priors
from likely.schema import Schema
from likely.sources import Batch, ReadOptions, RowKeywords
from likely.tally import Tally

Array = NDArray[np.float64]


class HasModel:
    """A result whose `model` has the components as its classes."""

    model: Model

    @property
    def tally(self) -> Tally:
        """The expected counts: component weights and one sufficient statistic for each block of columns."""
        return self.model.tally

    @property
    def prior(self) -> Priors:
        """The priors of the parameters."""
        return self.model.prior

    @property
    def schema(self) -> Schema:
        """What the columns mean."""
        return self.model.schema

    @property
    def classes(self) -> tuple[Any, ...]:
        """The names of the components."""
        return self.model.classes

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The columns as they are modelled: alone, or together."""
        return self.model.blocks

    @property
    def missing(self) -> tuple[str, ...]:
        """Texts that stand for a missing cell."""
        return self.model.missing

    @property
    def weights(self) -> str | None:
        """The column of row weights, if there is one."""
        return self.model.weights

    @property
    def average(self) -> bool:
        """Whether the model averages over which columns depend on the component."""
        return self.model.average

    @property
    def reading(self) -> ReadOptions:
        """How rows are read for this model."""
        return self.model.reading

    @property
    def class_prior(self) -> Array:
        """The component weights."""
        return self.model.class_prior

    @property
    def block_parameters(self) -> tuple[Parameters, ...]:
        """The parameters of every block."""
        return self.model.block_parameters

    @property
    def parameters(self) -> dict[str, ParameterTable]:
        """Readable tables: the component weights, then one table for each column or block."""
        return self.model.parameters

    @property
    def parameter_count(self) -> ParameterCount:
        """Entries of all tables, free parameters, and free parameters if nothing were independent."""
        return self.model.parameter_count

    @property
    def stale(self) -> bool:
        """Whether something fitted on top of the counts is older than they are."""
        return self.model.stale

    @property
    def frozen(self) -> bool:
        """Whether something is fitted on top of the counts, and no rows are kept to fit it again."""
        return self.model.frozen

    def batches(
        self, rows: Any, absent: str, reading: ReadOptions | None, **how: Unpack[RowKeywords]
    ) -> Iterator[Batch]:
        """The batches of a source, each with every column that the model needs."""
        return self.model.batches(rows, absent, reading, **how)

    def posterior_of(self, batch: Batch) -> Posterior:
        """Responsibilities for rows that have every column already."""
        return self.model.posterior_of(batch)
