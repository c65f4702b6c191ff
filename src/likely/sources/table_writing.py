"""Rows written into a database as a new table, in one transaction: complete or absent."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from likely.errors import DataError, SaveError, UsageError
from likely.sources.databases import SQLITE
from likely.sources.interruption import interruptible
from likely.sources.table_names import name_parts, quoted

BATCH_ROWS = 65_536
DATABASES = (".duckdb", ".ddb", ".db", ".sqlite", ".sqlite3")


def is_database(path: str) -> bool:
    """Whether an output path is a database: a file by its extension, or a URI of PostgreSQL."""
    return path.startswith(("postgresql://", "postgres://")) or os.path.splitext(path)[1].lower() in DATABASES


def write_table(parquet: str, path: str, table: str, *, replace: bool = False) -> None:
    """Copy a Parquet file into a new table of a database.

    Parameters
    ----------
    parquet : str
        The rows.
    path : str
        A DuckDB or SQLite file, which may be new, or the URI of a PostgreSQL database.
    table : str
        Name of the table: `table`, `schema.table`, parts with dots in double quotes.
    replace : bool, default=False
        Whether a table of this name is replaced; otherwise it is refused.
    """
    if path.startswith(("postgresql://", "postgres://")):
        _to_postgres(parquet, path, table, replace)
        return
    with _absent_or_unchanged(path) as state:
        (_to_duckdb if _is_duckdb(path) else _to_sqlite)(parquet, path, table, replace, state)


@contextlib.contextmanager
def _absent_or_unchanged(path: str) -> Iterator[str]:
    """Context manager that removes a new file if writing fails; yields the state of the file after a failure, in words."""
    if os.path.exists(path):
        yield "it is unchanged"
        return
    try:
        yield "nothing is written"
    except BaseException:  # Ctrl-C too
        for begun in (path, f"{path}.wal", f"{path}-journal"):
            with contextlib.suppress(OSError):
                os.remove(begun)
        raise


def _is_duckdb(path: str) -> bool:
    """Whether a database is one of DuckDB: by its content, else by its extension."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(len(SQLITE)) != SQLITE
    return path.lower().endswith((".duckdb", ".ddb"))


def _place(table: str, usual: str) -> tuple[str, str]:
    """Schema and name of a table."""
    parts = name_parts(table)
    return (parts[0], parts[1]) if len(parts) > 1 else (usual, parts[0])


def _taken(path: str, table: str) -> UsageError:
    return UsageError(
        f"{path!r} has a table {table!r} already: name another one, or replace it with --replace-table (replace=True)"
    )


def _to_duckdb(parquet: str, path: str, table: str, replace: bool, state: str) -> None:
    import duckdb

    schema, name = _place(table, "main")
    try:
        with duckdb.connect(path) as connection:
            found = "select 1 from information_schema.tables where table_schema = ? and table_name = ?"
            if not replace and connection.execute(found, [schema, name]).fetchone():
                raise _taken(path, table)
            wanted = f"{quoted(schema)}.{quoted(name)}"
            made = f"create {'or replace ' if replace else ''}table {wanted} as select * from read_parquet(?)"
            connection.execute(made, [parquet])
    except (duckdb.Error, OSError) as error:
        raise SaveError(f"{path!r} cannot be written ({str(error).splitlines()[0][:200]}); {state}") from None


def _to_sqlite(parquet: str, path: str, table: str, replace: bool, state: str) -> None:
    import sqlite3

    import pyarrow.parquet as pq

    schema_name, name = _place(table, "main")
    if schema_name != "main":
        raise UsageError(
            f"SQLite has no schema {schema_name!r} for the table {table!r}",
            remedy=f"quote a name with a dot: {quoted(table)}",
        )
    with pq.ParquetFile(parquet) as file, contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema = file.schema_arrow
        columns = ", ".join(f"{quoted(field.name)} {_affinity(field)}" for field in schema)
        try:
            connection.execute("begin immediate")
            there = connection.execute("select 1 from sqlite_master where name = ?", [name]).fetchone()
            if there and not replace:
                raise _taken(path, table)
            connection.execute(f"drop table if exists {quoted(name)}")
            connection.execute(f"create table {quoted(name)} ({columns})")
            places = ", ".join("?" * len(schema))
            for rows in _rows(file):
                connection.executemany(f"insert into {quoted(name)} values ({places})", rows)
            connection.execute("commit")
        except sqlite3.Error as error:
            raise SaveError(f"{path!r} cannot be written ({error}); {state}") from None
        except OverflowError:
            message = f"{path!r} cannot be written; {state}: SQLite stores no integer of 2**63 or more"
            raise DataError(message, remedy="write .duckdb or .parquet") from None


def _rows(file: Any) -> Iterator[Iterator[tuple[Any, ...]]]:
    """Rows as tuples of what SQLite stores: times as text."""
    for batch in file.iter_batches(BATCH_ROWS):
        yield zip(*([_cell(v) for v in column.to_pylist()] for column in batch.columns), strict=True)


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    return value.isoformat(" ") if hasattr(value, "hour") and hasattr(value, "year") else str(value)


def _affinity(field: Any) -> str:
    from pyarrow import types as t

    if t.is_integer(field.type) or t.is_boolean(field.type):
        return "integer"
    if t.is_floating(field.type) or t.is_decimal(field.type):
        return "real"
    if t.is_nested(field.type):
        raise DataError(f"holds {field.type}, which SQLite cannot store", column=field.name, remedy="write .duckdb or .parquet")
    return "text"


def _to_postgres(parquet: str, uri: str, table: str, replace: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from likely.sources._postgres import connect, execute, label_of, named_errors

    schema, name = _place(table, "public")
    wanted = f"{quoted(schema)}.{quoted(name)}" if len(name_parts(table)) > 1 else quoted(name)  # else by the search path
    with (
        named_errors(label_of(uri), "written"),
        pq.ParquetFile(parquet) as file,
        contextlib.closing(connect(uri)) as connection,
        connection.cursor() as cursor,
    ):
        if execute(cursor, "select to_regclass($1) is not null", (wanted,)).fetchone()[0]:
            if not replace:
                raise _taken(label_of(uri), table)
            execute(cursor, f"drop table {wanted}")
        rows = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(BATCH_ROWS))
        where = {"db_schema_name": schema} if len(name_parts(table)) > 1 else {}
        interruptible(lambda: cursor.adbc_ingest(name, rows, mode="create", **where), cursor.adbc_cancel)
        connection.commit()
