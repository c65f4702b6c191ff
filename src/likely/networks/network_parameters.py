"""Parameters of a network, derived from its counts and a prior: θ_ijk of each table, a linear Gaussian of each number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.networks.family_counts import LinearMoments, NetworkTally
from likely.schema import Column

Array = NDArray[np.float64]
AUTO = "auto"
NARROWEST = 1e-9  # a variance is at least this share of the node's variance over all rows


@dataclass(frozen=True)
class LinearGaussian:
    """A numeric node given its parents: normal around intercept + slopes · numeric parents, in each configuration.

    Parameters
    ----------
    intercept : array, configurations
        The mean where all numeric parents are 0.
    slopes : array, configurations × numeric parents
        How the mean moves with each numeric parent.
    variance : array, configurations
        The variance around the mean.

    """

    intercept: Array
    slopes: Array
    variance: Array


def resolve_smoothing(smoothing: Any, columns: Mapping[str, Column]) -> dict[str, Any]:
    """The smoothing of every node as data: "auto", one pseudocount for all cells, or one for each value."""
    if isinstance(smoothing, Mapping):
        unknown = next((name for name in smoothing if name != "*" and name not in columns), None)
        if unknown is not None:
            raise UsageError(f"smoothing names {unknown!r}, which is no node")
        general = smoothing.get("*", AUTO)
        return {name: _resolved(smoothing.get(name, general), column) for name, column in columns.items()}
    return {name: _resolved(smoothing, column) for name, column in columns.items()}


def _resolved(smoothing: Any, column: Column) -> Any:
    if isinstance(smoothing, str) and smoothing == AUTO:
        return AUTO
    if hasattr(smoothing, "pseudocounts"):
        return tuple(float(count) for count in smoothing.pseudocounts(column.values))
    try:
        count = float(smoothing)
    except (TypeError, ValueError):
        count = -1.0
    if not 0 <= count < np.inf:
        raise UsageError(
            f"smoothing={smoothing!r} is not known: pass 'auto', a pseudocount of at least 0, a prior, or a dict of them"
        )
    return count


def pseudocounts(table: Array, smoothing: Any) -> Any:
    """Pseudocount of each cell; "auto" spreads one row evenly over the table (BDeu)."""
    if smoothing == AUTO:
        return 1.0 / table.size
    return np.asarray(smoothing, dtype=np.float64) if isinstance(smoothing, (tuple, list)) else float(smoothing)


def table_of(counts: Array, smoothing: Any) -> Array:
    """θ_ijk = (N_ijk + α_ijk) / Σ_k (N_ijk + α_ijk); uniform where counts and pseudocounts are zero."""
    counts = counts + pseudocounts(counts, smoothing)
    total = counts.sum(-1, keepdims=True)
    made: Array = np.divide(counts, total, out=np.full(counts.shape, 1.0 / counts.shape[-1]), where=total > 0)
    return made


def gaussian_of(moments: LinearMoments, smoothing: Any) -> LinearGaussian:
    """Regression of the node on its numeric parents in each configuration, shrunk towards that over all rows.

    A pseudocount of κ adds κ pseudo-rows with the mean and covariance of all rows; "auto" is one row.
    """
    kappa = 1.0 if smoothing == AUTO else float(np.mean(smoothing))
    m = moments.mean.shape[-1]
    flat = LinearMoments(moments.n.reshape(-1), moments.mean.reshape(-1, m), moments.scatter.reshape(-1, m, m))
    whole = _pooled(flat)
    rows = max(float(whole.n[0]), 1.0)
    typical = np.maximum(np.diag(whole.scatter[0]) / rows, 0.0)
    least = NARROWEST * np.where(typical > 0, typical, 1.0)
    alone = np.where(flat.n > 0, kappa, max(kappa, 1.0))  # a configuration without rows has pseudo-rows only
    pseudo_rows = LinearMoments(alone, np.broadcast_to(whole.mean[0], flat.mean.shape),
                          alone[:, None, None] * (whole.scatter[0] / rows)[None])  # fmt: skip
    total = flat + pseudo_rows
    covariance = total.scatter / np.maximum(total.n, 1e-300)[:, None, None]
    inner = covariance[:, :-1, :-1] + np.eye(m - 1) * least[:-1]
    slopes: Array = np.zeros((len(total.n), 0))
    if m > 1:
        slopes = np.asarray(np.linalg.solve(inner, covariance[:, :-1, -1:])[..., 0], dtype=np.float64)
    variance = covariance[:, -1, -1] - np.einsum("jp,jp->j", slopes, covariance[:, :-1, -1])
    intercept = total.mean[:, -1] - np.einsum("jp,jp->j", slopes, total.mean[:, :-1])
    shape = moments.n.shape
    return LinearGaussian(intercept.reshape(shape), slopes.reshape(*shape, m - 1),
                          np.maximum(variance, least[-1]).reshape(shape))  # fmt: skip


def _pooled(moments: LinearMoments) -> LinearMoments:
    """The moments of all configurations together."""
    total = moments.n.sum()
    mean = (moments.n[:, None] * moments.mean).sum(0) / max(total, 1e-300)
    apart = moments.mean - mean
    scatter = moments.scatter.sum(0) + np.einsum("j,ja,jb->ab", moments.n, apart, apart)
    return LinearMoments(np.array([total]), mean[None], scatter[None])


@dataclass(frozen=True)
class NetworkParameters:
    """Tables θ_ijk of the categorical nodes (axes: parents, then the node) and linear Gaussians of the numeric ones."""

    tables: Mapping[str, Array]
    gaussians: Mapping[str, LinearGaussian]


def derive(tally: NetworkTally, smoothing: Mapping[str, Any]) -> NetworkParameters:
    """All parameters of a network from its counts."""
    return NetworkParameters(
        {name: table_of(counts, smoothing[name]) for name, counts in tally.tables.items()},
        {name: gaussian_of(moments, smoothing[name]) for name, moments in tally.moments.items()},
    )


def log_likelihood_of(tally: NetworkTally, parameters: NetworkParameters) -> float:
    """The log-likelihood of the rows that were counted, from the counts alone."""
    total = 0.0
    for name, counts in tally.tables.items():
        some = counts > 0
        with np.errstate(divide="ignore"):
            total += float(counts[some] @ np.log(parameters.tables[name][some]))
    for name, moments in tally.moments.items():
        each = parameters.gaussians[name]
        away = np.concatenate([-each.slopes, np.ones((*each.slopes.shape[:-1], 1))], -1)
        apart = np.einsum("...a,...a->...", away, moments.mean) - each.intercept
        squares = np.einsum("...a,...ab,...b->...", away, moments.scatter, away) + moments.n * apart**2
        total -= 0.5 * float((moments.n * np.log(2 * np.pi * each.variance) + squares / each.variance)[moments.n > 0].sum())
    return total
