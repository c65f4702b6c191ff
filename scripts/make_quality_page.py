"""Write docs/quality.md: Likely beside other learners on real tables, every figure measured by this script.

    python scripts/make_quality_page.py [--data FOLDER] [--seeds 3] [--tables zoo,vote] [--ours-only] [--no-page]

FOLDER holds tables and an INDEX.csv that names file, kind, target, split column and columns to ignore; two of scikit-learn's
built-in sets are added. Five stratified folds, dealt anew for each seed, the same for all. What rivals did is kept in
build/quality.json, by table, learner and seed: they are slow and run once, Likely runs every time. With --ours-only nothing
but Likely is run, and the page covers what was kept.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # one core for everybody: seconds can be compared

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

import likely  # noqa: E402
from likely.compare import judged  # noqa: E402
from likely.rivals import RIVALS, Table  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
CACHE = ROOT / "build" / "quality.json"
PAGE = ROOT / "docs" / "quality.md"
FOLDS = 5
TARGET = "the class"
CAP = 3.0  # of a normalised log loss: one hopeless table must not decide a mean
OURS = {"likely": {}, "likely-plain": {"plain": True}}
CHOSEN = ("gradient-boosting", "random-forest", "logistic-regression", "categorical-nb", "gaussian-nb")
TITLES = {"likely": "Likely", "likely-plain": "Likely, plain"} | {name: RIVALS[name].title for name in CHOSEN}
Figures = dict[str, float]


@dataclass(frozen=True)
class Data:
    """One table: its columns, the true classes as numbers, and the matrix that rivals want."""

    name: str
    columns: pa.Table
    classes: list[str]
    labels: Any
    matrix: Table

    @property
    def entropy(self) -> float:
        """The log loss of the class shares alone."""
        share = np.bincount(self.labels) / len(self.labels)
        return float(-(share * np.log(share)).sum())


def tables(folder: Path, wanted: Sequence[str]) -> Iterator[Data]:
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


def _matrix(columns: pa.Table) -> Table:
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
    return Table(np.array(made, dtype=float).T, tuple(numbers), tuple(categories), tuple(sizes))


def folds(labels: Any, seed: int) -> list[tuple[Any, Any]]:
    """The same for all: stratified, shuffled by the seed."""
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(labels)), labels))


def run(data: Data, learner: str, seed: int) -> Figures:
    """The figures of one learner over all folds of a table."""
    shares = np.zeros((len(data.labels), len(data.classes)))
    fit = predict = 0.0
    go = _ours if learner in OURS else _rival
    for train, test in folds(data.labels, seed):
        part, known, learned, asked = go(data, learner, train, test)
        shares[np.ix_(test, known)] = part
        fit, predict = fit + learned, predict + asked
    found = judged(shares, np.arange(len(data.classes)), data.labels, data.classes)
    return {
        "accuracy": found.accuracy,
        "log_loss": found.log_loss,
        "calibration_error": found.calibration_error,
        "brier": found.brier,
        "seconds": fit + predict,
        "fit_seconds": fit,
        "entropy": data.entropy,
    }


def _ours(data: Data, learner: str, train: Any, test: Any) -> tuple[Any, Any, float, float]:
    labelled = data.columns.append_column(TARGET, pa.array([data.classes[i] for i in data.labels]))
    seen, asked = labelled.take(pa.array(train)), data.columns.take(pa.array(test))
    start = time.perf_counter()
    model = likely.learn(seen, TARGET, **OURS[learner])
    middle = time.perf_counter()
    shares = model.posterior(asked).probabilities
    place = {label: i for i, label in enumerate(data.classes)}
    known = np.array([place[str(label)] for label in model.classes])
    return shares, known, middle - start, time.perf_counter() - middle


def _rival(data: Data, learner: str, train: Any, test: Any) -> tuple[Any, Any, float, float]:
    X, y = data.matrix.X, data.labels
    start = time.perf_counter()
    model = RIVALS[learner].make(data.matrix, y[train]).fit(X[train], y[train])
    middle = time.perf_counter()
    shares = model.predict_proba(X[test])
    return shares, model.classes_, middle - start, time.perf_counter() - middle


def measure(arguments: argparse.Namespace) -> dict[str, Figures]:
    """Run what is missing, Likely always, and keep everything after every step; what is returned is of these tables."""
    names = set()
    kept: dict[str, Figures] = json.loads(CACHE.read_text(encoding="utf-8")) if CACHE.exists() else {}
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    for data in tables(arguments.data, arguments.tables):
        names.add(data.name)
        for seed in range(arguments.seeds):
            for learner in TITLES:
                key = f"{data.name}|{learner}|{seed}"
                if learner not in OURS and (key in kept or arguments.ours_only):
                    continue
                kept[key] = run(data, learner, seed)
                CACHE.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")
                said = kept[key]
                print(f"{key:44} accuracy {said['accuracy']:.4f}  log loss {said['log_loss']:.4f}  "
                      f"ECE {said['calibration_error']:.4f}  {said['seconds']:.1f} s", flush=True)  # fmt: skip
    return {key: figures for key, figures in kept.items() if key.split("|")[0] in names}


# ---------------------------------------------------------------- the page


@dataclass(frozen=True)
class Board:
    """Figures averaged over seeds: table × learner; only tables that every learner has run on."""

    names: list[str]
    sizes: dict[str, int]  # seeds of each table
    scores: dict[tuple[str, str], Figures]

    @staticmethod
    def of(kept: dict[str, Figures]) -> Board:
        """What was kept, seed by seed where all learners have run."""
        seeds: dict[str, dict[int, dict[str, Figures]]] = {}
        for key, figures in kept.items():
            table, learner, seed = key.split("|")
            if learner in TITLES:
                seeds.setdefault(table, {}).setdefault(int(seed), {})[learner] = figures
        scores, sizes = {}, {}
        for table, by_seed in seeds.items():
            whole = [found for found in by_seed.values() if found.keys() >= TITLES.keys()]
            if whole:
                sizes[table] = len(whole)
                for learner in TITLES:
                    scores[table, learner] = _mean([found[learner] for found in whole])
        return Board(sorted(sizes), sizes, scores)

    def of_learner(self, learner: str, figure: str) -> Any:
        """One figure of a learner on every table."""
        return np.array([self.scores[table, learner][figure] for table in self.names])


def _mean(found: list[Figures]) -> Figures:
    keys = ("accuracy", "log_loss", "calibration_error", "seconds", "entropy")
    mean = {key: float(np.mean([figures[key] for figures in found])) for key in keys}
    return mean | {"normalised": min(mean["log_loss"] / mean["entropy"], CAP)}


def page(board: Board) -> str:
    """The page as Markdown."""
    seeds = sorted(set(board.sizes.values()))
    many = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    parts = [HEAD.format(tables=len(board.names), seeds=many), *_means(board), *_duels(board)]
    parts += _each(
        board, "normalised", "Normalised log loss, table by table", "Bold is the best of a line; 1 is the class shares."
    )
    parts += _each(board, "accuracy", "Accuracy, table by table", "Bold is the best of a line.")
    parts += _losses(board)
    return "\n".join(parts).rstrip() + "\n"


HEAD = """\
# Quality

