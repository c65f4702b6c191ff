"""What all tables in files have in common: a path, a way of reading, a name, and the words for what cannot be read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from likely.atomic import FULL
from likely.errors import DataError, LikelyError, ResourceError
from likely.sources.arrays import sound
from likely.sources.batch import Frame
from likely.sources.gaps import Gaps
from likely.threads import cached_property

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
    blanks: ClassVar[bool] = False  # whether its cells are nothing but text

    @cached_property
    def missing(self) -> Gaps:
        """What stands for missing in it."""
        return self.reading.gaps(self.blanks)

    def aimed(self, target: str) -> Self:
        """The same file with a target, which may have a list of its own of what stands for missing."""
        if self.missing.target == target or self.missing.labels in (None, self.missing.tokens):
            return self
        known: dict[str, Self] = self.__dict__.setdefault("_aimed", {})  # a file is surveyed once
        if target not in known:
            known[target] = replace(self, reading=replace(self.reading, target=target))
        return known[target]

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
            self.reading.check_memory()
            yield Frame(checked, batch.num_rows, start, self.missing)
            start += batch.num_rows
