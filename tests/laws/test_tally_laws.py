"""Tallies are a commutative monoid with scaling; learning is a homomorphism into it."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import likely
from likely.errors import ForgetError, UsageError
from strategies import COUNTED, WEIGHTS, agree, cells, examples, quietly, same, seeds, splits, whole_cases


@given(whole_cases())
def test_zero_is_neutral(case):
    tally = case.learn().tally
    assert tally + tally.zero() == tally
    assert tally.zero() + tally == tally
    assert tally.zero() + tally.zero() == tally.zero()
    assert tally.zero().rows == 0


@given(whole_cases(), st.data())
def test_addition_commutes_and_associates(case, data):
    a, b, c = (part.learn().tally for part in data.draw(splits(case, 3)))
    same(a + b, b + a)
    same((a + b) + c, a + (b + c))


@given(whole_cases(kinds=COUNTED), st.data())
def test_counts_commute_and_associate_exactly(case, data):
    a, b, c = (part.learn().tally for part in data.draw(splits(case, 3)))
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)


@given(whole_cases(), st.data())
def test_any_split_learned_in_parts_equals_the_whole(case, data):
    parts = data.draw(splits(case, data.draw(st.integers(2, 4))))
    whole = case.learn()
    merged = parts[0].learn()
    for part in parts[1:]:
        merged = merged + part.learn()
    same(merged.tally, whole.tally)
    agree(merged, whole, case.columns)


@given(whole_cases(), st.data())
def test_updating_row_by_row_equals_the_whole(case, data):
    first = data.draw(st.integers(1, case.rows))
    assume(case.take(range(first)).clear)  # what it is learned as, it is updated as
    model = case.take(range(first)).learn()
    for i in range(first, case.rows):
        model = quietly(model.update, case.take([i]).columns)
    same(model.tally, case.learn().tally)


@given(whole_cases(weighted=False), st.data())
def test_whole_weights_equal_copies(case, data):
    copies = data.draw(cells(range(4), case.rows, gaps=(0.0,)).filter(any))
    repeated = case.take([i for i, n in enumerate(copies) for _ in range(n)])
    assume(repeated.clear)
    repeated = repeated.learn()
    weighted = case.learn(data=case.columns | {"w": copies}, weights="w")
    by_array = case.learn(weights=copies)
    for model in (weighted, by_array):
        np.testing.assert_array_equal(model.tally.classes, repeated.tally.classes)
        assert model.schema == repeated.schema
        same(_without_rows(model.tally), _without_rows(repeated.tally))
    agree(weighted, repeated, case.columns)


@given(whole_cases(weighted=False), st.data())
def test_a_weight_of_zero_equals_removal(case, data):
    keep = data.draw(cells((True, False), case.rows, gaps=(0.0,)).filter(any))
    kept = case.take([i for i, kept in enumerate(keep) if kept])
    assume(kept.clear)
    removed = kept.learn()
    zero = case.learn(weights=[1.0 if kept else 0.0 for kept in keep])
    assert zero.tally == removed.tally or same(zero.tally, removed.tally) is None
    # Without a word of declared classes, a class that only weightless rows have does not exist either.
    classes = {y for y, kept in zip(case.columns["y"], keep, strict=True) if kept}
    if len(classes) > 1:
        undeclared = case.learn(weights=[float(kept) for kept in keep], classes=(), class_prior=None)
        assert set(undeclared.classes) == classes


@given(whole_cases(), st.sampled_from([0.0, 0.5, 2.0, 3.0, 0.1, 1e6]))
def test_scaling_a_tally_is_scaling_the_weights(case, factor):
    tally = case.learn().tally
    weights = np.array(case.columns["w"] if case.weights else np.ones(case.rows))
    unweighted = {name: column for name, column in case.columns.items() if name != "w"}
    scaled = case.learn(data=unweighted, weights=weights * factor).tally if factor else tally.zero()
    product = tally * factor
    assert product.schema == tally.schema
    for x, y in zip(product.statistics, scaled.statistics, strict=True):
        for part, array in x.arrays().items():
            np.testing.assert_allclose(
                array, y.arrays()[part], rtol=1e-9, atol=1e-9 * max(1.0, np.abs(array).max(initial=0))
            )
    np.testing.assert_allclose(product.classes, scaled.classes, rtol=1e-12)


@given(whole_cases())
def test_twice_a_tally_is_the_tally_added_to_itself(case):
    tally = case.learn().tally
    same(tally * 2, tally + tally)
    same(2 * tally, tally + tally)
    same(tally * 1, tally)


@pytest.mark.parametrize("factor", [-1, float("nan"), float("inf")])
def test_a_tally_is_not_multiplied_by_what_is_no_number_of_copies(factor):
    tally = likely.learn({"x": ["a", "b"], "y": [0, 1]}, "y").tally
    with pytest.raises(UsageError):
        tally * factor


@given(whole_cases(kinds=COUNTED), st.data())
def test_forgetting_counts_undoes_updating_exactly(case, data):
    first, rest = data.draw(splits(case, 2))
    model = first.learn()
    assert model.update(rest.columns).forget(rest.columns) == model


@given(whole_cases(), st.data())
def test_forgetting_undoes_updating_or_raises_an_error(case, data):
    first, rest = data.draw(splits(case, 2))
    assume(first.clear)  # what a column holds, once it was seen, is known for good: only counts are taken back
    model = first.learn()
    updated = quietly(model.update, rest.columns)
    try:
        back = quietly(updated.forget, rest.columns)
    except ForgetError:
        return
    assert back.schema == model.schema
    same(back.tally, model.tally, tolerance=1e-7)


@given(whole_cases(), st.data())
def test_the_order_of_rows_leaves_no_trace(case, data):
    order = data.draw(st.randoms()).sample(range(case.rows), case.rows)
    same(case.take(order).learn().tally, case.learn().tally)


@given(whole_cases(kinds=COUNTED), st.data())
def test_the_order_of_rows_leaves_no_trace_in_counts_at_all(case, data):
    order = data.draw(st.randoms()).sample(range(case.rows), case.rows)
    assert case.take(order).learn() == case.learn()


@given(whole_cases(), st.data())
def test_the_order_of_columns_does_not_matter(case, data):
    names = data.draw(st.permutations(list(case.columns)))
    shuffled = case.learn(data={name: case.columns[name] for name in names})
    model = case.learn()
    agree(shuffled, model, case.columns)
    same((shuffled + model).tally, (shuffled + shuffled).tally)


@given(whole_cases(), st.data())
def test_new_names_for_the_classes_move_the_answers_and_nothing_else(case, data):
    assume(not isinstance(case.class_prior, dict))
    names = data.draw(st.permutations([f"class {i}" for i in range(len(case.classes))]))
    rename = dict(zip(case.classes, names, strict=True))
    renamed = case.learn(
        data=case.columns | {"y": [rename[y] for y in case.columns["y"]]}, classes=tuple(rename.values())
    )
    model = case.learn()
    left, right = model.posterior(case.columns), renamed.posterior(case.columns)
    order = [list(renamed.classes).index(rename[label]) for label in model.classes]
    np.testing.assert_allclose(left.log_joint, right.log_joint[:, order], rtol=1e-9, atol=1e-9)


@given(whole_cases(), st.sampled_from(WEIGHTS[1:]))
def test_a_common_weight_changes_no_maximum_likelihood_estimate(case, weight):
    assume(case.weights is None)
    plain = case.learn(smoothing=0, class_prior=None)
    weighted = case.learn(smoothing=0, class_prior=None, weights=[weight] * case.rows)
    agree(weighted, plain, case.columns)


@given(whole_cases())
def test_forgetting_everything_leaves_the_zero(case):
    model = case.learn()
    nothing = quietly(model.forget, case.columns)
    assert nothing.tally.rows == 0
    assert not nothing.tally.classes.any()
    assert all(not s.weight().any() for s in nothing.tally.statistics)
    assert nothing.tally + model.tally == model.tally


def test_forgetting_what_was_never_learned_is_refused():
    model = likely.learn({"x": ["a", "b", "b"], "z": [1.0, 2.0, 4.0], "y": [0, 1, 1]}, "y")
    for row in ({"x": "a", "z": 2.0, "y": 1}, {"x": "c", "z": 1.0, "y": 0}, {"x": "a", "z": 1.0, "y": 5}):
        with pytest.raises(ForgetError):
            model.forget(row)


@pytest.mark.parametrize("left", [1.0, 1e6])
def test_subtraction_is_refused_when_the_digits_of_a_mean_would_be_lost(left):
    few = quietly(likely.learn, {"x": [left, 2 * left], "y": ["a", "b"]}, "y", families="gaussian")
    many = quietly(
        likely.learn, {"x": [1e15 + i for i in range(9)], "y": [*"aababab", "a", "b"]}, "y", families="gaussian"
    )
    with pytest.raises(ForgetError, match="digits of a mean"):
        (few + many).tally - many.tally


def test_forgetting_all_but_rounding_is_refused_or_counted_again():
    few = {"x": [3.0, 3.0, 1.0, 2.0], "c": ["u", "v", "u", "v"], "y": ["a", "a", "b", "b"]}
    many = {"x": [0.1 * i for i in range(100)], "c": ["u", "v"] * 50, "y": ["a", "b"] * 50}
    one, two = (quietly(likely.learn, part, "y", families="gaussian", ignore=["c"]) for part in (few, many))
    with pytest.raises(ForgetError, match="digits of a variance"):
        (one + two).tally - two.tally
    one, two = (quietly(likely.learn, part, "y", families={"x": "gaussian"}) for part in (few, many))
    assert ((one + two).tally - two.tally).statistics[0].spread.tolist() == [0.0, 0.5]  # all rows are kept


@pytest.mark.parametrize("exponent", [50, 100])
def test_what_is_left_beside_very_large_numbers_is_refused_and_never_zero(exponent):
    few = quietly(likely.learn, {"x": [1.0, 2.0], "y": ["a", "b"]}, "y", families="gaussian")
    large = quietly(likely.learn, {"x": [10.0**exponent, 3.0], "y": ["a", "b"]}, "y", families="gaussian")
    with pytest.raises(ForgetError, match="digits"):
        (few + large).tally - large.tally


@given(seeds, st.integers(1, 6), st.integers(1, 12), st.sampled_from([1, 1000, 10**6]))
@examples(1)
def test_a_joint_block_is_forgotten_exactly_or_not_at_all(seed, left, gone, scale):
    rng = np.random.default_rng(seed)

    def table(rows):
        x = rng.integers(-3, 4, rows).astype(float)
        z = np.where(rng.random(rows) < 0.5, 2 * x, rng.integers(-3, 4, rows)) * scale
        return {"x": x, "z": z + rng.integers(0, 2), "y": np.arange(rows) % 2}

    one, two = table(2 * left), table(2 * gone)
    fresh, other = (quietly(likely.learn, part, "y", joint=[("x", "z")], plain=True) for part in (one, two))
    try:
        back = quietly((fresh + other).forget, two)
    except ForgetError:
        return
    near = rng.integers(0, 2 * left, 5)  # a million deviations away, the last digit of a mean would be seen
    rows = {name: one[name][near] + rng.normal(0, 2, 5) for name in ("x", "z")}
    np.testing.assert_allclose(back.posterior(rows).probabilities, fresh.posterior(rows).probabilities, atol=1e-4)


def _without_rows(tally):
    from dataclasses import replace

    return replace(tally, rows=0)
