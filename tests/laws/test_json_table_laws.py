"""Tables in JSON: the kernel that scans large bodies reads what msgspec reads, and refuses what msgspec refuses."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from likely.kernels import json_cells

msgspec = pytest.importorskip("msgspec", reason="NOT TESTED: msgspec is not installed")

KINDS = (None, "number", "category", "text")
ODD = ["", "a", "b", "a:b", "Ünï", "\\", '"', "}", "]", ",", "null", "1", "é" * 9, "a\u2028b", "\U0001d11e", "\ud800", "\x00"]
TEXTS = st.sampled_from(ODD) | st.text()
WHOLE = st.integers(-(2**70), 2**70) | st.integers(-99, 99)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | WHOLE | st.integers(-(10**5), 10**5).map(lambda n: n / 1000)
CELLS = [WHOLE, NUMBERS, TEXTS, st.sampled_from(["u", "v"]), st.booleans(), st.none(), TEXTS | NUMBERS]
WRITERS = (
    lambda document: json.dumps(document).encode(),
    lambda document: json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"),
    lambda document: json.dumps(document, indent="\t").encode(),
)


def shown(table: Any, kinds: dict[str, str]) -> Any:
    """A table cell by cell, each with its type."""
    from likely.web._json_tables import as_arrow

    columns = table.columns
    if columns is None:  # one row: the decoder leaves it a row
        columns = {name: as_arrow([cell], kinds.get(name)) for name, cell in table.rows[0].items()}
    cells = {name: [repr(cell) for cell in (c if isinstance(c, list) else c.to_pylist())] for name, c in columns.items()}
    return table.many, table.by_row, cells


def agree(body: bytes, kinds: dict[str, str]) -> bool:
    """Check that both ways have one result; returns whether the kernel has read the body."""
    from likely.web._json_tables import JsonTable, decoded_table, scanned
    from likely.web._messages import HttpError, Request

    def read(how: Any, given: Any) -> Any:
        try:
            return how(given, kinds)
        except HttpError as fault:
            return fault.status, fault.message, fault.details

    ours = read(scanned, body)
    theirs = read(decoded_table, Request("POST", "/", {}, {"content-type": "application/json"}, body))
    if not isinstance(ours, JsonTable):
        assert ours is None or ours == theirs
        return False
    assert isinstance(theirs, JsonTable), theirs
    assert shown(ours, kinds) == shown(theirs, kinds)
    return True


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, dict[str, str]]:
    """A table as rows or columns, as one of several clients writes it, and what a model wants of its columns."""
    names = draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
    many = draw(st.integers(1, 6))
    columns = {}
    for name in names:
        kind = draw(st.sampled_from(CELLS))
        columns[name] = draw(st.lists(st.none() | kind if draw(st.booleans()) else kind, min_size=many, max_size=many))
    rows = [{name: cells[i] for name, cells in columns.items()} for i in range(many)]
    document: Any = {"columns": columns} if draw(st.booleans()) else {"rows": rows}
    kinds = {name: kind for name in names if (kind := draw(st.sampled_from(KINDS)))}
    return draw(st.sampled_from(WRITERS))(document), kinds


@settings(max_examples=100)
@given(bodies())
@example((b'{"rows":[{"a":1,"a":2},{"a":1,"a":2}]}', {"a": "number"}))
@example((b'{"rows":[{"a":-0,"b":-0.0},{"a":1e22,"b":123456789012345678.0}]}', {"a": "number", "b": "number"}))
@example((b'{"columns":{"a":["x","\\u0078","x"]}}', {"a": "category"}))
@example((b'{"columns":{"a":[1],"a":[2]}}', {"a": "number"}))
@example((b'{"columns":{"a":["\xff"]}}', {"a": "category"}))
@example((b'{"columns":{"a":[1e999]}}', {"a": "number"}))
@example((b'{"columns":{"a":[1e99999999999999999999]}}', {"a": "number"}))
@example((b'{"columns":{"a":[0.1e-99999999999999999999]}}', {"a": "number"}))
@example((b'{"columns":{"a":[01]}}', {"a": "number"}))
@example((b'{"rows":[{"a":01}]}', {"a": "number"}))
@example((b'{"rows":[{"a":1.}]}', {"a": "number"}))
@example((b'{"rows":[{"a":1e}]}', {"a": "number"}))
@example((b'{"rows":[{"a":-}]}', {"a": "number"}))
@example((b'{"rows":[{"a":nule}]}', {"a": "number"}))
@example((b'{"columns":{"a":["\\x"]}}', {"a": "category"}))
@example((b'{"columns":{"a":["\\"]}}', {"a": "category"}))
def test_the_kernel_reads_a_table_as_the_decoder_does_or_leaves_it(case: tuple[bytes, dict[str, str]]) -> None:
    agree(*case)


@settings(max_examples=100)
@given(bodies(), st.data())
def test_a_damaged_body_is_never_read_by_the_kernel_alone(case: tuple[bytes, dict[str, str]], data: st.DataObject) -> None:
    body, kinds = case
    at = data.draw(st.integers(0, len(body) - 1))
    other = data.draw(st.sampled_from([b"", b",", b'"', b"0", b"-", b".", b"e", b"\\", b"}", b"]", b"n", b"\xc3", b" ", b":"]))
    agree(body[:at] + other + body[at + data.draw(st.integers(0, 2)) :], kinds)


def test_ordinary_tables_are_read_by_the_kernel_in_both_forms() -> None:
    rng = np.random.default_rng(0)
    columns = {
        "whole": rng.integers(-9, 9, 300).tolist(), "float": rng.normal(size=300).tolist(), "ü": ["é", None, 'q"\\'] * 100,
        "number of text": ["1"] * 300, "nothing": [None] * 300, "code": rng.integers(0, 4, 300).tolist(),
    }  # fmt: skip
    kinds = {"whole": "number", "float": "number", "ü": "category", "number of text": "number", "nothing": "number"}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for write in WRITERS:
        assert agree(write({"columns": columns}), kinds | {"code": "category"})
        assert agree(write({"rows": rows}), kinds | {"code": "category"})


def test_columns_that_the_kernel_leaves_are_decoded_beside_those_it_reads() -> None:
    distinct = json_cells.DISTINCT + 1
    columns = {"id": [f"n{i}" for i in range(distinct)], "mixed": [1, "a", True] + [None] * (distinct - 3)}
    columns["x"] = list(range(distinct))
    assert agree(WRITERS[0]({"columns": columns}), {"id": "category", "mixed": "category", "x": "number"})
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert not agree(WRITERS[0]({"rows": rows}), {"id": "category"})


def test_texts_crafted_to_share_a_hash_are_left_to_the_decoder() -> None:
    """The hash of a text has no secret, so that the search among texts with one hash must have an end."""
    weights = [json_cells.FIRST_WEIGHT]
    while len(weights) < 7:
        weights.append(weights[-1] * json_cells.WEIGHT_FACTOR & 0x7FFFFFFF)
    numbers = np.arange(2_000_000)
    mixed = sum((numbers // 10**k % 10 + ord("0")) * weights[6 - k] for k in range(7))
    slots = (mixed ^ (mixed >> 17)) & (json_cells.SLOTS - 1)
    same = numbers[slots == np.bincount(slots).argmax()]
    assert len(same) > json_cells.PROBES
    for many, read in ((json_cells.PROBES, True), (len(same), False)):
        assert agree(WRITERS[0]({"rows": [{"a": f"{n:07d}"} for n in same[:many]]}), {"a": "category"}) is read
