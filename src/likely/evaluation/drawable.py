"""Results that can be written as a picture or as figures, and the picture of a confusion matrix."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from likely.plots import svg
from likely.plots.heat_map import HeatMap, heat_map_svg
from likely.plots.svg import Svg


class Drawable:
    """A result with a picture: shown in notebooks, written as .svg, .png or .pdf, or as .json with its figures."""

    def svg(self, *how: Any, **named: Any) -> str:
        """The picture."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        raise NotImplementedError

    def _repr_svg_(self) -> str:
        return self.svg()

    def plot(self) -> Svg:
        """The picture, which `.save("x.svg")` writes; also .png and .pdf."""
        return Svg(self.svg())

    def drawn(self, ending: str, *how: Any) -> bytes:
        """Content of a file with this ending.

        Parameters
        ----------
        ending : str
            .svg, .png, .pdf or .json; .png and .pdf need the extra `images`.
        *how
            Arguments of `svg`.

        Returns
        -------
        bytes
            The content.
        """
        check_ending(ending)
        if ending == ".json":
            return (json.dumps(self.to_dict(), indent=2, allow_nan=False, default=str) + "\n").encode()
        return Svg(self.svg(*how)).content(ending)

    def save(self, path: str | Path) -> None:
        """Write the picture or the figures.

        Parameters
        ----------
        path : str or Path
            A name that ends in .svg, .png, .pdf or .json; .png and .pdf need the extra `images`.
        """
        Path(path).write_bytes(self.drawn(Path(path).suffix.lower()))


def check_ending(ending: str) -> None:
    """Refuse a file ending that cannot be written; called before the work."""
    svg.check_ending(ending, (".json",))


def confusion_svg(matrix: Any, names: Sequence[str], subtitle: str) -> Svg:
    """A confusion matrix as a heat map, shaded by the share of the true class."""
    shares = [[float(v) / max(float(sum(row)), 1e-300) for v in row] for row in matrix]
    shown = [[f"{v:,.0f}" for v in row] for row in matrix]
    tips = [
        [f"{names[i]} predicted as {names[j]}: {shown[i][j]} ({100 * shares[i][j]:.1f} %)" for j in range(len(names))]
        for i in range(len(names))
    ]
    return heat_map_svg(
        HeatMap("Confusion matrix", subtitle, "true class", "predicted class", names, names, shares, shown, tips, 1.0)
    )
