"""Bayes' rule: a belief, times how well it foretold the data, shared out so that all beliefs sum to one."""

from likely.bayes.events import bayes_rule, independent, total_probability
from likely.bayes.hypotheses import Hypotheses
from likely.bayes.rule import Posterior, labels_array, normalise

__all__ = ["Hypotheses", "Posterior", "bayes_rule", "independent", "labels_array", "normalise", "total_probability"]
