"""Columns that are not independent: a joint table, a joint Gaussian, or a Gaussian for every cell of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.bayes.conjugate import DirichletPosterior, NormalPrior
from likely.bayes.continuous import Distribution
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.errors import UsageError
from likely.families._scatter import cell_scatter, weighted_cell_scatter
from likely.families.base import (
    ROUNDING,
    BlockPrior,
    Encoded,
    Labels,
    Parameters,
    back_off,
    dust,
    first_bad,
    log,
    weighted_responsibilities,
)
from likely.families.family import Family, FittedBlock, SampledCells, Totals
from likely.families.likelihoods import JointGaussianTerm, LookupTable
from likely.families.missing_data import expected
from likely.families.posterior_predictive import Arc
from likely.families.statistics import LARGEST, MEAN_DIGITS, SINGULAR, Array, Scatter, Statistic, outer
from likely.families.value_tables import (
    dirichlet_arc,
    draw_places,
    table_information,
    value_totals,
    values_at,
    weighted_logs,
)
from likely.schema import CATEGORY, Column

LARGEST_TABLE = 20_000_000


@dataclass(frozen=True)
class Joint(Family):
    """Dependent columns modelled together: a joint table, a joint Gaussian, or a Gaussian in each cell of a table.

    Parameters
    ----------
    tie : None or "class"
        Whether the classes share one covariance (LDA) or each has its own (QDA).
    """

    tie: str | None = None

    name: ClassVar[str] = "joint"
    column_kind: ClassVar[str | None] = None
    single: ClassVar[bool] = False
    shorthand: ClassVar[str] = "tie"
    needs_whole_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.tie not in (None, "class"):
            raise UsageError(f"Joint(tie={self.tie!r}) is not known: choose None or 'class'")

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """Weight, mean and scatter of every cell; a row with a missing cell adds nothing."""
        shape = (classes, *(int(s) for s in rows.size))
        if np.prod(shape, dtype=float) > LARGEST_TABLE:
            raise UsageError(f"a joint table of {shape} cells is too large: join fewer columns, or group their values")
        if labels.ndim == 2:
            return [weighted_cell_scatter(rows, weighted_responsibilities(labels, weights), shape)]
        whole = ~np.isnan(rows.numbers).any(1) & (labels >= 0) & (weights > 0)
        cell = labels.copy()
        for axis, size in enumerate(rows.size):
            code = rows.codes[:, axis] - rows.low[axis]
            whole &= (code >= 0) & (code < size)
            cell = cell * size + code
        return [cell_scatter(rows.numbers[whole], cell[whole], weights[whole], shape)]

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        statistics: Sequence[Scatter],
        priors: Sequence[BlockPrior],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """Probability of each cell and, with numbers, the Gaussian within it."""
        (columns,), (statistic,), (prior,) = blocks, statistics, priors
        lookup = _table(statistic, [c for c in columns if c.kind == CATEGORY], prior)
        if statistic.mean.shape[-1] == 0:
            return [_table_parameters(columns, statistic, lookup, classes)]
        return [_gaussian_parameters(columns, statistic, lookup, prior, classes, tie=self.tie)]

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """Finite numbers whose squares do not overflow."""
        found = first_bad(np.isinf(numbers), "is not a finite number")
        return found or first_bad(np.abs(numbers) > LARGEST, "is too large to be squared")

    def count_expected(self, likelihood: Any, rows: Encoded, responsibilities: Array) -> Statistic | None:
        """Expected statistic of rows with missing cells: values by their probabilities, numbers at their conditional mean."""
        return expected(likelihood, rows, responsibilities)

    def log_prior_density(self, block: FittedBlock) -> float:
        """Log density of a Dirichlet prior over the cells and an inverse-Wishart prior of the covariances."""
        statistic, likelihood = block.statistic, block.likelihood
        size, categories = statistic.n.shape[1:], [c for c in block.columns if c.kind == CATEGORY]
        pseudo = block.prior.pseudocounts(cells_of(categories)).reshape(size) if size else np.zeros(())
        inner = tuple(slice(0, s) for s in size)
        if isinstance(likelihood, LookupTable):
            padded = likelihood.table.T.reshape(statistic.n.shape[0], *(s + 2 for s in size))
            return weighted_logs(np.broadcast_to(pseudo, statistic.n.shape), padded[(slice(None), *inner)])
        total = 0.0
        if size:
            weight = likelihood.weight.reshape(statistic.n.shape[0], *likelihood.lines)[(slice(None), *inner)]
            total = weighted_logs(np.broadcast_to(pseudo, statistic.n.shape), weight)
        scatter = getattr(block.prior, "scatter", None)
        if scatter is None:
            return total
        rows, spread = scatter
        places = np.arange(likelihood.weight.shape[1]).reshape(likelihood.lines or (1,))[inner or (slice(None),)].reshape(-1)
        covariance = likelihood.covariance[:, places]
        traces = np.einsum("kgii,i->kg", np.linalg.inv(covariance), np.broadcast_to(spread, covariance.shape[-1:]))
        return total - 0.5 * float((rows * np.linalg.slogdet(covariance)[1] + traces).sum())

    def arc(self, block: FittedBlock) -> Arc | None:
        """Dirichlet–multinomial marginal likelihoods of a joint table; None for joint Gaussians."""
        statistic: Scatter = block.statistic
        if statistic.mean.shape[-1]:
            return None
        seen = statistic.n.reshape(block.classes, -1)
        shape = (1, *statistic.n.shape[1:])
        together = Scatter(statistic.n.sum(0, keepdims=True), np.zeros((*shape, 0)), np.zeros((*shape, 0, 0)))
        alone: Any = self.derive([block.columns], [together], [block.prior], ("all",))[0].likelihood
        pseudocounts = block.prior.pseudocounts(cells_of(block.columns))
        return dirichlet_arc(seen, pseudocounts, block.likelihood, alone.table, block.name)

    def totals(self, block: FittedBlock) -> dict[tuple[str, str], Totals]:
        """Rows of each value, or rows and sum of each number."""
        statistic: Scatter = block.statistic
        categories = [c for c in block.columns if c.kind == CATEGORY]
        axes = range(1, statistic.n.ndim)
        found: dict[tuple[str, str], Totals] = {}
        for axis, column in zip(axes, categories, strict=True):
            found |= value_totals(column, statistic.n.sum(tuple(other for other in axes if other != axis)))
        sums = (statistic.mean * statistic.n[..., None]).sum(tuple(axes))
        for j, column in enumerate(c for c in block.columns if c.kind != CATEGORY):
            found |= {(column.name, "rows"): statistic.n.sum(tuple(axes)), (column.name, "sum"): sums[:, j]}
        return found

    def log_marginal(self, block: FittedBlock) -> float:
        """Dirichlet–multinomial of a joint table."""
        if block.statistic.mean.shape[-1]:
            remedy = f"model the columns of {block.name!r} on their own to compare models"
            raise UsageError(f"a joint Gaussian has no marginal likelihood here: {remedy}")
        return super().log_marginal(block)

    def mutual_information(self, block: FittedBlock) -> float | None:
        """From the counts of a joint table; None for joint Gaussians."""
        statistic: Scatter = block.statistic
        return None if statistic.mean.shape[-1] else table_information(statistic.n.reshape(block.classes, -1))

    def sample(self, block: FittedBlock, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
        """A cell of the categories, then numbers from the Gaussian within it."""
        likelihood: LookupTable | JointGaussianTerm = block.likelihood
        categories = [c for c in block.columns if c.kind == CATEGORY]
        numbers = [c for c in block.columns if c.kind != CATEGORY]
        size = tuple(len(c.values) for c in categories)
        extra = 2 if isinstance(likelihood, LookupTable) else 1
        logs = likelihood.table.T if isinstance(likelihood, LookupTable) else likelihood.weight
        padded = np.arange(logs.shape[1]).reshape(tuple(s + extra for s in size) or (1,))
        inner = padded[tuple(slice(0, s) for s in size) or (slice(None),)].reshape(-1)
        place = draw_places(np.exp(logs[:, inner].T), classes, rng)
        at = np.unravel_index(place, size) if size else ()
        cells = {c.name: values_at(c, np.asarray(p)) for c, p in zip(categories, at, strict=True)}
        if isinstance(likelihood, JointGaussianTerm):
            roots = np.linalg.cholesky(likelihood.covariance[:, inner])
            z = rng.normal(size=(len(classes), len(numbers)))
            x = likelihood.mean[:, inner][classes, place] + np.einsum("nij,nj->ni", roots[classes, place], z)
            cells |= {c.name: x[:, i] for i, c in enumerate(numbers)}
        return cells

    def parameter_posteriors(self, block: FittedBlock) -> list[ParameterPosterior]:
        """Dirichlet over the cells of a joint table."""
        if block.statistic.mean.shape[-1]:
            self.cannot("give a posterior of its parameters in closed form where it holds numbers")
        cells = cells_of(block.columns)
        alpha = block.statistic.n.reshape(block.classes, -1) + block.prior.pseudocounts(cells)
        return [DirichletPosterior(dict(zip(cells, each.tolist(), strict=True))) for each in alpha]

    def marginals(self, posterior: ParameterPosterior, line: Mapping[str, Any]) -> dict[str, Distribution]:
        """The probability of the line's cell."""
        return {"probability": posterior.marginal(line["value"])}

    def variance_prior(self, rows: float, variances: Sequence[float], parts: int) -> dict[str, Any] | None:
        """Pseudo-rows with the variance of one of so many equal parts of the block's range, and as many for each cell."""
        if not variances:
            return None
        return {"rows": rows, "variance": tuple((v or 1.0) / parts**2 for v in variances), "pseudocount": rows}


