"""The weight of unlabelled rows: taken where it clearly helps, the smallest that does, and 0 where clusters are not classes."""

from dataclasses import replace

import numpy as np
import pytest

import likely
from likely.engines.e_step import CachedBatch, LabelledRows
from likely.kernels.progress import listening
from likely.latent import semi_supervised
from likely.latent._unlabelled_choice import PLAIN, HeldOut, HeldOutScores, Strategy, class_proportions, first_good
from likely.latent.semi_supervised import LabelDraw
from likely.sources import open_source
from strategies import quietly


def chosen(scores, weights=None):
    """The weight of the strategy that is chosen, plain learning first."""
    return first_good({Strategy(weight): each for weight, each in scores.items()}, weights).em


def test_plain_learning_stays_unless_another_weight_is_clearly_better():
    noise = np.random.default_rng(0).normal(size=40)
    plain = np.zeros(40)
    assert chosen({0.0: plain, 0.1: plain - 1, 1.0: noise - noise.mean() + 0.1}) == 0.0
    assert chosen({0.0: plain, 0.1: plain - 1, 1.0: noise - noise.mean() + 0.5}) == 1.0


def test_of_weights_that_are_about_as_good_the_smallest_is_taken():
    noise = np.random.default_rng(0).normal(size=40)
    noise -= noise.mean()
    plain = np.full(40, -2.0)
    assert chosen({0.0: plain, 0.1: plain + 0.9 + noise, 1.0: plain + 1.0}) == 0.1
    assert chosen({0.0: plain, 0.1: plain + 0.1 + 0.1 * noise, 1.0: plain + 1.0}) == 1.0


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_every_labelled_row_is_held_out_in_one_fold_and_folds_are_equal_by_class(folds):
    rng = np.random.default_rng(folds)
    parts = [(None, rng.integers(-1, 3, rows), np.ones(rows)) for rows in (40, 7, 60)]
    labels = np.concatenate([part[1] for part in parts])
    held = []
    for fold in range(folds):
        left = list(HeldOut(parts, fold, 3, folds))
        after, weights = (np.concatenate([part[k] for part in left]) for k in (1, 2))
        held.append(after != labels)
        assert ((weights == 0) == held[-1]).all()
        counts = np.bincount(labels[held[-1]], minlength=3)
        assert (np.abs(counts - np.bincount(labels[labels >= 0], minlength=3) / folds) < 1).all()
    assert (np.sum(held, 0) == (labels >= 0)).all()


