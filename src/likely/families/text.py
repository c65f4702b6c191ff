"""Columns of text: a document is its words. Multinomial, Bernoulli and complement Naive Bayes over one tally of words."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.errors import LikelyWarning, UsageError
from likely.families.base import Encoded, Imagined, Labels, Parameters, log, no_check, shared
from likely.families.sample import Sample, document_keys
from likely.families.statistics import Array, Statistic
from likely.families.words import Words, roomy
from likely.schema import Column
from likely.sources.documents import Documents, Part, Strings
from likely.threads import cached_property
from likely.tokens import Bags, Vocabulary, encode, encode_in_parts, encode_texts, encode_tokens, look_up, weighing

KINDS = ("auto", "multinomial", "bernoulli", "complement")
COUNTS = ("raw", "log", "once")
MOST_WORDS_SHOWN = 200
STRETCH = 1 << 23  # bytes of text that a person's own pattern turns into bags at a time
MOST_SAMPLES = 32
LARGE = 1 << 20  # bytes of text: more is not interpreted


@dataclass(frozen=True)
class Text:
    """Documents as bags of words.

    `kind` is the model: "multinomial", "bernoulli" (absent words count) or "complement" are the textbook's; "auto" counts
    the logarithm of how often a word occurs and learns by leave-one-out what each word is worth. `counts` is what one
    word adds ("raw", "log" or "once"), `length="l2"` makes all documents equally long, `idf` weighs rare words up.
    """

    kind: str = "auto"
    ngrams: tuple[int, int] = (1, 1)
    lowercase: bool = True
    unit: str = "word"
    pattern: str | None = None
    counts: str | None = None
    length: str | None = None
    idf: bool = False
    limit: int | None = None

    name: ClassVar[str] = "text"
    single: ClassVar[bool] = False
    strict: ClassVar[bool] = False
    check = staticmethod(no_check)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ngrams", tuple(self.ngrams))
        for name, allowed in (("kind", KINDS), ("counts", (None, *COUNTS)), ("length", (None, "l2"))):
            if getattr(self, name) not in allowed:
                raise UsageError(f"Text({name}={getattr(self, name)!r}) is not known: choose one of {allowed}")

    @property
    def adds(self) -> str:
        """What one word adds: its number, the logarithm of one more, or one."""
        return self.counts or {"auto": "log", "bernoulli": "once"}.get(self.kind, "raw")

    def bags(self, text: Part, vocabulary: Vocabulary, frozen: bool = True) -> Bags:
        """The documents as bags of the vocabulary's words; unless it is frozen, new ones are added to it."""
        if self.pattern is not None:
            words = _by_pattern(text, self.pattern, self.lowercase)
            return encode_tokens(words, vocabulary, ngrams=self.ngrams, frozen=frozen)
        if isinstance(text, list):
            return encode_texts(text, vocabulary, frozen=frozen, **self._reading)
        return encode(*text, vocabulary, frozen=frozen, **self._reading)

    @property
    def _reading(self) -> dict[str, Any]:
        return {"ngrams": self.ngrams, "unit": self.unit, "lowercase": self.lowercase}

    def look_up(self, text: Part, vocabulary: Vocabulary, then: Callable[[int, int, Bags], None]) -> None:
        """Hand over the bags of the vocabulary's words, some documents at a time, on the core that read them."""
        if self.pattern is not None:
            bags = self.bags(text, vocabulary)
            then(0, len(bags), bags)
        else:
            look_up(text, vocabulary, then, **self._reading)

    def values(self, bags: Bags) -> Array:
        """What each word of each bag adds."""
        if self.adds == "once":
            values = np.ones(len(bags.counts))
        else:
            values = bags.counts.astype(np.float64) if self.adds == "raw" else np.log1p(bags.counts)
        if self.length == "l2" and len(values):
            lengths = np.sqrt(np.bincount(_owner(bags), values * values, len(bags)))
            values = values / np.repeat(np.maximum(lengths, 1e-300), np.diff(bags.indptr))
        return values

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """How much of each word was seen in each class."""
        vocabulary, documents, total = Vocabulary(), np.zeros(classes), np.zeros(classes)
        table = np.zeros((0, classes * self._parts))
        # A row that belongs to several classes can be left out of none of them: shares keep no sample.
        samples = self.kind == "auto" and labels.ndim == 1
        sampled, whole = [Sample.empty()], labels.ndim == 1
        for a, b, bags in self._parts_of(rows.documents):
            assert rows.documents is not None
            before, vocabulary = len(vocabulary), bags.vocabulary
            table = roomy(table, len(vocabulary), _most_words(rows.documents.ends, b, len(vocabulary)))
            # Counting reads before it writes, and the system makes such memory twice: new words are written first.
            table[before : len(vocabulary)].fill(0.0)
            if labels.ndim == 2:
                share = shared(labels[a:b], weights[a:b])
                self.share(bags, np.where(rows.documents.missing[a:b, None], 0.0, share), table, documents)
                continue
            used = np.where(rows.documents.missing[a:b], -1, labels[a:b])
            whole &= bool((used >= 0).all() and (weights[a:b] == 1.0).all())
            weighing.count_words(bags.ids, bags.indptr, self.values(bags), used, weights[a:b], table, documents, total)
            if samples:
                keys = document_keys(rows.documents.part(a, b)) if rows.keys is None else rows.keys[a:b]
                sampled.append(Sample.of(bags, keys, used, weights[a:b]))
            if len(sampled) > MOST_SAMPLES:
                sampled = [Sample.together(sampled)]
        sample = Sample.together(sampled) if samples else None
        exact = whole and self.length is None and self.adds != "log"  # whole numbers, whose sum has no order
        return [Words(vocabulary, table, documents, sample, total if exact else None, whole)]

    def _parts_of(self, documents: Documents | Strings | None) -> Iterator[tuple[int, int, Bags]]:
        """Bags of some documents after the other, which never take much memory; the vocabulary grows as they come."""
        if documents is None or len(documents.ends) < 2:
            return
        rows = len(documents.ends) - 1
        if self.pattern is None:
            if documents.ends[-1] - documents.ends[0] > LARGE:
                weighing.count_words.prepare()
            yield from encode_in_parts(documents.part(0, rows), **self._reading)
            return
        vocabulary = Vocabulary()
        for a, b in _stretches(documents):
            bags = self.bags(documents.part(a, b), vocabulary, frozen=False)
            vocabulary = bags.vocabulary
            yield a, b, bags

    def share(self, bags: Bags, share: Array, table: Array, documents: Array) -> None:
        """Add bags that belong to every class by a share."""
        classes = len(documents)
        documents += share.sum(0)
        weighing.count_shares(bags.ids, bags.indptr, self.values(bags), share, table[:, :classes])
        if self._parts > 1:
            weighing.count_shares(bags.ids, bags.indptr, np.ones(len(bags.ids)), share, table[:, classes:])

    def settle(self, words: Words) -> Words:
        """The sum of several counts, kept within `limit` words: let it grow by a quarter first, so that cuts are rare."""
        if self.limit is None or len(words.vocabulary) <= self.limit * 5 // 4:
            return words
        warnings.warn(
            f"more than {self.limit:,} words: those that the fewest documents hold are dropped; raise limit= to keep them",
            LikelyWarning, stacklevel=2,
        )  # fmt: skip
        return words.capped(self.limit)

    @property
    def _parts(self) -> int:
        """Documents are counted too where they are asked for and differ from what is seen."""
        return 2 if self.kind == "auto" or (self.idf and self.kind != "bernoulli") else 1

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        tallied: Sequence[Words],
        imagined: Sequence[Imagined],
        classes: Sequence[Any],
    ) -> list[Parameters]:
        """Each word's share in each class, once the imagined words are added to the seen ones."""
        ((column,),), (words,), (prior,) = blocks, tallied, imagined
        if prior.named:
            raise UsageError(
                f"column {column.name!r} is text, and its prior names the word {prior.named[0]!r}: words have no imagined "
                f"counts of their own; pass a number, or MEstimate(m, 'background')"
            )
        # "auto" without its second stage is the multinomial over log counts: what the stage starts from.
        form = Bag(self, words, prior.unseen(max(words.known, 1)), prior.background)
        k = len(classes)
        rows = _Readable(column.name, form, classes)
        return [Parameters((column.name,), form, rows, k * words.known, k * max(words.known - 1, 0))]

    def settings(self) -> dict[str, Any]:
        """What is needed to make this family again."""
        usual = asdict(Text())
        own = {name: value for name, value in asdict(self).items() if value != usual[name] or name == "kind"}
        return own | ({"ngrams": list(self.ngrams)} if "ngrams" in own else {})


