"""Few labels and many posts: the newsgroup experiment with and without the posts that have no label.

Of the official training split, so many posts of each group keep their label and all others lose it. The error is that on
the official test split, mean and standard error over several draws. Run it from the project's folder:

    python scripts/make_em_page.py ../shared/data/twenty_newsgroups.parquet --draws 10
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np


def main() -> None:
    """Print the table, one line for each number of labelled posts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument(
        "--first", type=int, default=10, help="the first draw; how texts are counted was settled on 0 and 1"
    )
    parser.add_argument("--labelled", type=int, nargs="+", default=[5, 20])
    given = parser.parse_args()
    posts = read(given.corpus)
    print("| labelled posts a group | labelled only | with the others by EM | error less by | weight chosen (draws) |")
    print("|---:|---:|---:|---:|:---|")
    for size in given.labelled:
        alone, both, weights = [], [], []
        for seed in range(given.first, given.first + given.draws):
            began = time.perf_counter()
            a, b, weight = one_draw(posts, size, seed)
            alone, both, weights = [*alone, a], [*both, b], [*weights, weight]
            took = time.perf_counter() - began
            print(
                f"{size} a group, draw {seed}: {a:.4f} -> {b:.4f}, weight {weight:g}, {took:.0f} s",
                file=sys.stderr,
                flush=True,
            )
        chosen = ", ".join(f"{w:g} ({weights.count(w)})" for w in sorted(set(weights)))
        less = 1 - np.array(both) / np.array(alone)
        print(f"| {size} | {_shown(alone)} | {_shown(both)} | {_shown(less)} | {chosen} |", flush=True)


def _shown(errors: Any) -> str:
    errors = np.asarray(errors)
    spread = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
    return f"{100 * errors.mean():.1f} % ± {100 * spread:.1f}"


def read(path: str) -> tuple[list[str], Any, list[str], Any]:
    """The posts and groups of both splits."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["text", "label", "split"])
    texts, labels = table["text"].to_pylist(), np.array(table["label"].to_pylist())
    train = np.array(table["split"].to_pylist()) == "train"
    some, rest = np.flatnonzero(train), np.flatnonzero(~train)
    return [texts[i] for i in some], labels[some], [texts[i] for i in rest], labels[rest]


def one_draw(posts: tuple[list[str], Any, list[str], Any], size: int, seed: int) -> tuple[float, float, float]:
    """The test error from the labelled posts alone, and with the others; and the weight that these were given."""
    from likely import TextNaiveBayes

    train, groups, test, truth = posts
    rng = np.random.default_rng(seed)
    kept = np.concatenate([rng.choice(np.flatnonzero(groups == g), size, replace=False) for g in np.unique(groups)])
    alone = TextNaiveBayes().fit([train[i] for i in kept], groups[kept])
    hidden = np.full(len(groups), None, dtype=object)
    hidden[kept] = groups[kept]
    both = TextNaiveBayes().fit(train, hidden)
    return float((alone.predict(test) != truth).mean()), float((both.predict(test) != truth).mean()), both.unlabelled_


if __name__ == "__main__":
    main()