def _table(statistic: Scatter, categories: Sequence[Column], prior: BlockPrior) -> Array:
    """Log probability of every cell by class; each axis ends with an entry for unseen and one for missing values."""
    n = statistic.n
    if not categories:
        return np.zeros((n.shape[0],))
    cells, axes = max(int(np.prod(n.shape[1:])), 1), range(1, n.ndim)
    pseudo = prior.pseudocounts(cells_of(categories)).reshape(n.shape[1:])
    whole = (n + pseudo).sum(tuple(axes), keepdims=True)
    share = np.divide(n + pseudo, whole, out=np.full(n.shape, 1.0 / cells), where=whole > 0)
    never = np.divide(prior.unseen(cells), whole, out=np.full(whole.shape, 1.0 / cells), where=whole > 0)
    for axis in axes:
        shape = [1 if a == axis else size for a, size in enumerate(share.shape)]
        share = np.concatenate([share, np.broadcast_to(never, shape)], axis)
    for axis in axes:  # a missing value: the marginal over the known ones
        known = np.take(share, np.arange(n.shape[axis]), axis).sum(axis, keepdims=True)
        share = np.concatenate([share, known if n.shape[axis] else np.ones_like(known)], axis)
    share[(slice(None), *[-1] * len(axes))] = 1.0  # all missing: exactly 1
    return log(share)


