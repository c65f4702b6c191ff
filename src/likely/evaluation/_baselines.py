"""Baselines: scikit-learn's classifiers, each with the usual preprocessing of a mixed table with missing cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

Array = NDArray[np.float64]
BINS = 10
MOST_NATIVE_VALUES = 255  # of a category, for gradient boosting; columns with more are taken as numbers
FEWEST_TO_STOP_EARLY = 6  # rows of the rarest class: with fewer, the validation part may have none
TOPICS = 50  # components of a text for classifiers that need few dense columns


@dataclass(frozen=True)
class FeatureTable:
    """Rows as a matrix: numbers, categories as codes below `sizes`, texts as indexes into `documents`.

    NaN is a missing cell; a missing text is the empty one.
    """

    X: Array
    numbers: tuple[int, ...] = ()
    categories: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()  # how many values each category has
    texts: tuple[int, ...] = ()
    documents: tuple[NDArray[Any], ...] = ()


Make = Callable[[FeatureTable, NDArray[np.int64]], Any]


@dataclass(frozen=True)
class Baseline:
    """A baseline: name, title, factory for a table and labels, and the most rows it is fitted on."""

    name: str
    title: str
    make: Make
    most_rows: int | None = None
    quick: bool = False


class Bins(TransformerMixin, BaseEstimator):
    """Every column as integer codes: 0 where missing, numbers in ten quantile bins, categories by their code."""

    def __init__(self, numbers: Any = (), categories: Any = (), sizes: Any = ()) -> None:
        self.numbers = numbers
        self.categories = categories
        self.sizes = sizes

    def fit(self, X: Array, _y: Any = None) -> Self:
        """Compute the bin edges from the training rows."""
        cuts = np.linspace(0, 1, BINS + 1)[1:-1]
        seen = [X[~np.isnan(X[:, j]), j] for j in self.numbers]
        self.edges_ = [np.unique(np.quantile(x, cuts)) if len(x) else np.zeros(0) for x in seen]
        self.sizes_ = np.array([*(len(edges) + 2 for edges in self.edges_), *(size + 1 for size in self.sizes)], int)
        return self

    def transform(self, X: Array) -> NDArray[np.int64]:
        """The bins and values, numbers first."""
        binned = [
            np.where(np.isnan(X[:, j]), 0, 1 + np.searchsorted(edges, np.nan_to_num(X[:, j])))
            for j, edges in zip(self.numbers, self.edges_, strict=True)
        ]
        coded = [np.where(np.isnan(X[:, j]), 0, 1 + np.nan_to_num(X[:, j])) for j in self.categories]
        return np.column_stack([*binned, *coded]).astype(np.int64)


class Topics(TransformerMixin, BaseEstimator):
    """Truncated SVD of many sparse columns; few columns are passed through."""

    def fit(self, X: Any, _y: Any = None) -> Self:
        """Fit the SVD."""
        self.topics_ = TruncatedSVD(TOPICS, random_state=0).fit(X) if X.shape[1] > TOPICS else None
        return self

    def transform(self, X: Any) -> Array:
        """The rows in the reduced space."""
        return np.asarray(X.toarray() if self.topics_ is None else self.topics_.transform(X))


class BinnedNB(ClassifierMixin, BaseEstimator):
    """CategoricalNB over bins and codes, with categories that do not occur in the training rows."""

    def __init__(self, bins: Any = None) -> None:
        self.bins = bins

    def fit(self, X: Array, y: Any) -> Self:
        """Fit the bins, then CategoricalNB."""
        codes = self.bins.fit(X).transform(X)
        self.counts_ = CategoricalNB(min_categories=self.bins.sizes_).fit(codes, y)
        self.classes_ = self.counts_.classes_
        return self

    def predict_proba(self, X: Array) -> Array:
        """The probability of each class."""
        return np.asarray(self.counts_.predict_proba(self.bins.transform(X)))


class Softmax(ClassifierMixin, BaseEstimator):
    """Softmax of the margins, where a class has too few rows for calibration by cross-validation."""

    def __init__(self, machine: Any = None) -> None:
        self.machine = machine

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the support vector machine."""
        self.machine.fit(X, y)
        self.classes_ = self.machine.classes_
        return self

    def predict_proba(self, X: Any) -> Array:
        """The softmax of the margins; of two classes, the logistic function."""
        margin = np.asarray(self.machine.decision_function(X))
        if margin.ndim == 1:
            margin = np.column_stack([np.zeros_like(margin), margin])
        scaled = np.exp(margin - margin.max(1, keepdims=True))
        return np.asarray(scaled / scaled.sum(1, keepdims=True))


def _texts(table: FeatureTable, vectors: Callable[[], Any], dense: bool) -> list[tuple[str, Any, list[int]]]:
    """A step for each column of text: look up its documents, vectorise them, reduce them if `dense`."""
    steps = []
    for number, (column, documents) in enumerate(zip(table.texts, table.documents, strict=True)):
        look_up = FunctionTransformer(lambda places, known=documents: known[places[:, 0].astype(int)])
        reduce = [Topics()] if dense else []
        steps.append((f"text{number}", make_pipeline(look_up, vectors(), *reduce), [column]))
    return steps


