"""Linear discriminant analysis with a shrunk covariance, from one mean per run and class and one scatter matrix per run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.brain._dataset import Array, Codes, Volumes
from likely.brain._voxel_tally import log_frequencies


@dataclass(frozen=True, eq=False)
class Discriminant:
    """A joint Gaussian per class whose covariance all classes share, shrunk towards a multiple of the identity.

    `z` are the volumes in an orthogonal basis: where there are more voxels than volumes, distances between volumes are the
    same in as many dimensions as there are volumes, and so is everything that is computed here.
    """

    z: Array
    labels: Codes
    runs: Codes
    classes: int
    width: int  # how many voxels there were
    scatter: Array  # runs × dimensions × dimensions: within the classes of each run
    means: Array  # runs × classes × dimensions
    counts: Array  # runs × classes

    @staticmethod
    def of(volumes: Volumes) -> Discriminant:
        """The statistics of every run."""
        z = _reduced(volumes)
        runs, classes = len(volumes.run_names), len(volumes.classes)
        counts, means = np.zeros((runs, classes)), np.zeros((runs, classes, z.shape[1]))
        scatter = np.zeros((runs, z.shape[1], z.shape[1]))
        for run in range(runs):
            mine = volumes.runs == run
            for k in range(classes):
                part = z[mine & (volumes.labels == k)]
                counts[run, k] = len(part)
                if len(part):
                    means[run, k] = part.mean(0)
            apart = z[mine] - means[run, volumes.labels[mine]]
            scatter[run] = apart.T @ apart
        return Discriminant(z, volumes.labels, volumes.runs, classes, volumes.n_voxels, scatter, means, counts)

    def spectrum(self, left_out: tuple[int, ...]) -> Spectrum:
        """The covariance within the classes of all runs but those left out, in the basis of its eigenvectors."""
        others = ~np.isin(np.arange(len(self.counts)), left_out)
        n, means = self.counts[others], self.means[others]
        counts = n.sum(0)
        mean = (n[:, :, None] * means).sum(0) / np.maximum(counts, 1.0)[:, None]
        apart = (means - mean) * np.sqrt(n)[:, :, None]
        scatter = self.scatter[others] + apart.transpose(0, 2, 1) @ apart
        covariance = scatter.sum(0) / counts.sum()
        values, vectors = np.linalg.eigh(covariance)
        tested = self.z[np.isin(self.runs, left_out)] @ vectors
        level = float(np.trace(covariance)) / self.width
        share = _ledoit_wolf(scatter, n.sum(1), covariance, level, self.width)
        return Spectrum(np.maximum(values, 0.0), mean @ vectors, counts, tested, level, share)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A covariance by its eigenvalues, with means and test volumes in the same basis: any shrinkage is then a division."""

    values: Array
    mean: Array  # classes × dimensions
    counts: Array
    tested: Array  # volumes × dimensions
    level: float  # mean variance of a voxel
    share: float  # shrinkage by the formula of Ledoit and Wolf

    def log_joint(self, shrinkage: float | str, uniform: bool = False) -> Array:
        """Scores of the volumes of the runs left out, less a term that is equal for all classes."""
        share = self.share if shrinkage == "ledoit-wolf" else float(shrinkage)
        share = max(share, 1e-9)  # without any, copies of a voxel would make the covariance singular
        variance = (1.0 - share) * self.values + share * (self.level or 1.0)
        weights = self.mean / variance
        level = log_frequencies(self.counts, uniform) - 0.5 * (self.mean * weights).sum(1)
        return np.asarray(self.tested @ weights.T + level)


def _ledoit_wolf(scatter: Array, n: Array, covariance: Array, level: float, width: int) -> float:
    """How far the covariance should be moved towards `level` times the identity to be nearest to the true one.

    Runs are the independent observations, not volumes: those of one run resemble each other.
    """
    distance = float((covariance**2).sum()) - width * level**2
    noise = float(((scatter - n[:, None, None] * covariance) ** 2).sum()) / float(n.sum()) ** 2
    return min(noise / distance, 1.0) if distance > 0 else 1.0


def _reduced(volumes: Volumes) -> Array:
    """The volumes, centred, in at most as many dimensions as there are volumes."""
    x = volumes.take(slice(None))
    x -= x.mean(0)
    if x.shape[1] <= x.shape[0]:
        return x
    values, vectors = np.linalg.eigh(x @ x.T)
    keep = values > values[-1] * 1e-12
    return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))
