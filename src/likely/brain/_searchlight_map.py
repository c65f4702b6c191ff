"""The searchlight map: accuracy of a classifier on the voxels around each voxel, cross-validated by runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from likely.brain import _voxel_loops
from likely.brain._dataset import Array, Codes, Dataset, Volumes, checked, coordinates_of
from likely.brain._neighbourhoods import Neighbourhoods
from likely.brain._permutations import PermutationTest, permutation_test
from likely.brain._voxel_tally import VoxelTally, check_tie, log_frequencies, tally_runs, variances
from likely.errors import DataError, LikelyWarning, UsageError
from likely.families.statistics import Moments
from likely.kernels.kernel import LARGE
from likely.kernels.parallel import in_parallel

SIDE_BY_SIDE = 64  # scores (volumes × classes) that are summed together: a few cache lines per voxel
Progress = Callable[[int], None] | None


@dataclass(frozen=True, eq=False)
class SearchlightMap(NDArrayOperatorsMixin):
    """One accuracy per voxel; usable as an array.

    Attributes
    ----------
    accuracy : array of shape (n_voxels,)
        The mean over the runs of the share of correct volumes, as scikit-learn's `cross_val_score(...).mean()` gives it.
    run_accuracy : array of shape (n_runs, n_voxels)
        The share of correct volumes in each run.
    runs : tuple
        The names of the runs.
    classes : tuple
        The labels.
    sizes : int array of shape (n_voxels,)
        How many voxels each neighbourhood has.
    chance : float
        The share of the most frequent class: what a classifier reaches that ignores the voxels.
    tie : None, "class", "column" or "both"
        What shares a variance.
    volumes : int
        Number of volumes.
    test : PermutationTest or None
        p-values, if permutations were asked for.

    """

    accuracy: Array
    run_accuracy: Array
    runs: tuple[Any, ...]
    classes: tuple[Any, ...]
    sizes: Codes
    chance: float
    tie: str | None
    volumes: int
    test: PermutationTest | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the map."""
        return self.accuracy.shape

    @property
    def p_value(self) -> Array:
        """The p-value of every voxel by itself."""
        return self._tested().p_value

    @property
    def p_fwe(self) -> Array:
        """The p-value of every voxel, corrected for all voxels by the largest accuracy of each permutation."""
        return self._tested().p_fwe

    @property
    def q_fdr(self) -> Array:
        """The false discovery rate at which every voxel would be reported (Benjamini and Hochberg)."""
        return self._tested().q_fdr

    def significant(self, level: float = 0.05, correction: str | None = "fwe") -> NDArray[np.bool_]:
        """Which voxels are significant: corrected by "fwe" or "fdr", or with None by themselves.

        Parameters
        ----------
        level : float, default=0.05
            The significance level.
        correction : "fwe", "fdr" or None, default="fwe"
            Family-wise error rate, false discovery rate, or no correction.

        Returns
        -------
        bool array of shape (n_voxels,)
            True where significant.
        """
        return self._tested().significant(level, correction)

    def to_dict(self) -> dict[str, Any]:
        """The map as numbers, without the voxels."""
        best = int(np.argmax(self.accuracy))
        found: dict[str, Any] = {
            "voxels": len(self.accuracy), "volumes": self.volumes, "runs": len(self.runs), "classes": list(self.classes),
            "tie": self.tie, "chance": self.chance, "mean": float(self.accuracy.mean()), "best": float(self.accuracy[best]),
            "best_voxel": best, "largest_neighbourhood": int(self.sizes.max()),
        }  # fmt: skip
        return found | ({} if self.test is None else self.test.to_dict())

    def _tested(self) -> PermutationTest:
        if self.test is None:
            raise UsageError("this map has no p-values: ask for searchlight(..., permutations=1000)")
        return self.test

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.accuracy, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        plain = [each.accuracy if isinstance(each, SearchlightMap) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **settings)

    def __len__(self) -> int:
        return len(self.accuracy)

    def __getitem__(self, place: Any) -> Any:
        return self.accuracy[place]


