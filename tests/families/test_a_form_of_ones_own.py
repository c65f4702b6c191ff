"""A likelihood form outside the package is scored, weighted and explained: nothing else is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import likely
import likely.families
from likely.errors import UsageError
from likely.families.likelihood_form import LikelihoodForm
from likely.families.likelihoods import LookupTable
from likely.model.ledger import FAR, MISSING


@dataclass(frozen=True)
class LaplaceTerm(LikelihoodForm):
    """Log density that falls linearly on both sides of a centre."""

    centre: Any
    width: Any

    def add(self, codes: Any, numbers: Any, out: Any) -> None:
        x = numbers[:, :1]
        density = -np.abs(x - self.centre) / self.width - np.log(2 * self.width)
        out += np.where(np.isnan(x), 0.0, density)

    def far(self, value: Any) -> bool:
        return bool((np.abs(value - self.centre) > 20 * self.width).all())


@dataclass(frozen=True)
class SignTable(LookupTable):
    """Table over the sign of a number."""

    reads = "sign"

    def codes(self, numbers: Any) -> Any:
        return np.where(np.isnan(numbers), 3, numbers < 0).astype(np.int32)


RNG = np.random.default_rng(3)
ROWS = 600
LABELS = np.array(["p", "q"])[RNG.integers(0, 2, ROWS)]
TABLE = {
    "x": RNG.laplace(np.where(LABELS == "p", 0.0, 1.5)).tolist(),
    "z": RNG.normal(np.where(LABELS == "p", 0.0, 1.0)).tolist(),
    "c": np.where(RNG.random(ROWS) < 0.3, LABELS, "r").tolist(),
    "y": LABELS.tolist(),
}


@pytest.fixture(autouse=True)
def _families() -> Iterator[None]:
    """No other test is to find the families of these."""
    before = dict(likely.families.REGISTRY)
    yield
    likely.families.REGISTRY.clear()
    likely.families.REGISTRY.update(before)


def families() -> dict[str, Any]:
    """One whose form has no loop of its own, and one whose form is a table that reads numbers in its own way."""

    class Peaked(likely.Gaussian):
        name = "peaked"

        def derive(self, *given: Any, **settings: Any) -> Any:
            own: Any = super().derive(*given, **settings)
            return [replace(p, likelihood=LaplaceTerm(p.likelihood.mean, np.sqrt(-0.25 / p.likelihood.curve))) for p in own]

    class Signed(likely.Bernoulli):
        name = "signed"

        def derive(self, *given: Any, **settings: Any) -> Any:
            return [replace(p, likelihood=SignTable(p.likelihood.table)) for p in super().derive(*given, **settings)]

    return {"x": Peaked(), "z": Signed()}


@pytest.mark.parametrize("settings", [{"plain": True, "smoothing": 1}, {}], ids=["plain", "calibrated"])
def test_a_form_of_ones_own_is_scored_in_a_batch_and_row_by_row_and_explained(settings: dict[str, Any]) -> None:
    model = likely.learn(TABLE, "y", families=families(), **settings)
    rows = [{"x": 0.3, "z": -1.0, "c": "p"}, {"x": None, "z": 2.0, "c": "r"}, {"x": 300.0, "z": None, "c": "new"}]
    together = model.posterior({name: [row[name] for row in rows] for name in rows[0]})
    for row, joint in zip(rows, together.log_joint, strict=True):
        ledger = model.explain(row)
        assert ledger.log_joint == pytest.approx(tuple(joint), abs=1e-12)
        assert np.array(ledger.log_prior) + np.sum([e.evidence for e in ledger.entries], 0) == pytest.approx(joint)
        one = model.prepare().predict_proba_one(row)
        assert [one[label] for label in model.classes] == pytest.approx(model.posterior([row]).probabilities[0])
    flags = {entry.columns: entry.flags for entry in model.explain(rows[2]).entries}
    assert MISSING in flags[("z",)]
    assert FAR in flags[("x",)]
    assert model.posterior([{"x": 0.0, "z": -1.0, "c": "r"}]).probabilities[0] != pytest.approx(
        model.posterior([{"x": 0.0, "z": 1.0, "c": "r"}]).probabilities[0]
    )


def test_its_score_is_the_sum_of_the_log_densities() -> None:
    own = families()["x"]
    model = likely.learn({"x": TABLE["x"], "y": TABLE["y"]}, "y", families={"x": own}, plain=True, smoothing=0)
    x, form = 0.7, model.block_parameters[0].likelihood
    assert isinstance(form, LaplaceTerm)
    expected = np.log(model.class_prior) - np.abs(x - form.centre) / form.width - np.log(2 * form.width)
    assert model.posterior({"x": [x]}).log_joint[0] == pytest.approx(expected)


@pytest.mark.parametrize("column", ["x", "z"])
def test_an_exporter_without_a_function_for_it_says_so(column: str) -> None:
    model = likely.learn({column: TABLE[column], "y": TABLE["y"]}, "y", families={column: families()[column]}, plain=True)
    for export in (model.sql, model.onnx):
        with pytest.raises(UsageError, match=rf"column '{column}' has a likelihood \((LaplaceTerm|SignTable)\)"):
            export()


def test_what_it_does_not_have_is_refused_where_it_is_asked_for() -> None:
    model = likely.learn(TABLE, "y", families=families(), plain=True)
    with pytest.raises(UsageError, match="not a Gaussian column"):
        likely.pictures.class_densities(model, "x")
    with pytest.raises(NotImplementedError, match="LaplaceTerm is no table"):
        model.block_parameters[0].likelihood.codes(np.zeros(1))
