"""Columns of categories as codes, on all cores."""

from __future__ import annotations

from collections.abc import Sequence

from likely.sources.batch import Batch, Coded
from likely.threads import side_by_side


def coded_columns(batch: Batch, names: Sequence[str]) -> list[Coded]:
    """The codes of several columns; those of a few rows are made faster than handed to a thread."""
    return side_by_side(batch.coded, names, batch.rows)
