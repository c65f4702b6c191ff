"""All voxels together: classification that leaves one run out at a time, with the model chosen inside the training runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.brain._dataset import Array, Volumes, checked
from likely.brain._run_discriminant import Discriminant
from likely.brain._searchlight_map import refuse_unknown, warn_lacking
from likely.brain._voxel_tally import SLAB, VoxelTally, log_frequencies, tally_runs, variances
from likely.errors import UsageError
from likely.evaluation.evaluation import Evaluation
from likely.evaluation.metrics import metrics_of
from likely.families.statistics import Moments
from likely.kernels import counting
from likely.kernels.parallel import cached_property, in_parallel, one_blas_thread

TIES = (None, "class", "column", "both")
MODELS = ("gaussian", "lda", "auto")
SHRINKAGES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)  # that are tried inside the training runs


@dataclass(frozen=True, eq=False)
class Classification:
    """Predictions for the volumes of each run by a model of all other runs.

    Attributes
    ----------
    evaluation : likely.Evaluation
        Accuracy, log loss, AUC and confusion matrix over all volumes.
    predictions : array of shape (n_volumes,)
        The most probable class of each volume that was used.
    used : int array of shape (n_volumes,)
        Which rows of X these are.
    runs : tuple
        The names of the runs.
    chosen : tuple of str
        The model for each run: "gaussian", "gaussian:class", "gaussian:column", "gaussian:both", or "lda:" and its shrinkage.
    inner_accuracy : tuple of dict
        For each run, the accuracy of each candidate inside the other runs; empty where nothing was chosen.

    """

    evaluation: Evaluation
    predictions: NDArray[Any]
    used: NDArray[np.int64]
    runs: tuple[Any, ...]
    chosen: tuple[str, ...]
    inner_accuracy: tuple[dict[str, float], ...]

    @property
    def run_accuracy(self) -> Array:
        """The share of correct volumes in each run."""
        return np.array([part.accuracy for part in self.evaluation.parts])

    @property
    def accuracy(self) -> float:
        """The mean of these shares over the runs."""
        return float(self.run_accuracy.mean())

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes, in the order of the confusion matrix."""
        return self.evaluation.classes

    def to_dict(self) -> dict[str, Any]:
        """The classification as numbers."""
        return self.evaluation.to_dict() | {
            "accuracy": self.accuracy, "runs": list(self.runs), "run_accuracy": self.run_accuracy.tolist(),
            "chosen": list(self.chosen), "inner_accuracy": list(self.inner_accuracy),
        }  # fmt: skip

    def __str__(self) -> str:
        counted = ", ".join(f"{name} in {self.chosen.count(name)} runs" for name in dict.fromkeys(self.chosen))
        return f"{self.evaluation}\nmodel              {counted}"


