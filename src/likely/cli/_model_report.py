"""Report of a model as a dictionary, printed as tables or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from likely.cli._terminal import Terminal

if TYPE_CHECKING:
    from likely.evaluation.evaluation import Evaluation
    from likely.latent.clusters import Clusters
    from likely.model.model import Model
    from likely.model.parameter_tables import ParameterTable
    from likely.schema import Schema


def _top_words(known: Model) -> dict[str, dict[str, list[str]]]:
    """The words with the highest weights, for every text column and class."""
    texts = [c.name for c in known.schema.columns if c.kind == "text"]
    found = {name: known.top_words(column=name) for name in texts}
    return {name: {str(c): [word for word, _ in best] for c, best in words.items()} for name, words in found.items()}


def model(known: Model) -> dict[str, Any]:
    """Report of a model: rows, classes, columns with their families, calibration and number of parameters."""
    families = {name: block for block in known.blocks for name in block.columns}
    chosen = {p.columns[0]: p.how for p in known.block_parameters if len(p.columns) == 1 and p.how}
    columns = [
        {
            "column": column.name,
            "kind": column.kind,
            "family": _family(families[column.name]),
            "values": len(column.values) if column.kind == "category" else None,
            "reason": column.reason,
            **({"taken": dict(column.taken)} if column.taken else {}),
            **({"chosen": chosen[column.name]} if column.name in chosen else {}),
        }
        for column in known.schema.columns
    ]
    counts = known.parameter_count
    return {
        "target": known.schema.target.name,
        "rows": known.tally.rows,
        "rows_inside": known.tally.rows_kept,
        "can_recalibrate": not known.frozen,
        "look_alikes": _look_alikes(known),
        "classes": list(known.parameters[known.schema.target.name]),
        "columns": columns,
        "every_family_asked_for": known.schema.every_family_asked_for,
        "taken_as_missing": taken_as_missing(known.schema),
        **({"top_words": words} if (words := _top_words(known)) else {}),
        **({"calibration": _calibration(known)} if known.calibration else {}),
        "left_out": [{"column": name, "reason": reason} for name, reason in known.schema.ignored],
        "parameters": {
            "table_entries": counts.table_entries,
            "free": counts.free,
            "free_without_independence": counts.free_without_independence,
        },
    }


def em_summary(found: Clusters) -> dict[str, Any]:
    """What EM reported of a clustering; only that it is not known where the counts changed since."""
    tried = {"tried": {str(k): value for k, value in found.tried.items()}} if found.tried else {}
    if found.summary is None:
        return {"kind": "clusters", "log_likelihood": None}
    names = ("log_likelihood", "bic", "icl", "aic", "converged", "distance_left", "seed")
    known = {name: getattr(found, name) for name in names}
    return {"kind": "clusters", "rounds": len(found.trace)} | known | tried | {"trace": list(found.trace)}


def show_em_summary(terminal: Terminal, report: dict[str, Any]) -> None:
    """One line of what EM reported."""
    if report["log_likelihood"] is None:
        terminal.line("log-likelihood   not known: the counts changed since EM ended (merged, updated or forgotten)")
        return
    end = "" if report["converged"] else ", not converged"
    terminal.line(f"log-likelihood   {report['log_likelihood']:,.2f} after {report['rounds']} iterations{end}")
    terminal.line(f"BIC              {report['bic']:,.2f}; ICL {report['icl']:,.2f}, AIC {report['aic']:,.2f}")


def _look_alikes(known: Model) -> list[str]:
    from likely.schema import alike_message, look_alikes

    columns = [known.schema.target, *known.schema.columns]
    return [alike_message(column.name, alike) for column in columns if (alike := look_alikes(column.values))]


def rows_inside(report: dict[str, Any], remedy: str) -> str:
    """Whether the model file contains rows of the table, and how to avoid that."""
    if report["rows_inside"]:
        return f"It contains {report['rows_inside']:,} distinct rows of the table, for recalibration: {remedy}"
    later = "" if report["can_recalibrate"] else "; it cannot be recalibrated"
    return f"It contains counts and no rows of the table{later}"


def _calibration(known: Model) -> dict[str, Any]:
    """Column weights, interactions, weights of missingness, class biases and temperature."""
    fitted = known.calibration
    assert fitted is not None
    interactions = sorted(fitted.interactions, key=lambda each: -each.gain)
    return {
        "dependence": known.dependence,
        "temperature": fitted.temperature,
        "bias": {str(label): float(b) for label, b in zip(known.classes, fitted.bias, strict=True)},
        "weights": dict(fitted.weights),
        "missing": {name: weight for name, (weight, _) in fitted.absent.items()},
        "interactions": [
            {"columns": list(e.columns), "weight": e.weight, "gain": e.gain, "error": e.error} for e in interactions
        ],
        "stale": known.stale,
    }


def _family(block: Any) -> str:
    """Name and settings of a family, and the columns of a block."""
    settings = ", ".join(f"{name} {value}" for name, value in block.family.shown_settings().items())
    text = f"{block.family.name} ({settings})" if settings else str(block.family.name)
    return text if len(block.columns) == 1 else f"{text} [{', '.join(block.columns)}]"


def priors(known: Model) -> dict[str, Any]:
    """Priors of values and classes."""
    prior = known.prior
    return {
        "values": str(prior.default),
        "columns": {name: str(own) for name, own in prior.columns.items()},
        "classes": "as counted" if prior.classes is None else str(prior.classes),
    }


MOST_CLASSES = 20  # side by side
MOST_INTERVALS = 2_000  # lines of a table: each interval takes two quantiles
ARC = 3  # columns of the importance table of every model


def importance(known: Model) -> list[dict[str, Any]]:
    """Feature importance, in decreasing order of mutual information."""
    from likely.evaluation.feature_importance import importance as weigh

    return sorted(weigh(known), key=lambda entry: -(entry["mutual_information"] or 0.0))


def show_importance(terminal: Terminal, report: dict[str, Any]) -> None:
    """Print the feature importance."""
    rows = [list(entry.values()) for entry in report["importance"]]
    if any(cell is not None for row in rows for cell in row[1:]):
        more = ["weight", "log loss rise"] if len(rows[0]) > ARC else []
        terminal.table(["column", "mutual information (nats)", "arc probability", *more], rows)
        terminal.line()
    if report["average"]:
        terminal.line(
            "averaged         over all choices of which columns depend on the class, by arc probability"
        )


def show_classes(terminal: Terminal, report: dict[str, Any]) -> None:
    """Print the classes with their rows and prior probabilities."""
    rows = [[str(row["class"]), row["count"], row["probability"]] for row in report["classes"]]
    terminal.table(["class", "rows", "prior"], rows)
    terminal.line()


def show_columns(terminal: Terminal, report: dict[str, Any]) -> None:
    """Print the columns with kind, family and reason, interactions, missing-value tokens and ignored columns."""
    rows = [[c["column"], c["kind"], c["family"], _why(c)] for c in report["columns"]]
    terminal.table(["column", "kind", "family", "why"], rows)
    if report["every_family_asked_for"] and report.get("kind") != "clusters":
        from likely.schema import EVERY_FAMILY

        terminal.line(EVERY_FAMILY)
    terminal.line()
    for name, words in report.get("top_words", {}).items():
        terminal.line(f"{name}: the words with the largest weights of each class")
        terminal.table(["class", "words"], [[label, ", ".join(best)] for label, best in words.items()])
        terminal.line()
    if report.get("calibration", {}).get("interactions"):
        rows = [[" with ".join(e["columns"]), e["weight"], e["gain"]] for e in report["calibration"]["interactions"]]
        terminal.table(["interaction", "weight", "gain (nats)"], rows)
        terminal.line()
    show_missing(terminal, report["taken_as_missing"])
    if report["left_out"]:
        terminal.table(["left out", "why"], [[c["column"], c["reason"]] for c in report["left_out"]])
        terminal.line()


def taken_as_missing(schema: Schema) -> dict[str, dict[str, int]]:
    """Counts of the texts that were read as missing, by column."""
    return {c.name: dict(c.taken) for c in (schema.target, *schema.columns) if c.taken}


def show_missing(terminal: Terminal, taken: dict[str, dict[str, int]]) -> None:
    """Print the texts that were read as missing, by column, and the option that changes them."""
    from likely.schema import in_words

    if taken:
        terminal.table(["column", "read as missing"], [[name, in_words(counts)] for name, counts in taken.items()])
        terminal.line("--missing TOKEN, once for each, replaces the list of missing-value tokens")
        terminal.line()


def _why(column: dict[str, Any]) -> str:
    values = f", {column['values']:,} values" if column["values"] is not None else ""
    chosen = f"; {column['chosen']}" if "chosen" in column else ""
    return f"{column['reason']}{values}{chosen}"


def show_parameters(terminal: Terminal, name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print the parameters of one column or block."""
    head = [key for key in rows[0] if key != "interval"] if rows else ["column"]
    wanted = [key for key in head if key != "column" or len({row["column"] for row in rows}) > 1]
    known = {key for row in rows for key in row.get("interval", {})}
    shown = [(key, interval) for key in wanted for interval in ((False, True) if key in known else (False,))]
    lines = [[_interval_text(row, key) if interval else _cell(key, row.get(key)) for key, interval in shown] for row in rows]
    terminal.line(name)
    terminal.table(["95 % interval" if interval else key for key, interval in shown], lines, most=None)
    terminal.line()


