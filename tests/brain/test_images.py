"""NIfTI in and out: places, affines and labels are those of the files; what does not fit is refused."""

import gzip

import numpy as np
import pytest

from likely import brain
from likely.errors import DataError, UsageError

nibabel = pytest.importorskip("nibabel", reason="NOT TESTED: nibabel is not installed")
AFFINE = np.array([[-3.1, 0, 0, 60.45], [0, 3.75, 0.2, -35.6], [0, 0, 3.75, 2], [0, 0, 0, 1]])


@pytest.fixture
def files(tmp_path):
    """A small image with mask and labels: two runs of eight volumes, rest between two classes."""
    rng = np.random.default_rng(0)
    data = rng.integers(400, 900, (4, 3, 2, 16)).astype(np.int16)
    mask = np.ones((4, 3, 2), np.uint8)
    mask[0, 0] = 0
    nibabel.save(nibabel.Nifti1Image(data, AFFINE), tmp_path / "bold.nii.gz")
    nibabel.save(nibabel.Nifti1Image(mask, AFFINE), tmp_path / "mask.nii.gz")
    y = ["rest", "rest", "a", "a", "b", "b", "rest", "a"] * 2
    lines = [f"{label} {run}\n" for label, run in zip(y, [0] * 8 + [1] * 8, strict=True)]
    (tmp_path / "labels.txt").write_text("".join(lines))
    return tmp_path, data, mask, np.array(y)


def load(folder, **changes):
    given = {"data": folder / "bold.nii.gz", "labels": folder / "labels.txt", "mask": folder / "mask.nii.gz"} | changes
    return brain.load(given.pop("data"), given.pop("labels"), **given)


def test_every_voxel_inside_the_mask_is_read_at_its_place(files):
    folder, data, mask, y = files
    found = load(folder)
    assert found.X.shape == (16, int(mask.sum()))
    for j, place in enumerate(found.coordinates.tolist()):
        assert np.array_equal(found.X[:, j], data[tuple(place)])
    assert np.array_equal(found.y, y)
    assert found.runs.tolist() == [0] * 8 + [1] * 8
    assert np.allclose(found.affine, AFFINE, atol=1e-6)


@pytest.mark.parametrize("name", ["map.nii.gz", "map.nii"])
def test_a_map_goes_to_a_file_and_back_with_affine_and_places(files, name):
    folder, _, mask, _ = files
    found = load(folder)
    values = np.arange(len(found.coordinates)) / 7
    brain.save_map(folder / name, values, found)
    image = nibabel.load(folder / name)
    again = image.get_fdata()
    assert np.allclose(image.affine, AFFINE, atol=1e-6)
    assert np.allclose(again[tuple(found.coordinates.T)], values, atol=1e-6)
    assert np.isnan(again[mask == 0]).all()
    assert image.header.get_xyzt_units()[0] == "mm"


def test_the_same_map_is_the_same_file(files):
    folder = files[0]
    found = load(folder)
    for name in ("one.nii.gz", "two.nii.gz"):
        brain.save_map(folder / name, np.ones(len(found.coordinates)), found)
    assert (folder / "one.nii.gz").read_bytes() == (folder / "two.nii.gz").read_bytes()
    with pytest.raises(UsageError, match=r"\.nii"):
        brain.save_map(folder / "one.txt", np.ones(len(found.coordinates)), found)


def test_without_a_mask_all_voxels_that_vary_are_used(files):
    folder, data, _, _ = files
    data = data.copy()
    data[1, 1, 1] = 5
    nibabel.save(nibabel.Nifti1Image(data, AFFINE), folder / "bold.nii.gz")
    assert len(load(folder, mask=None).coordinates) == 4 * 3 * 2 - 1


