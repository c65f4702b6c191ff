"""Decisions: expected loss by hand, reject option, thresholds, and curves equal to scikit-learn's."""

from fractions import Fraction

import numpy as np
import pytest

import likely
from likely.bayes.decisions import Costs, Ranking, by_threshold
from likely.errors import UsageError

CLASSES = ("no", "yes")
P = np.array([[0.9, 0.1], [0.7, 0.3], [0.5, 0.5], [0.2, 0.8]])


def test_a_missed_yes_that_costs_five_moves_the_threshold_to_one_sixth() -> None:
    costs = Costs.of({"yes": {"no": 5}}, CLASSES)
    assert costs.matrix.tolist() == [[0.0, 1.0], [5.0, 0.0]]
    assert costs.expected(P)[1].tolist() == pytest.approx([1.5, 0.7])
    assert costs.decide(P).tolist() == [0, 1, 1, 1]
    for p in (1 / 6 - 1e-9, 1 / 6 + 1e-9):
        assert costs.decide(np.array([[1 - p, p]]))[0] == (p > 1 / 6)


def test_a_reject_option_is_taken_where_no_class_is_sure_enough() -> None:
    costs = Costs.of({"*": {"ask": 0.25}}, CLASSES)
    assert costs.decisions == ("no", "yes", "ask")
    assert [costs.decisions[i] for i in costs.decide(P)] == ["no", "ask", "ask", "yes"]
    assert costs.total(np.array([0, 1]), np.array([2, 0]), np.ones(2)) == 1.25


def test_nonsense_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="did you mean"):
        Costs.of({"yess": {"no": 5}}, CLASSES)
    with pytest.raises(UsageError, match="'ask' has no cost for 'yes'"):
        Costs.of({"no": {"ask": 0.2}}, CLASSES)
    with pytest.raises(UsageError, match="finite number"):
        Costs.of({"yes": {"no": float("nan")}}, CLASSES)
    with pytest.raises(UsageError, match="between 0 and 1"):
        by_threshold(P, CLASSES, {"yes": 3})
    with pytest.raises(UsageError, match="3 classes"):
        by_threshold(np.ones((1, 3)) / 3, ("a", "b", "c"), 0.5)


def test_a_threshold_of_one_class() -> None:
    assert by_threshold(P, CLASSES, 0.3).tolist() == [0, 1, 1, 1]
    assert by_threshold(P, CLASSES, {"yes": 0.6}).tolist() == [0, 0, 0, 1]
    three = np.array([[0.5, 0.3, 0.2], [0.45, 0.35, 0.2]])
    assert by_threshold(three, ("a", "b", "c"), {"b": 0.33}).tolist() == [0, 1]
    assert by_threshold(three, ("a", "b", "c"), {"a": 0.9}).tolist() == [1, 1]


def test_curves_and_areas_are_scikit_learn_s() -> None:
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    rng = np.random.default_rng(0)
    y, w = rng.random(300) < 0.3, rng.integers(1, 4, 300).astype(float)
    scores = np.round(np.where(y, rng.beta(3, 2, 300), rng.beta(2, 3, 300)), 2)
    ranking = Ranking.of(scores, y, w)
    assert ranking.roc_area == pytest.approx(roc_auc_score(y, scores, sample_weight=w), rel=1e-12)
    assert ranking.average_precision == pytest.approx(average_precision_score(y, scores, sample_weight=w), rel=1e-12)
    x, rate, _ = roc_curve(y, scores, sample_weight=w, drop_intermediate=False)
    np.testing.assert_allclose(ranking.roc[0], x)
    np.testing.assert_allclose(ranking.roc[1], rate)
    precision, recall, _ = precision_recall_curve(y, scores, sample_weight=w)
    np.testing.assert_allclose(ranking.precision_recall[0][1:], recall[:-1][::-1])
    np.testing.assert_allclose(ranking.precision_recall[1][1:], precision[:-1][::-1])


def test_the_best_threshold_has_the_lowest_cost_of_all() -> None:
    rng = np.random.default_rng(1)
    y = rng.random(200) < 0.4
    scores = np.where(y, rng.beta(3, 2, 200), rng.beta(2, 3, 200))
    ranking = Ranking.of(scores, y)
    for false_positive, false_negative in ((1, 1), (5, 1), (1, 9)):
        threshold, cost = ranking.best_threshold(false_positive, false_negative)

        def mean_cost(t: float, fp: float = false_positive, fn: float = false_negative) -> float:
            return float((fp * ((scores >= t) & ~y).sum() + fn * ((scores < t) & y).sum()) / 200)

        assert mean_cost(threshold) == pytest.approx(cost)
        assert cost <= min(mean_cost(t) for t in np.linspace(0, 1, 500)) + 1e-12
    assert ranking.cost_curve()[0][1] == ranking.cost_curve()[-1][1] == 0.0


def test_the_areas_of_an_unknown_class_are_refused() -> None:
    table = {"x": [0.1, 0.9, 0.2, 1.1], "y": list("abab")}
    found = likely.evaluate(table, "y", model=likely.learn(table, "y", plain=True))
    for area in (found.class_auc, found.average_precision):
        with pytest.raises(UsageError, match="'c' is no class"):
            area("c")
    assert found.class_auc("b") == 1.0


def test_the_best_threshold_can_be_applied_where_scores_reach_one() -> None:
    """Ranked first are two rows of the other class with a probability of 1: best is to take none."""
    scores, positive = np.array([1.0, 1.0, 0.5]), np.array([False, False, True])
    threshold, cost = Ranking.of(scores, positive).best_threshold()
    taken = by_threshold(np.column_stack([1 - scores, scores]), ("no", "yes"), threshold) == 1
    assert (taken != positive).mean() == pytest.approx(cost) == pytest.approx(1 / 3)
    near = np.array([1.0, np.nextafter(1.0, 0.0)])
    threshold, cost = Ranking.of(near, np.array([True, False])).best_threshold()
    assert cost == 0.0
    assert (near >= threshold).tolist() == [True, False]


def test_a_threshold_may_be_any_real_number_but_no_percentage() -> None:
    shares = np.array([[0.6, 0.4], [0.8, 0.2]])
    for threshold in (np.float32(0.3), np.float64(0.3), Fraction(3, 10)):
        assert by_threshold(shares, ("no", "yes"), threshold).tolist() == [1, 0]
    for threshold in (30, 1.5, -0.1, True, "0.3", np.nan):
        with pytest.raises(UsageError, match="between 0 and 1"):
            by_threshold(shares, ("no", "yes"), threshold)
