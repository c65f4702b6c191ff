"""Displays: numbers of a fitted estimator on matplotlib's axes, and scikit-learn's own displays of our estimators."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import ConfusionMatrixDisplay, DetCurveDisplay, PrecisionRecallDisplay, RocCurveDisplay
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import likely
from commands import LOANS
from likely.errors import MissingDependencyError, SchemaError, UsageError


@pytest.fixture(scope="module")
def loans():
    return likely.learn(LOANS, "outcome", ignore=["application_id"])


def fresh():
    return Figure().subplots()


def texts(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


def test_the_effect_of_a_category_is_a_bar_for_each_value_as_long_as_its_weight(loans):
    ax = fresh()
    shown = likely.EffectDisplay.from_estimator(loans, "purpose", label="default", ax=ax)
    assert shown.ax_ is ax
    assert shown.figure_ is ax.figure
    c = loans.classes.index("default")
    known = {row["value"] for row in loans.parameters["purpose"]}
    widths = dict(zip(texts(ax.yaxis), [bar.get_width() for bar in ax.patches], strict=True))
    assert {value: widths[value] for value in shown.levels} == pytest.approx(
        dict(zip(shown.levels, shown.weights.tolist(), strict=True))
    )
    assert known == set(shown.levels)
    other = likely.EffectDisplay.from_estimator(loans, "purpose", label=loans.classes[1 - c], ax=fresh())
    np.testing.assert_allclose(other.weights, -shown.weights)


def test_the_effect_of_a_number_is_a_line_with_a_band(loans):
    number = next(c.name for c in loans.schema.columns if c.kind == "number")
    shown = likely.EffectDisplay.from_estimator(loans, number, ax=fresh())
    line = next(each for each in shown.ax_.lines if len(each.get_xdata()) == len(shown.weights))
    np.testing.assert_allclose(line.get_ydata(), shown.weights)
    assert len(shown.ax_.collections) == 1
    assert shown.ax_.get_xlabel() == number


def test_an_explanation_leads_from_prior_to_posterior(loans):
    row = {"age": 30, "income": 20_000.0}
    shown = likely.ExplanationDisplay.from_estimator(loans, row, label="default", ax=fresh())
    odds = shown.prior + sum(weight for _, weight in shown.steps)
    assert 1 / (1 + np.exp(-odds)) == pytest.approx(shown.probability, abs=1e-9)
    assert texts(shown.ax_.yaxis)[0] == "prior"
    assert shown.ax_.patches[-1].get_width() == pytest.approx(odds)
    again = likely.ExplanationDisplay.from_estimator(loans.explain(row), None, label="default", ax=fresh())
    assert again.steps == shown.steps


def test_a_nomogram_has_a_line_for_each_column_and_labels_its_ends(loans):
    shown = likely.NomogramDisplay.from_estimator(loans, label="default", top=3, ax=fresh())
    assert len(shown.columns) == 3
    assert texts(shown.ax_.yaxis) == list(shown.columns)
    assert len(shown.ax_.texts) == 6
    spans = [np.abs(w).max() for w in shown.weights]
    assert min(spans) > 0


def test_importances_are_drawn_in_order_and_are_those_of_the_library(loans):
    shown = likely.ImportanceDisplay.from_estimator(loans, by="log_loss_rise", top=4, ax=fresh())
    known = {row["column"]: row["log_loss_rise"] for row in likely.importance(loans)}
    assert shown.importances.tolist() == sorted(filter(None, known.values()), reverse=True)[:4]
    assert [known[name] for name in shown.columns] == shown.importances.tolist()


def test_a_display_takes_a_pipeline_and_makes_its_own_figure():
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    scaled = StandardScaler().set_output(transform="pandas")
    fitted = make_pipeline(scaled, likely.NaiveBayes(plain=True)).fit(X.iloc[:200, :4], y[:200])
    shown = likely.EffectDisplay.from_estimator(fitted, "mean radius")
    assert shown.label == 1
    assert shown.figure_ is shown.ax_.figure
    shown.figure_.canvas.draw()
    plt.close(shown.figure_)


def test_a_dollar_sign_in_a_name_starts_no_formula():
    data = {"a$x_$": ["u$v", "$w_{$"] * 6, "y": ["p", "q", "q"] * 4}
    model = likely.learn(data, "y", plain=True)
    for shown in (likely.EffectDisplay.from_estimator(model, "a$x_$", ax=fresh()),
                  likely.NomogramDisplay.from_estimator(model, ax=fresh())):  # fmt: skip
        shown.figure_.canvas.draw()


def test_what_cannot_be_drawn_is_refused_with_the_remedy(loans):
    with pytest.raises(SchemaError, match="did you mean 'income'"):
        likely.EffectDisplay.from_estimator(loans, "incone")
    with pytest.raises(UsageError, match="did you mean 'default'"):
        likely.NomogramDisplay.from_estimator(loans, label="defaul")
    with pytest.raises(UsageError, match="choose from"):
        likely.ImportanceDisplay.from_estimator(loans, by="beauty")
    with pytest.raises(UsageError, match="StandardScaler holds no model"):
        likely.ImportanceDisplay.from_estimator(StandardScaler())


def test_without_matplotlib_the_error_names_the_extra(loans, monkeypatch):
    for name in [name for name in sys.modules if name == "matplotlib" or name.startswith("matplotlib.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"EffectDisplay needs matplotlib.*pip install 'likely\[plots\]'"):
        likely.EffectDisplay.from_estimator(loans, "purpose")


@pytest.mark.parametrize("display", [RocCurveDisplay, PrecisionRecallDisplay, DetCurveDisplay, CalibrationDisplay])
def test_the_displays_of_scikit_learn_take_our_estimators(display):
    X, y = load_breast_cancer(return_X_y=True)
    fitted = likely.NaiveBayes(plain=True).fit(X[:300, :5], y[:300])
    shown = display.from_estimator(fitted, X[300:, :5], y[300:], ax=fresh())
    assert len(shown.line_.get_xdata()) > 2
    assert shown.ax_.get_xlabel()
    ConfusionMatrixDisplay.from_estimator(fitted, X[300:, :5], y[300:], ax=fresh())
