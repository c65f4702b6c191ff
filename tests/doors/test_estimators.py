"""The scikit-learn door: NaiveBayes is an estimator to the letter, and takes frames with text and gaps besides."""

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
import pyarrow as pa
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
from likely import NaiveBayes
from likely.errors import LikelyWarning

COLUMNS = {
    "colour": ["red", "blue", None, "red", "green", "blue", "red", "green"] * 5,
    "member": [True, False, None, True, False, True, True, False] * 5,
    "age": [31.0, None, 25.5, 40.0, 18.0, 63.0, 22.0, 35.0] * 5,
    "visits": [1, 2, None, 4, 5, 6, 7, 8] * 5,
}
LABELS = ["yes", "no", "no", "yes", "yes", "no", "yes", "no"] * 5


def pandas_frame(columns=COLUMNS):
    frame = pd.DataFrame(columns)
    return frame.astype({"colour": "category", "visits": "Int64"})


FRAMES = {
    "pandas": pandas_frame,
    "pandas of objects": lambda columns=COLUMNS: pd.DataFrame(columns).astype(object),
    "polars": lambda columns=COLUMNS: pl.DataFrame(columns),
    "polars categories": lambda columns=COLUMNS: pl.DataFrame(columns).cast({"colour": pl.Categorical}),
    "arrow": lambda columns=COLUMNS: pa.table(columns),
    "arrow dictionary": lambda columns=COLUMNS: pa.table(columns | {"colour": pa.array(columns["colour"]).dictionary_encode()}),
}  # fmt: skip
EACH_FRAME = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)


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
        "from sklearn.utils.estimator_checks import check_estimator\n"
        "from likely import NaiveBayes\n"
        "for families in ('auto', 'categorical', 'gaussian:class', 'joint:class'):\n"
        "    found = check_estimator(NaiveBayes(families), on_fail=None)\n"
        "    bad = [result['check_name'] for result in found if result['status'] != 'passed']\n"
        "    assert not bad, (families, bad)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"SCIPY_ARRAY_API": "1"})


@pytest.mark.filterwarnings("error:X does not have valid feature names:UserWarning:sklearn")
def test_column_names_are_remembered_and_compared():
    check_dataframe_column_names_consistency("NaiveBayes", NaiveBayes())


# ---------------------------------------------------------------- frames


@EACH_FRAME
def test_a_frame_of_any_library_with_text_and_gaps_is_counted_alike(make):
    ours = NaiveBayes().fit(make(), LABELS)
    plain = likely.learn(COLUMNS | {"y": LABELS}, "y")
    assert ours.model_.tally == plain.tally
    assert list(ours.feature_names_in_) == list(COLUMNS)
    np.testing.assert_array_equal(ours.predict_proba(make()), plain.posterior(COLUMNS).probabilities)
    assert list(ours.predict(make())) == list(plain.predict(COLUMNS))


@EACH_FRAME
def test_a_value_never_seen_is_smoothed_and_said(make):
    model = NaiveBayes().fit(make(), LABELS)
    row = make({name: column[:1] for name, column in (COLUMNS | {"colour": ["ultraviolet"]}).items()})
    probabilities = model.predict_proba(row)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(1), 1)
    colour = next(entry for entry in model.explain(row).entries if entry.name == "colour")
    assert colour.flags == ("unseen",)


@pytest.mark.parametrize(
    "make", [list, tuple, lambda rows: np.array(rows, dtype=object)], ids=["list", "tuple", "array"]
)
def test_rows_of_text_beside_numbers_need_no_frame(make):
    rows = list(zip(*COLUMNS.values(), strict=True))
    model = NaiveBayes().fit(make(rows), np.array(LABELS))
    assert [column.name for column in model.model_.schema.columns] == ["x0", "x1", "x2", "x3"]
    framed = NaiveBayes().fit(pandas_frame(), LABELS)
    np.testing.assert_array_equal(model.predict_proba(make(rows)), framed.predict_proba(pandas_frame()))


def test_arrays_of_text_and_of_truth_values_are_categories():
    for X in (np.array([["a", "u"], ["b", "u"], ["a", "v"]]), np.array([[True, False], [False, False], [True, True]])):
        model = NaiveBayes().fit(X, [0, 1, 0])
        assert {column.kind for column in model.model_.schema.columns} == {"category"}


