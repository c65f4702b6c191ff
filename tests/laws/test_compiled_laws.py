"""Laws of compiled loops of the second stage: they choose, leave out, cut and gain like the arrays they stand for."""

from dataclasses import replace

import numpy as np
import pytest

import likely
from likely.bayes.rule import log_losses
from likely.calibration import _calibration_loops as loops
from likely.calibration import _interaction_cuts as interaction_cuts
from likely.calibration import _interaction_search as interaction_search
from likely.calibration import _interaction_tables as interaction_tables
from likely.calibration import _weight_fit as weight_fit
from likely.calibration._terms import CalibrationData, _left_out_tables
from likely.calibration.copies import effective
from likely.engines import _category_counts as category_counts
from likely.families import compiled_choice, smoothing_choice, value_tables
from likely.families.histogram import Histogram
from likely.kernels import counting, kernel, parallel, unit_counts
from likely.tally import row_sample


def made_counts(seed):
    """Counts of some values and classes, the numbers that the values stand for, and the counts without each of four folds."""
    rng = np.random.default_rng(seed)
    values, classes = int(rng.integers(2, 130)), int(rng.integers(2, 6))
    seen = rng.poisson(rng.uniform(0.3, 5), (values, classes)) * rng.choice([1.0, 0.7])
    seen[0] += 1.0
    return seen, np.sort(rng.normal(size=values)), seen * (1.0 - rng.dirichlet(np.ones(4)))[:, None, None]


