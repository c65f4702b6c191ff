"""The way of EM, step by step: what is kept of it is the way itself, and keeping it changes nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likely
from likely.latent import em, mixtures
from likely.latent.em import FIRST_STEPS, MOST_STEPS, EMStep, StepRecorder
from likely.latent.mixture_plan import plan_clusters
from likely.sources import open_source

NOTES = {"variance": 1.0, "weights": "equal"}
NUMBERS = (1.0, 2.0, 4.0, 5.0, 7.0, 9.0)


def blobs(n: int, seed: int = 0, width: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.concatenate(
        [rng.normal(0, 1, (n, width)), rng.normal(3, 1, (n, width)), rng.normal((6,) * width, 2, (n, width))]
    )
    return {"ab"[j]: x[:, j] for j in range(width)}


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=6, max_size=30), st.integers(1, 3), st.integers(0, 5))
def test_the_steps_are_the_trace_and_end_in_the_model(numbers, k, seed):
    table = {"x": [*numbers, -60.0, 0.5, 60.0]}
    made = likely.cluster(table, k, seed=seed, steps=True, max_iter=40)
    plain = likely.cluster(table, k, seed=seed, max_iter=40)
    assert made.trace == plain.trace
    assert plain.steps == ()
    assert tuple(step.at for step in made.steps) == tuple(range(len(made.trace)))
    assert tuple(step.value for step in made.steps) == made.trace
    assert made.steps[-1].tally == made.tally
    last = made.as_of(made.steps[-1])
    assert last.parameters == made.parameters
    assert last.class_prior.tolist() == made.class_prior.tolist()


def test_the_first_step_is_the_start_and_each_next_one_a_round_of_the_textbook():
    made = likely.cluster({"x": list(NUMBERS)}, 2, fixed=NOTES, start=(2.0, 4.0), max_iter=12, tol=-1.0, steps=True)
    x, means = np.array(NUMBERS), np.array([2.0, 4.0])
    for step in made.steps:
        found = [row["mean"] for row in made.as_of(step).parameters["x"]]
        np.testing.assert_allclose(found, means, rtol=1e-12)
        shares = np.exp(-((x[:, None] - means) ** 2) / 2)
        shares /= shares.sum(1, keepdims=True)
        means = (shares * x[:, None]).sum(0) / shares.sum(0)


@pytest.mark.parametrize("families", [None, {("a", "b"): "joint"}])
def test_the_value_of_a_step_is_what_its_tally_is_worth(families):
    table = blobs(40)
    source = open_source(table)
    plan = plan_clusters(source, families)
    mixing = mixtures.opened(source, plan)
    made = likely.cluster(table, 3, families=families, steps=True)
    for step in made.steps[:5]:
        model = made.as_of(step)
        value = em.e_step(model, mixing.parts).log_likelihood + em.log_density(model)
        assert value == pytest.approx(step.value, rel=1e-12)


@pytest.mark.parametrize("rounds", [1, 2, 19, 20, 21, 59, 60, 61, 62, 150, 700])
def test_a_long_way_is_thinned_evenly_and_keeps_its_first_steps_and_its_last(rounds):
    made = likely.cluster({"x": list(NUMBERS)}, 2, fixed=NOTES, start=(2.0, 4.0), max_iter=rounds, tol=-1.0, steps=True)
    kept = [step.at for step in made.steps]
    assert len(kept) <= em.MOST_STEPS
    assert kept[: em.FIRST_STEPS] == list(range(min(len(made.trace), em.FIRST_STEPS)))
    assert kept[-1] == len(made.trace) - 1
    assert len(set(np.diff(kept[em.FIRST_STEPS : -1]).tolist())) <= 1
    assert [step.value for step in made.steps] == [made.trace[at] for at in kept]
    if len(made.trace) < em.MOST_STEPS:
        assert len(kept) == len(made.trace)


def test_a_large_table_keeps_the_way_of_its_best_start_from_the_beginning():
    made = likely.cluster(blobs(mixtures.FEW_ROWS // 3 + 10), 3, n_init=2, tol=1e-7, steps=True)
    assert [step.at for step in made.steps[:12]] == list(range(12))
    assert [step.value for step in made.steps] == [made.trace[step.at] for step in made.steps]
    assert made.steps[-1].tally == made.tally


def test_components_keep_their_names_all_along_the_way():
    made = likely.cluster(blobs(60, seed=3, width=1), 3, steps=True, tol=1e-9)
    assert made.class_prior.tolist() == sorted(made.class_prior.tolist(), reverse=True)
    for before, after in zip(made.steps, made.steps[1:], strict=False):
        means = [np.array([row["mean"] for row in made.as_of(step).parameters["a"]]) for step in (before, after)]
        nearest = np.abs(means[1][:, None] - means[0][None, :]).argmin(1)
        assert after.at != before.at + 1 or nearest.tolist() == [0, 1, 2]


@pytest.mark.parametrize("lengths", [(3 * MOST_STEPS, 2 * MOST_STEPS), (FIRST_STEPS + 5, 40), (7, 5, 4 * MOST_STEPS, 9)])
def test_a_run_that_goes_on_keeps_the_steps_that_one_run_would_have_kept(lengths):
    def kept(*parts):
        steps = ()
        for part in parts:
            recorder = StepRecorder.continuing(steps)
            for _ in range(part):
                recorder.record(0.0, None)
            steps = recorder.ending(EMStep(recorder.first + part, 0.0, None))
        return [step.at for step in steps]

    assert kept(*lengths) == kept(sum(lengths))
    assert len(kept(*lengths)) <= MOST_STEPS
