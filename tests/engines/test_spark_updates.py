"""Rows of a Spark table that are added to a model and taken out of it again, in the tasks of a cluster."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from commands import LOANS, document, run
from likely.engines.spark import spark_engine
from likely.errors import DataError, LikelyError, SchemaError, UsageError

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning", "ignore::FutureWarning"),
]
SETTINGS = {"families": {"big": "categorical", ("A", "flag"): "joint"}, "unlabelled": "ignore", "weights": "w"}


@pytest.fixture
def halves(whole_table):
    return whole_table.slice(0, 250), whole_table.slice(250)


def in_tasks(spark, table, partitions=3):
    return spark.createDataFrame(table).repartition(partitions)


@pytest.mark.parametrize("plain", [False, True])
def test_a_spark_table_is_added_and_forgotten_as_in_memory(spark, halves, plain):
    first, second = halves
    model = likely.learn(first, "class", engine="memory", plain=plain, **SETTINGS)
    frame = in_tasks(spark, second)
    found, expected = model.update(frame, engine="spark"), model.update(second)
    assert found.tally.counted_the_same(expected.tally)
    assert found.tally.sample == expected.tally.sample
    assert found.schema.target.taken == expected.schema.target.taken
    assert [c.taken for c in found.schema.columns] == [c.taken for c in expected.schema.columns]
    assert found.tally.rows == expected.tally.rows
    back = found.forget(frame, engine="spark")
    assert back.tally.counted_the_same(expected.forget(second).tally)
    assert model.update(frame).tally.counted_the_same(expected.tally)  # so small a table is read as a whole, as by learn


def test_files_are_read_by_the_tasks_and_a_large_table_goes_to_them_unasked(spark, halves, tmp_path, monkeypatch):
    first, second = (half.drop_columns(["a", "list"]) for half in halves)  # names that Spark's files cannot hold together
    monkeypatch.setattr(spark_engine, "SAMPLE_ROWS", 20)
    pq.write_table(second, tmp_path / "more.parquet", row_group_size=30)
    model = likely.learn(first, "class", engine="memory", **SETTINGS)
    frame = spark.read.parquet(str(tmp_path / "more.parquet"))
    counted = []
    whole = spark_engine.SparkEngine._counted_in_files
    monkeypatch.setattr(spark_engine.SparkEngine, "_counted_in_files", lambda *given: counted.append(1) or whole(*given))
    assert model.update(frame).tally.counted_the_same(model.update(second).tally)
    assert counted == [1]
    with pytest.raises(UsageError, match="engine='memory' was asked for a Spark table of more than"):
        model.update(frame, engine="memory")


def test_binned_targets_dates_and_other_tokens_and_weights_are_those_of_memory(spark, halves):
    first, second = halves
    settings = {"target_bins": 3, "plain": True, "families": {"big": "categorical"}, "unlabelled": "ignore"}
    model = likely.learn(first, "n", engine="memory", **settings)
    how = {"missing": ["?", "NA"], "weights": "w"}
    expected = model.update(second, **how)
    assert model.update(in_tasks(spark, second), engine="spark", **how).tally.counted_the_same(expected.tally)


def test_a_column_without_a_cell_so_far_gets_the_kind_of_the_new_rows(spark):
    first = pa.table({"a": pa.nulls(40), "b": ["u", "v"] * 20, "class": ["n", "n", "p", "p"] * 10})
    second = pa.table({"a": pa.array([1.5, 2.5, None, 7.0] * 10), "b": ["u", "v"] * 20, "class": ["n", "n", "p", "p"] * 10})
    model = likely.learn(first, "class", plain=True)
    expected = model.update(second)
    assert model.update(in_tasks(spark, second), engine="spark").tally.counted_the_same(expected.tally)


def test_an_empty_table_and_rows_that_were_never_counted_have_the_answers_of_memory(spark, halves):
    first, second = halves
    model = likely.learn(first, "class", engine="memory", plain=True, **SETTINGS)
    empty = spark.createDataFrame(second.slice(0, 0), in_tasks(spark, second).schema)
    assert model.update(empty, engine="spark").tally == model.tally
    strange = second.set_column(1, "A", pa.array(["never seen"] * len(second)))
    messages = []
    for rows, how in ((strange, {}), (in_tasks(spark, strange), {"engine": "spark"})):
        with pytest.raises(LikelyError) as kept:
            model.forget(rows, **how)
        messages.append(str(kept.value))
    assert messages[0] == messages[1]


def test_bad_rows_and_settings_are_refused_in_words(spark, halves):
    first, second = halves
    model = likely.learn(first, "class", engine="memory", plain=True, **SETTINGS)
    frame = in_tasks(spark, second)
    with pytest.raises(DataError, match="'class'"):
        model.update(frame.drop("class"), engine="spark")
    with pytest.raises(SchemaError, match="no column 'flag'"):
        model.update(frame.drop("flag"), engine="spark")
    with pytest.raises(DataError, match="which is no weight"):
        model.update(frame.withColumn("w", -frame.w), engine="spark")
    with pytest.raises(UsageError, match="weights= of a Spark table must be the name of one of its columns"):
        model.update(frame, engine="spark", weights=[1.0] * len(second))
    with pytest.raises(UsageError, match="decimal= is not taken where Spark counts"):
        model.update(frame, engine="spark", decimal=",")
    with pytest.raises(UsageError, match="engine='spark' counts a Spark DataFrame"):
        model.update(second, engine="spark")
    with pytest.raises(UsageError, match="engine='duckdb' learns a model and does not change one"):
        model.forget(second, engine="duckdb")


def test_the_commands_update_and_forget_count_with_spark(spark, cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = ("--engine", "spark", "--master", cluster.url)
    lines = Path(LOANS).read_text(encoding="utf-8").splitlines()
    middle = len(lines) // 2
    Path("a.csv").write_text("\n".join(lines[:middle]) + "\n", encoding="utf-8")
    Path("b.csv").write_text("\n".join([lines[0], *lines[middle:]]) + "\n", encoding="utf-8")
    run("learn", "a.csv", "--target", "outcome", "-o", "old.likely")
    run("update", "old.likely", "b.csv", "-o", "memory.likely")
    found = document("update", "old.likely", "b.csv", *how, "-o", "spark.likely")
    assert found["rows_after"] == len(lines) - 1
    assert likely.load("spark.likely").tally == likely.load("memory.likely").tally
    run("forget", "spark.likely", "b.csv", *how)
    run("forget", "memory.likely", "b.csv")
    assert likely.load("spark.likely").tally.counted_the_same(likely.load("memory.likely").tally)
    assert "add --engine spark" in run("update", "old.likely", "b.csv", "--master", cluster.url, expect=2).stderr
    assert "not standard input" in run("update", "old.likely", "-", *how, expect=2).stderr
