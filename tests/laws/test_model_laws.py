"""What is read off a tally: posteriors, ledgers, relearning, and the model file."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import likely
from likely.kernels import kernel
from likely.model import parts
from strategies import TIES, possible, quietly, smoothings, strange_rows, whole_cases


@given(whole_cases(), st.data())
def test_posteriors_sum_to_one_and_are_finite_on_any_row(case, data):
    model = case.learn()
    rows = [data.draw(strange_rows(case)) for _ in range(4)]
    posterior = model.posterior(rows)
    assert np.isfinite(posterior.probabilities).all()
    np.testing.assert_allclose(posterior.probabilities.sum(1), 1.0, rtol=1e-12)
    assert not np.isnan(posterior.log_joint).any()
    assert not np.isposinf(posterior.log_joint).any()
    assert set(posterior.labels.tolist()) <= set(case.classes)
    assert {type(label) for label in posterior.labels.tolist()} <= {type(label) for label in case.classes}


@given(whole_cases(smoothing=st.sampled_from([1.0, 0.5])), st.data())
def test_with_smoothing_no_class_that_was_seen_is_ruled_out_by_an_ordinary_row(case, data):
    model = case.learn(class_prior=1.0)
    row = {name: data.draw(st.sampled_from([*case.columns[name], None])) for name in case.features}
    assert np.isfinite(model.posterior(possible(row)).log_joint).all()


@given(whole_cases())
def test_a_row_of_missing_cells_has_the_prior_for_its_posterior(case):
    model = case.learn()
    posterior = model.posterior([dict.fromkeys(case.features)])
    shares = np.array(model.class_prior)
    np.testing.assert_allclose(posterior.probabilities[0], shares, rtol=1e-9)


@given(whole_cases(), st.data())
def test_the_ledger_adds_up_to_the_log_joint_exactly(case, data):
    model = case.learn()
    row = data.draw(strange_rows(case))
    ledger = model.explain(row)
    posterior = model.posterior(row)
    assert ledger.log_joint == tuple(posterior.log_joint[0].tolist())
    for c in range(len(ledger.classes)):
        total = ledger.log_prior[c]
        for entry in ledger.entries:
            total += entry.evidence[c]
        assert total == ledger.log_joint[c]
    assert ledger.probabilities == tuple(posterior.probabilities[0].tolist())
    assert ledger.label == posterior.labels.tolist()[0]
    assert sorted(n for e in ledger.entries for n in e.columns) == sorted(case.features)


@given(whole_cases(), st.data())
def test_a_ledger_prints_and_becomes_plain_data(case, data):
    import json

    ledger = case.learn().explain(data.draw(strange_rows(case)))
    assert str(ledger)
    assert ledger._repr_html_().startswith("<table")
    plain = json.loads(json.dumps(ledger.to_dict(), allow_nan=False))
    assert len(plain["evidence"]) == len(ledger.entries)


@given(whole_cases(), smoothings, st.sampled_from(["same", None, 1.0, "even"]), st.sampled_from(TIES))
def test_relearning_equals_learning_anew(case, smoothing, class_prior, tie):
    families = {
        key: likely.Gaussian(tie=tie) if isinstance(f, likely.Gaussian) else f for key, f in case.families.items()
    }
    model = case.learn()
    if class_prior == "same":
        class_prior, again = case.class_prior, {}
    elif class_prior is None:
        again = {"class_prior": "estimated"}
    else:
        if class_prior == "even":
            class_prior = [1 / len(case.classes)] * len(case.classes)
        again = {"class_prior": class_prior}
    anew = case.learn(smoothing=smoothing, class_prior=class_prior, families=families)
    relearned = quietly(model.relearn, smoothing=smoothing, families=families, **again)
    assert relearned == anew
    np.testing.assert_array_equal(relearned.posterior(case.columns).log_joint, anew.posterior(case.columns).log_joint)


@given(whole_cases())
def test_saving_and_loading_is_the_identity(tmp_path_factory, case):
    model = case.learn()
    path = tmp_path_factory.mktemp("model") / "m.likely"
    digest = model.save(path)
    loaded = likely.load(path)
    assert loaded == model
    assert loaded.schema.ignored == model.schema.ignored
    assert [type(label) for label in loaded.classes] == [type(label) for label in model.classes]
    for a, b in zip(loaded.schema.columns, model.schema.columns, strict=True):
        assert [type(v) for v in a.values] == [type(v) for v in b.values]
        assert a.reason == b.reason
    np.testing.assert_array_equal(loaded.posterior(case.columns).log_joint, model.posterior(case.columns).log_joint)
    assert loaded.save(path) == digest
    again = path.with_name("again.likely")
    loaded.save(again)
    assert Path(again).read_bytes() == path.read_bytes()


@given(whole_cases())
def test_one_row_is_a_batch_of_one(case):
    model = case.learn()
    together = model.posterior(case.columns)
    for i, row in enumerate(case.as_rows()):
        alone = model.posterior({name: row[name] for name in case.features})
        np.testing.assert_allclose(alone.log_joint[0], together.log_joint[i], rtol=1e-12, atol=1e-12)


@given(whole_cases(), st.data())
def test_the_prior_of_the_classes_moves_every_row_by_the_same_log_ratio(case, data):
    shares = data.draw(st.lists(st.integers(1, 9), min_size=len(case.classes), max_size=len(case.classes)))
    given_shares = {label: n / sum(shares) for label, n in zip(case.classes, shares, strict=True)}
    even = case.learn(class_prior=[1 / len(case.classes)] * len(case.classes))
    moved = even.relearn(class_prior=given_shares)
    a, b = even.posterior(case.columns).log_joint, moved.posterior(case.columns).log_joint
    expected = np.log([given_shares[label] * len(case.classes) for label in even.classes])
    np.testing.assert_allclose(b, a + expected, rtol=1e-9, atol=1e-9)


@given(whole_cases(kinds=("category",), weighted=False), st.data())
def test_a_joint_table_of_one_column_is_the_column(case, data):
    """Modelled together with nothing else, a column says what it says alone."""
    assume(all(isinstance(v, str) for name in case.features for v in case.columns[name] if v is not None))
    assume(all(any(v is not None for v in case.columns[name]) for name in case.features))
    joint = case.learn(families={(name,): likely.Joint() for name in case.features})
    row = {name: data.draw(st.sampled_from([None, "never", *case.columns[name]])) for name in case.features}
    found, expected = joint.posterior(row).log_joint, case.learn().posterior(row).log_joint
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@given(whole_cases(kinds=("number",), smoothing=st.just(1.0)), st.data())
def test_a_joint_gaussian_of_one_column_is_the_column(case, data):
    tie = data.draw(st.sampled_from([None, "class"]))
    assume(all(any(v is not None for v in case.columns[name]) for name in case.features))
    alone = case.learn(families={name: likely.Gaussian(tie=tie) for name in case.features})
    joint = case.learn(families={(name,): likely.Joint(tie=tie) for name in case.features})
    a, b = alone.posterior(case.columns).log_joint, joint.posterior(case.columns).log_joint
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@given(
    whole_cases(kinds=("table", "joint", "values"), max_blocks=1, smoothing=st.sampled_from([0, 0.5, 1.0])), st.data()
)
def test_a_missing_category_of_a_block_is_summed_out(case, data):
    """P(rest | class) = Σ P(value, rest | class) over the known values, whatever the rest of the block is."""
    model = case.learn(class_prior=[1 / len(case.classes)] * len(case.classes))
    names = [c.name for c in model.schema.columns if c.kind == "category"]
    assume(names)
    hidden = data.draw(st.sampled_from(names))
    assume(model.schema.by_name[hidden].values)
    row = {n: data.draw(st.sampled_from([None, *case.columns[n]])) for n in case.features} | {hidden: None}
    if data.draw(st.booleans()) and len(names) > 1:
        row[next(n for n in names if n != hidden)] = "never seen"
    parts = [model.posterior(row | {hidden: value}).log_joint[0] for value in model.schema.by_name[hidden].values]
    whole = model.posterior(row).log_joint[0]
    np.testing.assert_allclose(np.exp(whole), np.exp(parts).sum(0), rtol=1e-9)


@given(whole_cases(kinds=("joint",), max_blocks=1, smoothing=st.just(1.0)), st.data())
def test_missing_numbers_of_a_joint_gaussian_are_integrated_out(case, data):
    from scipy.stats import multivariate_normal

    model = case.learn(class_prior=[1 / len(case.classes)] * len(case.classes))
    names = case.features
    seen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True))
    row = {n: (data.draw(st.integers(-50, 50)) if n in seen else None) for n in names}
    places = [i for i, n in enumerate(names) if n in seen]
    log_joint = model.posterior(row).log_joint[0]
    for c, rows in enumerate(model.parameters[" with ".join(names)]):
        mean, covariance = np.array(rows["mean"]), np.array(rows["covariance"])
        x = np.array([row[names[i]] for i in places])
        expected = multivariate_normal(mean[places], covariance[np.ix_(places, places)], allow_singular=True).logpdf(x)
        assert log_joint[c] + math.log(len(case.classes)) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def wide(rows, seed):
    """A table with a column for every form of likelihood, large enough to be worth compiling for."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    number = rng.normal(50, 20, (rows, 3)).round(2) + 5 * y[:, None]
    number[rng.random(number.shape) < 0.1] = np.nan
    count = rng.poisson(3, (rows, 5)).astype(float)
    count[rng.random(count.shape) < 0.1] = np.nan
    letters = np.array(["a", "b", "c", "", "?"])[rng.integers(0, 5, (rows, 2))]
    columns = {f"n{j}": number[:, j] for j in range(3)} | {f"k{j}": count[:, j] for j in range(5)}
    columns |= {"yes": rng.integers(0, 2, rows), "trials": 20 + rng.integers(0, 5, rows)}
    columns |= {f"c{j}": letters[:, j].tolist() for j in range(2)} | {"y": y, "w": rng.integers(0, 9, rows) / 4}
    families = {
        "n0": likely.Gaussian(),
        ("n1", "n2"): likely.Joint(),
        "k0": likely.Poisson(),
        ("k1", "k2"): likely.Multinomial(),
        "k3": likely.Binomial("trials"),
        "k4": likely.Gaussian(tie="class"),
        "yes": likely.Bernoulli(),
    }
    return columns, families


