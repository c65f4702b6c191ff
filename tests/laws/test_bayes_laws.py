import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from likely.bayes import Hypotheses, Posterior, bayes_rule, labels_array, normalise, total_probability
from likely.errors import DataError

F = Fraction
OUTCOMES = ("a", "b", "c")
data = st.lists(st.sampled_from(OUTCOMES), max_size=12)
logs = st.one_of(
    st.floats(-50, 50),
    st.floats(-1e308, 1e308),
    st.sampled_from([-math.inf, -1e308, -745.2, 0.0, 1e308, -1e-320]),
)
joints = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=logs)


@st.composite
def distributions(draw, size):
    weights = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any))
    return [F(weight, sum(weights)) for weight in weights]


@st.composite
def spaces(draw, positive=False):
    """A small exact hypothesis space; with `positive` no outcome is impossible."""
    names = [f"h{i}" for i in range(draw(st.integers(1, 5)))]
    prior = dict(zip(names, draw(distributions(len(names))), strict=True))
    rows = {name: dict(zip(OUTCOMES, draw(distributions(3)), strict=True)) for name in names}
    if positive:
        rows = {name: {o: (p + F(1, 3)) / 2 for o, p in row.items()} for name, row in rows.items()}
    return Hypotheses(prior=prior, likelihood=rows)


def in_floats(space):
    return Hypotheses(
        prior={h: float(p) for h, p in space.prior.items()},
        likelihood={h: {o: float(p) for o, p in row.items()} for h, row in space.likelihood.items()},
    )


def observed(space, seen):
    try:
        return space.observe(seen)
    except DataError:
        assume(False)


@given(spaces(), data, st.randoms())
def test_the_order_of_the_data_does_not_matter(space, seen, random):
    shuffled = random.sample(seen, len(seen))
    after, other = observed(space, seen), observed(space, shuffled)
    assert after == other
    assert after.posterior == other.posterior
    assert in_floats(space).observe(seen).posterior == in_floats(space).observe(shuffled).posterior


@given(spaces(), data, data)
def test_step_by_step_equals_all_at_once(space, first, second):
    after = observed(space, first + second)
    steps = space
    for outcome in first + second:
        steps = steps.observe(outcome)
    assert steps == space.observe(first).observe(second) == after
    assert steps.posterior == after.posterior
    assert steps.evidence == after.evidence


@given(spaces(), data, data)
def test_the_posterior_of_yesterday_is_the_prior_of_today(space, first, second):
    after = observed(space, first + second)
    fresh = Hypotheses(prior=space.observe(first).posterior, likelihood=space.likelihood)
    assert fresh.observe(second).posterior == after.posterior
    assert space.observe(first).evidence * fresh.observe(second).evidence == after.evidence


@given(spaces(), data)
def test_posterior_and_prediction_sum_to_exactly_one(space, seen):
    after = observed(space, seen)
    assert sum(after.posterior.values()) == 1
    assert sum(after.predict().values()) == 1
    assert sum(after.predict_map().values()) == 1


@given(spaces(), data)
def test_the_evidence_is_the_product_of_the_predictions(space, seen):
    after = observed(space, seen)
    steps = list(space.trace(seen))
    assert len(steps) == len(seen) + 1
    assert steps[-1] == after
    reported = [step.predict()[outcome] for step, outcome in zip(steps, seen, strict=False)]
    assert math.prod(reported, start=F(1)) == after.evidence


@given(spaces(), data)
def test_floats_agree_with_fractions(space, seen):
    exact, rough = observed(space, seen), in_floats(space).observe(seen)
    for h, p in exact.posterior.items():
        assert rough.posterior[h] == pytest.approx(float(p), abs=1e-12)
    for outcome, p in exact.predict().items():
        assert rough.predict()[outcome] == pytest.approx(float(p), abs=1e-12)
    assert rough.log_evidence == pytest.approx(exact.log_evidence, abs=1e-12, rel=1e-12)
    assert rough.evidence == pytest.approx(float(exact.evidence), rel=1e-12)
    assert rough.ml == exact.ml
    assert rough.map == exact.map


@given(spaces(positive=True), data)
def test_map_is_the_first_most_probable_and_ml_is_map_under_a_flat_prior(space, seen):
    after = space.observe(seen)
    best = max(after.posterior.values())
    assert after.map == next(h for h, p in after.posterior.items() if p == best)
    flat = dict.fromkeys(space.prior, F(1, len(space.prior)))
    assert after.ml == Hypotheses(prior=flat, likelihood=space.likelihood).observe(seen).map


@given(spaces(), st.sampled_from(OUTCOMES))
def test_bayes_rule_on_events_is_one_observation(space, outcome):
    after = observed(space, outcome)
    likelihood = {h: row[outcome] for h, row in space.likelihood.items()}
    assert bayes_rule(prior=space.prior, likelihood=likelihood) == after.posterior
    assert total_probability(space.prior, likelihood) == after.evidence == space.predict()[outcome]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=5))
def test_counts_give_each_class_its_share_of_the_event(pairs):
    counts = {place: (seen, seen + unseen) for place, (seen, unseen) in enumerate(pairs)}
    total = sum(seen for seen, _ in pairs)
    assume(total > 0)
    assert bayes_rule(counts=counts) == {place: F(seen, total) for place, (seen, _) in enumerate(pairs)}


