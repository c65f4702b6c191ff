"""One contract for every engine: the same hostile table, equal tallies, equal scores, equal errors."""

import math

import numpy as np
import pyarrow as pa
import pytest

import likely
from likely.errors import DataError, LikelyError

BIG = {"big": "categorical"}
SETTINGS = {
    "default": {"families": BIG, "unlabelled": "ignore"},
    "families": {
        "families": {"n": "poisson", "x": "gaussian", "c.d": "categorical", "price": "binned", ("A", "flag"): "joint", **BIG},
        "weights": "w", "unlabelled": "ignore", "ignore": ["words", "when"],
    },
    "plain": {"plain": True, "families": BIG, "weights": "w", "unlabelled": "ignore", "missing": ["?", "NA"]},
}  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning", "ignore::FutureWarning")


@pytest.mark.parametrize("name", SETTINGS)
def test_counts_row_sample_and_scores_equal_those_of_the_memory_engine(engine, name, table):
    expected = likely.learn(table, "class", engine="memory", **SETTINGS[name])
    found = engine.learn(table, **SETTINGS[name])
    assert [name for name, _ in found.schema.ignored] == [name for name, _ in expected.schema.ignored]
    assert [c.name for c in found.schema.columns] == [c.name for c in expected.schema.columns]
    assert found.tally.rows == expected.tally.rows
    assert found.tally.counted_the_same(expected.tally)
    assert found.tally.sample == expected.tally.sample
    assert found.schema.target.taken == expected.schema.target.taken
    shown = engine.score(expected, table)
    p = expected.posterior(table)
    assert shown["label"] == p.labels.tolist()
    for k, label in enumerate(expected.classes):
        np.testing.assert_allclose(shown[f"p_{label}"], p.probabilities[:, k], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.posterior(table).probabilities, p.probabilities, rtol=0, atol=1e-9)


def test_the_calibration_equals_that_of_the_memory_engine(engine, table):
    settings = {"unlabelled": "ignore", "ignore": ["words", "when", "big"]}
    found, expected = engine.learn(table, **settings), likely.learn(table, "class", engine="memory", **settings)
    assert found.calibration.weights == pytest.approx(expected.calibration.weights, abs=1e-9)
    assert [e.columns for e in found.calibration.interactions] == [e.columns for e in expected.calibration.interactions]


def bad_tables(table):
    infinite = pa.array([math.inf if i == 200 else 1.5 for i in range(table.num_rows)])
    one = pa.array(["yes"] * table.num_rows)
    return {
        "infinity": (table.set_column(5, "x", infinite), {"plain": True}, "which is not a finite number"),
        "no label": (table, {"unlabelled": "error"}, "has no label"),
        "negative weight": (table.set_column(14, "w", infinite.fill_null(0)), {"weights": "w"}, "which is no weight"),
        "one class": (table.set_column(15, "class", one), {"plain": True}, "only one class"),
        "no column": (table, {"ignore": ["colour"]}, "has no column 'colour'"),
    }


@pytest.mark.parametrize("fault", ["infinity", "no label", "negative weight", "one class", "no column"])
def test_bad_data_is_refused_with_the_same_words(engine, fault, table):
    bad, settings, words = bad_tables(table)[fault]
    with pytest.raises(DataError, match=words):
        engine.learn(bad, **{"families": BIG} | settings)


def test_a_column_that_is_not_there_is_named_when_rows_are_scored(engine, table):
    model = likely.learn(table, "class", engine="memory", plain=True, families=BIG, unlabelled="ignore")
    with pytest.raises(Exception, match="has no column 'A'"):
        engine.score(model, table.drop_columns(["A"]))


def test_an_engine_that_does_not_exist_is_refused(table):
    with pytest.raises(LikelyError, match="engine='abacus' is not known: choose one of auto, memory, spark"):
        likely.learn(table, "class", engine="abacus")


def test_the_engine_and_the_reason_for_it_are_part_of_the_model(table):
    model = likely.learn(table, "class", plain=True, families=BIG)
    assert model.engine == "memory: the rows are on this machine, and are read in batches"
    assert likely.plan(table, "class", families=BIG).parts.model.engine == ""
