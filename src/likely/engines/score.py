"""Scoring in memory: parameters and rows give the log joint, through the few forms of a likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import kernels
from likely.engines.memory import in_parallel, slabs
from likely.errors import DataError
from likely.families import Bernoulli, Parameters
from likely.families.categorical import yes_or_no
from likely.families.forms import Line, Lookup, Parabola
from likely.schema import CATEGORY, Column, Schema
from likely.sources.batch import Batch, Coded

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scorer:
    """Everything believed, laid out for the kernels: tables, then parabolas, then lines, then joint Gaussians."""

    schema: Schema
    log_prior: Array
    parameters: tuple[Parameters, ...]
    bernoulli: frozenset[int]  # blocks whose table is over no and yes

    @cached_property
    def order(self) -> list[int]:
        """The blocks in the order in which their terms are added."""
        rank = {Lookup: 0, Parabola: 1, Line: 2}
        return sorted(range(len(self.parameters)), key=lambda i: rank.get(type(self.parameters[i].form), 3))

    def _of(self, form: type) -> list[int]:
        return [i for i in self.order if type(self.parameters[i].form) is form]

    @cached_property
    def _tables(self) -> tuple[Array, NDArray[np.int64]]:
        tables = [self.parameters[i].form.table for i in self._of(Lookup)]  # type: ignore[union-attr]
        first = np.cumsum([0, *(len(table) for table in tables)])[:-1]
        return np.concatenate(tables), first.astype(np.int64)

    @cached_property
    def _parabolas(self) -> tuple[Array, Array, Array]:
        forms: list[Any] = [self.parameters[i].form for i in self._of(Parabola)]
        return tuple(np.array([getattr(f, part) for f in forms]) for part in ("mean", "curve", "peak"))  # type: ignore[return-value]

    def log_joint(self, batch: Batch) -> Array:
        """log P(class) + Σ log P(cells of a block | class), for every row and class."""
        out = np.empty((batch.rows, len(self.log_prior)))
        out[:] = self.log_prior
        coded = self.encode(batch, range(len(self.parameters)))

        def score(part: tuple[int, int]) -> None:
            self._score(batch, coded, part, out[part[0] : part[1]])

        in_parallel(score, slabs(batch.rows, 2 * len(self.schema.columns)))
        return out

    def term(self, batch: Batch, block: int) -> Array:
        """What one block says of every row, class by class."""
        out = np.zeros((batch.rows, len(self.log_prior)))
        part = (0, batch.rows)
        codes = self._codes(batch, self.encode(batch, [block]), block, part)
        numbers = batch.numbers(self._number_names(block), *part)
        self._refuse_infinity(batch, self._number_names(block), numbers, 0)
        self.parameters[block].form.add(codes, numbers, out)
        return out

    def encode(self, batch: Batch, blocks: Sequence[int]) -> dict[str, tuple[Coded, NDArray[np.int64]]]:
        """The categorical columns as codes, each with the map to the places the model knows."""
        names = [n for i in blocks for n in self.parameters[i].columns if self.schema.by_name[n].kind == CATEGORY]
        coded = in_parallel(batch.coded, names)
        return {n: (c, _places(c, self.schema.by_name[n])) for n, c in zip(names, coded, strict=True)}

    def _score(self, batch: Batch, coded: dict[str, Any], part: tuple[int, int], out: Array) -> None:
        lookups, parabolas = self._of(Lookup), self._of(Parabola)
        if lookups:
            table, first = self._tables
            codes = np.column_stack([self._codes(batch, coded, i, part)[:, 0] for i in lookups])
            kernels.score_lookup(codes, table, first, out)
        if parabolas:
            names = [self.parameters[i].columns[0] for i in parabolas]
            x = batch.numbers(names, *part)
            kernels.score_parabola(x, *self._parabolas, out)
            if not np.isfinite(out).all():
                self._refuse_infinity(batch, names, x, part[0])
        for i in self.order[len(lookups) + len(parabolas) :]:
            names = self._number_names(i)
            x = batch.numbers(names, *part)
            self._refuse_infinity(batch, names, x, part[0])
            term = np.zeros_like(out)
            self.parameters[i].form.add(self._codes(batch, coded, i, part), x, term)
            out += term

    def _number_names(self, block: int) -> list[str]:
        return [name for name in self.parameters[block].columns if self.schema.by_name[name].kind != CATEGORY]

    def _codes(self, batch: Batch, coded: dict[str, Any], block: int, part: tuple[int, int]) -> NDArray[Any]:
        """The codes of one block: one column for a table, one a category for a joint Gaussian."""
        a, b = part
        if block in self.bernoulli:
            return yes_or_no(batch.numbers(self.parameters[block].columns, a, b))  # type: ignore[no-any-return]
        names = [name for name in self.parameters[block].columns if name in coded]
        columns = [coded[name][1][coded[name][0].codes[a:b] - coded[name][0].low] for name in names]
        if not isinstance(self.parameters[block].form, Lookup):
            return np.column_stack(columns) if columns else np.zeros((b - a, 0), np.int64)
        code: NDArray[Any] = columns[0]
        for name, more in zip(names[1:], columns[1:], strict=True):
            code = code * (len(self.schema.by_name[name].values) + 2) + more
        return code[:, None]

    @staticmethod
    def _refuse_infinity(batch: Batch, names: Sequence[str], x: Array, start: int) -> None:
        bad = np.isinf(x)
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise DataError(
                "which is not a finite number: input contains infinity", column=names[j], value=x[i, j].item(),
                row=batch.start + start + int(i) + 1, remedy="mend it or take it for missing",
            )  # fmt: skip


def _places(coded: Coded, column: Column) -> NDArray[np.int64]:
    """The place of each of the batch's values in the model's column; missing cells read the last entry."""
    return np.array([*column.codes(coded.values), len(column.values) + 1], dtype=np.int64)


def bernoulli_blocks(families: Sequence[Any]) -> frozenset[int]:
    """Which blocks are tables over no and yes."""
    return frozenset(i for i, family in enumerate(families) if isinstance(family, Bernoulli))
