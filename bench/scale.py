"""Counting where the rows live: a large Parquet table against DuckDB, many tallies, and Spark against MLlib."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

CATEGORIES, NUMBERS = 20, 10
NAMES = [*(f"c{j}" for j in range(CATEGORIES)), *(f"x{j}" for j in range(NUMBERS)), "y"]

READING = 1.2  # seconds after which a command has begun to read rows


def write_table(path: Path, rows: int) -> None:
    """Twenty categorical and ten numeric columns, written piece by piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for first in range(0, rows, 500_000):
        n = min(500_000, rows - first)
        y = rng.integers(0, 2, n)
        columns: dict[str, Any] = {}
        for j in range(CATEGORIES):
            size = (2, 5, 10, 50, 200)[j % 5]
            codes = (rng.integers(0, size, n) + (rng.random(n) < 0.2 * y)) % size
            values = pa.array([f"value {i}" for i in range(size)])
            columns[f"c{j}"] = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), values).dictionary_decode()
        for j in range(NUMBERS):
            x = rng.normal(0.3 * y, 1.0)
            columns[f"x{j}"] = pa.array(np.round(x, 3) if j % 2 else x)
        columns["y"] = pa.array(np.array(["no", "yes"])[y])
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def best(work: Callable[[], Any], repeats: int = 3) -> float:
    """The fastest of several runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def own_process(code: str, *arguments: str) -> float:
    """The peak memory of a process of its own, in MB."""
    ending = "; print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')))"
    done = subprocess.run([sys.executable, "-c", code + ending, *arguments], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1]) / 1024


def interrupted(arguments: list[str]) -> float:
    """Seconds from Ctrl-C to the end of a command that reads rows, with exit code 130; not a number if it was done before."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-m", "likely", *arguments], **silent)
    time.sleep(READING)
    start = time.perf_counter()
    process.send_signal(signal.SIGINT)
    return time.perf_counter() - start if process.wait() == 130 else float("nan")


def group_bys(connection: Any, path: Path) -> None:
    """The counts of a plain model by hand: all tables in one scan by grouping sets, moments in another."""
    sets = ", ".join(f"(y, c{j})" for j in range(CATEGORIES))
    names = ", ".join(f"c{j}" for j in range(CATEGORIES))
    connection.execute(f"select y, {names}, count(*) from '{path}' group by grouping sets ({sets})").fetchall()
    _moments(connection, path)


def group_bys_apart(connection: Any, path: Path) -> None:
    """The same with one GROUP BY for each column."""
    for j in range(CATEGORIES):
        connection.execute(f"select y, c{j}, count(*) from '{path}' group by all").fetchall()
    _moments(connection, path)


def _moments(connection: Any, path: Path) -> None:
    moments = ", ".join(f"count(x{j}), avg(x{j}), var_pop(x{j})" for j in range(NUMBERS))
    connection.execute(f"select y, {moments} from '{path}' group by y").fetchall()


def compare(small: bool, row: Any, plain: Any) -> None:
    """All lines of the section."""
    rows = int(os.environ.get("SCALE_ROWS", "") or (200_000 if small else 10_000_000))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "table.parquet"
        write_table(path, rows)
        _on_one_machine(path, rows, row, plain)
        _shards(path, plain)
        if not os.environ.get("SCALE_WITHOUT_SPARK"):
            _spark(path, rows, row)


def _in_turn(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, tuple[float, float]]:
    """The least waiting time and the least CPU time of each work, children included; one after the other, several times."""
    found: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        for name, work in works.items():
            cpu, start = _cpu(), time.perf_counter()
            work()
            now = time.perf_counter() - start, _cpu() - cpu
            least = found.get(name, now)
            found[name] = min(now[0], least[0]), min(now[1], least[1])
    return found


def _cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _on_one_machine(path: Path, rows: int, row: Any, plain: Any) -> None:
    import duckdb
    import pyarrow.parquet as pq

    import likely

    model, scored = path.with_name("m.likely"), path.with_name("out.parquet")
    compiled = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # as installed: bytecode is kept
    predict = ["-m", "likely", "predict", str(model), str(path), "--probabilities", "-o", str(scored)]
    learn = ["-m", "likely", "learn", str(path), "--target", "y", "-o", str(path.with_name("again.likely"))]

    def command(arguments: list[str]) -> None:
        subprocess.run([sys.executable, *arguments], env=compiled, check=True, capture_output=True)

    connection = duckdb.connect(config={"threads": os.cpu_count() or 1})
    every = ", ".join(f"bit_xor(hash({name}))" for name in NAMES)  # min and count would be answered from the statistics
    likely.learn(next(pq.ParquetFile(path).iter_batches(200_000)), "y")  # compiled kernels
    likely.learn(path, "y").save(model)
    works: dict[str, Callable[[], Any]] = {
        "reading": lambda: connection.execute(f"select {every} from '{path}'").fetchall(),
        "learning": lambda: likely.learn(path, "y"),
        "counting": lambda: likely.learn(path, "y", plain=True),
        "grouping": partial(group_bys, connection, path),
        "grouping apart": partial(group_bys_apart, connection, path),
        "learning by command": partial(command, learn),  # both with the start of a process
        "scoring by command": partial(command, predict),
    }
    found = _in_turn(works, 2 if rows > 2_000_000 else 3)
    peer = min((found[name] for name in ("grouping", "grouping apart")), key=lambda each: each[0])
    for of, time_ in enumerate(("", ", CPU time")):
        ours, theirs, counts = found["learning"][of], found["reading"][of], found["counting"][of]
        row("scale", f"default model, {rows:,} x 30, to DuckDB reading{time_}", ours, theirs, "<= 2x", inverse=True)
        row("scale", f"plain counts to DuckDB's best GROUP BYs{time_}", counts, peer[of], "<= 1.3x", inverse=True)
        scoring, learning = found["scoring by command"][of], found["learning by command"][of]
        row("scale", f"scoring Parquet to Parquet to learning{time_}", scoring, learning, "<= 1.5x", inverse=True)
    _memory(path, rows, plain, predict)


