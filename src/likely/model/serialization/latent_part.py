"""The part of a model file that EM adds: its summary, and the transition counts of a hidden Markov model.

The rest of the file is the model whose classes are the components or states. Numbers of the summary may be infinite or
undefined, which JSON cannot write: they are the texts "inf", "-inf" and "nan".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.model.serialization.values import each, entries, fields, flag, listed, need, number, text, whole

MIXTURE, HIDDEN_MARKOV = "mixture", "hidden_markov"
NOT_FINITE = ("inf", "-inf", "nan")
MOST_COUNT = 1e300


def real_out(value: float) -> float | str:
    """A number as JSON."""
    return float(value) if math.isfinite(value) else str(float(value))


def check_latent(given: Any, where: str) -> None:
    """Refuse an entry that is no summary of EM."""
    entries(given, where)
    kind = given.get("kind")
    need(kind in (MIXTURE, HIDDEN_MARKOV), where, f"is of a kind that is not known: {kind!r:.40}")
    required: dict[str, Any] = {"kind": text, "tried": listed, "summary": _summary}
    fields(given, where, required | ({"pseudocount": _count} if kind == HIDDEN_MARKOV else {}))
    for pair, at in each(given["tried"], f"{where}.tried"):
        need(isinstance(pair, list) and len(pair) == 2, at, "is no pair of a number of components and its criterion")
        whole(pair[0], at)
        _real(pair[1], at)
    sizes = [size for size, _ in given["tried"]]
    need(len(set(sizes)) == len(sizes), where, "has a number of components twice")


def check_latent_arrays(given: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], classes: int) -> None:
    """Refuse transition counts that do not fit the states, or that a mixture cannot have."""
    shapes = {"starts": (classes,), "moves": (classes, classes)} if given["kind"] == HIDDEN_MARKOV else {}
    odd = sorted(arrays.keys() ^ shapes.keys())
    need(not odd, "latent", f"lacks an array, or has one too many: {odd[:3]}")
    for name, shape in shapes.items():
        found, where = arrays[name], f"latent.{name}"
        need(found.dtype.kind == "f" and found.shape == shape, where, f"has the shape {found.shape}, not {shape}")
        need(bool(((found >= 0) & (found <= MOST_COUNT)).all()), where, "holds a number that is no count")
    need(classes > 0 or not shapes, "latent", "has no states")


def _summary(given: Any, where: str) -> None:
    if given is None:
        return
    reals = dict.fromkeys(("log_likelihood", "entropy", "distance_left"), _real)
    fields(given, where, {**reals, "trace": listed, "converged": flag, "seed": _seed})
    for value, at in each(given["trace"], f"{where}.trace"):
        _real(value, at)


def _real(given: Any, where: str) -> None:
    if given not in NOT_FINITE:
        number(given, where)


def _seed(given: Any, where: str) -> None:
    need(given is None or (type(given) is int and given >= 0), where, f"is no seed: {given!r:.40}")


def _count(given: Any, where: str) -> None:
    number(given, where)
    need(0 <= given <= MOST_COUNT, where, f"is no count: {given!r:.40}")


def moves_of(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float64]]:
    """The arrays of the latent part, by name."""
    return {name.removeprefix("latent."): array for name, array in arrays.items() if name.startswith("latent.")}
