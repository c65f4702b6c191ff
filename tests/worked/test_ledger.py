"""The numbers of an explanation, from their definition."""

import datetime as dt
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import likely
from likely.families.likelihoods import FAR_DEVIATIONS
from likely.model.ledger import MOST_SHOWN, Entry, Word, marked, number, shown, word_weight

DATA = {
    "c": ["u"] * 6 + ["v"] * 2 + ["u"] * 1 + ["v"] * 3 + ["u"] * 2 + ["v"] * 2,
    "y": ["a"] * 8 + ["b"] * 4 + ["k"] * 4,
}
SHARE = {"a": 6 / 8, "b": 1 / 4, "k": 2 / 4}  # of u in each class
PRIOR = {"a": 8 / 16, "b": 4 / 16, "k": 4 / 16}


def test_a_weight_is_the_log_ratio_of_a_class_to_the_average_of_the_others() -> None:
    ledger = likely.learn(DATA, "y", plain=True, smoothing=0).explain({"c": "u"})
    for label, found in ledger.weights()["c"].items():
        others = [other for other in PRIOR if other != label]
        mean = sum(PRIOR[o] * SHARE[o] for o in others) / sum(PRIOR[o] for o in others)
        assert found == pytest.approx(math.log(SHARE[label] / mean))
    assert ledger.weights()["c"]["a"] > 0 > ledger.weights()["c"]["b"]


def test_of_two_classes_the_weights_are_the_log_likelihood_ratio_and_its_negative() -> None:
    two = {"c": DATA["c"][:12], "y": DATA["y"][:12]}
    weights = likely.learn(two, "y", plain=True, smoothing=0).explain({"c": "u"}).weights()["c"]
    assert weights["a"] == pytest.approx(math.log(3))
    assert weights["b"] == pytest.approx(-math.log(3))


def test_a_value_seen_in_one_class_only_rules_the_others_out_and_the_note_names_them() -> None:
    data = {"c": ["u", "u", "v", "v", "u", "v"], "y": ["a", "a", "b", "b", "k", "k"]}
    ledger = likely.learn(data, "y", plain=True, smoothing=0).explain({"c": "u"})
    weights = ledger.weights()["c"]
    assert weights["b"] == -math.inf
    assert weights["a"] == pytest.approx(math.log(1 / 0.25))  # b 0 and k 1/2, equally frequent
    assert ledger.notes == ("without smoothing, a count of zero rules out: b",)
    alone = likely.learn({"c": ["u", "u", "v", "v"], "y": ["a", "a", "b", "b"]}, "y", plain=True, smoothing=0)
    assert alone.explain({"c": "u"}).weights()["c"] == {"a": math.inf, "b": -math.inf}


def test_a_class_that_the_prior_excludes_is_compared_and_counts_for_nothing() -> None:
    model = likely.learn(DATA, "y", plain=True, smoothing=0, class_prior={"a": 0.5, "b": 0.5, "k": 0})
    weights = model.explain({"c": "u"}).weights()["c"]
    assert weights["a"] == pytest.approx(math.log(3))
    certain = likely.learn(DATA, "y", plain=True, smoothing=0, class_prior={"a": 1, "b": 0, "k": 0})
    assert certain.explain({"c": "u"}).weights()["c"]["a"] == 0.0  # nothing to compare with


def test_the_columns_of_a_ledger_are_the_terms_of_the_log_joint() -> None:
    model = likely.learn(DATA, "y", plain=True, smoothing=0)
    ledger, row = model.explain({"c": "u"}), model.posterior({"c": ["u"]})
    assert np.add(ledger.log_prior, ledger.entries[0].evidence) == pytest.approx(row.log_joint[0])
    assert ledger.entries[0].evidence == pytest.approx([math.log(SHARE[label]) for label in model.classes])


def test_the_dictionary_of_a_ledger_is_json_whatever_labels_and_cells_are():
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    model = likely.learn({"c": ["u", "v", "u", "u"] * 2, "y": days * 4}, "y", plain=True, smoothing=1)
    found = json.loads(json.dumps(model.explain({"c": None}).to_dict()))
    assert found["classes"] == ["2024-01-01", "2024-01-02"]
    assert found["label"] in found["classes"]
    assert [entry["values"] for entry in found["evidence"]] == [[None]]


def test_the_label_is_the_best_class_that_is_not_ruled_out() -> None:
    data = {"c": ["u"] * 5 + ["v", "u", "v", "v"], "y": ["a"] * 5 + ["b", "k", "k", "k"]}
    model = likely.learn(data, "y", plain=True, smoothing=0)
    ledger = model.explain({"c": "v"})
    assert model.class_prior.argmax() == 0
    assert ledger.log_joint[0] == -math.inf
    assert ledger.label == model.predict({"c": "v"})[0] == "k"
    assert model.explain({"c": "w"}).label == "a"  # all are ruled out: the prior decides


@pytest.mark.parametrize("into", [0, 1, 3, 7])
def test_a_long_text_is_shown_up_to_the_end_of_a_word(into: int) -> None:
    """The word "interrupted" begins so many characters before the most that are shown."""
    text = ("word " * MOST_SHOWN)[: MOST_SHOWN - into - 1] + " interrupted words"
    found = "".join(piece for piece, _ in marked(Entry(("t",), (text,), (0.0, 0.0))))
    assert found == text[: MOST_SHOWN - into]


