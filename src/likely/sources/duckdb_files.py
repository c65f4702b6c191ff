"""Parquet and CSV files as tables of DuckDB, which counts their rows; columns and types are those found here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from likely.errors import DataError
from likely.kernels.parallel import cached_property
from likely.kernels.thread_count import threads
from likely.sources.batch import Batch
from likely.sources.cell_values import BLANKS, WHOLE, name_columns, tokens
from likely.sources.csv_files import CsvFile
from likely.sources.databases import Answer, pick
from likely.sources.files import FileSequence, ParquetFile
from likely.sources.missing_tokens import MissingTokens
from likely.sources.table_names import quoted
from likely.sources.text_columns import TypedFile
from likely.sources.wrapper import SourceWrapper

PATTERN = "*?[]"  # DuckDB reads a path with one of these as a pattern
ROWS = "likely_file"
ELSEWHERE = "engine='memory' (--engine memory) reads the rows"
LINE = 1 << 21  # bytes of a line of CSV that DuckDB reads by default


def file_in_duckdb(source: Any) -> FilesInDuckdb | None:
    """The Parquet or CSV files of a source, for DuckDB to read; None if it has others."""
    files = source.parts if isinstance(source, FileSequence) else (source,)
    known = all(isinstance(_table(file), CsvFile | ParquetFile) for file in files)
    return FilesInDuckdb(source) if known else None


def _table(file: Any) -> Any:
    return file.inner if isinstance(file, TypedFile) else file


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class FilesInDuckdb(SourceWrapper):
    """Files that are read here to plan the columns, and by DuckDB to count them."""

    dialect: ClassVar[str] = "duckdb"

    @property
    def files(self) -> tuple[Any, ...]:
        """The tables, one a file."""
        return tuple(_table(file) for file in (self.inner.parts if isinstance(self.inner, FileSequence) else (self.inner,)))

    @property
    def group_tokens(self) -> MissingTokens:
        """Missing-value tokens in groups of equal rows, which record none: a group is not one cell."""
        return replace(self.missing, taken={})

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, read in this process."""
        return self.inner.batches(kinds)

    def ask(self, build: Callable[[str], str]) -> Answer:
        """The answer to a query; `build` makes it from the name of the rows."""
        import duckdb

        self._refuse_folded()
        paths = [file.checked.readable if isinstance(file, CsvFile) else file.path for file in self.files]
        if odd := next((path for path in paths if any(sign in path for sign in PATTERN)), None):
            raise DataError(f"{odd!r} is a pattern of names to DuckDB", remedy=f"rename the file; {ELSEWHERE}")
        try:
            with duckdb.connect(config={"threads": threads(), "autoinstall_known_extensions": False}) as connection:
                self._survey(connection)
                connection.execute(f"create view {ROWS} as {self._rows(connection)}")
                return Answer.of(connection.sql(build(ROWS)).to_arrow_table())
        except (duckdb.Error, UnicodeError) as error:
            reason = str(error).splitlines()[0][:200]
            raise DataError(
                f"{self.label} cannot be counted by DuckDB ({reason})", remedy=ELSEWHERE
            ) from None

    def _refuse_folded(self) -> None:
        """Refuse columns that differ only by case: they are one to DuckDB, which would count the first twice."""
        names = (file.checked.names if isinstance(file, CsvFile) else file.schema.names for file in self.files)
        every = dict.fromkeys(name for each in names for name in each)
        name_columns([*every], f"{self.label} in DuckDB", f"rename one of them; {ELSEWHERE}", folds_case=True)

    def _rows(self, connection: Any) -> str:
        """SQL of the rows of all files."""
        return " union all by name ".join(
            _csv_rows(file) if isinstance(file, CsvFile) else _parquet_rows(file, connection) for file in self.files
        )

    def _survey(self, connection: Any) -> None:
        """Count the missing-value tokens of CSV files, and refuse one of which DuckDB makes other rows; once."""
        if self._surveyed:
            return
        taken: dict[str, Counter[str]] = {}
        for file in self.files:
            if not isinstance(file, CsvFile):
                continue
            rows, found = _counted_tokens(file, connection) if file.checked.regular else (-1, {})
            if rows != file.checked.survey.rows - file.reading.header:
                raise DataError(
                    f"{file.label} is no regular CSV file, whose rows DuckDB would read differently",
                    remedy=ELSEWHERE,
                )
            for name, counts in found.items():
                taken.setdefault(name, Counter()).update(counts)
        if taken:
            self.missing.taken.clear()  # what the first rows have told
            self.missing.taken.update({(name, 0): dict(counts) for name, counts in taken.items() if counts})
        self._surveyed.append(True)

    @cached_property
    def _surveyed(self) -> list[bool]:
        return []


def _parquet_rows(file: ParquetFile, connection: Any) -> str:
    rows = f"select * from read_parquet({literal(file.path)})"
    described = connection.execute(f"describe {rows}").fetchall()
    return f"select {', '.join(pick(row[0], row[1]) for row in described)} from read_parquet({literal(file.path)})"


def _csv_table(file: CsvFile) -> str:
    """SQL of a CSV file with all cells as text, its columns named by their place."""
    checked = file.checked
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(checked.names)))
    settings = {
        "auto_detect": "false", "header": str(file.reading.header).lower(), "delim": literal(checked.delimiter),
        "quote": literal('"'), "escape": literal('"'), "columns": f"{{{columns}}}",
        "max_line_size": str(max(2 * checked.survey.longest, LINE)),
        "parallel": str(not checked.survey.quoted).lower(),  # a line break in a cell may be at the end of a buffer
    }  # fmt: skip
    return f"read_csv({literal(checked.readable)}, {', '.join(f'{name} = {value}' for name, value in settings.items())})"


def _bare(i: int) -> str:
    return f"trim(c{i}, {literal(BLANKS)})"


def _is_token(file: CsvFile, i: int) -> str:
    """SQL of whether a cell is missing: blank, or a missing-value token of its column."""
    known = {"", *tokens(file.missing.of(file.checked.names[i]))}
    return f"{_bare(i)} in ({', '.join(literal(token) for token in sorted(known))})"


def _counted_tokens(file: CsvFile, connection: Any) -> tuple[int, dict[str, dict[str, int]]]:
    """Number of rows of a CSV file, and how often each column has which missing-value token."""
    named = [f"histogram({_bare(i)}) filter (where {_is_token(file, i)})" for i in range(len(file.checked.names))]
    rows, *found = connection.execute(f"select count(*), {', '.join(named)} from {_csv_table(file)}").fetchone()
    return rows, {
        name: {token: n for token, n in (counts or {}).items() if token}
        for name, counts in zip(file.checked.names, found, strict=True)
    }


def _csv_rows(file: CsvFile) -> str:
    """SQL of a CSV file: whole numbers as such, all other cells as text, as they are values of a category when read here."""
    listed = []
    for i, name in enumerate(file.checked.names):
        cell = f"cast({_bare(i)} as bigint)" if file.text_types[name] == WHOLE else f"c{i}"
        listed.append(f"case when {_is_token(file, i)} then null else {cell} end as {quoted(name)}")
    return f"select {', '.join(listed)} from {_csv_table(file)}"
