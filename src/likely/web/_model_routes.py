"""Routes of one model: describe, predict, explain, update, forget."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError
from likely.schema import CATEGORY, NUMBER
from likely.web._json_tables import JsonTable, Row, check_keys
from likely.web._messages import HttpError, Request, Response, answer, decoded, plain
from likely.web._served_model import ModelState

MOST_EXPLAINED = 100
PIECE = 1 << 15  # values that are encoded at once: the encoder lets no other thread run meanwhile
MOST_LEARNED = 10_000


class RowsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to explain."""

    rows: list[Row]


class Update(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to learn or forget, with the target; `id` makes a repeated request harmless."""

    rows: list[Row]
    id: str | None = None


ENCODE = msgspec.json.Encoder().encode
ROWS, UPDATE = (msgspec.json.Decoder(kind) for kind in (RowsBody, Update))


def predict_row(state: ModelState, row: Row) -> Response:
    """The prediction for one row; it takes microseconds, so that no thread is needed."""
    best, shares = state.predictor.decide_one(row)
    prediction = {"label": state.labels[best], "probabilities": dict(zip(state.keys, shares.tolist(), strict=True))}
    document: dict[str, Any] = {"model_version": state.version, "predictions": [prediction]}
    if not state.columns.issuperset(row):
        document["unknown_columns"] = _without_target(state, [name for name in row if name not in state.columns])
    return Response(200, ENCODE(document))


def predict_table(state: ModelState, table: JsonTable) -> Response:
    """Predictions for many rows, in the form in which they came."""
    posterior = state.model.posterior(table.rows if table.columns is None else table.columns, absent="missing")
    best = np.where(posterior.impossible, state.model.scorer.log_prior.argmax(), posterior.log_joint.argmax(1))
    document: dict[str, Any] = {"model_version": state.version}
    if table.by_row:
        document["predictions"] = msgspec.Raw(_predictions(state, best, posterior.probabilities))
    else:
        document["labels"] = msgspec.Raw(_joined([state.labels[i] for i in best.tolist()]))
        shares = (msgspec.Raw(_joined(each)) for each in posterior.probabilities.T.tolist())
        document["probabilities"] = dict(zip(state.keys, shares, strict=True))
    names = table.columns if table.columns is not None else dict.fromkeys(name for row in table.rows for name in row)
    if unknown := [name for name in names if name not in state.columns]:
        document["unknown_columns"] = _without_target(state, unknown)
    return Response(200, msgspec.json.encode(document))


def _predictions(state: ModelState, best: NDArray[np.intp], probabilities: NDArray[np.float64]) -> bytes:
    """`[{"label": …, "probabilities": {…}}, …]`, joined from pieces without an object for each row."""
    begin = [b'{"label":%b,"probabilities":{' % msgspec.json.encode(label) for label in state.labels]
    step = 2 * len(state.keys) + 2
    pieces: list[bytes] = [b"}},"] * (step * len(best))
    pieces[::step] = [begin[i] for i in best.tolist()]
    for place, (key, shares) in enumerate(zip(state.keys, probabilities.T.tolist(), strict=True)):
        before = b"," if place else b""
        pieces[2 * place + 1 :: step] = [before + msgspec.json.encode(key) + b":"] * len(best)
        pieces[2 * place + 2 :: step] = _joined(shares)[1:-1].split(b",")
    pieces[-1] = b"}}]"
    return b"[" + b"".join(pieces)


def _joined(values: list[Any]) -> bytes:
    """A long list as JSON, encoded piece by piece, so that other requests are answered in between."""
    parts = (ENCODE(values[start : start + PIECE])[1:-1] for start in range(0, len(values), PIECE))
    return b"[" + b",".join(parts) + b"]"


def _without_target(state: ModelState, names: list[str]) -> list[str]:
    return [name for name in names if name != state.model.schema.target.name]


def explain(state: ModelState, request: Request) -> Response:
    """Prior, weights of evidence and posterior of some rows."""
    rows: list[Row] = decoded(request, ROWS.decode).rows
    check_keys(request.body, rows, 1)
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
    check_keys(request.body, update.rows, 1 if update.id is None else 2 + update.id.count(":"))
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
    if likelihood is None:
        return {}
    form, _ = likelihood.unscaled
    edges, moments = form.bin_edges, form.moments()
    if edges is not None and len(edges):
        low, high = form.extent
        low, high = (float(edges[0]) if np.isnan(low) else low), (float(edges[-1]) if np.isnan(high) else high)
        return {"low": plain(float(low)), "high": plain(float(high)), "middle": plain(float(edges[len(edges) // 2]))}
    if moments is None:
        return {}
    mean, deviation = moments[0][:, 0], np.sqrt(moments[1][:, 0, 0])
    return {
        "low": plain(float((mean - 3 * deviation).min())), "high": plain(float((mean + 3 * deviation).max())),
        "middle": plain(float(mean.mean())),
    }  # fmt: skip
