"""The command that finds the hidden states of sequences."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from likely.cli import describe, export, options, outputs
from likely.cli.clusters import first_means, start_option
from likely.cli.options import FILE, excel_option, ignore_option, json_option, reading_options, shares_options
from likely.cli.terminal import Terminal

if TYPE_CHECKING:
    from likely.engines.steps import Steps
    from likely.sequences import Chain

MOST_LINES = 500


@click.command(short_help="Find hidden states in rows that follow one another.")
@click.argument("data", type=FILE)
@click.option(
    "-k", "k", metavar="N|auto", help="How many states; auto tries them. Without it as many as --start, or 2."
)
@click.option("--by", metavar="COLUMN", help="The column that tells sequences apart; by default all rows are one.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="OUT",
    help="Where the rows go with their states: .csv, .tsv, .jsonl or .parquet; - is standard output, as CSV.",
)
@click.option("--prefix", default="", metavar="TEXT", help="Put before the names of the added columns.")
@excel_option
@shares_options
@click.option(
    "--transition-smoothing", type=click.FloatRange(min=0), metavar="N", help="Imagined moves from each state to each."
)
@click.option("--restarts", type=click.IntRange(min=1), default=5, show_default=True, help="Starts that are tried.")
@start_option("state")
@click.option("--seed", type=int, default=0, show_default=True, help="Where the starts come from.")
@ignore_option()
@click.option("--missing", multiple=True, metavar="TOKEN", help="A text that stands for a missing cell, as for learn.")
@reading_options
@json_option
@click.pass_obj
def sequences(
    terminal: Terminal, /, data: str, k: str | None, by: str | None, output: str | None, prefix: str, excel_safe: bool,
    **given: Any,
) -> None:  # fmt: skip
    """Find K hidden states in the rows of DATA, each of which depends on the one before: a hidden Markov model.

    The states are numbered, the most frequent first. -o writes every row with its `state` on the most probable path through
    its sequence, and `p_1`, `p_2`, … the probability of each state. Leave out what names a row or a time with --ignore.
    """
    states_wanted, means = first_means(given.pop("start"), k, "state", "2")
    if output is not None:
        export.format_of(output, excel_safe)
        outputs.check({"-o": output}, [data])
        outputs.stdout_is_taken(output, terminal, "rows")
    with options.as_file(data, terminal) as path:
        source, reading = options.opened_with(path, given)
        from likely.sequences import sequences as learn

        settings = options.as_for_learn(given, 1.0)  # as EM counts: a width is smoothed too
        start = None if means is None else {"means": means}
        found = learn(source, states_wanted, by=by, **settings, start=start, reading=reading)
        steps = found.opened(source, by=by)
        states = found.decode(steps)
        report = _report(found, steps, states) | {"data": data}
        if output:
            with export.writer(output, excel_safe=excel_safe) as out:
                for columns in _answered(found, steps, states, source, prefix, export.format_of(output)):
                    out.write(columns)
            report["output"] = output
        terminal.list_rejects(reading.rejects)
    terminal.result(report, lambda: _show(terminal, found, report))


def _report(found: Chain, steps: Steps, states: Any) -> dict[str, Any]:
    import numpy as np

    tables = found.tables
    start, transition = tables.pop("start"), tables.pop("transition")
    decoded = np.bincount(states, minlength=len(found.states)).tolist()
    tried = {"tried": {str(k): value for k, value in found.tried.items()}} if found.tried else {}
    return tried | {
        "rows": steps.rows,
        "sequences": len(steps.edges) - 1,
        "start": list(start),
        "transition": list(transition),
        "decoded": {str(state): n for state, n in zip(found.states, decoded, strict=True)},
        "states": {name: list(rows) for name, rows in tables.items() if len(rows) < MOST_LINES},
        "left_out": [{"column": name, "reason": reason} for name, reason in found.emission.schema.ignored],
        "rounds": len(found.trace),
        "converged": found.converged,
        "distance_left": found.distance_left,
        "log_likelihood": found.log_likelihood,
        "bic": found.bic,
        "trace": list(found.trace),
    }


def _answered(found: Chain, steps: Steps, states: Any, source: Any, prefix: str, kind: str) -> Iterator[dict[str, Any]]:
    """The columns of every batch, then the state of each row and its probabilities."""
    import pyarrow as pa

    from likely.schema import CATEGORY
    from likely.sources.rows import take_columns

    shares, at = found.posterior(steps), 0
    names = next(iter(source.batches())).names
    shown = getattr(source, "shown", names)
    known = {} if kind in ("csv", "tsv") else {c.name: c.kind for c in found.emission.schema.columns}
    for batch in source.batches({name: known.get(name, CATEGORY) for name in names}):
        part = slice(at, at + batch.rows)
        at += batch.rows
        columns: dict[str, Any] = take_columns(batch, shown).columns
        answers = {f"{prefix}state": pa.array([found.states[s] for s in states[part]])}
        answers |= {f"{prefix}p_{state}": pa.array(shares[part, j]) for j, state in enumerate(found.states)}
        yield export.beside(columns, answers)


def _show(terminal: Terminal, found: Chain, report: dict[str, Any]) -> None:
    from likely.em import value_name

    many = f"{report['sequences']:,} sequences" if report["sequences"] > 1 else "one sequence"
    terminal.line(f"{len(found.states)} states in {report['rows']:,} rows of {report['data']}, {many}")
    terminal.line()
    rows = [[str(r["state"]), r["probability"], report["decoded"][str(r["state"])]] for r in report["start"]]
    terminal.table(["state", "at the start", "rows on the best path"], rows)
    terminal.line()
    head = ["from", *(f"to {state}" for state in found.states)]
    terminal.table(head, [[str(r["state"]), *(r[str(s)] for s in found.states)] for r in report["transition"]])
    terminal.line()
    for name, table in report["states"].items():
        describe.show_parameters(terminal, name, table)
    if report["left_out"]:
        terminal.table(["left out", "why"], [[c["column"], c["reason"]] for c in report["left_out"]])
        terminal.line()
    if found.tried:
        terminal.table(["states", "cost"], [[k, value] for k, value in found.tried.items()])
        terminal.line()
    trace = report["trace"]
    terminal.table(["round", value_name(found.emission, found.imagined)], [[str(i), trace[i - 1]] for i in _some(len(trace))])
    terminal.line()
    end = "" if found.converged else " (the end was not reached: more rounds would climb on)"
    end += f"; the maximum is about {found.distance_left:.2g} nats away" if isfinite(found.distance_left) else ""
    terminal.line(f"log likelihood {found.log_likelihood:,.2f}, BIC {found.bic:,.2f} after {len(trace)} rounds{end}")
    if report.get("output", "-") != "-":
        terminal.line(f"Rows with their states written to {report['output']}")


def _some(rounds: int) -> list[int]:
    """The rounds 1, 2, 4, 8, … and the last."""
    return [*(2**i for i in range(rounds.bit_length()) if 2**i < rounds), rounds]
