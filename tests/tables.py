"""Small tables in every form that Likely reads, and ways to look at what it makes of them."""

import json
import warnings

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import likely
from likely.errors import LikelyWarning
from likely.sources import open_source

GOOD = "a,b,y\n1.5,u,no\n2.5,v,yes\n3.5,u,no\n4.0,v,yes\n"
COLUMNS = {"a": [1.5, 2.5, 3.5, 4.0], "b": ["u", "v", "u", "v"], "y": ["no", "yes", "no", "yes"]}


def learn(data, target="y", **settings):
    """A model, with its warnings left aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        return likely.learn(data, target, **settings)


def parameters_of(model):
    """The parameters of each column, as plain lists."""
    return {name: list(rows) for name, rows in model.parameters.items()}


def cells(data, reading=None, kinds=None):
    """The columns of a source as lists."""
    found = {}
    for batch in open_source(data, reading).batches(kinds):
        for name in batch.names:
            column = batch.columns[name]
            found.setdefault(name, []).extend(column if isinstance(column, list) else column.to_pylist())
    return found


def _rows(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


IN_MEMORY = {
    "dict": dict,
    "rows": _rows,
    "pandas": pd.DataFrame,
    "object": lambda columns: pd.DataFrame({name: pd.Series(c, dtype=object) for name, c in columns.items()}),
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "lazy": lambda columns: pl.LazyFrame(columns, strict=False),
    "pyarrow": pa.table,
}


def _write_arrow(columns, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.table(columns).schema) as writer:
        writer.write_table(pa.table(columns))


def _write_json_lines(columns, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in _rows(columns)), encoding="utf-8")


IN_FILES = {
    "parquet": lambda columns, path: pq.write_table(pa.table(columns), path),
    "arrow": _write_arrow,
    "jsonl": _write_json_lines,
    "json": lambda columns, path: path.write_text(json.dumps(_rows(columns)), encoding="utf-8"),
    "csv": lambda columns, path: pd.DataFrame(columns).to_csv(path, index=False),
    "tsv": lambda columns, path: pd.DataFrame(columns).to_csv(path, index=False, sep="\t"),
}
FORMS = [*IN_MEMORY, *IN_FILES]


def written(columns, kind, folder):
    """The same table in another form."""
    if kind in IN_MEMORY:
        return IN_MEMORY[kind](columns)
    path = folder / f"table.{kind}"
    IN_FILES[kind](columns, path)
    return str(path)
