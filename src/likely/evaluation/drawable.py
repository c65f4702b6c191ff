"""Results that can be written as a picture or as figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from likely.errors import UsageError


class Drawable:
    """A result with a picture: shown in notebooks, written as .svg, or as .json with its figures."""

    def svg(self) -> str:
        """The picture."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        raise NotImplementedError

    def _repr_svg_(self) -> str:
        return self.svg()

    def drawn(self, ending: str) -> bytes:
        """The bytes of a file.

        Parameters
        ----------
        ending : ".svg" or ".json"
            The ending of its name.

        Returns
        -------
        bytes
            The content.
        """
        check_ending(ending)
        if ending == ".json":
            return (json.dumps(self.to_dict(), indent=2, allow_nan=False, default=str) + "\n").encode()
        return self.svg().encode()

    def save(self, path: str | Path) -> None:
        """Write the picture or the figures.

        Parameters
        ----------
        path : str or path
            A file that ends in .svg or .json.
        """
        Path(path).write_bytes(self.drawn(Path(path).suffix.lower()))


def check_ending(ending: str) -> None:
    """It can be written so: checked before the work, not after it."""
    if ending not in (".svg", ".json"):
        raise UsageError(f"it cannot be written as {ending or 'a file without ending'}: use .svg or .json")
