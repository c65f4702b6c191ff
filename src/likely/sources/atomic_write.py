"""Atomic file writes: a file is replaced completely or not at all.

The temporary file is hidden (.NAME.RANDOM.saving) and locked as long as its process lives; the file of a killed process is
removed by the next one that writes the same file. A second hidden file (.NAME.lock) is the lock of NAME: it is held only while
temporary files are created and renamed, and removed with the lock.

Never: what the files hold.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from likely.errors import FULL, ConflictError, SaveError

SAVING, LOCK = ".saving", ".lock"
LOCK_TIMEOUT = 30.0  # seconds to wait for a lock that is normally held for milliseconds
POLL_SECONDS = 0.01
LONGEST_NAME = 100  # bytes of the file's own name in a hidden one: a name has 255 at most
BUSY = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)  # errors of flock when another process has the lock


def place(path: str | os.PathLike[str]) -> tuple[int, int, str]:
    """Identity of a path: device and inode of its folder, and the name in it.

    Unlike the inode of the file itself, it stays the same when the file is replaced.
    """
    real = Path(os.path.realpath(path))
    folder = os.stat(real.parent)
    return folder.st_dev, folder.st_ino, real.name


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], check: Callable[[Path], None] | None = None) -> Iterator[str]:
    """A temporary file beside `path` (links resolved) that replaces it at the end, or is removed.

    `check` is called with the path under its lock, before anything is replaced, and may raise.
    """
    target = Path(os.path.realpath(path))
    with _writing(path):
        if target.exists() and not target.is_file():
            raise OSError(errno.EINVAL, "it is not a regular file")
    # named before it is created: a signal that comes in between finds a name to remove
    temporary, descriptor = str(target.with_name(f"{_hidden(target)}{secrets.token_hex(8)}{SAVING}")), None
    try:
        with _writing(path):
            descriptor = _create(target, temporary)
        with _full_disk(path):
            yield temporary
        with _writing(path):
            os.fsync(descriptor)
            os.chmod(temporary, _mode(target))
            with lock(target):
                if check:
                    check(target)
                os.replace(temporary, target)
            _flush_folder(target.parent)
    except BaseException:  # Ctrl-C too: the old file stays
        with contextlib.suppress(OSError):  # it is not there yet, or no longer
            os.unlink(temporary)
        raise
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except SaveError:
        raise
    except OSError as error:
        raise failed(path, error) from None


@contextlib.contextmanager
def _full_disk(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # the caller may also read other files: their errors are not those of this one
        if error.errno in FULL and not isinstance(error, SaveError):
            raise failed(path, error) from None
        raise


def failed(path: str | os.PathLike[str], error: OSError) -> SaveError:
    """Error for a file that could not be written, with the remedy."""
    return SaveError(
        f"{os.fspath(path)!r} cannot be written: {error.strerror or error}",
        remedy="choose another folder: one that exists, is writable and has space",
    )


def _create(target: Path, temporary: str) -> int:
    """Create the temporary file, open and locked."""
    with lock(target):  # until it is locked itself, it looks like one of a killed process
        _sweep(target)
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        _try_lock(descriptor)
    return descriptor


@contextlib.contextmanager
def lock(target: Path) -> Iterator[None]:
    """Exclusive lock of a file, where the file system has locks; elsewhere the last writer wins."""
    path = target.with_name(_hidden(target)[:-1] + LOCK)
    descriptor = None
    try:
        try:
            descriptor = _wait_for_lock(target, path)
            yield
        finally:
            _remove_lock(path, descriptor)
    finally:  # once more: a signal may have stopped it
        _remove_lock(path, descriptor)
        if descriptor is not None:
            os.close(descriptor)


def _wait_for_lock(target: Path, path: Path) -> int:
    until = time.monotonic() + LOCK_TIMEOUT
    while (descriptor := _acquired(path)) is None:
        if time.monotonic() > until:
            raise ConflictError(
                f"{str(target)!r} is locked by another process for {LOCK_TIMEOUT:g} seconds already: nothing was written",
                remedy="run again when that process has ended",
            )
        time.sleep(POLL_SECONDS)
    return descriptor


def _remove_lock(path: Path, descriptor: int | None) -> None:
    """Remove the lock file before the lock is released: a waiting process sees that it is no longer the lock."""
    with contextlib.suppress(OSError):  # in a folder like /tmp, only its owner may remove it
        if descriptor is not None and _is_same(path, descriptor):
            os.unlink(path)


def _is_same(path: Path, descriptor: int) -> bool:
    return os.path.samestat(os.fstat(descriptor), os.stat(path))


def _acquired(path: Path) -> int | None:
    """The lock file, locked; None if another process has it, or removed it meanwhile."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags | os.O_CREAT, 0o666)
    except PermissionError as denied:
        try:  # in a folder like /tmp, one of another user may be opened, though not created
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            raise denied from None
    if _try_lock(descriptor):
        with contextlib.suppress(FileNotFoundError):
            if _is_same(path, descriptor):
                return descriptor
    os.close(descriptor)
    return None


def _try_lock(descriptor: int) -> bool:
    """Try to lock an open file; true also where this system has no locks. A process that dies releases it."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return True
    except OSError as error:
        return error.errno not in BUSY
    return True


def _hidden(target: Path) -> str:
    name = os.fsencode(target.name)[:LONGEST_NAME].decode("utf-8", "ignore")
    return f".{name}."


def _sweep(target: Path) -> None:
    """Remove temporary files of killed processes: they are not locked."""
    orphaned = re.compile(rf"{re.escape(_hidden(target))}[a-z0-9_]{{8,16}}{re.escape(SAVING)}").fullmatch
    for name in filter(orphaned, os.listdir(target.parent)):
        left = target.with_name(name)
        with contextlib.suppress(OSError), left.open("rb") as file:
            if _try_lock(file.fileno()):
                left.unlink()


def _mode(target: Path) -> int:
    """Permissions of the file that is replaced, or those of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _flush_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system can flush a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
