"""Names of columns on TAB: read off the head of the file that the command line names."""

from __future__ import annotations

import os
from typing import Any

import click
from click.shell_completion import CompletionItem

from likely.errors import LikelyError

LARGEST = 20_000_000  # bytes: a file that must be read further than its head is not waited for


def complete_column(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """The columns that begin with what was typed; after a comma another one begins, after = there is none."""
    before, comma, start = typed.rpartition(",")
    if "=" in start:
        return []
    sign = "=" if "=" in (parameter.make_metavar(context) or "") else ""
    found = (f'"{name}"' if "," in name and parameter.name == "ignore" else name for name in _names(context))
    return [CompletionItem(f"{before}{comma}{name}{sign}") for name in found if name.lower().startswith(start.lower())]


def _names(context: click.Context) -> list[str]:
    """The columns of the model if there is one, else of the data; none where they cannot be known at once."""
    given, words = context.params, list(context.args)  # click leaves words unparsed where an option lacks its value
    named = [given.get("model"), given.get("data"), given.get("file"), *words]
    path = next((one for one in named if isinstance(one, str) and os.path.isfile(one)), None)
    if path is None:
        return []
    said = {name: words[words.index(f"--{name}") + 1] for name in ("table", "sheet") if f"--{name}" in words[:-1]}
    header = not (given.get("no_header") or "--no-header" in words)
    try:
        return _of_model(path) if path.endswith(".likely") else _of_data(path, header, given | said)
    except (LikelyError, OSError):
        return []


def _of_model(path: str) -> list[str]:
    from likely.store import read

    header = read(path)[0]
    return [header["target"]["name"], *(column["name"] for column in header["columns"])]


def _of_data(path: str, header: bool, given: dict[str, Any]) -> list[str]:
    from likely.sources import Reading, open_source

    if path.lower().endswith((".csv", ".tsv", ".txt")):
        from likely.sources.text import header_of

        return list(header_of(path, header))
    if path.lower().endswith((".parquet", ".pq")):
        import pyarrow.parquet as pq

        return [str(name) for name in pq.read_schema(path).names]
    if os.path.getsize(path) > LARGEST and not path.lower().endswith((".sqlite", ".sqlite3", ".db", ".duckdb", ".ddb")):
        return []
    how = {name: given[name] for name in ("table", "sheet") if given.get(name)}
    first = next(iter(open_source(path, Reading.of(None, how)).batches()), None)
    return list(first.names) if first else []
