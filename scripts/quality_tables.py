"""The tables of docs/quality.md: real ones, made ones, and real ones with copied rows."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likely.evaluation._baselines import FeatureTable

COPIED = ("heart_cleveland", "vote", "credit_g", "titanic", "wdbc")  # tables that are learned with copies, too
SIZES = (100, 300, 1_000, 3_000, 10_000)  # rows to learn from, of the largest tables
MADE_TEST = 2_000  # rows


@dataclass(frozen=True)
class Data:
    """One table: its columns, the true classes as numbers, and the matrix that baselines want."""

    name: str
    columns: pa.Table
    classes: list[str]
    labels: Any
    matrix: FeatureTable
    split: tuple[Any, Any] | None = None  # rows to learn from and rows to ask; None: folds

    @property
    def entropy(self) -> float:
        """The log loss of the class frequencies alone."""
        share = np.bincount(self.labels) / len(self.labels)
        return float(-(share * np.log(share)).sum())


def real(folder: Path, wanted: Sequence[str]) -> Iterator[Data]:
    """The tables of a folder and of scikit-learn, smallest first, one at a time."""
    found: list[tuple[int, str, Callable[[], tuple[pa.Table, list[Any]]]]] = []
    if (folder / "INDEX.csv").exists():
        with (folder / "INDEX.csv").open(encoding="utf-8") as file:
            for line in csv.DictReader(file):
                if line["kind"] == "table":
                    name = Path(line["file"]).stem
                    found.append((int(line["rows"]), name, lambda line=line: _from_file(folder, line)))
    found += [(569, "wdbc", lambda: _built_in("wdbc")), (1797, "digits", lambda: _built_in("digits"))]
    unknown = set(wanted) - {name for _, name, _ in found}
    if unknown:
        raise SystemExit(f"no such table: {', '.join(sorted(unknown))}")
    for _, name, load in sorted(found, key=lambda each: each[0]):
        if not wanted or name in wanted:
            columns, labels = load()
            classes = sorted({str(label) for label in labels})
            place = {label: i for i, label in enumerate(classes)}
            numbers = np.array([place[str(label)] for label in labels])
            yield Data(name, columns, classes, numbers, _matrix(columns))


def _from_file(folder: Path, line: dict[str, str]) -> tuple[pa.Table, list[Any]]:
    from pyarrow.csv import read_csv
    from pyarrow.parquet import read_table

    path = folder / line["file"]
    table = read_csv(path) if path.suffix == ".csv" else read_table(path)
    left_out = {line["target"], line["split_column"], *line["ignore"].split()}
    return table.select([name for name in table.column_names if name not in left_out]), table[
        line["target"]
    ].to_pylist()


def _built_in(name: str) -> tuple[pa.Table, list[Any]]:
    from sklearn import datasets

    bunch = datasets.load_breast_cancer() if name == "wdbc" else datasets.load_digits()
    return pa.table({f"x{j}": bunch.data[:, j] for j in range(bunch.data.shape[1])}), bunch.target.tolist()


def _matrix(columns: pa.Table) -> FeatureTable:
    """Numbers as they are, categories by their place among the sorted values, NaN where missing."""
    made, numbers, categories, sizes = [], [], [], []
    for j, name in enumerate(columns.column_names):
        cells = columns[name].to_pylist()
        if any(isinstance(cell, (str, bool)) for cell in cells):
            place = {value: i for i, value in enumerate(sorted({str(cell) for cell in cells if cell is not None}))}
            made.append([np.nan if cell is None else place[str(cell)] for cell in cells])
            categories.append(j)
            sizes.append(len(place))
        else:
            made.append([np.nan if cell is None else float(cell) for cell in cells])
            numbers.append(j)
    return FeatureTable(np.array(made, dtype=float).T, tuple(numbers), tuple(categories), tuple(sizes))


def copied(labels: Any, train: Any, how: str) -> Any:
    """The rows to learn from, some of them several times."""
    if how == "every row twice":
        return np.repeat(train, 2)
    rarest = np.bincount(labels[train], minlength=labels.max() + 1)
    rare = int(np.argmin(np.where(rarest > 0, rarest, len(train) + 1)))
    return np.repeat(train, np.where(labels[train] == rare, 3, 1))


def by_size(data: Data) -> Iterator[Data]:
    """The first so many rows of a random order to learn from, and always the same others to ask."""
    order = np.random.default_rng(0).permutation(len(data.labels))
    asked = order[max(SIZES) :][:10_000]
    for size in SIZES:
        if len(order) >= max(SIZES) + 1_000:
            yield replace(data, name=f"{data.name}, {size:,} rows", split=(order[:size], asked))


def made() -> Iterator[Data]:
    """Tables of numbers whose truth is known: noise, a needle in a haystack, directions, interactions."""
    for name, make in MADE.items():
        train, X, y = make(np.random.default_rng(0))
        yield _of_numbers(name, X, y, train)


def generated() -> Iterator[Data]:
    """Tables of scikit-learn's generators, with few and many rows to learn from."""
    for train in (300, 2_000):
        for name, make in GENERATORS.items():
            X, y = make(train + MADE_TEST)
            yield _of_numbers(f"{name}, {train:,} rows", X, np.unique(y, return_inverse=True)[1], train)


