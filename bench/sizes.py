"""Time against the number of rows, columns and classes."""

from __future__ import annotations

import time
import warnings

import numpy as np

from timing import median


def plain_counting(small: bool) -> None:
    """Plain counting and scoring, by rows, columns and classes."""
    from likely import NaiveBayes

    rng = np.random.default_rng(0)
    unit = 25_000 if small else 100_000

    def measure(rows: int, columns: int, classes: int) -> tuple[float, float]:
        y = rng.integers(0, classes, rows)
        X = rng.normal(size=(rows, columns))
        model = NaiveBayes(plain=True)
        return median(lambda: model.fit(X, y)), median(lambda: model.predict_proba(X))

    for name, sizes in (
        ("rows", [(unit * 2**i, 20, 4) for i in range(4)]),
        ("columns", [(unit, 20 * 2**i, 4) for i in range(4)]),
        ("classes", [(unit, 20, 4 * 2**i) for i in range(4)]),
    ):
        for rows, columns, classes in sizes:
            fit, predict = measure(rows, columns, classes)
            cell = 1e9 / (rows * columns)
            size = f"{name:8} {rows:8,} x {columns:4} x {classes:3} classes"
            times = (
                f"{what} {t:7.4f} s ({t * cell:6.2f} ns a cell)"
                for what, t in (("fit", fit), ("predict_proba", predict))
            )
            print(f"scaling      {size}: {', '.join(times)}", flush=True)


def default(small: bool) -> None:
    """Learning by default, by columns and by classes."""
    import likely

    rng = np.random.default_rng(0)
    rows = 500 if small else 1_000

    def measure(name: str, columns: int, classes: int) -> None:
        y = np.arange(rows) % classes
        X = rng.normal(size=(rows, columns))
        X[:, :5] += rng.normal(size=(classes, 5))[y]
        data = {f"x{j}": X[:, j] for j in range(columns)} | {"y": y.astype(str)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            likely.learn(data, "y")
        spent = time.perf_counter() - start
        size = f"{name:8} {rows:8,} x {columns:4} x {classes:3} classes"
        print(
            f"scaling      {size}: learn by default {spent:7.3f} s ({1e3 * spent / columns:6.2f} ms a column)",
            flush=True,
        )

    measure("warm", 10, 2)
    for columns in (10, 30, 100, 300) if small else (10, 30, 100, 300, 1_000):
        measure("columns", columns, 2)
    for classes in (2, 5, 10, 30, 100):
        measure("classes", 20, classes)
