"""Display classes in the style of scikit-learn: numbers of a fitted model, drawn by matplotlib on any axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.errors import UsageError, did_you_mean, import_optional, no_column
from likely.evaluation.feature_importance import importance
from likely.model.effects import effects
from likely.model.ledger import Ledger
from likely.model.ledger_picture import waterfall_steps
from likely.model.model import Model
from likely.model.model_picture import nomogram_of
from likely.plots.axes import LIGHT

TWO_ERRORS = 1.96
FOR, AGAINST, NEUTRAL = LIGHT[0], LIGHT[1], "#8a96a3"
LINE = 0.32  # inches of a line of bars


class _Display:
    """Base class of displays: drawn on matplotlib axes, which they keep."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display
            The display itself, with `ax_` and `figure_`.
        """
        self._draw(ax)
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError

    def _axes_for(self, ax: Any, lines: float, title: str) -> Any:
        """The axes to draw on: the given ones, else those of a new figure that is high enough for so many lines."""
        pyplot = import_optional("matplotlib.pyplot", f"likely.{type(self).__name__}", ", or take .plot() of the model (SVG)")
        if ax is None:
            _, ax = pyplot.subplots(figsize=(7.0, 1.6 + LINE * lines), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        ax.set_title(_plain(title))
        ax.spines[["top", "right"]].set_visible(False)
        return ax


class EffectDisplay(_Display):
    """Weight of evidence of a column, value by value or along a number, with two standard errors.

    Use `from_estimator` to make one; the numbers given to it are kept as attributes of the same names.

    Parameters
    ----------
    column : str
        The column.
    label : class
        The class that the evidence is for, against all others.
    levels : sequence of str
        Values, or bins of a number.
    weights : array
        Weight of evidence of each level, in nats.
    errors : array
        Standard error of each weight.
    values : array or None, default=None
        Of a number the middle of each bin, or the points of a density.
    missing : float or None, default=None
        Weight of evidence of a missing cell; None where no cell was missing.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after `plot`.
    figure_ : matplotlib Figure
        Their figure.
    """

    def __init__(
        self, column: str, label: Any, levels: Sequence[str], weights: ArrayLike, errors: ArrayLike, *,
        values: ArrayLike | None = None, missing: float | None = None,
    ) -> None:  # fmt: skip
        self.column, self.label, self.levels = column, label, tuple(levels)
        self.weights, self.errors = np.asarray(weights, float), np.asarray(errors, float)
        self.values = None if values is None else np.asarray(values, float)
        self.missing = missing

    @classmethod
    def from_estimator(cls, estimator: Any, column: str, *, label: Any = None, ax: Any = None) -> Self:
        """The effect of a column of a fitted estimator, drawn.

        Parameters
        ----------
        estimator : NaiveBayes, Model, or Pipeline that ends in one
            The estimator.
        column : str
            A column that is modelled alone.
        label : class or None, default=None
            The class that the evidence is for; of two the second by default, else the first.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        EffectDisplay
            The display.
        """
        model = _model(estimator)
        found = effects(model)
        if column not in found:
            raise no_column("the estimator", column, list(found))
        effect, c = found[column], _class(model, label)
        numeric = effect.kind == "number"
        lacking = float(effect.missing_weights[c]) if effect.missing_counts.sum() > 0 else None
        made = cls(
            column, model.classes[c], effect.labels, effect.weights[:, c], effect.weight_errors[:, c],
            values=effect.values if numeric else None, missing=lacking,
        )  # fmt: skip
        return made.plot(ax)

    def _draw(self, ax: Any) -> None:
        more = [] if self.missing is None else [("missing", self.missing, 0.0)]
        lines = 8 if self.values is not None else len(self.levels) + len(more)
        ax = self._axes_for(ax, lines, f"Evidence of {self.column} for {self.label}")
        if self.values is None:
            rows = [*zip(self.levels, self.weights.tolist(), self.errors.tolist(), strict=True), *more]
            _bars(ax, [name for name, _, _ in rows], [w for _, w, _ in rows], errors=[TWO_ERRORS * e for *_, e in rows])
            ax.set_xlabel("weight of evidence (nats)")
            return
        ax.axhline(0.0, color=NEUTRAL, linewidth=1)
        width = TWO_ERRORS * self.errors
        ax.fill_between(self.values, self.weights - width, self.weights + width, color=FOR, alpha=0.18, linewidth=0)
        ax.plot(self.values, self.weights, color=FOR, linewidth=2)
        if self.missing is not None:
            ax.axhline(self.missing, color=AGAINST, linestyle="--", linewidth=1.5, label="missing")
            ax.legend(frameon=False)
        ax.set(xlabel=_plain(self.column), ylabel="weight of evidence (nats)")


class NomogramDisplay(_Display):
    """Nomogram of a class: each column a line, each of its values at its weight of evidence.

    Use `from_estimator` to make one; the numbers given to it are kept as attributes of the same names.

    Parameters
    ----------
    title : str
        Title of the picture.
    columns : sequence of str
        Names of the lines, the one with the most evidence first.
    levels : sequence of sequence of str
        Values of each column.
    weights : sequence of array
        Weight of evidence of each value, in nats.
    prior : float
        Log-odds of the class before any column; 0 where there are more than two classes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after `plot`.
    figure_ : matplotlib Figure
        Their figure.
    """

    def __init__(
        self, title: str, columns: Sequence[str], levels: Sequence[Sequence[str]], weights: Sequence[ArrayLike], prior: float
    ) -> None:
        self.title, self.columns, self.prior = title, tuple(columns), prior
        self.levels = tuple(map(tuple, levels))
        self.weights = tuple(np.asarray(w, float) for w in weights)

    @classmethod
    def from_estimator(cls, estimator: Any, *, label: Any = None, top: int = 10, ax: Any = None) -> Self:
        """The nomogram of a fitted estimator, drawn.

        Parameters
        ----------
        estimator : NaiveBayes, Model, or Pipeline that ends in one
            The estimator.
        label : class or None, default=None
            The class; of two the second by default, else the first.
        top : int, default=10
            Number of columns, those with the most evidence.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        NomogramDisplay
            The display.
        """
        model = _model(estimator)
        found = nomogram_of(model, model.classes[_class(model, label)], top)
        scales = found.scales
        made = cls(
            found.title, [s.name for s in scales], [s.labels for s in scales], [s.weights for s in scales], found.prior
        )
        return made.plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._axes_for(ax, 2 * len(self.columns), self.title)
        ax.axvline(0.0, color=NEUTRAL, linewidth=1)
        for y, (levels, weights) in enumerate(zip(self.levels, self.weights, strict=True)):
            ax.plot([weights.min(), weights.max()], [y, y], color=NEUTRAL, linewidth=1.5)
            ax.plot(weights, np.full(len(weights), y), "o", color=FOR, markersize=5)
            for i, place, aligned in ((int(weights.argmin()), 9, "left"), (int(weights.argmax()), -17, "right")):
                # The ends are labelled on different sides of the line, towards its middle: they cannot meet.
                ax.annotate(_plain(_short(levels[i])), (weights[i], y), (0, place), textcoords="offset points",
                            horizontalalignment=aligned, fontsize="small")  # fmt: skip
        ax.set_yticks(range(len(self.columns)), [_plain(_short(name)) for name in self.columns])
        ax.set_ylim(len(self.columns) - 0.4, -0.6)
        ax.set_xlabel(f"weight of evidence (nats), to be added to {self.prior:+.2f}")


class ExplanationDisplay(_Display):
    """Waterfall of one prediction: from the prior log-odds, column by column, to the posterior ones.

    Use `from_estimator` to make one; the numbers given to it are kept as attributes of the same names.

    Parameters
    ----------
    label : class
        The class that the log-odds are of.
    against : class
        The class that it is compared with.
    prior : float
        Log-odds of the prior.
    steps : sequence of (str, float)
        Name and weight of each step.
    probability : float
        Posterior probability of the class.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after `plot`.
    figure_ : matplotlib Figure
        Their figure.
    """

    def __init__(
        self, label: Any, against: Any, prior: float, steps: Sequence[tuple[str, float]], probability: float
    ) -> None:
        self.label, self.against, self.prior = label, against, prior
        self.steps, self.probability = tuple(steps), probability

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, label: Any = None, top: int = 12, ax: Any = None) -> Self:
        """The explanation of one row by a fitted estimator, drawn.

        Parameters
        ----------
        estimator : NaiveBayes, TextNaiveBayes, Model, or Ledger
            The estimator, or an explanation that was made before.
        X : row
            What `explain` takes: a dict, or a table of one row. Not looked at with a Ledger.
        label : class or None, default=None
            The class; the most probable one by default.
        top : int, default=12
            Number of the strongest steps; the others are summed.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ExplanationDisplay
            The display.
        """
        ledger = estimator if isinstance(estimator, Ledger) else estimator.explain(X)
        found = waterfall_steps(ledger, label, top)
        return cls(found.label, found.against, found.prior, found.steps, found.probability).plot(ax)

    def _draw(self, ax: Any) -> None:
        title = f"Why {self.label}, against {self.against}: {100 * self.probability:.1f} %"
        ax = self._axes_for(ax, len(self.steps) + 2, title)
        weights = [weight for _, weight in self.steps]
        reached = (self.prior + np.cumsum([0.0, *weights])).tolist()
        names = ["prior", *(name for name, _ in self.steps), "posterior"]
        _bars(ax, names, [self.prior, *weights, reached[-1]], starts=[0.0, *reached[:-1], 0.0], totals=(0, len(names) - 1))
        ax.set_xlabel("log-odds")


class ImportanceDisplay(_Display):
    """Feature importance of the columns of a fitted estimator, without permuting or refitting.

    Use `from_estimator` to make one; the numbers given to it are kept as attributes of the same names.

    Parameters
    ----------
    columns : sequence of str
        The columns, the most important first.
    importances : array
        Importance of each.
    by : str
        What it is, as `likely.importance` names it.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after `plot`.
    figure_ : matplotlib Figure
        Their figure.
    """

    def __init__(self, columns: Sequence[str], importances: ArrayLike, by: str) -> None:
        self.columns, self.importances, self.by = tuple(columns), np.asarray(importances, float), by

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, by: str = "mutual_information", top: int = 20, ax: Any = None
    ) -> Self:
        """The importance of the columns of a fitted estimator, drawn.

        Parameters
        ----------
        estimator : NaiveBayes, Model, or Pipeline that ends in one
            The estimator.
        by : str, default="mutual_information"
            The figure: "mutual_information", "log_loss_rise", "weight" or "arc_probability".
        top : int, default=20
            Number of columns, the most important ones.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ImportanceDisplay
            The display.
        """
        rows = importance(_model(estimator))
        found = sorted(((row[by], row["column"]) for row in rows if row.get(by) is not None), key=lambda pair: -pair[0])
        if not found:
            known = [name for name in (rows[0] if rows else ()) if name != "column"]
            raise UsageError(f"by={by!r} is not there{did_you_mean(by, known)}: choose from {known}")
        return cls([name for _, name in found[:top]], [value for value, _ in found[:top]], by).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._axes_for(ax, len(self.columns), "Feature importance")
        _bars(ax, self.columns, self.importances.tolist())
        ax.set_xlabel(self.by.replace("_", " "))


def _bars(ax: Any, names: Sequence[str], widths: Sequence[float], *, starts: Sequence[float] | None = None,
          errors: Sequence[float] | None = None, totals: Sequence[int] = ()) -> None:  # fmt: skip
    """Horizontal bars from top to bottom: blue for, orange against, grey for totals."""
    colours = [NEUTRAL if i in totals else FOR if w >= 0 else AGAINST for i, w in enumerate(widths)]
    ax.barh(range(len(names)), widths, left=starts, color=colours, xerr=errors, ecolor=NEUTRAL, height=0.7)
    ax.set_yticks(range(len(names)), [_plain(_short(name)) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.axvline(0.0, color=NEUTRAL, linewidth=1)
    ax.use_sticky_edges = False  # a bar of a waterfall may begin anywhere: none should end at the frame
    ax.autoscale_view(scaley=False)


def _model(estimator: Any) -> Model:
    """The model inside an estimator, or inside the last step of a pipeline."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    found = getattr(last, "model_", last)
    if not isinstance(found, Model):
        raise UsageError(f"{type(last).__name__} holds no model: fit it, or pass a NaiveBayes or a Model")
    return found


def _class(model: Model, label: Any) -> int:
    if label is None:
        return int(len(model.classes) == 2)
    names = [str(each) for each in model.classes]
    if label not in model.classes:
        raise UsageError(f"{label!r} is no class{did_you_mean(str(label), names)}: choose from {names[:20]}")
    return model.classes.index(label)


def _short(label: str) -> str:
    return label if len(label) <= 32 else label[:31] + "…"


def _plain(label: str) -> str:
    """A label with dollar signs escaped, which would start a formula in matplotlib."""
    return label.replace("$", r"\$")
