"""EM over rows that stay where they are: every pass is a task on parts, and the model equals that of the memory engine."""

import functools
import itertools
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from likely.engines.engine import CountedSource
from likely.engines.spark.spark_frames import SparkRows
from likely.errors import UsageError
from likely.latent import em
from likely.latent.em_parts import RowsInParts
from likely.model.parts import plan_of
from likely.sources import open_source
from slices import Slices

pytestmark = pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning", "ignore::FutureWarning")


class InSlices:
    """A table in slices, in this process."""

    def __init__(self, request):
        pass

    def learn(self, table, target="class", **settings):
        return likely.learn(table, target, engine=Slices(table), **settings)


class Planned(InSlices):
    """Slices that are counted from copies of a plan made of some rows, and gone through again by copies of functions."""

    def learn(self, table, target="class", **settings):
        plan = likely.plan(table.slice(0, 150), target, **settings)
        slices = [table.slice(i, 90) for i in range(0, table.num_rows, 90)]
        return plan.learn(map(plan.count, slices), each=lambda work: map(pickle.loads(pickle.dumps(work)), slices))


class OnSpark:
    """A Spark table of four partitions, one of them empty; nothing may be streamed to the driver."""

    def __init__(self, request):
        self.session = request.getfixturevalue("spark")
        request.getfixturevalue("monkeypatch").setattr(SparkRows, "batches", None)

    def learn(self, table, target="class", **settings):
        frame = self.session.createDataFrame(table)
        empty = self.session.createDataFrame(table.slice(0, 0), frame.schema)
        return likely.learn(frame.repartition(3).union(empty.coalesce(1)), target, engine="spark", **settings)


SPARK = pytest.param(OnSpark, marks=pytest.mark.xdist_group("spark"))


@pytest.fixture(params=[InSlices, Planned, SPARK], ids=["slices", "planned", "spark"])
def engine(request):
    return request.param(request)


# Every setting in parts of this process; a cluster does the same work, and much slower.
JOINT = [(way, *each) for way in (InSlices, Planned) for each in itertools.product((None, "w"), ("ignore", 0.7))]


def hidden(table, every=4):
    """The table with a label in every fourth row only."""
    place = table.column_names.index("class")
    labels = [None if i % every else label for i, label in enumerate(table["class"].to_pylist())]
    return table.set_column(place, "class", pa.array(labels))


BIG = {"big": "categorical"}
SETTINGS = {
    "default": {"families": BIG},
    "plain": {"plain": True, "families": BIG, "weights": "w", "missing": ["?", "NA"]},
    "families": {
        "families": {"n": "poisson", "x": "gaussian", "price": "binned", ("A", "flag"): "joint", **BIG},
        "weights": "w", "ignore": ["words", "when"], "class_prior": {"yes": 0.3, "no": 0.7},
    },
}  # fmt: skip


def same(found, expected, table):
    """Whether two models have the same counts and posteriors, but for rounding."""
    assert found.schema.columns == expected.schema.columns
    assert found.tally.rows == expected.tally.rows
    np.testing.assert_allclose(found.tally.classes, expected.tally.classes, rtol=1e-9)
    for one, other in zip(found.tally.statistics, expected.tally.statistics, strict=True):
        np.testing.assert_allclose(one.weight(), other.weight(), rtol=0, atol=1e-9)
    p, q = found.posterior(table).probabilities, expected.posterior(table).probabilities
    np.testing.assert_allclose(p, q, rtol=0, atol=1e-9)


def of_partly(name):
    return {"unlabelled": 0.5, "max_iter": 5, **SETTINGS[name]}


@pytest.fixture(scope="module")
def in_memory(whole_table):
    """The model of partly labelled rows that every engine must learn, by the name of its settings."""

    @functools.cache
    def learned(name):
        expected = likely.learn(hidden(whole_table), "class", engine="memory", **of_partly(name))
        labelled = likely.learn(hidden(whole_table), "class", engine="memory", **of_partly(name) | {"unlabelled": "ignore"})
        assert expected.tally.classes.sum() > labelled.tally.classes.sum()
        return expected

    return learned


