"""Marginal likelihoods of plain models, and the comparison of models by them: Bayes factors and BIC."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from likely.calibration.averaging import at_posterior_mean
from likely.errors import UsageError
from likely.families import FittedBlock
from likely.families.value_tables import log_polya
from likely.model.model import Model
from likely.plots.shown import Shown, ShownTable
from likely.plots.svg import Svg

# Jeffreys' scale: name of a Bayes factor of at least so much, in logs.
FACTORS = ((math.log(100), "decisive"), (math.log(10), "strong"), (math.log(3), "substantial"), (0.0, "barely any"))


def log_marginal_likelihood(model: Model) -> float:
    """log P(labels, cells | families, priors): the parameters are integrated out, exactly.

    Every block needs a conjugate prior with pseudocounts above zero. Classes have the prior that was given, else a flat
    Dirichlet. Factors that no parameter changes (log x! of counts, binomial and multinomial coefficients) are left out.
    """
    _refuse_calibrated(model)
    return _log_labels(model) + sum(block_log_marginal(model, i) for i in range(len(model.blocks)))


def block_log_marginal(model: Model, i: int) -> float:
    """The log marginal likelihood of one block given the classes."""
    return float(model.blocks[i].family.log_marginal(at_posterior_mean(model, i)))


def bic(model: Model) -> float:
    """Schwarz's criterion: −2 log-likelihood + free parameters · log rows, with the factors left out as above."""
    _refuse_calibrated(model)
    counts = model.tally.classes
    with np.errstate(divide="ignore", invalid="ignore"):
        labels = float(np.where(counts > 0, counts * np.log(model.class_prior), 0.0).sum())
    total = labels + sum(model.blocks[i].family.log_maximum(model.fitted(i)) for i in range(len(model.blocks)))
    return -2.0 * total + model.parameter_count.free * math.log(max(float(counts.sum()), 1.0))


def _refuse_calibrated(model: Model) -> None:
    if model.no_evidence:
        raise UsageError(f"there is no marginal likelihood: {model.no_evidence}")


def _log_labels(model: Model) -> float:
    counts, given = model.tally.classes, model.prior.classes
    if isinstance(given, Mapping):
        return float((counts * np.log(model.class_prior)).sum())
    pseudocounts = np.ones(len(counts)) if given is None else given.averaged.pseudocounts(model.classes)
    return log_polya(counts[None], pseudocounts)


