"""Whether EM reaches the maximum: from the same starts, Likely beside plain EM of scikit-learn, hmmlearn and NumPy.

    python bench/maximum.py [PROBLEMS] [STARTS] [MOST_ROWS]

Every problem is drawn at random: Gaussian mixtures (diagonal and full), mixtures of categories (latent classes) and
hidden Markov models (categorical and Gaussian), with as many components as the rows come from, or one more. All start from
the same parameters, without priors. The other library runs until a round gains next to nothing; Likely runs with its
defaults, all on one thread. Most of the time is spent by the other library; fewer rows make it short. A start of which either
run ends with a component on a single point, where the likelihood has no maximum, is not compared.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

BELOW = 0.01  # nats
KINDS = ("diag", "full", "classes", "casino", "moving")
SINGULAR = 1e-6  # of a column's variance: a component that is narrower sits on a point
ROUNDS = 5000  # of the other library
GAIN = 1e-8  # nats: the other library stops when a round gains less
MOST_ROWS = 800  # of a problem; a quarter at least


class End(NamedTuple):
    """Where a run ended; `usable` where the likelihood has a maximum there."""

    value: float  # log likelihood
    usable: bool = True
    converged: bool = True
    left: float = 0.0
    rounds: int = 0


Run = Callable[[], End]
Runs = tuple[Run, Run]  # of Likely and of the other library, from the same start


@dataclass
class Problem:
    """A problem and its starts."""

    name: str
    starts: Iterator[Runs]


def problem(number: int, starts: int = 20, most: int = MOST_ROWS) -> Problem:
    """One of the problems; the number says which, and of which kind."""
    rng = np.random.default_rng(number)
    kind = KINDS[number % len(KINDS)]
    make = {"diag": _bells, "full": _bells, "classes": _classes, "casino": _chain, "moving": _chain}[kind]
    return make(kind, rng, starts, most)


def _bells(kind: str, rng: Any, starts: int, most: int) -> Problem:
    true, width, rows = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(most // 4, most))
    k = true + int(rng.random() < 0.3)
    centres = rng.normal(size=(true, width)) * rng.uniform(1.0, 3.0)
    x = centres[rng.integers(0, true, rows)] + rng.normal(size=(rows, width)) * rng.uniform(0.5, 1.5, width)
    first = (x[rng.choice(rows, k, replace=False)] for _ in range(starts))
    return Problem(f"{kind}, k={k} of {true}, {rows} x {width}", (_from_means(kind, x, means) for means in first))


def _from_means(kind: str, x: Any, means: Any) -> Runs:
    """Both mixtures of Gaussians from the same means, with equal weights and the variances of the table."""
    k, precision = len(means), 1 / x.var(0)

    def usable(covariances: Any) -> bool:
        scaled = covariances * (np.sqrt(np.outer(precision, precision)) if kind == "full" else precision)
        return bool((np.linalg.eigvalsh(scaled) if kind == "full" else scaled).min() > SINGULAR)

    def ours() -> End:
        import likely

        family = "joint" if kind == "full" else "gaussian"
        made = likely.Mixture(k, families=family, smoothing=0, start=means).fit(x)
        how = (made.converged_, made.distance_left_, made.n_iter_)
        return End(made.model_.log_likelihood, usable(made.covariances_), *how)

    def theirs() -> End:
        from sklearn.mixture import GaussianMixture

        precisions = np.tile(precision, (k, 1)) if kind == "diag" else np.tile(np.diag(precision), (k, 1, 1))
        peer = GaussianMixture(
            k, covariance_type=kind, reg_covar=0.0, tol=GAIN / len(x), max_iter=ROUNDS, init_params="random",
            weights_init=np.full(k, 1 / k), means_init=means, precisions_init=precisions,
        )  # fmt: skip
        try:
            return End(peer.fit(x).score(x) * len(x), usable(peer.covariances_))
        except ValueError:  # a covariance is singular
            return End(np.nan, usable=False)

    return ours, theirs


def _classes(_kind: str, rng: Any, starts: int, most: int) -> Problem:
    true, width, size = int(rng.integers(2, 4)), int(rng.integers(4, 9)), int(rng.integers(2, 5))
    rows, k = int(rng.integers(most // 4, most)), true + int(rng.random() < 0.3)
    shown = rng.dirichlet(np.full(size, 0.7), (true, width))
    drawn = shown[rng.integers(0, true, rows)].cumsum(-1) < rng.random((rows, width, 1))
    x = drawn.sum(-1).clip(max=size - 1)
    first = (rng.dirichlet(np.ones(k), rows) for _ in range(starts))
    name = f"classes, k={k} of {true}, {rows} x {width} of {size}"
    return Problem(name, (_from_shares(x, size, shares) for shares in first))


def _from_shares(x: Any, size: int, shares: Any) -> Runs:
    """Both mixtures of categories from the same shares of the classes in every row."""

    def ours() -> End:
        from likely.engines.e_step import count_weighted
        from likely.latent import em
        from likely.latent.mixture_plan import plan_clusters
        from likely.latent.mixtures import opened
        from likely.model.model import Model
        from likely.model.relearning import with_named_values
        from likely.sources import ReadOptions, open_source

        source = open_source({f"c{j}": column.astype(str) for j, column in enumerate(x.T)}, ReadOptions())
        mixing = opened(source, plan_clusters(source, "categorical"))
        zero = em.empty_tally(mixing.pooled, tuple(range(shares.shape[1])))
        prior = em.mixture_priors(0.0, zero, {}, None)
        blank = Model(with_named_values(zero, prior), prior)
        ((held, _, _),) = mixing.parts
        tally = count_weighted(held, blank.scorer, blank.blocks, shares)
        made = em.fit_em(Model(tally, prior), mixing.parts)
        return End(made.log_likelihood, True, made.converged, made.distance_left, len(made.trace))

    return ours, lambda: End(plain_classes(x, size, shares))


def plain_classes(x: Any, size: int, shares: Any, most: int = 4 * ROUNDS) -> float:
    """The log likelihood to which plain EM leads a mixture of categories, until a round gains next to nothing."""
    onehot = np.eye(size)[x].reshape(len(x), -1)
    value = -np.inf
    for _ in range(most):
        weight = shares.sum(0)
        with np.errstate(divide="ignore"):
            table = np.maximum(np.log(onehot.T @ shares / weight), -1e4)
        joint = onehot @ table + np.log(weight / len(x))
        high = joint.max(1, keepdims=True)
        shares = np.exp(joint - high)
        whole = shares.sum(1, keepdims=True)
        shares, before, value = shares / whole, value, float((high + np.log(whole)).sum())
        if value - before < GAIN:
            break
    return value


def _chain(kind: str, rng: Any, starts: int, most: int) -> Problem:
    k, rows, size = int(rng.integers(2, 4)), int(rng.integers(most // 4, most * 7 // 8)), int(rng.integers(3, 7))
    move = 0.7 * np.eye(k) + 0.3 * rng.dirichlet(np.ones(k), k)
    z = [0]
    for _ in range(rows - 1):
        z.append(int(rng.choice(k, p=move[z[-1]])))
    if kind == "casino":
        shown = rng.dirichlet(np.ones(size), k)
        x = np.array([rng.choice(size, p=shown[s]) for s in z])[:, None]
    else:
        x = (rng.normal(size=(k, 2)) * 1.5)[z] + rng.normal(size=(rows, 2))

    def first() -> Iterator[Runs]:
        for _ in range(starts):
            begin, go = rng.dirichlet(np.ones(k)), 0.5 / k + 0.5 * rng.dirichlet(np.ones(k), k)
            yield _from_chain(kind, x, begin, go, rng.dirichlet(np.ones(k), rows))

    name = f"{kind}, k={k}, {rows} rows" + (f" of {size} values" if kind == "casino" else " x 2")
    return Problem(name, first())


def _from_chain(kind: str, x: Any, begin: Any, go: Any, shares: Any) -> Runs:
    """Both hidden Markov models from the same chain, and emissions counted by the same shares."""
    k = len(begin)

    def usable(covariances: Any) -> bool:
        return kind == "casino" or bool((covariances / x.var(0)).min() > SINGULAR)

    def ours() -> End:
        import likely

        table = {f"x{j}": np.tile(x[:, j], k) for j in range(x.shape[1])} | {"z": np.repeat(np.arange(k), len(x))}
        family = "categorical" if kind == "casino" else "gaussian"
        emission = likely.learn(table, "z", weights=shares.T.ravel(), families=family, smoothing=0)
        given = {"start": begin, "transition": go, "emission": emission}
        made = likely.HiddenMarkov(k, family, smoothing=0, start=given).fit(x)
        how = (made.converged_, made.distance_left_, made.n_iter_)
        return End(made.chain_.log_likelihood, usable(made.covariances_), *how)

    def theirs() -> End:
        from hmmlearn import hmm

        common: dict[str, Any] = {"n_iter": ROUNDS, "tol": GAIN, "init_params": "", "implementation": "scaling"}
        weight = shares.sum(0)[:, None]
        if kind == "casino":
            peer = hmm.CategoricalHMM(k, **common)
            peer.n_features = int(x.max()) + 1
            peer.emissionprob_ = shares.T @ np.eye(peer.n_features)[x[:, 0]] / weight
        else:
            common |= {"covars_prior": 0.0, "covars_weight": 1.0, "means_weight": 0.0, "min_covar": 0.0}
            peer = hmm.GaussianHMM(k, "diag", **common)
            peer.means_ = shares.T @ x / weight
            peer.covars_ = shares.T @ x**2 / weight - peer.means_**2
        peer.startprob_, peer.transmat_ = begin, go
        try:
            return End(peer.fit(x).score(x), kind == "casino" or usable(peer._covars_))
        except ValueError:  # a variance of zero
            return End(np.nan, usable=False)

    return ours, theirs


def compared(number: int, starts: int, most: int = MOST_ROWS) -> tuple[str, list[tuple[End, End]]]:
    """The ends of both from every start of a problem, where both are at a maximum."""
    from threadpoolctl import threadpool_limits

    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        made = problem(number, starts, most)
        ends = [(ours(), theirs()) for ours, theirs in made.starts]
    return made.name, [(one, other) for one, other in ends if one.usable and other.usable]


def best(ends: list[tuple[End, End]]) -> float:
    """How far the best of all starts is above that of the other library, in nats."""
    return max(one.value for one, _ in ends) - max(other.value for _, other in ends) if ends else 0.0


def main(problems: int = 100, starts: int = 20, most: int = MOST_ROWS) -> None:
    """Print a line for each problem, and how many hold."""
    held = each = below = above = 0
    for number in range(problems):
        began = time.perf_counter()
        name, ends = compared(number, starts, most)
        apart = [one.value - other.value for one, other in ends]
        held += best(ends) >= -BELOW
        each += len(ends)
        low = [f"{d:.2f}{'' if e.converged else '*'}" for d, (e, _) in zip(apart, ends, strict=True) if d < -BELOW]
        below += len(low)
        above += sum(d > BELOW for d in apart)
        rounds = np.median([one.rounds for one, _ in ends]) if ends else 0
        stopped = sum(not one.converged for one, _ in ends)
        print(
            f"{number:3} {name:40} best {best(ends):+8.4f}, below from {len(low)} of {len(ends)} [{', '.join(low)}], "
            f"rounds {rounds:.0f}, not converged {stopped}, {time.perf_counter() - began:.0f} s",
            flush=True,
        )
    print(f"best of {starts}: {held} of {problems} problems hold; of {each} starts {below} end below, {above} above")


if __name__ == "__main__":
    os.environ.setdefault("LIKELY_THREADS", "1")
    main(*(int(a) for a in sys.argv[1:]))
