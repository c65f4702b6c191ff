"""The E-step: responsibilities of the classes for every row, and the rows counted by them.

Rows are processed a few thousand at a time: scored, normalised and counted before the next ones are read, so that no array
of rows × classes is kept. The result, expected counts and log-likelihood, adds over chunks, batches and shards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.engines.scorer import Scorer
from likely.families import Block, Encoded, groups
from likely.families.likelihood_form import ScoringLoop
from likely.families.statistics import Moments, Statistic, totals
from likely.families.word_counts import Words
from likely.kernels import em_loops
from likely.kernels.parallel import in_parallel, slabs
from likely.schema import CATEGORY, TEXT, Schema
from likely.sources.batch import Batch, Coded
from likely.tally import Tally
from likely.tokenizer import Bags
from likely.tokenizer.documents import Documents, Strings

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
ChunkCounts = tuple[Array, list[Statistic], float, float]  # class weights, statistics, log-likelihood, entropy
CHUNK_CELLS = 1 << 17  # responsibilities of a chunk stay in the cache of a core until they are counted


@dataclass(frozen=True)
class ExpectedCounts:
    """Result of an E-step: the expected counts, the log-likelihood, and the entropy of the responsibilities."""

    tally: Tally
    log_likelihood: float
    entropy: float = 0.0

    def __add__(self, other: ExpectedCounts) -> ExpectedCounts:
        return ExpectedCounts(
            self.tally + other.tally, self.log_likelihood + other.log_likelihood, self.entropy + other.entropy
        )


@dataclass(eq=False)
class CachedBatch:
    """A batch that is read many times: its codes, as positions in a schema, and its bags of words are cached."""

    batch: Batch
    schema: Schema
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.batch.rows

    @property
    def start(self) -> int:
        """Number of rows of the source before this batch."""
        return self.batch.start

    @property
    def names(self) -> Sequence[str]:
        """The columns."""
        return self.batch.names

    def kind(self, name: str) -> tuple[str | None, str]:
        """Kind of a column, and the reason for it."""
        return self.batch.kind(name)

    def numbers(self, names: Sequence[str], start: int, stop: int) -> Array:
        """Some columns of some rows as numbers."""
        return self.batch.numbers(names, start, stop)

    def coded(self, name: str) -> Coded:
        """A column as positions in the schema's values; -1 where a cell is missing or its value not in the schema."""
        if name not in self._cache:
            column = self.schema.by_name.get(name, self.schema.target)
            coded, known = self.batch.coded(name), len(column.values)
            places = np.array([*column.codes(coded.values), -1], dtype=np.int32)
            places[places >= known] = -1
            inside = (coded.codes >= coded.low) & (coded.codes < coded.low + len(coded.values))
            self._cache[name] = Coded(places[np.where(inside, coded.codes - coded.low, -1)], column.values)
        cached: Coded = self._cache[name]
        return cached

    def whole_numbers(self, names: Sequence[str]) -> None:  # noqa: ARG002
        """None: the cached codes are used instead."""
        return

    def documents(self, name: str) -> Documents | Strings:
        """One column as texts."""
        return self.batch.documents(name)

    def bags(self, scorer: Scorer, block: int) -> tuple[Bags, NDArray[np.bool_]]:
        """The texts of a block as bags of the words in the scorer's vocabulary."""
        form: Any = scorer.parameters[block].likelihood
        key = ("bags", block, id(form.words.vocabulary))
        if key not in self._cache:
            self._cache[key] = (form.words.vocabulary, scorer.bags(self.batch, block))  # the vocabulary keeps its id
        found: tuple[Bags, NDArray[np.bool_]] = self._cache[key][1]
        return found


class LabelledRows(NamedTuple):
    """A batch with the class of each row, as a position (-1: hidden), and the row weights."""

    batch: CachedBatch
    labels: Labels
    weights: Array


def e_step_batch(
    rows: LabelledRows, scorer: Scorer, blocks: Sequence[Block], *, entropy: bool = False
) -> ExpectedCounts:
    """E-step of one batch; a row with a label (0 or more) has responsibility one for that class."""
    batch, weights = rows.batch, rows.weights
    chunks = _chunks(batch.rows, len(scorer.log_prior) + len(scorer.schema.columns))
    fused = None if entropy else _fused_gaussian(rows, scorer, blocks)
    parts: list[ChunkCounts | None] = in_parallel(fused, chunks) if fused else [None] * len(chunks)
    responsibilities = None
    if None in parts:
        work, responsibilities = _chunk_work(rows, scorer, blocks, entropy)
        others = iter(in_parallel(work, [chunk for chunk, part in zip(chunks, parts, strict=True) if part is None]))
        parts = [next(others) if part is None else part for part in parts]
    seen, counted, log_likelihoods, entropies = zip(*(part for part in parts if part), strict=True)
    statistics = dict(zip(_without_text(blocks), totals(counted), strict=True))
    if responsibilities is not None:
        statistics |= {blocks[i]: _count_text(batch, scorer, i, responsibilities) for i in scorer.texts}
    tally = Tally(scorer.schema, tuple(blocks), np.sum(seen, 0), tuple(statistics[b] for b in blocks), _used(weights))
    return ExpectedCounts(tally, float(np.sum(log_likelihoods)), float(np.sum(entropies)))