def table(rng, sizes, centres, labels=6, across=False):
    """Rows of classes a, b, ... around their centres, `labels` of each with a label; `across`: clusters that are no classes."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    x = np.asarray(centres, float)[y] + rng.normal(size=(len(y), 4))
    if across:
        x[:, 1:] += 8 * rng.integers(0, 2, len(y))[:, None]
    known = np.concatenate([np.flatnonzero(y == c)[:labels] for c in range(len(sizes))])
    names = np.array(list("abcdef"))[y]
    shown = [name if i in set(known.tolist()) else None for i, name in enumerate(names)]
    return {f"x{j}": x[:, j] for j in range(4)}, shown, names


@pytest.mark.parametrize("seed", [101, 102, 103])
def test_clusters_that_are_no_classes_do_not_hurt(seed):
    centres = [[-1, 0, 0, 0], [1, 0, 0, 0]]
    columns, shown, names = table(np.random.default_rng(seed), (150, 150), centres, across=True)
    model = quietly(likely.learn, columns | {"y": shown}, "y", families="gaussian")
    plain = quietly(likely.learn, columns | {"y": shown}, "y", families="gaussian", unlabelled="ignore")
    right, before = (float((m.predict(columns) == names).mean()) for m in (model, plain))
    assert right >= before - 0.02


@pytest.mark.parametrize("seed", [101, 102, 103])
def test_rows_of_other_class_shares_than_the_labels_help(seed):
    centres = [[-1.5, -1.5, 0, 0], [1.5, 1.5, 0, 0], [0, 0, 2, 2]]
    columns, shown, names = table(np.random.default_rng(seed), (400, 60, 20), centres, labels=3)
    model = quietly(likely.learn, columns | {"y": shown}, "y", families="gaussian", smoothing=1.0)
    plain = quietly(likely.learn, columns | {"y": shown}, "y", families="gaussian", smoothing=1.0, unlabelled="ignore")
    wrong, before = (float((m.predict(columns) != names).mean()) for m in (model, plain))
    assert wrong <= before


def test_class_shares_are_those_of_rows_drawn_with_them_whatever_the_prior_was():
    rng = np.random.default_rng(0)
    truth, prior = np.array([0.7, 0.25, 0.05]), np.full(3, 1 / 3)
    x = np.array([-2.0, 0.0, 2.0])[rng.choice(3, 4_000, p=truth)] + rng.normal(size=4_000)
    joint = -((x[:, None] - np.array([-2.0, 0.0, 2.0])) ** 2) / 2 + np.log(prior)
    posteriors = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    assert np.abs(np.exp(posteriors).mean(0) - truth).max() > 0.05
    assert np.abs(class_proportions(posteriors, np.ones(4_000), np.log(prior)) - truth).max() < 0.02
    halves = np.where(x < 0, 1.0, 0.0)  # rows of weight 0 do not count
    assert class_proportions(posteriors, halves, np.log(prior))[2] < 0.01


def test_held_out_rows_weigh_as_much_as_their_class_has_rows_without_a_label():
    rare_gains, common_gains = np.array([2.0, 2.0, 2.0, 2.0]), np.array([-1.0, -1.1, -0.9, -1.0])
    scores = {0.0: np.zeros(8), 1.0: np.concatenate([rare_gains, common_gains])}
    assert chosen(scores, np.repeat([1.8, 0.2], 4)) == 1.0
    assert chosen(scores, np.repeat([0.2, 1.8], 4)) == 0.0


@pytest.mark.parametrize("seed", [3, 4])
def test_responsibilities_near_zero_and_one_do_not_replace_probabilities_after_a_few_labels(seed):
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(seed)
    known = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:5] for c in (0, 1)])
    rest = np.setdiff1d(np.arange(len(y)), known)
    shown = np.full(len(y), None, dtype=object)
    shown[known] = y[known]
    model = quietly(likely.NaiveBayes().fit, X, shown)
    plain = quietly(likely.NaiveBayes().fit, X[known], y[known])
    loss, before = (-m.predict_log_proba(X[rest])[np.arange(len(rest)), y[rest]].mean() for m in (model, plain))
    assert loss <= before + 0.02


def test_held_out_labels_that_are_all_right_by_luck_do_not_decide():
    lucky = {0.0: np.full(10, -0.4), 0.1: np.full(10, -0.1), 1.0: np.full(10, -1e-6)}
    lucky = {choice: each + 1e-3 * np.arange(10) for choice, each in lucky.items()}
    unsure, sure = {0.0: -1.0, 0.1: -1.2, 1.0: -2.0}, {0.0: -1.0, 0.1: -12.0, 1.0: -15.0}

    def with_one_more(random):
        scores = {Strategy(weight): np.append(each, random[weight]) for weight, each in lucky.items()}
        return HeldOutScores(scores, np.ones(11)).choice()[0]

    assert with_one_more(unsure) != PLAIN
    assert with_one_more(sure) == PLAIN


def test_a_chosen_weight_is_fitted_by_as_many_iterations_as_were_tried(monkeypatch):
    centres = [[-2, -2, 0, 0], [2, 2, 0, 0]]
    columns, shown, _ = table(np.random.default_rng(7), (150, 150), centres, labels=10)
    rows = np.column_stack(list(columns.values()))
    monkeypatch.setattr(HeldOutScores, "choice", lambda _: (Strategy(1.0), {}))
    settings = {"families": "gaussian", "tol": 0.0, "max_iter": 9}
    chosen = quietly(likely.NaiveBayes(**settings).fit, rows, shown)
    assert 4 < chosen.n_iter_ <= 9  # fewer than are tried
    monkeypatch.setattr(semi_supervised, "TRIAL_ROUNDS", 4)
    chosen = quietly(likely.NaiveBayes(**settings).fit, rows, shown)
    assert (chosen.n_iter_, chosen.unlabelled_) == (4, 1.0)


# ---------------------------------------------------------------- texts: labels are drawn


def test_drawn_labels_follow_the_posterior_and_known_ones_stay():
    rows, p = 6_000, np.array([0.6, 0.3, 0.1])
    labels = np.where(np.arange(rows) < 1_000, 2, -1)
    weights = np.random.default_rng(1).random(rows)
    logs = np.tile(np.log(p) + 5.0, (rows, 1))  # need not sum to one
    parts = [(None, labels, weights)]
    (drawn,) = LabelDraw().labelled(parts, [logs], draw=0)
    assert (drawn[1][:1_000] == 2).all()
    assert (drawn[2][:1_000] == weights[:1_000]).all()
    assert np.bincount(drawn[1][1_000:]) / 5_000 == pytest.approx(p, abs=0.02)
    assert drawn[2][1_000:] == pytest.approx(0.3 * weights[1_000:])
    (again,), (other,) = (list(LabelDraw().labelled(parts, [logs], draw=k)) for k in (0, 1))
    assert (again[1] == drawn[1]).all()
    assert (other[1] != drawn[1]).any()
    (some,) = LabelDraw(share=0.25).labelled(parts, [logs], draw=0)
    assert (some[2][1_000:] > 0).mean() == pytest.approx(0.25, abs=0.02)
    assert (some[2][:1_000] > 0).all()


def test_a_class_that_cannot_be_is_not_drawn_and_doubt_exchanges_labels():
    sure = np.log(np.where(np.arange(4_000)[:, None] % 2 == [0, 1], 1.0, 1e-300))
    sure[:, :] = np.where(sure < -100, -np.inf, 0.0)
    parts = [(None, np.full(4_000, -1), np.ones(4_000))]
    truth = np.arange(4_000) % 2
    (drawn,) = LabelDraw().labelled(parts, [sure], draw=0)
    assert (drawn[1] == truth).all()
    (doubted,) = LabelDraw(doubt=0.2).labelled(parts, [sure], draw=0)
    assert (doubted[1] != truth).mean() == pytest.approx(0.1, abs=0.02)  # half of those exchanged have the same label
    assert (np.bincount(doubted[1]) == np.bincount(truth)).all()


def documents(seed, sizes, labels, of_topic=True):
    """Texts of topics with words of their own, and their labels; `labels` of each class are shown."""
    rng = np.random.default_rng(seed)
    topics = np.repeat(np.arange(len(sizes)), sizes)
    rng.shuffle(topics)
    common = 1 / np.arange(1, 301)
    texts = []
    for topic in topics:
        chance = common.copy()
        chance[topic * 40 + 20 : topic * 40 + 60] *= 8
        words = rng.choice(300, rng.integers(8, 25), p=chance / chance.sum())
        texts.append(" ".join(f"w{word}" for word in words))
    truth = np.array(list("abcdef"))[topics] if of_topic else rng.choice(["a", "b"], len(texts))
    known = np.concatenate([np.flatnonzero(truth == c)[:labels] for c in np.unique(truth)])
    shown = np.full(len(texts), None, dtype=object)
    shown[known] = truth[known]
    return texts, shown, truth


def loss(model, texts, truth):
    p = model.predict_proba({"text": texts})
    return float(-np.log(p[np.arange(len(truth)), [list(model.classes).index(c) for c in truth]]).mean())


def test_unlabelled_texts_help_where_topics_are_classes():
    less, shares = [], []
    for seed in range(12, 18):
        texts, shown, _ = documents(seed, (500, 250, 100, 50), labels=6)
        new, _, true = documents(seed + 100, (200, 100, 40, 20), labels=1)
        model = quietly(likely.learn, {"text": texts, "y": shown}, "y")
        plain = quietly(likely.learn, {"text": texts, "y": shown}, "y", unlabelled="ignore")
        less.append(loss(model, new, true) / loss(plain, new, true))
        if model.tally.rows > 24:
            assert model.tally.classes.sum() == pytest.approx(24 + 0.3 * (900 - 24))
            shares.append(np.exp(model.scorer.log_prior))
    assert max(less) <= 1.0
    assert np.median(less) < 0.8
    assert len(shares) >= 3
    truth, labels = np.array([500, 250, 100, 50]) / 900, np.full(4, 0.25)
    assert all(np.abs(found - truth).sum() < 0.7 * np.abs(labels - truth).sum() for found in shares)


def test_unlabelled_texts_do_not_hurt_where_topics_are_no_classes():
    more = []
    for seed in range(20, 26):
        texts, shown, _ = documents(seed, (250, 250, 100), labels=12, of_topic=False)
        new, _, true = documents(seed + 100, (150, 150, 60), labels=1, of_topic=False)
        model = quietly(likely.learn, {"text": texts, "y": shown}, "y")
        plain = quietly(likely.learn, {"text": texts, "y": shown}, "y", unlabelled="ignore")
        more.append(loss(model, new, true) - loss(plain, new, true))
    assert np.mean(more) <= 0.01
    assert max(more) <= 0.06


def test_rows_are_counted_by_their_label_or_else_by_their_posterior():
    table = {"x": ["u", "v", "v", "u"], "y": ["a", "b", "b", "a"]}
    blank = likely.learn(table, "y", plain=True)
    blank = replace(blank, tally=blank.tally.zero())
    labels, weights = np.array([0, 1, -1, -1]), np.array([1.0, 2.0, 1.0, 4.0])
    rows = LabelledRows(CachedBatch(next(iter(open_source(table).batches())), blank.schema), labels, weights)
    wrong = np.log([[0.01, 0.99], [0.99, 0.01], [0.25, 0.75], [0.5, 0.5]])
    counted = semi_supervised.count_by_posteriors(rows, wrong, blank, 0.5)
    assert counted.classes == pytest.approx([1.0 + 0.5 * 0.25 + 0.5 * 4 * 0.5, 2.0 + 0.5 * 0.75 + 0.5 * 4 * 0.5])
    by_hand = {("u", "a"): 1 + 0.5 * 4 * 0.5, ("v", "a"): 0.5 * 0.25, ("u", "b"): 0.5 * 4 * 0.5, ("v", "b"): 2 + 0.5 * 0.75}
    codes = [blank.schema.by_name["x"].code[value] for value in ("u", "v")]
    seen = counted.statistics[0].seen[:, codes]
    assert seen == pytest.approx(np.array([[by_hand[v, c] for v in "uv"] for c in "ab"]))


def test_held_out_labels_are_scored_under_the_class_proportions_that_are_given():
    labels = np.array([0, 1, 0, 1, -1])
    parts = [LabelledRows(None, labels, np.ones(5))]
    own = np.log([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5], [0.5, 0.5]])
    shares = np.array([0.25, 0.75])
    (held,) = (rows for _, rows in HeldOut(parts, 0, 2, 2)._rows())
    found = HeldOut(parts, 0, 2, 2).score([own], np.log(shares) - np.log(0.5), shares)
    moved = np.exp(own[held]) * shares
    moved /= moved.sum(axis=1, keepdims=True)
    assert found[:-1] == pytest.approx(np.log(moved[np.arange(len(held)), labels[held]]))
    assert found[-1] == pytest.approx((np.log(moved) @ shares).mean())


def test_the_choice_announces_its_folds():
    texts, shown, _ = documents(12, (60, 40), labels=6)
    steps = []
    with listening(steps.append):
        quietly(likely.learn, {"text": texts, "y": shown}, "y")
    folds = [step.what for step in steps if step.what.startswith("use of unlabelled rows")]
    assert folds == [f"use of unlabelled rows, fold {i} of 5" for i in range(1, 6)]