def searchlight(
    X: Any, y: Any = None, *, groups: Any = None, coordinates: Any = None, radius: int = 1, sphere: float | None = None,
    affine: Any = None, tie: str | None = None, classes: Sequence[Any] | None = None, class_prior: str | None = None,
    permutations: int = 0, exchange: str = "blocks", seed: int = 0, progress: Progress = None,
) -> SearchlightMap:  # fmt: skip
    """Accuracy of Gaussian Naive Bayes on the voxels around each voxel, leaving one run out at a time.

    Parameters
    ----------
    X : array of shape (n_volumes, n_voxels), or Dataset
        A Dataset brings labels, runs, coordinates and affine along.
    y, groups : arrays of shape (n_volumes,)
        Label and run of each volume.
    coordinates : int array of shape (n_voxels, 3)
        The place of each voxel in the image.
    radius : int, default=1
        A neighbourhood is a cube that reaches so many voxels in every direction: 27 voxels with 1.
    sphere : float, default=None
        Instead of cubes, all voxels within so many millimetres; needs `affine`.
    affine : array of shape (4, 4), default=None
        The affine of the image, from voxels to millimetres.
    tie : None, "class", "column" or "both", default=None
        What shares a variance: nothing, the classes of a voxel, the voxels of a neighbourhood, or both.
    classes, class_prior : sequence of labels and None or "uniform", default=None
        Which labels are used, two for a pair; and their prior, which is their frequency in the training runs or uniform.
    permutations, seed : int, default=0
        How many times labels are permuted within runs for p-values, and with which random numbers.
    exchange : "blocks" or "volumes", default="blocks"
        What keeps its label together in a permutation: volumes of one label that follow one another, or nothing.
    progress : callable, default=None
        Called with 1 after each run and each permutation.

    """
    refuse_unknown(tie, class_prior)
    volumes = checked(X, y, groups, classes)
    near = _neighbourhoods(X, coordinates, volumes.n_voxels, radius=radius, sphere=sphere, affine=affine)
    found, scorer = _mapped(
        volumes, near, tie=tie, uniform=class_prior == "uniform", permutations=permutations, progress=progress
    )
    if not permutations:
        return found
    test = permutation_test(
        scorer.permuted, volumes, found.accuracy,
        permutations=permutations, exchange=exchange, seed=seed, progress=progress,
    )  # fmt: skip
    return replace(found, test=test)


def refuse_unknown(tie: str | None, class_prior: str | None) -> None:
    """Refuse a tying or a prior of the classes that is not known."""
    check_tie(tie)
    if class_prior not in (None, "uniform"):
        raise UsageError(f"class_prior={class_prior!r} is not known: choose None (frequencies) or 'uniform'")


def _neighbourhoods(
    X: Any, coordinates: Any, voxels: int, *, radius: int, sphere: float | None, affine: Any
) -> Neighbourhoods:
    places = coordinates_of(X, coordinates, voxels)
    affine = X.affine if affine is None and isinstance(X, Dataset) else affine
    return Neighbourhoods.cubes(places, radius) if sphere is None else Neighbourhoods.spheres(places, sphere, affine)


def _mapped(
    volumes: Volumes, near: Neighbourhoods, *, tie: str | None, uniform: bool, permutations: int, progress: Progress
) -> tuple[SearchlightMap, SearchlightScorer]:
    """The map without p-values, and its scorer."""
    work = len(volumes.rows) * len(near.neighbour) * len(volumes.classes) * (1 + max(permutations, 0))
    scorer = SearchlightScorer(volumes, near, tie, uniform, work > LARGE)
    if scorer.large:
        _voxel_loops.merge_parts.prepare()
    tally = tally_runs(volumes)
    _warn(tally, volumes)
    by_run = scorer.correct(tally, progress=progress) / scorer.tested[:, None]
    chance = float(np.bincount(volumes.labels).max() / len(volumes.labels))
    names = (volumes.run_names, volumes.classes)
    return SearchlightMap(mean_over_runs(by_run), by_run, *names, near.sizes, chance, tie, len(volumes.rows)), scorer


class SearchlightSettings(TypedDict, total=False):
    """Settings of `searchlight` that every pair of classes shares."""

    coordinates: Any
    radius: int
    sphere: float | None
    affine: Any
    tie: str | None
    class_prior: str | None
    permutations: int
    exchange: str
    seed: int
    progress: Progress


def searchlight_pairs(
    X: Any, y: Any = None, *, groups: Any = None, classes: Sequence[Any] | None = None, **settings: Unpack[SearchlightSettings]
) -> dict[tuple[Any, Any], SearchlightMap]:
    """The searchlight map of every pair of classes.

    Parameters
    ----------
    X : Dataset or array of shape (n_volumes, n_voxels)
        The volumes; a Dataset brings labels, runs, coordinates and affine along.
    y, groups : arrays of shape (n_volumes,), default=None
        Label and run of each volume.
    classes : sequence, default=None
        The labels whose pairs are mapped; all by default.
    **settings
        Settings of `searchlight`.
    """
    known = checked(X, y, groups, classes).classes
    return {pair: searchlight(X, y, groups=groups, classes=pair, **settings) for pair in combinations(known, 2)}


