"""Draw docs/course/learning-curves.svg: naive Bayes, LDA and logistic regression against the number of rows learned from.

python scripts/make_course_figures.py
"""

from __future__ import annotations

import warnings
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from likely import NaiveBayes
from likely.plots.lines import Chart, Series, lines_svg

PAGE = Path(__file__).parents[1] / "docs" / "course" / "learning-curves.svg"
SIZES, DRAWS, HELD_OUT = (10, 20, 40, 80, 160, 320), 40, 200


def models() -> dict[str, Any]:
    """The classifiers; LDA with one pseudo-row, which it needs where rows are fewer than its covariances."""
    return {
        "Gaussian naive Bayes": NaiveBayes(families="gaussian:class", smoothing=0),
        "LDA": NaiveBayes(families="joint:class", smoothing=1),
        "logistic regression": LogisticRegression(C=1e6, max_iter=1000),
    }


def accuracies() -> dict[str, list[float]]:
    """Mean accuracy of each model after each number of rows."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X[:, :10] - X[:, :10].mean(0)) / X[:, :10].std(0)
    found: dict[str, list[float]] = {}
    for size in SIZES:
        for name, model in models().items():
            right = []
            for seed in range(DRAWS):
                order = np.random.default_rng(seed).permutation(len(y))
                train, test = order[HELD_OUT : HELD_OUT + size], order[:HELD_OUT]
                right.append((model.fit(X[train], y[train]).predict(X[test]) == y[test]).mean())
            found.setdefault(name, []).append(float(np.mean(right)))
            print(size, name, round(found[name][-1], 4), flush=True)
    return found


def main() -> None:
    """Measure and draw."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = accuracies()
    doublings = [log2(size / SIZES[0]) for size in SIZES]
    series = [Series(name, doublings, values) for name, values in found.items()]
    title, subtitle = "Accuracy against rows learned from", f"Wisconsin breast cancer, 10 columns, mean of {DRAWS} draws"
    label = f"doublings of {SIZES[0]} rows: 0 is {SIZES[0]}, {len(SIZES) - 1} is {SIZES[-1]}"
    chart = Chart(title, subtitle, label, "accuracy", series, marks=True, from_zero=False, percent=True)
    PAGE.write_text(lines_svg([chart]), encoding="utf-8")


if __name__ == "__main__":
    main()
