"""A stream of Arrow record batches as a source: the rows of one part of a table, read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from likely.sources.arrow_arrays import validated
from likely.sources.batch import Batch, Frame
from likely.sources.missing_tokens import MissingTokens

if TYPE_CHECKING:
    from likely.sources import ReadOptions

BATCH_ROWS = 131_072


@dataclass(frozen=True)
class ArrowRows:
    """Record batches with the formats that a model has stored; small ones are put together."""

    stream: Iterable[Any]
    reading: ReadOptions
    label: str = "the rows"
    partial: bool = False

    @property
    def missing(self) -> MissingTokens:
        """Its missing-value tokens."""
        return self.reading.gaps(False)

    def with_target(self, target: str) -> ArrowRows:
        """The same rows with a target, which may have missing-value tokens of its own."""
        return self if self.reading.target == target else replace(self, reading=replace(self.reading, target=target))

    def batches(self, kinds: Mapping[str, str] | None = None) -> Iterator[Batch]:
        """The rows, in order."""
        start, gaps = 0, self.missing
        for batch in regrouped(self.stream, self.reading.batch_bytes()):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            names = [name for name in columns if kinds is None or name in kinds or name in self._origins]
            checked = {name: validated(columns[name], name, start) for name in names}
            yield Frame(checked, batch.num_rows, start, gaps, formats=dict(self.reading.formats), parts=self.reading.parts)
            start += batch.num_rows

    @property
    def _origins(self) -> set[str]:
        """Columns of dates from which others are derived."""
        return {part.origin for part in self.reading.parts.values()}


def regrouped(batches: Iterable[Any], most_bytes: int) -> Iterator[Any]:
    """The same rows in fewer record batches: work that is done once for each batch is then done less often."""
    held: list[Any] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= BATCH_ROWS or size >= 2 * most_bytes:
            yield from _joined(held)
            held, rows, size = [], 0, 0
    yield from _joined(held)


def _joined(batches: list[Any]) -> Iterator[Any]:
    import pyarrow as pa

    if len(batches) > 1:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()
    else:
        yield from batches
