"""Sequences of any families, with gaps, known states and weights: the rounds never fall, and order of names is nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import likely
from likely.engines import forward_backward
from likely.engines.e_step import CachedBatch
from likely.engines.sequence_rows import in_sequences
from likely.errors import DataError, LikelyError
from likely.latent import mixtures
from likely.latent.hidden_markov import HiddenMarkovFitter, fit_em
from likely.latent.mixture_plan import plan_clusters
from likely.sources import ReadOptions, open_source
from likely.sources.row_access import take
from strategies import ODD_TABLES, cases, examples, quietly

SMOOTHINGS = st.sampled_from([1.0, 0.5, 3.0, 1 / 3])


def learning(table, families, lengths, weights=None, known=None, **given):
    """The rows of a table as sequences, ready for the rounds."""
    source = open_source(table, ReadOptions())
    opened = mixtures.opened(source, plan_clusters(source, families))
    ((held, hidden, ones),) = opened.parts
    labels = hidden if known is None else np.asarray(known, np.int64)
    rows = ones if weights is None else np.repeat(np.asarray(weights, dtype=float), lengths)
    return HiddenMarkovFitter(in_sequences([(held, labels, rows)], lengths), opened.pooled, opened.spread, **given)


def cut(rows, seed):
    """Lengths of sequences that take up so many rows."""
    rng = np.random.default_rng(seed)
    places = np.flatnonzero(rng.random(rows - 1) < rng.choice([0.0, 0.1, 0.6])) + 1
    return np.diff([0, *places, rows])


def rounds(made, k, many=10):
    """The penalised log likelihood of some rounds, whatever they gain."""
    return replace(made, max_iter=many, tol=-np.inf, restarts=1).fit(range(1, k + 1))


def never_falls(values):
    assert not np.isnan(values).any()
    finite = np.array([v for v in values if np.isfinite(v)])
    assert (np.diff(finite) >= -1e-9 * np.abs(finite[:-1])).all()


def table_of(case):
    return {name: column for name, column in case.columns.items() if name not in ("y", case.weights)}


@given(cases(min_rows=4, max_rows=25), SMOOTHINGS, SMOOTHINGS, st.integers(2, 3), st.integers(0, 5))
@examples(1)
def test_the_penalised_log_likelihood_never_falls(case, smoothing, imagined, k, seed):
    lengths = cut(case.rows, seed)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], len(lengths))
    try:
        made = quietly(
            learning, table_of(case), case.families, lengths, weights, smoothing=smoothing, pseudocount=imagined, seed=seed
        )
        found = quietly(rounds, made, k)
    except DataError:
        assume(False)
    never_falls(found.trace)
    # `fit_em` stops where a round falls: that it went on to the end says that none did.
    assert len(found.trace) == 10
    assert np.allclose(found.transition.sum(1), 1.0)
    shares = found.posterior(made.rows)
    assert np.allclose(shares.sum(1), 1.0)
    assert (shares >= 0).all()


@given(cases(min_rows=4, max_rows=25), SMOOTHINGS, st.integers(0, 5))
@examples(1)
def test_it_never_falls_where_some_states_are_known(case, smoothing, seed):
    rng = np.random.default_rng(seed)
    known = np.where(rng.random(case.rows) < 0.4, rng.integers(0, 2, case.rows), -1)
    lengths = cut(case.rows, seed)
    try:
        made = quietly(learning, table_of(case), case.families, lengths, known=known, smoothing=smoothing)
        found = quietly(rounds, made, 2)
    except DataError:
        assume(False)
    never_falls(found.trace)
    assert len(found.trace) == 10
    shares = found.posterior(made.rows)
    assert np.allclose(shares[known >= 0, known[known >= 0]], 1.0)


@given(st.integers(0, 50))
@settings(max_examples=25, deadline=None)
def test_without_priors_bell_curves_and_categories_climb_too(seed):
    rng = np.random.default_rng(seed)
    z = np.cumsum(rng.random(60) < 0.2) % 2
    table = {"a": rng.normal(2.0 * z, 1.0).tolist(), "b": rng.choice(["u", "v", "w", None], 60).tolist()}
    found = rounds(learning(table, None, cut(60, seed), smoothing=0, pseudocount=0.0, seed=seed), 2, 25)
    never_falls(found.trace)


@st.composite
def wild(draw):
    """Likelihoods and moves of any size, zero among them: far beyond what a proportion can hold."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, rows = draw(st.integers(2, 4)), draw(st.integers(1, 30))
    logs = rng.normal(0, 10 ** draw(st.floats(0, 4)), (rows, k))
    logs[rng.random((rows, k)) < draw(st.sampled_from([0.0, 0.2]))] = -np.inf
    move = (
        rng.dirichlet(np.ones(k), k)
        * {
            "any": 1.0,
            "barred": rng.random((k, k)) < 0.6,
            "tiny": 10.0 ** -rng.uniform(0, 300, (k, k)),
            "onward": np.triu(np.ones((k, k))),
        }[draw(st.sampled_from(["any", "barred", "tiny", "onward"]))]
    )
    move += 1e-12 * np.eye(k)
    start = np.eye(k)[0] if draw(st.booleans()) else rng.dirichlet(np.ones(k))
    return logs, start, move / move.sum(1, keepdims=True)


