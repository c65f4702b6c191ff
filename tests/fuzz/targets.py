"""What is fuzzed: each target makes one odd input from a random generator and feeds it to Likely.

A refusal (any LikelyError) is right, and so is an answer that is finite. Anything else that is raised is a fault.
"""

import hashlib
import io
import json
import random
import re
import struct
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet

import likely
from likely.errors import LikelyError
from likely.model import model_file
from likely.model.serialization import to_file
from likely.networks import network_file

FIXED = struct.Struct("<8sIQ32s")
ROW = {"a": "yes", "b": "blue", "x": 5.5, "z": -1.0, "note": "a free prize", "n": 3}
ODD_NUMBERS = (0, 1, -1, 2, 3, 255, 2**31, 2**53, 2**62, 2**63 - 1, -(2**63), 1e-300, 1e300, -1e300, 0.5, 1e18)
ODD_VALUES = (
    None, True, False, "", "x", "\ud800", "\0", [], {}, [[]], {"type": "tuple", "value": []}, "auto", "text", "category",
    {"type": "fraction", "value": "1e20000000"}, {"type": "decimal", "value": "1e999999999"}, {"type": "float", "value": "nan"},
    {"type": "timedelta", "value": 1e300}, {"type": "datetime", "value": "9999-99-99"}, *ODD_NUMBERS,
)  # fmt: skip
ODD_BYTES = (b",", b'"', b"\n", b"\r\n", b"\0", b"\xff", b"\xed\xa0\x80", b"NaN", b"1e999", b"[", b"{")


class Folder:
    """One temporary folder for all inputs of a process."""

    kept = tempfile.TemporaryDirectory(prefix="likely-fuzz-")
    path = Path(kept.name)


def table(rows=40, seed=3):
    """A small mixed table with gaps, text and two columns that are joined."""
    rng = random.Random(seed)
    made = []
    for i in range(rows):
        a, b = rng.choice(["no", "yes"]), rng.choice(["red", "green", "blue"])
        words = " ".join(rng.choices(["cheap", "lunch", "prize", "free", "noon", "naïve"], k=5))
        made.append({
            "a": a, "b": b, "x": None if i % 7 == 0 else round(rng.gauss(5, 2) - 8 * (a == "no"), 3), "z": rng.gauss(0, 1),
            "n": rng.randint(0, 5), "note": f"{words} {i}", "y": "p" if (a == "yes") ^ (b == "red") else "q",
        })  # fmt: skip
    return made


@cache
def models():
    """Header and arrays of one model of every sort."""
    sorts = (
        {},
        {"plain": True, "ignore": ["note"], "smoothing": likely.MEstimate(2.0)},
        {"joint": [("x", "z", "a")], "families": {"n": "poisson"}},
        {"families": {"note": "text:bernoulli", "x": "gaussian:class"}, "class_prior": {"p": 0.25, "q": 0.75}},
        {"dependence": "tree", "average": False, "weights": "n"},
    )
    found = []
    for settings in sorts:
        model = likely.learn(table(), "y", **settings)
        names = ("missing", "weights", "declared", "average", "dependence")
        parts = to_file(model.tally, model.prior, {n: getattr(model, n) for n in names}, model.stages, model.calibration)
        found.append((json.dumps(parts[0]), {name: np.asarray(array) for name, array in parts[1].items()}))
    return found


def fuzz_model(rng):
    """A model file with a right checksum and wrong content."""
    path = _mutated("m.likely", models(), rng)
    _use_model(path, thoroughly=rng.random() < 0.2)


@cache
def networks():
    """Header and arrays of one network of every sort: counted, hidden node, numbers, given tables, intervention."""
    rows = [{k: v for k, v in row.items() if k not in ("note", "n")} for row in table()]
    complete = [row | {"x": row["x"] or 0.0} for row in rows]
    counted = likely.Network("y -> a, y -> b, a -> b, y -> x, x -> z, a -> z").fit(complete)
    made = (
        counted,
        likely.Network("y -> a, y -> b, y -> x, b -> x", smoothing={"a": likely.Dirichlet({"no": 1.0, "yes": 2.0})}).fit(rows),
        likely.Network("h -> a, h -> b, h -> y", hidden={"h": 2}).fit(rows, n_init=1),
        counted.do(a="yes"),
        likely.Network.from_tables("a -> y, b", {"a": ("no", "yes"), "b": (1, 2.5, "x"), "y": ("p", "q")},
                                   {"a": [0.5, 0.5], "b": [0.2, 0.3, 0.5], "y": [[0.1, 0.9], [1.0, 0.0]]}),
    )  # fmt: skip
    parts = [network_file.to_file(each) for each in made]
    return [(json.dumps(header), {name: np.asarray(array) for name, array in arrays.items()}) for header, arrays in parts]


