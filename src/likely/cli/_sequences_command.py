"""The command sequences: hidden Markov models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from likely.cli import _inputs as inputs
from likely.cli import _model_report as model_report
from likely.cli import _options as options
from likely.cli import _outputs as outputs
from likely.cli import _writers as writers
from likely.cli._cluster_command import first_means, start_option
from likely.cli._options import (
    FILE,
    em_options,
    excel_option,
    ignore_option,
    json_option,
    reading_options,
    starts_option,
)
from likely.cli._terminal import Terminal
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.engines.sequence_rows import SequenceRows
    from likely.latent.hidden_markov_model import HiddenMarkovModel

MOST_LINES = 500


@click.command(short_help="Hidden Markov model of ordered rows.")
@click.argument("data", type=FILE)
@click.option(
    "-k", "k", metavar="N|auto", help="Number of states; auto chooses it by BIC. By default as many as --start, or 2."
)
@click.option("--by", metavar="COLUMN", help="Column that identifies the sequences; by default all rows are one.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="OUT",
    help="File to write the rows with their states to: .csv, .tsv, .jsonl or .parquet; - is standard output, as CSV.",
)
@click.option("--model", type=FILE, metavar="MODEL", help="File to write the hidden Markov model to, for --apply and inspect.")
@click.option("--apply", "applied", type=FILE, metavar="MODEL", help="Decode with a saved model instead of fitting one.")
@click.option("--prefix", default="", metavar="TEXT", help="Prefix of the names of the added columns.")
@excel_option
@em_options
@click.option(
    "--transition-smoothing", type=click.FloatRange(min=0), metavar="N", help="Pseudocount of each transition."
)
@starts_option
@start_option("state")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random starts.")
@ignore_option()
@click.option("--missing", multiple=True, metavar="TOKEN", help="A missing-value token, as for learn.")
@reading_options
@json_option
@click.pass_obj
def sequences(terminal: Terminal, /, data: str, by: str | None, output: str | None, model: str | None,
              applied: str | None, prefix: str, excel_safe: bool, **given: Any) -> None:  # fmt: skip
    """Fit a hidden Markov model with K states to the ordered rows of DATA, by EM (Baum–Welch).

    States are numbered by frequency, the most frequent first. -o writes every row with its `state` on the most probable path
    (Viterbi), and `p_1`, `p_2`, … the posterior probability of each state. Leave identifiers and times out with --ignore.
    --model writes the fitted model to a file; --apply decodes other rows with it.
    """
    _check(terminal, data, {"-o": output, "--model": model}, applied, given)
    if output is not None:
        writers.format_of(output, excel_safe)
    with inputs.as_file(data, terminal) as path:
        with terminal.progress("states"):
            found, source, reading = _fitted(path, by, given) if applied is None else _loaded(applied, path, given, terminal)
        rows = found.opened(source, by=by)
        decoded = Decoded(found, rows, found.decode(rows))
        report = _report(decoded, fitted=applied is None) | {"data": data}
        if model:
            report |= {"model": model, "digest": found.save(model)}
        if output:
            with writers.writer(output, excel_safe=excel_safe) as out:
                for columns in _with_states(decoded, source, prefix, writers.format_of(output)):
                    out.write(columns)
            report["output"] = output
        terminal.list_rejects(reading.rejects)
    terminal.result(report, lambda: _show(terminal, found, report))


@dataclass(frozen=True)
class Decoded:
    """A hidden Markov model, rows as its sequences, and the position of the state of each row (Viterbi)."""

    model: HiddenMarkovModel
    rows: SequenceRows
    states: Any


def _check(
    terminal: Terminal, data: str, wanted: dict[str, str | None], applied: str | None, given: dict[str, Any]
) -> None:
    """Refuse outputs that cannot be written, and options of fitting where a saved model is applied."""
    if applied is not None and (given["k"] is not None or given["start"] or wanted["--model"] is not None):
        raise UsageError("--apply decodes with a saved model: leave out -k, --start and --model, which fit one")
    outputs.check(wanted, [data, applied])
    if (model := wanted["--model"]) is not None:
        if model == "-":
            raise UsageError("--model needs the name of a file")
        outputs.check_model("--model", model)
    if (output := wanted["-o"]) is not None:
        outputs.stdout_is_taken(output, terminal, "rows")


def _fitted(path: str, by: str | None, given: dict[str, Any]) -> tuple[HiddenMarkovModel, Any, Any]:
    """The model fitted to the rows of a file, the rows, and how they were read."""
    from likely.latent.hidden_markov import sequences as learn

    states, means = first_means(given.pop("start"), given.pop("k"), "state", "2")
    source, reading = inputs.opened_with(path, given)
    settings = options.learn_arguments(given, 1.0)  # with EM, variances are smoothed as well
    start = None if means is None else {"means": means}
    return learn(source, states, by=by, **settings, start=start, reading=reading), source, reading


def _loaded(name: str, path: str, given: dict[str, Any], terminal: Terminal) -> tuple[HiddenMarkovModel, Any, Any]:
    """A saved model, the rows of a file, and how they were read."""
    from likely.latent.hidden_markov_model import HiddenMarkovModel
    from likely.learning.load import load

    with inputs.as_file(name, terminal) as model_path:
        found = load(model_path)
    if not isinstance(found, HiddenMarkovModel):
        raise UsageError(f"--apply {name!r} is no hidden Markov model: `likely sequences DATA --model FILE` writes one")
    return found, *inputs.opened(path, found.emission.reading, options.how_read(given))


def chain_report(found: HiddenMarkovModel) -> dict[str, Any]:
    """What a hidden Markov model has counted, and what EM reported of it."""
    tables = found.tables
    start, transition = tables.pop("start"), tables.pop("transition")
    tried = {"tried": {str(k): value for k, value in found.tried.items()}} if found.tried else {}
    reported = {
        "rounds": len(found.trace),
        "converged": found.converged,
        "distance_left": found.distance_left,
        "log_likelihood": found.log_likelihood,
        "bic": found.bic,
        "aic": found.aic,
        "trace": list(found.trace),
    } if found.summary else {}  # fmt: skip
    return tried | {
        "start": list(start),
        "transition": list(transition),
        "states": {name: list(rows) for name, rows in tables.items() if len(rows) < MOST_LINES},
        "taken_as_missing": model_report.taken_as_missing(found.emission.schema),
        "left_out": [{"column": name, "reason": reason} for name, reason in found.emission.schema.ignored],
    } | reported


def _report(decoded: Decoded, fitted: bool) -> dict[str, Any]:
    import numpy as np

    found, rows = decoded.model, decoded.rows
    counts = np.bincount(decoded.states, minlength=len(found.states)).tolist()
    report = chain_report(found)
    if not fitted:  # what EM reported is of other rows
        for name in ("rounds", "converged", "distance_left", "trace", "bic", "aic", "tried"):
            report.pop(name, None)
        report["log_likelihood"] = float(found.log_evidence(rows).sum())
    return report | {
        "rows": rows.rows,
        "sequences": len(rows.edges) - 1,
        "decoded": {str(state): n for state, n in zip(found.states, counts, strict=True)},
    }


def _with_states(decoded: Decoded, source: Any, prefix: str, kind: str) -> Iterator[dict[str, Any]]:
    """Every batch with two results added: the state of each row and the state probabilities."""
    import pyarrow as pa

    from likely.schema import CATEGORY
    from likely.sources.row_access import take_columns

    found, at = decoded.model, 0
    posteriors = found.posterior(decoded.rows)
    names = next(iter(source.batches())).names
    shown = getattr(source, "shown", names)
    known = {} if kind in ("csv", "tsv") else {c.name: c.kind for c in found.emission.schema.columns}
    for batch in source.batches({name: known.get(name, CATEGORY) for name in names}):
        part = slice(at, at + batch.rows)
        at += batch.rows
        columns: dict[str, Any] = take_columns(batch, shown).columns
        answers = {f"{prefix}state": pa.array([found.states[s] for s in decoded.states[part]])}
        answers |= {f"{prefix}p_{state}": pa.array(posteriors[part, j]) for j, state in enumerate(found.states)}
        yield writers.beside(columns, answers)


def _show(terminal: Terminal, found: HiddenMarkovModel, report: dict[str, Any]) -> None:
    many = f"{report['sequences']:,} sequences" if report["sequences"] > 1 else "one sequence"
    terminal.line(f"{len(found.states)} states in {report['rows']:,} rows of {report['data']}, {many}")
    terminal.line()
    rows = [[str(r["state"]), r["probability"], report["decoded"][str(r["state"])]] for r in report["start"]]
    terminal.table(["state", "initial probability", "rows on the most probable path"], rows)
    terminal.line()
    show_chain(terminal, found, report)
    if "trace" not in report:
        terminal.line(f"log-likelihood of these rows {report['log_likelihood']:,.2f}")
    if "model" in report:
        terminal.line(f"Model written to {report['model']}")
    if report.get("output", "-") != "-":
        terminal.line(f"Rows with their states written to {report['output']}")


def show_chain(terminal: Terminal, found: HiddenMarkovModel, report: dict[str, Any]) -> None:
    """Transitions, emissions, and the trace of EM."""
    from likely.latent.em import objective_name

    head = ["from", *(f"to {state}" for state in found.states)]
    terminal.table(head, [[str(r["state"]), *(r[str(s)] for s in found.states)] for r in report["transition"]])
    terminal.line()
    for name, table in report["states"].items():
        model_report.show_parameters(terminal, name, table)
    model_report.show_missing(terminal, report["taken_as_missing"])
    if report["left_out"]:
        terminal.table(["left out", "why"], [[c["column"], c["reason"]] for c in report["left_out"]])
        terminal.line()
    if "tried" in report:
        terminal.table(["states", "BIC"], [[k, value] for k, value in found.tried.items()])
        terminal.line()
    if trace := report.get("trace"):
        named = objective_name(found.emission, found.pseudocount)
        terminal.table(["iteration", named], [[str(i), trace[i - 1]] for i in _listed_iterations(len(trace))])
        terminal.line()
        end = "" if found.converged else " (not converged: more iterations would increase it)"
        end += f"; the maximum is about {found.distance_left:.2g} nats away" if isfinite(found.distance_left) else ""
        terminal.line(f"log-likelihood {found.log_likelihood:,.2f} after {len(trace)} iterations{end}")
        terminal.line(f"BIC {found.bic:,.2f}, AIC {found.aic:,.2f} (lower is better)")


def _listed_iterations(rounds: int) -> list[int]:
    """The iterations 1, 2, 4, 8, … and the last."""
    return [*(2**i for i in range(rounds.bit_length()) if 2**i < rounds), rounds]
