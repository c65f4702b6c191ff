"""The model file: whole or refused, never run, and never half written."""

import contextlib
import hashlib
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likely
from likely.errors import LikelyError, ModelFileError
from likely.model import model_file
from likely.model.serialization import to_file
from strategies import examples

ROOT = Path(__file__).resolve().parents[2]
FIXED = struct.Struct("<8sIQ32s")
TABLE = {
    "colour": ["red", "red", "blue", "blue", "green", None],
    "size": [1.0, 2.5, 3.0, 4.5, 5.0, 6.0],
    "hits": [1, 0, 2, 1, 3, 0],
    "a": [1.0, 2.0, 3.5, 4.0, 4.5, 5.0],
    "b": [2.0, 1.0, 2.5, 0.5, 1.5, 3.0],
    "kind": ["x", "y", "x", "y", "x", "y"],
    "y": ["no", "yes", "no", "yes", "no", "yes"],
}


@pytest.fixture(scope="module")
def model():
    families = {"hits": likely.Poisson(), ("a", "b", "kind"): likely.Joint()}
    return likely.learn(TABLE, "y", families=families, class_prior={"no": 0.25, "yes": 0.75}, missing=["?"], plain=True)


@pytest.fixture(scope="module")
def small():
    return likely.learn({"x": [1.0, 2.0, 4.0], "c": ["u", "v", "u"], "y": [True, False, True]}, "y")


@pytest.fixture(scope="module")
def whole(small, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "small.likely"
    small.save(path)
    return path.read_bytes()


@pytest.fixture
def written(model, tmp_path):
    """Write a model file with a changed header and changed arrays under a checksum that fits."""

    def write(change_header=None, change_arrays=None, name="crafted.likely"):
        header, arrays = to_file(model.tally, model.prior, _settings(model), {})
        header = json.loads(json.dumps(header))
        if change_header:
            header = change_header(header) or header
        if change_arrays:
            arrays = change_arrays(dict(arrays)) or arrays
        path = tmp_path / name
        arrays = {n: np.asarray(a) for n, a in arrays.items()}
        listed = {n: [a.dtype.newbyteorder("<").str, *a.shape] for n, a in arrays.items()}
        text = json.dumps({"arrays": listed, **header}, allow_nan=True).encode()
        path.write_bytes(sealed(text, b"".join(a.astype(a.dtype.newbyteorder("<")).tobytes() for a in arrays.values())))
        return path

    return write


def _settings(model):
    return {"missing": model.missing, "weights": model.weights, "declared": model.declared}


def sealed(text, body, version=model_file.VERSION, length=None, magic=model_file.MAGIC):
    """A file whose checksum is right, whatever else is wrong with it."""
    length = len(text) if length is None else length
    digest = hashlib.sha256(model_file.MAGIC + struct.pack("<IQ", version, length) + text + body).digest()
    return FIXED.pack(magic, version, length, digest) + text + body


def test_a_crafted_file_with_nothing_wrong_is_the_model_itself(model, written):
    loaded = likely.load(written())
    assert loaded.tally == model.tally
    assert loaded.prior == model.prior
    assert loaded.missing == model.missing == ("?",)


def test_every_flipped_byte_is_detected(whole, tmp_path):
    path = tmp_path / "flipped.likely"
    survived = []
    for place in range(len(whole)):
        for pattern in (0x01, 0x80, 0x20, 0xFF):
            data = bytearray(whole)
            data[place] ^= pattern
            path.write_bytes(data)
            try:
                likely.load(path)
                reported = ""
            except ModelFileError as error:
                reported = str(error)
            if "flipped.likely" not in reported:
                survived.append((place, pattern, reported))
    assert survived == []


def test_a_file_cut_off_at_any_length_is_refused(whole, tmp_path):
    path = tmp_path / "cut.likely"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=r"cut\.likely"):
            likely.load(path)


@given(st.binary(min_size=1, max_size=200))
@examples(1)
def test_appended_bytes_are_refused(whole, tmp_path_factory, tail):
    path = tmp_path_factory.mktemp("tail") / "long.likely"
    path.write_bytes(whole + tail)
    with pytest.raises(ModelFileError):
        likely.load(path)


@given(st.binary(max_size=300), st.booleans())
@examples(1)
def test_random_bytes_are_refused(tmp_path_factory, junk, with_magic):
    path = tmp_path_factory.mktemp("junk") / "junk.likely"
    path.write_bytes((model_file.MAGIC if with_magic else b"") + junk)
    with pytest.raises(ModelFileError):
        likely.load(path)


