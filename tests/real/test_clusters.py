"""Real tables without their labels: as good as the best of twenty starts of scikit-learn's mixture."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import likely
import standins
from likely import Mixture, TextNaiveBayes

pytestmark = pytest.mark.real

KINDS = {"diag": "gaussian", "full": "joint", "tied": "joint:class", "spherical": "gaussian:column"}


def iris(_):
    table = datasets.load_iris(as_frame=True)
    return table.data, table.target


def penguins(shared_data):
    table = pd.read_parquet(shared_data("penguins.parquet")).dropna(subset=["bill_length_mm"])
    return table[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]], table["species"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", [iris, penguins] if standins.PUBLISHED.exists() else [iris])
def test_clusters_agree_with_the_species_as_well_as_scikit_learns_best_of_twenty(shared_data, table, kind):
    x, species = table(shared_data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = GaussianMixture(3, covariance_type=kind, n_init=20, random_state=0).fit(x)
        made = Mixture(3, families=KINDS[kind], n_init=20).fit(x)
    ours, theirs = adjusted_rand_score(species, made.labels_), adjusted_rand_score(species, peer.predict(x))
    assert ours >= theirs - 1e-12


@pytest.mark.parametrize("kind", ["diag", "full"])
def test_from_the_same_start_the_same_end(shared_data, kind):
    x = iris(shared_data)[0].to_numpy()
    start = x[[0, 60, 120]]
    precision = 1 / x.var(0)
    precisions = np.tile(precision, (3, 1)) if kind == "diag" else np.tile(np.diag(precision), (3, 1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = GaussianMixture(3, covariance_type=kind, reg_covar=0, tol=1e-12, max_iter=2000, means_init=start,
                                weights_init=np.full(3, 1 / 3), precisions_init=precisions).fit(x)  # fmt: skip
        made = Mixture(3, families=KINDS[kind], smoothing=0, start=start, tol=1e-12, max_iter=2000).fit(x)
    assert made.score(x) == pytest.approx(peer.score(x), rel=1e-6)
    np.testing.assert_allclose(made.means_, peer.means_, rtol=1e-3)
    np.testing.assert_allclose(made.predict_proba(x), peer.predict_proba(x), atol=1e-3)


def test_penguins_with_island_sex_and_gaps_come_apart_too(shared_data):
    table = pd.read_parquet(shared_data("penguins.parquet"))
    model = likely.cluster(table, 3, ignore=["species", "island", "sex"], joint=[
        ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")])  # fmt: skip
    assert adjusted_rand_score(table["species"], model.predict(table)) > 0.9


def test_posts_without_a_label_lower_the_error_by_two_fifths(shared_data):
    import pyarrow.parquet as pq

    table = pq.read_table(shared_data("twenty_newsgroups.parquet"), columns=["text", "label", "split"])
    texts, labels = table["text"].to_pylist(), np.array(table["label"].to_pylist())
    train = np.array(table["split"].to_pylist()) == "train"
    groups = np.unique(labels)[::4]  # one of each subject: EM over all twenty takes ten times as long
    asked = np.isin(labels, groups)
    some, rest = np.flatnonzero(train & asked), np.flatnonzero(~train & asked)
    rng = np.random.default_rng(0)
    kept = np.concatenate([rng.choice(some[labels[some] == g], 20, replace=False) for g in groups])
    hidden = np.full(len(labels), None, dtype=object)
    hidden[kept] = labels[kept]
    alone = TextNaiveBayes().fit([texts[i] for i in kept], labels[kept])
    both = TextNaiveBayes().fit([texts[i] for i in some], hidden[some])
    test = [texts[i] for i in rest]
    errors = [float((m.predict(test) != labels[rest]).mean()) for m in (alone, both)]
    assert errors[1] <= 0.6 * errors[0]
