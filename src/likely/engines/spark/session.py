"""Spark sessions for the command line: started from a master's address, and tables read by Spark from paths."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from likely.engines.spark.faults import as_likely_errors, import_spark
from likely.errors import DataError, ResourceError, UsageError
from likely.sources import LABELS, MISSING, ReadOptions

READERS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json",
           ".ndjson": "json", ".orc": "orc", "": "parquet"}  # fmt: skip
LOCAL = "local[*]"


def session(master: str | None) -> Any:
    """A Spark session: of this process if one is active, else on `master` (all cores of this machine by default)."""
    sql = import_spark()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.appName("likely")
    if master and master.startswith("sc://"):
        with as_likely_errors():
            return builder.remote(master).getOrCreate()
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for name, value in quiet.items():
        builder = builder.config(name, value)
    try:
        with as_likely_errors():
            return builder.master(master or LOCAL).getOrCreate()
    except Exception as error:
        if "JAVA" in str(error).upper():
            remedy = "install Java 17 (Debian: openjdk-17-jre-headless) or set JAVA_HOME"
            raise ResourceError("Spark cannot start: there is no Java", remedy=remedy) from None
        raise DataError(f"Spark cannot start on {master or LOCAL!r}: {str(error).splitlines()[0][:300]}") from None


def open_table(spark: Any, path: str, reading: ReadOptions) -> tuple[Any, ReadOptions]:
    """The table at a path, as Spark reads it, and the options for its cells: CSV is read as text, by the usual rule."""
    kind = READERS.get(Path(path.rstrip("/*")).suffix.lower())
    if kind is None:
        known = ", ".join(ending for ending in READERS if ending)
        raise UsageError(f"--engine spark reads {known} and folders of Parquet files: {path!r} is none of these")
    path = path if "://" in path else os.path.abspath(path)  # Spark has a current folder of its own
    with as_likely_errors():
        if kind != "csv":
            return spark.read.format(kind).load(path), reading
        tab = "\t" if path.lower().endswith(".tsv") else ","
        text = spark.read.option("header", reading.header).option("sep", tab).option("escape", '"')
        frame = text.option("mode", "FAILFAST").option("encoding", reading.encoding or "UTF-8").csv(path)
        frame = frame if reading.header else frame.toDF(*(f"c{i + 1}" for i in range(len(frame.columns))))
    return frame, reading if reading.missing is not None else replace(reading, missing=MISSING, missing_labels=LABELS)
