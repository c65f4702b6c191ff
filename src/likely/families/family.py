"""Protocol of a family: all operations on one kind of column, each with a default or one clear error.

A family is one class in one file. It has the kind of column it takes, its sufficient statistic, the parameters derived from
statistic and prior, and what follows from them. Two methods are required, `count` and `derive`; each of the others has a
default, or an error that names the family and what it cannot do. Subclasses register themselves by name. The methods stand
in four files: settings and columns, counting and parameters, values alone, what follows from the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.families._family_inference import FamilyInference
from likely.families._family_settings import REGISTRY
from likely.families._fitted_block import FittedBlock, LeftOutRows, SampledCells, Totals, cells_of_block
from likely.families.base import Encoded
from likely.families.statistics import Statistic
from likely.schema import CATEGORY, NUMBER, Column

__all__ = ["REGISTRY", "Block", "Family", "FittedBlock", "LeftOutRows", "SampledCells", "Totals", "cells_of_block", "groups"]


class Family(FamilyInference):
    """One kind of column, or of block of columns. Subclasses are frozen dataclasses whose fields are their settings."""


@dataclass(frozen=True)
class Block:
    """Columns that are modelled together, and the family that models them."""

    family: Family
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the block in tables: its columns joined by 'with'."""
        return " with ".join(self.columns)

    @property
    def names(self) -> Iterator[str]:
        """What settings may call the block: its name, then the aliases of its family."""
        yield self.name
        yield from self.family.aliases(self.columns)

    def nothing(self, columns: Sequence[Column], classes: int) -> Statistic:
        """Empty statistic of the block."""
        domains = np.array([len(column.values) for column in columns if column.kind == CATEGORY], np.int64)
        codes, numbers = np.zeros((0, len(domains)), np.int32), sum(column.kind == NUMBER for column in columns)
        rows = Encoded(codes, np.zeros(len(domains), np.int64), domains, np.zeros((0, numbers)))
        return self.family.count(rows, np.zeros(0, np.int64), np.zeros(0), classes)[0]


def groups(blocks: Sequence[Block]) -> list[list[Block]]:
    """Blocks that are counted and derived in one pass: equal families of single columns together, all others alone."""
    together: dict[Any, list[Block]] = {}
    for block in blocks:
        together.setdefault(block.family if block.family.single else block, []).append(block)
    return list(together.values())