def _interval_text(row: dict[str, Any], key: str) -> str:
    low, high = row["interval"].get(key, (None, None))
    return "" if low is None else f"{low:.4g} … {high:.4g}"


def parameters(table: ParameterTable) -> list[dict[str, Any]]:
    """The lines of a table of parameters, with credible intervals where there are some and the lines are not many."""
    few = len(table) <= MOST_INTERVALS and not table.without_intervals
    return table.intervals() if few else list(table)


def _cell(key: str, value: Any) -> Any:
    """Labels and values are printed as text, even if they are numbers."""
    if key not in ("class", "value"):
        return value
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def show_metrics(terminal: Terminal, metrics: Evaluation) -> None:
    """The metrics, and those of each class."""
    terminal.line(str(metrics))
    terminal.line()
    names = ("rows", "precision", "recall", "f1", "auc", "average_precision")
    rows = [[str(row["class"]), *(row[name] for name in names)] for row in metrics.per_class]
    terminal.table(["class", "rows", "precision", "recall", "F1", "AUC", "average precision"], rows)
    terminal.line()


def show_evaluation(terminal: Terminal, metrics: Evaluation) -> None:
    """The metrics, the metrics of each class, and the confusion matrix."""
    show_metrics(terminal, metrics)
    some = metrics.classes[:MOST_CLASSES]
    head = ["true class", *(f"predicted {label}" for label in some)]
    lines = zip(some, metrics.confusion, strict=False)
    terminal.table(head, [[str(label), *map(float, line[: len(some)])] for label, line in lines])
    if len(metrics.classes) > len(some):
        terminal.line(f"… and {len(metrics.classes) - len(some):,} more classes (--json has all)")
