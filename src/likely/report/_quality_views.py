"""Views of the quality of a model in a report: confusion, ROC, precision–recall, lift, calibration, thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from likely.plots.figure import Columns, Figure, Trace, figure_svg
from likely.plots.svg import Svg
from likely.report._column_views import IN_DOCUMENT
from likely.report._markup import count, details, grid, left_out, number, percent, section, table, text

Document = Mapping[str, Any]
UNIT = (0.0, 1.0)
MATRIX_CLASSES = 30  # up to which the confusion matrix is drawn
SHARES_CLASSES = 10  # up to which its cells have their share
MOST_ERRORS = 40  # cells that are listed instead
MOST_CLASSES = 80  # in the table of metrics
SHOWN_COLUMNS = 10  # of the rows behind a cell
AREAS = (("area", "roc_area"), ("average precision", "average_precision"))


def quality_section(document: Document) -> str:
    """Confusion matrix, curves and metrics of each class."""
    found = document.get("evaluation")
    if not found:
        return ""
    body = f"<h3>Confusion matrix</h3>{_confusion(document, found)}<h3>Each class</h3>{_per_class(found)}"
    body += f"<h3>Ranking</h3>{grid(ranking_pictures(found))}"
    base = percent(found["baseline"]["accuracy"])
    lead = f"{text(found['title'])}. Without any column, the most frequent class has accuracy {base}."
    return section("quality", "Quality", body, lead)


def _confusion(document: Document, found: Mapping[str, Any]) -> str:
    body = _matrix(found) if len(found["classes"]) <= MATRIX_CLASSES else _largest_errors(found)
    behind = "".join(_rows_behind(document, each) for each in document.get("confusion_rows", []))
    return body + (f"<p>Rows behind the errors, the most confident first:</p>{behind}" if behind else "")


def _largest_errors(found: Mapping[str, Any]) -> str:
    """The cells off the diagonal with the most rows, where the whole matrix would be too large to be read."""
    names, matrix = found["classes"], found["confusion"]
    whole = [sum(row) or 1.0 for row in matrix]
    cells = [(value, i, j) for i, row in enumerate(matrix) for j, value in enumerate(row) if i != j and value]
    cells.sort(key=lambda cell: -cell[0])
    rows = [[text(names[i]), text(names[j]), count(n), percent(n / whole[i])] for n, i, j in cells[:MOST_ERRORS]]
    note = left_out(
        f"A matrix of {len(names):,} classes is too large to be read: these are the {len(rows)} largest of its {len(cells):,} "
        f"cells with errors; {IN_DOCUMENT} has all of it."
    )
    head = ["true class", "predicted", "rows", "share of the true class"]
    return table(head, rows, "The most frequent confusions", (2, 3)) + note


def _matrix(found: Mapping[str, Any]) -> str:
    names, matrix = found["classes"], found["confusion"]
    few = len(names) <= SHARES_CLASSES
    rows = []
    for i, name in enumerate(names):
        whole = sum(matrix[i]) or 1.0
        cells = [text(name)]
        for j, value in enumerate(matrix[i]):
            kind = f"{'g' if i == j else 'r'}{min(9, int(10 * value / whole))}"
            share = f"<br><small>{percent(value / whole)}</small>" if few else ""
            cells.append(f'<td class="cell {kind}">{count(value)}{share}</td>' if value or few else "<td></td>")
        rows.append(cells)
    shaded = "shares of the true class" if few else "shaded by the share of the true class"
    return table(["true \\ predicted", *names], rows, f"True class in the rows, predicted class in the columns; {shaded}")


def _rows_behind(document: Document, cell: Mapping[str, Any]) -> str:
    if not cell["rows"]:
        return ""
    known = list(cell["rows"][0]["values"])
    ranked = [name for column in document["columns"] for name in column["columns"] if name in known]
    names = ranked[:SHOWN_COLUMNS]
    note = f"Values of the {SHOWN_COLUMNS} columns with the most evidence; {IN_DOCUMENT} has all {len(known):,}."
    rows = [
        [
            number(row["row"]),
            percent(row["probability"]),
            *(text(row["values"][n] if row["values"][n] is not None else "–") for n in names),
        ]
        for row in cell["rows"]
    ]
    caption = f"{cell['truth']} predicted as {cell['predicted']}"
    listed = table(["row", "probability", *names], rows, caption, right=(0, 1))
    return details(text(caption), listed + (left_out(note) if len(known) > len(names) else ""))


def _per_class(found: Mapping[str, Any]) -> str:
    keys = ["precision", "recall", "f1", "auc", "average_precision"]
    classes = found["per_class"][:MOST_CLASSES]
    rows = [[text(each["class"]), count(each["rows"]), *(number(each[key]) for key in keys)] for each in classes]
    rest = len(found["per_class"]) - MOST_CLASSES
    more = left_out(f"{rest:,} more classes are not listed; {IN_DOCUMENT} has all.") if rest > 0 else ""
    return more + table(
        ["class", "rows", "precision", "recall", "F1", "AUC", "average precision"],
        rows,
        "Metrics of each class",
        range(1, 7),
    )


def ranking_pictures(found: Mapping[str, Any]) -> list[Svg]:
    """ROC, precision–recall and lift; of two classes the positive one."""
    curves = found["curves"]
    if len(found["classes"]) == 2:
        curves = [each for each in curves if each["class"] == found["positive"]]
    curves = [each for each in curves if each["roc_area"] is not None][:7]
    if not curves:
        return []
    many = len(curves) > 1
    of = f"for {curves[0]['class']}" if not many else "each class against the others"

    def name(each: Mapping[str, Any], key: str) -> str:
        value = each[key]
        return (f"{each['class']} " if many else "") + ("" if value is None else f"{value:.3f}")

    roc = [Trace(name(c, "roc_area"), c["roc"]["false_positive_rate"], c["roc"]["true_positive_rate"]) for c in curves]
    pr = [
        Trace(name(c, "average_precision"), c["precision_recall"]["recall"], c["precision_recall"]["precision"])
        for c in curves
    ]
    lift = [Trace(c["class"] if many else "", c["lift"]["share_of_rows"], c["lift"]["lift"]) for c in curves]
    of_roc, of_pr = (of if many else f"{of}; {name} {number(curves[0][key])}" for name, key in AREAS)
    base = [Trace("", [0, 1], [curves[0]["share"]] * 2, faint=True)] if not many else []
    diagonal, even = Trace("", [0, 1], [0, 1], faint=True), Trace("", [0, 1], [1, 1], faint=True)
    of_lift, ranked = f"{of}: how much more often than in all rows", "share of the rows, highest probability first"
    return [
        figure_svg(Figure("ROC curve", of_roc, "false-positive rate", "true-positive rate", [*roc, diagonal], UNIT, UNIT)),
        figure_svg(Figure("Precision and recall", of_pr, "recall", "precision", [*pr, *base], UNIT, UNIT)),
        figure_svg(Figure("Lift", of_lift, ranked, "lift", [*lift, even], UNIT)),
    ]


def calibration_section(document: Document) -> str:
    """Predicted against observed shares, before and after calibration, with the rows of each bin."""
    found = (document.get("evaluation") or {}).get("calibration")
    if not found or not found["after"]:
        return ""
    lead = (
        f"How often rows are of {text(found['of'])} against the predicted probability, with 95 % intervals; on the "
        "diagonal the probabilities are right. Grey bars are the numbers of rows."
    )
    return section("calibration", "Calibration", grid(calibration_pictures(found)), lead)


def calibration_pictures(found: Mapping[str, Any]) -> list[Svg]:
    """The calibration curve of the model, and that of its counts alone."""
    pairs = [("after", "Calibration of the model")]
    if found["before"]:
        pairs.append(("before", "Before calibration: counts alone"))
    return [_calibration(found[key], title, f"of {found['of']}") for key, title in pairs]


def _calibration(bins: Sequence[Mapping[str, Any]], title: str, of: str) -> Svg:
    whole = sum(b["rows"] for b in bins) or 1
    error = sum(b["rows"] * abs(b["observed"] - b["predicted"]) for b in bins) / whole
    tips = [f"predicted {percent(b['predicted'])}, observed {percent(b['observed'])}, {b['rows']:,} rows" for b in bins]
    x, y = [b["predicted"] for b in bins], [b["observed"] for b in bins]
    trace = Trace("", x, y, [b["low"] for b in bins], [b["high"] for b in bins], marks=True, tips=tips)
    columns = Columns([(b["from"], b["to"]) for b in bins], [b["rows"] for b in bins], tips)
    diagonal = Trace("", [0, 1], [0, 1], faint=True)
    subtitle = f"{of}; mean distance from the diagonal {100 * error:.2f} points"
    return figure_svg(
        Figure(title, subtitle, "predicted probability", "observed share", [trace, diagonal], UNIT, UNIT, columns)
    )


def thresholds_section(document: Document) -> str:
    """Counts, rates and cost at each threshold, with costs that can be changed."""
    found = (document.get("evaluation") or {}).get("thresholds")
    if not found:
        return ""
    controls = "".join(
        f'<label for="{name}">{text(label)}<input id="{name}" type="number" min="0" step="any" value="{value:g}"></label>'
        for name, label, value in (
            ("cost-alarm", "cost of a false positive", found["false_positive_cost"]),
            ("cost-miss", "cost of a false negative", found["false_negative_cost"]),
        )
    )
    rows = []
    for row in found["rows"]:
        found_here = f'data-hits="{row["true_positives"]:.15g}" data-alarms="{row["false_positives"]:.15g}"'
        cost = f'<td class="n" {found_here}>{number(row["mean_cost"])}</td>'
        counts = [
            number(row[key], 0) for key in ("true_positives", "false_positives", "false_negatives", "true_negatives")
        ]
        rates = [percent(row[key]) for key in ("flagged", "precision", "recall")]
        rows.append([f"{row['threshold']:g}", *counts, *rates, cost])
    head = [
        "threshold",
        "true pos.",
        "false pos.",
        "false neg.",
        "true neg.",
        "flagged",
        "precision",
        "recall",
        "mean cost",
    ]
    best = f"Lowest mean cost on these rows: {number(found['cost_at_best'])} with the threshold {found['best']:.3f}."
    listed = table(head, rows, f"Rows predicted as {found['class']} from each threshold on", range(1, 9))
    body = f'<div class="controls hidden">{controls}</div><p id="cost-best" role="status">{text(best)}</p>{listed}'
    return section(
        "thresholds", "Thresholds and costs", body, f"{text(found['class'])} is predicted from this probability on."
    )


def learning_curve_section(document: Document) -> str:
    """Accuracy and log loss against the number of rows learned from."""
    found = document.get("learning_curve")
    if not found:
        return ""
    pictures = []
    for key, title in (("accuracy", "Accuracy"), ("log_loss", "Log loss")):
        points = found["points"]
        parts = ([p[key][part] for p in points] for part in ("mean", "low", "high"))
        mean, low, high = ([float("nan") if v is None else v for v in part] for part in parts)
        trace = Trace("", [p["size"] for p in points], mean, low, high, marks=True)
        pictures.append(
            figure_svg(
                Figure(f"{title} by rows learned from", "mean and range over seeds", "rows", title.lower(), [trace])
            )
        )
    return section("learning", "Learning curve", grid(pictures), "Metrics on held-out rows of the data given.")
