"""Tables of parameters with credible intervals, posteriors of parameters, and draws from them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.bayes.conjugate import DirichletPosterior
from likely.bayes.distribution import Distribution, checked_level
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.calibration.averaging import at_posterior_mean
from likely.errors import LikelyWarning, UsageError, did_you_mean
from likely.families.base import Readable
from likely.plots.shown import frame, text_lines

if TYPE_CHECKING:
    from likely.model.model import Model

MOST_LINES = 60
SURE = 1e-9  # a count this near to a whole number is one
TEXTS = ("column", "class", "value", "from", "to")
Marginals = Callable[[Mapping[str, Any]], Mapping[str, Distribution]]


class ParameterTable(Readable):
    """The parameters of one column or block: a sequence of dicts that prints as a table with credible intervals.

    Parameters
    ----------
    name : str
        The column or block.
    rows : sequence of dict
        Its parameters, one dict a line.
    marginals : callable
        From a line to the marginal posteriors of its parameters, by name.
    without : str, default=""
        Why there are no credible intervals; empty where there are.
    """

    def __init__(self, name: str, rows: Sequence[dict[str, Any]], marginals: Marginals, without: str = "") -> None:
        self.name, self.rows, self.marginals = name, rows, marginals
        self.without_intervals = without  # why there are none

    def __len__(self) -> int:
        return len(self.rows)

    def line(self, number: int) -> dict[str, Any]:
        """One line of the table.

        Parameters
        ----------
        number : int
            Which line, from 0.
        """
        return self.rows[number]

    def intervals(self, level: float = 0.95) -> list[dict[str, Any]]:
        """The lines, each with `interval`: for every parameter that has a posterior, the central credible interval.

        Parameters
        ----------
        level : float, default=0.95
            Probability inside the intervals.

        Returns
        -------
        list of dict
            The lines of the table.
        """
        if self.without_intervals:
            raise UsageError(self.without_intervals)
        checked_level(level)
        return [{**row, "interval": self._interval(row, level)} for row in self.rows]

    def _interval(self, row: Mapping[str, Any], level: float = 0.95) -> dict[str, tuple[float, float]]:
        if self.without_intervals:
            return {}
        try:
            return {name: each.interval(level) for name, each in self.marginals(row).items()}
        except UsageError:  # an improper posterior: too little was counted in this class
            return {}

    def cells(self, most: int | None = MOST_LINES) -> tuple[list[str], list[list[str]]]:
        """Head and body of the printed table; parameters with a posterior are followed by their interval.

        Parameters
        ----------
        most : int or None
            Number of lines at most; None: all.
        """
        lines = self.rows[:most]
        keys = list(lines[0]) if len(lines) else []
        keys = [key for key in keys if key != "column" or len({line["column"] for line in lines}) > 1]
        between = [self._interval(line) for line in lines]
        head: list[str] = []
        for key in keys:
            head += [key, "95 % interval"] if any(key in each for each in between) else [key]
        body = []
        for line, each in zip(lines, between, strict=True):
            row: list[str] = []
            for key in keys:
                row.append(_shown(line.get(key)))
                if any(key in other for other in between):
                    row.append(f"{each[key][0]:.4g} … {each[key][1]:.4g}" if key in each else "")
            body.append(row)
        return head, body

    @property
    def _more(self) -> str:
        return f"… and {len(self) - MOST_LINES:,} more" if len(self) > MOST_LINES else ""

    def __str__(self) -> str:
        if not len(self):
            return f"{self.name}: nothing was counted"
        head, body = self.cells()
        left = [i for i, name in enumerate(head) if name in TEXTS]
        lines = text_lines([head, *body], left)
        return "\n".join([self.name, *lines, *([self._more] if self._more else [])])

    __repr__ = __str__

    def to_pandas(self) -> Any:
        """The lines as a pandas data frame; needs the extra `pandas`."""
        return frame([self.line(i) for i in range(len(self))])

    def to_dict(self) -> dict[str, Any]:
        """Name and lines as plain data."""
        return {"name": self.name, "rows": [dict(self.line(i)) for i in range(len(self))]}

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        head, body = self.cells()

        def line(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        rows = "".join(line(cells, "td") for cells in body)
        note = f"<p>{self._more}</p>" if self._more else ""
        return f"<table><caption>{escape(self.name)}</caption>{line(head, 'th')}{rows}</table>{note}"


def _shown(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"{value:.6g}" if math.isfinite(value) else str(value)


class ParameterTables(dict[str, ParameterTable]):
    """Tables by column or block; a column that is modelled together with others names its block where it is asked for."""

    def __missing__(self, name: str) -> ParameterTable:
        block = next((own for own in self if name in own.split(" with ")), None)
        if block is None:
            raise KeyError(name)
        raise KeyError(f"{name!r} is modelled together with others: its parameters are those of {block!r}")


def parameter_tables(model: Model) -> dict[str, ParameterTable]:
    """The class prior, then one table for each column or block."""
    name = model.schema.target.name
    pairs = zip(model.classes, model.class_prior, model.tally.classes, strict=True)
    prior = [{"class": label, "count": float(n), "probability": float(p)} for label, p, n in pairs]
    tables = ParameterTables({name: ParameterTable(name, prior, _ClassMarginals(model), _no_class_posterior(model))})
    for i, (block, found) in enumerate(zip(model.blocks, model.block_parameters, strict=False)):
        # A table of words has a row for each word and class: it is made when somebody reads it.
        rows = list(found.rows) if isinstance(found.rows, tuple) else found.rows
        tables[block.name] = ParameterTable(block.name, rows, _Marginals(model, i), _no_posterior(model, i))
    return tables


class _ClassMarginals:
    """The marginal posteriors of the class probabilities."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(self, row: Mapping[str, Any]) -> Mapping[str, Distribution]:
        return {"probability": _class_posterior(self.model).marginal(row["class"])}


