"""A model in words and tables: the same dictionary for JSON and for the eye."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from likely.cli.terminal import Terminal

if TYPE_CHECKING:
    from likely.figures import Evaluation
    from likely.model import Model


def model(known: Model) -> dict[str, Any]:
    """What a model has counted, of what, and what it makes of each column."""
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
        "classes": known.parameters[known.schema.target.name],
        "columns": columns,
        "taken_as_missing": {c.name: dict(c.taken) for c in (known.schema.target, *known.schema.columns) if c.taken},
        **({"top_words": known.top_words()} if any(c.kind == "text" for c in known.schema.columns) else {}),
        **({"calibration": _calibration(known)} if known.calibration else {}),
        "left_out": [{"column": name, "reason": reason} for name, reason in known.schema.ignored],
        "parameters": {
            "table_entries": counts.table_entries,
            "free": counts.free,
            "free_without_independence": counts.free_without_independence,
        },
    }


def _look_alikes(known: Model) -> list[str]:
    from likely.schema import look_alikes, say_alike

    columns = [known.schema.target, *known.schema.columns]
    return [say_alike(column.name, alike) for column in columns if (alike := look_alikes(column.values))]


def rows_inside(report: dict[str, Any], remedy: str) -> str:
    """Whether the model file holds rows of the table, and how not to."""
    if report["rows_inside"]:
        return f"It holds {report['rows_inside']:,} different rows as they are, to be calibrated on again: {remedy}"
    later = "" if report["can_recalibrate"] else "; the calibration cannot be fitted again"
    return f"It holds counts and no rows of the table{later}"


def _calibration(known: Model) -> dict[str, Any]:
    """How far each column is believed, what columns say together, and the bias of each class."""
    fitted = known.calibration
    assert fitted is not None
    together = sorted(fitted.interactions, key=lambda each: -each.gain)
    return {
        "dependence": known.dependence,
        "temperature": fitted.temperature,
        "bias": {str(label): float(b) for label, b in zip(known.classes, fitted.bias, strict=True)},
        "weights": dict(fitted.weights),
        "missing": {name: weight for name, (weight, _) in fitted.absent.items()},
        "together": [
            {"columns": list(e.columns), "weight": e.weight, "gain": e.gain, "error": e.error} for e in together
        ],
        "stale": known.stale,
    }


def _family(block: Any) -> str:
    """The family's name with its settings, and who stands in the block."""
    usual = type(block.family)() if block.family.name == "binned" else None
    given = block.family.settings().items()
    settings = ", ".join(f"{name} {value}" for name, value in given if value is not None and block.family != usual)
    text = f"{block.family.name} ({settings})" if settings else str(block.family.name)
    return text if len(block.columns) == 1 else f"{text} [{', '.join(block.columns)}]"


def priors(known: Model) -> dict[str, Any]:
    """What is imagined of values and classes."""
    prior = known.prior
    return {
        "values": str(prior.default),
        "columns": {name: str(own) for name, own in prior.columns.items()},
        "classes": "as counted" if prior.classes is None else str(prior.classes),
    }


MOST_CLASSES = 20  # side by side
ARC = 3  # columns of the table of importance that every model has


def importance(known: Model) -> list[dict[str, Any]]:
    """How much each column tells of the class, the most telling first."""
    from likely.importance import importance as weigh

    return sorted(weigh(known), key=lambda entry: -(entry["mutual_information"] or 0.0))


def show_importance(terminal: Terminal, report: dict[str, Any]) -> None:
    """What each column tells of the class, and how probable it is that it tells anything."""
    rows = [list(entry.values()) for entry in report["importance"]]
    if any(cell is not None for row in rows for cell in row[1:]):
        more = ["weight", "log loss rise"] if len(rows[0]) > ARC else []
        terminal.table(["column", "mutual information (nats)", "arc probability", *more], rows)
        terminal.line()
    if report["average"]:
        terminal.line(
            "averaged         over all choices of which columns depend on the class, by their arc probability"
        )


def show_classes(terminal: Terminal, report: dict[str, Any]) -> None:
    """The classes with their rows and shares."""
    rows = [[str(row["class"]), row["count"], row["probability"]] for row in report["classes"]]
    terminal.table(["class", "rows", "share"], rows)
    terminal.line()


def show_columns(terminal: Terminal, report: dict[str, Any]) -> None:
    """Every column with its kind, its family and the reason, then those left out."""
    rows = [[c["column"], c["kind"], c["family"], _why(c)] for c in report["columns"]]
    terminal.table(["column", "kind", "family", "why"], rows)
    terminal.line()
    for name, words in report.get("top_words", {}).items():
        terminal.line(f"{name}: the words that speak most for each class")
        terminal.table(["class", "words"], [[label, ", ".join(best)] for label, best in words.items()])
        terminal.line()
    if report.get("calibration", {}).get("together"):
        rows = [[" with ".join(e["columns"]), e["weight"], e["gain"]] for e in report["calibration"]["together"]]
        terminal.table(["columns that speak together", "weight", "gain (nats)"], rows)
        terminal.line()
    show_missing(terminal, report["taken_as_missing"])
    if report["left_out"]:
        terminal.table(["left out", "why"], [[c["column"], c["reason"]] for c in report["left_out"]])
        terminal.line()


def show_missing(terminal: Terminal, taken: dict[str, dict[str, int]]) -> None:
    """Which texts were taken for missing, by column, and the option that changes it."""
    from likely.schema import in_words

    if taken:
        terminal.table(["column", "taken as missing"], [[name, in_words(counts)] for name, counts in taken.items()])
        terminal.line("--missing TOKEN, once for each, replaces the list of texts that stand for missing")
        terminal.line()


def _why(column: dict[str, Any]) -> str:
    values = f", {column['values']:,} values" if column["values"] is not None else ""
    chosen = f"; {column['chosen']}" if "chosen" in column else ""
    return f"{column['reason']}{values}{chosen}"


def show_parameters(terminal: Terminal, name: str, rows: Sequence[dict[str, Any]]) -> None:
    """The table of what is believed of one column or block."""
    head = list(rows[0]) if rows else ["column"]
    wanted = [key for key in head if key != "column" or len({row["column"] for row in rows}) > 1]
    terminal.line(name)
    terminal.table(wanted, [[_cell(key, row.get(key)) for key in wanted] for row in rows], most=None)
    terminal.line()


def _cell(key: str, value: Any) -> Any:
    """A label or a value is text, even if it looks like a number."""
    if key not in ("class", "value"):
        return value
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def show_figures(terminal: Terminal, figures: Evaluation) -> None:
    """The figures, and those of each class."""
    terminal.line(str(figures))
    terminal.line()
    names = ("rows", "precision", "recall", "f1", "auc")
    rows = [[str(row["class"]), *(row[name] for name in names)] for row in figures.per_class]
    terminal.table(["class", "rows", "precision", "recall", "F1", "AUC"], rows)
    terminal.line()


def show_evaluation(terminal: Terminal, figures: Evaluation) -> None:
    """The figures, the figures of each class, and who was taken for whom."""
    show_figures(terminal, figures)
    some = figures.classes[:MOST_CLASSES]
    head = ["true class", *(f"said {label}" for label in some)]
    lines = zip(some, figures.confusion, strict=False)
    terminal.table(head, [[str(label), *map(float, line[: len(some)])] for label, line in lines])
    if len(figures.classes) > len(some):
        terminal.line(f"… and {len(figures.classes) - len(some):,} more classes (--json has all)")
