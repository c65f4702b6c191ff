"""Tables, views and queries of SQLite and DuckDB files, opened read-only and sandboxed, read batch by batch."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from likely.errors import DataError, ResourceError
from likely.kernels.parallel import cached_property
from likely.sources._memory_limit import database_bytes
from likely.sources._single_file import SingleFile
from likely.sources.arrow_arrays import one_chunk
from likely.sources.batch import Batch, Frame, to_arrow
from likely.sources.cell_values import is_text, name_columns
from likely.sources.file_type import DUCKDB
from likely.sources.interruption import each, interruptible
from likely.sources.table_names import Place, choose_table, quoted

if TYPE_CHECKING:
    import sqlite3

BATCH_ROWS = 65_536
SQLITE = b"SQLite format 3\0"
NUMBERED = re.compile(r":\d+$")  # what SQLite adds to a name that a query gives twice


def open_database(path: str, reading: Any, **named: Any) -> Database:
    """Open a database file; the content decides between SQLite and DuckDB for .db."""
    with open(path, "rb") as file:
        head = file.read(len(SQLITE))
    by_name = (named.get("called") or path).lower().endswith((".duckdb", ".ddb")) and head != SQLITE
    return (DuckdbTable if by_name or head[8:12] == DUCKDB else SqliteTable)(path, reading, **named)


def subquery(query: str) -> str:
    """A query as a table of another one, under a name."""
    return f"({query.strip().rstrip(';')}\n) as likely_query"  # a line comment at its end must not swallow the bracket


@dataclass(frozen=True)
class Answer:
    """The rows that a query gives: Arrow arrays, or lists where the values of a column have several types."""

    columns: dict[str, Any]
    rows: int

    @classmethod
    def of(cls, table: Any) -> Answer:
        """The answer in an Arrow table."""
        return cls(dict(zip(table.column_names, map(one_chunk, table.columns), strict=True)), len(table))

    def __len__(self) -> int:
        return self.rows

    def lists(self) -> dict[str, list[Any]]:
        """The columns as lists of Python values."""
        return {name: c if isinstance(c, list) else c.to_pylist() for name, c in self.columns.items()}


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

    def tables(self) -> list[Place]:
        """All tables and views of the file, each with its schema."""
        raise NotImplementedError

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order of the table."""
        raise NotImplementedError

    def ask(self, build: Callable[[str], str]) -> Answer:
        """The answer to a query; `build` makes it from the SQL of the rows."""
        raise NotImplementedError

    @cached_property
    def place(self) -> Place:
        """The requested table, or the only one."""
        return choose_table(self.reading.table, self.tables(), "main", self.label)

    @property
    def table(self) -> str:
        """Its name in SQL."""
        return ".".join(map(quoted, self.place))


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
                check = f"pragma quick_check({quoted(self.place[1])})"
                result = interruptible(lambda: connection.execute(check).fetchone()[0], connection.interrupt)
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

    def tables(self) -> list[Place]:
        """User-defined tables and views."""
        found = "select name from sqlite_master where type in ('table', 'view') and name not like 'sqlite\\_%' escape '\\'"
        with self._open() as connection:
            return [("main", name) for (name,) in connection.execute(f"{found} order by name")]

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order of the table."""
        start = 0
        self.refuse_changes()
        with self._open() as connection:
            cursor = interruptible(lambda: connection.execute(f"select * from {self._where}"), connection.interrupt)
            names = name_columns([column[0] for column in cursor.description], self.label)
            self._refuse_numbered(connection, names)
            wanted = [(i, name) for i, name in enumerate(names) if kinds is None or name in kinds]
            while rows := interruptible(lambda: cursor.fetchmany(BATCH_ROWS), connection.interrupt):
                columns = {name: to_arrow([row[i] for row in rows], name, start) for i, name in wanted}
                yield Frame(columns, len(rows), start, self.missing)
                start += len(rows)
        self.refuse_changes()

    def _refuse_numbered(self, connection: sqlite3.Connection, names: Sequence[str]) -> None:
        """Refuse a query that gives a name twice, of which SQLite numbers the second."""
        if self.reading.query is not None and any(map(NUMBERED.search, names)):
            query = self.reading.query
            cursor = interruptible(lambda: connection.execute(query), connection.interrupt)
            name_columns([column[0] for column in cursor.description], self.label, folds_case=True)

    @property
    def _where(self) -> str:
        return self.checked_table if self.reading.query is None else subquery(self.reading.query)

    def ask(self, build: Callable[[str], str]) -> Answer:
        """The answer to a query; `build` makes it from the SQL of the rows."""
        self.refuse_changes()
        with self._open() as connection:
            query = build(self._where)

            def found() -> tuple[list[str], list[Any]]:
                cursor = connection.execute(query)
                return [column[0] for column in cursor.description], cursor.fetchall()

            names, rows = interruptible(found, connection.interrupt)
        return Answer({name: to_arrow([row[i] for row in rows], name) for i, name in enumerate(names)}, len(rows))


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
        if (limit := self.reading.memory_limit) is not None:
            config |= {"memory_limit": f"{database_bytes(limit)}B", "temp_directory": _folder_for_sorting()}
        try:
            with duckdb.connect(self.path, read_only=True, config=config) as connection:
                yield connection
        except duckdb.OutOfMemoryException as error:
            message = f"the memory limit does not suffice for the query of {self.label} ({str(error).splitlines()[0][:200]})"
            raise ResourceError(message, remedy="raise memory_limit (--memory-limit), or simplify the query") from None
        except (duckdb.Error, RuntimeError, UnicodeError) as error:
            reason = str(error).splitlines()[0][:200]
            raise DataError(f"{self.label} cannot be read as a DuckDB database ({reason})") from None

    def tables(self) -> list[Place]:
        """User-defined tables and views."""
        found = "select schema_name, {0}_name from duckdb_{0}s() where not internal and database_name = current_database()"
        with self._open() as connection:
            rows = connection.execute(f"{found.format('table')} union all {found.format('view')} order by all").fetchall()
        return [(schema, name) for schema, name in rows]

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order of the table."""
        self.refuse_changes()
        where = self._where
        with self._open() as connection, self.as_arrow("DuckDB"):
            described = interruptible(lambda: self._described(connection), connection.interrupt)
            name_columns([row[0] for row in described], self.label)
            names = [row[0] for row in described if kinds is None or row[0] in kinds]
            kept = Kept.of(described if self.reading.carried else [], names)
            picked = [pick(row[0], row[1]) for row in described if row[0] in names] + kept.picked or ["1"]
            rows = f"select {', '.join(picked)} from {where}"
            reader = interruptible(lambda: connection.sql(rows).to_arrow_reader(BATCH_ROWS), connection.interrupt)
            with contextlib.closing(reader):
                yield from map(kept.apart, self.frames(each(reader, connection.interrupt), [*names, *kept.names]))
        self.refuse_changes()

    def ask(self, build: Callable[[str], str]) -> Answer:
        """The answer to a query; `build` makes it from the SQL of the rows."""
        self.refuse_changes()
        query = build(self._as_read)
        with self._open() as connection, self.as_arrow("DuckDB"):
            return Answer.of(interruptible(lambda: connection.sql(query).to_arrow_table(), connection.interrupt))

    @property
    def _where(self) -> str:
        return self.table if self.reading.query is None else subquery(self.reading.query)

    @cached_property
    def _as_read(self) -> str:
        """The rows with every column as it is read."""
        with self._open() as connection:
            return as_read(self._where, self._described(connection))

    def _described(self, connection: Any) -> list[Any]:
        """Names and types of the columns; a query that gives a name twice is refused: as a table, DuckDB numbers the second."""
        import duckdb

        if self.reading.query is not None:
            with contextlib.suppress(duckdb.Error):  # whatever can be a table, but not be described
                given = connection.execute(f"describe {self.reading.query}").fetchall()
                name_columns([row[0] for row in given], self.label, folds_case=True)
        found: list[Any] = connection.execute(f"describe select * from {self._where}").fetchall()
        return found


