"""A family in one file outside the package gets everything that the package's own have: see docs/write-a-family.md."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import likely
import likely.families
from likely.errors import DataError, LikelyWarning, UsageError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "write-a-family.md"


def family_on_the_page() -> type[likely.families.Family]:  # type: ignore[name-defined]
    """The class of the page's first block, made a module of its own."""
    module = ModuleType("family_on_the_page")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    code = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    exec(compile(code, str(PAGE), "exec"), vars(module))
    return module.Exponential  # type: ignore[no-any-return]


Exponential = family_on_the_page()


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of the docs define the same family again in this process; a model file is loaded by its name."""
    monkeypatch.setitem(likely.families.REGISTRY, "exponential", Exponential)


RNG = np.random.default_rng(5)
ROWS = 400
LABELS = np.array(["bus", "tram"])[RNG.integers(0, 2, ROWS)]
WAITS = RNG.exponential(np.where(LABELS == "bus", 4.0, 1.0))
TABLE = {"wait": WAITS.tolist(), "line": LABELS.tolist()}


def learned(**settings: object) -> likely.Model:
    return likely.learn(TABLE, "line", families={"wait": Exponential()}, **settings)  # type: ignore[arg-type]


def test_it_learns_the_rates_of_the_classes_and_predicts_by_bayes_rule() -> None:
    model = learned(smoothing=0)
    rates = {row["class"]: row["rate"] for row in model.parameters["wait"]}
    for label in ("bus", "tram"):
        assert rates[label] == pytest.approx(1 / WAITS[label == LABELS].mean())
    prior = np.log([np.mean(LABELS == "bus"), np.mean(LABELS == "tram")])
    logs = prior + np.log([rates["bus"], rates["tram"]]) - 2.5 * np.array([rates["bus"], rates["tram"]])
    expected = np.exp(logs - np.logaddexp(*logs))
    assert model.posterior({"wait": [2.5]}).probabilities[0] == pytest.approx(expected)
    assert model.posterior({"wait": [2.5]}).log_evidence[0] == pytest.approx(np.logaddexp(*logs))


def test_it_is_named_in_the_shell_s_words_and_missing_cells_contribute_nothing() -> None:
    model = likely.learn(TABLE, "line", families={"wait": "exponential"}, smoothing=1)
    assert model.posterior({"wait": [None]}).probabilities[0] == pytest.approx(model.class_prior)


def test_an_explanation_adds_up() -> None:
    ledger = learned(smoothing=1).explain({"wait": 2.5})
    total = np.array(ledger.log_prior) + np.sum([entry.evidence for entry in ledger.entries], axis=0)
    assert ledger.log_joint == pytest.approx(tuple(total))


def test_it_merges_forgets_and_updates_exactly() -> None:
    half = {name: values[:200] for name, values in TABLE.items()}
    rest = {name: values[200:] for name, values in TABLE.items()}
    settings = {"families": {"wait": Exponential()}, "smoothing": 1}
    one, two = likely.learn(half, "line", **settings), likely.learn(rest, "line", **settings)
    whole = learned(smoothing=1)
    row = {"wait": [0.3, 2.0, 9.0]}
    for made in (one + two, one.update(rest), whole.update(rest).forget(rest)):
        assert made.posterior(row).probabilities == pytest.approx(whole.posterior(row).probabilities, abs=1e-12)


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    model = learned(smoothing=0.5)
    model.save(tmp_path / "m.likely")
    assert likely.load(tmp_path / "m.likely") == model


def test_em_finds_two_kinds_of_waits_and_never_falls() -> None:
    clusters = likely.cluster({"wait": WAITS.tolist()}, k=2, families={"wait": Exponential()}, seed=0)
    rates = sorted(row["rate"] for row in clusters.parameters["wait"])
    assert rates[0] < 1 / WAITS.mean() < rates[1]
    assert all(b >= a - 1e-9 for a, b in zip(clusters.trace, clusters.trace[1:], strict=False))
    some = TABLE | {"line": [label if i % 4 == 0 else None for i, label in enumerate(TABLE["line"])]}
    partly = likely.learn(some, "line", families={"wait": Exponential()}, smoothing=1, unlabelled=1.0)
    assert partly.tally.classes.sum() == pytest.approx(ROWS)


def test_averaging_separates_a_column_that_depends_on_the_class_from_one_that_does_not() -> None:
    table = TABLE | {"noise": RNG.exponential(1.0, ROWS).tolist()}
    families = {"wait": Exponential(), "noise": Exponential()}
    model = likely.learn(table, "line", families=families, smoothing=1, average=True)
    assert model.arc_probability["wait"] > 0.999
    assert model.arc_probability["noise"] < 0.5
    dependent, alike = model.arc(0), model.arc(1)
    assert dependent is not None
    assert alike is not None
    out = np.zeros((1, 2))
    alike.independent.add(None, np.array([[1.0]]), out)
    assert out[0, 0] == out[0, 1]


def test_importance_selection_sampling_and_estimate_work() -> None:
    model = learned(smoothing=1)
    (found,) = likely.importance(model, TABLE)
    assert found["mutual_information"] == pytest.approx(_information(model), rel=1e-2)
    assert found["log_loss_rise"] > 0.05
    chosen = likely.learn(
        TABLE | {"noise": RNG.exponential(1.0, ROWS).tolist()}, "line",
        families={"wait": Exponential(), "noise": Exponential()}, smoothing=1, select=True,
    )  # fmt: skip
    assert [c.name for c in chosen.schema.columns] == ["wait"]
    drawn = likely.estimate(WAITS, family=Exponential())
    assert drawn.ml["rate"] == pytest.approx(1 / WAITS.mean())
    assert drawn.log_likelihood == pytest.approx(ROWS * np.log(drawn.ml["rate"]) - ROWS)


def test_rows_drawn_from_the_model_have_its_rates() -> None:
    from likely.model.row_drawing import sample

    model = learned(smoothing=1)
    cells, classes = sample(model, 20_000, seed=1)
    for c, row in enumerate(model.parameters["wait"]):
        assert np.mean(cells["wait"][classes == c]) == pytest.approx(1 / row["rate"], rel=0.05)


def test_what_it_cannot_count_is_refused_with_the_cell() -> None:
    with pytest.raises(DataError, match=r"column 'wait'.*-1"):
        likely.learn({"wait": [1.0, -1.0], "y": ["a", "b"]}, "y", families={"wait": Exponential()})


def test_what_a_family_does_not_offer_is_one_clear_error() -> None:
    class Bare(likely.families.Family):  # type: ignore[name-defined, misc]
        name = "bare"

    try:
        with pytest.raises(UsageError, match="the family bare cannot be counted"):
            likely.learn(TABLE, "line", families={"wait": Bare()})
    finally:
        likely.families.REGISTRY.pop("bare")


def _information(model: likely.Model) -> float:
    rates = np.array([row["rate"] for row in model.parameters["wait"]])
    share = model.tally.classes / model.tally.classes.sum()
    rng = np.random.default_rng(0)
    total = 0.0
    for c in range(2):
        x = rng.exponential(1 / rates[c], 400_000)
        logs = np.log(rates) - np.outer(x, rates)
        total += share[c] * np.mean(logs[:, c] - np.log(np.exp(logs) @ share))
    return float(total)


def test_a_gaussian_of_another_name_is_drawn_and_becomes_a_network_like_the_package_s_own() -> None:
    """Pictures and networks ask for the likelihood form, never for the name of the family."""

    class Measured(likely.Gaussian):
        name = "measured"

    del likely.families.REGISTRY["measured"]  # no other test is to find it
    own = likely.learn(TABLE, "line", families={"wait": Measured()}, plain=True)
    shipped = likely.learn(TABLE, "line", families={"wait": "gaussian"}, plain=True)
    assert likely.pictures.class_densities(own, "wait") == likely.pictures.class_densities(shipped, "wait")
    rows = {"wait": [0.5, 3.0]}
    found = likely.Network.of_naive_bayes(own).posterior(rows, "line")
    assert found.tolist() == likely.Network.of_naive_bayes(shipped).posterior(rows, "line").tolist()


@dataclass(frozen=True)
class AlwaysThere(likely.families.LikelihoodForm):  # type: ignore[name-defined, misc]
    """A likelihood that is none of the package's forms: it scores rows and cannot be exported."""

    rate: np.ndarray  # type: ignore[type-arg]

    def add(self, codes: object, numbers: np.ndarray, out: np.ndarray) -> None:  # type: ignore[type-arg]
        x = numbers[:, :1]
        out += np.where(np.isnan(x), 0.0, np.log(self.rate) - self.rate * x)


