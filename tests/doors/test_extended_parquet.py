"""`predict` from Parquet to Parquet copies the columns as they are stored, and adds the answers to them."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from commands import refused, run
from likely.cli import _predicted_rows as predicted_rows
from likely.cli import _writers as writers
from likely.errors import DataError
from likely.sources import ReadOptions, open_source
from likely.sources._thrift_compact import encode
from likely.sources.parquet_extension import GROUPS, ParquetLayout, read_metadata

pytestmark = pytest.mark.usefixtures("own_folder")

ROWS = 3_000
DAY = datetime(2025, 3, 1, tzinfo=UTC)


def table() -> pa.Table:
    """Columns of many types, with nulls; those of the model are sky, wind and heat."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, ROWS)
    sky = np.array(["clear", "grey", "it's \"odd\""])[(y + rng.integers(0, 2, ROWS)) % 3]
    heat = rng.normal(y, 1.0)
    columns: dict[str, Any] = {
        "sky": pa.array([None if i % 17 == 0 else v for i, v in enumerate(sky.tolist())]),
        "wind": pa.array(rng.choice(["weak", "strong"], ROWS)).dictionary_encode(),
        "heat": pa.array([None if i % 13 == 0 else v for i, v in enumerate(heat.tolist())]),
        "when": pa.array([DAY + timedelta(hours=i) for i in range(ROWS)], pa.timestamp("us", "Europe/Berlin")),
        "tags": pa.array([["a", None] * (i % 3) for i in range(ROWS)]),
        "inner": pa.array([{"x": i, "y": "z" * (i % 4)} for i in range(ROWS)]),
        "large": pa.array([f"row {i}" for i in range(ROWS)], pa.large_string()),
        "play": pa.array(np.array(["no", "yes"])[y]),
    }
    return pa.table(columns)


@pytest.fixture
def written() -> pa.Table:
    made = table()
    pq.write_table(made, "t.parquet", row_group_size=700, write_page_index=True)
    likely.learn("t.parquet", target="play", ignore=["when", "tags", "inner", "large"]).save("t.likely")
    return made


def test_all_columns_are_as_they_were_and_the_answers_are_those_of_the_model(written: pa.Table) -> None:
    run("predict", "t.likely", "t.parquet", "--probabilities", "-o", "out.parquet")
    out = pq.read_table("out.parquet")
    assert out.schema.names == [*written.schema.names, "label", "p_no", "p_yes"]
    assert out.select(written.schema.names).equals(written)
    found = likely.load("t.likely").posterior("t.parquet")
    assert out["label"].to_pylist() == found.labels.tolist()
    assert out["label"].type == pa.string()
    np.testing.assert_array_equal(np.column_stack([out["p_no"], out["p_yes"]]), found.probabilities)


def test_the_stored_bytes_are_copied_and_so_are_the_row_groups(written: pa.Table) -> None:
    run("predict", "t.likely", "t.parquet", "-o", "out.parquet")
    with open("t.parquet", "rb") as file:
        end = read_metadata(file)[1]
    assert Path("out.parquet").read_bytes()[:end] == Path("t.parquet").read_bytes()[:end]
    before, after = pq.read_metadata("t.parquet"), pq.read_metadata("out.parquet")
    sizes = [[m.row_group(i).num_rows for i in range(m.num_row_groups)] for m in (before, after)]
    assert sizes[0] == sizes[1] == [700, 700, 700, 700, 200]
    assert after.row_group(1).column(2).statistics == before.row_group(1).column(2).statistics
    assert after.row_group(0).total_byte_size > before.row_group(0).total_byte_size


@pytest.mark.parametrize("writer", ["pyarrow", "pyarrow 1.0", "duckdb"])
def test_files_of_other_writers_are_read_back_by_others(written: pa.Table, writer: str) -> None:
    if writer == "duckdb":
        duckdb.sql("copy (select * from 't.parquet') to 'own.parquet' (row_group_size 2048, compression zstd)")
    else:
        old = writer == "pyarrow 1.0"
        pq.write_table(written, "own.parquet", row_group_size=999, version="1.0" if old else "2.6", store_schema=not old)
    run("predict", "t.likely", "own.parquet", "--probabilities", "-o", "out.parquet")
    columns = ", ".join(f'"{name}"::text' for name in written.schema.names)
    for query in (f"select {columns} from", "select count(*), sum(heat::decimal(30, 12)), count(distinct sky) from"):
        assert duckdb.sql(f"{query} 'own.parquet'").fetchall() == duckdb.sql(f"{query} 'out.parquet'").fetchall()
    labels = duckdb.sql("select label, p_yes > p_no from 'out.parquet'").fetchall()
    assert [label == "yes" for label, _ in labels] == [bool(more) for _, more in labels]
    assert [label for label, _ in labels] == likely.load("t.likely").predict("own.parquet").tolist()