def near_best(sets, seen, centres):
    """For each set the gain of the best shape and pseudocount, and all choices that are as good up to single precision."""
    classes = sets.sum(1)
    rest = (np.maximum(classes - 1, 0) + 0.5) / (np.maximum(classes.sum(1, keepdims=True) - 1, 0) + 0.5 * seen.shape[1])
    alone = classes * np.log(rest)
    scores = smoothing_choice._scores(sets, seen, centres, rest) - alone.sum(1)
    for i in range(len(sets)):
        near = 2e-6 * np.abs(alone[i]).sum()
        yield scores[..., i].max(), near, list(zip(*np.nonzero(scores[..., i] >= scores[..., i].max() - 2 * near), strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_compiled_loops_choose_bandwidths_and_pseudocounts_like_arrays(seed):
    seen, centres, sets = made_counts(seed)
    # Not proportional to each other: a distance of exactly 3.5 bandwidths is inside or outside by rounding.
    for each in (seen, *(sets * np.random.default_rng(seed).uniform(0.8, 1.25, sets.shape))):
        (found,) = compiled_choice.choose_all([each], [centres])
        ((gain, near, choices),) = near_best(each[None], each, centres)
        assert found.gain == pytest.approx(gain, abs=near)
        assert (found.shape.at, smoothing_choice.PSEUDOCOUNTS.index(found.pseudocount)) in choices
        shape = smoothing_choice._shape(each, centres, found.shape.at)
        expected = smoothing_choice._evidence(each, shape, found.pseudocount, 0.0)
        for name in ("counts", "left_out", "total_left"):
            np.testing.assert_allclose(getattr(found.shape, name), getattr(shape, name), rtol=1e-9, atol=1e-12)
        for name in ("table", "left_out", "level", "totals"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("folds", [0, 4])
def test_compiled_loops_leave_rows_out_like_arrays(seed, folds):
    seen, centres, _ = made_counts(seed)
    rng = np.random.default_rng(seed)
    values, classes = seen.shape
    codes = rng.integers(0, values + 2, 200).astype(np.int32)
    labels, weights = rng.integers(0, classes, 200), rng.uniform(0.5, 2, 200)
    (whole,) = compiled_choice.choose_all([seen], [centres])
    left = np.where(np.arange(200) % 3 == 0, 0.5, 1.0)
    ((found, gains),) = compiled_choice.TableRows(labels, weights, left).evidence([codes], [whole], folds, -50.0)
    known, candidates = codes < values, [[whole]]
    if folds:
        counts = np.zeros((folds, values, classes))
        np.add.at(counts, (np.arange(200)[known] % folds, codes[known], labels[known]), weights[known])
        sets = np.maximum(seen - counts * (seen.sum() / counts.sum()), 0.0)
        best = list(near_best(sets, seen, centres))
        for got, (gain, near, _) in zip(gains, best, strict=False):
            assert got == pytest.approx(gain, abs=near)
        assert gains[-1] == whole.gain
        shapes, pseudocounts = smoothing_choice._shape, smoothing_choice.PSEUDOCOUNTS
        candidates = [
            [smoothing_choice._evidence(seen, shapes(seen, centres, at), pseudocounts[m], 0.0) for at, m in choices]
            for _, _, choices in best
        ]
    for f, under in enumerate(candidates):
        some = slice(f, None, len(candidates))
        expected = [left_out_rows(each, codes[some], labels[some], left[some]) for each in under]
        assert any(np.allclose(found[some], each, rtol=1e-5, atol=1e-6) for each in expected)


def left_out_rows(evidence, codes, labels, left):
    """Evidence of rows by the array version, each left out of its own value and class."""
    known, out = np.flatnonzero(codes < len(evidence.table)), np.zeros((len(codes), evidence.table.shape[1]))
    out[known] = evidence.table[codes[known]]
    out[known, labels[known]] = evidence.without(codes[known], labels[known], left[known])
    return out


@pytest.mark.parametrize("seed", range(40))
def test_compiled_loops_cut_histograms_like_arrays(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, rng.choice([5, 60, 600, 6000])))
    x = rng.normal(size=rows) * 10.0 ** rng.integers(-200, 200)
    z = rng.normal(size=rows)
    x = [x, np.round(z, 1), 1e15 + np.round(5 * z), np.exp(50 * z)][seed % 4]
    histogram = Histogram.of(x, rng.integers(0, 3, rows), rng.uniform(0.1, 2, rows), 3)
    bins = int(rng.choice([2, 16, 128]))
    edges = histogram.edges(bins)
    np.testing.assert_array_equal(histogram.edges(bins, compiled=True), edges)
    for cut in (edges, edges[::2] + 1e-9):
        for some, same in zip(histogram.binned(cut), histogram.binned(cut, compiled=True), strict=True):
            np.testing.assert_array_equal(same, some)


@pytest.mark.parametrize("seed", range(10))
def test_compiled_loops_group_and_cut_bins_like_arrays(seed):
    rng = np.random.default_rng(seed)
    values, classes, cells = int(rng.integers(2, 129)), int(rng.integers(1, 5)), int(rng.integers(1, 20))
    codes = rng.integers(0, values + 2, 3000).astype(np.int32)
    weights, others = rng.uniform(0.5, 2, 3000), rng.integers(0, cells, 3000).astype(np.int32)
    some, same = (interaction_search.group_column(codes, values, True, weights, compiled) for compiled in (False, True))
    for name in ("codes", "of_pairs", "of_more", "of_search", "fine_pairs", "fine_more"):
        np.testing.assert_array_equal(getattr(same, name), getattr(some, name))
    wrong = rng.normal(size=(3000, classes)) + np.where(codes[:, None] > values / 2, 0.5, -0.5) * (others[:, None] % 2)
    residuals = np.concatenate([wrong, wrong**2], axis=1, dtype=np.float32)
    given = (some.codes, values, others, cells, residuals)
    (cuts, sums), (found, same_sums) = interaction_cuts._cut_numbers(*given), interaction_cuts._compiled_cut(*given)
    assert sorted(found) == sorted(cuts)
    assert interaction_cuts._with_edges(found, same_sums) == interaction_cuts._with_edges(cuts, sums)
    assert len(cuts) > 0 or values < 4 or cells < 2


@pytest.mark.parametrize("classes", [2, 5])
def test_compiled_gains_of_a_table_are_those_of_arrays(classes):
    rng = np.random.default_rng(classes)
    n, cells = 300, rng.integers(0, 12, 300).astype(np.int32)
    rows = interaction_tables.ScoredRows(
        rng.integers(0, classes, n), rng.uniform(0.5, 2, n), np.ones(n), rng.dirichlet(np.ones(classes), n)
    )
    counted = interaction_tables.count_cells(cells, rows, 12)
    both = (interaction_tables._gains, interaction_tables._compiled_gains)
    tables = np.array([counted, counted + 0.5])
    some, same = (gains(tables, cells, rows, interaction_tables.SHRINKS) for gains in both)
    assert not np.allclose(some[0], some[1])
    np.testing.assert_allclose(same, some, rtol=1e-9)
    score, reported = rng.normal(size=(2, n, classes))
    lost = rows.weights @ log_losses(score + 0.7 * reported, rows.labels)
    assert loops.label_loss(score, reported, 0.7, rows.labels, rows.weights) == pytest.approx(lost, rel=1e-12)


@pytest.mark.parametrize("classes", [3, 6])
def test_compiled_loss_gradient_and_hessian_of_weights_are_those_of_arrays(classes):
    rng = np.random.default_rng(classes)
    n, evidence = 300, rng.normal(size=(5, 300, classes)).astype(np.float32)
    weights, labels = rng.uniform(0.5, 2, n), rng.integers(0, classes, n)
    base, centre = rng.normal(size=(n, classes)).astype(np.float32), np.ones(5)
    rows = weight_fit.Problem(list(evidence), base, labels, weights, centre, centre, 1.0).transposed
    for part in ((0, n), (100, 250)):
        given = (rows, part, np.array([0.0, 0.3, 0.5, 1.0, 2.0]), rng.normal(size=classes))
        some, same = weight_fit._derivatives(*given), weight_fit._compiled(*given)
        assert same[0] == pytest.approx(some[0], rel=1e-12)
        np.testing.assert_allclose(same[1], some[1], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(np.triu(same[2]), np.triu(some[2]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_codes_are_counted_by_arrays_exactly_as_by_the_compiled_loop(seed):
    rng = np.random.default_rng(seed)
    codes, labels = rng.integers(-3, 9, 300).astype(np.int32), rng.integers(-1, 3, 300)
    weights = rng.choice([0.0, 0.1, 1.0, 0.7], 300)
    one, other = np.zeros((2, 3, 5))
    outside = value_tables._count_array(codes.astype(np.int64) - 1, labels, weights, one)
    assert outside == counting.count_column.fast(codes, 1, 5, labels, weights, other) > 0
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("hashed", [False, True])
def test_combinations_of_categories_are_counted_by_arrays_exactly_as_by_the_compiled_loop(hashed):
    rng = np.random.default_rng(0)
    sizes, found = np.array([3, 5, 0, 0]), []
    codes = [rng.integers(-2, 7, 500).astype(np.int32) for _ in range(2)]
    y, table = rng.integers(0, 4, 500).astype(np.uint32), rng.integers(0, 1 << 60, 24).astype(np.uint64)
    for count in (category_counts._count_arrays, unit_counts.count_jointly.fast):
        counts, sums = np.zeros((4, 24), np.uint32), np.arange(500 if hashed else 0, dtype=np.uint64)
        count(*codes, codes[0], codes[0], sizes, y, table, sums, counts)
        found.append((counts, sums))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[0][0].sum() == 500


def test_nothing_is_compiled_before_array_versions_have_taken_as_long_as_compiling(monkeypatch):
    monkeypatch.setattr(kernel, "_waited", [0.0])
    monkeypatch.setattr(kernel.Kernel, "_compiler_loaded", False)

    @kernel.Kernel
    def loop(x, out):
        out[0] = x.size

    assert not kernel.worth_compiling(0.9 * kernel.PATIENCE, loop)
    assert kernel.worth_compiling(2.0 * kernel.PATIENCE, loop)  # too much work for arrays
    assert not kernel.worth_compiling(0.05 * kernel.PATIENCE, loop)
    assert kernel.worth_compiling(0.2 * kernel.PATIENCE, loop)  # the patience is that of all work together
    monkeypatch.setattr(kernel, "_waited", [0.0])
    monkeypatch.setattr(kernel.Kernel, "_compiler_loaded", True)
    monkeypatch.setattr("likely.kernels._compiling.is_cached", lambda made: False)
    assert kernel.worth_compiling(0.9 * kernel.PATIENCE, loop)  # a single loop does not take as long
    monkeypatch.setattr("likely.kernels._compiling.is_cached", lambda made: True)
    assert kernel.worth_compiling(0.0, loop)
    loop._used = False
    loop.prepare()
    monkeypatch.setattr(kernel, "_waited", [0.0])
    assert kernel.worth_compiling(0.0, loop)  # already compiled


def test_many_small_parts_are_done_in_order(monkeypatch):
    monkeypatch.setenv("LIKELY_THREADS", "2")
    assert parallel.in_parallel(lambda part: part * part, range(1000)) == [i * i for i in range(1000)]


def test_the_gains_of_sets_of_different_sizes_are_those_of_each_set_alone(monkeypatch):
    rng = np.random.default_rng(0)
    columns = {
        i: interaction_search.group_column(rng.integers(0, 4, 300).astype(np.int32), 4, False, np.ones(300)) for i in (1, 4, 6)
    }
    residuals = rng.normal(size=(300, 4)).astype(np.float32) ** 2
    sets = [(4,), (1, 6), (1, 4, 6), (6, 4)]
    for patience in (np.inf, -1.0):  # arrays, compiled loops
        monkeypatch.setattr(kernel, "PATIENCE", patience)
        monkeypatch.setattr(kernel, "PATIENCE_LOADED", patience)
        together = interaction_search.search_gains(columns, sets, residuals)
        alone = [interaction_search.search_gains(columns, [each], residuals)[0] for each in sets]
        np.testing.assert_allclose(together, alone, rtol=1e-9)
        np.testing.assert_allclose(together[1], interaction_search.search_gains(columns, [(6, 1)], residuals)[0])


@pytest.mark.parametrize("folds", [0, 4])
def test_columns_of_one_call_are_smoothed_and_left_out_as_each_alone(folds, monkeypatch):
    rng = np.random.default_rng(folds)
    values = [9, 9, 2, 9, 9, 2, 9, 9, 9, 9, 9, 9, 9]
    labels, left = rng.integers(0, 3, 200), np.where(np.arange(200) % 3 == 0, 0.5, 1.0)
    codes = [rng.integers(0, n + 2, 200).astype(np.int32) for n in values]
    codes[1] = codes[0].copy()  # equal ranks: both share one kernel
    seen = [np.zeros((n, 3)) for n in values]
    for each, x in zip(seen, codes, strict=True):
        np.add.at(each, (x[x < len(each)], labels[x < len(each)]), 1.0)
    centres = [None if i == 4 else np.full(n, 2.0) if i == 6 else np.sort(rng.normal(size=n)) for i, n in enumerate(values)]
    rows = compiled_choice.TableRows(labels, np.ones(200), left)
    monkeypatch.setenv("LIKELY_THREADS", "1")
    together = compiled_choice.choose_all(seen, centres)
    for i, found in enumerate(together):
        (alone,) = compiled_choice.choose_all([seen[i]], [centres[i]])
        assert (found.how, found.gain, found.centres is None) == (alone.how, alone.gain, centres[i] is None)
        for name in ("table", "left_out", "level", "totals", "seen"):
            np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))
    parts = compiled_choice.alike([(each.shape, at is None) for each, at in zip(seen, centres, strict=True)], folds + 1)
    assert sorted(map(tuple, parts)) == [(0, 1), (2,), (3, 6), (4,), (5,), (7, 8), (9, 10), (11, 12)]
    for part in parts:
        some = rows.evidence([codes[i] for i in part], [together[i] for i in part], folds, -50.0)
        for i, (evidence, gains) in zip(part, some, strict=True):
            ((same, same_gains),) = rows.evidence([codes[i]], [together[i]], folds, -50.0)
            np.testing.assert_array_equal(evidence, same)
            np.testing.assert_array_equal(gains, same_gains)


def test_short_columns_are_counted_together_as_each_alone():
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=70), np.round(rng.normal(size=70)), np.zeros(70), np.full(70, np.nan), np.full(70, 1e308)]
    columns += [np.where(rng.random(70) < 0.2, odd, rng.normal(size=70)) for odd in (np.nan, -0.0, np.inf)]
    labels, weights = rng.integers(0, 3, 70), rng.uniform(0.5, 2, 70)
    for y, w in ((labels, weights), (labels, np.ones(70)), (np.where(labels == 0, -1, labels), weights)):
        together = Histogram.of_columns(columns, y, w, 3)
        for x, found in zip(columns, together, strict=True):
            alone = Histogram.of(x, y, w, 3)
            np.testing.assert_array_equal(found.seen, alone.seen)
            np.testing.assert_array_equal(found.keys, alone.keys)
            assert found.level == alone.level
    assert len(together) == len(columns)


def test_hashes_of_numbers_are_added_over_columns_as_one_by_one(monkeypatch):
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=30), np.where(rng.random(30) < 0.5, np.nan, -0.0), np.zeros(30)]
    monkeypatch.setattr(row_sample, "HASHED_TOGETHER", 60)
    found = row_sample.sums_of_number_hashes(columns, ["a", "b", "c"])
    alone = [row_sample.number_hashes(x, name) for x, name in zip(columns, "abc", strict=True)]
    np.testing.assert_array_equal(found, alone[0] + alone[1] + alone[2])


