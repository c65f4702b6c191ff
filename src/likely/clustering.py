"""Clusters: a model of classes that no row is labelled with, found by EM from several starts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely import em, starting
from likely.engines import Plan
from likely.engines.memory import tally_batch
from likely.engines.targets import as_names
from likely.engines.weights import WEIGHT_COLUMN, with_weights
from likely.errors import DataError, LikelyWarning, UsageError, no_column
from likely.families import Gaussian, Text
from likely.families.statistics import Moments, Scatter, Statistic
from likely.model import Model, with_room
from likely.planning import plan_columns
from likely.sources import Coded, InMemory, Reading, Source, open_source, require_rows
from likely.tally import Tally

Array = NDArray[np.float64]
MOST_CELLS = 50_000_000  # a table of more is read again in every round
FEW_ROWS = 20_000  # every start of fewer rows is followed until a maximum is near; of more, for some rounds
NEAR = 0.5  # nats: then the best start is followed to its end
SHORT = 10
MOST_CLUSTERS = 12  # k="auto" looks no further
TARGET = "cluster"
Fitted = TypeVar("Fitted")


@dataclass(frozen=True)
class Clusters(Model):
    """A model whose classes are the components of a mixture, with the way EM took to it."""

    trace: tuple[float, ...] = ()  # penalised log likelihood, round by round
    log_likelihood: float = float("nan")
    entropy: float = float("nan")
    converged: bool = False
    tried: Mapping[int, float] = field(default_factory=dict)  # for k="auto": what each number of clusters cost
    steps: tuple[em.Step, ...] = field(default=(), repr=False)  # the way of EM, where it was asked for
    distance_left: float = float("inf")  # nats of the penalised log likelihood to its local maximum, as estimated

    @staticmethod
    def of(fit: em.Fit, **settings: Any) -> Clusters:
        """The model where a run of EM ended."""
        m = fit.model
        names = ("trace", "log_likelihood", "entropy", "converged", "steps", "distance_left")
        way = [getattr(fit, name) for name in names]
        known: dict[str, Any] = dict(zip(names, way, strict=True))
        return Clusters(m.tally, m.prior, m.missing, m.weights, m.declared, m.stages, **known | settings)

    @property
    def fit(self) -> em.Fit:
        """Where the run of EM ended."""
        weight = float(self.tally.classes.sum())
        way = (self.converged, self.steps, self.distance_left)
        return em.Fit(self, self.trace, self.log_likelihood, self.entropy, weight, *way)

    def as_of(self, step: em.Step) -> Model:
        """The model as it stood at a step of EM."""
        return Model(step.tally, self.prior, self.missing, self.weights, self.declared, self.stages)

    @property
    def bic(self) -> float:
        """−2 log likelihood + free parameters · log rows: the lower the better."""
        return self.fit.bic

    @property
    def icl(self) -> float:
        """The BIC with twice the entropy of the shares added."""
        return self.fit.icl

    @property
    def aic(self) -> float:
        """−2 log likelihood + 2 · free parameters."""
        return self.fit.aic


@dataclass(frozen=True)
class Mixing:
    """All that is needed to fit mixtures of any number of components to the same rows."""

    parts: Iterable[em.Part]
    plan: Plan
    whole: Tally
    spread: Mapping[str, float]
    smoothing: Any = 1.0
    equal: bool | Sequence[float] = False
    restarts: int = 5
    max_iter: int = em.MAX_ITER
    tol: float = em.TOL
    seed: int = 0
    steps: bool = False  # whether the way of EM is kept

    def fit(self, classes: Sequence[Any], start: Any = None, watch: em.Watch | None = None) -> em.Fit:
        """The best of several runs of EM; `start` gives the first means instead of drawing them."""
        return em.judged(self._best(classes, start, watch), self.parts)

    def _best(self, classes: Sequence[Any], start: Any, watch: em.Watch | None) -> em.Fit:
        after = () if self.steps else None
        settings: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "after": after}
        zero = em.empty_tally(self.whole, tuple(classes))
        prior = em.imagined(self.smoothing, zero, self.spread, self._shares(classes), len(classes))
        blank = Model(with_room(zero, prior), prior)
        if start is not None:
            return em.climb(
                replace(blank, tally=at_means(blank.tally, start, self.spread)), self.parts, **settings, watch=watch
            )
        models = self._starts(blank)
        if watch or len(models) == 1:
            return em.climb(models[0], self.parts, **settings, watch=watch)
        short = settings | short_run(self.whole.rows, self.max_iter, self.tol)
        best = max((em.climb(model, self.parts, **short) for model in models), key=_worth)
        done = len(best.trace) - 1
        if done + 1 >= self.max_iter:
            return best
        rest = settings | {"max_iter": self.max_iter - done, "after": best.steps if self.steps else None, "done": done}
        end = em.climb(best.model, self.parts, **rest)
        return replace(end, trace=(*best.trace[:-1], *end.trace))

    def _shares(self, classes: Sequence[Any]) -> Mapping[Any, float] | None:
        if self.equal is False:
            return None
        shares = [1 / len(classes)] * len(classes) if self.equal is True else list(self.equal)
        return dict(zip(classes, shares, strict=True))

    def _starts(self, blank: Model) -> list[Model]:
        """First models: rows with the nearest of seeds far apart, drawn anew for each."""
        schema, k = blank.schema, len(blank.classes)
        points = starting.points(self.parts, schema, blank.blocks, self.whole.rows, self.seed)
        found = []
        for i in range(max(self.restarts, 1) if k > 1 else 1):
            # Every other start keeps the seeds where they were drawn: more varied, though farther from the end.
            labels = starting.nearest_seeds(points, k, self.seed + 7919 * i, 0 if i % 2 else starting.STEPS)
            found.append(replace(blank, tally=self._counted(blank.tally, points.rows, labels)))
        return found

    def _counted(self, zero: Tally, rows: Sequence[NDArray[np.int64]], labels: NDArray[np.int64]) -> Tally:
        """The tally of the rows that were given a first class."""
        total, at, classes = zero, 0, zero.schema.classes
        for (batch, _, weights), chosen in zip(self.parts, rows, strict=True):
            first = np.full(batch.rows, -1, np.int64)
            first[chosen] = labels[at : at + len(chosen)]
            at += len(chosen)
            total = total + tally_batch(
                batch, replace(self.plan, target=zero.schema.target.name), Coded(first, classes), weights
            )
        return total


def short_run(rows: int, max_iter: int, tol: float) -> dict[str, Any]:
    """How far every start is followed before the best one is chosen."""
    return {
        "tol": max(tol, NEAR) if tol >= 0 else tol,
        "max_iter": max_iter if rows <= FEW_ROWS else min(SHORT, max_iter),
    }


def _worth(fit: em.Fit) -> float:
    return fit.value if np.isfinite(fit.value) else -np.inf


def at_means(zero: Tally, means: Any, spread: Mapping[str, float]) -> Tally:
    """One imagined row of every class at its first mean, as wide as the table: where EM starts if means are given."""
    given = np.atleast_2d(np.asarray(means, dtype=np.float64))
    names = [name for block in zero.blocks for name in block.columns]
    k, width = len(zero.schema.classes), len(names)
    given = given.T if given.shape == (1, k) and width == 1 else given
    if given.shape != (k, width) or any(name not in spread for name in names):
        raise UsageError(f"start= takes {k} means of {width} columns of numbers, not an array of shape {given.shape}")
    place = {name: j for j, name in enumerate(names)}
    statistics: list[Statistic] = []
    for block, statistic in zip(zero.blocks, zero.statistics, strict=True):
        mean = given[:, [place[name] for name in block.columns]]
        wide = np.array([spread[name] for name in block.columns])
        if isinstance(statistic, Moments):
            statistics.append(Moments(np.ones(k), mean[:, 0].copy(), np.full(k, wide[0])))
        elif isinstance(statistic, Scatter):
            statistics.append(Scatter(np.ones(k), mean.copy(), np.tile(np.diag(wide), (k, 1, 1))))
        else:
            raise UsageError(f"start= gives means, and column {block.name!r} is {block.family.name}: leave it out")
    return replace(zero, classes=np.ones(k), statistics=tuple(statistics))


def cluster(
    data: Any,
    k: int | str = 3,
    *,
    families: Any = None,
    joint: Sequence[Sequence[str]] = (),
    smoothing: Any = 1.0,
    fixed: Mapping[str, Any] | None = None,
    weights: Any = None,
    ignore: Sequence[str] = (),
    missing: Sequence[str] | None = None,
    restarts: int = 5,
    max_iter: int = em.MAX_ITER,
    tol: float = em.TOL,
    seed: int = 0,
    criterion: str = "bic",
    start: Any = None,
    steps: bool = False,
    reading: Reading | None = None,
    **how: Any,
) -> Clusters:
    """Find k clusters in a table: a model whose classes 1, 2, … are the components, the largest first.

    Numbers are Gaussian, texts of a few words categories, longer texts bags of words, unless `families` says otherwise.
    `k="auto"` tries 1, 2, 3, … and keeps the number whose `criterion` ("bic" or "icl") is lowest. `fixed` may hold what is
    known beforehand: {"variance": 1.0, "weights": "equal"}; `start` gives the first means, and the clusters their order.
    With `steps=True` the model keeps the way of EM, step by step, in `steps`: `likely.lesson` makes a page of it.
    """
    source, weight_name = with_weights(open_source(data, reading or Reading.of(missing, how)), weights)
    skip = (*ignore, *([weight_name] if weight_name else []))
    plan = plan_clusters(source, families, joint, skip, weight_name, fixed)
    mixing = opened(source, plan, smoothing=smoothing, equal=equal_weights(fixed), restarts=restarts, max_iter=max_iter,
                    tol=tol, seed=seed, steps=steps)  # fmt: skip
    made = _chosen(mixing, criterion) if k == "auto" else _of_size(mixing, checked(k), start)
    say_what_is_odd(made)
    em.warn_if_stopped(made.converged or tol <= 0, len(made.trace), em.MORE_ROUNDS)
    return replace(made, missing=source.missing.tokens, weights=None if weight_name == WEIGHT_COLUMN else weight_name)


def checked(k: Any) -> int:
    """A number of clusters: a whole number, one or more."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise UsageError(f"k={k!r} is no number of clusters: pass 1, 2, 3, … or 'auto'")
    return int(k)


