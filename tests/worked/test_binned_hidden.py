"""A column that is asked for as binned stays binned where rows have no label: a histogram of responsibilities a class."""

import numpy as np
import pytest

import likely
from likely.errors import UsageError
from likely.families import Binned
from likely.latent import em
from tables import learn


def partly(rows=400, seed=0):
    """Two columns of which each class has a shape no Gaussian has; one label in ten is known."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    ends = rng.choice([-2.0, 2.0], rows)
    t = np.where(y == 0, ends, 0.0) + 0.3 * rng.normal(size=rows)
    s = np.where(y == 0, 0.0, rng.choice([-3.0, 3.0], rows)) + 0.5 * rng.normal(size=rows)
    label = [None if i % 10 else "ab"[c] for i, c in enumerate(y)]
    return {"t": t.tolist(), "s": s.tolist(), "y": label}, np.array(["a", "b"])[y]


def test_it_is_counted_by_responsibilities_and_is_the_family_in_the_schema():
    data, truth = partly()
    model = learn(data, families={"t": "binned:12", "s": "binned:12"}, unlabelled=1.0)
    assert all(isinstance(block.family, Binned) for block in model.blocks)
    assert model.schema.by_name["t"].reason == "binned as asked for"
    assert {"from", "to", "probability"} <= model.parameters["t"][0].keys()
    assert sum(row["count"] for row in model.parameters["t"]) == pytest.approx(400)
    assert (model.predict(data) == truth).mean() > 0.95


def test_the_value_never_falls(monkeypatch):
    seen = []
    fit_em = em.fit_em

    def watched(*args, **settings):
        seen.append([])
        return fit_em(*args, **settings | {"watch": lambda _, value, __: seen[-1].append(value)})

    monkeypatch.setattr(em, "fit_em", watched)
    data, _ = partly(300, seed=1)
    learn(data, families={"t": "binned:16", "s": "binned:7"}, unlabelled=1.0)
    rises = [np.diff(values) for values in seen]
    assert sum(map(len, rises)) >= 3
    assert all((rise > -1e-7).all() for rise in rises)


def test_what_was_chosen_and_not_asked_for_may_be_a_gaussian():
    data, _ = partly()
    model = learn(data, unlabelled=1.0)
    assert {block.family.name for block in model.blocks} == {"gaussian"}
    assert "as asked for" not in model.schema.by_name["t"].reason


def test_bins_that_are_cut_by_labels_are_refused():
    data, _ = partly()
    with pytest.raises(UsageError, match="column 't': bins cut by 'mdl' need a label in every row"):
        likely.learn(data, "y", families={"t": "binned:mdl"}, unlabelled=1.0)


def test_the_estimator_keeps_it_too():
    pytest.importorskip("sklearn")
    data, _ = partly()
    X = np.column_stack([data["t"], data["s"]])
    fitted = likely.NaiveBayes(families={0: "binned:12", 1: "binned:12"}).fit(X, data["y"])
    assert all(isinstance(block.family, Binned) for block in fitted.model_.blocks)
