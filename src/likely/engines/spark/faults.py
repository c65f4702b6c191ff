"""Errors of Spark as errors of Likely, each with its remedy."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

from likely import errors
from likely.engines.spark._parquet_parts import UnreadablePartError
from likely.errors import DataError, LikelyError, MissingDependencyError, ResourceError, UsageError

RAISED = re.compile(r"likely\.errors\.(\w+): (.*)")
NOT_THERE = re.compile(r"No module named '(likely|pyarrow|numpy|numba|llvmlite|threadpoolctl|narwhals)\b")
NO_SPACE = "No space left on device"
REASON = re.compile(r"^\[?([A-Z_.0-9]+)\]? (.*)")


def import_spark() -> Any:
    """The module `pyspark.sql`; MissingDependencyError if it is not installed."""
    return errors.import_optional("pyspark.sql", "the Spark engine")


@contextlib.contextmanager
def as_likely_errors() -> Iterator[None]:
    """Context manager that turns errors of Spark into errors that name the remedy."""
    from pyspark.errors import PySparkException

    kinds: tuple[type[Exception], ...] = (PySparkException,)
    with contextlib.suppress(ImportError):  # a client of Spark Connect has no Java at all
        from py4j.protocol import Py4JError

        kinds = (PySparkException, Py4JError)
    try:
        yield
    except kinds as error:
        raise _translated(error) from None
    except ImportError as error:
        if "grpc" in str(error):
            message = f"Spark Connect cannot be used: {str(error).splitlines()[0][:200]}"
            raise MissingDependencyError(message, remedy="pip install 'pyspark[connect]'") from None
        raise


def _translated(error: Exception) -> LikelyError:
    text = str(error)
    if found := NOT_THERE.search(text):
        return missing_on_executors(found[1])
    if found := RAISED.search(text):
        return _known(found[1])(f"a partition of the Spark table: {found[2]}")
    if NO_SPACE in text:
        remedy = "free some where the output is written, or in the folder of spark.local.dir"
        return ResourceError(f"a task of Spark found no disk space: {NO_SPACE}", remedy=remedy)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    caused = [line for line in lines if "Caused by" in line or line.startswith("pyarrow.lib.")]
    shown = "; ".join(dict.fromkeys([*lines[:1], *caused[-1:]]))[:500]
    return DataError(f"Spark could not read or count the table: {shown}", remedy="see the log of Spark")


def missing_on_executors(module: str) -> UsageError:
    """Error for executors whose Python lacks Likely, or what Likely needs."""
    if module == "likely":
        remedy = (
            "make an archive with `likely spark-archive -o likely.zip` and pass it as --py-files likely.zip "
            "(spark-submit), or spark.addArtifact / sparkContext.addPyFile('likely.zip'); or install Likely there"
        )
        return UsageError("the executors of Spark have no Likely in their Python", remedy=remedy)
    remedy = f"install {module} there, or set PYSPARK_PYTHON to an environment that has it"
    return UsageError(f"the executors of Spark have no {module} in their Python", remedy=remedy)


def _known(name: str) -> type[LikelyError]:
    kind = getattr(errors, name, DataError)
    return kind if isinstance(kind, type) and issubclass(kind, LikelyError) else DataError


def raised(text: str) -> LikelyError:
    """The error that a task returned as text; rows in it are numbered within a partition."""
    kind, message, column = json.loads(text)
    if kind == UnreadablePartError.__name__:
        return UnreadablePartError(message)
    error = _known(kind)(f"a partition of the Spark table: {message}")
    error.column = column
    return error