def _memory(path: Path, rows: int, plain: Any, predict: list[str]) -> None:
    """Peak memory of learning and scoring, of all rows and of a tenth of them, and the time to the end after Ctrl-C."""
    learn = "import sys, likely; likely.learn(sys.argv[1], 'y')"
    score = "import sys; from likely.cli import main; main(sys.argv[1:], standalone_mode=False)"
    some, few = max(rows // 10, 1), path.with_name("few.parquet")
    write_table(few, some)
    plain("scale", f"peak memory of learning {rows:,} rows", own_process(learn, str(path)), "MB", "< 800")
    plain("scale", f"the same of {some:,} rows", own_process(learn, str(few)), "MB", "flat")
    plain("scale", f"peak memory of scoring {rows:,} rows", own_process(score, *predict[2:]), "MB", "flat")
    fewer = [str(few) if each == str(path) else each for each in predict[2:]]
    plain("scale", f"the same of {some:,} rows", own_process(score, *fewer), "MB", "flat")
    command = ["learn", str(path), "--target", "y", "-o", str(path.with_name("m.likely"))]
    plain("scale", "from Ctrl-C to the end of learning", interrupted(command), "s", "< 2 s")


def _shards(path: Path, plain: Any) -> None:
    """A thousand shards of the table, counted one by one and added in a tree, as a cluster adds those of its tasks."""
    import pyarrow.parquet as pq

    import likely
    from likely.engines.adding import total

    some = pq.ParquetFile(path)
    table = next(some.iter_batches(1_000_000))
    plan = likely.plan(table.slice(0, 50_000), "y")
    size = max(table.num_rows // 1_000, 1)
    start = time.perf_counter()
    parts = [plan.count(table.slice(i, size)) for i in range(0, size * 1_000, size)]
    spent = time.perf_counter() - start
    plain("scale", f"counting 1,000 shards of {size:,} rows, a shard", spent, "ms", "none")
    tallies = [part.tally for part in parts]
    plain("scale", "adding 1,000 tallies", best(lambda: total(tallies), 2), "s", "< 2 s")
    plain("scale", "size of a tally on its way", len(plan.parts.part_to_bytes(parts[0])) / 1e6, "MB", "none")
    plain("scale", "size of the sum", len(plan.parts.part_to_bytes(plan.count(table.slice(0, 100_000)))) / 1e6, "MB", "none")


def _spark(path: Path, rows: int, row: Any) -> None:
    """The Spark engine on all columns against MLlib's pipeline on the categorical ones."""
    try:
        from pyspark.ml import Pipeline
        from pyspark.ml.classification import NaiveBayes
        from pyspark.ml.feature import StringIndexer, VectorAssembler
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = builder.config("spark.log.level", "ERROR").config("spark.driver.memory", "2g").getOrCreate()
    except Exception as error:  # no PySpark, or no Java
        print(f"scale        NOT MEASURED: Spark, {str(error).splitlines()[0][:100]}")
        return
    import likely

    frame = spark.read.parquet(str(path))
    inputs, outputs = [*(f"c{j}" for j in range(CATEGORIES)), "y"], [*(f"i{j}" for j in range(CATEGORIES)), "label"]
    pipeline = Pipeline(stages=[
        StringIndexer(inputCols=inputs, outputCols=outputs), VectorAssembler(inputCols=outputs[:-1], outputCol="features"),
        NaiveBayes(modelType="multinomial"),
    ])  # fmt: skip
    repeats = 2 if rows > 2_000_000 else 3
    ways = {"tasks read the files": "spark", "rows handed over": "spark-rows"}
    spent: dict[tuple[str, bool], float] = {}
    theirs = best(lambda: pipeline.fit(frame), repeats)
    for way, engine in ways.items():
        for plain in (True, False):
            spent[way, plain] = best(partial(likely.learn, frame, "y", engine=engine, plain=plain), repeats)
    theirs = min(theirs, best(lambda: pipeline.fit(frame), 1))
    for (way, plain), seconds in spent.items():
        what = "plain" if plain else "default model"
        goal = ">= 3x" if ways[way] == "spark" else "none"
        row("scale", f"Spark against MLlib, {what}, {way}", seconds, theirs, goal)
    spark.stop()