def cells_of(categories: Sequence[Column]) -> list[tuple[Any, ...]]:
    """Every combination of the values of some columns."""
    cells: list[tuple[Any, ...]] = [()]
    for column in categories:
        cells = [(*cell, value) for cell in cells for value in column.values]
    return cells


def _table_parameters(columns: tuple[Column, ...], statistic: Scatter, logs: Array, classes: Sequence[Any]) -> Parameters:
    inner = logs[(slice(None), *(slice(0, len(c.values)) for c in columns))].reshape(len(classes), -1)
    seen = statistic.n.reshape(len(classes), -1)
    name = " with ".join(c.name for c in columns)
    rows = tuple(
        {
            "column": name,
            "class": label,
            "value": cell,
            "count": float(seen[k, i]),
            "probability": float(np.exp(inner[k, i])),
        }
        for k, label in enumerate(classes)
        for i, cell in enumerate(cells_of(columns))
    )
    likelihood = LookupTable(np.ascontiguousarray(logs.reshape(len(classes), -1).T))
    return Parameters(tuple(c.name for c in columns), likelihood, rows, inner.size, len(classes) * (inner.shape[1] - 1))


def _gaussian_parameters(
    columns: tuple[Column, ...], statistic: Scatter, logs: Array, prior: BlockPrior, classes: Sequence[Any], *,
    tie: str | None,
) -> Parameters:  # fmt: skip
    categories = [c for c in columns if c.kind == CATEGORY]
    width = statistic.mean.shape[-1]
    # One more cell per axis for an unseen value: it has the class's Gaussian over all cells.
    padded = _with_unseen(statistic, len(categories))
    k, lines = len(classes), padded.n.shape[1:]
    flat = Scatter(
        padded.n.reshape(k, -1), padded.mean.reshape(k, -1, width), padded.scatter.reshape(k, -1, width, width)
    )
    flat = _with_prior(Scatter(flat.n, _means(flat), flat.scatter), prior)
    mean = flat.mean
    covariance, borrowed = _covariances(flat, mean, tie)
    weight = logs[(slice(None), *(slice(0, s) for s in lines))].reshape(k, -1)
    cells = cells_of(categories)
    likelihood = JointGaussianTerm(mean, covariance, weight, tuple(lines))
    rows = tuple(_gaussian_rows(columns, statistic, likelihood, cells, classes))
    each = width * (width + 1) // 2
    groups = k * len(cells)
    free = groups * width + (len(cells) if tie else groups) * each + k * (len(cells) - 1)
    name = " with ".join(c.name for c in columns)
    notes = (f"columns {name!r}: a covariance is borrowed where too few rows were seen",) if borrowed else ()
    return Parameters(
        tuple(c.name for c in columns), likelihood, rows, groups * (width + each + bool(categories)), free, notes
    )