def test_no_column_is_left_out_for_looking_like_an_id_or_for_being_empty():
    rows = 40
    frame = pd.DataFrame({"id": range(rows), "name": [f"n{i}" for i in range(rows)], "empty": [None] * rows})
    model = NaiveBayes().fit(frame, [0, 1] * 20)
    assert [column.name for column in model.model_.schema.columns] == ["id", "name", "empty"]
    assert not model.model_.schema.ignored
    later = frame.assign(empty=["something"] * rows)
    np.testing.assert_array_equal(model.predict_proba(later), model.predict_proba(frame))


def test_numbered_columns_and_a_column_called_like_the_target_do_no_harm():
    X, y = load_iris(return_X_y=True)
    model = NaiveBayes().fit(pd.DataFrame(X), y)
    assert not hasattr(model, "feature_names_in_")
    named = pd.DataFrame(X, columns=["y", "y_", "b", "c"])
    np.testing.assert_array_equal(NaiveBayes().fit(named, y).predict_proba(named), model.predict_proba(X))


def test_columns_in_another_order_are_refused_by_name():
    model = NaiveBayes().fit(pandas_frame(), LABELS)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(pandas_frame()[["age", "colour", "member", "visits"]])
    with pytest.raises(ValueError, match="colour"):
        model.predict(pandas_frame().drop(columns="colour"))


def test_empty_frames_are_refused():
    with pytest.raises(ValueError, match="0 sample"):
        NaiveBayes().fit(pandas_frame().iloc[:0], [])
    with pytest.raises(ValueError, match="0 feature"):
        NaiveBayes().fit(pandas_frame()[[]], LABELS)


# ---------------------------------------------------------------- labels and weights


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        ([0, 1], np.int64), ([-5, 700_000], np.int64), ([3, 200], np.uint8), ([0.0, 2.0], np.float64), ([False, True], bool),
        (["a", "bcd"], "U3"), (["NA", "a"], object), ([1, 2], object), ([b"a", b"b"], object),
    ],
)  # fmt: skip
def test_labels_return_in_their_own_type(labels, dtype):
    y = np.array([*labels] * 4, dtype=dtype)
    X = np.array([[0.0], [9.0]] * 4) + np.arange(8)[:, None] / 10
    model = NaiveBayes().fit(X, y)
    assert model.classes_.dtype == y.dtype
    assert list(model.classes_) == list(labels)
    assert model.predict(X).dtype == y.dtype
    assert (model.predict(X) == y).all()


@pytest.mark.parametrize("y", [[0, 1, np.nan, 1], [0, 1, None, 1], ["a", "b", None, "b"], pd.array([0, 1, None, 1])])
def test_a_row_without_a_label_is_refused(y):
    with pytest.raises(ValueError, match="NaN"):
        NaiveBayes().fit([[1.0], [2.0], [3.0], [4.0]], y)


@pytest.mark.parametrize("y", [[0.5, 1.5, 2.5], np.array([0.5, 1.5, 2.5], dtype=object)])
def test_numbers_with_a_fraction_are_no_classes(y):
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        NaiveBayes().fit([[1.0], [2.0], [3.0]], y)


def test_one_class_is_refused_unless_it_is_a_part():
    X, y = [[1.0], [2.0], [3.0]], ["a"] * 3
    with pytest.raises(ValueError, match="only one class, 'a'"):
        NaiveBayes().fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        NaiveBayes().fit(X, ["a", "a", "b"], sample_weight=[1, 1, 0])
    assert list(NaiveBayes().partial_fit(X, y).predict(X)) == y


@pytest.mark.parametrize(
    "weights", [[1, -1, 1, 1], [1, np.nan, 1, 1], [1, np.inf, 1, 1], [0, 0, 0, 0], [1, 1, 1], [[1, 1]] * 4]
)
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match=r"weight|shape"):
        NaiveBayes().fit([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], sample_weight=weights)