def _pickled():
    class Bomb:
        def __reduce__(self):
            return os.mkdir, ("pickle_was_here",)

    return pickle.dumps(Bomb())


def _zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("classes.npy"), b"x" * 100)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"", "not a Likely model file"),
        (b"LIKELY", "not a Likely model file"),
        (b"LIKELY\n\r" + b"\0" * 100, "not a Likely model file"),
        (sealed(b"{}", b"", magic=b"likely\r\n"), "not a Likely model file"),
        (sealed(b"{}", b"", version=model_file.VERSION + 1), "install a newer Likely"),
        (sealed(b"{}", b"", version=2**32 - 1), "install a newer Likely"),
        (sealed(b"{}", b"", length=10 * 2**30), "header"),
        (sealed(b"{}", b"", length=2**64 - 1), "header"),
        (sealed(b"{}", b""), "no model"),
        (sealed(b"", b""), "no model"),
        (sealed(b"\xff\xfe", b""), "no model"),
        (sealed(b"[" * 100_000, b""), "nested too deeply"),
        (sealed(b'{"arrays":' + b"[" * 5_000 + b"]" * 5_000 + b"}", b""), "no model"),
        (sealed(b'{"arrays": {"classes": ["<f8", -1]}}', b""), "no model"),
        (sealed(b'{"arrays": {"classes": ["<f8", 1.5]}}', b"\0" * 8), "no model"),
        (sealed(b'{"arrays": {"classes": ["<f8", true]}}', b"\0" * 8), "no model"),
        (sealed(b'{"arrays": {"classes": ["<O8", 1]}}', b"\0" * 8), "no model"),
        (sealed(b'{"arrays": {"classes": ["<f8", 1000000000000]}}', b"\0" * 8), "do not fill"),
        (sealed(b'{"arrays": {"classes": ["<f8", NaN]}}', b""), "NaN"),
        (sealed(b'{"arrays": {"classes": ["<f8", ' + b"9" * 5_000 + b"]}}", b""), "no model"),
        (sealed(b'{"arrays": {"classes": 3}}', b""), "no model"),
        (sealed(b'{"arrays": {}}', b""), "no model"),
        (_pickled(), "not a Likely model file"),
        (sealed(_pickled(), b""), "no model"),
        (_zipped(), "not a Likely model file"),
    ],
    ids=str,
)
def test_what_is_no_model_file_is_refused_and_never_run(content, reported, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "other.likely"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=reported) as caught:
        likely.load(path)
    assert "other.likely" in str(caught.value)
    assert len(str(caught.value)) < 1_200
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_huge_claim_is_refused_in_little_memory(tmp_path):
    path = tmp_path / "sparse.likely"
    for text, length in ((b"{}", 10 * 2**30 - FIXED.size), (b'{"arrays":{"classes":["<f8",8]}}', None)):
        path.write_bytes(sealed(text, b"", length=length))
        os.truncate(path, 10 * 2**30)  # takes no room on the disk
        # The kernel's own high-water mark: getrusage would count what this process held when it forked.
        code = (
            "import likely, os, resource\n"
            f"try: likely.load({str(path)!r})\n"
            "except likely.errors.ModelFileError:\n"
            "    lines = open('/proc/self/status') if os.path.exists('/proc/self/status') else []\n"
            "    own = [line.split()[1] for line in lines if line.startswith('VmHWM')]\n"
            "    print(*own or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])"
        )
        done = run(code)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) < 1_000_000  # kB: ten would be ten million


def run(code):
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


def _first(header, key, value):
    header["blocks"][0][key] = value


