"""Baum and Welch's rounds beside those of hmmlearn, from the same start, with the same priors or none."""

import logging

import numpy as np
import pytest

import likely

hmm = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn IS NOT INSTALLED: nothing is compared with it")
logging.getLogger("hmmlearn").setLevel(logging.ERROR)
pytestmark = pytest.mark.filterwarnings("ignore:EM did not converge")
ROUNDS = 15
START = np.array([0.6, 0.3, 0.1, 0.0])
MOVE = np.array([[0.7, 0.2, 0.0, 0.1], [0.3, 0.5, 0.2, 0.0], [0.0, 0.3, 0.5, 0.2], [0.2, 0.0, 0.2, 0.6]])
MEANS = np.array([[0.0, 0.0], [0.0, 11.0], [9.0, 10.0], [11.0, -1.0]])


def sampled(rows, seed=0):
    """The four states of hmmlearn's own example of drawing from a Gaussian model: corners of a square, some moves barred."""
    rng = np.random.default_rng(seed)
    states = [0]
    for _ in range(rows - 1):
        states.append(rng.choice(4, p=MOVE[states[-1]]))
    return MEANS[states] + rng.normal(0, np.sqrt(0.5), (rows, 2)) * 4, np.array(states)


def hmmlearn_model(kind, X, labels, **priors):
    peer = hmm.GaussianHMM(
        4, kind, n_iter=ROUNDS, tol=-np.inf, init_params="", **({"means_weight": 0.0, "covars_prior": 0.0} | priors)
    )
    peer.startprob_, peer.transmat_ = np.full(4, 0.25), 0.2 * np.full((4, 4), 0.25) + 0.8 * np.roll(np.eye(4), 1, 1)
    groups = [X[labels == c] for c in range(4)]
    peer.means_ = np.array([g.mean(0) for g in groups])
    peer.covars_ = np.array([g.var(0) if kind == "diag" else np.cov(g.T, bias=True) for g in groups])
    return peer


def ours(families, peer, X, labels, **settings):
    emission = likely.learn({"x0": X[:, 0], "x1": X[:, 1], "s": labels}, "s", families=families, smoothing=0)
    given = {"start": peer.startprob_, "transition": peer.transmat_, "emission": emission}
    return likely.HiddenMarkov(
        4, families, max_iter=ROUNDS + 1, tol=-np.inf, **({"smoothing": 0} | settings), start=given
    )


def agree(found, peer, X, lengths, covariances=None, *, penalised=False):
    if not penalised:  # hmmlearn's history leaves the priors out
        np.testing.assert_allclose(found.trace_[:-1], peer.monitor_.history, rtol=1e-9)
    assert found.score(X, lengths=lengths) == pytest.approx(peer.score(X, lengths), abs=1e-6)
    np.testing.assert_allclose(found.start_, peer.startprob_, atol=1e-6)
    np.testing.assert_allclose(found.transition_, peer.transmat_, atol=1e-6)
    np.testing.assert_allclose(found.predict_proba(X, lengths), peer.predict_proba(X, lengths), atol=1e-6)
    assert (found.predict(X, lengths) == peer.predict(X, lengths)).all()
    if covariances is not None:
        np.testing.assert_allclose(found.means_, peer.means_, atol=1e-6)
        np.testing.assert_allclose(found.covariances_, covariances, atol=1e-6)


@pytest.mark.parametrize(("families", "kind"), [("gaussian", "diag"), ("joint", "full")])
@pytest.mark.parametrize("lengths", [[900], [300, 1, 99, 500]])
@pytest.mark.parametrize("implementation", ["log", "scaling"])
def test_gaussians_are_those_of_hmmlearn_round_by_round(families, kind, lengths, implementation):
    X, states = sampled(900)
    labels = np.where(np.arange(900) % 7 == 0, (states + 1) % 4, states)
    peer = hmmlearn_model(kind, X, labels, implementation=implementation)
    found = ours(families, peer, X, labels)
    peer.fit(X, lengths)
    found.fit(X, lengths=lengths)
    covariances = peer.covars_ if kind == "full" else np.array([np.diag(c) for c in peer.covars_])
    agree(found, peer, X, lengths, covariances)


def test_imagined_rows_are_the_priors_of_hmmlearn():
    """One imagined row of variance v, and one imagined move of each kind: covars_weight=2, Dirichlet parameters of 2."""
    X, states = sampled(600, 1)
    peer = hmmlearn_model("diag", X, states, covars_prior=0.8, covars_weight=2.0, startprob_prior=2.0, transmat_prior=2.0)
    found = ours("gaussian", peer, X, states, smoothing=likely.Spread(1, 0.8), transition_smoothing=1)
    rows = [X[states == c] for c in range(4)]
    peer.covars_ = np.array([(((r - r.mean(0)) ** 2).sum(0) + 0.8) / (len(r) + 1) for r in rows])
    peer.fit(X, [200, 400])
    found.fit(X, lengths=[200, 400])
    agree(found, peer, X, [200, 400], np.array([np.diag(c) for c in peer.covars_]), penalised=True)


@pytest.mark.parametrize("imagined", [0.0, 1.0])
@pytest.mark.parametrize("lengths", [[1200], [700, 500]])
def test_categories_are_those_of_hmmlearn_round_by_round(imagined, lengths):
    """A die that is sometimes loaded, as in hmmlearn's casino."""
    rng = np.random.default_rng(4)
    loaded = (np.cumsum(rng.random(1200) < 0.08) % 2).astype(bool)
    X = np.where(loaded, rng.choice(6, 1200, p=[0.1] * 5 + [0.5]), rng.integers(0, 6, 1200))[:, None]
    first = np.where(X[:, 0] == 5, 1, rng.integers(0, 2, 1200))
    prior = {"startprob_prior": 1 + imagined, "transmat_prior": 1 + imagined, "emissionprob_prior": 1 + imagined}
    peer = hmm.CategoricalHMM(2, n_iter=ROUNDS, tol=-np.inf, init_params="", **prior)
    peer.startprob_, peer.transmat_ = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.2, 0.8]])
    counts = np.array([np.bincount(X[first == c, 0], minlength=6) for c in range(2)]) + imagined
    peer.emissionprob_ = counts / counts.sum(1, keepdims=True)
    peer.n_features = 6
    emission = likely.learn({"x0": X[:, 0], "s": first}, "s", families="categorical", smoothing=imagined)
    found = likely.HiddenMarkov(
        2, "categorical", max_iter=ROUNDS + 1, tol=-np.inf, smoothing=imagined,
        start={"start": peer.startprob_, "transition": peer.transmat_, "emission": emission},
    )  # fmt: skip
    peer.fit(X, lengths)
    found.fit(X, lengths=lengths)
    table = {(row["class"], row["value"]): row["probability"] for row in found.emission_["x0"]}
    for c in range(2):
        for value in range(6):
            assert table[c, value] == pytest.approx(peer.emissionprob_[c, value], abs=1e-6)
    agree(found, peer, X, lengths, penalised=imagined > 0)