@pytest.mark.parametrize("families", ["auto", "categorical", "joint", "poisson", "bernoulli"])
def test_weights_are_copies_and_no_weight_is_no_row(families):
    rng = np.random.default_rng(3)
    X, y, w = rng.integers(0, 4, (60, 3)), rng.integers(0, 3, 60), rng.integers(0, 4, 60)
    X[0], y[0], w[0] = 99, 7, 0  # an odd value and an odd class, which weigh nothing
    weighted = NaiveBayes(families).fit(X, y, sample_weight=w)
    copied = NaiveBayes(families).fit(X.repeat(w, 0), y.repeat(w))
    assert list(weighted.classes_) == [0, 1, 2]
    assert weighted.model_.schema == copied.model_.schema
    np.testing.assert_allclose(
        weighted.predict_joint_log_proba(X[1:]), copied.predict_joint_log_proba(X[1:]), rtol=1e-12
    )


# ---------------------------------------------------------------- bad numbers


@pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning")
@pytest.mark.parametrize("families", ["auto", "categorical", "joint", "poisson", "bernoulli", "multinomial"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinity_is_named_in_fit_and_in_predict(families, bad):
    X, y = np.arange(24.0).reshape(8, 3), [0, 1] * 4
    model = NaiveBayes(families).fit(X, y)
    X[5, 1] = bad
    for act in (lambda: NaiveBayes(families).fit(X, y), lambda: model.predict(X), lambda: model.predict_proba(X)):
        with pytest.raises(ValueError, match=r"column 'x1' has -?inf in row 6.*infinity"):
            act()
    weights = np.ones(8)
    weights[5] = 0
    if families != "categorical":  # where the value itself would be a category
        NaiveBayes(families).fit(X, y, sample_weight=weights)


def test_infinity_far_down_a_large_table_is_named_too():
    X = np.random.default_rng(0).normal(size=(200_000, 12))
    X[150_001, 7] = np.inf
    with pytest.raises(ValueError, match="column 'x7' has inf in row 150002"):
        NaiveBayes().fit(X, np.arange(200_000) % 3)


def test_extreme_numbers_give_finite_probabilities():
    X = np.array([[1e-310, 2**53 + 1, -0.0], [2e-310, 2**60, 0.0], [5e-324, 7.0, 1.0], [0.0, 8.0, 1e140]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model = NaiveBayes().fit(X, [0, 1, 0, 1])
    probabilities = model.predict_proba([*X.tolist(), [1e300, -1e300, 1e308]])
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(1), 1)


def test_missing_and_constant_columns_and_lonely_classes_are_learned_with_a_warning():
    X = np.array([[np.nan, 1.0, 3.0], [np.nan, 1.0, 4.0], [np.nan, 1.0, 5.0], [np.nan, 1.0, 9.0]])
    with pytest.warns(LikelyWarning, match="does not vary"):
        model = NaiveBayes().fit(X, [0, 0, 1, 2])
    probabilities = model.predict_proba(X)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(1), 1)


def test_nothing_is_copied_or_changed():
    X = np.random.default_rng(0).normal(size=(1000, 4))
    X.flags.writeable = False
    y = np.arange(1000) % 2
    y.flags.writeable = False
    NaiveBayes().fit(X, y).predict_proba(X)


# ---------------------------------------------------------------- partial_fit


@pytest.mark.parametrize("families", ["categorical", "bernoulli", "multinomial"])
def test_parts_count_what_the_whole_counts(families):
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 6, (90, 3)), np.sort(rng.integers(0, 4, 90))  # sorted: classes arrive late
    whole, parts = NaiveBayes(families).fit(X, y), NaiveBayes(families)
    for part in np.array_split(np.arange(90), 7):
        parts.partial_fit(X[part], y[part])
    assert parts.model_.tally == whole.model_.tally
    np.testing.assert_array_equal(parts.classes_, whole.classes_)
    np.testing.assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("families", ["auto", "gaussian:both", "joint"])
def test_parts_of_numbers_agree_with_the_whole(families):
    X, y = load_iris(return_X_y=True)
    whole, parts = NaiveBayes(families).fit(X, y), NaiveBayes(families)
    for part in np.array_split(np.arange(len(y)), 8):
        parts.partial_fit(X[part], y[part])
    np.testing.assert_allclose(parts.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-9)


def test_parts_of_frames_bring_new_values_and_new_classes():
    frame = pandas_frame()
    whole = NaiveBayes().fit(frame, LABELS)
    order = np.argsort(LABELS)
    parts = NaiveBayes()
    for part in np.array_split(order, 5):
        parts.partial_fit(frame.iloc[part], np.array(LABELS, dtype=object)[part])
    assert parts.model_.schema == whole.model_.schema
    np.testing.assert_allclose(parts.predict_proba(frame), whole.predict_proba(frame), rtol=1e-10)


def test_declared_classes_have_a_place_before_their_rows_come():
    model = NaiveBayes().partial_fit([[1.0], [2.0]], ["a", "a"], classes=np.array(["a", "much longer"]))
    assert list(model.classes_) == ["a", "much longer"]
    np.testing.assert_array_equal(model.predict_proba([[1.5]]), [[1.0, 0.0]])
    model.partial_fit([[9.0], [8.0]], ["b", "much longer"])
    assert list(model.classes_) == ["a", "b", "much longer"]
    assert model.predict([[9.0]]) == ["b"]


def test_small_label_types_grow_with_the_labels():
    model = NaiveBayes().partial_fit([[1.0], [2.0]], np.array([1, 2], dtype=np.int8), classes=[1, 2, 1000])
    model.partial_fit([[3.0]], np.array([500], dtype=np.int16))
    assert model.classes_.tolist() == [1, 2, 500, 1000]


def test_fit_forgets_what_partial_fit_counted():
    X, y = load_iris(return_X_y=True)
    model = NaiveBayes().partial_fit(X, y).fit(X, y)
    assert model.model_.tally == NaiveBayes().fit(X, y).model_.tally


# ---------------------------------------------------------------- settings


def test_one_word_speaks_of_all_columns_and_a_dict_of_each():
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
    own = NaiveBayes(smoothing={0: 0.5}).fit(X, y)
    np.testing.assert_allclose(own.predict_joint_log_proba(X[:1])[0], np.log([2 / 5 * 2.5 / 3, 3 / 5 * 0.5 / 4]))
    wide = NaiveBayes(smoothing=likely.MEstimate(3.0, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})).fit(X, y)
    np.testing.assert_allclose(wide.predict_joint_log_proba([["c"]])[0], np.log([2 / 5 * 1 / 5, 3 / 5 * 1 / 6]))
    block = NaiveBayes("joint", smoothing={(0, 1): 2.0}).fit(np.column_stack([X, X]), y)
    assert block.model_.prior.of("x0 with x1") == likely.Pseudocount(2.0)


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


