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
import textwrap
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
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
from quality_tables import COPIED, SIZES, Data, by_size, copied, made, real  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
CACHE = ROOT / "build" / "quality.json"
PAGE = ROOT / "docs" / "quality.md"
FOLDS = 5
TARGET = "the class"
CAP = 3.0  # of a normalised log loss: one hopeless table must not decide a mean
OURS = {"likely": {}, "likely-plain": {"plain": True}}
CHOSEN = ("gradient-boosting", "random-forest", "logistic-regression", "categorical-nb", "gaussian-nb")
TITLES = (
    {"likely": "Likely", "likely-plain": "Likely, plain"}
    | boosters.installed()
    | {name: BASELINES[name].title for name in CHOSEN}
)
FEWER = [
    name for name in ("likely", "lightgbm", "catboost", "ebm", "random-forest", "logistic-regression") if name in TITLES
]
VARIANTS = ("as it is", "every row twice", "rarest class three times", "weights of 2")
Figures = dict[str, float]


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
    for data in made(()) if not arguments.tables else ():
        yield from (("made", learner, data, VARIANTS[0], 0) for learner in FEWER)


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
            group, table, _, learner, seed = key.split("|")
            if group == "real" and learner in TITLES:
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
    keys = ("accuracy", "log_loss", "calibration_error", "brier", "seconds", "fit_seconds", "entropy")
    mean = {key: float(np.mean([figures[key] for figures in found])) for key in keys}
    return mean | {"normalised": min(mean["log_loss"] / mean["entropy"], CAP)}


def page(board: Board, kept: dict[str, Figures], note: str = "") -> str:
    """The page as Markdown."""
    seeds = sorted(set(board.sizes.values()))
    many = ("one seed" if seeds == [1] else f"{seeds[0]} seeds") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    noted = [*textwrap.wrap(note, 120), ""] if note else []
    parts = [HEAD.format(tables=len(board.names), seeds=many), *noted, *_means(board), *_duels(board)]
    parts += _each(
        board, "normalised", "Normalised log loss, table by table", "Bold is the best of a line; 1 is the class frequencies."
    )
    parts += _each(board, "accuracy", "Accuracy, table by table", "Bold is the best of a line.")
    parts += _calibrated(kept) + _losses(board) + _partly() + _copies(kept) + _made(kept) + _sizes(kept)
    return "\n".join(parts).rstrip() + "\n"


HEAD = """\
# Quality

<!-- Made by scripts/make_quality_page.py; run it again instead of changing this page. -->

{tables} real tables, five stratified folds, {seeds}, the same folds for all. Nothing is tuned on test rows: every
learner has its defaults. Baselines see the table through the preparations described in [Comparison with baselines](compare.md).
*Normalised log loss* is log loss over the entropy of the classes (1: no better than the class frequencies), capped at 3 for
each table; probabilities below 1e-15 are taken as 1e-15, for everybody. Seconds are CPU seconds of
five fits on one core.
"""


