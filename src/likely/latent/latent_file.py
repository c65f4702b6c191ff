"""Mixtures and hidden Markov models as model files: the model of the classes, and the results of EM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.latent.fit_summary import FitSummary
from likely.model import model_file
from likely.model.model import Model
from likely.model.serialization import from_file, model_to_file
from likely.model.serialization.latent_part import real_out

Array = NDArray[np.float64]


def save_latent(
    path: str | Path, model: Model, part: Mapping[str, Any], arrays: Mapping[str, Array], *, replacing: str | None
) -> str:
    """Write the file of a model with the part of EM (`kind`, `summary`, `tried`, …) and its arrays; returns the digest."""
    header, own = model_to_file(model)
    tried = [[int(k), real_out(cost)] for k, cost in part["tried"].items()]
    written = {**part, "tried": tried, "summary": _summary_out(part["summary"])}
    beside = {f"latent.{name}": np.asarray(array, np.float64) for name, array in arrays.items()}
    return model_file.write(path, header | {"latent": written}, own | beside, replacing=replacing, check=from_file)


def _summary_out(summary: FitSummary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    reals = {name: real_out(getattr(summary, name)) for name in ("log_likelihood", "entropy", "distance_left")}
    seed = None if summary.seed is None else int(summary.seed)
    return {**reals, "trace": [real_out(v) for v in summary.trace], "converged": bool(summary.converged), "seed": seed}


def summary_in(written: Mapping[str, Any] | None) -> FitSummary | None:
    """The summary of a file that the validator has accepted."""
    if written is None:
        return None
    given = {field.name: written[field.name] for field in fields(FitSummary)}
    given |= {name: float(given[name]) for name in ("log_likelihood", "entropy", "distance_left")}
    return FitSummary(**given | {"trace": tuple(float(value) for value in written["trace"])})


def tried_in(written: Mapping[str, Any]) -> dict[int, float]:
    """The criterion of each number of components."""
    return {k: float(cost) for k, cost in written["tried"]}
