"""A prepared model predicts single rows as `posterior` does, to the last digits, and learns them as `update` does."""

from __future__ import annotations

import copy
import datetime as dt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likely
from likely.errors import DataError, UsageError
from likely.families import ALL, Family
from likely.schema import CATEGORY, NUMBER, TEXT
from strategies import Case, cases, quietly, strange_rows

EXAMPLES = [family.example() for family in ALL]
DIGITS = {"rtol": 1e-13, "atol": 1e-13}


def equal(model: likely.Model, rows: list[dict[str, Any]]) -> None:
    """Labels, scores and probabilities of single rows are those of the table."""
    predictor, together = model.prepare(), quietly(model.posterior, rows)
    for i, row in enumerate(rows):
        joint = quietly(predictor.log_joint_one, row)
        np.testing.assert_allclose(joint, together.log_joint[i], **DIGITS)
        shares = quietly(predictor.predict_proba_one, row)
        np.testing.assert_allclose(list(shares.values()), together.probabilities[i], **DIGITS)
        label = quietly(predictor.predict_one, row)
        assert label == together.labels[i]
        assert type(label) is type(together.labels.tolist()[i])
        alone = quietly(model.posterior, row)
        np.testing.assert_allclose(alone.log_joint, together.log_joint[i : i + 1], **DIGITS)
    for row in rows[:3] + rows[-3:]:
        explained_as_in_a_table(model, row)


def explained_as_in_a_table(model: likely.Model, row: dict[str, Any]) -> None:
    """Cells, flags, words and terms of a dict are those of a table of one row."""
    one, table = quietly(model.explain, row), quietly(model.explain, [row])
    assert one.notes == table.notes
    np.testing.assert_allclose(one.probabilities, table.probabilities, **DIGITS)
    for a, b in zip(one.entries, table.entries, strict=True):
        assert (a.columns, a.flags) == (b.columns, b.flags)
        assert [repr(value) for value in a.values] == [repr(value) for value in b.values]
        assert [(word.word, word.count) for word in a.words] == [(word.word, word.count) for word in b.words]
        np.testing.assert_allclose(a.evidence, b.evidence, **DIGITS)


@given(st.data())
@settings(max_examples=10)
def test_one_row_is_scored_as_in_a_table_for_any_plain_model(data: st.DataObject) -> None:
    case: Case = data.draw(cases())
    model = case.learn()
    odd = [data.draw(strange_rows(case)) for _ in range(3)]
    features = [{name: row[name] for name in case.features} for row in case.as_rows()]
    equal(model, [*features, *odd])


