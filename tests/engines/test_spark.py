"""Spark on a real cluster: command line, archive for executors without Likely, large tables, and a worker that dies."""

import json
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from commands import LOANS, NEW, document, run
from likely.engines.spark import spark_frames
from likely.engines.spark.archive import write_archive
from likely.errors import DataError, UsageError

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning", "ignore::FutureWarning"),
]


def made(rows, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    columns = {f"c{j}": np.array([f"v{i}" for i in range(6)])[(rng.integers(0, 6, rows) + y * (j < 2)) % 6] for j in range(4)}
    columns |= {f"x{j}": rng.normal(y * 0.5 * j, 1.0) for j in range(3)}
    return pa.table(columns | {"id": [f"row {i}" for i in range(rows)], "class": np.array(["a", "b", "c"])[y]})


def test_the_engine_is_chosen_by_size_with_a_reason(spark, monkeypatch):
    table = made(300)
    frame = spark.createDataFrame(table)
    small = likely.learn(frame, target="class")
    assert small.engine == "memory: the Spark table has 300 rows, all of them read to plan the columns"
    monkeypatch.setattr(spark_frames, "SAMPLE_ROWS", 200)
    monkeypatch.setattr(spark_frames.first_rows, "__defaults__", (200,))
    large = likely.learn(frame, target="class")
    assert large.engine.startswith("spark: a Spark table of more than")
    assert large.tally == small.tally  # the plan is made from two thirds of the rows
    with pytest.raises(UsageError, match="engine='memory' was asked for a Spark table"):
        likely.learn(frame, target="class", engine="memory")


def test_rows_without_a_label_are_used_by_em_as_in_memory(spark):
    table = made(240)
    hidden = pa.array([None if i % 4 else v for i, v in enumerate(table["class"].to_pylist())])
    table = table.set_column(table.num_columns - 1, "class", hidden).drop_columns(["id"])
    settings = {"target": "class", "unlabelled": 0.5, "plain": True}
    found = likely.learn(spark.createDataFrame(table).coalesce(1), engine="spark", **settings)
    expected = likely.learn(table, **settings)
    np.testing.assert_allclose(found.posterior(table).probabilities, expected.posterior(table).probabilities, atol=1e-6)


def test_a_spark_table_is_never_read_as_a_whole_by_the_way(spark):
    with pytest.raises(UsageError, match="a Spark table cannot be read here as a whole"):
        likely.curve(spark.createDataFrame(made(50)), target="class")


def test_target_bins_are_cut_from_all_rows(spark):
    table = made(200).drop_columns(["class", "id"])
    found = likely.learn(spark.createDataFrame(table), "x2", target_bins=3, engine="spark", plain=True)
    assert found.target_edges == likely.learn(table, "x2", target_bins=3, plain=True).target_edges


def test_predictions_with_costs_are_made_where_the_rows_are(spark):
    table = made(150)
    model = likely.learn(table, "class", plain=True)
    costs = {"a": {"ask": 0.2, "b": 5}, "b": {"ask": 0.2}, "c": {"ask": 0.2}}
    found = model.predict(spark.createDataFrame(table).coalesce(1), costs=costs).toArrow()
    assert found["label"].to_pylist() == model.predict(table, costs=costs).tolist()
    assert "p_a" in found.column_names


def test_the_command_line_counts_and_scores_with_spark(spark, cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = ("--engine", "spark", "--master", cluster.url)
    report = document("learn", LOANS, "--target", "outcome", *how, "-o", "spark.likely")
    why = "asked for; Spark sends the rows: CSVFileFormat is not a list of Parquet files"
    assert report["engine"] == {"name": "spark", "reason": why}
    run("learn", LOANS, "--target", "outcome", "-o", "memory.likely")
    assert likely.load("spark.likely").tally == likely.load("memory.likely").tally
    found = document("predict", "memory.likely", NEW, *how, "--probabilities", "-o", "out.parquet")
    assert found["rows"] == 6
    shown = pq.read_table(tmp_path / "out.parquet").to_pydict()
    expected = likely.load("memory.likely").posterior(NEW)
    order = np.argsort(pq.read_table(tmp_path / "out.parquet")["application_id"].to_pylist())
    assert np.array(shown["label"])[order].tolist() == expected.labels.tolist()
    run("predict", "memory.likely", NEW, *how, "-o", "out.parquet", expect=2)  # a folder is never replaced
    assert "could not be written" in run("predict", "memory.likely", NEW, *how, "-o", "none/out.parquet", expect=6).stderr
    assert "not standard input" in run("learn", "-", "--target", "y", *how, expect=2).stderr
    assert "add --engine spark" in run("learn", LOANS, "--target", "outcome", "--master", cluster.url, expect=2).stderr
    assert not list(Path().glob(".out*"))


def test_the_command_line_finds_clusters_with_spark(spark, cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = ("-k", "2", "--ignore", "outcome", "--ignore", "application_id", "--seed", "1")
    found = document("cluster", LOANS, *how, "--engine", "spark", "--master", cluster.url, "-o", "groups.likely")
    expected = document("cluster", LOANS, *how)
    assert found["engine"]["name"] == "spark"
    assert expected["engine"]["name"] == "memory"
    assert found["log_likelihood"] == pytest.approx(expected["log_likelihood"], abs=0.01)
    assert likely.load("groups.likely").bic == pytest.approx(expected["bic"], abs=0.02)
    refused = run("cluster", LOANS, *how, "--engine", "spark", "--labels", "rows.csv", expect=2).stderr
    assert "likely predict MODEL DATA --engine spark" in refused


def test_a_partition_that_fails_is_an_error_and_leaves_nothing(spark, cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"x": [1.0, float("inf")] * 20, "y": ["a", "b"] * 20}), tmp_path / "bad.parquet")
    how = ("--engine", "spark", "--master", cluster.url, "-o", "out.likely")
    shown = run("learn", "bad.parquet", "--target", "y", "--plain", *how, "--json", expect=3).stderr
    assert "which is not a finite number" in json.loads(shown.splitlines()[-1])["error"]["message"]
    assert not (tmp_path / "out.likely").exists()


def test_a_full_disk_is_a_clear_error_and_nothing_is_left_on_it(spark, cluster, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"NOT TESTED: no small disk can be made here ({mounted.stderr.decode().strip()})")
    try:
        table, model = made(6_000), str(tmp_path / "m.likely")
        pq.write_table(table, tmp_path / "a.parquet")
        likely.learn(table, "class", plain=True).save(model)
        asked = ("--engine", "spark", "--master", cluster.url, "-o", str(disk / "out.parquet"))
        shown = run("predict", model, str(tmp_path / "a.parquet"), *asked, expect=6).stderr
        assert "a task of Spark found no disk space" in shown
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)  # executors may keep files open


