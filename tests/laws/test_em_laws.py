"""EM on any mixture of families, with gaps and weights: it never falls, and it never ends in nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import likely
from likely.engines.e_step import CachedBatch
from likely.errors import DataError, LikelyError
from likely.latent import em, mixtures
from likely.latent.mixture_plan import plan_clusters
from likely.sources import ReadOptions, open_source
from strategies import ODD_TABLES, cases, examples, quietly

TEXTS = (
    "a cat sat",
    "the dog barks",
    "cat and dog and cat",
    "sat down the dog",
    "birds sing at dawn",
    "dawn birds",
    None,
)
SMOOTHINGS = st.sampled_from([1.0, 0.5, 3.0, 1 / 3])


def rounds(mixing, classes, seed, many=12):
    """The penalised log likelihood of some rounds from a random start, whatever they gain."""
    values = []
    fit = replace(mixing, max_iter=many, tol=-1.0, restarts=1, seed=seed).fit(
        classes, watch=lambda _i, value, _model: values.append(value)
    )
    return values, fit


def opened(table, families, weights, **given):
    """The rows of a table, ready for EM."""
    source, name = mixtures.with_weights(open_source(table, ReadOptions()), weights)
    plan = plan_clusters(source, families, (), [name] if name else [], weights=name, fixed=given.pop("fixed", None))
    return mixtures.opened(source, plan, **given)


def never_falls(values):
    finite = np.array([v for v in values if np.isfinite(v)])
    assert not np.isnan(values).any()
    gains = np.diff(finite)
    assert (gains >= -1e-9 * np.maximum(np.abs(finite[:-1]), 1.0)).all(), gains.min()  # around zero: rounding


@given(cases(min_rows=4, max_rows=30), SMOOTHINGS, st.integers(2, 3), st.integers(0, 5))
@examples(1)
def test_the_penalised_log_likelihood_never_falls(case, smoothing, k, seed):
    table = {name: column for name, column in case.columns.items() if name != "y"}
    try:
        mixing = quietly(opened, table, case.families, case.weights, smoothing=smoothing)
        values, fit = quietly(rounds, mixing, range(1, k + 1), seed)
    except DataError:
        assume(False)
    never_falls(values)
    assert len(values) == 12 or fit.converged
    posterior = fit.model.posterior({n: c for n, c in table.items() if n != case.weights})
    assert np.allclose(posterior.probabilities.sum(1), 1.0)


@given(cases(min_rows=4, max_rows=30), SMOOTHINGS, st.integers(0, 5))
@examples(1)
def test_it_never_falls_where_some_labels_are_known(case, smoothing, seed):
    rng = np.random.default_rng(seed)
    table = {name: column for name, column in case.columns.items() if name != "y"}
    try:
        mixing = quietly(opened, table, case.families, case.weights, smoothing=smoothing)
        ((held, _, weights),) = mixing.parts
        labels = np.where(rng.random(held.rows) < 0.4, rng.integers(0, 2, held.rows), -1)
        values, _ = quietly(rounds, replace(mixing, parts=[(held, labels, weights)]), range(1, 3), seed)
    except DataError:
        assume(False)
    never_falls(values)


@given(cases(min_rows=6, max_rows=30), st.sampled_from(["auto", 1.0, 0.25]), st.integers(0, 3))
@examples(1)
def test_partly_labelled_tables_end_in_a_model_or_in_words(case, unlabelled, seed):
    rng = np.random.default_rng(seed)
    labels = [None if rng.random() < 0.6 else label for label in case.columns["y"]]
    try:
        model = case.learn(data=case.columns | {"y": labels}, unlabelled=unlabelled)
    except LikelyError:
        return  # refused in words
    found = model.posterior({name: case.columns[name] for name in case.features})
    assert np.allclose(found.probabilities.sum(1), 1.0)
    assert model.classes == case.learn().classes


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli", "auto"])
@given(st.lists(st.sampled_from(TEXTS), min_size=6, max_size=30), st.integers(0, 3))
@settings(max_examples=20, deadline=None)
def test_texts_never_fall_once_every_word_has_been_counted(kind, texts, seed):
    table = {"t": texts, "n": [float(len(t or "")) for t in texts]}
    try:
        mixing = opened(table, {"t": likely.Text(kind), "n": likely.Gaussian()}, None)
        values, _ = rounds(mixing, (1, 2), seed)
    except DataError:
        assume(False)
    never_falls(values)


@pytest.mark.parametrize("tie", [None, "class", "column", "both"])
def test_every_tying_climbs_and_keeps_its_shape(tie):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(0, 1, (60, 2)), rng.normal(4, 2, (60, 2))])
    values, fit = rounds(opened(x, likely.Gaussian(tie=tie), None, smoothing=0), (1, 2), 0, 40)
    never_falls(values)
    variances = np.array([-0.5 / p.likelihood.curve for p in fit.model.block_parameters])
    if tie in ("class", "both"):
        assert np.allclose(variances[:, 0], variances[:, 1])
    if tie in ("column", "both"):
        assert np.allclose(variances[0], variances[1])


def test_shards_are_as_good_as_the_whole():
    rng = np.random.default_rng(5)
    table = {"a": rng.normal(size=300).tolist(), "b": rng.choice(["u", "v", None], 300).tolist()}
    mixing = opened(table, None, None)
    ((held, labels, weights),) = mixing.parts
    model = mixing.fit((1, 2)).model
    cut = 120
    shards = []
    for a, b in ((0, cut), (cut, 300)):
        part = {name: column[a:b] for name, column in table.items()}
        batch = next(iter(open_source(part).batches()))
        shards.append((CachedBatch(batch, held.schema), labels[a:b], weights[a:b]))
    whole, parts = em.e_step(model, [(held, labels, weights)]), em.e_step(model, shards)
    assert np.isclose(whole.log_likelihood, parts.log_likelihood, rtol=1e-12)
    assert np.isclose(whole.entropy, parts.entropy, rtol=1e-9)
    for one, other in zip(whole.tally.statistics, parts.tally.statistics, strict=True):
        for name, array in one.arrays().items():
            np.testing.assert_allclose(array, other.arrays()[name], rtol=1e-9, atol=1e-9)
    alone = [em.e_step(model, [shard]) for shard in shards]
    assert np.isclose((alone[0] + alone[1]).log_likelihood, whole.log_likelihood, rtol=1e-12)


def test_rows_read_again_in_every_round_are_as_good_as_rows_kept(tmp_path):
    rng = np.random.default_rng(8)
    path = tmp_path / "t.csv"
    lines = [
        f"{v:.6f},{c}" for v, c in zip(rng.normal(size=400) + np.repeat([0, 4], 200), ["u", "v"] * 200, strict=True)
    ]
    path.write_text("\n".join(["a,b", *lines]))
    kept = opened(str(path), None, None)
    source = open_source(str(path))
    kinds = {"a": "number", "b": "category"}
    again = em.StreamedRows(lambda: source.batches(kinds), kept.pooled.schema, em.weights_of(kept.plan))
    one, other = kept.fit((1, 2)), replace(kept, parts=again).fit((1, 2))
    assert one.trace == other.trace
    assert one.model == other.model


def test_the_names_of_components_change_nothing():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(0, 1, 50), rng.normal(5, 1, 80), rng.normal(9, 1, 30)])[:, None]
    mixing = opened(x, None, None)
    one, other = mixing.fit((1, 2, 3)), mixing.fit(("c", "a", "b"))
    assert np.isclose(one.value, other.value, rtol=1e-12)  # the order of a sum depends on the BLAS kernel
    model = one.model
    turned = replace(model, tally=model.tally.of_classes([2, 0, 1], model.classes))
    assert np.isclose(
        em.e_step(model, mixing.parts).log_likelihood, em.e_step(turned, mixing.parts).log_likelihood, rtol=1e-12
    )
    assert np.isclose(em.log_density(model), em.log_density(turned), rtol=1e-12)


def test_weights_are_copies():
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.normal(0, 1, (40, 2)), rng.normal(5, 1, (40, 2))])
    w = rng.integers(0, 4, 80)
    one = likely.cluster(x, 2, weights=w.astype(float))
    other = likely.cluster(np.repeat(x, w, axis=0), 2)
    assert np.isclose(one.log_likelihood, other.log_likelihood, rtol=1e-9)
    assert (one.predict(x) == other.predict(x)).all()


@pytest.mark.parametrize("table", ODD_TABLES)
@pytest.mark.parametrize("k", [1, 2, 3, 5, 11])
@pytest.mark.parametrize("families", [None, "joint"])
@pytest.mark.parametrize("smoothing", [1.0, 0.0])
def test_odd_tables_end_in_a_stated_result_or_a_clear_error(table, k, families, smoothing):
    try:
        model = quietly(likely.cluster, table, k, families=families, smoothing=smoothing)
    except LikelyError:
        return  # refused in words
    found = model.posterior(table)
    assert np.isfinite(found.probabilities).all()
    assert np.isfinite(model.trace).all()
    assert np.isfinite([model.bic, model.icl, model.aic]).all()


def test_more_clusters_than_different_rows_are_refused_by_number():
    with pytest.raises(DataError, match="2 different kinds"):
        likely.cluster({"a": [1.0, 2.0] * 5}, 3)