<!-- Made by scripts/make_quality_page.py; run it again instead of changing this page. -->

{tables} real tables, five stratified folds, {seeds} seeds, the same folds for all. Nothing is tuned on test rows: every
learner has its defaults. Rivals see the table through the preparations described in [Beside other learners](compare.md).
*Normalised log loss* is log loss over the entropy of the classes (1: no better than the class shares), capped at 3 for each
table; probabilities below 1e-15 are taken as 1e-15, for everybody. Seconds are five fits and five predictions on one core.
"""


def _means(board: Board) -> list[str]:
    lines = ["## In the mean", "", "| model | accuracy | log loss | normalised log loss | calibration error | seconds |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    ranked = sorted(TITLES, key=lambda name: board.of_learner(name, "normalised").mean())
    for name in ranked:
        cells = [board.of_learner(name, f).mean() for f in ("accuracy", "log_loss", "normalised", "calibration_error")]
        title = f"**{TITLES[name]}**" if name in OURS else TITLES[name]
        lines.append(
            f"| {title} | {' | '.join(f'{v:.4f}' for v in cells)} | {board.of_learner(name, 'seconds').mean():.2f} |"
        )
    return [*lines, ""]


def _duels(board: Board) -> list[str]:
    lines = [
        "## Wins and losses",
        "",
        "Likely as it comes against each, by tables; differences are Likely's figure less the other's. One table can make",
        "a mean: *without the best* leaves out the table on which Likely gains most.",
        "",
        "| against | log loss: won / lost | normalised log loss | without the best | accuracy: won / tied / lost | points |",
        "|---|---|---|---|---|---|",
    ]
    for name in TITLES:
        if name == "likely":
            continue
        loss, right = (board.of_learner("likely", f) - board.of_learner(name, f) for f in ("normalised", "accuracy"))
        lines.append(
            f"| {TITLES[name]} | {(loss < 0).sum()} / {(loss > 0).sum()} | {loss.mean():+.4f} | "
            f"{np.sort(loss)[1:].mean():+.4f} ({board.names[int(loss.argmin())]}) | "
            f"{(right > 0).sum()} / {(right == 0).sum()} / {(right < 0).sum()} | {100 * right.mean():+.2f} |"
        )
    return [*lines, ""]


def _each(board: Board, figure: str, title: str, remark: str) -> list[str]:
    lines = [
        f"## {title}",
        "",
        remark,
        "",
        f"| table | {' | '.join(TITLES.values())} |",
        "|---" * (len(TITLES) + 1) + "|",
    ]
    for table in board.names:
        values = {name: board.scores[table, name][figure] for name in TITLES}
        best = max(values.values()) if figure == "accuracy" else min(values.values())
        cells = [f"**{v:.4f}**" if v == best else f"{v:.4f}" for v in values.values()]
        lines.append(f"| {table} | {' | '.join(cells)} |")
    return [*lines, ""]


def _losses(board: Board) -> list[str]:
    """Where somebody else is clearly better, the worst first."""
    found = []
    for table in board.names:
        mine = board.scores[table, "likely"]["normalised"]
        rival = min(
            (name for name in TITLES if name not in OURS), key=lambda name: board.scores[table, name]["normalised"]
        )
        gap = mine - board.scores[table, rival]["normalised"]
        if gap > 0.01:
            found.append((gap, table, rival))
    lines = ["## Where Likely loses", ""]
    if not found:
        return [*lines, "On none of these tables is another learner's normalised log loss lower by more than 0.01.", ""]
    lines += ["Tables on which the best of the others has a normalised log loss lower by more than 0.01:", ""]
    lines += [f"- {table}: {TITLES[rival]}, by {gap:.3f}" for gap, table, rival in sorted(found, reverse=True)]
    return [*lines, ""]


def main() -> None:
    """Measure, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", type=lambda text: text.split(","), default=[])
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--no-page", action="store_true")
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds, solvers that stop early
        kept = measure(arguments)
    board = Board.of(kept)
    if not board.names:
        raise SystemExit("no table has been run by every learner yet")
    if arguments.no_page:
        print("\n".join([*_means(board), *_duels(board)]))
    else:
        PAGE.write_text(page(board), encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)}: {len(board.names)} tables")


if __name__ == "__main__":
    main()
