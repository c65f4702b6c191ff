"""Counting by shares: a row that belongs to several classes adds a part of itself to each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likely
from likely.bayes.rule import normalise
from likely.engines import Plan
from likely.engines.e_step import CachedBatch, LabelledRows, e_step_batch
from likely.engines.memory import tally_batch
from likely.estimators._base import rows_of
from likely.families import Bernoulli, Categorical, Encoded, Gaussian, Joint, Multinomial, Poisson, Text
from likely.kernels.kernel import Kernel
from likely.model.model import Model
from likely.priors import Priors
from likely.sources import open_source
from likely.sources._document_columns import string_documents
from strategies import cases, examples

CLASSES = 3
WORDS = ["a cat sat", "the dog", "", "cat and dog and cat", "sat down the dog"]


def encoded(rng, rows, *, codes=2, numbers=2, counts=False):
    """Random rows with gaps: codes of two and three values, numbers far from zero, and a few texts."""
    size = np.array([2, 3][:codes], np.int64)
    table = np.column_stack([rng.integers(-1, s, rows) for s in size]) if codes else np.zeros((rows, 0), np.int64)
    x = rng.poisson(3, (rows, numbers)).astype(float) if counts else 1e6 + rng.normal(size=(rows, numbers))
    x[rng.random((rows, numbers)) < 0.2] = np.nan
    texts = string_documents([WORDS[i] for i in rng.integers(0, len(WORDS), rows)], ())
    return Encoded(table, np.zeros(codes, np.int64), size, x, texts)


def families(rng, rows):
    return [
        (Categorical(), encoded(rng, rows, numbers=0)),
        (Bernoulli(), encoded(rng, rows, codes=0, counts=True)),
        (Gaussian(), encoded(rng, rows, codes=0)),
        (Poisson(), encoded(rng, rows, codes=0, counts=True)),
        (Multinomial(), encoded(rng, rows, codes=0, counts=True)),
        (Joint(), encoded(rng, rows)),
        (Joint(), encoded(rng, rows, codes=0)),
        (Joint(), encoded(rng, rows, numbers=0)),
        (Text("multinomial"), encoded(rng, rows)),
        (Text("auto"), encoded(rng, rows)),
    ]


def close(one, other):
    for name, array in one.arrays().items():
        if not name.startswith("sample"):
            np.testing.assert_allclose(array, other.arrays()[name], rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("rows", [0, 1, 40, 1500])
@pytest.mark.parametrize("which", range(10))
def test_whole_shares_are_plain_counting(which, rows):
    rng = np.random.default_rng(which + rows)
    family, encoded_rows = families(rng, rows)[which]
    labels, weights = rng.integers(0, CLASSES, rows), rng.choice([0.0, 0.5, 1.0, 2.0], rows)
    hard = family.count(encoded_rows, labels, weights, CLASSES)
    soft = family.count(encoded_rows, np.eye(CLASSES)[labels], weights, CLASSES)
    assert len(hard) == len(soft)
    for one, other in zip(hard, soft, strict=True):
        close(one, other)


@pytest.mark.parametrize("which", range(10))
def test_a_share_is_a_weight(which):
    rng = np.random.default_rng(which)
    family, rows = families(rng, 60)[which]
    share = rng.dirichlet(np.ones(CLASSES), 60)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], 60)
    soft = family.count(rows, share, weights, CLASSES)
    doubled = family.count(rows, share * weights[:, None], np.ones(60), CLASSES)
    for one, other in zip(soft, doubled, strict=True):
        close(one, other)
    for c in range(CLASSES):  # and each class is the table weighed by its shares
        alone = family.count(rows, np.zeros(60, np.int64), share[:, c] * weights, 1)
        for one, other in zip(soft, alone, strict=True):
            np.testing.assert_allclose(one.weight()[..., c] if isinstance(family, Text) else one.weight()[c],
                                       other.weight()[..., 0] if isinstance(family, Text) else other.weight()[0],
                                       rtol=1e-12, atol=1e-12)  # fmt: skip


@pytest.mark.parametrize("which", range(8))
def test_missing_cells_add_nothing(which):
    rng = np.random.default_rng(which)
    family, rows = families(rng, 30)[which]
    gone = Encoded(np.full_like(rows.codes, -1), rows.low, rows.size, np.full_like(rows.numbers, np.nan))
    for statistic in family.count(gone, np.full((30, CLASSES), 1 / CLASSES), np.ones(30), CLASSES):
        assert not statistic.weight().any()


def test_variances_keep_their_digits_under_shares():
    rng = np.random.default_rng(0)
    x = 1.7e9 + rng.normal(size=(5000, 2))
    share = rng.dirichlet(np.ones(2), 5000)
    rows = Encoded(np.zeros((5000, 0), np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), x)
    for j, moments in enumerate(Gaussian().count(rows, share, np.ones(5000), 2)):
        small = x[:, j] - 1.7e9
        mean = share.T @ small / share.sum(0)
        spread = [share[:, c] @ (small - mean[c]) ** 2 for c in range(2)]
        np.testing.assert_allclose(moments.spread, spread, rtol=1e-6)  # raw sums of squares would leave no digit


@given(cases(weighted=None), st.booleans())
@examples(1)
def test_a_round_with_every_label_known_is_plain_counting(case, halves):
    model = case.learn()
    batch = next(iter(open_source(case.columns).batches()))
    labels = batch.coded("y")
    places = np.array([model.classes.index(v) for v in labels.values])[labels.codes - labels.low]
    weights = np.array(case.columns["w"], float) if case.weights else np.ones(case.rows)
    round_ = e_step_batch(LabelledRows(CachedBatch(batch, model.schema), places, weights), model.scorer, model.blocks)
    joint = model.posterior(case.columns).log_joint[np.arange(case.rows), places]
    used = weights > 0
    if not any(isinstance(block.family, Joint) for block in model.blocks):  # a value may stand in rows with gaps alone
        assert np.isclose(round_.log_likelihood, weights[used] @ joint[used]) or np.isinf(round_.log_likelihood)
    np.testing.assert_allclose(round_.tally.classes, model.tally.classes)
    for block, one, other in zip(model.blocks, round_.tally.statistics, model.tally.statistics, strict=True):
        if isinstance(block.family, Joint):  # which counts rows with gaps by what the rest of them leads one to expect
            whole = tuple(range(1, one.weight().ndim))
            assert (one.weight().sum(whole) >= other.weight().sum(whole) - 1e-9).all()
        else:
            for name, array in one.arrays().items():
                np.testing.assert_allclose(array, other.arrays()[name], rtol=1e-9, atol=1e-9)


def test_a_round_adds_over_batches():
    rng = np.random.default_rng(3)
    table = {"a": rng.normal(size=200).tolist(), "b": rng.choice(["u", "v", "w"], 200).tolist(), "y": ["p", "q"] * 100}
    batch = next(iter(open_source(table).batches()))
    plan = Plan("y", *_plan(batch))
    model = Model(tally_batch(batch, plan), Priors())
    hidden, ones = np.full(200, -1), np.ones(200)
    whole = e_step_batch(LabelledRows(CachedBatch(batch, model.schema), hidden, ones), model.scorer, model.blocks)
    parts = [{name: column[a:b] for name, column in table.items()} for a, b in ((0, 70), (70, 200))]
    rounds = [
        e_step_batch(LabelledRows(CachedBatch(next(iter(open_source(p).batches())), model.schema),
                                  np.full(len(p["y"]), -1), np.ones(len(p["y"]))), model.scorer, model.blocks)
        for p in parts
    ]  # fmt: skip
    summed = rounds[0] + rounds[1]
    assert np.isclose(summed.log_likelihood, whole.log_likelihood, rtol=1e-12)
    for one, other in zip(summed.tally.statistics, whole.tally.statistics, strict=True):
        close(one, other)
    posterior = model.posterior(table)
    assert np.isclose(whole.log_likelihood, normalise(posterior.log_joint, posterior.log_prior)[1].sum())


def _plan(batch):
    from likely.engines.planning import plan_columns

    plan = plan_columns(batch, ["a", "b"], "y", None, ())
    return plan.blocks, plan.columns


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
def test_bells_in_one_loop_are_what_scoring_sharing_out_and_counting_give(gaps, compiled, monkeypatch):
    rng = np.random.default_rng(3)
    rows, k = 700, 3
    x = 1e6 + rng.normal(size=(rows, 4)) * [1.0, 30.0, 0.01, 0.0]
    x[::50, 0] += 1e3  # beyond every component: the shares of most are zero
    if gaps:
        x[rng.random(x.shape) < 0.1] = np.nan
    labels, weights = rng.integers(-1, k, rows), rng.choice([0.0, 0.5, 3.0], rows)
    labels[100:400] = -1
    made = likely.Mixture(k, families="gaussian", max_iter=2, tol=-1.0).fit(np.nan_to_num(x, nan=1e6))
    held = CachedBatch(rows_of(made, x, reset=False), made.model_.schema)
    if compiled:
        monkeypatch.setattr(Kernel, "tiny", 0)
        monkeypatch.setattr("likely.kernels.kernel.LARGE", 0)
    one = e_step_batch(LabelledRows(held, labels, weights), made.model_.model.scorer, made.model_.blocks)
    other = e_step_batch(LabelledRows(held, labels, weights), made.model_.model.scorer, made.model_.blocks, entropy=True)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-13)
    np.testing.assert_allclose(one.tally.classes, other.tally.classes, rtol=1e-12)
    for mine, theirs in zip(one.tally.statistics, other.tally.statistics, strict=True):
        np.testing.assert_allclose(mine.n, theirs.n, rtol=1e-12)
        np.testing.assert_allclose(mine.mean, theirs.mean, rtol=1e-14)
        np.testing.assert_allclose(mine.spread, theirs.spread, rtol=1e-8)  # a mean of 1e6 has ten digits after the point
    assert (one.tally.statistics[3].spread == 0.0).all()  # a constant has none
