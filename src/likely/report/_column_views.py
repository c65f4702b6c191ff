"""Views of the columns in a report: table with small pictures, effects, class-conditional pictures, nomogram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from likely.plots.bars import Bar, BarChart, bars_svg
from likely.plots.figure import Columns, Figure, Trace, figure_svg
from likely.plots.svg import Svg
from likely.report._markup import details, grid, left_out, number, percent, section, size, table, text

Document = Mapping[str, Any]
FIRST = 6  # columns whose pictures are shown at once
LISTED = 80  # columns in the table; of the others the names
NAMED = 1_000  # columns whose names are listed
SUMMARISED = 200  # columns without a picture, whose strongest values are listed
MOST_CLASSES = 4  # in one picture
MOST_BINS = 24  # of the bars behind a line
MOST_BARS = 20  # of a chart of categories
TWO_ERRORS = 1.96
SKEWED = 0.8  # share of the rows in narrow bins from which on an axis is of bins, not of numbers
ORDINAL = " (bins of unequal width)"
LINE = 200  # bytes of a column in the list of those without a picture, about
IN_DOCUMENT = "the document (likely report --json, Report.to_dict())"


def class_names(document: Document) -> list[str]:
    """The classes as text."""
    return [each["label"] for each in document["classes"]]


def shown_classes(document: Document) -> list[int]:
    """Classes that are drawn in one picture: of two the positive one, of many the most frequent."""
    names = class_names(document)
    if len(names) == 2:
        return [names.index(document["positive"])]
    order = sorted(range(len(names)), key=lambda c: -document["classes"][c]["count"])
    return sorted(order[:MOST_CLASSES])


def columns_section(document: Document) -> str:
    """All columns in a table: family, missing cells, importance and a small picture."""
    strongest = max((c["evidence"] or 0.0 for c in document["columns"]), default=0.0) or 1.0
    rows = []
    for column in document["columns"][:LISTED]:
        now = column.get("in_data") or {}
        rise = column["importance"].get("log_loss_rise")
        rows.append([
            text(column["name"]), text(f"{column['kind']}, {column['family']}"), percent(column["missing_share"]),
            percent(now.get("missing_share")), percent(now.get("unseen_share")), number(column["importance"].get("weight"), 2),
            number(rise, 5), f"<td>{_bar((column['evidence'] or 0.0) / strongest)}</td>", f"<td>{_spark(column)}</td>",
        ])  # fmt: skip
    head = [
        "column",
        "kind, family",
        "missing",
        "missing here",
        "unseen here",
        "weight",
        "log-loss rise",
        "evidence",
        "rows",
    ]
    body = table(head, rows, "Columns by mean evidence", right=(2, 3, 4, 5, 6)) + _not_listed(document)
    lead = (
        "<b>Evidence</b> is the mean absolute weight of evidence over the rows learned from; <b>log-loss rise</b> is what "
        "leaving the column out would cost (leave-one-out); <b>weight</b> is the fitted weight of the column."
    )
    left = document["card"]["columns_left_out"]
    if left:
        items = "".join(f"<li>{text(each['name'])}: {text(each['reason'])}</li>" for each in left)
        body += details("Columns that were left out", f"<ul>{items}</ul>")
    return section("columns", "Columns", body, lead)


def _not_listed(document: Document) -> str:
    """Names of the columns that are not in the table."""
    rest = document["columns"][LISTED:]
    if not rest:
        return ""
    names = ", ".join(f"{text(c['name'])} ({number(c['evidence'])})" for c in rest[:NAMED])
    more = f" … and {len(rest) - NAMED:,} more" if len(rest) > NAMED else ""
    note = left_out(f"The table has the {LISTED} columns with the most evidence; {IN_DOCUMENT} has all.")
    return note + details(f"The {len(rest):,} other columns, with their evidence", f"<p>{names}{more}</p>")


def _bar(share: float) -> str:
    wide = max(1.0, 88 * share)
    return (
        f'<svg width="90" height="14" role="img" aria-label="{100 * share:.0f} % of the strongest">'
        '<rect class="lk-quiet" width="90" height="14" rx="2"/>'
        f'<rect class="lk-f0" width="{wide:.1f}" height="14" rx="2"/></svg>'
    )


def _spark(column: Mapping[str, Any]) -> str:
    """Counts of the values or bins, or the density, as a small picture."""
    effect = column.get("effect")
    if not effect:
        return ""
    rows = effect["counts"] or effect["shares"]
    heights = _grouped([sum(row) for row in rows], 24)
    most = max(heights, default=0.0) or 1.0
    wide = 90 / max(len(heights), 1)
    bar = f"h{max(wide - 0.8, 0.6):.1f}"
    bars = "".join(f"M{i * wide:.1f} 22v{-22 * h / most:.1f}{bar}V22Z" for i, h in enumerate(heights) if h > 0)
    picture = f'<path class="lk-f0" d="{bars}"/>'
    return f'<svg width="90" height="22" role="img" aria-label="distribution of {text(column["name"])}">{picture}</svg>'


def _grouped(values: Sequence[float], most: int) -> list[float]:
    """Sums of neighbours, so that there are few."""
    size = -(-len(values) // most) or 1
    return [sum(values[i : i + size]) for i in range(0, len(values), size)]


def effects_section(document: Document, budget: int) -> str:
    """For each column: its distribution in each class, and its weight of evidence with uncertainty.

    Pictures are drawn as long as they fit into so many bytes; of all other columns the strongest values are listed.
    """
    columns = [c for c in document["columns"] if c.get("effect")]
    chosen = document.get("first_columns", [])
    columns.sort(key=lambda c: chosen.index(c["name"]) if c["name"] in chosen else len(chosen))
    if not columns:
        return ""
    first = "".join(_column_view(document, column) for column in columns[:FIRST])
    budget, views, rest = budget - size(first), [], columns[FIRST:]
    while rest:
        view = details(f"<b>{text(rest[0]['name'])}</b>", _column_view(document, rest[0], heading=False))
        budget -= size(view)
        if budget < LINE * min(len(rest), SUMMARISED):
            break
        views.append(view)
        rest = rest[1:]
    more = f"<h3>More columns</h3>{''.join(views)}{_summarised(document, rest)}" if views or rest else ""
    of = f"for {text(document['positive'])}" if len(document["classes"]) == 2 else "for each class against the others"
    lead = (
        f"Left: how the column is distributed in each class. Right: its weight of evidence {of}, in nats: what it adds to the "
        "log-odds. Bands and error bars are two standard errors; grey bars are the numbers of rows learned from. A missing "
        "cell is a bar of its own."
    )
    return section("effects", "Effects", first + more, lead)


def _summarised(document: Document, columns: Sequence[Mapping[str, Any]]) -> str:
    """Columns without a picture: the values with the most evidence for and against the first class shown."""
    if not columns:
        return ""
    c = shown_classes(document)[0]
    label = class_names(document)[c]
    rows = []
    for column in columns[:SUMMARISED]:
        effect = column["effect"]
        weights = [row[c] for row in effect["weights"]]
        ends = (weights.index(max(weights)), weights.index(min(weights)))
        strongest = [f"{text(effect['labels'][i])} ({weights[i]:+.2f})" for i in ends]
        rows.append([text(column["name"]), *strongest, number(column["evidence"])])
    caption = f"Columns without pictures: values with the most evidence for and against {label}, in nats"
    more = f" {len(columns) - SUMMARISED:,} more are not listed." if len(columns) > SUMMARISED else ""
    note = left_out(
        f"To keep the page small, {len(columns):,} columns with less evidence have no picture here.{more} Choose the columns "
        f"that are drawn first with --columns A,B (report(..., columns=[...])); {IN_DOCUMENT} has the numbers of all."
    )
    return note + table(["column", "most for", "most against", "evidence"], rows, caption, (3,))


def _column_view(document: Document, column: Mapping[str, Any], *, heading: bool = True) -> str:
    pictures = [class_picture(document, column), effect_picture(document, column)]
    title = f"<h3>{text(column['name'])}</h3>" if heading else ""
    return title + grid(pictures)


def class_picture(document: Document, column: Mapping[str, Any]) -> Svg:
    """Distribution of a column in each class."""
    effect, names = column["effect"], class_names(document)
    classes = list(range(2)) if len(names) == 2 else shown_classes(document)
    title, subtitle = f"{column['name']} in each class", "share of the rows of the class"
    if column["kind"] == "number" and effect["values"]:
        if effect["counts"] is None:
            traces = [Trace(names[c], effect["values"], [row[c] for row in effect["shares"]]) for c in classes]
            return figure_svg(
                Figure(
                    title, "density in each class, as fitted", column["name"], "density", traces, y=_from_zero(traces)
                )
            )
        low, high, counts = _merged(effect, 24)
        ticks = _ordinal_ticks(effect, low, high)
        if ticks:
            low, high = list(range(len(low))), list(range(1, len(low) + 1))
        traces = []
        for c in classes:
            whole = sum(row[c] for row in counts) or 1.0
            x = [v for a, b in zip(low, high, strict=True) for v in (a, b)]
            y = [row[c] / whole for row in counts for _ in (0, 1)]
            traces.append(Trace(names[c], x, y))
        label = f"{column['name']}{ORDINAL if ticks else ''}"
        return figure_svg(
            Figure(title, subtitle, label, "share", traces, y=_from_zero(traces), percent=True, ticks=ticks)
        )
    order = _most_frequent(effect)
    rows = [(effect["labels"][i], [Bar(effect["shares"][i][c], colour=j, tip=f"{names[c]}: {percent(effect['shares'][i][c])}")
                                   for j, c in enumerate(classes)]) for i in order]  # fmt: skip
    return bars_svg(
        BarChart(title, subtitle + _not_shown(effect, order), "share", rows, [names[c] for c in classes], percent=True)
    )


def _from_zero(traces: Sequence[Trace]) -> tuple[float, float]:
    return 0.0, 1.05 * max((y for t in traces for y in t.y), default=1.0) or 1.0


def _merged(effect: Mapping[str, Any], most: int) -> tuple[list[float], list[float], list[list[float]]]:
    """Bins of a number, neighbours joined so that there are few."""
    size = -(-len(effect["low"]) // most) or 1
    starts = range(0, len(effect["low"]), size)
    low = [effect["low"][i] for i in starts]
    high = [effect["high"][min(i + size, len(effect["high"])) - 1] for i in starts]
    counts = [[sum(c) for c in zip(*effect["counts"][i : i + size], strict=True)] for i in starts]
    return low, high, counts


def _ordinal_ticks(effect: Mapping[str, Any], low: Sequence[float], high: Sequence[float]) -> list[tuple[float, str]]:
    """Ticks of an axis on which all bins are equally wide: for numbers of which most lie in a small part of their range."""
    counts = [sum(row) for row in effect["counts"]]
    whole, reach = sum(counts) or 1.0, effect["high"][-1] - effect["low"][0]
    narrow = sum(n for n, a, b in zip(counts, effect["low"], effect["high"], strict=True) if b - a < reach / 200)
    if narrow < SKEWED * whole or len(low) < 4:
        return []
    return [(i, short_number(v)) for i, v in enumerate([*low, high[-1]]) if i % -(-len(low) // 6) == 0]


def short_number(value: float) -> str:
    """A number as a short label."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _most_frequent(effect: Mapping[str, Any]) -> list[int]:
    counts = [sum(row) for row in effect["counts"] or effect["shares"]]
    return sorted(sorted(range(len(counts)), key=lambda i: -counts[i])[:MOST_BARS])


