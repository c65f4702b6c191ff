"""Hidden Markov models beside every path written out, and beside the umbrella of the textbook."""

import itertools

import numpy as np
import pytest

import likely
from likely.engines import forward_backward
from likely.engines.sequence_rows import in_sequences
from likely.errors import DataError, UsageError
from likely.latent.hidden_markov_model import HiddenMarkovModel


def enumerated(logs, start, move):
    """Log evidence, shares, moves and best path of one sequence, by writing out every path."""
    rows, k = logs.shape
    paths = list(itertools.product(range(k), repeat=rows))
    with np.errstate(divide="ignore"):
        log_start, log_move = np.log(start), np.log(move)
    each = [
        log_start[p[0]]
        + sum(logs[t, p[t]] for t in range(rows))
        + sum(log_move[a, b] for a, b in itertools.pairwise(p))
        for p in paths
    ]
    evidence = np.logaddexp.reduce(each)
    shares, moves = np.zeros((rows, k)), np.zeros((k, k))
    for path, value in zip(paths, each, strict=True):
        share = np.exp(value - evidence)
        shares[np.arange(rows), path] += share
        for a, b in itertools.pairwise(path):
            moves[a, b] += share
    return evidence, shares, moves, paths[int(np.argmax(each))]


def drawn(rng, k, rows, spread=2.0, zeros=0.0):
    move = rng.dirichlet(np.ones(k), k) * (rng.random((k, k)) >= zeros) + 1e-3 * np.eye(k)
    start = rng.dirichlet(np.ones(k))
    return rng.normal(0, spread, (rows, k)), start, move / move.sum(1, keepdims=True)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("zeros", [0.0, 0.5])
@pytest.mark.parametrize("spread", [1.0, 30.0, 800.0])
def test_forward_backward_and_viterbi_are_the_sum_over_all_paths(seed, zeros, spread):
    rng = np.random.default_rng(seed)
    k = 2 + seed % 2
    lengths = [1, 5, 3, 7 if k == 2 else 6]
    pieces = [drawn(rng, k, n, spread, zeros)[0] for n in lengths]
    _, start, move = drawn(rng, k, 1, spread, zeros)
    edges = np.cumsum([0, *lengths])
    weights = np.repeat([1.0, 0.5, 2.0, 3.0], lengths)
    found = forward_backward.state_posteriors(lambda: np.concatenate(pieces), start, move, edges, weights)
    path = forward_backward.best_path(np.concatenate(pieces), start, move, edges)
    moves = np.zeros((k, k))
    for s, logs in enumerate(pieces):
        evidence, shares, moved, best = enumerated(logs, start, move)
        part, w = slice(edges[s], edges[s + 1]), weights[edges[s]]
        assert found.log_likelihood[s] == pytest.approx(evidence, rel=1e-12, abs=1e-10)
        np.testing.assert_allclose(found.responsibilities[part], w * shares, rtol=1e-9, atol=1e-12)
        assert tuple(path[part]) == best
        moves += w * moved
    np.testing.assert_allclose(found.transition_counts, moves, rtol=1e-9, atol=1e-12)


def test_what_no_proportion_can_hold_is_gone_through_in_logarithms():
    """From left to right only: the state that fits the first rows worst by far is the only one that fits the last."""
    logs = np.array([[0.0, -900.0], [0.0, -900.0], [-3000.0, 0.0], [-3000.0, 0.0], [-1.0, -2000.0]])
    start, move = np.array([0.5, 0.5]), np.array([[1.0, 0.0], [1e-300, 1.0 - 1e-300]])
    found = forward_backward.state_posteriors(logs.copy, start, move, np.array([0, 5]), np.ones(5))
    evidence, shares, moves, best = enumerated(logs, start, move)
    assert found.log_likelihood[0] == pytest.approx(evidence, rel=1e-12)
    np.testing.assert_allclose(found.responsibilities, shares, atol=1e-12)
    np.testing.assert_allclose(found.transition_counts, moves, atol=1e-12)
    assert tuple(forward_backward.best_path(logs, start, move, np.array([0, 5]))) == best


def test_of_equally_good_paths_the_first_is_taken():
    path = forward_backward.best_path(np.zeros((6, 3)), np.full(3, 1 / 3), np.full((3, 3), 1 / 3), np.array([0, 4, 6]))
    assert path.tolist() == [0] * 6


