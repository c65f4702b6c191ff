"""Directed acyclic graphs: parsing, order, d-separation, Markov blankets, equivalence classes and their distance."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likely.errors import UsageError, did_you_mean
from likely.kernels.parallel import cached_property

Arc = tuple[str, str]
_PARTS = re.compile(r"[,;\n]")
_ARROW = re.compile(r"->|→")
_OTHER_ARROW = re.compile("=>|<-|[←↔]|--")


@dataclass(frozen=True)
class Graph:
    """Nodes and, for each, its parents; arcs never form a cycle.

    Parameters
    ----------
    nodes : tuple of str
        The nodes, in the order they were named.
    parents : mapping of str to tuple of str
        The parents of every node.

    """

    nodes: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]]

    @staticmethod
    def of(arcs: Any, nodes: Iterable[str] = ()) -> Graph:
        """A graph from text (`"A -> B, B -> C"`), pairs, a mapping of children to parents, or another graph."""
        if isinstance(arcs, Graph):
            return arcs
        parents: dict[str, list[str]] = {str(name): [] for name in nodes}
        for parent, child in pairs_of(arcs):
            for name in (parent, child):
                if name is not None:
                    parents.setdefault(name, [])
            if parent is not None and child is not None and parent not in parents[child]:
                parents[child].append(parent)
        made = Graph(tuple(parents), {node: tuple(found) for node, found in parents.items()})
        made.order  # noqa: B018 - a cycle is refused here, not when the graph is first used
        return made

    @property
    def arcs(self) -> list[Arc]:
        """All arcs, as pairs of parent and child."""
        return [(parent, node) for node in self.nodes for parent in self.parents[node]]

    @cached_property
    def children(self) -> dict[str, tuple[str, ...]]:
        """The children of every node."""
        found: dict[str, list[str]] = {node: [] for node in self.nodes}
        for parent, child in self.arcs:
            found[parent].append(child)
        return {node: tuple(some) for node, some in found.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """A topological order: parents before their children."""
        left = {node: len(self.parents[node]) for node in self.nodes}
        ready = [node for node in self.nodes if not left[node]]
        for node in ready:
            for child in self.children[node]:
                left[child] -= 1
                if not left[child]:
                    ready.append(child)
        if len(ready) < len(self.nodes):
            raise UsageError(
                f"the arcs form a cycle: {' -> '.join(self._cycle(left))}: remove or turn round one of these arcs"
            )
        return tuple(ready)

    def _cycle(self, left: Mapping[str, int]) -> list[str]:
        """One cycle, found by going from parent to parent among the nodes that have no place in the order."""
        node = next(node for node in self.nodes if left[node])
        path: list[str] = []
        while node not in path:
            path.append(node)
            node = next(parent for parent in self.parents[node] if left[parent])
        return [node, *reversed(path[path.index(node) :])]

    def check(self, names: Iterable[Any], what: str = "node") -> list[str]:
        """The names as a list; one that is no node is refused."""
        listed = [names] if isinstance(names, str) else list(names)
        for name in listed:
            if name not in self.parents:
                shown = ", ".join(map(repr, self.nodes[:20])) + (" …" if len(self.nodes) > 20 else "")
                raise UsageError(
                    f"{what} {name!r} is not in the network{did_you_mean(name, self.nodes)}: its nodes are {shown}"
                )
        return listed

    def ancestors(self, names: Iterable[str]) -> set[str]:
        """The nodes themselves and all from which a directed path leads to one of them."""
        return _closure(names, self.parents)

    def descendants(self, names: Iterable[str]) -> set[str]:
        """The nodes themselves and all to which a directed path leads from one of them."""
        return _closure(names, self.children)

    def markov_blanket(self, node: str) -> set[str]:
        """Parents, children and the children's other parents: given them, the node is independent of all others."""
        self.check(node)
        children = self.children[node]
        return {*self.parents[node], *children, *(p for child in children for p in self.parents[child])} - {node}

    def reachable(self, sources: Iterable[str], given: Iterable[str]) -> set[str]:
        """Nodes to which an active trail leads from one of the sources, given the observed nodes (the Bayes ball)."""
        observed = set(given)
        opened = self.ancestors(observed)
        todo: list[tuple[str, bool]] = [(node, True) for node in sources]  # True: the trail came up from a child
        seen: set[tuple[str, bool]] = set()
        while todo:
            node, upward = todo.pop()
            if (node, upward) in seen:
                continue
            seen.add((node, upward))
            if upward and node not in observed:
                todo += [(parent, True) for parent in self.parents[node]]
            if node not in observed:
                todo += [(child, False) for child in self.children[node]]
            if not upward and node in opened:
                todo += [(parent, True) for parent in self.parents[node]]
        return {node for node, _ in seen} - observed

    def d_separated(self, one: Any, other: Any, given: Any = ()) -> bool:
        """Whether every trail between two (sets of) nodes is blocked by the observed ones."""
        left, right, seen = self.check(one), self.check(other), self.check(given)
        if {*left, *right} & set(seen) or set(left) & set(right):
            raise UsageError("d-separation needs three sets that have no node in common")
        return not self.reachable(left, seen) & set(right)

    def without_arcs_into(self, nodes: Iterable[str]) -> Graph:
        """The graph after an intervention: the nodes no longer depend on their parents."""
        cut = set(nodes)
        return Graph(self.nodes, {node: () if node in cut else self.parents[node] for node in self.nodes})

    def pattern(self) -> tuple[set[Arc], set[frozenset[str]]]:
        """The equivalence class (CPDAG): arcs that every equivalent graph has, and the pairs that are open."""
        directed = {
            (a, child) for child in self.nodes for a in self.parents[child] for b in self.parents[child]
            if a != b and not self._adjacent(a, b)
        }  # fmt: skip
        open_pairs = {frozenset(arc) for arc in self.arcs if arc not in directed}
        while forced := self._forced(directed, open_pairs):
            directed |= forced
            open_pairs -= {frozenset(arc) for arc in forced}
        return directed, open_pairs

    def _adjacent(self, a: str, b: str) -> bool:
        return a in self.parents[b] or b in self.parents[a]

    def _forced(self, directed: set[Arc], open_pairs: set[frozenset[str]]) -> set[Arc]:
        """Arcs of open pairs that Meek's rules direct."""
        into: dict[str, set[str]] = {node: set() for node in self.nodes}
        out: dict[str, set[str]] = {node: set() for node in self.nodes}
        beside: dict[str, set[str]] = {node: set() for node in self.nodes}
        for a, b in directed:
            into[b].add(a)
            out[a].add(b)
        for a, b in map(tuple, open_pairs):
            beside[a].add(b)
            beside[b].add(a)
        found = set()
        for pair in open_pairs:
            for a, b in (tuple(pair), tuple(pair)[::-1]):
                third = any(not self._adjacent(c, b) for c in into[a])
                chain = bool(out[a] & into[b])
                both = beside[a] & into[b]
                if third or chain or any(not self._adjacent(c, d) for c in both for d in both if c != d):
                    found.add((a, b))
                    break
        return found

    def distance(self, other: Graph, *, equivalence: bool = False) -> int:
        """Structural Hamming distance: arcs to add, remove or turn round; between equivalence classes on request."""
        self.check(other.nodes)
        other.check(self.nodes)
        mine, theirs = (_marks(graph, equivalence) for graph in (self, other))
        return sum(mine.get(pair) != theirs.get(pair) for pair in {*mine, *theirs})