@pytest.mark.parametrize("seed", [1, 2])
def test_compiled_kernels_equal_interpreted_ones_to_the_last_bit(monkeypatch, seed):
    columns, families = wide(700, seed)
    found = []
    # Sums of the calibration may be reordered where they are compiled, which a full compile cache would do in the second turn.
    monkeypatch.setattr(kernel.Kernel, "at_hand", False)
    monkeypatch.setattr(kernel, "PATIENCE", math.inf)
    monkeypatch.setattr(kernel, "PATIENCE_LOADED", math.inf)
    for tiny, large in ((10**12, 10**12), (0, 0)):
        monkeypatch.setattr(kernel.Kernel, "tiny", tiny)
        monkeypatch.setattr(kernel, "LARGE", large)
        model = likely.learn(columns, "y", families=families, weights="w")
        found.append((model, model.posterior(columns).log_joint))
    (plain, one), (compiled, two) = found
    assert plain == compiled
    np.testing.assert_array_equal(one, two)


def test_parameters_derived_while_learning_are_not_derived_again_to_predict(monkeypatch):
    derived, derive = [], likely.Gaussian.derive
    monkeypatch.setattr(likely.Gaussian, "derive", lambda *given: derived.append(True) or derive(*given))
    model = likely.learn({"x": [1.0, 2.0, 5.0, 6.0], "y": ["a", "a", "b", "b"]}, "y", families="gaussian")
    known = len(derived)
    model.predict({"x": [1.5]})
    assert len(derived) == known > 0


def test_rows_in_memory_are_learned_without_a_plan_for_parts_of_them(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a plan for parts was made")

    monkeypatch.setattr(parts.PartPlan, "of", refuse)
    assert likely.learn({"x": ["u", "u", "v", "v"], "y": ["a", "a", "b", "b"]}, "y").tally.rows == 4
