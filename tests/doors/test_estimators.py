"""The scikit-learn door: NaiveBayes is an estimator to the letter."""

import copy
import os
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, parametrize_with_checks

import likely
from frames import COLUMNS, FRAMES, LABELS, pandas_frame
from likely import NaiveBayes


@parametrize_with_checks(
    [NaiveBayes(), NaiveBayes(plain=True), *(NaiveBayes(f) for f in ("categorical", "gaussian:class", "joint:class"))]
)
def test_it_passes_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_no_check_is_skipped_when_the_array_interface_is_switched_on():
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        "from likely import NaiveBayes\n"
        "for families in ('auto', 'categorical', 'gaussian:class', 'joint:class'):\n"
        "    pairs = list(estimator_checks_generator(NaiveBayes(families)))\n"
        "    checks = [(e, check) for e, check in pairs if 'array_api' in getattr(check, 'func', check).__name__]\n"
        "    assert checks, families\n"
        "    for estimator, check in checks:\n"  # the other checks run above
        "        check(estimator)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"SCIPY_ARRAY_API": "1"})


@pytest.mark.filterwarnings("error:X does not have valid feature names:UserWarning:sklearn")
def test_column_names_are_remembered_and_compared():
    check_dataframe_column_names_consistency("NaiveBayes", NaiveBayes())


# ---------------------------------------------------------------- settings


def test_one_name_sets_the_family_of_all_columns_and_a_dict_of_each():
    X, y = load_iris(return_X_y=True)
    word = NaiveBayes("gaussian:class").fit(X, y)
    assert word.model_.tally == NaiveBayes(likely.Gaussian(tie="class")).fit(X, y).model_.tally
    assert word.model_.tally == NaiveBayes(dict.fromkeys(range(4), "gaussian:class")).fit(X, y).model_.tally
    mixed = NaiveBayes({"x0": "categorical", -1: likely.Gaussian(tie="both")}, joint=[(1, "x2")]).fit(X, y)
    assert [(b.family.name, b.columns) for b in mixed.model_.blocks] == [
        ("categorical", ("x0",)), ("joint", ("x1", "x2")), ("gaussian", ("x3",)),
    ]  # fmt: skip
    rest = NaiveBayes("gaussian:class", joint=[("x1", "x2")]).fit(X, y)
    assert [b.family.name for b in rest.model_.blocks] == ["gaussian", "joint", "gaussian"]


def test_settings_without_meaning_are_refused_in_fit():
    X, y = load_iris(return_X_y=True)
    for odd in (
        {"families": "gausian"}, {"families": {"x9": "gaussian"}}, {"families": {7: "gaussian"}}, {"smoothing": -1},
        {"class_prior": [0.5, 0.5]}, {"class_prior": [0.5, 0.5, 0.5]}, {"joint": [("x0", "petal")]},
    ):  # fmt: skip
        estimator = NaiveBayes(**odd)  # a constructor never complains
        with pytest.raises(ValueError, match=r".+"):
            estimator.fit(X, y)


def test_class_priors_and_smoothing_are_heeded():
    X, y = np.array([["a"], ["a"], ["b"], ["b"], ["b"]], dtype=object), [0, 0, 1, 1, 1]
    given = NaiveBayes(class_prior=[0.9, 0.1]).fit(X, y)
    np.testing.assert_allclose(given.model_.class_prior, [0.9, 0.1])
    assert NaiveBayes(smoothing=0).fit(X, y).predict_proba(X[:1]).tolist() == [[1.0, 0.0]]
    own = NaiveBayes(smoothing={0: 0.5}, plain=True).fit(X, y)
    np.testing.assert_allclose(own.predict_joint_log_proba(X[:1])[0], np.log([2 / 5 * 2.5 / 3, 3 / 5 * 0.5 / 4]))
    wide = NaiveBayes(smoothing=likely.MEstimate(3.0, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})).fit(X, y)
    np.testing.assert_allclose(wide.predict_joint_log_proba([["c"]])[0], np.log([2 / 5 * 1 / 5, 3 / 5 * 1 / 6]))
    block = NaiveBayes("joint", smoothing={(0, 1): 2.0}).fit(np.column_stack([X, X]), y)
    assert block.model_.prior.of(block.model_.blocks[0]) == likely.Pseudocount(2.0)


def test_a_column_of_a_frame_may_be_text_beside_others():
    frame = pd.DataFrame(
        {"note": ["good good fun", "bad and dull", "fun and good", "dull dull"] * 5, "size": range(20)}
    )
    model = NaiveBayes({"note": "text"}, plain=True).fit(frame, ["up", "down"] * 10)
    assert list(model.predict(pd.DataFrame({"note": ["good fun", "so dull"], "size": [9, 9]}))) == ["up", "down"]


# ---------------------------------------------------------------- explain


def test_the_account_of_a_row_adds_up_however_the_row_comes():
    frame = pandas_frame()
    model = NaiveBayes().fit(frame, LABELS)
    joint = model.predict_joint_log_proba(frame)[3]
    row = {name: column[3] for name, column in COLUMNS.items()}
    for given in (frame.iloc[3], frame.iloc[[3]], row, pl.DataFrame([row])):
        ledger = model.explain(given)
        assert list(ledger.log_joint) == list(joint)
        total = np.array(ledger.log_prior)
        for entry in ledger.entries:
            total = total + np.array(entry.evidence)
        assert list(total) == list(joint)
        assert ledger.label == model.predict(frame)[3]
    with pytest.raises(ValueError, match="one row, not 2"):
        model.explain(frame.iloc[:2])