def _not_shown(effect: Mapping[str, Any], order: Sequence[int]) -> str:
    more = len(effect["labels"]) - len(order) + effect["others"]
    return f"; {more:,} rarer values are not shown" if more else ""


def effect_picture(document: Document, column: Mapping[str, Any]) -> Svg:
    """Weight of evidence of a column with its uncertainty, 'missing' as its own bar."""
    effect, names, classes = column["effect"], class_names(document), shown_classes(document)
    title = f"Evidence of {column['name']}"
    of = f"for {names[classes[0]]}" if len(classes) == 1 else "for each class against the others"
    missing = sum(effect["missing"]["counts"] or [0.0])
    if column["kind"] == "number" and effect["values"]:
        return _line_effect(column, names, classes, (title, of))
    order = sorted(_most_frequent(effect), key=lambda i: -effect["weights"][i][classes[0]])
    seen = [sum(row) for row in effect["counts"]] if effect["counts"] else [None] * len(effect["labels"])
    rows = [
        (effect["labels"][i], _effect_bars(effect["weights"][i], effect["errors"][i], names, classes, seen[i])) for i in order
    ]
    if missing:
        rows.append(("missing", _effect_bars(effect["missing"]["weights"], None, names, classes, missing)))
    legend = [names[c] for c in classes] if len(classes) > 1 else []
    return bars_svg(BarChart(title, of + _not_shown(effect, order), "weight of evidence (nats)", rows, legend))