@given(wild())
@examples(3)
def test_proportions_and_logarithms_give_the_same_posteriors(case):
    logs, start, move = case
    edges, weights = np.array([0, len(logs)]), np.ones(len(logs))
    found = forward_backward.state_posteriors(logs.copy, start, move, edges, weights)
    again = forward_backward._in_logs(logs.copy(), start, move, edges, weights)
    assert not np.isnan(found.responsibilities).any()
    np.testing.assert_allclose(found.log_likelihood, again.log_likelihood, rtol=1e-10, atol=1e-10)
    if np.isfinite(again.log_likelihood[0]):
        np.testing.assert_allclose(found.responsibilities, again.responsibilities, atol=1e-8)
        np.testing.assert_allclose(found.transition_counts, again.transition_counts, atol=1e-8)


def test_a_state_far_below_the_best_is_not_raised_to_a_floor():
    logs = np.array([
        [471.82789256, 493.42407636], [1328.53785558, -1676.07739484], [696.82499313, 59.60282652],
        [1937.39911379, -760.16084082], [-345.0861732, 572.60993465], [-502.91931143, -1539.14063343],
        [1266.85754765, -479.67896778], [387.42141393, 68.12318025], [-1934.22648115, -50.44536975],
        [339.76174888, -707.06543599], [-528.31495736, -221.24651357], [52.11953187, -2066.47152179],
        [1440.30596233, 231.87052578],
    ])  # fmt: skip
    move = np.array([[1.0, 2.50748993e-96], [3.16644537e-151, 1.0]])
    start, edges, weights = np.array([0.23282859, 0.76717141]), np.array([0, 13]), np.ones(13)
    found = forward_backward.state_posteriors(logs.copy, start, move, edges, weights)
    again = forward_backward._in_logs(logs.copy(), start, move, edges, weights)
    np.testing.assert_allclose(found.log_likelihood, again.log_likelihood, rtol=1e-10)


