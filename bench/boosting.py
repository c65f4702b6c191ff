"""Learning by default beside LightGBM at its default settings, on tables of many columns or classes."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from timing import median

REPEATS = 3
BUSY = "while True: pass"


def tables(small: bool) -> dict[str, tuple[Any, Any, str]]:
    """Columns, labels and the goal of each table."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(0)
    X, y = load_digits(return_X_y=True)
    some = rng.integers(0, len(y), 2_000 if small else 5_600)
    waves = rng.normal(size=(208, 60)).cumsum(1)
    rows = 5_000 if small else 67_000
    board = rng.integers(0, 3, size=(rows, 42))
    score = board[:, :6].sum(1) + 2 * (board[:, 7] == board[:, 8]) + rng.normal(0, 1.5, rows)
    wide = rng.normal(size=(500, 200 if small else 2_000))
    return {
        "digits, 1,797 x 64, ten classes": (X, y, ">= 1x"),
        f"{len(some):,} x 64 numbers, ten classes": (X[some] + rng.normal(0, 0.5, (len(some), 64)), y[some], ">= 1x"),
        "208 x 60 numbers, two classes": (waves, (waves[:, 20] + rng.normal(0, 4, 208) > 0).astype(int), "<= 0.2 s"),
        f"{rows:,} x 42 categories, three classes": (np.array(["a", "b", "c"])[board], np.digitize(score, [5, 7.5]), ">= 0.5x"),
        f"500 x {wide.shape[1]:,} numbers, two classes": (
            wide, (wide[:, 3] + wide[:, 20] + rng.normal(size=500) > 0).astype(int), "<= 2 s"),
    }  # fmt: skip


def compare(small: bool, row: Callable[..., None], plain: Callable[..., None]) -> None:
    """Every line of this section."""
    try:
        import lightgbm
    except ImportError as error:
        print(f"boosting     LightGBM is left out: {error}", flush=True)
        return
    import pandas as pd

    import likely

    warnings.simplefilter("ignore")
    for name, (X, y, goal) in tables(small).items():
        data = {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": y.astype(str)}
        frame = pd.DataFrame(X).astype("category") if X.dtype.kind == "U" else X
        ours = median(lambda data=data: likely.learn(data, "y"), REPEATS)
        theirs = median(lambda frame=frame, y=y: lightgbm.LGBMClassifier(verbose=-1).fit(frame, y), REPEATS)
        row("boosting", name, ours, theirs, goal)
        if name.startswith("digits"):
            beside = busy(lambda data=data: likely.learn(data, "y"))
            row("boosting", "the same beside a busy process, against quiet", beside, ours, "<= 2x", inverse=True)
    plain("boosting", "text, 52 classes, 6,500 documents", text(1_000 if small else 6_500), "s", "<= 4 s")


def busy(work: Callable[[], Any]) -> float:
    """The median time beside one other process that never waits."""
    with subprocess.Popen([sys.executable, "-c", BUSY]) as other:
        try:
            return median(work, REPEATS)
        finally:
            other.kill()


def text(documents: int) -> float:
    """The median time of learning by default from made documents of 52 topics of very different size."""
    import likely

    rng = np.random.default_rng(0)
    words, topics = 12_000, 52
    common = 1 / np.arange(1, words + 1) ** 1.05
    own = [rng.choice(words, 150, replace=False) for _ in range(topics)]
    share = 1 / np.arange(1, topics + 1) ** 1.2
    labels = rng.choice(topics, documents, p=share / share.sum())
    texts = []
    for topic in labels:
        length = int(rng.gamma(2, 35)) + 5
        drawn = np.concatenate(
            [rng.choice(words, length, p=common / common.sum()), rng.choice(own[topic], 2 + length // 8)]
        )
        texts.append(" ".join(f"w{i}" for i in drawn))
    data = {"text": texts, "y": labels.astype(str)}
    return median(lambda: likely.learn(data, "y", families={"text": "text"}), REPEATS)
