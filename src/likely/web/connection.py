"""HTTP/1.1 over asyncio: a strict parser with limits of size and time.

Written here because the limits are the point: slow headers and slow bodies are cut off, a body is refused while it arrives,
and a row is answered without a task of its own. Only what the service needs is understood: one request after the other on a
connection, bodies of known length or in chunks, no upgrades, no compression, no trailers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from likely.web._messages import JSON, REASONS, HttpError, Request, Response, error, of_exception

TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
LINES = b"X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
USUAL = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" + LINES + b"\r\n%b"
RECEIVED = 1 << 18  # bytes that are received at once; asyncio's other protocol asks the system for as many at every call
LONGEST_KEPT = 2_048  # bytes of a head that is kept parsed: clients repeat theirs
Handler = Callable[[Request], "Response | Awaitable[Response]"]


@dataclass(frozen=True)
class Limits:
    """Limits of every connection.

    Attributes
    ----------
    header_bytes, body_bytes : int
        Largest head and body of a request.
    buffered_bytes : int
        Bytes of all requests that are being received; beyond it, 503.
    header_seconds, body_seconds, idle_seconds, write_seconds : float
        Time for the head, for the body, between two requests, and for the client to take the response.
    connections : int
        Open connections; beyond it the one that has been idle longest is closed.
    """

    header_bytes: int = 16_384
    body_bytes: int = 64 << 20
    buffered_bytes: int = 512 << 20
    header_seconds: float = 10.0
    body_seconds: float = 60.0
    idle_seconds: float = 60.0
    write_seconds: float = 60.0
    connections: int = 2_000


@dataclass
class Shared:
    """What all connections of a server share."""

    handle: Handler
    body_limit: Callable[[str, str], int]
    finished: Callable[[Request, Response, float], None]
    limits: Limits = field(default_factory=Limits)
    open: set[Connection] = field(default_factory=set)
    buffered: int = 0
    draining: bool = False
    received: memoryview = field(default_factory=lambda: memoryview(bytearray(RECEIVED)))

    def sweep(self) -> None:
        """Cut off connections that are past their deadline, and the idlest where there are too many."""
        now = time.monotonic()
        for connection in [each for each in self.open if each.deadline < now]:
            connection.expire()
        excess = len(self.open) - self.limits.connections
        if excess > 0:
            for connection in sorted((each for each in self.open if each.idle), key=lambda each: each.since)[:excess]:
                connection.close()

    async def sweeping(self) -> None:
        """Call `sweep` several times a second, until cancelled."""
        while True:
            await asyncio.sleep(0.25)
            self.sweep()


class Connection(asyncio.BufferedProtocol):
    """One connection of a client."""

    def __init__(self, shared: Shared) -> None:
        self.shared, self.limits = shared, shared.limits
        self.transport: Any = None
        self.buffer = bytearray()
        self.request: Request | None = None  # whose body is arriving, or that is being answered
        self.wanted: int | None = 0  # bytes of the body; None: in chunks
        self.chunks = bytearray()
        self.busy = False
        self.deadline = self.since = time.monotonic() + self.limits.header_seconds
        self.begun = 0.0

    @property
    def idle(self) -> bool:
        """Whether no request has begun to arrive."""
        return not (self.busy or self.request or self.buffer)

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        self.transport = transport
        self.shared.open.add(self)
        self.since = time.monotonic()
        self.deadline = self.since + self.limits.header_seconds
        if len(self.shared.open) > 2 * self.limits.connections:
            self._refuse(503, "too many connections are open: try again later")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's own signature
        """The client has gone."""
        self.shared.open.discard(self)
        self.shared.buffered -= len(self.buffer) + len(self.chunks)
        self.buffer, self.chunks = bytearray(), bytearray()

    def eof_received(self) -> bool:
        """The client sends no more: a request that is being answered is still answered."""
        return self.busy

    def close(self) -> None:
        """Close when what was written is sent."""
        if self.transport:
            self.transport.close()

    def expire(self) -> None:
        """The deadline is past: 408 where a request has begun, and close."""
        if self.busy:
            self.deadline = float("inf")  # work has limits of its own
        elif self.transport.is_closing() or self.transport.get_write_buffer_size():
            self.transport.abort()
        elif self.idle:
            self.close()
        else:
            self._refuse(408, "the request did not arrive in time")

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's own signature
        """Buffer for the next bytes: one for all connections, because a selector reads and delivers in one step."""
        return self.shared.received

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have arrived."""
        data = self.shared.received[:nbytes]
        if self.transport.is_closing() or (not (self.busy or self.buffer or self.request) and self._at_once(bytes(data))):
            return
        self.buffer += data
        self.shared.buffered += nbytes
        if self.busy:
            if len(self.buffer) > self.limits.header_bytes:  # pipelined: wait until the first is answered
                self.transport.pause_reading()
            return
        if self.shared.buffered > self.limits.buffered_bytes:
            self._refuse(503, "too many bytes are being received: try again later")
            return
        self._advance()

    def _at_once(self, data: bytes) -> bool:
        """Handle a request that arrives in one piece, as nearly all do, without buffers; False if this is none."""
        end = data.find(b"\r\n\r\n")
        if end < 0 or end > LONGEST_KEPT:
            return False
        try:
            head = parsed_head(data[:end])
        except HttpError:  # refused below
            return False
        if head.length != len(data) - end - 4 or "expect" in head.headers:
            return False
        if head.length > min(self.limits.body_bytes, self.shared.body_limit(head.method, head.path)):
            return False
        self.begun = time.monotonic()
        self.request = Request(head.method, head.path, head.query, head.headers, data[end + 4 :])
        self._dispatch()
        return True

    def _advance(self) -> None:
        """Handle every request that has arrived completely."""
        try:
            while not self.busy and not self.transport.is_closing():
                if self.request is None and not self._head():
                    return
                if not self._body():
                    return
                self._dispatch()
        except HttpError as fault:
            self._refuse(fault.status, fault.message)

    def _head(self) -> bool:
        """Parse the head; False if it has not arrived completely."""
        if self.buffer[:2] == b"\r\n":  # blank lines between requests are allowed
            self._remove_received(2)
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0 or end > self.limits.header_bytes:
            if len(self.buffer) > self.limits.header_bytes:
                raise HttpError(431, f"the head of the request is longer than {self.limits.header_bytes:,} bytes")
            if self.buffer and self.deadline > time.monotonic() + self.limits.header_seconds:
                self.deadline = time.monotonic() + self.limits.header_seconds
            return False
        self.begun = time.monotonic()
        head = parse_head(bytes(self.buffer[:end]))
        self.request = Request(head.method, head.path, head.query, head.headers)
        self._remove_received(end + 4)
        self.deadline = self.begun + self.limits.body_seconds
        headers = head.headers
        largest = min(self.limits.body_bytes, self.shared.body_limit(self.request.method, self.request.path))
        self.wanted = head.length
        if self.wanted is not None and self.wanted > largest:
            raise HttpError(413, f"the body has {self.wanted:,} bytes: at most {largest:,} are accepted")
        if headers.get("expect"):
            if headers["expect"].lower() != "100-continue":
                raise HttpError(417, "only Expect: 100-continue is understood")
            if self.wanted is None or self.wanted > len(self.buffer):
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _remove_received(self, n: int) -> bytes:
        """Remove bytes from the front of the buffer."""
        with memoryview(self.buffer) as view:  # a slice of the buffer itself would be copied twice
            part = bytes(view[:n])
        del self.buffer[:n]
        self.shared.buffered -= len(part)
        return part

    def _body(self) -> bool:
        """Take the body; False if it has not arrived completely."""
        assert self.request is not None
        if self.wanted is not None:
            if len(self.buffer) < self.wanted:
                return False
            if self.wanted:
                self.request.body = self._remove_received(self.wanted)
            return True
        while (chunk := self._chunk()) is not None:
            if not chunk:
                self.request.body = bytes(self.chunks)
                self.shared.buffered -= len(self.chunks)
                self.chunks = bytearray()
                return True
            self.chunks += chunk
            self.shared.buffered += len(chunk)
            largest = min(self.limits.body_bytes, self.shared.body_limit(self.request.method, self.request.path))
            if len(self.chunks) > largest:
                raise HttpError(413, f"the body is longer than {largest:,} bytes")
        return False

    def _chunk(self) -> bytes | None:
        """The next chunk; empty for the last one, None if it has not arrived completely."""
        end = self.buffer.find(b"\r\n", 0, 64)
        if end < 0:
            if len(self.buffer) >= 64:
                raise HttpError(400, "a chunk has no valid size")
            return None
        digits = bytes(self.buffer[:end]).partition(b";")[0].strip()
        if not digits or len(digits) > 8 or any(c not in b"0123456789abcdefABCDEF" for c in digits):
            raise HttpError(400, "a chunk has no valid size")
        size = int(digits, 16)
        if size > self.limits.body_bytes:
            raise HttpError(413, f"a chunk has {size:,} bytes: at most {self.limits.body_bytes:,} are accepted")
        if len(self.buffer) < end + 2 + size + 2:
            return None
        if self.buffer[end + 2 + size : end + 4 + size] != b"\r\n":
            raise HttpError(400, "a chunk does not end at its declared size")
        return self._remove_received(end + 4 + size)[end + 2 : -2]

    def _dispatch(self) -> None:
        request = self.request
        assert request is not None
        try:
            found = self.shared.handle(request)
        except Exception as fault:  # every exception becomes a response
            found = of_exception(fault)
        if isinstance(found, Response):
            self._finish(found)
            return
        self.busy = True
        self.deadline = float("inf")
        asyncio.ensure_future(found).add_done_callback(self._on_answer)

    def _on_answer(self, task: asyncio.Future[Response]) -> None:
        """The work for a request is done."""
        fault = None if task.cancelled() else task.exception()
        response = error(503, "the server is stopping") if task.cancelled() else of_exception(fault) if fault else task.result()
        self.busy = False
        self._finish(response)
        if not self.transport.is_closing():
            self.transport.resume_reading()
            self._advance()

    def _finish(self, response: Response) -> None:
        request = self.request
        assert request is not None
        self.request = None
        last = response.last or self.shared.draining or request.headers.get("connection", "").lower() == "close"
        self._write(response, last, request.method == "HEAD")
        self.since = time.monotonic()
        self.deadline = self.since + self.limits.idle_seconds
        self.shared.finished(request, response, self.since - self.begun)

    def _write(self, response: Response, last: bool, empty: bool = False) -> None:
        if self.transport.is_closing():
            return
        if response.status == 200 and response.kind == JSON and not (response.headers or last or empty):
            self.transport.write(USUAL % (len(response.body), response.body))
            return
        reason = REASONS.get(response.status, "")
        first = f"HTTP/1.1 {response.status} {reason}\r\nContent-Type: {response.kind}\r\n"
        head = f"{first}Content-Length: {len(response.body)}\r\n"
        more = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
        if last:
            more += "Connection: close\r\n"
        body = b"" if empty else response.body
        self.transport.write(b"".join((head.encode("latin-1"), LINES, more.encode("latin-1"), b"\r\n", body)))
        if last:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Answer with an error and close: what else arrives cannot be trusted to begin a request."""
        request = self.request or Request("-", "-", {}, {})
        response = error(status, message, last=True)
        self.begun = self.begun or time.monotonic()
        self._write(response, last=True)
        self.deadline = time.monotonic() + 2.0
        self.shared.finished(request, response, time.monotonic() - self.begun)
        self.request = None


class Head(NamedTuple):
    """The head of a request: method, path without query, query, headers in lower case, length of the body (None: chunks)."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    length: int | None


