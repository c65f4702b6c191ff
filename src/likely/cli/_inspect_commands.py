"""The commands inspect, examples and completion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likely.cli import _inputs as inputs
from likely.cli import _model_report as model_report
from likely.cli import _network_commands as network_commands
from likely.cli import _options as options
from likely.cli import _outputs as outputs
from likely.cli import _writers as writers
from likely.cli._completion import complete_column
from likely.cli._options import FILE, json_option, reading_options
from likely.cli._terminal import Terminal, to_json
from likely.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from likely.latent.hidden_markov_model import HiddenMarkovModel


@click.command(short_help="Describe a model or a table.")
@click.argument("file", metavar="MODEL|DATA", type=FILE)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="COLUMN",
    shell_complete=complete_column,
    help="Print the parameters of a column (models).",
)
@click.option("--tables", is_flag=True, help="Print the parameters of every column (models).")
@click.option(
    "--target",
    metavar="COLUMN",
    shell_complete=complete_column,
    help="The column to predict, which is always used (data).",
)
@click.option("--missing", multiple=True, metavar="TOKEN", help="A missing-value token (data).")
@reading_options
@json_option
@click.pass_obj
def inspect(
    terminal: Terminal,
    /,
    file: str,
    columns: Sequence[str],
    tables: bool,
    target: str | None,
    **given: Any,
) -> None:
    """Describe a model or network file, or the columns of a table as learn would read them.

    Of a model: classes, columns with their families, feature importance, priors, number of parameters, size
    and digest. Of a network: nodes with their values and parents, rows counted, size and digest. Of a table: each column with
    its inferred kind and the reason, missing cells and distinct values.
    """
    with inputs.as_file(file, terminal) as path:
        if _is_model(path):
            _inspect_model(terminal, path, file, columns, tables)
        elif columns or tables:
            raise UsageError(f"{file!r} is not a model file: --column and --tables print a model's parameters")
        else:
            _inspect_data(terminal, inputs.opened(path, None, options.how_read(given)), file, target)


def _is_model(path: str) -> bool:
    from likely.model.model_file import MAGIC

    if Path(path).suffix == ".likely":
        return True
    if not Path(path).is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _inspect_model(terminal: Terminal, path: str, name: str, columns: Sequence[str], tables: bool) -> None:
    from likely.latent.clusters import Clusters
    from likely.latent.hidden_markov_model import HiddenMarkovModel
    from likely.learning.load import load_with_digest
    from likely.networks.network import Network

    found, digest = load_with_digest(path)
    file = {"model": name, "bytes": Path(path).stat().st_size, "digest": digest}
    if isinstance(found, HiddenMarkovModel):
        _inspect_chain(terminal, found, file, columns, tables)
        return
    if isinstance(found, Network):
        network_commands.inspect_network(terminal, found, file, found.nodes if tables else columns)
        return
    known = found.model if isinstance(found, Clusters) else found
    wanted = _tables_of(known.parameters, columns, tables)
    report = model_report.model(known) | file | {
        "priors": model_report.priors(known),
        "weights": known.weights,
        "missing": list(known.missing),
        "average": known.average,
        "importance": model_report.importance(known),
        "tables": {column: model_report.parameters(known.parameters[column]) for column in wanted},
    }  # fmt: skip
    if isinstance(found, Clusters):
        report |= model_report.em_summary(found)
    terminal.result(report, lambda: _show_model(terminal, report))


def _tables_of(known: Mapping[str, Any], columns: Sequence[str], tables: bool) -> list[str]:
    """The names of the requested tables; an unknown one is an error."""
    wanted = list(known) if tables else list(columns)
    for column in wanted:
        if column not in known:
            meant, listed = did_you_mean(column, known), ", ".join(list(known)[:20])
            raise UsageError(f"the model has no parameters of {column!r}{meant}: it has {listed}")
    return wanted


def _inspect_chain(
    terminal: Terminal, found: HiddenMarkovModel, file: dict[str, Any], columns: Sequence[str], tables: bool
) -> None:
    """A hidden Markov model: states, transitions, emissions, and what EM reported."""
    from likely.cli._sequences_command import chain_report, show_chain

    wanted = _tables_of(found.tables, columns, tables)
    report = {"kind": "hidden Markov model"} | chain_report(found) | file | {
        "rows": found.emission.tally.rows,
        "seed": found.seed,
        "tables": {column: list(found.tables[column]) for column in wanted},
    }  # fmt: skip

    def show() -> None:
        for name, rows in report["tables"].items():
            model_report.show_parameters(terminal, name, rows)
        if report["tables"]:
            return
        terminal.line(f"Hidden Markov model of {len(found.states)} states: {report['rows']:,} rows counted")
        terminal.line()
        terminal.table(["state", "at the start"], [[str(r["state"]), r["probability"]] for r in report["start"]])
        terminal.line()
        show_chain(terminal, found, report)
        terminal.line(f"size             {report['bytes']:,} bytes")
        terminal.line(f"sha256           {report['digest']}")

    terminal.result(report, show)


def _show_model(terminal: Terminal, report: dict[str, Any]) -> None:
    for name, rows in report["tables"].items():
        model_report.show_parameters(terminal, name, rows)
    if report["tables"]:
        return
    terminal.line(f"Model of {report['target']!r}: {report['rows']:,} rows counted")
    terminal.line()
    model_report.show_classes(terminal, report)
    model_report.show_columns(terminal, report)
    model_report.show_importance(terminal, report)
    counts, priors = report["parameters"], report["priors"]
    terminal.line(f"pseudocounts     {priors['values']} for every value; classes {priors['classes']}")
    for column, prior in priors["columns"].items():
        terminal.line(f"                 {prior} for {column}")
    if report["weights"]:
        terminal.line(f"weights          {report['weights']}")
    terminal.line(f"table entries    {counts['table_entries']:,}")
    without = counts["free_without_independence"]
    naive = f" ({without:,} without conditional independence)" if without is not None else ""
    terminal.line(f"free parameters  {counts['free']:,}{naive}")
    if "log_likelihood" in report:
        model_report.show_em_summary(terminal, report)
    terminal.line(f"size             {report['bytes']:,} bytes")
    for message in report["look_alikes"]:
        terminal.line(message)
    terminal.line(model_report.rows_inside(report, f"`likely strip {report['model']}` removes them"))
    terminal.line(f"sha256           {report['digest']}")


def _inspect_data(terminal: Terminal, opened: tuple[Any, Any], name: str, target: str | None) -> None:
    from likely.engines.inspection import inspect as describe

    source, reading = opened
    found = describe(source, target=target)
    if target is not None and target not in [column["column"] for column in found]:
        names = [column["column"] for column in found]
        raise UsageError(f"{name!r} has no column {target!r}{did_you_mean(target, names)}: it has {', '.join(names[:20])}")
    terminal.list_rejects(reading.rejects)
    rows = found[0]["rows"]

    def show() -> None:
        terminal.line(f"{name}: {len(found)} columns, inferred from {rows:,} rows")
        terminal.line()
        head = ["column", "kind", "used", "missing", "different", "from", "to", "reason"]
        terminal.table(head, [[column[key] for key in head] for column in found])
        terminal.line()
        model_report.show_missing(terminal, {column["column"]: column["taken"] for column in found if column["taken"]})
        for column in found:
            for message in (column["doubt"], column["look_alikes"]):
                if message:
                    terminal.line(message)

    terminal.result({"data": name, "rows": rows, "columns": found}, show)


@click.command(short_help="Worked examples, step by step.")
@click.argument("name", required=False)
@click.option(
    "--picture", type=FILE, metavar="FILE", help="Draw the figure of the example: OUT.svg; em also as a page, OUT.html."
)
@json_option
@click.pass_obj
def examples(terminal: Terminal, name: str | None, picture: str | None) -> None:
    """List the worked examples, or run one: its calculation step by step, and the result of the library."""
    from likely.teaching import examples as worked

    if picture is not None:
        drawn_as_svg = picture.lower().endswith(".svg")
        if not drawn_as_svg:
            outputs.check_page(picture, "--picture", "a picture is OUT.svg, a page OUT.html")
        outputs.check({"--picture": picture})
        writers.write_page(picture, worked.picture(name) if drawn_as_svg else worked.page(name))
    if name is None:
        listed = dict(worked.EXAMPLES)
        terminal.result({"examples": listed}, lambda: terminal.table(["example", "shows"], list(listed.items())))
    elif terminal.json:
        drawn = {"picture": picture} if picture else {}
        click.echo(to_json(worked.numbers(name) | drawn, indent=2))
    else:
        terminal.line(worked.run(name))
        if picture:
            terminal.line()
            terminal.line(f"Picture written to {picture}")


@click.command(short_help="Completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script for shell completion of commands, options and column names.

    For bash, add to ~/.bashrc: eval "$(likely completion bash)"; for zsh the same in ~/.zshrc with zsh; for fish:
    likely completion fish > ~/.config/fish/completions/likely.fish
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    assert maker is not None
    script = maker(context.find_root().command, {}, "likely", "_LIKELY_COMPLETE").source()
    terminal = context.ensure_object(Terminal)
    terminal.result({"shell": shell, "script": script}, lambda: click.echo(script))
