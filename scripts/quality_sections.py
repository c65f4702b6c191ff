"""The sections of docs/quality.md, made from figures, and the learners that it compares."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

import quality_boosters as boosters
from likely.evaluation._baselines import BASELINES
from quality_tables import SIZES

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


def page(board: Board, kept: dict[str, Figures], everything: dict[str, Figures], note: str = "") -> str:
    """The page as Markdown; some learners were run on some tables only, and are in `everything` alone."""
    seeds = sorted(set(board.sizes.values()))
    many = ("one seed" if seeds == [1] else f"{seeds[0]} seeds") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    noted = [*textwrap.wrap(note, 120), ""] if note else []
    parts = [HEAD.format(tables=len(board.names), seeds=many), *noted, *board_lines(board)]
    parts += _each(
        board, "normalised", "Normalised log loss, table by table", "Bold is the best of a line; 1 is the class frequencies."
    )
    parts += _each(board, "accuracy", "Accuracy, table by table", "Bold is the best of a line.")
    parts += _calibrated(kept) + _losses(board) + _partly(everything) + _copies(kept)
    parts += _made(kept) + _generated(kept) + _sizes(kept)
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


def board_lines(board: Board) -> list[str]:
    """Means and duels of all learners."""
    return [*_means(board), *_duels(board)]


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


def _partly(everything: dict[str, Figures]) -> list[str]:
    """Boosters that ran on some tables only, beside Likely and LightGBM on these."""
    names = [name for name in ("catboost", "ebm") if name not in TITLES]
    found: dict[str, dict[str, Figures]] = {}
    for key, figures in everything.items():
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


def _generated(kept: dict[str, Figures]) -> list[str]:
    rows = "Log loss on 2,000 new rows after learning from 300 or 2,000; numeric targets are cut at their median."
    text = ["## Tables of scikit-learn's generators", "", rows, ""]
    return [*text, *_grid(kept, "generated", 1)] if any(key.startswith("generated|") for key in kept) else []


def _sizes(kept: dict[str, Figures]) -> list[str]:
    learned = ", ".join(f"{n:,}" for n in SIZES)
    text = ["## By number of rows", "", f"Log loss on the same new rows after learning from {learned} rows; one seed.", ""]
    return [*text, *_grid(kept, "sizes", 1)] if any(key.startswith("sizes|") for key in kept) else []
