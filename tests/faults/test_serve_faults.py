"""What a server survives: damaged files, bombs, large, slow and lying clients, odd JSON, paths, markup, other sites."""

from __future__ import annotations

import gzip
import json
import select
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import likely
from likely.errors import DataError
from serving import Server, received, served
from strategies import quietly

pytestmark = pytest.mark.xdist_group("serve faults")  # one server

pytest.importorskip("msgspec", reason="NOT TESTED: msgspec is not installed")
DATA = Path(likely.__file__).parent / "data"
NASTY = '"; DROP <script>alert(1)</script>{{7*7}}'


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = {
        NASTY: ["=cmd()", "<b>", "=cmd()", "<b>"] * 5, "number": [1.0, 5.0, 2.0, 6.0] * 5,
        "y": ["no", "<img src=x>", "no", "<img src=x>"] * 5,
    }  # fmt: skip
    path = tmp_path_factory.mktemp("served") / "m.likely"
    quietly(likely.learn, table, "y", plain=True).save(path)
    return path


@pytest.fixture(scope="module")
def server(model_file: Path) -> Iterator[Server]:
    with served(str(model_file), "--timeout", "1.5", "--max-body", "2000000", "--quiet") as running:
        yield running


def alive(server: Server) -> None:
    assert server.ask("/health")[0] == 200


