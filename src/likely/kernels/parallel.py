"""Thread pool over slabs of rows, locks that are safe across fork, and linear algebra on one thread."""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator
from functools import cache
from typing import Any, Generic, Self, TypeVar, overload

from likely.kernels.thread_count import inherit, own_limit, threads

Lock = TypeVar("Lock")
Made = TypeVar("Made")

# Slabs have a fixed number of cells, whatever the number of cores: the same sums are made in the same order everywhere.
SLAB_CELLS = 1 << 20

PORTIONS = 16  # of many small parts, for each thread: handing over one part takes as long as work on a short column
FEW_ROWS = 5_000  # of a column: faster processed here than handed to a thread
_here = threading.local()  # marks threads that must not start others


def pool() -> ThreadPoolExecutor:
    """The threads that count and score, as many as the one setting allows; kernels release the interpreter lock."""
    return _pool(threads(), own_limit())


@cache
def _pool(most: int, limit: int | None) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(most, "likely", _inheriting, (limit,))  # none of them ever waits for the others


def workers(most: int, name: str = "likely") -> ThreadPoolExecutor:
    """A pool of `most` threads for one piece of work, which inherit the thread limit of the thread that starts them."""
    return ThreadPoolExecutor(max(most, 1), name, _inheriting, (own_limit(),))


def _inheriting(limit: int | None) -> None:
    inherit(limit)
    one_of_several()


_bootstrap: Any = getattr(importlib, "_bootstrap", None)
_guarded: list[tuple[int, Any]] = []  # by rank
_held: list[Any] = []
LAZY = {"likely", "numba", "llvmlite", "pyarrow", "duckdb", "numpy", "scipy", "sklearn", "pandas", "polars", "narwhals"}
PATIENCE = 300.0  # seconds that a fork waits for a lock, at most


def held_at_fork(lock: Lock, rank: int) -> Lock:
    """Register a lock to be held during fork, so that the child inherits it free and its data consistent.

    A thread that holds one of these may wait only for others of higher rank.
    """
    if all(lock is not known for _, known in _guarded):
        _guarded.append((rank, lock))
        _guarded.sort(key=lambda each: each[0])
    return lock


def _acquire_locks() -> None:
    for _, lock in _guarded:
        plain = getattr(lock, "_lock", lock)  # Numba's lock has none that gives up
        if plain.acquire(timeout=PATIENCE):
            _held.append(plain)
    until = time.monotonic() + PATIENCE
    while _importing() and time.monotonic() < until:
        time.sleep(0.001)


def _importing() -> bool:
    """Whether another thread is importing a module that Likely needs: a child process would wait for it forever.

    Python has a lock for each module being imported, and does not free it in a child process.
    """
    locks = list(getattr(_bootstrap, "_module_locks", {}).items())
    here = threading.get_ident()
    return any(
        name.partition(".")[0] in LAZY and (lock := kept()) is not None and getattr(lock, "owner", None) not in (None, here)
        for name, kept in locks
    )


def _let_go() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    _pool.cache_clear()  # a child process inherits the pool but none of its threads
    _let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire_locks, after_in_parent=_let_go, after_in_child=_in_child)


class cached_property(Generic[Made]):  # noqa: N801 - named like the one of functools, which it stands for
    """A property that is computed at first access and cached.

    Until Python 3.12 the one of functools holds one lock for all instances while it computes: threads wait for each other,
    and a process forked meanwhile waits forever. Here two threads may compute the same value, and both get the first.
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make, self._name = make, make.__name__
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Made: ...

    def __get__(self, instance: object | None, owner: type) -> Self | Made:
        if instance is None:
            return self
        kept: dict[str, Made] = instance.__dict__
        return kept[self._name] if self._name in kept else kept.setdefault(self._name, self._make(instance))

    def copy_value(self, one: object, other: object) -> None:
        """Copy the value of a cached property to another object, for which it is known to be the same."""
        other.__dict__[self._name] = self.__get__(one, type(one))


class _BlasThreads(ContextDecorator):
    """Context with one BLAS thread, counted: the first to enter sets it, the last to leave restores the setting.

    BLAS threads spin while they wait for each other: beside threads of this package, or another busy process, they cost many
    times the work itself.
    """

    def __init__(self) -> None:
        self._lock = held_at_fork(threading.Lock(), 6)
        self._inside = 0
        self._libraries: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._libraries = [(each, each.num_threads) for each in _blas()]
                for library, _ in self._libraries:
                    library.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for library, threads in self._libraries:
                    library.set_num_threads(threads)


@cache
def _blas() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    return [each for each in ThreadpoolController().lib_controllers if each.user_api == "blas"]


_one_blas_thread = _BlasThreads()


def one_blas_thread() -> _BlasThreads:
    """A context, or a decorator of a function, in which linear algebra uses one thread."""
    return _one_blas_thread


def slabs(rows: int, width: int) -> list[tuple[int, int]]:
    """Ranges of rows of a fixed number of cells."""
    step = max(256, SLAB_CELLS // max(width, 1))
    return [(a, min(a + step, rows)) for a in range(0, rows, step)]


def in_parallel(work: Callable[..., Any], parts: Sequence[Any]) -> list[Any]:
    """The work done on every part, in order; one part, or the parts of one thing among several, without more threads."""
    alone = len(parts) < 2 or getattr(_here, "one_of_several", False) or threads() == 1
    if alone:
        return [work(part) for part in parts]
    some = max(1, len(parts) // (PORTIONS * threads()))
    if some == 1:
        return list(pool().map(work, parts))
    portions = [parts[a : a + some] for a in range(0, len(parts), some)]
    return [one for made in pool().map(lambda each: [work(part) for part in each], portions) for one in made]


def side_by_side(work: Callable[[Any], Any], parts: Sequence[Any], rows: int) -> list[Any]:
    """Results of `work` on every part, in order; with few rows they are computed here, faster than on the pool."""
    return in_parallel(work, parts) if rows >= FEW_ROWS else [work(part) for part in parts]


def meanwhile(work: Callable[[], Made], rows: int) -> Callable[[], Made]:
    """Begin some work on the pool, and return a function that waits for its result; with few rows it is done when asked for."""
    if rows < FEW_ROWS or getattr(_here, "one_of_several", False) or threads() == 1:
        return cache(work)
    return pool().submit(work).result


def one_of_several() -> None:
    """Mark this thread as a worker: `in_parallel` then starts no other threads from it."""
    _here.one_of_several = True