BAD_HEADERS = {
    "no target": lambda h: h.pop("target"),
    "target is a number": lambda h: h.update(target=3),
    "target holds numbers": lambda h: h["target"].update(kind="number"),
    "columns are none": lambda h: h.update(columns=None),
    "columns are fewer": lambda h: h["columns"].pop(),
    "a column is named twice": lambda h: h["columns"].append(h["columns"][0]),
    "a column is the target": lambda h: h["columns"][0].update(name="y"),
    "a name is a number": lambda h: h["columns"][0].update(name=7),
    "a kind is unknown": lambda h: h["columns"][0].update(kind="colour"),
    "numbers have values": lambda h: h["columns"][1].update(values=[1, 2]),
    "values are text": lambda h: h["columns"][0].update(values="abc"),
    "a value is a list": lambda h: h["columns"][0]["values"].append([1]),
    "a value is null": lambda h: h["columns"][0].update(values=[None, "b", "c"]),
    "a value is there twice": lambda h: h["columns"][0].update(values=["b", "b", "c"]),
    "a value is missing": lambda h: h["columns"][0]["values"].pop(),
    "a value is of no type": lambda h: h["columns"][0]["values"].__setitem__(0, {"type": "os.system", "value": "ls"}),
    "a value divides by zero": lambda h: h["columns"][0]["values"].__setitem__(0, {"type": "fraction", "value": "1/0"}),
    "a value has no type": lambda h: h["columns"][0]["values"].__setitem__(0, {}),
    "a class is there twice": lambda h: h["target"].update(values=["no", "no"]),
    "a class too many": lambda h: h["target"]["values"].append("perhaps"),
    "classes are none": lambda h: h["target"].update(values=[]),
    "blocks are text": lambda h: h.update(blocks="x"),
    "a block too many": lambda h: h["blocks"].append(h["blocks"][0]),
    "a block is unknown": lambda h: _first(h, "family", "neural"),
    "a family is __class__": lambda h: _first(h, "family", "__class__"),
    "settings are unknown": lambda h: _first(h, "settings", {"hook": "os.system"}),
    "settings are a list": lambda h: _first(h, "settings", [1]),
    "a statistic is unknown": lambda h: _first(h, "statistic", "Pickle"),
    "a statistic is another": lambda h: _first(h, "statistic", "Moments"),
    "a family is another": lambda h: _first(h, "family", "gaussian"),
    "block columns are unknown": lambda h: _first(h, "columns", ["nowhere"]),
    "block columns are unhashable": lambda h: _first(h, "columns", [["colour"]]),
    "rows are negative": lambda h: h.update(rows=-1),
    "rows are text": lambda h: h.update(rows="many"),
    "rows are infinite": lambda h: h.update(rows=float("inf")),
    "rows are a fraction": lambda h: h.update(rows=1.5),
    "prior is none": lambda h: h.update(prior=None),
    "a prior is unknown": lambda h: h["prior"].update(default={"type": "Nobody"}),
    "a prior is negative": lambda h: h["prior"].update(default={"type": "Pseudocount", "count": -1}),
    "a prior is infinite": lambda h: h["prior"].update(default={"type": "Pseudocount", "count": float("inf")}),
    "a prior is text": lambda h: h["prior"].update(default={"type": "Pseudocount", "count": "one"}),
    "class shares are more than one": lambda h: h["prior"].update(classes=[["no", 1.5], ["yes", 0.5]]),
    "class shares are negative": lambda h: h["prior"].update(classes=[["no", -0.5], ["yes", 1.5]]),
    "class shares are no numbers": lambda h: h["prior"].update(classes=[["no", "half"], ["yes", "half"]]),
    "m-estimate shares are more than one": lambda h: h["prior"].update(
        default={"type": "MEstimate", "m": 1, "p": [["a", 2.0]]}
    ),
    "settings are none": lambda h: h.update(settings=None),
    "a setting is unknown": lambda h: h["settings"].update(hook="os.system"),
    "missing is a number": lambda h: h["settings"].update(missing=3),
    "missing holds numbers": lambda h: h["settings"].update(missing=[3]),
    "weights are a list": lambda h: h["settings"].update(weights=["w"]),
    "ignored is a number": lambda h: h.update(ignored=5),
    "ignored are not pairs": lambda h: h.update(ignored=[["a"]]),
}


