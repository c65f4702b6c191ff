"""Naive Bayes for text as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from likely.bayes import Posterior
from likely.bayes.rule import labels_array
from likely.engines import Plan
from likely.engines.memory import tally_batch
from likely.errors import DataError, UsageError
from likely.estimators._base import (
    in_turn,
    labelled,
    refuse_hidden,
    refuse_without_rows,
    semi_supervised_fit,
    with_threads,
)
from likely.estimators._sklearn_bases import BaseEstimator, ClassifierMixin
from likely.families import Block, Text
from likely.latent.em import MAX_ITER
from likely.latent.semi_supervised import TOL
from likely.model.ledger import Ledger
from likely.model.model import Model
from likely.priors import priors
from likely.schema import TEXT, Column, is_missing
from likely.sources import Coded, Frame, InMemory
from likely.sources.arrow_arrays import validated

Array = NDArray[np.float64]
COLUMN, TARGET = "text", "label"
AUTO = "auto"


class TextNaiveBayes(ClassifierMixin, BaseEstimator):
    r"""Naive Bayes classifier for text.

    Parameters
    ----------
    kind : "auto", "multinomial", "bernoulli" or "complement", default="auto"
        The textbook's models by name. "auto" takes the logarithm of word counts, and fits the weights of words by
        leave-one-out; its probabilities are calibrated.
    smoothing : float or prior, default=1.0
        Pseudocount for each word. `MEstimate(m, "background")` spreads m pseudocounts in proportion to how often each word
        occurs overall.
    ngrams : tuple (shortest, longest) or "auto", default="auto"
        Lengths of the word n-grams that are counted. "auto" counts words; with two classes and `kind="auto"`, pairs of
        neighbouring words are added if that lowers the leave-one-out log loss by more than its standard error, and `ngrams_`
        is (1, 2) then.
    token_pattern : str or None, default=None
        Regular expression of a word. None is `(?u)\b\w\w+\b`, compiled.
    lowercase : bool, default=True
        Whether case is ignored.
    keep_rows : bool, default=True
        Whether `model_` keeps a sample of the documents, to be calibrated again after `partial_fit`.
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
    n_iter_ : int
        Number of EM iterations; 1 where all documents have a label.
    ngrams_ : tuple
        Lengths of the n-grams that documents are scored by.
    unlabelled_ : float
        Weight of a document without a label, chosen on held-out labels; there where some labels were missing.

    """

    model_: Model
    classes_: NDArray[Any]
    set_partial_fit_request: Callable[..., Self]  # scikit-learn makes it
    ngrams_: tuple[int, int]

    def __init__(
        self,
        kind: str = "auto",
        smoothing: Any = 1.0,
        ngrams: tuple[int, int] | str = AUTO,
        token_pattern: str | None = None,
        lowercase: bool = True,
        *,
        keep_rows: bool = True,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        n_jobs: int | None = None,
        costs: Any = None,
    ) -> None:
        self.kind = kind
        self.smoothing = smoothing
        self.ngrams = ngrams
        self.token_pattern = token_pattern
        self.lowercase = lowercase
        self.keep_rows = keep_rows
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.costs = costs

    @with_threads
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from these documents alone.

        Documents without a label are counted by their responsibilities (EM), with a weight chosen on held-out labels, which
        is 0 where they do not help: `unlabelled_`.

        Parameters
        ----------
        X : sequence of str
            Documents: a list, array or column of a data frame; None is a missing one.
        y : array
            Label of each document; None where it is unknown.
        sample_weight : array or None, default=None
            Weight of each document.

        Returns
        -------
        self
            The fitted estimator.
        """
        with in_turn(self):
            tally, labels = self._count(X, y, sample_weight)
            if len(tally.schema.classes) < 2:
                raise DataError(f"y has only one class, {tally.schema.classes[0]!r}: a classifier needs two classes")
            if (labels.codes < labels.low).any():
                batch, prior = _batch(X), self._model(tally).prior
                found = semi_supervised_fit(
                    batch, labels, sample_weight, self._plan(), prior, max_iter=self.max_iter, tol=self.tol
                )
                self.unlabelled_, self.n_iter_ = found.unlabelled, max(found.rounds, 1)
                self._set_model(replace(found.model, missing=()))
            else:
                self.n_iter_ = 1  # all documents have a label: no EM
                self._set_model(self._model(tally).recalibrate())
            return self

    @with_threads
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Learn from these documents as well. Several threads may call this at a time: every document is counted once.

        Parameters
        ----------
        X : sequence of str
            Documents: a list, array or column of a data frame; None is a missing one.
        y : array
            Label of each document; new labels and new words are welcome at any call.
        classes : ignored
            There for scikit-learn's interface.
        sample_weight : array or None, default=None
            Weight of each document.

        Returns
        -------
        self
            The fitted estimator.
        """
        tally, labels = self._count(X, y, sample_weight)
        refuse_hidden(labels)
        with in_turn(self):
            before: Model | None = getattr(self, "model_", None)
            if before is None:
                refuse_without_rows(self)
                self._set_model(self._model(tally).recalibrate())
            else:
                self._set_model(before.with_tally(before.tally + tally))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of every document; with `costs`, the decision of lowest expected cost.

        Parameters
        ----------
        X : sequence of str
            Documents: a list, array or column of a data frame; None is a missing one.

        Returns
        -------
        array
            Label (or decision) of every document.
        """
        return self._posterior(X).decide(costs=self.costs)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class for every document.

        Parameters
        ----------
        X : sequence of str
            Documents: a list, array or column of a data frame; None is a missing one.

        Returns
        -------
        array
            Probabilities, documents × classes, in the order of `classes_`.
        """
        return self._posterior(X).probabilities

    def predict_log_proba(self, X: Any) -> Array:
        """Log probability of each class for every document.

        Parameters
        ----------
        X : sequence of str
            Documents: a list, array or column of a data frame; None is a missing one.

        Returns
        -------
        array
            Log probabilities, documents × classes, in the order of `classes_`.
        """
        return self._posterior(X).log_probabilities

    def explain(self, document: str) -> Ledger:
        """Weights of evidence of one document: prior, the contribution of each word to each class, and their sum.

        Parameters
        ----------
        document : str
            The text.

        Returns
        -------
        likely.Ledger
            The explanation; it prints as a table.
        """
        check_is_fitted(self)
        return self.model_.explain(InMemory(_batch([document]), "the document"))

    def top_words(self, most: int = 10) -> dict[Any, list[tuple[str, float]]]:
        """For every class, the words with the highest weights of evidence, as `Model.top_words` returns them.

        Parameters
        ----------
        most : int, default=10
            Number of words a class.

        Returns
        -------
        dict
            Class → list of (word, weight); the weight is in nats, against the average of the classes.
        """
        check_is_fitted(self)
        return self.model_.top_words(most)

    def _count(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Coded]:
        batch = _batch(X)
        labels, _, weights = labelled(y, sample_weight, batch.rows)
        return tally_batch(batch, self._plan(), labels, weights), labels

    def _plan(self) -> Plan:
        if isinstance(self.ngrams, str) and self.ngrams != AUTO:
            raise UsageError(f"ngrams={self.ngrams!r} is not known: pass (shortest, longest), or 'auto'")
        chosen = isinstance(self.ngrams, str)
        lengths = (1, 1) if isinstance(self.ngrams, str) else (self.ngrams[0], self.ngrams[1])
        family = Text(self.kind, lengths, self.lowercase, pattern=self.token_pattern, pairs=chosen)
        return Plan(TARGET, (Block(family, (COLUMN,)),), (Column(COLUMN, TEXT, reason="the documents"),))

    def _model(self, tally: Any) -> Model:
        return Model(tally, priors(self.smoothing, None, tally.schema.classes), missing=())

    def _set_model(self, model: Model) -> None:
        model = model if self.keep_rows else model.without_rows()
        stage = model.stages.get(COLUMN)
        counted = model.blocks[0].family.settings().get("ngrams", (1, 1))
        lengths = tuple(counted if stage is None or stage.pairs is None else (1, 2))
        # In one step: threads may be predicting.
        self.__dict__.update(model_=model, classes_=labels_array(model.classes), ngrams_=lengths)

    @with_threads
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
    """The documents as one column; only None is missing."""
    if isinstance(X, (str, bytes)):
        raise DataError("one document is not a list of documents: pass [document]")
    column = X if type(X).__module__.startswith("pyarrow") else _listed(X)
    if not isinstance(column, list):
        column = validated(column, COLUMN)
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
