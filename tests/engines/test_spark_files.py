"""Spark tables that are nothing but Parquet files: tasks read the row groups by themselves, or Spark sends the rows."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from likely.engines.spark._parquet_parts import ParquetParts, Piece, parquet_parts
from likely.engines.spark.spark_engine import SparkEngine

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning", "ignore::FutureWarning"),
]
SETTINGS = {"families": {"big": "categorical", "n": "poisson"}, "unlabelled": "ignore", "ignore": ["words"]}


@pytest.fixture
def table(table):
    """The hostile table but for names that differ in case only, which Spark does not read from Parquet."""
    return table.rename_columns(["tokens" if name == "a" else name for name in table.column_names])


@pytest.fixture
def written(table, tmp_path):
    """The hostile table as two files of several row groups, in a folder with a blank in its name."""
    folder = tmp_path / "a table"
    folder.mkdir()
    pq.write_table(table.slice(0, 250), folder / "1.parquet", row_group_size=90)
    pq.write_table(table.slice(250), folder / "2.parquet", row_group_size=90)
    return folder


def test_row_groups_that_tasks_read_give_the_tally_of_memory(spark, table, written):
    frame = spark.read.parquet(str(written))
    found = likely.learn(frame, "class", engine="spark", **SETTINGS)
    expected = likely.learn(table, "class", engine="memory", **SETTINGS)
    assert found.engine == "spark: asked for; tasks read its Parquet files by themselves"
    assert found.tally.counted_the_same(expected.tally)
    assert found.tally.sample == expected.tally.sample
    handed_over = likely.learn(frame, "class", engine="spark-rows", **SETTINGS)
    assert handed_over.engine == "spark: asked for; Spark sends the rows: asked for"
    assert handed_over.tally == found.tally


def test_a_file_that_the_task_does_not_find_is_handed_over_by_spark(spark, table, written, monkeypatch):
    frame = spark.read.parquet(str(written))
    files, _ = parquet_parts(frame)
    elsewhere = tuple((replace(piece, path=piece.path + ".not"), size) for piece, size in files.pieces)
    found = []
    made = SparkEngine(frame, files=replace(files, pieces=elsewhere))
    monkeypatch.setattr(SparkEngine, "of", staticmethod(lambda *_: found.append(made) or (made, table)))
    model = likely.learn(frame, "class", engine="spark", **SETTINGS)
    assert "a task could not read its files by itself" in model.engine
    assert "No such file" in model.engine
    assert model.tally == likely.learn(table, "class", engine="memory", **SETTINGS).tally


def test_whatever_is_more_than_a_scan_of_parquet_files_is_handed_over_by_spark(spark, written, tmp_path):
    frame = spark.read.parquet(str(written))
    empty = str(tmp_path / "empty.parquet")
    pq.write_table(pa.table({"n": pa.array([], pa.int32()), "class": pa.array([], pa.string())}), empty)
    old = str(tmp_path / "old.parquet")
    dates = pa.table({"day": pa.array([dt.date(1500, 1, 1)])}).replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    pq.write_table(dates, old)
    refused = {
        "a filter": (frame.filter("n > 1"), "Filter"),
        "a sample": (frame.sample(0.5), "Sample"),
        "a limit": (frame.limit(10), "GlobalLimit"),
        "a union": (frame.union(frame), "Union"),
        "a computed column": (frame.selectExpr("n + 1 as n", "class"), "computed"),
        "other types": (spark.read.schema("n bigint, class string").parquet(str(written)), "is int32, which Spark reads as"),
        "a column of nulls": (spark.read.schema("none int, class string").parquet(str(written)), "has no column 'none'"),
        "old dates": (spark.read.parquet(old), "calendar of old versions"),
        "no rows": (spark.read.parquet(empty), "no rows"),
        "rows of this process": (spark.createDataFrame([(1, "a")], "n int, class string"), "LogicalRDD"),
    }  # fmt: skip
    (tmp_path / "parts" / "part=1").mkdir(parents=True)
    pq.write_table(pa.table({"n": [1], "class": ["a"]}), tmp_path / "parts" / "part=1" / "a.parquet")
    refused["partition columns"] = (spark.read.parquet(str(tmp_path / "parts")), "partition columns")
    (tmp_path / "a.csv").write_text("n,class\n1,a\n")
    refused["text"] = (spark.read.csv(str(tmp_path / "a.csv"), header=True), "CSVFileFormat")
    for name, (table, words) in refused.items():
        files, why = parquet_parts(table)
        assert files is None, name
        assert words in why, (name, why)


def test_cells_of_files_have_the_values_and_types_that_spark_hands_over(spark, tmp_path):
    day, noon = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30)  # noqa: DTZ001
    kinds = {
        "date": (day, pa.date32()), "local": (noon, pa.timestamp("us")), "milliseconds": (noon, pa.timestamp("ms")),
        "instant": (noon.replace(tzinfo=dt.UTC), pa.timestamp("us", "UTC")), "price": (Decimal("1.25"), pa.decimal128(9, 2)),
        "float": (0.1, pa.float32()), "double": (0.1, pa.float64()), "tiny": (1, pa.int8()), "short": (1, pa.int16()),
        "long": (2**62, pa.int64()), "flag": (True, pa.bool_()), "bytes": (b"a", pa.binary()), "text": ("ß", pa.large_string()),
    }  # fmt: skip
    pq.write_table(pa.table({n: pa.array([v, None], kind) for n, (v, kind) in kinds.items()}), tmp_path / "a.parquet")
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.read.parquet(str(tmp_path))
        files, why = parquet_parts(frame)
        assert files is not None, why
        expected, found = frame.toArrow(), pa.Table.from_batches(files.batches(None))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert found.to_pydict() == expected.to_pydict()
    assert found.drop_columns(["text"]).schema.types == expected.drop_columns(["text"]).schema.types


def test_chosen_and_renamed_columns_are_read_from_the_files(spark, table, written):
    frame = spark.read.parquet(str(written)).select("n", "class").toDF("number", "label")
    files, why = parquet_parts(frame)
    assert files is not None, why
    found = pa.Table.from_batches(files.batches(None))
    assert found["number"].to_pylist() == table["n"].to_pylist()
    assert found["label"].to_pylist() == table["class"].to_pylist()


def test_parts_hold_every_row_group_once_in_as_many_parts_as_tasks_run():
    pieces = tuple((Piece(f"/{i // 4}", 100, (i % 4,)), 10) for i in range(16))
    parts = ParquetParts({}, pieces, 16).parts(3)
    assert len(parts) == 3
    assert [(piece.path, group) for part in parts for piece in part for group in piece.groups] == [
        (piece.path, piece.groups[0]) for piece, _ in pieces
    ]
    assert max(len([g for piece in part for g in piece.groups]) for part in parts) <= 6
