"""Likely beside its peers, in one run: medians of repeated runs, printed as ratios, because machines are noisy.

    python bench/run.py [SECTION ...] [--small] [--json FILE]

Sections: start, gaussian, categorical, strings, parquet, sql, folds, text, tokens, em, sequences, networks, brain, trust,
boosting, totals, scaling, rows, serve, report, scale (all if none is named; SCALE_ROWS=1000000 makes the last table smaller,
SERVE_SECONDS=300 measures the memory of the service over five minutes).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from timing import median

RESULTS: list[dict[str, Any]] = []


def row(section: str, what: str, ours: float, theirs: float, goal: str, *, inverse: bool = False) -> None:
    """One line of the table: both times, the ratio, and what was to be reached."""
    ratio = ours / theirs if inverse else theirs / ours
    RESULTS.append({"section": section, "what": what, "ours_s": ours, "theirs_s": theirs, "ratio": ratio, "goal": goal})
    print(f"{section:12} {what:58} {ours:9.4f} s {theirs:9.4f} s {ratio:8.2f}x   goal {goal}", flush=True)


def plain(section: str, what: str, value: float, unit: str, goal: str) -> None:
    """One line of the table without a library to compare with."""
    RESULTS.append({"section": section, "what": what, "value": value, "unit": unit, "goal": goal})
    print(f"{section:12} {what:58} {value:9.3f} {unit:20}   goal {goal}", flush=True)


def start(_small: bool) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    tennis = Path(__file__).parents[1] / "src" / "likely" / "data" / "tennis.csv"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "likely"]

        def run(*arguments: str, **more: str) -> None:
            subprocess.run([*command, *arguments], env=environment | more, cwd=folder, check=True, capture_output=True)

        plain("start", "likely --help", median(lambda: run("--help")), "s", "< 0.3 s")
        learn = ("learn", str(tennis), "--target", "PlayTennis", "-o", "m.likely")
        fresh = iter(range(1000))
        plain("start", "likely learn, 14 rows, cold kernel cache",
              median(lambda: run(*learn, NUMBA_CACHE_DIR=f"{folder}/{next(fresh)}")), "s", "< 1.5 s")  # fmt: skip


def gaussian(small: bool) -> None:
    from sklearn.naive_bayes import GaussianNB

    from likely import NaiveBayes

    rng = np.random.default_rng(0)
    rows = 100_000 if small else 1_000_000
    y = rng.integers(0, 10, rows)
    X = rng.normal(size=(rows, 50)) + y[:, None] * 0.1
    ours, theirs = NaiveBayes(plain=True), GaussianNB()
    fit, peer = median(lambda: ours.fit(X, y)), median(lambda: theirs.fit(X, y), 3)
    row("gaussian", f"fit {rows:,} x 50, 10 classes, against GaussianNB", fit, peer, ">= 10x")
    row("gaussian", "the same against merely summing the array", fit, median(lambda: X.sum()), "<= 6x", inverse=True)
    part = X[: rows // 5]
    row("gaussian", f"predict_proba {rows // 5:,} x 50", median(lambda: ours.predict_proba(part)),
        median(lambda: theirs.predict_proba(part), 3), ">= 8x")  # fmt: skip
    apart = np.abs(ours.predict_proba(part) - theirs.predict_proba(part)).max()
    plain("gaussian", "largest difference in probability", apart, "", "~ 0")


def categorical(small: bool) -> None:
    from sklearn.naive_bayes import CategoricalNB

    from likely import NaiveBayes

    rng = np.random.default_rng(0)
    rows = 100_000 if small else 1_000_000
    y = rng.integers(0, 10, rows)
    X = (rng.integers(0, 8, (rows, 30)) + y[:, None]) % 8
    ours, theirs = NaiveBayes(families="categorical"), CategoricalNB()
    row("categorical", f"fit {rows:,} x 30 codes, against CategoricalNB", median(lambda: ours.fit(X, y)),
        median(lambda: theirs.fit(X, y), 3), ">= 30x")  # fmt: skip
    row(
        "categorical",
        f"predict {rows:,} x 30",
        median(lambda: ours.predict(X)),
        median(lambda: theirs.predict(X), 3),
        ">= 5x",
    )
    apart = np.abs(ours.predict_proba(X[:1000]) - theirs.predict_proba(X[:1000])).max()
    plain("categorical", "largest difference in probability", apart, "", "~ 0")


def strings(small: bool) -> None:
    import pandas as pd
    import pyarrow as pa
    from sklearn.naive_bayes import CategoricalNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    from likely import NaiveBayes

    rng = np.random.default_rng(0)
    rows = 20_000 if small else 300_000
    words = np.array([f"value {i}" for i in range(20)])
    y = rng.integers(0, 5, rows)
    frame = pd.DataFrame({f"c{j}": words[(rng.integers(0, 20, rows) + y) % 20] for j in range(12)})
    table = pa.Table.from_pandas(frame)
    theirs = make_pipeline(OrdinalEncoder(dtype=np.int64), CategoricalNB())
    peer = median(lambda: theirs.fit(frame, y), 3)
    ours = NaiveBayes(plain=True)
    row(
        "strings",
        f"fit {rows:,} x 12 strings from pandas, OrdinalEncoder + NB",
        median(lambda: ours.fit(frame, y)),
        peer,
        ">= 10x",
    )
    row(
        "strings",
        f"fit {rows:,} x 12 strings from Arrow, OrdinalEncoder + NB",
        median(lambda: ours.fit(table, y)),
        peer,
        ">= 10x",
    )


def mixed_parquet(path: Path, rows: int) -> None:
    """A table of twelve text columns and ten numbers, written piece by piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer = None
    for first in range(0, rows, 500_000):
        n = min(500_000, rows - first)
        y = rng.integers(0, 4, n)
        columns = {"label": pa.array(np.array(["a", "b", "c", "d"])[y])}
        for j in range(12):
            size = (3, 5, 10, 20, 50, 100)[j % 6]
            columns[f"c{j}"] = pa.array(
                np.array([f"value {v}" for v in range(size)])[(rng.integers(0, size, n) + y) % size]
            )
        columns |= {f"n{j}": pa.array(rng.normal(y * 0.1 * j, 1 + j)) for j in range(10)}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def parquet(small: bool) -> None:
    import duckdb

    import likely

    rows = 500_000 if small else 5_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixed.parquet"
        mixed_parquet(path, rows)
        names = ["label", *(f"c{j}" for j in range(12)), *(f"n{j}" for j in range(10))]
        # Every value is looked at: count() alone would answer from the file's own statistics without reading the text.
        look = ", ".join(f"sum({n})" if n.startswith("n") else f"sum(strlen({n}))" for n in names)
        skip = ", ".join(f"sum({n})" if n.startswith("n") else f"count({n})" for n in names)

        def scan(what: str) -> Any:
            return (
                duckdb.connect(config={"threads": os.cpu_count() or 1})
                .execute(f"select {what} from '{path}'")
                .fetchall()
            )

        learn = median(lambda: likely.learn(path, target="label", plain=True))
        for what, name, goal in (
            (look, "reading every value", "<= 2x"),
            (skip, "counting text from statistics", "none"),
        ):
            seconds = median(partial(scan, what))
            row("parquet", f"learn {rows:,} x 22 against a DuckDB scan {name}", learn, seconds, goal, inverse=True)
        for part in (rows // 5, rows):
            small_path = path if part == rows else Path(folder) / "part.parquet"
            if part != rows:
                mixed_parquet(small_path, part)
            plain(
                "parquet",
                f"peak memory, {part:,} rows (a process of its own)",
                _peak(small_path),
                "MB",
                "< 600, flat in rows",
            )


def _peak(path: Path) -> float:
    # The kernel's own high-water mark: getrusage would count what the parent held when it forked.
    code = (
        "import sys, likely; likely.learn(sys.argv[1], target='label', plain=True); "
        "print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    return float(done.stdout) / 1024


def sql(small: bool) -> None:
    from sql import report

    report(small, row, plain)


def folds(small: bool) -> None:
    import likely

    rng = np.random.default_rng(0)
    rows = 50_000 if small else 500_000
    y = rng.integers(0, 5, rows)
    data = {f"n{j}": rng.normal(size=rows) + 0.1 * j * y for j in range(10)}
    words = np.array([f"value {i}" for i in range(12)])
    import pyarrow as pa

    table = pa.table(data | {f"c{j}": words[(rng.integers(0, 12, rows) + y) % 12] for j in range(10)} | {"y": words[y]})
    model = likely.learn(table, target="y", plain=True)
    once = median(lambda: likely.learn(table, target="y", plain=True), 3) + median(lambda: model.predict(table), 3)
    ten = median(lambda: likely.evaluate(table, target="y", plain=True, folds=10), 3)
    row("folds", f"10-fold on {rows:,} x 20 against one fit + one predict", ten, once, "< 2.5x", inverse=True)


NEWS = Path(__file__).resolve().parents[2] / "shared" / "data" / "twenty_newsgroups.parquet"


def posts(small: bool) -> tuple[list[str], Any, list[str], Any]:
    """The official split of 20 Newsgroups: texts and labels to learn from, texts and labels to judge."""
    import pyarrow.parquet as pq

    table = pq.read_table(NEWS, columns=["text", "label", "split"])
    texts, labels = table["text"].to_pylist(), np.array(table["label"].to_pylist())
    train = np.array(table["split"].to_pylist()) == "train"
    some, rest = np.flatnonzero(train)[:: 10 if small else 1], np.flatnonzero(~train)[:: 10 if small else 1]
    return [texts[i] for i in some], labels[some], [texts[i] for i in rest], labels[rest]


def text(small: bool) -> None:
    if not NEWS.exists():
        print("text         NOT MEASURED: ../shared/data/twenty_newsgroups.parquet is not there")
        return
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    from likely import TextNaiveBayes

    train, y, test, truth = posts(small)
    peer = make_pipeline(CountVectorizer(), MultinomialNB())
    learn, predict = median(lambda: peer.fit(train, y), 3), median(lambda: peer.predict_proba(test), 3)
    for kind, goal, often in (("multinomial", ">= 25x", 15), ("auto", "none", 5)):
        ours = TextNaiveBayes(kind)
        row(
            "text",
            f"learn {len(train):,} posts, {kind}, CountVectorizer + NB",
            median(lambda o=ours: o.fit(train, y), often),
            learn,
            goal,
        )
        asked = median(lambda o=ours: o.predict_proba(test), often)
        row("text", f"predict {len(test):,} posts, {kind}", asked, predict, goal)
        logs = ours.predict_log_proba(test)
        places = np.searchsorted(ours.classes_, truth)
        plain("text", f"accuracy, {kind}", float((ours.predict(test) == truth).mean()), "", ">= 0.8447 (auto)")
        plain("text", f"log loss, {kind}", float(-logs[np.arange(len(test)), places].mean()), "", "<= 0.60 (auto)")
    for name in ("likely", "sklearn"):
        plain("text", f"memory above the texts, {name}", _text_peak(name, small), "MB", "a quarter of scikit-learn's")
    _one_post(TextNaiveBayes("multinomial").fit(train, y).model_, test[0], truth[0])


def _one_post(model: Any, one: str, label: Any) -> None:
    """What a word of a single post costs, beside a whole corpus."""
    words = max(len(one.split()), 1)
    model = model.update([{"text": one, "label": label}])
    plain(
        "text",
        "predict one post, a word",
        median(lambda: model.predict([{"text": one}])) * 1e6 / words,
        "us",
        "microseconds",
    )
    again = [model]

    def update() -> None:
        again[0] = again[0].update([{"text": one, "label": label}])

    plain("text", "update with one post, a word", median(update) * 1e6 / words, "us", "microseconds")


def _text_peak(who: str, small: bool) -> float:
    """How far learning raises the high-water mark of a process that holds the texts already."""
    make = {
        "likely": "from likely import TextNaiveBayes; make = lambda: TextNaiveBayes('multinomial')",
        "sklearn": "from sklearn.pipeline import make_pipeline as join; from sklearn.naive_bayes import MultinomialNB; "
        "from sklearn.feature_extraction.text import CountVectorizer; make = lambda: join(CountVectorizer(), MultinomialNB())",
    }[who]
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import run, peak_memory; {make}; "
        f"a, b, _, _ = run.posts({small}); make().fit(a[::10], b[::10]); before = peak_memory.reset_peak(); "
        "m = make().fit(a, b); print(peak_memory.peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def tokens(small: bool) -> None:
    if NEWS.exists():
        import tokens as counting

        counting.compare(1 if small else 3)


def scaling(small: bool) -> None:
    import sizes

    sizes.plain_counting(small)
    sizes.default(small)


def rows(small: bool) -> None:
    import serving

    serving.rows_section(small, plain, row)


def serve(small: bool) -> None:
    import http_service

    http_service.serve_section(small, plain, row)


def report(small: bool) -> None:
    import reports

    reports.report_section(small, plain)


def beside(module: str) -> Callable[[bool], None]:
    """The section of a module that compares with another library."""
    return lambda small: importlib.import_module(module).compare(small, row, plain)


OTHERS = {
    "em": "mixtures", "sequences": "chains", "networks": "networks", "brain": "voxels", "trust": "trust",
    "boosting": "boosting", "totals": "totals", "scale": "scale",
}  # fmt: skip
OWN = (start, gaussian, categorical, strings, parquet, sql, folds, text, tokens, scaling, rows, serve, report)
SECTIONS = {f.__name__: f for f in OWN} | {name: beside(module) for name, module in OTHERS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--small", action="store_true", help="a tenth of the rows: to see that it runs")
    parser.add_argument("--json", metavar="FILE", help="write the results there as well")
    given = parser.parse_args()
    print(f"{'section':12} {'work':58} {'ours':>11} {'theirs':>11} {'ratio':>9}")
    for name in given.sections or SECTIONS:
        SECTIONS[name](given.small)
    if given.json:
        Path(given.json).write_text(json.dumps(RESULTS, indent=1))


if __name__ == "__main__":
    main()
