"""Scoring in memory: the log joint of rows, through the few forms of a likelihood."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines._column_tables import BinColumn, BinGrid, CodeTable, ColumnTables, LineIndex, read_only
from likely.errors import DataError
from likely.families import Parameters
from likely.families.likelihood_form import ScoringLoop
from likely.kernels import counting
from likely.kernels.parallel import FEW_ROWS, cached_property, in_parallel, side_by_side, slabs
from likely.schema import CATEGORY, Column, Schema
from likely.sources.batch import Batch, Coded, Frame
from likely.tokenizer import Bags

Array = NDArray[np.float64]
MOST_KNOWN = 512  # lists of values whose positions are kept
WIDEST = 1 << 16  # integers of a wider range are looked up one by one


@dataclass(frozen=True)
class Scorer:
    """All parameters in the layout of the kernels: tables, then Gaussians, then linear terms, then joint Gaussians."""

    schema: Schema
    log_prior: Array
    parameters: tuple[Parameters, ...]
    bias: Array | None = None  # added to every class, for all rows

    @cached_property
    def order(self) -> list[int]:
        """The blocks in the order in which their terms are added."""
        return [i for loop in ScoringLoop for i in self.of(loop)]

    @property
    def texts(self) -> list[int]:
        """The blocks of text."""
        return self.of(ScoringLoop.WORDS)

    def of(self, loop: ScoringLoop) -> list[int]:
        """The blocks whose terms one loop adds."""
        return self._by_loop[loop]

    @cached_property
    def _by_loop(self) -> dict[ScoringLoop, list[int]]:
        found: dict[ScoringLoop, list[int]] = {loop: [] for loop in ScoringLoop}
        for i, parameters in enumerate(self.parameters):
            found[parameters.likelihood.loop].append(i)
        return found

    @cached_property
    def _binned(self) -> list[int]:
        """The tables over the bins of a number."""
        return [i for i in self.of(ScoringLoop.LOOKUP) if self.parameters[i].likelihood.reads == "bins"]

    @cached_property
    def _tables(self) -> tuple[Array, NDArray[np.int64]]:
        """All tables concatenated, with a row of zeros at the end, and the first row of each."""
        tables = [form.table for form in self._forms(ScoringLoop.LOOKUP)]
        first = np.cumsum([0, *(len(table) for table in tables)])
        return np.concatenate([*tables, np.zeros((1, len(self.log_prior)))]), first.astype(np.int64)

    @cached_property
    def _integers(self) -> LineIndex | None:
        """The row indexes of integers, which are their own codes; None if a column holds anything else."""
        lines = []
        for i, first in zip(self.of(ScoringLoop.LOOKUP), self._tables[1][:-1], strict=True):
            column = self._plain(i)
            values: tuple[Any, ...] = column.values if column else ()
            if not values or not all(isinstance(v, Real) and v == v // 1 for v in values):
                return None
            low, high = int(min(values)), int(max(values))
            if high - low >= WIDEST:
                return None
            line = np.full(high - low + 1, first + len(values))
            line[[int(v) - low for v in values]] = first + np.arange(len(values))
            lines.append((low, line, first + len(values)))
        return LineIndex.of(lines)

    def _plain(self, block: int) -> Column | None:
        """The column of a block that is a single categorical column; else None."""
        names, form = self.parameters[block].columns, self.parameters[block].likelihood
        alone = len(names) == 1 and form.reads == "category"
        return self.schema.by_name[names[0]] if alone else None

    @cached_property
    def parabolas(self) -> tuple[Array, Array, Array]:
        """Mean, curvature and log peak density of every Gaussian column and class."""
        forms = self._forms(ScoringLoop.PARABOLA)
        return np.array([f.mean for f in forms]), np.array([f.curve for f in forms]), np.array([f.peak for f in forms])

    def _forms(self, loop: ScoringLoop) -> list[Any]:
        return [self.parameters[i].likelihood for i in self.of(loop)]

    def log_joint(self, batch: Batch, then: Callable[[tuple[int, int], Array], None] | None = None) -> Array:
        """log P(class) + Σ log P(cells of a block | class), for every row and class.

        `then` is called with each chunk of scores and may modify it.
        """
        out = np.empty((batch.rows, len(self.log_prior)))
        out[:] = self.log_prior if self.bias is None else self.log_prior + self.bias
        for i in self.texts:
            out += self.term(batch, i)
        score = self.prepare(batch)

        def work(part: tuple[int, int]) -> None:
            score(part, out[slice(*part)])
            if then:
                then(part, out[slice(*part)])

        in_parallel(work, slabs(batch.rows, 2 * len(self.schema.columns)))
        return out

    def prepare(self, batch: Batch) -> Callable[[tuple[int, int], Array], None]:
        """Function that adds the terms of all blocks except text to a chunk of rows; codes are looked up once."""
        lookups = self.of(ScoringLoop.LOOKUP)
        names = [name for i in lookups for name in self.parameters[i].columns]
        whole = batch.whole_numbers(names) if lookups and self._integers else None
        looked_up = set(lookups)
        coded = self.encode(batch, [i for i in self.order if whole is None or i not in looked_up])
        lines = self._lines(coded) if whole is None or self._integers is None else self._integers
        columns = self._column_tables(batch, coded) if whole is None and lookups else None

        def codes_of(part: tuple[int, int]) -> NDArray[Any] | None:
            a, b = part
            return whole[a:b] if whole is not None else self._stacked(batch, coded, part) if lookups else None

        def score(part: tuple[int, int], out: Array) -> None:
            before = out.copy() if self.of(ScoringLoop.PARABOLA) else out
            codes = None
            if columns is not None:
                columns.add(part, out, lambda: self._refuse_bins(batch, part))
            else:
                codes = codes_of(part)
                self._add_tables(codes, lines, out)
            for rows, x in self._score_numbers(batch, part, out):
                again = before[rows]
                codes = codes_of(part) if codes is None else codes
                self._add_tables(None if codes is None else codes[rows], lines, again)
                out[rows] = self._add_far(x, again)
            self._score(batch, coded, part, out)

        return score

    def _column_tables(self, batch: Batch, coded: dict[str, Any]) -> ColumnTables | None:
        """The tables beside the columns of a long frame, if each table has one column, as Arrow keeps it; else None."""
        if not isinstance(batch, Frame) or batch.rows < FEW_ROWS:
            return None
        found: list[CodeTable | BinColumn] = []
        for i, first in zip(self.of(ScoringLoop.LOOKUP), self._tables[1][:-1], strict=True):
            form: Any = self.parameters[i].likelihood
            if column := self._plain(i):
                values, places = coded[column.name]
                if values.low or values.codes.dtype != np.int32 or not values.codes.flags.c_contiguous:
                    return None
                lines = first + np.append(places[-1], places[:-1])
                found.append(CodeTable(read_only(values.codes), self._tables[0][lines], lines))
            elif i in self._grids:
                numbers = batch.column(self.parameters[i].columns[0])
                if not numbers.flags.c_contiguous:
                    return None
                found.append(BinColumn(self._grids[i], read_only(numbers), first + np.arange(-1, len(form.table))))
            else:
                return None
        return ColumnTables.of(found, self._interactions, len(self.log_prior))

    @cached_property
    def _grids(self) -> dict[int, BinGrid]:
        """The edges of each binned column with their grid."""
        forms: dict[int, Any] = {i: self.parameters[i].likelihood for i in self._binned}
        return {i: BinGrid.of(form.bin_edges, form.table) for i, form in forms.items() if len(form.bin_edges)}

    def _refuse_bins(self, batch: Batch, part: tuple[int, int]) -> None:
        names = [self.parameters[i].columns[0] for i in self._binned]
        self._refuse_infinity(batch, names, batch.numbers(names, *part), part[0])

    def _add_tables(self, codes: NDArray[Any] | None, lines: LineIndex, out: Array) -> None:
        """Add the terms of tables: of single columns, and of interactions."""
        if codes is None:
            return
        counting.score_lookup(codes, *lines, self._tables[0], out)
        if self._interactions:
            counting.score_cells(codes, *lines, *self._interactions, out)

    def term(self, batch: Batch, block: int) -> Array:
        """Log-likelihood term of one block, rows × classes."""
        form: Any = self.parameters[block].likelihood
        if block in self.texts:
            return self._text_term(batch, block)
        out = np.zeros((batch.rows, len(self.log_prior)))
        part = (0, batch.rows)
        if form.loop is ScoringLoop.CELLS:
            members = [self._alone[name] for name in self.parameters[block].columns]
            each = [self._codes(batch, self.encode(batch, [i]), i, part) for i in members]
            form.add(np.column_stack(each), np.zeros((batch.rows, 0)), out)
            return out
        codes = self._codes(batch, self.encode(batch, [block]), block, part)
        numbers = batch.numbers(self._number_names(block), *part)
        self._refuse_infinity(batch, self._number_names(block), numbers, 0)
        form.add(codes, numbers, out)
        return out

    def _text_term(self, batch: Batch, block: int) -> Array:
        """Term of a block of text: each document is scored by the thread that has tokenised it."""
        form: Any = self.parameters[block].likelihood
        documents = batch.documents(self.parameters[block].columns[0])
        out = np.empty((batch.rows, len(self.log_prior)))
        if documents.ends[-1] - documents.ends[0] >= len(form.words.vocabulary):
            _ = form.table  # computed once, before all threads need it

        def write(first: int, last: int, bags: Bags) -> None:
            out[first:last] = form.terms(bags, documents.missing[first:last])

        form.family.look_up(documents.part(0, batch.rows), form.words.vocabulary, write)
        return out

    def bags(self, batch: Batch, block: int) -> tuple[Bags, NDArray[np.bool_]]:
        """The texts of a block as bags of the words in the vocabulary, and which of them are missing."""
        form: Any = self.parameters[block].likelihood
        documents = batch.documents(self.parameters[block].columns[0])
        return form.family.bags(documents.part(0, batch.rows), form.words.vocabulary), documents.missing

    def words(self, batch: Batch, block: int) -> list[tuple[str, float, Array]]:
        """The words of the text in a batch of one row: each with its count and its term by class, the strongest first."""
        form: Any = self.parameters[block].likelihood
        found: list[tuple[str, float, Array]] = form.details(self.bags(batch, block)[0])
        return found

    def encode(self, batch: Batch, blocks: Sequence[int]) -> dict[str, tuple[Coded, NDArray[np.int64]]]:
        """The categorical columns as codes, each with its map to positions in the schema."""
        alone = [i for i in blocks if self.parameters[i].likelihood.loop is not ScoringLoop.CELLS]
        names = [n for i in alone for n in self.parameters[i].columns if self.schema.by_name[n].kind == CATEGORY]
        coded = side_by_side(batch.coded, names, batch.rows)
        return {n: (c, self._places(c, self.schema.by_name[n])) for n, c in zip(names, coded, strict=True)}

    @cached_property
    def _known_places(self) -> dict[tuple[str, tuple[Any, ...]], NDArray[np.int64]]:
        return {}

    def _places(self, coded: Coded, column: Column) -> NDArray[np.int64]:
        """Positions of a batch's values in the model's column; found once for texts that many batches have."""
        if not isinstance(coded.values, tuple):
            return _places(coded, column)
        known, key = self._known_places, (column.name, coded.values)
        places = known.get(key)
        if places is None:
            if len(known) >= MOST_KNOWN:
                known.clear()
            places = known[key] = _places(coded, column)
        return places

    def _score_numbers(self, batch: Batch, part: tuple[int, int], out: Array) -> Iterator[tuple[Any, Array]]:
        """Add the Gaussian terms; yields the rows in which a number was too large for that, with their numbers."""
        parabolas = self.of(ScoringLoop.PARABOLA)
        if not parabolas:
            return
        names = [self.parameters[i].columns[0] for i in parabolas]
        x = batch.numbers(names, *part)
        counting.score_parabola(x, *self.parabolas, out)
        if np.isfinite(out).all():
            return
        self._refuse_infinity(batch, names, x, part[0])
        rows = np.flatnonzero(np.isneginf(out).any(1))  # most of them by a count of zero, without smoothing
        reach = [form.reach for form in self._forms(ScoringLoop.PARABOLA)]
        rows = rows[(np.abs(x[rows]) > reach).any(1)]
        if len(rows):
            yield rows, x[rows]

    def _add_far(self, x: Array, out: Array) -> Array:
        for j, form in enumerate(self._forms(ScoringLoop.PARABOLA)):
            out += form.of(x[:, j])
        return out

    def _score(self, batch: Batch, coded: dict[str, Any], part: tuple[int, int], out: Array) -> None:
        """Add the terms of all other forms."""
        for i in (*self.of(ScoringLoop.LINE), *self.of(ScoringLoop.OWN)):
            names = self._number_names(i)
            x = batch.numbers(names, *part)
            self._refuse_infinity(batch, names, x, part[0])
            term = np.zeros_like(out)
            form: Any = self.parameters[i].likelihood
            form.add(self._codes(batch, coded, i, part), x, term)
            out += term

    def _lines(self, coded: dict[str, Any]) -> LineIndex:
        """The row index of each code, table by table, for the kernel."""
        edges, lines = self._tables[1], []
        for i, first, end in zip(self.of(ScoringLoop.LOOKUP), edges[:-1], edges[1:], strict=True):
            if column := self._plain(i):
                values, places = coded[column.name]
                lines.append((values.low, first + places[:-1], end - 1))
            else:
                lines.append((0, np.arange(first, end), end - 1))
        return LineIndex.of(lines)

    def _stacked(self, batch: Batch, coded: dict[str, Any], part: tuple[int, int]) -> NDArray[Any]:
        """The codes of all tables as columns: those of one column, or the positions in a table of several columns."""
        a, b = part
        plain = {i: self._plain(i) for i in self.of(ScoringLoop.LOOKUP)}
        bins = dict(zip(self._binned, self._bins(batch, part).T, strict=True))
        return np.column_stack(
            [
                coded[c.name][0].codes[a:b] if c else bins[i] if i in bins else self._codes(batch, coded, i, part)[:, 0]
                for i, c in plain.items()
            ]
        )

    def _bins(self, batch: Batch, part: tuple[int, int]) -> NDArray[np.int32]:
        """The bins of all binned columns."""
        names = [self.parameters[i].columns[0] for i in self._binned]
        if not names:
            return np.empty((part[1] - part[0], 0), np.int32)
        x = batch.numbers(names, *part)
        out = np.empty(x.shape, np.int32)
        find = counting.find_bins.fast if counting.find_bins.at_hand else counting.find_bins
        find(x, *self._edges, out)
        if not np.isfinite(x).all():
            self._refuse_infinity(batch, names, x, part[0])
        return out

    @cached_property
    def _edges(self) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
        """The edges of all bins concatenated, the first of each column, and the row index of its missing cells."""
        forms: list[Any] = [self.parameters[i].likelihood for i in self._binned]
        start = np.cumsum([0, *(len(form.bin_edges) for form in forms)])
        edges = np.concatenate([np.zeros(0), *(form.bin_edges for form in forms)])
        return edges, start.astype(np.int64), np.array([len(form.table) - 1 for form in forms], np.int64)

    @cached_property
    def _alone(self) -> dict[str, int]:
        """The block that holds the table of each single column."""
        return {self.parameters[i].columns[0]: i for i in self.of(ScoringLoop.LOOKUP) if len(self.parameters[i].columns) == 1}

    @cached_property
    def _interactions(self) -> tuple[Any, ...]:
        """The tables of interactions in the layout of the kernel; empty if there are none."""
        sets = self.of(ScoringLoop.CELLS)
        tables = {i: (j, first) for j, (i, first) in enumerate(zip(self.of(ScoringLoop.LOOKUP), self._tables[1], strict=False))}
        member, shift, maps, begin, base = [], [], [], 0, 0
        for i in sets:
            form: Any = self.parameters[i].likelihood
            for m, (name, own) in enumerate(zip(self.parameters[i].columns, form.maps, strict=True)):
                place, first = tables[self._alone[name]]
                member.append(place)
                shift.append(begin - int(first))
                maps.append(own + base if m == 0 else own)
                begin += len(own)
            base += len(form.table)
        if not sets:
            return ()
        end = np.cumsum([len(self.parameters[i].columns) for i in sets])
        cells = np.concatenate([form.table for form in self._forms(ScoringLoop.CELLS)])
        return np.array(member), end, np.array(shift), np.concatenate(maps), cells

    def _number_names(self, block: int) -> list[str]:
        return [name for name in self.parameters[block].columns if self.schema.by_name[name].kind != CATEGORY]

    def _codes(self, batch: Batch, coded: dict[str, Any], block: int, part: tuple[int, int]) -> NDArray[Any]:
        """The codes of one block: one column for a table, one a category for a joint Gaussian."""
        a, b = part
        form: Any = self.parameters[block].likelihood
        if form.reads != "category":
            x = batch.numbers(self.parameters[block].columns, a, b)
            self._refuse_infinity(batch, self.parameters[block].columns, x, a)
            lines: NDArray[Any] = form.codes(x[:, 0])
            return lines[:, None]
        names = [name for name in self.parameters[block].columns if name in coded]
        columns = [coded[name][1][coded[name][0].codes[a:b] - coded[name][0].low] for name in names]
        if form.loop is not ScoringLoop.LOOKUP:
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
                "which is not a finite number", column=names[j], value=x[i, j].item(),
                row=batch.start + start + int(i) + 1, remedy="correct it, or treat infinity as missing",
            )  # fmt: skip


def _places(coded: Coded, column: Column) -> NDArray[np.int64]:
    """Position of each of the batch's values in the model's column; missing cells read the last entry."""
    return np.array([*column.codes(coded.values), len(column.values) + 1], dtype=np.int64)
