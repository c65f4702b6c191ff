"""DuckDB relations: any query of the caller's own connection, read batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from likely.errors import DataError
from likely.kernels.parallel import cached_property
from likely.sources.arrow_arrays import validated
from likely.sources.batch import Batch, Frame
from likely.sources.cell_values import name_columns
from likely.sources.databases import BATCH_ROWS, Answer, as_read, pick
from likely.sources.missing_tokens import MissingTokens
from likely.sources.text_columns import TypedFile

if TYPE_CHECKING:
    from likely.sources import ReadOptions, Source


def open_relation(relation: Any, reading: ReadOptions) -> Source:
    """Source of a DuckDB relation, whose query is run again for each pass."""
    return TypedFile(Relation(relation, reading), reading)


@dataclass(frozen=True)
class Relation:
    """A DuckDB relation."""

    relation: Any
    reading: ReadOptions
    label: str = "the relation"
    partial: bool = False
    under_way: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)  # the reader of the present pass

    dialect: ClassVar[str] = "duckdb"

    def ask(self, build: Callable[[str], str]) -> Answer:
        """The answer to a query; `build` makes it from the SQL of the rows."""
        import duckdb

        self._end_pass()
        name_columns(self.relation.columns, self.label, folds_case=True)
        query = build(as_read("likely_rows", [*zip(self.relation.columns, map(str, self.relation.types), strict=True)]))
        try:
            return Answer.of(self.relation.query("likely_rows", query).to_arrow_table())
        except duckdb.Error as error:
            raise DataError(f"{self.label} cannot be counted ({str(error).splitlines()[0][:200]})") from None

    @cached_property
    def missing(self) -> MissingTokens:
        """Its missing-value tokens."""
        return self.reading.gaps(False)

    def with_target(self, target: str) -> Relation:
        """The same relation: what is missing in a typed source does not depend on the target."""
        return self

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in the order of the query; a pass still in progress is ended, as a connection runs one query at a time."""
        import duckdb

        start, reader = 0, None
        try:
            every = name_columns(self.relation.columns, self.label, folds_case=True)
            names = [name for name in every if kinds is None or name in kinds]
            types = dict(zip(every, map(str, self.relation.types), strict=True))
            picked = ", ".join(pick(name, types[name]) for name in names) or "1"
            self._end_pass()
            self.under_way["reader"] = reader = self.relation.project(picked).to_arrow_reader(BATCH_ROWS)
            for batch in reader:
                self.reading.check_memory()
                columns = {name: validated(column, name, start) for name, column in zip(names, batch.columns, strict=False)}
                yield Frame(columns, batch.num_rows, start, self.missing)
                start += batch.num_rows
        except (duckdb.Error, OSError) as error:
            reason = str(error).splitlines()[0][:200]
            raise DataError(f"{self.label} cannot be read to its end ({reason})") from None
        finally:  # or the connection could run nothing else
            if self.under_way.get("reader") is reader:
                self._end_pass()

    def _end_pass(self) -> None:
        if "reader" in self.under_way:
            self.under_way.pop("reader").close()
