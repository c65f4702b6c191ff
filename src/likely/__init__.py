"""Bayesian learning by counting: a model is what it has counted; everything else is derived from that."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors see; at run time the same names are imported when first used
    import likely.export  # noqa: F401 - documented as `likely.export`
    from likely import brain as brain
    from likely import distributions as distributions
    from likely import errors as errors
    from likely.bayes import (
        GridHypotheses as GridHypotheses,
    )
    from likely.bayes import (
        Hypotheses as Hypotheses,
    )
    from likely.bayes import (
        Posterior as Posterior,
    )
    from likely.bayes import (
        SupervisedHypotheses as SupervisedHypotheses,
    )
    from likely.bayes import (
        bayes_rule as bayes_rule,
    )
    from likely.bayes import (
        conditional as conditional,
    )
    from likely.bayes import (
        independent as independent,
    )
    from likely.bayes import (
        odds as odds,
    )
    from likely.bayes import (
        odds_ratio as odds_ratio,
    )
    from likely.bayes import (
        product_rule as product_rule,
    )
    from likely.bayes import (
        sum_rule as sum_rule,
    )
    from likely.bayes import (
        total_probability as total_probability,
    )
    from likely.bayes.parameter_posterior import ParameterPosterior as ParameterPosterior
    from likely.calibration import Calibration as Calibration
    from likely.engines.inspection import inspect as inspect
    from likely.estimators.hidden_markov_estimator import HiddenMarkov as HiddenMarkov
    from likely.estimators.mixture import Mixture as Mixture
    from likely.estimators.naive_bayes import NaiveBayes as NaiveBayes
    from likely.estimators.network_classifier import NetworkClassifier as NetworkClassifier
    from likely.estimators.text_naive_bayes import TextNaiveBayes as TextNaiveBayes
    from likely.evaluation.comparison import compare as compare
    from likely.evaluation.comparison import compare_baselines as compare_baselines
    from likely.evaluation.comparison_table import Comparison as Comparison
    from likely.evaluation.comparison_table import Difference as Difference
    from likely.evaluation.cross_validation import evaluate as evaluate
    from likely.evaluation.decision_figures import Curves as Curves
    from likely.evaluation.decision_figures import DecisionFigures as DecisionFigures
    from likely.evaluation.evaluation import Evaluation as Evaluation
    from likely.evaluation.feature_importance import Importance as Importance
    from likely.evaluation.feature_importance import importance as importance
    from likely.evaluation.independence import IndependenceTest as IndependenceTest
    from likely.evaluation.independence import Simpson as Simpson
    from likely.evaluation.independence import independence_test as independence_test
    from likely.evaluation.independence import simpson as simpson
    from likely.evaluation.learning_curve import LearningCurve as LearningCurve
    from likely.evaluation.learning_curve import curve as curve
    from likely.evaluation.predictive_check import CheckedStatistic as CheckedStatistic
    from likely.evaluation.predictive_check import PredictiveCheck as PredictiveCheck
    from likely.evaluation.predictive_check import predictive_check as predictive_check
    from likely.families import (
        Bernoulli as Bernoulli,
    )
    from likely.families import (
        Binned as Binned,
    )
    from likely.families import (
        Binomial as Binomial,
    )
    from likely.families import (
        Categorical as Categorical,
    )
    from likely.families import (
        Gaussian as Gaussian,
    )
    from likely.families import (
        Joint as Joint,
    )
    from likely.families import (
        Multinomial as Multinomial,
    )
    from likely.families import (
        Poisson as Poisson,
    )
    from likely.families import (
        Text as Text,
    )
    from likely.latent.clusters import Clusters as Clusters
    from likely.latent.hidden_markov import sequences as sequences
    from likely.latent.hidden_markov_model import HiddenMarkovModel as HiddenMarkovModel
    from likely.latent.mixtures import cluster as cluster
    from likely.learning.distributed import CountingPlan as CountingPlan
    from likely.learning.distributed import plan as plan
    from likely.learning.learn import learn as learn
    from likely.learning.load import load as load
    from likely.model.estimate import Estimate as Estimate
    from likely.model.estimate import estimate as estimate
    from likely.model.evidence import ModelComparison as ModelComparison
    from likely.model.evidence import compare_models as compare_models
    from likely.model.ledger import Ledger as Ledger
    from likely.model.model import Model as Model
    from likely.model.parameter_tables import ParameterTable as ParameterTable
    from likely.model.parameters import ParameterCount as ParameterCount
    from likely.model.prepared import Predictor as Predictor
    from likely.networks.network import Network as Network
    from likely.plots.svg import Svg as Svg
    from likely.priors import (
        ByClass as ByClass,
    )
    from likely.priors import (
        Dirichlet as Dirichlet,
    )
    from likely.priors import (
        GammaPrior as GammaPrior,
    )
    from likely.priors import (
        MEstimate as MEstimate,
    )
    from likely.priors import (
        NormalInverseGamma as NormalInverseGamma,
    )
    from likely.priors import (
        Priors as Priors,
    )
    from likely.priors import (
        Pseudocount as Pseudocount,
    )
    from likely.priors import (
        Spread as Spread,
    )
    from likely.report import pictures as pictures
    from likely.report.displays import EffectDisplay as EffectDisplay
    from likely.report.displays import ExplanationDisplay as ExplanationDisplay
    from likely.report.displays import ImportanceDisplay as ImportanceDisplay
    from likely.report.displays import NomogramDisplay as NomogramDisplay
    from likely.report.document import Report as Report
    from likely.report.document import report as report
    from likely.schema import Column as Column
    from likely.schema import Schema as Schema
    from likely.tally import Tally as Tally
    from likely.teaching import lesson as lesson

__version__ = "0.1.0"

# The module of each public name. Nothing is imported before it is used: `import likely` costs a few milliseconds.
_HOMES = {
    "learn": "learning.learn",
    "load": "learning.load",
    "plan": "learning.distributed",
    "CountingPlan": "learning.distributed",
    "Model": "model.model",
    "Ledger": "model.ledger",
    "Predictor": "model.prepared",
    "ParameterCount": "model.parameters",
    "ParameterPosterior": "bayes.parameter_posterior",
    "ParameterTable": "model.parameter_tables",
    "Calibration": "calibration",
    "inspect": "engines.inspection",
    "evaluate": "evaluation.cross_validation",
    "Evaluation": "evaluation.evaluation",
    "cluster": "latent.mixtures",
    "Clusters": "latent.clusters",
    "sequences": "latent.hidden_markov",
    "HiddenMarkovModel": "latent.hidden_markov_model",
    "curve": "evaluation.learning_curve",
    "LearningCurve": "evaluation.learning_curve",
    "compare": "evaluation.comparison",
    "compare_baselines": "evaluation.comparison",
    "compare_models": "model.evidence",
    "ModelComparison": "model.evidence",
    "Comparison": "evaluation.comparison_table",
    "Curves": "evaluation.decision_figures",
    "DecisionFigures": "evaluation.decision_figures",
    "predictive_check": "evaluation.predictive_check",
    "PredictiveCheck": "evaluation.predictive_check",
    "CheckedStatistic": "evaluation.predictive_check",
    "Difference": "evaluation.comparison_table",
    "importance": "evaluation.feature_importance",
    "Importance": "evaluation.feature_importance",
    "report": "report.document",
    "Report": "report.document",
    "EffectDisplay": "report.displays",
    "ExplanationDisplay": "report.displays",
    "ImportanceDisplay": "report.displays",
    "NomogramDisplay": "report.displays",
    "Svg": "plots.svg",
    "estimate": "model.estimate",
    "Estimate": "model.estimate",
    "Hypotheses": "bayes",
    "Posterior": "bayes",
    "bayes_rule": "bayes",
    "total_probability": "bayes",
    "independent": "bayes",
    "SupervisedHypotheses": "bayes",
    "GridHypotheses": "bayes",
    "sum_rule": "bayes",
    "product_rule": "bayes",
    "conditional": "bayes",
    "odds": "bayes",
    "odds_ratio": "bayes",
    "independence_test": "evaluation.independence",
    "IndependenceTest": "evaluation.independence",
    "simpson": "evaluation.independence",
    "Simpson": "evaluation.independence",
    "Categorical": "families",
    "Binned": "families",
    "Bernoulli": "families",
    "Binomial": "families",
    "Multinomial": "families",
    "Poisson": "families",
    "Gaussian": "families",
    "Joint": "families",
    "Text": "families",
    "Pseudocount": "priors",
    "MEstimate": "priors",
    "Dirichlet": "priors",
    "GammaPrior": "priors",
    "NormalInverseGamma": "priors",
    "Spread": "priors",
    "ByClass": "priors",
    "Priors": "priors",
    "Schema": "schema",
    "Column": "schema",
    "Tally": "tally",
    "NaiveBayes": "estimators.naive_bayes",
    "TextNaiveBayes": "estimators.text_naive_bayes",
    "Mixture": "estimators.mixture",
    "HiddenMarkov": "estimators.hidden_markov_estimator",
    "Network": "networks.network",
    "NetworkClassifier": "estimators.network_classifier",
}
_MODULES = {
    "brain": "brain",
    "distributions": "distributions",
    "errors": "errors",
    "lesson": "teaching.lesson",
    "pictures": "report.pictures",
}
_ROOMS = ("export",)  # documented by their own functions, not as public names

__all__ = ["__version__", *_HOMES, *_MODULES]


class _Package(ModuleType):
    """The package itself: importing a folder named like a public function (`likely.report`) must not replace the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _HOMES):
            super().__setattr__(name, value)


def _module(path: str, name: str) -> ModuleType:
    if not path.startswith("estimators"):
        return importlib.import_module(f"likely.{path}")
    from likely.errors import import_optional

    found: ModuleType = import_optional(f"likely.{path}", f"likely.{name}", library="sklearn")
    return found


def _lookup(name: str) -> Any:
    if name in _MODULES or name in _ROOMS:
        value: Any = importlib.import_module(f"likely.{_MODULES.get(name, name)}")
    elif name in _HOMES:
        value = getattr(_module(_HOMES[name], name), name)
    else:
        raise AttributeError(f"likely has no {name!r}")
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # a misspelt name must fail in a type checker
    __getattr__ = _lookup


def __dir__() -> list[str]:
    return sorted(__all__)


sys.modules[__name__].__class__ = _Package