def _of_numbers(name: str, X: Any, y: Any, train: int) -> Data:
    """A table of which the first rows are to learn from."""
    columns, rows = pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])}), np.arange(len(y))
    classes = sorted({str(label) for label in y})
    return Data(name, columns, classes, np.asarray(y), _matrix(columns), (rows[:train], rows[train:]))


def _noise(rows: int, width: int) -> Callable[[Any], tuple[int, Any, Any]]:
    return lambda rng: (rows, rng.normal(size=(rows + MADE_TEST, width)), rng.integers(0, 2, rows + MADE_TEST))


def _signals(rows: int, width: int, some: int) -> Callable[[Any], tuple[int, Any, Any]]:
    """A few columns whose mean differs between the classes by one deviation, among noise."""

    def make(rng: Any) -> tuple[int, Any, Any]:
        y = rng.integers(0, 2, rows + MADE_TEST)
        X = rng.normal(size=(len(y), width))
        X[:, :some] += (2 * y - 1)[:, None] * 0.75
        return rows, X, y

    return make


def _rotated(rng: Any) -> tuple[int, Any, Any]:
    """Two Gaussians in 20 dimensions with one covariance, apart along a direction of small variance."""
    y = rng.integers(0, 2, 1_000 + MADE_TEST)
    turn = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    deviations = np.geomspace(3.0, 0.3, 20)
    X = rng.normal(size=(len(y), 20)) * deviations
    X[:, -4:] += (2 * y - 1)[:, None] * deviations[-4:] * 0.7
    return 1_000, X @ turn, y


def _cells(width: int, columns: int, rule: Callable[[Any], Any]) -> Callable[[Any], tuple[int, Any, Any]]:
    """Uniform numbers whose class depends on the cell that they lie in."""

    def make(rng: Any) -> tuple[int, Any, Any]:
        X = rng.uniform(size=(4_000 + MADE_TEST, columns))
        return 4_000, X, rule(np.floor(X * width).astype(int)) % 2

    return make


MADE: dict[str, Callable[[Any], tuple[int, Any, Any]]] = {
    "noise, 200 rows × 200": _noise(200, 200),
    "noise, 60 rows × 500": _noise(60, 500),
    "noise, 14 rows × 4": _noise(14, 4),
    "5 signals in 2,000 columns, 60 rows": _signals(60, 2_000, 5),
    "1 signal in 501 columns, 300 rows": _signals(300, 501, 1),
    "rotated Gaussians, 20 dimensions": _rotated,
    "XOR of two numbers": _cells(2, 2, lambda cell: cell.sum(1)),
    "checkerboard, 4 × 4": _cells(4, 2, lambda cell: cell.sum(1)),
    "parity of 3 of 10 columns": _cells(2, 10, lambda cell: cell[:, :3].sum(1)),
}


def _from(name: str, **settings: Any) -> Callable[[int], tuple[Any, Any]]:
    """A generator of scikit-learn; the target of a regression is cut at its median."""

    def make(rows: int) -> tuple[Any, Any]:
        from sklearn import datasets

        size = {"n_samples": rows, "random_state": 0}
        X, y = getattr(datasets, name)(**size, **settings)[:2]
        return X, (y > np.median(y) if "friedman" in name else y)

    return make


GENERATORS: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "Hastie, ten dimensions": _from("make_hastie_10_2"),
    "moons": _from("make_moons", noise=0.25),
    "circles": _from("make_circles", noise=0.1, factor=0.6),
    "Gaussian shells, ten dimensions": _from("make_gaussian_quantiles", n_features=10, n_classes=3),
    "clusters, 5 of 20 columns": _from("make_classification", n_features=20, n_informative=5, n_clusters_per_class=3),
    "clusters, 20 of 50 columns": _from("make_classification", n_features=50, n_informative=20, n_clusters_per_class=5),
    "blobs, eight dimensions": _from("make_blobs", n_features=8, centers=6, cluster_std=4.0),
    "Friedman 1": _from("make_friedman1", noise=1.0),
    "Friedman 2": _from("make_friedman2", noise=50.0),
    "Friedman 3": _from("make_friedman3", noise=0.1),
}
