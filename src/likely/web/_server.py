"""The server: loads the models, listens, logs, watches model files, and stops cleanly."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from likely.errors import LikelyWarning, UsageError
from likely.web._app import LOOPBACK, App, new_token
from likely.web._messages import Request, Response, encode, shown
from likely.web._online_learning import OnlineLearner
from likely.web._served_model import ServedModel, names_of
from likely.web._workbench import Workbench
from likely.web.connection import Connection, Limits, Shared

DRAIN_SECONDS = 1.0
WATCH_SECONDS = 1.0
ALL = ("0.0.0.0", "::", "")  # noqa: S104 - compared with, not bound to


@dataclass(frozen=True)
class ServeOptions:
    """How to serve.

    Attributes
    ----------
    host : str
        Address to listen on.
    port : int
        Port; 0 chooses a free one.
    writable : bool
        Whether the models may be changed by clients that have the token.
    token : str or None
        The token of changing calls; None makes a random one.
    allow_hosts : tuple of str
        Further names that clients may call the server by.
    quiet : bool
        No line for each request.
    limits : Limits
        Limits of size and time.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    writable: bool = False
    token: str | None = None
    allow_hosts: tuple[str, ...] = ()
    quiet: bool = False
    limits: Limits = field(default_factory=Limits)


class Log:
    """Lines of JSON on standard error, written together a few times a second."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self._lines: list[bytes] = []

    def event(self, event: str, **fields: Any) -> None:
        """Write a line about something other than a request, at once."""
        self._lines.append(encode({"time": _now(), "event": event} | fields))
        self.flush()

    def request(self, request: Request, response: Response, seconds: float) -> None:
        """Add the line of a request."""
        if not self.quiet:
            document = {
                "time": _now(), "event": "request", "method": request.method, "path": shown(request.path)[:200],
                "status": response.status, "ms": round(seconds * 1000, 3), "bytes": len(response.body),
            }  # fmt: skip
            self._lines.append(encode(document))
            if len(self._lines) > 2_000:
                self.flush()

    def flush(self) -> None:
        """Write what was added."""
        if self._lines:
            data, self._lines = b"\n".join(self._lines) + b"\n", []
            try:
                os.write(2, data)
            except OSError:
                self.quiet = True


def _now() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"


def serve(paths: Sequence[str], options: ServeOptions, ready: Callable[[str, str], None]) -> int:
    """Serve models until a signal ends it.

    Parameters
    ----------
    paths : sequence of str
        The model files; none opens the workbench.
    options : ServeOptions
        Address, token and limits.
    ready : callable
        Called with the address and the token once connections are accepted.

    Returns
    -------
    int
        The exit code: 130 after Ctrl-C, 143 after SIGTERM.
    """
    warnings.simplefilter("ignore", LikelyWarning)
    if options.writable and not paths:
        raise UsageError("--writable needs a model file: likely serve MODEL --writable")
    if not paths and options.host not in LOOPBACK:
        raise UsageError("the workbench reads any table that is sent to it: serve it on 127.0.0.1, or name a model file")
    models = {name: ServedModel.load(name, path) for name, path in names_of(paths).items()}
    learners = {name: OnlineLearner(served) for name, served in models.items()} if options.writable else {}
    hosts = frozenset({*LOOPBACK, options.host.lower(), *(name.lower() for name in options.allow_hosts)})
    app = App(
        models, learners, options.token or new_token(), hosts, None if paths else Workbench(), open_host=options.host in ALL
    )
    try:
        return asyncio.run(_run(app, options, ready))
    finally:
        app.close()


def _shared(app: App, options: ServeOptions, log: Log) -> Shared:
    """Common state of the connections: the application with counters and log."""

    def finished(request: Request, response: Response, seconds: float) -> None:
        app.metrics.finished(request.method, app.route_of(request.path), response.status, seconds)
        log.request(request, response, seconds)

    def handle(request: Request) -> Any:
        try:
            found = app.handle(request)
        except Exception as fault:
            _note_bug(log, fault)
            raise
        return found if isinstance(found, Response) else _logged(found, log)

    shared = Shared(handle, app.body_limit, finished, options.limits)
    app.connections = lambda: len(shared.open)
    return shared


async def _run(app: App, options: ServeOptions, ready: Callable[[str, str], None]) -> int:
    loop = asyncio.get_running_loop()
    log = Log(options.quiet)
    shared = _shared(app, options, log)
    server = await loop.create_server(lambda: Connection(shared), sock=_socket(options))
    host, port = server.sockets[0].getsockname()[:2]
    background = [loop.create_task(each) for each in (shared.sweeping(), _watching(app, log), _flushing(log))]
    stop: asyncio.Future[int] = loop.create_future()

    def end(code: int) -> None:
        if not stop.done():
            stop.set_result(code)

    for number, ending in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        loop.add_signal_handler(number, end, ending)
    gc.collect()
    gc.freeze()  # models and modules stay: the collector need not visit them while clients wait
    gc.set_threshold(50_000, 10, 10)
    named = "localhost" if host in LOOPBACK else host
    ready(f"http://{f'[{named}]' if ':' in named else named}:{port}/", app.token)
    code = await stop
    server.close()
    shared.draining = True
    last = loop.time() + DRAIN_SECONDS
    while loop.time() < last and any(each.busy for each in shared.open):
        await asyncio.sleep(0.02)
    for connection in list(shared.open):
        connection.close()
    for task in background:
        task.cancel()
    log.event("stopped", code=code)
    return code


def _socket(options: ServeOptions) -> socket.socket:
    """A listening socket with room for many clients at once."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((options.host, options.port))
    except OSError as fault:
        made.close()
        where = f"{options.host}:{options.port}"
        raise UsageError(f"cannot listen on {where}: {fault.strerror or fault}; choose another --port") from None
    made.listen(1024)
    return made


async def _logged(found: Any, log: Log) -> Response:
    try:
        response: Response = await found
    except Exception as fault:
        _note_bug(log, fault)
        raise
    return response


def _note_bug(log: Log, fault: Exception) -> None:
    """Log the traceback of a fault that is answered with a 500."""
    from likely.web._messages import of_exception

    if of_exception(fault).status == 500:
        log.event("bug", traceback=shown("".join(traceback.format_exception(fault))[-4_000:]))


async def _watching(app: App, log: Log) -> None:
    """Load model files again when they are replaced."""
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        for name, served in list(app.models.items()):
            if name in app.learners or not served.changed:
                continue
            try:
                await asyncio.get_running_loop().run_in_executor(None, app.reload, served)
                log.event("reloaded", model=name, version=served.state.version)
            except Exception as fault:  # the old model stays
                log.event("reload failed", model=name, message=shown(fault))


async def _flushing(log: Log) -> None:
    while True:
        await asyncio.sleep(0.2)
        log.flush()


__all__ = ["ServeOptions", "serve"]

