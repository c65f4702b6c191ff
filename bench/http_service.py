"""The service under load: wrk on the same machine, beside FastAPI with scikit-learn and beside the same handler in Starlette.

Rates are by the clock; the CPU time that the server spent on a request is printed beside them, because other work on the
machine does not change it. SERVE_SECONDS=300 makes the line of memory one of five minutes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving import TARGET, adult

CLIENTS = 64
BODIES = 500  # different rows that the clients send in turn
OURS, THEIRS, STARLETTE = 8765, 8766, 8767
Print = Callable[..., None]

FASTAPI = '''
import sys, joblib, pandas as pd
from fastapi import FastAPI
from pydantic import BaseModel
app, model = FastAPI(), joblib.load(sys.argv[1])
class Rows(BaseModel):
    rows: list[dict[str, str | float | None]]
@app.post("/api/predict")
def predict(body: Rows):
    frame = pd.DataFrame(body.rows)
    shares = model.predict_proba(frame)
    names = [str(c) for c in model.classes_]
    return {"predictions": [{"label": names[p.argmax()], "probabilities": dict(zip(names, p.tolist()))} for p in shares]}
import uvicorn
uvicorn.run(app, port=int(sys.argv[2]), log_level="error", access_log=False)
'''

SAME_HANDLER = '''
import gc, sys
from pathlib import Path
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from likely.web import _messages as messages
from likely.web._app import LOOPBACK, App
from likely.web._served_model import ServedModel
service = App({"adult": ServedModel.load("adult", Path(sys.argv[1]))}, {}, "token", frozenset(LOOPBACK), None)
async def answer(request: Request) -> Response:
    body = await request.body()
    found = service.handle(messages.Request(request.method, request.url.path, {}, request.headers, body))
    found = found if isinstance(found, messages.Response) else await found
    return Response(found.body, found.status, media_type=found.kind)
app = Starlette(routes=[Route("/api/predict", answer, methods=["POST"]), Route("/openapi.json", answer)])
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 10, 10)
uvicorn.run(app, port=int(sys.argv[2]), log_level="error", access_log=False, loop=sys.argv[3], http=sys.argv[4])
'''


@dataclass
class Load:
    """What wrk and the system say of some seconds of load."""

    rate: float
    late: float  # 99th percentile, milliseconds
    cpu: float  # seconds of the server for a request


@contextmanager
def running(command: Sequence[str], port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server, from when it answers until the end."""
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json", timeout=5).read()
                break
            except OSError:
                time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(20)


