"""Wide tables, other columns and types in prediction, odd labels, weights and settings."""

import itertools

import numpy as np
import pandas as pd
import pytest

import likely
from likely.errors import DataError, LikelyWarning, SchemaError, UsageError
from likely.schema import Column
from tables import COLUMNS, GOOD, learn, parameters_of, written

# ------------------------------------------------------------------ row 10: very wide tables


@pytest.mark.parametrize(("kind", "columns"), [("dict", 3_000), ("csv", 10_000), ("parquet", 3_000)])
def test_ten_thousand_columns_are_learned_saved_and_explained(kind, columns, tmp_path):
    table, data = wide(columns, kind, tmp_path)
    model = learn(data, plain=True)
    assert len(model.schema.columns) == columns
    shares = model.posterior(data).probabilities
    assert np.isfinite(shares).all()
    if kind == "csv":
        saved_and_explained(model, table, tmp_path)


def test_a_second_stage_over_a_thousand_columns_is_fitted_saved_and_explained(tmp_path):
    table, data = wide(1_000, "csv", tmp_path)
    model = learn(data)
    assert model.calibration is not None
    assert np.isfinite(model.posterior(data).probabilities).all()
    saved_and_explained(model, table, tmp_path, more=1)  # the entry of the calibration


def wide(columns, kind, tmp_path):
    values = np.random.default_rng(0).normal(size=(columns, 20)).round(3)
    table = {f"c{i}": column.tolist() for i, column in enumerate(values)} | {"y": ["u", "v"] * 10}
    return table, written(table, kind, tmp_path)


def saved_and_explained(model, table, tmp_path, more=0):
    model.save(tmp_path / "wide.likely")
    assert likely.load(tmp_path / "wide.likely").tally == model.tally
    entries = model.explain({name: column[0] for name, column in table.items()}).entries
    assert len(entries) == len(model.schema.columns) + more


@pytest.mark.parametrize(("kind", "columns"), [("rows", 100_000), ("csv", 2_000)])
def test_one_row_of_a_hundred_thousand_columns_is_a_table(kind, columns, file):
    names = [f"c{i}" for i in range(columns)]
    data = [dict.fromkeys(names, 1.5) | {"y": "u"}]
    if kind == "csv":
        data = file(",".join([*names, "y"]) + "\n" + "1.5," * columns + "u\n")
    model = learn(data, classes=["u", "v"], families=likely.Gaussian())
    assert len(model.schema.columns) == columns
    assert np.isfinite(model.posterior(data).probabilities).all()


def test_a_log_likelihood_far_below_the_smallest_float_is_still_a_probability():
    table = {f"c{i}": [0.0, 1.0, 0.5, 1.5] for i in range(400)} | {"y": ["u", "u", "v", "v"]}
    posterior = learn(table, plain=True).posterior({f"c{i}": [1e150] for i in range(400)})
    assert (posterior.log_joint < -1e302).all()
    assert np.isfinite(posterior.probabilities).all()
    assert posterior.probabilities.sum() == pytest.approx(1.0)


# ------------------------------------------------------------------ row 11: other columns and types in prediction


def test_columns_are_matched_by_name_in_any_order_and_others_do_not_matter(file):
    model = learn(COLUMNS)
    straight = model.posterior(COLUMNS).probabilities
    for data in (
        {"extra": ["?"] * 4, "b": COLUMNS["b"], "a": COLUMNS["a"]},
        pd.DataFrame({"b": COLUMNS["b"], "zz": 1, "a": COLUMNS["a"]}),
        file("b,zz,a\n" + "".join(f"{b},,{a}\n" for a, b in zip(COLUMNS["a"], COLUMNS["b"], strict=True))),
    ):
        assert (model.posterior(data).probabilities == straight).all()


