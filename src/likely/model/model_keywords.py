"""Keyword arguments that several functions pass on, so that a type checker knows them behind `**settings` and `**options`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from likely.sources import ReadKeywords, ReadOptions, RowKeywords


class LearnReading(ReadKeywords, total=False):
    """How `learn` and its like read a table: by keywords, or by one object."""

    reading: ReadOptions | None


class RowReading(RowKeywords, total=False):
    """How methods of a hidden Markov model read rows: by keywords, or by one object."""

    reading: ReadOptions | None


class PosteriorKeywords(RowKeywords, total=False):
    """Options of `Model.posterior`."""

    absent: str
    reading: ReadOptions | None


class CountKeywords(RowKeywords, total=False):
    """Options of `Model.update` and `Model.forget`."""

    weights: Any
    engine: str
    reading: ReadOptions | None


class _ModelSettings(TypedDict, total=False):
    target_bins: Any
    families: Any
    date_parts: Any
    joint: Sequence[Sequence[str]]
    smoothing: Any
    class_prior: Any
    weights: Any
    ignore: Sequence[str]
    missing: Sequence[str] | None
    plain: bool
    dependence: str
    average: bool
    select: bool | int | str


class LearnSettings(_ModelSettings, ReadKeywords, total=False):
    """Settings of `learn` that `evaluate`, `curve` and `compare` take as well."""


class PlanSettings(LearnSettings, total=False):
    """Settings of `learn` that `plan` takes."""

    classes: Sequence[Any]
    unlabelled: str | float
    max_iter: int
    tol: float
    keep_rows: bool
    progress: Callable[[int], None] | None
    reading: ReadOptions | None


SETTINGS = tuple(LearnSettings.__annotations__)
# Of the methods of models, beside those of reading: a misspelt one is named in the error.
METHOD_KEYWORDS = ("absent", "costs", "threshold", "number", "weights", "by", "lengths")
