"""Routes of one model: describe, predict, explain, update, forget."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from likely.errors import DataError
from likely.schema import CATEGORY, NUMBER
from likely.web.messages import HttpError, Request, Response, answer, decoded, plain, refuse_duplicates
from likely.web.served_model import ModelState

Cell = str | int | float | bool | None
Row = dict[str, Cell]
MOST_ROWS = 500_000
MOST_EXPLAINED = 100
MOST_LEARNED = 10_000
CHUNK = 256  # rows that stay in the cache while they are turned into columns


class TableBody(msgspec.Struct, forbid_unknown_fields=True):
    """Rows as objects, or as one list a column."""

    rows: list[Row] | None = None
    columns: dict[str, list[Cell]] | None = None


class RowsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to explain."""

    rows: list[Row]


class Update(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to learn or forget, with the target; `id` makes a repeated request harmless."""

    rows: list[Row]
    id: str | None = None


TABLE, ROWS, UPDATE = (msgspec.json.Decoder(kind) for kind in (TableBody, RowsBody, Update))


def read_table(request: Request) -> TableBody:
    """The body of /predict."""
    table: TableBody = decoded(request, TABLE.decode)
    if (table.rows is None) == (table.columns is None):
        raise HttpError(422, 'send {"rows": [{column: value}, …]} or {"columns": {column: [value, …]}}')
    if table.rows is not None:
        _check_keys(request.body, table.rows, 1)
        many = len(table.rows)
    else:
        assert table.columns is not None
        if request.body.count(b":") != 1 + len(table.columns):
            _check_columns(request.body, table.columns)
        sizes = {len(cells) for cells in table.columns.values()}
        if len(sizes) > 1:
            raise HttpError(422, "the columns have different lengths", lengths={k: len(v) for k, v in table.columns.items()})
        many = max(sizes, default=0)
    if not many:
        raise HttpError(422, "there are no rows")
    if many > MOST_ROWS:
        raise HttpError(413, f"{many:,} rows are too many for one request: send at most {MOST_ROWS:,}")
    return table


def _check_keys(body: bytes, rows: Sequence[Row], outer: int) -> None:
    """Refuse a key that is twice in an object: there are as many colons as keys, but for those inside of texts."""
    keys = outer + sum(map(len, rows))
    if body.count(b":") != keys:
        texts = (text for row in rows for pair in row.items() for text in pair if type(text) is str)
        if body.count(b":") != keys + sum(text.count(":") for text in texts):
            refuse_duplicates(body)


def _check_columns(body: bytes, columns: dict[str, list[Cell]]) -> None:
    texts = (text for name, cells in columns.items() for text in (name, *cells) if type(text) is str)
    if body.count(b":") != 1 + len(columns) + sum(text.count(":") for text in texts):
        refuse_duplicates(body)


def predict_row(state: ModelState, row: Row) -> Response:
    """The prediction for one row: microseconds, so that it is made where it arrives."""
    best, shares = state.predictor.decide_one(row)
    prediction = {"label": state.labels[best], "probabilities": dict(zip(state.keys, shares.tolist(), strict=True))}
    document: dict[str, Any] = {"model_version": state.version, "predictions": [prediction]}
    if unknown := [name for name in row if name not in state.columns]:
        document["unknown_columns"] = _without_target(state, unknown)
    return Response(200, msgspec.json.encode(document))


def predict_table(state: ModelState, table: TableBody) -> Response:
    """Predictions for many rows, in the form in which they came."""
    columns = table.columns if table.columns is not None else _as_columns(table.rows or [])
    data: Any = table.rows if columns is None else _as_arrow(state, columns)
    posterior = state.model.posterior(data, absent="missing")
    best = np.where(posterior.impossible, state.model.scorer.log_prior.argmax(), posterior.log_joint.argmax(1))
    labels = [state.labels[i] for i in best.tolist()]
    document: dict[str, Any] = {"model_version": state.version}
    if table.rows is not None:
        keys = state.keys
        rows = zip(labels, posterior.probabilities.tolist(), strict=True)
        document["predictions"] = [{"label": lab, "probabilities": dict(zip(keys, p, strict=True))} for lab, p in rows]
        names: Any = columns or dict.fromkeys(name for row in table.rows for name in row)
    else:
        shares = posterior.probabilities.T.tolist()
        document |= {"labels": labels, "probabilities": dict(zip(state.keys, shares, strict=True))}
        names = table.columns
    if unknown := [name for name in names if name not in state.columns]:
        document["unknown_columns"] = _without_target(state, unknown)
    return Response(200, msgspec.json.encode(document))


def _as_columns(rows: list[Row]) -> dict[str, list[Cell]] | None:
    """Rows as columns, where all rows have the same keys; None otherwise."""
    first = rows[0]
    made: dict[str, list[Cell]] = {name: [] for name in first}
    for start in range(0, len(rows), CHUNK):
        some = rows[start : start + CHUNK]
        if any(len(row) != len(first) for row in some):
            return None
        try:
            for name, cells in made.items():
                cells += [row[name] for row in some]
        except KeyError:
            return None
    return made


def _as_arrow(state: ModelState, columns: dict[str, list[Cell]]) -> dict[str, Any]:
    """Columns as Arrow arrays of the type that the model reads; what is of another type stays a list, to be read as usual."""
    import pyarrow as pa

    kinds = state.model.schema.by_name
    made: dict[str, Any] = {}
    for name, cells in columns.items():
        made[name] = cells
        if name in kinds:
            wanted = pa.float64() if kinds[name].kind == NUMBER else pa.string()
            with contextlib.suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
                made[name] = pa.array(cells, wanted)
    return made


def _without_target(state: ModelState, names: list[str]) -> list[str]:
    return [name for name in names if name != state.model.schema.target.name]


def explain(state: ModelState, request: Request) -> Response:
    """Prior, weights of evidence and posterior of some rows."""
    rows: list[Row] = decoded(request, ROWS.decode).rows
    _check_keys(request.body, rows, 1)
    if not 0 < len(rows) <= MOST_EXPLAINED:
        raise HttpError(422, f"send 1 to {MOST_EXPLAINED} rows to explain, not {len(rows):,}")
    made = []
    for number, row in enumerate(rows, 1):
        try:
            ledger = state.model.explain([row])
        except DataError as fault:
            fault.row = number
            raise
        made.append({**ledger.to_dict(), "probabilities": dict(zip(state.keys, ledger.probabilities, strict=True))})
    return answer({"model_version": state.version, "explanations": plain(made)})


def read_update(state: ModelState, request: Request) -> tuple[str, list[Row]]:
    """Identifier and rows of an update; the `Idempotency-Key` header may carry the identifier as well."""
    update: Update = decoded(request, UPDATE.decode)
    _check_keys(request.body, update.rows, 1 if update.id is None else 2 + update.id.count(":"))
    if not 0 < len(update.rows) <= MOST_LEARNED:
        raise HttpError(422, f"send 1 to {MOST_LEARNED:,} rows, not {len(update.rows):,}")
    target = state.model.schema.target.name
    for number, row in enumerate(update.rows, 1):
        if row.get(target) is None:
            raise HttpError(422, f"row {number} has no {target!r}: rows to learn from need it", row=number, column=target)
    identifier = update.id or request.headers.get("idempotency-key") or uuid.uuid4().hex
    if len(identifier) > 200:
        raise HttpError(422, "the id is longer than 200 characters")
    return identifier, update.rows


def describe(name: str, state: ModelState) -> dict[str, Any]:
    """A model for its page: target, classes, and each column with its kind, values or range."""
    model = state.model
    bins = {p.columns[0]: p.likelihood for p in model.block_parameters if len(p.columns) == 1}
    columns = []
    for column in model.schema.columns:
        entry: dict[str, Any] = {"name": column.name, "kind": column.kind, "reason": column.reason}
        if column.kind == CATEGORY:
            entry["values"] = plain(list(column.values[:1_000]))
            entry["derived_from"] = getattr(model.reading.parts.get(column.name), "origin", None)
        elif column.kind == NUMBER:
            entry |= _range(bins.get(column.name))
        columns.append(entry | _typical(model, column))
    order = np.argsort(-model.class_prior) if len(model.classes) > 50 else range(len(model.classes))
    prior = {state.keys[i]: float(model.class_prior[i]) for i in order}
    return {
        "name": name, "model_version": state.version, "target": model.schema.target.name, "classes": state.labels,
        "class_prior": prior, "columns": columns, "rows_counted": int(model.tally.rows), "stale": bool(model.stale),
        "calibrated": model.calibration is not None, "ignored": [list(pair) for pair in model.schema.ignored],
    }  # fmt: skip


def _typical(model: Any, column: Any) -> dict[str, Any]:
    """The median of a number and the most frequent value of a category, among the rows that the model keeps."""
    sample = model.tally.sample
    cells = None if sample is None else sample.columns.get(column.name)
    if cells is None or not len(cells):
        return {}
    if cells.dtype.kind == "f":
        seen = cells[~np.isnan(cells)]
        return {"middle": float(np.sort(seen)[len(seen) // 2])} if len(seen) else {}
    counts = np.bincount(cells[cells >= 0], minlength=1)
    best = int(counts.argmax())
    return {"typical": plain(column.values[best])} if best < len(column.values) else {}


def _range(likelihood: Any) -> dict[str, Any]:
    """Lowest, highest and a middle number of a column, as far as its parameters show them."""
    edges = getattr(likelihood, "edges", None)
    if edges is not None and len(edges):
        low, high = getattr(likelihood, "low", np.nan), getattr(likelihood, "high", np.nan)
        low, high = (float(edges[0]) if np.isnan(low) else low), (float(edges[-1]) if np.isnan(high) else high)
        return {"low": plain(float(low)), "high": plain(float(high)), "middle": plain(float(edges[len(edges) // 2]))}
    term = getattr(likelihood, "likelihood", likelihood)
    mean, curve = getattr(term, "mean", None), getattr(term, "curve", None)
    if mean is None or curve is None:
        return {}
    deviation = np.sqrt(-0.5 / curve)
    return {
        "low": plain(float((mean - 3 * deviation).min())), "high": plain(float((mean + 3 * deviation).max())),
        "middle": plain(float(mean.mean())),
    }  # fmt: skip
