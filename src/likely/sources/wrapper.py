"""Base class of sources that wrap another source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from likely.sources.missing_tokens import MissingTokens

if TYPE_CHECKING:
    from likely.sources import Source


@dataclass(frozen=True)
class SourceWrapper:
    """A source that delegates to `inner`; subclasses define `batches`."""

    inner: Source

    @property
    def label(self) -> str:
        """Name in messages."""
        return self.inner.label

    @property
    def partial(self) -> bool:
        """Whether rows may omit columns, as dicts may."""
        return self.inner.partial

    @property
    def missing(self) -> MissingTokens:
        """Its missing-value tokens."""
        return getattr(self.inner, "missing", None) or MissingTokens()

    def with_target(self, target: str) -> Self:
        """The same source with a target, which may have missing-value tokens of its own."""
        with_target = getattr(self.inner, "with_target", None)
        other = self.inner if with_target is None else with_target(target)
        return self if other is self.inner else replace(self, inner=other)