@dataclass(frozen=True)
class ModelComparison(Shown):
    """Models of the same rows ranked by marginal likelihood, with equal prior probabilities; from `compare_models`.

    Attributes
    ----------
    names : tuple of str
        Names of the models.
    log_marginal : tuple of float
        Log marginal likelihood of each.
    bic : tuple of float
        Bayesian information criterion of each.
    """

    names: tuple[str, ...]
    log_marginal: tuple[float, ...]
    bic: tuple[float, ...]

    @property
    def best(self) -> str:
        """The name of the model with the highest marginal likelihood."""
        return self.names[int(np.argmax(self.log_marginal))]

    @property
    def probabilities(self) -> dict[str, float]:
        """The posterior probability of each model."""
        logs = np.array(self.log_marginal)
        shares = np.exp(logs - logs.max())
        return dict(zip(self.names, (shares / shares.sum()).tolist(), strict=True))

    def log_bayes_factor(self, one: str, other: str) -> float:
        """Log Bayes factor log P(data | one) − log P(data | other).

        Parameters
        ----------
        one : str
            Name of a model.
        other : str
            Name of another.

        Returns
        -------
        float
            The factor, in nats.
        """
        for name in (one, other):
            if name not in self.names:
                raise UsageError(f"there is no model {name!r}: choose from {list(self.names)}")
        return self.log_marginal[self.names.index(one)] - self.log_marginal[self.names.index(other)]

    @property
    def verdict(self) -> str:
        """Strength of the evidence for the best model over the second, on Jeffreys' scale."""
        first, second = self.to_dict()["models"][:2]
        word = next(word for least, word in FACTORS if -second["log_bayes_factor"] >= least)
        return f"evidence for {first['model']!r} over {second['model']!r}: {word}"

    def __repr__(self) -> str:
        return f"<ModelComparison: {self.verdict if len(self.names) > 1 else self.names[0]}>"

    def _shown_tables(self) -> list[ShownTable]:
        """The models, the best first."""
        return [ShownTable(self.verdict if len(self.names) > 1 else "One model", self.to_dict()["models"])]

    def plot(self) -> Svg:
        """Bar chart of the posterior probabilities, which `.save("x.svg")` writes; also .png and .pdf."""
        from likely.plots.bars import Bar, BarChart, bars_svg

        rows = [(name, [Bar(p, value=f"{100 * p:.1f} %")]) for name, p in self.probabilities.items()]
        chart = BarChart("Models compared", "equal priors", "posterior probability", rows, percent=True, x=(0.0, 1.0))
        return bars_svg(chart)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data, the best model first."""
        order = np.argsort([-x for x in self.log_marginal], kind="stable").tolist()
        top = max(self.log_marginal)
        return {
            "models": [
                {
                    "model": self.names[i], "log_marginal_likelihood": self.log_marginal[i],
                    "log_bayes_factor": self.log_marginal[i] - top, "probability": self.probabilities[self.names[i]],
                    "bic": self.bic[i],
                }
                for i in order
            ]
        }  # fmt: skip

    def __str__(self) -> str:
        rows = self.to_dict()["models"]
        width = max(5, *(len(row["model"]) for row in rows))
        lines = [f"{'model':{width}}  {'log P(data)':>14}  {'log factor':>11}  {'probability':>11}  {'BIC':>14}"]
        lines += [
            f"{row['model']:{width}}  {row['log_marginal_likelihood']:14.4f}  {row['log_bayes_factor']:11.4f}  "
            f"{row['probability']:11.4f}  {row['bic']:14.4f}"
            for row in rows
        ]
        return "\n".join([*lines, self.verdict])


def compare_models(*models: Model, names: Sequence[str] | None = None) -> ModelComparison:
    """Compare plain models of the same rows: marginal likelihoods, Bayes factors, posterior probabilities and BIC.

    Models may differ in families, priors, tyings or columns. A column that a model does not use is one that does not depend on
    the class: it enters with its marginal likelihood (and BIC) under one distribution for all classes.

    Parameters
    ----------
    *models
        Models learned from the same rows with `plain=True` and conjugate priors.
    names : sequence of str or None, default=None
        What the models are called; by default their numbers.

    Returns
    -------
    ModelComparison
        Prints as a table; `.best`, `.probabilities`, `.log_bayes_factor(one, other)`, `.to_dict()`.
    """
    odd = next((each for each in models if not isinstance(each, Model)), None)
    if odd is not None or len(models) < 2:
        raise UsageError("pass two or more models to compare" + ("" if odd is None else f", not {odd!r:.60}"))
    called = tuple(names) if names is not None else tuple(f"model {i + 1}" for i in range(len(models)))
    if len(called) != len(models) or len(set(called)) != len(called):
        raise UsageError(f"names={list(called)!r}: pass one name for each of the {len(models)} models, all different")
    first = models[0]
    for other, name in zip(models[1:], called[1:], strict=True):
        same = other.classes == first.classes and np.array_equal(other.tally.classes, first.tally.classes)
        if not same or other.schema.target.name != first.schema.target.name:
            raise UsageError(f"{name!r} was not learned from the same labels as {called[0]!r}: learn both from the same rows")
    unused = _unused(models)
    logs, criteria = [], []
    for model, extra in zip(models, unused, strict=True):
        logs.append(log_marginal_likelihood(model) + sum(log for log, _ in extra.values()))
        criteria.append(bic(model) + sum(more for _, more in extra.values()))
    return ModelComparison(called, tuple(logs), tuple(criteria))


def _bic_alone(model: Model, i: int) -> float:
    """Schwarz's criterion of one block whose parameters are the same in all classes."""
    alike = [model.tally.of_classes([c], ["all"]) for c in range(len(model.classes))]
    tally = reduce(operator.add, alike)
    block = model.blocks[i]
    statistic, prior = tally.statistics[tally.blocks.index(block)], model.prior.of(block)
    columns = tuple(tally.schema.by_name[name] for name in block.columns)
    parameters = block.family.derive([columns], [statistic], [prior], ("all",))[0]
    fitted = FittedBlock(columns, statistic, prior, parameters, tally.classes)
    return -2.0 * block.family.log_maximum(fitted) + parameters.free * math.log(max(float(tally.classes.sum()), 1.0))


def _unused(models: Sequence[Model]) -> list[dict[str, tuple[float, float]]]:
    """For each model the columns that others use and it does not: log P(column) and BIC under no dependence."""
    found: list[dict[str, tuple[float, float]]] = [{} for _ in models]
    for model in models:
        for i, block in enumerate(model.blocks):
            for other, extra in zip(models, found, strict=True):
                missing = [name for name in block.columns if name not in other.schema.by_name]
                if not missing or block.name in extra:
                    continue
                arc = block.family.arc(at_posterior_mean(model, i)) if len(missing) == len(block.columns) else None
                if arc is None:
                    raise UsageError(f"columns {list(block.columns)} are not in all models: learn them with the same columns")
                extra[block.name] = arc.log_independent, _bic_alone(model, i)
    return found
