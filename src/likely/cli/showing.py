"""Commands that show what is there: inspect, examples, completion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from likely.cli import describe, export, options, outputs
from likely.cli.completing import complete_column
from likely.cli.options import FILE, json_option, reading_options
from likely.cli.terminal import Terminal, to_json
from likely.errors import UsageError, did_you_mean


@click.command(short_help="Show what a model or a table holds.")
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
    help="The column to predict, which is never left out (data).",
)
@click.option("--missing", multiple=True, metavar="TOKEN", help="A text that stands for a missing cell (data).")
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
    """Show what a model file holds, or what Likely sees in a table.

    Of a model: classes, columns with their families, how much each tells of the class, priors, how many parameters, size
    and digest. Of a table: each column with its kind and the reason, missing cells and different values.
    """
    with options.as_file(file, terminal) as path:
        if _is_model(path):
            _inspect_model(terminal, path, file, columns, tables)
        elif columns or tables:
            raise UsageError(f"{file!r} is no model file: --column and --tables print a model's parameters")
        else:
            _inspect_data(terminal, options.opened(path, None, options.how_read(given)), file, target)


def _is_model(path: str) -> bool:
    from likely.store import MAGIC

    if Path(path).suffix == ".likely":
        return True
    if not Path(path).is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _inspect_model(terminal: Terminal, path: str, name: str, columns: Sequence[str], tables: bool) -> None:
    from likely.model import load_with_digest

    known, digest = load_with_digest(path)
    wanted = list(known.parameters) if tables else list(columns)
    for column in wanted:
        if column not in known.parameters:
            meant, listed = did_you_mean(column, known.parameters), ", ".join(list(known.parameters)[:20])
            raise UsageError(f"the model has no parameters of {column!r}{meant}: it has {listed}")
    report = describe.model(known) | {
        "model": name,
        "bytes": Path(path).stat().st_size,
        "digest": digest,
        "priors": describe.priors(known),
        "weights": known.weights,
        "missing": list(known.missing),
        "average": known.average,
        "importance": describe.importance(known),
        "tables": {column: list(known.parameters[column]) for column in wanted},
    }
    terminal.result(report, lambda: _show_model(terminal, report))


def _show_model(terminal: Terminal, report: dict[str, Any]) -> None:
    for name, rows in report["tables"].items():
        describe.show_parameters(terminal, name, rows)
    if report["tables"]:
        return
    terminal.line(f"Model of {report['target']!r}: {report['rows']:,} rows counted")
    terminal.line()
    describe.show_classes(terminal, report)
    describe.show_columns(terminal, report)
    describe.show_importance(terminal, report)
    counts, priors = report["parameters"], report["priors"]
    terminal.line(f"imagined rows    {priors['values']} for every value; classes {priors['classes']}")
    for column, prior in priors["columns"].items():
        terminal.line(f"                 {prior} for {column}")
    if report["weights"]:
        terminal.line(f"weights          {report['weights']}")
    terminal.line(f"table entries    {counts['table_entries']:,}")
    without = counts["free_without_independence"]
    naive = f" ({without:,} if no column were independent)" if without is not None else ""
    terminal.line(f"free parameters  {counts['free']:,}{naive}")
    terminal.line(f"size             {report['bytes']:,} bytes")
    for said in report["look_alikes"]:
        terminal.line(said)
    terminal.line(describe.rows_inside(report, f"`likely strip {report['model']}` removes them"))
    terminal.line(f"sha256           {report['digest']}")


def _inspect_data(terminal: Terminal, opened: tuple[Any, Any], name: str, target: str | None) -> None:
    from likely.learn import inspect as look_at

    source, reading = opened
    found = look_at(source, target=target)
    if target is not None and target not in [column["column"] for column in found]:
        names = [column["column"] for column in found]
        raise UsageError(f"{name!r} has no column {target!r}{did_you_mean(target, names)}: it has {', '.join(names[:20])}")
    terminal.list_rejects(reading.rejects)
    rows = found[0]["rows"]

    def show() -> None:
        terminal.line(f"{name}: {len(found)} columns, looked at {rows:,} rows")
        terminal.line()
        head = ["column", "kind", "used", "missing", "different", "from", "to", "reason"]
        terminal.table(head, [[column[key] for key in head] for column in found])
        terminal.line()
        describe.show_missing(terminal, {column["column"]: column["taken"] for column in found if column["taken"]})
        for column in found:
            for said in (column["doubt"], column["look_alikes"]):
                if said:
                    terminal.line(said)

    terminal.result({"data": name, "rows": rows, "columns": found}, show)


@click.command(short_help="Worked examples, step by step.")
@click.argument("name", required=False)
@click.option("--picture", type=FILE, metavar="OUT.html", help="Where the page goes that plays the example (em).")
@json_option
@click.pass_obj
def examples(terminal: Terminal, name: str | None, picture: str | None) -> None:
    """List the worked examples, or run one: its sums step by step, as on paper, and what the library says."""
    from likely import examples as worked

    if picture is not None:
        outputs.check_page(picture, "--picture")
        outputs.check({"--picture": picture})
        export.write_page(picture, worked.page(name))
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
    """Print a script that completes commands, options and names of columns on TAB.

    For bash, add to ~/.bashrc: eval "$(likely completion bash)"; for zsh the same in ~/.zshrc with zsh; for fish:
    likely completion fish > ~/.config/fish/completions/likely.fish
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    assert maker is not None
    script = maker(context.find_root().command, {}, "likely", "_LIKELY_COMPLETE").source()
    terminal = context.ensure_object(Terminal)
    terminal.result({"shell": shell, "script": script}, lambda: click.echo(script))
