"""The nomogram of a report: as a picture, and with choices of class, scale, order, columns and marked row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likely.model.effects import LOWEST, contrasts
from likely.plots.nomogram import Nomogram, Scale, nomogram_svg
from likely.plots.svg import Svg
from likely.report._column_views import IN_DOCUMENT, class_names, short_number
from likely.report._markup import left_out, percent, section, select, wide

Document = Mapping[str, Any]
MOST_LEVELS = 12  # of a number in the nomogram
MOST_CLASSES = 40  # to choose from
MOST_BYTES = 60_000  # of the levels that the script of the page reads, about
FEWEST = 5  # columns of the nomogram


def nomogram_levels(column: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The levels of a column in the nomogram: all values, of a number some that are about equally frequent."""
    effect = column["effect"]
    labels, weights = effect["labels"], effect["weights"]
    places = list(range(len(labels)))
    if column["kind"] == "number" and effect["values"]:
        places = _spread_out([sum(row) for row in effect["counts"] or effect["shares"]], effect["weights"])
        labels = _numbers(effect)
    levels = [{"label": labels[i], "weights": weights[i]} for i in places]
    if sum(effect["missing"]["counts"] or [0.0]):
        levels.append({"label": "missing", "weights": effect["missing"]["weights"]})
    return levels


def _numbers(effect: Mapping[str, Any]) -> list[str]:
    """A number for each bin or point: a whole one where the bin has one."""
    low, high = effect["low"] or effect["values"], effect["high"] or effect["values"]
    found = []
    for value, a, b in zip(effect["values"], low, high, strict=True):
        whole = round(value)
        found.append(short_number(whole if a <= whole <= b else value))
    return found


