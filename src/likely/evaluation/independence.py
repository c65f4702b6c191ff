"""Independence of columns: G-test given other columns, and Simpson's reversal.

Never: models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.contingency import Counts, chi_square_p_value, degrees_of_freedom, g_statistic, permutation_p_value
from likely.errors import DataError, UsageError, no_column
from likely.schema import CATEGORY, Column, ordered
from likely.sources import open_source, require_rows

MOST_VALUES = 100  # a column with more different values is no category
MOST_CELLS = 1_000_000  # of all tables together


@dataclass(frozen=True)
class Stratum:
    """One value of the given columns: its table of counts, G and degrees of freedom."""

    given: tuple[Any, ...]
    table: Counts
    statistic: float
    degrees: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.table.sum())


@dataclass(frozen=True)
class IndependenceTest:
    """Test of independence of two columns, within the values of others; from `independence_test`.

    Attributes
    ----------
    a, b : str
        The two columns.
    given : tuple of str
        The columns given; empty for independence without a condition.
    rows : int
        Rows without a missing cell in these columns.
    statistic : float
        G = 2 Σ O log(O / E), summed over the strata; G / (2 rows) is the conditional mutual information in nats.
    degrees : int
        Degrees of freedom, summed over the strata.
    p_value : float
        Probability of such a G or a greater one under independence, by the chi-square distribution.
    permutation_p_value : float or None
        The same by permutations within the strata; None without permutations.
    strata : tuple
        For each value of the given columns: `given`, `table`, `statistic`, `degrees` and `rows`.
    """

    a: str
    b: str
    given: tuple[str, ...]
    rows: int
    statistic: float
    degrees: int
    p_value: float
    permutation_p_value: float | None
    strata: tuple[Stratum, ...]

    @property
    def mutual_information(self) -> float:
        """Conditional mutual information of the two columns, in nats."""
        return self.statistic / (2 * self.rows)

    def to_dict(self) -> dict[str, Any]:
        """The test as plain data."""
        names = ("a", "b", "rows", "statistic", "degrees", "p_value", "permutation_p_value", "mutual_information")
        strata = [{"given": list(s.given), "table": s.table.tolist(), "statistic": s.statistic, "degrees": s.degrees}
                  for s in self.strata]  # fmt: skip
        return {name: getattr(self, name) for name in names} | {"given": list(self.given), "strata": strata}

    def __str__(self) -> str:
        given = f" given {', '.join(self.given)}" if self.given else ""
        lines = [f"Independence of {self.a} and {self.b}{given}: {self.rows:,} rows"]
        lines += [f"G = {self.statistic:.4f}, {self.degrees} degrees of freedom, p = {self.p_value:.4g} (chi-square)"]
        if self.permutation_p_value is not None:
            lines[-1] += f", {self.permutation_p_value:.4g} (permutations)"
        for stratum in self.strata if self.given else ():
            name = ", ".join(map(str, stratum.given))
            lines.append(f"  {name}: G = {stratum.statistic:.4f}, {stratum.degrees} degrees, {stratum.rows:,} rows")
        return "\n".join(lines)


@dataclass(frozen=True)
class Simpson:
    """Rates of an event in two groups, overall and within strata; from `simpson`.

    Attributes
    ----------
    cause, effect, given : str
        The columns: groups, event, strata.
    event : object
        The value of `effect` that is counted.
    groups : tuple
        The two values of `cause`.
    overall : dict
        For each group, (rows with the event, all rows).
    strata : dict
        For each value of `given`, the same.
    """

    cause: str
    effect: str
    given: str
    event: Any
    groups: tuple[Any, Any]
    overall: Mapping[Any, tuple[int, int]]
    strata: Mapping[Any, Mapping[Any, tuple[int, int]]]

    @property
    def difference(self) -> float:
        """Rate of the second group less that of the first, all rows together."""
        return self._difference(self.overall)

    @property
    def differences(self) -> dict[Any, float]:
        """The same within each stratum; NaN where a group has no row."""
        return {z: self._difference(counts) for z, counts in self.strata.items()}

    @property
    def adjusted(self) -> dict[Any, float]:
        """Rate of each group if the strata were as frequent in it as in all rows: Σ P(event | group, z) P(z)."""
        rows = {z: sum(n for _, n in counts.values()) for z, counts in self.strata.items()}
        return {
            g: math.fsum(rows[z] * _rate(counts[g]) for z, counts in self.strata.items()) / sum(rows.values())
            for g in self.groups
        }

    @property
    def reversal(self) -> bool:
        """Whether the difference has one sign overall and the opposite sign in every stratum."""
        within = [d for d in self.differences.values() if not math.isnan(d)]
        return bool(within) and all(d * self.difference < 0 for d in within)

    def _difference(self, counts: Mapping[Any, tuple[int, int]]) -> float:
        (k0, n0), (k1, n1) = (counts[g] for g in self.groups)
        return (k1 * n0 - k0 * n1) / (n0 * n1) if n0 and n1 else math.nan

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        strata = [{"given": z, "counts": [list(c[g]) for g in self.groups]} for z, c in self.strata.items()]

        def known(numbers: Mapping[Any, float]) -> list[float | None]:
            return [None if math.isnan(x) else x for x in numbers.values()]

        return {
            "cause": self.cause, "effect": self.effect, "given": self.given, "event": self.event,
            "groups": list(self.groups), "overall": [list(self.overall[g]) for g in self.groups], "strata": strata,
            "difference": self.difference, "differences": known(self.differences),
            "adjusted": known(self.adjusted), "reversal": self.reversal,
        }  # fmt: skip

    def __str__(self) -> str:
        head = ["", *(f"{self.cause} = {g}" for g in self.groups), "difference"]
        table = [head]
        for name, counts in [("all rows", self.overall), *((f"{self.given} = {z}", c) for z, c in self.strata.items())]:
            cells = [f"{k}/{n} = {_rate((k, n)):.4f}" for k, n in (counts[g] for g in self.groups)]
            table.append([name, *cells, f"{self._difference(counts):+.4f}"])
        table.append([f"adjusted for {self.given}", *(f"{p:.4f}" for p in self.adjusted.values()), ""])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
        found = "reversed in every stratum" if self.reversal else "not reversed"
        return "\n".join([f"P({self.effect} = {self.event} | {self.cause})", *lines, f"Simpson's paradox: {found}"])


def independence_test(
    data: Any, a: str, b: str, given: str | Sequence[str] | None = None, *, permutations: int = 1000, seed: int = 0
) -> IndependenceTest:
    """Test whether two columns are independent, given the class or other columns: P(a, b | z) = P(a | z) P(b | z).

    Parameters
    ----------
    data : table
        Anything that `learn` reads; rows with a missing cell in these columns are left out.
    a, b : str
        Two columns of categories.
    given : str, sequence of str or None, default=None
        The columns that are given, such as the class; None tests independence without a condition.
    permutations : int, default=1000
        Permutations of `b` within the strata; 0 for the chi-square p-value alone.
    seed : int, default=0
        Random seed of the permutations.

    Returns
    -------
    IndependenceTest
        G, degrees of freedom, p-values by chi-square and by permutation, and the same for each stratum.
    """
    strata_names = (given,) if isinstance(given, str) else tuple(given or ())
    if len({a, b, *strata_names}) < 2 + len(strata_names):
        raise UsageError("the columns must differ from each other: a, b and given")
    if permutations < 0:
        raise UsageError(f"permutations={permutations}: give 0 or more")
    tables = _tables(data, (a, b), strata_names)[1]
    strata = tuple(Stratum(z, t, g_statistic(t), degrees_of_freedom(t)) for z, t in tables.items())
    statistic, degrees = math.fsum(s.statistic for s in strata), sum(s.degrees for s in strata)
    by_permutation = permutation_p_value([s.table for s in strata], statistic, permutations, seed) if permutations else None
    rows = sum(s.rows for s in strata)
    p_value = chi_square_p_value(statistic, degrees)
    return IndependenceTest(a, b, strata_names, rows, statistic, degrees, p_value, by_permutation, strata)


def simpson(data: Any, cause: str, effect: str, given: str, *, event: Any = None) -> Simpson:
    """Compare the rate of an event in two groups, overall and within the strata of a third column.

    Parameters
    ----------
    data : table
        Anything that `learn` reads; rows with a missing cell in these columns are left out.
    cause : str
        Column of two values, the groups.
    effect : str
        Column whose value is counted.
    given : str
        Column of the strata.
    event : object or None, default=None
        The value of `effect` that is counted; by default the last one.

    Returns
    -------
    Simpson
        Counts and rates, the rates adjusted for the strata, and whether the comparison is reversed.
    """
    if len({cause, effect, given}) < 3:
        raise UsageError("the columns must differ from each other: cause, effect and given")
    (groups, events), tables = _tables(data, (cause, effect), (given,))
    if len(groups) != 2:
        raise DataError(f"has {len(groups)} values", column=cause, remedy="compare two groups")
    event = Column(effect, CATEGORY, tuple(events)).canonical(event)  # 1 and "1" are equal: a shell has text only
    if event is not None and event not in events:
        raise DataError(f"has no value {event!r}", column=effect, remedy=f"it has {', '.join(map(repr, events))}")
    chosen = events[-1] if event is None else event
    place = events.index(chosen)

    def counted(table: Counts) -> dict[Any, tuple[int, int]]:
        return {g: (int(table[i, place]), int(table[i].sum())) for i, g in enumerate(groups)}

    strata = {z[0]: counted(table) for z, table in tables.items()}
    overall = counted(np.sum(list(tables.values()), axis=0))
    return Simpson(cause, effect, given, chosen, (groups[0], groups[1]), overall, strata)


def _rate(counts: tuple[int, int]) -> float:
    return counts[0] / counts[1] if counts[1] else math.nan


def _tables(
    data: Any, pair: tuple[str, str], given: tuple[str, ...]
) -> tuple[tuple[list[Any], list[Any]], dict[tuple[Any, ...], Counts]]:
    """The values of the two columns, and their table of counts for each combination of the given columns."""
    names = (*pair, *given)
    parts, rows = [], 0
    for batch in open_source(data).batches():
        for name in names:
            if name not in batch.names:
                raise no_column("the table", name, list(batch.names))
        parts.append([_coded(batch, name) for name in names])
        rows += batch.rows
    require_rows(rows, "the table")
    columns = [_joined(name, [part[j] for part in parts]) for j, name in enumerate(names)]
    complete = np.all([codes >= 0 for _, codes in columns], axis=0)
    if not complete.any():
        raise DataError(f"no row has a value in each of {', '.join(map(repr, names))}", remedy="check missing cells")
    values = [v for v, _ in columns]
    shape = tuple(map(len, values))
    if math.prod(shape) > MOST_CELLS:
        raise DataError(f"the tables would have {math.prod(shape):,} cells", remedy="give fewer columns, or merge values")
    flat = np.ravel_multi_index(tuple(codes[complete] for _, codes in columns), shape)
    cube = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
    found = {}
    for place in np.ndindex(*shape[2:]):
        table = cube[(slice(None), slice(None), *place)]
        if table.any():
            found[tuple(values[2 + j][i] for j, i in enumerate(place))] = table
    return (values[0], values[1]), found


def _coded(batch: Any, name: str) -> tuple[Sequence[Any], NDArray[np.int64]]:
    """Distinct values of a column, and the code of each cell; −1 where it is missing."""
    coded = batch.coded(name)
    codes = np.asarray(coded.codes, np.int64) - coded.low
    return coded.values, np.where((codes < 0) | (codes >= len(coded.values)), -1, codes)


def _joined(name: str, parts: Sequence[tuple[Sequence[Any], NDArray[np.int64]]]) -> tuple[list[Any], NDArray[np.int64]]:
    """One list of values over all batches, in order, and the code of each cell."""
    values = list(ordered(dict.fromkeys(value for own, _ in parts for value in own)))
    if len(values) > MOST_VALUES:
        remedy = f"cut it into at most {MOST_VALUES} classes"
        raise DataError(f"has {len(values):,} different values", column=name, remedy=remedy)
    place = {value: i for i, value in enumerate(values)}
    codes = [np.append([place[v] for v in own], -1).astype(np.int64)[cells] for own, cells in parts]
    return values, np.concatenate(codes)
