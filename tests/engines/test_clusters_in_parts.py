"""Mixtures over rows that stay where they are: every iteration of EM is a count of parts, and the fit is that of memory."""

import numpy as np
import pyarrow as pa
import pytest

import likely
from likely.engines.spark.spark_frames import SparkRows
from likely.errors import UsageError
from slices import Slices

pytestmark = pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning", "ignore::FutureWarning")
ROWS = 420
MEANS = [[0.0, 0.0], [3.0, 2.0], [6.0, -1.0]]


def mixed():
    """Three groups of numbers, categories and texts, with gaps and weights; some values occur in the last rows only."""
    rng = np.random.default_rng(1)
    z = rng.integers(0, 3, ROWS)
    x, y = 3.0 * z + rng.normal(size=ROWS), np.choose(z, [0.0, 2.0, -1.0]) + rng.normal(size=ROWS)
    colour = np.where(rng.random(ROWS) < 0.8, np.array(["red", "green", "blue"])[z], "grey").astype(object)
    colour[-20:], colour[::17] = "late", "?"
    words = np.array(["tea milk cup", "rain cloud wind", "goal ball team"])
    reported = [f"{words[k]} {' '.join(rng.choice(['the', 'a', 'so'], 3))}" for k in z]
    reported[-3:] = ["unheard word of the last rows"] * 3
    gap = rng.random(ROWS) < 0.1
    return pa.table({
        "x": pa.array(x, mask=gap), "y": y, "colour": colour.tolist(), "words": reported,
        "w": rng.choice([0.0, 0.5, 1.0, 2.0], ROWS),
    })  # fmt: skip


def clusters(table, first=ROWS, **settings):
    """The mixture of a table in slices, of which this process sees the first rows only."""
    return likely.cluster(table.slice(0, first), engine=Slices(table), **settings)


def test_the_iterations_over_parts_are_those_of_memory():
    table = mixed().select(["x", "y", "w"])
    settings = {"k": 3, "start": MEANS, "weights": "w", "tol": -1.0, "max_iter": 6}
    found, expected = clusters(table, 50, **settings), likely.cluster(table, **settings)
    np.testing.assert_allclose(found.trace, expected.trace, rtol=1e-12)
    np.testing.assert_allclose(found.posterior(table).probabilities, expected.posterior(table).probabilities, atol=1e-9)
    assert found.entropy == pytest.approx(expected.entropy, rel=1e-9)
    assert found.bic == pytest.approx(expected.bic, rel=1e-12)
    assert found.model.weights == "w"


def test_starts_on_the_first_rows_end_at_the_maximum_of_all_rows():
    table = mixed().drop_columns(["words"])
    settings = {"k": 3, "weights": "w", "missing": ["?"]}
    found, expected = clusters(table, 150, **settings), likely.cluster(table, **settings)
    assert found.converged
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=0.01)
    assert found.log_likelihood == pytest.approx(found.with_log_likelihood(table).log_likelihood, rel=1e-9)
    np.testing.assert_allclose(found.tally.classes, expected.tally.classes, rtol=0.01)
    assert found.schema.by_name["colour"].values == expected.schema.by_name["colour"].values
    assert "late" in found.schema.by_name["colour"].values
    assert found.schema.columns == expected.schema.columns, "with the number of cells that were read as missing"


def test_words_that_the_first_rows_lack_are_counted():
    table = mixed().select(["words", "y"])
    settings = {"k": 3, "families": {"words": likely.Text("multinomial")}}
    found, expected = clusters(table, 200, **settings), likely.cluster(table, **settings)
    assert found.log_likelihood == pytest.approx(found.with_log_likelihood(table).log_likelihood, rel=1e-9)
    assert found.log_likelihood > expected.log_likelihood - 0.05, "another local maximum may be higher"
    assert any(word == "unheard" for words in found.top_words(1000).values() for word, _ in words)


def test_the_number_of_clusters_is_chosen_by_the_criterion_over_all_rows():
    table = mixed().select(["x", "y"])
    found, expected = clusters(table, 200, k="auto"), likely.cluster(table, k="auto")
    assert len(found.classes) == len(expected.classes) > 1
    assert found.tried[1] == pytest.approx(expected.tried[1], rel=1e-9)
    assert found.tried[len(found.classes)] == pytest.approx(expected.tried[len(found.classes)], abs=0.1)


@pytest.mark.xdist_group("spark")
def test_a_spark_table_is_clustered_in_its_tasks(spark, monkeypatch):
    monkeypatch.setattr(SparkRows, "batches", None)  # nothing may be streamed to the driver
    table = mixed().drop_columns(["words"])
    frame = spark.createDataFrame(table).repartition(3)
    settings = {"k": 3, "weights": "w", "missing": ["?"]}
    found, expected = likely.cluster(frame, engine="spark", **settings), likely.cluster(table, **settings)
    assert found.model.engine.startswith("spark: asked for")
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=0.01)
    answers = found.posterior(frame).toArrow()
    one = expected.predict(answers.drop_columns(["label", "p_1", "p_2", "p_3"]))
    np.testing.assert_array_equal(answers["label"].to_pylist(), one)


def test_rows_on_this_machine_are_clustered_in_memory_and_the_model_names_the_engine():
    found = likely.cluster(mixed().select(["x", "y"]), k=2)
    assert found.model.engine == "memory: the rows are on this machine, and are read in batches"


def test_what_no_engine_does_is_refused_by_name():
    table = mixed().select(["x", "y"])
    with pytest.raises(UsageError, match="clusters are found by 'memory' or 'spark'"):
        likely.cluster(table, k=2, engine="duckdb")
    with pytest.raises(UsageError, match=r"engine='spark' counts a Spark DataFrame"):
        likely.cluster(table, k=2, engine="spark")
    with pytest.raises(UsageError, match=r"weights= of a Spark table must be the name"):
        clusters(table, k=2, weights=np.ones(ROWS))
