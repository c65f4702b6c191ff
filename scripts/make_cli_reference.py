"""Write docs/cli.md from the command line itself, so that the reference always matches the code."""

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"

HEAD = """\
# Command line

<!-- Made by scripts/make_cli_reference.py from likely.cli; change the code, not this page. -->

Every command is a verb of the library. Data goes to standard output, messages and progress to standard error;
`-` is standard input or output.

An output file is complete or absent. No command overwrites a file that it reads, under any name (relative paths, symbolic
and hard links, patterns, folders of texts), and a model replaces only a model or an empty file: remove any other file first.
Models that are changed in place (`update`, `forget`, `merge` into one of its models) are read and changed again if another
process has saved the file meanwhile, so that no update is lost; a lock held by another process for more than 30 seconds ends
the command with exit code 1.

| exit code | meaning |
|---|---|
"""


def root_command(module: ModuleType) -> click.Group:
    """The root group: `main`, or the only group that no other group contains."""
    groups = {id(found): found for found in vars(module).values() if isinstance(found, click.Group)}
    if isinstance(found := getattr(module, "main", None), click.Group):
        return found
    inner = {id(child) for group in groups.values() for child in group.commands.values()}
    outer = [group for key, group in groups.items() if key not in inner]
    if len(outer) != 1:
        raise LookupError(f"{module.__name__} must hold one outermost click group, found {len(outer)}")
    return outer[0]


def walk(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """Every command below `command` that is not hidden, depth first, in the order the help shows."""
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        if child is None or child.hidden:
            continue
        inner = click.Context(child, info_name=name, parent=context)
        yield child, inner
        yield from walk(child, inner)


def cell(text: str) -> str:
    """One table cell: no line breaks, and bars that do not end it."""
    return " ".join(text.split()).replace("|", "\\|")


def rows(command: click.Command, context: click.Context) -> list[str]:
    """One table row for each option, with the help of the command."""
    options = [param for param in command.get_params(context) if isinstance(param, click.Option)]
    records = (option.get_help_record(context) for option in options)
    return [f"| `{cell(names)}` | {cell(help_text)} |" for names, help_text in filter(None, records)]


def section(command: click.Command, context: click.Context) -> str:
    """A command's heading, usage, description and options."""
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    description = inspect.cleandoc(command.help or "").split("\f")[0].replace("\b\n", "").strip()
    parts = [f"## {context.command_path}", f"```\n{usage}\n```", description]
    if options := rows(command, context):
        parts.append("\n".join(["| option | meaning |", "|---|---|", *options]))
    return "\n\n".join(part for part in parts if part)


def reference() -> str:
    """The complete page."""
    root = root_command(importlib.import_module("likely.cli"))
    context = click.Context(root, info_name="likely", **root.context_settings)  # with -h for help
    found = [(root, context), *walk(root, context)]
    codes = importlib.import_module("likely.cli._entry_point").MEANINGS.items()
    head = HEAD + "\n".join(f"| {code} | {meaning} |" for code, meaning in codes)
    return "\n\n".join([head, *(section(command, inner) for command, inner in found)]) + "\n"


def command_paths() -> list[str]:
    """`likely learn`, `likely predict` and so on: what the page must mention."""
    root = root_command(importlib.import_module("likely.cli"))
    return [inner.command_path for _, inner in walk(root, click.Context(root, info_name="likely"))]


def main() -> int:
    """Write the page, or with --check only test whether it is current."""
    text = reference()
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print(f"{PAGE.name} is {'current' if current else 'stale: run make docs'}")
        return 0 if current else 1
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    print(f"{PAGE.name}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
