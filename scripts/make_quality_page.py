"""Write docs/quality.md: Likely beside other learners, every figure measured by this script.

    python scripts/make_quality_page.py [--data FOLDER] [--seeds 3] [--tables zoo,vote] [--most-rows N] [--ours-only]
                                        [--learners lightgbm,random-forest] [--without letter] [--minutes 40] [--no-page]

FOLDER holds tables and an INDEX.csv that names file, kind, target, split column and columns to ignore; two of scikit-learn's
built-in sets are added. Five stratified folds, dealt anew for each seed, the same for all; then five tables with copied rows,
made tables, and the largest tables by number of rows. What baselines did is kept in build/quality.json, by table, learner and
seed: they are slow and run once, Likely runs every time. With --ours-only nothing but Likely is run, and the page covers what
was kept; with --minutes no baseline is begun after so many. Boosting libraries come with `pip install 'likely[quality]'`; what
is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LIKELY_THREADS"):
    os.environ.setdefault(threads, "1")  # one core for everybody: seconds can be compared

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

import likely  # noqa: E402
import quality_boosters as boosters  # noqa: E402
from likely.evaluation._baselines import BASELINES  # noqa: E402
from likely.evaluation.comparison import metrics_from  # noqa: E402
from quality_sections import FEWER, OURS, TITLES, VARIANTS, Board, Figures, board_lines, page  # noqa: E402
from quality_tables import COPIED, Data, by_size, copied, generated, made, real  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
CACHE = ROOT / "build" / "quality.json"
PAGE = ROOT / "docs" / "quality.md"
FOLDS = 5
TARGET = "the class"


def folds(labels: Any, seed: int) -> list[tuple[Any, Any]]:
    """The same for all: stratified, shuffled by the seed."""
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(labels)), labels))


def run(data: Data, learner: str, seed: int, variant: str = "as it is") -> Figures:
    """The figures of one learner over all folds of a table, or over its one split."""
    shares = np.zeros((len(data.labels), len(data.classes)))
    fit = predict = 0.0
    go = _ours if learner in OURS else _baseline
    parts = [data.split] if data.split else folds(data.labels, seed)
    for train, test in parts:
        several = copied(data.labels, train, variant) if variant in VARIANTS[1:3] else train
        part, known, learned, asked = go(data, learner, several, test, variant == "weights of 2")
        shares[np.ix_(test, known)] = part
        fit, predict = fit + learned, predict + asked
    rows = np.concatenate([test for _, test in parts])
    found = metrics_from(shares[rows], np.arange(len(data.classes)), data.labels[rows], data.classes)
    return {
        "accuracy": found.accuracy,
        "log_loss": found.log_loss,
        "calibration_error": found.calibration_error,
        "by_chance": found.calibration_error_by_chance,
        "rows": len(rows),
        "brier": found.brier,
        "seconds": fit + predict,
        "fit_seconds": fit,
        "entropy": data.entropy,
    }


def _ours(data: Data, learner: str, train: Any, test: Any, weighted: bool) -> tuple[Any, Any, float, float]:
    labelled = data.columns.append_column(TARGET, pa.array([data.classes[i] for i in data.labels]))
    seen, asked = labelled.take(pa.array(train)), data.columns.take(pa.array(test))
    given = OURS[learner] | ({"weights": "weight"} if weighted else {})
    seen = seen.append_column("weight", pa.array(np.full(len(train), 2.0))) if weighted else seen
    start = time.process_time()
    model = likely.learn(seen, TARGET, **given)
    middle = time.process_time()
    shares = model.posterior(asked).probabilities
    place = {label: i for i, label in enumerate(data.classes)}
    known = np.array([place[str(label)] for label in model.classes])
    return shares, known, middle - start, time.process_time() - middle


def _baseline(data: Data, learner: str, train: Any, test: Any, _weighted: bool) -> tuple[Any, Any, float, float]:
    X, y = data.matrix.X, data.labels
    start = time.process_time()
    fresh = BASELINES[learner].make(data.matrix, y[train]) if learner in BASELINES else boosters.Boosted(learner, data.matrix)
    model = fresh.fit(X[train], y[train])
    middle = time.process_time()
    shares = model.predict_proba(X[test])
    return shares, model.classes_, middle - start, time.process_time() - middle


def work(arguments: argparse.Namespace) -> Iterator[tuple[str, str, Data, str, int]]:
    """What is to be run: group, learner, table, variant, seed."""
    for data in real(arguments.data, arguments.tables):
        if data.name in arguments.without:
            continue
        for seed in range(arguments.seeds if len(data.labels) <= arguments.most_rows else 0):
            yield from (("real", learner, data, VARIANTS[0], seed) for learner in TITLES)
        for variant in VARIANTS if data.name in COPIED else ():
            some = ["likely"] if variant == VARIANTS[3] else FEWER
            yield from (("copies", learner, data, variant, 0) for learner in some)
        for part in by_size(data):
            yield from (("sizes", learner, part, VARIANTS[0], 0) for learner in FEWER)
    for group, tables in (("made", made()), ("generated", generated())) if not arguments.tables else ():
        yield from ((group, learner, data, VARIANTS[0], 0) for data in tables for learner in FEWER)


def measure(arguments: argparse.Namespace) -> dict[str, Figures]:
    """Run what is missing, Likely always, and keep everything after every step; what is returned is of these tables."""
    wanted, end = set(), time.monotonic() + 60 * arguments.minutes
    kept: dict[str, Figures] = json.loads(CACHE.read_text(encoding="utf-8")) if CACHE.exists() else {}
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    for group, learner, data, variant, seed in work(arguments):
        key = "|".join((group, data.name, variant, learner, str(seed)))
        wanted.add(key)
        if arguments.kept and key in kept:
            continue
        if learner not in OURS and (key in kept or arguments.ours_only or time.monotonic() > end):
            continue
        try:
            kept[key] = run(data, learner, seed, variant)
        except Exception as error:  # a baseline that cannot learn from a table is named, and the others go on
            if learner in OURS:
                raise
            print(f"{key:70} failed: {str(error).splitlines()[0][:100]}", flush=True)
            continue
        CACHE.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")
        found = kept[key]
        print(f"{key:70} accuracy {found['accuracy']:.4f}  log loss {found['log_loss']:.4f}  "
              f"ECE {found['calibration_error']:.4f}  {found['seconds']:.1f} s", flush=True)  # fmt: skip
    return {key: figures for key, figures in kept.items() if key in wanted}


def main() -> None:
    """Measure, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", type=lambda text: text.split(","), default=[])
    parser.add_argument("--most-rows", type=int, default=60_000, help="of a table that is learned in folds")
    parser.add_argument("--without", type=lambda text: text.split(","), default=[], help="tables to leave out")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no baseline is begun")
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--kept", action="store_true", help="Likely is not run again either, where its figures were kept")
    parser.add_argument("--no-page", action="store_true")
    parser.add_argument("--note", default="", help="a paragraph at the top of the page")
    parser.add_argument("--learners", type=lambda text: text.split(","), default=[], help="beside Likely; all if not given")
    arguments = parser.parse_args()
    for name in [] if not arguments.learners else TITLES.keys() - set(arguments.learners) - OURS.keys():
        del TITLES[name]
    FEWER[:] = [name for name in FEWER if name in TITLES]
    for name in boosters.TITLES.keys() - boosters.installed().keys():
        print(f"{boosters.TITLES[name]} is not installed and left out: pip install 'likely[quality]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds, solvers that stop early
        kept = measure(arguments)
    board = Board.of(kept)
    if not board.names:
        raise SystemExit("no table has been run by every learner yet")
    if arguments.no_page:
        print("\n".join(board_lines(board)))
    else:
        everything = json.loads(CACHE.read_text(encoding="utf-8"))
        PAGE.write_text(page(board, kept, everything, arguments.note), encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)}: {len(board.names)} tables")


if __name__ == "__main__":
    main()