class _Marginals:
    """The marginal posteriors of the lines of one table, the posterior of each class made once."""

    def __init__(self, model: Model, i: int) -> None:
        self.model, self.i = model, i
        self.found: dict[Any, ParameterPosterior] = {}

    def __call__(self, row: Mapping[str, Any]) -> Mapping[str, Distribution]:
        if not self.found:
            self.found = _by_class(self.model, self.i)
        if row["class"] not in self.found:
            raise UsageError("this posterior is improper")
        return self.model.blocks[self.i].family.marginals(self.found[row["class"]], row)


def _by_class(model: Model, i: int) -> dict[Any, ParameterPosterior]:
    """The posterior of each class whose counts and prior give one."""
    fitted, family = at_posterior_mean(model, i), model.blocks[i].family
    return dict(zip(model.classes, family.parameter_posteriors(fitted), strict=True))


def _no_posterior(model: Model, i: int) -> str:
    """Why the parameters of a block have no posterior in the model; empty where they have one."""
    if model.calibration is not None or model.stages or model.prior.of(model.blocks[i]).chosen:
        return "there is no posterior of the parameters: the model is calibrated; learn with plain=True"
    if why := _no_whole_rows(model):
        return why
    if model.average:
        return "there is no posterior of the parameters: the model averages over columns; learn with plain=True"
    return ""


def has_expected_counts(model: Model) -> bool:
    """Whether rows were shared out among classes by EM."""
    counts = model.tally.classes
    return bool(model.weights is None and np.abs(counts - np.round(counts)).max(initial=0.0) > SURE)


def _no_whole_rows(model: Model) -> str:
    """Expected counts of EM are no counts: a posterior from them would ignore that labels are hidden."""
    why = "there is no exact posterior of the parameters: rows without a label were shared out among classes"
    return why if has_expected_counts(model) else ""


def _no_class_posterior(model: Model) -> str:
    given = isinstance(model.prior.classes, Mapping)
    return "there is no posterior of the class prior: it was given" if given else _no_whole_rows(model)


def _class_posterior(model: Model) -> ParameterPosterior:
    """Dirichlet(count + pseudocount) of the classes; without a prior of their own, their counts alone."""
    given = model.prior.classes
    if why := _no_class_posterior(model):
        raise UsageError(why)
    assert not isinstance(given, Mapping)
    counts = model.tally.classes + (0.0 if given is None else given.averaged.pseudocounts(model.classes))
    return DirichletPosterior(dict(zip(model.classes, counts.tolist(), strict=True)))


def parameter_posterior(model: Model, name: str, label: Any = None) -> ParameterPosterior:
    """The posterior of the parameters of one block in one class, or of the class prior."""
    if name == model.schema.target.name:
        return _class_posterior(model)
    names = [block.name for block in model.blocks]
    owner = {column: i for i, block in enumerate(model.blocks) for column in (*block.columns, block.name)}
    if name not in owner:
        raise UsageError(f"the model has no parameters of {name!r}{did_you_mean(name, names)}: it has {names[:20]}")
    if label not in model.classes:
        known = [str(c) for c in model.classes]
        raise UsageError(f"label={label!r} is no class{did_you_mean(str(label), known)}: choose from {list(model.classes)}")
    if why := _no_posterior(model, owner[name]):
        raise UsageError(why)
    return _by_class(model, owner[name])[label]


def draw_parameters(model: Model, n: int, seed: Any = None) -> dict[str, dict[Any, Any]]:
    """Draws from the posterior of all parameters of a plain model."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise UsageError(f"{n!r} draws: pass a whole number, one or more")
    rng = np.random.default_rng(seed)
    drawn: dict[str, dict[Any, Any]] = {}
    if not _no_class_posterior(model):
        drawn[model.schema.target.name] = _class_posterior(model).draw(int(n), rng)
    for i, block in enumerate(model.blocks):
        if why := _no_posterior(model, i):
            raise UsageError(why)
        try:
            posteriors = _by_class(model, i)
        except UsageError as error:
            warnings.warn(f"column {block.name!r} is left out: {error}", LikelyWarning, stacklevel=3)
            continue
        drawn[block.name] = {label: each.draw(int(n), rng) for label, each in posteriors.items()}
    return drawn