def say_what_is_odd(model: Model) -> None:
    """A component without rows, and columns that do not vary, are said aloud."""
    empty = [
        str(c) for c, n in zip(model.classes, model.tally.classes, strict=True) if n < 1e-6 * model.tally.classes.sum()
    ]
    if empty:
        warnings.warn(f"clusters {', '.join(empty)} are empty: a smaller k says as much", LikelyWarning, stacklevel=3)


def _of_size(mixing: Mixing, k: int, start: Any) -> Clusters:
    """That many clusters: in the order of the means that were given, or the largest first."""
    fit = mixing.fit(range(1, k + 1), start)
    return Clusters.of(fit if start is not None else em.ranked(fit))


def _chosen(mixing: Mixing, criterion: str) -> Clusters:
    """The number of clusters that costs least."""
    if criterion not in ("bic", "icl"):
        raise UsageError(f"criterion={criterion!r} is not known: choose 'bic' or 'icl'")
    best, tried = cheapest(lambda k: mixing.fit(range(1, k + 1)), lambda fit: float(getattr(fit, criterion)))
    return Clusters.of(em.ranked(best), tried=tried)


def cheapest(
    fit: Callable[[int], Fitted], cost: Callable[[Fitted], float], most: int = MOST_CLUSTERS
) -> tuple[Fitted, dict[int, float]]:
    """The number of parts that costs least, and what each number cost; three in a row that cost more end the search."""
    best, tried, worse = None, dict[int, float](), 0
    for k in range(1, min(most, MOST_CLUSTERS) + 1):
        try:
            found = fit(k)
        except DataError:
            if best is None:
                raise
            break  # there are no more different rows
        tried[k] = cost(found)
        if best is None or tried[k] < cost(best):
            best, worse = found, 0
        else:
            worse += 1
        if worse == 3:
            break
    assert best is not None
    return best, tried


