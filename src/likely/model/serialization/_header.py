"""Check of the header of a model file: the entries of each part and their types."""

from __future__ import annotations

from typing import Any

from likely.calibration import DEPENDENCE
from likely.families import REGISTRY
from likely.model.serialization._checks import each, entries, fields, flag, listing, need, number, text, whole
from likely.model.serialization.latent_part import check_latent
from likely.model.serialization.values import check_values
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
        {"arrays": entries, "target": _column, "columns": listing(_column), "ignored": listing(_reason),
         "blocks": listing(_block), "rows": whole, "prior": _priors, "settings": _settings},
        {"sample": _sample_header, "calibration": _calibration_header, "latent": check_latent},
    )  # fmt: skip


def _column(given: Any, where: str) -> None:
    later = {"guessed": flag, "asked_for": flag, "taken": listing(_taken), "form": text}
    fields(given, where, {"name": text, "kind": text, "values": _value_list, "reason": text}, later)
    need(given["kind"] in (CATEGORY, NUMBER, TEXT), where, f"is of kind {given['kind']!r:.40}")
    part, sign, form = given.get("form", "").partition("/")
    need(not sign or given["name"].endswith(f".{part}"), where, f"is no {part!r:.40} of another column")
    known = part in PARTS and form in FORMAT_CODES if sign else part in (*FORMAT_CODES, BINS)
    need(known, where, f"is written in a form that is not known: {given.get('form')!r:.40}")
    need(given["kind"] == CATEGORY or given["values"] == [], where, "has values, but holds no categories")


def _taken(given: Any, where: str) -> None:
    need(isinstance(given, list) and len(given) == 2, where, "is no pair of a text and a count")
    text(given[0], where)
    whole(given[1], where)


def _value_list(given: Any, where: str) -> None:
    if isinstance(given, int):  # as many texts stand in arrays of their own
        whole(given, where)
    else:
        check_values(given, where)


def _reason(given: Any, where: str) -> None:
    need(isinstance(given, list) and len(given) == 2, where, "is no pair of a column and a reason")
    each(given, where, text)


def _block(given: Any, where: str) -> None:
    fields(given, where, {"family": text, "settings": entries, "columns": listing(text), "statistic": text})
    need(given["family"] in REGISTRY, where, f"is of no family that is known: {given['family']!r:.40}")
    known = (*SHAPES, "Histogram", "Words")
    need(given["statistic"] in known, where, f"has counted {given['statistic']!r:.40}, which is not known")
    need(len(given["columns"]) > 0, where, "has no columns")


def _priors(given: Any, where: str) -> None:
    fields(given, where, {"default": _prior, "columns": entries, "classes": _class_prior})
    for name, prior in given["columns"].items():
        _prior(prior, f"{where}.columns[{name!r:.40}]")


def _prior(given: Any, where: str) -> None:
    entries(given, where)
    need(given.get("type") in PRIORS, where, f"is of no type that is known: {given.get('type')!r:.40}")
    if given["type"] == "ByClass":
        listing(_prior_of_class)(given.get("by_class"), f"{where}.by_class")


def _prior_of_class(given: Any, where: str) -> None:
    need(isinstance(given, list) and len(given) == 2, where, "is no pair of a class and a prior")
    check_values(given[:1], where)
    _prior(given[1], where)
    need(given[1]["type"] != "ByClass", where, "has priors by class within a class")


def _class_prior(given: Any, where: str) -> None:
    if isinstance(given, list):
        for i, pair in enumerate(given):
            need(isinstance(pair, list) and len(pair) == 2, f"{where}[{i}]", "is no pair of a class and a number")
            check_values(pair[:1], f"{where}[{i}]")
            number(pair[1], f"{where}[{i}]")
    elif given is not None:
        _prior(given, where)


def _settings(given: Any, where: str) -> None:
    later = {"average": flag, "dependence": text, "missing_labels": _texts_or_none, "target_edges": listing(number)}
    fields(given, where, {"missing": listing(text), "weights": _text_or_none, "declared": check_values}, later)
    edges = given.get("target_edges", [])
    need(edges == sorted(set(edges)), where, "has edges of bins that do not increase")
    need(given.get("dependence", "auto") in DEPENDENCE, where, "has a dependence that is not known")


def _texts_or_none(given: Any, where: str) -> None:
    if given is not None:
        listing(text)(given, where)


def _text_or_none(given: Any, where: str) -> None:
    if given is not None:
        text(given, where)


def _sample_header(given: Any, where: str) -> None:
    fields(given, where, {"columns": listing(text), "limit": whole})


def _calibration_header(given: Any, where: str) -> None:
    fields(
        given, where,
        {"weights": _numbers, "absent": _numbers, "temperature": number, "counted": number, "gains": _numbers,
         "edges": listing(text), "values": _positions_or_values, "interactions": listing(_interaction)},
        {"directions": listing(text), "joint": _joint_header},
    )  # fmt: skip


def _joint_header(given: Any, where: str) -> None:
    fields(given, where, {"columns": listing(text), "weight": number})


def _numbers(given: Any, where: str) -> None:
    entries(given, where)
    each(given, where, number)


def _positions_or_values(given: Any, where: str) -> None:
    if isinstance(given, list):  # names; the positions stand in arrays
        each(given, where, text)
        need(len(set(given)) == len(given), where, "names a column twice")
    else:
        entries(given, where)
        each(given, where, check_values)


def _interaction(given: Any, where: str) -> None:
    fields(given, where, {"columns": listing(text), "weight": number, "gain": number, "error": number})
    columns = given["columns"]
    need(len(columns) >= 2 and len(set(columns)) == len(columns), where, "names too few columns, or one twice")
