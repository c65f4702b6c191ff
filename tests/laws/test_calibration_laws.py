"""Laws of what is fitted on top of the counts: leaving out equals counting anew, parts equal the whole, weights are copies."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

import likely
from likely.calibration import DEPENDENCE, _stages, calibrate
from likely.calibration._fit import OWN_WEIGHTS
from likely.calibration._interaction_tables import ResidualTable, ScoredRows, TableAxis, blur, count_cells
from likely.calibration._tan_aode import count_pair
from likely.calibration._terms import CalibrationData, make_terms
from likely.calibration.copies import effective
from likely.families import Gaussian
from likely.families._binned import mdl_edges
from likely.families.histogram import MOST, Histogram
from likely.families.smoothing_choice import choose_smoothing
from likely.tally import row_sample
from strategies import quietly

COUNTS = hnp.arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(2, 4)), elements=st.integers(0, 9))
NUMBERS = st.floats(allow_nan=True, allow_infinity=False, width=64) | st.integers(-3, 3).map(float)


def table(rows=240, seed=0, noise=0.7):
    """A mixed table with missing cells, in which two columns interact."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    sign = rng.integers(0, 2, rows)
    columns = {
        "x": rng.normal(y, 1.0).round(2),
        "z": rng.exponential(1.0 + y),
        "c": np.array(["u", "v", "w"], dtype=object)[(y + (rng.random(rows) < noise)) % 3],
        "one": np.array(["p", "q"], dtype=object)[sign],
        "two": np.array(["s", "t"], dtype=object)[(sign + (y > 0)) % 2],
        "y": np.array(["a", "b", "k"], dtype=object)[y],
    }
    columns["x"][rng.random(rows) < 0.1] = np.nan
    columns["c"][rng.random(rows) < 0.1] = None
    return {name: column.tolist() for name, column in columns.items()}


def rows_of(data, places):
    return {name: [column[i] for i in places] for name, column in data.items()}


def features(data):
    return {name: column for name, column in data.items() if name != "y"}


def rows_without(rows, kept):
    return ScoredRows(rows.labels[kept], rows.weights[kept], rows.left[kept], rows.probabilities[kept])


@given(COUNTS)
def test_evidence_left_out_is_the_evidence_counted_without_the_row(seen):
    seen = seen.astype(float)
    evidence = choose_smoothing(seen)
    whole, classes = seen.sum(), seen.sum(0)
    share = evidence.pseudocount / (whole + 0.5 * len(classes))
    for value, own in np.argwhere(seen > 0):
        less = seen.copy()
        less[value, own] -= 1
        anew = np.log(less[value] / (less.sum(0) + 0.5) + share)  # the same imagined share: it is not chosen again
        reported = evidence.table[value].copy()
        reported[own] = evidence.left_out[value, own]
        np.testing.assert_allclose(reported - reported[0], anew - anew[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("setting", [{}, {"tie": "class"}, {"variance": 2.0}], ids=str)
def test_a_gaussian_left_out_is_the_gaussian_fitted_without_the_row(setting, copies):
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], [9, 14])
    x = rng.normal(3.0 * y, 1.0 + y)
    data = {"x": x.tolist() * copies, "z": rng.normal(size=len(x)).tolist() * copies, "y": y.tolist() * copies}
    model = quietly(likely.learn, data, "y", families={"x": Gaussian(**setting)})
    sample = effective(model.tally.sample, model.tally)
    sample = replace(sample, left=np.ones(len(sample.left)), copies=np.full(2, float(copies)))  # each row goes with all copies
    (term,) = make_terms(CalibrationData(model.tally, sample, 0), [(0, model.plain_parameters[0])])
    for i, number in enumerate(sample.sample.columns["x"].tolist()):
        rest, labels = x[x != number], y[x != number]
        parts = [rest[labels == k] for k in (0, 1)]
        pooled = sum(part.var() * len(part) for part in parts) / len(rest)
        widths = {"{}": [part.var() for part in parts], "{'tie': 'class'}": [pooled, pooled]}.get(str(setting), [2.0, 2.0])
        wanted = [stats.norm(part.mean(), np.sqrt(v)).logpdf(number) for part, v in zip(parts, widths, strict=True)]
        np.testing.assert_allclose(term.evidence[i], wanted, rtol=1e-5)


@given(COUNTS)
def test_an_unseen_value_and_an_empty_class_have_finite_evidence(seen):
    evidence = choose_smoothing(np.vstack([seen, np.zeros((1, seen.shape[1]))]).astype(float))
    assert np.isfinite(evidence.table).all()
    np.testing.assert_allclose(evidence.table[-1], 0.0, atol=1e-12)
    np.testing.assert_allclose(evidence.probabilities().sum(1), 1.0)


