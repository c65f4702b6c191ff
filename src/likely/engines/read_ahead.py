"""Batches read in a thread of their own while others are counted or scored."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from collections.abc import Iterable, Iterator

from likely.kernels.thread_count import limited_to, own_limit
from likely.sources.batch import Batch


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
