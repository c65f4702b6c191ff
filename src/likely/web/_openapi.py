"""OpenAPI 3.1 description of the service, with the columns and classes of the served models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from likely import __version__
from likely.schema import CATEGORY, NUMBER
from likely.web._json_tables import MOST_ROWS
from likely.web._messages import plain
from likely.web._model_routes import MOST_EXPLAINED, MOST_LEARNED
from likely.web._served_model import ModelState, ServedModel

CELL = {"type": ["string", "number", "boolean", "null"]}
ERRORS = {
    400: "The request is not valid HTTP or JSON", 401: "The token is missing or wrong", 403: "Host or origin is not allowed",
    404: "No such model", 408: "The request did not arrive in time", 409: "The model cannot be changed now",
    413: "Too many bytes or rows", 415: "The body is not application/json", 422: "The rows do not fit the model",
    431: "Headers too large", 503: "Too much work at once; see Retry-After",
}  # fmt: skip


def document(models: Iterable[ServedModel], writable: bool) -> dict[str, Any]:
    """The description of all routes."""
    paths: dict[str, Any] = {
        "/health": {"get": _get("Whether the service answers", "health", {"type": "object"})},
        "/metrics": {"get": _text("Counters in the text format of Prometheus", "metrics")},
        "/api/models": {"get": _get("Names and versions of the models", "models", {"type": "object"})},
        "/openapi.json": {"get": _get("This document", "openapi", {"type": "object"})},
    }
    schemas: dict[str, Any] = {"Error": ERROR}
    for number, served in enumerate(models):
        key = f"Row_{number}" if number else "Row"
        schemas[key] = row_schema(served.state, target=False)
        schemas[f"Labelled{key}"] = row_schema(served.state, target=True)
        places = [f"/api/models/{served.name}"] + ([] if number else ["/api"])
        for place in places:
            tag = "" if place == "/api" else f"_{number}"
            describe = "/api/model" if place == "/api" else place
            paths[describe] = {"get": _get(f"Columns and classes of {served.name}", f"model{tag}", {"type": "object"})}
            paths[f"{place}/predict"] = {"post": _post("predict", tag, key, prediction(served.state))}
            paths[f"{place}/explain"] = {"post": _post("explain", tag, key, EXPLANATION)}
            if writable:
                for verb in ("update", "forget"):
                    paths[f"{place}/{verb}"] = {"post": _post(verb, tag, f"Labelled{key}", UPDATED)}
    security = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Likely", "version": __version__, "description": "Predictions of Bayesian models, with reasons."},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": security},
    }


ERROR = {
    "type": "object", "required": ["error"],
    "properties": {"error": {
        "type": "object", "required": ["code", "message", "details"],
        "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "details": {"type": "object"}},
    }},
}  # fmt: skip
VERSION = {"type": "string", "description": "Version of the model that this answer comes from"}
EXPLANATION = {
    "type": "object", "required": ["model_version", "explanations"],
    "properties": {"model_version": VERSION, "explanations": {"type": "array", "items": {"type": "object"}}},
}  # fmt: skip
UPDATED = {
    "type": "object", "required": ["model_version", "rows", "id", "duplicate"],
    "properties": {
        "model_version": VERSION, "rows": {"type": "integer"}, "rows_counted": {"type": "integer"},
        "id": {"type": "string"}, "duplicate": {"type": "boolean"},
    },
}  # fmt: skip


def row_schema(state: ModelState, *, target: bool) -> dict[str, Any]:
    """One row of this model: an object with a property for each column."""
    model = state.model
    properties: dict[str, Any] = {}
    for column in model.schema.columns:
        if column.kind == CATEGORY:
            known = ", ".join(map(str, column.values[:20])) + (", …" if len(column.values) > 20 else "")
            examples = plain(list(column.values[:20]))
            properties[column.name] = CELL | {"description": f"Category; seen: {known}", "examples": examples}
        elif column.kind == NUMBER:
            properties[column.name] = {"type": ["number", "null"], "description": f"Number ({column.reason})"}
        else:
            properties[column.name] = {"type": ["string", "null"], "description": "Text"}
    made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": CELL, "minProperties": 1}
    if target:
        name = model.schema.target.name
        label = CELL | {"type": ["string", "number", "boolean"], "examples": state.labels[:20]}
        made |= {"properties": properties | {name: label}, "required": [name]}
    return made


def prediction(state: ModelState) -> dict[str, Any]:
    """The answer of /predict: label and probabilities of this model's classes."""
    shares = {key: {"type": "number", "minimum": 0, "maximum": 1} for key in state.keys[:1_000]}
    one = {
        "type": "object", "required": ["label", "probabilities"],
        "properties": {"label": {"enum": state.labels[:1_000]}, "probabilities": {"type": "object", "properties": shares}},
    }  # fmt: skip
    if len(state.labels) > 1_000:
        one["properties"]["label"] = CELL  # type: ignore[index]
    return {
        "type": "object", "required": ["model_version"],
        "properties": {
            "model_version": VERSION, "predictions": {"type": "array", "items": one}, "labels": {"type": "array"},
            "probabilities": {"type": "object"}, "unknown_columns": {"type": "array", "items": {"type": "string"}},
        },
    }  # fmt: skip


def _post(verb: str, tag: str, row: str, answered: dict[str, Any]) -> dict[str, Any]:
    most = {"predict": MOST_ROWS, "explain": MOST_EXPLAINED}.get(verb, MOST_LEARNED)
    reference = {"$ref": f"#/components/schemas/{row}"}
    rows = {"type": "array", "items": reference, "minItems": 1, "maxItems": most}
    body: dict[str, Any] = {"type": "object", "properties": {"rows": rows}, "required": ["rows"], "additionalProperties": False}
    if verb == "predict":
        cells = {"type": "object", "additionalProperties": {"type": "array", "items": CELL}}
        columns = {"type": "object", "properties": {"columns": cells}, "required": ["columns"], "additionalProperties": False}
        body = {"oneOf": [body, columns]}
    elif verb in ("update", "forget"):
        body["properties"]["id"] = {"type": ["string", "null"], "maxLength": 200, "description": "Makes a retry harmless"}
    made: dict[str, Any] = {
        "operationId": f"{verb}{tag}", "summary": f"{verb.capitalize()} rows",
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": _json("The answer", answered)} | _errors(),
    }  # fmt: skip
    if verb in ("update", "forget"):
        made["security"] = [{"token": []}]
    return made


def _get(summary: str, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"operationId": name, "summary": summary, "responses": {"200": _json("The answer", schema)} | _errors()}


def _text(summary: str, name: str) -> dict[str, Any]:
    found = {"description": "Text", "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {"operationId": name, "summary": summary, "responses": {"200": found} | _errors()}


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _errors() -> dict[str, Any]:
    return {str(status): _json(text, {"$ref": "#/components/schemas/Error"}) for status, text in ERRORS.items()}
