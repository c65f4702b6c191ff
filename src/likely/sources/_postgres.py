"""Tables and queries of PostgreSQL through ADBC: Arrow batches of one snapshot, read-only."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from likely.errors import DataError, UsageError, import_optional
from likely.kernels.parallel import cached_property
from likely.sources.arrow_arrays import validated
from likely.sources.batch import Batch, Frame
from likely.sources.cell_values import name_columns
from likely.sources.databases import Answer, Kept, subquery
from likely.sources.interruption import each, interruptible
from likely.sources.missing_tokens import MissingTokens
from likely.sources.table_names import choose_table, quoted
from likely.sources.text_columns import TypedFile

if TYPE_CHECKING:
    from likely.sources import ReadOptions, Source

TABLES = """select n.nspname, c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname <> 'information_schema' and n.nspname not like 'pg\\_%'
and has_schema_privilege(n.oid, 'usage') and has_any_column_privilege(c.oid, 'select') order by 1, 2"""
AS_NUMBER = ("numeric", "money")
AS_TEXT = ("uuid", "enum", "citext", "bpchar", "inet", "cidr", "macaddr")
NAMES_OF_TYPES = (b"POSTGRESQL:type", b"ADBC:postgresql:typname")
MOST_DIGITS = 76  # of a decimal in Arrow
HEADER, SCALES = 4, 1 << 11  # of a typmod of numeric: precision << 16 | scale, plus a header


def open_postgres(uri: str, reading: ReadOptions) -> Source:
    """Source of a table or query of a PostgreSQL database."""
    for option in ("sheet", "encoding"):
        if getattr(reading, option) is not None:
            raise UsageError(f"{option}= (--{option}) is for files: a database names its own")
    return TypedFile(PostgresTable(uri, reading), reading)


def label_of(uri: str) -> str:
    """The URI in messages, without its password."""
    return repr(re.sub(r"(?<=://)([^/@:]*):[^/@]*@", r"\1@", re.sub(r"(password=)[^&]*", r"\1…", uri)))


def connect(uri: str) -> Any:
    """A connection; MissingDependencyError names the extra."""
    driver = import_optional("adbc_driver_postgresql.dbapi", "PostgreSQL", library="adbc_driver_postgresql")
    return interruptible(lambda: driver.connect(uri), lambda: None)


def execute(cursor: Any, statement: str, values: Any = None) -> Any:
    """The cursor after a statement, which Ctrl-C cancels."""
    interruptible(lambda: cursor.execute(statement, values), cursor.adbc_cancel)
    return cursor


@contextlib.contextmanager
def named_errors(label: str, done: str = "read") -> Iterator[None]:
    """Context manager that turns errors of the driver into errors that name the database."""
    import adbc_driver_manager

    try:
        yield
    except (adbc_driver_manager.Error, OSError) as error:
        text = " ".join(str(error).split())
        reason = text.partition("ERROR:")[2].strip() or text
        raise DataError(f"{label} could not be {done} to its end ({reason[:200]})", remedy="nothing was written") from None


@dataclass(frozen=True)
class PostgresTable:
    """A table, view or query; all passes see the snapshot of the first one."""

    uri: str
    reading: ReadOptions
    partial: bool = False
    unordered: ClassVar[bool] = True  # a scan may start anywhere in the table
    held: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)  # the connection that keeps the snapshot

    dialect: ClassVar[str] = "postgres"

    def ask(self, build: Callable[[str], str]) -> Answer:
        """The answer to a query; `build` makes it from the SQL of the rows, with every column as it is read."""
        with self._open() as cursor:
            picked = [_pick(column) for column in self._described(cursor)]
            plain = picked == [quoted(column.name) for column in self._described(cursor)]
            rows = self._where if plain else subquery(f"select {', '.join(picked)} from {self._where}")
            execute(cursor, build(rows))
            return Answer.of(interruptible(cursor.fetch_arrow_table, cursor.adbc_cancel))

    def _described(self, cursor: Any) -> Any:
        """Names and types of the columns."""
        if "described" not in self.held:
            query = f"select * from {self._where}"
            self.held["described"] = interruptible(lambda: cursor.adbc_execute_schema(query), cursor.adbc_cancel)
        return self.held["described"]

    @property
    def label(self) -> str:
        """The URI in messages."""
        return label_of(self.uri)

    @cached_property
    def missing(self) -> MissingTokens:
        """Its missing-value tokens."""
        return self.reading.gaps(False)

    def with_target(self, target: str) -> PostgresTable:
        """The same table: what is missing in a typed source does not depend on the target."""
        return self

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        """A read-only connection on the common snapshot."""
        with named_errors(self.label):
            if "snapshot" not in self.held:
                self._keep_snapshot()
            with contextlib.closing(connect(self.uri)) as connection, connection.cursor() as cursor:
                execute(cursor, "set transaction isolation level repeatable read, read only")
                execute(cursor, f"set transaction snapshot '{self.held['snapshot']}'")
                yield cursor

    def _keep_snapshot(self) -> None:
        """Lock what is read against TRUNCATE and ALTER, then take the snapshot.

        Of a truncated table every snapshot is empty, older ones too. Each statement of this transaction has a snapshot of its
        own, so that what is exported is no older than the locks.
        """
        self.held["connection"] = keeper = connect(self.uri)
        try:
            with keeper.cursor() as cursor:
                execute(cursor, "set transaction isolation level read committed, read only")
                self.held["tables"] = execute(cursor, TABLES).fetchall()
                execute(cursor, f"select 1 from {self._where} limit 0").fetchall()
                self.held["snapshot"] = execute(cursor, "select pg_export_snapshot()").fetchone()[0]
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let go of snapshot and locks; a later pass sees the table as it is then."""
        keeper = self.held.pop("connection", None)
        self.held.clear()
        if keeper is not None:
            keeper.close()

    @property
    def _where(self) -> str:
        """The table or query that is read."""
        if self.reading.query is not None:
            return subquery(self.reading.query)
        places = [(schema, name) for schema, name in self.held["tables"]]
        return ".".join(map(quoted, choose_table(self.reading.table, places, "public", self.label)))

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in the order in which the database gives them."""
        start = 0
        with self._open() as cursor:
            schema = self._described(cursor)
            names = [name for name in name_columns(schema.names, self.label) if kinds is None or name in kinds]
            fields = [column for column in schema if column.name in names]
            kept = Kept.selecting({c.name: sql for c in fields if self.reading.carried and (sql := _as_stored(c))})
            picked = [*map(_pick, fields), *kept.picked] or ["1"]
            execute(cursor, f"select {', '.join(picked)} from {self._where}")
            stored = {alias: _decimal(schema.field(name)) for alias, name in kept.names.items()}
            for batch in each(cursor.fetch_record_batch(), cursor.adbc_cancel):
                self.reading.check_memory()
                columns = {
                    name: validated(_typed(column, stored.get(name)), name, start)
                    for name, column in zip([*names, *kept.names], batch.columns, strict=False)
                }
                yield kept.apart(Frame(columns, batch.num_rows, start, self.missing))
                start += batch.num_rows


def _kind(column: Any) -> str:
    """PostgreSQL's name of the type of a column; old drivers have it for types that they do not know."""
    found = next((column.metadata[key] for key in NAMES_OF_TYPES if key in (column.metadata or {})), b"").decode()
    return found or str(getattr(column.type, "type_name", ""))