def head(path: str = "/api/predict", **headers: str) -> bytes:
    sent = {"Host": "localhost", "Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
    return (f"POST {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in sent.items()) + "\r\n").encode()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def parquet(folder: Path) -> bytes:
    path = folder / "t.parquet"
    pq.write_table(pa.table({"number": [1.0, 2.0] * 50, NASTY: ["a", "b"] * 50}), path)
    return path.read_bytes()


# ---------------------------------------------------------------- 21 and 22: files

def test_damaged_files_are_refused_and_the_server_lives(server: Server, tmp_path: Path) -> None:
    good = parquet(tmp_path)
    feather.write_feather(pa.table({"number": [1.0, 2.0] * 50, NASTY: ["a", "b"] * 50}), tmp_path / "t.arrow")
    arrow, packed = (tmp_path / "t.arrow").read_bytes(), gzip.compress(b"number\n" + b"1\n2\n" * 50)
    sent = [("t.parquet", good)]
    for name, body in (("t.parquet", good), ("t.arrow", arrow), ("t.csv.gz", packed)):
        flipped = bytes(b ^ 0xFF if i % 97 == 15 else b for i, b in enumerate(body))
        sent += [(name, body[: len(body) - 9]), (name, flipped)]
    with ThreadPoolExecutor(len(sent)) as pool:
        answers = list(pool.map(lambda each: server.ask(f"/api/score?name={each[0]}", body=each[1]), sent))
    assert answers[0][0] == 200
    assert answers[0][1].decode().count("\n") == 101
    for (name, _), (found, document) in zip(sent[1:], answers[1:], strict=True):
        assert found in (400, 413, 415, 422), (name, document)
        assert document["error"]["message"]
        assert "/tmp" not in json.dumps(document)
    alive(server)


def test_a_file_that_crashes_its_reader_is_refused_and_the_server_lives(server: Server) -> None:
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.ask, "/api/score?name=t.csv", body=b"number\n1\n")
        while not (readers := psutil.Process(server.process.pid).children()):
            assert not answer.done(), answer.result()
        readers[0].send_signal(signal.SIGSEGV)
        found, document = answer.result()
    assert found == 422, document
    assert "damaged" in document["error"]["message"]
    alive(server)


def billion_rows(folder: Path) -> bytes:
    """A Parquet file of 10⁹ equal rows: a thousand row groups in its footer, all of which lie in the same place."""
    path, footer = folder / "million.parquet", folder / "footer"
    column = pa.array([1.0]).take(pa.array([0]).take(pa.array([0] * 1_000)))
    pq.write_table(pa.table({"number": pa.chunked_array([column] * 1_000)}), path, row_group_size=1_000_000)
    once, all_of_them = pq.read_metadata(path), pq.read_metadata(path)
    for _ in range(999):
        all_of_them.append_row_groups(once)
    all_of_them.write_metadata_file(footer)
    data = path.read_bytes()
    return data[: len(data) - 8 - int.from_bytes(data[-8:-4], "little")] + footer.read_bytes()[4:]


def test_bombs_stop_at_the_limit(server: Server, tmp_path: Path) -> None:
    packed = gzip.compress(b"number\n") + gzip.compress(b"1\n" * 1_000_000, 9) * 100  # members, one after the other
    rows = billion_rows(tmp_path)
    assert len(packed) < 250_000
    assert len(rows) < 1_000_000
    with ThreadPoolExecutor(2) as pool:
        bombs = (("bomb.csv.gz", packed), ("many.parquet", rows))
        answers = list(pool.map(lambda each: server.ask(f"/api/score?name={each[0]}", body=each[1]), bombs))
    assert [found for found, _ in answers] == [413, 413], answers
    assert "1,000,000,000 rows" in answers[1][1]["error"]["message"]
    alive(server)


# ---------------------------------------------------------------- 23: sizes

def test_a_body_that_is_too_long_is_refused_while_it_arrives(server: Server) -> None:
    assert status(server.raw(head(Content_Length="3000000"))) == 413
    chunks = [b"%x\r\n%s\r\n" % (1 << 16, b" " * (1 << 16))] * 40
    assert status(server.raw(head(Transfer_Encoding="chunked"), *chunks)) == 413
    before = server.memory()
    for _ in range(20):
        server.raw(head(Content_Length="99999999999"), b" " * 100_000)
        server.raw(head(Transfer_Encoding="chunked"), *chunks)
    assert server.memory() - before < 64 << 20


def test_a_body_without_end_is_refused_at_the_limit_and_not_received(server: Server) -> None:
    """The client goes on sending for ever; the server answers soon after its limit of 2 MB and closes."""
    sent, piece = 0, b"%x\r\n%s\r\n" % (1 << 16, b" " * (1 << 16))
    before = server.memory()
    with server.connected() as client:
        client.sendall(head(Transfer_Encoding="chunked"))
        while not select.select([client], [], [], 0)[0]:
            try:
                client.sendall(piece)
            except OSError:
                break
            sent += len(piece)
            assert sent < 256 << 20
        assert status(received(client)) in (413, 0)  # 0: the connection was reset before the answer was read
    assert server.memory() - before < 32 << 20
    alive(server)


def test_a_million_records_are_refused(model_file: Path) -> None:
    with served(str(model_file), "--quiet") as roomy:
        body = b'{"rows":[' + b'{"number":1},' * 999_999 + b'{"number":1}]}'
        found, document = roomy.ask("/api/predict", body=body)
        assert found == 413
        assert "500,000" in document["error"]["message"]
        alive(roomy)


def test_a_wrong_content_length_waits_in_vain_or_is_refused(server: Server) -> None:
    body = b'{"rows":[{"number":1}]}'
    assert status(server.raw(head(Content_Length=str(len(body) + 5)), body)) == 408
    answer = server.raw(head(Content_Length=str(len(body) - 3)), body)  # the rest is no request
    assert status(answer) == 400
    both = head(Content_Length="5", Transfer_Encoding="chunked")
    assert status(server.raw(both, b"0\r\n\r\n")) == 400
    assert status(server.raw(head(Content_Length="+5"), body)) == 400
    assert status(server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n")) == 400
    assert status(server.raw(head(Transfer_Encoding="gzip"), b"")) == 501
    assert status(server.raw(head(Transfer_Encoding="chunked"), b"zz\r\n")) == 400


# ---------------------------------------------------------------- 24: slow clients; more of them in test_serve_load.py

def test_slow_heads_and_bodies_are_cut_off_and_idle_connections_closed(server: Server) -> None:
    slow: list[tuple[bytes, ...]] = [(b"POST /api/predict HT",), (head(Content_Length="100"), b'{"rows"'), ()]
    with ThreadPoolExecutor(4) as pool, server.connected() as dripping:
        answers = [pool.submit(server.raw, *pieces) for pieces in slow]
        dripping.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(12):  # a header line now and then does not extend the time
            time.sleep(0.25)
            try:
                dripping.sendall(b"X-A: b\r\n")
            except OSError:
                break
        assert status(received(dripping)) in (0, 408)
        assert [status(each.result()) for each in answers] == [408, 408, 0]
    alive(server)


# ---------------------------------------------------------------- 25: JSON

@pytest.mark.parametrize(
    "body",
    [
        b'{"rows":[{"number":NaN}]}', b'{"rows":[{"number":Infinity}]}', b'{"rows":[{"number":1e999}]}', b"[" * 100_000,
        b'{"rows":' * 100_000, b'{"rows":[{"number":1,"number":2}]}', b'{"rows":[{"number":' + b"9" * 5000 + b"}]}",
        b'{"rows":[{"number":"\xff\xfe"}]}', b'{"rows":[{"number":"\\ud800"}]}', b"", b"null", b'{"rows":[{"number":1}]} x',
        b'{"columns":{"number":[1,2],"other":[1]}}', b'{"rows":"many"}', b'{"rows":[{"number":[1]}]}', b"\x00" * 100,
        b'{"columns":{"number":[1],"number":[2]}}', '{"rows":[{"number":"１２"}]}'.encode(),
        b'{"rows":[{"number":-1e308}],"x":1}',
    ],
    ids=lambda body: repr(body[:30]),
)  # fmt: skip
def test_odd_json_is_refused_with_a_reason(server: Server, body: bytes) -> None:
    found, document = server.ask("/api/predict", body=body)
    assert found in (400, 413, 422), document
    assert document["error"]["message"]


def test_other_types_of_content_are_refused(server: Server) -> None:
    body = b'{"rows":[{"number":1}]}'
    assert server.ask("/api/predict", body=body, Content_Type="text/plain")[0] == 415
    assert server.ask("/api/predict", body=body, Content_Type="application/x-www-form-urlencoded")[0] == 415
    assert server.ask("/api/predict", body=body, Content_Type="application/json; charset=utf-8")[0] == 200


# ---------------------------------------------------------------- 26: paths

@pytest.mark.parametrize(
    "name",
    ["../m", "..%2fm", "%2fetc%2fpasswd", "/etc/passwd", "http:%2f%2fevil.example%2fm", "s3:%2f%2fb%2fm", "%2fdev%2fzero"],
)
def test_names_from_a_request_are_looked_up_and_never_opened(server: Server, name: str) -> None:
    assert server.ask(f"/api/models/{name}/predict", {"rows": [{"number": 1}]})[0] == 404
    assert server.ask(f"/static/{name}")[0] == 404
    assert server.ask(f"/api/score?name={name}", body=b"number\n1\n")[0] == 415
    assert server.ask(f"/api/score?name={name}.duckdb", body=b"number\n1\n")[0] == 415  # no database is opened for a client
    assert server.ask("/api/predict", {"rows": [{"number": 1}], "path": name})[0] == 422


def test_of_the_name_of_an_upload_only_the_ending_is_used(server: Server, tmp_path: Path) -> None:
    """Names of a file, a link to it, and a server that listens: the answer has the rows of the body, and nobody connects."""
    (tmp_path / "other.csv").write_text("number\n1\n2\n3\n4\n", encoding="utf-8")
    (tmp_path / "link.csv").symlink_to(tmp_path / "other.csv")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}/t.csv"
        names = ["../m.csv", "/dev/zero.csv", f"http://{address}", f"s3://{address}", *map(str, tmp_path.iterdir())]
        with ThreadPoolExecutor(len(names)) as pool:
            paths = [f"/api/score?name={quote(name, safe='')}" for name in names]
            answers = list(pool.map(lambda path: server.ask(path, body=b"number\n7\n8\n"), paths))
        for found, text in answers:
            assert found == 200, text
            assert [line.partition(b",")[0] for line in text.splitlines()] == [b"number", b"7", b"8"]
        assert not select.select([listening], [], [], 0)[0]


def test_a_duckdb_file_cannot_read_other_files(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="NOT TESTED: duckdb is not installed")
    secret, path = tmp_path / "secret.csv", str(tmp_path / "t.duckdb")
    secret.write_text("number,y\n1,a\n2,b\n", encoding="utf-8")
    with duckdb.connect(path) as connection:
        connection.execute(f"create view v as select * from read_csv('{secret}')")
    for asked in ({"table": "v"}, {"query": f"select * from read_csv('{secret}')"}):
        with pytest.raises(DataError, match="disabled by configuration"):
            likely.learn(path, "y", **asked)


# ---------------------------------------------------------------- 27: markup and formulas

def test_names_and_values_with_markup_come_back_as_data_and_pages_have_a_strict_policy(server: Server) -> None:
    _, about = server.ask("/api/model")
    assert about["columns"][0]["name"] == NASTY
    found, document = server.ask("/api/predict", {"rows": [{NASTY: "=cmd()", "number": 1}]})
    assert found == 200
    assert document["predictions"][0]["label"] == "no"
    with server.connected() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        page = received(client).decode()
    assert "script-src 'self'" in page
    assert "unsafe" not in page.split("\r\n\r\n")[0]
    assert NASTY not in page
    found, text = server.ask("/api/score?name=x.csv", body=f'number,note\n1,"=cmd()"\n2,{NASTY[3:]}\n'.encode())
    assert found == 200
    assert "=cmd()" in text.decode()
    _, refused = server.ask("/api/explain", {"rows": [{"number": "\x1b[31mred"}]})
    assert "\x1b" not in refused["error"]["message"]


# ---------------------------------------------------------------- 28: other sites

def test_other_hosts_and_origins_are_refused(server: Server) -> None:
    row = {"rows": [{"number": 1}]}
    here = f"http://localhost:{server.port}"
    assert server.ask("/api/model", Host="evil.example")[0] == 403
    assert server.ask("/", Host=f"evil.example:{server.port}")[0] == 403
    assert server.ask("/api/model", Host=f"127.0.0.1:{server.port}")[0] == 200
    assert server.ask("/api/predict", row, Origin="https://evil.example")[0] == 403
    assert server.ask("/api/predict", row, Origin="null")[0] == 403
    assert server.ask("/api/predict", row, Origin=f"http://localhost:{server.port + 1}")[0] == 403
    assert server.ask("/api/predict", row, Sec_Fetch_Site="cross-site")[0] == 403
    assert server.ask("/api/predict", row, Origin=here)[0] == 200
    assert status(server.raw(b"GET /health HTTP/1.1\r\n\r\n")) == 400


def test_faults_leave_no_server_errors_in_the_counters(server: Server) -> None:
    _, text = server.ask("/metrics")
    lines: list[Any] = [line for line in text.decode().splitlines() if 'status="500"' in line]
    assert not lines
