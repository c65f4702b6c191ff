"""Naive Bayes for mixed tables as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from likely.bayes import Posterior
from likely.bayes.rule import labels_array, least_cost
from likely.engines import Plan
from likely.engines.memory import tally_batch
from likely.errors import DataError
from likely.estimators._base import (
    TableEstimator,
    as_array,
    by_name,
    column_names,
    common_dtype,
    filled_in,
    in_turn,
    is_frame,
    labelled,
    plan_of,
    planned,
    refuse_hidden,
    refuse_without_rows,
    rows_of,
    semi_supervised_fit,
    warn_of_notes,
    with_threads,
    without_coefficients,
)
from likely.estimators._linear_form import linear_form
from likely.estimators._sklearn_bases import ClassifierMixin
from likely.latent.em import MAX_ITER
from likely.latent.semi_supervised import TOL
from likely.learning.learn import declare
from likely.model.ledger import Ledger
from likely.model.model import Model
from likely.model.relearning import warn_of_unaveraged, with_named_values
from likely.priors import priors, textbook
from likely.sources import Batch, Coded, InMemory
from likely.tally import Tally

Array = NDArray[np.float64]


class NaiveBayes(ClassifierMixin, TableEstimator):
    """Naive Bayes classifier for mixed tables.

    Each class gets its prior probability times the likelihood of every column. The default model is discriminatively
    weighted: each column has a weight fitted by leave-one-out, and interactions are added where they help. `plain=True` is
    the textbook's model.

    Parameters
    ----------
    families : "auto", name, family, or dict of them, default="auto"
        Families of the columns. "auto": numbers are binned, text and true/false categorical. A name ("categorical",
        "gaussian:class", "joint:class", ...) or a family is for all columns; a dict maps columns, by name or position, to
        families, with "*" for the rest. One joint Gaussian over all columns is quadratic discriminant analysis, with
        "joint:class" linear. Where every column has a family named, the model is plain: nothing is fitted
        on top of the counts.
    smoothing : "auto", float, prior, or dict of them, default="auto"
        Pseudocount for each value; "auto" chooses it for each column by leave-one-out (1 in a plain model). A dict maps
        columns to them, with "*" for the rest.
    class_prior : array, dict, float, prior or None, default=None
        Class probabilities (in the order of `classes_`), a pseudocount for each class, or None to count them.
    joint : sequence of tuples of columns, default=()
        Columns that are modelled together, by name or position.
    plain : bool, default=False
        Whether to use the textbook's model: numbers Gaussian, pseudocount 1, no weights and no calibration.
    dependence : "auto", "pairs", "none", "tree" or "one-dependence", default="auto"
        Which interactions between columns the calibration may add.
    average : bool, default=False
        Whether to average the plain model over all choices of which columns depend on the class.
    keep_rows : bool, default=True
        Whether `model_` keeps a sample of the rows, to be calibrated again after `partial_fit`.
    max_iter : int, default=1000
        Maximum number of EM iterations, where some labels are missing.
    tol : float, default=0.1
        EM stops when the maximum of the penalised log-likelihood is estimated to be at most `tol` nats away, in all. A
        negative value asks for `max_iter` plain iterations.
    n_jobs : int or None, default=None
        Number of threads: None takes the environment variable LIKELY_THREADS, else all cores that the process may use (CPU
        affinity, container quota) up to 16; -1 is all of these cores, 1 no threads.
    costs : {true class: {decision: cost}} or None, default=None
        `predict` then returns the decision of lowest expected cost ("*": all true classes; a decision that is no class is a
        reject option). Errors cost 1 unless named. Probabilities are not changed.

    Attributes
    ----------
    model_ : likely.Model
        The fitted model; it merges, forgets, explains and can be saved.
    classes_ : array
        The labels, sorted.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array
        Names of the columns, if they have names.
    n_iter_ : int
        Number of EM iterations; 1 where all rows have a label.
    unlabelled_ : float
        Weight of a row without a label, chosen on held-out labels; there where some labels were missing.

    """

    model_: Model
    classes_: NDArray[Any]
    set_partial_fit_request: Callable[..., Self]  # scikit-learn makes it

    def __init__(
        self,
        families: Any = "auto",
        smoothing: Any = "auto",
        class_prior: Any = None,
        joint: Any = (),
        plain: bool = False,
        *,
        dependence: str = "auto",
        average: bool = False,
        keep_rows: bool = True,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        n_jobs: int | None = None,
        costs: Any = None,
    ) -> None:
        self.families = families
        self.smoothing = smoothing
        self.class_prior = class_prior
        self.joint = joint
        self.plain = plain
        self.dependence = dependence
        self.average = average
        self.keep_rows = keep_rows
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.costs = costs

    @with_threads
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from these rows alone.

        Rows without a label are counted by their responsibilities (EM), with a weight chosen on held-out labels, which is 0
        where they do not help: `unlabelled_`.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.
        y : array
            Label of each row; None or NaN where it is unknown.
        sample_weight : array or None, default=None
            Weight of each row.

        Returns
        -------
        self
            The fitted estimator.
        """
        with in_turn(self):
            tally, labels, dtype = self._count(X, y, sample_weight, None)
            if len(tally.schema.classes) < 2:
                raise DataError(
                    f"y has only one class, {tally.schema.classes[0]!r}, among the rows of positive weight: a classifier "
                    "needs two classes; partial_fit takes them one by one"
                )
            prior = self._priors(tally)
            if (labels.codes < labels.low).any():
                plan = replace(self._plan(rows_of(self, X, reset=False)), blocks=tally.blocks)
                found = semi_supervised_fit(
                    rows_of(self, X, reset=False), labels, sample_weight, plan, prior, max_iter=self.max_iter, tol=self.tol
                )
                self.unlabelled_, self.n_iter_ = found.unlabelled, max(found.rounds, 1)
                self._set_model(found.model, dtype)
            else:
                self.n_iter_ = 1  # all rows have a label: they are counted once
                tally = filled_in(rows_of(self, X, reset=False), labels, sample_weight, tally, prior)
                self._set_model(self._model(tally, prior), dtype)
            warn_of_notes(self.model_)
            return self

    @with_threads
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from these rows as well. Several threads may call this at a time: every row is counted once.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.
        y : array
            Label of each row; new labels are welcome at any call.
        classes : array or None, default=None
            Labels that may come later; not needed.
        sample_weight : array or None, default=None
            Weight of each row.

        Returns
        -------
        self
            The fitted estimator.
        """
        with in_turn(self):
            before: Model | None = getattr(self, "model_", None)
            if before is None:
                refuse_without_rows(self)
            tally, labels, dtype = self._count(X, y, sample_weight, before)
            refuse_hidden(labels)
            declared = tuple(np.asarray(classes).tolist()) if classes is not None else ()
            if before is not None:
                tally = before.tally + tally
                declared = tuple(dict.fromkeys([*before.declared, *declared]))
                dtype = common_dtype(self.classes_.dtype, dtype)
            tally = declare(tally, declared)
            prior = self._priors(tally, before)
            tally = with_named_values(tally, prior)
            if before is None:
                model = self._model(tally, prior, declared)
            else:
                model = replace(before, prior=prior, declared=declared).with_tally(tally)
            self._set_model(model, dtype)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of every row; with `costs`, the decision of lowest expected cost.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.

        Returns
        -------
        array
            Label (or decision) of every row.
        """
        if self.costs is None:
            return self._posterior(X, "labels")
        check_is_fitted(self)
        probabilities, classes = self.predict_proba(X), self.classes_
        return least_cost(probabilities, classes, self.costs)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class for every row.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.

        Returns
        -------
        array
            Probabilities, rows × classes, in the order of `classes_`.
        """
        return self._posterior(X, "probabilities")

    def predict_log_proba(self, X: Any) -> Array:
        """Log probability of each class for every row.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.

        Returns
        -------
        array
            Log probabilities, rows × classes, in the order of `classes_`.
        """
        return self._posterior(X, "log_probabilities")

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Joint log probability log P(class) + log P(row | class), before it is normalised.

        Parameters
        ----------
        X : table of rows × columns
            Array, nested list or data frame; missing cells are allowed.

        Returns
        -------
        array
            Log probabilities, rows × classes, in the order of `classes_`; of multinomial counts without their coefficient,
            as in scikit-learn's MultinomialNB.
        """
        joint = self._posterior(X, "log_joint")
        return without_coefficients(self.model_, rows_of(self, X, reset=False), joint)

    @property
    def coef_(self) -> Array:
        """The weights of a linear model, as scikit-learn has them: (1, columns) for two classes, else (classes, columns).

        There is none unless the log odds of a model without calibration are linear: Gaussian columns whose variance the
        classes share ("gaussian:class", "gaussian:both"), a joint Gaussian whose covariance they share ("joint:class": linear
        discriminant analysis), yes/no columns of 0 and 1 ("bernoulli"), and counts ("poisson", "multinomial").
        """
        return linear_form(self)[0]

    @property
    def intercept_(self) -> Array:
        """The constant of a linear model: (1,) for two classes, else (classes,)."""
        return linear_form(self)[1]

    def explain(self, X: Any) -> Ledger:
        """Weights of evidence of one row: prior, the contribution of each column to each class, and their sum.

        Parameters
        ----------
        X : row
            Dict, row of a data frame, or array of one row.

        Returns
        -------
        likely.Ledger
            The explanation; it prints as a table.
        """
        check_is_fitted(self)
        if hasattr(X, "to_dict") and getattr(X, "ndim", None) == 1:  # a row of a pandas frame
            X = X.to_dict() if hasattr(self, "feature_names_in_") else X.to_numpy()
        if isinstance(X, Mapping):
            return self.model_.explain(X)
        if not is_frame(X):
            X = as_array(X)
            X = X.reshape(1, -1) if X.ndim == 1 else X
        batch = rows_of(self, X, reset=False)
        if batch.rows != 1:
            raise ValueError(f"explain takes one row, not {batch.rows}: pass X[i]")
        return self.model_.explain(InMemory(batch, "the row"))

    def _count(self, X: Any, y: Any, sample_weight: Any, before: Model | None) -> tuple[Any, Coded, np.dtype[Any]]:
        """The tally of these rows, in the columns of the model learned before, if there was one; labels and their type."""
        if y is None:
            validate_data(self, X, y, reset=before is None, skip_check_array=True)  # raises: y is required
        batch = rows_of(self, X, reset=before is None)
        labels, dtype, weights = labelled(y, sample_weight, batch.rows)
        plan = self._plan(batch) if before is None else plan_of(before)
        return tally_batch(batch, plan, labels, weights), labels, dtype

    def _plan(self, batch: Batch) -> Plan:
        return planned(self, batch, "y", self.plain or self.average or textbook(self.smoothing))

    def _model(self, tally: Tally, prior: Any, declared: tuple[Any, ...] = ()) -> Model:
        made = Model(
            with_named_values(tally, prior), prior, declared=declared, average=self.average, dependence=self.dependence
        )
        warn_of_unaveraged(made)
        return made.recalibrate()

    def _priors(self, tally: Tally, before: Model | None = None) -> Any:
        smoothing = self.smoothing
        if isinstance(smoothing, Mapping):
            own = by_name(smoothing, column_names(self))
            smoothing = {" with ".join(key) if isinstance(key, tuple) else key: given for key, given in own.items()}
        plain = tally.sample is None and not (before is not None and before.frozen)
        return priors(smoothing, self.class_prior, tally.schema.classes, plain, tally.blocks)

    def _set_model(self, model: Model, dtype: np.dtype[Any]) -> None:
        model = model if self.keep_rows else model.without_rows()
        labels = labels_array(model.classes)
        typed = labels.astype(dtype) if dtype.kind in "biufO" else labels
        classes = typed if np.array_equal(typed, labels) else labels  # one may be too large for the type
        self.__dict__.update(model_=model, classes_=classes)  # both at once: another thread may be predicting

    def _fitted(self) -> tuple[Model, NDArray[Any]]:
        """The model and its classes, consistent even if another thread calls partial_fit."""
        # After partial_fit, the calibration is fitted when the first prediction needs it.
        if self.model_.stale and not self.model_.frozen:
            with in_turn(self):
                if self.model_.stale and not self.model_.frozen:
                    self.model_ = self.model_.recalibrate()
        while True:
            model: Model = self.model_
            classes: NDArray[Any] = self.classes_
            if self.model_ is model:
                return model, classes

    @with_threads
    def _posterior(self, X: Any, what: str) -> NDArray[Any]:
        """An attribute of the posterior of all rows, computed in parallel by chunks of rows."""
        check_is_fitted(self)
        model, classes = self._fitted()
        scorer = model.scorer
        batch = rows_of(self, X, reset=False)
        labels = np.empty(batch.rows if what == "labels" else 0, classes.dtype)

        def read(part: tuple[int, int], joint: Array) -> None:
            found = getattr(Posterior(classes, joint, scorer.log_prior), what)
            if what == "labels":
                labels[slice(*part)] = found
            else:
                joint[:] = found

        joint = scorer.log_joint(batch, read if what != "log_joint" else None)
        return labels if what == "labels" else joint