def one_hot(table: FeatureTable, scale: bool = True) -> Any:
    """Mean-imputed numbers with missing indicators, scaled with `scale`; one-hot categories; texts as tf-idf."""
    filled = [SimpleImputer(add_indicator=True, keep_empty_features=True)]
    steps: list[Any] = _texts(table, lambda: TfidfVectorizer(sublinear_tf=True), dense=False)
    if table.numbers:
        steps.append(("numbers", make_pipeline(*filled, *([StandardScaler()] if scale else [])), list(table.numbers)))
    if table.categories:
        gaps = SimpleImputer(strategy="constant", fill_value=-1, keep_empty_features=True)
        steps.append(
            ("categories", make_pipeline(gaps, OneHotEncoder(handle_unknown="ignore")), list(table.categories))
        )
    return ColumnTransformer(steps)


def dense(table: FeatureTable, fill: bool) -> Any:
    """Numbers, categories as codes and texts reduced by SVD; missing cells imputed with `fill`."""
    steps: list[Any] = []
    if table.numbers:
        how: Any = SimpleImputer(keep_empty_features=True) if fill else "passthrough"
        steps.append(("numbers", how, list(table.numbers)))
    if table.categories:
        gaps = SimpleImputer(strategy="constant", fill_value=-1, keep_empty_features=True)
        steps.append(("categories", gaps if fill else "passthrough", list(table.categories)))
    steps += _texts(table, lambda: TfidfVectorizer(sublinear_tf=True), dense=True)
    return ColumnTransformer(steps, sparse_threshold=0.0)


def binned_one_hot(table: FeatureTable) -> Any:
    """One-hot bins of numbers, one-hot categories and word counts."""
    steps: list[Any] = _texts(table, CountVectorizer, dense=False)
    if table.numbers or table.categories:
        columns = [*table.numbers, *table.categories]
        bins = Bins(range(len(table.numbers)), range(len(table.numbers), len(columns)), table.sizes)
        steps.append(("bins", make_pipeline(bins, OneHotEncoder(handle_unknown="ignore")), columns))
    return ColumnTransformer(steps)


def _boosting(table: FeatureTable, y: NDArray[np.int64]) -> Any:
    first = len(table.numbers)
    native = [first + i for i, size in enumerate(table.sizes) if size < MOST_NATIVE_VALUES]
    stop = "auto" if np.bincount(y)[np.unique(y)].min() >= FEWEST_TO_STOP_EARLY else False
    trees = HistGradientBoostingClassifier(categorical_features=native or None, early_stopping=stop, random_state=0)
    return make_pipeline(dense(table, fill=False), trees)


def _calibrated(machine: Any, table: FeatureTable, y: NDArray[np.int64]) -> Any:
    """A support vector machine with Platt's probabilities, over three folds of the training rows."""
    rarest = int(np.bincount(y)[np.unique(y)].min())
    if rarest < 2:
        return make_pipeline(one_hot(table), Softmax(machine))
    return make_pipeline(one_hot(table), CalibratedClassifierCV(machine, cv=min(3, rarest), ensemble=False))


def _counted(table: FeatureTable, _y: NDArray[np.int64]) -> Any:
    if table.texts:
        raise ValueError("it takes no text: exclude such columns with ignore")
    return BinnedNB(Bins(table.numbers, table.categories, table.sizes))


def _wide(make: Callable[[], Any], scale: bool = True) -> Make:
    return lambda table, _y: make_pipeline(one_hot(table, scale), make())


def _on(prepare: Callable[[FeatureTable], Any], make: Callable[[], Any]) -> Make:
    return lambda table, _y: make_pipeline(prepare(table), make())


BASELINES = {
    baseline.name: baseline
    for baseline in (
        Baseline("logistic-regression", "logistic regression", _wide(lambda: LogisticRegression(max_iter=1000)), quick=True),
        Baseline("decision-tree", "decision tree", _wide(lambda: DecisionTreeClassifier(random_state=0), False), quick=True),
        Baseline("knn", "5 nearest neighbours", _wide(lambda: KNeighborsClassifier(5)), 20_000),
        Baseline("linear-svm", "linear SVM", lambda t, y: _calibrated(LinearSVC(random_state=0), t, y)),
        Baseline("rbf-svm", "RBF SVM", lambda t, y: _calibrated(SVC(random_state=0), t, y), 5_000),
        Baseline("neural-net", "neural net (50 hidden)",
              _wide(lambda: MLPClassifier((50,), max_iter=300, random_state=0)), 50_000),
        Baseline("random-forest", "random forest (300)",
              _wide(lambda: RandomForestClassifier(300, random_state=0), False)),
        Baseline("gradient-boosting", "gradient boosting (histogram)", _boosting),
        Baseline("gaussian-nb", "GaussianNB", _on(lambda t: dense(t, True), GaussianNB), quick=True),
        Baseline("categorical-nb", "CategoricalNB (10 bins)", _counted, quick=True),
        Baseline("bernoulli-nb", "BernoulliNB (10 bins)", _on(binned_one_hot, BernoulliNB), quick=True),
        Baseline("multinomial-nb", "MultinomialNB (10 bins)", _on(binned_one_hot, MultinomialNB), quick=True),
    )
}  # fmt: skip