def classify(
    X: Any, y: Any = None, *, groups: Any = None, model: str = "gaussian", tie: str | None = None,
    shrinkage: float | str = "auto", classes: Sequence[Any] | None = None, class_prior: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Classification:  # fmt: skip
    """Classify each run by a model of the counts of all other runs.

    Parameters
    ----------
    X : array of shape (n_volumes, n_voxels), or Dataset
        A Dataset brings labels and runs along.
    y, groups : arrays of shape (n_volumes,)
        Label and run of each volume.
    model : "gaussian", "lda" or "auto", default="gaussian"
        Gaussian Naive Bayes; a joint Gaussian whose covariance is shared by the classes and shrunk (linear discriminant
        analysis); or whichever of these, in any tying, is most accurate when each of the training runs is left out in turn.
        The run that is tested has no part in the choice.
    tie : None, "class", "column", "both" or "auto", default=None
        What shares a variance in Naive Bayes: nothing, the classes, the voxels, or both; "auto" chooses as above.
    shrinkage : "auto", "ledoit-wolf" or float from 0 to 1, default="auto"
        How far the covariance is moved towards a multiple of the identity: "auto" chooses as above, "ledoit-wolf" takes what
        their formula gives with runs as observations. Voxels should be of one scale, as `clean` makes them.
    classes : sequence of labels, default=None
        Only volumes with these labels are used.
    class_prior : None or "uniform", default=None
        The prior of the classes: their frequencies in the training runs, or equal.
    progress : callable, default=None
        Called with 1 after each pair of runs that are left out together to choose a model.

    """
    names = _candidates(model, tie, shrinkage, class_prior)
    volumes = checked(X, y, groups, classes)
    tally = tally_runs(volumes)
    warn_lacking(tally, volumes, stacklevel=3)
    return _cross_validated(_ModelCandidates(volumes, tally, names, class_prior == "uniform"), progress)


def _cross_validated(candidates: _ModelCandidates, progress: Callable[[int], None] | None) -> Classification:
    """Predictions for each run, by the model that is chosen for it."""
    volumes, names = candidates.volumes, candidates.names
    runs = range(len(volumes.run_names))
    if len(names) > 1 and len(runs) < 3:
        raise UsageError("choosing a model inside the training runs needs three runs: name model and tie")
    with one_blas_thread():
        inner = candidates.inner_accuracy(progress) if len(names) > 1 else []
        chosen = [max(names, key=inner[run].__getitem__) if inner else names[0] for run in runs]
        joints = [candidates.scores((run,), [chosen[run]])[chosen[run]] for run in runs]
    parts, predicted = [], np.empty(len(volumes.rows), np.int64)
    for run, joint in zip(runs, joints, strict=True):
        mine, counts = np.flatnonzero(volumes.runs == run), candidates.tally.counts((run,))
        posterior = Posterior(volumes.classes, joint, log_frequencies(counts, candidates.uniform))
        parts.append(metrics_of(posterior, volumes.labels[mine], np.ones(len(mine)), counts))
        predicted[mine] = joint.argmax(1)
    evaluation = Evaluation(reduce(lambda a, b: a + b, parts), tuple(parts), f"leave one of {len(runs)} runs out")
    labels = np.array(volumes.classes)[predicted]
    return Classification(evaluation, labels, volumes.rows, volumes.run_names, tuple(chosen), tuple(inner))


def _candidates(model: str, tie: str | None, shrinkage: float | str, class_prior: str | None) -> tuple[str, ...]:
    """The names of the models to choose from."""
    if model not in MODELS:
        raise UsageError(f"model={model!r} is not known: choose from {', '.join(map(repr, MODELS))}")
    refuse_unknown(None if tie == "auto" else tie, class_prior)
    number = isinstance(shrinkage, int | float) and 0 <= shrinkage <= 1
    if shrinkage not in ("auto", "ledoit-wolf") and not number:
        raise UsageError(f"shrinkage={shrinkage!r}: 'auto', 'ledoit-wolf' or a number from 0 to 1 is needed")
    joint = tuple(f"lda:{each}" for each in (SHRINKAGES if shrinkage == "auto" else (shrinkage,)))
    if model == "lda":
        return joint
    ties = TIES if model == "auto" or tie == "auto" else (tie,)
    named = tuple(f"gaussian:{each}" if each else "gaussian" for each in ties)
    return (*named, *joint) if model == "auto" else named


@dataclass(frozen=True, eq=False)
class _ModelCandidates:
    """The models to choose from, on the statistics that they share."""

    volumes: Volumes
    tally: VoxelTally
    names: tuple[str, ...]
    uniform: bool

    @cached_property
    def discriminant(self) -> Discriminant:
        """The statistics of the joint Gaussian."""
        return Discriminant.of(self.volumes)

    def scores(self, left_out: tuple[int, ...], names: Sequence[str]) -> dict[str, Array]:
        """Log joint scores of the volumes of the runs left out, by the statistics of all others, for some of the models."""
        found, moments, spectrum = {}, None, None
        for name in names:
            kind, _, how = name.partition(":")
            if kind == "lda":
                spectrum = spectrum or self.discriminant.spectrum(left_out)
                found[name] = spectrum.log_joint(how if how == "ledoit-wolf" else float(how), self.uniform)
            else:
                moments = moments or self.tally.training(left_out)
                found[name] = _naive_bayes(self.volumes, left_out, moments, how or None, self.uniform)
        return found

    def inner_accuracy(self, progress: Callable[[int], None] | None) -> list[dict[str, float]]:
        """For each run and model, the mean accuracy over the other runs, each left out of the training runs in turn.

        The training runs without b, where a is tested, are the training runs without a, where b is: both are scored together.
        """
        runs = len(self.volumes.run_names)
        accuracy = np.full((len(self.names), runs, runs), np.nan)

        def judge(pair: tuple[int, int]) -> None:
            a, b = pair
            rows = np.flatnonzero(np.isin(self.volumes.runs, pair))
            mine, truth = self.volumes.runs[rows], self.volumes.labels[rows]
            for i, joint in enumerate(self.scores(pair, self.names).values()):
                correct = joint.argmax(1) == truth
                accuracy[i, a, b], accuracy[i, b, a] = correct[mine == b].mean(), correct[mine == a].mean()
            if progress:
                progress(1)

        in_parallel(judge, [(a, b) for a in range(runs) for b in range(a)])
        means = np.nanmean(accuracy, axis=2)
        return [{name: float(means[i, run]) for i, name in enumerate(self.names)} for run in range(runs)]


def _naive_bayes(volumes: Volumes, left_out: tuple[int, ...], moments: Moments, tie: str | None, uniform: bool) -> Array:
    """Log joint scores of the volumes of the runs left out."""
    variance = variances(moments, tie)
    rows = np.flatnonzero(np.isin(volumes.runs, left_out))
    out = np.tile(log_frequencies(moments.n[0], uniform), (len(rows), 1))
    curve, peak = -0.5 / variance, -0.5 * np.log(2 * np.pi * variance)
    x = volumes.take(rows)
    for a in range(0, x.shape[1], SLAB):  # so that the columns of some volumes stay in the cache
        some = slice(a, a + SLAB)
        counting.score_parabola(np.ascontiguousarray(x[:, some]), moments.mean[some], curve[some], peak[some], out)
    return out
