"""Escaping of text in SVG. `xml.sax.saxutils` does the same, and loads the modules of HTTP for it."""

from __future__ import annotations

from html import escape as escape_html

__all__ = ["escape", "escape_attribute"]


def escape(text: str) -> str:
    """The text between tags."""
    return escape_html(text, quote=False)


def escape_attribute(text: str) -> str:
    """The text between double quotes."""
    return escape(text).replace('"', "&quot;")
