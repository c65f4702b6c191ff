"""What trustworthy answers cost: the default beside plain counting, and beside Khiops if that is installed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from timing import median

REPEATS = 7


def table(rows: int, seed: int = 0) -> Any:
    """Ten numbers and ten categories, some of which speak together, with gaps; and a label of two classes."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    columns: dict[str, Any] = {}
    for j in range(10):
        x = rng.normal(size=rows) + y * 0.05 * j if j % 2 else rng.exponential(1.0 + y * 0.1 * j, size=rows)
        columns[f"n{j}"] = np.where(rng.random(rows) < 0.03, np.nan, x)
    for j in range(8):
        size = 3 + 3 * j
        code = (rng.integers(0, size, rows) + y * (rng.random(rows) < 0.04 * j)) % size
        columns[f"c{j}"] = pd.Series([f"v{i}" for i in range(size)], dtype="str").to_numpy()[code]
    one = rng.integers(0, 2, rows)
    other = one ^ y ^ (rng.random(rows) < 0.35)
    columns["one"], columns["other"] = np.array(["p", "q"])[one], np.array(["s", "t"])[other]
    columns["y"] = np.array(["no", "yes"])[y]
    return pd.DataFrame(
        {name: pd.Series(x, dtype="str" if x.dtype.kind in "UO" else None) for name, x in columns.items()}
    )


def compare(small: bool, row: Callable[..., None], plain: Callable[..., None]) -> None:
    """Every line of this section."""
    import likely

    warnings.simplefilter("ignore")
    rows = 20_000 if small else 100_000
    data = table(rows)
    features = data.drop(columns="y")
    counting = median(lambda: likely.learn(data, "y", plain=True), REPEATS)
    default = median(lambda: likely.learn(data, "y"), REPEATS)
    row("trust", f"default against plain counting, {rows:,} x 20", default, counting, "<= 15x", inverse=True)
    plain("trust", f"learning by default, {rows:,} x 20", default, "s", "<= 3 s")
    model, textbook = likely.learn(data, "y"), likely.learn(data, "y", plain=True)
    plain("trust", "sets of columns that speak together in it", len(model.calibration.interactions), "sets", "-")
    asked, plainly = (
        median(lambda: model.posterior(features), REPEATS),
        median(lambda: textbook.posterior(features), REPEATS),
    )
    row("trust", f"predicting with weights and sets, {rows:,} rows", asked, plainly, "<= 4x", inverse=True)
    khiops(data, default, row, plain)
    noise(small, plain)
    if not small:
        large = table(1_000_000)
        start = time.perf_counter()
        likely.learn(large, "y")
        plain("trust", "learning by default, 1,000,000 x 20", time.perf_counter() - start, "s", "< 20 s")
    tiny = data.head(150)
    plain("trust", "learning by default, 150 x 20", median(lambda: likely.learn(tiny, "y"), REPEATS), "s", "< 0.2 s")


NOISE = ((10, 1), (10, 30), (14, 4), (20, 60), (30, 100), (60, 40), (60, 500), (200, 200), (1_000, 5), (1_000, 50))


def noise(small: bool, plain: Callable[..., None]) -> None:
    """Log loss on new rows beyond that of the class frequencies, for tables without any signal; numbers and categories."""
    import likely

    seeds = 5 if small else 25
    for rows, columns in NOISE if small else (*NOISE, (60, 3_000), (100, 5_000), (1_000, 2_000)):
        beyond = []
        for seed in range(seeds if columns < 1_000 else 3):
            rng = np.random.default_rng(1_000 + seed)
            y = rng.integers(0, 2, rows + 500)
            y[:2] = 0, 1
            numbers = rng.normal(size=(columns, rows + 500))
            cells = [np.array(["a", "b", "c"])[(1.5 + x).clip(0, 2).astype(int)] if j % 2 else x for j, x in enumerate(numbers)]
            names = [f"x{j}" for j in range(columns)]
            model = likely.learn({n: x[:rows] for n, x in zip(names, cells, strict=True)} | {"y": y[:rows]}, "y")
            shares = model.posterior({n: x[rows:] for n, x in zip(names, cells, strict=True)}).probabilities
            usual = (np.bincount(y[:rows], minlength=2) + 0.5) / (rows + 1)
            beyond.append(np.log(usual[y[rows:]]).mean() - np.log(shares[np.arange(500), y[rows:]]).mean())
        what = f"log loss beyond class frequencies, noise {rows:,} x {columns:,}"
        plain("trust", f"{what}, mean", float(np.mean(beyond)), "nats", "<= 0.02")
        plain("trust", f"{what}, share of draws above 0.02", float(np.mean(np.array(beyond) > 0.02)), "", "-")


def khiops(data: Any, ours: float, row: Callable[..., None], plain: Callable[..., None]) -> None:
    """Khiops without trees, on the same rows: time, and log loss on rows that neither has seen."""
    try:
        from khiops.sklearn import KhiopsClassifier
    except ImportError as error:
        print(f"trust        Khiops is left out: {error}", flush=True)
        return
    import likely

    fresh = table(len(data), seed=1)
    X, y = data.drop(columns="y"), data["y"]
    start = time.perf_counter()
    try:
        theirs = KhiopsClassifier(n_trees=0, n_features=0).fit(X, y)
    except Exception as error:  # it needs programs of its own beside Python, which may be missing or broken
        print(f"trust        Khiops is left out: {str(error).splitlines()[0][:100]}", flush=True)
        return
    row(
        "trust", f"learning, {len(data):,} x 20, against Khiops (no trees)", ours, time.perf_counter() - start, ">= 50x"
    )
    truth = (fresh["y"] == "yes").to_numpy().astype(int)
    said = {"Khiops": theirs.predict_proba(fresh.drop(columns="y")), "Likely": None}
    said["Likely"] = likely.learn(data, "y").posterior(fresh.drop(columns="y")).probabilities
    for name, shares in said.items():
        loss = -np.log(np.clip(np.asarray(shares)[np.arange(len(truth)), truth], 1e-15, 1)).mean()
        plain("trust", f"log loss on new rows, {name}", float(loss), "nats", "ours no worse")
