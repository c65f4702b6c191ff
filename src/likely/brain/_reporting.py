"""Complete analysis of a data set: classification, searchlight and maps, and the files they are written to."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from likely.brain._brain_page import BrainReport
from likely.brain._classification import classify
from likely.brain._dataset import Array, Dataset
from likely.brain._images import save_map
from likely.brain._maps import evidence_maps, mean_maps
from likely.brain._searchlight_map import SearchlightMap, searchlight
from likely.errors import UsageError
from likely.plots import mosaic
from likely.sources.atomic_write import whole_file

Progress = Callable[[int], None] | None


def report(
    dataset: Dataset, *, title: str = "Brain images", prepared: str = "", classes: Sequence[Any] | None = None,
    model: str = "auto", tie: str | None = None, radius: int = 1, sphere: float | None = None, permutations: int = 0,
    exchange: str = "blocks", seed: int = 0, unit: str = "", progress: Progress = None,
) -> BrainReport:  # fmt: skip
    """Classify all voxels together, map the accuracy around each voxel, and take means and evidence of each class.

    Parameters
    ----------
    dataset : Dataset
    title, prepared, unit : str
        What stands on the page: its title, what was done to the data, and the unit of the voxels.
    classes, model, tie, radius, sphere, permutations, exchange, seed, progress
        As for `classify` and `searchlight`; `tie` belongs to both, and with model="auto" to the searchlight alone.

    """
    dataset = dataset if classes is None else dataset.select(_check_labels(dataset, classes))
    classified = classify(dataset, model=model, tie=None if model == "auto" else tie, progress=progress)
    found = searchlight(
        dataset, radius=radius, sphere=sphere, tie=tie, permutations=permutations, exchange=exchange, seed=seed,
        progress=progress,
    )  # fmt: skip
    cube = (2 * radius + 1) ** 3
    shape = f"a cube of up to {cube} voxels" if sphere is None else f"all voxels within {sphere:g} mm"
    means, evidence = mean_maps(dataset), evidence_maps(dataset, tie=tie)
    return BrainReport(title, dataset, prepared, classified, found, shape, means, evidence, unit)


def save(found: BrainReport, folder: str | os.PathLike[str]) -> list[str]:
    """Write maps, pictures, numbers and the page into a folder; returns the names of the files.

    Parameters
    ----------
    found : BrainReport
        The results of `report`.
    folder : path
        The folder, created if it does not exist.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    images = maps_of(found)
    for name, values in images.items():
        save_map(place / name, values, found.dataset)
    written = list(images)
    for name, each in found.mosaics.items():
        _write(place / f"{name}.svg", mosaic.svg(each).encode())
        written.append(f"{name}.svg")
    _write(place / "searchlight.png", mosaic.png(found.mosaics["searchlight"]))
    _write(place / "summary.json", json.dumps(found.to_dict(), indent=2, default=str).encode())
    written += ["searchlight.png", "summary.json"]
    _write(place / "report.html", found.page(written).encode())
    return [*written, "report.html"]


def maps_of(found: BrainReport) -> dict[str, Array]:
    """The maps by the names of their files."""
    maps = {"accuracy.nii.gz": found.map.accuracy} | _tested(found.map)
    for kind, own in (("mean", found.means), ("evidence", found.evidence)):
        names = [f"{kind}_{re.sub(r'[^A-Za-z0-9.-]+', '_', str(label))}.nii.gz" for label in own]
        if len(set(names)) < len(names):
            names = [f"{kind}_{i}.nii.gz" for i in range(len(names))]
        maps |= dict(zip(names, own.values(), strict=True))
    return maps


def _tested(found: SearchlightMap) -> dict[str, Array]:
    if found.test is None:
        return {}
    return {f"{name}.nii.gz": getattr(found.test, name) for name in ("p_value", "p_fwe", "q_fdr")}


def _check_labels(dataset: Dataset, classes: Sequence[Any]) -> Sequence[Any]:
    known = sorted(set(dataset.y.tolist()))
    odd = [name for name in classes if name not in known]
    if odd:
        raise UsageError(f"no volume has the label {odd[0]!r}: there are {known[:20]}")
    return classes


def _write(path: Path, content: bytes) -> None:
    with whole_file(path) as temporary:
        Path(temporary).write_bytes(content)
