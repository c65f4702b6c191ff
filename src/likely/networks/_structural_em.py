"""Learning of arcs where cells are missing: structural EM with drawn completions (Friedman 1998, stochastic variant).

Families that are scored on the rows in which they are complete cannot be compared: a parent with missing cells leaves rows out,
and with them their log loss. Here missing cells are drawn, at first from the observed values of their column, then from their
posterior under the network of the round before, and all families are scored on the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from likely.errors import UsageError
from likely.kernels.progress import announce
from likely.networks import fitting
from likely.networks._inference import Inference
from likely.networks.family_counts import count_rows
from likely.networks.graph import Graph
from likely.networks.network_parameters import AUTO, derive
from likely.networks.rows import Rows
from likely.schema import NUMBER

ROUNDS = 5  # at most; few arcs change after the third
Parents = Sequence[set[int]]


def search_with_missing_cells(rows: Rows, search: Callable[[Rows], Parents], seed: int) -> Parents:
    """The parents of each node that `search` finds in completed rows."""
    draws = np.random.default_rng(seed)
    full = _from_columns(rows, draws)
    parents = search(full)
    for i in range(ROUNDS):
        announce(f"arcs with missing cells, round {i + 2} of at most {ROUNDS + 1}")
        try:
            full = _from_network(rows, full, parents, draws)
        except UsageError:  # tables of inference that are too large
            return parents
        before, parents = parents, search(full)
        if list(before) == list(parents):
            break
    return parents


def _from_columns(rows: Rows, draws: np.random.Generator) -> Rows:
    """Missing cells drawn from the observed ones of their column."""
    codes, numbers, weights = rows.codes.copy(), rows.numbers.copy(), rows.each_weight()
    lines = [numbers[rows.numeric[c.name]] if c.kind == NUMBER else codes[i] for i, c in enumerate(rows.columns)]
    for line in lines:
        gone = np.isnan(line) if line.dtype.kind == "f" else line < 0
        if gone.any() and not gone.all():
            chances = weights[~gone] / weights[~gone].sum()
            line[gone] = draws.choice(line[~gone], int(gone.sum()), p=chances)
    return replace(rows, codes=codes, numbers=numbers)


def _from_network(rows: Rows, full: Rows, parents: Parents, draws: np.random.Generator) -> Rows:
    """Missing cells drawn from their posterior under the network of completed rows."""
    names = [c.name for c in rows.columns]
    graph = Graph(tuple(names), {names[i]: tuple(names[p] for p in sorted(some)) for i, some in enumerate(parents)})
    tally = count_rows(full, graph)
    engine = Inference(graph, tally.columns, derive(tally, dict.fromkeys(names, AUTO)))
    return fitting.completed(engine, rows, draws)
