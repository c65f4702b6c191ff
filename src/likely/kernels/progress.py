"""Progress of long work: steps are announced where they are done, and shown where a listener is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Step(NamedTuple):
    """What is being done: its name, how many steps are done and, where it is known, of how many."""

    what: str
    done: int = 0
    total: int | None = None


Listener = Callable[[Step], None]
_listener: ContextVar[Listener | None] = ContextVar("likely_progress", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Announced steps of this thread are given to the listener, until the block ends."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def announce(what: str, done: int = 0, total: int | None = None) -> None:
    """Announce a step: `done` of `total` are finished; without a total it is a detail of the current one."""
    listener = _listener.get()
    if listener is not None:
        listener(Step(what, done, total))