def _chunk_work(
    rows: LabelledRows, scorer: Scorer, blocks: Sequence[Block], entropy: bool
) -> tuple[Callable[[tuple[int, int]], ChunkCounts], Array | None]:
    """Function that scores, normalises and counts a chunk; and the responsibilities that it fills in, if there is text."""
    (batch, labels, weights), classes = rows, len(scorer.log_prior)
    score, count = scorer.prepare(batch), _counter(batch, scorer, blocks, classes)
    text = _text_terms(batch, scorer)
    responsibilities = np.empty_like(text) if text is not None else None

    def work(part: tuple[int, int]) -> ChunkCounts:
        a, b = part
        out = np.empty((b - a, classes))
        out[:] = scorer.log_prior
        if text is not None:
            out += text[a:b]
        score(part, out)
        log_likelihood, w, joint = np.empty(b - a), weights[a:b], out.copy() if entropy else None
        em_loops.to_responsibilities(out, labels[a:b], w, scorer.log_prior, log_likelihood)
        if responsibilities is not None:
            responsibilities[a:b] = out
        used = w > 0
        uncertain = 0.0 if joint is None else _entropy(joint, out, log_likelihood, used & (labels[a:b] < 0))
        return out.sum(0), count(part, out), float(w[used] @ log_likelihood[used]), uncertain

    return work, responsibilities


def _fused_gaussian(
    rows: LabelledRows, scorer: Scorer, blocks: Sequence[Block]
) -> Callable[[tuple[int, int]], ChunkCounts | None] | None:
    """Function that scores and counts a chunk in one loop, if all columns are Gaussian; else None.

    It returns None for a chunk with missing cells, with numbers that overflow, or with a row that no class allows.
    """
    plain = bool(blocks) and all(block.family.counts_moments for block in blocks)
    if not plain or len(groups(blocks)) > 1 or scorer.bias is not None:
        return None
    if not len(scorer.of(ScoringLoop.PARABOLA)) == len(scorer.parameters) == len(blocks):
        return None
    names, curves, read = [block.columns[0] for block in blocks], scorer.parabolas, rows.batch.batch.numbers
    shape = (len(blocks), len(scorer.log_prior))

    def work(part: tuple[int, int]) -> ChunkCounts | None:
        a, b = part
        n, mean, spread, seen = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape[1])
        x, labels, w = read(names, a, b), rows.labels[a:b], rows.weights[a:b]
        found = (
            em_loops.gaussian_e_step(x, labels, w, scorer.log_prior, *curves, n, mean, spread, seen)
            if b > a
            else np.nan
        )
        return None if np.isnan(found) else (seen, [Moments(*c) for c in zip(n, mean, spread, strict=True)], found, 0.0)

    return work


def count_weighted(
    batch: CachedBatch, scorer: Scorer, blocks: Sequence[Block], responsibilities: Array, complete: bool = False
) -> Tally:
    """Counts of one batch by given responsibilities; unless missing cells are completed, `scorer` only names columns."""
    count = _counter(batch, scorer, blocks, responsibilities.shape[1], complete)
    chunks = _chunks(batch.rows, sum(responsibilities.shape[1:]))
    parts = in_parallel(lambda p: count(p, responsibilities[slice(*p)]), chunks)
    statistics = dict(zip(_without_text(blocks), totals(parts), strict=True))
    statistics |= {blocks[i]: _count_text(batch, scorer, i, responsibilities) for i in scorer.texts}
    rows, classes = responsibilities.shape
    # A product is a sum that runs at full speed.
    seen, used = np.ones(rows) @ responsibilities, _used(responsibilities @ np.ones(classes))
    return Tally(scorer.schema, tuple(blocks), seen, tuple(statistics[b] for b in blocks), used)


def log_joint(batch: CachedBatch, scorer: Scorer) -> Array:
    """Log joint of all rows of a batch, whose bags of words are cached."""
    out = np.empty((batch.rows, len(scorer.log_prior)))
    out[:] = scorer.log_prior
    text, score = _text_terms(batch, scorer), scorer.prepare(batch)
    out += 0.0 if text is None else text
    in_parallel(lambda part: score(part, out[slice(*part)]), _chunks(batch.rows, len(scorer.schema.columns)))
    return out


def _used(weights: Array) -> int:
    return int(np.count_nonzero(weights > 0))