def mixed(rows: int = 400) -> dict[str, list[Any]]:
    """Numbers, categories, text and gaps, with an interaction of two columns."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, rows)
    a, b = rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    words = np.array(["tax", "car", "sun", "old", "new"])
    columns: dict[str, list[Any]] = {
        "number": (rng.normal(size=rows) + y).round(2).tolist(),
        "letter": [None if rng.random() < 0.1 else "abcd"[min(k + rng.integers(0, 2), 3)] for k in y],
        "a": [f"v{i}" for i in a], "b": [bool(i) for i in b], "count": rng.poisson(3 + y).tolist(),
        "text": [" ".join(rng.choice(words[k : k + 3], 6)) for k in y],
        "y": [("no", "yes", "maybe")[(k if i == j else 1)] for k, i, j in zip(y, a, b, strict=True)],
    }  # fmt: skip
    columns["number"][3] = None
    return columns


@pytest.mark.parametrize("settings_", [{}, {"plain": True}, {"average": True}, {"families": {"count": "poisson"}}], ids=str)
def test_one_row_is_scored_as_in_a_table_by_the_default_model(settings_: dict[str, Any]) -> None:
    table = mixed()
    model = quietly(likely.learn, table, "y", **({"families": {"text": "text"}} | settings_))
    rows = [{name: table[name][i] for name in table if name != "y"} for i in range(40)]
    odd: list[dict[str, Any]] = [
        {"number": 1.0}, {"letter": "never seen"}, {"letter": "a", "text": None, "extra": 1}, {"number": "1.5", "b": "true"},
        {"number": 1e300, "text": "no such word"}, {"number": float("nan"), "b": 1, "letter": 7}, {"number": 2**60},
        {"number": True, "text": ""}, {"a": np.str_("v1"), "number": np.float64(0.5)},
    ]  # fmt: skip
    equal(model, rows + odd)


@pytest.mark.parametrize("family", EXAMPLES, ids=lambda family: family.name)
def test_one_row_is_scored_as_in_a_table_for_every_family(family: Family) -> None:
    rng = np.random.default_rng(5)
    kinds = [family.column_kind or CATEGORY, family.column_kind or NUMBER]
    kinds = kinds[:1] if family.column_kind == TEXT or family.for_each_column else kinds
    cells = {CATEGORY: ("a", "b", "c", None), TEXT: ("old car", "new tax", "sun", None), NUMBER: (0.0, 1.0, 3.0, 7.0, None)}
    pools = {f"x{i}": np.array(cells[kind], dtype=object) for i, kind in enumerate(kinds)}
    table: dict[str, list[Any]] = {name: rng.choice(pool, 60).tolist() for name, pool in pools.items()}
    names = tuple(table)
    families = {names[0] if len(names) == 1 else names: family}
    labels = rng.choice(["no", "yes"], 60).tolist()
    for smoothing in (1, "auto"):
        model = quietly(likely.learn, table | {"y": labels}, "y", families=families, smoothing=smoothing)
        equal(model, [{name: column[i] for name, column in table.items()} for i in range(30)])


def test_columns_made_from_dates_and_numbers_that_mean_missing_are_read_as_in_a_table() -> None:
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(60)]
    table = {"day": days, "x": [float(i % 5) - 999 * (i % 7 == 0) for i in range(60)]}
    labels = ["work" if day.weekday() < 5 else "rest" for day in days]
    model = quietly(likely.learn, table | {"y": labels}, "y", missing=["-999"])
    equal(model, [{"day": days[i], "x": table["x"][i]} for i in range(14)] + [{"day": days[3], "x": -999}])


def test_a_misspelt_column_of_one_row_is_pointed_out_and_an_unknown_absent_is_refused() -> None:
    model = quietly(likely.learn, mixed(), "y", families={"text": "text"})
    assert model.row_scorer is not None
    with pytest.warns(likely.errors.LikelyWarning, match="did you mean 'letter'"):
        model.posterior({"number": 1.0, "leter": "a"})
    with pytest.raises(UsageError, match="absent"):
        model.posterior({"number": 1.0}, absent="skip")


def test_a_model_that_scored_a_row_can_be_copied_with_what_it_prepared() -> None:
    model = quietly(likely.learn, mixed(), "y", families={"text": "text"})
    row = {"number": 1.0, "letter": "a"}
    wanted = model.posterior(row).log_joint
    np.testing.assert_array_equal(copy.deepcopy(model).posterior(row).log_joint, wanted)


def test_rows_that_a_table_refuses_are_refused_with_the_same_words() -> None:
    predictor = quietly(likely.learn, mixed(), "y", families={"text": "text"}).prepare()
    for bad in ({"number": float("inf")}, {"number": "abc"}, {"letter": ["a"]}, {"letter": "\ud800"}, {"other": 1}, {}):
        with pytest.raises(DataError) as one:
            quietly(predictor.predict_one, bad)
        with pytest.raises(DataError) as many:
            quietly(predictor.model.posterior, [bad])
        assert str(one.value) == str(many.value)


@pytest.mark.parametrize("plain", [True, False])
def test_learning_rows_one_by_one_equals_updating_with_all(plain: bool) -> None:
    table = mixed(120)
    rows = [{name: column[i] for name, column in table.items()} for i in range(120)]
    start = quietly(likely.learn, rows[:60], "y", plain=plain)
    new = [*rows[60:], rows[0] | {"y": "a new class", "letter": "a new value"}]
    predictor = start.prepare()
    for row in new:
        quietly(predictor.learn_one, {name: value for name, value in row.items() if name != "y"}, row["y"])
    wanted = quietly(start.update, new)
    assert predictor.model.tally.rows == wanted.tally.rows
    assert predictor.model.classes == wanted.classes
    np.testing.assert_array_equal(predictor.model.tally.classes, wanted.tally.classes)
    if plain:
        apart = predictor.model.posterior(rows).probabilities - wanted.posterior(rows).probabilities
        np.testing.assert_allclose(apart, 0.0, atol=1e-9)


def test_with_refresh_every_one_a_learned_row_changes_the_next_prediction() -> None:
    start = quietly(likely.learn, {"a": ["u", "v", "u", "v"], "y": [0, 1, 0, 1]}, "y", plain=True)
    predictor = start.prepare(refresh_every=1)
    before = predictor.predict_proba_one({"a": "u"})[1]
    predictor.learn_one({"a": "u"}, 1)
    assert predictor.predict_proba_one({"a": "u"})[1] > before
    assert predictor.predict_proba_one({"a": "u"}) == start.update({"a": ["u"], "y": [1]}).prepare().predict_proba_one(
        {"a": "u"}
    )


def test_a_bad_row_is_refused_when_it_is_learned_and_leaves_nothing_behind() -> None:
    predictor = quietly(likely.learn, mixed(), "y").prepare()
    counted = predictor.model.tally.rows
    for bad, label in (({"number": "abc"}, "no"), ({"number": 1.0}, None), ({"number": float("inf")}, "yes")):
        with pytest.raises(DataError):
            quietly(predictor.learn_one, bad, label)
    assert predictor.model.tally.rows == counted
    with pytest.raises(UsageError, match="refresh_every"):
        predictor.model.prepare(refresh_every=0)


def test_river_evaluates_it_alone_and_in_a_pipeline() -> None:
    river = pytest.importorskip("river", reason="NOT TESTED: river is not installed")
    from river import compose, evaluate, metrics, preprocessing

    assert river
    table = {name: column for name, column in mixed(200).items() if name != "text"}
    rows = [{name: column[i] for name, column in table.items() if name != "y"} for i in range(200)]
    stream = list(zip(rows, table["y"], strict=True))
    start = quietly(likely.learn, {name: column[:100] for name, column in table.items()}, "y", plain=True)
    alone = quietly(evaluate.progressive_val_score, stream, start.prepare(), metrics.Accuracy())
    assert alone.get() > 0.5
    loss = quietly(evaluate.progressive_val_score, stream, start.prepare(), metrics.CrossEntropy())
    assert loss.get() < np.log(3)
    numbers = compose.Select("count") | preprocessing.MinMaxScaler()
    pipeline = numbers | start.prepare()
    assert quietly(evaluate.progressive_val_score, stream[:50], pipeline, metrics.Accuracy()).get() >= 0.0