@pytest.fixture
def of_its_own_form() -> Iterator[likely.families.Family]:  # type: ignore[name-defined]
    class Own(Exponential):  # type: ignore[valid-type, misc]
        name = "own"

        def derive(self, *given: object, **more: object) -> list[likely.families.Parameters]:  # type: ignore[name-defined]
            found = super().derive(*given, **more)
            return [replace(each, likelihood=AlwaysThere(-each.likelihood.slope[0])) for each in found]

        def arc(self, block: object) -> None:
            return None

    yield Own()
    likely.families.REGISTRY.pop("own")


def test_a_likelihood_of_its_own_form_scores_but_is_not_exported(of_its_own_form: likely.families.Family) -> None:  # type: ignore[name-defined]
    model = likely.learn(TABLE, "line", families={"wait": of_its_own_form}, smoothing=1)
    row = {"wait": [2.5, None]}
    assert model.posterior(row).probabilities == pytest.approx(learned(smoothing=1).posterior(row).probabilities)
    none = r"'wait' has a likelihood \(AlwaysThere\) that is none of the forms.*LinearTerm"
    with pytest.raises(UsageError, match=none) as caught:
        model.sql()
    assert "averag" not in str(caught.value)


def test_averaging_says_which_column_it_leaves_as_it_is(of_its_own_form: likely.families.Family) -> None:  # type: ignore[name-defined]
    with pytest.warns(LikelyWarning, match=r"column 'wait' \(own\)"):
        likely.learn(TABLE, "line", families={"wait": of_its_own_form}, smoothing=1, average=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        likely.learn(TABLE, "line", families={"wait": Exponential()}, smoothing=1, average=True)


def test_the_page_needs_no_module_of_the_package_s_own() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"from (likely[\w.]*) import", text)) == {"likely.families", "likely.distributions", "likely.schema"}
    forms = text.split("## Likelihood forms")[1].split("## Methods")[0]
    for name in re.findall(r"`([A-Z]\w+)\(", forms):
        assert name in likely.families.__all__
    for name in re.findall(r"`(\w+)`", text.split("| method | needed for")[1]):
        assert hasattr(likely.families.Family, name) or name in ("average", "cluster", "sequences", "importance", "estimate",
                                                                 "log_loss_rise", "quantile")  # fmt: skip


