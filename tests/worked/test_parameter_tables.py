"""Tables of parameters with credible intervals, posteriors and draws of parameters, priors by class, unbiased variances."""

from dataclasses import replace

import numpy as np
import pytest

import likely
from likely import Dirichlet, Gaussian, MEstimate, Text
from likely.errors import UsageError

TENNIS = "src/likely/data/tennis.csv"
# The table of people of the example on Wikipedia's page on naive Bayes: height, weight, foot size.
PEOPLE = {
    "height": [6.0, 5.92, 5.58, 5.92, 5.0, 5.5, 5.42, 5.75],
    "weight": [180.0, 190.0, 170.0, 165.0, 100.0, 150.0, 130.0, 150.0],
    "foot": [12.0, 11.0, 12.0, 10.0, 6.0, 8.0, 7.0, 9.0],
    "sex": ["male"] * 4 + ["female"] * 4,
}


@pytest.fixture(scope="module")
def tennis() -> likely.Model:
    return likely.learn(TENNIS, "PlayTennis", smoothing=1)


def test_a_table_prints_count_probability_and_interval(tennis: likely.Model) -> None:
    lines = str(tennis.parameters["Outlook"]).splitlines()
    assert lines[0] == "Outlook"
    assert lines[1].split() == ["class", "value", "count", "probability", "95", "%", "interval"]
    assert lines[4].split() == ["No", "Sunny", "3", "0.5", "0.1841", "…", "0.8159"]
    assert len(lines) == 2 + 6
    assert "<td>Overcast</td>" in tennis.parameters["Outlook"]._repr_html_()


def test_a_table_still_is_a_sequence_of_dicts(tennis: likely.Model) -> None:
    table = tennis.parameters["Outlook"]
    assert len(table) == 6
    assert table[0] == {
        "column": "Outlook", "class": "No", "value": "Overcast", "count": 0.0, "probability": pytest.approx(1 / 8)
    }  # fmt: skip
    assert [row["probability"] for row in table[3:]] == pytest.approx([5 / 12, 4 / 12, 3 / 12])
    assert table == list(table)


def test_intervals_are_those_of_scipy(tennis: likely.Model) -> None:
    stats = pytest.importorskip("scipy.stats", reason="SciPy IS NOT INSTALLED")
    for row in tennis.parameters["Outlook"].intervals(0.9):
        whole = {"No": 5, "Yes": 9}[row["class"]] + 3
        wanted = stats.beta(row["count"] + 1, whole - row["count"] - 1).ppf([0.05, 0.95])
        assert row["interval"]["probability"] == pytest.approx(tuple(wanted), abs=1e-12)
    model = likely.learn(PEOPLE, "sex", families="gaussian", smoothing=0)
    row = model.parameters["foot"].intervals()[1]
    x = np.array(PEOPLE["foot"][:4])
    mean = stats.t(3, x.mean(), x.std(ddof=1) / 2).ppf([0.025, 0.975])
    assert (row["class"], row["interval"]["mean"]) == ("male", pytest.approx(tuple(mean), abs=1e-12))
    variance = stats.invgamma(1.5, scale=((x - x.mean()) ** 2).sum() / 2).ppf([0.025, 0.975])
    assert row["interval"]["deviation"] == pytest.approx(tuple(np.sqrt(variance)), rel=1e-11)


def test_the_posterior_of_a_parameter_is_dirichlet_of_count_and_pseudocount(tennis: likely.Model) -> None:
    posterior = tennis.parameter_posterior("Outlook", "Yes")
    assert posterior.alpha == {"Overcast": 5.0, "Rain": 4.0, "Sunny": 3.0}
    assert posterior.mean["Sunny"] == 3 / 12
    assert tennis.parameter_posterior("PlayTennis").alpha == {"No": 5.0, "Yes": 9.0}
    for wrong, reported in ((("Outlok", "Yes"), "did you mean"), (("Outlook", "Yess"), "did you mean")):
        with pytest.raises(UsageError, match=reported):
            tennis.parameter_posterior(*wrong)
    with pytest.raises(UsageError, match="calibrated"):
        likely.learn(TENNIS, "PlayTennis").parameter_posterior("Outlook", "Yes")