@given(st.integers(1, 5), st.integers(2, 3), st.integers(0, 2**32 - 1), st.booleans())
def test_a_cell_left_out_is_the_cell_counted_without_the_row(cells, classes, seed, blurred):
    rng = np.random.default_rng(seed)
    n = 30
    place = rng.integers(0, cells, n).astype(np.int32)
    shares = rng.dirichlet(np.ones(classes), n)
    rows = ScoredRows(rng.integers(0, classes, n), np.ones(n), np.ones(n), shares)
    axes = [TableAxis(cells, numeric=True)]
    lent = 0.6 if blurred else 0.0

    def made(kept):
        seen, expected = count_cells(place[kept], rows_without(rows, kept), cells)
        return blur(seen, axes, lent), blur(expected, axes, lent)

    reported = ResidualTable(*made(np.arange(n)), 2.0, 0.0, 0.0).left_out(place, rows)
    for i in range(n):
        seen, expected = made(np.delete(np.arange(n), i))
        np.testing.assert_allclose(
            reported[i], np.log((seen[place[i]] + 2) / (expected[place[i]] + 2)), rtol=1e-5, atol=1e-6
        )


@given(st.integers(0, 2**32 - 1))
def test_a_pair_left_out_is_the_pair_counted_without_the_row(seed):
    rng = np.random.default_rng(seed)
    n, axes = 40, [TableAxis(3, numeric=False), TableAxis(4, numeric=False)]
    place, labels = rng.integers(0, 12, n).astype(np.int32), rng.integers(0, 2, n)
    rows = ScoredRows(labels, np.ones(n), np.ones(n), np.full((n, 2), 0.5))
    pair = count_pair(axes, place, rows)
    reported = pair.left_out(place, rows)
    for i in range(n):
        kept = np.delete(np.arange(n), i)
        less = type(pair)(count_pair(axes, place[kept], rows_without(rows, kept)).seen, pair.shrink)
        np.testing.assert_allclose(reported[i], less.evidence()[place[i]], rtol=1e-5, atol=1e-6)


@given(hnp.arrays(np.float64, st.integers(0, 60), elements=NUMBERS), st.integers(0, 60), st.integers(0, 2**32 - 1))
def test_histograms_add_and_subtract_and_forget_the_order(x, cut, seed):
    rng = np.random.default_rng(seed)
    y, w = rng.integers(-1, 3, len(x)), rng.integers(0, 3, len(x)).astype(float)
    whole = Histogram.of(x, y, w, 3)
    one, two = (Histogram.of(x[part], y[part], w[part], 3) for part in (slice(0, cut), slice(cut, None)))
    order = rng.permutation(len(x))
    assert one + two == whole == two + one == Histogram.of(x[order], y[order], w[order], 3)
    assert whole - two == one
    assert whole + whole * 0.0 == whole
    copies = np.repeat(np.arange(len(x)), w.astype(int))
    assert Histogram.of(x[copies], y[copies], np.ones(len(copies)), 3) == whole


@pytest.mark.parametrize("draw", ["normal", "exponential", "standard_cauchy"])
def test_histograms_of_many_numbers_keep_within_their_cells_and_forget_the_split(draw):
    rng = np.random.default_rng(1)
    x = getattr(rng, draw)(size=30_000) * 10.0 ** rng.integers(-3, 4)
    y, w = rng.integers(0, 2, len(x)), np.ones(len(x))
    whole = Histogram.of(x, y, w, 2)
    parts = [Histogram.of(x[i::7], y[i::7], w[i::7], 2) for i in range(7)]
    assert len(whole.keys) <= MOST
    assert parts[3] + parts[1] + (parts[0] + parts[2]) + parts[6] + parts[5] + parts[4] == whole
    edges = whole.edges(64)
    place = np.searchsorted(edges, x, side="right")
    np.testing.assert_array_equal(whole.cut(edges).sum(1), np.bincount(place, minlength=len(edges) + 1))
    assert np.bincount(place).max() < 3 * len(x) / 64


def test_edges_by_description_length_find_the_step_and_nothing_in_noise():
    rng = np.random.default_rng(2)
    x = rng.normal(size=2_000)
    step = mdl_edges(Histogram.of(x, (x > 0.5).astype(int), np.ones(2_000), 2), 128)
    assert len(step) == 1
    assert step[0] == pytest.approx(0.5, abs=0.01)
    assert len(mdl_edges(Histogram.of(x, rng.integers(0, 2, 2_000), np.ones(2_000), 2), 128)) == 0


