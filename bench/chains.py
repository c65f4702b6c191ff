"""One round of Baum and Welch beside hmmlearn's, in both of its implementations, from the same start."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

FEW, MANY = 2, 32  # rounds: what is not a round cancels out


def compare(small: bool, row: Callable[..., None], plain: Callable[..., None]) -> None:
    """Gaussian and categorical emissions, one long sequence and many short ones."""
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    rows = 50_000 if small else 500_000
    for families, peer in (
        ("categorical", "CategoricalHMM"),
        ("gaussian", "GaussianHMM diag"),
        ("joint", "GaussianHMM full"),
    ):
        for length in (rows, 1000):
            _compare(families, peer, rows, length, row, plain)


def _compare(
    families: str, peer: str, rows: int, length: int, row: Callable[..., None], plain: Callable[..., None]
) -> None:
    X, z = _drawn(families, rows, k=4)
    lengths = [length] * (rows // length)
    shape = "one sequence" if len(lengths) == 1 else f"{len(lengths)} sequences"

    def ours(rounds: int) -> Any:
        return _ours(families, X, z, rounds).fit(X, lengths=lengths)

    def theirs(rounds: int, way: str) -> Any:
        return _theirs(families, X, z, rounds, way).fit(X, lengths)

    ours(MANY)  # compiles
    mine = _round(ours)
    for way in ("log", "scaling"):
        other = _round(lambda rounds, way=way: theirs(rounds, way), many=4, repeats=1 if way == "log" else 3)
        what = f"a round, {rows:,} rows, 4 states, {shape}, {peer} ({way})"
        wanted = way == "log" or families == "categorical"
        row("sequences", what, mine, other, ">= 3x" if wanted else "(theirs by choice)")
    apart = abs(ours(4).trace_[-1] / theirs(3, "log").score(X, lengths) - 1)
    plain("sequences", "relative difference in log likelihood after three rounds", apart, "", "~ 0")


def _round(fit: Callable[[int], Any], many: int = MANY, repeats: int = 3) -> float:
    """The time of one round: that of many less that of few."""
    times = {}
    for rounds in (FEW, many):
        spent = []
        for _ in range(repeats):
            start = time.perf_counter()
            fit(rounds)
            spent.append(time.perf_counter() - start)
        times[rounds] = min(spent)
    return max((times[many] - times[FEW]) / (many - FEW), 1e-9)


def _drawn(families: str, rows: int, k: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    z = np.cumsum(rng.random(rows) < 0.05) % k
    if families == "categorical":
        return (rng.integers(0, 8, rows) // 2 + z)[:, None], z
    return rng.normal(size=(rows, 5)) + z[:, None], z


def _start(k: int = 4) -> tuple[Any, Any]:
    return np.full(k, 1 / k), np.full((k, k), 0.1 / (k - 1)) + (0.9 - 0.1 / (k - 1)) * np.eye(k)


def _ours(families: str, X: Any, z: Any, rounds: int) -> Any:
    import likely

    start, move = _start()
    table = {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"z": z}
    emission = likely.learn(table, "z", families=families, smoothing=0)
    given = {"start": start, "transition": move, "emission": emission}
    return likely.HiddenMarkov(4, families, max_iter=rounds, tol=-np.inf, smoothing=0, start=given)


def _theirs(families: str, X: Any, z: Any, rounds: int, way: str) -> Any:
    from hmmlearn import hmm

    common: dict[str, Any] = {"n_iter": rounds, "tol": -np.inf, "init_params": "", "implementation": way}
    groups = [X[z == c] for c in range(4)]
    if families == "categorical":
        made = hmm.CategoricalHMM(4, **common)
        made.n_features = int(X.max()) + 1
        made.emissionprob_ = np.array([np.bincount(g[:, 0], minlength=made.n_features) / len(g) for g in groups])
    else:
        full = families == "joint"
        made = hmm.GaussianHMM(4, "full" if full else "diag", covars_prior=0.0, **common)
        made.means_ = np.array([g.mean(0) for g in groups])
        made.covars_ = np.array([np.cov(g.T, bias=True) if full else g.var(0) for g in groups])
    made.startprob_, made.transmat_ = _start()
    return made
