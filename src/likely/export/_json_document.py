"""A model as a document of plain values: enough to score rows by hand, in any language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likely.export._input_meanings import meaning, plain
from likely.export._term_forms import (
    AveragedTerm,
    CellGaussianTerm,
    CellTerm,
    Code,
    ExportedModel,
    GaussianPattern,
    JointTerm,
    LinearTerms,
    RelativeGaussian,
    SquareTerm,
    StudentDensity,
    TableTerm,
    TextTerm,
)
from likely.export.exported_terms import exported
from likely.schema import Column


def describe(model: Any) -> dict[str, Any]:
    """Inputs, codes, terms and classes of a model.

    The score of a class is its constant plus its entry of every term; probabilities are the exponentials of the scores,
    normalised. The number -1e305 stands for the logarithm of zero.
    """
    scored = exported(model)
    place = {code: i for i, code in enumerate(scored.codes)}
    return {
        "format": "likely/terms/1",
        "target": scored.target,
        "classes": [plain(label) for label in scored.classes],
        "log_prior": scored.log_prior.tolist(),
        "constant": scored.constant.tolist(),
        "missing": list(scored.missing),
        "columns": [_column(column) for column in scored.columns],
        "codes": [_code(code) for code in scored.codes],
        "terms": [WRITTEN[type(term)](term, place, scored) for term in scored.terms],
    }


def _column(column: Column) -> dict[str, Any]:
    held = {"holds": meaning(column)} if meaning(column) else {}
    return {"name": column.name, "kind": column.kind, **held, "values": [plain(value) for value in column.values]}


def _code(code: Code) -> dict[str, Any]:
    lines = {"unseen": code.size - 2, "missing": code.size - 1}
    return {"column": code.column, "kind": code.kind, **({"edges": list(code.edges)} if code.edges else {}), **lines}


def _table(term: TableTerm, place: dict[Code, int], _: ExportedModel) -> dict[str, Any]:
    codes = [place[code] for code in term.codes]
    return {"form": "table", "codes": codes, "strides": term.strides, "table": term.table.tolist()}


def _cell(term: CellTerm, place: dict[Code, int], _: ExportedModel) -> dict[str, Any]:
    maps = [np.maximum(own, -1).tolist() for own in term.maps]
    codes = [place[code] for code in term.codes]
    return {"form": "cells", "codes": codes, "offsets": maps, "unknown": -1, "table": term.table.tolist()}


def _square(term: SquareTerm, _: dict[Code, int], __: ExportedModel) -> dict[str, Any]:
    numbers = {name: getattr(term, name).tolist() for name in ("mean", "curve", "peak")}
    return {"form": "square", "column": term.column, **numbers}


def _linear(term: LinearTerms, _: dict[Code, int], __: ExportedModel) -> dict[str, Any]:
    numbers = {"slope": term.slope.tolist(), "level": term.level.tolist()}
    return {"form": "linear", "columns": list(term.columns), "trials": term.trials, **numbers}


def _gaussian(pattern: GaussianPattern) -> dict[str, Any]:
    numbers = {name: getattr(pattern, name).tolist() for name in ("mean", "root", "constant")}
    return {"seen": list(pattern.seen), **numbers}


def _joint(term: JointTerm, _: dict[Code, int], __: ExportedModel) -> dict[str, Any]:
    patterns = [_gaussian(pattern) for pattern in term.patterns]
    return {"form": "joint", "columns": list(term.columns), "patterns": patterns, "weight": term.weight}


def _cell_gaussian(term: CellGaussianTerm, place: dict[Code, int], _: ExportedModel) -> dict[str, Any]:
    own = {"log_weight": term.log_weight.tolist(), "cells": [list(cells) for cells in term.lines], "weight": term.weight}
    patterns = [_gaussian(pattern) for pattern in term.patterns]
    codes = [place[code] for code in term.codes]
    return {
        "form": "cell gaussians", "columns": list(term.columns), "codes": codes, "strides": term.strides,
        "patterns": patterns, **own,
    }  # fmt: skip


def _averaged(term: AveragedTerm, _: dict[Code, int], __: ExportedModel) -> dict[str, Any]:
    logs = {"log_dependent": term.log_on, "log_independent": term.log_off}
    parts = {"dependent": _density(term.dependent), "independent": _density(term.independent)}
    return {"form": "averaged", "column": term.column, **logs, **parts}


def _density(form: StudentDensity | SquareTerm) -> dict[str, Any]:
    student = isinstance(form, StudentDensity)
    names = ("mean", "width", "degrees", "peak") if student else ("mean", "curve", "peak")
    return {"form": "student" if student else "square"} | {name: getattr(form, name).tolist() for name in names}


def _relative(term: RelativeGaussian, place: dict[Code, int], _: ExportedModel) -> dict[str, Any]:
    codes, centres = [place[code] for code in term.codes], [each.tolist() for each in term.centres]
    own = {"gaussian": _gaussian(term.pattern), "class": list(term.owner), "lowest": term.lowest, "weight": term.weight}
    return {"form": "relative", "codes": codes, "centres": centres, **own}


def _text(term: TextTerm, _: dict[Code, int], __: ExportedModel) -> dict[str, Any]:
    from likely.export.sql_words import weights_of

    return {"form": "words", "column": term.column, **weights_of(term.likelihood)}


WRITTEN: dict[type, Callable[..., dict[str, Any]]] = {
    TableTerm: _table,
    CellTerm: _cell,
    SquareTerm: _square,
    LinearTerms: _linear,
    JointTerm: _joint,
    CellGaussianTerm: _cell_gaussian,
    AveragedTerm: _averaged,
    RelativeGaussian: _relative,
    TextTerm: _text,
}
