"""Leaving a row out in closed form is learning without it; selection and importance follow from that."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likely
from likely import Bernoulli, Gaussian, Joint, MEstimate, NormalInverseGamma, Poisson
from likely.errors import UsageError
from likely.evaluation.feature_importance import mutual_information
from likely.model.selection import LOWEST, LeftOut, forward
from likely.sources import open_source
from strategies import quietly

learn = partial(likely.learn, plain=True)


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["no", "yes", "maybe"], n, p=[0.5, 0.3, 0.2])
    gap = rng.random(n) < 0.1
    return {
        "y": y.tolist(),
        "shift": np.where(gap, np.nan, rng.normal(size=n) + (y == "yes")).tolist(),
        "copy": [None] * n,
        "noise": rng.normal(size=n).tolist(),
        "letter": [None if g else v for g, v in zip(gap[::-1], rng.choice(list("uvw"), n).tolist(), strict=True)],
        "hint": np.where(y == "maybe", rng.choice(list("pq"), n), "p").tolist(),
        "flag": (rng.random(n) < np.where(y == "no", 0.8, 0.3)).astype(int).tolist(),
        "events": rng.poisson(np.where(y == "no", 2, 4)).tolist(),
    }


def batches(data):
    return open_source(data).batches()


FAMILIES = {"flag": Bernoulli(), "events": Poisson()}


@given(
    st.integers(0, 10_000),
    st.sampled_from([0.5, 1.0, MEstimate(2), MEstimate(3, "background")]),
    st.sampled_from([None, "class"]),
    st.booleans(),
    st.sampled_from([None, 1.0, {"no": 0.2, "yes": 0.3, "maybe": 0.5}]),
)
@settings(max_examples=25, deadline=None)
def test_a_row_left_out_in_closed_form_is_a_row_that_was_never_learned(seed, smoothing, tie, weighted, class_prior):
    data = table(25, seed)
    del data["copy"]
    extra = {}
    if weighted:
        data["w"] = np.random.default_rng(seed).choice([1.0, 2.0, 3.0], 25).tolist()
        extra = {"weights": "w"}
    own = {"shift": NormalInverseGamma(0.0, 1.0, 1.5, 1.0)} if seed % 2 else {}
    given_settings = {
        "families": FAMILIES | {"noise": Gaussian(tie=tie), "shift": Gaussian(tie=tie)},
        "smoothing": {"*": smoothing} | own,
        "class_prior": class_prior,
        "classes": ["no", "yes", "maybe"],
    }
    model = quietly(learn, data, "y", **given_settings, **extra)
    left = LeftOut.of(model, batches(data), model.weights)
    joint = left.log_prior + sum(left.terms)
    for i in (0, 7, 24):
        one = {name: [cells[i]] for name, cells in data.items()} | ({"w": [1.0]} if weighted else {})
        weights = np.array(data.get("w", np.ones(25)))
        others = {name: cells[:i] + cells[i + 1 :] for name, cells in data.items()}
        if weighted and weights[i] > 1:  # one copy is left out, the others stay
            others = {name: [*others[name], data[name][i]] for name in data}
            others["w"][-1] = weights[i] - 1
        without = quietly(learn, others, "y", **given_settings, **extra)
        row = {name: cells[0] for name, cells in one.items() if name not in ("y", "w")}
        expected = without.posterior([row]).log_joint[0]
        if all(cell is None or cell in others[name] for name, cell in row.items() if name in ("letter", "hint")):
            # else the value is known to one model and new to the other
            # what is as good as impossible is cut: a term, or the share of a class that has no row left
            possible = np.min([left.log_prior[i], *(term[i] for term in left.terms)], axis=0) > LOWEST
            assert joint[i][possible] == pytest.approx(expected[possible], abs=1e-7)
            assert (expected[~possible] <= LOWEST).all()


def test_a_lone_row_leaves_its_class_to_the_prior():
    data = {"y": ["a", "a", "b"], "x": [1.0, 2.0, 5.0], "c": ["u", "v", "u"]}
    model = quietly(learn, data, "y")
    left = LeftOut.of(model, batches(data))
    assert all(np.isfinite(term).all() for term in left.terms)


def test_selection_takes_what_helps_in_order_and_stops():
    data = table(600)
    del data["copy"]
    model = learn(data, "y", families=FAMILIES)
    left = LeftOut.of(model, batches(data))
    chosen = forward(left)
    assert list(chosen.log_loss) == sorted(chosen.log_loss, reverse=True)
    assert chosen.log_loss[0] < chosen.nothing
    names = [model.blocks[i].name for i in chosen.blocks]
    assert set(names) >= {"shift", "hint", "flag", "events"}
    first = min(range(len(left.terms)), key=lambda i: left.log_loss(left.log_prior + left.terms[i]))
    assert chosen.blocks[0] == first
    for rest in set(range(len(left.terms))) - set(chosen.blocks):
        joint = left.log_prior + sum(left.terms[i] for i in chosen.blocks)
        assert left.log_loss(joint + left.terms[rest]) >= chosen.log_loss[-1]


def test_a_copy_of_a_column_is_not_taken_twice():
    data = table(400)
    data["copy"] = data["shift"]
    model = learn(data, "y", families=FAMILIES, select=True)
    kept = {block.name for block in model.blocks}
    assert len(kept & {"copy", "shift"}) == 1
    reasons = dict(model.schema.ignored)
    assert "not selected" in reasons[({"copy", "shift"} - kept).pop()]


def test_so_many_at_most_and_one_at_least():
    data = table(100)
    del data["copy"]
    assert len(learn(data, "y", families=FAMILIES, select=2).blocks) == 2
    noise = {"y": ["a", "b"] * 50, "n": np.random.default_rng(1).normal(size=100).tolist()}
    assert len(learn(noise, "y", select="forward").blocks) == 1


def test_a_selected_model_saves_relearns_and_updates(tmp_path):
    data = table(300)
    del data["copy"]
    model = learn(data, "y", families=FAMILIES, smoothing={"letter": 2.0, "*": 1.0}, select=1, average=True)
    model.save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely")
    assert again == model
    assert len(again.relearn(smoothing=0.5).update(data).blocks) == 1


def test_weights_mean_copies_in_selection():
    data = table(80, 3)
    del data["copy"]
    times = np.random.default_rng(0).integers(1, 4, 80)
    copies = {
        name: [cell for cell, n in zip(cells, times, strict=True) for _ in range(n)] for name, cells in data.items()
    }
    one = quietly(learn, copies, "y", families=FAMILIES)
    two = quietly(learn, data, "y", families=FAMILIES, weights=times)
    left = LeftOut.of(one, batches(copies))
    weighed = LeftOut.of(two, batches(data | {"w": times.astype(float)}), "w")
    assert weighed.log_loss(weighed.log_prior + sum(weighed.terms)) == pytest.approx(
        left.log_loss(left.log_prior + sum(left.terms)), abs=1e-9
    )


def test_cross_validation_selects_in_every_fold_anew():
    data = table(300)
    del data["copy"]
    data["tells"] = [y if i % 10 else "no" for i, y in enumerate(data["y"])]  # by far the best, in every fold
    chosen = likely.evaluate(data, target="y", families=FAMILIES, select=1, folds=3)
    alone = likely.evaluate({"y": data["y"], "tells": data["tells"]}, target="y", plain=True, folds=3)
    assert chosen.log_loss == pytest.approx(alone.log_loss, abs=1e-12)


@pytest.mark.parametrize("how", [0, "backward", 1.5])
def test_an_unknown_way_to_select_is_refused(how):
    data = table(50)
    del data["copy"]
    with pytest.raises(UsageError, match="at most"):
        learn(data, "y", families=FAMILIES, select=how)


def test_columns_that_cannot_be_left_out_are_refused_by_name():
    data = table(60)
    del data["copy"]
    with pytest.raises(UsageError, match=r"'shift'.*family gaussian \(tie column\) cannot leave rows out.*leave select out"):
        learn(data, "y", families={"shift": Gaussian(tie="column"), "noise": Gaussian(tie="column")}, select=True)
    with pytest.raises(UsageError, match="curve"):
        likely.curve(data, "y", select=True)


def test_mutual_information_of_a_table_is_its_textbook_sum():
    data = {"y": ["a"] * 4 + ["b"] * 4, "x": list("uuuvuvvv"), "same": ["k"] * 8, "tells": list("ppppqqqq")}
    model = learn(data, "y")
    found = {entry["column"]: entry["mutual_information"] for entry in likely.importance(model)}
    assert found["x"] == pytest.approx(0.75 * np.log(1.5) + 0.25 * np.log(0.5), abs=1e-12)
    assert found["same"] == pytest.approx(0.0, abs=1e-15)
    assert found["tells"] == pytest.approx(np.log(2), abs=1e-12)


def test_mutual_information_of_bell_curves_is_their_integral():
    from scipy import integrate, stats

    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], 400, p=[0.3, 0.7])
    data = {"y": y.tolist(), "x": (rng.normal(size=400) * np.where(y == "a", 1, 2) + (y == "a") * 1.5).tolist()}
    model = learn(data, "y")
    rows = model.parameters["x"]
    share = [row["count"] / 400 for row in rows]

    def density(x):
        return [stats.norm.pdf(x, row["mean"], row["deviation"]) for row in rows]

    def integrand(x):
        p = density(x)
        whole = sum(s * q for s, q in zip(share, p, strict=True))
        return sum(s * q * np.log(q / whole) for s, q in zip(share, p, strict=True) if q > 0)

    expected = integrate.quad(integrand, -25, 25, limit=500)[0]
    assert mutual_information(model, 0) == pytest.approx(expected, abs=1e-6)


def test_mutual_information_of_events_is_their_sum():
    from scipy import stats

    data = {"y": list("aaabbb"), "x": [0, 1, 2, 5, 6, 8]}
    model = learn(data, "y", families={"x": Poisson()})
    rates = [row["rate"] for row in model.parameters["x"]]
    x = np.arange(200)
    p = np.array([stats.poisson.pmf(x, rate) for rate in rates])
    terms = p * np.log(np.where(p > 0, p, 1) / np.where(p.mean(0) > 0, p.mean(0), 1))
    assert mutual_information(model, 0) == pytest.approx(terms.sum() / 2, abs=1e-9)


def test_importance_with_rows_is_the_rise_of_the_log_loss_without_a_column():
    data = table(500)
    del data["copy"]
    model = learn(data, "y", families=FAMILIES)
    found = {entry["column"]: entry for entry in likely.importance(model, data)}
    assert found["flag"]["log_loss_rise"] > 0.01 > found["noise"]["log_loss_rise"]
    assert found["flag"]["arc_probability"] > 0.999
    tied = learn(data, "y", families={"shift": Gaussian(tie="column"), "noise": Gaussian(tie="column")})
    assert {entry["log_loss_rise"] for entry in likely.importance(tied, data)} == {None}


def test_a_block_of_columns_is_selected_and_its_rows_are_left_out():
    data = table(300)
    del data["copy"]
    model = quietly(learn, data, "y", families={"events": Poisson(), ("shift", "noise"): Joint()}, select=True)
    assert "shift with noise" in [block.name for block in model.blocks]
    found = {entry["column"]: entry["log_loss_rise"] for entry in likely.importance(model, data)}
    assert found["shift with noise"] > 0.01


def test_importance_never_exceeds_what_there_is_to_tell():
    data = table(300)
    model = learn(data, "y", families=FAMILIES)
    entropy = -(model.class_prior * np.log(model.class_prior)).sum()
    for entry in likely.importance(model):
        assert -1e-12 <= entry["mutual_information"] <= entropy + 1e-9
