"""Settings of `Network.learn_structure` as keyword arguments, so that a type checker knows them behind `**settings`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from likely.sources import RowKeywords


class StructureKeywords(RowKeywords, total=False):
    """The fields of `StructureSettings`, and how a file is read."""

    method: str
    target: str | None
    criterion: str
    equivalent_sample_size: float
    required: Any
    forbidden: Any
    max_parents: int | None
    k: int
    tabu: int
    patience: int
    climbs: int
    root: str | None
    ignore: Sequence[str]
    kinds: Any
    values: Any
    smoothing: Any
    weights: Any
    seed: int
    max_iter: int
    tol: float
    progress: Any
    engine: Any