def test_clusters_have_no_intervals_because_their_rows_are_shared_out() -> None:
    rng = np.random.default_rng(0)
    clusters = likely.cluster({"x": rng.normal(size=60).tolist()}, k=2)
    assert "interval" not in str(clusters.parameters["x"])
    with pytest.raises(UsageError, match="shared out"):
        clusters.model.parameter_posterior("x", clusters.classes[0])
    with pytest.raises(UsageError, match="shared out"):
        clusters.parameters["x"].intervals()


def test_draws_have_the_moments_of_the_posterior(tennis: likely.Model) -> None:
    drawn = tennis.draw_parameters(20_000, seed=1)
    marginal = tennis.parameter_posterior("Outlook", "Yes").marginal("Sunny")
    sunny = drawn["Outlook"]["Yes"]["Sunny"]
    assert sunny.mean() == pytest.approx(marginal.mean, abs=5 * marginal.deviation / 20_000**0.5)
    assert sunny.std() == pytest.approx(marginal.deviation, rel=0.03)
    assert sum(drawn["Outlook"]["Yes"].values()) == pytest.approx(np.ones(20_000))
    again = tennis.draw_parameters(20_000, seed=1)
    assert np.array_equal(again["Wind"]["No"]["Weak"], drawn["Wind"]["No"]["Weak"])
    assert drawn["PlayTennis"]["Yes"].mean() == pytest.approx(9 / 14, abs=0.01)


@pytest.mark.parametrize(("kind", "wanted"), [("multinomial", (2 + 1) / (4 + 3)), ("bernoulli", (1 + 1) / (2 + 2))])
def test_words_have_probabilities_and_intervals(kind: str, wanted: float) -> None:
    """P(w | v) = (n_k + 1) / (n + |Vocabulary|): aa occurs twice among the four words of class p, in one of two texts."""
    texts = {"t": ["aa bb aa", "bb", "aa cc", "cc", "cc bb"], "y": ["p", "p", "q", "q", "q"]}
    model = likely.learn(texts, "y", plain=True, families={"t": Text(kind)})
    row = next(row for row in model.parameters["t"].intervals() if (row["class"], row["value"]) == ("p", "aa"))
    assert row["probability"] == pytest.approx(wanted, abs=1e-15)
    low, high = row["interval"]["probability"]
    assert low < wanted < high
    assert model.parameter_posterior("t", "p").mean["aa"] == pytest.approx(wanted, abs=1e-15)


def test_pseudocounts_may_differ_by_class(tmp_path) -> None:
    by_class = {"Yes": Dirichlet({"Sunny": 3, "Rain": 2, "Overcast": 2, "Snow": 2}), "No": 0.5}
    model = likely.learn(TENNIS, "PlayTennis", smoothing={"Outlook": by_class, "*": 1})
    found = {(row["class"], row["value"]): row["probability"] for row in model.parameters["Outlook"]}
    assert found["Yes", "Sunny"] == pytest.approx((2 + 2) / (9 + 5))
    assert found["Yes", "Snow"] == pytest.approx(1 / 14)
    assert found["No", "Snow"] == pytest.approx(0.5 / 7)
    assert model.parameter_posterior("Outlook", "Yes").alpha == {"Overcast": 6.0, "Rain": 5.0, "Snow": 2.0, "Sunny": 5.0}
    model.save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely")
    assert again.prior == model.prior
    assert again.parameters["Outlook"] == model.parameters["Outlook"]
    relearned = again.relearn(smoothing=1)  # the value Snow is gone with its prior
    assert relearned.parameters["Outlook"][0]["probability"] == pytest.approx(1 / 8)


def test_the_same_pseudocount_in_each_class_is_one_for_all() -> None:
    one, by_class = (
        likely.learn(TENNIS, "PlayTennis", smoothing=each) for each in (2, {"*": {"Yes": 2, "*": MEstimate(0)}})
    )
    both = likely.learn(TENNIS, "PlayTennis", smoothing={"*": {"Yes": 2, "No": 2}})
    assert both.log_marginal_likelihood == pytest.approx(one.log_marginal_likelihood, abs=1e-12)
    assert both.posterior(TENNIS).probabilities == pytest.approx(one.posterior(TENNIS).probabilities, abs=1e-15)
    assert by_class.parameters["Outlook"][0]["probability"] == 0.0  # Overcast never was with No
    with pytest.raises(UsageError, match="differ by class"):
        both.relearn(average=True).posterior(TENNIS)