def test_a_reservoir_keeps_the_same_rows_whatever_the_split(monkeypatch):
    monkeypatch.setattr(row_sample, "ROWS", 50)
    monkeypatch.setattr(row_sample, "FEWEST", 10)
    data = table(400)
    whole = quietly(likely.learn, data, "y").tally.sample
    assert len(whole) == 50
    parts = [quietly(likely.learn, rows_of(data, range(i, 400, 3)), "y", classes=["a", "b", "k"]) for i in range(3)]
    assert (parts[2].tally + parts[0].tally + parts[1].tally).sample == whole
    assert (whole.weights == 1).all()


def test_rows_alike_are_one_row_of_their_weight():
    data = table(30)
    once = quietly(likely.learn, data, "y", weights=[2.0] * 30)
    twice = quietly(likely.learn, rows_of(data, [*range(30), *range(30)]), "y")
    assert once.tally.sample == twice.tally.sample


@pytest.mark.parametrize("dependence", DEPENDENCE)
def test_weights_are_copies_and_parts_are_the_whole(dependence):
    data = table()
    settings = {"dependence": dependence}
    whole = quietly(likely.learn, data, "y", **settings)
    halves = [quietly(likely.learn, rows_of(data, range(i, 240, 2)), "y", **settings) for i in range(2)]
    np.testing.assert_allclose(
        (halves[0] + halves[1]).posterior(features(data)).probabilities,
        whole.posterior(features(data)).probabilities,
        rtol=1e-7,
    )
    w = np.arange(240) % 3
    weighed = quietly(likely.learn, data, "y", weights=w.astype(float), **settings)
    copied = quietly(likely.learn, rows_of(data, np.repeat(np.arange(240), w)), "y", **settings)
    np.testing.assert_allclose(
        weighed.posterior(features(data)).probabilities, copied.posterior(features(data)).probabilities, rtol=1e-7
    )


@pytest.mark.parametrize("dependence", DEPENDENCE)
def test_the_account_of_every_row_adds_up_and_the_file_is_the_model(dependence, tmp_path):
    data = table()
    model = quietly(likely.learn, data, "y", dependence=dependence)
    model.save(tmp_path / "m.likely")
    loaded = likely.load(tmp_path / "m.likely")
    assert loaded == model
    joint = model.posterior(features(data)).log_joint
    np.testing.assert_array_equal(loaded.posterior(features(data)).log_joint, joint)
    for i in (0, 17, 100):
        ledger = loaded.explain({name: column[i] for name, column in features(data).items()})
        total = np.array(ledger.log_prior) + np.sum([entry.evidence for entry in ledger.entries], axis=0)
        np.testing.assert_allclose(total, joint[i], rtol=1e-9)


def test_columns_that_are_informative_only_together_are_found_and_named():
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    flip = rng.random(400) < 0.1
    data = {"a": a.astype(str).tolist(), "b": b.astype(str).tolist(), "y": ((a ^ b) ^ flip).tolist()}
    model = quietly(likely.learn, data, "y")
    assert [i.name for i in model.calibration.interactions] == ["a with b"]
    assert "a with b" in [entry.name for entry in model.explain({"a": "1", "b": "0"}).entries]
    assert (model.predict({"a": ["0", "0", "1", "1"], "b": ["0", "1", "0", "1"]}) == [False, True, True, False]).all()
    alone = quietly(likely.learn, data, "y", dependence="none")
    assert not alone.calibration.interactions
    assert np.abs(alone.posterior(features(data)).probabilities - 0.5).max() < 0.1


def test_a_duplicated_column_shares_the_weight_of_one_and_noise_changes_little():
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, 2_000)
    x = rng.normal(y, 1.0)
    data = {"x": x, "again": x, "noise": rng.normal(size=2_000), "y": y}
    weights = quietly(likely.learn, data, "y", dependence="none").calibration.weights
    assert weights["x"] + weights["again"] == pytest.approx(1.0, abs=0.25)
    alone = quietly(likely.learn, {"x": x, "y": y}, "y").posterior({"x": x}).probabilities
    both = quietly(likely.learn, data, "y", dependence="none").posterior(features(data)).probabilities
    assert np.abs(alone - both).max() < 0.1


def test_update_keeps_the_calibration_and_marks_it_stale():
    data = table()
    model = quietly(likely.learn, rows_of(data, range(200)), "y")
    later = quietly(model.update, rows_of(data, range(200, 240)))
    assert not model.stale
    assert later.stale
    assert later.calibration == model.calibration
    anew = later.recalibrate()
    assert not anew.stale
    whole = quietly(likely.learn, data, "y")
    np.testing.assert_allclose(
        anew.posterior(features(data)).probabilities, whole.posterior(features(data)).probabilities, rtol=1e-7
    )
    back = quietly(later.forget, rows_of(data, range(200, 240))).recalibrate()
    np.testing.assert_allclose(
        back.posterior(features(data)).probabilities, model.posterior(features(data)).probabilities, rtol=1e-7
    )
    new = quietly(
        model.update, {name: [v] for name, v in zip(data, [0.5, 1.0, "new", "p", "s", "new class"], strict=True)}
    )
    assert not new.stale  # a new class has no bias yet: the calibration is fitted again
    assert np.isfinite(new.posterior(features(data)).probabilities).all()


