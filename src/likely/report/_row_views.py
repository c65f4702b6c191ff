"""Views of single rows and of evidence of columns together: waterfalls, interactions, surface, network, texts, EM."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from likely.latent.em_pictures import transitions
from likely.plots.bars import Bar, BarChart, bars_svg
from likely.plots.figure import Figure, Trace, figure_svg
from likely.plots.network_drawing import DrawnNode, network_svg
from likely.plots.probability_map import ProbabilityMap, probability_map_svg
from likely.plots.regions import Surface, regions_svg
from likely.plots.svg import Svg
from likely.report._column_views import IN_DOCUMENT, class_names
from likely.report._markup import details, figure, grid, left_out, number, percent, section, select, table, text, wide

Document = Mapping[str, Any]
MOST_LINES = 30  # of values of a row
BESIDE = 6  # columns of a heat map up to which two stand side by side
MOST_WORDS = 12  # classes whose words are drawn
ZERO = 5e-4  # evidence that is shown as zero


def predictions_section(document: Document) -> str:
    """Single predictions: a waterfall from prior to posterior, and what would change it."""
    found = document.get("predictions")
    if not found:
        return ""
    options = [(i, f"row {each['row']:,}: {each['why']}") for i, each in enumerate(found)]
    controls = f'<div class="controls hidden">{select("prediction-choice", "row", options)}</div>'
    parts = "".join(f'<div id="prediction-{i}">{_prediction(document, each)}</div>' for i, each in enumerate(found))
    lead = "Bars lead from the prior log-odds to those of the posterior; interactions and calibration are included."
    return section("predictions", "Single predictions", controls + parts, lead)


def _prediction(document: Document, each: Mapping[str, Any]) -> str:
    wrong = each["truth"] is not None and each["truth"] != each["label"]
    truth = "" if each["truth"] is None else f"; true class {text(each['truth'])}"
    mark = ' <span class="wrong">(an error)</span>' if wrong else ""
    shown = sorted(each["probabilities"].items(), key=lambda pair: -(pair[1] or 0.0))[:4]
    odds = ", ".join(f"{text(label)} {percent(p)}" for label, p in shown)
    head = f"<h3>Row {each['row']:,}: {text(each['label'])}{truth}{mark}</h3><p>{text(each['why'])}; {odds}</p>"
    rows = [[text(c["column"]), text(c["to"]), text(c["label"]), percent(c["probability"])] for c in each["changes"]]
    flips = (
        table(
            ["column", "changed to", "prediction", f"P({each['for']})"],
            rows,
            "What would change it: one cell at a time",
            (3,),
        )
        if rows
        else ""
    )
    values = [
        [text(name), text("–" if value is None else value)] for name, value in list(each["values"].items())[:MOST_LINES]
    ]
    rest = len(each["values"]) - MOST_LINES
    more = left_out(f"{rest:,} more columns are not listed; {IN_DOCUMENT} has all.") if rest > 0 else ""
    cells = details("Values of the row" if more else "All values of the row",
                    table(["column", "value"], values, f"Row {each['row']:,}") + more)  # fmt: skip
    texts = "".join(highlighted(document, part) for part in each["texts"])
    notes = "".join(f"<p>{text(note)}</p>" for note in each["notes"])
    beside = f"<div>{flips}{notes}{cells}</div>"
    return f'{head}<div class="grid">{figure(waterfall(each))}{beside}</div>{texts}'


def waterfall(each: Mapping[str, Any]) -> Svg:
    """The steps from the prior to the posterior log-odds of the predicted class against the next one."""
    at = _bounded(each["prior"])
    rows = [("prior", [Bar(at, colour=-1, value=f"{at:+.2f}", tip=f"prior log-odds {at:+.3f}")])]
    for step in each["steps"]:
        weight = _bounded(step["weight"])
        value = f" = {step['value']}" if step["value"] else ""
        flags = f" ({', '.join(step['flags'])})" if step["flags"] else ""
        name = " with ".join(step["columns"])
        bar = Bar(
            at + weight, at, 0 if weight >= 0 else 1, value=f"{weight:+.2f}", tip=f"{name}{value}{flags}: {weight:+.3f}"
        )
        rows.append((f"{name}{value}", [bar]))
        at += weight
    odds = _bounded(each["log_odds"])
    p = each["probabilities"].get(each["for"])
    rows.append(("posterior", [Bar(odds, colour=-1, value=f"{odds:+.2f}", tip=f"posterior log-odds {odds:+.3f}")]))
    subtitle = f"log-odds against {each['against']}; posterior {percent(p)}"
    return bars_svg(BarChart(f"Why {each['for']}", subtitle, "log-odds", rows, connected=True, longest=34))


def _bounded(value: float | None) -> float:
    return 0.0 if value is None or not math.isfinite(value) else max(-40.0, min(40.0, value))


def highlighted(document: Document, part: Mapping[str, Any]) -> str:
    """A document with its words shaded by the class that they support, and the colour key."""
    names = class_names(document)
    used = sorted({p["class"] for p in part["pieces"] if "class" in p})
    key = " ".join(f'<mark class="t{c % 8}-6">{text(names[c])}</mark>' for c in used[:12])
    pieces = []
    for piece in part["pieces"]:
        if "class" not in piece:
            pieces.append(text_block(piece["text"]))
            continue
        level = max(0, min(6, round(6 * piece["strength"])))
        tip = f"{names[piece['class']]} {piece['weight']:+.3f}"
        pieces.append(f'<mark class="t{piece["class"] % 8}-{level}" title="{text(tip)}">{text(piece["text"])}</mark>')
    cut = " …" if part["cut"] else ""
    return (
        f'<p class="key">{text(part["column"])}: words are shaded in the colour of the class they support: {key}</p>'
        f'<p class="document">{"".join(pieces)}{cut}</p>'
    )


def text_block(content: str) -> str:
    """Text with its line breaks."""
    return "\n".join(text(line) for line in content.split("\n"))


def interactions_section(document: Document) -> str:
    """Heat maps of interactions: evidence beyond that of each column alone."""
    found = document["interactions"]
    if not found:
        return ""
    names = class_names(document)
    c = names.index(document["positive"])
    maps = "".join(heat_table(each, names[c], c) for each in found if "weights" in each)
    lists = []
    for each in (e for e in found if "strongest" in e):
        rows = [[text(", ".join(cell["cell"])), f"{_bounded(cell['weights'][c]):+.3f}"] for cell in each["strongest"]]
        title = " with ".join(each["columns"])
        lists.append(
            details(
                f"<b>{text(title)}</b>: strongest cells",
                table([title, "weight"], rows, f"Evidence for {names[c]}", (1,)),
            )
        )
    lead = f"Evidence of columns together beyond that of each alone, in nats. Blue is for {text(names[c])}, orange against it."
    return section("interactions", "Interactions", f'<div class="grid">{maps}</div>{"".join(lists)}', lead)


def heat_table(each: Mapping[str, Any], label: str, c: int) -> str:
    """The heat map of an interaction as a table; lines of nothing but zeros are left out."""
    values = np.array([[_bounded(cell[c]) for cell in row] for row in each["weights"]])
    rows, cells = list(each["rows"]), list(each["cells"])
    names = list(each["columns"])
    if values.shape[1] > values.shape[0]:
        values, rows, cells, names = values.T, cells, rows, names[::-1]
    keep, across = np.abs(values).max(1) > ZERO, np.abs(values).max(0) > ZERO
    values = values[keep][:, across]
    rows = [name for name, kept in zip(rows, keep, strict=True) if kept]
    cells = [name for name, kept in zip(cells, across, strict=True) if kept]
    most = float(np.abs(values).max(initial=0.0)) or 1.0
    lines = []
    for name, line in zip(rows, values.tolist(), strict=True):
        shades = (f"{'g' if v >= 0 else 'r'}{min(9, int(10 * abs(v) / most))}" for v in line)
        lines.append(
            [text(name), *(f'<td class="cell {shade}">{_signed(v)}</td>' for v, shade in zip(line, shades, strict=True))]
        )
    gain = f"gain {each['gain']:.1f} ± {each['error']:.1f} nats over all rows"
    title = f"{names[0]} (rows) with {names[1]} (columns), for {label}; {gain}"
    head = [f"{names[0]} by {names[1]}", *cells]
    broad = " broad" if len(cells) > BESIDE else ""
    return f'<figure class="heat{broad}">{table(head, lines, title)}</figure>'


def _signed(value: float) -> str:
    """A weight with its sign; none where it is zero."""
    shown = f"{value:+.2f}"
    return "0" if shown in ("+0.00", "-0.00") else shown


def structure_section(document: Document) -> str:
    """Decision surface, dependent pairs and the network."""
    body = ""
    if document.get("surface"):
        where = " and ".join(document["surface"]["columns"])
        body += f"<h3>Decision surface</h3>{wide(surface_picture(document), f'Decision surface of {where}')}"
    if document.get("pairs"):
        rows = [
            [text(" and ".join(p["columns"])), number(p["information"]), "yes" if p["modelled"] else "no"]
            for p in document["pairs"]
        ]
        caption = "Mutual information given the class, in nats, less what chance would show"
        listed = table(["columns", "information", "modelled"], rows, caption, (1,))
        body += f"<h3>Strongest dependent pairs given the class</h3>{listed}"
    if document["network"]["nodes"]:
        left = document["network"]["left_out"]
        more = f"<p>The {left} columns with less evidence are not drawn.</p>" if left > 0 else ""
        body += f"<h3>Network</h3>{wide(network_picture(document), 'Network of the model')}{more}"
    return section(
        "structure",
        "Structure",
        body,
        "Naive Bayes takes the columns as independent within each class; interactions correct the strongest violations.",
    )


def surface_picture(document: Document) -> Svg:
    """Probability of the positive class over two columns; of more classes, the regions in which each is the most probable."""
    found = document["surface"]
    p, (x, y), names = np.array(found["probabilities"], dtype=float), found["columns"], class_names(document)
    across, down = np.array(found["x"]), np.array(found["y"])
    rows = [row for row in found["rows"] if across[0] <= row[0] <= across[-1] and down[0] <= row[1] <= down[-1]]
    if len(names) == 2:
        c = names.index(document["positive"])
        subtitle = f"probability of {names[c]}, the other columns missing; marks are rows of the data"
        marks = [(a, b, int(k) == c) for a, b, k in rows]
        return probability_map_svg(ProbabilityMap(f"{x} and {y}", subtitle, x, y, names[c], across, down, p[c], marks))
    subtitle = "most probable class, the other columns missing; marks are rows of the data"
    scores, marked = np.log(np.maximum(p, 1e-12)), [(a, b, int(k)) for a, b, k in rows]
    return Svg(regions_svg([Surface(f"{x} and {y}", subtitle, x, y, names, across, down, scores, marked)]))


def network_picture(document: Document) -> Svg:
    """The class as parent of the columns, and arcs between columns that are modelled together."""
    found = document["network"]
    nodes = [DrawnNode(found["target"], f"the class {found['target']}", "class")]
    nodes += [
        DrawnNode(n["name"], f"{n['name']}: {n['kind']}", "number" if n["kind"] == "number" else "node")
        for n in found["nodes"]
    ]
    arcs = [tuple(arc) for arc in (found["pairs"] or found["arcs"])]
    joined = {name for pair in found["pairs"] for name in pair}
    if found["pairs"]:  # the class is a parent of all: arcs to those without other parents keep the picture readable
        arcs = [(found["target"], n["name"]) for n in found["nodes"] if n["name"] in joined] + arcs
        nodes = [node for node in nodes if node.name in joined or node.name == found["target"]]
    free = len(found["nodes"]) - len(joined)
    subtitle = (
        f"{found['target']} is a parent of all columns; {free} more have no other parent"
        if found["pairs"]
        else "naive Bayes: the class is the only parent"
    )
    drawn = network_svg(nodes, [(a, b) for a, b in arcs], "Network", subtitle)
    return Svg(drawn.replace(' tabindex="0"', ""))  # a picture has no parts that take the focus


def texts_section(document: Document) -> str:
    """The strongest words of each class."""
    body = ""
    for each in document["texts"]:
        charts = []
        for c, words in enumerate(each["words"][:MOST_WORDS]):
            rows = [
                (w["word"], [Bar(_bounded(w["weight"]), colour=c % 8, value=f"{_bounded(w['weight']):.2f}")])
                for w in words["words"]
            ]
            if rows:
                charts.append(
                    bars_svg(
                        BarChart(
                            f"Words for {words['class']}", f"column {each['column']}", "weight of evidence (nats)", rows
                        )
                    )
                )
        body += grid(charts)
        rest = len(each["words"]) - MOST_WORDS
        body += left_out(f"Words of {rest:,} more classes are not drawn; {IN_DOCUMENT} has all.") if rest > 0 else ""
    return section(
        "texts",
        "Words",
        body,
        "The words with the highest weights of evidence for each class, against the average of the classes.",
    )


def em_section(document: Document) -> str:
    """Progress of EM, components, and the choice of their number."""
    found = document.get("em")
    if not found:
        return ""
    pictures = []
    if len(found["trace"]) > 1:
        steps = list(range(1, len(found["trace"]) + 1))
        trace = Trace("", steps, [float("nan") if v is None else v for v in found["trace"]], marks=len(steps) <= 40)
        pictures.append(
            figure_svg(Figure("Progress of EM", "penalised log-likelihood", "iteration", "log-likelihood", [trace]))
        )
    if len(found["tried"]) > 1:
        trace = Trace(
            "", [t["k"] for t in found["tried"]], [t["criterion"] or float("nan") for t in found["tried"]], marks=True
        )
        pictures.append(
            figure_svg(Figure("Number of components", "the lower the better", "components", "criterion", [trace]))
        )
    shares = [
        (each["label"], [Bar(each["prior"], colour=0, value=percent(each["prior"]))]) for each in document["classes"]
    ]
    pictures.append(bars_svg(BarChart("Components", "share of the rows", "share", shares, percent=True)))
    if found.get("transition"):
        pictures.append(transitions(class_names(document), found["transition"]))
    figures = ", ".join(
        f"{name} {number(found[key], 2)}"
        for name, key in (("log-likelihood", "log_likelihood"), ("BIC", "bic"), ("ICL", "icl"), ("AIC", "aic"))
    )
    done = "EM converged" if found["converged"] else "EM did not converge"
    return section("em", "Mixture", grid(pictures), f"{done}; {figures}.")
