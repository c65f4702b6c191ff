"""A source around another one: the same rows, read otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from likely.sources.gaps import Gaps

if TYPE_CHECKING:
    from likely.sources import Source


@dataclass(frozen=True)
class Around:
    """What a source around another one takes over from it; `batches` is what it does otherwise."""

    inner: Source

    @property
    def label(self) -> str:
        """What to call it in messages."""
        return self.inner.label

    @property
    def partial(self) -> bool:
        """Whether a row may leave out columns, as a dict may."""
        return self.inner.partial

    @property
    def missing(self) -> Gaps:
        """What stands for missing in it."""
        return getattr(self.inner, "missing", None) or Gaps()

    def aimed(self, target: str) -> Self:
        """The same source with a target, which may have a list of its own of what stands for missing."""
        aimed = getattr(self.inner, "aimed", None)
        other = self.inner if aimed is None else aimed(target)
        return self if other is self.inner else replace(self, inner=other)
