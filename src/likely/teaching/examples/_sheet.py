"""Text of a worked example, with its key numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from likely.errors import LikelyError
from likely.plots.shown import text_lines

CLOSE = 1e-9  # how far the library's floats may be from the fractions on paper


class Sheet:
    """Lines of text and key numbers of a worked example."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: dict[str, Any] = {}

    def write(self, *lines: str) -> None:
        """Append lines."""
        self.lines += lines

    def head(self, text: str) -> None:
        """Append a heading after a blank line."""
        self.lines += ["", text]

    def keep(self, name: str, number: Any) -> None:
        """Store a key number."""
        self.numbers[name] = str(number) if isinstance(number, Fraction) else number

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Append a table, the first column aligned left, the others right."""
        self.lines += [f"  {line}" for line in text_lines(rows)]

    def check(self, what: str, paper: Fraction | float, library: Fraction | float) -> None:
        """Append the library's number; it must equal the one computed by hand."""
        if not math.isclose(paper, library, rel_tol=CLOSE, abs_tol=1e-300):
            raise LikelyError(
                f"{what} is {float(paper):.9g} on paper and {float(library):.9g} in the library: please report it"
            )
        self.lines.append(f"  checked with the library: {what} = {decimal(library)}")


def decimal(number: Fraction | float) -> str:
    """A decimal of six places without trailing zeros."""
    text = f"{float(number):.6f}".rstrip("0").rstrip(".")
    return text if float(text) or not number else f"{float(number):.6g}"
