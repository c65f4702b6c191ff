"""Categorical columns as codes, in parallel."""

from __future__ import annotations

from collections.abc import Sequence

from likely.kernels.parallel import side_by_side
from likely.sources.batch import Batch, Coded


def coded_columns(batch: Batch, names: Sequence[str]) -> list[Coded]:
    """The codes of several columns, in parallel if there are many rows."""
    return side_by_side(batch.coded, names, batch.rows)
