"""Check of the arrays of a model file: types, shapes, ranges, orders, cross-references and limits.

Everything is checked before anything is built from it, so that no compiled loop ever sees an index out of range, a negative
count or an unsorted edge. `check_arrays` raises ValueError with the part at fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families import REGISTRY, Block
from likely.families.document_sample import LIMIT, ORDER
from likely.families.histogram import INFINITY, MOST, Histogram
from likely.families.statistics import LARGEST, Counts, EventCounts
from likely.kernels.keys import OPEN
from likely.kernels.parallel import cached_property
from likely.model.serialization._header import SHAPES
from likely.model.serialization.latent_part import check_latent_arrays
from likely.model.serialization.values import from_arrays, need
from likely.schema import CATEGORY, NUMBER, TEXT, Column

Array = NDArray[Any]
Arrays = Mapping[str, Array]

DOCUMENTS = ("keys", "labels", "weights", "indptr", "ids", "counts")
MOST_KNOTS = 1 << 12  # of a curve, in either direction: it has a few dozen


@dataclass(frozen=True)
class Layout:
    """The columns and blocks of a file, against which all other parts are checked."""

    classes: int
    kinds: Mapping[str, str]
    sizes: Mapping[str, int]  # how many values each column has
    blocks: tuple[Block, ...]
    statistics: tuple[str, ...]
    empty: dict[Any, Any] = field(default_factory=dict)  # what each kind of block counts before it has seen a row

    @cached_property
    def alone(self) -> dict[str, Block]:
        """The blocks of one column, by its name."""
        return {block.columns[0]: block for block in self.blocks if len(block.columns) == 1}


def check_arrays(header: Mapping[str, Any], arrays: Arrays) -> None:
    """Refuse arrays that do not fit a header, naming the part at fault."""
    groups = grouped(arrays)
    layout = _layout(header, groups)
    for i, column in enumerate([header["target"], *header["columns"]]):
        if isinstance(column["values"], int):
            _value_arrays(groups.pop(f"values{i}", {}), column["values"], f"the values of {column['name']!r:.60}")
    _class_counts(groups.pop("classes", {}), layout)
    for i, (block, statistic) in enumerate(zip(layout.blocks, layout.statistics, strict=True)):
        _statistic(block, statistic, groups.pop(str(i), {}), layout)
    for i in [i for i in range(len(layout.blocks)) if f"stage{i}" in groups]:
        need(layout.statistics[i] == "Words", f"stage{i}", "belongs to no column of text")
        _curve(groups.pop(f"stage{i}"), len(arrays[f"{i}.offsets"]) - 1, layout.classes)
    if "sample" in header:
        _sample(header["sample"], groups.pop("sample", {}), layout)
    if "calibration" in header:
        _calibration(header["calibration"], groups.pop("calibration", {}), layout)
    if "latent" in header:
        check_latent_arrays(header["latent"], groups.pop("latent", {}), layout.classes)
    need(not groups, "arrays", f"of {sorted(groups)[:3]} belong to no part of a model")


def grouped(arrays: Arrays) -> dict[str, dict[str, Array]]:
    """The arrays of each part; an array's name begins with the part and a dot."""
    groups: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        owner, _, part = name.partition(".")
        groups.setdefault(owner, {})[part] = array
    return groups


def _layout(header: Mapping[str, Any], groups: Mapping[str, Arrays]) -> Layout:
    """The columns and the blocks, which must be those columns once each."""
    columns = [header["target"], *header["columns"]]
    named = Counter(column["name"] for column in columns)
    need(max(named.values()) == 1, "columns", "have a name twice")
    need(header["target"]["kind"] == CATEGORY, "target", "has no classes")
    sizes = {c["name"]: v if isinstance(v := c["values"], int) else len(v) for c in columns}
    kinds = {c["name"]: c["kind"] for c in header["columns"]}
    blocks = tuple(Block(REGISTRY[b["family"]](**b["settings"]), tuple(b["columns"])) for b in header["blocks"])
    inside = Counter(name for block in blocks for name in block.columns)
    need(inside == Counter(list(kinds)), "blocks", "are not of the columns, each once")
    need(len({block.name for block in blocks}) == len(blocks), "blocks", "have a name twice")
    need("classes" in groups, "arrays", "have no class counts")
    unknown = header["prior"]["columns"].keys() - {name for b in blocks for name in (b.name, b.columns[0])}
    need(not unknown, "prior", f"is of {sorted(unknown)[:1]!r:.60}, which is no column")
    statistics = tuple(b["statistic"] for b in header["blocks"])
    return Layout(sizes[header["target"]["name"]], kinds, sizes, blocks, statistics)