def _spread_out(mass: Sequence[float], weights: Sequence[Sequence[float]]) -> list[int]:
    """Some levels: the ends, those of most and least evidence, and between them equal parts of the rows and of the range."""
    if len(mass) <= MOST_LEVELS:
        return list(range(len(mass)))
    whole, sofar = sum(mass) or 1.0, 0.0
    found = {0, len(mass) - 1}
    for c in range(min(len(weights[0]), 2)):
        line = [row[c] for row in weights]
        found |= {line.index(min(line)), line.index(max(line))}
    for i, m in enumerate(mass):
        if int(sofar / whole * (MOST_LEVELS - 4)) != int((sofar + m) / whole * (MOST_LEVELS - 4)):
            found.add(i)
        sofar += m
    step = max(1, len(mass) // MOST_LEVELS)
    for i in range(0, len(mass), step):
        if len(found) >= MOST_LEVELS:
            break
        found.add(i)
    return sorted(found)


def nomogram_picture(document: Document, top: int = 10) -> Svg:
    """The nomogram of the positive class, as a picture that needs no script."""
    names = class_names(document)
    c = names.index(document["positive"])
    scales = []
    for column in [each for each in document["columns"] if each.get("effect")][:top]:
        levels = nomogram_levels(column)
        scales.append(Scale(column["name"], [level["label"] for level in levels], [level["weights"][c] for level in levels]))
    two = len(names) == 2
    bias = [b if b is not None else -30.0 for b in document["bias"]]
    prior = bias[c] - bias[1 - c] if two else 0.0
    subtitle = f"weight of evidence of each value, in nats; prior {percent(document['classes'][c]['prior'])}"
    return nomogram_svg(
        Nomogram(f"{document['card']['target']} = {names[c]}", subtitle, scales, prior, probabilities=two)
    )


def nomogram_section(document: Document) -> str:
    """The nomogram with its choices: class, scale, order, number of columns, and the row whose values are marked."""
    if not any(column.get("effect") for column in document["columns"]):
        return ""
    names, classes = class_names(document), offered_classes(document)
    rows = [
        (-1, "none"),
        *((i, f"row {each['row']:,} ({each['why']})") for i, each in enumerate(document.get("predictions", []))),
    ]
    orders = [
        ("evidence", "evidence"),
        ("positive", "evidence for"),
        ("negative", "evidence against"),
        ("name", "name"),
        ("model", "as in the table"),
    ]
    controls = "".join([
        select("nomogram-class", "class", [(i, names[c]) for i, c in enumerate(classes)],
               classes.index(names.index(document["positive"]))),
        select("nomogram-scale", "scale", [("odds", "log-odds"), ("points", "points (0 to 100)")]),
        select("nomogram-order", "order by", orders),
        select("nomogram-top", "columns", [(5, "5"), (10, "10"), (20, "20"), (100_000, "all")], 10),
        select("nomogram-row", "mark the values of", rows),
    ])  # fmt: skip
    picture = wide(nomogram_picture(document), "Scales of the nomogram").replace(
        'class="wide"', 'class="wide" id="nomogram-picture"', 1
    )
    body = f'<div class="controls hidden">{controls}</div><p id="nomogram-sum" role="status"></p>{picture}{_limits(document)}'
    note = " Interactions between columns come on top of it: see below." if document["interactions"] else ""
    lead = f"Each value stands at its weight of evidence: the weights and the prior add up to the log-odds of the class.{note}"
    return section("nomogram", "Nomogram", body, lead)


def _limits(document: Document) -> str:
    """Note on the available choices, if classes or columns were left out."""
    classes, columns = len(offered_classes(document)), len(offered_columns(document))
    whole = sum(bool(column.get("effect")) for column in document["columns"])
    offered = []
    if classes < len(document["classes"]):
        offered.append(f"the {classes} most frequent of {len(document['classes']):,} classes")
    if columns < whole:
        offered.append(f"the {columns} of {whole:,} columns with the most evidence")
    return left_out(f"To be chosen from here: {' and '.join(offered)}; {IN_DOCUMENT} has all.") if offered else ""


def offered_classes(document: Document) -> list[int]:
    """Classes of the nomogram: all, of many the most frequent and the positive one."""
    names = class_names(document)
    order = sorted(range(len(names)), key=lambda c: (names[c] != document["positive"], -document["classes"][c]["count"]))
    return sorted(order[:MOST_CLASSES])


def offered_columns(document: Document) -> list[tuple[Mapping[str, Any], list[dict[str, Any]]]]:
    """Columns of the nomogram with their levels: those with the most evidence, as long as the page stays small."""
    classes = len(offered_classes(document))
    found: list[tuple[Mapping[str, Any], list[dict[str, Any]]]] = []
    rows, budget = 1 + len(document.get("predictions", [])), MOST_BYTES
    for column in (each for each in document["columns"] if each.get("effect")):
        levels = nomogram_levels(column)
        budget -= sum(24 + len(level["label"]) + 7 * classes for level in levels) + rows * (len(column["name"]) + 7 * classes)
        if budget < 0 and len(found) >= FEWEST:
            break
        found.append((column, levels))
    return found


def embedded(document: Document) -> dict[str, Any]:
    """Data for the script of the page: levels of the nomogram, marked rows, and counts for costs."""
    classes = offered_classes(document)

    def of(weights: Sequence[float]) -> list[float]:
        return [round(weights[c], 3) for c in classes]

    columns = [
        {"name": column["name"], "evidence": column["evidence"] or 0.0,
         "levels": [{"label": level["label"], "weights": of(level["weights"])} for level in levels]}
        for column, levels in offered_columns(document)
    ]  # fmt: skip
    log_prior = np.log(np.maximum([each["prior"] for each in document["classes"]], 1e-300))
    rows = []
    for each in document.get("predictions", []):
        terms = {c["name"]: each["terms"][c["name"]] for c in columns if c["name"] in each["terms"]}
        bounded = np.array([[LOWEST if t is None else t for t in line] for line in terms.values()])
        marks = contrasts(bounded, log_prior).tolist() if terms else []
        p = list(each["probabilities"].values())
        rows.append({"row": each["row"], "probabilities": [p[c] for c in classes],
                     "marks": {name: of(line) for name, line in zip(terms, marks, strict=True)}})  # fmt: skip
    found = (document.get("evaluation") or {}).get("thresholds")
    shown = [document["classes"][c] for c in classes]
    return {
        "classes": [each["label"] for each in shown], "prior": [each["prior"] for each in shown],
        "bias": [document["bias"][c] for c in classes], "columns": columns, "predictions": rows,
        "thresholds": {key: found[key] for key in ("positives", "negatives", "curve")} if found else None,
    }  # fmt: skip
