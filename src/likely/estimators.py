"""The scikit-learn door to tables with labels: counting behind fit and predict."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from likely.bayes import Posterior
from likely.bayes.rule import labels_array
from likely.doorway import (
    TableEstimator,
    as_array,
    by_name,
    column_names,
    filled_in,
    in_turn,
    is_frame,
    labelled,
    planned,
    refuse_hidden,
    refuse_without_rows,
    rows_of,
    shared_out,
)
from likely.em import MAX_ITER
from likely.engines import Plan
from likely.engines.memory import tally_batch
from likely.errors import DataError, LikelyWarning
from likely.learn import declare
from likely.ledger import Ledger
from likely.model import Model, with_room
from likely.partly import TOL
from likely.prior import priors, textbook
from likely.sources import Batch, Coded, InMemory
from likely.tally import Tally

Array = NDArray[np.float64]
NOTES_SHOWN = 3


class NaiveBayes(ClassifierMixin, TableEstimator):
    """Each class as likely as its share of the rows times what every column says of it.

    Parameters
    ----------
    families : "auto", name, family, or dict of them, default="auto"
        What the columns are. "auto": numbers are cut into bins, text and true/false categorical. A name ("categorical",
        "gaussian:class", "joint:class", ...) or a family speaks of all columns, a dict of columns by name or position.
        One joint Gaussian over all columns is quadratic discriminant analysis, with "joint:class" linear.
    smoothing : "auto", float, prior, or dict of them, default="auto"
        Imagined rows for each value; "auto" lets each column choose by leaving rows out (1 in a plain model).
    class_prior : array, dict, float, prior or None, default=None
        The shares of the classes (in the order of `classes_`), imagined rows for each, or None to count them.
    joint : sequence of tuples of columns, default=()
        Columns that are modelled together.
    plain : bool, default=False
        The textbook's model, nothing but counting: numbers Gaussian, one imagined row a value, no weights.
    dependence : "auto", "pairs", "none", "tree" or "one-dependence", default="auto"
        Which columns may speak together beyond what each says alone.
    average : bool, default=False
        Average the plain model over all choices of which columns depend on the class.
    keep_rows : bool, default=True
        Whether `model_` holds a sample of the rows to be calibrated on again after `partial_fit`; False removes it.
    max_iter, tol : int and float, default=1000 and 0.1
        Where some labels are missing, EM ends after so many rounds, or when the maximum of the penalised log likelihood is
        estimated to be at most `tol` nats away, in all. A negative `tol` asks for `max_iter` plain rounds.

    Attributes
    ----------
    model_ : likely.Model
        What was counted; it merges, forgets, explains itself and can be saved.
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    """

    model_: Model
    classes_: NDArray[Any]

    def __init__(
        self,
        families: Any = "auto",
        smoothing: Any = "auto",
        class_prior: Any = None,
        joint: Any = (),
        plain: bool = False,
        dependence: str = "auto",
        average: bool = False,
        keep_rows: bool = True,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count these rows, and none from before; a row whose label is None or NaN is counted by its shares (EM).

        How much such a row weighs is found out on labels set aside, and is 0 where it does not help: `unlabelled_`. `n_iter_`
        is the number of rounds.
        """
        with in_turn(self):
            tally, labels, dtype = self._count(X, y, sample_weight, None)
            if len(tally.schema.classes) < 2:
                raise DataError(
                    f"y has only one class, {tally.schema.classes[0]!r}, among the rows that weigh something: a classifier "
                    "needs two classes; partial_fit takes them one by one"
                )
            prior = self._priors(tally)
            if (labels.codes < labels.low).any():
                plan = replace(self._plan(rows_of(self, X, reset=False)), blocks=tally.blocks)
                found = shared_out(
                    rows_of(self, X, reset=False), labels, sample_weight, plan, prior, self.max_iter, self.tol
                )
                self.unlabelled_, self.n_iter_ = found.unlabelled, max(found.rounds, 1)
                self._believe(found.model, dtype)
            else:
                self.n_iter_ = 1  # all rows have a label: they are counted once
                tally = filled_in(rows_of(self, X, reset=False), labels, sample_weight, tally, prior)
                self._believe(self._model(tally, prior), dtype)
            _warn(self.model_)
            return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count these rows as well; `classes` may name labels that are yet to come, and others are welcome too.

        Several threads may teach one estimator: every row is counted once.
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
                dtype = _common(self.classes_.dtype, dtype)
            tally = declare(tally, declared)
            prior = self._priors(tally, before)
            tally = with_room(tally, prior)
            if before is None:
                model = self._model(tally, prior, declared)
            else:
                model = replace(before, prior=prior, declared=declared).recounted(tally)
            self._believe(model, dtype)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row."""
        return self._read_off(X, "labels")

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, in the order of `classes_`."""
        return self._read_off(X, "probabilities")

    def predict_log_proba(self, X: Any) -> Array:
        """The log probability of each class."""
        return self._read_off(X, "log_probabilities")

    def predict_joint_log_proba(self, X: Any) -> Array:
        """log P(class) + log P(row | class), which is not yet shared out among the classes."""
        return self._read_off(X, "log_joint")

    def explain(self, X: Any) -> Ledger:
        """The account of one row: prior, what each column says for each class, and what it adds up to."""
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
            validate_data(self, X, y, reset=before is None, skip_check_array=True)  # says that y is required
        batch = rows_of(self, X, reset=before is None)
        labels, dtype, weights = labelled(y, sample_weight, batch.rows)
        plan = self._plan(batch) if before is None else _plan_of(before)
        return tally_batch(batch, plan, labels, weights), labels, dtype

    def _plan(self, batch: Batch) -> Plan:
        return planned(self, batch, "y", self.plain or self.average or textbook(self.smoothing))

    def _model(self, tally: Tally, prior: Any, declared: tuple[Any, ...] = ()) -> Model:
        made = Model(
            with_room(tally, prior), prior, declared=declared, average=self.average, dependence=self.dependence
        )
        return made.recalibrate()

    def _priors(self, tally: Tally, before: Model | None = None) -> Any:
        smoothing = self.smoothing
        if isinstance(smoothing, Mapping):
            own = by_name(smoothing, column_names(self))
            smoothing = {" with ".join(key) if isinstance(key, tuple) else key: given for key, given in own.items()}
        plain = tally.sample is None and not (before is not None and before.frozen)
        return priors(smoothing, self.class_prior, tally.schema.classes, plain, tally.blocks)

    def _believe(self, model: Model, dtype: np.dtype[Any]) -> None:
        model = model if self.keep_rows else model.without_rows()
        labels = labels_array(model.classes)
        typed = labels.astype(dtype) if dtype.kind in "biufO" else labels
        classes = typed if np.array_equal(typed, labels) else labels  # one may be too large for the type
        self.__dict__.update(model_=model, classes_=classes)  # both at once: another thread may be predicting

    def _believed(self) -> tuple[Model, NDArray[Any]]:
        """The model and its classes as they are now, whatever other threads teach it meanwhile."""
        # After partial_fit, what is fitted on top of the counts waits until somebody asks.
        if self.model_.stale and not self.model_.frozen:
            with in_turn(self):
                if self.model_.stale and not self.model_.frozen:
                    self.model_ = self.model_.recalibrate()
        while True:
            model: Model = self.model_
            classes: NDArray[Any] = self.classes_
            if self.model_ is model:
                return model, classes

    def _read_off(self, X: Any, what: str) -> NDArray[Any]:
        """Something of the posterior, each stretch of rows on a core of its own."""
        check_is_fitted(self)
        model, classes = self._believed()
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


def _common(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """The type that keeps the labels of both: one for numbers, one for text, else whatever they are."""
    both = {a.kind, b.kind}
    return np.promote_types(a, b) if both <= set("iuf") or len(both) == 1 else np.dtype(object)


def _plan_of(model: Model) -> Plan:
    keep = model.tally.sample is not None
    target = model.schema.target
    return Plan(target.name, model.blocks, model.schema.columns, target_form=target.form, sample=keep)


def _warn(model: Model) -> None:
    """Say once what was peculiar, however many columns it concerns."""
    notes = [note for parameters in model.block_parameters for note in parameters.notes]
    if notes:
        more = f"; and {len(notes) - NOTES_SHOWN} more like these" if len(notes) > NOTES_SHOWN else ""
        warnings.warn("; ".join(notes[:NOTES_SHOWN]) + more, LikelyWarning, stacklevel=3)