def plan_clusters(
    source: Source, families: Any, joint: Sequence[Sequence[str]], skip: Sequence[str], weights: str | None,
    fixed: Mapping[str, Any] | None,
) -> Plan:  # fmt: skip
    """Every column with its family, as for learning, but with no target among them."""
    first = next(iter(source.batches()), None)
    if first is None or first.rows == 0:
        require_rows(0, source.label)
    assert first is not None
    names = list(first.names)
    skip = as_names(skip)
    for wanted in skip:
        if wanted not in names:
            raise no_column(source.label, wanted, names)
    plan = plan_columns(first, [n for n in names if n not in skip], _target(names), families, joint, plain=True)
    if not plan.blocks:
        raise DataError(f"{source.label} has no column to cluster by: {dict(plan.ignored)}")
    asked = tuple((name, "asked for") for name in skip if name != weights)
    return known_beforehand(replace(plan, weights=weights, ignored=(*asked, *plan.ignored)), fixed, families)


def known_beforehand(plan: Plan, fixed: Mapping[str, Any] | None, families: Any = None) -> Plan:
    """The plan with what is known beforehand, and texts as EM counts them."""
    odd = sorted(set(fixed or {}) - {"variance", "weights"})
    if odd:
        raise UsageError(f"fixed={dict(fixed or {})!r}: {odd[0]!r} cannot be fixed, only 'variance' and 'weights'")
    variance, blocks = (fixed or {}).get("variance"), []
    for block in em.plan_hidden(plan).blocks:
        made = block.family
        if variance is not None and isinstance(made, Gaussian):
            own = variance.get(block.columns[0]) if isinstance(variance, Mapping) else variance
            made = replace(made, variance=own if own is None else float(own))
        if isinstance(made, Text) and families in (None, "auto"):
            made = replace(made, counts="log")  # a word that comes ten times is no tenfold evidence
        blocks.append(replace(block, family=made))
    return replace(plan, blocks=tuple(blocks))