def test_the_plain_model_is_one_argument_away():
    data = table()
    plain = quietly(likely.learn, data, "y", plain=True)
    assert plain.calibration is None
    assert plain.tally.sample is None
    given = quietly(likely.learn, data, "y", smoothing=1.0)
    assert given == plain
    every = dict.fromkeys(("c", "one", "two"), "categorical") | {"x": "gaussian", "z": "gaussian"}
    assert quietly(likely.learn, data, "y", families=every).tally == plain.tally


def test_few_rows_one_class_and_no_columns_of_use_end_in_a_stated_result():
    for rows in (2, 3, 5):
        data = {"x": [float(i) for i in range(rows)], "c": ["u", "v"] * rows, "y": ["a", "b"] * rows}
        data["c"], data["y"] = data["c"][:rows], data["y"][:rows]
        shares = quietly(likely.learn, data, "y").posterior({"x": [0.0, 9.0], "c": ["u", "w"]}).probabilities
        assert np.isfinite(shares).all()
    empty = quietly(likely.learn, {"x": [None, None, 1.0], "c": [None] * 3, "d": ["p", "q", "p"], "y": [1, 2, 1]}, "y")
    assert np.isfinite(empty.posterior({"x": [1.0, None], "d": ["q", None]}).probabilities).all()
    tally = empty.tally
    assert calibrate(tally.zero(), empty.plain_parameters) is None


def test_of_very_many_columns_the_most_informative_have_a_weight_of_their_own():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 60)
    cells = rng.normal(size=(60, OWN_WEIGHTS + 30))
    cells[:, -1] += 3 * y  # the last column says most
    data = {f"x{j}": cells[:, j] for j in range(cells.shape[1])} | {"y": np.array(["a", "b"])[y]}
    model = quietly(likely.learn, data, "y", dependence="none")
    weights = model.calibration.weights  # each times the probability that the column matters
    assert weights[f"x{OWN_WEIGHTS + 29}"] == max(weights.values()) > 10 * np.median(list(weights.values()))
    shares = model.posterior(data).probabilities
    assert np.isfinite(shares).all()
    assert (shares.argmax(1) == y).mean() > 0.9


def test_a_forgotten_value_is_out_of_the_calibration_and_unseen_if_it_comes_back():
    data = table()
    model = quietly(likely.learn, data, "y")
    gone = [i for i, value in enumerate(data["two"]) if value == "t"]
    later = quietly(model.forget, rows_of(data, gone))
    assert "t" in model.calibration.values["two"]
    assert later.calibration.values["two"] == tuple(None if v == "t" else v for v in model.calibration.values["two"])
    assert later.calibration.without_forgotten(later.schema) is later.calibration
    again = quietly(later.update, rows_of(data, gone))
    assert again.tally == model.tally
    places = again.calibration._places("two", ("s", "t"))
    assert places[1] == len(again.calibration.values["two"])  # the code of an unseen value


@pytest.mark.parametrize("family", ["binned", "binned:mdl"])
def test_the_centres_of_bins_are_the_means_of_their_numbers(family):
    data = table()
    model = quietly(likely.learn, data, "y", families={"z": family})
    i = [block.name for block in model.blocks].index("z")
    fitted = model.plain_parameters[i]
    (term,) = make_terms(CalibrationData(model.tally, effective(model.tally.sample, model.tally), 0), [(i, fitted)])
    numbers = np.array(data["z"])
    bins = np.searchsorted(fitted.likelihood.bin_edges, numbers, side="right")
    means = [numbers[bins == j].mean() for j in range(len(term.centres))]
    np.testing.assert_allclose(term.centres, means, rtol=1e-3)


def test_the_more_columns_and_classes_the_fewer_rows_are_fitted_on(monkeypatch):
    model = quietly(likely.learn, table(), "y")
    monkeypatch.setattr(_stages, "ENTRIES", 1_500)
    monkeypatch.setattr(_stages, "FEWEST_ROWS", 10)
    used, of = [], CalibrationData.of

    def noted(tally, rows, parameters, prior):
        used.append(len(rows.sample))
        return of(tally, rows, parameters, prior)

    monkeypatch.setattr(CalibrationData, "of", staticmethod(noted))
    quietly(calibrate, model.tally, model.plain_parameters)
    assert used == [1_500 // (3 * 5)]