@dataclass(frozen=True, eq=False)
class SearchlightScorer:
    """Volumes and neighbourhoods, ready to be scored with the statistics of any labels."""

    volumes: Volumes
    near: Neighbourhoods
    tie: str | None
    uniform: bool
    large: bool  # worth compiling for

    @property
    def tested(self) -> Array:
        """How many volumes each run has."""
        return np.bincount(self.volumes.runs).astype(np.float64)

    def correct(self, tally: VoxelTally, label: Codes | None = None, progress: Progress = None) -> Array:
        """How many volumes of each run every neighbourhood classifies correctly; `label` may be other labels of the parts."""

        def run(left_out: int) -> NDArray[np.int64]:
            found = self._correct(left_out, tally, tally.label if label is None else label)
            if progress:
                progress(1)
            return found

        return np.array(in_parallel(run, range(len(self.volumes.run_names))), np.float64)

    def permuted(self, tally: VoxelTally, label: Codes) -> Array:
        """The accuracy of every neighbourhood with other labels of the parts."""
        return mean_over_runs(self.correct(tally, label) / self.tested[:, None])

    def _correct(self, left_out: int, tally: VoxelTally, label: Codes) -> NDArray[np.int64]:
        moments = tally.training((left_out,), label)
        log_prior = log_frequencies(tally.counts((left_out,), label), self.uniform)
        mean, curve, offset, factor = self._scores(moments, log_prior)
        classes, rows = tally.classes, np.flatnonzero(self.volumes.runs == left_out)
        truth = label[tally.part[rows]]
        step = max(1, SIDE_BY_SIDE // classes)
        terms = np.empty((len(mean), min(step, len(rows)) * classes))
        correct = np.zeros(len(mean), np.int64)
        count: Callable[..., None] = _voxel_loops.count_correct.fast if self.large else _voxel_loops.count_correct
        start, neighbour = self.near.start, self.near.neighbour
        for a in range(0, len(rows), step):
            x = self.volumes.take(rows[a : a + step])
            count(x, truth[a : a + step], mean, curve, start, neighbour, offset, factor, terms, correct)
        return correct

    def _scores(self, moments: Moments, log_prior: Array) -> tuple[Array, Array, Array, Array]:
        """Mean and curve of every voxel and class, offset and factor of every neighbourhood and class: see `count_correct`."""
        shape, sizes = moments.mean.shape, self.near.sizes[:, None]
        if self.tie in (None, "class"):
            variance = np.ascontiguousarray(variances(moments, self.tie))
            offset = log_prior + self._neighbourhood_sums(-0.5 * np.log(2 * np.pi * variance))
            return moments.mean, 0.5 / variance, offset, np.ones(shape)
        # The voxels of a neighbourhood share a variance, so that it belongs to the neighbourhood and not to the voxel.
        spread, n = self._neighbourhood_sums(moments.spread), sizes * moments.n
        if self.tie == "both":
            spread, n = (np.broadcast_to(part.sum(1, keepdims=True), shape) for part in (spread, n))
        total = spread.sum(1, keepdims=True)
        pooled = np.where(total > 0, total / n.sum(1, keepdims=True), 1.0)
        variance = np.where(spread > 0, spread / np.maximum(n, 1.0), pooled)
        offset = log_prior - 0.5 * sizes * np.log(2 * np.pi * variance)
        return moments.mean, np.ones(shape), offset, 0.5 / variance

    def _neighbourhood_sums(self, values: Array) -> Array:
        """The sums of one number per voxel and class over every neighbourhood."""
        out = np.empty(values.shape)
        add: Callable[..., None] = _voxel_loops.sum_neighbours.fast if self.large else _voxel_loops.sum_neighbours
        add(values, self.near.start, self.near.neighbour, out)
        return out


def mean_over_runs(by_run: Array) -> Array:
    """The mean over the runs, added up in the order in which `np.mean` adds the scores of one voxel: equal to the last bit."""
    mean: Array = np.ascontiguousarray(by_run.T).mean(1)
    return mean


def _warn(tally: VoxelTally, volumes: Volumes) -> None:
    """Warn of voxels that are constant and of classes that a training set lacks."""
    constant = int(((tally.spread.sum(1) == 0) & (np.ptp(tally.mean, axis=1) == 0)).sum())
    if constant == volumes.n_voxels:
        raise DataError("no voxel varies: the classes cannot be distinguished", remedy="check data and mask")
    if constant:
        warnings.warn(
            f"{constant} of {volumes.n_voxels} voxels are constant: they contribute the same to every class, and their own "
            "accuracy is that of the voxels around them",
            LikelyWarning,
            stacklevel=4,
        )
    warn_lacking(tally, volumes, stacklevel=5)


def warn_lacking(tally: VoxelTally, volumes: Volumes, stacklevel: int) -> None:
    """Warn of runs without which some class has no volumes: there it is never predicted."""
    counts = [tally.counts((run,)) for run in range(len(volumes.run_names))]
    lacking = [
        f"{volumes.classes[k]!r} (only in run {volumes.run_names[run]!r})"
        for run, count in enumerate(counts)
        for k in np.flatnonzero(count == 0)
    ]
    if lacking:
        warnings.warn(
            f"classes that no other run has are never predicted when that run is left out: {', '.join(lacking[:5])}",
            LikelyWarning,
            stacklevel=stacklevel,
        )
