"""Single rows and the service: `predict_one` and `learn_one` beside river, HTTP beside FastAPI with scikit-learn.

Times of single rows are CPU times of this process, so that other work on the machine does not count. Rates of HTTP are those
of wrk on the same machine; the CPU time that the server spent on a request is printed beside them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult.parquet"
TARGET, CLIENTS = "income", 64
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


def adult(rows: int) -> tuple[dict[str, list[Any]], list[dict[str, Any]], list[Any]]:
    """The table as columns, its rows without the target, and the labels; a made table where Adult is not at hand."""
    if SHARED.exists():
        import pyarrow.parquet as pq

        table = pq.read_table(SHARED).drop_columns(["split"]).slice(0, rows).to_pydict()
    else:
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, rows)
        table = {f"number{j}": (rng.normal(size=rows) + 0.3 * y).round(2).tolist() for j in range(6)}
        table |= {f"word{j}": [f"v{v}" for v in rng.integers(0, 8, rows) + y] for j in range(8)}
        table[TARGET] = [("<=50K", ">50K")[k] for k in y]
    labels = table[TARGET]
    names = [name for name in table if name != TARGET]
    return table, [{name: table[name][i] for name in names} for i in range(len(labels))], labels


def cpu(work: Callable[[], Any], times: int, repeats: int = 5) -> float:
    """CPU seconds of one call: the best of several rounds."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append((time.process_time() - start) / times)
    return min(found)


def rows_section(small: bool, plain: Print, row: Print) -> None:
    """Single rows, beside river's pipeline of GaussianNB for numbers and one-hot categories."""
    from river import compose, naive_bayes, preprocessing

    import likely

    warnings.simplefilter("ignore")
    table, rows, labels = adult(5_000 if small else 48_842)
    some, own = rows[:1_000], labels[:1_000]
    predictor = likely.learn(table, TARGET).prepare()
    one = cpu(lambda: [predictor.predict_one(x) for x in some], len(some))
    shares = cpu(lambda: [predictor.predict_proba_one(x) for x in some], len(some))
    numbers = compose.SelectType(int, float)
    words = compose.SelectType(str) | preprocessing.OneHotEncoder()
    rival = (numbers + words) | naive_bayes.GaussianNB()
    for x, y in zip(rows[:3_000], labels, strict=False):
        rival.learn_one({k: v for k, v in x.items() if v is not None}, y)
    present = [{k: v for k, v in x.items() if v is not None} for x in some]
    theirs = cpu(lambda: [rival.predict_one(x) for x in present], len(present), 2)
    only = [{k: v for k, v in x.items() if isinstance(v, int | float)} for x in some]
    gaussian = naive_bayes.GaussianNB()
    for x, y in zip(only, own, strict=True):
        gaussian.learn_one(x, y)
    simple = cpu(lambda: [gaussian.predict_one(x) for x in only], len(only), 2)
    plain("rows", "predict_one, Adult, default model", one * 1e6, "µs", "<= 40 µs")
    plain("rows", "predict_proba_one, Adult, default model", shares * 1e6, "µs", "<= 40 µs")
    row("rows", "predict_one beside river's mixed pipeline", one, theirs, ">= 2x")
    row("rows", "predict_one beside river's GaussianNB, 6 numbers only", one, simple, ">= 2x")
    many = 3 * max(1, int(0.05 * len(rows)))
    feed = [(rows[i % len(rows)], labels[i % len(rows)]) for i in range(many)]
    start = time.process_time()
    for x, y in feed:
        predictor.learn_one(x, y)
    learned = (time.process_time() - start) / many
    plain("rows", f"learn_one, mean of {many:,} with all derivations", learned * 1e6, "µs", "<= 100 µs")
    theirs = cpu(lambda: [rival.learn_one(x, y) for x, y in zip(present[:300], own, strict=False)], 300, 2)
    row("rows", "learn_one beside river's mixed pipeline", learned, theirs, "")


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


