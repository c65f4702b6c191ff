"""Tables in JSON bodies: rows as objects or one list a column, read as columns.

A large body is scanned by a kernel, which makes columns of it without an object for each cell. What the kernel does not read
is decoded by msgspec, which is also what refuses a body, so that both ways accept the same and give the same messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from likely.kernels import json_cells
from likely.kernels.parallel import in_parallel
from likely.schema import CATEGORY, NUMBER
from likely.web._messages import HttpError, Request, check_json, decoded, refuse_duplicates

Cell = str | int | float | bool | None
Row = dict[str, Cell]
Bytes = NDArray[np.uint8]
MOST_ROWS = 500_000
SCANNED = 1 << 16  # bytes of a body from which it is scanned: below it, compiled code gains nothing
WIDEST = 1_000  # columns of rows that are scanned: each has a table of its distinct texts
CHUNK = 256  # rows that stay in the cache while they are turned into columns
ROWS_BEGIN = re.compile(rb'[ \t\r\n]*\{[ \t\r\n]*"rows"[ \t\r\n]*:[ \t\r\n]*\[')
ROWS_END = re.compile(rb"[ \t\r\n]*\}[ \t\r\n]*")


class TableBody(msgspec.Struct, forbid_unknown_fields=True):
    """Rows as objects, or as one list a column."""

    rows: list[Row] | None = None
    columns: dict[str, list[Cell]] | None = None


class RawColumns(msgspec.Struct, forbid_unknown_fields=True):
    """Columns whose cells are not decoded yet."""

    columns: dict[str, msgspec.Raw]


TABLE, RAW = msgspec.json.Decoder(TableBody), msgspec.json.Decoder(RawColumns)
CELLS, TEXTS, ROW = msgspec.json.Decoder(list[Cell]), msgspec.json.Decoder(list[str]), msgspec.json.Decoder(Row)


class JsonTable(NamedTuple):
    """A table that was sent: columns as lists or Arrow arrays; rows only where these have different keys, or there is one."""

    many: int
    by_row: bool  # whether rows were sent, so that rows are answered
    columns: Mapping[str, Any] | None
    rows: Sequence[Row] = ()


@dataclass(frozen=True)
class _Scanned:
    """One column as the kernel leaves it: numbers or codes, their kind, and the distinct texts."""

    cells: NDArray[np.float64]
    kind: int
    texts: list[str]

    def column(self, wanted: str | None) -> Any:
        """As Arrow array or list, for a column of the model of this kind; None if the decoder must make it."""
        import pyarrow as pa

        if wanted == NUMBER and self.kind != json_cells.TEXT:
            return pa.array(self.cells, from_pandas=True)
        if self.kind == json_cells.FRACTION:
            return None
        codes = np.nan_to_num(self.cells, nan=-1)
        if wanted == CATEGORY and self.kind == json_cells.TEXT:
            return pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(self.texts, pa.string()), from_pandas=True)
        if self.kind == json_cells.TEXT:
            texts = [*self.texts, None]
            return [texts[code] for code in codes.astype(np.int64).tolist()]
        return [None if cell != cell else int(cell) for cell in self.cells.tolist()]  # noqa: PLR0124 - NaN


def read_table(request: Request, kinds: Mapping[str, str]) -> JsonTable:
    """The table in the body of a request.

    Parameters
    ----------
    request : Request
        The request; its body is `{"rows": [{column: value}]}` or `{"columns": {column: [value]}}`.
    kinds : mapping
        Column of the model → its kind: what the cells are turned into.
    """
    check_json(request)
    return (scanned(request.body, kinds) if len(request.body) >= SCANNED else None) or decoded_table(request, kinds)


def scanned(body: bytes, kinds: Mapping[str, str]) -> JsonTable | None:
    """The table in a body, read by the kernel; None if the decoder must read, or refuse, it."""
    return _scan_rows(body, kinds) or _scan_columns(body, kinds)


def decoded_table(request: Request, kinds: Mapping[str, str]) -> JsonTable:
    """The table in the body of a request, read by msgspec."""
    table: TableBody = decoded(request, TABLE.decode)
    if (table.rows is None) == (table.columns is None):
        raise HttpError(422, 'send {"rows": [{column: value}, …]} or {"columns": {column: [value, …]}}')
    if table.rows is not None:
        check_keys(request.body, table.rows, 1)
        _check_many(len(table.rows))
        one = len(table.rows) == 1
        return JsonTable(len(table.rows), True, None if one else _as_columns(table.rows, kinds), table.rows)
    assert table.columns is not None
    if request.body.count(b":") != 1 + len(table.columns):
        _check_columns(request.body, table.columns)
    many = _length(table.columns)
    return JsonTable(many, False, {name: as_arrow(cells, kinds.get(name)) for name, cells in table.columns.items()})


# -------------------------------------------------------------- scanned by the kernel


def _scan_rows(body: bytes, kinds: Mapping[str, str]) -> JsonTable | None:
    """Rows that all have the keys of the first one, in its order; None if the decoder must read them."""
    begin = ROWS_BEGIN.match(body)
    if begin is None:
        return None
    first = body[begin.end() : body.find(b"}", begin.end()) + 1]
    try:
        names = list(ROW.decode(first))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if not 0 < len(names) <= WIDEST:
        return None
    keys = [_literal(name, first) for name in names]
    shortest = 2 + sum(len(key) + 3 for key in keys)
    found = _scan(np.frombuffer(body, np.uint8), begin.end(), keys, len(body) // shortest + 1)
    if found is None or ROWS_END.fullmatch(body, found[1]) is None:
        return None
    made = {name: each.column(kinds.get(name)) for name, each in zip(names, found[0], strict=True)}
    if any(column is None for column in made.values()):
        return None
    columns = {name: as_arrow(column, kinds.get(name)) for name, column in made.items()}
    return JsonTable(len(found[0][0].cells), True, columns)


def _literal(name: str, first: bytes) -> bytes:
    """A key as this client writes it: characters beyond ASCII as they are, or escaped."""
    import json

    written = msgspec.json.encode(name)
    return written if written in first else json.dumps(name).encode()


def _scan_columns(body: bytes, kinds: Mapping[str, str]) -> JsonTable | None:
    """Columns; None if the decoder must read, or refuse, the body."""
    try:
        raw: dict[str, msgspec.Raw] = RAW.decode(body).columns
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if body.count(b":") != 1 + len(raw) and body.count(b":") != sum(_colons(*pair) for pair in raw.items()) + 1 + len(raw):
        refuse_duplicates(body)

    def read(name: str) -> Any:
        found = _scan_cells(raw[name])
        column = None if found is None else found.column(kinds.get(name))
        return column if column is not None else CELLS.decode(raw[name])

    try:
        columns = dict(zip(raw, in_parallel(read, list(raw)), strict=True))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    many = _length(columns)
    return JsonTable(many, False, {name: as_arrow(cells, kinds.get(name)) for name, cells in columns.items()})


def _colons(name: str, cells: msgspec.Raw) -> int:
    return name.count(":") + bytes(cells).count(b":")


def _scan_cells(raw: msgspec.Raw) -> _Scanned | None:
    data = np.frombuffer(raw, np.uint8)
    if data[0] != ord("["):
        return None
    found = _scan(data, 1, [], len(data) // 2)
    return None if found is None or found[1] != len(data) else found[0][0]


def _scan(data: Bytes, at: int, keys: list[bytes], most: int) -> tuple[list[_Scanned], int] | None:
    """The columns of an array of objects with these keys, or of cells, and the place behind it; None if it is not simple."""
    wide, most = max(1, len(keys)), min(most, MOST_ROWS)
    ends = np.cumsum([0, *map(len, keys)])
    cells, kinds = np.empty((wide, most)), np.zeros(wide, np.int64)
    slots, recent = (np.full((wide, size), -1, np.int16) for size in (json_cells.SLOTS, json_cells.RECENT))
    texts, known = np.empty((wide, json_cells.DISTINCT, 2), np.int64), np.zeros(wide, np.int64)
    long = _LongNumbers(len(data))
    literal = np.frombuffer(b"".join(keys) or b" ", np.uint8)
    rows, at, longs = json_cells.scan_cells.fast(
        data, at, literal, ends, cells, kinds, slots, recent, texts, known, long.text, long.ends, long.cells
    )
    if not rows or not long.put(longs, cells):
        return None
    try:
        named = [_distinct(data, places[:n]) for places, n in zip(texts, known, strict=True)]
    except (msgspec.MsgspecError, ValueError):
        return None
    if any(len(set(each)) < len(each) for each in named):  # one text, written in two ways
        return None
    return [_Scanned(cells[j, :rows], int(kinds[j]), named[j]) for j in range(wide)], at


def _distinct(data: Bytes, places: NDArray[np.int64]) -> list[str]:
    """Texts at these places, as JSON means them; a fault is the decoder's."""
    return TEXTS.decode(b"[" + b",".join(b'"%b"' % data[a:b].tobytes() for a, b in places.tolist()) + b"]")