def test_compiled_loops_leave_rows_out_of_all_tables_but_those_beyond_single_precision(monkeypatch):
    """Counts of 1e30 rows and more are worked out in double precision, which only the array version has."""
    rng = np.random.default_rng(0)
    data = {"c": rng.choice(["u", "v", "w"], 90), "huge": rng.choice(["p", "q"], 90), "y": rng.choice(["a", "b"], 90)}
    model = likely.learn(data, "y")
    rows = effective(model.tally.sample, model.tally)
    tables = [(rows.sample.columns[p.columns[0]], p.evidence) for p in model.plain_parameters]
    assert [p.columns[0] for p in model.plain_parameters] == ["c", "huge"]
    tables[1] = (tables[1][0], replace(tables[1][1], seen=tables[1][1].seen * 1e30))
    given = []
    loops = compiled_choice.TableRows.evidence

    def noted(self, codes, wholes, folds, lowest):
        given.extend(whole.seen.sum() for whole in wholes)
        return loops(self, codes, wholes, folds, lowest)

    monkeypatch.setattr(compiled_choice.TableRows, "evidence", noted)
    by_loops = _left_out_tables(CalibrationData(model.tally, rows, 0, compiled=True), tables)
    assert given == [90.0]
    by_arrays = _left_out_tables(CalibrationData(model.tally, rows, 0), tables)
    for (evidence, _), (expected, _) in zip(by_loops, by_arrays, strict=True):
        np.testing.assert_allclose(evidence, expected, rtol=1e-5, atol=1e-6)
