"""Progress of long work: functions announce their steps, and a listener, if there is one, shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Step(NamedTuple):
    """A step of long work: its name, the number of steps done and, if known, their total."""

    what: str
    done: int = 0
    total: int | None = None


Listener = Callable[[Step], None]
_listener: ContextVar[Listener | None] = ContextVar("likely_progress", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Context manager in which the announced steps of this thread are passed to the listener."""
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
