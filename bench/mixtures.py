"""A round of EM beside scikit-learn's: the same rows, the same start, the same number of rounds."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

K, WIDTH = 8, 10


def rows(size: int) -> tuple[Any, Any]:
    """Rows of eight clusters that overlap a little, and a start far from the end."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(K, WIDTH)) * 1.5
    wide = rng.uniform(0.5, 1.5, (K, WIDTH))
    which = rng.integers(0, K, size)
    x = centres[which] + rng.normal(size=(size, WIDTH)) * wide[which]
    return x, x[rng.choice(size, K, replace=False)]


def ours(x: Any, start: Any, kind: str, rounds: int) -> Any:
    """Likely's mixture after so many rounds from a start."""
    from likely import Mixture

    families = "joint" if kind == "full" else "gaussian"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Mixture(K, families=families, smoothing=0, start=start, max_iter=rounds, tol=-1e9).fit(x)


def theirs(x: Any, start: Any, kind: str, rounds: int) -> Any:
    """scikit-learn's mixture after as many rounds from the same start."""
    from sklearn.mixture import GaussianMixture

    precision = 1 / x.var(0)
    precisions = np.tile(precision, (K, 1)) if kind == "diag" else np.tile(np.diag(precision), (K, 1, 1))
    model = GaussianMixture(K, covariance_type=kind, reg_covar=0.0, tol=0.0, max_iter=rounds, init_params="random",
                            weights_init=np.full(K, 1 / K), means_init=start, precisions_init=precisions)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(x)


def a_round(make: Any, x: Any, start: Any, kind: str, repeats: int) -> float:
    """The time of one round: the difference of a long and a short run, so that what comes before is not counted."""
    few, many = 2, 7
    make(x, start, kind, few)
    found = []
    for _ in range(repeats):
        times = []
        for rounds in (few, many):
            began = time.perf_counter()
            make(x, start, kind, rounds)
            times.append(time.perf_counter() - began)
        found.append((times[1] - times[0]) / (many - few))
    return float(np.median(found))


def peak(who: str, size: int, kind: str) -> float:
    """How far fitting raises the high-water mark of a process that holds the rows already, in MB."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import mixtures as m, peak_memory; "
        f"x, s = m.rows({size}); m.{who}(x[:60_000], s, {kind!r}, 2); before = peak_memory.reset_peak(); "
        f"m.{who}(x, s, {kind!r}, 3); print(peak_memory.peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def compare(small: bool, row: Any, plain: Any) -> None:
    """The section of the bench."""
    size = 100_000 if small else 1_000_000
    x, start = rows(size)
    for kind, goal in (("diag", ">= 6x"), ("full", ">= 1.5x")):
        one, other = a_round(ours, x, start, kind, 3), a_round(theirs, x, start, kind, 1)
        row("em", f"one round, {size:,} x {WIDTH}, k = {K}, {kind}, against GaussianMixture", one, other, goal)
    high = [peak(who, size, "diag") for who in ("ours", "theirs")]
    plain("em", f"peak memory beside the rows, diag, ours ({high[1]:.0f} MB theirs)", high[0], "MB", "<= 1/3 of theirs")
    part = x[: size // 20]
    for kind in ("diag", "full"):
        a, b = ours(part, start, kind, 51), theirs(part, start, kind, 50)
        apart = abs(a.score(part) - b.score(part)) / abs(b.score(part))
        plain("em", f"log likelihood after 50 rounds, relative difference, {kind}", 1e6 * apart, "millionths", "<= 1")
