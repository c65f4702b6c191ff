"""Weights and intercept of naive Bayes where it is a linear classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.estimators._base import column_names

Array = NDArray[np.float64]
WHY = (
    'all columns must be Gaussian with a variance or covariance that the classes share (families="gaussian:class" or '
    '"joint:class"), yes/no, or counts, without a probability of zero and without calibration'
)


def linear_form(estimator: Any) -> tuple[Array, Array]:
    """Weights and intercept of a fitted estimator; AttributeError where its log-odds are not linear in the columns."""
    model = getattr(estimator, "model_", None)
    if model is None:
        raise AttributeError("coef_ and intercept_ need a fitted estimator: call fit first")
    scorer, names = model.scorer, list(column_names(estimator))
    coef = np.zeros((len(scorer.log_prior), len(names)))
    intercept = scorer.log_prior + (0.0 if scorer.bias is None else scorer.bias)
    for parameters in scorer.parameters:
        linear = parameters.likelihood.linear()
        if linear is None:
            raise AttributeError(f"this model has no coef_ and intercept_: {WHY}")
        slope, level = linear
        coef[:, [names.index(name) for name in parameters.columns]] = slope.T
        intercept = intercept + level
    if len(intercept) == 2:
        return coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    return coef, intercept