@cache
def _folder_for_sorting() -> str:
    """A folder that DuckDB makes and removes: one, since all connections of a process to a file have the same settings."""
    return os.path.join(tempfile.gettempdir(), f"likely-{secrets.token_hex(8)}")


def as_read(where: str, described: Sequence[Sequence[Any]]) -> str:
    """The rows with every column as it is read, from names and types of the columns."""
    picked = [pick(row[0], row[1]) for row in described]
    return where if picked == [quoted(row[0]) for row in described] else subquery(f"select {', '.join(picked)} from {where}")


def pick(name: str, kind: str) -> str:
    """SQL expression of a column as it is read: very wide integers as double, UUIDs as text."""
    if kind in ("HUGEINT", "UHUGEINT", "BIGNUM"):
        return f"{quoted(name)}::double as {quoted(name)}"
    return f"{quoted(name)}::varchar as {quoted(name)}" if kind == "UUID" else quoted(name)


def _as_stored(name: str, kind: str) -> str | None:
    """SQL of a column as it is written beside predictions, where that differs from what is read: no digit is lost."""
    if kind == "HUGEINT":
        return f"{quoted(name)}::decimal(38, 0)"
    other = kind in ("UHUGEINT", "BIGNUM") or "INTERVAL" in kind or "UNION" in kind  # types of no Parquet file
    return f"{quoted(name)}::varchar" if other else None


@dataclass(frozen=True)
class Kept:
    """Columns that are read a second time as they are stored, to be written beside predictions."""

    names: dict[str, str]  # from the name in the query to that of the column
    picked: list[str]

    @classmethod
    def of(cls, described: Sequence[Sequence[Any]], names: Sequence[str]) -> Kept:
        """Those of the columns, given by name and type, for which that is needed."""
        return cls.selecting({row[0]: sql for row in described if row[0] in names and (sql := _as_stored(row[0], row[1]))})

    @classmethod
    def selecting(cls, stored: Mapping[str, str]) -> Kept:
        """Columns with their SQL."""
        aliases = {f"likely__{i}": name for i, name in enumerate(stored)}
        picked = [f"{stored[name]} as {quoted(alias)}" for alias, name in aliases.items()]
        return cls(aliases, picked)

    def apart(self, frame: Frame) -> Frame:
        """The rows with the stored columns apart from those that are read."""
        if not self.names:
            return frame
        columns = {name: column for name, column in frame.columns.items() if name not in self.names}
        return replace(frame, columns=columns, stored={name: frame.columns[alias] for alias, name in self.names.items()})