def test_missing_cells_and_rows_without_a_label_reach_the_check_as_nan() -> None:
    seen = []

    class Watching(Exponential):  # type: ignore[valid-type, misc]
        name = "watching"

        def check(self, name: str, numbers: np.ndarray) -> tuple[int, str] | None:  # type: ignore[type-arg]
            seen.append(numbers.copy())
            return super().check(name, numbers)  # type: ignore[no-any-return]

    table = {"wait": [1.0, None, -5.0, 2.0, 3.0], "line": ["a", "b", None, "a", "b"]}
    try:
        likely.learn(table, "line", families={"wait": Watching()}, unlabelled="ignore", smoothing=1)
    finally:
        likely.families.REGISTRY.pop("watching")
    np.testing.assert_array_equal(seen[0], [1.0, np.nan, np.nan, 2.0, 3.0])


def test_a_geometric_distribution_is_a_linear_term_as_the_page_says() -> None:
    p = np.array([0.2, 0.7])
    out = np.zeros((4, 2))
    x = np.array([[0.0], [1.0], [5.0], [np.nan]])
    likely.families.LinearTerm(np.log1p(-p)[None], np.log(p)[None]).add(np.zeros((4, 0), np.int32), x, out)
    np.testing.assert_allclose(np.exp(out[:3]), p * (1 - p) ** x[:3])
    assert (out[3] == 0).all()


def test_its_distribution_alone_has_probabilities_and_any_rate_above_zero() -> None:
    found = likely.estimate(WAITS, family=Exponential())
    rate = found.ml["rate"]
    assert found.probability(0.0, 2.0, at="ml") == pytest.approx(1 - np.exp(-2 * rate))
    assert found.log_likelihood_of(rate=3.0) < found.log_likelihood
    with pytest.raises(UsageError, match="not possible"):
        found.log_likelihood_of(rate=-1.0)
