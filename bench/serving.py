"""Single rows: `predict_one` and `learn_one` beside river; the table that the bench of the service uses as well.

Times are CPU times of this process, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult.parquet"
TARGET = "income"
Print = Callable[..., None]


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
    peer = (numbers + words) | naive_bayes.GaussianNB()
    for x, y in zip(rows[:3_000], labels, strict=False):
        peer.learn_one({k: v for k, v in x.items() if v is not None}, y)
    present = [{k: v for k, v in x.items() if v is not None} for x in some]
    theirs = cpu(lambda: [peer.predict_one(x) for x in present], len(present), 2)
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
    theirs = cpu(lambda: [peer.learn_one(x, y) for x, y in zip(present[:300], own, strict=False)], 300, 2)
    row("rows", "learn_one beside river's mixed pipeline", learned, theirs, "")