class _LongNumbers:
    """Numbers of more digits than the kernel converts exactly, one after the other."""

    def __init__(self, size: int) -> None:
        most = size // 3 + 1  # the shortest is 9e9, and a comma follows
        self.text, self.ends, self.cells = np.empty(size, np.uint8), np.zeros(most + 1, np.int32), np.empty(most, np.int64)

    def put(self, many: int, cells: NDArray[np.float64]) -> bool:
        """Convert them, correctly rounded, and put them into their cells; False if one is beyond the range of float64."""
        if not many:
            return True
        import pyarrow as pa

        texts = pa.StringArray.from_buffers(many, pa.py_buffer(self.ends), pa.py_buffer(self.text))
        values = texts.cast(pa.float64()).to_numpy()
        cells.reshape(-1)[self.cells[:many]] = values
        return bool(np.isfinite(values).all())


# -------------------------------------------------------------- decoded by msgspec


def _check_many(many: int) -> None:
    if not many:
        raise HttpError(422, "there are no rows")
    if many > MOST_ROWS:
        raise HttpError(413, f"{many:,} rows are too many for one request: send at most {MOST_ROWS:,}")


def _length(columns: Mapping[str, Any]) -> int:
    """Number of rows of some columns; refused if they differ."""
    sizes = {len(cells) for cells in columns.values()}
    if len(sizes) > 1:
        raise HttpError(422, "the columns have different lengths", lengths={k: len(v) for k, v in columns.items()})
    many = max(sizes, default=0)
    _check_many(many)
    return many