def _array(
    arrays: Arrays, name: str, where: str, kind: str, shape: tuple[int, ...] | None = None, *, axes: int = 1
) -> Array:
    """One array of a part, of the required type and shape (or number of axes)."""
    found = arrays.get(name)
    if found is None:
        raise ValueError(f"{where} has no array {name!r}")
    if found.dtype.kind != kind:
        raise ValueError(f"{where}.{name} holds {found.dtype} numbers")
    if found.shape != shape if shape is not None else found.ndim != axes:
        raise ValueError(f"{where}.{name} has the shape {found.shape}, not {shape or f'{axes} axes'}")
    return found


def _only(arrays: Arrays, names: Any, where: str) -> None:
    odd = sorted(arrays.keys() ^ set(names))
    need(not odd, where, f"lacks an array, or has one too many: {odd[:3]}")


def _never_negative(x: Array, where: str) -> None:
    need(x.size == 0 or bool(x.min() >= 0), where, "holds a number below zero")


def _within(x: Array, low: int, high: int, where: str) -> None:
    need(bool(((x >= low) & (x < high)).all()), where, f"holds a number outside {low} to {high - 1}")


def _rising(x: Array, where: str, *, strictly: bool = True) -> None:
    """Check that numbers are in order; they are compared, not subtracted, as a difference may overflow."""
    need(bool((x[1:] > x[:-1] if strictly else x[1:] >= x[:-1]).all()), where, "is not in order")


def _value_arrays(arrays: Arrays, count: int, where: str) -> None:
    """Many texts, as bytes and the offset of each."""
    _only(arrays, ("bytes", "offsets"), where)
    buffer, offsets = _array(arrays, "bytes", where, "u"), _array(arrays, "offsets", where, "i", (count + 1,))
    need(bool(offsets[0] == 0 and offsets[-1] == len(buffer)), where, "do not fill their bytes")
    _rising(offsets, where, strictly=False)
    check_utf8(buffer, offsets, where)
    need(len(set(from_arrays(arrays))) == count, where, "have a value twice")


def _class_counts(arrays: Arrays, layout: Layout) -> None:
    _only(arrays, [""], "classes")
    _never_negative(_array(arrays, "", "classes", "f", (layout.classes,)), "classes")


def _statistic(block: Block, statistic: str, arrays: Arrays, layout: Layout) -> None:
    where = f"the counts of {block.name!r:.60}"
    if statistic == "Words":
        _words(block, arrays, layout, where)
        return
    domains = tuple(layout.sizes[name] for name in block.columns if layout.kinds[name] == CATEGORY)
    if statistic == "Histogram":
        need(isinstance(_empty(block, layout), Histogram) and layout.kinds[block.columns[0]] == NUMBER, where, "fit no bins")
        _histogram(arrays, layout, where)
        return
    _only(arrays, SHAPES[statistic], where)
    first = arrays[SHAPES[statistic][0]]
    # Looked at first: a table that is made to compare with is never larger than the file.
    need(first.shape[: 1 + len(domains)] == (layout.classes, *domains), where, f"have the shape {first.shape}")
    expected = _empty(block, layout)
    if statistic == "Counts" and isinstance(expected, EventCounts):  # of an older version
        expected = Counts(expected.seen)
    need(type(expected).__name__ == statistic, where, f"are {statistic}, which {block.family.name} does not count")
    for name, array in expected.arrays().items():
        found = _array(arrays, name, where, "f", array.shape)
        if name == "mean":
            need(bool((np.abs(found) <= LARGEST).all()), where, "have a mean that is too large")
        elif name == "ways":
            need(bool(np.isfinite(found).all()), where, "have a coefficient that is not finite")
        else:
            _never_negative(np.einsum("...ii->...i", found) if name == "scatter" else found, where)