def test_metadata_are_encoded_as_they_were_decoded(written: pa.Table) -> None:
    duckdb.sql("copy (select * from 't.parquet') to 'duck.parquet'")
    for path in ("t.parquet", "duck.parquet"):
        with open(path, "rb") as file:
            metadata, end = read_metadata(file)
            file.seek(end)
            assert encode(metadata) == file.read()[:-8]
            assert len(metadata[GROUPS][1][1]) == pq.read_metadata(path).num_row_groups


def test_a_name_that_is_taken_is_refused_and_nothing_is_written(written: pa.Table) -> None:
    pq.write_table(written.append_column("label", written["play"]), "t.parquet")
    before = sorted(os.listdir())
    assert "the data already have a column 'label'" in refused("predict", "t.likely", "t.parquet", "-o", "out.parquet", code=2)
    assert sorted(os.listdir()) == before


def test_a_file_that_changes_meanwhile_is_refused_and_nothing_is_written(written: pa.Table) -> None:
    model, source = likely.load("t.likely"), open_source("t.parquet")
    layout = predicted_rows.layout_of(source, "parquet", 3)
    assert layout is not None
    answers = predicted_rows.predictions(model, source, "error", as_written=False, few_columns=True)
    before = sorted(os.listdir())

    def extend() -> None:
        with writers.writer("out.parquet", extending=layout) as out:
            predicted_rows.write_predictions(answers, out, "", True)
            pq.write_table(written, "other.parquet")
            os.replace("other.parquet", "t.parquet")

    with pytest.raises(DataError, match="has changed while it was read"):
        extend()
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("odd", ["an empty row group", "a long row group", "several files"])
def test_what_cannot_be_copied_is_written_anew(written: pa.Table, odd: str) -> None:
    data = "t.parquet"
    with pq.ParquetWriter(data, written.schema) as file:
        file.write_table(written.slice(0, 0) if odd == "an empty row group" else written)
        file.write_table(written)
    columns = 1 << 13 if odd == "a long row group" else 3  # of so many columns, no row group may have 3,000 rows
    if odd == "several files":
        os.rename(data, "one.parquet")
        pq.write_table(written, "two.parquet")
        data = "*.parquet"
    assert predicted_rows.layout_of(open_source(data), "parquet", columns) is None
    run("predict", "t.likely", data, "-o", "out.pq")
    rows = pq.read_table("out.pq")
    assert rows["sky"].to_pylist()[:ROWS] == written["sky"].to_pylist()
    assert rows["label"].to_pylist()[:ROWS] == likely.load("t.likely").predict(written).tolist()


def test_only_columns_of_the_model_are_read(written: pa.Table) -> None:
    with open("t.parquet", "r+b") as file:  # the pages of a column that no model has are damaged
        column = pq.read_metadata("t.parquet").row_group(0).column(written.schema.get_field_index("when"))
        file.seek(column.dictionary_page_offset or column.data_page_offset)
        file.write(b"\xff" * 40)
    run("predict", "t.likely", "t.parquet", "-o", "out.parquet")
    assert pq.read_table("out.parquet", columns=["sky", "label"])["sky"].equals(written["sky"])


def test_a_layout_is_none_of_a_file_without_metadata() -> None:
    Path("t.parquet").write_bytes(b"PAR1" + b"\0" * 100)
    from likely.sources.parquet_extension import NotExtendableError

    with pytest.raises(NotExtendableError):
        ParquetLayout.of("t.parquet", "it", [], 1_000)


def test_rows_that_are_scored_come_in_short_batches() -> None:
    pq.write_table(pa.table({"x": np.arange(150_000)}), "t.parquet")
    usual = [batch.rows for batch in open_source("t.parquet").batches()]
    short = [batch.rows for batch in open_source("t.parquet", ReadOptions(short_batches=True)).batches()]
    assert (usual, short) == ([150_000], [50_000, 50_000, 50_000])  # of equal length
