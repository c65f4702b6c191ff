"""Limits of table sizes, and the errors for what would exceed them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from likely.errors import ResourceError

MOST_CELLS = 1 << 27  # of one table: one gigabyte of probabilities
MOST_OF_TREE = 1 << 28  # of all tables of a junction tree, of which some copies are needed


def in_words(cells: float) -> str:
    """A number of cells, and the memory they take."""
    size = cells * 8
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000 or unit == "PB":
            break
        size /= 1000
    shown = f"{cells:,.0f}" if cells < 1e15 else f"about 10^{math.log10(cells):.0f}"
    return f"{shown} cells ({size:,.0f} {unit})" if cells < 1e15 else f"{shown} cells"


def check_family(node: str, parents: Sequence[str], sizes: Mapping[str, int]) -> int:
    """The number of cells of a node's conditional table; one that would not fit into memory is refused."""
    cells = math.prod((sizes[name] for name in (*parents, node)), start=1)
    if cells > MOST_CELLS:
        listed = ", ".join(map(repr, parents[:8])) + (" …" if len(parents) > 8 else "")
        raise ResourceError(
            f"the table of node {node!r} given its {len(parents)} parents ({listed}) would have {in_words(float(cells))}",
            remedy=f"give {node!r} fewer parents, merge values of the parents, or put a hidden node between them",
        )
    return cells


def check_clique(names: Sequence[str], cells: float) -> None:
    """Refuse an intermediate table of inference that would not fit into memory."""
    if cells > MOST_CELLS:
        listed = ", ".join(map(repr, names[:8])) + (" …" if len(names) > 8 else "")
        raise ResourceError(
            f"exact inference would need a table over {len(names)} nodes ({listed}) of {in_words(cells)}",
            remedy="observe more nodes, ask for fewer at once, or estimate from samples: query(..., samples=100_000)",
        )


def check_tree(cells: float) -> None:
    """Refuse a junction tree whose tables would not fit into memory together."""
    if cells > MOST_OF_TREE:
        raise ResourceError(
            f"exact inference in many rows would need tables of {in_words(cells)} in all",
            remedy="query() single rows, which needs what matters to each, or merge values of nodes with many",
        )