def equal_weights(fixed: Mapping[str, Any] | None) -> bool | Sequence[float]:
    """What `fixed` says of the components' weights: True for equal ones, False for nothing, or the weights themselves."""
    given = (fixed or {}).get("weights")
    if given is None:
        return False
    if isinstance(given, str):
        if given != "equal":
            raise UsageError(f"fixed weights are 'equal' or a list of shares, not {given!r}")
        return True
    shares = [float(share) for share in given]
    if min(shares, default=-1.0) < 0 or not np.isclose(sum(shares), 1.0):
        raise UsageError(f"fixed weights {shares} are no shares: they must be zero or more and sum to 1")
    return shares


def _target(names: Sequence[str]) -> str:
    """The name of the column of clusters, which the table must not have."""
    target = TARGET
    while target in names:
        target += "_"
    return target


def opened(source: Source, plan: Plan, **settings: Any) -> Mixing:
    """The rows of a source, kept where they are few and read again in every round where they are many."""
    weights = em.weights_of(plan)
    kinds = {name: kind for name, kind in plan.kinds().items() if name != plan.target}

    def batches() -> Any:
        return source.batches(kinds)

    whole = em.whole_tally(batches(), plan, weights)
    rows = em.Rows(batches, whole.schema, weights)
    few = isinstance(source, InMemory) or whole.rows * len(plan.columns) <= MOST_CELLS
    parts: Iterable[em.Part] = list(rows) if few else rows
    return Mixing(parts, plan, whole, em.variances(parts, whole.schema.columns), **settings)
