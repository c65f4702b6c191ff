"""The report of a model: one document of plain data, and the HTML page made from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from likely.errors import UsageError, did_you_mean, no_column
from likely.evaluation.cross_validation import evaluate
from likely.evaluation.evaluation import Evaluation
from likely.evaluation.feature_importance import importance
from likely.latent.clusters import Clusters
from likely.latent.hidden_markov_model import HiddenMarkovModel
from likely.model.effects import Effect, effects
from likely.model.model import Model
from likely.networks.network import Network
from likely.report import _model_structure as model_structure
from likely.report._card import card, missing_share, warnings_of
from likely.report._network_document import KIND as NETWORK
from likely.report._network_document import network_document
from likely.report._performance import confusion_examples, performance
from likely.report._predictions import chosen_rows, prediction, rows_behind
from likely.report._scored_rows import JudgedRows, finite, score_rows
from likely.sources import RowKeywords
from likely.sources.atomic_write import whole_file

FORMAT = 1
MOST_NODES = 24  # of the network drawing
Step = Callable[[str], None]


class Report:
    """A report: one document of plain data, shown as an HTML page; from `likely.report`.

    Parameters
    ----------
    document : dict
        The document, as described by `docs/report.schema.json`.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = dict(document)

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data; `Report.schema()` describes it."""
        return self.document

    def to_json(self, indent: int | None = None) -> str:
        """The document as strict JSON.

        Parameters
        ----------
        indent : int or None, default=None
            Spaces of indentation.

        Returns
        -------
        str
            JSON.
        """
        return json.dumps(self.document, allow_nan=False, indent=indent)

    @staticmethod
    def schema() -> dict[str, Any]:
        """JSON Schema of the document."""
        from likely.report.json_schema import SCHEMA

        return SCHEMA

    def html(self) -> str:
        """The report as one self-contained HTML page that fetches nothing."""
        from likely.report._page import page

        return page(self.document)

    def save(self, path: str | Path) -> None:
        """Write the report.

        Parameters
        ----------
        path : str or Path
            A name that ends in .html, or in .json for the document alone.
        """
        check_ending(Path(path).suffix.lower())
        content = self.to_json(2) + "\n" if Path(path).suffix.lower() == ".json" else self.html()
        with whole_file(path) as temporary:
            Path(temporary).write_bytes(content.encode())

    def _repr_html_(self) -> str:
        from likely.report._page import summary

        return summary(self.document)

    def __repr__(self) -> str:
        found = self.document
        if found["kind"] == NETWORK:
            return f"<Report of a Bayesian network: {found['card']['nodes']} nodes, {found['card']['arcs']} arcs>"
        tested = found.get("evaluation")
        how = f", accuracy {tested['accuracy']:.4f} on {tested['rows']:,} rows" if tested else ""
        return f"<Report of {found['card']['target']!r}: {len(found['columns'])} columns{how}>"


def check_ending(ending: str) -> None:
    """Refuse a file ending that a report cannot be written to; called before the work."""
    if ending not in (".html", ".htm", ".json"):
        raise UsageError(f"a report cannot be written as {ending or 'a file without ending'}: use .html or .json")


def report(
    model: Any,
    data: Any = None,
    *,
    target: str | None = None,
    title: str | None = None,
    costs: Any = None,
    positive: Any = None,
    surface: Sequence[str] = (),
    curve: bool = False,
    rows: bool = True,
    columns: Sequence[str] = (),
    progress: Step | None = None,
    **how: Unpack[RowKeywords],
) -> Report:
    """Report of a model: data, columns, effects, nomogram, single predictions, quality, calibration and a model card.

    Of a Bayesian network: drawing, strongest arcs, parameters of each node, and the log-likelihood of the data.

    Parameters
    ----------
    model : Model, Clusters, HiddenMarkovModel or Network
        The model; of a hidden Markov model the emissions of its states, and its transitions.
    data : path, frame, dict of columns or None, default=None
        Rows that the model has not learned from, with their labels: they are scored and evaluated. Without them the report
        shows the model alone.
    target : str or None, default=None
        The column with the true labels, if it is named differently in the data.
    title : str or None, default=None
        Title of the report.
    costs : {true class: {decision: cost}} or None, default=None
        Costs for the table of thresholds of two classes.
    positive : class or None, default=None
        The class that views of one class begin with; of two classes the rarer one by default.
    surface : sequence of two str, default=()
        Columns of the decision surface; by default the two columns of numbers with the most evidence.
    curve : bool, default=False
        Whether to add a learning curve of the data, which learns many models.
    rows : bool, default=True
        Whether rows of the data may be shown: single predictions, and rows behind the confusion matrix.
    columns : sequence of str, default=()
        Columns whose pictures come first; by default those with the most evidence. A page of many columns has pictures of
        some, and a list of the others.
    progress : callable or None, default=None
        Called with the name of each step.
    **how
        How a file is read, as for `learn`.

    Returns
    -------
    Report
        `.to_dict()`, `.html()` and `.save("report.html")`.
    """
    step = progress or (lambda _: None)
    if isinstance(model, Network):
        _refuse(target=target, costs=costs, positive=positive, surface=surface, columns=columns, curve=curve)
        return Report(finite(network_document(model, data, how, step, title=title, rows=rows)))
    inner = _model(model)
    first = _positive(inner, positive)
    step("columns")
    found = effects(inner)
    drawn = _first_columns(columns, found)
    scored, evaluation = _scored(inner, data, {"target": target, "costs": costs} | how, step, evaluated=inner is model)
    document = _document(inner, found, scored, evaluation, step) | drawn
    document |= {"title": title or f"Report of {inner.schema.target.name}", "positive": str(inner.classes[first])}
    if scored is not None and evaluation is not None:
        document["evaluation"] = performance(scored, evaluation, costs, first)
    if scored is not None and rows:
        step("single predictions")
        _add_rows(document, scored, found)
    step("structure")
    document |= {"surface": model_structure.surface(inner, found, scored, surface), "em": _em(model),
                 "pairs": model_structure.dependent_pairs(inner, found, scored)}  # fmt: skip
    if curve and data is not None:
        step("learning curve")
        document["learning_curve"] = _learning_curve(inner, data, target, how)
    document["card"] = card(inner, scored, _rows_shown(document))
    return Report(finite({name: part for name, part in document.items() if part is not None}))


def _refuse(**given: Any) -> None:
    """Refuse settings of classifiers in the report of a network."""
    if odd := [name for name, value in given.items() if value]:
        raise UsageError(f"{', '.join(odd)}: a report of a Bayesian network has no such view; it takes data, title and rows")


def _scored(
    model: Model, data: Any, given: Mapping[str, Any], step: Step, *, evaluated: bool
) -> tuple[JudgedRows | None, Evaluation | None]:
    """The rows scored, and evaluated where they have labels; None without data."""
    if data is None:
        return None, None
    step("scoring")
    how = {name: value for name, value in given.items() if name not in ("target", "costs")}
    scored = score_rows(model, data, given["target"], None, how)
    if not (evaluated and scored.labelled and scored.known.any()):
        return scored, None
    step("evaluation")
    return scored, evaluate(data, model=model, **given)


def _first_columns(columns: Sequence[str], found: Mapping[str, Effect]) -> dict[str, list[str]]:
    """The columns to be drawn first, as a part of the document; nothing where none were named."""
    if odd := [name for name in columns if name not in found]:
        raise no_column("the effects of the model", odd[0], list(found))
    return {"first_columns": list(columns)} if columns else {}


def _model(model: Any) -> Model:
    inner = model.model if isinstance(model, Clusters | HiddenMarkovModel) else model
    if not isinstance(inner, Model):
        raise UsageError(f"a report is of a model, clusters, a hidden Markov model or a network, not of {type(model).__name__}")
    return inner


def _rows_shown(document: Mapping[str, Any]) -> int:
    return len(document.get("predictions", [])) + sum(len(c["rows"]) for c in document.get("confusion_rows", []))


def _positive(model: Model, positive: Any) -> int:
    names = [str(label) for label in model.classes]
    if positive is not None:
        if positive not in model.classes and str(positive) not in names:
            raise UsageError(f"{positive!r} is no class{did_you_mean(str(positive), names)}: choose from {names[:20]}")
        return model.classes.index(positive) if positive in model.classes else names.index(str(positive))
    if len(names) == 2:
        return int(np.argmin(model.tally.classes))
    return 0


def _document(
    model: Model, found: Mapping[str, Effect], scored: JudgedRows | None, evaluation: Evaluation | None, step: Step
) -> dict[str, Any]:
    step("importance")
    ranked = importance(model)
    columns = [_column(model, found, entry, scored) for entry in ranked]
    columns.sort(key=lambda column: -(column["evidence"] or 0.0))
    names = [name for column in columns for name in column["columns"]][:MOST_NODES]
    return {
        "format": FORMAT, "kind": "likely report",
        "warnings": warnings_of(model, found, scored, evaluation),
        "classes": [
            {"label": str(label), "count": float(n), "prior": float(p)}
            for label, n, p in zip(model.classes, model.tally.classes, model.class_prior, strict=True)
        ],
        "bias": (model.scorer.log_prior + (0.0 if model.scorer.bias is None else model.scorer.bias)),
        "columns": columns, "interactions": model_structure.interactions(model), "texts": model_structure.texts(model),
        "network": model_structure.arcs(model, names),
    }  # fmt: skip


def _column(
    model: Model, found: Mapping[str, Effect], entry: Mapping[str, Any], scored: JudgedRows | None
) -> dict[str, Any]:
    """One column or block: description, importance and, if it has one, its effect."""
    name = entry["column"]
    block = next(block for block in model.blocks if block.name == name)
    column = model.schema.by_name[block.columns[0]]
    described: dict[str, Any] = {
        "name": name, "columns": list(block.columns), "kind": column.kind, "family": block.family.name,
        "reason": column.reason, "missing_share": missing_share(model, found, name),
        "importance": {key: value for key, value in entry.items() if key != "column"},
        "evidence": found[name].span if name in found else entry["mutual_information"],
    }  # fmt: skip
    if scored is not None and name in scored.checks:
        check = scored.checks[name]
        whole = max(scored.rows, 1)
        described["in_data"] = {"missing_share": check.missing / whole, "unseen_share": check.unseen / whole}
    if name in found:
        effect = found[name]
        described["effect"] = {
            "labels": list(effect.labels), "values": list(effect.values) if effect.kind == "number" else None,
            "low": effect.low, "high": effect.high, "counts": effect.counts, "shares": effect.shares,
            "terms": effect.terms, "weights": effect.weights, "errors": effect.weight_errors,
            "missing": {"terms": effect.missing_terms, "weights": effect.missing_weights, "counts": effect.missing_counts},
            "others": effect.others,
        }  # fmt: skip
    return described


def _add_rows(document: dict[str, Any], scored: JudgedRows, found: Mapping[str, Effect]) -> None:
    """Single predictions, and the rows behind the cells of the confusion matrix."""
    examples = chosen_rows(scored)
    cells = confusion_examples(scored) if scored.labelled else {}
    picked = scored.pick([*(n for n, _ in examples), *(n for numbers in cells.values() for n in numbers)])
    known = scored.known
    document["predictions"] = [
        prediction(scored.model, n, picked[n], found, why=why, truth=int(scored.truth[n]) if known[n] else None)
        for n, why in examples if n in picked
    ]  # fmt: skip
    document["confusion_rows"] = rows_behind(scored, cells, picked)


def _em(clusters: Any) -> dict[str, Any] | None:
    """What EM reported of a clustering; None for a model."""
    if isinstance(clusters, HiddenMarkovModel):
        return _states(clusters)
    if not isinstance(clusters, Clusters):
        return None
    known = clusters.summary is not None
    return {
        "trace": list(clusters.trace), "converged": clusters.converged,
        "log_likelihood": clusters.log_likelihood if known else None, "bic": clusters.bic if known else None,
        "icl": clusters.icl if known else None, "aic": clusters.aic if known else None,
        "tried": [{"k": k, "criterion": value} for k, value in sorted(clusters.tried.items())],
    }  # fmt: skip


def _states(model: HiddenMarkovModel) -> dict[str, Any]:
    """What EM reported of a hidden Markov model, with initial and transition probabilities."""
    known = model.summary
    return {
        "trace": list(known.trace) if known else [], "converged": model.converged,
        "log_likelihood": known.log_likelihood if known else None, "bic": model.bic if known else None, "icl": None,
        "aic": model.aic if known else None, "tried": [], "start": model.start, "transition": model.transition,
    }  # fmt: skip


def _learning_curve(model: Model, data: Any, target: str | None, how: Any) -> dict[str, Any]:
    from likely.evaluation.finished_model import settings_of
    from likely.evaluation.learning_curve import curve

    settings = {name: value for name, value in settings_of(model).items() if name != "missing" or value}
    return curve(data, target=target or model.schema.target.name, **(settings | how)).to_dict()
