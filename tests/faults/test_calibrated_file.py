"""A calibrated model in its file: what does not fit together is refused, whatever the checksum says."""

import json

import numpy as np
import pytest

import likely
from likely.errors import ModelFileError, SaveError
from likely.model import model_file
from likely.model.serialization import to_file
from strategies import quietly


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    x = np.where(rng.random(300) < 0.2, np.nan, rng.normal(a, 1.0))
    data = {"a": np.array(["p", "q"])[a].tolist(), "b": np.array(["u", "v"])[b].tolist(), "x": x, "y": (a ^ b).tolist()}
    found = quietly(likely.learn, data, "y")
    assert found.calibration.interactions
    assert found.calibration.absent
    return found


@pytest.fixture
def written(model, tmp_path):
    """Write the model with a changed header and changed arrays, under a checksum that fits."""

    def write(header_change=None, array_change=None):
        names = ("missing", "weights", "declared", "average", "dependence")
        settings = {name: getattr(model, name) for name in names}
        header, arrays = to_file(model.tally, model.prior, settings, model.stages, model.calibration)
        header = json.loads(json.dumps(header))
        if header_change:
            header_change(header)
        if array_change:
            array_change(arrays)
        model_file.write(tmp_path / "m.likely", header, arrays)
        return tmp_path / "m.likely"

    return write


def test_a_file_with_nothing_wrong_is_the_model_itself(model, written):
    assert likely.load(written()) == model


def _of(name, value):
    return lambda arrays: arrays.update({name: value(arrays[name])})


BAD_ARRAYS = {
    "keys out of order": _of("sample.keys", lambda a: a[::-1].copy()),
    "a label of no class": _of("sample.labels", lambda a: a + 2),
    "a row without weight": _of("sample.weights", lambda a: a * 0),
    "a category of no value": _of("sample.0", lambda a: a + 5),
    "a column too short": _of("sample.2", lambda a: a[:-1]),
    "a gap outside": _of("sample.gaps2", lambda a: a + 10_000),
    "an array too many": lambda arrays: arrays.update({"sample.9": np.zeros(2)}),
    "cells out of order": _of("2.keys", lambda a: a[::-1].copy()),
    "a count below zero": _of("2.seen", lambda a: a - 1),
    "a bias too many": _of("calibration.bias", lambda a: np.append(a, 0.0)),
    "edges out of order": _of("calibration.edges0", lambda a: a[::-1].copy()),
    "a table too small": _of("calibration.table0", lambda a: a[:-1]),
    "a group outside": _of("calibration.groups0.0", lambda a: a + 7),
    "a group too many": _of("calibration.groups0.0", lambda a: np.append(a, 0).astype(a.dtype)),
    "evidence of another shape": _of("calibration.absent0", lambda a: a[:, :1]),
}


@pytest.mark.parametrize("change", BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_arrays_that_do_not_fit_are_refused(change, written):
    with pytest.raises(ModelFileError, match=r"m\.likely"):
        likely.load(written(array_change=change))


BAD_HEADERS = {
    "a column too many": lambda h: h["sample"]["columns"].append("z"),
    "another column": lambda h: h["sample"]["columns"].__setitem__(0, "z"),
    "no limit": lambda h: h["sample"].pop("limit"),
    "a set of unknown columns": lambda h: h["calibration"]["interactions"][0].__setitem__("columns", ["a", "z"]),
    "a direction of an unknown column": lambda h: h["calibration"].__setitem__("directions", ["z"]),
    "a weight that is no number": lambda h: h["calibration"]["weights"].__setitem__("a", "much"),
    "an unknown dependence": lambda h: h["settings"].__setitem__("dependence", "of sorts"),
    "a calibration without numbers": lambda h: h.__setitem__("calibration", {}),
}


@pytest.mark.parametrize("change", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_headers_that_do_not_fit_are_refused(change, written):
    with pytest.raises(ModelFileError, match=r"m\.likely"):
        likely.load(written(header_change=change))


def test_a_direction_of_a_column_without_codes_is_refused_by_its_name(written):
    def change(header):
        header["calibration"]["directions"] = ["z"]

    with pytest.raises(ModelFileError, match="a direction of 'z', which has neither bins nor values"):
        likely.load(written(header_change=change))


def test_the_copies_of_rows_are_written(tmp_path):
    rng = np.random.default_rng(2)
    x = rng.normal(size=200)
    y = np.where(x + rng.normal(size=200) > 0, "p", "q")
    model = quietly(likely.learn, {"x": np.tile(x, 2), "y": np.tile(y, 2)}, "y")
    assert model.calibration.copies == pytest.approx([2.0, 2.0])
    model.save(tmp_path / "m.likely")
    assert likely.load(tmp_path / "m.likely").calibration.copies == pytest.approx([2.0, 2.0])


def test_the_copies_of_documents_are_written_and_a_number_of_zero_is_refused(tmp_path):
    rng = np.random.default_rng(1)
    texts = [f"word{a} word{b} word{c} {'good' if a % 2 else 'bad'}" for a, b, c in rng.integers(0, 30, (60, 3))]
    labels = ["p" if "good" in text else "q" for text in texts]
    model = quietly(likely.learn, {"text": [*texts, *texts], "y": [*labels, *labels]}, "y", families={"text": "text"})
    assert model.stages["text"].copies == pytest.approx([2.0, 2.0])
    model.save(tmp_path / "m.likely")
    assert likely.load(tmp_path / "m.likely") == model
    model.stages["text"].copies[:] = 0.0
    with pytest.raises(SaveError, match="documents that were counted no time"):
        model.save(tmp_path / "m.likely")
