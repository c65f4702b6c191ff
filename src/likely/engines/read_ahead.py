"""Batches read in a thread of their own while others are counted or scored, several at a time."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from likely.kernels.parallel import workers
from likely.kernels.thread_count import limited_to, own_limit, threads
from likely.sources.batch import Batch
from likely.sources.interruption import ReaderStop

MOST_AT_ONCE = 8  # batches: each is in memory with its codes and numbers while it is worked on
Made = TypeVar("Made")


def in_turn(batches: Iterable[Batch], work: Callable[[Batch, bool], Made]) -> Generator[Made]:
    """Results of `work` on every batch, in order; several are worked on in parallel while the next ones are read.

    `work` gets the batch and whether it is the only one, which is worked on by the calling thread.
    """
    with contextlib.closing(ahead(batches)) as coming:
        first = list(itertools.islice(coming, 2))
        if len(first) < 2:
            yield from (work(batch, True) for batch in first)
            return
        at_once = min(threads(), MOST_AT_ONCE)
        pool = workers(at_once, "likely-batch")
        under_way: deque[Future[Made]] = deque()
        try:
            for batch in itertools.chain(first, coming):
                under_way.append(pool.submit(work, batch, False))
                if len(under_way) > at_once:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C nobody waits for batches that are under way


def ahead(batches: Iterable[Batch], depth: int = 1) -> Generator[Batch]:
    """The same batches, read ahead in a thread; never more than a few are in memory.

    However it is left, the batches are closed by the thread that reads them, and that thread has ended: a library that
    still reads in it when the interpreter exits would end the process with a fault of memory.
    """
    rows = iter(batches)
    reader = None
    try:
        first = list(itertools.islice(rows, 2))
        yield from first[:1]
        if len(first) < 2:
            return  # one batch in all: no thread is needed
        yield from first[1:]
        reader = _Reader(rows, depth)
        yield from reader.batches()
    finally:
        if reader is None:
            _close(rows)
        else:
            reader.end()


class _Reader:
    """A thread that reads batches into a queue."""

    def __init__(self, rows: Iterator[Batch], depth: int) -> None:
        self.ready: queue.Queue[Batch | BaseException | None] = queue.Queue(depth)
        self.left, self.stop = threading.Event(), ReaderStop()
        self.thread = threading.Thread(target=self._read, args=(rows, own_limit()), name="likely-read", daemon=True)
        self.thread.start()

    def batches(self) -> Iterator[Batch]:
        """What is read; waiting in short steps, or Ctrl-C would not be noticed where a library has its own handler of it."""
        while True:
            try:
                item = self.ready.get(timeout=0.1)
            except queue.Empty:
                continue
            if isinstance(item, BaseException):
                raise item
            if item is None:
                return
            yield item

    def end(self) -> None:
        """Interrupt the thread, and wait until it has ended."""
        self.left.set()
        with contextlib.suppress(queue.Empty):
            self.ready.get_nowait()  # it may wait for room
        self.stop.end(self.thread)

    def _put(self, item: Batch | BaseException | None) -> None:
        while not self.left.is_set():
            with contextlib.suppress(queue.Full):
                self.ready.put(item, timeout=0.1)
                return

    def _read(self, rows: Iterator[Batch], limit: int | None) -> None:
        try:
            with limited_to(limit), self.stop.governs_this_thread():
                try:
                    while not self.left.is_set() and (batch := next(rows, None)) is not None:
                        self._put(batch)
                        del batch
                finally:
                    _close(rows)
            self._put(None)
        except BaseException as error:
            self._put(error)


def _close(rows: Iterator[Batch]) -> None:
    close = getattr(rows, "close", None)
    if close is not None:
        close()
