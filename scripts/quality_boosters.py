"""Boosting libraries at their default settings, for docs/quality.md: `pip install 'likely[quality]'` brings them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from likely.evaluation._baselines import FeatureTable

MODULES = {"lightgbm": "lightgbm", "xgboost": "xgboost", "catboost": "catboost", "ebm": "interpret"}
TITLES = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost", "ebm": "EBM"}


def installed() -> dict[str, str]:
    """The titles of those that are installed, by name."""
    return {name: TITLES[name] for name, module in MODULES.items() if importlib.util.find_spec(module)}


class Boosted:
    """A booster behind one interface: categories are named to it, labels are numbers without gaps."""

    def __init__(self, name: str, table: FeatureTable) -> None:
        self._name, self._categories = name, list(table.categories)

    def fit(self, X: Any, y: Any) -> Boosted:
        """Learn; a class that no row has is left out."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        self._model = MAKE[self._name](self._categories)
        self._model.fit(self._frame(X), labels)
        return self

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class."""
        return self._model.predict_proba(self._frame(X))

    def _frame(self, X: Any) -> Any:
        import pandas as pd

        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        for j in self._categories:
            cells = frame[f"x{j}"].fillna(-1).astype(int)
            frame[f"x{j}"] = cells.astype(str) if self._name in ("catboost", "ebm") else cells.astype("category")
        if self._name in ("lightgbm", "xgboost"):  # the same categories in every part of the table
            for j in self._categories:
                known = self.__dict__.setdefault("_known", {}).setdefault(j, frame[f"x{j}"].cat.categories)
                frame[f"x{j}"] = frame[f"x{j}"].cat.set_categories(known)
        return frame


def _lightgbm(_categories: list[int]) -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(n_jobs=1, verbose=-1)


def _xgboost(_categories: list[int]) -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_jobs=1, enable_categorical=True, tree_method="hist")


def _catboost(categories: list[int]) -> Any:
    import catboost

    return catboost.CatBoostClassifier(
        thread_count=1, verbose=False, cat_features=categories, allow_writing_files=False, random_seed=0
    )


def _ebm(_categories: list[int]) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(n_jobs=1, random_state=0)


MAKE: dict[str, Callable[[list[int]], Any]] = {
    "lightgbm": _lightgbm, "xgboost": _xgboost, "catboost": _catboost, "ebm": _ebm,
}  # fmt: skip