def spent(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a process so far."""
    import psutil

    found = psutil.Process(process.pid).cpu_times()
    return float(found.user + found.system)


def write_script(rows: list[dict[str, Any]], folder: Path) -> Path:
    """A script for wrk: each request is another row, so that nothing can be remembered."""
    whole = [row for row in rows[: 4 * BODIES] if None not in row.values()][:BODIES]  # the other pipeline needs all cells
    bodies = ",\n".join(f"[==[{json.dumps({'rows': [row]})}]==]" for row in whole)
    path = folder / "rows.lua"
    path.write_text(
        f"local bodies = {{{bodies}}}\nlocal made, i = {{}}, 0\n"
        "init = function(args) for k, body in ipairs(bodies) do made[k] = wrk.format('POST', nil, "
        "{['Content-Type'] = 'application/json', ['Host'] = wrk.host .. ':' .. wrk.port}, body) end end\n"
        "request = function() i = i % #made + 1; return made[i] end\n",
        encoding="utf-8",
    )
    return path


def wrk(process: subprocess.Popen[bytes], port: int, seconds: int, script: Path) -> Load:
    """Some seconds of single rows, with 64 clients."""
    before = spent(process)
    command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}s", "--latency", "-s", str(script)]
    done = subprocess.run([*command, f"http://127.0.0.1:{port}/api/predict"], capture_output=True, text=True, check=True)
    used = spent(process) - before
    if "Non-2xx" in done.stdout:
        raise RuntimeError(done.stdout)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1])  # type: ignore[index]
    many = int(re.search(r"(\d+) requests in", done.stdout)[1])  # type: ignore[index]
    late, unit = re.search(r"\n\s+99%\s+([\d.]+)(us|ms|s)", done.stdout).groups()  # type: ignore[union-attr]
    return Load(rate, float(late) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit], used / many)


def best(process: subprocess.Popen[bytes], port: int, seconds: int, script: Path) -> Load:
    """The best of three after one second of warming up: least CPU, least lateness, highest rate."""
    wrk(process, port, 1, script)
    found = [wrk(process, port, seconds, script) for _ in range(3)]
    return Load(max(f.rate for f in found), min(f.late for f in found), min(f.cpu for f in found))


def serve_section(small: bool, plain: Print, row: Print) -> None:
    """The service, with wrk: single rows, batches, memory, and two other services."""
    import likely

    if shutil.which("wrk") is None:
        print("serve: NOT MEASURED, wrk is not installed")
        return
    warnings.simplefilter("ignore")
    table, rows, labels = adult(5_000 if small else 48_842)
    seconds = 1 if small else 4
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script, model = write_script(rows, folder), folder / "adult.likely"
        likely.learn(table, TARGET).save(model)
        command = [sys.executable, "-m", "likely", "serve", str(model), "--port", str(OURS), "--quiet"]
        with running(command, OURS, folder / "ours.log") as process:
            ours = best(process, OURS, seconds, script)
            plain("serve", f"single rows, {CLIENTS} clients, best of 3", ours.rate, "requests/s", ">= 3,000")
            plain("serve", "the same, CPU of the server", ours.cpu * 1e6, "µs a request", "")
            plain("serve", "the same, 99th percentile", ours.late, "ms", "< 20")
            _batches(table, rows, process, plain)
            _memory(process, rows, script, plain)
            _starlette(process, model, folder, script, row)
        _fastapi(ours, rows, labels, folder, plain, row)


def _batches(table: dict[str, list[Any]], rows: list[dict[str, Any]], process: Any, plain: Print) -> None:
    """Batches as columns and as rows: the best of several, by the clock and by the CPU time of the server."""
    columns = {name: cells for name, cells in table.items() if name != TARGET}
    for what, document in (("columns", {"columns": columns}), ("rows", {"rows": rows})):
        body = json.dumps(document).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{OURS}/api/predict", body, {"Content-Type": "application/json"})
        times, cpu, waits = [], [], [0.0]
        for _ in range(10):
            before, start = spent(process), time.perf_counter()
            urllib.request.urlopen(request, timeout=60).read()
            times.append(time.perf_counter() - start)
            cpu.append(spent(process) - before)
        with _asking_health(waits):
            for _ in range(5):
                urllib.request.urlopen(request, timeout=60).read()
        plain("serve", f"batch of {len(rows):,} as {what}", len(rows) / min(times), "rows/s", ">= 300,000")
        plain("serve", "the same, for each CPU second of the server", len(rows) / max(min(cpu), 1e-9), "rows/s", "")
        plain("serve", "the same, longest wait of /health meanwhile", max(waits) * 1e3, "ms", "< 100")


@contextmanager
def _asking_health(waits: list[float]) -> Iterator[None]:
    """Ask /health all the time, and note how long each answer took."""

    def ask() -> None:
        start = time.perf_counter()
        urllib.request.urlopen(f"http://127.0.0.1:{OURS}/health", timeout=60).read()
        waits.append(time.perf_counter() - start)

    with _repeatedly(ask, 0.005):
        yield


@contextmanager
def _repeatedly(work: Callable[[], None], pause: float) -> Iterator[None]:
    """Do some work again and again, from another thread."""
    stop = threading.Event()

    def loop() -> None:
        while not stop.wait(pause):
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _memory(process: Any, rows: list[dict[str, Any]], script: Path, plain: Print) -> None:
    """Resident memory before, in the middle and after a while of load: single rows all the time, a batch every second."""
    import psutil

    seconds = int(os.environ.get("SERVE_SECONDS", "8"))
    body = json.dumps({"rows": rows}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{OURS}/api/predict", body, {"Content-Type": "application/json"})
    used = [psutil.Process(process.pid).memory_info().rss / 1e6]
    with _repeatedly(lambda: urllib.request.urlopen(request, timeout=60).close(), 1.0):
        for _ in range(2):
            wrk(process, OURS, max(1, seconds // 2), script)
            used.append(psutil.Process(process.pid).memory_info().rss / 1e6)
    for when, megabytes in zip(("before", f"after {seconds // 2} s of", f"after {seconds} s of"), used, strict=True):
        plain("serve", f"resident memory {when} load", megabytes, "MB", "flat" if when != "before" else "")


def _starlette(process: Any, model: Path, folder: Path, script: Path, row: Print) -> None:
    """The same handler behind uvicorn and Starlette: in Python as ours, and with compiled loop and parser where installed."""
    from importlib.util import find_spec

    (folder / "same.py").write_text(SAME_HANDLER, encoding="utf-8")
    kinds = [("asyncio", "h11")]
    if find_spec("uvloop") and find_spec("httptools"):
        kinds.append(("uvloop", "httptools"))
    for kind in kinds:
        command = [sys.executable, str(folder / "same.py"), str(model), str(STARLETTE), *kind]
        with running(command, STARLETTE, folder / "starlette.log") as peer:
            wrk(peer, STARLETTE, 1, script)
            pairs = [(wrk(process, OURS, 1, script).cpu, wrk(peer, STARLETTE, 1, script).cpu) for _ in range(4)]
        ours, theirs = (min(pair[side] for pair in pairs) for side in (0, 1))
        row("serve", f"CPU of a request beside Starlette, {' and '.join(kind)}", ours, theirs, "> 1x")


def _fastapi(ours: Load, rows: list[dict[str, Any]], labels: list[Any], folder: Path, plain: Print, row: Print) -> None:
    """FastAPI with a scikit-learn pipeline doing the same job."""
    _pipeline(rows, labels, folder / "pipeline.joblib")
    (folder / "app.py").write_text(FASTAPI, encoding="utf-8")
    command = [sys.executable, str(folder / "app.py"), str(folder / "pipeline.joblib"), str(THEIRS)]
    script = folder / "rows.lua"
    with running(command, THEIRS, folder / "theirs.log") as process:
        wrk(process, THEIRS, 1, script)
        theirs = wrk(process, THEIRS, 4, script)
    plain("serve", "FastAPI with scikit-learn, single rows", theirs.rate, "requests/s", "")
    plain("serve", "the same, 99th percentile", theirs.late, "ms", "")
    row("serve", "single rows beside FastAPI with scikit-learn", 1 / ours.rate, 1 / theirs.rate, ">= 5x")


def _pipeline(rows: list[dict[str, Any]], labels: list[Any], path: Path) -> None:
    """A scikit-learn pipeline as people write it: imputing, one-hot encoding, logistic regression."""
    import joblib
    import pandas as pd
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = pd.DataFrame(rows[:10_000])
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    select = make_column_selector(dtype_include="number")
    by_kind = make_column_transformer((numbers, select), (words, make_column_selector(dtype_exclude="number")))
    joblib.dump(make_pipeline(by_kind, LogisticRegression(max_iter=300)).fit(frame, labels[:10_000]), path)
