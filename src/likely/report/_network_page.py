"""Views of a Bayesian network: drawing, strongest arcs, parameters of each node, log-likelihood of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from likely.plots.bars import Bar, BarChart, bars_svg
from likely.plots.figure import Columns, Figure, Trace, figure_svg
from likely.plots.network_drawing import DrawnNode, counted, network_svg
from likely.plots.svg import Svg
from likely.report._column_views import IN_DOCUMENT
from likely.report._markup import count, details, grid, left_out, number, percent, section, size, table, text, wide

Document = Mapping[str, Any]
MOST_BYTES = 400_000  # of the parameter tables
FIRST = 6  # nodes whose parameters are open
MOST_ROWS = 40  # of a parameter table
MOST_NODES = 80  # of the drawing
MOST_ARCS = 20  # in the picture of the strongest


def network_sections(document: Document) -> list[str]:
    """All views, in their order."""
    return [_summary(document), _drawing(document), _arcs(document), _rows(document), _parameters(document), _card(document)]


def network_lead(document: Document) -> str:
    """The sentence under the title."""
    card = document["card"]
    data = f"; log-likelihood of {card['data_rows']:,} rows of {text(card['data'])}" if card["data"] else ""
    learned = "" if card["rows_learned_from"] is None else f", learned from {count(card['rows_learned_from'])} rows"
    return f'<p class="lead">Bayesian network of {card["nodes"]} nodes and {card["arcs"]} arcs{learned}{data}.</p>'


def network_tiles(document: Document) -> list[tuple[str, str, str]]:
    """Name, value and remark of the main figures."""
    card, found = document["card"], document.get("evaluation")
    learned = card["rows_learned_from"]
    shown = [
        ("nodes", number(card["nodes"]), f"{len(card['hidden_nodes'])} of them hidden"), ("arcs", number(card["arcs"]), ""),
        ("rows learned from", "none" if learned is None else count(learned), f"parameters: {card['fitted_by']}"),
        ("free parameters", number(card["free_parameters"]), ""),
    ]  # fmt: skip
    if found and found["rows"]:
        alone = found["independent_log_likelihood"]
        note = "" if alone is None else f"without arcs {number(alone / found['rows'])}"
        each = None if found["log_likelihood"] is None else found["log_likelihood"] / found["rows"]
        shown.append(("log-likelihood a row", number(each), note))
    return shown


def _summary(document: Document) -> str:
    boxes = "".join(
        f"<div><dt>{text(a)}</dt><dd>{text(b)}<small>{text(c)}</small></dd></div>" for a, b, c in network_tiles(document)
    )
    warned = "".join(f"<li>{text(warning)}</li>" for warning in document["warnings"][:40])
    more = left_out(f"{len(document['warnings']) - 40:,} more warnings; {IN_DOCUMENT} has all.") if warned.count("<li>") < len(
        document["warnings"]) else ""  # fmt: skip
    listed = f'<ul class="warnings">{warned}</ul>{more}' if warned else '<p class="none">Nothing calls for a warning.</p>'
    return section("summary", "Network and warnings", f'{listed}<dl class="tiles">{boxes}</dl>')


def network_drawing(document: Document) -> Svg:
    """The nodes in layers, parents above their children; of many, those with the strongest arcs."""
    kept = _drawn_nodes(document)
    nodes = [
        DrawnNode(n["name"], _tip(n), "hidden" if n["hidden"] else "number" if n["kind"] == "number" else "node")
        for n in document["nodes"] if n["name"] in kept
    ]  # fmt: skip
    arcs = [(arc["from"], arc["to"]) for arc in document["arcs"] if {arc["from"], arc["to"]} <= kept]
    drawn = network_svg(nodes, arcs, "Bayesian network", f"{counted(len(nodes), 'node')}, {counted(len(arcs), 'arc')}")
    return Svg(drawn.replace(' tabindex="0"', ""))  # a picture has no focusable parts


def _drawn_nodes(document: Document) -> set[str]:
    kept: dict[str, None] = {}
    for arc in document["arcs"]:
        if len(kept.keys() | {arc["from"], arc["to"]}) <= MOST_NODES:
            kept |= {arc["from"]: None, arc["to"]: None}
    for node in document["nodes"]:
        if len(kept) < MOST_NODES:
            kept[node["name"]] = None
    return set(kept)


def _tip(node: Mapping[str, Any]) -> str:
    head = f"P({node['name']} | {', '.join(node['parents'])})" if node["parents"] else f"P({node['name']})"
    if node["marginal"] is None:
        return head
    if node["kind"] == "number":
        return f"{head}\nmean {node['marginal'][0]:.4g}, variance {node['marginal'][1]:.4g}"
    shares = list(zip(node["values"], node["marginal"], strict=True))[:8]
    return f"{head}\n" + ", ".join(f"{value} {percent(p)}" for value, p in shares)


def _drawing(document: Document) -> str:
    left = len(document["nodes"]) - len(_drawn_nodes(document))
    note = left_out(f"{left:,} nodes are not drawn; Network.svg() draws all.") if left else ""
    lead = "Parents stand above their children; numeric nodes are boxes, hidden ones dashed."
    return section("network", "Drawing", wide(network_drawing(document), "Drawing of the network") + note, lead)


def _arcs(document: Document) -> str:
    known = [arc for arc in document["arcs"] if arc["information"] is not None]
    if not known:
        return ""
    rows = [
        (f"{arc['from']} → {arc['to']}", [Bar(arc["information"], value=f"{arc['information']:.4f}")])
        for arc in known[:MOST_ARCS]
    ]
    chart = bars_svg(BarChart("Strongest arcs", "information of parent and child, given the other parents", "nats a row", rows,
                              longest=34))  # fmt: skip
    rest = [[f"{text(arc['from'])} → {text(arc['to'])}", number(arc["information"])] for arc in known[MOST_ARCS:400]]
    more = details(f"{len(rest):,} weaker arcs", table(["arc", "information"], rest, "Weaker arcs", (1,))) if rest else ""
    left = len(document["arcs"]) - len(rows) - len(rest)
    note = left_out(f"{left:,} more arcs are not listed; {IN_DOCUMENT} has all.") if left else ""
    lead = (
        "The information a parent adds about its child beyond the other parents: the log-likelihood that a row would lose "
        "without the arc, in nats. It is no evidence of the direction of an arc."
    )
    return section("arcs", "Strongest arcs", grid([chart]) + more + note, lead)


def _rows(document: Document) -> str:
    found = document.get("evaluation")
    if not found or not found["rows"]:
        return ""
    edges, counts = found["histogram"]["edges"], found["histogram"]["counts"]
    pairs = list(pairwise(edges))
    tips = [f"{a:.4g} to {b:.4g}: {n:,.0f} rows" for (a, b), n in zip(pairs, counts, strict=True)]
    pictures = []
    if pairs:
        outline = Trace("", [v for pair in pairs for v in pair], [n for n in counts for _ in (0, 1)])
        highest = 1.05 * max(counts)
        behind, of = Columns(pairs, counts, tips), f"{found['rows']:,} rows"
        pictures.append(figure_svg(Figure("Log-likelihood of the rows", of, "log-likelihood (nats)", "rows", [outline],
                                          y=(0.0, highest), columns=behind)))  # fmt: skip
    facts = [["all rows", number(found["log_likelihood"], 2)],
             ["the same nodes without arcs", number(found["independent_log_likelihood"], 2)],
             ["rows with probability zero", number(found["impossible_rows"], 0)]]  # fmt: skip
    body = grid(pictures) + table(["log-likelihood", "nats"], facts, "Log-likelihood of the data", (1,))
    if found["unusual_rows"]:
        rows = [[number(r["row"]), "impossible" if r["log_likelihood"] is None else number(r["log_likelihood"], 2)]
                for r in found["unusual_rows"]]  # fmt: skip
        body += table(["row", "log-likelihood"], rows, "The least probable rows", (1,))
    return section("rows", "Log-likelihood", body, "How probable the rows of the data are; missing cells are summed out.")


def _parameters(document: Document) -> str:
    """The table of each node, open for the first ones; as long as they fit."""
    parts: list[str] = []
    budget, left = MOST_BYTES, 0
    for i, node in enumerate(document["nodes"]):
        view = _node_view(node)
        budget -= size(view)
        if budget < 0 and parts:
            left += 1
            continue
        given = f" given {', '.join(map(text, node['parents']))}" if node["parents"] else ""
        parts.append(details(f"<b>{text(node['name'])}</b>{given}", view, opened=i < FIRST))
    note = left_out(f"The parameters of {left:,} more nodes are not shown here; {IN_DOCUMENT} has all.") if left else ""
    lead = "The distribution of each node given its parents, with the rows counted of each configuration."
    return section("parameters", "Parameters", "".join(parts) + note, lead)


def _node_view(node: Mapping[str, Any]) -> str:
    shown = node["table"][:MOST_ROWS]
    if node["kind"] == "number":
        slopes = list(shown[0]["slopes"]) if shown else []
        parents = [p for p in node["parents"] if p not in slopes]
        head = [*parents, "rows", "intercept", *(f"slope of {name}" for name in slopes), "deviation"]
        lines = [
            [*map(text, row["given"]), _rows_seen(row), number(row["intercept"]),
             *(number(row["slopes"][name]) for name in slopes), number(math.sqrt(row["variance"] or 0.0))]
            for row in shown
        ]  # fmt: skip
    else:
        head = [*node["parents"], "rows", *node["values"]]
        lines = [[*map(text, row["given"]), _rows_seen(row), *(number(p) for p in row["probabilities"])] for row in shown]
    cut = len(node["table"]) - len(shown)
    note = left_out(f"{cut:,} more configurations are not listed; {IN_DOCUMENT} has all.") if cut > 0 else ""
    free = node["free_parameters"]
    caption = f"{node['name']}: {free:,} free parameter{'s' if free != 1 else ''}"
    return table(head, lines, caption, range(len(shown[0]["given"]) if shown else 0, len(head))) + note


def _rows_seen(row: Mapping[str, Any]) -> str:
    return "–" if row["count"] is None else count(round(row["count"], 2))


def _card(document: Document) -> str:
    card = document["card"]
    learned = card["rows_learned_from"]
    facts = [
        ("nodes", number(card["nodes"])), ("arcs", number(card["arcs"])), ("hidden", ", ".join(card["hidden_nodes"]) or "none"),
        ("rows learned from", "none" if learned is None else count(learned)), ("parameters by", card["fitted_by"]),
        ("free parameters", number(card["free_parameters"])), ("evaluated on", card["data"] or "no data were given"),
        ("made", card["created"]), *((f"version of {name}", version) for name, version in card["versions"].items()),
    ]  # fmt: skip
    rows = [[text(a), text(b)] for a, b in facts]
    return section("card", "Model card", table(["fact", "value"], rows, "Facts of the network"))