@dataclass(frozen=True, eq=False)
class Bag:
    """A line in the words of a document: what each word adds to each class, plus what every document adds."""

    family: Text
    words: Words
    pseudocount: float
    background: float  # imagined words that are drawn in proportion to how often each occurs overall

    @cached_property
    def idf(self) -> Array | None:
        """The logarithm of how rare each word is, plus one."""
        if not self.family.idf:
            return None
        documents = self.words.documents.sum()
        return log((1.0 + documents) / (1.0 + self.words.holders.sum(1))) + 1.0

    @cached_property
    def totals(self) -> tuple[Array, float]:
        """What was seen of all words in each class, and how many words are imagined in all."""
        total = self.words.total if self.idf is None else self.idf @ self.words.seen
        return total, self.pseudocount * self.words.known + self.background

    def weights(self, ids: NDArray[Any]) -> Array:
        """What one unit of each of these words adds to each class; a word that nobody holds adds nothing."""
        seen = self.words.seen_of(ids)
        alive = np.asarray(seen.any(1))[:, None]
        if self.idf is not None:
            seen = seen * self.idf[ids][:, None]
        total, imagined = self.totals
        extra = self.pseudocount + self.background * seen.sum(1, keepdims=True) / max(float(total.sum()), 1e-300)
        if self.family.kind == "bernoulli":
            return np.where(alive, log(seen + extra) - log(self._without(seen, extra)), 0.0)
        if self.family.kind == "complement":
            seen, total = seen.sum(1, keepdims=True) - seen, total.sum() - total
        found = log(seen + extra) - log(total + imagined)
        return np.where(alive, -found if self.family.kind == "complement" else found, 0.0)

    @cached_property
    def table(self) -> Array:
        """What each word adds to each class."""
        return np.ascontiguousarray(self.weights(np.arange(len(self.words.vocabulary))))

    @cached_property
    def constant(self) -> Array:
        """What every document adds: for Bernoulli, that all words are absent."""
        if self.family.kind != "bernoulli":
            return np.zeros(self.words.classes)
        seen = self.words.seen[self.words.seen.any(1)]
        whole = self.words.documents + 2 * self.pseudocount
        absent = log(self._without(seen, self.pseudocount)) - log(whole)
        # One class a line, so that NumPy adds in pairs: down the columns, 130,000 roundings added up to 5e-9.
        return np.asarray(np.ascontiguousarray(absent.T).sum(1))

    def _without(self, seen: Array, pseudocount: float | Array) -> Array:
        """Documents of each class without the word, smoothed: counted, because 1 - share is 0 for shares near 1."""
        return np.maximum(self.words.documents - seen, 0.0) + (2 * self.pseudocount - pseudocount)

    def terms(self, bags: Bags, missing: NDArray[np.bool_]) -> Array:
        """The sum over the words of each document; a missing document adds nothing."""
        out = np.zeros((len(bags), self.words.classes))
        values = self.family.values(bags)
        if self.idf is not None:
            values = values * self.idf[bags.ids]
        few = len(bags.ids) < len(self.words.vocabulary) // 8
        if few and "table" not in self.__dict__:  # a few words do not pay for the table of all
            distinct, ids = np.unique(bags.ids, return_inverse=True)
            weighing.score_words(ids.astype(np.int32), bags.indptr, values, self.weights(distinct), out)
        else:
            weighing.score_words(bags.ids, bags.indptr, values, self.table, out)
        if self.family.kind == "bernoulli":
            out += self.constant
        out[missing] = 0.0
        return out

    def details(self, bags: Bags) -> list[tuple[str, float, Array]]:
        """Every word of one document with its number and what it adds to each class, the strongest first."""
        values = self.family.values(bags) * (1.0 if self.idf is None else self.idf[bags.ids])
        return ranked(self.words.vocabulary, bags, self.weights(bags.ids) * values[:, None])


