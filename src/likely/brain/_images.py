"""NIfTI images in and out (nibabel), and the text file with a label and a run for each volume."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.brain._cleaning import clean
from likely.brain._dataset import Codes, Dataset, column
from likely.errors import DataError, UsageError, import_optional
from likely.sources.atomic_write import whole_file

LABELS = ("label", "labels", "target", "targets", "condition", "conditions", "trial_type")
RUNS = ("run", "runs", "chunk", "chunks", "session", "sessions")
DAMAGED = (EOFError, OSError, ValueError, zlib.error)  # what reading a damaged or truncated file raises
SAME_PLACE = 1e-3  # millimetres by which the affines of image and mask may differ


def load(
    data: Any, labels: Any, *, mask: Any = None, runs: Any = None, detrend: bool | int = False,
    standardize: str | None = None, rest: Any = "rest",
) -> Dataset:  # fmt: skip
    """Read a 4-D image with a label and a run for each of its volumes.

    Parameters
    ----------
    data, mask : path or nibabel image
        The mask is 3-D, of the same shape and affine; voxels where it is not 0 are used. Without a mask: all voxels that vary.
    labels : path or array of shape (n_volumes,)
        A text file with a line per volume: label and run, separated by blanks, a comma or a tab; a header line is
        recognised.
    runs : array of shape (n_volumes,), default=None
        The runs, where `labels` is an array.
    detrend : bool or int, default=False
        Whether a line (or polynomial of this degree) in time is subtracted within each run.
    standardize : None, "run" or "rest", default=None
        Whether each voxel is standardised within each run, by all of its volumes or by those labelled `rest`.
    rest : label, default="rest"
        The label of volumes at rest.
    """
    image = _image(data)
    if len(image.shape) != 4:
        raise DataError(f"{_name(data)} has shape {image.shape}: a 4-D image is needed, volumes last")
    shape = tuple(int(size) for size in image.shape[:3])
    numbers = _numbers(image, data)
    inside = _mask(mask, image, data) if mask is not None else np.ptp(numbers, axis=3) > 0
    if not inside.any():
        raise DataError(f"{_name(mask)} is 0 everywhere" if mask is not None else f"no voxel of {_name(data)} varies")
    X = np.ascontiguousarray(numbers[inside].T)
    if isinstance(labels, str | os.PathLike):
        y, groups = read_labels(labels)
        runs = groups if runs is None else runs
    else:
        y = labels
    if runs is None:
        raise UsageError("runs are needed: pass the run of each volume, or a labels file with two columns")
    y, runs = column(y, len(X), "labels"), column(runs, len(X), "runs")
    if detrend or standardize is not None:
        X = clean(X, runs, detrend=detrend, standardize=standardize is not None, baseline=_baseline(standardize, y, rest))
    return Dataset(X, y, runs, np.argwhere(inside).astype(np.int64), np.asarray(image.affine, float), shape)  # type: ignore[arg-type]


def read_labels(path: str | os.PathLike[str]) -> tuple[NDArray[Any], Codes | NDArray[Any]]:
    """Label and run of each volume, from a text file with a line for each.

    Parameters
    ----------
    path : path
        The file; its first line may name the columns.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{os.fspath(path)!r} is no text in UTF-8", remedy="save it as plain text") from None
    lines = [(i + 1, _fields(line)) for i, line in enumerate(text.splitlines()) if line.strip()]
    if not lines:
        raise DataError(f"{os.fspath(path)!r} is empty: a line per volume is needed, label and run")
    at = _columns(lines[0][1])
    lines = lines if at is None else lines[1:]
    first, second = at or (0, 1)
    for number, fields in lines:
        if len(fields) <= max(first, second):
            place = f"{os.fspath(path)!r} line {number} has {len(fields)} columns"
            raise DataError(f"{place}: label and run are needed, separated by a blank")
    y = np.array([fields[first] for _, fields in lines])
    runs = np.array([fields[second] for _, fields in lines])
    whole = all(run.lstrip("-").isdecimal() for run in runs.tolist())
    return y, runs.astype(np.int64) if whole else runs


