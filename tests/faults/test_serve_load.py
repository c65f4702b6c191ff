"""What a server survives of its clients' number: idle ones, more work than it takes on, and models replaced meanwhile."""

from __future__ import annotations

import asyncio
import json
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import likely
from serving import Server, served
from strategies import quietly

pytest.importorskip("msgspec", reason="NOT TESTED: msgspec is not installed")
TOKEN = "a-token-for-tests"
TABLES = ({"a": ["u", "v"] * 20, "y": ["no", "yes"] * 20}, {"a": ["u", "v", "v"] * 20, "y": ["no", "yes", "no"] * 20})
JOBS = 64  # that the server takes on at one time
IDLE = 900
CLIENTS = 200


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "m.likely"
    table = {f"c{j}": ["u", "v"] * 20 for j in range(40)}
    quietly(likely.learn, table | {"y": ["no", "yes"] * 20}, "y", plain=True).save(path)
    return path


def request_of(path: str, document: Any, **headers: str) -> bytes:
    body = json.dumps(document).encode()
    sent = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body))} | headers
    return (f"POST {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in sent.items()) + "\r\n").encode() + body


def answer_of(client: socket.socket) -> tuple[int, bytes, Any]:
    """Status, head and document of the next answer on a connection."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += client.recv(1 << 16)
    top, _, body = found.partition(b"\r\n\r\n")
    length = int(top.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += client.recv(1 << 16)
    return int(top.split(b" ", 2)[1]), top, json.loads(body)


@contextmanager
def clients(server: Server, many: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(server.connected()) for _ in range(many)]


def gauge(server: Server, name: str) -> int:
    lines = server.ask("/metrics")[1].decode().splitlines()
    return int(next(line for line in lines if line.startswith(name + " ")).split()[1])


# ---------------------------------------------------------------- 24: idle connections, and too much work

def test_sockets_that_send_nothing_stop_nobody(model_file: Path) -> None:
    with served(str(model_file), "--timeout", "60", "--quiet") as running:
        with clients(running, IDLE) as idle:
            for client in idle[::3]:
                client.sendall(b"POST /api/predict HTTP/1.1\r\n")
            assert running.ask("/health")[0] == 200
            assert running.ask("/api/predict", {"rows": [{"c0": "u"}]})[0] == 200
            assert gauge(running, "likely_connections") == IDLE + 1
        while gauge(running, "likely_connections") > 1:
            pass


def test_beyond_the_number_of_connections_the_idlest_are_closed() -> None:
    from likely.web._messages import Response
    from likely.web.connection import Connection, Limits, Shared

    async def check() -> None:
        loop = asyncio.get_running_loop()
        shared = Shared(lambda _: Response(), lambda *_: 0, lambda *_: None, Limits(connections=3))
        pairs = [socket.socketpair() for _ in range(5)]
        made = [(await loop.create_connection(lambda: Connection(shared), sock=theirs))[1] for _, theirs in pairs]
        pairs[0][0].sendall(b"GET / HT")  # not idle: its request has begun
        while made[0].idle:
            await asyncio.sleep(0)
        shared.sweep()
        await asyncio.sleep(0.01)
        assert shared.open == {made[0], made[3], made[4]}
        for each in shared.open:
            each.close()
        for ours, _ in pairs:
            ours.close()

    asyncio.run(check())


def test_beyond_the_cap_work_is_refused_with_503_and_health_is_answered_while_jobs_run(model_file: Path) -> None:
    """Each job explains 100 rows: seconds of work for all, and the bodies are small enough to arrive at once."""
    job = request_of("/api/explain", {"rows": [{f"c{j}": "u" for j in range(40)}] * 100})
    with served(str(model_file), "--quiet") as running, clients(running, JOBS + 20) as asking:
        for client in asking:
            client.sendall(job)
        refused = 0
        while refused < 20:
            assert asking, "all requests were answered, and none was refused"
            for client in select.select(asking, [], [])[0]:
                found, top, document = answer_of(client)
                asking.remove(client)
                assert found in (200, 503), document
                refused += found == 503
                assert (b"Retry-After: 1" in top) == (found == 503)
        assert running.ask("/health")[0] == 200
        assert gauge(running, "likely_jobs") > 0  # asked after the answer of /health: it did not wait for them
        found, _, document = answer_of(select.select(asking, [], [])[0][0])
        assert (found, len(document["explanations"])) == (200, 100)


def test_health_is_answered_while_large_batches_run(model_file: Path) -> None:
    batch = request_of("/api/predict", {"columns": {"c0": ["u", "v"] * 30_000, "c1": ["w"] * 60_000}})
    with served(str(model_file), "--quiet") as running, clients(running, 6) as asking:
        for client in asking:
            client.sendall(batch)
        while not gauge(running, "likely_jobs"):
            assert not select.select(asking, [], [], 0)[0]
        assert running.ask("/health")[0] == 200
        assert gauge(running, "likely_jobs") > 0
        for client in asking:
            assert len(answer_of(client)[2]["labels"]) == 60_000


# ---------------------------------------------------------------- 29: a model is replaced, or learns, meanwhile

Answers = set[tuple[str, float]]  # version of the model, and its probability


def answers_during(asking: list[socket.socket], changing: socket.socket, changes: list[Callable[[], bytes]]) -> Answers:
    """All answers to clients that ask at the same time, and again, while each change is asked for and made."""
    predict = request_of("/api/predict", {"rows": [{"a": "v"}]})
    found: list[tuple[int, bytes, Any]] = []
    for change in [None, *changes, None]:
        for client in asking[: CLIENTS // 2]:
            client.sendall(predict)
        if change is not None:
            changing.sendall(change())
        for client in asking[CLIENTS // 2 :]:
            client.sendall(predict)
        found += [answer_of(client) for client in asking]
        assert change is None or answer_of(changing)[0] == 200
    assert len(found) == CLIENTS * (len(changes) + 2)
    assert {status for status, _, _ in found} == {200}
    return {(document["model_version"], document["predictions"][0]["probabilities"]["yes"]) for _, _, document in found}


def share(model: Any) -> float:
    return float(model.posterior([{"a": "v"}]).probabilities[0, 1])


def test_each_answer_to_200_clients_comes_from_one_whole_model_while_models_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "m.likely"
    models = [quietly(likely.learn, table, "y", plain=True) for table in TABLES]
    models[0].save(path)

    def swap(model: Any) -> bytes:
        model.save(path)
        return request_of("/api/reload", {}, Authorization=f"Bearer {TOKEN}")

    changes = [partial(swap, models[turn]) for turn in (1, 0, 1, 0, 1)]
    arguments = (str(path), "--token", TOKEN, "--quiet")
    with served(*arguments) as running, clients(running, CLIENTS) as asking, running.connected() as changing:
        found = answers_during(asking, changing, changes)
    assert {each for _, each in found} == {share(model) for model in models}
    assert len({version for version, _ in found}) == len(found) == 2


def test_each_answer_to_200_clients_comes_from_one_whole_model_while_rows_are_learned(tmp_path: Path) -> None:
    path = tmp_path / "m.likely"
    model = quietly(likely.learn, TABLES[0], "y", plain=True)
    model.save(path)
    row = {"a": "v", "y": "no"}
    wanted = [share(model)]
    for _ in range(5):
        model = quietly(model.update, [row])
        wanted.append(share(model))
    token = f"Bearer {TOKEN}"
    changes = [partial(request_of, "/api/update", {"id": str(n), "rows": [row]}, Authorization=token) for n in range(5)]
    arguments = (str(path), "--writable", "--token", TOKEN, "--quiet")
    with served(*arguments) as running, clients(running, CLIENTS) as asking, running.connected() as changing:
        found = answers_during(asking, changing, changes)
    by_version = {int(version.rpartition("+")[2]): each for version, each in found}
    assert len(by_version) == len(found)
    assert {0, 5} <= set(by_version)
    assert all(wanted[rows] == each for rows, each in by_version.items())
