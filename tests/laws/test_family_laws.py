"""Laws that hold for every family in `likely.families.ALL`; no test here names one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likely
from likely.calibration._terms import CalibrationData, make_terms
from likely.calibration.copies import effective
from likely.errors import LikelyError, UsageError
from likely.families import ALL, Family, default_for
from likely.model.row_drawing import sample
from likely.model.selection import LOWEST, LeftOut
from likely.schema import CATEGORY, NUMBER, TEXT
from likely.sources import open_source
from strategies import quietly

LETTERS, WORDS = ("a", "b", "c", "d"), ("red", "old", "new", "tax", "car", "sun")
EXAMPLES = [family.example() for family in ALL]
PLAIN = [family for family in EXAMPLES if not family.chooses_smoothing]


def cells(kind: str, rng: np.random.Generator, labels: np.ndarray) -> list[Any]:
    """A column of this kind that depends on the class, with a gap here and there."""
    if kind == CATEGORY:
        found: list[Any] = [LETTERS[min(rng.integers(0, 3) + label, 3)] for label in labels]
    elif kind == TEXT:
        found = [" ".join(rng.choice(WORDS[label : label + 4], 1 + rng.integers(0, 5))) for label in labels]
    else:
        found = [float(min(rng.poisson(2 + 2 * label), 9)) for label in labels]
    return [None if rng.random() < 0.05 else cell for cell in found]


def table(family: Family, rows: int, seed: int, *, gaps: bool = True) -> tuple[dict[str, list[Any]], dict[Any, Family]]:
    """A table for one family, and the families= that asks for it."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % 2
    kinds = [family.column_kind or CATEGORY, family.column_kind or NUMBER]
    if family.column_kind == TEXT or family.for_each_column:
        kinds = kinds[:1]
    columns = {f"x{i}": cells(kind, rng, labels * (1 - i)) for i, kind in enumerate(kinds)}
    if not gaps:
        usual = {name: next(cell for cell in column if cell is not None) for name, column in columns.items()}
        columns = {name: [usual[name] if cell is None else cell for cell in column] for name, column in columns.items()}
    names = tuple(columns)
    labelled = columns | {"y": ["no" if label == 0 else "yes" for label in labels]}
    return labelled, {names[0] if len(names) == 1 else names: family}


def learned(family: Family, data: dict[str, list[Any]], families: dict[Any, Family], **more: Any) -> likely.Model:
    return quietly(likely.learn, data, "y", families=families, **{"smoothing": 1} | more)


def part(data: dict[str, list[Any]], places: Any) -> dict[str, list[Any]]:
    return {name: [column[i] for i in places] for name, column in data.items()}


def features(data: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: column for name, column in data.items() if name != "y"}


def named(family: Family) -> str:
    return family.name


@pytest.mark.parametrize("family", EXAMPLES, ids=named)
@given(seed=st.integers(0, 10**6), cut=st.integers(10, 50))
@settings(max_examples=8, deadline=None)
def test_merging_updating_and_forgetting_equal_learning_at_once(family: Family, seed: int, cut: int) -> None:
    data, families = table(family, 60, seed, gaps=not family.needs_whole_rows)
    whole = learned(family, data, families)
    first, rest = part(data, range(cut)), part(data, range(cut, 60))
    one, two = learned(family, first, families), learned(family, rest, families)
    wanted = whole.posterior(features(data)).probabilities
    for made in (one + two, two + one, one.update(rest), whole.update(rest).forget(rest)):
        np.testing.assert_allclose(made.posterior(features(data)).probabilities, wanted, atol=1e-9)


@pytest.mark.parametrize("family", EXAMPLES, ids=named)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_a_weight_is_a_number_of_copies_and_order_leaves_no_trace(family: Family, seed: int) -> None:
    data, families = table(family, 40, seed, gaps=not family.needs_whole_rows)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, 40)
    copied = part(data, rng.permutation(np.repeat(np.arange(40), weights)))
    one = learned(family, data | {"w": weights.tolist()}, families, weights="w")
    two = learned(family, copied, families)
    for made in (one, two):
        assert made.tally.classes.sum() == weights.sum()
    np.testing.assert_allclose(
        one.posterior(features(data)).probabilities, two.posterior(features(data)).probabilities, atol=1e-9
    )


