"""One distribution alone: maximum likelihood and MAP estimates, and the likelihood of values.

Never: tables.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.parameter_posterior import ParameterPosterior, number_or_none
from likely.errors import DataError, UsageError
from likely.families import Family, FittedBlock
from likely.families import family as family_of
from likely.model._estimate_values import NO_VALUES, encoded_values
from likely.plots.shown import Shown, ShownTable
from likely.plots.svg import Svg
from likely.priors import Prior, Pseudocount
from likely.priors import prior as prior_of
from likely.schema import Column

Array = NDArray[np.float64]
ParameterValues = dict[Any, float]
ROUNDING = 1e-9  # by which probabilities may miss the sum of one


@dataclass(frozen=True)
class Estimate(Shown):
    """Estimated parameters of one distribution; from `estimate`.

    Attributes
    ----------
    family_made : Family
        The family.
    n : float
        Number of values that are not missing, or their total weight.
    ml : dict
        Maximum-likelihood estimates, by name.
    map : dict
        Maximum a posteriori estimates under the prior, by name; NaN where the posterior has no maximum inside.
    """

    family_made: Family
    n: float
    ml: ParameterValues
    map: ParameterValues
    _log_likelihood: Callable[[Mapping[Any, float]], float]
    _posterior: Callable[[], ParameterPosterior]

    @property
    def family(self) -> str:
        """The name of the family."""
        return self.family_made.name

    @property
    def posterior(self) -> ParameterPosterior:
        """The whole posterior of the parameters: mean, mode, intervals, densities, predictive distribution and draws.

        A `Dirichlet(β)` prior gives Dirichlet(count + β), a pseudocount m gives Dirichlet(count + m), whose mean is the
        smoothed estimate. Without a prior, counts have an improper prior and Gaussians the reference prior 1/σ².
        """
        return self._posterior()

    def distribution(self, at: str = "map") -> Any:
        """The fitted distribution of one value.

        Parameters
        ----------
        at : "map", "ml" or "predictive", default="map"
            Parameters: the MAP or maximum-likelihood estimates, or integrated out.

        Returns
        -------
        distribution
            With `.between(low, high)` and `.quantile(p)`.
        """
        if at == "predictive":
            return self.posterior.predictive
        if at not in ("ml", "map"):
            raise UsageError(f"at={at!r} is not known: choose 'ml', 'map' or 'predictive'")
        return self.family_made.distribution(self.ml if at == "ml" else self.map)

    def probability(self, low: float = -math.inf, high: float = math.inf, at: str = "map") -> float:
        """P(low < X < high) of the fitted distribution.

        Parameters
        ----------
        low : float
            Lower end; minus infinity by default.
        high : float
            Upper end; infinity by default.
        at : "map", "ml" or "predictive", default="map"
            Parameters: the MAP or maximum-likelihood estimates, or integrated out.

        Returns
        -------
        float
            The probability.
        """
        return float(self.distribution(at).between(low, high))

    def quantile(self, p: float, at: str = "map") -> float:
        """Quantile of the fitted distribution.

        Parameters
        ----------
        p : float
            Probability, 0 to 1.
        at : "map", "ml" or "predictive", default="map"
            Parameters: the MAP or maximum-likelihood estimates, or integrated out.

        Returns
        -------
        float
            The p-quantile.
        """
        return float(self.distribution(at).quantile(p))

    @property
    def log_likelihood(self) -> float:
        """log P(values | parameters) at the maximum likelihood estimate; 0 of no values."""
        return 0.0 if not self.n else self._log_likelihood(self.ml)

    def log_likelihood_of(self, at: Mapping[Any, float] | None = None, /, **parameters: float) -> float:
        """Log-likelihood of the values at other parameters.

        Parameters
        ----------
        at : dict or None, default=None
            Parameters by name, where a name is no word of Python: {6: 0.3}.
        **parameters
            Parameters by name. Those not named stay at their maximum-likelihood estimates; probabilities of outcomes keep
            their proportions, so that all sum to one.

        Returns
        -------
        float
            log P(values | parameters).
        """
        wanted = {**(at or {}), **parameters}
        for name, value in wanted.items():
            self._require(name)
            if not self.family_made.is_possible(name, value):
                raise UsageError(f"{name}={value!r} is not possible for this parameter of the family {self.family}")
        return self._log_likelihood(self._with_parameters(wanted))

    def curve(self, parameter: Any = None, points: int = 101) -> list[tuple[float, float]]:
        """Log-likelihood along one parameter, the others at their maximum (probabilities keep their proportions).

        Parameters
        ----------
        parameter : object or None, default=None
            Name of the parameter; the first one by default.
        points : int, default=101
            Number of points.

        Returns
        -------
        list of (float, float)
            Parameter and log-likelihood.
        """
        name = next(iter(self.ml)) if parameter is None else parameter
        self._require(name)
        if not math.isfinite(self.log_likelihood):
            raise UsageError(f"the likelihood of {name!r} has no maximum: the values do not vary")
        return [(x, self._log_likelihood(self._with_parameters({name: x}))) for x in _grid(self, name, points)]

    def _require(self, name: Any) -> None:
        if name not in self.ml:
            raise UsageError(f"there is no parameter {name!r}: choose one of {list(self.ml)}")

    def _with_parameters(self, wanted: Mapping[Any, float]) -> ParameterValues:
        """The maximum-likelihood estimates with some of them replaced; other probabilities keep their proportions."""
        moved: ParameterValues = self.ml | dict(wanted)
        if not self.family_made.sums_to_one:
            return moved
        rest = math.fsum(p for name, p in self.ml.items() if name not in wanted)
        left = 1.0 - math.fsum(wanted.values())
        if left < -ROUNDING or (left > ROUNDING and len(wanted) == len(self.ml)):
            raise UsageError(f"the probabilities {dict(wanted)} sum to {1.0 - left:g}: they must sum to 1")
        scale = max(left, 0.0) / rest if rest else 0.0
        return {name: p if name in wanted else p * scale for name, p in moved.items()}

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """The estimate as plain data, with posterior and predictive distribution.

        Parameters
        ----------
        level : float, default=0.95
            Probability of the credible intervals.

        Returns
        -------
        dict
            Plain data.
        """
        return {
            "family": self.family,
            "n": self.n,
            "ml": {str(k): number_or_none(v) for k, v in self.ml.items()},
            "map": {str(k): number_or_none(v) for k, v in self.map.items()},
            "log_likelihood": self.log_likelihood,
        } | self._posterior_dict(level)

    def _posterior_dict(self, level: float) -> dict[str, Any]:
        """The posterior and the predictive distribution; nothing where the prior leaves the posterior improper."""
        try:
            posterior = self.posterior
            found = posterior.to_dict(level)
        except UsageError as error:
            return {"posterior": None, "no_posterior": str(error)}
        return {"posterior": found, "predictive": _as_dict(posterior.predictive)}

    def _shown_tables(self) -> list[ShownTable]:
        """Each parameter: maximum likelihood, MAP, and where there is a posterior its mean and 95 % interval."""
        posterior = self.to_dict()["posterior"] or {"parameters": []}
        known = {each["parameter"]: each for each in posterior["parameters"]}
        rows = []
        for name in self.ml:
            row: dict[str, Any] = {"parameter": str(name), "ML": self.ml[name], "MAP": self.map.get(name)}
            if more := known.get(str(name)):
                row |= {"posterior mean": more["mean"], "95 % from": more["interval"][0], "to": more["interval"][1]}
            rows.append(row)
        return [ShownTable(f"{self.family}, {self.n:g} values, log-likelihood {self.log_likelihood:.4f}", rows)]

    def plot(self, parameter: Any = None) -> Svg:
        """Likelihood of one parameter, relative to its maximum.

        Parameters
        ----------
        parameter : object or None, default=None
            Name of the parameter; the first one by default.

        Returns
        -------
        Svg
            A picture that notebooks show and `.save("x.svg")` writes; also .png and .pdf.
        """
        from likely.plots.figure import Figure, Trace, figure_svg

        name = next(iter(self.ml)) if parameter is None else parameter
        best = self.log_likelihood
        points = sorted([*self.curve(name), (self.ml[name], best)])
        line = Trace("", [x for x, _ in points], [math.exp(min(y - best, 0.0)) for _, y in points])
        subtitle = f"{self.family}, {self.n:g} values; maximum at {self.ml[name]:.4g}"
        return figure_svg(Figure(f"Likelihood of {name}", subtitle, str(name), "relative likelihood", [line], y=(0.0, 1.05)))

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {value:.4g}" for name, value in list(self.map.items())[:4])
        return f"<Estimate: {self.family}, {self.n:g} values, MAP {found}>"

    def __str__(self) -> str:
        width = max(len(str(k)) for k in self.ml)
        head = f"{self.family}, n = {self.n:g}, log likelihood {self.log_likelihood:.6f}"
        lines = [head, f"{'':{width}}  {'ML':>12}  {'MAP':>12}"]
        body = [f"{k!s:{width}}  {v:12.6f}  {self.map[k]:12.6f}" for k, v in self.ml.items()]
        try:
            mean, interval = self.posterior.mean, self.posterior.interval()
        except UsageError:
            return "\n".join([*lines, *body])
        lines[1] += f"  {'mean':>12}  {'95 % interval':>23}"
        between = [(mean.get(k), interval.get(k)) for k in self.ml]
        more = ["" if m is None or i is None else f"  {m:12.6f}  {i[0]:10.6g} … {i[1]:10.6g}" for m, i in between]
        return "\n".join([*lines, *(line + rest for line, rest in zip(body, more, strict=True))])


def _as_dict(distribution: Any) -> dict[str, Any]:
    """A distribution as plain data: its name and parameters."""
    own = {name: v for name, v in vars(distribution).items() if not name.startswith("_")}
    given = {name: dict(v) if isinstance(v, Mapping) else v for name, v in own.items()}
    return {"distribution": type(distribution).__name__} | given


def estimate(values: Any, family: Any = "categorical", prior: Any = 0.0, *, weights: Any = None) -> Estimate:
    """Estimate the parameters of one distribution from its values.

    Parameters
    ----------
    values : sequence, array or dict of columns
        The values, or none beside a proper prior, which then is the posterior. Pairs (k, n) for a binomial, a table of counts
        (or one row of it) for a multinomial. For a Bernoulli family one column of yes/no values (numbers, or the words yes
        and no, true and false, y and n), or several independent ones (a multivariate Bernoulli variable). A data frame is a
        dict of columns. Missing values are left out, and so are rows of pairs or counts with a missing cell.
    family : name or family, default="categorical"
        The family, as for `learn`. `Gaussian(unbiased=True)` divides by n − 1.
    prior : float or prior, default=0.0
        Pseudocount or prior of the MAP estimate. An outcome that it names is estimated even if no value shows it.
    weights : array or None, default=None
        Weight of each value.

    Returns
    -------
    Estimate
        Maximum-likelihood and MAP estimates, posterior and predictive distribution.
    """
    chosen, chosen_prior = family_of(family), prior_of(prior)
    _require_usable(chosen, chosen_prior)
    found = encoded_values(values, chosen, chosen_prior.named, weights)
    rows, columns, w = found.rows, found.columns, found.weights
    statistics = chosen.count(rows, np.zeros(len(w), np.int64), w, 1)
    counted = _Counted(chosen, _blocks(columns, len(statistics)), statistics, rows.numbers, w)
    at_most = counted.parameters(Pseudocount(0.0))
    posterior = functools.partial(counted.posterior, chosen_prior.averaged)
    if not len(w):
        at_most = dict.fromkeys(at_most, math.nan)
        with_prior = _mode_alone(posterior, at_most)
    elif getattr(chosen_prior, "has_mode", True):
        with_prior = counted.parameters(chosen_prior)
    else:
        with_prior = posterior().mode
    return Estimate(chosen, float(w.sum()), at_most, with_prior, counted.log_likelihood(), posterior)


def _mode_alone(posterior: Callable[[], ParameterPosterior], names: ParameterValues) -> ParameterValues:
    """The mode of the prior where there are no values; without a proper prior there is nothing to estimate from."""
    try:
        mode = posterior().mode
    except UsageError as error:
        raise DataError(f"{NO_VALUES}: {error}") from None
    return {name: mode.get(name, math.nan) for name in names}


def _require_usable(family: Family, prior: Prior) -> None:
    """Refuse a prior that the family would ignore."""
    of_moments = prior.normal is not None
    if of_moments and not family.counts_moments:
        raise UsageError(f"{prior} is a prior of mean and variance, which the family {family.name} lacks: pass a pseudocount")
    if prior.gamma is not None and not family.counts_rates:
        raise UsageError(f"{prior} is a prior of Poisson rates, which the family {family.name} lacks: pass a pseudocount")
    if family.counts_moments and not of_moments and prior != Pseudocount(0.0):
        raise UsageError(f"the family {family.name} has no counts that {prior} could add to: pass NormalInverseGamma(...)")


def _blocks(columns: Sequence[Column], number: int) -> list[tuple[Column, ...]]:
    return [tuple(columns)] if number == 1 else [(column,) for column in columns]


@dataclass(frozen=True)
class _Counted:
    """What was counted of the values: one block of columns, or several independent columns of one family."""

    family: Family
    blocks: list[tuple[Column, ...]]
    statistics: list[Any]
    numbers: Array
    weights: Array

    def _named(self, by_block: list[ParameterValues]) -> ParameterValues:
        """One block keeps the names of its parameters; of several, each has one parameter, named like its column."""
        if len(by_block) == 1:
            return by_block[0]
        return {columns[0].name: next(iter(own.values())) for columns, own in zip(self.blocks, by_block, strict=True)}

    def parameters(self, prior: Prior) -> ParameterValues:
        derived = self.family.derive(self.blocks, self.statistics, [prior] * len(self.blocks), ["values"])
        by_block = [
            self.family.estimated(each.rows, statistic, prior) for each, statistic in zip(derived, self.statistics, strict=True)
        ]
        return self._named(by_block)

    def posterior(self, prior: Prior) -> ParameterPosterior:
        derived = self.family.derive(self.blocks, self.statistics, [prior] * len(self.blocks), ["values"])
        whole = np.array([self.weights.sum()])
        parts = [
            self.family.parameter_posteriors(FittedBlock(columns, statistic, prior, own, whole))[0]
            for columns, statistic, own in zip(self.blocks, self.statistics, derived, strict=True)
        ]
        names = [columns[0].name for columns in self.blocks]
        return parts[0] if len(parts) == 1 else self.family.joint_posterior(names, parts)

    def log_likelihood(self) -> Callable[[Mapping[Any, float]], float]:
        several = len(self.blocks) > 1
        parts = []
        for j, (columns, statistic) in enumerate(zip(self.blocks, self.statistics, strict=True)):
            numbers = self.numbers[:, j : j + 1] if several else self.numbers
            parts.append((columns[0].name, self.family.log_likelihood(statistic.arrays(), columns, numbers, self.weights)))
        if not several:
            return parts[0][1]
        return lambda p: math.fsum(of({"p": p[name]}) for name, of in parts)


def _grid(found: Estimate, name: Any, points: int) -> list[float]:
    """Values of a parameter at which the likelihood curve is computed."""
    if points < 2:
        raise UsageError(f"points={points}: at least two are needed")
    low, high = found.family_made.parameter_range(name, found.ml, found.n)
    if (low, high) == (0.0, 1.0):  # at probabilities 0 and 1 the likelihood is zero
        return [(i + 0.5) / points for i in range(points)]
    return [low + (high - low) * i / (points - 1) for i in range(points)]