def ranked(vocabulary: Vocabulary, bags: Bags, evidence: Array) -> list[tuple[str, float, Array]]:
    """The words of one document, those first whose evidence differs most between the classes."""
    finite = np.where(np.isfinite(evidence), evidence, -1e6)
    order = np.argsort(finite.min(1) - finite.max(1), kind="stable")[:MOST_WORDS_SHOWN]
    names = vocabulary.keep(bags.ids[order]).words() if len(order) else []
    return [(word, float(bags.counts[i]), evidence[i]) for word, i in zip(names, order, strict=True)]


def ranked_words(form: Any, most: int) -> list[list[tuple[str, float]]]:
    """For every class the words that speak most for it, against the average of the classes."""
    table = np.where(np.isfinite(form.table), form.table, -50.0)
    contrast = table - table.mean(1, keepdims=True)
    # What a word is worth is what it says, as often as it can say it.
    worth = contrast * np.log1p(form.words.seen.sum(1, keepdims=True))
    places = [np.argsort(-worth[:, c], kind="stable")[:most] for c in range(table.shape[1])]
    return [
        list(zip(form.words.vocabulary.keep(ids).words(), contrast[ids, c].tolist(), strict=True))
        for c, ids in enumerate(places)
    ]


class _Readable(Sequence[dict[str, Any]]):
    """The table of words as readable rows, made only when it is read: it may have millions."""

    def __init__(self, column: str, form: Bag, classes: Sequence[Any]) -> None:
        self.column, self.form, self.classes = column, form, classes

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        words, seen, table = self.form.words.vocabulary.words(), self.form.words.seen, self.form.table
        alive = np.flatnonzero(seen.any(1)).tolist()
        return [
            {
                "column": self.column,
                "class": label,
                "value": words[i],
                "count": float(seen[i, c]),
                "weight": float(table[i, c]),
            }
            for c, label in enumerate(self.classes)
            for i in alive
        ]

    def __len__(self) -> int:
        return len(self.classes) * self.form.words.known

    def __getitem__(self, at: Any) -> Any:
        return self._rows[at]


