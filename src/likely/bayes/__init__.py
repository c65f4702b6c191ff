"""Bayes' rule on events and hypotheses, distributions and their conjugate posteriors, the posterior of rows.

Never: data.
"""

from likely.bayes._events import (
    bayes_rule,
    conditional,
    independent,
    odds,
    odds_ratio,
    product_rule,
    sum_rule,
    total_probability,
)
from likely.bayes._hypotheses import Hypotheses
from likely.bayes._supervised import SupervisedHypotheses
from likely.bayes.grid import GridHypotheses
from likely.bayes.rule import Posterior, labels_array, normalise

__all__ = [
    "GridHypotheses",
    "Hypotheses",
    "Posterior",
    "SupervisedHypotheses",
    "bayes_rule",
    "conditional",
    "independent",
    "labels_array",
    "normalise",
    "odds",
    "odds_ratio",
    "product_rule",
    "sum_rule",
    "total_probability",
]
