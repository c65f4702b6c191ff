"""Finite mixtures over mixed columns, fitted by EM from several starts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely.engines import Plan
from likely.engines.e_step import LabelledRows
from likely.engines.memory import tally_batch
from likely.engines.planning import plan_columns
from likely.engines.row_weights import WEIGHT_COLUMN, with_weights
from likely.engines.targets import as_names
from likely.errors import DataError, LikelyWarning, UsageError, no_column
from likely.families import family as family_of
from likely.families.statistics import Moments, Scatter, Statistic
from likely.latent import em, initialization
from likely.latent.clusters import Clusters
from likely.model.model import Model
from likely.model.parameters import with_taken
from likely.model.relearning import with_named_values
from likely.schema import TEXT
from likely.sources import Coded, InMemory, ReadOptions, Source, missing_of, open_source, require_rows
from likely.sources.missing_tokens import token_warnings
from likely.tally import Tally

Array = NDArray[np.float64]
MOST_CELLS = 50_000_000  # a larger table is read again in every iteration
FEW_ROWS = 20_000  # with fewer rows every start is run until a maximum is near; with more, for some iterations
NEAR = 0.5  # nats: then the best start is run to convergence
SHORT = 10
MOST_CLUSTERS = 12  # the most that k="auto" tries
TARGET = "cluster"
Fitted = TypeVar("Fitted")


@dataclass(frozen=True)
class MixtureFitter:
    """Fits mixtures of any number of components to the same rows."""

    parts: Iterable[LabelledRows]
    plan: Plan
    pooled: Tally  # all rows as one class
    spread: Mapping[str, float]
    smoothing: Any = 1.0
    equal: bool | Sequence[float] = False
    restarts: int = 5
    max_iter: int = em.MAX_ITER
    tol: float = em.TOL
    seed: int = 0
    steps: bool = False  # whether the steps of EM are recorded

    def fit(self, classes: Sequence[Any], start: Any = None, watch: em.Watch | None = None) -> em.EMResult:
        """The best of several runs of EM; `start` gives the initial means instead of drawing them."""
        best = em.with_entropy(self._best(classes, start, watch), self.parts)
        return replace(best, summary=replace(best.summary, seed=self.seed))

    def _best(self, classes: Sequence[Any], start: Any, watch: em.Watch | None) -> em.EMResult:
        after = () if self.steps else None
        settings: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "after": after}
        zero = em.empty_tally(self.pooled, tuple(classes))
        prior = em.mixture_priors(self.smoothing, zero, self.spread, self._fixed_weights(classes))
        blank = Model(with_named_values(zero, prior), prior)
        if start is not None:
            return em.fit_em(
                replace(blank, tally=tally_at_means(blank.tally, start, self.spread)), self.parts, **settings, watch=watch
            )
        models = self._starts(blank)
        if watch or len(models) == 1:
            return em.fit_em(models[0], self.parts, **settings, watch=watch)
        short = settings | short_run(self.pooled.rows, self.max_iter, self.tol)
        best = max((em.fit_em(model, self.parts, **short) for model in models), key=_objective)
        done = len(best.trace) - 1
        if done + 1 >= self.max_iter:
            return best
        rest = settings | {"max_iter": self.max_iter - done, "after": best.steps if self.steps else None, "done": done}
        end = em.fit_em(best.model, self.parts, **rest)
        return replace(end, summary=replace(end.summary, trace=(*best.trace[:-1], *end.trace)))

    def _fixed_weights(self, classes: Sequence[Any]) -> Mapping[Any, float] | None:
        if self.equal is False:
            return None
        weights = [1 / len(classes)] * len(classes) if self.equal is True else list(self.equal)
        return dict(zip(classes, weights, strict=True))

    def _starts(self, blank: Model) -> list[Model]:
        """Initial models: each row in the cluster of its nearest k-means++ seed, with other seeds for each start."""
        schema, k = blank.schema, len(blank.classes)
        points = initialization.points(self.parts, schema, blank.blocks, self.pooled.rows, self.seed)
        found = []
        for i in range(max(self.restarts, 1) if k > 1 else 1):
            # Every other start takes the seeds without Lloyd iterations: more varied, though farther from a maximum.
            labels = initialization.nearest_seeds(points, k, self.seed + 7919 * i, 0 if i % 2 else initialization.LLOYD)
            found.append(replace(blank, tally=self._counted(blank.tally, points.rows, labels)))
        return found

    def _counted(self, zero: Tally, rows: Sequence[NDArray[np.int64]], labels: NDArray[np.int64]) -> Tally:
        """The tally of the rows that were assigned to a class."""
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
    """Settings of the run of every start before the best one is chosen."""
    return {
        "tol": max(tol, NEAR) if tol >= 0 else tol,
        "max_iter": max_iter if rows <= FEW_ROWS else min(SHORT, max_iter),
    }


def _objective(fit: em.EMResult) -> float:
    return fit.value if np.isfinite(fit.value) else -np.inf


def tally_at_means(zero: Tally, means: Any, spread: Mapping[str, float]) -> Tally:
    """One pseudo-row of every class at its given mean, with the variance of the table: initialization by given means."""
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
    families: Any = "auto",
    joint: Sequence[Sequence[str]] = (),
    smoothing: Any = 1.0,
    fixed: Mapping[str, Any] | None = None,
    weights: Any = None,
    ignore: Sequence[str] = (),
    missing: Sequence[str] | None = None,
    n_init: int = 5,
    max_iter: int = em.MAX_ITER,
    tol: float = em.TOL,
    seed: int = 0,
    criterion: str = "bic",
    start: Any = None,
    steps: bool = False,
    reading: ReadOptions | None = None,
    **how: Any,
) -> Clusters:
    """Fit a finite mixture over mixed columns by EM: a model whose classes 1, 2, … are the components, the largest first.

    Parameters
    ----------
    data : path, frame, dict of columns or any other source
        The table, as for `learn`. A column of labels should be left out with `ignore`.
    k : int or "auto", default=3
        Number of clusters; "auto" tries 1, 2, 3, … and keeps the number with the lowest `criterion`.
    families : "auto", name, family, or dict of them, default="auto"
        Families of the columns, as for `learn`, "*" included. By default numbers are Gaussian, text of few words is
        categorical, and longer text a bag of words.
    joint : sequence of tuples of columns, default=()
        Columns that are modelled together.
    smoothing : float, prior or dict of them, default=1.0
        Pseudocount for each value and pseudo-rows for each variance; 0 is maximum likelihood.
    fixed : dict or None, default=None
        Parameters that are known: {"variance": 1.0, "weights": "equal"}.
    weights : str, array or None, default=None
        Row weights: a column, or one number a row.
    ignore : sequence of str, default=()
        Columns to leave out.
    missing : sequence of str or None, default=None
        Texts that stand for a missing cell.
    n_init : int, default=5
        Number of random starts; the best one is kept.
    max_iter : int, default=1000
        Maximum number of EM iterations.
    tol : float, default=0.0001
        EM stops when the maximum of the penalised log-likelihood is estimated to be at most `tol` nats away, in all. A
        negative value asks for `max_iter` plain iterations without extrapolation.
    seed : int, default=0
        Seed of the random starts.
    criterion : "bic" or "icl", default="bic"
        Criterion for k="auto".
    start : array of k × columns, or None, default=None
        Initial means; the clusters keep their order.
    steps : bool, default=False
        Whether the model keeps every step of EM in `steps`: `likely.lesson` makes a page of them.
    reading : ReadOptions or None, default=None
        How the source is read, as one object instead of keywords.
    **how
        How a file is read: `encoding`, `decimal`, `table` and more, as for `learn`.

    Returns
    -------
    Clusters
        The mixture.
    """
    n_init = starts_of(n_init, how)
    source, weight_name = with_weights(open_source(data, reading or ReadOptions.of(missing, how)), weights)
    skip = (*ignore, *([weight_name] if weight_name else []))
    plan = plan_clusters(source, families, joint, skip, weights=weight_name, fixed=fixed)
    mixing = opened(source, plan, smoothing=smoothing, equal=equal_weights(fixed), restarts=n_init, max_iter=max_iter,
                    tol=tol, seed=seed, steps=steps)  # fmt: skip
    made = _chosen(mixing, criterion) if k == "auto" else _of_size(mixing, checked(k), start)
    warn_of_empty(made.model)
    em.warn_if_stopped(made.converged or tol <= 0, len(made.trace), em.MORE_ROUNDS)
    model = replace(made.model, weights=None if weight_name == WEIGHT_COLUMN else weight_name)
    return replace(made, model=with_missing_tokens(model, source))


def with_missing_tokens(model: Model, source: Source) -> Model:
    """The model with the texts that were read as missing in its rows; a doubtful one is a warning."""
    tally = with_taken(model.tally, missing_of(source))
    for message in token_warnings(tally.schema.columns, tally.rows):
        warnings.warn(message, LikelyWarning, stacklevel=3)
    return replace(model, tally=tally, missing=source.missing.tokens)


def starts_of(n_init: int, how: dict[str, Any]) -> int:
    """Number of random starts, which may come under its former name `restarts`; that is taken out of `how`."""
    if "restarts" in how:
        warnings.warn("restarts= is now called n_init=", FutureWarning, stacklevel=3)
    return int(how.pop("restarts", n_init))


def checked(k: Any, name: str = "k") -> int:
    """A number of clusters: an integer, one or more."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise UsageError(f"{name}={k!r} is no number of clusters: pass 1, 2, 3, … or 'auto'")
    return int(k)


