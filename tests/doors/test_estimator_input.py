"""What NaiveBayes takes: frames and arrays, text and gaps, labels, weights, parts, and what it refuses."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import likely
from frames import COLUMNS, EACH_FRAME, LABELS, pandas_frame
from likely import HiddenMarkov, Mixture, NaiveBayes
from likely.errors import DataError, LikelyWarning, UsageError

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
def test_an_unseen_value_is_smoothed_and_flagged(make):
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
    for plain, rounding in ((True, 0.0), (False, 1e-9)):  # under other names the rows are fitted in another order
        model = NaiveBayes(plain=plain).fit(make(rows), np.array(LABELS))
        assert [column.name for column in model.model_.schema.columns] == ["x0", "x1", "x2", "x3"]
        framed = NaiveBayes(plain=plain).fit(pandas_frame(), LABELS).predict_proba(pandas_frame())
        np.testing.assert_allclose(model.predict_proba(make(rows)), framed, rtol=rounding)


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
    np.testing.assert_allclose(NaiveBayes().fit(named, y).predict_proba(named), model.predict_proba(X), rtol=1e-8)


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
def test_a_row_without_a_label_is_shared_out_and_refused_in_parts(y):
    X = [[1.0], [2.0], [3.0], [4.0]]
    model = NaiveBayes().fit(X, y)
    assert len(model.classes_) == 2
    assert model.unlabelled_ == 0.0  # of so few labels none can be set aside: plain learning stays
    with pytest.raises(ValueError, match="NaN"):
        NaiveBayes().partial_fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        NaiveBayes().fit(X, [np.nan] * 4)


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


# ---------------------------------------------------------------- numbers


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
        plain = NaiveBayes(plain=True).fit(X, [0, 0, 1, 2])
    for model in (plain, NaiveBayes().fit(X, [0, 0, 1, 2])):
        probabilities = model.predict_proba(X)
        assert np.isfinite(probabilities).all()
        np.testing.assert_allclose(probabilities.sum(1), 1)


def test_nothing_is_copied_or_changed():
    X = np.random.default_rng(0).normal(size=(1000, 4))
    X.flags.writeable = False
    y = np.arange(1000) % 2
    y.flags.writeable = False
    NaiveBayes().fit(X, y).predict_proba(X)


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
    model = NaiveBayes(plain=True).partial_fit([[1.0], [2.0]], ["a", "a"], classes=np.array(["a", "much longer"]))
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


@pytest.mark.parametrize("door", [NaiveBayes, Mixture, HiddenMarkov])
@pytest.mark.parametrize(
    ("joint", "says"),
    [([("x0", "x0")], "names a column twice"), ([(0, "x0")], "names a column twice"), (["x0"], "a block is meant"),
     ([0], "a block is meant")],
)  # fmt: skip
def test_every_door_refuses_an_odd_block_in_the_same_words(door, joint, says):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(UsageError, match=says):
        door(joint=joint).fit(X, y)


@pytest.mark.parametrize("kind", [np.asarray, lambda y: np.asarray(y, dtype=object), list])
def test_labels_that_are_words_are_the_same_classes_in_any_form(kind):
    X, y = np.arange(6.0)[:, None], ["yes", "no", "no", "Ünsinn", "yes", ""]
    model = NaiveBayes().fit(X, kind(y))
    assert model.classes_.tolist() == sorted(set(y))
    assert model.model_.tally.schema.classes == tuple(sorted(set(y)))
    assert model.predict_proba(X).shape == (6, 4)


def test_half_a_character_in_a_label_is_refused():
    with pytest.raises(DataError, match="lone surrogate"):
        NaiveBayes().fit(np.arange(2.0)[:, None], np.array(["a", "\ud800"]))
