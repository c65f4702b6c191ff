"""Tables and queries of PostgreSQL through ADBC: Arrow batches of one snapshot, read-only."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from likely.errors import DataError, UsageError, did_you_mean, import_optional
from likely.kernels.parallel import cached_property
from likely.sources.arrow_arrays import validated
from likely.sources.batch import Batch, Frame
from likely.sources.cell_values import name_columns
from likely.sources.databases import quoted, subquery
from likely.sources.missing_tokens import MissingTokens
from likely.sources.text_columns import TypedFile

if TYPE_CHECKING:
    from likely.sources import ReadOptions, Source

TABLES = """select table_schema, table_name from information_schema.tables
where table_schema not in ('pg_catalog', 'information_schema') order by 1, 2"""
AS_NUMBER = ("numeric", "money")
AS_TEXT = ("uuid", "enum", "citext", "bpchar", "inet", "cidr", "macaddr")


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
    return driver.connect(uri)


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

    def ask(self, build: Callable[[str], str]) -> Any:
        """Arrow table of a query; `build` makes it from the SQL of the rows."""
        with self._open() as cursor:
            cursor.execute(build(self._where(cursor)))
            return cursor.fetch_arrow_table()

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
                self.held["connection"] = keeper = connect(self.uri)
                with keeper.cursor() as cursor:
                    cursor.execute("set transaction isolation level repeatable read, read only")
                    cursor.execute("select pg_export_snapshot()")
                    self.held["snapshot"] = cursor.fetchone()[0]
            with contextlib.closing(connect(self.uri)) as connection, connection.cursor() as cursor:
                cursor.execute("set transaction isolation level repeatable read, read only")
                cursor.execute(f"set transaction snapshot '{self.held['snapshot']}'")
                yield cursor

    def _where(self, cursor: Any) -> str:
        """The table or query that is read."""
        if self.reading.query is not None:
            return subquery(self.reading.query)
        cursor.execute(TABLES)
        named = {name if schema == "public" else f"{schema}.{name}": (schema, name) for schema, name in cursor.fetchall()}
        wanted = self.reading.table
        if wanted is None and len(named) == 1:
            wanted = next(iter(named))
        listed = ", ".join(map(repr, list(named)[:20]))
        if wanted is None:
            raise DataError(f"{self.label} has {len(named)} tables: {listed}", remedy="name one with table= (--table)")
        if wanted not in named:
            raise DataError(f"{self.label} has no table {wanted!r}{did_you_mean(wanted, named)}: it has {listed}")
        return ".".join(map(quoted, named[wanted]))

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in the order in which the database gives them."""
        start = 0
        with self._open() as cursor:
            where = self._where(cursor)
            schema = cursor.adbc_execute_schema(f"select * from {where}")
            every = name_columns(schema.names, self.label)
            names = [name for name in every if kinds is None or name in kinds]
            picked = ", ".join(_pick(schema.field(every.index(name))) for name in names)
            cursor.execute(f"select {picked or '1'} from {where}")
            for batch in cursor.fetch_record_batch():
                self.reading.check_memory()
                columns = {
                    name: validated(_stored(column), name, start) for name, column in zip(names, batch.columns, strict=False)
                }
                yield Frame(columns, batch.num_rows, start, self.missing)
                start += batch.num_rows


def _pick(column: Any) -> str:
    """SQL of a column: exact decimals as double, identifiers and enumerations as text."""
    kind = str(getattr(column.type, "type_name", ""))
    name = quoted(column.name)
    if kind in AS_NUMBER:
        return f"{name}{'::numeric' if kind == 'money' else ''}::double precision as {name}"
    return f"{name}::text as {name}" if kind in AS_TEXT else name


def _stored(column: Any) -> Any:
    """The column without its extension type (a type of the database's own): by the kind of its storage it is left out."""
    return getattr(column, "storage", column)