def _chunks(rows: int, width: int) -> list[tuple[int, int]]:
    step = max(512, CHUNK_CELLS // max(width, 1) // 512 * 512)
    return [(a, min(a + step, rows)) for a in range(0, max(rows, 1), step)]


def _entropy(joint: Array, responsibility: Array, log_likelihood: Array, hidden: NDArray[np.bool_]) -> float:
    """Entropy of the responsibilities, in nats: the log-likelihood less the expected log joint."""
    if not hidden.any():
        return 0.0
    expectation = np.einsum("ic,ic->i", responsibility, np.where(responsibility > 0, joint, 0.0))
    return float((responsibility.sum(1) * log_likelihood - expectation)[hidden & np.isfinite(log_likelihood)].sum())


def _without_text(blocks: Sequence[Block]) -> list[Block]:
    return [block for group in groups(blocks) for block in group if block.family.column_kind != TEXT]


def _counter(
    batch: CachedBatch, scorer: Scorer, blocks: Sequence[Block], classes: int, complete: bool = True
) -> Callable[[tuple[int, int], Array], list[Statistic]]:
    """Function that counts a chunk of rows by their responsibilities, block by block; text is counted separately."""
    schema = scorer.schema
    place = {block: i for i, block in enumerate(blocks)}
    wanted = [group for group in groups(blocks) if group[0].family.column_kind != TEXT]
    coded = {c.name: batch.coded(c.name).codes for c in schema.columns if c.kind == CATEGORY}

    def count(part: tuple[int, int], responsibility: Array) -> list[Statistic]:
        found: list[Statistic] = []
        for group in wanted:
            rows = _encoded(batch, schema, coded, [name for block in group for name in block.columns], part)
            counted = group[0].family.count(rows, responsibility, np.ones(len(responsibility)), classes)
            if complete and group[0].family.needs_whole_rows:
                form: Any = scorer.parameters[place[group[0]]].likelihood
                more: Any = group[0].family.count_expected(form, rows, responsibility)
                counted = counted if more is None else [counted[0] + more]
            found += counted
        return found

    return count


def _encoded(
    batch: CachedBatch, schema: Schema, coded: dict[str, NDArray[Any]], names: Sequence[str], part: tuple[int, int]
) -> Encoded:
    """Some columns of some rows, encoded for counting by a family."""
    a, b = part
    codes = [name for name in names if name in coded]
    table = np.column_stack([coded[name][a:b] for name in codes]) if codes else np.zeros((b - a, 0), np.int32)
    size = np.array([len(schema.by_name[name].values) for name in codes], np.int64)
    numbers = batch.numbers([name for name in names if name not in coded], a, b)
    return Encoded(table, np.zeros(len(codes), np.int64), size, numbers)


def _text_terms(batch: CachedBatch, scorer: Scorer) -> Array | None:
    """Log-likelihood of all text columns, rows × classes; None if there is no text."""
    if not scorer.texts:
        return None
    forms: list[Any] = [scorer.parameters[i].likelihood for i in scorer.texts]
    terms = [_in_chunks(form, *batch.bags(scorer, i)) for i, form in zip(scorer.texts, forms, strict=True)]
    return np.asarray(np.sum(terms, axis=0))


def _in_chunks(form: Any, bags: Bags, missing: NDArray[np.bool_]) -> Array:
    """Log-likelihood of one text column, computed in parallel chunks."""
    if len(bags.ids) >= len(form.words.vocabulary) // 8:
        _ = form.table  # computed once, before all threads need it
    words = max(len(bags.ids) // max(len(bags), 1), 1)
    parts = slabs(len(bags), 4 * words)
    if len(parts) < 2:
        terms: Array = form.terms(bags, missing)
        return terms
    return np.concatenate(in_parallel(lambda p: form.terms(bags.part(*p), missing[p[0] : p[1]]), parts))


def _count_text(batch: CachedBatch, scorer: Scorer, block: int, responsibilities: Array) -> Words:
    """Word counts of a block by the responsibilities of its documents, in two halves of the documents."""
    form: Any = scorer.parameters[block].likelihood
    bags, missing = batch.bags(scorer, block)
    vocabulary, width = form.words.vocabulary, form.words.table.shape[1]

    def count(part: tuple[int, int]) -> tuple[Array, Array]:
        a, b = part
        table, documents = np.zeros((len(vocabulary), width)), np.zeros(responsibilities.shape[1])
        own = np.where(missing[a:b, None], 0.0, responsibilities[a:b])
        form.family.share(bags.part(a, b), own, table, documents)
        return table, documents

    half = len(bags) // 2
    parts = in_parallel(count, [(0, half), (half, len(bags))] if half > 256 else [(0, len(bags))])
    return Words(vocabulary, sum(table for table, _ in parts), sum(documents for _, documents in parts))
