"""Long calls into a database that can be ended: by Ctrl-C, and by whoever no longer wants what a thread reads.

A signal is handled by the main thread between two lines of Python. A query that this thread runs itself would end first, so
another one runs it, and the main thread waits for it. Where a driver has a signal handler of its own, that is not installed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

PATIENCE = 10.0  # seconds that a call may go on after it was interrupted, at most
AGAIN = 0.05  # seconds until a call is interrupted again: it may not have begun when it was interrupted first
Made = TypeVar("Made")
Interrupt = Callable[[], Any]
_here = threading.local()


class AbandonedError(Exception):
    """Nobody wants what this thread reads any more."""


class ReaderStop:
    """Ends the calls of a reading thread from outside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # an interrupt never meets a connection that is closed already
        self._interrupt: Interrupt | None = None
        self._asked = False

    @contextlib.contextmanager
    def governs_this_thread(self) -> Iterator[None]:
        """A context in which the calls of this thread can be ended by `end`."""
        _here.stop = self
        try:
            yield
        finally:
            _here.stop = None

    def call(self, work: Callable[[], Made], interrupt: Interrupt) -> Made:
        """The result of `work`, unless it is ended."""
        with self._lock:
            if self._asked:
                raise AbandonedError
            self._interrupt = interrupt
        try:
            return work()
        finally:
            with self._lock:
                self._interrupt = None

    def end(self, thread: threading.Thread) -> None:
        """Interrupt the calls of the thread, and wait until it has ended."""
        _end(thread, self._ask)

    def _ask(self) -> None:
        with self._lock:
            self._asked = True
            if self._interrupt is not None:
                self._interrupt()


def interruptible(work: Callable[[], Made], interrupt: Interrupt) -> Made:
    """The result of `work`, a call into a database that `interrupt` ends."""
    stop: ReaderStop | None = getattr(_here, "stop", None)
    if stop is not None:
        return stop.call(work, interrupt)
    if threading.current_thread() is not threading.main_thread():
        return work()  # signals do not come here
    found: list[Any] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # raised again by the thread that waits
            faults.append(error)

    thread = threading.Thread(target=run, name="likely-query", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(AGAIN)  # a handler that another library has installed may leave a wait without end as it is
    except BaseException:  # Ctrl-C
        _end(thread, interrupt)
        raise
    if faults:
        try:
            raise faults[0]
        finally:
            faults.clear()  # a traceback refers to it, and it to the traceback: what they hold would stay open
    made: Made = found[0]
    return made


def each(items: Any, interrupt: Interrupt) -> Iterator[Any]:
    """What an iterator gives, each item by an interruptible call."""
    end = object()
    while (item := interruptible(lambda: next(items, end), interrupt)) is not end:
        yield item


def _end(thread: threading.Thread, interrupt: Interrupt) -> None:
    until = time.monotonic() + PATIENCE
    while thread.is_alive() and time.monotonic() < until:
        with contextlib.suppress(Exception):  # what is to be interrupted may be over
            interrupt()
        thread.join(AGAIN)
