"""Spark Connect: a client without a Java machine of its own gives the results of memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from likely.engines.spark.faults import as_likely_errors
from likely.errors import MissingDependencyError

TESTS = Path(__file__).parents[1]
CLIENT = """
import warnings
warnings.simplefilter("ignore")
import likely
from conftest import hostile_table
from likely.errors import DataError
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("local[2]").config("spark.log.level", "OFF").getOrCreate()
table = hostile_table()
frame = spark.createDataFrame(table)
how = {"families": {"big": "categorical"}, "unlabelled": "ignore", "ignore": ["words", "when"], "plain": True}
model = likely.learn(frame, "class", engine="spark", **how)
expected = likely.learn(table, "class", engine="memory", **how)
assert "Spark Connect does not show where a table is stored" in model.engine, model.engine
assert model.tally.counted_the_same(expected.tally)
assert model.posterior(frame).toArrow().num_rows == table.num_rows
try:
    likely.learn(spark.read.parquet("/no/such/table"), "class", engine="spark")
except DataError as error:
    assert "PATH_NOT_FOUND" in str(error), error
print("as memory")
spark.stop()
"""


def test_spark_connect_gives_the_tally_of_memory(tmp_path):
    pytest.importorskip("pyspark", reason="NOT TESTED: PySpark is not installed")
    pytest.importorskip("grpc_status", reason="NOT TESTED: Spark Connect needs pip install 'pyspark[connect]'")
    path = os.pathsep.join([str(TESTS / "engines"), str(TESTS), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-c", CLIENT]
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines()[-1:] == ["as memory"], ran.stderr[-2000:]


def test_spark_connect_without_its_packages_names_the_remedy():
    pytest.importorskip("pyspark", reason="NOT TESTED: PySpark is not installed")
    with pytest.raises(MissingDependencyError, match=r"pyspark\[connect\]"), as_likely_errors():
        raise ImportError("No module named 'grpc'")