def _empty(block: Block, layout: Layout) -> Any:
    """The empty statistic of a block: made once for all columns of one family and size."""
    key = (block.family, tuple((layout.kinds[name], layout.sizes[name]) for name in block.columns))
    if key not in layout.empty:
        columns = [Column(str(i), kind, tuple(range(size))) for i, (kind, size) in enumerate(key[1])]
        layout.empty[key] = block.nothing(columns, layout.classes)
    return layout.empty[key]


def _histogram(arrays: Arrays, layout: Layout, where: str) -> None:
    _only(arrays, ("seen", "keys", "level"), where)
    keys = _array(arrays, "keys", where, "i")
    level = int(_array(arrays, "level", where, "i", (1,))[0])
    _never_negative(_array(arrays, "seen", where, "f", (layout.classes, len(keys))), where)
    need(len(keys) <= MOST and 0 <= level < 64, where, "have too many cells, or an odd level")
    _rising(keys, where)
    _within(keys, -INFINITY >> level, (INFINITY >> level) + 1, where)


def _words(block: Block, arrays: Arrays, layout: Layout, where: str) -> None:
    need(block.family.column_kind == TEXT and layout.kinds[block.columns[0]] == TEXT, where, "fit no text")
    buffer, offsets = _array(arrays, "buffer", where, "u"), _array(arrays, "offsets", where, "i")
    filled = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(buffer)
    need(bool(filled), where, "have words that do not fill their bytes")
    _rising(offsets, where)
    check_utf8(buffer, offsets, where)
    words, k = len(offsets) - 1, layout.classes
    table = _array(arrays, "table", where, "f", axes=2)
    parts = getattr(block.family, "_parts", 1)
    need(table.shape == (words, k * parts), where, f"have the shape {table.shape} for {words} words")
    for x in (table, _array(arrays, "documents", where, "f", (k,))):
        _never_negative(x, where)
    own = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith("sample.")}
    _only(arrays, ["buffer", "offsets", "table", "documents", *(f"sample.{name}" for name in own)], where)
    if own:
        _documents(own, words, k, f"the sample of {block.name!r:.60}")


def check_utf8(buffer: Array, offsets: Array, where: str) -> None:
    """Every text is UTF-8 by itself."""
    try:
        bytes(buffer).decode()
    except UnicodeDecodeError as error:
        need(False, where, f"hold text that is not UTF-8: {error.reason}")
    starts = offsets[:-1][offsets[:-1] < len(buffer)]
    need(not bool(((buffer[starts] & 0xC0) == 0x80).any()), where, "have a text that begins within a character")


def _documents(arrays: Arrays, words: int, classes: int, where: str) -> None:
    order = [name for name in ORDER if name in arrays]
    limit = [LIMIT] if LIMIT in arrays else []  # files of older versions have none
    _only(arrays, (*DOCUMENTS, *order, *limit), where)
    keys = _array(arrays, "keys", where, "i")
    for name in limit:
        _within(keys, 0, int(_array(arrays, name, where, "i", (1,))[0]), where)
    _within(_array(arrays, "labels", where, "i", keys.shape), 0, classes, where)
    weights = _array(arrays, "weights", where, "f", keys.shape)
    need(bool((weights > 0).all()), where, "has a document without weight")
    indptr, ids = _array(arrays, "indptr", where, "i", (len(keys) + 1,)), _array(arrays, "ids", where, "i")
    need(bool(indptr[0] == 0 and indptr[-1] == len(ids)), where, "has documents that do not fill it")
    _rising(indptr, where, strictly=False)
    _within(ids, 0, words, where)
    need(bool((_array(arrays, "counts", where, "i", ids.shape) > 0).all()), where, "has a word that occurs no time")
    if order:
        ends, words_in_order = _array(arrays, "order_ends", where, "i", indptr.shape), _array(arrays, "order", where, "i")
        need(bool(ends[0] == 0 and ends[-1] == len(words_in_order)), where, "has an order that does not fill it")
        _rising(ends, where, strictly=False)
        _within(words_in_order, -1, words, where)


def _pairs(arrays: Arrays, classes: int) -> None:
    where = "pairs of words"
    buffer, offsets = _array(arrays, "pair_buffer", where, "u"), _array(arrays, "pair_offsets", where, "i")
    filled = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(buffer)
    need(bool(filled), where, "do not fill their bytes")
    _rising(offsets, where)
    check_utf8(buffer, offsets, where)
    _never_negative(_array(arrays, "pair_table", where, "f", (len(offsets) - 1, 2 * classes)), where)
    _array(arrays, "pair_surprise", where, "f", (len(offsets) - 1, classes))


