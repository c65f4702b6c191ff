"""A hidden Markov model as a value: read any rows, count parameters, compare, add, save."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import likely
from likely.errors import LikelyWarning, SchemaError, UsageError
from likely.latent.fit_summary import FitSummary

ROW_METHODS = ("predict", "decode", "posterior", "predict_proba", "log_evidence")
LENGTHS = [50, 70, 80]


def table(seed=0):
    """Three sequences of a number and a category, with a gap."""
    rng = np.random.default_rng(seed)
    hidden = (np.arange(200) // 20) % 2
    x = rng.normal(4 * hidden, 1).round(3).tolist()
    x[7] = None
    mood = np.where(rng.random(200) < 0.2 + 0.6 * hidden, "good", "low").tolist()
    return {"who": np.repeat(["ann", "bob", "cat"], LENGTHS).tolist(), "x": x, "mood": mood}


@pytest.fixture(scope="module")
def chain():
    return likely.sequences(table(), 2, by="who")


@pytest.mark.parametrize("method", ROW_METHODS)
def test_every_method_reads_all_that_sequences_reads(chain, method, tmp_path):
    frame = pd.DataFrame(table())
    frame.to_csv(tmp_path / "days.csv", index=False)
    frame.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    answer = getattr(chain, method)
    expected = answer(chain.opened(table(), by="who"))
    assert len(expected) == (3 if method == "log_evidence" else 200)
    for source in (table(), frame, pl.DataFrame(table()), tmp_path / "days.csv", str(tmp_path / "days.csv")):
        np.testing.assert_array_equal(answer(source, by="who"), expected)
    np.testing.assert_array_equal(answer(tmp_path / "comma.csv", by="who", decimal=","), expected)
    without = {name: column for name, column in table().items() if name != "who"}
    np.testing.assert_array_equal(answer(without, lengths=LENGTHS), expected)
    assert not np.array_equal(chain.log_evidence(without).sum(), chain.log_evidence(without, lengths=LENGTHS).sum())


def test_predicted_states_are_the_names_of_decoded_positions(chain):
    path = chain.decode(table(), by="who")
    assert set(path.tolist()) == {0, 1}
    assert chain.predict(table(), by="who").tolist() == [chain.states[place] for place in path]
    assert (chain.predict_proba(table(), by="who") == chain.posterior(table(), by="who")).all()
    cells, states = chain.sample(30, seed=1)
    assert chain.posterior(cells).argmax(1).tolist() != [0] * 30
    assert states.shape == (30,)


@pytest.mark.parametrize("method", [*ROW_METHODS, "with_log_likelihood"])
def test_ends_of_sequences_that_contradict_or_have_no_effect_are_refused(chain, method):
    answer = getattr(chain, method)
    with pytest.raises(UsageError, match="pass one of them"):
        answer(table(), by="who", lengths=LENGTHS)
    opened = chain.opened(table(), by="who")
    for given in ({"by": "who"}, {"lengths": LENGTHS}, {"encoding": "latin-1"}):
        with pytest.raises(UsageError, match=f"{next(iter(given))}= has no effect"):
            answer(opened, **given)
    with pytest.raises(SchemaError, match="has no column 'whom'"):
        likely.sequences(table(), 2, by="whom")
    with pytest.raises(UsageError, match="sum to 200 rows"):
        answer(table(), lengths=[1, 2])
    for source in (table(), pd.DataFrame(table())):
        with pytest.raises(SchemaError, match="has no column 'whom'"):
            answer(source, by="whom")


# ---------------------------------------------------------------- parameters

FREE = {
    "one Gaussian column, two states: 2 · 2 + 2 + 1": (2, {"families": "gaussian", "ignore": ["y", "c"]}, 7),
    "one Gaussian column, three states: 3 · 2 + 6 + 2": (3, {"families": "gaussian", "ignore": ["y", "c"]}, 14),
    "one Gaussian column, one state: 2": (1, {"families": "gaussian", "ignore": ["y", "c"]}, 2),
    "two Gaussian columns, two states: 2 · 4 + 2 + 1": (2, {"families": "gaussian", "ignore": ["c"]}, 11),
    "full covariances, three states: 3 · (2 + 3) + 6 + 2": (3, {"families": "joint", "ignore": ["c"]}, 23),
    "three categories, two states: 2 · 2 + 2 + 1": (2, {"ignore": ["x", "y"]}, 7),
    "a Gaussian column and three categories, two states: 2 · (2 + 2) + 2 + 1": (2, {"ignore": ["y"]}, 11),
}


@pytest.mark.filterwarnings("ignore:EM has not converged", "ignore:states .* never occur")
@pytest.mark.parametrize(("k", "settings", "free"), FREE.values(), ids=list(FREE))
def test_free_parameters_are_those_counted_by_hand(k, settings, free):
    rng = np.random.default_rng(0)
    hidden = (np.arange(120) // 15) % 3
    data = {"x": rng.normal(5 * hidden, 1), "y": rng.normal(-hidden, 1), "c": rng.choice(list("uvw"), 120)}
    made = likely.sequences(data, k, n_init=1, max_iter=20, **settings)
    assert made.free_parameters == free
    assert made.aic == pytest.approx(-2 * made.log_likelihood + 2 * free, rel=1e-12)
    assert made.bic == pytest.approx(-2 * made.log_likelihood + free * np.log(120), rel=1e-12)


@pytest.mark.parametrize(("families", "kind"), [("gaussian", "diag"), ("joint", "full")])
@pytest.mark.parametrize("k", [2, 3])
def test_aic_and_bic_are_those_of_hmmlearn(families, kind, k):
    hmm = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn IS NOT INSTALLED: nothing is compared with it")
    rng = np.random.default_rng(k)
    hidden = (np.arange(300) // 25) % k
    x = rng.normal(4.0 * hidden[:, None] * [1, -1], [1, 1.5])
    lengths = [120, 180]
    fitted = likely.HiddenMarkov(k, families).fit(x, lengths=lengths)
    rival = hmm.GaussianHMM(k, kind)
    rival.startprob_, rival.transmat_, rival.means_ = fitted.start_, fitted.transition_, fitted.means_
    rival.covars_ = fitted.covariances_
    rival.n_features = 2
    assert fitted.chain_.aic == pytest.approx(rival.aic(x, lengths), rel=1e-9)
    assert fitted.chain_.bic == pytest.approx(rival.bic(x, lengths), rel=1e-9)
    assert fitted.aic(x, lengths) == pytest.approx(rival.aic(x, lengths), rel=1e-9)
    assert fitted.bic(x, lengths) == pytest.approx(rival.bic(x, lengths), rel=1e-9)


# ---------------------------------------------------------------- equality


@pytest.mark.parametrize("k", [2, "auto"])
def test_a_model_equals_its_file_and_no_other(k, tmp_path):
    made = likely.sequences(table(), k, by="who")
    made.save(tmp_path / "h.likely")
    again = likely.load(tmp_path / "h.likely")
    assert again == made
    assert made == again
    assert made != likely.sequences(table(1), 2, by="who")
    assert made != likely.sequences(table(), 4, by="who")
    assert made != made.emission
    assert made != "a model"
    changed = {
        "start_counts": made.start_counts + 1.0,
        "transition_counts": made.transition_counts + 1.0,
        "pseudocount": 7.0,
        "summary": None,
        "tried": {9: 1.0},
        "emission": made.emission.relearn(smoothing=3.0),
    }
    for name, value in changed.items():
        assert replace(made, **{name: value}) != made, name
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


def test_summaries_are_equal_where_what_was_not_computed_is_the_same():
    one = FitSummary(-1.0, (-2.0, -1.0), float("nan"), converged=True, seed=3)
    assert one == FitSummary(-1.0, (-2.0, -1.0), float("-nan"), converged=True, seed=3)
    for name, value in {"log_likelihood": -1.5, "trace": (-2.0,), "entropy": 0.0, "converged": False, "distance_left": 1.0,
                        "seed": None}.items():  # fmt: skip
        assert replace(one, **{name: value}) != one, name
    assert one != (-1.0, (-2.0, -1.0))


def test_the_model_of_the_emissions_has_the_name_that_clusters_have_for_theirs(chain):
    assert chain.model is chain.emission
    assert chain.model.classes == chain.states


# ---------------------------------------------------------------- sums


def halves(seed=3):
    rng = np.random.default_rng(seed)
    hidden = (np.arange(240) // 20) % 2
    x = rng.normal(3.0 * hidden, 1.0)[:, None]
    return x, hidden, [100, 140]


@pytest.mark.filterwarnings("ignore:states are merged by their names")
def test_a_sum_of_models_of_known_states_is_the_model_of_all_sequences():
    x, hidden, lengths = halves()
    one = likely.HiddenMarkov(2, smoothing=0.5).fit(x[:100], states=hidden[:100]).chain_
    other = likely.HiddenMarkov(2, smoothing=0.5).fit(x[100:], states=hidden[100:]).chain_
    whole = likely.HiddenMarkov(2, smoothing=0.5).fit(x, lengths=lengths, states=hidden).chain_
    for both in (one + other, other + one):
        np.testing.assert_allclose(both.start_counts, [1.0, 1.0])
        np.testing.assert_allclose(both.transition_counts, whole.transition_counts)
        np.testing.assert_allclose(both.transition, whole.transition)
        np.testing.assert_allclose(both.emission.tally.classes, whole.emission.tally.classes)
        assert both.emission.tally.rows == 240


@pytest.mark.filterwarnings("ignore:states are merged by their names", "ignore:EM did not converge")
def test_a_sum_of_e_steps_from_one_start_is_the_e_step_on_all_sequences():
    x, hidden, lengths = halves()
    emission = likely.learn({"x0": x[:, 0], "s": hidden}, "s", families="gaussian", smoothing=0)
    start = {"start": [0.6, 0.4], "transition": [[0.8, 0.2], [0.3, 0.7]], "emission": emission}
    # The first of two iterations scores the given start, and ends with its expected counts.
    once = likely.HiddenMarkov(2, "gaussian", max_iter=2, tol=-np.inf, smoothing=0, start=start)
    one, other = once.fit(x[:100]).chain_, once.fit(x[100:]).chain_
    whole = once.fit(x, lengths=lengths).chain_
    both = one + other
    np.testing.assert_allclose(both.start, whole.start, rtol=1e-9)
    np.testing.assert_allclose(both.transition, whole.transition, rtol=1e-9)
    np.testing.assert_allclose(both.posterior({"x0": x[:, 0]}), whole.posterior({"x0": x[:, 0]}), rtol=1e-7)


def test_a_sum_has_the_log_likelihood_of_neither_part(chain, tmp_path):
    other = likely.sequences(table(1), 2, by="who")
    with pytest.warns(LikelyWarning, match="merged by their names"):
        both = chain + other
    np.testing.assert_allclose(both.transition_counts, chain.transition_counts + other.transition_counts)
    assert both.transition_counts.sum() == pytest.approx(400 - 6)
    assert both.trace == ()
    assert not both.converged
    assert both.tried == {}
    for name in ("log_likelihood", "bic", "aic"):
        with pytest.raises(UsageError, match="with_log_likelihood"):
            getattr(both, name)
    both.save(tmp_path / "b.likely")
    assert likely.load(tmp_path / "b.likely") == both
    rows = {name: [*table()[name], *table(1)[name]] for name in table()}
    known = both.with_log_likelihood(rows, lengths=LENGTHS * 2)
    assert known.log_likelihood == pytest.approx(
        both.log_evidence(table(), by="who").sum() + both.log_evidence(table(1), by="who").sum()
    )
    assert known.bic == pytest.approx(-2 * known.log_likelihood + known.free_parameters * np.log(400))
    assert chain.with_log_likelihood(table(), by="who").log_likelihood == pytest.approx(chain.log_likelihood, rel=1e-12)


@pytest.mark.filterwarnings("ignore:states are merged by their names")
def test_states_are_added_by_name_whatever_their_order():
    one, other = umbrella(), umbrella()
    tally = other.emission.tally.of_classes([1, 0], ("sun", "rain"))
    swapped = replace(
        other, emission=replace(other.emission, tally=tally), start_counts=np.array([1.0, 5.0]),
        transition_counts=np.array([[0.0, 2.0], [3.0, 0.0]]),
    )  # fmt: skip
    assert (one.states, swapped.states) == (("rain", "sun"), ("sun", "rain"))
    for both in (one + swapped, swapped + one):
        at = [both.states.index(state) for state in ("rain", "sun")]
        np.testing.assert_allclose(both.start_counts[at], [6.0, 4.0])
        np.testing.assert_allclose(both.transition_counts[np.ix_(at, at)], [[7.0, 6.0], [5.0, 7.0]])


def umbrella():
    rows = {"umbrella": ["yes"] * 6 + ["no"] * 4, "weather": ["rain"] * 6 + ["sun"] * 4}
    emission = likely.learn(rows, "weather", plain=True)
    return likely.HiddenMarkovModel(emission, np.array([1.0, 3.0]), np.array([[7.0, 3.0], [3.0, 7.0]]))


def test_models_of_other_states_or_of_no_sequences_are_not_added(chain):
    three = likely.sequences(table(), 3, by="who")
    with pytest.raises(UsageError, match="same number of states"):
        chain + three
    with pytest.raises(TypeError):
        chain + chain.emission


def test_a_model_that_em_did_not_fit_names_the_remedy():
    guard = umbrella()
    with pytest.raises(UsageError, match="with_log_likelihood"):
        _ = guard.log_likelihood
    known = guard.with_log_likelihood({"umbrella": ["yes", "no"]})
    assert known.log_likelihood == pytest.approx(guard.log_evidence({"umbrella": ["yes", "no"]})[0])