@given(joints, st.data())
def test_normalise_never_returns_nan_and_sums_to_one(log_joint, draw):
    log_prior = draw.draw(arrays(np.float64, log_joint.shape[1], elements=logs))
    before = log_joint.copy()
    with np.errstate(all="raise"):
        log_probabilities, log_evidence = normalise(log_joint, log_prior)
    assert log_probabilities.shape == log_joint.shape
    assert not np.isnan(log_probabilities).any()
    assert not np.isnan(log_evidence).any()
    assert (log_probabilities <= 0).all()
    assert np.exp(log_probabilities).sum(axis=1) == pytest.approx(np.ones(len(log_joint)), abs=1e-14)
    assert np.array_equal(log_joint, before)
    impossible = np.isneginf(log_joint).all(axis=1)
    assert np.array_equal(np.isneginf(log_evidence), impossible)


@given(arrays(np.float64, (4, 3), elements=st.floats(-30, 30)))
def test_normalise_is_the_textbook_formula_where_nothing_underflows(log_joint):
    log_probabilities, log_evidence = normalise(log_joint, np.zeros(3))
    joint = np.exp(log_joint)
    assert np.allclose(np.exp(log_probabilities), joint / joint.sum(axis=1, keepdims=True), rtol=1e-12, atol=1e-15)
    assert np.allclose(log_evidence, np.log(joint.sum(axis=1)), rtol=1e-12, atol=1e-12)


@given(arrays(np.float64, (4, 3), elements=st.floats(-30, 30)), st.integers(-(10**6), 10**6))
def test_a_constant_added_to_every_class_moves_the_evidence_only(log_joint, constant):
    one, evidence = normalise(log_joint, np.zeros(3))
    two, moved = normalise(log_joint + constant, np.zeros(3))
    assert np.allclose(one, two, atol=1e-8)
    assert np.allclose(evidence + constant, moved, atol=1e-8)


def test_where_every_class_is_impossible_the_posterior_is_the_prior():
    log_joint = np.array([[-np.inf, -np.inf], [0.0, -np.inf]])
    log_prior = np.log([0.6, 1.4])
    posterior = Posterior(("no", "yes"), log_joint, log_prior)
    assert np.allclose(posterior.probabilities, [[0.3, 0.7], [1, 0]])
    assert posterior.impossible.tolist() == [True, False]
    assert posterior.log_evidence.tolist() == [-math.inf, 0.0]
    assert posterior.labels.tolist() == ["yes", "no"]


def test_an_infinite_density_is_certain_and_two_share():
    log_probabilities, log_evidence = normalise(np.array([[np.inf, 0.0, np.inf]]), np.zeros(3))
    assert np.exp(log_probabilities) == pytest.approx(np.array([[0.5, 0, 0.5]]))
    assert log_evidence.tolist() == [math.inf]


def test_a_score_that_is_not_a_number_is_refused_with_its_row():
    log_joint = np.array([[0.0, 1.0], [np.nan, 0.0]])
    for ask in (lambda: normalise(log_joint, np.zeros(2)), lambda: Posterior((0, 1), log_joint, np.zeros(2)).labels):
        with pytest.raises(DataError, match="row 2") as caught:
            ask()
        assert caught.value.row == 2


@given(joints, st.data())
def test_a_posterior_is_the_normalised_joint_and_names_the_first_best_class(log_joint, draw):
    k = log_joint.shape[1]
    log_prior = draw.draw(arrays(np.float64, k, elements=st.floats(-50, 0)))
    posterior = Posterior(tuple(range(k)), log_joint, log_prior)
    assert len(posterior) == len(log_joint)
    assert posterior.probabilities.sum(axis=1) == pytest.approx(np.ones(len(log_joint)), abs=1e-14)
    belief = np.where(posterior.impossible[:, None], log_prior, log_joint)
    assert posterior.labels.tolist() == belief.argmax(axis=1).tolist()
    told = posterior.to_dicts()
    assert [row["label"] for row in told] == posterior.labels.tolist()
    assert [list(row["probabilities"].values()) for row in told] == posterior.probabilities.tolist()


def test_a_posterior_over_no_rows_is_empty():
    empty = Posterior(("a", "b"), np.empty((0, 2)), np.zeros(2))
    assert len(empty) == len(empty.labels) == len(empty.log_evidence) == len(empty.to_dicts()) == 0
    assert empty.probabilities.shape == (0, 2)


def test_the_repr_of_a_posterior_has_its_size_and_classes():
    assert repr(Posterior(("a", "b"), np.zeros((3, 2)), np.zeros(2))) == "Posterior(3 rows, classes 'a', 'b')"
    many = Posterior(tuple(range(100)), np.zeros((1, 100)), np.zeros(100))
    assert repr(many) == "Posterior(1 row, 100 classes)"


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        ((0, 1), "i"),
        ((False, True), "b"),
        (("no", "yes"), "U"),
        ((0.5, 1.5), "f"),
        ((0, "yes"), "O"),
        ((False, 1), "O"),
        ((0, 1.5), "O"),
        ((None, "a"), "O"),
        ((-1, 2**63), "O"),
        (("a\0", "a"), "O"),
        (("a", "b" * 1000), "O"),
        (((1, 2), (3, 4)), "O"),
        ((F(1, 2), F(1, 3)), "O"),
        ((np.int64(1), np.int64(2)), "i"),
        ((np.str_("a"), "b"), "U"),
        ((np.datetime64("2020-01-01"), np.datetime64("2021-01-01")), "M"),
        (np.array([3, 4], dtype=np.int8), "i"),
    ],
)
def test_labels_keep_their_own_type(classes, kind):
    labels = labels_array(classes)
    assert labels.dtype.kind == kind
    assert labels.shape == (2,)
    assert list(labels) == list(classes)
    if kind == "O":
        assert [type(label) for label in labels] == [type(label) for label in classes]
    assert Posterior(classes, np.array([[0.0, 1.0]]), np.zeros(2)).labels.dtype == labels.dtype
