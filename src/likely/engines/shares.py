"""One round of EM: every row is shared out among the classes by its posterior, and counted by its shares.

The rows are taken a few thousand at a time, scored, shared out and counted before the next ones are looked at; no array
of rows × classes is kept. What comes of it, a tally and the log evidence, adds over slabs, batches and shards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import sharing
from likely.belief import groups
from likely.engines.score import Scorer, text_terms
from likely.families import Block, Encoded, Gaussian, Joint, Text
from likely.families.expected import expected
from likely.families.statistics import Moments, Statistic, totals
from likely.families.words import Words
from likely.schema import CATEGORY, Schema
from likely.sources.batch import Batch, Coded
from likely.sources.documents import Documents, Strings
from likely.tally import Tally
from likely.threads import in_parallel
from likely.tokens import Bags

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Part = tuple[Array, list[Statistic], float, float]  # weight of the classes, tallies, log evidence, entropy
SLAB_CELLS = 1 << 17  # what is shared out at a time stays in the cache of a core until it is counted


@dataclass(frozen=True)
class Shared:
    """What one look at the rows gave: the tally by shares, the log evidence, and how undecided the shares are."""

    tally: Tally
    log_evidence: float
    entropy: float = 0.0

    def __add__(self, other: Shared) -> Shared:
        return Shared(self.tally + other.tally, self.log_evidence + other.log_evidence, self.entropy + other.entropy)


@dataclass(frozen=True)
class Held:
    """A batch that is looked at again and again: its codes, in the places of a schema, and its words are kept."""

    batch: Batch
    schema: Schema
    _kept: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.batch.rows

    @property
    def start(self) -> int:
        """How many rows of the source came before."""
        return self.batch.start

    @property
    def names(self) -> Sequence[str]:
        """The columns."""
        return self.batch.names

    def kind(self, name: str) -> tuple[str | None, str]:
        """What a column holds by nature."""
        return self.batch.kind(name)

    def numbers(self, names: Sequence[str], start: int, stop: int) -> Array:
        """Some columns of some rows as numbers."""
        return self.batch.numbers(names, start, stop)

    def coded(self, name: str) -> Coded:
        """A column as codes in the places of the schema; -1 where a cell is missing or its value unknown there."""
        if name not in self._kept:
            column = self.schema.by_name.get(name, self.schema.target)
            coded, known = self.batch.coded(name), len(column.values)
            places = np.array([*column.codes(coded.values), -1], dtype=np.int32)
            places[places >= known] = -1
            inside = (coded.codes >= coded.low) & (coded.codes < coded.low + len(coded.values))
            self._kept[name] = Coded(places[np.where(inside, coded.codes - coded.low, -1)], column.values)
        kept: Coded = self._kept[name]
        return kept

    def whole_numbers(self, names: Sequence[str]) -> None:  # noqa: ARG002
        """Codes are kept instead."""
        return

    def documents(self, name: str) -> Documents | Strings:
        """One column as texts."""
        return self.batch.documents(name)

    def bags(self, scorer: Scorer, block: int) -> tuple[Bags, NDArray[np.bool_]]:
        """The texts of a block as bags of the words that the scorer knows."""
        form: Any = scorer.parameters[block].form
        key = ("bags", block, id(form.words.vocabulary))
        if key not in self._kept:
            self._kept[key] = (form.words.vocabulary, scorer.bags(self.batch, block))  # the vocabulary keeps its id
        found: tuple[Bags, NDArray[np.bool_]] = self._kept[key][1]
        return found


def share_batch(
    batch: Held, scorer: Scorer, blocks: Sequence[Block], labels: Labels, weights: Array, *, entropy: bool = False
) -> Shared:
    """One batch shared out and counted; a row with a label (0 or more) belongs to that class alone."""
    classes = len(scorer.log_prior)
    score, count = scorer.prepare(batch), _counting(batch, scorer, blocks, classes)
    said = _texts(batch, scorer)
    shares = np.empty_like(said) if said is not None else None
    bells = None if entropy else _bells(batch, scorer, blocks, labels, weights)

    def work(part: tuple[int, int]) -> Part:
        if bells and (found := bells(part)):
            return found
        a, b = part
        out = np.empty((b - a, classes))
        out[:] = scorer.log_prior
        if said is not None:
            out += said[a:b]
        score(part, out)
        evidence, w, joint = np.empty(b - a), weights[a:b], out.copy() if entropy else None
        sharing.share_out(out, labels[a:b], w, scorer.log_prior, evidence)
        if shares is not None:
            shares[a:b] = out
        used = w > 0
        undecided = 0.0 if joint is None else _entropy(joint, out, evidence, used & (labels[a:b] < 0))
        return out.sum(0), count(part, out), float(w[used] @ evidence[used]), undecided

    parts = in_parallel(work, _slabs(batch.rows, classes + len(scorer.schema.columns)))
    seen, counted, evidence, undecided = zip(*parts, strict=True)
    statistics = dict(zip(_untexted(blocks), totals(counted), strict=True))
    if shares is not None:
        statistics |= {blocks[i]: _count_text(batch, scorer, i, shares) for i in scorer.texts}
    tally = Tally(scorer.schema, tuple(blocks), np.sum(seen, 0), tuple(statistics[b] for b in blocks), _used(weights))
    return Shared(tally, float(np.sum(evidence)), float(np.sum(undecided)))


def _bells(
    batch: Held, scorer: Scorer, blocks: Sequence[Block], labels: Labels, weights: Array
) -> Callable[[tuple[int, int]], Part | None] | None:
    """What shares out and counts a stretch of rows in one loop, where all columns are Gaussian; else None.

    It gives None for a stretch with gaps, with numbers that overflow, or with a row that no class allows.
    """
    plain = bool(blocks) and all(isinstance(block.family, Gaussian) for block in blocks)
    if not plain or len(groups(blocks)) > 1 or scorer.bias is not None:
        return None
    names, curves = [block.columns[0] for block in blocks], scorer.parabolas
    if len(curves[0]) != len(blocks):
        return None
    shape = (len(blocks), len(scorer.log_prior))

    def work(part: tuple[int, int]) -> Part | None:
        a, b = part
        n, mean, spread, seen = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape[1])
        x = batch.numbers(names, a, b)
        w = weights[a:b]
        found = (
            sharing.share_bells(x, labels[a:b], w, scorer.log_prior, *curves, n, mean, spread, seen)
            if b > a
            else np.nan
        )
        return None if np.isnan(found) else (seen, [Moments(*c) for c in zip(n, mean, spread, strict=True)], found, 0.0)

    return work


def count_given(batch: Held, scorer: Scorer, blocks: Sequence[Block], shares: Array, complete: bool = False) -> Tally:
    """One batch counted by shares that come from elsewhere; unless gaps are completed, `scorer` only names columns."""
    count = _counting(batch, scorer, blocks, shares.shape[1], complete)
    parts = in_parallel(lambda p: count(p, shares[slice(*p)]), _slabs(batch.rows, sum(shares.shape[1:])))
    statistics = dict(zip(_untexted(blocks), totals(parts), strict=True))
    statistics |= {blocks[i]: _count_text(batch, scorer, i, shares) for i in scorer.texts}
    rows, classes = shares.shape
    seen, used = np.ones(rows) @ shares, _used(shares @ np.ones(classes))  # a product is a sum that runs at full speed
    return Tally(scorer.schema, tuple(blocks), seen, tuple(statistics[b] for b in blocks), used)


def log_joint(batch: Held, scorer: Scorer) -> Array:
    """The log joint of all rows of a batch, whose words are kept."""
    out = np.empty((batch.rows, len(scorer.log_prior)))
    out[:] = scorer.log_prior
    said, score = _texts(batch, scorer), scorer.prepare(batch)
    out += 0.0 if said is None else said
    in_parallel(lambda part: score(part, out[slice(*part)]), _slabs(batch.rows, len(scorer.schema.columns)))
    return out


def _used(weights: Array) -> int:
    return int(np.count_nonzero(weights > 0))


def _slabs(rows: int, width: int) -> list[tuple[int, int]]:
    step = max(512, SLAB_CELLS // max(width, 1) // 512 * 512)
    return [(a, min(a + step, rows)) for a in range(0, max(rows, 1), step)]


def _entropy(joint: Array, share: Array, evidence: Array, hidden: NDArray[np.bool_]) -> float:
    """How undecided the shares are, in nats: the log evidence less the expected log joint."""
    if not hidden.any():
        return 0.0
    expectation = np.einsum("ic,ic->i", share, np.where(share > 0, joint, 0.0))
    return float((share.sum(1) * evidence - expectation)[hidden & np.isfinite(evidence)].sum())


def _untexted(blocks: Sequence[Block]) -> list[Block]:
    return [block for group in groups(blocks) for block in group if not isinstance(block.family, Text)]


def _counting(
    batch: Held, scorer: Scorer, blocks: Sequence[Block], classes: int, complete: bool = True
) -> Callable[[tuple[int, int], Array], list[Statistic]]:
    """What counts a stretch of rows by their shares, block by block; text is counted by itself."""
    schema = scorer.schema
    place = {block: i for i, block in enumerate(blocks)}
    wanted = [group for group in groups(blocks) if not isinstance(group[0].family, Text)]
    coded = {c.name: batch.coded(c.name).codes for c in schema.columns if c.kind == CATEGORY}

    def count(part: tuple[int, int], share: Array) -> list[Statistic]:
        found: list[Statistic] = []
        for group in wanted:
            rows = _encoded(batch, schema, coded, [name for block in group for name in block.columns], part)
            counted = group[0].family.count(rows, share, np.ones(len(share)), classes)
            if complete and isinstance(group[0].family, Joint):
                form: Any = scorer.parameters[place[group[0]]].form
                more: Any = expected(form, rows, share)
                counted = counted if more is None else [counted[0] + more]
            found += counted
        return found

    return count


def _encoded(
    batch: Held, schema: Schema, coded: dict[str, NDArray[Any]], names: Sequence[str], part: tuple[int, int]
) -> Encoded:
    """Some columns of some rows, as families count them."""
    a, b = part
    codes = [name for name in names if name in coded]
    table = np.column_stack([coded[name][a:b] for name in codes]) if codes else np.zeros((b - a, 0), np.int32)
    size = np.array([len(schema.by_name[name].values) for name in codes], np.int64)
    numbers = batch.numbers([name for name in names if name not in coded], a, b)
    return Encoded(table, np.zeros(len(codes), np.int64), size, numbers)


def _texts(batch: Held, scorer: Scorer) -> Array | None:
    """What all texts say of every row; None where there is no text."""
    if not scorer.texts:
        return None
    forms: list[Any] = [scorer.parameters[i].form for i in scorer.texts]
    terms = [text_terms(form, *batch.bags(scorer, i)) for i, form in zip(scorer.texts, forms, strict=True)]
    return np.asarray(np.sum(terms, axis=0))


def _count_text(batch: Held, scorer: Scorer, block: int, shares: Array) -> Words:
    """The words of a block by the shares of their documents, half of them on a core of its own."""
    form: Any = scorer.parameters[block].form
    bags, missing = batch.bags(scorer, block)
    vocabulary, width = form.words.vocabulary, form.words.table.shape[1]

    def count(part: tuple[int, int]) -> tuple[Array, Array]:
        a, b = part
        table, documents = np.zeros((len(vocabulary), width)), np.zeros(shares.shape[1])
        share = np.where(missing[a:b, None], 0.0, shares[a:b])
        form.family.share(bags.part(a, b), share, table, documents)
        return table, documents

    half = len(bags) // 2
    parts = in_parallel(count, [(0, half), (half, len(bags))] if half > 256 else [(0, len(bags))])
    return Words(vocabulary, sum(table for table, _ in parts), sum(documents for _, documents in parts))