def test_the_names_of_states_change_nothing():
    rng = np.random.default_rng(2)
    x = {"x": np.concatenate([rng.normal(0, 1, 50), rng.normal(5, 1, 80), rng.normal(9, 1, 30)])}
    made = learning(x, None, [100, 60])
    one, other = made.fit((1, 2, 3)), made.fit(("c", "a", "b"))
    assert one.trace == other.trace
    np.testing.assert_array_equal(one.transition, other.transition)


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_weights_are_copies():
    rng = np.random.default_rng(4)
    x = rng.normal(0, 1, (90, 2)) + 4.0 * ((np.arange(90) // 10) % 2)[:, None]
    lengths, w = [20, 30, 40], [2, 0, 3]
    parts = [x[:20], x[:20], x[50:], x[50:], x[50:]]
    settings = {"max_iter": 20, "tol": -np.inf, "n_init": 1}
    emission = likely.learn({"x0": x[:, 0], "x1": x[:, 1], "s": (x[:, 0] > 2).astype(int)}, "s", smoothing=0)
    settings["start"] = {"emission": emission}
    settings["smoothing"] = {"*": likely.Spread(1, 1.0)}
    one = likely.HiddenMarkov(2, **settings).fit(x, lengths=lengths, sequence_weight=w)
    other = likely.HiddenMarkov(2, **settings).fit(np.concatenate(parts), lengths=[len(p) for p in parts])
    np.testing.assert_allclose(one.trace_, other.trace_, rtol=1e-9)
    np.testing.assert_allclose(one.transition_, other.transition_, rtol=1e-9)
    np.testing.assert_allclose(one.covariances_, other.covariances_, rtol=1e-9)


def test_where_every_state_follows_every_other_alike_the_sequence_is_a_mixture():
    rng = np.random.default_rng(0)
    x = {"x": np.concatenate([rng.normal(0, 1, 40), rng.normal(3, 1, 60)])}
    mixture = likely.cluster(x, 2)
    shares = mixture.class_prior
    alike = {"start": shares, "transition": np.tile(shares, (2, 1)), "emission": mixture}
    made = learning(x, None, [100], given=alike)
    blank_emission = next(iter(made._starts(likely.Model(mixture.tally, mixture.prior))))
    chain = replace(blank_emission, emission=mixture.model)
    assert chain.log_evidence(made.rows)[0] == pytest.approx(mixture.log_likelihood, rel=1e-9)
    np.testing.assert_allclose(chain.posterior(made.rows), mixture.posterior(x).probabilities, atol=1e-9)


def test_shards_are_as_good_as_the_whole():
    """Sequences in two batches, one of them cut in the middle, are those of one batch."""
    rng = np.random.default_rng(5)
    table = {"a": rng.normal(size=300).tolist(), "b": rng.choice(["u", "v", None], 300).tolist()}
    made = learning(table, None, [100, 150, 50])
    ((held, labels, weights),) = made.rows.parts
    parts = []
    for a, b in ((0, 180), (180, 300)):
        batch = next(iter(open_source({n: c[a:b] for n, c in table.items()}).batches()))
        parts.append((type(held)(batch, held.schema), labels[a:b], weights[a:b]))
    two = in_sequences(parts, [100, 150, 50])
    start = next(iter(made._starts(rounds(made, 2, 1).emission)))
    whole = fit_em(start, made.rows, 1.0, max_iter=8, tol=-np.inf)
    again = fit_em(start, two, 1.0, max_iter=8, tol=-np.inf)
    np.testing.assert_allclose(whole.trace, again.trace, rtol=1e-12)
    np.testing.assert_allclose(whole.transition, again.transition, rtol=1e-9)


@pytest.mark.parametrize("table", ODD_TABLES)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("families", [None, "joint"])
@pytest.mark.parametrize("smoothing", [1.0, 0.0])
def test_odd_tables_end_in_a_stated_result_or_a_clear_error(table, k, families, smoothing):
    try:
        chain = quietly(likely.sequences, table, k, families=families, smoothing=smoothing, lengths=[4, 6])
    except LikelyError:
        return  # refused in words
    steps = chain.opened(table, lengths=[4, 6])
    assert np.isfinite(chain.posterior(steps)).all()
    assert np.isfinite(chain.trace).all()
    assert np.isfinite(chain.transition).all()
    assert np.isin(chain.decode(steps), range(k)).all()


@pytest.mark.parametrize("batches", [1, 3])
def test_rows_that_are_alike_are_looked_at_as_one(batches, monkeypatch):
    rng = np.random.default_rng(batches)
    rows = 240
    table = {"a": rng.choice(list("xyz"), rows), "b": rng.choice([True, False], rows)}
    lengths = [100, 20, 120]
    source = open_source(table, ReadOptions())
    opened = mixtures.opened(source, plan_clusters(source))
    ((held, labels, ones),) = opened.parts
    cuts = np.array_split(np.arange(rows), batches)
    parts = [(CachedBatch(take(held.batch, at), held.schema), labels[at], ones[at]) for at in cuts]
    by = np.repeat([2, 1, 2], lengths)  # the rows of one sequence do not stand together

    def fitted():
        steps = in_sequences(parts, by=by)
        assert (steps.distinct is None) == (alike > rows)
        return rounds(HiddenMarkovFitter(steps, opened.pooled, opened.spread), 2)

    alike = 4
    one = fitted()
    monkeypatch.setattr("likely.engines.sequence_rows.FEWEST_REPEATS", alike := 10 * rows)
    other = fitted()
    np.testing.assert_allclose(one.trace, other.trace, rtol=1e-12)
    np.testing.assert_allclose(one.transition, other.transition, rtol=1e-9)
    assert one.emission.tally.rows == other.emission.tally.rows == rows


def test_where_too_little_is_left_of_a_step_the_shares_of_kinds_come_from_logarithms():
    rng = np.random.default_rng(0)
    logs = np.array([[0.0, -800.0], [-900.0, 0.0], [-1.0, -2.0]])
    place, edges, weights = rng.integers(0, 3, 30), np.array([0, 12, 30]), np.repeat([1.0, 2.0], [12, 18])
    start, move = np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.5, 0.5]])
    by_kind = forward_backward.state_posteriors(lambda: logs.copy(), start, move, edges, weights, place=place)
    by_row = forward_backward.state_posteriors(lambda: logs[place], start, move, edges, weights)
    np.testing.assert_allclose(by_kind.log_likelihood, by_row.log_likelihood)
    np.testing.assert_allclose(by_kind.transition_counts, by_row.transition_counts)
    np.testing.assert_allclose(by_kind.start_counts, by_row.start_counts)
    summed = np.zeros_like(logs)
    np.add.at(summed, place, by_row.responsibilities)
    np.testing.assert_allclose(by_kind.responsibilities, summed)
