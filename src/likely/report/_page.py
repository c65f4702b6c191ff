"""The HTML page of a report: one file that fetches nothing, with a strict Content-Security-Policy."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from likely.model.ledger_page import by_digest, page_head
from likely.plots import charts, figure, network_drawing, regions
from likely.plots.axes import DARK, LIGHT, palette
from likely.report import _column_views as column_views
from likely.report import _nomogram_view as nomogram_view
from likely.report import _quality_views as quality_views
from likely.report import _row_views as row_views
from likely.report._markup import count, left_out, number, percent, section, size, table, text
from likely.report._network_document import KIND as NETWORK
from likely.report._network_page import network_lead, network_sections, network_tiles

Document = Mapping[str, Any]
SUMMARY_COLUMNS = 12
MOST_CLASSES = 40  # in the table of classes
MOST_BYTES = 450_000  # of the page: pictures of columns are drawn as long as they fit


@cache
def _asset(name: str) -> str:
    return files("likely.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def style_sheet() -> str:
    """All rules of the page: layout, pictures, shades of words and of the confusion matrix."""
    shades = [_shades(LIGHT, "#1c2733"), f"@media (prefers-color-scheme:dark){{{_shades(DARK, '#e8ecf0')}}}"]
    parts = [
        _asset("report.css"),
        charts.STYLE,
        charts.DOTS_STYLE,
        palette(8),
        figure.STYLE,
        regions.STYLE,
        network_drawing.STYLE,
        *shades,
    ]
    return re.sub(r"\n+", "\n", "\n".join(parts))


def _shades(colours: tuple[str, ...], ink: str) -> str:
    """Backgrounds: `tC-L` for words of class C, `gL` and `rL` for cells of the confusion matrix, by strength L."""

    def mixed(colour: str, strength: float) -> str:
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        return f"rgba({red},{green},{blue},{strength:.2f})"

    words = [
        f".document .t{c}-{i},.key .t{c}-{i}{{background:{mixed(hue, 0.075 * i)};color:{ink}}}"
        for c, hue in enumerate(colours)
        for i in range(7)
    ]
    cells = [
        f".{kind}{i}{{background:{mixed(colours[c], 0.05 + 0.045 * i)}}}"
        for kind, c in (("g", 0), ("r", 1))
        for i in range(10)
    ]
    return "\n".join([*words, *cells])


def page(document: Document) -> str:
    """The report as one HTML page."""
    if document["kind"] == NETWORK:
        return _assembled(document, "".join(network_sections(document)), network_lead(document))
    style, script = style_sheet(), _asset("report.js")
    before = [
        _summary_section(document), column_views.columns_section(document), row_views.em_section(document),
        nomogram_view.nomogram_section(document),
    ]  # fmt: skip
    after = [
        row_views.texts_section(document), row_views.predictions_section(document), quality_views.quality_section(document),
        quality_views.calibration_section(document), quality_views.thresholds_section(document),
        quality_views.learning_curve_section(document), row_views.interactions_section(document),
        row_views.structure_section(document), _card_section(document),
    ]  # fmt: skip
    data = _embedded(document)
    others = sum(map(size, [style, script, data, *before, *after]))
    body = "".join([*before, column_views.effects_section(document, MOST_BYTES - others), *after])
    return _assembled(document, body, _summary_line(document), data, script)


def _assembled(document: Document, body: str, lead: str, data: str = "", script: str = "") -> str:
    """The page around its sections: head with the policy, navigation, and the script with its data, if there is one."""
    style = style_sheet()
    links = re.findall(r'<h2 id="([a-z]+)-title">([^<]+)</h2>', body)
    nav = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in links)
    allowed = by_digest(script) if script else "'none'"
    head = page_head(document["title"], f"style-src {by_digest(style)}; script-src {allowed}")
    scripts = f'<script type="application/json" id="report-data">{data}</script>\n<script>{script}</script>\n' if script else ""
    return (
        f"{head}<style>{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#main">Skip to the report</a>\n'
        f"<header><h1>{text(document['title'])}</h1>{lead}</header>\n"
        f'<nav aria-label="Sections"><ul>{nav}</ul></nav>\n<main id="main">{body}</main>\n'
        f"<footer>{_made_by(document)}</footer>\n"
        f"{scripts}</body>\n</html>\n"
    )


def _embedded(document: Document) -> str:
    data = json.dumps(nomogram_view.embedded(document), allow_nan=False, separators=(",", ":"))
    return data.replace("<", "\\u003c").replace("&", "\\u0026")


def _summary_line(document: Document) -> str:
    card = document["card"]
    data = f"; evaluated on {card['data_rows']:,} rows of {text(card['data'])}" if card["data"] else ""
    return (
        f'<p class="lead">Model of {text(card["target"])}: {card["classes"]} classes, {card["columns"]} columns, learned from '
        f"{card['rows_learned_from']:,} rows{data}.</p>"
    )


def _made_by(document: Document) -> str:
    card = document["card"]
    return (
        f"Likely {text(card['versions']['likely'])}, {text(card['created'])}. This file loads nothing from elsewhere."
    )


def tiles(document: Document) -> list[tuple[str, str, str]]:
    """Name, value and remark of the main figures."""
    found = document.get("evaluation")
    card = document["card"]
    shown = [("rows learned from", f"{card['rows_learned_from']:,}", f"{card['columns']} columns, {card['kind']}")]
    if found:
        base, chance = found["baseline"], found["calibration_error_by_chance"]
        shown += [
            ("accuracy", percent(found["accuracy"], 2), f"most frequent class {percent(base['accuracy'])}"),
            ("log loss", number(found["log_loss"]), f"class frequencies {number(base['log_loss'])}"),
            ("AUC", number(found["auc"]), "one class against the rest"),
            ("calibration error", percent(found["calibration_error"], 2), f"{percent(chance, 2)} by chance alone"),
            ("Brier score", number(found["brier"]), f"{found['rows']:,} rows evaluated"),
        ]
    return shown


def _summary_section(document: Document) -> str:
    boxes = "".join(
        f"<div><dt>{text(a)}</dt><dd>{text(b)}<small>{text(c)}</small></dd></div>" for a, b, c in tiles(document)
    )
    warned = "".join(f"<li>{text(warning)}</li>" for warning in document["warnings"])
    warnings = (
        f'<ul class="warnings">{warned}</ul>'
        if warned
        else '<p class="none">Nothing in model or data calls for a warning.</p>'
    )
    total = sum(each["count"] for each in document["classes"]) or 1.0
    few = document["classes"][:MOST_CLASSES]
    rows = [
        [text(each["label"]), count(each["count"]), percent(each["count"] / total), percent(each["prior"])]
        for each in few
    ]
    rest = len(document["classes"]) - MOST_CLASSES
    more = left_out(f"{rest:,} more classes are not listed; {column_views.IN_DOCUMENT} has all.") if rest > 0 else ""
    classes = table(["class", "rows", "share", "prior"], rows, "Classes in the rows learned from", (1, 2, 3))
    return section("summary", "Data and warnings", f'{warnings}<dl class="tiles">{boxes}</dl>{classes}{more}')


def _card_section(document: Document) -> str:
    card = document["card"]
    inside = card["rows_inside_the_model"]
    facts = [
        ("target", card["target"]), ("classes", number(card["classes"])), ("columns", number(card["columns"])),
        ("rows learned from", number(card["rows_learned_from"])), ("kind of model", card["kind"]),
        ("interactions", number(card["interactions"])), ("free parameters", number(card["free_parameters"])),
        ("calibration is older than the counts", "yes" if card["calibration_is_stale"] else "no"),
        ("rows of the table inside the model file", f"{inside:,}" + (" (likely strip removes them)" if inside else "")),
        ("rows of the data shown in this report", number(card["rows_shown_in_this_report"] or None)),
        ("evaluated on", card["data"] or "no data were given"), ("made", card["created"]),
        *((f"version of {name}", version) for name, version in card["versions"].items()),
    ]  # fmt: skip
    return section("card", "Model card", table(["fact", "value"], [[text(a), text(b)] for a, b in facts], "Facts of the model"))


def summary(document: Document) -> str:
    """A short version for a notebook: main figures, warnings and the strongest columns or arcs."""
    network = document["kind"] == NETWORK
    figures = network_tiles(document) if network else tiles(document)
    cells = "".join(f"<tr><th>{text(a)}</th><td>{text(b)}</td><td>{text(c)}</td></tr>" for a, b, c in figures)
    warned = "".join(f"<li>{text(warning)}</li>" for warning in document["warnings"][:8])
    strongest = _arc_lines(document) if network else _column_lines(document)
    tables = f"<table>{cells}</table><ul>{warned}</ul><table>{strongest}</table>"
    return f"<b>{text(document['title'])}</b>{tables}<p>.save('report.html') writes the full report.</p>"


def _arc_lines(document: Document) -> str:
    rows = "".join(
        f"<tr><td>{text(a['from'])} → {text(a['to'])}</td><td>{number(a['information'])}</td></tr>"
        for a in document["arcs"][:SUMMARY_COLUMNS]
    )
    return f"<tr><th>arc</th><th>information</th></tr>{rows}"


def _column_lines(document: Document) -> str:
    rows = "".join(
        f"<tr><td>{text(c['name'])}</td><td>{text(c['kind'])}</td><td>{text(c['family'])}</td><td>{number(c['evidence'])}</td></tr>"
        for c in document["columns"][:SUMMARY_COLUMNS]
    )
    head = "<tr><th>column</th><th>kind</th><th>family</th><th>evidence</th></tr>"
    return f"{head}{rows}"
