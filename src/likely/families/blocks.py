"""Blocks: columns that are modelled together, and the family that models them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.families.base import Encoded
from likely.families.family import Family
from likely.families.statistics import Statistic
from likely.schema import CATEGORY, NUMBER, Column


@dataclass(frozen=True)
class Block:
    """Columns that are modelled together, and the family that models them."""

    family: Family
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the block in tables: its columns joined by 'with'."""
        return " with ".join(self.columns)

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