def _stretches(documents: Documents | Strings) -> list[tuple[int, int]]:
    """Documents that are counted at a time: some megabytes of text, so that their bags never take much memory."""
    ends = documents.ends
    edges = np.searchsorted(ends, np.arange(ends[0] + STRETCH, ends[-1], STRETCH))
    cuts = sorted({0, *edges.tolist(), len(ends) - 1})
    return list(pairwise(cuts))


def _most_words(ends: NDArray[np.int64], read: int, found: int) -> int:
    """How many words there can be in all: new ones become rarer, so no more than in proportion to the text."""
    return int(found * (ends[-1] - ends[0]) / max(ends[read] - ends[0], 1))


def _owner(bags: Bags) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(bags)), np.diff(bags.indptr))


def _by_pattern(text: Part, pattern: str, lowercase: bool) -> list[list[str]]:
    """The words that a person's own pattern finds."""
    import re

    try:
        find: Callable[[str], list[str]] = re.compile(pattern).findall
    except re.error as error:
        raise UsageError(f"the pattern {pattern!r} cannot be read: {error}") from None
    documents = [document or "" for document in text] if isinstance(text, list) else _decoded(*text)
    return [find(document.lower() if lowercase else document) for document in documents]


def _decoded(buffer: NDArray[np.uint8], offsets: NDArray[Any]) -> list[str]:
    raw = buffer.tobytes()
    return [raw[a:b].decode("utf-8", "replace") for a, b in pairwise(offsets.tolist())]
