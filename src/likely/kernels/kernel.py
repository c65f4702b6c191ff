"""Kernel: a loop over plain arrays, interpreted while the work is small and compiled by Numba once it is large.

A kernel is an ordinary Python function of arrays, written in the part of Python that Numba compiles. There is one text and
one formula for both ways of running it. Which one is used depends on the size of the first argument:

- a call with fewer than `Kernel.tiny` elements is always interpreted: it is faster than a dispatch by argument types;
- any other call is interpreted until the kernel has been given `LARGE` elements in all in this process, then compiled. Up to
  that point interpreting costs less than importing the compiler, and a small job never imports Numba;
- a caller that has an array version as well asks `worth_compiling`: until array versions have taken about as long as the
  compiler takes for the first use on a machine, nothing is compiled or loaded for it;
- `Kernel.prepare()` compiles at once, for a caller that knows how much work follows; `Kernel.fast()` runs the compiled
  function whatever the size;
- with `NUMBA_DISABLE_JIT=1` the "compiled" function is the interpreted one.

Compiled code is kept in Numba's cache folder (see `compiling.py`), so each kernel is compiled once on a machine.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from likely.kernels.parallel import held_at_fork

# Below this many elements in all, interpreting costs less than importing the compiler (measured: about 0.4 s).
LARGE = 100_000
# A call this small is faster interpreted than dispatched with a signature that may not be compiled yet.
TINY = 512

# Seconds that array versions may take, in one process, beyond what compiled loops would: loading the compiler and compiling
# several loops takes longer on first use; and where it is loaded, a single loop does.
PATIENCE, PATIENCE_LOADED = 1.5, 0.3

# One lock for all kernels, held while the compiler is imported: a process that forks meanwhile waits for it.
COMPILE_LOCK = held_at_fork(threading.RLock(), 3)


def announce(message: str) -> None:
    """Print a message about compiling to stderr, as the caller has to wait for it."""
    print(f"likely: {message}", file=sys.stderr, flush=True)


class Kernel:
    """Decorator for a function of arrays: it is compiled once enough elements have passed through it."""

    tiny = TINY
    reordered = False  # whether the compiler may sum in another order, several numbers at a time
    _compiler_loaded = False
    variant = ""  # part of the key of the compile cache, where one text can be compiled in several ways

    def __init__(self, function: Callable[..., Any]) -> None:
        self.plain = function
        self.__doc__ = function.__doc__
        self._elements = 0
        self._compiled: Callable[..., Any] | None = None
        self._used = False

    def __call__(self, first: Any, *rest: Any) -> Any:
        """Run on arrays; the size of the first one decides whether to interpret or to compile."""
        size = first.size
        if size < self.tiny or (self._compiled is None and self._elements + size < LARGE):
            self._elements += size
            with np.errstate(all="ignore"):
                return self.plain(first, *rest)
        self._used = True
        return self._compiled_function()(first, *rest)

    def prepare(self) -> None:
        """Compile now: more work follows than the size of the first call suggests."""
        self._used = True
        self._compiled_function()

    @property
    def at_hand(self) -> bool:
        """Whether compiled code can be run at once: this kernel has been used, or is cached and the compiler is loaded."""
        if self._used or not Kernel._compiler_loaded:
            return self._used
        from likely.kernels._compiling import is_cached

        self._used = is_cached(self._compiled_function())
        return self._used

    def fast(self, *arrays: Any) -> Any:
        """Run the compiled function whatever the size of the arrays: for many small calls of the same types."""
        self._used = True
        return (self._compiled or self._compiled_function())(*arrays)

    def _compiled_function(self) -> Callable[..., Any]:
        if self._compiled is None:
            with COMPILE_LOCK:
                if self._compiled is None:
                    self._compiled = self._compile()
                    Kernel._compiler_loaded = True
        return self._compiled

    def _compile(self) -> Callable[..., Any]:
        from likely.kernels._compiling import compiled

        def report(message: str) -> None:
            announce(message)  # looked up at the time of the call, so that it can be replaced

        return compiled(self.plain, report, reordered=self.reordered, variant=self.variant)


_waited = [0.0]  # seconds that array versions took, about


def worth_compiling(seconds: float, *kernels: Kernel) -> bool:
    """Whether to use compiled loops rather than their array version, which takes about so many seconds longer.

    They are used if they are loaded already, or are in the compile cache of a compiler that is loaded, or once array versions
    would exceed `PATIENCE` in this process.
    """
    patience = PATIENCE_LOADED if Kernel._compiler_loaded else PATIENCE
    if all(each.at_hand for each in kernels) or _waited[0] + seconds > patience:
        return True
    _waited[0] += seconds
    return False


class ReorderedKernel(Kernel):
    """A kernel whose sums may be reordered: several numbers at a time, products and sums fused."""

    reordered = True


_PIECES: list[Callable[..., Any]] = []


def piece(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that composed kernels call: compiled together with them, plain Python where they are interpreted."""
    _PIECES.append(function)
    _register_pieces.cache_clear()
    return function


@functools.cache
def _register_pieces() -> None:
    from numba.extending import register_jitable

    while _PIECES:
        register_jitable(_PIECES.pop())


class ComposedKernel(Kernel):
    """A kernel that calls pieces from its own file, or from one in the same folder whose name begins with `_`."""

    def _compile(self) -> Callable[..., Any]:
        _register_pieces()
        return super()._compile()