def check_keys(body: bytes, rows: Sequence[Row], outer: int) -> None:
    """Refuse a key that occurs twice in an object: there are as many colons as keys, but for those inside of texts."""
    keys = outer + sum(map(len, rows))
    if body.count(b":") != keys:
        texts = (text for row in rows for pair in row.items() for text in pair if type(text) is str)
        if body.count(b":") != keys + sum(text.count(":") for text in texts):
            refuse_duplicates(body)


def _check_columns(body: bytes, columns: dict[str, list[Cell]]) -> None:
    texts = (text for name, cells in columns.items() for text in (name, *cells) if type(text) is str)
    if body.count(b":") != 1 + len(columns) + sum(text.count(":") for text in texts):
        refuse_duplicates(body)


def _as_columns(rows: list[Row], kinds: Mapping[str, str]) -> dict[str, Any] | None:
    """Rows as columns, where all rows have the same keys; None otherwise."""
    first = rows[0]
    made: dict[str, list[Cell]] = {name: [] for name in first}
    for some in _chunks(rows):
        if any(len(row) != len(first) for row in some):
            return None
        try:
            for name, cells in made.items():
                cells += [row[name] for row in some]
        except KeyError:
            return None
    return {name: as_arrow(cells, kinds.get(name)) for name, cells in made.items()}


def _chunks(rows: list[Row]) -> Iterator[list[Row]]:
    return (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))


def as_arrow(cells: Any, wanted: str | None) -> Any:
    """A column as Arrow array of the type that the model reads; what is of another type stays a list, to be read as usual."""
    if wanted is None or not isinstance(cells, list):
        return cells
    import pyarrow as pa

    try:
        return pa.array(cells, pa.float64() if wanted == NUMBER else pa.string())
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return cells