def fuzz_network(rng):
    """A network file with a right checksum and wrong content."""
    path = _mutated("n.likely", networks(), rng)
    _use_network(path)


def _use_network(path):
    """Load, and if it loads, ask the network by elimination and in bulk: compiled loops run over what was loaded."""
    net = likely.load(path)
    if not isinstance(net, likely.Network):
        return
    known = {name: c.values[0] for name, c in net.columns.items() if c.values}
    for target in net.nodes:
        answer = net.query(target, dict(list(known.items())[:1]) if target not in list(known)[:1] else {})
        shares = list(answer.values()) if isinstance(answer, dict) else [answer.mean, *answer.weights]
        assert np.isfinite(shares).all(), (target, shares)
    row = {name: ROW[name] if name in ROW and c.kind == "number" else (c.values[0] if c.values else 1.0)
           for name, c in net.columns.items()}  # fmt: skip
    logs = net.log_likelihoods([row, dict.fromkeys(row)] if len(row) > 1 else [row])
    assert not np.isnan(logs).any(), logs
    net.sample(3)
    net.save(path)
    likely.load(path)
    if net.tally is not None:
        net.update([{name: value for name, value in row.items() if name not in net.hidden}])


def _mutated(name, whole, rng):
    """One of the files with some entries of its header or its arrays changed."""
    text, arrays = rng.choice(whole)
    header, arrays = json.loads(text), dict(arrays)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if rng.random() < 0.5:
            _mutate_json(header, rng)
        else:
            _mutate_array(arrays, rng)
    path = Folder.path / name
    path.write_bytes(sealed(header, arrays))
    return path


