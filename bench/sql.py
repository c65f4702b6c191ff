"""SQL of a model beside the memory engine: the same rows, scored in DuckDB and in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from timing import median

ADULT = Path(__file__).parents[2] / "shared" / "data" / "adult.parquet"
VALUES = (9, 16, 7, 14, 6, 5, 2, 41)  # of adult's categorical columns


def adult(rows: int) -> tuple[Any, Any]:
    """A table to learn from and rows to score: adult itself, or one of its shape where it is not there."""
    rng = np.random.default_rng(0)
    if ADULT.exists():
        table = pq.read_table(ADULT)
    else:
        y = rng.random(40_000) < 0.25
        columns: dict[str, Any] = {f"n{j}": np.round(rng.gamma(2, 20, len(y)) + 5 * y) for j in range(6)}
        for j, k in enumerate(VALUES):
            columns[f"c{j}"] = [f"value {v}" for v in (rng.geometric(0.2, len(y)) + y) % k]
        table = pa.table(columns | {"income": np.where(y, ">50K", "<=50K")})
    return table, table.take(pa.array(rng.integers(0, table.num_rows, rows)))


def report(small: bool, row: Callable[..., None], plain: Callable[..., None]) -> None:
    """Print the times, and the largest difference in probability."""
    import duckdb

    import likely

    rows = 100_000 if small else 1_000_000
    table, many = adult(rows)
    model = likely.learn(table, "income")
    statement = model.sql("data")
    with duckdb.connect() as connection:
        connection.register("given", many)
        connection.execute("create table data as select * from given")
        there = median(lambda: connection.execute(f"create or replace table scored as {statement}"), 3)
        here = median(lambda: model.posterior(many).probabilities, 3)
        shape = f"SQL scoring in DuckDB, {rows:,} rows of adult's shape, default model"
        row("sql", shape, there, here, "printed beside memory")
        plain("sql", "length of the statement", len(statement) / 1000, "kB", "printed")
        shares = connection.sql('select "p_>50K" from scored').fetchnumpy()["p_>50K"]
        apart = 1e9 * _apart(shares, model.predict_proba(many)[:, 1])
        plain("sql", "largest difference in probability", apart, "billionths", "< 1")
        given = connection.table("data")
        counted = median(lambda: likely.learn(given, "income", plain=True, in_database=True), 3)
        read = median(lambda: likely.learn(given, "income", plain=True), 3)
        row("sql", f"plain counts inside DuckDB, {rows:,} rows, against memory", counted, read, "printed")


def _apart(one: Any, other: Any) -> float:
    return float(np.abs(np.asarray(one) - other).max())