def test_files_of_different_columns_are_refused_by_spark_in_plain_words(spark, tmp_path):
    for name, x in (("a", [1.0, 2.0]), ("b", ["one", "two"])):
        pq.write_table(pa.table({"x": x, "y": ["a", "b"]}), tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match="Spark could not read or count the table"):
        likely.learn(spark.read.schema("x double, y string").parquet(str(tmp_path)), "y", engine="spark", plain=True)


def test_executors_without_likely_give_a_clear_error_and_the_archive_helps(tmp_path):
    """An executor of its own: a Python process that finds no Likely, then one that has the archive."""
    import os
    import subprocess
    import sys

    from likely.engines.spark.faults import missing_on_executors

    assert write_archive(str(tmp_path / "likely.zip")) > 100
    hide = "import sys; sys.path[:] = [p for p in sys.path if not __import__('os').path.exists(p + '/likely/__init__.py')]; "
    work = "from likely.model.parts import count_part; print(count_part.__name__)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    failed = subprocess.run([sys.executable, "-c", hide + work], env=environment, capture_output=True, text=True, check=False)
    assert "No module named 'likely'" in failed.stderr
    added = hide + f"sys.path.insert(0, {str(tmp_path / 'likely.zip')!r}); "
    done = subprocess.run([sys.executable, "-c", added + work], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "count_part", done.stderr
    assert "likely spark-archive -o likely.zip" in str(missing_on_executors("likely"))


def test_a_worker_that_dies_half_way_changes_nothing(spark, cluster):
    table = made(2_000)
    expected = likely.learn(table, "class")
    frame = spark.createDataFrame(table).repartition(6)

    def slowly(batches):
        import time

        time.sleep(0.4)
        yield from batches

    slow, found = frame.mapInArrow(slowly, frame.schema), []
    working = threading.Thread(target=lambda: found.append(likely.learn(slow, "class", engine="spark")))
    working.start()
    tracker, killed = spark.sparkContext.statusTracker(), False
    while working.is_alive():
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        half_way = [s for s in stages if s and s.numTasks == 6 and 0 < s.numCompletedTasks < 5]
        if half_way and not killed:
            cluster.kill_worker()
            killed = True
        time.sleep(0.02)
    working.join()
    assert killed
    assert found[0].tally == expected.tally