def test_what_is_not_fitted_says_so():
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
def test_copies_and_pickles_say_the_same(families, tmp_path):
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
    assert search.best_estimator_.model_.tally == NaiveBayes().fit(X, y, sample_weight=w).model_.tally


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


def test_large_and_small_tables_are_read_by_the_same_formula():
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 9, (30_000, 7)), rng.integers(0, 3, 30_000)
    for families in ("auto", "categorical"):
        model = NaiveBayes(families).fit(X, y)
        large = model.predict_joint_log_proba(X)
        rows = rng.integers(0, 30_000, 20)
        np.testing.assert_array_equal(model.predict_joint_log_proba(X[rows]), large[rows])


def test_whole_numbers_are_one_category_in_every_type():
    rng = np.random.default_rng(6)
    X, y = rng.integers(-3, 4, (500, 3)), rng.integers(0, 3, 500)
    expected = NaiveBayes("categorical").fit(X, y).predict_proba(X)
    signed = (np.int64, np.int32, np.int16, np.int8, np.float64, np.float32, object)
    for kind in signed:
        model = NaiveBayes("categorical").fit(X.astype(kind), y)
        for other in (*signed, str):
            np.testing.assert_array_equal(model.predict_proba(X.astype(other)), expected)
    unsigned = NaiveBayes("categorical").fit((X + 3).astype(np.uint64), y)
    np.testing.assert_array_equal(unsigned.predict_proba((X + 3).astype(np.uint8)), expected)


def test_whole_numbers_far_apart_and_rare_ones_are_counted():
    X = np.zeros((5000, 2), dtype=np.int64)
    X[4000:, 0] = 1
    X[4999] = [np.iinfo(np.int64).max, np.iinfo(np.int64).min]
    model = NaiveBayes("categorical").fit(X, np.arange(5000) % 2)
    assert model.model_.schema.columns[0].values == (0, 1, np.iinfo(np.int64).max)
    rare = np.zeros((300_000, 4), dtype=np.int64)
    rare[-1] = 40  # beyond what the first rows show
    late = NaiveBayes("categorical").fit(rare, np.arange(300_000) % 2)
    assert late.model_.schema.columns[3].values == (0, 40)
