"""A request is read alike however the network cuts it: in one piece, which has a way of its own, or in several."""

from __future__ import annotations

import asyncio
import socket

import pytest

pytest.importorskip("msgspec", reason="NOT TESTED: msgspec is not installed")

BODY = b'{"rows":[{"a":1}]}'
POST = b"POST /api/x?q=%C3%BC HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
REQUESTS = {
    "get": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "head": b"HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "post": POST + b"18\r\n\r\n" + BODY,
    "two": (POST + b"18\r\n\r\n" + BODY) * 2,
    "blank line before": b"\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "chunks": b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{'rows\r\nc\r\n':[{'a':1}]}\r\n0\r\n\r\n",
    "rest is no request": POST + b"17\r\n\r\n" + BODY,
    "too long": POST + b"101\r\n\r\n" + b"x" * 101,
    "too long, and not all of it": POST + b"101\r\n\r\n" + BODY,
    "expect": POST + b"18\r\nExpect: 100-continue\r\n\r\n" + BODY,
    "no length": POST + b"x\r\n\r\n" + BODY,
    "header twice": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "close": b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "other version": b"GET / HTTP/2\r\nHost: localhost\r\n\r\n",
    "no header": b"GET / HTTP/1.1\r\nHost\r\n\r\n",
}


async def answered(pieces: list[bytes]) -> bytes:
    """Everything that the server sends to a client that sends these pieces."""
    from likely.web._messages import Request, Response, answer
    from likely.web.connection import Connection, Shared

    def handle(request: Request) -> Response:
        return answer([request.method, request.path, dict(request.query), dict(request.headers), request.body.decode()])

    shared = Shared(handle, lambda *_: 100, lambda *_: None)
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    await loop.create_connection(lambda: Connection(shared), sock=theirs)
    for piece in pieces:
        try:
            await loop.sock_sendall(ours, piece)
        except ConnectionError:  # refused by what came before
            break
        for _ in range(3):  # the server reads it
            await asyncio.sleep(0)
    ours.shutdown(socket.SHUT_WR)
    found = b""
    while more := await loop.sock_recv(ours, 1 << 16):
        found += more
    ours.close()
    assert shared.buffered == 0
    return found


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_is_cut_anywhere_is_answered_as_in_one_piece(name: str) -> None:
    request = REQUESTS[name]

    async def check() -> None:
        whole = await answered([request])
        assert whole.startswith(b"HTTP/1.1 ")
        for cut in range(1, len(request)):
            found = await answered([request[:cut], request[cut:]])
            assert found.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"") == whole, cut
        single = [bytes([byte]) for byte in request]
        assert (await answered(single)).replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"") == whole

    asyncio.run(check())
