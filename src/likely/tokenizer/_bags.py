"""Bags of words: how often each word occurs in each document, counted on all cores."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from likely.kernels.parallel import workers as more_threads
from likely.kernels.thread_count import threads as usable_threads
from likely.tokenizer._block_operations import BLOCK
from likely.tokenizer._slabs import SlabBags, SlabCounter
from likely.tokenizer._vocabulary import Ids, Vocabulary, longer
from likely.tokenizer.spans import TokenizerOptions, checked, ends_of, spans_of_tokens, spans_of_words, utf8

Slab = tuple[int, int]
Text = tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]
Count = Callable[[Any, SlabCounter], SlabBags]
# Bytes of text that one core counts at a time: what it writes meanwhile fits the cache. Twice as much is a tenth faster and
# takes ten megabytes more.
SLAB = 1 << 18


@dataclass(frozen=True, eq=False)
class Bags:
    """Bags of words in compressed sparse rows: document d has words `ids[indptr[d]:indptr[d + 1]]`, with `counts`.

    `unknown` is the number of words of each document that are not in the vocabulary; they are in no bag.
    """

    indptr: npt.NDArray[np.int64]
    ids: Ids
    counts: npt.NDArray[np.int32]
    unknown: npt.NDArray[np.int64]
    vocabulary: Vocabulary

    def __len__(self) -> int:
        return self.indptr.size - 1

    def part(self, start: int, stop: int) -> Bags:
        """The bags of documents `start` to `stop` - 1, as views."""
        first, last = self.indptr[start], self.indptr[stop]
        indptr = self.indptr[start : stop + 1] - first
        return Bags(indptr, self.ids[first:last], self.counts[first:last], self.unknown[start:stop], self.vocabulary)

    @property
    def document_frequency(self) -> npt.NDArray[np.int64]:
        """How many documents hold each word of the vocabulary."""
        return np.bincount(self.ids, minlength=len(self.vocabulary))

    def prune(self, limit: int, seen: npt.NDArray[Any] | None = None) -> tuple[Bags, npt.NDArray[np.int64]]:
        """Keep the `limit` words of highest document frequency, the older one among equals; returns also their old numbers.

        `seen` is the document frequency of each known word in earlier documents. Occurrences of a dropped word become
        unknown. Counts by word are carried over as `counts[kept]`.
        """
        frequency = self.document_frequency
        if seen is not None:
            frequency[: seen.size] += seen.astype(np.int64)
        kept = np.sort(np.argsort(-frequency, kind="stable")[:limit])
        numbers = np.full(len(self.vocabulary), -1, dtype=np.int32)
        numbers[kept] = np.arange(kept.size, dtype=np.int32)
        ids = numbers[self.ids]
        stay = ids >= 0
        left = np.concatenate([[0], np.cumsum(stay)])[self.indptr]
        gone = np.concatenate([[0], np.cumsum(np.where(stay, 0, self.counts))])[self.indptr]
        unknown = self.unknown + np.diff(gone)
        return Bags(left, ids[stay], self.counts[stay], unknown, self.vocabulary.keep(kept)), kept


class _BagBuilder:
    """Concatenates bags; a part is copied, and need not be kept."""

    def __init__(self, parts: int) -> None:
        self.parts, self.size = parts, 0
        self.ids, self.counts = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
        self.bounds, self.unknown = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]

    def append(self, part: Bags) -> None:
        """Append the bags of a part."""
        start, more = self.size, part.ids.size
        self._reserve(more)
        self.size += more
        self.ids[start : self.size], self.counts[start : self.size] = part.ids, part.counts
        self.bounds.append(part.indptr[1:] + start)
        self.unknown.append(part.unknown)

    def bags(self, vocabulary: Vocabulary) -> Bags:
        """The concatenated bags."""
        ids, counts = self.ids[: self.size], self.counts[: self.size]
        return Bags(np.concatenate(self.bounds), ids, counts, np.concatenate(self.unknown), vocabulary)

    def _reserve(self, more: int) -> None:
        """Reserve memory for this part, and for the others if they are like it; it is not touched before it is written."""
        if self.size + more > self.ids.size:
            capacity = max(2 * self.ids.size, self.size + more + (self.parts - 1) * more * 9 // 8)
            self.ids, self.counts = longer(self.ids, capacity), longer(self.counts, capacity)


def encode(
    buffer: npt.NDArray[np.uint8],
    offsets: npt.NDArray[Any],
    vocabulary: Vocabulary | None = None,
    *,
    frozen: bool = False,
    unit: str = "word",
    ngrams: tuple[int, int] = (1, 1),
    lowercase: bool = True,
    threads: int | None = None,
) -> Bags:
    r"""Bag of words of every document in an array of UTF-8 bytes; document d is `buffer[offsets[d]:offsets[d + 1]]`.

    Words are what `re.findall(r"(?u)\b\w\w+\b", document.lower())` finds. With `unit` "char" or "char_wb" they are
    n-grams of characters, and with `ngrams` n-grams of words, as in scikit-learn's CountVectorizer. New words are added to the
    vocabulary, or with `frozen` counted as unknown. Bytes that are not UTF-8 are read as U+FFFD, which is part of no word.
    Slabs of documents are counted separately and numbered in their order: the result does not depend on `threads`.
    """
    options = TokenizerOptions(unit, ngrams, lowercase).checked()
    return _encode_slabs(*_slab_counter((buffer, offsets), options), vocabulary, frozen, threads)


def encode_texts(
    texts: Sequence[str | None],
    vocabulary: Vocabulary | None = None,
    *,
    frozen: bool = False,
    unit: str = "word",
    ngrams: tuple[int, int] = (1, 1),
    lowercase: bool = True,
    threads: int | None = None,
) -> Bags:
    """Bag of words of every string, as in `encode`; a missing text is an empty one.

    Strings are encoded slab by slab, on one core while another one counts.
    """
    options = TokenizerOptions(unit, ngrams, lowercase).checked()
    return _encode_slabs(*_slab_counter(texts, options), vocabulary, frozen, threads)


def encode_in_parts(
    text: Sequence[str | None] | Text,
    *,
    unit: str = "word",
    ngrams: tuple[int, int] = (1, 1),
    lowercase: bool = True,
    threads: int | None = None,
) -> Iterator[tuple[int, int, Bags]]:
    """The same bags slab by slab, as (first document, end, bags): only a few slabs are in memory at a time.

    The vocabulary of each slab begins with that of the one before; the next slabs are counted while one is processed.
    """
    count, slabs = _slab_counter(text, TokenizerOptions(unit, ngrams, lowercase).checked())
    for (a, b), bags in zip(slabs, _encode_each(count, slabs, None, False, threads), strict=True):
        yield a, b, bags


def look_up(
    text: Sequence[str | None] | Text,
    vocabulary: Vocabulary,
    then: Callable[[int, int, Bags], None],
    *,
    unit: str = "word",
    ngrams: tuple[int, int] = (1, 1),
    lowercase: bool = True,
    threads: int | None = None,
) -> None:
    """Call `then(first document, end, bags)` for each slab, with bags of known words, on the thread that counted them.

    The arrays of the bags are reused after the call: `then` must copy what it keeps.
    """
    count, slabs = _slab_counter(text, TokenizerOptions(unit, ngrams, lowercase).checked())
    counter = SlabCounter(vocabulary, lend=True)

    def work(slab: Slab) -> None:
        then(*slab, _bags(count(slab, counter), vocabulary))

    _for_each(work, slabs, threads)


def word_order(
    text: Sequence[str | None] | Text, vocabulary: Vocabulary, *, lowercase: bool = True, most: int = 1 << 30
) -> tuple[npt.NDArray[np.int64], Ids]:
    """Numbers of the words of every document in their order, at most so many of each, and where each document ends.

    A word that is not in the vocabulary is -1.
    """
    if not (isinstance(text, tuple) and len(text) == 2 and isinstance(text[0], np.ndarray)):
        text = utf8(text)
    buffer, offsets = checked(*text)
    ends, parts = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)]
    for a, b in pairwise(_cuts(offsets)):
        places = offsets[a : b + 1]
        spans = spans_of_words(buffer[places[0] : places[-1]], places - places[0], lowercase)
        sizes = np.diff(spans.documents)
        kept = np.arange(spans.documents[-1]) - np.repeat(spans.documents[:-1], sizes) < most
        parts.append(vocabulary.find(spans)[kept].astype(np.int32))
        ends.append(ends[-1][-1] + np.cumsum(np.minimum(sizes, most)))
    return np.concatenate(ends), np.concatenate(parts)


def _slab_counter(text: Sequence[str | None] | Text, options: TokenizerOptions) -> tuple[Count, list[Slab]]:
    """A function that counts one slab of strings or bytes, and the slabs."""
    if isinstance(text, tuple) and len(text) == 2 and isinstance(text[0], np.ndarray):  # a tuple may hold strings too
        buffer, offsets = checked(*text)

        def count_bytes(slab: Slab, counter: SlabCounter) -> SlabBags:
            places = offsets[slab[0] : slab[1] + 1]
            return counter.of_texts(buffer[places[0] : places[-1] + BLOCK], places - places[0], options)

        return count_bytes, list(pairwise(_cuts(offsets)))
    texts: Sequence[str | None] = text
    ends = ends_of(texts)

    def count_strings(slab: Slab, counter: SlabCounter) -> SlabBags:
        a, b = slab
        return counter.of_texts(*utf8(texts[a:b], ends[a : b + 1] - ends[a]), options)

    return count_strings, list(pairwise(_cuts(ends)))


def encode_tokens(
    documents: Sequence[Sequence[str]],
    vocabulary: Vocabulary | None = None,
    *,
    frozen: bool = False,
    ngrams: tuple[int, int] = (1, 1),
) -> Bags:
    """Bag of words of documents that are tokenised already, by a pattern or function of the caller."""
    options = TokenizerOptions("word", ngrams).checked()

    def count(some: Sequence[Sequence[str]], counter: SlabCounter) -> SlabBags:
        return counter.of_spans(spans_of_tokens(some, options.ngrams))

    return _encode_slabs(count, [documents], vocabulary, frozen, 1)


def _encode_slabs(
    count: Count, slabs: list[Any], vocabulary: Vocabulary | None, frozen: bool, threads: int | None
) -> Bags:
    """The bags of all slabs."""
    known = Vocabulary() if vocabulary is None else vocabulary
    builder = _BagBuilder(len(slabs))
    for bags in _encode_each(count, slabs, vocabulary, frozen, threads):
        known = bags.vocabulary
        builder.append(bags)
    return builder.bags(known)


def _encode_each(
    count: Count, slabs: list[Any], vocabulary: Vocabulary | None, frozen: bool, threads: int | None
) -> Iterator[Bags]:
    """The bags of each slab with the word numbers of a common vocabulary."""
    known = Vocabulary.expecting(len(slabs) * SLAB) if vocabulary is None else vocabulary
    counter = SlabCounter(known if frozen else None)
    for part in _map_in_order(lambda slab: count(slab, counter), slabs, threads):
        if part.own is not None:
            own_words, new = part.own
            known, numbers = known.grow(new)
            own_words.renumber(numbers, part.ids)
        yield _bags(part, known)


def _bags(part: SlabBags, vocabulary: Vocabulary) -> Bags:
    return Bags(part.indptr, part.ids, part.counts, part.unknown, vocabulary)


def _cuts(offsets: npt.NDArray[np.int64]) -> list[int]:
    """First document of each slab: a slab ends at the last document that ends within `SLAB` bytes."""
    cuts = [0]
    last = offsets.size - 1
    while cuts[-1] < last:
        fits = int(np.searchsorted(offsets, offsets[cuts[-1]] + SLAB, side="right")) - 1
        cuts.append(min(last, max(fits, cuts[-1] + 1)))
    return cuts


def _map_in_order(work: Callable[[Any], Any], slabs: list[Any], threads: int | None) -> Iterator[Any]:
    """Results of `work` for each slab, in order, computed on all cores, the caller's thread among them."""
    workers = min(len(slabs), threads or usable_threads())
    if workers < 2:
        yield from map(work, slabs)
        return
    pool = more_threads(workers - 1)
    under_way: deque[_Task] = deque()
    try:
        for slab in slabs:
            under_way.append(_Task(slab, pool.submit(work, slab)))
            if len(under_way) > workers:  # the consumer may be slower than the workers
                yield _first_result(work, under_way)
        while under_way:
            yield _first_result(work, under_way)
    finally:
        pool.shutdown(cancel_futures=True)


def _for_each(work: Callable[[Any], None], slabs: list[Any], threads: int | None) -> None:
    """Call `work` for each slab in any order, on all cores."""
    left, lock = iter(slabs), threading.Lock()

    def go_on() -> None:
        try:
            while True:
                with lock:
                    slab = next(left, None)
                if slab is None:
                    return
                work(slab)
        except BaseException:
            with lock:
                deque(left, maxlen=0)  # no thread begins another slab
            raise

    others = min(len(slabs), threads or usable_threads()) - 1
    with more_threads(others) as pool:
        helping = [pool.submit(go_on) for _ in range(others)]
        go_on()
        for each in helping:
            each.result()


@dataclass
class _Task:
    """A slab and its future result."""

    slab: Any
    future: Future[Any]


def _first_result(work: Callable[[Any], Any], under_way: deque[_Task]) -> Any:
    """Result of the first slab; while another thread computes it, slabs that no thread has begun are computed here."""
    while not under_way[0].future.done():
        task = next((task for task in under_way if task.future.cancel()), None)
        if task is None:
            break
        task.future = Future()
        task.future.set_result(work(task.slab))
    return under_way.popleft().future.result()
