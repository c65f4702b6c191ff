"""Check of the header of a model file: the entries of each part and their types."""

from __future__ import annotations

from typing import Any

from likely.calibration import DEPENDENCE
from likely.families import REGISTRY
from likely.model.serialization.latent_part import check_latent
from likely.model.serialization.values import (
    anything,
    check_values,
    each,
    entries,
    fields,
    flag,
    listed,
    need,
    number,
    text,
    texts,
    whole,
)
from likely.priors import PRIORS
from likely.schema import BINS, CATEGORY, NUMBER, TEXT
from likely.sources.date_parts import PARTS
from likely.sources.number_formats import FORMAT_CODES

SHAPES = {
    "Counts": ("seen",), "EventCounts": ("seen", "ways"), "Moments": ("n", "mean", "spread"),
    "Scatter": ("n", "mean", "scatter"),
}  # fmt: skip


def check_header(header: Any) -> None:
    """Refuse a header that lacks a part, has one too many, or has one of another type."""
    fields(
        header, "the header",
        {"arrays": entries, "target": entries, "columns": listed, "ignored": listed, "blocks": listed, "rows": whole,
         "prior": entries, "settings": entries},
        {"sample": entries, "calibration": entries, "latent": entries},
    )  # fmt: skip
    _column(header["target"], "target")
    for column, where in each(header["columns"], "columns"):
        _column(column, where)
    for pair, where in each(header["ignored"], "ignored"):
        need(isinstance(pair, list) and len(pair) == 2, where, "is no pair of a column and a reason")
        texts(pair, where)
    for block, where in each(header["blocks"], "blocks"):
        _block(block, where)
    _priors(header["prior"], "prior")
    _settings(header["settings"], "settings")
    if "sample" in header:
        fields(header["sample"], "sample", {"columns": texts, "limit": whole})
    if "calibration" in header:
        _calibration(header["calibration"], "calibration")
    if "latent" in header:
        check_latent(header["latent"], "latent")


def _column(given: Any, where: str) -> None:
    later = {"guessed": flag, "asked_for": flag, "taken": listed, "form": text}
    # As many texts stand in arrays of their own.
    many = isinstance(given, dict) and isinstance(given.get("values"), int)
    fields(given, where, {"name": text, "kind": text, "values": whole if many else check_values, "reason": text}, later)
    for pair, at in each(given.get("taken", []), f"{where}.taken"):
        need(isinstance(pair, list) and len(pair) == 2, at, "is no pair of a text and a count")
        text(pair[0], at)
        whole(pair[1], at)
    need(given["kind"] in (CATEGORY, NUMBER, TEXT), where, f"is of kind {given['kind']!r:.40}")
    part, sign, form = given.get("form", "").partition("/")
    need(not sign or given["name"].endswith(f".{part}"), where, f"is no {part!r:.40} of another column")
    known = part in PARTS and form in FORMAT_CODES if sign else part in (*FORMAT_CODES, BINS)
    need(known, where, f"is written in a form that is not known: {given.get('form')!r:.40}")
    need(given["kind"] == CATEGORY or given["values"] == [], where, "has values, but holds no categories")


def _block(given: Any, where: str) -> None:
    fields(given, where, {"family": text, "settings": entries, "columns": texts, "statistic": text})
    need(given["family"] in REGISTRY, where, f"is of no family that is known: {given['family']!r:.40}")
    known = (*SHAPES, "Histogram", "Words")
    need(given["statistic"] in known, where, f"has counted {given['statistic']!r:.40}, which is not known")
    need(len(given["columns"]) > 0, where, "has no columns")


def _priors(given: Any, where: str) -> None:
    fields(given, where, {"default": entries, "columns": entries, "classes": anything})
    _prior(given["default"], f"{where}.default")
    for prior, at in each(given["columns"], f"{where}.columns"):
        _prior(prior, at)
    shares, at = given["classes"], f"{where}.classes"
    for pair, at_pair in each(shares, at) if isinstance(shares, list) else ():
        need(isinstance(pair, list) and len(pair) == 2, at_pair, "is no pair of a class and a number")
        check_values(pair[:1], at_pair)
        number(pair[1], at_pair)
    if shares is not None and not isinstance(shares, list):
        _prior(shares, at)


def _prior(given: Any, where: str) -> None:
    entries(given, where)
    need(given.get("type") in PRIORS, where, f"is of no type that is known: {given.get('type')!r:.40}")
    if given["type"] == "ByClass":
        listed(given.get("by_class"), f"{where}.by_class")
        for pair, at in each(given["by_class"], f"{where}.by_class"):
            need(isinstance(pair, list) and len(pair) == 2, at, "is no pair of a class and a prior")
            check_values(pair[:1], at)
            _prior(pair[1], at)
            need(pair[1]["type"] != "ByClass", at, "has priors by class within a class")


def _settings(given: Any, where: str) -> None:
    later = {"average": flag, "dependence": text, "missing_labels": _texts_or_none, "target_edges": listed}
    fields(given, where, {"missing": texts, "weights": _text_or_none, "declared": check_values}, later)
    edges = given.get("target_edges", [])
    for edge, at in each(edges, f"{where}.target_edges"):
        number(edge, at)
    need(edges == sorted(set(edges)), where, "has edges of bins that do not increase")
    need(given.get("dependence", "auto") in DEPENDENCE, where, "has a dependence that is not known")


def _texts_or_none(given: Any, where: str) -> None:
    if given is not None:
        texts(given, where)


def _text_or_none(given: Any, where: str) -> None:
    if given is not None:
        text(given, where)


def _calibration(given: Any, where: str) -> None:
    fields(
        given, where,
        {"weights": entries, "absent": entries, "temperature": number, "counted": number, "gains": entries,
         "edges": texts, "values": anything, "interactions": listed},
        {"directions": texts, "joint": entries},
    )  # fmt: skip
    for part in ("weights", "absent", "gains"):
        for value, at in each(given[part], f"{where}.{part}"):
            number(value, at)
    if isinstance(given["values"], list):  # names; the positions stand in arrays
        texts(given["values"], f"{where}.values")
        need(len(set(given["values"])) == len(given["values"]), f"{where}.values", "names a column twice")
    else:
        entries(given["values"], f"{where}.values")
        for values, at in each(given["values"], f"{where}.values"):
            check_values(values, at)
    for found, at in each(given["interactions"], f"{where}.interactions"):
        fields(found, at, {"columns": texts, "weight": number, "gain": number, "error": number})
        columns = found["columns"]
        need(len(columns) >= 2 and len(set(columns)) == len(columns), at, "names too few columns, or one twice")
    if "joint" in given:
        fields(given["joint"], f"{where}.joint", {"columns": texts, "weight": number})