@pytest.mark.parametrize("family", EXAMPLES, ids=named)
def test_explanations_add_up_and_missing_cells_contribute_nothing(family: Family) -> None:
    data, families = table(family, 60, 3)
    model = learned(family, data, families)
    for i in range(5):
        row = {name: column[i] for name, column in features(data).items()}
        ledger = model.explain(row)
        total = np.array(ledger.log_prior) + np.sum([entry.evidence for entry in ledger.entries], axis=0)
        np.testing.assert_allclose(ledger.log_joint, total, atol=1e-12)
        np.testing.assert_allclose(ledger.probabilities, model.posterior(row).probabilities[0], atol=1e-12)
    nothing = model.posterior({name: [None] for name in features(data)}).probabilities[0]
    np.testing.assert_allclose(nothing, model.class_prior, atol=1e-12)


@pytest.mark.parametrize("family", EXAMPLES, ids=named)
def test_a_model_file_holds_all_of_it(family: Family, tmp_path: Path) -> None:
    data, families = table(family, 60, 4)
    model = learned(family, data, families)
    model.save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely")
    assert again == model
    np.testing.assert_array_equal(
        again.posterior(features(data)).log_joint, model.posterior(features(data)).log_joint
    )


@pytest.mark.parametrize("family", EXAMPLES, ids=named)
def test_em_never_lowers_its_objective(family: Family) -> None:
    data, families = table(family, 80, 5)
    fit = quietly(likely.cluster, features(data), k=2, families=families, seed=1, n_init=1, max_iter=30)
    assert len(fit.trace) > 1
    assert all(b >= a - 1e-8 * abs(a) for a, b in zip(fit.trace, fit.trace[1:], strict=False))
    some = data | {"y": [label if i % 3 else None for i, label in enumerate(data["y"])]}
    partly = learned(family, some, families, unlabelled=1.0)
    assert partly.tally.classes.sum() == pytest.approx(80)


@pytest.mark.parametrize("family", PLAIN, ids=named)
def test_evidence_is_the_sum_over_classes_where_the_model_is_generative(family: Family) -> None:
    data, families = table(family, 60, 6, gaps=False)
    model = learned(family, data, families)
    if model.no_evidence:
        with pytest.raises(UsageError, match="P\\(x\\)"):
            _ = model.posterior(features(data)).log_evidence
        return
    posterior = model.posterior(features(data))
    np.testing.assert_allclose(posterior.log_evidence, np.logaddexp.reduce(posterior.log_joint, axis=1), atol=1e-12)


@pytest.mark.parametrize("family", EXAMPLES, ids=named)
def test_rows_drawn_from_a_model_teach_it_again(family: Family) -> None:
    data, families = table(family, 400, 7, gaps=False)
    model = learned(family, data, families)
    drawn, classes = sample(model, 4000, seed=2)
    again = learned(family, {k: list(v) for k, v in drawn.items()} | {"y": [model.classes[c] for c in classes]}, families)
    apart = model.posterior(features(data)).probabilities - again.posterior(features(data)).probabilities
    assert np.abs(apart).mean() < 0.08


@pytest.mark.parametrize("family", EXAMPLES, ids=named)
def test_arc_probability_and_information_grow_with_dependence(family: Family) -> None:
    data, families = table(family, 300, 8)
    shuffled = data | {"y": list(np.random.default_rng(0).permutation(data["y"]))}
    strong, weak = (learned(family, rows, families) for rows in (data, shuffled))
    (there,), (gone,) = strong.arc_probability.values(), weak.arc_probability.values()
    assert (there is None) == (gone is None)
    assert there is None or (there > 0.9 and gone < there)
    much, little = (likely.importance(model)[0]["mutual_information"] for model in (strong, weak))
    assert (much is None) == (little is None)
    assert much is None or much > little >= 0.0


@pytest.mark.parametrize("family", [family for family in EXAMPLES if family.leaves_out], ids=named)
def test_leave_one_out_in_closed_form_is_forgetting_the_row(family: Family) -> None:
    data, families = table(family, 30, 9)
    model = learned(family, data, families)
    left = LeftOut.of(model, open_source(data).batches(), None)
    scores = left.log_prior + sum(left.terms)
    for i in range(0, 30, 7):
        alone = model.forget(part(data, [i]))
        joint = alone.posterior({name: [column[i]] for name, column in features(data).items()}).log_joint[0]
        np.testing.assert_allclose(scores[i], joint, atol=1e-9)


JOINT_SHAPES = {
    "a table": (("c0", "c1"), {}),
    "a Gaussian": (("n0", "n1"), {}),
    "a Gaussian in each cell": (("c0", "n0", "n1"), {}),
    "a shared covariance": (("c0", "n0", "n1"), {"tie": "class"}),
}