def _pick(column: Any) -> str:
    """SQL of a column as it is read: exact decimals as double, identifiers and enumerations as text."""
    kind, name = _kind(column), quoted(column.name)
    if kind in AS_NUMBER:
        return f"{name}{'::numeric' if kind == 'money' else ''}::double precision as {name}"
    return f"{name}::text as {name}" if kind in AS_TEXT else name


def _as_stored(column: Any) -> str | None:
    """SQL of a column as it is written beside predictions, where that differs from what is read: no digit is lost."""
    kind, name = _kind(column), quoted(column.name)
    if kind == "numeric" and _decimal(column) is not None:
        return f"nullif({name}, 'NaN')::text"
    if kind == "money":
        return f"{name}::numeric::text"
    storage = str(getattr(column.type, "storage_type", column.type))
    unknown = storage == "binary" and kind not in ("", "bytea", *AS_TEXT)
    return f"{name}::text" if kind in ("numeric", "interval") or unknown else None


def _decimal(column: Any) -> Any:
    """Type in Arrow of a decimal with a declared number of digits; None for anything else."""
    import pyarrow as pa

    modifier = int((column.metadata or {}).get(b"POSTGRESQL:typmod", b"-1"))
    if _kind(column) != "numeric" or modifier < HEADER:
        return None
    digits, scale = (modifier - HEADER) >> 16, (modifier - HEADER) % SCALES
    if digits > MOST_DIGITS or scale > digits:  # or a negative scale
        return None
    return pa.decimal128(digits, scale) if digits <= MOST_DIGITS // 2 else pa.decimal256(digits, scale)


def _typed(column: Any, kind: Any) -> Any:
    """A column in the type that it is written in.

    The extension type of a database's own type is left off, which no rule reads: such a column is left out by its storage.
    """
    column = getattr(column, "storage", column)
    return column if kind is None else column.cast(kind)
