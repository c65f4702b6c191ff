"""Shell completion of column names, from the head of the file on the command line."""

from __future__ import annotations

import os
from typing import Any

import click
from click.shell_completion import CompletionItem

from likely.errors import LikelyError

LARGEST = 20_000_000  # bytes: larger files without a readable head are not completed, to avoid a delay


def complete_column(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Columns that start with the typed text; a comma starts another name, after = there are none."""
    before, comma, start = typed.rpartition(",")
    if "=" in start:
        return []
    sign = "=" if "=" in (parameter.make_metavar(context) or "") else ""
    found = (f'"{name}"' if "," in name and parameter.name == "ignore" else name for name in _names(context))
    return [CompletionItem(f"{before}{comma}{name}{sign}") for name in found if name.lower().startswith(start.lower())]


def _names(context: click.Context) -> list[str]:
    """Columns of the model, otherwise of the data; empty if they cannot be read quickly."""
    given, words = context.params, list(context.args)  # click leaves words unparsed where an option lacks its value
    named = [given.get("model"), given.get("data"), given.get("file"), *words]
    path = next((one for one in named if isinstance(one, str) and os.path.isfile(one)), None)
    if path is None:
        return []
    typed = {name: words[words.index(f"--{name}") + 1] for name in ("table", "sheet") if f"--{name}" in words[:-1]}
    header = not (given.get("no_header") or "--no-header" in words)
    try:
        return _of_model(path) if path.endswith(".likely") else _of_data(path, header, given | typed)
    except (LikelyError, OSError):
        return []


def _of_model(path: str) -> list[str]:
    from likely.model.model_file import read

    header = read(path)[0]
    return [header["target"]["name"], *(column["name"] for column in header["columns"])]


def _of_data(path: str, header: bool, given: dict[str, Any]) -> list[str]:
    from likely.sources import ReadOptions, open_source

    if path.lower().endswith((".csv", ".tsv", ".txt")):
        from likely.sources.csv_files import header_of

        return list(header_of(path, header))
    if path.lower().endswith((".parquet", ".pq")):
        import pyarrow.parquet as pq

        return [str(name) for name in pq.read_schema(path).names]
    if os.path.getsize(path) > LARGEST and not path.lower().endswith((".sqlite", ".sqlite3", ".db", ".duckdb", ".ddb")):
        return []
    how = {name: given[name] for name in ("table", "sheet") if given.get(name)}
    first = next(iter(open_source(path, ReadOptions.of(None, how)).batches()), None)
    return list(first.names) if first else []