def _means(board: Board) -> list[str]:
    columns = ("accuracy", "log_loss", "normalised", "brier", "calibration_error")
    lines = ["## In the mean", "", "| model | accuracy | log loss | normalised log loss | Brier | calibration error | fit s |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    ranked = sorted(TITLES, key=lambda name: board.of_learner(name, "normalised").mean())
    for name in ranked:
        cells = [board.of_learner(name, column).mean() for column in columns]
        title = f"**{TITLES[name]}**" if name in OURS else TITLES[name]
        lines.append(
            f"| {title} | {' | '.join(f'{v:.4f}' for v in cells)} | {board.of_learner(name, 'fit_seconds').mean():.2f} |"
        )
    return [*lines, ""]


def _duels(board: Board) -> list[str]:
    lines = [
        "## Wins and losses", "",
        "Likely as it comes against each, by tables; differences are Likely's figure less the other's. One table can make",
        "a mean: *without the best* leaves out the table on which Likely gains most.", "",
        "| against | log loss: won / lost | normalised log loss | without the best | accuracy: won / tied / lost | points |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
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
    lines = [f"## {title}", "", remark, "", f"| table | {' | '.join(TITLES.values())} |", "|---" * (len(TITLES) + 1) + "|"]
    for table in board.names:
        values = {name: board.scores[table, name][figure] for name in TITLES}
        best = max(values.values()) if figure == "accuracy" else min(values.values())
        cells = [f"**{v:.4f}**" if v == best else f"{v:.4f}" for v in values.values()]
        lines.append(f"| {table} | {' | '.join(cells)} |")
    return [*lines, ""]


def _calibrated(kept: dict[str, Figures]) -> list[str]:
    """The calibration error of Likely on tables with enough rows, beside that of right probabilities."""
    lines = ["## Calibration error, table by table", "",
             "Of Likely, on tables above 1,000 rows. Labels are drawn, so even right probabilities have a calibration error:",
             "*by chance* is what these probabilities would have in the mean if they were right.", "",
             "| table | rows | calibration error | by chance |", "|---|---|---|---|"]  # fmt: skip
    for key, found in sorted(kept.items()):
        if key.startswith("real|") and key.endswith("|likely|0") and found.get("rows", 0) > 1_000:
            error, chance = found["calibration_error"], found["by_chance"]
            lines.append(f"| {key.split('|')[1]} | {int(found['rows']):,} | {error:.4f} | {chance:.4f} |")
    return [*lines, ""]


def _losses(board: Board) -> list[str]:
    """Where somebody else is clearly better, the worst first."""
    found = []
    for table in board.names:
        mine = board.scores[table, "likely"]["normalised"]
        others = [name for name in TITLES if name not in OURS]
        baseline = min(others, key=lambda name: board.scores[table, name]["normalised"])
        gap = mine - board.scores[table, baseline]["normalised"]
        if gap > 0.01:
            found.append((gap, table, baseline))
    lines = ["## Where Likely loses", ""]
    if not found:
        return [*lines, "On none of these tables is another learner's normalised log loss lower by more than 0.01.", ""]
    lines += ["Tables on which the best of the others has a normalised log loss lower by more than 0.01:", ""]
    lines += [f"- {table}: {TITLES[baseline]}, by {gap:.3f}" for gap, table, baseline in sorted(found, reverse=True)]
    return [*lines, ""]


def _partly() -> list[str]:
    """Boosters that ran on some tables only, beside Likely and LightGBM on these."""
    kept: dict[str, Figures] = json.loads(CACHE.read_text(encoding="utf-8"))
    names = [name for name in ("catboost", "ebm") if name not in TITLES]
    found: dict[str, dict[str, Figures]] = {}
    for key, figures in kept.items():
        group, table, variant, learner, seed = key.split("|")
        if group in ("real", "made") and (variant, seed) == (VARIANTS[0], "0"):
            found.setdefault(table, {})[learner] = figures
    tables = [table for table, by in found.items() if "likely" in by and any(name in by for name in names)]
    if not tables:
        return []
    shown = ["likely", *names, "lightgbm"]
    titles = TITLES | boosters.TITLES
    lines = ["## CatBoost and EBM", "", "They are slow, and ran on these tables only: log loss (CPU seconds of all fits).", "",
             f"| table | {' | '.join(titles[name] for name in shown)} |", "|---" * (len(shown) + 1) + "|"]  # fmt: skip
    for table in tables:
        losses = [found[table][name]["log_loss"] for name in shown if name in found[table]]
        cells = [_timed(found[table].get(name), min(losses)) for name in shown]
        lines.append(f"| {table} | {' | '.join(cells)} |")
    return [*lines, ""]


def _timed(figures: Figures | None, best: float) -> str:
    if figures is None:
        return ""
    loss = f"**{figures['log_loss']:.4f}**" if figures["log_loss"] == best else f"{figures['log_loss']:.4f}"
    return f"{loss} ({figures['fit_seconds']:.1f})" if figures["seconds"] else loss


def _grid(kept: dict[str, Figures], group: str, line: int) -> list[str]:
    """Log loss by table (or variant) and learner of one group; the best of a line is bold."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for key, figures in kept.items():
        of, table, variant, learner, _ = key.split("|")
        if of == group:
            found.setdefault((table, variant), {})[learner] = figures["log_loss"]
    lines = [f"| {'table | rows' if line == 2 else 'table'} | {' | '.join(TITLES[name] for name in FEWER)} |",
             "|---" * (len(FEWER) + line) + "|"]  # fmt: skip
    for (table, variant), losses in found.items():
        best = min(losses.values())
        cells = [f"**{v:.4f}**" if v == best and len(losses) > 1 else f"{v:.4f}" if v is not None else ""
                 for v in (losses.get(name) for name in FEWER)]  # fmt: skip
        lines.append(f"| {table}{f' | {variant}' if line == 2 else ''} | {' | '.join(cells)} |")
    return [*lines, ""]


def _copies(kept: dict[str, Figures]) -> list[str]:
    text = ["## Copies and weights", "",
            "Log loss on untouched test rows when rows to learn from are repeated or weighted; one seed. A rarest class that",
            "is repeated three times is a changed prior: everybody's log loss rises by that.", ""]  # fmt: skip
    return [*text, *_grid(kept, "copies", 2)]


def _made(kept: dict[str, Figures]) -> list[str]:
    text = ["## Made tables", "",
            "Log loss on 2,000 new rows; the class frequencies have 0.693. Nothing can be learned from noise.", ""]  # fmt: skip
    return [*text, *_grid(kept, "made", 1)] if any(key.startswith("made|") for key in kept) else []


def _sizes(kept: dict[str, Figures]) -> list[str]:
    learned = ", ".join(f"{n:,}" for n in SIZES)
    text = ["## By number of rows", "", f"Log loss on the same new rows after learning from {learned} rows; one seed.", ""]
    return [*text, *_grid(kept, "sizes", 1)] if any(key.startswith("sizes|") for key in kept) else []


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
        print("\n".join([*_means(board), *_duels(board)]))
    else:
        PAGE.write_text(page(board, kept, arguments.note), encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)}: {len(board.names)} tables")


if __name__ == "__main__":
    main()
