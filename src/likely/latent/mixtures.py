"""Finite mixtures over mixed columns, fitted by EM from several starts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from likely.engines import Plan
from likely.engines.e_step import LabelledRows
from likely.engines.engine import MEMORY, Engine, choose
from likely.engines.memory import tally_batch
from likely.engines.row_weights import WEIGHT_COLUMN, with_weights
from likely.errors import DataError, LikelyWarning, UsageError
from likely.families.statistics import Moments, Scatter, Statistic
from likely.latent import _initialization as initialization
from likely.latent import em
from likely.latent.clusters import Clusters
from likely.latent.em_parts import RowsInParts
from likely.latent.mixture_plan import equal_weights, plan_clusters
from likely.model.model import Model
from likely.model.parameters import with_taken
from likely.model.relearning import with_named_values
from likely.sources import Coded, InMemory, ReadKeywords, ReadOptions, Source, missing_of, open_source
from likely.sources.missing_tokens import token_warnings
from likely.tally import Tally

Array = NDArray[np.float64]
MOST_CELLS = 50_000_000  # a larger table is read again in every iteration
FEW_ROWS = 20_000  # with fewer rows every start is run until a maximum is near; with more, for some iterations
NEAR = 0.5  # nats: then the best start is run to convergence
SHORT = 10
MOST_CLUSTERS = 12  # the most that k="auto" tries
Fitted = TypeVar("Fitted")


@dataclass(frozen=True)
class MixtureFitter:
    """Fits mixtures of any number of components to the same rows."""

    parts: em.Rows
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
    first: Sequence[LabelledRows] | None = None  # where rows are elsewhere: those on which starts are drawn and compared

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
            return em.fit_em(self._with_all_words(models[0]), self.parts, **settings, watch=watch)
        rows, number = self.compared()
        short = settings | short_run(number, self.max_iter, self.tol)
        best = max((em.fit_em(model, rows, **short) for model in models), key=_objective)
        if self.first is not None:  # a value on the first rows is none on all
            return em.fit_em(self._with_all_words(best.model), self.parts, **settings)
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

    def compared(self) -> tuple[Iterable[LabelledRows], int]:
        """The rows on which starts are drawn and compared, and their number."""
        if self.first is not None:
            return self.first, sum(part.batch.rows for part in self.first)
        assert not isinstance(self.parts, em.RowsElsewhere)
        return self.parts, self.pooled.rows

    def _with_all_words(self, start: Model) -> Model:
        """Where rows are elsewhere, a start with a little of all of them: a model file lacks words without counts."""
        if self.first is None:
            return start
        little = self.pooled.of_classes([0] * len(start.classes), start.classes) * (1.0 / max(self.pooled.rows, 1))
        return replace(start, tally=start.tally + little)

    def _starts(self, blank: Model) -> list[Model]:
        """Initial models: each row in the cluster of its nearest k-means++ seed, with other seeds for each start."""
        schema, k = blank.schema, len(blank.classes)
        rows, number = self.compared()
        points = initialization.points(rows, schema, blank.blocks, number, self.seed)
        found = []
        for i in range(max(self.restarts, 1) if k > 1 else 1):
            # Every other start takes the seeds without Lloyd iterations: more varied, though farther from a maximum.
            labels = initialization.nearest_seeds(points, k, self.seed + 7919 * i, 0 if i % 2 else initialization.LLOYD)
            found.append(replace(blank, tally=self._counted(blank.tally, points.rows, labels)))
        return found

    def _counted(self, zero: Tally, rows: Sequence[NDArray[np.int64]], labels: NDArray[np.int64]) -> Tally:
        """The tally of the rows that were assigned to a class."""
        total, at, classes = zero, 0, zero.schema.classes
        for (batch, _, weights), chosen in zip(self.compared()[0], rows, strict=True):
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
    engine: str | Engine = "auto",
    reading: ReadOptions | None = None,
    **how: Unpack[ReadKeywords],
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
    engine : "auto", "memory", "spark", "spark-rows" or Engine, default="auto"
        Where the rows are counted, as for `learn`. With Spark every iteration of EM is a count in its tasks; starts are drawn
        and compared on the first 50,000 rows.
    reading : ReadOptions or None, default=None
        How the source is read, as one object instead of keywords.
    **how
        How a file is read: `encoding`, `decimal`, `table` and more, as for `learn`.

    Returns
    -------
    Clusters
        The mixture.
    """
    n_init, options = starts_of(n_init, how)
    where, rows = _engine(engine, data, weights)
    source, weight_name = with_weights(open_source(rows, reading or ReadOptions.of(missing, options)), weights)
    skip = (*ignore, *([weight_name] if weight_name else []))
    plan = plan_clusters(source, families, joint, skip, weights=weight_name, fixed=fixed)
    mixing = opened(source, plan, where, smoothing=smoothing, equal=equal_weights(fixed), restarts=n_init, max_iter=max_iter,
                    tol=tol, seed=seed, steps=steps)  # fmt: skip
    made = _chosen(mixing, criterion) if k == "auto" else _of_size(mixing, checked(k), start)
    warn_of_empty(made.model)
    em.warn_if_stopped(made.converged or tol <= 0, len(made.trace), em.MORE_ROUNDS)
    named = None if weight_name == WEIGHT_COLUMN else weight_name
    model = replace(made.model, weights=named, engine=f"{where.name}: {where.reason}")
    return replace(made, model=with_missing_tokens(model, source, counted=where.supports_parts))


