"""The sum of many tallies."""

from __future__ import annotations

from collections.abc import Sequence

from likely.engines.memory import settled
from likely.tally import Tally


def total(tallies: Sequence[Tally]) -> Tally:
    """The sum of tallies, added in a tree: large sums are added seldom."""
    level = [settled(tally) for tally in tallies]
    while len(level) > 1:
        pairs = [settled(a + b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + (level[-1:] if len(level) % 2 else [])
    return level[0].pruned()
