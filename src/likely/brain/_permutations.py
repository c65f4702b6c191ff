"""Permutation tests over many voxels: labels are permuted within runs, statistics of the blocks are counted once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.brain._dataset import Array, Codes, Volumes
from likely.brain._voxel_tally import VoxelTally, tally_blocks, tally_volumes
from likely.errors import DataError, UsageError
from likely.kernels.parallel import in_parallel

EQUAL = 1e-9  # accuracies nearer than this are the same number of correct volumes
AT_ONCE = 16  # permutations


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """p-values of a map: how often permuted labels do as well as the true ones, which count as one permutation more.

    Attributes
    ----------
    p_value : array of shape (n_voxels,)
        Of each voxel by itself.
    p_fwe : array of shape (n_voxels,)
        Corrected for all voxels: how often the best voxel of a permuted map does as well (family-wise error rate).
    q_fdr : array of shape (n_voxels,)
        The false discovery rate at which a voxel would be reported (Benjamini and Hochberg).
    largest : array of shape (n_permutations,)
        The largest accuracy of each permuted map.
    exchange : str
        What kept its label together in a permutation: "blocks" or "volumes".

    """

    p_value: Array
    p_fwe: Array
    q_fdr: Array
    largest: Array
    exchange: str

    @property
    def permutations(self) -> int:
        """How many permutations were made."""
        return len(self.largest)

    def threshold(self, level: float = 0.05) -> float:
        """The accuracy that the best voxel of a permuted map exceeds with probability `level` at most.

        Parameters
        ----------
        level : float, default=0.05
            The significance level.

        Returns
        -------
        float
            The accuracy.
        """
        at = max(int(np.floor(level * (self.permutations + 1))) - 1, 0)
        return float(np.sort(self.largest)[::-1][min(at, self.permutations - 1)])

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
        values = {"fwe": self.p_fwe, "fdr": self.q_fdr, None: self.p_value}
        if correction not in values:
            raise UsageError(f"correction={correction!r} is not known: choose 'fwe', 'fdr' or None")
        found: NDArray[np.bool_] = values[correction] <= level
        return found

    def to_dict(self) -> dict[str, Any]:
        """The test as numbers, without the voxels."""
        kinds = {"fwe": "fwe", "fdr": "fdr", "uncorrected": None}
        return {
            "permutations": self.permutations, "exchange": self.exchange, "threshold_fwe_05": self.threshold(),
            "smallest_p_fwe": float(self.p_fwe.min()),
            **{f"significant_{name}_05": int(self.significant(0.05, kind).sum()) for name, kind in kinds.items()},
        }  # fmt: skip


def permutation_test(
    accuracy_of: Callable[[VoxelTally, Codes], Array], volumes: Volumes, observed: Array, *,
    permutations: int, exchange: str, seed: int, progress: Callable[[int], None] | None = None,
) -> PermutationTest:  # fmt: skip
    """Compare the observed map with those of permuted labels."""
    if permutations < 1:
        raise UsageError(f"permutations={permutations}: at least one is needed")
    if exchange not in ("blocks", "volumes"):
        raise UsageError(f"exchange={exchange!r} is not known: choose 'blocks' or 'volumes'")
    tally = tally_blocks(volumes) if exchange == "blocks" else tally_volumes(volumes)
    if all(len(np.unique(tally.label[tally.run == run])) < 2 for run in np.unique(tally.run)):
        raise DataError("every run has one class only: there is nothing to permute within runs")

    def permuted(number: int) -> tuple[NDArray[np.bool_], float]:
        found = accuracy_of(tally, permuted_labels(tally, np.random.default_rng([seed, number])))
        if progress:
            progress(1)
        return found >= observed - EQUAL, float(found.max())

    reached, largest = np.ones(len(observed)), np.empty(permutations)
    for a in range(0, permutations, AT_ONCE):
        part = in_parallel(permuted, range(a, min(a + AT_ONCE, permutations)))
        for i, (as_good, most) in enumerate(part):
            reached += as_good
            largest[a + i] = most
    p_value = reached / (permutations + 1)
    better = np.searchsorted(np.sort(largest), observed - EQUAL)
    p_fwe = (1.0 + permutations - better) / (permutations + 1)
    return PermutationTest(p_value, p_fwe, false_discovery_rates(p_value), largest, exchange)


def permuted_labels(tally: VoxelTally, rng: np.random.Generator) -> Codes:
    """The labels of the parts, permuted within each run."""
    label = tally.label.copy()
    for run in np.unique(tally.run):
        mine = np.flatnonzero(tally.run == run)
        label[mine] = label[rng.permutation(mine)]
    return label


def false_discovery_rates(p_value: Array) -> Array:
    """Benjamini and Hochberg's adjusted p-values."""
    order = np.argsort(p_value)
    rank = np.arange(1, len(p_value) + 1)
    smallest = np.minimum.accumulate((p_value[order] * len(p_value) / rank)[::-1])[::-1]
    rates = np.empty(len(p_value))
    rates[order] = np.minimum(smallest, 1.0)
    return rates
