"""Feature importance: mutual information, probability of dependence, and rise of the log loss without a column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.model.model import Model
from likely.model.selection import LeftOut
from likely.plots.shown import ShownTable, frame, html_tables
from likely.plots.svg import Svg
from likely.sources import open_source

Array = NDArray[np.float64]
MOST_DRAWN = 40  # columns of a picture


class Importance(list[dict[str, Any]]):
    """Feature importance: a list of one dict a column, which notebooks show as a table; from `importance`.

    Parameters
    ----------
    iterable : iterable of dict
        The columns with their figures.
    """

    def __repr__(self) -> str:
        best = ", ".join(str(row["column"]) for row in self._shown_tables()[0].rows[:3])
        return f"<Importance of {len(self)} columns: {best}{', …' if len(self) > 3 else ''}>"

    def _shown_tables(self) -> list[ShownTable]:
        """The columns by mutual information."""
        return [ShownTable("Feature importance, in nats", sorted(self, key=lambda row: -(row["mutual_information"] or 0.0)))]

    def _repr_html_(self) -> str:
        return html_tables(self._shown_tables())

    def to_pandas(self) -> Any:
        """One line a column, as a pandas data frame; needs the extra `pandas`."""
        return frame(self)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Column → its figures."""
        return {row["column"]: {name: value for name, value in row.items() if name != "column"} for row in self}

    def plot(self, by: str = "mutual_information") -> Svg:
        """Bar chart of the columns.

        Parameters
        ----------
        by : str, default="mutual_information"
            The figure: "mutual_information", "log_loss_rise", "weight" or "arc_probability".

        Returns
        -------
        Svg
            A picture that notebooks show and `.save("x.svg")` writes; also .png and .pdf.
        """
        from likely.plots.bars import Bar, BarChart, bars_svg

        found = [(row["column"], row[by]) for row in self if row.get(by) is not None]
        if not found:
            known = [name for name in (self[0] if self else ()) if name != "column"]
            raise UsageError(f"by={by!r} is not there: choose from {known}")
        ranked = sorted(found, key=lambda pair: -pair[1])[:MOST_DRAWN]
        rows = [(name, [Bar(value, value=f"{value:.4f}")]) for name, value in ranked]
        title = by.replace("_", " ")
        return bars_svg(BarChart("Feature importance", title, title, rows))


def importance(model: Model, data: Any = None, *, weights: str | None = None) -> Importance:
    """Feature importance: how much information each column, or block of columns, has about the class.

    Parameters
    ----------
    model : Model
        The model.
    data : path, frame, dict of columns, or None, default=None
        The rows that a plain model was learned from, for `log_loss_rise`. A calibrated model needs none: it has that from its
        own sample of rows.
    weights : str or None, default=None
        The column of row weights in `data`; None takes the model's own.

    Returns
    -------
    Importance
        A list of dicts, which prints as a table in notebooks.
        For every block: `column`; `mutual_information` of block and class, in nats (for Gaussian and Poisson columns by
        integration over the fitted densities, None for families that have none); `arc_probability`, the posterior
        probability that the block depends on the class; `weight`, for calibrated models; `log_loss_rise`, the rise of the
        leave-one-out log loss without the block and its interactions (None where there is no closed form).
    """
    fitted = model.calibration
    found = Importance(
        {
            "column": block.name,
            "mutual_information": mutual_information(model, i),
            "arc_probability": model.arc_probability[block.name],
        }
        | ({"weight": fitted.weights.get(block.name), "log_loss_rise": fitted.gains.get(block.name)} if fitted else {})
        for i, block in enumerate(model.blocks)
    )
    if data is None or fitted:
        return found
    rises = _rises(model, data, model.weights if weights is None else weights)
    return Importance(entry | {"log_loss_rise": rise} for entry, rise in zip(found, rises, strict=True))


def mutual_information(model: Model, i: int) -> float | None:
    """The mutual information of block i and the class, in nats; None if its family cannot compute it."""
    return model.blocks[i].family.mutual_information(model.fitted(i))


def _rises(model: Model, data: Any, weights: str | None) -> list[float | None]:
    """How much the leave-one-out log loss rises without each block."""
    source = model.with_target(open_source(data, model.reading), model.schema.target.name)
    kinds = {column.name: column.kind for column in model.schema.columns} | {model.schema.target.name: "category"}
    try:
        left = LeftOut.of(model, source.batches(kinds), weights)
    except UsageError:
        return [None] * len(model.blocks)
    whole = left.log_prior + sum(left.terms)
    with_all = left.log_loss(whole)
    return [left.log_loss(whole - term) - with_all for term in left.terms]