def test_a_row_of_an_array_is_explained_as_it_is():
    X, y = load_iris(return_X_y=True)
    model = NaiveBayes().fit(X, y)
    for row in (X[70], X[[70]], X[70].tolist()):
        assert model.explain(row).posterior == dict(zip(range(3), model.predict_proba(X)[70], strict=True))


def test_an_unfitted_estimator_raises_a_clear_error():
    for method in ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "explain"):
        with pytest.raises(NotFittedError):
            getattr(NaiveBayes(), method)([[1.0]])


# ---------------------------------------------------------------- among the others


def test_it_works_in_a_pipeline_that_passes_frames():
    X, y = load_iris(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), NaiveBayes()).set_output(transform="pandas").fit(X, y)
    assert list(pipeline[-1].feature_names_in_) == list(X.columns)
    assert pipeline.score(X, y) > 0.9
    scaled = make_column_transformer((StandardScaler(), ["age"]), remainder="passthrough").set_output(
        transform="polars"
    )
    mixed = make_pipeline(scaled, NaiveBayes()).fit(FRAMES["polars"](), LABELS)
    assert mixed.score(FRAMES["polars"](), LABELS) > 0.5


def test_a_grid_search_tries_families_and_smoothing():
    X, y = load_iris(return_X_y=True)
    grid = {"families": ["auto", "gaussian:class", likely.Joint(tie="class"), "categorical"], "smoothing": [0.5, 1.0]}
    search = GridSearchCV(NaiveBayes(), grid, cv=4, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.95
    assert len(search.cv_results_["params"]) == 8


def test_cross_validation_agrees_with_that_of_linear_discriminants():
    X, y = load_iris(return_X_y=True)
    ours = cross_val_score(NaiveBayes("joint:class"), X, y, cv=5)
    np.testing.assert_array_equal(ours, cross_val_score(LinearDiscriminantAnalysis(solver="lsqr"), X, y, cv=5))
    assert cross_val_score(NaiveBayes(), pandas_frame(), LABELS, cv=4).mean() > 0.8


def test_clones_are_unfitted_and_settings_survive():
    settings = {
        "families": {"x0": likely.Gaussian(tie="both")},
        "smoothing": likely.MEstimate(2.0),
        "joint": [("x1", "x2")],
    }
    twin = clone(NaiveBayes(**settings))
    assert twin.get_params() == NaiveBayes(**settings).get_params()
    assert not hasattr(twin, "model_")
    assert "NaiveBayes(" in repr(twin)


@pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning")
@pytest.mark.parametrize("families", ["auto", "joint", {"age": "gaussian:both", ("colour", "member"): "joint"}])
def test_copies_and_pickles_predict_the_same(families, tmp_path):
    frame = pandas_frame()
    model = NaiveBayes(families).fit(frame, LABELS)
    expected = model.predict_proba(frame)  # with everything cached that can be
    model.explain(frame.iloc[[0]])
    joblib.dump(model, tmp_path / "model.joblib")
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(twin.predict_proba(frame), expected)
        assert twin.model_.tally == model.model_.tally
        assert twin.model_.parameters == model.model_.parameters
        twin.partial_fit(frame, LABELS)


def test_a_forked_child_counts_with_threads_of_its_own():
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    code = (
        "import numpy as np, os, sys\n"
        "from likely import NaiveBayes\n"
        "X, y = np.random.default_rng(0).normal(size=(300_000, 8)), np.arange(300_000) % 3\n"
        "model = NaiveBayes().fit(X, y)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if NaiveBayes().fit(X, y).model_.tally == model.model_.tally else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=300)


def test_weights_are_routed_where_they_are_asked_for():
    X, y = load_iris(return_X_y=True)
    w = np.random.default_rng(0).integers(0, 3, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        asking = NaiveBayes().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asking)
        pipeline.fit(X, y, sample_weight=w)
        search = GridSearchCV(asking, {"smoothing": [1.0]}, cv=3).fit(X, y, sample_weight=w)
        NaiveBayes().set_partial_fit_request(sample_weight=True, classes=True)
    scaled = StandardScaler().fit_transform(X)
    assert pipeline[-1].model_.tally == NaiveBayes().fit(scaled, y, sample_weight=w).model_.tally
    assert search.best_estimator_.model_.tally == NaiveBayes(smoothing=1.0).fit(X, y, sample_weight=w).model_.tally


def test_the_score_is_the_accuracy_and_weights_count_in_it():
    X, y = load_iris(return_X_y=True)
    model = NaiveBayes().fit(X, y)
    w = np.arange(len(y))
    assert model.score(X, y, sample_weight=w) == accuracy_score(y, model.predict(X), sample_weight=w)


def test_the_model_inside_can_be_saved_and_merged(tmp_path):
    frame = pandas_frame()
    model = NaiveBayes().fit(frame, LABELS)
    model.model_.save(tmp_path / "m.likely")
    loaded = likely.load(tmp_path / "m.likely")
    np.testing.assert_array_equal(loaded.posterior(frame).probabilities, model.predict_proba(frame))
    assert (loaded + model.model_).tally == NaiveBayes().fit(frame, LABELS).partial_fit(frame, LABELS).model_.tally