def sealed(header, arrays):
    """A file whose checksum is right, whatever else is wrong with it."""
    blobs = [np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")).tobytes() for a in arrays.values()]
    listed = {name: [a.dtype.newbyteorder("<").str, *a.shape] for name, a in arrays.items()}
    text = json.dumps({"arrays": listed, **header}).encode()
    version = model_file.VERSION
    digest = hashlib.sha256(model_file.MAGIC + struct.pack("<IQ", version, len(text)) + text + b"".join(blobs)).digest()
    return FIXED.pack(model_file.MAGIC, version, len(text), digest) + text + b"".join(blobs)


def _mutate_json(header, rng):
    places = []
    open_places = [header]
    while open_places:
        at = open_places.pop()
        for key in list(at) if isinstance(at, dict) else range(len(at)):
            places.append((at, key))
            if isinstance(at[key], dict | list):
                open_places.append(at[key])
    at, key = rng.choice(places)
    how = rng.randrange(5)
    if how == 0:
        del at[key]
    elif how == 1 and isinstance(at, list):
        at.append(at[key])
    elif how == 2:
        other, name = rng.choice(places)
        at[key] = json.loads(json.dumps(other[name])) if name in other or isinstance(other, list) else None
    else:
        at[key] = rng.choice(ODD_VALUES)


def _mutate_array(arrays, rng):
    name = rng.choice(sorted(arrays))
    array = arrays[name].copy()
    how = rng.randrange(8)
    if how == 0:
        del arrays[name]
        return
    if how == 1:
        arrays[name] = arrays[rng.choice(sorted(arrays))]
        return
    flat = array.reshape(-1)
    if how == 2 and flat.size:
        flat = flat[: rng.randrange(flat.size)]
        arrays[name] = flat
        return
    if how == 3:
        arrays[name] = np.append(flat, flat[:1])
        return
    if how == 4:
        arrays[name] = array[..., None] if rng.random() < 0.5 else array.reshape(1, -1)
        return
    if how == 5:
        arrays[name] = flat[::-1].reshape(array.shape).copy()
        return
    for _ in range(rng.randint(1, 3) if flat.size else 0):
        with np.errstate(all="ignore"):
            odd = rng.choice(ODD_NUMBERS)
            whole = np.array(odd).astype(np.int64).astype(array.dtype)
            flat[rng.randrange(flat.size)] = odd if array.dtype.kind == "f" else whole
    arrays[name] = array


def _use_model(path, thoroughly):
    """Load, and if it loads, use what runs compiled loops over what was loaded; fitting the second stages takes long."""
    model = likely.load(path)
    shares = model.posterior([ROW, {}], absent="missing").probabilities
    assert np.isfinite(shares).all(), shares
    model.explain(ROW, absent="missing").to_dict()
    again = model.update([ROW | {"y": "p"}] * 2)
    (again.recalibrate() if thoroughly else again).save(path)
    likely.load(path)


def _bytes(data, rng):
    """The same bytes with some of them changed, cut out, doubled or swapped for others that mean something."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(data)) if data else 0
        how = rng.randrange(5)
        if how == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del data[at : at + rng.choice((1, 2, 8, 64))]
        elif how == 2:
            data[at:at] = data[at : at + rng.choice((1, 3, 20))]
        elif how == 3:
            data[at:at] = rng.choice(ODD_BYTES)
        elif data:
            data[at] = rng.randrange(256)
    return bytes(data)


@cache
def _arrow_files():
    rows = pa.Table.from_pylist(table())
    coded = rows.set_column(0, "a", rows["a"].dictionary_encode()).set_column(6, "y", rows["y"].dictionary_encode())
    found = []
    for content in (rows, coded):
        file, stream, parquet = io.BytesIO(), io.BytesIO(), io.BytesIO()
        with pa.ipc.new_file(file, content.schema) as writer:
            writer.write_table(content)
        with pa.ipc.new_stream(stream, content.schema) as writer:
            writer.write_table(content)
        pa.parquet.write_table(content, parquet, compression="none" if content is coded else "snappy")
        found += [(".arrow", file.getvalue()), (".arrow", stream.getvalue()), (".parquet", parquet.getvalue())]
        for compression in ("uncompressed", "lz4"):
            feather = io.BytesIO()
            pa.feather.write_feather(content, feather, compression=compression)
            found.append((".feather", feather.getvalue()))
    return found


def fuzz_arrow(rng):
    """An Arrow or Feather file with changed bytes."""
    _fuzz_binary(rng, (".arrow", ".feather"))


def fuzz_parquet(rng):
    """A Parquet file with changed bytes."""
    _fuzz_binary(rng, (".parquet",))


def _fuzz_binary(rng, endings):
    """One flipped bit in every second file: anything more is mostly seen at once."""
    ending, data = rng.choice([found for found in _arrow_files() if found[0] in endings])
    if rng.random() < 0.5:
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        data = bytes(changed)
    else:
        data = _bytes(data, rng)
    _learn(_written(ending, data))


def fuzz_csv(rng):
    """A CSV or TSV file with changed bytes."""
    sign = rng.choice(",;\t")
    rows = table(12)
    lines = [sign.join(rows[0]), *(sign.join("" if v is None else str(v) for v in row.values()) for row in rows)]
    data = rng.choice(("\n", "\r\n")).join(lines).encode(rng.choice(("utf-8", "utf-8-sig", "utf-16", "latin-1")))
    _learn(_written(".tsv" if sign == "\t" else ".csv", _bytes(data, rng)))


def fuzz_json(rng):
    """A JSON or JSON lines file with changed bytes."""
    lines = [json.dumps(row, ensure_ascii=rng.random() < 0.5) for row in table(12)]
    ending, text = rng.choice(((".jsonl", "\n".join(lines)), (".json", f"[{','.join(lines)}]")))
    _learn(_written(ending, _bytes(text.encode(), rng)))


def _written(ending, data):
    path = Folder.path / f"data{ending}"
    path.write_bytes(data)
    return str(path)


def _learn(path):
    model = likely.learn(path, "y", on_bad_rows="skip")
    shares = model.posterior(path, absent="missing").probabilities
    assert np.isfinite(shares).all()


ALPHABETS = ("abc d", "aß éİıſ K ﬁ", "日本 語", "👩‍👩‍👧 a", "\u0301\u0301 x", "\x00\x1c\x85 z", "1_2 -'")


def fuzz_text(rng):
    """Documents of any characters: words are those that Python's own regular expressions find."""
    texts = ["".join(rng.choices(rng.choice(ALPHABETS), k=rng.choice((0, 1, 7, 60, 700)))) for _ in range(6)]
    labels = ["p", "q"] * 3
    kind = rng.choice(("auto", "multinomial", "bernoulli", "complement"))
    model = likely.TextNaiveBayes(kind=kind, ngrams=rng.choice(((1, 1), (1, 2)))).fit(texts, labels)
    assert np.isfinite(model.predict_proba(texts)).all()
    path = Folder.path / "t.likely"
    model.model_.save(path)
    words = likely.load(path).tally.statistics[0].vocabulary.words()
    if model.ngrams == (1, 1):
        assert set(words) == {word for text in texts for word in re.findall(r"(?u)\b\w\w+\b", text.lower())}


TARGETS = {
    "model": fuzz_model, "network": fuzz_network, "arrow": fuzz_arrow, "parquet": fuzz_parquet, "csv": fuzz_csv,
    "json": fuzz_json, "text": fuzz_text,
}  # fmt: skip


def once(target, seed):
    """One input of a target; a refusal is an answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TARGETS[target](random.Random(f"{target} {seed}"))
        except LikelyError:
            return False
    return True
