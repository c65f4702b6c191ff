"""The largest table that is made, by what memory is free, and the errors that name what would exceed it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

from likely.errors import LikelyWarning, ResourceError
from likely.kernels.free_memory import available_memory

MOST_CELLS = 1 << 27  # of one table: one gigabyte of probabilities
MOST_OF_TREE = 1 << 28  # of all tables of a junction tree, of which some copies are needed
BYTES, COPIES = 8, 3  # of a cell; of a table: its logs, the product with others and the shares that are summed
SMALL = 1 << 26  # bytes: what every machine has is not asked for
MANY_CELLS = 1 << 27  # of all tables of a query: from here on, several seconds
SECONDS = 2e-8  # that a cell takes, about


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
    needed = BYTES * COPIES * float(cells)
    if cells > MOST_CELLS or (needed > SMALL and needed > available_memory()):
        listed = ", ".join(map(repr, parents[:8])) + (" …" if len(parents) > 8 else "")
        raise ResourceError(
            f"the table of node {node!r} given its {len(parents)} parents ({listed}) would have {in_words(float(cells))}"
            f"{_free(needed)}",
            remedy=f"give {node!r} fewer parents, merge values of the parents, or put a hidden node between them",
        )
    return cells


def check_clique(names: Sequence[str], cells: float, of_all: float = 0.0, kept: float = 0.0) -> None:
    """Refuse an intermediate table of inference that would not fit into memory; warn where the work takes long.

    `of_all` are the cells of all tables, of each of which `kept` bytes stay in memory.
    """
    needed = BYTES * COPIES * cells + kept * of_all
    if cells > MOST_CELLS or (needed > SMALL and needed > available_memory()):
        listed = ", ".join(map(repr, names[:8])) + (" …" if len(names) > 8 else "")
        raise ResourceError(
            f"exact inference would need a table over {len(names)} nodes ({listed}) of {in_words(cells)}{_free(needed)}",
            remedy="observe more nodes, ask for fewer at once, or estimate from samples: query(..., samples=100_000)",
        )
    if of_all > MANY_CELLS:
        warnings.warn(
            f"exact inference goes through {of_all:,.0f} cells of tables, the largest of them over {len(names)} nodes, which "
            f"takes {of_all * SECONDS:,.0f} seconds or more: query(..., samples=100_000) estimates sooner",
            LikelyWarning, stacklevel=6,
        )  # fmt: skip


def _free(needed: float) -> str:
    """What is needed and what is there, where that is known."""
    free = available_memory()
    return f", and {needed / 1e9:,.1f} GB with its copies where {free / 1e9:,.1f} GB are free" if needed > free else ""


def check_tree(cells: float) -> None:
    """Refuse a junction tree whose tables would not fit into memory together."""
    needed = BYTES * COPIES * cells
    if cells > MOST_OF_TREE or (needed > SMALL and needed > available_memory()):
        raise ResourceError(
            f"exact inference in many rows would need tables of {in_words(cells)} in all{_free(needed)}",
            remedy="query() single rows, which needs what matters to each, or merge values of nodes with many",
        )