@pytest.mark.parametrize("name", SETTINGS)
def test_rows_without_a_label_are_counted_in_parts_as_in_memory(engine, name, table, in_memory):
    same(engine.learn(hidden(table), **of_partly(name)), in_memory(name), table)


def with_gaps(rows=400):
    """Correlated numbers and categories with missing cells; one value occurs in an incomplete row only."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, rows)
    x = rng.normal(size=(rows, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.3], [0, 0, 1]]) + y[:, None]
    g = rng.integers(0, 3, rows)
    columns = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "g": np.array(list("xyz"))[g], "k": np.array(list("pqr"))[(g + y) % 3]}
    table = {name: [None if rng.random() < 0.2 else v for v in values.tolist()] for name, values in columns.items()}
    table["g"][33], table["k"][33] = None, "only here"
    labels = [None if i % 19 == 0 else "uvw"[v] for i, v in enumerate(y)]
    return pa.table(table | {"w": rng.choice([0, 0.5, 1.0, 2.0], rows), "class": labels})


def of_gaps(weights, unlabelled):
    return {"plain": True, "joint": [("a", "b", "c"), ("g", "k")], "weights": weights, "unlabelled": unlabelled}


@functools.cache
def gaps_in_memory(weights, unlabelled):
    return likely.learn(with_gaps(), "class", engine="memory", **of_gaps(weights, unlabelled))


@pytest.mark.parametrize(
    ("way", "weights", "unlabelled"), [*JOINT, pytest.param(OnSpark, "w", 0.7, marks=pytest.mark.xdist_group("spark"))]
)
def test_missing_cells_of_joint_blocks_are_counted_in_parts_as_in_memory(request, way, weights, unlabelled):
    table, engine, expected = with_gaps(), way(request), gaps_in_memory(weights, unlabelled)
    assert "only here" in expected.schema.by_name["k"].values
    same(engine.learn(table, **of_gaps(weights, unlabelled)), expected, table)


def test_an_e_step_in_parts_has_the_log_likelihood_and_entropy_of_memory(table):
    partly = hidden(table).drop_columns(["words", "when"])
    model = likely.learn(partly, "class", plain=True, families=BIG, unlabelled=1.0)
    kinds = plan_of(model).kinds()
    rows = em.StreamedRows(lambda: open_source(partly).batches(kinds), model.schema, em.column_weights(None), labelled=True)
    parts = RowsInParts(lambda task: Slices(partly).tally(CountedSource(None, None), lambda: task), plan_of(model), {})
    found, expected = parts.e_step(model, 0.5, entropy=True), em.e_step(model, rows, 0.5, entropy=True)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
    assert found.entropy == pytest.approx(expected.entropy, rel=1e-9)
    assert expected.entropy > 0


@pytest.mark.xdist_group("spark")
def test_tasks_read_the_files_of_a_table_in_every_round(spark, table, tmp_path, monkeypatch):
    partly = hidden(table).drop_columns(["a", "words", "list"])
    pq.write_table(partly, tmp_path / "a.parquet", row_group_size=90)
    monkeypatch.setattr(SparkRows, "batches", None)
    settings = {"target": "class", "plain": True, "families": BIG, "unlabelled": 1.0, "max_iter": 4}
    found = likely.learn(spark.read.parquet(str(tmp_path)), engine="spark", **settings)
    assert found.engine == "spark: asked for; tasks read its Parquet files by themselves"
    same(found, likely.learn(partly, engine="memory", **settings), partly)


def test_rows_that_are_not_here_are_never_replaced_by_the_sample_of_the_plan():
    table = with_gaps()

    def learn(**settings):
        plan = likely.plan(table.slice(0, 60), "class", plain=True, **settings)
        return plan.learn([plan.count(table.slice(0, 200)), plan.count(table.slice(200))])

    for settings in ({"joint": [("a", "b", "c")]}, {"unlabelled": 0.5}, {"select": 2}):
        with pytest.raises(UsageError, match=r"the rows of the parts are not in this process: pass each="):
            learn(**settings)
    assert learn().tally.rows == sum(label is not None for label in table["class"].to_pylist())
