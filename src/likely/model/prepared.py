"""A model prepared for single rows: predicts one dict in microseconds, and learns one dict at a time."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import labels_array, softmax
from likely.engines.row_scorer import UnusualCellError
from likely.errors import DataError, UsageError
from likely.schema import is_missing

if TYPE_CHECKING:
    from likely.model.model import Model

Array = NDArray[np.float64]
Row = Mapping[str, Any]
GROWTH = 0.05  # share of new rows after which the parameters are derived again


class Predictor:
    """A model prepared for single rows, made by `Model.prepare`. It follows the protocol of river's classifiers.

    Predictions equal those of `Model.posterior`. Rows that are learned are counted in groups: between two derivations of the
    parameters, predictions are those of the rows counted so far (see `refresh_every`). `model` is always the model of all
    rows.

    Parameters
    ----------
    model : Model
        The model.
    refresh_every : int or None, default=None
        Number of learned rows after which the parameters are derived again; None: 5 % of the rows counted so far, and at
        least one. With 1, every prediction is that of all rows learned before it.
    """

    _supervised = True  # river asks this of every estimator
    _multiclass = True

    def __init__(self, model: Model, refresh_every: int | None = None) -> None:
        if refresh_every is not None and refresh_every < 1:
            raise UsageError(f"refresh_every={refresh_every!r} is not a number of rows: pass 1 or more")
        self.refresh_every = refresh_every
        self._lock = threading.Lock()
        self._pending: list[dict[str, Any]] = []
        self._adopt(model)
        _register_in_river()

    def _adopt(self, model: Model) -> None:
        self._names: list[Any] = labels_array(model.classes).tolist()
        self._rows = model.row_scorer
        self._model = model
        rows = self.refresh_every or max(1, int(GROWTH * model.tally.rows))
        self._room = rows

    @property
    def model(self) -> Model:
        """The model of all rows, also of those learned since the last derivation of the parameters."""
        self.refresh()
        return self._model

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in their own type, sorted."""
        return self._model.classes

    def log_joint_one(self, x: Row) -> Array:
        """Joint log score of one row and every class.

        Parameters
        ----------
        x : dict
            Column → value; an absent column is a missing cell.
        """
        if self._rows is not None:
            try:
                return self._rows.log_joint(x)
            except UnusualCellError:
                pass
        joint: Array = self._model.posterior([x]).log_joint[0]
        return joint

    def probabilities_one(self, x: Row) -> Array:
        """Probability of every class for one row, in the order of `classes`.

        Parameters
        ----------
        x : dict
            Column → value; an absent column is a missing cell.
        """
        return self.decide_one(x)[1]

    def decide_one(self, x: Row) -> tuple[int, Array]:
        """Place of the most probable class of one row, and the probability of every class.

        Parameters
        ----------
        x : dict
            Column → value; an absent column is a missing cell.
        """
        joint = self.log_joint_one(x)
        best = int(joint.argmax())
        peak = joint[best]
        if not math.isfinite(peak):  # impossible in every class: the prior decides
            log_prior = self._model.scorer.log_prior
            shares = softmax(joint[None], log_prior).reshape(-1)
            return (int(log_prior.argmax()) if np.isneginf(peak) else best), shares
        shares = np.exp(joint - peak)
        shares /= np.add.reduce(shares)
        return best, shares

    def predict_proba_one(self, x: Row) -> dict[Any, float]:
        """Probability of each class for one row.

        Parameters
        ----------
        x : dict
            Column → value; an absent column is a missing cell.

        Returns
        -------
        dict
            Class → probability.
        """
        return dict(zip(self._names, self.probabilities_one(x).tolist(), strict=True))

    def predict_one(self, x: Row) -> Any:
        """The most probable label of one row; the first of equals.

        Parameters
        ----------
        x : dict
            Column → value; an absent column is a missing cell.
        """
        joint = self.log_joint_one(x)
        best = int(joint.argmax())
        return self._names[best if math.isfinite(joint[best]) else self.decide_one(x)[0]]

    def learn_one(self, x: Row, y: Any) -> None:
        """Learn one row; new values and new classes are welcome.

        Parameters
        ----------
        x : dict
            Column → value.
        y : label
            Its class.
        """
        if is_missing(y):
            name = self._model.schema.target.name
            raise DataError("a row without a label cannot be learned", column=name, value=y, remedy="pass its label")
        row = {**x, self._model.schema.target.name: y}
        try:
            if self._rows is None or not isinstance(y, str | int) or self._model.weights is not None:
                raise UnusualCellError
            self._rows.log_joint(x)
        except UnusualCellError:
            self._model.count([row])  # refused here, with its reason, and not when the parameters are derived
        with self._lock:
            self._pending.append(row)
            full = len(self._pending) >= self._room
        if full:
            self.refresh()

    def refresh(self) -> None:
        """Count the rows learned since the last derivation of the parameters, and derive these again."""
        with self._lock:
            if self._pending:
                self._adopt(self._model.update(self._pending))
                self._pending = []

    def clone(self, new_params: Mapping[str, Any] | None = None, include_attributes: bool = False) -> Predictor:  # noqa: ARG002
        """A predictor of the same model, as river's model selection asks for.

        Parameters
        ----------
        new_params : dict or None, default=None
            `refresh_every`, to change it.
        include_attributes : bool, default=False
            Ignored: what was learned is always part of the model.

        Returns
        -------
        Predictor
            The copy; learning with one does not change the other.
        """
        return Predictor(self.model, (new_params or {}).get("refresh_every", self.refresh_every))

    def __repr__(self) -> str:
        return f"<Predictor of {self._model!r}>"


def _register_in_river() -> None:
    """Register the class as a river classifier, if river is imported: its evaluation asks for an instance of its class."""
    river = sys.modules.get("river.base")
    if river is not None:
        river.Classifier.register(Predictor)