def _marks(graph: Graph, equivalence: bool) -> dict[frozenset[str], Arc]:
    directed, open_pairs = graph.pattern() if equivalence else (set(graph.arcs), set())
    return {frozenset(arc): arc for arc in directed} | dict.fromkeys(open_pairs, ("", ""))


def _closure(names: Iterable[str], following: Mapping[str, Sequence[str]]) -> set[str]:
    found, todo = set(), list(names)
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += following[node]
    return found


def pairs_of(arcs: Any) -> Iterator[tuple[str | None, str | None]]:
    """Pairs of parent and child; a node alone has no second part."""
    if isinstance(arcs, str):
        for text in _PARTS.split(arcs):
            yield from _chain(text)
    elif isinstance(arcs, Mapping):
        for child, parents in arcs.items():
            yield str(child), None
            yield from ((str(parent), str(child)) for parent in ([parents] if isinstance(parents, str) else parents))
    else:
        for arc in arcs:
            if isinstance(arc, str):
                yield from _chain(arc)
            elif isinstance(arc, Sequence) and len(arc) == 2:
                yield str(arc[0]), str(arc[1])
            else:
                raise UsageError(f"{arc!r} is no arc: write 'A -> B', or a pair ('A', 'B')")


def _chain(text: str) -> Iterator[tuple[str | None, str | None]]:
    if not text.strip():
        return
    names = [name.strip() for name in _ARROW.split(text)]
    if not all(names) or _OTHER_ARROW.search(text):
        raise UsageError(f"{text.strip()!r} is no arc: write 'A -> B', commas between parts; names with such signs as pairs")
    if len(names) == 1:
        yield names[0], None
    yield from itertools.pairwise(names)