def _gaussian_rows(
    columns: Sequence[Column], statistic: Scatter, likelihood: JointGaussianTerm, cells: Sequence[tuple[Any, ...]],
    classes: Sequence[Any],
) -> list[dict[str, Any]]:  # fmt: skip
    weight, mean, covariance, lines = likelihood.weight, likelihood.mean, likelihood.covariance, likelihood.lines
    place = np.arange(weight.shape[1]).reshape(lines or (1,))[tuple(slice(0, s - 1) for s in lines)].reshape(-1)
    n = statistic.n.reshape(len(classes), -1)
    name = " with ".join(c.name for c in columns)
    return [
        {
            "column": name, "class": label, "value": cell, "count": float(n[k, i]),
            "probability": float(np.exp(weight[k, place[i]])),
            "mean": mean[k, place[i]].tolist(), "covariance": covariance[k, place[i]].tolist(),
        }
        for k, label in enumerate(classes)
        for i, cell in enumerate(cells)
    ]  # fmt: skip


def _with_unseen(statistic: Scatter, axes: int) -> Scatter:
    """Scatter with one more cell at the end of every category axis: the sum over that axis."""
    for axis in range(1, axes + 1):
        whole = statistic.summed(axis)
        parts = ((statistic.n, whole.n), (statistic.mean, whole.mean), (statistic.scatter, whole.scatter))
        statistic = Scatter(*(np.concatenate([a, np.expand_dims(b, axis)], axis) for a, b in parts))
    return statistic