@pytest.mark.parametrize("change", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_wrong_header_under_a_right_checksum_is_refused(change, written):
    def changed(header):
        change(header)
        return header

    with pytest.raises(ModelFileError, match=r"crafted\.likely"):
        likely.load(written(changed))


def _with(name, make):
    return lambda arrays: arrays | {name: make(arrays[name])}


BAD_ARRAYS = {
    "a count is NaN": _with("0.seen", lambda a: a * np.nan),
    "a count is infinite": _with("0.seen", lambda a: a + np.inf),
    "a count is negative": _with("0.seen", lambda a: a - 3),
    "class counts are negative": _with("classes", lambda a: -a),
    "class counts are more": _with("classes", lambda a: np.append(a, 1.0)),
    "class counts are a table": _with("classes", lambda a: a[:, None]),
    "values are more": _with("0.seen", lambda a: np.column_stack([a, a])),
    "a spread is negative": _with("1.spread", lambda a: a - 100),
    "means are more": _with("1.mean", lambda a: np.append(a, 1.0)),
    "a scatter is negative": _with("3.scatter", lambda a: -a - 1),
    "a scatter is not square": _with("3.scatter", lambda a: a[..., :1]),
    "an array is gone": lambda arrays: {n: a for n, a in arrays.items() if n != "1.mean"},
    "a block is gone": lambda arrays: {n: a for n, a in arrays.items() if not n.startswith("1.")},
    "an array too many": lambda arrays: arrays | {"9.seen": np.zeros(2)},
    "an array of no block": lambda arrays: arrays | {"evil": np.zeros(2)},
    "an array of an unknown name": lambda arrays: arrays | {"0.hook": np.zeros(2)},
    "an array without axes": _with("0.seen", lambda a: np.float64(1.0)),
}


@pytest.mark.parametrize("change", BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_wrong_arrays_under_a_right_checksum_are_refused(change, written):
    with pytest.raises(ModelFileError, match=r"crafted\.likely"):
        likely.load(written(change_arrays=change))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _places(value, path=()):
    """Every place in a JSON value, by the keys that lead to it."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _places(inner, (*path, key))


@given(st.data())
@examples(3)
def test_any_other_value_anywhere_in_the_header_is_a_model_that_works_or_is_refused(model, tmp_path_factory, data):
    header, arrays = to_file(model.tally, model.prior, _settings(model), {})
    listed = {n: ["<f8", *a.shape] for n, a in arrays.items()}
    header = {"arrays": listed, **json.loads(json.dumps(header))}
    place = data.draw(st.sampled_from(list(_places(header))))
    new = data.draw(JSON)
    if not place:
        header = new
    else:
        inner = header
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = new
    path = tmp_path_factory.mktemp("header") / "any.likely"
    path.write_bytes(sealed(json.dumps(header).encode(), b"".join(a.tobytes() for a in arrays.values())))
    try:
        loaded = likely.load(path)
    except ModelFileError:
        return
    with contextlib.suppress(LikelyError):  # a model of other columns is a model
        shares = loaded.posterior([{"colour": "red", "size": 2.0, "hits": 1}], absent="missing").probabilities
        assert np.isfinite(shares).all()


@given(st.data())
@examples(2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers this large overflow: what counts is what comes of it
def test_absurd_but_finite_arrays_give_finite_posteriors_or_are_refused(model, tmp_path_factory, data):
    header, arrays = to_file(model.tally, model.prior, _settings(model), {})
    name = data.draw(st.sampled_from(sorted(arrays)))
    number = st.sampled_from([0.0, 5e-324, 1e-200, 1.0, 1e15, 1e149, 1e160, 1e300, 1.7e308, -1.0, -1e300])
    new = np.array(data.draw(st.lists(number, min_size=arrays[name].size, max_size=arrays[name].size)))
    path = tmp_path_factory.mktemp("arrays") / "any.likely"
    model_file.write(path, header, {**arrays, name: new.reshape(arrays[name].shape)})
    try:
        loaded = likely.load(path)
    except ModelFileError:
        return
    rows = [{"colour": "red", "size": 2.0, "hits": 1, "a": 1.0, "b": 2.0, "kind": "x"}, {"size": 1e100, "kind": "z"}]
    with contextlib.suppress(LikelyError):  # "a score is not a number" is an answer as well
        shares = loaded.posterior(rows, absent="missing").probabilities
        assert np.isfinite(shares).all()
        assert shares.sum(1) == pytest.approx(1.0)


@pytest.mark.parametrize("prior", [
    likely.Pseudocount(2.5), likely.MEstimate(3.0, {"red": 0.5, "blue": 0.5}), likely.MEstimate(3.0, "background"),
    likely.Dirichlet({"red": 2, "blue": 3, "green": 1}), likely.NormalInverseGamma(1.0, 2.0, 3.0, 4.0),
    likely.Spread(1.0, (2.0, 3.0)), likely.ByClass({"no": 1.0, "*": likely.Dirichlet({"red": 2})}),
], ids=str)  # fmt: skip
def test_every_prior_is_read_as_it_was_written(prior, tmp_path):
    name = {"NormalInverseGamma": "size", "Spread": "a with b"}.get(type(prior).__name__, "colour")
    model = likely.learn(TABLE, "y", joint=[("a", "b")], smoothing={name: prior, "*": 1.0})
    model.save(tmp_path / "m.likely")
    assert likely.load(tmp_path / "m.likely").prior == model.prior
