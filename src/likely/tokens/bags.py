"""Bags of words: how often each word stands in each document, counted on all cores."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from likely.tokens._blocks import BLOCK
from likely.tokens.slabs import Counter, Part
from likely.tokens.spans import Reading, checked, ends_of, spans_of_tokens, utf8
from likely.tokens.vocabulary import Ids, Vocabulary, longer

Slab = tuple[int, int]
Text = tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]
Count = Callable[[Any, Counter], Part]
# Bytes of text that one core reads at a time: what it writes meanwhile fits the cache. Twice as much would be a tenth
# faster, and take ten megabytes more.
SLAB = 1 << 18


@dataclass(frozen=True, eq=False)
class Bags:
    """One bag of words a document: words `ids[indptr[d]:indptr[d + 1]]`, each as often as `counts` says.

    `unknown` has, for each document, how many of its words are not in the vocabulary; they are in no bag.
    """

    indptr: npt.NDArray[np.int64]
    ids: Ids
    counts: npt.NDArray[np.int32]
    unknown: npt.NDArray[np.int64]
    vocabulary: Vocabulary

    def __len__(self) -> int:
        return self.indptr.size - 1

    def part(self, start: int, stop: int) -> Bags:
        """The bags of some documents in a row; nothing is copied."""
        first, last = self.indptr[start], self.indptr[stop]
        indptr = self.indptr[start : stop + 1] - first
        return Bags(indptr, self.ids[first:last], self.counts[first:last], self.unknown[start:stop], self.vocabulary)

    @property
    def document_frequency(self) -> npt.NDArray[np.int64]:
        """How many documents hold each word of the vocabulary."""
        return np.bincount(self.ids, minlength=len(self.vocabulary))

    def prune(self, limit: int, seen: npt.NDArray[Any] | None = None) -> tuple[Bags, npt.NDArray[np.int64]]:
        """Only the `limit` words that most documents hold, the earlier learnt among equals, and their old numbers.

        `seen` has how many earlier documents held each word known before. The occurrences of a word that is dropped
        become unknown ones. Whoever keeps counts by word goes on with `counts[kept]`; as many words as the vocabulary
        had more than `kept` were dropped.
        """
        frequency = self.document_frequency
        if seen is not None:
            frequency[: seen.size] += seen.astype(np.int64)
        kept = np.sort(np.argsort(-frequency, kind="stable")[:limit])
        names = np.full(len(self.vocabulary), -1, dtype=np.int32)
        names[kept] = np.arange(kept.size, dtype=np.int32)
        ids = names[self.ids]
        stay = ids >= 0
        left = np.concatenate([[0], np.cumsum(stay)])[self.indptr]
        gone = np.concatenate([[0], np.cumsum(np.where(stay, 0, self.counts))])[self.indptr]
        unknown = self.unknown + np.diff(gone)
        return Bags(left, ids[stay], self.counts[stay], unknown, self.vocabulary.keep(kept)), kept


class _Shelf:
    """Bags put one after the other; a part need not be kept once it is put."""

    def __init__(self, parts: int) -> None:
        self.parts, self.size = parts, 0
        self.ids, self.counts = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
        self.bounds, self.unknown = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]

    def put(self, part: Bags) -> None:
        """Add the bags of a part."""
        start, more = self.size, part.ids.size
        self._make_room(more)
        self.size += more
        self.ids[start : self.size], self.counts[start : self.size] = part.ids, part.counts
        self.bounds.append(part.indptr[1:] + start)
        self.unknown.append(part.unknown)

    def bags(self, vocabulary: Vocabulary) -> Bags:
        """All that was put here."""
        ids, counts = self.ids[: self.size], self.counts[: self.size]
        return Bags(np.concatenate(self.bounds), ids, counts, np.concatenate(self.unknown), vocabulary)

    def _make_room(self, more: int) -> None:
        """Room for one part, and for the others if they are like it: memory is not taken before it is written."""
        if self.size + more > self.ids.size:
            room = max(2 * self.ids.size, self.size + more + (self.parts - 1) * more * 9 // 8)
            self.ids, self.counts = longer(self.ids, room), longer(self.counts, room)


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
    r"""The bag of words of every document in a run of UTF-8 bytes; document d is `buffer[offsets[d]:offsets[d + 1]]`.

    Words are what `re.findall(r"(?u)\b\w\w+\b", document.lower())` finds. With `unit` "char" or "char_wb" they are
    runs of characters, and with `ngrams` runs of words, as scikit-learn's CountVectorizer forms them. New words are
    added to the vocabulary, or with `frozen` only counted as unknown. Bytes that are not UTF-8 read as U+FFFD, which is
    part of no word. Slabs of documents are counted apart and numbered in their order: threads change nothing but time.
    """
    return _counted_together(
        *_counter((buffer, offsets), Reading(unit, ngrams, lowercase).checked()), vocabulary, frozen, threads
    )


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
    """The bag of words of every string, as `encode` has them; a missing text is an empty one.

    Strings become bytes slab by slab, on one core while the other counts.
    """
    return _counted_together(*_counter(texts, Reading(unit, ngrams, lowercase).checked()), vocabulary, frozen, threads)


def encode_in_parts(
    text: Sequence[str | None] | Text,
    *,
    unit: str = "word",
    ngrams: tuple[int, int] = (1, 1),
    lowercase: bool = True,
    threads: int | None = None,
) -> Iterator[tuple[int, int, Bags]]:
    """The same bags some documents at a time, from where to where they are: no more than a few parts are ever held.

    Each part has a vocabulary that begins with that of the part before; while one is looked at, the next are counted.
    """
    count, slabs = _counter(text, Reading(unit, ngrams, lowercase).checked())
    for (a, b), bags in zip(slabs, _numbered(count, slabs, None, False, threads), strict=True):
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
    """Hand over the bags of known words, some documents at a time, with where these are: on the core that read them.

    What is read off a bag is read while it is at hand: afterwards it is written over.
    """
    count, slabs = _counter(text, Reading(unit, ngrams, lowercase).checked())
    counter = Counter(vocabulary, lend=True)

    def work(slab: Slab) -> None:
        then(*slab, _bags(count(slab, counter), vocabulary))

    _on_all_cores(work, slabs, threads)


def _counter(text: Sequence[str | None] | Text, reading: Reading) -> tuple[Count, list[Slab]]:
    """How some of the documents are counted, strings or bytes, and the slabs of them."""
    if isinstance(text, tuple) and len(text) == 2 and isinstance(text[0], np.ndarray):  # a tuple may hold strings too
        buffer, offsets = checked(*text)

        def count_bytes(slab: Slab, counter: Counter) -> Part:
            places = offsets[slab[0] : slab[1] + 1]
            return counter.of_texts(buffer[places[0] : places[-1] + BLOCK], places - places[0], reading)

        return count_bytes, list(pairwise(_cuts(offsets)))
    texts: Sequence[str | None] = text
    ends = ends_of(texts)

    def count_strings(slab: Slab, counter: Counter) -> Part:
        a, b = slab
        return counter.of_texts(*utf8(texts[a:b], ends[a : b + 1] - ends[a]), reading)

    return count_strings, list(pairwise(_cuts(ends)))


def encode_tokens(
    documents: Sequence[Sequence[str]],
    vocabulary: Vocabulary | None = None,
    *,
    frozen: bool = False,
    ngrams: tuple[int, int] = (1, 1),
) -> Bags:
    """The bag of words of every document whose words somebody else has found: a pattern or a function of the user's."""
    reading = Reading("word", ngrams).checked()

    def count(some: Sequence[Sequence[str]], counter: Counter) -> Part:
        return counter.of_spans(spans_of_tokens(some, reading.ngrams))

    return _counted_together(count, [documents], vocabulary, frozen, 1)