def test_priors_by_class_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="not 'No'"):
        likely.learn(TENNIS, "PlayTennis", smoothing={"Outlook": {"Yes": 2}})
    with pytest.raises(UsageError, match="gaussian, whose prior cannot differ by class"):
        likely.learn(PEOPLE, "sex", families="gaussian", smoothing={"foot": {"male": 1, "female": 2}})
    with pytest.raises(UsageError, match="pass a number"):
        likely.ByClass({"Yes": MEstimate(3, "background")})


def test_the_people_of_wikipedia_with_variances_divided_by_n_less_one() -> None:
    model = likely.learn(PEOPLE, "sex", families=Gaussian(unbiased=True), smoothing=0)
    by_class = {row["class"]: row for row in model.parameters["height"]}
    assert by_class["male"]["mean"] == pytest.approx(5.855)
    assert by_class["male"]["deviation"] ** 2 == pytest.approx(3.5033e-2, rel=1e-4)
    assert by_class["female"]["deviation"] ** 2 == pytest.approx(9.7225e-2, rel=1e-4)
    joint = np.exp(model.posterior({"height": [6.0], "weight": [130.0], "foot": [8.0]}).log_joint[0])
    assert joint.tolist() == pytest.approx([5.3778e-4, 6.1984e-9], rel=1e-3)  # the page computes with rounded variances
    by_hand = [0.5, 0.5]
    for name, value in (("height", 6.0), ("weight", 130.0), ("foot", 8.0)):
        for c, x in enumerate((np.array(PEOPLE[name][4:]), np.array(PEOPLE[name][:4]))):
            variance = x.var(ddof=1)
            by_hand[c] *= np.exp(-((value - x.mean()) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    assert joint.tolist() == pytest.approx(by_hand, rel=1e-10)
    plain = [row["deviation"] ** 2 for row in model.relearn(families="gaussian").parameters["height"]]
    assert plain == pytest.approx([np.var(PEOPLE["height"][4:]), np.var(PEOPLE["height"][:4])])


def test_shared_variances_are_divided_by_the_rows_less_the_means() -> None:
    model = likely.learn(PEOPLE, "sex", families=Gaussian("class", unbiased=True), smoothing=0)
    x = np.array(PEOPLE["foot"]).reshape(2, 4)
    pooled = ((x - x.mean(1, keepdims=True)) ** 2).sum() / (8 - 2)
    assert [row["deviation"] ** 2 for row in model.parameters["foot"]] == pytest.approx([pooled, pooled])
    assert likely.estimate([1.0, 2.0, 4.0], "gaussian:unbiased").ml["variance"] == pytest.approx(7 / 3)


def test_the_words_of_the_only_text_column_need_no_name() -> None:
    table = {"t": ["red wine", "old car", "new car tax", "wine wine old"] * 2, "y": ["p", "q"] * 4}
    model = likely.learn(table, "y", families={"t": Text("multinomial")}, smoothing=1)
    assert model.top_words(most=2) == model.top_words(most=2, column="t")
    assert all(len(words) == 2 for words in model.top_words(most=2).values())


def test_bins_that_moved_in_one_column_alone_stay_those_of_the_calibration() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    model = likely.learn({"a": rng.normal(y, 1.0), "b": rng.normal(2.0 * y, 1.0), "y": y}, "y")
    assert model.calibration is not None
    assert set(model.calibration.edges) == {"a", "b"}
    moved = model.calibration.edges["b"] + 0.25
    older = replace(model.calibration, edges={**model.calibration.edges, "b": moved})
    found = replace(model, calibration=older).block_parameters
    edges = {p.columns[0]: p.likelihood.edges for p in found[:2]}
    assert edges["a"].tolist() == model.calibration.edges["a"].tolist()
    assert edges["b"].tolist() == moved.tolist()


def test_an_impossible_level_of_the_intervals_is_refused() -> None:
    model = likely.learn("src/likely/data/tennis.csv", target="PlayTennis", plain=True)
    with pytest.raises(UsageError, match="between 0 and 1"):
        model.parameters["Outlook"].intervals(95)
    with pytest.raises(UsageError, match=r"not 'tennis\.likely'"):
        likely.compare_models(model, "tennis.likely")