def _engine(asked: str | Engine, data: Any, weights: Any) -> tuple[Engine, Any]:
    """The engine, and the rows as this process reads them."""
    where, rows = choose(asked, data)
    if not (where.name == MEMORY or where.supports_parts):
        raise UsageError(f"engine={asked!r} counts plain models of labelled rows: clusters are found by 'memory' or 'spark'")
    if where.supports_parts and not (weights is None or isinstance(weights, str)):
        raise UsageError("weights= of a Spark table must be the name of one of its columns")
    return where, rows


def with_missing_tokens(model: Model, source: Source, *, counted: bool = False) -> Model:
    """The model with the texts that were read as missing in its rows, if it lacks them; a doubtful one is a warning."""
    tally = model.tally if counted else with_taken(model.tally, missing_of(source))
    for message in token_warnings(tally.schema.columns, tally.rows):
        warnings.warn(message, LikelyWarning, stacklevel=3)
    return replace(model, tally=tally, missing=source.missing.tokens)


def starts_of(n_init: int, how: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Number of random starts, which may be in `how` under its former name `restarts`, and the others of these keywords."""
    if "restarts" in how:
        warnings.warn("restarts= is now called n_init=", FutureWarning, stacklevel=3)
    options = dict(how)
    return int(options.pop("restarts", n_init)), options


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


def opened(source: Source, plan: Plan, where: Engine | None = None, **settings: Any) -> MixtureFitter:
    """The fitter of a source's rows, which are kept in memory if they are few and else read again in every iteration.

    Where an engine hands out parts, the source has only the first rows, on which starts are compared.
    """
    weights = em.weights_of(plan)

    def batches() -> Any:
        return source.batches(em.kinds_read(plan, labelled=False))

    if where is not None and where.supports_parts:
        fields = missing_of(source).stored() | {"weights": plan.weights}
        elsewhere = RowsInParts.of(where, source, plan, fields, labelled=False)
        pooled, spread = elsewhere.pooled(plan)
        first = list(em.StreamedRows(batches, pooled.schema, weights))
        return MixtureFitter(elsewhere, plan, pooled, spread, first=first, **settings)
    pooled = em.pooled_tally(batches(), plan, weights)
    rows = em.StreamedRows(batches, pooled.schema, weights)
    few = isinstance(source, InMemory) or pooled.rows * len(plan.columns) <= MOST_CELLS
    parts: Iterable[LabelledRows] = list(rows) if few else rows
    return MixtureFitter(parts, plan, pooled, em.variances(parts, pooled.schema.columns), **settings)
