"""`likely brain`: files with the right numbers in the right place, a page that fetches nothing, and clear refusals."""

import json
import re

import numpy as np
import pytest

import browser
from commands import document, run
from likely import brain

nibabel = pytest.importorskip("nibabel", reason="NOT TESTED: nibabel is not installed")
AFFINE = np.array([[-3.0, 0, 0, 40], [0, 3, 0, -35], [0, 0, 4, 2], [0, 0, 0, 1]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An image of 5 × 5 × 3 voxels, four runs, two classes and rest; one corner tells the classes apart."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("brain")
    y = np.tile(np.repeat(["rest", "tool", "house", "rest", "tool", "house"], 3), 4)
    data = rng.normal(500, 5, (5, 5, 3, len(y))) + np.linspace(0, 30, len(y))
    data[:2, :2, :, y == "tool"] += 15
    nibabel.save(nibabel.Nifti1Image(data.astype(np.float32), AFFINE), path / "bold.nii.gz")
    nibabel.save(nibabel.Nifti1Image(np.ones((5, 5, 3), np.uint8), AFFINE), path / "mask.nii.gz")
    lines = [f"{label} {i // 18}\n" for i, label in enumerate(y.tolist())]
    (path / "labels.txt").write_text("".join(lines))
    return path


def command(folder, *more, out="out"):
    data, labels, mask = (str(folder / name) for name in ("bold.nii.gz", "labels.txt", "mask.nii.gz"))
    return ["brain", data, "--labels", labels, "--mask", mask, "-o", str(folder / out), *more]


@pytest.fixture(scope="module")
def found(folder):
    return document(*command(folder, "--permutations", "19", "--model", "gaussian"))


def test_the_maps_are_those_of_the_library_in_the_place_of_the_data(folder, found):
    whole = brain.load(
        folder / "bold.nii.gz", folder / "labels.txt", mask=folder / "mask.nii.gz", detrend=True, standardize="rest"
    )
    dataset = whole.without("rest")
    expected = {
        "accuracy": brain.searchlight(dataset).accuracy,
        "mean_tool": brain.mean_maps(dataset)["tool"],
        "evidence_house": brain.evidence_maps(dataset)["house"],
    }
    for name, values in expected.items():
        image = nibabel.load(folder / "out" / f"{name}.nii.gz")
        assert np.allclose(image.get_fdata()[tuple(dataset.coordinates.T)], values, atol=1e-5)
        assert np.allclose(image.affine, AFFINE)
    assert found["searchlight"]["best"] == pytest.approx(expected["accuracy"].max())
    assert found["classification"]["accuracy"] == pytest.approx(brain.classify(dataset).accuracy)
    assert sorted(found["files"]) == sorted(path.name for path in (folder / "out").iterdir())
    assert json.loads((folder / "out" / "summary.json").read_text())["searchlight"] == found["searchlight"]


def test_the_corner_with_the_signal_is_significant(folder, found):
    p = nibabel.load(folder / "out" / "p_fwe.nii.gz").get_fdata()
    assert (p[:2, :2] < 0.051).all()  # the smallest that 19 permutations can show
    assert (p[4, 4] > 0.051).all()
    assert found["searchlight"]["significant_fwe_05"] >= 12


def test_the_page_allows_nothing_from_outside_and_escapes_its_title(folder, found):
    page = (folder / "out" / "report.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<script" not in page
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", page)


def test_the_page_in_a_browser_draws_its_maps_and_asks_for_nothing(folder, found, tmp_path):
    path = browser.found()
    if path is None:
        pytest.skip("NOT TESTED: there is no browser on this machine")
    with browser.opened(path, tmp_path) as page:
        for width in (1280, 390):
            page.size(width, 900)
            page.open(folder / "out" / "report.html")
            assert page.complaints() == []
            assert [url for url in page.fetched() if not url.startswith(("data:", "file:"))] == []
            assert page.ask("document.documentElement.scrollWidth <= window.innerWidth")
            assert page.ask("document.querySelectorAll('figure image').length") >= 5
            assert page.ask("getComputedStyle(document.querySelector('dl')).display") == "grid"  # the style was allowed


def test_a_person_reads_accuracy_chance_and_where_the_files_are(folder):
    printed = run(*command(folder, "--permutations", "0", "--model", "lda", "--classes", "tool,house", out="other")).stdout
    assert "accuracy" in printed
    assert "chance 0.5000" in printed
    assert "report.html" in printed
    assert not (folder / "other" / "p_fwe.nii.gz").exists()


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--classes", "tool,hammer"], 2, "'hammer'"),
        (["--standardize", "rest", "--rest", "pause"], 3, "'pause'"),
        (["--labels", "absent.txt"], 1, "absent.txt"),
        (["--mask", "{folder}/bold.nii.gz"], 3, "shape"),
        (["--radius", "-1"], 2, "--radius"),
        (["-o", "{folder}/labels.txt"], 2, "is a file"),
        (["-o", "{folder}/no/such"], 2, "there is no folder"),
    ],
)
def test_a_wrong_call_is_refused_with_its_reason_and_writes_nothing(folder, more, code, message):
    given = [part.format(folder=folder) for part in more]
    refused = run(*command(folder, *given, out="refused"), expect=code)
    assert message in refused.stderr
    assert not (folder / "refused").exists()


def test_one_label_file_line_too_few_is_named(folder, tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("".join((folder / "labels.txt").read_text().splitlines(keepends=True)[1:]))
    refused = run(*command(folder, "--labels", str(short), out="refused"), expect=3)
    assert "71 labels for 72 volumes" in refused.stderr
