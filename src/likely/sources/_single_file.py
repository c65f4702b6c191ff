"""Base class of tables in one file: path, options, name in messages, and errors of reading."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from likely.errors import FULL, DataError, LikelyError, ResourceError
from likely.kernels.parallel import cached_property
from likely.sources.arrow_arrays import validated
from likely.sources.batch import Frame
from likely.sources.missing_tokens import MissingTokens

if TYPE_CHECKING:
    from likely.sources import ReadOptions


@dataclass(frozen=True)
class SingleFile:
    """A file with one table; every row has every column."""

    path: str
    reading: ReadOptions
    partial: bool = False
    called: str | None = None  # path of the compressed file, if unpacked
    keep: Any = field(default=None, compare=False, repr=False)  # reference that keeps a temporary file alive
    blanks: ClassVar[bool] = False  # whether it is delimited text, in which a blank cell is null

    @cached_property
    def missing(self) -> MissingTokens:
        """Its missing-value tokens."""
        return self.reading.gaps(self.blanks)

    def with_target(self, target: str) -> Self:
        """The same file with a target, which may have missing-value tokens of its own."""
        if self.missing.target == target or self.missing.labels in (None, self.missing.tokens):
            return self
        known: dict[str, Self] = self._by_target
        if target not in known:
            known[target] = replace(self, reading=replace(self.reading, target=target))
        return known[target]

    @cached_property
    def _by_target(self) -> dict[str, Any]:
        """The same file with each target that was asked for, so that it is surveyed once."""
        return {}

    @property
    def label(self) -> str:
        """The given path, in quotes."""
        return repr(self.called or self.path)

    @contextlib.contextmanager
    def as_text(self) -> Iterator[None]:
        """Context manager for reading text: errors of the disk and of decoding become errors that name the file."""
        try:
            yield
        except UnicodeError as error:
            what, why = getattr(error, "encoding", "text"), getattr(error, "reason", error)
            remedy = "pass encoding='latin-1' (--encoding latin-1), or its own encoding"
            raise DataError(f"{self.label} is not {what}: {why}", remedy=remedy) from None
        except OSError as error:
            if error.errno in FULL:  # while writing the temporary copy in UTF-8
                remedy = "free some, or name another folder by TMPDIR"
                message = f"there is no disk space for a temporary copy of {self.label}: {error.strerror}"
                raise ResourceError(message, remedy=remedy) from None
            raise DataError(f"{self.label} cannot be read: {error.strerror}") from None

    @contextlib.contextmanager
    def as_arrow(self, kind: str) -> Iterator[None]:
        """Context manager for reading with Arrow: any error becomes a DataError that names the file."""
        import pyarrow as pa

        try:
            yield
        except LikelyError:
            raise
        except (pa.ArrowException, OSError, ValueError, LookupError, ArithmeticError, MemoryError) as error:
            reason = str(error).strip() or type(error).__name__
            raise DataError(f"{self.label} is not a complete {kind} file: {reason.splitlines()[0][:200]}") from None

    def frames(self, batches: Iterable[Any], names: Sequence[str]) -> Iterator[Frame]:
        """The requested columns of Arrow record batches, validated."""
        start = 0
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            try:
                checked = {name: validated(columns[name], name, start) for name in names}
            except DataError as error:
                message = f"{self.label}: {error}"
                raise DataError(message, column=error.column, row=error.row, remedy=error.remedy) from None
            self.reading.check_memory()
            yield Frame(checked, batch.num_rows, start, self.missing, checked=True)
            start += batch.num_rows
