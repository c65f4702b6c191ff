"""Uploaded tables: kept in a temporary folder under names of the server's choice, read only by processes with limits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from likely.web._messages import HttpError, Request, Response
from likely.web._served_model import ServedModel

ENDINGS = (
    ".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".arrow", ".feather", ".xlsx", ".ods",
    ".csv.gz", ".tsv.gz", ".jsonl.gz",
)  # fmt: skip
MEMORY = 4 << 30
SECONDS = 120
UNPACKED = "256MB"
THREADS = dict.fromkeys(("LIKELY_THREADS", "OMP_NUM_THREADS", "ARROW_NUM_THREADS"), "2")
OnProgress = Callable[[dict[str, Any]], None]
CHILDREN = 2  # processes at one time
WAITING = 16
STATUS = {2: 422, 3: 422, 4: 415, 6: 413}


class Children:
    """The processes that read uploads: few at a time."""

    def __init__(self) -> None:
        self._turn: asyncio.Semaphore | None = None
        self._waiting = 0

    async def run(self, arguments: Sequence[str], seconds: int = SECONDS, on_progress: OnProgress | None = None) -> bytes:
        """Run a command of Likely with limits; returns what it prints. A failure is an HttpError.

        `on_progress` is called with its progress as it is announced.
        """
        if self._waiting >= WAITING:
            raise HttpError(503, "too many files are being read: try again later")
        self._turn = self._turn or asyncio.Semaphore(CHILDREN)
        self._waiting += 1
        try:
            async with self._turn:
                return await self._run(arguments, seconds, on_progress)
        finally:
            self._waiting -= 1

    async def _run(self, arguments: Sequence[str], seconds: int, on_progress: OnProgress | None) -> bytes:
        words = [sys.executable, "-m", "likely.web._child", str(MEMORY), str(seconds), *arguments]
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            start_new_session=True, env={**os.environ, **THREADS, "LIKELY_PROGRESS": "json" if on_progress else ""},
        )  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            reading = asyncio.gather(process.stdout.read(), _messages(process.stderr, on_progress), process.wait())
            out, err, _ = await asyncio.wait_for(reading, 2 * seconds)
        except TimeoutError:
            raise HttpError(413, f"reading the file took more than {2 * seconds} seconds") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise failure(process.returncode, err)
        return out


async def _messages(stream: asyncio.StreamReader, on_progress: OnProgress | None) -> str:
    """The messages of a process on standard error; its progress is passed on instead."""
    kept, rest = [], b""
    while piece := await stream.read(1 << 16):
        *lines, rest = (rest + piece).split(b"\n")
        kept += [line for line in lines if on_progress is None or not _passed_on(line, on_progress)]
    return b"\n".join([*kept, rest]).decode("utf-8", "replace")


def _passed_on(line: bytes, on_progress: OnProgress) -> bool:
    if not line.startswith(b'{"progress": '):
        return False
    with contextlib.suppress(ValueError):
        on_progress(json.loads(line)["progress"])
    return True


def failure(code: int, text: str) -> HttpError:
    """The error of a process that failed: its own message, or that it was ended."""
    if code < 0 or code > 128:
        large = code in (-9, -24, -25)  # killed for memory, time or file size
        if large:
            return HttpError(413, "the file needs more time or memory than is allowed")
        return HttpError(422, "the file ends its reader: it is damaged")
    found: dict[str, Any] = {}
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found = json.loads(line)["error"]
            except (ValueError, KeyError, TypeError):
                continue
    start = text.find('{\n')
    if not found and start >= 0:
        try:
            found = json.loads(text[start:])["error"]
        except (ValueError, KeyError, TypeError):
            found = {}
    lines = [line.removeprefix("error: ") for line in text.splitlines() if line.startswith("error: ")]
    message = found.get("message") or (lines[-1] if lines else "the file cannot be read")
    memory = "out of memory" in message or "bad_alloc" in text or "MemoryError" in text or "unpack" in message
    return HttpError(413 if memory else STATUS.get(code, 422), message, **found.get("details", {}))


CHILD = Children()


def ending_of(name: str) -> str:
    """The ending of an uploaded file's name, if tables may have it; the name itself is never used."""
    lower = name.lower()
    found = [ending for ending in ENDINGS if lower.endswith(ending)]
    if not found:
        raise HttpError(415, f"a table ends in one of {', '.join(ENDINGS)}", name=name[-100:])
    return max(found, key=len)


def stored(folder: Path, request: Request) -> Path:
    """The body of a request as a file."""
    ending = ending_of(request.query.get("name", ""))
    if not request.body:
        raise HttpError(422, "the file is empty")
    handle, path = tempfile.mkstemp(ending, "table-", folder)
    with os.fdopen(handle, "wb") as file:
        file.write(request.body)
    return Path(path)


async def score_file(served: ServedModel, request: Request) -> Response:
    """An uploaded table with label and probabilities, as CSV."""
    with tempfile.TemporaryDirectory(prefix="likely-score-") as name:
        folder = Path(name)
        data, output, model = stored(folder, request), folder / "scored.csv", folder / "model.likely"
        state = served.state
        await asyncio.get_running_loop().run_in_executor(None, state.model.save, model)
        words = ["predict", str(model), str(data), "--probabilities", "--absent", "missing", "-o", str(output), "--json"]
        try:
            await CHILD.run([*words, "--max-unpacked", UNPACKED])
        except HttpError as fault:
            raise without_paths(fault, data) from None
        return Response(200, output.read_bytes(), "text/csv; charset=utf-8", {"X-Model-Version": state.version})


def without_paths(fault: HttpError, *paths: Path) -> HttpError:
    """The same error with no path of this machine in it."""
    for path in paths:
        fault.message = fault.message.replace(repr(str(path)), "the file").replace(str(path), "the file")
    return fault
