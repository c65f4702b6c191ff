"""Online learning: an acknowledged row survives kill -9 at any moment, and none is applied twice."""

from __future__ import annotations

import random
import signal
import threading
import time
from pathlib import Path

import pytest

import likely
from likely.errors import ConflictError, DataError
from serving import Server, served
from strategies import quietly

pytest.importorskip("msgspec", reason="NOT TESTED: msgspec is not installed")
TOKEN = "a-token-for-tests"
ROW = {"a": "u", "y": "yes"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "m.likely"
    quietly(likely.learn, {"a": ["u", "v"] * 10, "y": ["no", "yes"] * 10}, "y", plain=True).save(made)
    return made


def running(path: Path):  # type: ignore[no-untyped-def]
    return served(str(path), "--writable", "--token", TOKEN, "--quiet")


def counted(server: Server) -> int:
    return int(server.ask("/api/model")[1]["rows_counted"])


def test_rows_are_learned_and_forgotten_and_a_repeated_request_changes_nothing(path: Path) -> None:
    with running(path) as server:
        before = server.ask("/api/predict", {"rows": [{"a": "u"}]})[1]
        code, done = server.ask("/api/update", {"rows": [ROW, {"a": "new", "y": "maybe"}], "id": "one"}, token=TOKEN)
        assert (code, done["rows"], done["rows_counted"], done["duplicate"]) == (200, 2, 22, False)
        after = server.ask("/api/predict", {"rows": [{"a": "u"}]})[1]
        assert after["model_version"] == done["model_version"] != before["model_version"]
        assert set(after["predictions"][0]["probabilities"]) == {"no", "yes", "maybe"}
        assert server.ask("/api/update", {"rows": [ROW], "id": "one"}, token=TOKEN)[1]["duplicate"] is True
        assert server.ask("/api/update", {"rows": [ROW]}, token=TOKEN, Idempotency_Key="one")[1]["duplicate"] is True
        assert counted(server) == 22
        assert server.ask("/api/forget", {"rows": [{"a": "new", "y": "maybe"}]}, token=TOKEN)[1]["rows_counted"] == 21
        assert server.ask("/api/forget", {"rows": [{"a": "never", "y": "was"}]}, token=TOKEN)[0] == 422
        assert server.ask("/api/update", {"rows": [{"a": "u"}]}, token=TOKEN)[0] == 422
        assert server.ask("/api/reload", {}, token=TOKEN)[0] == 409
        assert server.ask("/api/update", {"rows": [ROW]})[0] == 401
        assert counted(server) == 21
        assert server.stop() == 143
    with running(path) as server:  # a new process, the same rows; the identifier is still known
        assert counted(server) == 21
        assert server.ask("/api/update", {"rows": [ROW], "id": "one"}, token=TOKEN)[1]["duplicate"] is True
        assert counted(server) == 21


def test_kill_9_at_any_moment_loses_no_acknowledged_row_and_applies_none_twice(path: Path) -> None:
    rng = random.Random(5)
    acknowledged: set[str] = set()
    lock = threading.Lock()
    number = 0

    def send(server: Server, name: str) -> None:
        try:
            code, done = server.ask("/api/update", {"rows": [{"a": f"row {name}", "y": "yes"}], "id": name}, token=TOKEN)
        except OSError:
            return
        if code == 200:
            assert done["id"] == name
            with lock:
                acknowledged.add(name)

    pending: list[str] = []
    for _ in range(5):
        with running(path) as server:
            names = [*pending, *(f"{number + i}" for i in range(12))]  # what was not acknowledged is sent again
            number += 12
            threads = [threading.Thread(target=send, args=(server, name)) for name in names]
            for thread in threads:
                thread.start()
                time.sleep(rng.random() * 0.02)
            time.sleep(rng.random() * 0.1)
            server.process.send_signal(signal.SIGKILL)
            for thread in threads:
                thread.join()
            pending = [name for name in names if name not in acknowledged]
    with running(path) as server:
        for name in pending:
            send(server, name)
        total = counted(server)
    assert len(acknowledged) == number
    assert total == 20 + number
    model = likely.load(path) if not path.with_name("m.likely.journal").exists() else None
    with running(path) as server:
        values = server.ask("/api/model")[1]["columns"][0]["values"]
    assert {value for value in values if value.startswith("row ")} == {f"row {i}" for i in range(number)}
    assert model is None or model.tally.rows <= total


def test_half_a_line_at_the_end_of_the_journal_is_dropped_and_damage_before_it_is_refused(path: Path) -> None:
    with running(path) as server:
        for name in ("one", "two"):
            server.ask("/api/update", {"rows": [ROW], "id": name}, token=TOKEN)
        server.process.kill()
        server.process.wait()
    journal = path.with_name("m.likely.journal")
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3
    journal.write_bytes(b"".join(lines[:2]) + lines[2][:-7])
    with running(path) as server:
        assert counted(server) == 21
    from likely.learning.load import load_with_digest
    from likely.web._journal import Journal

    quietly(likely.load(path).update, [ROW]).save(path)
    digest = load_with_digest(path)[1]
    with pytest.raises(DataError, match="another version"):
        Journal(path, digest)
    journal.write_bytes(b"".join([lines[0], b"00000000 {}\n", lines[1]]))
    with pytest.raises(DataError, match="damaged in line 2"):
        Journal(path, digest)


def test_a_fold_that_is_interrupted_between_its_steps_applies_each_row_once(path: Path) -> None:
    from likely.learning.load import load_with_digest
    from likely.web._journal import Journal, JournalEntry

    model, digest = load_with_digest(path)
    journal = Journal(path, digest)
    journal.append([JournalEntry("one", "update", [ROW])])
    with pytest.raises(ConflictError):
        Journal(path, digest)
    before = journal.path.read_bytes()
    new = journal.fold(model.update([ROW]), path)
    journal.close()
    folded = journal.path.read_bytes()
    # The journal as it was before its own replacement, with the digest of the new model file noted.
    import zlib

    note = f'{{"folded":"{new}"}}'.encode()
    journal.path.write_bytes(before + b"%08x %s\n" % (zlib.crc32(note), note))
    again = Journal(path, new)
    assert again.entries == []
    assert "one" in again.identifiers
    again.close()
    assert folded.count(b"\n") == 1
