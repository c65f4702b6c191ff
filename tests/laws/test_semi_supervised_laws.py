"""The weight of unlabelled rows: taken where it clearly helps, the smallest that does, and 0 where clusters are not classes."""

import numpy as np
import pytest

import likely
from likely.latent.semi_supervised import _HeldOut, smallest_good
from strategies import quietly


def test_plain_learning_stays_unless_another_weight_is_clearly_better():
    noise = np.random.default_rng(0).normal(size=40)
    plain = np.zeros(40)
    assert smallest_good({0.0: plain, 0.1: plain - 1, 1.0: noise - noise.mean() + 0.1}) == 0.0
    assert smallest_good({0.0: plain, 0.1: plain - 1, 1.0: noise - noise.mean() + 0.5}) == 1.0


def test_of_weights_that_are_about_as_good_the_smallest_is_taken():
    noise = np.random.default_rng(0).normal(size=40)
    noise -= noise.mean()
    plain = np.full(40, -2.0)
    assert smallest_good({0.0: plain, 0.1: plain + 0.9 + noise, 1.0: plain + 1.0}) == 0.1
    assert smallest_good({0.0: plain, 0.1: plain + 0.1 + 0.1 * noise, 1.0: plain + 1.0}) == 1.0


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_every_labelled_row_is_held_out_in_one_fold_and_folds_are_equal_by_class(folds):
    rng = np.random.default_rng(folds)
    parts = [(None, rng.integers(-1, 3, rows), np.ones(rows)) for rows in (40, 7, 60)]
    labels = np.concatenate([part[1] for part in parts])
    held = []
    for fold in range(folds):
        left = list(_HeldOut(parts, fold, 3, folds))
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