def test_a_missing_column_is_an_error_that_names_it_or_is_missing_on_request(file):
    model = learn(COLUMNS)
    for data in (pd.DataFrame({"a": [1.0]}), file("a,x\n1,2\n"), {"a": [1.0]}):
        with pytest.raises(SchemaError, match="has no column 'b': add it, or pass absent='missing'"):
            model.predict(data)
        assert len(model.predict(data, absent="missing")) == 1
    with pytest.raises(SchemaError, match=r"has none of the columns \['a', 'b'\]"):
        model.predict({"q": [1]}, absent="missing")
    with pytest.warns(LikelyWarning, match="column 'A' is not known: did you mean 'a'"):
        model.predict([{"A": 1.0, "b": "u"}])


def test_a_slip_of_the_pen_is_looked_for_in_small_tables_only():
    model = learn({f"column{i}": [1.0, 2.0, 3.0, 4.0] for i in range(2000)} | {"y": COLUMNS["y"]})
    wrong = {f"kolumn{i}": [1.0] for i in range(1, 2000)} | {"column0": [1.0]}
    assert len(model.predict(wrong, absent="missing")) == 1


ONES = [1, "1", 1.0, True, "1.0"]


@pytest.mark.parametrize(
    ("known", "forms"),
    [
        ((1, 0), ONES),
        ((1.0, 0.0), ONES),
        ((True, False), [*ONES, "true", "True", "TRUE"]),
        (("1", "0"), [1, "1", 1.0, True]),
        (("true", "false"), [True, "true"]),
        (("TRUE", "FALSE"), [True, "TRUE"]),
    ],
    ids=str,
)
def test_one_is_one_however_it_is_written(known, forms):
    model = learn({"c": [*known] * 4, "y": ["u", "v"] * 4}, families={"c": "categorical"})
    expected = model.posterior([{"c": known[0]}]).probabilities
    for value in forms:
        assert (model.posterior([{"c": value}]).probabilities == expected).all(), value


def test_text_is_matched_letter_by_letter():
    model = learn({"c": ["1", "01", "x", "X"] * 2, "y": ["u", "v", "u", "v"] * 2}, families={"c": "categorical"})
    assert model.schema.by_name["c"].values == ("01", "1", "X", "x")
    flags = [model.explain({"c": value}).entries[0].flags for value in ("1", "01", "001", " x", 1)]
    assert flags == [(), (), ("unseen",), ("unseen",), ()]


def test_numbers_as_text_predict_like_numbers(file):
    model = learn(COLUMNS)
    text = {"a": [str(a) for a in COLUMNS["a"]], "b": COLUMNS["b"]}
    assert (model.posterior(text).probabilities == model.posterior(COLUMNS).probabilities).all()


# ------------------------------------------------------------------ row 12: labels


@pytest.mark.parametrize("labels", [[0, 1], [1.5, 2.5], [True, False], ["a", "b"], [-1, 1]], ids=str)
@pytest.mark.parametrize("kind", ["dict", "rows", "pandas", "polars", "parquet", "jsonl"])
def test_labels_come_back_in_their_own_type(labels, kind, tmp_path):
    table = {"a": [1.0, 9.0, 1.5, 9.5], "y": labels * 2}
    model = learn(written(table, kind, tmp_path))
    assert model.classes == tuple(sorted(labels))
    assert {type(label) for label in model.classes} == {type(labels[0])}
    found = model.predict({"a": [1.0, 9.0]}).tolist()
    assert found == labels
    assert type(found[0]) is type(labels[0])


def test_whole_numbers_are_labels_of_a_csv_file_and_stay_so_in_its_updates(file):
    model = learn(file("a,y\n1.5,0\n9.5,1\n1.0,0\n9.0,1\n"))
    assert model.classes == (0, 1)
    assert model.update(file("a,y\n5.0,2\n1.5,0\n", "more.csv")).classes == (0, 1, 2)
    assert model.predict(file("a\n1\n9\n", "new.csv")).tolist() == [0, 1]
    assert learn(file("a,y\n1.5,00\n9.5,01\n1.0,00\n9.0,01\n")).classes == ("00", "01")
    assert learn(file("a,y\n1.5,0.50\n9.5,1\n1.0,0.50\n9.0,1\n")).classes == ("0.50", "1")


