"""Bayesian network classifier as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from likely.bayes.rule import labels_array
from likely.engines.memory import sorted_labels
from likely.errors import DataError
from likely.estimators._base import TableEstimator, also_called, column_names, labelled, rows_of, seed_of, with_threads
from likely.estimators._sklearn_bases import ClassifierMixin
from likely.networks.fitting import log_posteriors
from likely.networks.network import Network
from likely.networks.rows import Rows, Wanted, code_type, read_rows
from likely.networks.structure import METHODS
from likely.schema import CATEGORY, NUMBER, Column
from likely.sources import Batch, InMemory

Array = NDArray[np.float64]


class NetworkClassifier(ClassifierMixin, TableEstimator):
    """Classifier by exact inference in a Bayesian network over the class and the columns.

    Columns that name rows are left out with a warning where the arcs are learned, unless `kinds` names them.

    Parameters
    ----------
    method : {"tan", "naive-bayes", "k-dependence", "hill-climb"} or arcs, default="tan"
        How the arcs are found, or the arcs themselves, in which the class has the name `target`. TAN is naive Bayes
        with the best tree among the columns.
    target : str, default="class"
        What the class is called in the network.
    k : int, default=2
        The parents among the columns, for "k-dependence".
    criterion : str, default="qnml"
        Score that "hill-climb" maximises.
    kinds : dict or None, default=None
        "categorical" or "gaussian" for columns of numbers; else whole numbers of at most 12 values are categories.
    smoothing : "auto", float, prior or dict, default="auto"
        Pseudocount of each cell, as for `Network`.
    max_parents : int or None, default=None
        The most parents of a node, for "hill-climb".
    random_state : int, RandomState or None, default=0
        The seed of the search and of EM.
    n_jobs : int or None, default=None
        Number of threads: None takes the environment variable LIKELY_THREADS, else all cores that the process may use (CPU
        affinity, container quota) up to 16; -1 is all of these cores, 1 no threads.

    Attributes
    ----------
    network_ : likely.Network
        The fitted network; it answers any query, can be drawn and saved.
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    """

    network_: Network
    classes_: NDArray[Any]

    @also_called(structure="method")
    def __init__(
        self,
        method: Any = "tan",
        target: str = "class",
        k: int = 2,
        criterion: str = "qnml",
        kinds: Any = None,
        *,
        smoothing: Any = "auto",
        max_parents: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.method = method
        self.target = target
        self.k = k
        self.criterion = criterion
        self.kinds = kinds
        self.smoothing = smoothing
        self.max_parents = max_parents
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_threads
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the arcs and count; rows whose label is None or NaN, and missing cells, are counted by EM.

        Parameters
        ----------
        X : frame or array
            The columns.
        y : array
            The class of each row; None or NaN where it is not known.
        sample_weight : array or None, default=None
            How much each row counts.

        Returns
        -------
        NetworkClassifier
            The estimator itself.

        """
        if y is None:
            validate_data(self, X, y, skip_check_array=True)  # raises: y is required
        batch = rows_of(self, X, reset=True)
        coded, dtype, weights = labelled(y, sample_weight, batch.rows)
        labels = sorted_labels(coded)
        codes = np.asarray(labels.codes - labels.low, dtype=np.int64)
        target = Column(self._target(), CATEGORY, tuple(labels.values))
        rows = self._rows(batch, None, target, codes, weights)
        seen = np.bincount(rows.codes[0][rows.codes[0] >= 0], minlength=len(target.values)) > 0
        if seen.sum() < 2:
            raise DataError(f"y has only one class, {target.values[int(seen.argmax())]!r}: a classifier needs two classes")
        if not seen.all():  # classes that only rows without weight have
            rows = _without_classes(rows, seen)
        self.network_ = self._learned(rows)
        self.classes_ = labels_array(rows.columns[0].values)
        if dtype.kind in "biufO":
            self.classes_ = self.classes_.astype(dtype)
        return self

    def _target(self) -> str:
        names, target = column_names(self), str(self.target)
        while target in names:
            target += "_"
        return target

    def _rows(self, batch: Batch, known: Any, target: Column, codes: NDArray[Any], weights: Any) -> Rows:
        """The columns with the class before them; columns with one value, and rows without weight, are left out."""
        names = [n for n in column_names(self) if known is None or n in known]
        wanted = Wanted(names, known, (), self.kinds, "missing" if known else "error")
        found = read_rows(InMemory(batch, "X"), wanted)
        use = np.ones(found.n, bool) if weights is None else weights > 0
        kept = [i for i, c in enumerate(found.columns) if known is not None or c.kind == NUMBER or len(c.values) > 1]
        columns = (target, *(found.columns[i] for i in kept))
        lines = np.vstack([codes[None], found.codes[kept]]).astype(code_type(columns))
        made = Rows(columns, lines, found.numbers, np.zeros(0) if weights is None else weights)
        return made if use.all() else made.take(np.flatnonzero(use))

    def _learned(self, rows: Rows) -> Network:
        seed = seed_of(self.random_state)
        target = rows.columns[0].name
        if len(rows.columns) == 1:
            return Network(nodes=[target], smoothing=self.smoothing).fit(rows)
        if not (isinstance(self.method, str) and self.method in METHODS):
            return Network(self.method, nodes=[c.name for c in rows.columns], smoothing=self.smoothing).fit(rows, seed=seed)
        return Network.learn_structure(
            rows, method=self.method, target=target, k=self.k, criterion=self.criterion, max_parents=self.max_parents,
            smoothing=self.smoothing, seed=seed,
            kinds={n: k for n, k in (self.kinds or {}).items() if any(c.name == n for c in rows.columns)},
        )  # fmt: skip

    @with_threads
    def predict_log_proba(self, X: Any) -> Array:
        """The log probability of each class, in the order of `classes_`; values never seen count as missing.

        Parameters
        ----------
        X : frame or array
            The columns.

        Returns
        -------
        array, rows × classes
            Logs of probabilities.

        """
        check_is_fitted(self)
        batch = rows_of(self, X, reset=False)
        network = self.network_
        target = network.columns[self._target()]
        rows = self._rows(batch, dict(network.columns), target, np.full(batch.rows, -1), None)
        place = {c.name: i for i, c in enumerate(rows.columns)}
        numeric = rows.numeric
        columns = tuple(rows.columns[place[n]] for n in network.nodes)
        numbers = rows.numbers[[numeric[c.name] for c in columns if c.kind == NUMBER]]
        rows = replace(rows, columns=columns, codes=rows.codes[[place[n] for n in network.nodes]], numbers=numbers)
        return log_posteriors(network.inference, rows, target.name)

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, in the order of `classes_`.

        Parameters
        ----------
        X : frame or array
            The columns.

        Returns
        -------
        array, rows × classes
            Probabilities; each row sums to one.

        """
        probabilities: Array = np.exp(self.predict_log_proba(X))
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row.

        Parameters
        ----------
        X : frame or array
            The columns.

        Returns
        -------
        array
            A class for each row.

        """
        best = self.predict_log_proba(X).argmax(1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen


def _without_classes(rows: Rows, seen: NDArray[np.bool_]) -> Rows:
    place = np.array([*(np.cumsum(seen) - 1), -1])
    first = replace(rows.columns[0], values=tuple(v for v, there in zip(rows.columns[0].values, seen, strict=True) if there))
    codes = rows.codes.copy()
    codes[0] = place[codes[0]]
    return replace(rows, columns=(first, *rows.columns[1:]), codes=codes)
