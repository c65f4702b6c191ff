"""Neighbourhoods of voxels: cubes in voxels, or spheres in millimetres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError

Codes = NDArray[np.int64]
MOST_PAIRS = 200_000_000


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """A sparse matrix of voxels × voxels: `neighbour[start[c] : start[c + 1]]` are the voxels around voxel c, itself included.

    Voxels outside the mask have no column in X and belong to no neighbourhood: at the border these are smaller.

    Parameters
    ----------
    start : int array of shape (n_voxels + 1,)
        Where the neighbours of each voxel start.
    neighbour : int array
        The neighbours of all voxels, one after the other.
    """

    start: Codes
    neighbour: Codes

    @property
    def sizes(self) -> Codes:
        """How many voxels each neighbourhood has."""
        return np.diff(self.start)

    def around(self, voxel: int) -> Codes:
        """The voxels around one voxel.

        Parameters
        ----------
        voxel : int
            The voxel.

        Returns
        -------
        int array
            The voxels.
        """
        return self.neighbour[self.start[voxel] : self.start[voxel + 1]]

    @staticmethod
    def cubes(coordinates: Codes, radius: int) -> Neighbourhoods:
        """Cubes that reach `radius` voxels in every direction: 27 voxels with radius 1.

        Parameters
        ----------
        coordinates : int array of shape (n_voxels, 3)
            The place of each voxel in the image.
        radius : int
            Voxels in each direction.

        Returns
        -------
        Neighbourhoods
            One cube a voxel.
        """
        if not isinstance(radius, int | np.integer) or radius < 0:
            raise UsageError(f"radius={radius!r}: a cube reaches 0, 1, 2 ... voxels; sphere= takes millimetres")
        reach = np.arange(-int(radius), int(radius) + 1)
        return _equal_neighbourhoods(coordinates, np.stack(np.meshgrid(reach, reach, reach, indexing="ij"), -1).reshape(-1, 3))

    @staticmethod
    def spheres(coordinates: Codes, radius: float, affine: Any) -> Neighbourhoods:
        """All voxels whose centres are at most `radius` millimetres away.

        Parameters
        ----------
        coordinates : int array of shape (n_voxels, 3)
            The place of each voxel in the image.
        radius : float
            Radius in millimetres.
        affine : array of shape (4, 4)
            The affine of the image, from voxels to millimetres.

        Returns
        -------
        Neighbourhoods
            One sphere a voxel.
        """
        if affine is None:
            raise UsageError("sphere= is in millimetres: pass the affine of the image as well")
        axes = np.asarray(affine, float)
        if axes.shape != (4, 4) or not np.isfinite(axes).all() or abs(np.linalg.det(axes)) < 1e-12:
            raise DataError(f"affine has shape {axes.shape}: an invertible matrix of shape (4, 4) is needed")
        if not (radius > 0 and np.isfinite(radius)):
            raise UsageError(f"sphere={radius!r}: a radius in millimetres above 0 is needed")
        # A row of the inverse bounds how far an index can move within a sphere.
        extent = np.floor(radius * np.linalg.norm(np.linalg.inv(axes[:3, :3]), axis=1) + 1e-9).astype(np.int64)
        extent = np.minimum(extent, np.ptp(coordinates, axis=0))
        grid = np.stack(np.meshgrid(*(np.arange(-e, e + 1) for e in extent), indexing="ij"), -1).reshape(-1, 3)
        near = np.linalg.norm(grid @ axes[:3, :3].T, axis=1) <= radius * (1 + 1e-9)
        return _equal_neighbourhoods(coordinates, grid[near])


def _equal_neighbourhoods(coordinates: Codes, offsets: Codes) -> Neighbourhoods:
    """The neighbourhoods that have the same shape everywhere."""
    if len(coordinates) * len(offsets) > MOST_PAIRS:
        raise UsageError(f"neighbourhoods of {len(offsets)} voxels around {len(coordinates)} are too many: reduce the radius")
    reach = np.abs(offsets).max(0)
    place = coordinates - coordinates.min(0) + reach  # so that an offset never leaves its line
    extent = place.max(0) + reach + 1
    if np.prod(extent, dtype=float) > 2**62:
        raise DataError("coordinates lie too far apart: pass places in the image")
    steps = np.array([extent[1] * extent[2], extent[2], 1])
    keys = place @ steps
    order = np.argsort(keys)
    ordered = keys[order]
    found = np.full((len(keys), len(offsets)), -1, np.int32)
    for j, offset in enumerate(offsets):
        wanted = keys + int(offset @ steps)
        at = np.minimum(np.searchsorted(ordered, wanted), len(keys) - 1)
        found[:, j] = np.where(ordered[at] == wanted, order[at], -1)
    there = found >= 0
    start = np.concatenate([[0], np.cumsum(there.sum(1))]).astype(np.int64)
    return Neighbourhoods(start, found[there].astype(np.int64))
