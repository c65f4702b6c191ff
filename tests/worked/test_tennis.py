"""THEORY section 4: Naive Bayes on categories, to the last fraction."""

from fractions import Fraction

import numpy as np
import pytest

import likely

F = Fraction
TENNIS = """
Sunny    Hot  High   Weak   No
Sunny    Hot  High   Strong No
Overcast Hot  High   Weak   Yes
Rain     Mild High   Weak   Yes
Rain     Cool Normal Weak   Yes
Rain     Cool Normal Strong No
Overcast Cool Normal Strong Yes
Sunny    Mild High   Weak   No
Sunny    Cool Normal Weak   Yes
Rain     Mild Normal Weak   Yes
Sunny    Mild Normal Strong Yes
Overcast Mild High   Strong Yes
Overcast Hot  Normal Weak   Yes
Rain     Mild High   Strong No
"""
BALL = """
Sunny    Hot  High   Weak   No
Sunny    Hot  High   Strong No
Overcast Hot  High   Weak   Yes
Sunny    Mild High   Strong Yes
Rain     Cool Normal Weak   Yes
Rain     Cool Normal Strong No
"""
NAMES = ("outlook", "temperature", "humidity", "wind")
DAY = dict(zip(NAMES, ("Sunny", "Cool", "High", "Strong"), strict=True))
OVERCAST = DAY | {"outlook": "Overcast"}


def table(text):
    rows = [line.split() for line in text.strip().splitlines()]
    return {name: [row[j] for row in rows] for j, name in enumerate((*NAMES, "play"))}


def tennis(smoothing, **settings):
    return likely.learn(table(TENNIS), "play", smoothing=smoothing, **settings)


def by_hand(data, row, pseudocount, classes=("No", "Yes")):
    """P(class) ΠP(value | class) with fractions, straight from the definition."""
    found = []
    for label in classes:
        here = [i for i, y in enumerate(data["play"]) if y == label]
        joint = F(len(here), len(data["play"]))
        for name, value in row.items():
            q = len(set(data[name]))
            joint *= (sum(data[name][i] == value for i in here) + pseudocount) / (len(here) + q * pseudocount)
        found.append(joint)
    return found


PUBLISHED = [
    (F(0), F(18, 875), F(1, 189), 0.795417),
    (F(1, 3), F(3250, 163863), F(5, 841), 0.769374),
    (F(1, 2), F(105, 5408), F(1, 160), 0.756484),
    (F(1), F(25, 1372), F(6, 847), 0.720067),
]


@pytest.mark.parametrize(("pseudocount", "no", "yes", "chance_of_no"), PUBLISHED)
def test_the_new_day_has_the_published_fractions_under_every_pseudocount(pseudocount, no, yes, chance_of_no):
    assert by_hand(table(TENNIS), DAY, pseudocount) == [no, yes]
    posterior = tennis(pseudocount).posterior(DAY)
    assert posterior.classes == ("No", "Yes")
    np.testing.assert_allclose(np.exp(posterior.log_joint[0]), [float(no), float(yes)], rtol=1e-12)
    assert posterior.probabilities[0, 0] == pytest.approx(float(no / (no + yes)), rel=1e-12)
    assert posterior.probabilities[0, 0] == pytest.approx(chance_of_no, abs=5e-7)
    assert np.exp(posterior.log_evidence[0]) == pytest.approx(float(no + yes), rel=1e-12)
    assert tennis(pseudocount).predict(DAY).tolist() == ["No"]


@pytest.mark.parametrize("smoothing", ["1/3", F(1, 3), 1 / 3])
def test_a_third_may_be_written_as_text_as_a_fraction_or_as_a_float(smoothing):
    np.testing.assert_allclose(np.exp(tennis(smoothing).posterior(DAY).log_joint[0, 0]), 3250 / 163863, rtol=1e-12)


@pytest.mark.parametrize("pseudocount", [F(0), F(1, 3), F(1, 2), F(1), F(7, 2)])
def test_every_day_that_can_be_described_has_the_fractions_of_the_definition(pseudocount):
    data = table(TENNIS)
    model = tennis(pseudocount)
    days = [
        dict(zip(NAMES, values, strict=True))
        for values in np.stack(np.meshgrid(*(sorted(set(data[n])) for n in NAMES)), -1).reshape(-1, 4).tolist()
    ]
    assert len(days) == 36
    expected = [[float(p) for p in by_hand(data, day, pseudocount)] for day in days]
    np.testing.assert_allclose(np.exp(model.posterior(days).log_joint), expected, rtol=1e-12)


def test_a_zero_count_overrules_all_other_evidence_and_the_explanation_flags_it():
    model = tennis(0)
    posterior = model.posterior(OVERCAST)
    assert posterior.probabilities[0].tolist() == [0.0, 1.0]
    assert posterior.log_joint[0, 0] == -np.inf
    ledger = model.explain(OVERCAST)
    assert ledger.posterior == {"No": 0.0, "Yes": 1.0}
    assert next(e for e in ledger.entries if e.name == "outlook").flags == ("zero",)
    assert any("rules out: No" in note for note in ledger.notes)


def test_laplace_gives_the_overcast_day_its_published_chance():
    no, yes = by_hand(table(TENNIS), OVERCAST, F(1))
    posterior = tennis(1).posterior(OVERCAST)
    assert posterior.probabilities[0, 1] == pytest.approx(0.721583, abs=5e-7)
    assert posterior.probabilities[0, 1] == pytest.approx(float(yes / (no + yes)), rel=1e-12)


