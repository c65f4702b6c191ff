"""The searchlight map beside nilearn's, permutations, and a made whole brain."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
NEAR = 5.0  # millimetres: in this slice the same voxels as a cube of radius 1


def compare(small: bool, row: Callable[..., None], plain: Callable[..., None]) -> None:
    """CPU seconds of this process, which are less noisy than those of the wall: nilearn has one process, we have threads."""
    from likely import brain

    dataset, what = _dataset(small)

    def ours() -> Any:
        return brain.searchlight(dataset, sphere=NEAR)

    ours()  # compiles
    mine = min(_cpu(ours)[0] for _ in range(5))
    theirs, scores = _cpu(lambda: _nilearn(dataset))
    size = f"{what}, {len(dataset.coordinates)} voxels, {len(set(dataset.runs.tolist()))} runs"
    row("brain", f"searchlight, {size} (CPU)", mine, theirs, ">= 200x")
    apart = np.abs(scores[tuple(dataset.coordinates.T)] - ours()).max()
    plain("brain", "largest difference between the two maps", float(apart), "", "~ 0")
    permutations = 100 if small else 1000
    start = time.perf_counter()
    spent, _ = _cpu(lambda: brain.searchlight(dataset, sphere=NEAR, permutations=permutations))
    plain("brain", f"{permutations:,} permutations, {what}", time.perf_counter() - start, "s", "< 60 s for 1,000")
    plain("brain", "the same in CPU seconds", spent, "s", "")
    voxels, volumes = (5_000, 500) if small else (50_000, 1_000)
    seconds, memory = _whole_brain(voxels, volumes)
    plain("brain", f"made brain, {voxels:,} voxels x {volumes:,} volumes x 8 classes", seconds, "s", "< 60 s")
    plain("brain", "its peak memory (a process of its own, data included)", memory, "MB", "< 2,000 MB")


def _cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    made = work()
    return time.process_time() - start, made


def _dataset(small: bool) -> tuple[Any, str]:
    """The published slice, or one that is made if it is not there."""
    from likely import brain

    if (DATA / "haxby2001_bold.nii.gz").exists():
        names = [DATA / f"haxby2001_{name}" for name in ("bold.nii.gz", "attributes.txt", "mask.nii.gz")]
        found = brain.load(names[0], names[1], mask=names[2], detrend=True, standardize="rest").without("rest")
        return (found.select(["face", "house"]), "face and house") if small else (found, "8 classes")
    rng = np.random.default_rng(0)
    places = np.argwhere(np.ones((30, 18, 1), bool))
    y, runs = np.tile(np.repeat(np.arange(8), 9), 12), np.repeat(np.arange(12), 72)
    X = rng.normal(size=(864, len(places)))
    return brain.Dataset(X, y, runs, places, np.diag([3.1, 3.75, 3.75, 1.0]), (30, 18, 1)), "8 made classes"


def _nilearn(dataset: Any) -> Any:
    import nibabel
    from nilearn.decoding import SearchLight
    from sklearn.model_selection import LeaveOneGroupOut
    from sklearn.naive_bayes import GaussianNB

    data = np.zeros((*dataset.shape, len(dataset.y)))
    data[tuple(dataset.coordinates.T)] = dataset.X.T
    inside = np.zeros(dataset.shape, np.uint8)
    inside[tuple(dataset.coordinates.T)] = 1
    images = [nibabel.Nifti1Image(each, dataset.affine) for each in (data, inside)]
    model = GaussianNB(var_smoothing=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        light = SearchLight(images[1], radius=NEAR, estimator=model, cv=LeaveOneGroupOut(), n_jobs=1)
        return light.fit(images[0], dataset.y, groups=dataset.runs).scores_


def _whole_brain(voxels: int, volumes: int) -> tuple[float, float]:
    """Seconds of the map and the high-water mark of a process that makes the data itself."""
    code = (
        "import sys, time, numpy as np; from likely import brain\n"
        "voxels, volumes = map(int, sys.argv[1:])\n"
        "rng = np.random.default_rng(0)\n"
        "X = np.empty((volumes, voxels))\n"
        "for i in range(volumes): X[i] = rng.standard_normal(voxels)\n"
        "side = int(np.ceil((voxels / 2) ** (1 / 3)))\n"
        "places = np.argwhere(np.ones((side, side, 2 * side), bool))[:voxels]\n"
        "y, runs = np.arange(volumes) // 5 % 8, np.arange(volumes) * 10 // volumes\n"
        "brain.searchlight(X[:, :2000], y, groups=runs, coordinates=places[:2000])\n"  # compiles
        "start = time.perf_counter(); brain.searchlight(X, y, groups=runs, coordinates=places)\n"
        "print(time.perf_counter() - start, [l.split()[1] for l in open('/proc/self/status') if 'VmHWM' in l][0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(voxels), str(volumes)], check=True, capture_output=True, text=True
    )
    seconds, memory = done.stdout.split()
    return float(seconds), float(memory) / 1024