def parse_head(head: bytes) -> Head:
    """Method, path, query, headers and length of the body from the head of a request."""
    lines = head.split(b"\r\n")
    try:
        method, target, version = lines[0].decode("ascii").split(" ")
    except ValueError:
        raise HttpError(400, "the first line is not 'METHOD target HTTP/1.1'") from None
    if version != "HTTP/1.1":
        known = version.startswith("HTTP/")
        raise HttpError(505 if known else 400, "only HTTP/1.1 is understood")
    if method not in METHODS:
        raise HttpError(501 if method and set(method) <= TOKEN else 400, "the method is not known")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise HttpError(400, "a header line is not 'Name: value'")
        name, value = _header_name(name), value.strip(" \t")
        if not value.isprintable() and (any(c < " " and c != "\t" for c in value) or "\x7f" in value):
            raise HttpError(400, "a header holds a control character")
        if name in headers and name in ("host", "content-length", "transfer-encoding", "authorization", "origin"):
            raise HttpError(400, f"the header {name} occurs twice")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if not target.startswith("/"):
        raise HttpError(400, "the target must be a path")
    path, _, query = target.partition("?")
    try:
        pairs = dict(parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=32)) if query else {}
        path = unquote(path, errors="strict") if "%" in path else path
    except (ValueError, UnicodeDecodeError):
        raise HttpError(400, "the target is not valid UTF-8") from None
    return Head(method, path, MappingProxyType(pairs), MappingProxyType(headers), body_length(headers))


parsed_head = lru_cache(1024)(parse_head)


@lru_cache(1024)
def _header_name(name: str) -> str:
    """A header name in lower case; refused if it has other characters than a token may have."""
    if not name or not set(name) <= TOKEN:
        raise HttpError(400, "a header line is not 'Name: value'")
    return name.lower()


def body_length(headers: Mapping[str, str]) -> int | None:
    """Length of the body; None if it comes in chunks."""
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if length is not None:
            raise HttpError(400, "a body has a length or comes in chunks, not both")
        if coding.lower() != "chunked":
            raise HttpError(501, "only the transfer coding 'chunked' is understood")
        return None
    if length is None:
        return 0
    if not (length.isascii() and length.isdigit()) or len(length) > 15:
        raise HttpError(400, "Content-Length is not a number")
    return int(length)
