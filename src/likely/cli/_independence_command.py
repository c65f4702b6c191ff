"""The command that tests whether columns are independent, given others."""

from __future__ import annotations

import click

from likely.cli._inputs import as_file
from likely.cli._options import FILE, json_option
from likely.cli._terminal import Terminal
from likely.errors import UsageError


@click.command(short_help="Test whether two columns are independent.")
@click.argument("data", type=FILE)
@click.argument("a")
@click.argument("b")
@click.option("--given", multiple=True, metavar="COLUMN", help="A column that is given, such as the class; may be repeated.")
@click.option("--permutations", type=click.IntRange(min=0), default=1000, show_default=True, metavar="N",
              help="Permutations for the second p-value; 0 for none.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the permutations.")
@click.option("--event", metavar="VALUE", help="Also compare how often B has VALUE in the two groups of A: Simpson's paradox.")
@json_option
@click.pass_obj
def independence(
    terminal: Terminal, data: str, a: str, b: str, given: tuple[str, ...], permutations: int, seed: int, event: str | None
) -> None:
    """Test whether the columns A and B of DATA are independent, or independent given others, by the G-test.

    A small p-value is evidence of dependence. With --event and one --given, the rates of the event in the two groups of A are
    compared overall and within the values of the given column.
    """
    from likely.evaluation.independence import independence_test, simpson

    if event is not None and len(given) != 1:
        raise UsageError("--event compares groups within one column: name it with --given COLUMN")
    with as_file(data, terminal) as path:
        found = independence_test(path, a, b, given, permutations=permutations, seed=seed)
        compared = simpson(path, a, b, given[0], event=event) if event is not None else None
    report = found.to_dict() | ({"simpson": compared.to_dict()} if compared else {})

    def show() -> None:
        terminal.line(str(found))
        if compared:
            terminal.line()
            terminal.line(str(compared))

    terminal.result(report, show)
