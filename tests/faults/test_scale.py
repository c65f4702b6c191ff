"""Loads: memory does not grow with the file, time not with the square of columns; very many classes or values are reported."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import likely
from commands import run
from likely.calibration import _temperature as temperature
from likely.cli import _predicted_rows as predicted_rows
from likely.engines import memory
from likely.errors import LikelyWarning, ResourceError, UsageError
from likely.schema import Column
from likely.sources import ReadOptions, open_source
from likely.sources import _csv_arrow as csv_arrow
from likely.sources import _memory_limit as memory_limit
from processes import refused

PEAK = """
import contextlib, io, json, sys
from likely.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(sys.argv[1:], standalone_mode=False)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({"code": code, "peak": int(status["VmHWM"].split()[0]) * 1024}))
"""
ALLOWANCE = 150_000_000  # bytes by which peaks may differ: a short file has fewer batches under way than a long one
LIMIT = 600_000_000


on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say what a process took")


def peak(*words: object) -> int:
    """The most memory that a command takes in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *map(str, words)], capture_output=True, text=True, check=True, timeout=300
    )
    reported = json.loads(done.stdout.splitlines()[-1])
    assert reported["code"] == 0, done.stderr
    return int(reported["peak"])


def table(path: Path, size: int) -> Path:
    """A mixed table of about so many bytes."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(2_000):
        y = i % 3
        numbers = ",".join(f"{x:.3f}" for x in rng.normal(y, 2, 6))
        rows.append(f"{numbers},city-{rng.integers(40) + y},a longer sentence number {rng.integers(9)},k{y}\n")
    block = "".join(rows)
    with path.open("w") as file:
        file.write("a,b,c,d,e,f,city,note,y\n")
        for _ in range(max(1, size // len(block))):
            file.write(block)
    return path


@on_linux
def test_the_peak_does_not_grow_with_a_csv_file(tmp_path: Path) -> None:
    small, large = table(tmp_path / "s.csv", 15_000_000), table(tmp_path / "l.csv", 60_000_000)
    model = tmp_path / "m.likely"
    peaks = [peak("learn", path, "--target", "y", "-o", model) for path in (small, large)]
    assert peaks[1] < LIMIT
    assert peaks[1] - peaks[0] < ALLOWANCE, peaks


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_a_batch_of_a_wide_file_is_bounded_by_its_cells(tmp_path: Path, ending: str) -> None:
    rows, columns = (6_000, 1_500) if ending == "parquet" else (1_000, 1_500)
    data = {f"c{j}": np.arange(rows, dtype=float) for j in range(columns)}
    path = tmp_path / f"w.{ending}"
    if ending == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table(data), path)
    else:
        line = json.dumps(dict.fromkeys(data, 1.0))
        path.write_text("\n".join([line] * rows))
    sizes = [batch.rows * columns for batch in open_source(str(path)).batches()]
    assert sum(sizes) == rows * columns
    assert max(sizes) <= 1 << 21


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_batch_of_long_texts_is_bounded_by_its_bytes(tmp_path: Path, quote: str) -> None:
    path = tmp_path / "t.csv"
    cell = quote + "word " * 20_000 + quote
    path.write_text("x,y\n" + "".join(f"{cell},{i}\n" for i in range(300)))
    batches = list(open_source(str(path)).batches())
    assert sum(batch.rows for batch in batches) == 300
    assert max(batch.rows for batch in batches) * 100_000 < 12_000_000


def test_a_memory_limit_that_cannot_be_kept_is_exit_code_6(tmp_path: Path) -> None:
    path, model = table(tmp_path / "d.csv", 100_000), tmp_path / "m.likely"
    with pytest.raises(ResourceError, match="memory limit of 20 MB is exceeded"):
        likely.learn(str(path), "y", memory_limit=20_000_000)
    words = ["learn", str(path), "--target", "y", "-o", str(model), "--memory-limit", "20MB"]
    assert "--memory-limit" in refused(*words, code=6)
    assert not model.exists()
    with pytest.raises(UsageError, match="memory_limit=-1"):
        likely.learn(str(path), "y", memory_limit=-1)


def test_a_memory_limit_changes_no_count(tmp_path: Path) -> None:
    path = table(tmp_path / "d.csv", 2_000_000)
    assert likely.learn(str(path), "y", memory_limit=8_000_000_000).tally == likely.learn(str(path), "y").tally
    limited = ReadOptions(memory_limit=210_000_000)
    usual = ReadOptions()
    assert limited.batch_bytes() < usual.batch_bytes()


def test_columns_are_compared_with_those_of_the_first_rows_in_linear_time() -> None:
    looked: list[str] = []

    class Name(str):
        def __eq__(self, other: object) -> bool:
            looked.append(self)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Name(f"x{j}") for j in range(2_000)]
    columns = {Name(name): [1] for name in names}
    assert list(predicted_rows._in_order_of_first(names, columns, None)) == names  # type: ignore[arg-type]
    assert len(looked) < 20 * len(names)


@on_linux
def test_a_wide_table_is_learned_predicted_and_explained(tmp_path: Path) -> None:
    path, model = tmp_path / "w.csv", tmp_path / "m.likely"
    rng = np.random.default_rng(0)
    lines = [",".join([*map(str, rng.integers(0, 3, 3_000).tolist()), "ab"[i % 2]]) for i in range(12)]
    path.write_text("\n".join([",".join([*(f"x{j}" for j in range(3_000)), "y"]), *lines]) + "\n")
    for words in (
        ["learn", path, "--target", "y", "--plain", "-o", model],
        ["predict", model, path, "-o", tmp_path / "p.csv"],
        ["explain", model, path],
    ):
        assert peak(*words) < LIMIT


def test_very_many_classes_share_one_weight_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert temperature.MANY_CLASSES == 1_000
    monkeypatch.setattr(temperature, "MANY_CLASSES", 200)
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(240), rng.integers(0, 240, 480)])
    data = {"a": [f"v{k % 37}" for k in y], "b": y // 37 + rng.normal(0, 0.3, len(y)), "y": [f"k{k}" for k in y]}
    with pytest.warns(LikelyWarning, match=r"240 classes: all columns share one weight"):
        model = likely.learn(data, "y")
    assert model.calibration is not None
    assert len(set(model.calibration.weights.values())) == 1
    assert not model.calibration.interactions
    found = model.posterior(data).probabilities
    assert np.allclose(found.sum(1), 1)
    assert (model.predict(data) == np.array(data["y"])).mean() > 0.3


def test_up_to_a_thousand_classes_each_column_has_its_own_weight() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 60, 600)
    data = {"a": [f"v{k % 10}" for k in y], "noise": rng.normal(size=len(y)), "y": [f"k{k:03}" for k in y]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", LikelyWarning)
        model = likely.learn(data, "y")
    assert model.calibration is not None
    assert len(set(model.calibration.weights.values())) == 2


def test_a_column_with_very_many_values_is_kept_with_a_word() -> None:
    values = np.arange(60_000)
    data = {"z": [f"u{v}" for v in np.concatenate([values, values, values])], "y": ["a", "b", "a"] * 60_000}
    with pytest.warns(LikelyWarning, match=r"column 'z' has 60,000 different values in 180,000 rows.*--ignore"):
        likely.learn(data, "y", plain=True)


def calls(work: Callable[[], object]) -> int:
    """How many functions of Python and of C are called."""
    found = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_work_grows_with_the_columns_and_not_with_their_square(tmp_path: Path, ending: str, plain: bool) -> None:
    sizes, done = (150, 300) if plain else (40, 80), []
    for columns in (10, *sizes):  # the first takes what is done once in a process
        rng = np.random.default_rng(0)
        data = pd.DataFrame({f"x{j}": rng.normal(size=10).round(2) for j in range(columns)} | {"y": list("ab") * 5})
        path, model = tmp_path / f"{columns}.{ending}", tmp_path / f"{columns}.likely"
        (data.to_parquet if ending == "parquet" else data.to_csv)(path, index=False)
        settings = ["--plain"] if plain else []
        words = [
            ["learn", path, "--target", "y", "-o", model, *settings], ["predict", model, path, "-o", tmp_path / "p.csv"],
            ["inspect", model], ["explain", model, path], ["evaluate", model, path],
            ["update", model, path],
        ]  # fmt: skip
        done.append([calls(partial(run, *map(str, each))) for each in words])
    for command, small, large in zip(words, *done[1:], strict=True):
        assert large < 2.5 * small, (command, small, large)


def test_a_batch_of_very_many_columns_has_many_rows(tmp_path: Path) -> None:
    rows, columns = 40, 12_000
    path = tmp_path / "w.csv"
    line = ",".join(["1.234567"] * columns)
    path.write_text("\n".join([",".join(f"c{j}" for j in range(columns)), *[line] * rows]) + "\n")
    assert [batch.rows for batch in open_source(str(path)).batches()] == [rows]
    limited = ReadOptions(memory_limit=300_000_000)
    assert limited.batch_bytes(columns) < ReadOptions().batch_bytes(columns)


def test_a_column_of_very_many_values_is_added_up_in_few_large_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "BATCH_BYTES", 1 << 12)
    monkeypatch.setattr(csv_arrow, "BLOCK", 1 << 12)
    monkeypatch.setattr(memory, "MANY_VALUES", 50)
    united: list[int] = []
    union = Column.union
    monkeypatch.setattr(Column, "union", lambda a, b: (united.append(len(a.values)), union(a, b))[1])
    rng = np.random.default_rng(0)
    work = []
    for rows in (4_000, 8_000):
        names = [f"u{v}" for v in rng.permutation(rows)]
        data = pd.DataFrame({"z": names, "x": rng.integers(0, 9, rows), "y": list("ab") * (rows // 2)})
        data.to_csv(path := tmp_path / f"{rows}.csv", index=False)
        united.clear()
        families = {"z": "categorical", "x": "gaussian"}
        read = likely.learn(str(path), "y", families=families, plain=True)
        work.append(sum(united))
        assert read.tally.counted_the_same(likely.learn(data, "y", families=families, plain=True).tally)
    assert work[1] < 3 * work[0]


def test_a_scored_table_is_freed_at_once_and_does_not_wait_for_the_garbage_collector() -> None:
    """A service scores tables for weeks; what only the collector frees can be gigabytes before it runs."""
    import pyarrow as pa

    model = likely.learn({"a": ["u", "v"] * 20, "n": [1.0, 2.0, 3.0, 4.0] * 10, "y": ["no", "yes"] * 20}, "y", plain=True)
    text, number = pa.array(["u", "w"]).dictionary_encode(), pa.array([1.0, 2.0])
    kept = [weakref.ref(text), weakref.ref(number)]
    gc.disable()
    try:
        model.posterior({"a": text, "n": number})
        model.posterior({"a": pa.array(["1", "2"]), "n": number})
        del text, number
        assert [each() for each in kept] == [None, None]
    finally:
        gc.enable()
