"""Few labels and many texts: errors with and without the texts that have no label, for docs/hidden.md.

A corpus is a Parquet file with the columns text and label, and perhaps split ("train" or "test"; else 3 texts of 5 are to
learn from). So many texts of each class keep their label and all others to learn from lose it; error and log loss are those of
the test texts, in the mean of several draws. With --halve each class has half as many texts as the one before:

    python scripts/make_em_page.py ../shared/data/twenty_newsgroups.parquet --draws 10
    python scripts/make_em_page.py ../shared/data/bbc_news.parquet ../shared/data/ag_news_7600.parquet --labelled 5 --halve
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Corpus(NamedTuple):
    """Texts and classes, to learn from and to test on."""

    train: list[str]
    groups: Any
    test: list[str]
    truth: Any


class Draw(NamedTuple):
    """Error and log loss of the labelled texts alone and with the others, and the weight of these."""

    alone: tuple[float, float]
    both: tuple[float, float]
    weight: float


def main() -> None:
    """Print the table, one line for each corpus and number of labelled texts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=10, help="the first draw; ways to use texts were settled on others")
    parser.add_argument("--labelled", type=int, nargs="+", default=[5, 20])
    parser.add_argument("--halve", action="store_true", help="classes of very different sizes")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    titles = ("corpus", "labels a class", "error, labels only", "with the others", "log loss", "with the others", "used in")
    print(f"| {' | '.join(titles)} |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for path in given.corpora:
        corpus = read(path, given.halve)
        for size in given.labelled:
            draws = [one_draw(corpus, size, seed) for seed in range(given.first, given.first + given.draws)]
            found = [_shown([getattr(draw, side)[i] for draw in draws], i) for i in (0, 1) for side in ("alone", "both")]
            used = sum(draw.weight > 0 for draw in draws)
            print(f"| {path.stem} | {size} | {' | '.join(found)} | {used} of {len(draws)} |", flush=True)


def _shown(values: list[float], is_loss: int) -> str:
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0)
    return f"{mean:.2f} ± {spread:.2f}" if is_loss else f"{100 * mean:.1f} % ± {100 * spread:.1f}"


def read(path: Path, halve: bool) -> Corpus:
    """The texts and classes of a file."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    texts, labels = np.array(table["text"].to_pylist(), dtype=object), np.array([str(v) for v in table["label"].to_pylist()])
    rng = np.random.default_rng(0)
    kept = np.arange(len(labels))
    if halve:
        place = np.searchsorted(np.unique(labels), labels)
        kept = np.flatnonzero(rng.random(len(labels)) < 0.5**place)
    has_split = "split" in table.column_names
    train = np.array(table["split"].to_pylist()) == "train" if has_split else rng.random(len(labels)) < 0.6
    some, rest = kept[train[kept]], kept[~train[kept]]
    return Corpus(list(texts[some]), labels[some], list(texts[rest]), labels[rest])


def one_draw(corpus: Corpus, size: int, seed: int) -> Draw:
    """One draw of the labelled texts."""
    from likely import TextNaiveBayes

    began = time.perf_counter()
    train, groups, test, truth = corpus
    rng = np.random.default_rng(seed)
    kept = np.concatenate([rng.choice(np.flatnonzero(groups == g), size, replace=False) for g in np.unique(groups)])
    alone = TextNaiveBayes().fit([train[i] for i in kept], groups[kept])
    hidden = np.full(len(groups), None, dtype=object)
    hidden[kept] = groups[kept]
    both = TextNaiveBayes().fit(train, hidden)
    draw = Draw(_judged(alone, test, truth), _judged(both, test, truth), both.unlabelled_)
    print(f"{size} a class, draw {seed}: {draw}, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return draw


def _judged(model: Any, test: list[str], truth: Any) -> tuple[float, float]:
    """Error and log loss."""
    logs = model.predict_log_proba(test)
    place = np.searchsorted(model.classes_, truth)
    return float((model.classes_[logs.argmax(1)] != truth).mean()), float(-logs[np.arange(len(truth)), place].mean())


if __name__ == "__main__":
    main()