def test_cleaning_on_request_is_cleaning_of_the_arrays(files):
    folder, _, _, y = files
    raw = load(folder)
    cleaned = load(folder, detrend=True, standardize="rest")
    assert np.array_equal(cleaned.X, brain.clean(raw.X, raw.runs, baseline=y == "rest"))
    with pytest.raises(DataError, match="'pause'"):
        load(folder, standardize="rest", rest="pause")
    with pytest.raises(UsageError, match="standardize='all'"):
        load(folder, standardize="all")


@pytest.mark.parametrize(
    ("text", "labels", "runs"),
    [
        ("labels chunks\na 0\nb 1\n", ["a", "b"], [0, 1]),
        ("a,0\nb,1\n", ["a", "b"], [0, 1]),
        ("run\tcondition\n1\tbig cat\n2\tdog\n", ["big cat", "dog"], [1, 2]),
        ("a first\nb second\n\n", ["a", "b"], ["first", "second"]),
    ],
)
def test_labels_are_read_with_blanks_commas_tabs_and_a_header(tmp_path, text, labels, runs):
    path = tmp_path / "labels.txt"
    path.write_text(text)
    found = brain.read_labels(path)
    assert found[0].tolist() == labels
    assert found[1].tolist() == runs


def other_mask(folder, mask, affine=AFFINE):
    nibabel.save(nibabel.Nifti1Image(mask, affine), folder / "other.nii.gz")
    return {"mask": folder / "other.nii.gz"}


def short_labels(folder):
    (folder / "short.txt").write_text("".join((folder / "labels.txt").read_text().splitlines(keepends=True)[:-1]))
    return {"labels": folder / "short.txt"}


def written(folder, name, content):
    (folder / name).write_bytes(content)
    return folder / name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f, m: other_mask(f, m[:3]), r"shape \(3, 3, 2\)"),
        (lambda f, m: other_mask(f, m, AFFINE + np.eye(4, 4, 3)), "different affines"),
        (lambda f, m: other_mask(f, m * 0), "0 everywhere"),
        (lambda f, m: short_labels(f), "15 labels for 16 volumes"),
        (lambda f, m: {"labels": written(f, "one.txt", b"a\nb\n")}, "line 1 has 1 columns"),
        (lambda f, m: {"labels": written(f, "none.txt", b"\n")}, "is empty"),
        (lambda f, m: {"labels": written(f, "bad.txt", b"\xff\xfe\x00a 1")}, "no text in UTF-8"),
        (lambda f, m: {"data": f / "mask.nii.gz"}, "4-D image is needed"),
        (lambda f, m: {"data": f / "absent.nii.gz"}, "there is no file"),
        (lambda f, m: {"data": written(f, "odd.nii.gz", gzip.compress(b"nothing"))}, "cannot be read as an image"),
        (lambda f, m: {"data": written(f, "cut.nii.gz", (f / "bold.nii.gz").read_bytes()[:200])}, "cannot be read as an image"),
        (lambda f, m: {"data": written(f, "half.nii.gz", (f / "bold.nii.gz").read_bytes()[:700])}, "cannot be read"),
        (lambda f, m: {"data": written(f, "cut.nii", gzip.decompress((f / "bold.nii.gz").read_bytes())[:-9])}, "cannot be"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_are_refused_with_the_reason(files, change, message):
    folder, _, mask, _ = files
    changes = change(folder, mask)
    with pytest.raises(DataError, match=message):
        load(folder, **changes)


def test_arrays_of_labels_need_runs(files):
    folder, _, _, y = files
    with pytest.raises(UsageError, match="runs are needed"):
        load(folder, labels=y)
    assert load(folder, labels=y, runs=np.repeat([0, 1], 8)).without("rest").X.shape[0] == 10


def test_nan_inside_the_mask_is_refused_when_it_is_used(files):
    folder, data, _, _ = files
    odd = data.astype(float)
    odd[2, 2, 1, 5] = np.nan
    nibabel.save(nibabel.Nifti1Image(odd, AFFINE), folder / "bold.nii.gz")
    found = load(folder)
    with pytest.raises(DataError, match=r"volume 5 has nan.*1 of 16 volumes"):
        brain.searchlight(found)
