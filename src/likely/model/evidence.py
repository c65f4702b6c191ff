"""Marginal likelihoods of plain models, and the comparison of models by them: Bayes factors and BIC."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from likely.calibration.averaging import at_posterior_mean
from likely.errors import LikelyWarning, UsageError
from likely.families import FittedBlock, groups
from likely.families.value_tables import log_polya
from likely.model.model import Model
from likely.model.parameter_tables import has_expected_counts
from likely.plots.shown import Shown, ShownTable
from likely.plots.svg import Svg

# Jeffreys' scale: name of a Bayes factor of at least so much, in logs.
FACTORS = ((math.log(100), "decisive"), (math.log(10), "strong"), (math.log(3), "substantial"), (0.0, "barely any"))
CONJUGATE = "for a Bayes factor pass NormalInverseGamma(...) of numbers and GammaPrior(...) of counts as smoothing"


def log_marginal_likelihood(model: Model) -> float:
    """log P(labels, cells | families, priors): the parameters are integrated out, exactly.

    Every block needs a conjugate prior with pseudocounts above zero. Classes have the prior that was given, else a flat
    Dirichlet. With `average=True` it is the mean over all choices of which columns depend on the class. Documents count as
    words in one order, and the trials of a binomial column are given.
    """
    _refuse(model)
    for i, block in enumerate(model.blocks):
        if what := block.family.prior_from_data(at_posterior_mean(model, i)):
            warnings.warn(f"column {block.name!r} has {what}: the marginal likelihood uses the rows twice; {CONJUGATE}",
                          LikelyWarning, stacklevel=3)  # fmt: skip
    place = {block: i for i, block in enumerate(model.blocks)}
    return _log_labels(model) + sum(_log_marginal(model, [place[block] for block in group]) for group in groups(model.blocks))


def _log_marginal(model: Model, places: Sequence[int]) -> float:
    """The log marginal likelihood, given the classes, of the blocks that are derived together."""
    family, blocks = model.blocks[places[0]].family, [at_posterior_mean(model, i) for i in places]
    if not model.average:
        return family.log_marginal_together(blocks)
    total = 0.0
    for block in blocks:
        arc = family.arc(block)
        own = family.log_marginal(block) if arc is None else float(np.logaddexp(arc.log_dependent, arc.log_independent))
        total += family.log_base(block) + own - (0.0 if arc is None else math.log(2.0))
    return total


def bic(model: Model) -> float:
    """Schwarz's criterion: −2 log-likelihood + free parameters · log rows; NaN of an average over structures."""
    _refuse(model)
    if model.average:
        return math.nan
    counts = model.tally.classes
    with np.errstate(divide="ignore", invalid="ignore"):
        labels = float(np.where(counts > 0, counts * np.log(model.class_prior), 0.0).sum())
    fitted = [model.fitted(i) for i in range(len(model.blocks))]
    pairs = zip(model.blocks, fitted, strict=True)
    total = labels + sum(block.family.log_maximum(own) + block.family.log_base(own) for block, own in pairs)
    return -2.0 * total + model.parameter_count.free * math.log(max(float(counts.sum()), 1.0))


def _refuse(model: Model) -> None:
    if model.no_evidence:
        raise UsageError(f"there is no marginal likelihood: {model.no_evidence}")
    if has_expected_counts(model):
        what = "there is no marginal likelihood in closed form: rows without a label were shared out among the classes"
        raise UsageError(f"{what}; learn with unlabelled='ignore', or from the labelled rows")


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
        Bayesian information criterion of each; NaN of an average over structures.
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
                    "bic": None if math.isnan(self.bic[i]) else self.bic[i],
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
            f"{row['probability']:11.4f}  {_number(row['bic']):>14}"
            for row in rows
        ]
        return "\n".join([*lines, self.verdict])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


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
    for other, name in zip(models[1:], called[1:], strict=True):
        _refuse_other_cells(first, other, f"{name!r} and {called[0]!r}")
    unused = _unused(models)
    logs, criteria = [], []
    for model, extra in zip(models, unused, strict=True):
        logs.append(log_marginal_likelihood(model) + sum(log for log, _ in extra.values()))
        criteria.append(bic(model) + sum(more for _, more in extra.values()))
    return ModelComparison(called, tuple(logs), tuple(criteria))


def _refuse_other_cells(one: Model, other: Model, names: str) -> None:
    """Refuse models whose columns did not count the same cells."""
    mine, theirs = (
        {key: total for i, block in enumerate(model.blocks) for key, total in block.family.totals(model.fitted(i)).items()}
        for model in (one, other)
    )
    for column, kind in mine.keys() & theirs.keys():
        if not _same(mine[column, kind], theirs[column, kind]):
            raise UsageError(
                f"{names} did not count the same cells of column {column!r}: learn both from the same rows"
                " (of columns modelled together only complete rows are counted)"
            )


def _same(one: Any, other: Any) -> bool:
    """Whether totals are equal up to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(total, other[value]) for value, total in one.items())
    return bool(np.allclose(one, other, rtol=1e-6, atol=1e-9 * (1.0 + float(np.abs(one).max(initial=0.0)))))


def _bic_alone(model: Model, i: int) -> float:
    """Schwarz's criterion of one block whose parameters are the same in all classes."""
    alike = [model.tally.of_classes([c], ["all"]) for c in range(len(model.classes))]
    tally = reduce(operator.add, alike)
    block = model.blocks[i]
    statistic, prior = tally.statistics[tally.blocks.index(block)], model.prior.of(block)
    columns = tuple(tally.schema.by_name[name] for name in block.columns)
    parameters = block.family.derive([columns], [statistic], [prior], ("all",))[0]
    fitted = FittedBlock(columns, statistic, prior, parameters, tally.classes)
    total = block.family.log_maximum(fitted) + block.family.log_base(fitted)
    return -2.0 * total + parameters.free * math.log(max(float(tally.classes.sum()), 1.0))


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
                base = block.family.log_base(model.fitted(i))
                extra[block.name] = arc.log_independent + base, _bic_alone(model, i)
    return found