def test_playing_ball_has_odds_of_one_to_four():
    data = table(BALL)
    day = dict(zip(NAMES, ("Sunny", "Cool", "Normal", "Strong"), strict=True))
    assert by_hand(data, day, F(0)) == [F(4, 162), F(1, 162)]
    joint = np.exp(likely.learn(data, "play", smoothing=0).posterior(day).log_joint[0])
    np.testing.assert_allclose(joint, [4 / 162, 1 / 162], rtol=1e-12)


def test_tennis_has_22_table_entries_13_free_parameters_and_71_without_independence():
    count = tennis(1).parameter_count
    assert (count.table_entries, count.free, count.free_without_independence) == (22, 13, 71)


def test_all_columns_in_one_joint_table_are_the_71_parameters_without_independence():
    count = tennis(1, joint=[NAMES]).parameter_count
    assert (count.table_entries, count.free, count.free_without_independence) == (2 * 36 + 2, 71, 71)


def test_the_shares_of_the_classes_are_nine_and_five_fourteenths_whatever_the_smoothing():
    for smoothing in (0, 1, 10):
        rows = tennis(smoothing).parameters["play"]
        assert [(r["class"], r["count"], r["probability"]) for r in rows] == [("No", 5, 5 / 14), ("Yes", 9, 9 / 14)]


def test_the_readable_tables_hold_counts_and_smoothed_shares():
    rows = tennis(1).parameters["outlook"]
    found = {(r["class"], r["value"]): (r["count"], r["probability"]) for r in rows}
    assert found["No", "Overcast"] == (0, pytest.approx(1 / 8, rel=1e-12))
    assert found["Yes", "Sunny"] == (2, pytest.approx(3 / 12, rel=1e-12))
    assert len(rows) == 6


@pytest.mark.parametrize("m", [F(1, 2), F(3), F(40)])
def test_the_m_estimate_takes_any_prior_over_the_values(m):
    p = {"Sunny": F(1, 2), "Overcast": F(1, 3), "Rain": F(1, 6)}
    smoothing = {"outlook": likely.MEstimate(m, p={v: float(s) for v, s in p.items()}), "*": 0}
    rows = tennis(smoothing).parameters["outlook"]
    counts = {"No": {"Sunny": 3, "Overcast": 0, "Rain": 2}, "Yes": {"Sunny": 2, "Overcast": 4, "Rain": 3}}
    for row in rows:
        seen = counts[row["class"]]
        expected = (seen[row["value"]] + m * p[row["value"]]) / (sum(seen.values()) + m)
        assert row["probability"] == pytest.approx(float(expected), rel=1e-12)


def test_the_m_estimate_is_uniform_by_default_and_m_equal_to_q_is_laplace():
    for row, other in zip(
        tennis(likely.MEstimate(3)).parameters["outlook"], tennis(1).parameters["outlook"], strict=True
    ):
        assert row["probability"] == pytest.approx(other["probability"], rel=1e-12)


def test_a_value_that_the_m_estimate_names_but_no_row_shows_keeps_its_imagined_share():
    p = {"Sunny": 0.4, "Overcast": 0.2, "Rain": 0.2, "Snow": 0.2}
    model = tennis({"outlook": likely.MEstimate(5, p=p), "*": 1})
    shares = {(r["class"], r["value"]): r["probability"] for r in model.parameters["outlook"]}
    assert shares["No", "Snow"] == pytest.approx((0 + 5 * 0.2) / (5 + 5), rel=1e-12)
    assert shares["Yes", "Sunny"] == pytest.approx((2 + 5 * 0.4) / (9 + 5), rel=1e-12)
    entry = next(e for e in model.explain(DAY | {"outlook": "Snow"}).entries if e.name == "outlook")
    np.testing.assert_allclose(np.exp(entry.evidence), [1 / 10, 1 / 14], rtol=1e-12)


def test_a_dirichlet_prior_imagines_beta_minus_one_rows_of_each_value():
    betas = {"Sunny": 2.0, "Overcast": 4.0, "Rain": 1.0}
    rows = tennis({"outlook": likely.Dirichlet(betas), "*": 0}).parameters["outlook"]
    counts = {"No": {"Sunny": 3, "Overcast": 0, "Rain": 2}, "Yes": {"Sunny": 2, "Overcast": 4, "Rain": 3}}
    for row in rows:
        seen = counts[row["class"]]
        top = seen[row["value"]] + betas[row["value"]] - 1
        assert row["probability"] == pytest.approx(top / sum(seen[v] + betas[v] - 1 for v in betas), rel=1e-12)
    assert tennis(likely.Dirichlet(2)).parameters == tennis(1).parameters
    assert tennis(likely.Dirichlet(1)).parameters == tennis(0).parameters


def test_a_dirichlet_below_one_has_no_mode_inside_and_is_refused():
    with pytest.raises(likely.errors.UsageError, match="at least 1"):
        tennis(likely.Dirichlet(0.5))
    with pytest.raises(likely.errors.UsageError, match="above 0"):
        likely.Dirichlet(0)


def test_per_column_priors_leave_the_other_columns_alone():
    mixed = tennis({"outlook": 0.5, "*": 1}).parameters
    half, one = tennis(0.5).parameters, tennis(1).parameters
    assert mixed["outlook"] == half["outlook"]
    assert all(mixed[name] == one[name] for name in NAMES[1:])
