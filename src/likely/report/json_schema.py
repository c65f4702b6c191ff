"""JSON Schema of the document of a report."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
NUMBER: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": ["number", "null"], "minimum": 0}
TEXT: Schema = {"type": "string"}
NAMES: Schema = {"type": "array", "items": TEXT}
NUMBERS: Schema = {"type": "array", "items": NUMBER}
MATRIX: Schema = {"type": "array", "items": NUMBERS}
MAYBE_NUMBERS: Schema = {"anyOf": [NUMBERS, {"type": "null"}]}
MAYBE_MATRIX: Schema = {"anyOf": [MATRIX, {"type": "null"}]}


def _object(required: Schema, optional: Schema | None = None, what: str = "") -> Schema:
    found: Schema = {"type": "object", "required": list(required), "properties": required | (optional or {})}
    return ({"description": what} if what else {}) | found


def _list(items: Schema, what: str = "") -> Schema:
    return ({"description": what} if what else {}) | {"type": "array", "items": items}


EFFECT = _object(
    {
        "labels": NAMES, "values": {"type": ["array", "null"]}, "low": MAYBE_NUMBERS, "high": MAYBE_NUMBERS,
        "counts": MAYBE_MATRIX,
        "shares": MATRIX, "terms": MATRIX, "weights": MATRIX, "errors": MATRIX, "others": {"type": "integer"},
        "missing": _object({"terms": NUMBERS, "weights": NUMBERS, "counts": NUMBERS}),
    },
    what="Levels of a column: counts, shares, log-likelihood terms, weights of evidence, standard errors; levels × classes.",
)  # fmt: skip
COLUMN = _object(
    {
        "name": TEXT, "columns": NAMES, "kind": {"enum": ["category", "number", "text"]}, "family": TEXT, "reason": TEXT,
        "missing_share": NUMBER, "evidence": NUMBER, "importance": {"type": "object", "additionalProperties": NUMBER},
    },
    {"effect": EFFECT, "in_data": _object({"missing_share": NUMBER, "unseen_share": NUMBER})},
)  # fmt: skip
BIN = _object(dict.fromkeys(("from", "to", "rows", "predicted", "observed", "low", "high"), NUMBER))
CURVE = _object({
    "class": TEXT, "rows": COUNT, "share": NUMBER, "roc_area": NUMBER, "average_precision": NUMBER,
    "roc": _object({"false_positive_rate": NUMBERS, "true_positive_rate": NUMBERS}),
    "precision_recall": _object({"recall": NUMBERS, "precision": NUMBERS}),
    "lift": _object({"share_of_rows": NUMBERS, "recall": NUMBERS, "lift": NUMBERS}),
})  # fmt: skip
THRESHOLDS = _object({
    "class": TEXT, "best": NUMBER, "cost_at_best": NUMBER, "false_positive_cost": NUMBER, "false_negative_cost": NUMBER,
    "positives": COUNT, "negatives": COUNT, "rows": _list({"type": "object", "additionalProperties": NUMBER}),
    "curve": _object({"threshold": NUMBERS, "true_positives": NUMBERS, "false_positives": NUMBERS}),
})  # fmt: skip
EVALUATION = _object(
    {
        "title": TEXT, "rows": COUNT, "accuracy": NUMBER, "log_loss": NUMBER, "brier": NUMBER, "calibration_error": NUMBER,
        "calibration_error_by_chance": NUMBER,
        "auc": NUMBER, "baseline": _object({"accuracy": NUMBER, "log_loss": NUMBER}), "classes": NAMES, "confusion": MATRIX,
        "per_class": _list({"type": "object"}), "positive": TEXT, "curves": _list(CURVE),
        "calibration": _object({"of": TEXT, "after": _list(BIN), "before": {"anyOf": [_list(BIN), {"type": "null"}]}}),
    },
    {"thresholds": THRESHOLDS},
    "Metrics on the data given; only where they have labels.",
)  # fmt: skip
PREDICTION = _object(
    {
        "row": {"type": "integer", "minimum": 1}, "why": TEXT, "label": TEXT, "truth": {"type": ["string", "null"]},
        "probabilities": {"type": "object", "additionalProperties": NUMBER}, "for": TEXT, "against": TEXT, "prior": NUMBER,
        "log_odds": NUMBER, "steps": _list(_object({"columns": NAMES, "value": TEXT, "weight": NUMBER, "flags": NAMES})),
        "terms": {"type": "object", "additionalProperties": NUMBERS},
        "changes": _list(_object({"column": TEXT, "to": TEXT, "label": TEXT, "probability": NUMBER})),
        "values": {"type": "object", "additionalProperties": {"type": ["string", "null"]}}, "notes": NAMES,
        "texts": _list(_object({"column": TEXT, "pieces": _list(_object({"text": TEXT})), "cut": {"type": "boolean"}})),
    },
    what="One row: prior log-odds plus the weights of all steps is the posterior log-odds.",
)  # fmt: skip
INTERACTION = _object(
    {"columns": NAMES, "gain": NUMBER, "error": NUMBER, "weight": NUMBER},
    {"rows": NAMES, "cells": NAMES, "weights": {"type": "array", "items": MATRIX},
     "strongest": _list(_object({"cell": NAMES, "weights": NUMBERS}))},
)  # fmt: skip
CARD = _object({
    "target": TEXT, "classes": COUNT, "columns": COUNT, "rows_learned_from": COUNT, "weight_learned_from": COUNT,
    "columns_left_out": _list(_object({"name": TEXT, "reason": TEXT})), "kind": {"enum": ["plain", "calibrated"]},
    "interactions": COUNT, "calibration_is_stale": {"type": "boolean"}, "free_parameters": COUNT, "table_entries": COUNT,
    "rows_inside_the_model": COUNT, "rows_shown_in_this_report": COUNT, "data": {"type": ["string", "null"]},
    "data_rows": {"type": ["integer", "null"]}, "created": TEXT, "versions": {"type": "object", "additionalProperties": TEXT},
})  # fmt: skip
NODE = _object(
    {
        "name": TEXT, "kind": {"enum": ["category", "number"]}, "hidden": {"type": "boolean"}, "parents": NAMES,
        "children": NAMES, "values": NAMES, "marginal": MAYBE_NUMBERS, "free_parameters": COUNT,
        "table": _list(_object(
            {"given": NAMES, "count": COUNT},
            {"probabilities": NUMBERS, "intercept": NUMBER, "variance": NUMBER,
             "slopes": {"type": "object", "additionalProperties": NUMBER}},
        )),
    },
    what="A node: probabilities of its values (of a number mean and variance), and its distribution given its parents.",
)  # fmt: skip
NETWORK = _object(
    {
        "format": {"const": 1}, "kind": {"const": "likely network report"}, "title": TEXT, "warnings": NAMES,
        "nodes": _list(NODE), "arcs": _list(_object({"from": TEXT, "to": TEXT, "information": NUMBER}), "The strongest first."),
        "card": _object({
            "nodes": COUNT, "arcs": COUNT, "hidden_nodes": NAMES, "rows_learned_from": COUNT,
            "fitted_by": {"enum": ["counting", "EM", "given"]}, "free_parameters": COUNT, "data": {"type": ["string", "null"]},
            "data_rows": {"type": ["integer", "null"]}, "created": TEXT,
            "versions": {"type": "object", "additionalProperties": TEXT},
        }),
    },
    {"evaluation": _object({
        "rows": COUNT, "log_likelihood": NUMBER, "independent_log_likelihood": NUMBER, "impossible_rows": COUNT,
        "histogram": _object({"edges": NUMBERS, "counts": NUMBERS}),
        "unusual_rows": _list(_object({"row": {"type": "integer", "minimum": 1}, "log_likelihood": NUMBER})),
    })},
    "Report of a Bayesian network.",
)  # fmt: skip
MODEL = _object(
    {
        "format": {"const": 1}, "kind": {"const": "likely report"}, "title": TEXT, "positive": TEXT, "warnings": NAMES,
        "classes": _list(_object({"label": TEXT, "count": COUNT, "prior": NUMBER})), "bias": NUMBERS, "columns": _list(COLUMN),
        "interactions": _list(INTERACTION), "texts": _list(_object({"column": TEXT, "words": _list({"type": "object"})})),
        "network": _object({"target": TEXT, "nodes": _list(_object({"name": TEXT, "kind": TEXT})), "arcs": _list(NAMES),
                            "pairs": _list(NAMES), "left_out": {"type": "integer"}}),
        "pairs": _list(_object({"columns": NAMES, "information": NUMBER, "modelled": {"type": "boolean"}})), "card": CARD,
    },
    {
        "evaluation": EVALUATION, "predictions": _list(PREDICTION),
        "confusion_rows": _list(_object({"truth": TEXT, "predicted": TEXT, "rows": _list({"type": "object"})})),
        "surface": _object({"columns": NAMES, "x": NUMBERS, "y": NUMBERS, "probabilities": {"type": "array", "items": MATRIX},
                            "rows": _list(NUMBERS)}),
        "em": _object({"trace": NUMBERS, "converged": {"type": "boolean"}, "log_likelihood": NUMBER, "bic": NUMBER,
                       "icl": NUMBER,
                       "aic": NUMBER, "tried": _list(_object({"k": {"type": "integer"}, "criterion": NUMBER}))},
                      {"start": NUMBERS, "transition": MATRIX}),
        "learning_curve": {"type": "object"}, "first_columns": NAMES,
    },
    "Report of a model, a clustering or a hidden Markov model.",
)  # fmt: skip
SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Report of Likely", "oneOf": [MODEL, NETWORK],
}  # fmt: skip