def _curve(arrays: Arrays, words: int, classes: int) -> None:
    where = "the text calibration"
    more = ["copies"] if "copies" in arrays else []
    scaled = ["saturation"] if "saturation" in arrays else []
    pairs = [name for name in ("pair_buffer", "pair_offsets", "pair_table", "pair_surprise") if name in arrays]
    _only(arrays, ("heights", "bias", "steps", "surprise", "scalars", *more, *scaled, *pairs), where)
    if pairs:
        _pairs(arrays, classes)
    for name in more:
        copies = _array(arrays, name, where, "f", (classes,))
        need(bool((copies > 0).all()), where, "has documents that were counted no time")
    for name in scaled:
        gain, rate, power = _array(arrays, name, where, "f", (3,)).tolist()
        need(gain > 0 and rate >= 0 and 0 <= power <= 1, where, "has a saturation out of range")
    heights = _array(arrays, "heights", where, "f", axes=2)
    need(all(2 <= n <= MOST_KNOTS for n in heights.shape), where, f"has the shape {heights.shape}")
    _array(arrays, "steps", where, "f", heights.shape[:1])
    _array(arrays, "bias", where, "f", (classes,))
    _array(arrays, "surprise", where, "f", (words, classes))
    exponent, _, documents = _array(arrays, "scalars", where, "f", (3,)).tolist()
    need(0 <= exponent <= 1 and documents >= 0, where, "has an exponent outside 0 to 1, or a negative count")


def _sample(written: Mapping[str, Any], arrays: Arrays, layout: Layout) -> None:
    where, names = "the row sample", written["columns"]
    expected = sorted(name for name, kind in layout.kinds.items() if kind in (CATEGORY, NUMBER))
    need(sorted(names) == expected, where, "is not of the columns")
    parts = [part for i in range(len(names)) for part in (str(i), f"gaps{i}")]
    _only(arrays, ["keys", "labels", "weights", *parts], where)
    keys = _array(arrays, "keys", where, "i")
    _rising(keys, where, strictly=False)
    need(0 < written["limit"] <= OPEN, where, "has a limit out of range")
    _within(keys, 0, written["limit"], where)
    _within(_array(arrays, "labels", where, "i", keys.shape), 0, layout.classes, where)
    need(bool((_array(arrays, "weights", where, "f", keys.shape) > 0).all()), where, "has a row without weight")
    for i, name in enumerate(names):
        gaps, numbers = _array(arrays, f"gaps{i}", where, "i"), layout.kinds[name] == NUMBER
        found = _array(arrays, str(i), where, "f" if numbers else "i", keys.shape)
        _rising(gaps, where)
        _within(gaps, 0, len(keys) if numbers else 0, where)
        if not numbers:
            _within(found, -1, layout.sizes[name], where)


def _calibration(written: Mapping[str, Any], arrays: Arrays, layout: Layout) -> None:
    where, k = "the calibration", layout.classes
    names = {block.name for block in layout.blocks}
    for part in ("weights", "absent", "gains"):
        need(written[part].keys() <= names, f"{where}.{part}", "names a column that is not there")
    need(all(w >= 0 for part in ("weights", "absent") for w in written[part].values()), where, "has a weight below zero")
    need(written["counted"] >= 0, where, "has counts below zero")
    _array(arrays, "bias", where, "f", (k,))
    for i in range(len(written["absent"])):
        _array(arrays, f"absent{i}", where, "f", (2, k))
    codes = _codes(written, arrays, layout, where)
    wanted = ["bias", *(f"absent{i}" for i in range(len(written["absent"])))]
    if "copies" in arrays:
        need(bool((_array(arrays, "copies", where, "f", (k,)) > 0).all()), where, "has rows that were counted no time")
        wanted.append("copies")
    wanted += [f"edges{i}" for i in range(len(written["edges"]))]
    if isinstance(written["values"], list):
        wanted += [f"values{i}" for i in range(len(written["values"]))]
    for i, name in enumerate(written.get("directions", ())):
        need(name in codes, where, f"has a direction of {name!r:.40}, which has neither bins nor values")
        _array(arrays, f"direction{i}", where, "f", (codes[name], k))
        wanted.append(f"direction{i}")
    if "joint" in written:
        wanted += _joint(written["joint"], arrays, codes, layout)
    for i, each_one in enumerate(written["interactions"]):
        wanted += _table(i, each_one["columns"], arrays, codes, k)
    _only(arrays, wanted, where)