@pytest.mark.parametrize(("text", "flags"), [("old car", ()), ("no such words", ("unseen",)), (None, ("missing",))])
def test_a_text_is_unseen_where_none_of_its_words_was_counted_and_missing_where_there_is_none(text, flags) -> None:
    data = {"t": ["old car", "new tax"] * 20, "c": ["u", "v"] * 20, "y": ["a", "b"] * 20}
    model = likely.learn(data, "y", plain=True, families={"t": "text"})
    for row in ({"t": text, "c": "u"}, [{"t": text, "c": "u"}]):
        (entry,) = [e for e in model.explain(row).entries if e.name == "t"]
        assert entry.flags == flags
        assert bool(entry.words) == (not flags)


@pytest.mark.parametrize(("value", "text"), [("x" * 40, "x" * 40), ("x" * 41, "x" * 39 + "…"), (3.0, "3"), (None, "")])
def test_a_value_is_shown_in_at_most_forty_characters(value, text) -> None:
    assert shown(value) == text


def test_a_number_is_out_of_range_only_where_it_is_far_from_every_class() -> None:
    data = {"x": [0.0, 1.0, 2.0, 100.0, 101.0, 102.0], "y": ["a"] * 3 + ["b"] * 3}
    model = likely.learn(data, "y", families="gaussian", plain=True)
    flags = {x: model.explain({"x": x}).entries[0].flags for x in (1.0, 101.0, 50.0, 110.0)}
    assert flags == {1.0: (), 101.0: (), 50.0: ("out of range",), 110.0: ("out of range",)}


@pytest.mark.parametrize("scale", [0.01, 1.0, 300.0])
def test_far_is_five_standard_deviations_from_every_class_whatever_the_unit(scale) -> None:
    x = scale * np.array([8.0, 12.0, 10.0, 10.0, 18.0, 22.0, 20.0, 20.0])
    model = likely.learn({"x": x, "y": list("aaaabbbb")}, "y", plain=True, families="gaussian", smoothing=0)
    (block,) = model.plain_parameters
    deviation = float(np.std(x[:4]))
    for away, far in ((FAR_DEVIATIONS - 0.1, False), (FAR_DEVIATIONS + 0.1, True)):
        assert block.likelihood.far(20 * scale + away * deviation) is far
        assert block.likelihood.far(10 * scale - away * deviation) is far
    assert not block.likelihood.far(15 * scale)


def test_the_weight_of_a_word_is_its_excess_over_the_average_class_that_it_does_not_rule_out() -> None:
    assert word_weight(Word("a", 1.0, (-1.0, -3.0))) == (0, 1.0)
    assert word_weight(Word("a", 1.0, (-6.0, -3.0, -3.0))) == (1, 1.0)
    assert word_weight(Word("a", 1.0, (-math.inf, -3.0))) == (1, 0.0)
    assert word_weight(Word("a", 1.0, (-math.inf, -3.0, -5.0))) == (1, 1.0)


def test_a_number_in_bins_is_out_of_range_beyond_the_smallest_and_largest_that_were_counted() -> None:
    x = np.linspace(2.0, 9.0, 200)
    model = likely.learn({"x": x, "y": np.where(x + np.sin(7 * x) > 5.5, "a", "b")}, "y")
    flags = {value: model.explain({"x": value}).entries[-1].flags for value in (2.0, 5.0, 9.0, 1.5, 9.5)}
    assert flags == {2.0: (), 5.0: (), 9.0: (), 1.5: ("out of range",), 9.5: ("out of range",)}


@pytest.mark.parametrize(
    ("value", "text"), [(1.23456, "1.2346"), (-2.0, "-2.0000"), (-0.00001, "0.0000"), (-math.inf, "-inf")]
)
def test_a_number_is_printed_with_four_decimals_and_no_minus_before_nothing(value, text) -> None:
    assert number(value) == text


def test_where_every_class_is_ruled_out_the_note_says_so_and_names_none() -> None:
    data = {"c": ["u", "u", "v", "v"], "d": ["p", "p", "q", "q"], "y": ["a", "a", "b", "b"]}
    model = likely.learn(data, "y", plain=True, smoothing=0)
    nothing = ("every class has probability 0 for this row: only the class prior remains",)
    assert model.explain({"c": "u", "d": "q"}).notes == nothing
    assert model.relearn(smoothing=1).explain({"c": "u", "d": "q"}).notes == ()


def test_lines_are_ordered_by_how_far_the_classes_are_apart_and_the_others_are_summed() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    right = {"a": 0.6, "b": 0.95, "c": 0.8}
    data = {name: np.where(rng.random(400) < share, y, 1 - y).tolist() for name, share in right.items()}
    ledger = likely.learn(data | {"y": y.tolist()}, "y", plain=True).explain({"a": 1, "b": 1, "c": 1})
    assert [line[0] for line in ledger.lines()] == ["prior", "b", "c", "a", "sum", "probability"]
    assert [line[0] for line in ledger.lines(top=1)] == ["prior", "b", "(2 more)", "sum", "probability"]
    certain = replace(ledger.entries[0], columns=("d",), evidence=(math.inf, math.inf))  # apart by nothing
    assert [line[0] for line in replace(ledger, entries=(certain, *ledger.entries)).lines()][1:5] == ["b", "c", "a", "d"]
