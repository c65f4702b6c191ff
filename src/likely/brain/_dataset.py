"""Volumes with labels, runs and coordinates: the input of every function of `likely.brain`, checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError, did_you_mean

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
CHECKED_AT_ONCE = 1 << 22  # cells


@dataclass(frozen=True, eq=False)
class Dataset:
    """Volumes of one person: one row per volume, one column per voxel inside the mask.

    Parameters
    ----------
    X : array of shape (n_volumes, n_voxels)
    y : array of shape (n_volumes,)
        The label of each volume.
    runs : array of shape (n_volumes,)
        The run of each volume: what is left out together in cross-validation.
    coordinates : int array of shape (n_voxels, 3)
        The place of each voxel in the image.
    affine : array of shape (4, 4)
        From places to millimetres.
    shape : tuple of three ints
        The shape of the image.

    """

    X: NDArray[Any]
    y: NDArray[Any]
    runs: NDArray[Any]
    coordinates: Codes
    affine: Array
    shape: tuple[int, int, int]

    def select(self, classes: Sequence[Any]) -> Dataset:
        """The volumes with these labels.

        Parameters
        ----------
        classes : sequence
            The labels that stay.

        Returns
        -------
        Dataset
            Their volumes.
        """
        keep = np.isin(self.y, list(classes))
        return replace(self, X=self.X[keep], y=self.y[keep], runs=self.runs[keep])

    def without(self, *labels: Any) -> Dataset:
        """The volumes with any other label.

        Parameters
        ----------
        *labels : labels
            The labels that go.

        Returns
        -------
        Dataset
            The volumes of all others.
        """
        keep = ~np.isin(self.y, list(labels))
        return replace(self, X=self.X[keep], y=self.y[keep], runs=self.runs[keep])

    def volume(self, values: Any, outside: float = np.nan) -> Array:
        """One number per voxel as an image; voxels outside the mask have the value `outside`.

        Parameters
        ----------
        values : array of shape (n_voxels,)
            One number a voxel.
        outside : float, optional
            The value outside the mask; NaN unless given.

        Returns
        -------
        array
            The image.
        """
        values = np.asarray(values, float)
        if values.shape != (len(self.coordinates),):
            raise DataError(f"a map has one value per voxel: {len(self.coordinates)} are needed, not {values.shape}")
        image = np.full(self.shape, outside)
        image[tuple(self.coordinates.T)] = values
        return image


@dataclass(frozen=True, eq=False)
class Volumes:
    """The rows of X that are used, with label and run as codes."""

    X: NDArray[Any]
    rows: Codes  # which rows of X
    labels: Codes
    classes: tuple[Any, ...]
    runs: Codes
    run_names: tuple[Any, ...]

    @property
    def n_voxels(self) -> int:
        """How many columns X has."""
        return int(self.X.shape[1])

    def take(self, positions: Any) -> Array:
        """Some of the used rows, as 64-bit floats."""
        return np.ascontiguousarray(self.X[self.rows[positions]], np.float64)


def unpacked(X: Any, y: Any, groups: Any) -> tuple[Any, Any, Any]:
    """X, labels and runs, also of a Dataset."""
    if isinstance(X, Dataset):
        return X.X, X.y if y is None else y, X.runs if groups is None else groups
    return X, y, groups


def checked(X: Any, y: Any, groups: Any, classes: Sequence[Any] | None = None) -> Volumes:
    """The volumes to be classified; lengths, labels, runs and numbers are checked."""
    X, y, groups = unpacked(X, y, groups)
    if y is None or groups is None:
        raise UsageError("y and groups are needed: a label and a run for each volume")
    X = as_table(X)
    labels, runs = column(y, len(X), "labels"), column(groups, len(X), "runs (groups)")
    rows = np.arange(len(X))
    if classes is not None:
        known = np.unique(labels).tolist()
        for name in classes:
            if name not in known:
                raise UsageError(f"no volume has the label {name!r}{did_you_mean(name, known)}: there are {known[:20]}")
        rows = np.flatnonzero(np.isin(labels, list(classes)))
    refuse_not_finite(X, rows)
    names, codes = np.unique(labels[rows], return_inverse=True)
    run_names, run_codes = np.unique(runs[rows], return_inverse=True)
    if len(names) < 2:
        raise DataError(f"two classes are needed, and all volumes have the label {names.tolist()[0]!r}")
    if len(run_names) < 2:
        raise DataError(
            f"two runs are needed to leave one out, and all volumes are of run {run_names.tolist()[0]!r}",
            remedy="pass the run of each volume as groups",
        )
    classes_found, runs_found = tuple(names.tolist()), tuple(run_names.tolist())
    return Volumes(X, rows, codes.astype(np.int64), classes_found, run_codes.astype(np.int64), runs_found)


def as_table(X: Any) -> NDArray[Any]:
    """X as volumes × voxels of numbers."""
    table: NDArray[Any] = np.asarray(X)
    if table.ndim != 2 or table.dtype.kind not in "biuf" or 0 in table.shape:
        raise DataError(
            f"X has shape {table.shape} and type {table.dtype}: numbers of shape (volumes, voxels) are needed",
            remedy="take the voxels inside the mask, as likely.brain.load does",
        )
    return table


def column(given: Any, rows: int, what: str) -> NDArray[Any]:
    """One value per volume; none of them missing."""
    values: NDArray[Any] = np.asarray(given)
    if values.shape != (rows,):
        number = len(values) if values.ndim == 1 else values.shape
        raise DataError(f"there are {number} {what} for {rows} volumes: one for each is needed")
    if values.dtype.kind == "O":
        missing = np.array([value is None or (isinstance(value, float) and math.isnan(value)) for value in values.tolist()])
    else:
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(rows, bool)
    if missing.any():
        at = int(np.flatnonzero(missing)[0])
        raise DataError(f"volume {at} is without a value in the {what}", remedy="leave such volumes out")
    return values


def refuse_not_finite(X: NDArray[Any], rows: Codes) -> None:
    """Raise an error that names the first volume and voxel that are not finite."""
    if X.dtype.kind != "f":
        return
    step = max(1, CHECKED_AT_ONCE // X.shape[1])
    for a in range(0, len(rows), step):
        bad = ~np.isfinite(X[rows[a : a + step]])
        if bad.any():
            row, voxel = (int(i[0]) for i in np.nonzero(bad))
            volumes = int((~np.isfinite(X[rows, voxel])).sum())
            raise DataError(
                f"volume {int(rows[a + row])} has {X[rows[a + row], voxel]} at voxel {voxel}, which is not finite in {volumes} "
                f"of {len(rows)} volumes",
                remedy="leave the volume out, or the voxel out of the mask",
            )


def coordinates_of(X: Any, coordinates: Any, voxels: int) -> Codes:
    """Coordinates of every voxel: whole numbers, none of them twice."""
    if coordinates is None and isinstance(X, Dataset):
        coordinates = X.coordinates
    if coordinates is None:
        raise UsageError("coordinates are needed: the place (i, j, k) of each voxel")
    places = np.asarray(coordinates)
    if places.shape != (voxels, 3):
        raise DataError(f"coordinates have shape {places.shape}: ({voxels}, 3) is needed, a place for each column of X")
    whole = places.astype(np.int64) if places.dtype.kind in "biuf" and np.isfinite(places).all() else None
    if whole is None or (whole != places).any():
        raise DataError("coordinates are places in the image, and those are whole numbers: pass (i, j, k), not millimetres")
    if len(np.unique(whole, axis=0)) < voxels:
        raise DataError("two voxels have the same coordinates: each column of X needs a place of its own")
    return whole