def _joint(written: Mapping[str, Any], arrays: Arrays, codes: Mapping[str, int], layout: Layout) -> list[str]:
    """The joint Gaussians of all numbers: the numbers that represent the bins, and mean and inverse root of every component."""
    where, names = "the joint Gaussian", written["columns"]
    held = _components(arrays, where, layout.classes)
    k = len(arrays["joint_owner"]) if held else layout.classes
    need(written["weight"] >= 0, where, "has a weight below zero")
    need(len(set(names)) == len(names), where, "has a column twice")
    for i, name in enumerate(names):
        need(name in codes and layout.kinds.get(name) != CATEGORY, where, f"is of {name!r:.40}, which has no bins")
        _array(arrays, f"joint{i}", where, "f", (codes[name],))
    _array(arrays, "joint_mean", where, "f", (k, len(names)))
    root = _array(arrays, "joint_root", where, "f", (k, len(names), len(names)))
    need(bool((np.diagonal(root, axis1=1, axis2=2) > 0).all()), where, "has a root whose diagonal is not positive")
    return ["joint_mean", "joint_root", *(f"joint{i}" for i in range(len(names))), *held]


def _components(arrays: Arrays, where: str, classes: int) -> list[str]:
    """The class of every component and its share there, where classes have several; each has at least one."""
    if "joint_owner" not in arrays:
        return []
    owner = _array(arrays, "joint_owner", where, "i")
    known = np.array_equal(np.unique(owner), np.arange(classes)) and bool((np.diff(owner) >= 0).all())
    need(len(owner) < MOST and known, where, "has a class without components, or components without a class")
    share = _array(arrays, "joint_share", where, "f", (len(owner),))
    total = np.bincount(owner, np.exp(np.minimum(share, 1.0)))
    need(bool((np.abs(total - 1.0) < 1e-6).all()), where, "has a class whose components do not sum to 1")
    return ["joint_owner", "joint_share"]


def _codes(written: Mapping[str, Any], arrays: Arrays, layout: Layout, where: str) -> dict[str, int]:
    """How many bins or values each column had when the calibration was fitted."""
    found = {}
    for i, name in enumerate(written["edges"]):
        edges = _array(arrays, f"edges{i}", where, "f")
        _rising(edges, f"{where}.edges{i}")
        binned = name in layout.alone and isinstance(_empty(layout.alone[name], layout), Histogram)
        need(binned, where, f"has edges of {name!r:.40}")
        need(len(edges) < MOST, where, "has too many edges")
        found[name] = len(edges) + 1
    for i, name in enumerate(written["values"]):
        need(layout.kinds.get(name) == CATEGORY, where, f"has values of {name!r:.40}, which has no categories")
        if isinstance(written["values"], list):
            places = _array(arrays, f"values{i}", where, "i")
            _within(places, -1, layout.sizes[name], where)
            known = places[places >= 0]
            need(len(np.unique(known)) == len(known), where, f"has a value of {name!r:.40} twice")
        found[name] = len(places) if isinstance(written["values"], list) else len(written["values"][name])
    return found


def _table(i: int, columns: list[str], arrays: Arrays, codes: Mapping[str, int], classes: int) -> list[str]:
    """One interaction: a group for every code and for a missing cell, and a cell for every combination of groups."""
    where, cells = f"interaction {i}", 1
    for j, name in enumerate(columns):
        need(name in codes, where, f"is of {name!r:.40}, which has neither bins nor values")
        groups = _array(arrays, f"groups{i}.{j}", where, "i", (codes[name] + 1,))
        _within(groups, 0, int(groups[-1]) + 1, where)
        cells *= int(groups[-1]) + 1
    _array(arrays, f"table{i}", where, "f", (cells, classes))
    return [f"table{i}", *(f"groups{i}.{j}" for j in range(len(columns)))]