def test_a_target_that_is_not_there_is_named(file):
    for data in (COLUMNS, file(GOOD), pd.DataFrame(COLUMNS)):
        with pytest.raises(SchemaError, match=r"has no column 'Y' \(did you mean 'y'\?\): it has \['a', 'b', 'y'\]"):
            learn(data, "Y")


def test_rows_without_a_label_are_counted_out_loud_or_refused(file):
    table = COLUMNS | {"y": ["no", None, "no", "yes"]}
    for data in (table, pd.DataFrame(table), file(GOOD.replace("v,yes", "v,", 1))):
        with pytest.warns(LikelyWarning, match="1 of 4 rows have no 'y': they were not counted"):
            assert likely.learn(data, "y").tally.rows == 3
        with pytest.raises(DataError, match="column 'y' has no label in row 2: fill it in"):
            learn(data, unlabelled="error")
    with pytest.raises(DataError, match="column 'y' has no class"):
        learn(COLUMNS | {"y": [None] * 4})


# ------------------------------------------------------------------ row 13: weights and priors


@pytest.mark.parametrize("kind", ["dict", "pandas", "csv", "parquet", "jsonl"])
def test_a_weight_of_zero_equals_removal(kind, tmp_path):
    table = COLUMNS | {"w": [1.0, 1.0, 0.0, 1.0]}
    model = learn(written(table, kind, tmp_path), weights="w")
    rest = {name: [v for i, v in enumerate(column) if i != 2] for name, column in COLUMNS.items()}
    assert parameters_of(model) == parameters_of(learn(rest))


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), None])
def test_other_weights_are_refused_with_their_row(weight, tmp_path):
    table = COLUMNS | {"w": [1.0, 1.0, weight, 1.0]}
    for kind in ("dict", "pandas", "csv"):
        with pytest.raises(DataError, match=r"column 'w' has .* in row 3, which is no weight"):
            learn(written(table, kind, tmp_path), weights="w")
    if weight is not None:
        with pytest.raises(DataError, match=r"in row 3, which is no weight"):
            learn(COLUMNS, weights=table["w"])
    with pytest.raises(DataError, match="there are 3 weights for 4 rows"):
        learn(COLUMNS, weights=[1, 2, 3])
    with pytest.raises(DataError, match="column 'w' has 'heavy' in row 1, which is not a number"):
        learn(COLUMNS | {"w": ["heavy", 1, 1, 1]}, weights="w")


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({"class_prior": {"no": 0.5, "yes": 0.6}}, "class_prior sums to 1.1: it must sum to 1"),
        ({"class_prior": {"no": -0.5, "yes": 1.5}}, "it must be zero or more"),
        ({"class_prior": {"no": 0.5, "maybe": 0.5}}, "'maybe', which is none of the classes"),
        ({"class_prior": [1.0]}, "1 numbers for 2 classes"),
        ({"smoothing": -1}, "smoothing is -1: it must be zero or more"),
        ({"smoothing": float("nan")}, "it must be zero or more"),
        ({"smoothing": "much"}, "must be a number or a prior"),
        ({"families": "neural"}, "there is no family 'neural'"),
        ({"engine": "abacus"}, "engine='abacus' is not known"),
        ({"on_bad_rows": "cry"}, "on_bad_rows='cry' is not known"),
        ({"unlabelled": "guess"}, "unlabelled='guess' is not known"),
    ],
)
def test_settings_without_meaning_are_refused(settings, reported):
    with pytest.raises(UsageError, match=reported):
        learn(COLUMNS, **settings)


def test_values_from_parts_of_any_type_are_one_set_whichever_part_comes_first():
    parts = [("2",), ("x",), (1,), ("1", "x"), (2.0,), (True,)]
    for some in itertools.permutations(parts, 3):
        first, second, third = (Column("c", "category", values) for values in some)
        left, right = first.union(second).union(third), first.union(second.union(third))
        assert left.values == right.values, some
        assert left.values == third.union(second).union(first).values, some


# ------------------------------------------------------------------ a text and a number that say the same