def _line_effect(
    column: Mapping[str, Any], names: Sequence[str], classes: Sequence[int], titles: tuple[str, str]
) -> Svg:
    """Weight of evidence along a number, over bars of the rows learned from."""
    effect = column["effect"]
    at, behind, ticks = effect["values"], None, []
    if effect["counts"] is not None:
        low, high, counts = _merged(effect, MOST_BINS)
        tips = [f"{a:.6g} to {b:.6g}: {sum(n):,.0f} rows" for a, b, n in zip(low, high, counts, strict=True)]
        ticks = _ordinal_ticks(effect, low, high)
        edges = list(zip(low, high, strict=True))
        if ticks:
            size = -(-len(at) // MOST_BINS) or 1
            at = [(i + 0.5) / size for i in range(len(at))]
            edges = [(i, i + 1) for i in range(len(edges))]
        behind = Columns(edges, [sum(n) for n in counts], tips)
    traces = []
    for c in classes:
        y = [row[c] for row in effect["weights"]]
        e = [TWO_ERRORS * row[c] for row in effect["errors"]]
        band = ([a - b for a, b in zip(y, e, strict=True)], [a + b for a, b in zip(y, e, strict=True)])
        traces.append(Trace(names[c] if len(classes) > 1 else "", at, y, *band))
    label = f"{column['name']}{ORDINAL if ticks else ''}"
    absent, rows = effect["missing"]["weights"], sum(effect["missing"]["counts"] or [0.0])
    aside = [(absent[c], f"missing, {names[c]}: {absent[c]:+.3f}, {rows:,.0f} rows") for c in classes] if rows else []
    axis, reach = "weight of evidence (nats)", _bounded(effect, classes)
    found = Figure(
        *titles, label, axis, traces, columns=behind, zero=True, y=reach, ticks=ticks, aside=aside, aside_label="missing"
    )
    return figure_svg(found)


def _bounded(effect: Mapping[str, Any], classes: Sequence[int]) -> tuple[float, float]:
    """Range of the axis: that of the line, and its band as far as it is not much wider."""
    line = [row[c] for row in effect["weights"] for c in classes]
    margin = 0.35 * max(max(line) - min(line), 0.5)
    ends = [
        w[c] + s * TWO_ERRORS * e[c]
        for w, e in zip(effect["weights"], effect["errors"], strict=True)
        for c in classes
        for s in (-1, 1)
    ]
    return max(min([*ends, 0.0]), min([*line, 0.0]) - margin), min(max([*ends, 0.0]), max([*line, 0.0]) + margin)


def _effect_bars(
    weights: Sequence[float],
    errors: Sequence[float] | None,
    names: Sequence[str],
    classes: Sequence[int],
    rows: float | None,
) -> list[Bar]:
    found = []
    for j, c in enumerate(classes):
        w, e = weights[c], TWO_ERRORS * errors[c] if errors else float("nan")
        colour = (0 if w >= 0 else 1) if len(classes) == 1 else j
        n = f", {rows:,.0f} rows" if rows is not None else ""
        spread = f" ± {e:.2f}" if errors else ""
        found.append(Bar(w, colour=colour, low=w - e, high=w + e, tip=f"{names[c]}: {w:+.3f}{spread}{n}"))
    return found
