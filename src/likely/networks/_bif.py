"""Networks in the Bayesian Interchange Format (BIF)."""

from __future__ import annotations

import gzip
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.networks._limits import check_family
from likely.networks.graph import Graph
from likely.schema import CATEGORY, Column
from likely.sources.atomic_write import whole_file

Array = NDArray[np.float64]
LONGEST_FILE = 1 << 28  # bytes, unpacked
_TOKEN = re.compile(r'"[^"]*"|[{}()\[\]|;,]|[^\s{}()\[\]|;,"]+')
_COMMENT = re.compile(r'("[^"]*")|//[^\n]*|/\*.*?\*/', re.DOTALL)  # quoted words are matched first: they stay as they are
_BARE = re.compile(r"[^\s{}()\[\]|;,\"]+")
_OFF = 1e-2  # how far the probabilities of a row may be from summing to one


def read_bif(path: str | os.PathLike[str]) -> tuple[Graph, dict[str, Column], dict[str, Array]]:
    """The graph, the nodes and the tables of a BIF file (also .gz)."""
    opener = gzip.open if str(path).endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            raw = file.read(LONGEST_FILE + 1)
    except (OSError, EOFError) as error:
        raise DataError(f"{str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > LONGEST_FILE:
        raise DataError(f"{str(path)!r} is longer than any network: it unpacks to more than {LONGEST_FILE:,} bytes")
    try:
        return parse_bif(raw.decode("utf-8", errors="strict"))
    except UnicodeDecodeError:
        raise DataError(f"{str(path)!r} is no BIF file: it is not text in UTF-8") from None


class _Tokens:
    """The words and signs of a BIF file, one after the other."""

    def __init__(self, text: str) -> None:
        self._all: list[str] = _TOKEN.findall(_COMMENT.sub(lambda found: found[1] or " ", text))
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._all)

    def next(self, *expected: str) -> str:
        if self._at >= len(self._all):
            raise DataError("the BIF file is cut off: it ends in the middle of a block")
        token = self._all[self._at]
        self._at += 1
        if expected and token not in expected:
            near = " ".join(self._all[max(0, self._at - 6) : self._at + 3])
            raise DataError(f"the BIF file has {token!r} where {' or '.join(map(repr, expected))} belongs (near {near!r})")
        return token

    def name(self) -> str:
        return self.next().strip('"')

    def until(self, *ends: str) -> list[str]:
        found = []
        while (word := self.next()) not in ends:
            if word != ",":
                found.append(word.strip('"'))
        return found

    def peek(self) -> str:
        return self._all[self._at] if self else ""

    def skip_block(self) -> None:
        depth = 0
        while True:
            word = self.next()
            depth += {"{": 1, "}": -1}.get(word, 0)
            if word == "}" and depth == 0:
                return


def parse_bif(text: str) -> tuple[Graph, dict[str, Column], dict[str, Array]]:
    """The graph, the nodes and the tables of a text in BIF."""
    tokens = _Tokens(text)
    columns: dict[str, Column] = {}
    blocks: dict[str, tuple[tuple[str, ...], list[tuple[Any, list[str]]]]] = {}
    while tokens:
        word = tokens.next("network", "variable", "probability")
        if word == "network":
            tokens.skip_block()
        elif word == "variable":
            column = _variable(tokens)
            if column.name in columns:
                raise DataError(f"the BIF file declares variable {column.name!r} twice")
            columns[column.name] = column
        else:
            node, parents, rows = _probability(tokens)
            if node in blocks:
                raise DataError(f"the BIF file has two tables of {node!r}")
            blocks[node] = (parents, rows)
    if not columns:
        raise DataError("the BIF file declares no variable")
    lacking = [name for name in columns if name not in blocks]
    strange = [name for node, (parents, _) in blocks.items() for name in (node, *parents) if name not in columns]
    if lacking or strange:
        raise DataError(f"variable {(lacking or strange)[0]!r} " + ("has no table" if lacking else "is not declared"))
    graph = Graph.of({name: blocks[name][0] for name in columns})
    return graph, columns, {name: _table(name, *blocks[name], columns) for name in columns}


def _variable(tokens: _Tokens) -> Column:
    name = tokens.name()
    tokens.next("{")
    values: list[str] = []
    while (word := tokens.next()) != "}":
        if word == "type":
            kind = tokens.next()
            if kind != "discrete":
                raise DataError(f"variable {name!r} of the BIF file is {kind!r}: only discrete variables can be read")
            tokens.next("[")
            tokens.until("]")
            tokens.next("{")
            values = tokens.until("}")
            tokens.next(";")
        else:  # a property
            tokens.until(";")
    if len(set(values)) < len(values) or not values:
        raise DataError(f"variable {name!r} of the BIF file needs values that all differ, not {values}")
    return Column(name, CATEGORY, tuple(values))