@pytest.mark.parametrize("values", [[1, "1 ", "x", 2], [1, "1", "01", 2], ["1", "1.0", 1.0, "y"], [True, "true", "no", 3]])
@pytest.mark.parametrize("where", ["target", "feature"])
def test_learn_update_and_forget_agree_on_what_is_one_value(values, where):
    labels = ["p", "q"] * 4
    table = {"c": values * 2, "y": labels} if where == "feature" else {"c": labels, "y": values * 2}
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    settings = {"families": {"c": "categorical"}}
    whole = learn(rows, **settings)
    known = whole.classes if where == "target" else whole.schema.by_name["c"].values
    assert len(known) < len(values)
    classes = whole.classes
    for cut in range(1, len(rows)):
        parts = learn(rows[:cut], classes=classes, **settings).update(rows[cut:])
        assert parts.tally == whole.tally, cut
        both = learn(rows[:cut], classes=classes, **settings) + learn(rows[cut:], classes=classes, **settings)
        assert both.tally == whole.tally, cut
        assert whole.update(rows[:cut]).forget(rows[:cut]).tally == whole.tally, cut


def test_spellings_of_one_number_become_it_when_the_number_is_seen(tmp_path):
    texts = [{"c": c, "x": x, "y": y} for c, x, y in (("1", 1.0, "p"), ("01", 2.0, "q"), ("z", 3.0, "p"), ("1", 4.0, "q"))]
    model = learn(texts, joint=[("c", "x")])
    assert model.schema.by_name["c"].values == ("01", "1", "z")
    numbers = [{"c": 1, "x": 5.0, "y": "p"}]
    grown = model.update(numbers)
    assert grown.tally == learn([*texts, *numbers], joint=[("c", "x")]).tally
    assert grown.schema.by_name["c"].values == (1, "z")
    grown.save(tmp_path / "m.likely")
    assert likely.load(tmp_path / "m.likely") == grown


# ------------------------------------------------------------------ weights beside an array


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool", "float32"])
def test_weights_beside_an_array_leave_its_values_as_they_are(dtype):
    large = {"int64": 2**53, "int32": 2**24}.get(dtype, 0)
    array = np.array([[large, 0], [large + 1, 1], [large, 0], [large + 1, 1]], dtype)
    plain = learn(array, "x1", families={"x0": "categorical"})
    weighted = learn(array, "x1", families={"x0": "categorical"}, weights=[1.0, 1.0, 1.0, 1.0])
    assert weighted.tally == plain.tally
    assert [type(label) for label in weighted.classes] == [type(label) for label in plain.classes]
    assert weighted.schema.by_name["x0"].values == (large, large + 1)
    again = weighted.update(array, weights=[0.5, 0.5, 0.5, 0.5])
    assert again.tally.classes.tolist() == [3.0, 3.0]
    heavy = learn(array, "x1", families={"x0": "categorical"}, weights=[2.0, 1.0, 0.0, 1.0])
    assert heavy.tally.classes.tolist() == [2.0, 2.0]


# ------------------------------------------------------------------ long texts: documents, or answers to choose from


@pytest.mark.parametrize(
    ("different", "times", "kind"),
    [
        (300, 1, "text"),
        (150, 2, "text"),  # every document twice
        (120, 9, "text"),
        (60, 2, "category"),  # too few to tell from answers
        (110, 12, "category"),
        (30, 1, "text"),
        (5, 20, "category"),
    ],
)
def test_long_texts_are_documents_unless_they_are_few_that_repeat(different, times, kind):
    texts = [f"note {i} of a customer who {('waits', 'asks', 'pays')[i % 3]}" for i in range(different)]
    data = {"note": texts * times, "y": [i % 2 for i in range(different)] * times}
    assert learn(data).schema.by_name["note"].kind == kind


def test_a_repeated_document_among_few_rows_leaves_the_column_a_text():
    texts = [f"the {i}th of the letters that came to us" for i in range(40)]
    assert learn({"note": [*texts, texts[0]], "y": [0, 1] * 20 + [0]}).schema.by_name["note"].kind == "text"
