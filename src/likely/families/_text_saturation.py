"""Saturation of text: the evidence of a document grows less than its word weights add up to.

Words of one document are redundant: the more evidence they have in sum, the more of it repeats what others contribute. The sum
is therefore scaled by a factor that falls with its size, one factor for all classes and words of the document, so that the
score stays a sum over the words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import log_losses, paired_gain
from likely.families.statistics import Array
from likely.kernels.lbfgs import minimise

STRENGTH = 1.0  # of the penalty towards no saturation
ITERATIONS = 60
GAIN, RATE = 4.0, 4.0  # bounds of their logarithms, that of the rate relative to the mean size
START = 0.2  # power: at zero the rate has no gradient
ENTRIES = 100_000  # documents × classes that it is fitted on: three numbers and the biases need no more
SETTINGS = 3  # log gain, log rate, power; then one bias for each class


@dataclass(frozen=True)
class Saturation:
    """Scale of a document's evidence, gain · (1 + rate · size)^-power, with the norm of its centred scores as size."""

    gain: float
    rate: float
    power: float  # from 0, no saturation, to 1, at which the evidence is bounded

    def scale(self, scores: Array) -> Array:
        """Scale of each document, from its scores, documents × classes."""
        return self.at(_centred(scores)[1])

    def at(self, size: Array) -> Array:
        """Scale of documents of these sizes."""
        return np.asarray(self.gain * (1.0 + self.rate * size) ** -self.power)

    @property
    def array(self) -> Array:
        """The three numbers."""
        return np.array([self.gain, self.rate, self.power])


def fit_saturation(scores: Array, bias: Array, labels: NDArray[Any], weights: Array) -> tuple[Saturation, Array] | None:
    """Saturation and class biases of maximum penalised likelihood of the labels.

    None unless they lower the log loss by more than the standard error of the difference.

    Parameters
    ----------
    scores : array, documents × classes
        Leave-one-out sums over the words of each document, without the biases.
    bias : array
        Fitted biases of the classes, the centre of their penalty.
    labels, weights : array
        Class and weight of each document.
    """
    some = slice(max(1_000, ENTRIES // len(bias)))  # documents are in the order of a hash
    labels, weights = labels[some], weights[some]
    centred, size = _centred(scores[some])
    typical = float(np.sqrt(np.average(size * size, weights=weights)))
    if not typical > 0:
        return None
    loss = SaturationLoss(centred, size, labels, weights, np.concatenate([[0.0, -np.log(typical), 0.0], bias]))
    free = np.full(len(bias), np.inf)
    lower = np.concatenate([[-GAIN, -np.log(typical) - RATE, 0.0], -free])
    upper = np.concatenate([[GAIN, -np.log(typical) + RATE, 1.0], free])
    start = loss.centre.copy()
    start[2] = START
    found, _ = minimise(loss, start, lower, upper, iterations=ITERATIONS)
    saturation, bias_found = _unpacked(found)
    after = centred * saturation.at(size)[:, None] + bias_found
    gain, error = paired_gain(log_losses(centred + bias, labels), log_losses(after, labels), weights)
    return (saturation, bias_found) if gain > error else None


def _unpacked(q: Array) -> tuple[Saturation, Array]:
    return Saturation(float(np.exp(q[0])), float(np.exp(q[1])), float(q[2])), q[SETTINGS:]


@dataclass(frozen=True)
class SaturationLoss:
    """Penalised log loss of the labels as a function of log gain, log rate, power and biases, and its gradient."""

    scores: Array  # centred
    size: Array
    labels: NDArray[Any]
    weights: Array
    centre: Array

    def __call__(self, q: Array) -> tuple[float, Array]:
        """Mean loss and gradient."""
        own, total = np.arange(len(self.scores)), float(self.weights.sum())
        (saturation, bias), power = _unpacked(q), q[2]
        scaled, grown = self.scores * saturation.at(self.size)[:, None], saturation.rate * self.size
        score = scaled + bias
        top = score.max(1, keepdims=True)
        residual = np.exp(score - top)
        whole = residual.sum(1, keepdims=True)
        loss = self.weights @ (top[:, 0] + np.log(whole[:, 0]) - score[own, self.labels]) / total
        residual /= whole
        residual[own, self.labels] -= 1.0
        residual *= (self.weights / total)[:, None]
        slope = (residual * scaled).sum(1)  # of the loss along the log scale of each document
        settings = [slope.sum(), -power * (slope @ (grown / (1.0 + grown))), -(slope @ np.log1p(grown))]
        away, strength = q - self.centre, STRENGTH / total
        gradient = np.concatenate([settings, residual.sum(0)]) + 2 * strength * away
        return float(loss + strength * (away @ away)), gradient


def _centred(scores: Array) -> tuple[Array, Array]:
    """Scores relative to their mean over the classes, and the norm of these."""
    centred = scores - scores.mean(1, keepdims=True)
    return centred, np.sqrt(np.einsum("ic,ic->i", centred, centred))