def wrk(port: int, body: bytes, seconds: int, folder: Path) -> tuple[float, float]:
    """Requests a second and the 99th percentile in milliseconds, with 64 clients."""
    script = folder / "post.lua"
    text = body.decode().replace("\\", "\\\\").replace("'", "\\'")
    lines = ("wrk.method='POST'", "wrk.headers['Content-Type']='application/json'", f"wrk.body='{text}'")
    script.write_text("\n".join(lines), encoding="utf-8")
    command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}s", "--latency", "-s", str(script)]
    done = subprocess.run([*command, f"http://127.0.0.1:{port}/api/predict"], capture_output=True, text=True, check=True)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1])  # type: ignore[index]
    late, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", done.stdout).groups()  # type: ignore[union-attr]
    if "Non-2xx" in done.stdout:
        raise RuntimeError(done.stdout)
    return rate, float(late) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def serve_section(small: bool, plain: Print, row: Print) -> None:
    """The service, with wrk, and FastAPI with a scikit-learn pipeline doing the same job."""
    import likely

    if shutil.which("wrk") is None:
        print("serve: NOT MEASURED, wrk is not installed")
        return
    warnings.simplefilter("ignore")
    table, rows, labels = adult(5_000 if small else 48_842)
    seconds = 2 if small else 6
    ours_port, theirs_port = 8765, 8766
    one = json.dumps({"rows": rows[:1]}).encode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        likely.learn(table, TARGET).save(folder / "adult.likely")
        command = [sys.executable, "-m", "likely", "serve", str(folder / "adult.likely"), "--port", str(ours_port), "--quiet"]
        with running(command, ours_port, folder / "ours.log") as process:
            wrk(ours_port, one, 1, folder)
            before, start = spent(process), time.perf_counter()
            rate, late = wrk(ours_port, one, seconds, folder)
            used = (spent(process) - before) / (time.perf_counter() - start)
            plain("serve", f"single rows, {CLIENTS} clients", rate, "requests/s", ">= 3,000")
            plain("serve", "the same, for each CPU second of the server", rate / used, "requests/s", "")
            plain("serve", "the same, 99th percentile", late, "ms", "< 20")
            _batches(table, rows, ours_port, process, plain)
        _pipeline(rows, labels, folder / "pipeline.joblib")
        (folder / "app.py").write_text(FASTAPI, encoding="utf-8")
        command = [sys.executable, str(folder / "app.py"), str(folder / "pipeline.joblib"), str(theirs_port)]
        with running(command, theirs_port, folder / "theirs.log") as process:
            wrk(theirs_port, one, 1, folder)
            theirs, theirs_late = wrk(theirs_port, one, seconds, folder)
            plain("serve", "FastAPI with scikit-learn, single rows", theirs, "requests/s", "")
            plain("serve", "the same, 99th percentile", theirs_late, "ms", "")
            row("serve", "single rows beside FastAPI with scikit-learn", 1 / rate, 1 / theirs, ">= 5x")


def _batches(table: dict[str, list[Any]], rows: list[dict[str, Any]], port: int, process: Any, plain: Print) -> None:
    """Batches as columns and as rows: the best of several, by the clock and by the CPU time of the server."""
    columns = {name: cells for name, cells in table.items() if name != TARGET}
    for what, document in (("columns", {"columns": columns}), ("rows", {"rows": rows})):
        body = json.dumps(document).encode()
        best, least = 0.0, float("inf")
        for _ in range(5):
            before, start = spent(process), time.perf_counter()
            request = urllib.request.Request(f"http://127.0.0.1:{port}/api/predict", body, {"Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=60).read()
            best = max(best, len(rows) / (time.perf_counter() - start))
            least = min(least, spent(process) - before)
        plain("serve", f"batch of {len(rows):,} as {what}", best, "rows/s", ">= 300,000" if what == "columns" else "")
        plain("serve", "the same, for each CPU second of the server", len(rows) / max(least, 1e-9), "rows/s", "")


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

