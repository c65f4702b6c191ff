"""The commands sql and export: models in the language of another system."""

from __future__ import annotations

import json
from typing import Any

import click

from likely.cli import _inputs as inputs
from likely.cli import _outputs as outputs
from likely.cli import _writers as writers
from likely.cli._options import FILE, json_option
from likely.cli._terminal import Terminal, plain, standard_output
from likely.errors import UsageError

DIALECTS = ("duckdb", "postgres", "sqlite", "spark", "bigquery", "snowflake", "mysql")
ALIASES = {"postgresql": "postgres"}
ENDINGS = {"onnx": ".onnx", "sql": ".sql", "json": ".json"}


class DialectName(click.Choice[str]):
    """A dialect, by its name or another that it is known by."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name of the dialect."""
        return super().convert(ALIASES.get(value, value), param, ctx)


dialect_option = click.option(
    "--dialect", type=DialectName(DIALECTS), default="duckdb", show_default=True, help="Database that the SQL is for."
)
table_option = click.option("--table", default="data", show_default=True, metavar="NAME", help="Table that is scored.")
column_option = click.option(
    "--column", "columns", multiple=True, metavar="COLUMN", help="Column that is returned, once for each; by default all."
)
prefix_option = click.option("--prefix", default="", metavar="TEXT", help="Prefix of the names of the added columns.")
words_option = click.option(
    "--words", type=FILE, metavar="FILE", help="File to write the table of words of a text model to: .parquet or .csv."
)
words_table_option = click.option(
    "--words-table", "parameters", default="likely_words", show_default=True, metavar="NAME",
    help="Name of the table of words in the database.",
)  # fmt: skip
pretty_option = click.option("--pretty", is_flag=True, help="Format the statement over several lines.")


@click.command(short_help="Write a model as one SQL statement.")
@click.argument("model", type=FILE)
@dialect_option
@table_option
@column_option
@prefix_option
@words_option
@words_table_option
@pretty_option
@click.option("-o", "--output", type=FILE, default="-", metavar="FILE", help="File to write; by default standard output (-).")
@json_option
@click.pass_obj
def sql(terminal: Terminal, /, model: str, output: str, words: str | None, columns: tuple[str, ...], **given: Any) -> None:
    """Write MODEL as one SELECT: the table's columns, `label`, and `p_<class>` for each class, equal to likely predict.

    A model of text is joined with a table of words, which --words writes; load it into the database under the name of
    --words-table.
    """
    from likely.learning.load import load_model

    outputs.check({"-o": output, "--words": words}, [model])
    with inputs.as_file(model, terminal) as path:
        known = load_model(path)
    statement = known.sql(columns=columns or None, **given)
    if words is not None:
        table = known.word_weights()
        with writers.writer(words) as out:
            out.write(dict(zip(table.schema.names, (c.combine_chunks() for c in table.columns), strict=True)))
    _write(terminal, statement + "\n", output, {"sql": statement, "dialect": given["dialect"], "table": given["table"]})


@click.command(short_help="Write a model as ONNX, SQL or JSON.")
@click.argument("model", type=FILE)
@click.option("--to", "form", type=click.Choice(tuple(ENDINGS)), required=True, help="Format of the output.")
@click.option("-o", "--output", type=FILE, default="-", metavar="FILE", help="File to write; by default standard output (-).")
@dialect_option
@table_option
@json_option
@click.pass_obj
def export(terminal: Terminal, /, model: str, form: str, output: str, dialect: str, table: str) -> None:
    """Write MODEL as an ONNX graph, as one SQL statement, or as JSON: tables and terms of every class.

    --dialect and --table are for SQL; likely sql has more options for it.
    """
    from likely.learning.load import load_model

    outputs.check({"-o": output}, [model])
    if form == "onnx" and output == "-":
        raise UsageError("an ONNX graph is not text: name a file with -o FILE.onnx")
    with inputs.as_file(model, terminal) as path:
        known = load_model(path)
    if form == "onnx":
        graph = known.onnx().SerializeToString()
        _write(terminal, graph, output, {"to": form, "bytes": len(graph)})
    elif form == "sql":
        statement = known.sql(table, dialect)
        _write(terminal, statement + "\n", output, {"to": form, "sql": statement, "dialect": dialect, "table": table})
    else:
        from likely.export import to_json

        exported = to_json(known)
        text = json.dumps(exported, ensure_ascii=False, allow_nan=False, default=plain)
        _write(terminal, text + "\n", output, {"to": form, "json": exported})


def _write(terminal: Terminal, content: str | bytes, output: str, report: dict[str, Any]) -> None:
    """Write to a file, which is complete or absent, or to standard output; with --json the report takes its place."""
    from likely.sources.atomic_write import whole_file

    if output == "-":
        if terminal.json:
            terminal.result(report, lambda: None)
        else:
            standard_output().write(str(content))
        return
    data = content.encode() if isinstance(content, str) else content
    with whole_file(output) as temporary, open(temporary, "wb") as file:
        file.write(data)
    told = {name: value for name, value in report.items() if name not in ("sql", "json")}
    told |= {"output": output, "bytes": len(data)}
    terminal.result(told, lambda: terminal.line(f"{len(data):,} bytes written to {output}"))