@pytest.mark.parametrize("prior", [0, 1, likely.NormalInverseGamma(0.5, 2.0, 1.5, 2.0)], ids=["0", "1", "normal"])
@pytest.mark.parametrize("shape", JOINT_SHAPES)
@given(seed=st.integers(0, 10**6), rows=st.integers(12, 60))
@settings(max_examples=5, deadline=None)
def test_a_row_left_out_of_a_joint_block_is_forgotten_also_where_a_covariance_is_borrowed(
    shape: str, prior: Any, seed: int, rows: int
) -> None:
    names, setting = JOINT_SHAPES[shape]
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % 2
    data: dict[str, list[Any]] = {f"c{i}": cells(CATEGORY, rng, labels) for i in range(2)}
    data |= {f"n{i}": [None if rng.random() < 0.05 else x for x in rng.normal(labels, 1.0 + labels)] for i in range(2)}
    data = {name: data[name] for name in names} | {"y": ["no" if label == 0 else "yes" for label in labels]}
    model = learned(likely.Joint(**setting), data, {names: likely.Joint(**setting)}, smoothing=prior)
    left = LeftOut.of(model, open_source(data).batches(), None)
    for i in range(0, rows, 5):
        try:
            alone = quietly(model.forget, part(data, [i]))
        except LikelyError:  # too few digits, or a value that no row has any more
            continue
        if [c.values for c in alone.schema.columns] != [c.values for c in model.schema.columns]:
            continue
        joint = alone.posterior({name: [column[i]] for name, column in features(data).items()}).log_joint[0]
        scores = np.maximum(left.log_prior[i] + left.terms[0][i], LOWEST)
        np.testing.assert_allclose(scores, np.maximum(joint, LOWEST), atol=1e-7)


@pytest.mark.parametrize("family", [family for family in EXAMPLES if not family.leaves_out], ids=named)
def test_a_family_that_leaves_nothing_out_says_so_and_names_itself_and_the_column(family: Family) -> None:
    data, families = table(family, 30, 9)
    with pytest.raises(UsageError, match=f"'x0'.*family {family.name}.*cannot leave rows out in closed form.*select"):
        learned(family, data, families, select=True)


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("family", [family for family in EXAMPLES if family.leaves_out], ids=named)
def test_weights_are_fitted_on_the_likelihood_of_each_row_without_the_row(family: Family, copies: int) -> None:
    once, families = table(family, 60, 11)
    once |= {"free": np.random.default_rng(0).normal(size=60).tolist()}  # rows are kept where a family is left to be chosen
    data = {name: column * copies for name, column in once.items()}
    prior = {name: 2 for name in features(once) if name != "free" and not isinstance(next(iter(families)), tuple)}
    model = learned(family, data, families, smoothing=prior or "auto")
    sample = effective(model.tally.sample, model.tally)
    fit_on = replace(sample, left=np.ones(len(sample.left)), copies=np.full(2, float(copies)))  # a row goes with its copies
    used = CalibrationData(model.tally, fit_on, 0, prior=model.prior)
    (term,) = make_terms(used, [(0, model.plain_parameters[0])])
    free = sample.sample.columns["free"].tolist()
    for i in range(0, 60, 7):
        at = once["free"].index(free[i])
        alone = model.forget(part(once, [at] * copies))
        fitted = alone.fitted(0)
        row = [alone.schema.by_name[c.name] for c in fitted.columns]
        values = [once[c.name][at] for c in row]
        cell = [c.code.get(v, -1) if c.kind == CATEGORY else np.nan if v is None else v
                for c, v in zip(row, values, strict=True)]  # fmt: skip
        wanted = fitted.log_likelihoods(np.array([cell], dtype=np.float64)[:, 0] if len(cell) == 1 else np.array([cell]))[0]
        np.testing.assert_allclose(term.evidence[i], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [CATEGORY, NUMBER, TEXT])
def test_the_default_of_every_kind_is_one_of_all_families(kind: str) -> None:
    assert {type(default_for(kind, plain=plain)) for plain in (True, False)} <= set(ALL)


@pytest.mark.parametrize("family", EXAMPLES, ids=named)
def test_settings_make_the_family_again_and_decide_what_can_be_merged(family: Family) -> None:
    again = type(family)(**family.settings())
    assert again == family
    assert again.counts_like(family)
    assert not any(family.counts_like(other) for other in EXAMPLES if type(other) is not type(family))
