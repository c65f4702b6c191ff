"""Tables of inference: good orders of elimination, limits by the memory that is free, few copies."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest

import likely
from likely.errors import LikelyWarning, ResourceError
from likely.kernels.free_memory import available_memory
from likely.networks import _elimination as elimination
from likely.networks import _inference as inference
from likely.networks import _limits as limits
from likely.networks._elimination import steps_of
from likely.networks._elimination_steps import best_order
from networks_help import random_network, sprinkler, worlds


def grid(side, seed=0):
    rng = np.random.default_rng(seed)
    parents = {f"{i},{j}": [f"{a},{b}" for a, b in ((i - 1, j), (i, j - 1)) if a >= 0 and b >= 0]
               for i, j in itertools.product(range(side), range(side))}  # fmt: skip
    tables = {v: rng.dirichlet([1, 1], size=(2,) * len(some) or None) for v, some in parents.items()}
    return likely.Network.from_tables(parents, dict.fromkeys(parents, ("k0", "k1")), tables)


def scopes_of(net):
    place = {name: i for i, name in enumerate(net.nodes)}
    return [[place[v] for v in (*net.graph.parents[n], n)] for n in net.nodes]


def test_a_grid_of_twenty_by_twenty_nodes_is_eliminated_in_tables_of_about_as_many_nodes():
    scopes = scopes_of(grid(20))
    steps = steps_of(scopes, range(400), [2] * 400)
    assert max(map(len, steps.tables)) <= 22
    steps.check([2] * 400, list(range(400)))


@pytest.mark.parametrize("seed", range(6))
def test_the_order_holds_each_variable_once_and_is_no_worse_than_any_of_the_greedy_ones(seed):
    net = random_network(seed, nodes=40, density=0.2)
    scopes, sizes = scopes_of(net), [len(net.columns[n].values) for n in net.nodes]
    order = best_order(scopes, sizes, range(40))
    assert sorted(order) == list(range(40))

    def cells(order):
        left, total = [set(s) for s in scopes], 0.0
        for v in order:
            table = set().union(*(s for s in left if v in s))
            left = [*(s for s in left if v not in s), table - {v}]
            total += math.prod(sizes[u] for u in table)
        return total

    found = cells(order)
    assert found == sum(math.prod(sizes[u] for u in t) for t in steps_of(scopes, range(40), sizes).tables)
    assert found <= cells(range(40))
    assert found <= cells(range(39, -1, -1))


@pytest.mark.parametrize("seed", range(4))
def test_the_most_probable_values_of_some_nodes_are_those_of_enumeration(seed):
    net = random_network(seed, nodes=7)
    wanted = list(net.nodes)[1:6:2]
    evidence = {net.nodes[-1]: net.columns[net.nodes[-1]].values[0]}
    sums = {}
    for world, p in worlds(net):
        if all(world[n] == v for n, v in evidence.items()):
            key = tuple(world[n] for n in wanted)
            sums[key] = sums.get(key, 0) + p
    found = net.most_probable(evidence, wanted)
    assert sums[tuple(found[n] for n in wanted)] == pytest.approx(max(sums.values()))


@pytest.mark.parametrize("nodes", [["9,9", "0,9"], None])
def test_a_most_probable_explanation_that_would_not_fit_is_refused_before_the_first_table(nodes, monkeypatch):
    net = grid(10)
    monkeypatch.setattr(limits, "MOST_CELLS", 1 << 8)
    monkeypatch.setattr(elimination, "product", None)
    with pytest.raises(ResourceError, match=r"table over \d+ nodes.*samples="):
        net.most_probable({"0,0": "k0"}, nodes)


def test_the_tables_that_the_maximising_pass_leaves_are_checked_before_the_sums(monkeypatch):
    hub = {"h": [], **{f"x{i}": ["h"] for i in range(12)}}
    tables = {n: [0.5, 0.5] if n == "h" else [[0.9, 0.1], [0.2, 0.8]] for n in hub}
    net = likely.Network.from_tables(hub, dict.fromkeys(hub, "ab"), tables)
    monkeypatch.setattr(inference, "reduced", None)
    monkeypatch.setattr(limits, "SMALL", 0)
    monkeypatch.setattr(limits, "COPIES", 0)  # so that only what is kept of the maximising pass counts
    monkeypatch.setattr(limits, "available_memory", lambda: 1_000)
    with pytest.raises(ResourceError):
        net.most_probable({}, [n for n in hub if n != "h"])


def test_a_table_that_does_not_fit_into_free_memory_is_refused_with_what_is_free(monkeypatch):
    net = sprinkler()
    monkeypatch.setattr(limits, "SMALL", 0)
    monkeypatch.setattr(limits, "available_memory", lambda: 90)
    with pytest.raises(ResourceError, match=r"0\.0 GB are free"):
        net.query("C", {"W": "t"})
    with pytest.raises(ResourceError, match="free"):
        likely.Network("C -> W").fit({"C": list("tftf"), "W": list("ttff")})


def test_a_query_that_takes_seconds_is_told_of(monkeypatch):
    monkeypatch.setattr(limits, "MANY_CELLS", 10)
    with pytest.warns(LikelyWarning, match=r"goes through 1\d cells of tables.*samples="):
        sprinkler().query("C", {"W": "t"})


def test_a_query_holds_three_times_the_largest_table_at_most():
    parents = [f"p{i}" for i in range(18)]
    tables = {"y": np.full((2,) * 19, 0.5)} | {p: [0.3, 0.7] for p in parents}
    net = likely.Network.from_tables({p: [] for p in parents} | {"y": parents}, dict.fromkeys(["y", *parents], "ab"), tables)
    net.query("p0")
    tracemalloc.start()
    net.query("y")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (limits.COPIES + 0.2) * 8 * 2**19  # its logs, the product that is summed in place, and halves of it


def test_a_long_chain_is_answered_by_the_junction_tree_after_one_query():
    rng = np.random.default_rng(0)
    nodes = [f"c{i}" for i in range(1_200)]
    parents = {n: nodes[i - 1 : i] if i else [] for i, n in enumerate(nodes)}
    tables = {n: rng.dirichlet([1, 1], size=(2,) if some else None) for n, some in parents.items()}
    net = likely.Network.from_tables(parents, dict.fromkeys(nodes, "ab"), tables)
    first = net.query(nodes[-1], {nodes[3]: "a"})
    net.inference.joint = None  # elimination
    assert net.query(nodes[-1], {nodes[3]: "a"}) == pytest.approx(first)


def test_free_memory_is_the_least_of_machine_and_container(tmp_path):
    machine, own = tmp_path / "meminfo", tmp_path / "cgroup"
    machine.write_text("MemTotal: 100 kB\nMemAvailable: 80 kB\n")
    own.write_text("0::/a/b\n")
    assert available_memory(tmp_path, own, machine) == 80 * 1024
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("30000\n")
    (inner / "memory.current").write_text("20000\n")
    (inner / "memory.stat").write_text("anon 1\ninactive_file 500\n")
    (tmp_path / "a" / "memory.max").write_text("max\n")
    assert available_memory(tmp_path, own, machine) == 10_500
    assert available_memory(tmp_path / "none", tmp_path / "none", tmp_path / "none") > 10**9
