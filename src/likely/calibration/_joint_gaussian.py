"""Joint Gaussians of all numeric columns: one for each class (quadratic discriminant), or a mixture of several.

Numbers enter in one of three ways: like those of the linear discriminant, with their tails pulled in, or on one common scale;
a missing one is the mean. Covariances are shrunk towards the pooled one, and by a ridge. Components are doubled, each split
across its longest axis and fitted by EM, as long as that pays. Choices are made by the leave-one-out log loss of the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import log_losses
from likely.calibration._component_moments import ClassRows, ComponentMoments, Regularisation
from likely.calibration._discriminant import FOLDS, Features, feature_matrix, make_features
from likely.calibration._terms import CalibrationData, Term
from likely.calibration.calibration import LOWEST, JointGaussian
from likely.families.likelihoods import GaussianComponents, relative
from likely.kernels.parallel import in_parallel

Array = NDArray[np.float64]
Single = NDArray[np.float32]

COLUMNS = 100  # maximum number of those that vary
MOST_COLUMNS = 10 * COLUMNS  # with more, it is not even looked which of them vary
OPERATIONS = 3e9  # rows times classes times squared columns: beyond, the term is not fitted
POOLED = (1.0, 0.25, 4.0, 16.0)  # pseudocounts of the pooled covariance, per column; the first is tried first
RIDGES = (0.03, 0.0, 0.1, 0.3)  # added to the variances; likewise
LEAST_SPREAD = 1e-150  # of a column, in units of the largest number of all
CHOICE_ROWS = 3_000  # on which choices are compared
CHECK_ROWS = 6_000  # on which it is tried whether to split at all
TEMPERATURES = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)  # of a density that is compared alone
EM_ROUNDS = 8  # after components were split
ROWS_PER_COLUMN = 3.0  # of a component: with fewer, leave-one-out is optimistic
FEWEST_ROWS = 10.0  # of a component
SPLIT_ODDS, SPLIT_GAIN = 8.0, 4e-3  # nats, and nats a row, that a split must gain: scoring then takes twice as long
SCORING = 2e5  # components times squared columns: beyond, there are no more splits


def fit_joint_gaussian(data: CalibrationData, terms: Sequence[Term]) -> tuple[JointGaussian, Single] | None:
    """Joint Gaussians of a sample, and their evidence for every row, which is left out; None with fewer than two numbers."""
    numeric = [term for term in terms if term.column is not None and term.column.numeric]
    if len(numeric) > MOST_COLUMNS:
        return None
    pairs = [(term, each) for term in numeric if (each := make_features(term, data.sample.weights)) is not None]
    classes, rows, width = len(data.tally.schema.classes), len(data.sample), len(pairs)
    if not 2 <= width <= COLUMNS or rows < 2 * FOLDS or rows * classes * width**2 > OPERATIONS:
        return None
    tried = [_Fit.of(data, features) for features in _scales(pairs, data.sample.weights)]
    best = min(tried, key=lambda each: each.loss).regularised().split_up()
    evidence = relative(best.moments.left_out(best.x, best.members, rows), LOWEST).astype(np.float32)
    names = tuple(each.name for each in best.features)
    return JointGaussian(names, tuple(each.table[:-1, 0].copy() for each in best.features), best.moments.components), evidence


def _scales(pairs: Sequence[tuple[Term, Features]], weights: Array) -> list[list[Features]]:
    """The columns in each of the ways in which they may enter."""
    found = [[each for _, each in pairs]]
    if all(term.centres is not None for term, _ in pairs):
        largest = max(float(np.abs(term.centres).max()) for term, _ in pairs if term.centres is not None)
        raw = [_numbers(term, each, weights, largest) for term, each in pairs]
        common = max(float(np.sqrt(np.mean([own**2 for _, own in raw]))), LEAST_SPREAD)
        ways: list[Callable[[Array, float], Array]] = [lambda x, own: np.arcsinh(x / own), lambda x, _: x / common]
        found += [
            [replace(each, table=_centred(way(x, own), each, weights)) for (_, each), (x, own) in zip(pairs, raw, strict=True)]
            for way in ways
        ]
    return found


def _numbers(term: Term, features: Features, weights: Array, largest: float) -> tuple[Array, float]:
    """The numbers that represent the bins, less their mean, and their standard deviation; in units of the largest of all."""
    assert term.centres is not None
    share = _bin_frequencies(features, weights)
    x = term.centres / max(largest, 1e-300)
    x = x - share @ x
    return x, max(float(np.sqrt(share @ (x * x))), LEAST_SPREAD)


def _centred(x: Array, features: Features, weights: Array) -> Array:
    """Numbers less their mean, as a table with zeros for a missing cell."""
    return np.append(x - _bin_frequencies(features, weights) @ x, 0.0)[:, None]


def _bin_frequencies(features: Features, weights: Array) -> Array:
    """Share of the rows in each bin, missing cells left out."""
    mass = np.bincount(features.codes, weights, len(features.table))[:-1]
    return np.asarray(mass / max(float(mass.sum()), 1e-300))


@dataclass(frozen=True)
class _Fit:
    """Components of the classes, fitted to a sample, and the leave-one-out log loss of its labels."""

    data: CalibrationData
    features: Sequence[Features]
    x: Array
    members: Sequence[ClassRows]
    moments: ComponentMoments
    loss: float

    @staticmethod
    def of(data: CalibrationData, features: Sequence[Features]) -> _Fit:
        """One component for each class."""
        labels, weights = data.sample.labels, data.sample.weights
        x = feature_matrix(features, len(labels))
        rows = [np.flatnonzero(labels == c) for c in range(len(data.tally.schema.classes))]
        members = [ClassRows(own, weights[own, None]) for own in rows]
        moments = ComponentMoments.of(x, members, Regularisation(POOLED[0], RIDGES[0]), pseudo=1.0)
        return _Fit(data, features, x, members, moments, _loss(data, x, members, moments))

    def regularised(self) -> _Fit:
        """The same components with the regularisation of the lowest loss: the ridge is chosen first."""
        first = self.moments.regularisation
        best = self.better_of([replace(first, ridge=ridge) for ridge in RIDGES[1:]])
        return best.better_of([replace(best.moments.regularisation, pooled=pooled) for pooled in POOLED[1:]])

    def better_of(self, others: Sequence[Regularisation]) -> _Fit:
        """The fit with this regularisation, or with one of others."""
        moments = [replace(self.moments, regularisation=each) for each in others]
        tried = [replace(self, moments=each, loss=_loss(self.data, self.x, self.members, each)) for each in moments]
        return min((self, *tried), key=lambda each: each.loss)

    def split_up(self) -> _Fit:
        """The same components, or twice as many for as long as the held-out log loss falls."""
        best, weight = self, float(self.data.sample.weights.sum())
        least = SPLIT_ODDS + SPLIT_GAIN * weight
        while (large := best._large()).any() and (best is not self or best._gains_on_held_out_rows(large) > least):
            more = best.doubled(large)
            more = replace(more, loss=_loss(self.data, self.x, more.members, more.moments))
            if best.loss - more.loss <= least:
                break
            best = more
        return best

    def _large(self) -> NDArray[np.bool_]:
        """The components with enough rows to be split; none if scoring would take too long."""
        width = self.x.shape[1]
        large: NDArray[np.bool_] = np.asarray(self.moments.n >= 2.0 * max(ROWS_PER_COLUMN * width, FEWEST_ROWS))
        return large if (len(large) + large.sum()) * width**2 <= SCORING else np.zeros_like(large)

    def _gains_on_held_out_rows(self, large: NDArray[np.bool_]) -> float:
        """Fall of the log loss of each half of the rows by components that were split and fitted on the other half.

        EM moves the components towards every row, which leaving a row out afterwards does not undo: on noise splits would seem
        to pay. Later splits are judged by leave-one-out, which is nearly honest while components have many rows.
        """
        x = self.x[:CHECK_ROWS]
        density = np.zeros((2, len(x), len(self.members)))
        for half in (0, 1):
            inside = [(own.rows % 2 == half) & (own.rows < len(x)) for own in self.members]
            members = [ClassRows(own.rows[some], own.shares[some]) for own, some in zip(self.members, inside, strict=True)]
            one = replace(self, members=members, moments=ComponentMoments.of(x, members, self.moments.regularisation, 1.0))
            for i, fit in enumerate((one, one.doubled(large, EM_ROUNDS // 2))):
                density[i, 1 - half :: 2] = fit.moments.components.log_densities(x[1 - half :: 2])
        one_each, split = (_lowest_loss(self.data, relative(each, LOWEST)) for each in density)
        return one_each - split

    def doubled(self, large: NDArray[np.bool_], rounds: int = EM_ROUNDS) -> _Fit:
        """Some components split in two, then EM; the loss is still that of before."""
        members = self._split(large)
        for _ in range(rounds):
            moments = ComponentMoments.of(self.x, members, self.moments.regularisation)
            members = self._e_step(members, moments)
        return replace(self, members=members, moments=ComponentMoments.of(self.x, members, self.moments.regularisation))

    def _split(self, large: NDArray[np.bool_]) -> list[ClassRows]:
        """The members with each large component split across its longest axis."""

        def halves(c: int) -> ClassRows:
            each, found = self.members[c], []
            for share, k in zip(each.shares.T, self.moments.of_class(c), strict=True):
                axis = np.linalg.eigh(self.moments.covariances[k])[1][:, -1]
                beyond = (self.x[each.rows] - self.moments.mean[k]) @ axis > 0
                found += [share * beyond, share * ~beyond] if large[k] else [share]
            return ClassRows(each.rows, np.stack(found, 1))

        return [halves(c) for c in range(len(self.members))]

    def _e_step(self, members: Sequence[ClassRows], moments: ComponentMoments) -> list[ClassRows]:
        """The members with responsibilities under the current components."""
        held, weights = moments.components, self.data.sample.weights

        def responsibilities(c: int) -> ClassRows:
            each, own = members[c], moments.of_class(c)
            if len(own) < 2:
                return each
            alone = GaussianComponents(held.mean[own], held.root[own], held.log_share[own], held.owner[own])
            log = alone.constant - 0.5 * alone.squares(self.x[each.rows])
            power = np.exp(log - log.max(1, keepdims=True))
            return ClassRows(each.rows, power * (weights[each.rows] / power.sum(1))[:, None])

        return in_parallel(responsibilities, range(len(members)))


def _loss(data: CalibrationData, x: Array, members: Sequence[ClassRows], moments: ComponentMoments) -> float:
    """Leave-one-out log loss of the labels by the density alone."""
    return _lowest_loss(data, relative(moments.left_out(x, members, min(len(x), CHOICE_ROWS)), LOWEST))


def _lowest_loss(data: CalibrationData, evidence: Array) -> float:
    """Log loss of the labels by the evidence of the first rows alone, at its best temperature, as a sum over all rows."""
    labels, weights = data.sample.labels[: len(evidence)], data.sample.weights[: len(evidence)]
    frequency = np.log(np.bincount(data.sample.labels, data.sample.weights, evidence.shape[1]) + 0.5)
    losses = [float(weights @ log_losses(frequency + t * evidence, labels)) for t in TEMPERATURES]
    return min(losses) * float(data.sample.weights.sum()) / max(float(weights.sum()), 1e-300)
