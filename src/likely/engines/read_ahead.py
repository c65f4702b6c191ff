"""Batches read in a thread of their own while others are counted or scored, several at a time."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from likely.kernels.parallel import workers
from likely.kernels.thread_count import limited_to, own_limit, threads
from likely.sources.batch import Batch

MOST_AT_ONCE = 8  # batches: each is in memory with its codes and numbers while it is worked on
Made = TypeVar("Made")


def in_turn(batches: Iterable[Batch], work: Callable[[Batch, bool], Made]) -> Iterator[Made]:
    """Results of `work` on every batch, in order; several are worked on in parallel while the next ones are read.

    `work` gets the batch and whether it is the only one, which is worked on by the calling thread.
    """
    coming = ahead(batches)
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


def ahead(batches: Iterable[Batch], depth: int = 1) -> Iterator[Batch]:
    """The same batches, read ahead in a thread; never more than a few are in memory."""
    ready: queue.Queue[Batch | BaseException | None] = queue.Queue(depth)
    left = threading.Event()

    def put(item: Batch | BaseException | None) -> None:
        while not left.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return

    def read(limit: int | None) -> None:
        try:
            with limited_to(limit):
                for batch in batches:
                    put(batch)
                    if left.is_set():
                        return
            put(None)
        except BaseException as error:
            put(error)

    first = list(itertools.islice(batches := iter(batches), 2))
    yield from first[:1]
    if len(first) < 2:
        return  # one batch in all: no thread is needed
    yield from first[1:]
    threading.Thread(target=read, args=(own_limit(),), name="likely-read", daemon=True).start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        left.set()