def save_map(path: str | os.PathLike[str], values: Any, dataset: Dataset) -> None:
    """Write one number per voxel as a NIfTI image in the space of the data; NaN outside the mask.

    Parameters
    ----------
    path : path
        A name that ends in .nii or .nii.gz.
    values : array of shape (n_voxels,)
        The number of each voxel.
    dataset : Dataset
        The data, with mask and affine.
    """
    name = os.fspath(path)
    if not name.endswith((".nii", ".nii.gz")):
        raise UsageError(f"{name!r} is where an image goes: name it .nii or .nii.gz")
    image = _nibabel().Nifti1Image(dataset.volume(values).astype(np.float32), dataset.affine)
    image.header.set_xyzt_units("mm")
    content = image.to_bytes()
    with whole_file(path) as temporary:
        Path(temporary).write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


def _fields(line: str) -> list[str]:
    for mark in ("\t", ","):
        if mark in line:
            return [field.strip().strip('"') for field in line.split(mark)]
    return line.split()


def _columns(header: list[str]) -> tuple[int, int] | None:
    """Column indexes of label and run, if the line is a header."""
    names = [name.lower() for name in header]
    found = [next((i for i, name in enumerate(names) if name in known), -1) for known in (LABELS, RUNS)]
    return None if min(found) < 0 else (found[0], found[1])


def _baseline(standardize: str | None, y: NDArray[Any], rest: Any) -> NDArray[np.bool_] | None:
    if standardize in (None, "run"):
        return None
    if standardize != "rest":
        raise UsageError(f"standardize={standardize!r} is not known: choose None, 'run' or 'rest'")
    found: NDArray[np.bool_] = np.asarray(y == rest)
    if not found.any():
        raise DataError(
            f"no volume has the label {rest!r} to standardise by", remedy="pass standardize='run', or another rest="
        )
    return found


def _mask(mask: Any, image: Any, data: Any) -> NDArray[np.bool_]:
    """The voxels that are used; the mask must have the shape and the affine of the image."""
    found = _image(mask)
    numbers = _numbers(found, mask)
    if numbers.ndim == 4 and numbers.shape[3] == 1:
        numbers = numbers[..., 0]
    if numbers.shape != image.shape[:3]:
        raise DataError(
            f"{_name(mask)} has shape {numbers.shape}, {_name(data)} {image.shape[:3]}", remedy="resample the mask to the data"
        )
    if np.abs(found.affine - image.affine).max() > SAME_PLACE:
        raise DataError(
            f"{_name(mask)} and {_name(data)} have different affines: a voxel of one is another place in the other "
            f"({np.round(found.affine[:3], 3).tolist()} and {np.round(image.affine[:3], 3).tolist()})",
            remedy="resample the mask to the data",
        )
    return np.asarray(np.nan_to_num(numbers) != 0)


def _image(given: Any) -> Any:
    nibabel = _nibabel()
    if not isinstance(given, str | os.PathLike):
        return given
    try:
        return nibabel.load(os.fspath(given))
    except FileNotFoundError:
        raise DataError(f"there is no file {os.fspath(given)!r}") from None
    except (nibabel.filebasedimages.ImageFileError, nibabel.spatialimages.HeaderDataError, *DAMAGED) as error:
        raise _unreadable(given, error) from None


def _numbers(image: Any, given: Any) -> NDArray[Any]:
    """The numbers of an image, scaled as its header specifies."""
    try:
        return np.asanyarray(image.dataobj)
    except DAMAGED as error:
        raise _unreadable(given, error) from None


def _unreadable(given: Any, error: Exception) -> DataError:
    return DataError(f"{_name(given)} cannot be read as an image: {error}", remedy="pass a whole NIfTI file, .nii or .nii.gz")


def _name(given: Any) -> str:
    return repr(os.fspath(given)) if isinstance(given, str | os.PathLike) else "the image"


def _nibabel() -> Any:
    return import_optional("nibabel", "reading images")
