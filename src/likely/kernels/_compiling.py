"""Compiling a function with Numba, and a compile cache that is never fatal.

Numba keeps compiled code in files and trusts them: an empty or truncated file, a folder without write permission or a
full disk ends the program. Here any failure of the cache means "not cached": the function is compiled in memory, and one
message is printed.

A cached file is code that will be run (Numba reads it with pickle). So each file begins with a digest of the rest, which
is checked before anything is unpacked, and neither a folder nor a file is used that somebody else could have written:
its owner must be this user, the administrator, or the owner of the source code, and it must not be writable by everybody.
The folder is the one that Numba chooses: NUMBA_CACHE_DIR, else beside the source, else in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import stat
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite.binding.ffi
import numba
from numba.core import config, event, serialize
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserWideCacheLocator
from numba.core.compiler_lock import global_compiler_lock

from likely.kernels.parallel import held_at_fork

Report = Callable[[str], None]
_reported: set[str] = set()

# A child process that inherits half a compilation could never compile.
held_at_fork(global_compiler_lock, 4)
held_at_fork(llvmlite.binding.ffi.lib._lock, 5)

SECONDS_PER_BYTE = 6e-4  # of bytecode (measured: 4e-4 to 9e-4)

# Sums in any order, and a product with a sum in one step; NaN and infinity are still respected.
REORDERED = {"reassoc", "contract"}


def compiled(
    function: Callable[..., Any], report: Report, *, reordered: bool = False, variant: str = ""
) -> Callable[..., Any]:
    """Numba's dispatcher for a function, with the compile cache where that can be used.

    Parameters
    ----------
    function : callable
        The function to compile, once for each set of argument types.
    report : callable
        Receives messages for the user: what is being compiled, and why the cache is not used.
    reordered : bool
        Whether sums may be reordered and products fused with sums.
    variant : str
        Name of the way in which the operations called by the function are compiled; cached code is kept apart by it.
    """
    _postpone_scipy()
    fastmath = REORDERED if reordered else False
    # Nothing calls a kernel through a pointer, and that entry point would take 5 % of the time of compiling.
    made: Any = numba.njit(nogil=True, error_model="numpy", fastmath=fastmath, no_cfunc_wrapper=True)(function)
    if not hasattr(made, "py_func"):  # NUMBA_DISABLE_JIT
        return function
    try:
        made._cache = _Cache(function, report, variant)
    except Exception as error:  # a broken cache must not prevent compiling
        _report_once("unusable", error, report)
    event.register("numba:compile", _CompileListener(function, made, report))
    result: Callable[..., Any] = made
    return result


def _postpone_scipy() -> None:
    """Make Numba search for a BLAS only when linear algebra is compiled: no kernel uses one.

    Numba imports `scipy.linalg` to see whether it is there, which takes as long as all else that a compiled loop needs.
    """
    if "numba.np.arraymath" in sys.modules or importlib.util.find_spec("scipy") is None:
        return
    from numba.np import linalg

    check = getattr(linalg, "ensure_blas", None)
    if check is None:  # another version of Numba, which looks in another place
        return
    linalg.ensure_blas = _skip_blas_check
    try:
        from numba.np import arraymath

        arraymath.ensure_blas = check
    finally:
        linalg.ensure_blas = check


def _skip_blas_check() -> None:
    """Placeholder for a check that is made again where it matters."""


def is_cached(made: Any) -> bool:
    """Whether the compile cache has code of this function, for any types."""
    cache = getattr(made, "_cache", None)
    return isinstance(cache, _Cache) and cache.has_any()


def _report_once(kind: str, error: Exception, report: Report) -> None:
    if kind in _reported:
        return
    _reported.add(kind)
    reason = str(error) or type(error).__name__
    if kind == "damaged":
        report(f"a file of the compile cache is damaged ({reason}): compiling again")
    else:
        report(f"the compile cache cannot be used ({reason}): compiling without it; NUMBA_CACHE_DIR names another folder")


def estimated_seconds(function: Callable[..., Any]) -> float:
    """Estimated seconds for compiling, from the size of the bytecode of the function and of those that it calls."""
    known = getattr(function, "__globals__", {})
    called = (known.get(name) for name in function.__code__.co_names)
    codes = [function.__code__, *(each.__code__ for each in called if isinstance(each, FunctionType))]
    return SECONDS_PER_BYTE * sum(len(code.co_code) for code in codes)


class _CompileListener(event.Listener):  # type: ignore[misc]
    """Report each real compilation; code from the cache is loaded without a message."""

    def __init__(self, function: Callable[..., Any], made: Any, report: Report) -> None:
        self._function, self._made, self._report = function, made, report

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"].py_func is self._function:
            kept = isinstance(self._made._cache, _Cache) and "unusable" not in _reported
            how_long = f"about {max(estimated_seconds(self._function), 0.1):.1f} s"
            self._report(f"compiling {self._function.__name__}, {how_long} ({'once on this machine' if kept else 'not kept'})")

    def on_end(self, event: Any) -> None:
        """Do nothing at the end of a compilation."""


class _HomeLocator(UserWideCacheLocator):  # type: ignore[misc]
    """The user's cache folder, if there is a home: without one, Numba would make a folder `~` in the working directory."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        return super().from_function(py_func, py_file) if os.path.isabs(os.path.expanduser("~")) else None


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [  # noqa: RUF012 - as Numba declares it
        _HomeLocator if each is UserWideCacheLocator else each for each in CompileResultCacheImpl._locator_classes
    ]


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, in which any failure to load or save counts as "not cached"."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any], report: Report, variant: str) -> None:
        super().__init__(function)
        self._report = report
        source = Path(function.__code__.co_filename)
        stamp = (self._impl.locator.get_source_stamp(), *(_digest(each) for each in sorted(source.parent.glob("_*.py"))))
        folder, base = Path(self.cache_path), self._impl.filename_base
        self._cache_file = _Files(folder, base, stamp, owners=_owners(source), variant=variant)

    def has_any(self) -> bool:
        """Whether there is a file of this function; its content is checked when it is loaded."""
        try:
            return any(Path(self.cache_path).glob(f"{self._impl.filename_base}-*.nbc"))
        except OSError:
            return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except _DamagedError as error:
            _report_once("damaged", error, self._report)
        except Exception as error:
            _report_once("unusable", error, self._report)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _report_once("unusable", error, self._report)


