"""Mosaics of the maps of a data set, in the orientation of its affine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from likely.brain._dataset import Array, Dataset
from likely.brain._searchlight_map import SearchlightMap
from likely.plots.mosaic import MapPanel, Mosaic


def accuracy_mosaic(dataset: Dataset, found: SearchlightMap, level: float = 0.05) -> Mosaic:
    """The searchlight map; with p-values, significant voxels (corrected for all voxels) are outlined."""
    marked = None
    subtitle = f"Chance {found.chance:.3g}, best voxel {found.accuracy.max():.3f}"
    if found.test is not None:
        inside = found.significant(level)
        marked = dataset.volume(inside.astype(float)) == 1.0
        subtitle += f"; outlined: p < {level:g} corrected, {inside.sum()} of {len(inside)} voxels"
    panel = MapPanel("accuracy around each voxel", dataset.volume(found.accuracy), marked)
    low, high = min(found.chance, float(found.accuracy.max())), max(float(found.accuracy.max()), found.chance + 1e-3)
    label = "accuracy, leaving one run out; the scale begins at chance"
    return _mosaic(dataset, [panel], "Searchlight", subtitle, ends=(low, high), scale="sequential", label=label)


def mean_mosaic(dataset: Dataset, maps: Mapping[Any, Array], unit: str = "") -> Mosaic:
    """Mean maps of the classes, on one scale around the middle of all of them."""
    values = np.stack(list(maps.values()))
    centre = 0.0 if values.min() < 0 < values.max() else float(np.median(values))
    reach = float(np.quantile(np.abs(values - centre), 0.99)) or 1.0
    panels = [MapPanel(str(name), dataset.volume(part)) for name, part in maps.items()]
    subtitle = "The means that define P(voxel | class), over all runs"
    ends = (centre - reach, centre + reach)
    return _mosaic(dataset, panels, "Mean activation of each class", subtitle, ends=ends, scale="diverging", label=unit)


def evidence_mosaic(dataset: Dataset, maps: Mapping[Any, Array]) -> Mosaic:
    """Maps of the expected weight of evidence."""
    high = float(np.quantile(np.stack(list(maps.values())), 0.995)) or 1.0
    panels = [MapPanel(str(name), dataset.volume(part)) for name, part in maps.items()]
    subtitle = "How far one volume of the class is expected to favour it over the others, voxel by voxel"
    ends, label = (0.0, high), "nats per voxel"
    return _mosaic(dataset, panels, "Weight of evidence", subtitle, ends=ends, scale="sequential", label=label)


def _mosaic(
    dataset: Dataset, panels: list[MapPanel], title: str, subtitle: str, *, ends: tuple[float, float], scale: str, label: str
) -> Mosaic:
    """Axes turned so that the right of the picture is the right of the person and up is the front, where the affine allows."""
    axes = dataset.affine[:3, :3]
    upright = all(np.abs(axes[:, a]).argmax() == a for a in range(3))
    flip = (bool(axes[0, 0] < 0), bool(axes[1, 1] < 0)) if upright else (False, False)
    sizes = np.linalg.norm(axes, axis=0)
    note = "the left of the person is on the left" if upright else ""
    zooms = (float(sizes[0]), float(sizes[1]))
    return Mosaic(panels, title, subtitle, *ends, scale=scale, label=label, zooms=zooms, flip=flip, note=note)
