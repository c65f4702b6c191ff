"""Picture of an explanation: a waterfall from the prior to the posterior log-odds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likely.errors import UsageError
from likely.plots.bars import Bar, BarChart, bars_svg
from likely.plots.svg import Svg

if TYPE_CHECKING:
    from likely.model.ledger import Entry, Ledger

FARTHEST = 40.0  # log-odds beyond are drawn here


@dataclass(frozen=True)
class Waterfall:
    """Log-odds of a class against another one: those of the prior, and what each entry adds."""

    target: str
    label: Any
    against: Any
    prior: float
    steps: tuple[tuple[str, float], ...]
    probability: float


def waterfall_steps(ledger: Ledger, label: Any, top: int) -> Waterfall:
    """The strongest steps from the prior to the posterior log-odds, and the sum of all others as the last one."""
    if label is not None and label not in ledger.classes:
        raise UsageError(f"{label!r} is no class: choose from {list(ledger.classes)[:20]}")
    best = ledger.classes.index(ledger.label if label is None else label)
    others = [c for c in range(len(ledger.classes)) if c != best] or [best]
    second = max(others, key=lambda c: ledger.probabilities[c])
    steps = [(_named(e), _apart(e.evidence, best, second)) for e in ledger.entries]
    steps.sort(key=lambda step: -abs(step[1]))
    rest = steps[top:]
    shown = [*steps[:top], *([(f"{len(rest)} more", math.fsum(w for _, w in rest))] if rest else [])]
    return Waterfall(
        ledger.target, ledger.classes[best], ledger.classes[second],
        _bounded(ledger.log_prior[best] - ledger.log_prior[second]), tuple(shown), ledger.probabilities[best],
    )  # fmt: skip


def waterfall(ledger: Ledger, label: Any, top: int) -> Svg:
    """The steps from the prior to the posterior log-odds of a class against the most probable other one."""
    found = waterfall_steps(ledger, label, top)
    at = found.prior
    rows = [("prior", [Bar(at, colour=-1, value=f"{at:+.2f}")])]
    for name, weight in found.steps:
        bar = Bar(at + weight, at, 0 if weight >= 0 else 1, value=f"{weight:+.2f}", tip=f"{name}: {weight:+.4f}")
        rows.append((name, [bar]))
        at += weight
    rows.append(("posterior", [Bar(at, colour=-1, value=f"{at:+.2f}")]))
    subtitle = f"log-odds against {found.against}; posterior {100 * found.probability:.1f} %"
    return bars_svg(BarChart(f"{found.target}: {found.label}", subtitle, "log-odds", rows, connected=True, longest=34))


def _named(entry: Entry) -> str:
    from likely.model.ledger import shown

    value = shown(entry.value)
    return f"{entry.name} = {value}" if value else entry.name


def _apart(evidence: tuple[float, ...], best: int, second: int) -> float:
    a, b = evidence[best], evidence[second]
    return _bounded(a - b) if math.isfinite(a) and math.isfinite(b) else (FARTHEST if a > b else -FARTHEST if a < b else 0.0)


def _bounded(value: float) -> float:
    return max(-FARTHEST, min(FARTHEST, value)) if not math.isnan(value) else 0.0
