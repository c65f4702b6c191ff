"""Marginal likelihoods are probabilities: over all small tables they sum to one."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import likely
from likely.errors import UsageError

LABELS = ["a", "a", "b"]
FLAT = {"a": 0.5, "b": 0.5}


def log_marginal(table: dict[str, list], **settings) -> float:
    model = likely.learn(table | {"y": LABELS}, "y", class_prior=FLAT, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.log_marginal_likelihood + len(LABELS) * math.log(2)


def total(tables, **settings) -> float:
    return math.fsum(math.exp(log_marginal(table, **settings)) for table in tables)


def test_categories_sum_to_one() -> None:
    prior = likely.Dirichlet({"u": 2, "v": 1, "w": 3})
    tables = ({"x": list(cells)} for cells in itertools.product("uvw", repeat=3))
    assert total(tables, smoothing=prior) == pytest.approx(1.0, abs=1e-12)


def test_yes_and_no_sum_to_one() -> None:
    tables = ({"x": list(cells)} for cells in itertools.product([0, 1], repeat=3))
    assert total(tables, families="bernoulli", smoothing=0.5) == pytest.approx(1.0, abs=1e-12)


def test_successes_among_trials_sum_to_one() -> None:
    tables = ({"x": list(cells)} for cells in itertools.product(range(4), repeat=3))
    assert total(tables, families={"x": likely.Binomial(3)}, smoothing=1) == pytest.approx(1.0, abs=1e-12)


def test_counts_sum_to_one() -> None:
    tables = ({"x": list(cells)} for cells in itertools.product(range(16), repeat=3))
    assert total(tables, families="poisson", smoothing=likely.GammaPrior(2, 6)) == pytest.approx(1.0, abs=1e-5)


def test_count_vectors_of_given_sums_sum_to_one() -> None:
    rows = [[(i, n - i) for i in range(n + 1)] for n in (2, 3, 1)]
    tables = ({"u": [u for u, _ in cells], "v": [v for _, v in cells]} for cells in itertools.product(*rows))
    assert total(tables, families={("u", "v"): "multinomial"}, smoothing=1) == pytest.approx(1.0, abs=1e-12)


def test_cells_of_a_joint_table_sum_to_one() -> None:
    pairs = list(itertools.product("uv", "st"))
    tables = ({"x": [x for x, _ in cells], "z": [z for _, z in cells]} for cells in itertools.product(pairs, repeat=3))
    prior = likely.Dirichlet(dict.fromkeys(pairs, 1.5))
    assert total(tables, joint=[("x", "z")], smoothing=prior) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli"])
def test_a_text_s_marginal_likelihood_is_the_product_of_predictions(kind: str) -> None:
    """Words come one after the other; of a Bernoulli text each word is a yes/no column."""
    texts = ["uu vv uu", "vv", "ww uu vv"]
    found = log_marginal({"t": texts}, families={"t": likely.Text(kind)}, smoothing=1)
    wanted = 0.0
    for documents in (texts[:2], texts[2:]):
        if kind == "multinomial":
            seen = dict.fromkeys(("uu", "vv", "ww"), 1.0)
            for word in " ".join(documents).split():
                wanted += math.log(seen[word] / sum(seen.values()))
                seen[word] += 1
        else:
            for word in ("uu", "vv", "ww"):
                yes, no = 1.0, 1.0
                for document in documents:
                    wanted += math.log((yes if word in document.split() else no) / (yes + no))
                    yes, no = yes + (word in document.split()), no + (word not in document.split())
    assert found == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("tie", ["column", "both"])
def test_columns_that_share_a_variance_are_integrated_out_together(tie: str) -> None:
    """The mean of random draws of the parameters from the prior, weighted by the likelihood."""
    x, z = [0.3, 1.1, -0.4], [1.0, 0.2, 0.9]
    prior = likely.NormalInverseGamma(0.2, 1.5, 3.0, 2.0)
    found = log_marginal({"x": x, "z": z}, families=f"gaussian:{tie}", smoothing=prior)
    rng, n = np.random.default_rng(0), 400_000
    variance = {label: 2.0 / rng.gamma(3.0, size=n) for label in "ab"}
    if tie == "both":
        variance["b"] = variance["a"]
    logs = np.zeros(n)
    for label in "ab":
        for column in (x, z):
            mean = rng.normal(0.2, np.sqrt(variance[label] / 1.5))
            for value, own in zip(column, LABELS, strict=True):
                if own == label:
                    logs += -0.5 * np.log(2 * np.pi * variance[label]) - (value - mean) ** 2 / (2 * variance[label])
    assert found == pytest.approx(math.log(np.exp(logs).mean()), abs=0.02)


def test_an_average_over_structures_has_the_mean_of_their_marginal_likelihoods() -> None:
    table = {"u": list("aab"), "v": list("xyx")}
    both = log_marginal(table, smoothing=1, average=True)
    parts = []
    for name, cells in table.items():
        on = log_marginal({name: cells}, smoothing=1)
        alike = 1 / 2 * 2 / 3 * 1 / 4  # a value, the same again, then the other
        parts.append(0.5 * math.exp(on) + 0.5 * alike)
    assert both == pytest.approx(math.log(parts[0] * parts[1]), abs=1e-12)


def test_counts_forgotten_merged_and_stored_keep_their_coefficients(tmp_path) -> None:
    table = {"x": [3, 5, 0, 7], "y": list("aabb")}
    prior = {"families": "poisson", "smoothing": likely.GammaPrior(2, 1)}
    whole = likely.learn(table, "y", **prior)
    half = likely.learn({"x": [3, 0], "y": list("ab")}, "y", **prior)
    rest = {"x": [5, 7], "y": list("ab")}
    wanted = whole.log_marginal_likelihood
    assert (half + likely.learn(rest, "y", **prior)).log_marginal_likelihood == pytest.approx(wanted, abs=1e-12)
    assert half.update(rest).log_marginal_likelihood == pytest.approx(wanted, abs=1e-12)
    assert whole.forget(rest).log_marginal_likelihood == pytest.approx(half.log_marginal_likelihood, abs=1e-9)
    whole.save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely")
    assert again == whole
    assert again.log_marginal_likelihood == wanted


def test_counts_of_an_older_version_have_no_marginal_likelihood() -> None:
    from dataclasses import replace

    from likely.families.statistics import Counts

    model = likely.learn({"x": [1, 2], "y": ["a", "b"]}, "y", families="poisson", smoothing=likely.GammaPrior(1, 1))
    old = replace(model, tally=replace(model.tally, statistics=(Counts(model.tally.statistics[0].seen),)))
    assert old.predict([{"x": 2}]) == ["b"]
    assert (old + model).tally.rows == 4
    with pytest.raises(UsageError, match="older version"):
        _ = old.log_marginal_likelihood
