"""The command spark-archive, and what learn, cluster and predict do with --engine spark."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from likely.cli import _outputs as outputs
from likely.cli._options import FILE, how_read, json_option
from likely.cli._terminal import Terminal
from likely.errors import SaveError, UsageError

if TYPE_CHECKING:
    from likely.model.model import Model
    from likely.sources import ReadOptions

Command = TypeVar("Command", bound=Callable[..., Any])
SPARK_ENGINES = ("spark", "spark-rows")
DATABASE_ENGINES = ("duckdb", "database")  # one engine
WRITERS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "json"}


def engine_options(command: Command) -> Command:
    """The options --engine and --master."""
    help_text = (
        "Where the rows are counted or scored: in this process, or in the tasks of Spark, which read local Parquet "
        "files by themselves unless it is spark-rows."
    )
    return _engine_options(command, SPARK_ENGINES, help_text)


def learning_engine_options(command: Command) -> Command:
    """The same, with the databases that count a plain model."""
    help_text = (
        "Where the rows are counted: in this process; in the tasks of Spark, which read local Parquet files by themselves "
        "unless it is spark-rows; or by the database they are in (database, duckdb: one engine, for plain models), which for "
        "Parquet and CSV files is DuckDB."
    )
    return _engine_options(command, (*SPARK_ENGINES, *DATABASE_ENGINES), help_text)


def network_engine_options(command: Command) -> Command:
    """The same for networks, whose rows any database can group."""
    help_text = (
        "Where the rows are counted: in this process, batch by batch; in the tasks of Spark, which read local Parquet files by "
        "themselves unless it is spark-rows; or by the database they are in (database, duckdb: one engine), by "
        "GROUP BY; for Parquet and CSV files that is DuckDB."
    )
    return _engine_options(command, (*SPARK_ENGINES, *DATABASE_ENGINES), help_text)


def _engine_options(command: Command, engines: tuple[str, ...], help_text: str) -> Command:
    for option in (
        click.option(
            "--master", metavar="URL", help="With --engine spark: spark://HOST:PORT, local[N] (the default, all cores), yarn, "
            "or sc://HOST:PORT for Spark Connect."),
        click.option(
            "--engine", type=click.Choice(["auto", "memory", *engines]), default="auto", show_default=True, help=help_text),
    ):  # fmt: skip
        command = option(command)
    return command


def check_engine(engine: str, master: str | None) -> bool:
    """Whether Spark was asked for; --master without it is refused."""
    if master is not None and engine not in SPARK_ENGINES:
        raise UsageError("--master is the address of a Spark cluster: add --engine spark")
    return engine in SPARK_ENGINES


def spark_table(path: str, master: str | None, reading: ReadOptions) -> tuple[Any, ReadOptions]:
    """A Spark DataFrame of the table at a path, and how its cells are read."""
    from likely.engines.spark.session import open_table, session

    if path == "-":
        raise UsageError("--engine spark reads a path, not standard input (-)")
    return open_table(session(master), path, reading)


def spark_source(path: str, master: str | None, given: dict[str, Any]) -> tuple[Any, ReadOptions]:
    """A Spark DataFrame and how it is read; missing-value tokens stay among the arguments of the library's function."""
    from likely.sources import ReadOptions

    how = how_read(given)
    reading = ReadOptions.of(how.pop("missing", ()) or None, how)
    frame, reading = spark_table(path, master, reading)
    given["reading"] = reading
    return frame, reading


def predict_with_spark(
    model: Model, data: str, output: str, master: str | None, reading: ReadOptions, **how: Any
) -> dict[Any, int]:
    """Score a table in the tasks of Spark, write a folder of files, and return how often each label was predicted."""
    from likely.engines.spark.faults import as_likely_errors

    kind = WRITERS.get(Path(output).suffix.lower())
    if kind is None:
        raise UsageError(f"-o {output!r}: with --engine spark the output is a folder, named *.parquet, *.csv or *.jsonl")
    if os.path.exists(output):
        raise UsageError(f"-o {output!r} exists already: Spark writes a new folder; remove it, or choose another name")
    frame, _ = spark_table(data, master, reading)
    label = f"{how.get('prefix', '')}label"
    folder = ""
    try:
        folder = tempfile.mkdtemp(prefix=f".{Path(output).name}-", dir=Path(output).absolute().parent)
        with as_likely_errors():
            writer = model.scored(frame, **how).write.mode("overwrite").option("header", True)
            writer.format(kind).save(f"{folder}/rows")
            written = frame.sparkSession.read.option("header", True).format(kind).load(f"{folder}/rows")
            counts = {row[0]: int(row[1]) for row in written.groupBy(label).count().collect()}
        os.replace(f"{folder}/rows", output)
    except OSError as error:
        raise SaveError(f"{output!r} could not be written: {error.strerror}") from None
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    return counts


def counted_labels(counts: Mapping[Any, int], classes: tuple[Any, ...]) -> dict[str, int]:
    """Number of predictions by label, labels as text."""
    found = {str(label): n for label, n in counts.items()}
    return {str(label): found.get(str(label), 0) for label in dict.fromkeys([*map(str, classes), *found])}


@click.command("spark-archive", short_help="Write an archive of Likely for Spark executors.")
@click.option("-o", "--output", type=FILE, default="likely.zip", show_default=True, metavar="FILE", help="The .zip to write.")
@json_option
@click.pass_obj
def spark_archive(terminal: Terminal, output: str) -> None:
    """Write this package as a .zip, for executors of Spark that do not have it: spark-submit --py-files likely.zip.

    The Python of the executors still needs numpy, numba, pyarrow, narwhals and threadpoolctl.
    """
    from likely.engines.spark.archive import MODULES, write_archive

    if not output.endswith(".zip"):
        raise UsageError(f"-o {output!r}: the archive must end in .zip, or Python would not import from it")
    outputs.check({"-o": output}, [])
    files = write_archive(output)

    def show() -> None:
        terminal.line(f"{files:,} files written to {output}: pass it as --py-files {output}, or sparkContext.addPyFile")
        terminal.line(f"The Python of the executors also needs {MODULES}")

    terminal.result({"output": output, "files": files, "needs": MODULES.split(", ")}, show)
