"""Tables, views and queries of SQLite and DuckDB files, opened read-only and sandboxed, read batch by batch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from likely.errors import DataError, did_you_mean
from likely.kernels.parallel import cached_property
from likely.sources.batch import Batch, Frame, to_arrow
from likely.sources.cell_values import is_text, name_columns
from likely.sources.file_type import DUCKDB
from likely.sources.single_file import SingleFile

if TYPE_CHECKING:
    import sqlite3

BATCH_ROWS = 65_536
SQLITE = b"SQLite format 3\0"


def open_database(path: str, reading: Any, **named: Any) -> Database:
    """Open a database file; the content decides between SQLite and DuckDB for .db."""
    with open(path, "rb") as file:
        head = file.read(len(SQLITE))
    by_name = (named.get("called") or path).lower().endswith((".duckdb", ".ddb")) and head != SQLITE
    return (DuckdbTable if by_name or head[8:12] == DUCKDB else SqliteTable)(path, reading, **named)


def quoted(name: str) -> str:
    """A name as quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def subquery(query: str) -> str:
    """A query as a table of another one, under a name."""
    return f"({query.strip().rstrip(';')}\n) as likely_query"  # a line comment at its end must not swallow the bracket


@dataclass(frozen=True)
class Database(SingleFile):
    """One table, view or query of a database file."""

    first: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)  # state of the file when first read

    def refuse_changes(self) -> None:
        """Raise DataError if the file has changed since it was first read: passes over it would disagree."""
        states = []
        for path in (self.path, f"{self.path}-wal", f"{self.path}.wal"):
            with contextlib.suppress(OSError):
                status = os.stat(path)
                states.append((path, status.st_mtime_ns, status.st_size, status.st_ino))
        if self.first.setdefault("state", states) != states:
            raise DataError(
                f"{self.label} has changed while it was read: its rows would be counted from two states of the table",
                remedy="run it again when nothing writes to it, or copy the file first",
            )

    def tables(self) -> list[str]:
        """All tables and views of the file."""
        raise NotImplementedError

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order of the table."""
        raise NotImplementedError

    def ask(self, build: Callable[[str], str]) -> Any:
        """Arrow table of a query; `build` makes it from the SQL of the rows."""
        raise NotImplementedError

    @cached_property
    def table(self) -> str:
        """The requested table, or the only one."""
        names, wanted = self.tables(), self.reading.table
        if wanted is None and len(names) == 1:
            return names[0]
        more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
        listed = ", ".join(map(repr, names[:20])) + more
        if wanted is None:
            raise DataError(
                f"{self.label} has {len(names)} tables: {listed}" if names else f"{self.label} has no table",
                remedy="name one with table= (--table)" if names else None,
            )
        if wanted not in names:
            raise DataError(f"{self.label} has no table {wanted!r}{did_you_mean(wanted, names)}: it has {listed}")
        return wanted


@dataclass(frozen=True)
class SqliteTable(Database):
    """A table of a SQLite file, read by Python's sqlite3."""

    dialect: ClassVar[str] = "sqlite"

    @cached_property
    def checked_table(self) -> str:
        """The table, after an integrity check: SQLite reads truncated files without an error."""
        self._refuse_cut()
        with self._open(shut=False) as connection:
            try:
                result = connection.execute(f"pragma quick_check({quoted(self.table)})").fetchone()[0]
            except connection.OperationalError as error:  # a view has no pages
                result = "ok" if "no such table" in str(error) else str(error)
        if result != "ok":
            reason = result.splitlines()[-1][:200]
            raise DataError(f"{self.label} is a damaged SQLite database ({reason})", remedy="copy it again, or .recover it")
        return self.table

    def _refuse_cut(self) -> None:
        """Refuse a truncated file: it must have as many complete pages as its header states."""
        with open(self.path, "rb") as file:
            head = file.read(100)
        size = int.from_bytes(head[16:18], "big")
        size = 1 << 16 if size == 1 else size
        pages = int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else 1  # otherwise written by an old version
        there = os.path.getsize(self.path)
        if not size or there % size or there < size * pages:
            raise DataError(f"{self.label} is a damaged SQLite database (it is truncated)", remedy="copy it again")

    @contextlib.contextmanager
    def _open(self, shut: bool = True) -> Iterator[sqlite3.Connection]:
        """A read-only connection, closed on exit."""
        import sqlite3

        if not is_text(self.path):
            raise DataError(f"{self.label} has a name that SQLite cannot open", remedy="rename the file")
        try:
            opened = sqlite3.connect(f"file:{quote(self.path)}?mode=ro", uri=True, check_same_thread=False)
            with contextlib.closing(opened) as connection:
                connection.execute("pragma query_only = on")
                connection.execute("pragma trusted_schema = off")
                connection.execute("pragma cell_size_check = on")
                connection.set_authorizer(_only_reading if shut else None)
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if str(error) == "not authorized":
                message = f"the query or view of {self.label} does more than read tables, or is recursive, which may never end"
                raise DataError(message, remedy="pass a plain select") from None
            raise DataError(f"{self.label} cannot be read as a SQLite database ({error})") from None

    def tables(self) -> list[str]:
        """User-defined tables and views."""
        found = "select name from sqlite_master where type in ('table', 'view') and name not like 'sqlite\\_%' escape '\\'"
        with self._open() as connection:
            return [name for (name,) in connection.execute(f"{found} order by name")]

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order of the table."""
        start = 0
        self.refuse_changes()
        with self._open() as connection:
            cursor = connection.execute(f"select * from {self._where}")
            names = name_columns([column[0] for column in cursor.description], self.label)
            wanted = [(i, name) for i, name in enumerate(names) if kinds is None or name in kinds]
            while rows := cursor.fetchmany(BATCH_ROWS):
                columns = {name: to_arrow([row[i] for row in rows], name, start) for i, name in wanted}
                yield Frame(columns, len(rows), start, self.missing)
                start += len(rows)
        self.refuse_changes()

    @property
    def _where(self) -> str:
        return quoted(self.checked_table) if self.reading.query is None else subquery(self.reading.query)

    def ask(self, build: Callable[[str], str]) -> Any:
        """Arrow table of a query; `build` makes it from the SQL of the rows."""
        import pyarrow as pa

        self.refuse_changes()
        with self._open() as connection:
            cursor = connection.execute(build(self._where))
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        return pa.table({name: to_arrow([row[i] for row in rows], name) for i, name in enumerate(names)})


def _only_reading(action: int, _: str | None, name: str | None, *__: Any) -> int:
    """SQLite authorizer: allows select and functions, but not recursion, which may never end."""
    import sqlite3

    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ):
        return sqlite3.SQLITE_OK
    allowed = action == sqlite3.SQLITE_FUNCTION and str(name).lower() != "load_extension"
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


@dataclass(frozen=True)
class DuckdbTable(Database):
    """A table of a DuckDB file."""

    dialect: ClassVar[str] = "duckdb"

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        """A read-only connection without access to other files, the network or extensions."""
        import duckdb

        config: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_access": False,
            "lock_configuration": True,
        }
        try:
            with duckdb.connect(self.path, read_only=True, config=config) as connection:
                yield connection
        except (duckdb.Error, RuntimeError, UnicodeError) as error:
            reason = str(error).splitlines()[0][:200]
            raise DataError(f"{self.label} cannot be read as a DuckDB database ({reason})") from None

    def tables(self) -> list[str]:
        """User-defined tables and views, those of other schemas as schema.table."""
        with self._open() as connection:
            return [_dotted(schema, name) for schema, name in self._listed(connection)]

    def _listed(self, connection: Any) -> list[tuple[str, str]]:
        found = "select schema_name, {0}_name from duckdb_{0}s() where not internal and database_name = current_database()"
        rows = connection.execute(f"{found.format('table')} union all {found.format('view')} order by all").fetchall()
        return [(schema, name) for schema, name in rows]

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order of the table."""
        self.refuse_changes()
        with self._open() as connection, self.as_arrow("DuckDB"):
            where = self._where(connection) if self.reading.query is None else subquery(self.reading.query)
            described = connection.execute(f"describe select * from {where}").fetchall()
            name_columns([row[0] for row in described], self.label)
            names = [row[0] for row in described if kinds is None or row[0] in kinds]
            picked = [pick(row[0], row[1]) for row in described if row[0] in names] or ["1"]
            found = connection.sql(f"select {', '.join(picked)} from {where}")
            yield from self.frames(found.to_arrow_reader(BATCH_ROWS), names)
        self.refuse_changes()

    def ask(self, build: Callable[[str], str]) -> Any:
        """Arrow table of a query; `build` makes it from the SQL of the rows."""
        self.refuse_changes()
        with self._open() as connection, self.as_arrow("DuckDB"):
            where = self._where(connection) if self.reading.query is None else subquery(self.reading.query)
            return connection.sql(build(where)).to_arrow_table()

    def _where(self, connection: Any) -> str:
        schema, name = next(pair for pair in self._listed(connection) if _dotted(*pair) == self.table)
        return f"{quoted(schema)}.{quoted(name)}"


def _dotted(schema: str, name: str) -> str:
    return name if schema == "main" else f"{schema}.{name}"


def pick(name: str, kind: str) -> str:
    """SQL expression of a column: very wide integers as double, UUIDs as text."""
    if kind in ("HUGEINT", "UHUGEINT", "BIGNUM"):
        return f"{quoted(name)}::double as {quoted(name)}"
    return f"{quoted(name)}::varchar as {quoted(name)}" if kind == "UUID" else quoted(name)
