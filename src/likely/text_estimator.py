"""The scikit-learn door for text: raw strings in, posteriors out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from likely.bayes import Posterior
from likely.bayes.rule import labels_array
from likely.doorway import in_turn, labelled, refuse_hidden, refuse_without_rows, shared_out
from likely.em import MAX_ITER
from likely.engines import Plan
from likely.engines.memory import tally_batch
from likely.errors import DataError
from likely.families import Block, Text
from likely.families.text import ranked_words
from likely.ledger import Ledger
from likely.model import Model
from likely.partly import TOL
from likely.prior import priors
from likely.schema import TEXT, Column, is_missing
from likely.sources import Coded, Frame, InMemory
from likely.sources.arrays import sound

Array = NDArray[np.float64]
COLUMN, TARGET = "text", "label"


class TextNaiveBayes(ClassifierMixin, BaseEstimator):
    r"""Each class as likely as its share of the documents times what every word says of it.

    Parameters
    ----------
    kind : "auto", "multinomial", "bernoulli" or "complement", default="auto"
        The textbook's models by name. "auto" counts the logarithm of how often a word occurs, and learns by leaving each
        document out what a word is worth; its posteriors can be trusted.
    smoothing : float or prior, default=1.0
        Imagined words. `MEstimate(m, "background")` imagines m words in proportion to how often each occurs overall.
    ngrams : tuple (shortest, longest), default=(1, 1)
        Runs of words that count as one.
    token_pattern : str or None, default=None
        A regular expression of your own. None is `(?u)\b\w\w+\b`, compiled.
    lowercase : bool, default=True
        Whether case is ignored.
    keep_rows : bool, default=True
        Whether `model_` holds a sample of the documents to be calibrated on again after `partial_fit`; False removes it.
    max_iter, tol : int and float, default=1000 and 0.1
        Where some labels are missing, EM ends after so many rounds, or when the maximum of the penalised log likelihood is
        estimated to be at most `tol` nats away, in all. A negative `tol` asks for `max_iter` plain rounds.

    Attributes
    ----------
    model_ : likely.Model
        What was counted; it merges, forgets, explains itself and can be saved.
    classes_ : array
        The labels, sorted.

    """

    model_: Model
    classes_: NDArray[Any]

    def __init__(
        self,
        kind: str = "auto",
        smoothing: Any = 1.0,
        ngrams: tuple[int, int] = (1, 1),
        token_pattern: str | None = None,
        lowercase: bool = True,
        keep_rows: bool = True,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
    ) -> None:
        self.kind = kind
        self.smoothing = smoothing
        self.ngrams = ngrams
        self.token_pattern = token_pattern
        self.lowercase = lowercase
        self.keep_rows = keep_rows
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count these documents, and none from before; where some labels are None, those documents by their shares (EM).

        How much such a document weighs is found out on labels set aside, and is 0 where it does not help: `unlabelled_`.
        `n_iter_` is the number of rounds.
        """
        with in_turn(self):
            tally, labels = self._count(X, y, sample_weight)
            if len(tally.schema.classes) < 2:
                raise DataError(f"y has only one class, {tally.schema.classes[0]!r}: a classifier needs two classes")
            if (labels.codes < labels.low).any():
                found = shared_out(
                    _batch(X), labels, sample_weight, self._plan(), self._model(tally).prior, self.max_iter, self.tol
                )
                self.unlabelled_, self.n_iter_ = found.unlabelled, max(found.rounds, 1)
                self._believe(replace(found.model, missing=()))
            else:
                self.n_iter_ = 1  # all documents have a label: they are counted once
                self._believe(self._model(tally).recalibrate())
            return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Count these documents as well; new words and new classes are welcome, `classes` is not needed.

        Several threads may teach one estimator: every document is counted once.
        """
        tally, labels = self._count(X, y, sample_weight)
        refuse_hidden(labels)
        with in_turn(self):
            before: Model | None = getattr(self, "model_", None)
            if before is None:
                refuse_without_rows(self)
                self._believe(self._model(tally).recalibrate())
            else:
                self._believe(before.recounted(before.tally + tally))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every document."""
        return self._posterior(X).labels

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, in the order of `classes_`."""
        return self._posterior(X).probabilities

    def predict_log_proba(self, X: Any) -> Array:
        """The log probability of each class."""
        return self._posterior(X).log_probabilities

    def explain(self, document: str) -> Ledger:
        """The account of one document: prior, what each word says for each class, and what it adds up to."""
        check_is_fitted(self)
        return self.model_.explain(InMemory(_batch([document]), "the document"))

    def top_words(self, most: int = 10) -> dict[Any, list[tuple[str, float]]]:
        """The words that speak most for each class, against the average of the classes."""
        check_is_fitted(self)
        form: Any = self.model_.block_parameters[0].form
        return dict(zip(self.model_.classes, ranked_words(form, most), strict=True))

    def _count(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Coded]:
        batch = _batch(X)
        labels, _, weights = labelled(y, sample_weight, batch.rows)
        return tally_batch(batch, self._plan(), labels, weights), labels

    def _plan(self) -> Plan:
        family = Text(self.kind, (self.ngrams[0], self.ngrams[1]), self.lowercase, pattern=self.token_pattern)
        return Plan(TARGET, (Block(family, (COLUMN,)),), (Column(COLUMN, TEXT, reason="the documents"),))

    def _model(self, tally: Any) -> Model:
        return Model(tally, priors(self.smoothing, None, tally.schema.classes), missing=())

    def _believe(self, model: Model) -> None:
        model = model if self.keep_rows else model.without_rows()
        self.__dict__.update(model_=model, classes_=labels_array(model.classes))  # at once: another thread may look

    def _posterior(self, X: Any) -> Posterior:
        check_is_fitted(self)
        return self.model_.posterior_of(_batch(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags


def _batch(X: Any) -> Frame:
    """The documents as one column; nothing but None is a missing one."""
    if isinstance(X, (str, bytes)):
        raise DataError("one document is not a list of documents: pass [document]")
    column = X if type(X).__module__.startswith("pyarrow") else _listed(X)
    if not isinstance(column, list):
        column = sound(column, COLUMN)
    return Frame({COLUMN: column}, len(column), 0)


def _listed(X: Any) -> Any:
    if hasattr(X, "to_arrow"):
        return X.to_arrow()
    values: list[Any] = X if type(X) is list else X.tolist() if hasattr(X, "tolist") else list(X)
    if not set(map(type, values)) <= {str}:
        for i, value in enumerate(values):
            if not isinstance(value, str) and not is_missing(value):
                raise DataError(
                    f"document {i} is {type(value).__name__}, not text: TextNaiveBayes takes strings", value=value
                )
    return values
