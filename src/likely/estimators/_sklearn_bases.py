"""Base classes of the estimators: scikit-learn's own, and to a type checker what of them users call.

scikit-learn is not typed: a class that inherits from its classes would have every attribute, misspelt ones too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    class BaseEstimator:
        """Parameters and metadata routing."""

        set_fit_request: Callable[..., Self]

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set parameters, those of nested estimators as name__parameter."""

        def get_metadata_routing(self) -> Any:
            """What is requested of metadata routing."""

        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """Accuracy of a classifier."""

        set_score_request: Callable[..., Self]

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Accuracy of the predictions."""

    class ClusterMixin:
        """Mark of a clusterer."""

    class DensityMixin:
        """Mark of a density estimator."""
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, DensityMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "ClusterMixin", "DensityMixin"]
