"""SVG pictures as values: shown by notebooks, saved as SVG, PNG or PDF."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Self

from likely.errors import UsageError, import_optional
from likely.plots.escaping import escape

ENDINGS = (".svg", ".png", ".pdf")
SCALE = 2.0  # pixels of a PNG for each unit of the picture


class Svg(str):
    """An SVG picture: text that a notebook shows as a picture, and that is saved as SVG, PNG or PDF.

    Parameters
    ----------
    text : str, default=""
        The picture as SVG.
    """

    __slots__ = ()

    def __new__(cls, text: str = "") -> Self:
        """A picture from its text."""
        return super().__new__(cls, text)

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path : str or Path
            A name that ends in .svg, .png or .pdf; the latter two need the extra `images`.
        """
        ending = Path(path).suffix.lower()
        check_ending(ending)
        Path(path).write_bytes(self.content(ending))

    def content(self, ending: str) -> bytes:
        """Content of a file with this ending.

        Parameters
        ----------
        ending : str
            ".svg", ".png" or ".pdf".

        Returns
        -------
        bytes
            The content.
        """
        return self.encode() if ending == ".svg" else self.converted(ending)

    def converted(self, ending: str) -> bytes:
        """The picture as PNG or PDF, in the light scheme.

        Parameters
        ----------
        ending : str
            ".png" or ".pdf".

        Returns
        -------
        bytes
            The content of the file.
        """
        convert = _converter(ending)
        light = re.sub(r"@media \(prefers-color-scheme:dark\)\{(?:[^{}]*\{[^{}]*\})*\s*\}", "", self)
        made = convert.svg2png(light.encode(), scale=SCALE) if ending == ".png" else convert.svg2pdf(light.encode())
        return bytes(made)


def check_ending(ending: str, others: tuple[str, ...] = ()) -> None:
    """Raise an error for a file ending that cannot be written, before any work. `others`: endings besides those of pictures."""
    known = (*ENDINGS, *others)
    if ending not in known:
        raise UsageError(f"a picture cannot be written as {ending or 'a file without ending'}: use {', '.join(known)}")
    if ending in (".png", ".pdf"):
        _converter(ending)


def _converter(ending: str) -> Any:
    return import_optional("cairosvg", f"a {ending} picture", ", or write .svg")


def bare(picture: str) -> str:
    """The picture without its own style sheet, for a page whose sheet has the same rules."""
    return re.sub(r"<style>.*?</style>", "", picture, flags=re.DOTALL)


def svg_text(x: float, y: float, text: str, style: str, more: str) -> str:
    """Text at a place, in a style of the sheet."""
    return f'<text class="lk-{style}" x="{x:.1f}" y="{y:.1f}" {more}>{escape(printable(text))}</text>'


def printable(text: str) -> str:
    """The text without characters that XML forbids."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