def _counted_together(
    count: Count, slabs: list[Any], vocabulary: Vocabulary | None, frozen: bool, threads: int | None
) -> Bags:
    """The bags of all slabs."""
    known = Vocabulary() if vocabulary is None else vocabulary
    shelf = _Shelf(len(slabs))
    for bags in _numbered(count, slabs, vocabulary, frozen, threads):
        known = bags.vocabulary
        shelf.put(bags)
    return shelf.bags(known)


def _numbered(
    count: Count, slabs: list[Any], vocabulary: Vocabulary | None, frozen: bool, threads: int | None
) -> Iterator[Bags]:
    """The bags of each slab under common numbers: those of a vocabulary, or of none yet."""
    known = Vocabulary.expecting(len(slabs) * SLAB) if vocabulary is None else vocabulary
    counter = Counter(known if frozen else None)
    for part in _mapped(lambda slab: count(slab, counter), slabs, threads):
        if part.own is not None:
            book, new = part.own
            known, names = known.grow(new)
            book.settle(names, part.ids)
        yield _bags(part, known)


def _bags(part: Part, vocabulary: Vocabulary) -> Bags:
    return Bags(part.indptr, part.ids, part.counts, part.unknown, vocabulary)


def _cuts(offsets: npt.NDArray[np.int64]) -> list[int]:
    """Where slabs begin: at the last document that ends within so many bytes of the slab's beginning."""
    cuts = [0]
    last = offsets.size - 1
    while cuts[-1] < last:
        fits = int(np.searchsorted(offsets, offsets[cuts[-1]] + SLAB, side="right")) - 1
        cuts.append(min(last, max(fits, cuts[-1] + 1)))
    return cuts


def _mapped(work: Callable[[Any], Any], slabs: list[Any], threads: int | None) -> Iterator[Any]:
    """What becomes of each slab, in order, with all cores at work: whoever takes them is one of the workers."""
    workers = min(len(slabs), threads or _cores())
    if workers < 2:
        yield from map(work, slabs)
        return
    pool = ThreadPoolExecutor(workers - 1)
    under_way: deque[_Task] = deque()
    try:
        for slab in slabs:
            under_way.append(_Task(slab, pool.submit(work, slab)))
            if len(under_way) > workers:  # whoever takes them may be slower than whoever makes them
                yield _first(work, under_way)
        while under_way:
            yield _first(work, under_way)
    finally:
        pool.shutdown(cancel_futures=True)


def _on_all_cores(work: Callable[[Any], None], slabs: list[Any], threads: int | None) -> None:
    """The work done on each slab, in any order: every core takes the next one, and none waits for another."""
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
                deque(left, maxlen=0)  # nobody begins another
            raise

    others = min(len(slabs), threads or _cores()) - 1
    with ThreadPoolExecutor(max(others, 1)) as pool:
        helping = [pool.submit(go_on) for _ in range(others)]
        go_on()
        for each in helping:
            each.result()


@dataclass
class _Task:
    """A slab, and what becomes of it."""

    slab: Any
    future: Future[Any]


def _first(work: Callable[[Any], Any], under_way: deque[_Task]) -> Any:
    """What became of the first slab; while another core is at it, slabs that nobody has begun are done here."""
    while not under_way[0].future.done():
        task = next((task for task in under_way if task.future.cancel()), None)
        if task is None:
            break
        task.future = Future()
        task.future.set_result(work(task.slab))
    return under_way.popleft().future.result()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
