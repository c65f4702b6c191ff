"""Options of decisions: costs and thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from likely.cli import _options as options
from likely.errors import UsageError

if TYPE_CHECKING:
    from likely.model.model import Model


def costs(given: Sequence[str], model: Model) -> Any:
    """`TRUE:DECISION=COST`, labels in their own type and `*` for every true class; None where nothing is given."""
    target = model.schema.target
    found: dict[Any, dict[Any, float]] = {}
    known = {str(label) for label in model.classes} | {"*"}
    for text in given:
        names, number_text = options.pair(text, "--cost", "TRUE:DECISION=COST, such as yes:no=5 or '*:ask=0.2'")
        ways = [(names[:i], names[i + 1 :]) for i, sign in enumerate(names) if sign == ":"]
        true, decision = next((way for way in ways if way[0] in known), ways[0] if ways else ("", ""))
        if not true or not decision:
            raise UsageError(f"--cost {text!r} is not understood: write it as TRUE:DECISION=COST")
        line = found.setdefault("*" if true == "*" else target.canonical(true), {})
        line[target.canonical(decision)] = options.number(number_text, "--cost")
    return found or None


def threshold(given: Sequence[str], model: Model) -> Any:
    """`CLASS=0.3`, or one number for the second of two classes; None where nothing is given."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return options.number(given[0], "--threshold")
    pairs = [options.pair(text, "--threshold", "CLASS=0.3") for text in given]
    return {model.schema.target.canonical(label): options.number(share, "--threshold") for label, share in pairs}


cost_option = click.option(
    "--cost", "cost", multiple=True, metavar="TRUE:DECISION=COST",
    help="What a decision costs where TRUE is the class ('*': any); errors cost 1 unless named. A decision that is no class "
    "is a reject option: --cost '*:ask=0.2'.",
)  # fmt: skip
threshold_option = click.option(
    "--threshold", "threshold", multiple=True, metavar="CLASS=P",
    help="The probability from which CLASS is predicted; one number is for the second of two classes.",
)  # fmt: skip


def wanted(cost: Sequence[str], given_threshold: Sequence[str], model: Model) -> dict[str, Any]:
    """Costs and thresholds as the library takes them."""
    return {"costs": costs(cost, model), "threshold": threshold(given_threshold, model)}
