"""Small networks, brute-force enumeration and the published networks, for the tests of `likely.networks`."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest

from likely import Network

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "networks"
SPRINKLER = "C -> S, C -> R, S -> W, R -> W"
TABLES = {
    "C": [0.5, 0.5],
    "S": [[0.5, 0.5], [0.9, 0.1]],
    "R": [[0.8, 0.2], [0.2, 0.8]],
    "W": [[[1.0, 0.0], [0.1, 0.9]], [[0.1, 0.9], [0.01, 0.99]]],
}


def sprinkler():
    return Network.from_tables(SPRINKLER, dict.fromkeys(TABLES, ("f", "t")), TABLES)


def published(name):
    path = DATA / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"NOT TESTED: the published network {name!r} is not in ../shared/data/networks")
    return Network.from_bif(path)


def text_of(name):
    with gzip.open(DATA / f"{name}.bif.gz", "rt") as file:
        return file.read()


def worlds(net):
    """Every assignment of the nodes with its probability, by multiplying the tables."""
    values = [net.columns[name].values for name in net.nodes]
    for codes in itertools.product(*(range(len(v)) for v in values)):
        at = dict(zip(net.nodes, codes, strict=True))
        p = 1.0
        for name in net.nodes:
            p *= net.parameters.tables[name][tuple(at[n] for n in (*net.graph.parents[name], name))]
        yield {name: values[i][codes[i]] for i, name in enumerate(net.nodes)}, p


def enumerated(net, target, evidence):
    """The posterior of one node or several, summed over all worlds, and the probability of the evidence."""
    names = [target] if isinstance(target, str) else list(target)
    found = dict.fromkeys(itertools.product(*(net.columns[n].values for n in names)), 0.0)
    for world, p in worlds(net):
        if all(world[n] == v for n, v in evidence.items()):
            found[tuple(world[n] for n in names)] += p
    total = sum(found.values())
    keyed = {key[0] if isinstance(target, str) else key: p / total for key, p in found.items()}
    return keyed, total


def random_network(seed, nodes=6, most_values=3, density=0.5):
    """A network with random arcs and tables; some nodes may have no arcs at all."""
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(nodes)]
    sizes = rng.integers(2, most_values + 1, nodes)
    parents = {n: [names[j] for j in range(i) if rng.random() < density][:3] for i, n in enumerate(names)}
    tables = {}
    for i, name in enumerate(names):
        shape = [int(sizes[names.index(p)]) for p in parents[name]]
        tables[name] = rng.dirichlet(np.ones(sizes[i]), size=tuple(shape) or None)
    values = {n: [f"v{k}" for k in range(sizes[i])] for i, n in enumerate(names)}
    return Network.from_tables(parents, values, tables)