class _DamagedError(Exception):
    """A file of the cache does not match its digest."""


class _Files:
    """One file for each set of argument types: a digest, then the compiled code and the key of what it was made from.

    Numba's own files share an index that two processes can overwrite for each other, and its key ignores whether bounds
    are checked.
    """

    def __init__(self, folder: Path, base: str, stamp: tuple[bytes, ...], *, owners: set[int], variant: str) -> None:
        self._folder, self._base, self._owners = folder, base, owners
        self._made_of = (numba.__version__, stamp, str(config.OPT), str(config.BOUNDSCHECK), variant)
        self._check(folder.stat(), folder)

    def load(self, key: Any) -> Any:
        """The data saved under this key; None if there are none, or they were made from other source code."""
        path = self._path(key)
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return None
        with file:
            self._check(os.fstat(file.fileno()), path)
            content = file.read()
        size = hashlib.sha256().digest_size
        if hashlib.sha256(content[size:]).digest() != content[:size]:
            raise _DamagedError(str(path))
        made_of, known, data = serialize.loads(content[size:])
        return data if (made_of, known) == (self._made_of, key) else None

    def save(self, key: Any, data: Any) -> None:
        """Write a temporary file, then rename it."""
        payload = serialize.dumps((self._made_of, key, data))
        path = self._path(key)
        temporary = path.with_name(f"{path.name}.tmp.{uuid.uuid4().hex[:16]}")
        try:
            temporary.write_bytes(hashlib.sha256(payload).digest() + payload)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise

    def flush(self) -> None:
        """Remove all files of this function."""
        for path in self._folder.glob(f"{self._base}-*.nbc"):
            path.unlink()

    def _path(self, key: Any) -> Path:
        name = hashlib.sha256(repr((key, *self._made_of[2:])).encode()).hexdigest()[:16]
        return self._folder / f"{self._base}-{name}.nbc"

    def _check(self, found: os.stat_result, path: Path) -> None:
        if not hasattr(os, "geteuid"):
            return
        if found.st_uid not in self._owners:
            raise PermissionError(f"{path} belongs to another user, who could have written any code there")
        if found.st_mode & stat.S_IWOTH:
            raise PermissionError(f"{path} can be written by everybody: chmod o-w {path}")


def _owners(source: Path) -> set[int]:
    return {os.geteuid(), 0, source.stat().st_uid} if hasattr(os, "geteuid") else set()


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()
