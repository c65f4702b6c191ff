"""Columns that are not independent: a joint table, a joint Gaussian, or a Gaussian for every cell of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.bayes.conjugate import DirichletPosterior
from likely.bayes.distribution import Distribution
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.errors import UsageError
from likely.families._joint_estimates import cells_of, covariances, flattened, log_shares, posterior_scatter
from likely.families._joint_leave_one_out import joint_without
from likely.families._missing_data import expected
from likely.families._scatter import cell_scatter, weighted_cell_scatter
from likely.families.base import (
    BlockPrior,
    Encoded,
    Labels,
    Parameters,
    first_bad,
    weighted_responsibilities,
)
from likely.families.family import Family, FittedBlock, LeftOutRows, SampledCells, Totals
from likely.families.joint_gaussian_term import JointGaussianTerm
from likely.families.likelihoods import LookupTable
from likely.families.posterior_predictive import Arc
from likely.families.statistics import LARGEST, Array, Scatter, Statistic
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
        lookup = log_shares(statistic, [c for c in columns if c.kind == CATEGORY], prior)
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

    @property
    def leaves_out(self) -> bool:
        """Counts and covariances without a row have a closed form; a borrowed covariance of few rows is derived anew."""
        return True

    def leave_one_out(self, block: FittedBlock, cells: NDArray[Any], rows: LeftOutRows) -> Array:
        """Log-likelihood of each row's cells in every class, the row left out; with a missing cell, of what is there."""
        return joint_without(block, cells.reshape(len(cells), -1).astype(np.float64), rows, self.tie)

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
    k, lines = len(classes), tuple(size + 1 for size in statistic.n.shape[1:])
    flat = posterior_scatter(flattened(statistic, len(categories)), prior)
    covariance, borrowed = covariances(flat, tie)
    weight = logs[(slice(None), *(slice(0, s) for s in lines))].reshape(k, -1)
    cells = cells_of(categories)
    likelihood = JointGaussianTerm(flat.mean, covariance, weight, lines)
    rows = tuple(_gaussian_rows(columns, statistic, likelihood, cells, classes))
    each = width * (width + 1) // 2
    groups = k * len(cells)
    free = groups * width + (len(cells) if tie else groups) * each + k * (len(cells) - 1)
    name = " with ".join(c.name for c in columns)
    few = (borrowed & (flat.n > 0)).any()
    notes = (f"columns {name!r}: a covariance is borrowed where too few rows were seen",) if few else ()
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
