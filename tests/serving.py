"""A server in a process of its own, and its clients: well-behaved ones, and raw sockets."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from processes import COMMAND, environment

PATIENCE = 60.0  # seconds after which a server that says nothing is given up


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes], started: dict[str, Any]) -> None:
        self.process, self.address, self.token = process, str(started["address"]), str(started.get("token", ""))
        self.port = int(self.address.rsplit(":", 1)[1].strip("/"))

    def ask(
        self, path: str, document: Any = None, *, body: bytes | None = None, token: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Status and document of one request; JSON where there is a document."""
        data = body if body is not None else None if document is None else json.dumps(document).encode()
        sent = {"Content-Type": "application/json", "Connection": "close"} if data is not None else {"Connection": "close"}
        sent |= {"Authorization": f"Bearer {token}"} if token is not None else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.address.rstrip("/") + path, data, sent)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def raw(self, *pieces: bytes, timeout: float = PATIENCE) -> bytes:
        """Everything that the server sends to a client that sends these bytes, until it closes or says no more."""
        with self.connected(timeout) as client:
            for piece in pieces:
                try:
                    client.sendall(piece)
                except OSError:  # refused before all was sent
                    break
            return received(client)

    @contextmanager
    def connected(self, timeout: float = PATIENCE) -> Iterator[socket.socket]:
        """A raw connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as client:
            yield client

    def memory(self) -> int:
        """Resident bytes of the server."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> int:
        """End it as a service manager does; returns its exit code."""
        self.process.terminate()
        return self.process.wait(PATIENCE)


def received(client: socket.socket) -> bytes:
    """What a connection still sends, until it is closed."""
    found = b""
    try:
        while piece := client.recv(1 << 16):
            found += piece
    except (TimeoutError, ConnectionError):
        pass
    return found


@contextmanager
def served(*arguments: str, **more: str) -> Iterator[Server]:
    """A server with these arguments, on a free port; ended at the end."""
    command = [*COMMAND, "serve", *arguments, "--port", "0", "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**more), stdin=subprocess.DEVNULL
    )
    assert process.stdout is not None
    assert process.stderr is not None
    log: list[bytes] = []
    reading = threading.Thread(target=lambda: log.extend(process.stderr or ()), daemon=True)
    reading.start()
    text = b""
    while not text.rstrip().endswith(b"}"):
        line = process.stdout.readline()
        assert line, (process.wait(PATIENCE), b"".join(log).decode())
        text += line
    server = Server(process, json.loads(text))
    server.log = log  # type: ignore[attr-defined]
    try:
        yield server
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE)
        process.stdout.close()
        reading.join(PATIENCE)
        process.stderr.close()
