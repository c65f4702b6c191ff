"""Bayesian learning by counting: a model is what it has counted; everything else is read off."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

# Where each public name lives. Nothing is imported before it is asked for: `import likely` costs a few milliseconds.
_HOMES = {
    "learn": "learn",
    "load": "model",
    "Model": "model",
    "Ledger": "ledger",
    "inspect": "learn",
    "evaluate": "evaluate",
    "Evaluation": "evaluate",
    "cluster": "clustering",
    "sequences": "sequences",
    "curve": "curve",
    "LearningCurve": "curve",
    "compare": "compare",
    "compare_rivals": "compare",
    "Comparison": "comparison",
    "importance": "importance",
    "estimate": "estimate",
    "Hypotheses": "bayes",
    "Posterior": "bayes",
    "bayes_rule": "bayes",
    "total_probability": "bayes",
    "independent": "bayes",
    "Categorical": "families",
    "Binned": "families",
    "Bernoulli": "families",
    "Binomial": "families",
    "Multinomial": "families",
    "Poisson": "families",
    "Gaussian": "families",
    "Joint": "families",
    "Text": "families",
    "Pseudocount": "prior",
    "MEstimate": "prior",
    "Dirichlet": "prior",
    "NormalInverseGamma": "prior",
    "Spread": "prior",
    "Schema": "schema",
    "Column": "schema",
    "Tally": "tally",
    "NaiveBayes": "estimators",
    "TextNaiveBayes": "text_estimator",
    "Mixture": "mixture",
    "HiddenMarkov": "markov",
    "errors": "errors",
}

__all__ = ["__version__", *_HOMES]


class _Package(ModuleType):
    """The package. A room called like a verb (`likely.learn`) must not push the verb aside when it is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _HOMES and name != "errors"):
            super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"likely has no {name!r}")
    home = importlib.import_module(f"likely.{_HOMES[name]}")
    value = home if name == "errors" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


sys.modules[__name__].__class__ = _Package
