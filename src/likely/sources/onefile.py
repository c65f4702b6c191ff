"""What all tables in files have in common: a path, a way of reading, a name, and the words for what cannot be read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from likely.atomic import FULL
from likely.errors import DataError, LikelyError, ResourceError
from likely.sources.arrays import sound
from likely.sources.batch import Frame

if TYPE_CHECKING:
    from likely.sources import Reading


@dataclass(frozen=True)
class OneFile:
    """A file that holds one table; every row of it has every column."""

    path: str
    reading: Reading
    partial: bool = False
    called: str | None = None  # the compressed file that it was unpacked from
    keep: Any = field(default=None, compare=False, repr=False)  # a temporary file lives as long as this does

    @property
    def label(self) -> str:
        """The path that was given, in quotes."""
        return repr(self.called or self.path)

    @contextlib.contextmanager
    def as_text(self) -> Iterator[None]:
        """While its text is read: what the disk or the encoding does not allow is an error that names the file."""
        try:
            yield
        except UnicodeError as error:
            what, why = getattr(error, "encoding", "text"), getattr(error, "reason", error)
            remedy = "pass encoding='latin-1' (--encoding latin-1), or what it is in"
            raise DataError(f"{self.label} is not {what}: {why}", remedy=remedy) from None
        except OSError as error:
            if error.errno in FULL:  # of the copy that is made of it in another encoding
                remedy = "free some, or name another folder by TMPDIR"
                said = f"there is no room for a temporary copy of {self.label}: {error.strerror}"
                raise ResourceError(said, remedy=remedy) from None
            raise DataError(f"{self.label} cannot be read: {error.strerror}") from None

    @contextlib.contextmanager
    def as_arrow(self, kind: str) -> Iterator[None]:
        """While Arrow reads it: whatever goes wrong is an error that names the file."""
        import pyarrow as pa

        try:
            yield
        except LikelyError:
            raise
        except (pa.ArrowException, OSError, ValueError, LookupError, ArithmeticError, MemoryError) as error:
            said = str(error).strip() or type(error).__name__
            raise DataError(f"{self.label} is no whole {kind} file: {said.splitlines()[0][:200]}") from None

    def frames(self, batches: Iterable[Any], names: Sequence[str]) -> Iterator[Frame]:
        """The wanted columns of Arrow's record batches, each once it is known to be sound."""
        start = 0
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            try:
                checked = {name: sound(columns[name], name, start) for name in names}
            except DataError as error:
                said = f"{self.label}: {error}"
                raise DataError(said, column=error.column, row=error.row, remedy=error.remedy) from None
            yield Frame(checked, batch.num_rows, start, self.reading.missing)
            start += batch.num_rows
