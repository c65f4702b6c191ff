"""Bayes-optimal average over all 2ⁿ choices of which columns depend on the class, from the tally alone.

In a choice, the parameters of each column either differ by class (the column has an arc from the class) or are the same in all
classes. Both the probability of a choice and its prediction are products over the columns, so the average over all choices is
the product of one average for each column: π p(x|c) + (1 − π) p(x), where π is the posterior probability of the arc, and both
predictions have their parameters integrated out (Dash and Cooper, 2004). All choices are equally probable a priori. The joint
probability P(c, x | choice) is averaged, so a choice is weighted by the training rows and by x.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from likely.families import FittedBlock
from likely.families.posterior_predictive import Arc


def at_posterior_mean(model: Any, i: int) -> FittedBlock:
    """Block i of a model, with the prior whose pseudocounts give the posterior mean instead of the mode."""
    fitted: FittedBlock = model.fitted(i)
    prior: Any = fitted.prior
    if prior.averaged == prior:
        return fitted
    family, mean = model.blocks[i].family, prior.averaged
    parameters = family.derive([fitted.columns], [fitted.statistic], [mean], model.classes)[0]
    return replace(fitted, prior=mean, parameters=parameters)


def arc_of(model: Any, i: int) -> Arc | None:
    """Marginal likelihoods of block i with and without an arc from the class; None for families that always have one."""
    arc: Arc | None = model.blocks[i].family.arc(at_posterior_mean(model, i))
    return arc


def arc_probability(model: Any, i: int) -> float | None:
    """Posterior probability that block i depends on the class; None where its family or prior has none."""
    found: float | None = model.blocks[i].family.arc_probability(at_posterior_mean(model, i))
    return found
