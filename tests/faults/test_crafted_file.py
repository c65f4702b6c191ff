"""Model files with a right checksum and wrong content, each of which once hung, crashed, or filled the memory."""

import hashlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import likely
from likely.errors import ModelFileError
from likely.model import model_file
from likely.model.serialization import to_file, values

ROOT = Path(__file__).resolve().parents[2]
FIXED = struct.Struct("<8sIQ32s")
TEXTS = ["red wine", "old car", "new car tax", "wine wine old", "tax tax", "new red car"]
TABLE = {"t": TEXTS, "c": ["u", "v", "u", "v", "v", "u"], "x": [1.0, 2.5, 3.0, 4.5, 5.0, 6.0], "y": ["p", "q"] * 3}


@pytest.fixture(scope="module")
def parts():
    model = likely.learn(TABLE, "y", families={"t": "text", "c": "categorical"})
    settings = {name: getattr(model, name) for name in ("missing", "weights", "declared", "average", "dependence")}
    header, arrays = to_file(model.tally, model.prior, settings, model.stages, model.calibration)
    return json.dumps(header), {name: np.asarray(array) for name, array in arrays.items()}


def sealed(text, body=b"", version=model_file.VERSION, digest=None):
    """A file whose checksum is right unless another is given."""
    right = hashlib.sha256(model_file.MAGIC + struct.pack("<IQ", version, len(text)) + text + body).digest()
    return FIXED.pack(model_file.MAGIC, version, len(text), digest or right) + text + body


@pytest.fixture
def crafted(parts, tmp_path):
    def write(change=None, rewrite=None, version=model_file.VERSION, **arrays):
        header, known = json.loads(parts[0]), {**parts[1], **{n.replace("__", "."): a for n, a in arrays.items()}}
        if change:
            change(header)
        listed = {name: [a.dtype.newbyteorder("<").str, *a.shape] for name, a in known.items()}
        text = json.dumps({"arrays": listed, **header}).encode()
        body = b"".join(a.astype(a.dtype.newbyteorder("<")).tobytes() for a in known.values())
        path = tmp_path / "crafted.likely"
        path.write_bytes(sealed(rewrite(text) if rewrite else text, body, version))
        return path

    return write


def refused(path, why=""):
    with pytest.raises(ModelFileError, match=rf"crafted\.likely.*{why}"):
        likely.load(path)


def test_nothing_wrong_is_loaded(crafted):
    assert likely.load(crafted()).posterior(TABLE).probabilities.shape == (6, 2)


@pytest.mark.parametrize(
    "value",
    [
        {"type": "fraction", "value": "1e20000000"},
        {"type": "decimal", "value": "1e999999999"},
        {"type": "timedelta", "value": 1e300},
        {"type": "datetime", "value": "9999-99-99"},
    ],
)
def test_a_value_that_takes_long_or_cannot_be_made_is_refused(value, crafted):
    refused(crafted(lambda header: header["columns"][1]["values"].__setitem__(0, value)))


def test_counts_of_words_below_one_are_refused_before_a_loop_uses_them(parts, crafted):
    for bad in (-1, 0, -(2**31)):
        counts = parts[1]["0.sample.counts"].copy()
        counts[0] = bad
        refused(crafted(**{"0__sample__counts": counts}))


@pytest.mark.parametrize("name", ["0.sample.ids", "0.sample.labels", "0.sample.indptr", "0.offsets", "sample.labels"])
@pytest.mark.parametrize("bad", [-1, 2**20, -(2**31)])
def test_indexes_out_of_range_are_refused_before_a_loop_uses_them(name, bad, parts, crafted):
    index = parts[1][name].copy()
    index[1] = bad
    refused(crafted(**{name.replace(".", "__"): index}))


def test_arrays_of_two_dimensions_where_one_is_meant_are_refused(parts, crafted):
    for name, array in parts[1].items():
        if array.ndim == 1:
            refused(crafted(**{name.replace(".", "__"): array[:, None]}))


def test_words_that_are_not_utf8_are_refused(parts, crafted):
    buffer = parts[1]["0.buffer"].copy()
    for bad in (0xFF, 0x80, 0xC3):
        buffer[1] = bad
        refused(crafted(**{"0__buffer": buffer}))


def test_an_entry_that_is_there_twice_is_refused(crafted):
    refused(crafted(rewrite=lambda text: text.replace(b'"rows":', b'"rows": 5, "rows":')))


@pytest.mark.parametrize("version", [0, model_file.VERSION + 1, 2**32 - 1])
def test_a_version_that_is_not_known_is_refused(version, crafted):
    refused(crafted(version=version))


def test_a_large_header_is_not_parsed_before_its_checksum_is_right(tmp_path):
    """60 MB of brackets took 1.6 GB; with a right checksum they are refused by their number."""
    text = b'{"arrays":{},"x":[' + b"[]," * 20_000_000 + b"0]}"
    for digest in (b"\0" * 32, None):
        path = tmp_path / "crafted.likely"
        path.write_bytes(sealed(text, digest=digest))
        code = (
            "import likely\n"
            f"try: likely.load({str(path)!r})\n"
            "except likely.errors.ModelFileError:\n"
            "    print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
        )
        env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) < 500_000  # kB


def test_values_written_as_bytes_are_read_back_and_must_fill_them(monkeypatch, tmp_path):
    monkeypatch.setattr(values, "MANY", 2)
    model = likely.learn({"c": ["one", "three", "seven"] * 2, "y": ["p", "q"] * 3}, "y", plain=True)
    path = tmp_path / "crafted.likely"
    model.save(path)
    assert likely.load(path).schema == model.schema
    whole = path.read_bytes()
    (magic, version, length, _), rest = FIXED.unpack_from(whole), whole[FIXED.size :]
    assert magic == model_file.MAGIC
    text, body = rest[:length], rest[length:]
    offsets = np.array([0, 3, 8, 13], "<i8")  # of one, three and seven
    for wrong in ([0, 3, 8, 12], [1, 3, 8, 13], [0, 8, 3, 13]):
        path.write_bytes(sealed(text, body.replace(offsets.tobytes(), np.array(wrong, "<i8").tobytes()), version))
        refused(path)


@pytest.mark.parametrize("how", ["late", "short", "none"])
def test_words_that_do_not_fill_their_bytes_are_refused(how, parts, crafted):
    ends = parts[1]["0.offsets"]
    bad = {"late": [1, *ends[1:]], "short": ends[:-1], "none": []}[how]
    refused(crafted(**{"0__offsets": np.array(bad, np.int64)}), "words that do not fill their bytes")


def test_a_curve_of_one_point_in_either_direction_is_refused(parts, crafted):
    heights = parts[1]["stage0.heights"]
    for bad in (heights[:1], heights[:, :1]):
        refused(crafted(stage0__heights=bad, stage0__steps=np.zeros(len(bad))), "has the shape")