def warn_of_empty(model: Model) -> None:
    """Warn of components without rows."""
    empty = [
        str(c) for c, n in zip(model.classes, model.tally.classes, strict=True) if n < 1e-6 * model.tally.classes.sum()
    ]
    if empty:
        warnings.warn(f"clusters {', '.join(empty)} are empty: a smaller k fits as well", LikelyWarning, stacklevel=3)


def _of_size(mixing: MixtureFitter, k: int, start: Any) -> Clusters:
    """That many clusters: in the order of the given means, or the largest first."""
    fit = mixing.fit(range(1, k + 1), start)
    return Clusters.of(fit if start is not None else em.largest_first(fit))


def _chosen(mixing: MixtureFitter, criterion: str) -> Clusters:
    """The clustering with the lowest criterion."""
    if criterion not in ("bic", "icl"):
        raise UsageError(f"criterion={criterion!r} is not known: choose 'bic' or 'icl'")
    best, tried = lowest_cost(lambda k: mixing.fit(range(1, k + 1)), lambda fit: float(getattr(fit, criterion)))
    return Clusters.of(em.largest_first(best), tried)


def lowest_cost(
    fit: Callable[[int], Fitted], cost: Callable[[Fitted], float], most: int = MOST_CLUSTERS
) -> tuple[Fitted, dict[int, float]]:
    """The fit of the number of components with the lowest criterion, and the criterion of each number tried.

    Three numbers in a row that do not improve it end the search.
    """
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
    source: Source,
    families: Any = None,
    joint: Sequence[Sequence[str]] = (),
    skip: Sequence[str] = (),
    *,
    weights: str | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of all columns, as for learning, but without a target."""
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
    return with_fixed(replace(plan, weights=weights, ignored=(*asked, *plan.ignored)), fixed, families)


def with_fixed(plan: Plan, fixed: Mapping[str, Any] | None, families: Any = None) -> Plan:
    """The plan with fixed variances, and texts as EM counts them."""
    odd = sorted(set(fixed or {}) - {"variance", "weights"})
    if odd:
        raise UsageError(f"fixed={dict(fixed or {})!r}: {odd[0]!r} cannot be fixed, only 'variance' and 'weights'")
    variance, blocks = (fixed or {}).get("variance"), []
    for block in em.plan_hidden(plan).blocks:
        made = block.family
        if variance is not None:
            own = variance.get(block.columns[0]) if isinstance(variance, Mapping) else variance
            made = made.with_known_variance(own)
        if made.column_kind == TEXT and families in (None, "auto"):
            made = family_of(type(made), **made.settings() | {"counts": "log"})  # ten occurrences are no tenfold evidence
        blocks.append(replace(block, family=made))
    return replace(plan, blocks=tuple(blocks))


def equal_weights(fixed: Mapping[str, Any] | None) -> bool | Sequence[float]:
    """The component weights in `fixed`: True for equal ones, False if they are free, or the weights themselves."""
    given = (fixed or {}).get("weights")
    if given is None:
        return False
    if isinstance(given, str):
        if given != "equal":
            raise UsageError(f"fixed weights are 'equal' or a list of probabilities, not {given!r}")
        return True
    weights = [float(weight) for weight in given]
    if min(weights, default=-1.0) < 0 or not np.isclose(sum(weights), 1.0):
        raise UsageError(f"fixed weights {weights} are no probabilities: they must be zero or more and sum to 1")
    return weights


def _target(names: Sequence[str]) -> str:
    """A name for the column of clusters that the table does not have."""
    target = TARGET
    while target in names:
        target += "_"
    return target


def opened(source: Source, plan: Plan, **settings: Any) -> MixtureFitter:
    """The fitter of a source's rows, which are kept in memory if they are few and else read again in every iteration."""
    weights = em.weights_of(plan)
    kinds = {name: kind for name, kind in plan.kinds().items() if name != plan.target}

    def batches() -> Any:
        return source.batches(kinds)

    pooled = em.pooled_tally(batches(), plan, weights)
    rows = em.StreamedRows(batches, pooled.schema, weights)
    few = isinstance(source, InMemory) or pooled.rows * len(plan.columns) <= MOST_CELLS
    parts: Iterable[LabelledRows] = list(rows) if few else rows
    return MixtureFitter(parts, plan, pooled, em.variances(parts, pooled.schema.columns), **settings)