def _probability(tokens: _Tokens) -> tuple[str, tuple[str, ...], list[tuple[Any, list[str]]]]:
    tokens.next("(")
    head = []
    while (word := tokens.next()) != ")":
        if word not in "|,":
            head.append(word.strip('"'))
    if not head:
        raise DataError("the BIF file has a table without a variable")
    tokens.next("{")
    rows: list[tuple[Any, list[str]]] = []
    while (word := tokens.next()) != "}":
        if word == "(":
            rows.append((tuple(tokens.until(")")), tokens.until(";")))
        elif word in ("table", "default"):
            rows.append((word, tokens.until(";")))
        else:
            tokens.until(";")
    return head[0], tuple(head[1:]), rows


def _table(node: str, parents: Sequence[str], rows: Sequence[tuple[Any, list[str]]], columns: Mapping[str, Column]) -> Array:
    """The conditional table, with an axis for each parent and, last, one for the node."""
    sizes = {name: len(columns[name].values) for name in (*parents, node)}
    check_family(node, parents, sizes)
    shape = [sizes[name] for name in parents]
    table = np.full((*shape, sizes[node]), np.nan)
    for key, numbers in rows:
        try:
            given = np.array([float(number) for number in numbers])
        except ValueError as error:
            raise DataError(f"the table of {node!r} in the BIF file holds no number: {error}") from None
        if key == "table":  # all of it: the values of the node vary slowest
            if len(given) != table.size:
                raise DataError(f"the table of {node!r} in the BIF file has {len(given)} numbers instead of {table.size}")
            table = np.moveaxis(given.reshape(sizes[node], *shape), 0, -1)
            continue
        if len(given) != sizes[node]:
            raise DataError(f"a row of the table of {node!r} has {len(given)} numbers instead of {sizes[node]}")
        if key == "default":
            table = np.where(np.isnan(table), given, table)
        else:
            table[_place(node, parents, key, columns)] = given
    _check(node, parents, table, columns)
    return table


def _place(node: str, parents: Sequence[str], key: Sequence[str], columns: Mapping[str, Column]) -> tuple[int, ...]:
    known = len(key) == len(parents) and all(v in columns[p].code for p, v in zip(parents, key, strict=True))
    if not known:
        raise DataError(f"the table of {node!r} has a row for {key}, which are no values of its parents {tuple(parents)}")
    return tuple(columns[p].code[v] for p, v in zip(parents, key, strict=True))


def _check(node: str, parents: Sequence[str], table: Array, columns: Mapping[str, Column]) -> None:
    wrong = ~((table >= 0).all(-1) & (np.abs(table.sum(-1) - 1) < _OFF))
    if wrong.any():
        at = np.unravel_index(int(wrong.argmax()), wrong.shape) if parents else ()
        given = {p: columns[p].values[int(k)] for p, k in zip(parents, at, strict=True)}
        found = table[tuple(at)].tolist()
        raise DataError(f"the probabilities of {node!r} given {given} are {found}: they must be there and sum to one")


def bif_text(graph: Graph, columns: Mapping[str, Column], tables: Mapping[str, Array]) -> str:
    """A network as text in BIF; every probability is written with all its digits."""
    return "".join(_lines(graph, columns, tables))


def _lines(graph: Graph, columns: Mapping[str, Column], tables: Mapping[str, Array]) -> Iterator[str]:
    yield "network likely {\n}\n"
    for name in graph.nodes:
        values = ", ".join(_word(value) for value in columns[name].values)
        yield f"variable {_word(name)} {{\n  type discrete [ {len(columns[name].values)} ] {{ {values} }};\n}}\n"
    for name in graph.nodes:
        parents = graph.parents[name]
        given = f" | {', '.join(map(_word, parents))}" if parents else ""
        yield f"probability ( {_word(name)}{given} ) {{\n"
        configurations = itertools.product(*(columns[parent].values for parent in parents))
        rows = tables[name].reshape(-1, tables[name].shape[-1])
        for key, row in zip(configurations, rows, strict=True):
            prefix = f"({', '.join(map(_word, key))})" if parents else "table"
            yield f"  {prefix} {', '.join(repr(float(p)) for p in row)};\n"
        yield "}\n"


def _word(value: Any) -> str:
    text = str(value)
    if '"' in text:
        raise UsageError(f"{text!r} has a quotation mark in it, which BIF cannot hold: rename it")
    return text if _BARE.fullmatch(text) and "/" not in text else f'"{text}"'


def write_bif(path: str | os.PathLike[str], text: str) -> None:
    """Write a BIF file whole or not at all."""
    with whole_file(path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")