def _means(flat: Scatter) -> Array:
    """Mean by class and cell: its own, else the class's over all cells, else that of all rows."""
    whole = Scatter(flat.n[:, -1:], flat.mean[:, -1:], flat.scatter[:, -1:])  # the last cell holds all others
    level = np.where(whole.n[..., None] > 0, whole.mean, whole.summed(0).mean)
    return np.where(flat.n[..., None] > 0, flat.mean, level)


def _with_prior(flat: Scatter, prior: BlockPrior) -> Scatter:
    """Mean, and numerator and denominator of the covariance, with the pseudo-rows added."""
    pseudo: tuple[float, Array] | None = getattr(prior, "scatter", None)
    if pseudo is not None:  # pseudo-rows around the block's own mean
        rows, spread = pseudo
        return Scatter(flat.n + rows, flat.mean, flat.scatter + np.diag(np.broadcast_to(spread, flat.mean.shape[-1:])))
    return flat if prior.normal is None else _with_normal(flat, prior.normal)


def _with_normal(flat: Scatter, normal: NormalPrior) -> Scatter:
    """Mode of the normal–inverse-Wishart posterior.

    Every column alone has the given normal–inverse-gamma prior; the columns are uncorrelated a priori.
    """
    level, strength, shape, scale = normal
    whole, width = flat.n + strength, flat.mean.shape[-1]
    share = np.divide(strength, whole, out=np.zeros_like(whole), where=whole > 0)
    apart = level - flat.mean
    drift = outer(apart) * (share * flat.n)[..., None, None]
    return Scatter(
        flat.n + 2 * shape + 2 * width + 1,
        flat.mean + apart * share[..., None],
        flat.scatter + drift + 2 * scale * np.eye(width),
    )


def _covariances(flat: Scatter, mean: Array, tie: str | None) -> tuple[Array, bool]:
    """Covariance by class and cell: its own, else the cell's over all classes, else the class's, else a diagonal."""
    size = np.abs(mean)
    pooled, widest = _divide(flat.scatter.sum(0), flat.n.sum(0)), size.max(0, initial=0.0)
    own = np.broadcast_to(pooled[None], flat.scatter.shape) if tie else _divide(flat.scatter, flat.n)
    last = _diagonal(flat)
    result, borrowed = own.copy(), False
    end = flat.n.shape[1] - 1
    for k, g in np.ndindex(*flat.n.shape):
        level = widest[g] if tie else size[k, g]
        # The last of several cells is the sum of the others: its spread includes the differences of their means.
        if not _sound(own[k, g], level, 0 < g == end):
            borrowed |= bool(flat.n[k, g] > 0)
            others = ((pooled[g], g), (own[k, end], end), (pooled[end], end))
            result[k, g] = next((c for c, at in others if _sound(c, widest[at], 0 < at == end)), last)
    return result, borrowed


def _diagonal(flat: Scatter) -> Array:
    """Diagonal covariance with back-off by column, for too few rows or collinear columns."""
    mean, n = flat.mean[:, -1].T, np.broadcast_to(flat.n[:, -1], flat.mean[:, -1].T.shape)
    spread = np.einsum("kii->ik", flat.scatter[:, -1])
    variance, _ = back_off(np.zeros_like(mean), mean, n, spread)
    return np.diag(variance.max(1, initial=1e-300))


def _divide(scatter: Array, n: Array) -> Array:
    return np.divide(scatter, n[..., None, None], out=np.zeros(scatter.shape), where=n[..., None, None] > 0)


def _sound(covariance: Array, level: Array, of_means: bool) -> bool:
    """Whether the covariance can be inverted without losing all digits, judged independently of the columns' units."""
    variance = np.diag(covariance)
    if not np.isfinite(covariance).all() or np.any(variance <= dust(level, MEAN_DIGITS if of_means else ROUNDING)):
        return False
    scale = np.sqrt(variance)
    values = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    return bool(values[0] > SINGULAR * values[-1])