def test_a_row_that_no_state_allows_is_impossible_and_contributes_nothing():
    logs = np.array([[0.0, -3.0], [-np.inf, -np.inf], [-3.0, 0.0]])
    start, move = np.array([0.5, 0.5]), np.array([[0.8, 0.2], [0.3, 0.7]])
    found = forward_backward.state_posteriors(logs.copy, start, move, np.array([0, 3]), np.ones(3))
    assert found.log_likelihood[0] == -np.inf
    np.testing.assert_allclose(found.responsibilities, enumerated(np.nan_to_num(logs, neginf=0.0), start, move)[1], rtol=1e-12)


def test_a_million_steps_neither_fade_nor_overflow():
    rng = np.random.default_rng(0)
    n = 1_000_000
    logs = rng.normal(-500, 5, (n, 3))
    move = np.full((3, 3), 1 / 3)
    found = forward_backward.state_posteriors(logs.copy, np.full(3, 1 / 3), move, np.array([0, n]), np.ones(n))
    expected = (np.logaddexp.reduce(logs, axis=1) - np.log(3)).sum()  # every state after every other: rows stand alone
    assert found.log_likelihood[0] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(found.responsibilities.sum(1), 1.0, rtol=1e-12)
    assert found.transition_counts.sum() == pytest.approx(n - 1)


def umbrella():
    """Russell and Norvig's guard: rain follows rain in 7 of 10 days; umbrellas in 9 of 10 wet and 2 of 10 dry days."""
    table = {"umbrella": ["yes"] * 9 + ["no"] + ["yes"] * 2 + ["no"] * 8, "weather": ["rain"] * 10 + ["sun"] * 10}
    emission = likely.learn(table, "weather", smoothing=0)
    return HiddenMarkovModel(emission, np.array([1.0, 1.0]), np.array([[7.0, 3.0], [3.0, 7.0]]))


def test_two_umbrellas_make_rain_on_the_first_day_as_likely_as_on_the_second():
    guard = umbrella()
    wet = guard.posterior(guard.opened({"umbrella": ["yes", "yes"]}))[:, 0]
    # Smoothing and filtering of the textbook agree here, for the model is the same backwards: 0.883.
    np.testing.assert_allclose(wet, [0.8834, 0.8834], atol=5e-5)
    assert guard.log_evidence(guard.opened({"umbrella": ["yes"]}))[0] == pytest.approx(np.log(0.5 * 0.9 + 0.5 * 0.2))


def test_the_most_likely_weather_of_five_days_is_that_of_the_textbook():
    guard = umbrella()
    days = guard.opened({"umbrella": ["yes", "yes", "no", "yes", "yes"]})
    assert [guard.states[s] for s in guard.decode(days)] == ["rain", "rain", "sun", "rain", "rain"]


def test_missing_cells_add_nothing():
    guard = umbrella()
    gap = guard.opened({"umbrella": ["yes", None, "yes"]})
    with_gap = 0.5 * np.array([0.9, 0.2]) @ np.linalg.matrix_power([[0.7, 0.3], [0.3, 0.7]], 2) @ [0.9, 0.2]
    assert guard.log_evidence(gap)[0] == pytest.approx(np.log(with_gap), rel=1e-12)
    assert guard.log_evidence(guard.opened({"umbrella": [None] * 3 + ["yes"]}))[0] == pytest.approx(np.log(0.55))


def test_a_column_names_the_sequences_whether_or_not_their_rows_stand_together():
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(0, 1, 60), rng.normal(5, 1, 60)])
    name = rng.permutation(np.repeat(["a", "b", "c"], 40))
    order = np.argsort([list(dict.fromkeys(name)).index(n) for n in name], kind="stable")
    apart = likely.sequences({"x": x, "who": name}, 2, by="who")
    together = likely.sequences({"x": x[order]}, 2, lengths=[40, 40, 40])
    assert apart.log_likelihood == pytest.approx(together.log_likelihood, rel=1e-9)
    there = apart.decode(apart.opened({"x": x, "who": name}, by="who"))
    assert (there[order] == together.decode(together.opened({"x": x[order]}, lengths=[40] * 3))).all()


def test_known_states_are_counted_and_nothing_else_happens():
    X = np.array([[0.0], [0.1], [5.0], [5.2], [0.2], [5.1]])
    states = [0, 0, 1, 1, 0, 1]
    found = likely.HiddenMarkov(2, smoothing=0).fit(X, lengths=[4, 2], states=states)
    np.testing.assert_allclose(found.start_, [1.0, 0.0])
    np.testing.assert_allclose(found.transition_, [[1 / 3, 2 / 3], [0.0, 1.0]])
    np.testing.assert_allclose(found.means_[:, 0], [0.1, 5.1])


