"""What a model has counted, as whole numbers."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import likely

DATA = Path(__file__).parents[2] / "data"


def class_counts(model: likely.Model) -> dict[Any, int]:
    """How many rows of each class were counted."""
    return {row["class"]: int(row["count"]) for row in model.parameters[model.schema.target.name]}


def count(model: likely.Model, column: str, label: Any, value: Any) -> int:
    """How many rows of a class have a value."""
    rows = model.parameters[column]
    return next(int(row["count"]) for row in rows if row["class"] == label and row["value"] == value)


def cells(file: str, column: str, by: str) -> dict[str, list[str]]:
    """The cells of one column, by class, as they are written in the file."""
    groups: dict[str, list[str]] = {}
    with (DATA / file).open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            groups.setdefault(row[by], []).append(row[column])
    return groups