def test_states_known_here_and_there_name_the_states():
    rng = np.random.default_rng(0)
    z = (np.arange(200) // 20) % 2
    X = rng.normal(4.0 * z, 1.0)[:, None]
    hints = np.where(np.arange(200) % 25 == 0, 1 - z, np.nan)
    found = likely.HiddenMarkov(2).fit(X, states=hints)
    assert ((1 - found.predict(X)) == z).mean() > 0.97
    assert found.means_[1, 0] < found.means_[0, 0]


def test_a_text_a_count_and_a_category_can_be_what_a_state_shows():
    z = [0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1] * 6
    table = {
        "said": ["the sun is warm and bright today" if s else "rain and more rain falls all day" for s in z],
        "n": [(9 if s else 1) + i % 3 for i, s in enumerate(z)],
        "c": ["hot" if s else None for s in z],
    }
    found = likely.sequences(table, 2, families={"n": "poisson", "said": likely.Text("multinomial")})
    states = found.decode(found.opened(table))
    assert max((states == z).mean(), (states != z).mean()) == 1.0
    assert (np.diff(found.trace) >= -1e-9 * np.abs(found.trace[1:])).all()


def test_more_states_than_kinds_of_rows_is_no_fault():
    coin = {"side": list("HHHHTHHTTHTHTTTTHTTHHHHHHHTH") * 10}
    found = likely.sequences(coin, 3)
    assert np.isfinite(found.trace).all()
    assert found.transition.shape == (3, 3)


def test_a_drawn_sequence_teaches_what_it_was_drawn_from():
    rng = np.random.default_rng(1)
    z = np.cumsum(rng.random(2000) < 0.1) % 2
    X = np.column_stack([rng.normal(6.0 * z, 1.0), rng.normal(-2.0 * z, 0.5)])
    one = likely.HiddenMarkov(2, max_iter=30).fit(X)
    drawn_rows, states = one.sample(3000)
    again = likely.HiddenMarkov(2, max_iter=30).fit(drawn_rows)
    order = np.argsort(again.means_[:, 0])[np.argsort(np.argsort(one.means_[:, 0]))]
    np.testing.assert_allclose(again.means_[order], one.means_, atol=0.2)
    np.testing.assert_allclose(again.transition_[np.ix_(order, order)], one.transition_, atol=0.03)
    assert (one.predict(drawn_rows) == states).mean() > 0.98


def test_what_is_asked_wrongly_is_refused_in_words():
    x = {"x": [1.0, 2.0, 3.0, 4.0], "who": ["a", None, "b", "b"]}
    with pytest.raises(DataError, match="names no sequence"):
        likely.sequences(x, 2, by="who")
    with pytest.raises(UsageError, match="pass one of them"):
        likely.sequences(x, 2, by="who", lengths=[4])
    with pytest.raises(UsageError, match="sum to 4 rows"):
        likely.sequences({"x": x["x"]}, 2, lengths=[1, 2])
    with pytest.raises(UsageError, match="that sum to 1 are needed"):
        likely.sequences({"x": x["x"]}, 2, start={"transition": [[1.0, 1.0], [0.0, 1.0]]})
    with pytest.raises(UsageError, match="start has 'transitions'"):
        likely.sequences({"x": x["x"]}, 2, start={"transitions": np.eye(2)})
    with pytest.raises(UsageError, match="pass the lengths of sequences as lengths="):
        likely.HiddenMarkov(2).fit(np.arange(4.0)[:, None], [2, 2])
    with pytest.raises(UsageError, match="0 to 1"):
        likely.HiddenMarkov(2).fit(np.arange(4.0)[:, None], states=[0, 1, 2, None])
    with pytest.raises(UsageError, match="one a sequence"):
        likely.HiddenMarkov(2).fit(np.arange(4.0)[:, None], sequence_weight=[1.0, 2.0])
    with pytest.raises(UsageError, match="a model of 2 classes"):
        likely.sequences({"x": x["x"]}, 2, start={"emission": None})


def test_every_row_stands_in_one_sequence():
    steps = in_sequences([], by=[])
    assert steps.rows == 0
