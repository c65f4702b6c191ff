"""One distribution alone: its parameters by maximum likelihood and with a prior, and how likely the values make them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, UsageError
from likely.families import Bernoulli, Binomial, Categorical, Encoded, Gaussian, Multinomial, Poisson
from likely.families import family as family_of
from likely.families.base import Family
from likely.families.forms import log_factorial
from likely.prior import Prior, Pseudocount
from likely.prior import prior as prior_of
from likely.schema import CATEGORY, NUMBER, Column, ordered
from likely.sources import open_source

Array = NDArray[np.float64]
Shares = dict[Any, float]


@dataclass(frozen=True)
class Estimate:
    """What values say of a distribution's parameters: alone (`ml`), and with the imagined ones added (`map`)."""

    family: str
    n: float
    ml: Shares
    map: Shares
    _log_likelihood: Callable[[Shares], float]

    @property
    def log_likelihood(self) -> float:
        """log P(values | parameters) at its maximum."""
        return self._log_likelihood(self.ml)

    def log_likelihood_of(self, **parameters: float) -> float:
        """log P(values | parameters) for parameters of one's own; those not named stay at their maximum."""
        return self._log_likelihood(self.ml | parameters)

    def curve(self, parameter: Any = None, points: int = 101) -> list[tuple[float, float]]:
        """The log likelihood along one parameter, the others at their maximum (shares keep their proportions)."""
        name = next(iter(self.ml)) if parameter is None else parameter
        if name not in self.ml:
            raise UsageError(f"there is no parameter {name!r}: choose one of {list(self.ml)}")
        return [(x, self._log_likelihood(self._moved(name, x))) for x in _grid(self, name, points)]

    def _moved(self, name: Any, value: float) -> Shares:
        if self.family not in ("categorical", "multinomial"):
            return self.ml | {name: value}
        rest = 1.0 - self.ml[name]
        scale = (1.0 - value) / rest if rest else 0.0
        return {k: value if k == name else p * scale for k, p in self.ml.items()}

    def to_dict(self) -> dict[str, Any]:
        """The estimate as plain data."""
        return {
            "family": self.family,
            "n": self.n,
            "ml": {str(k): v for k, v in self.ml.items()},
            "map": {str(k): v for k, v in self.map.items()},
            "log_likelihood": self.log_likelihood,
        }

    def __str__(self) -> str:
        width = max(len(str(k)) for k in self.ml)
        lines = [
            f"{self.family}, n = {self.n:g}, log likelihood {self.log_likelihood:.6f}",
            f"{'':{width}}  {'ML':>12}  {'MAP':>12}",
        ]
        lines += [f"{k!s:{width}}  {v:12.6f}  {self.map[k]:12.6f}" for k, v in self.ml.items()]
        return "\n".join(lines)


def estimate(values: Any, family: Any = "categorical", prior: Any = 0.0, *, weights: Any = None) -> Estimate:
    """The parameters of one distribution from its values; `family` and `prior` as in `learn`.

    Binomial takes pairs (k, n), multinomial a table of counts (or one row of it), all others plain values. An outcome that
    the prior names is estimated even if no value shows it.
    """
    chosen, imagined = family_of(family), prior_of(prior)
    rows, columns = _encoded(values, chosen, imagined.named)
    count = len(rows.numbers)
    w = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    if not count or w.shape != (count,) or not (w >= 0).all() or w.sum() == 0:
        raise DataError(
            f"{count} values with weights of shape {w.shape}: at least one value of positive weight is needed"
        )
    for j, column in enumerate(columns):
        bad = chosen.check(column.name, rows.numbers[:, j]) if rows.numbers.shape[1] > j else None
        if bad:
            raise DataError(f"which {bad[1]}", column=column.name, value=rows.numbers[bad[0], j].item(), row=bad[0] + 1)
    (statistic,) = chosen.count(rows, np.zeros(count, np.int64), w, 1)
    blocks = [tuple(columns)]

    def parameters(with_prior: Prior) -> Shares:
        return _named(chosen, chosen.derive(blocks, [statistic], [with_prior], ["values"])[0].rows)

    log_likelihood = _log_likelihood(chosen, statistic.arrays(), columns, rows.numbers, w)
    return Estimate(chosen.name, float(w.sum()), parameters(Pseudocount(0.0)), parameters(imagined), log_likelihood)


def _coded(values: Any, named: Sequence[Any]) -> tuple[Encoded, list[Column]]:
    """Values of a categorical distribution, with room for the outcomes that the prior names."""
    coded = next(iter(open_source({"value": list(values)}).batches())).coded("value")
    column = Column("value", CATEGORY, ordered(coded.values)).union(Column("value", CATEGORY, ordered(named)))
    place = np.array([*(column.code[column.canonical(v)] for v in coded.values), -1])
    codes = place[coded.codes - coded.low].astype(np.int32)[:, None]
    size = np.array([len(column.values)], np.int64)
    return Encoded(codes, np.zeros(1, np.int64), size, np.zeros((len(codes), 0))), [column]


def _encoded(values: Any, chosen: Family, named: Sequence[Any]) -> tuple[Encoded, list[Column]]:
    """The values as the family counts them."""
    none = np.zeros(0, np.int64)
    if isinstance(chosen, Categorical):
        return _coded(values, named)
    if isinstance(values, Mapping):
        names, table = [str(name) for name in values], np.column_stack([np.atleast_1d(v) for v in values.values()])
    else:
        table = np.asarray(values, dtype=np.float64)
        table = table[:, None] if table.ndim == 1 and not isinstance(chosen, Multinomial) else np.atleast_2d(table)
        names = ["value"] if table.shape[1] == 1 else [f"x{j}" for j in range(table.shape[1])]
    if isinstance(chosen, Multinomial) and isinstance(values, Mapping):  # a column that was never counted holds zeros
        new = [str(name) for name in named if str(name) not in names]
        names, table = [*names, *new], np.column_stack([table, np.zeros((len(table), len(new)))])
    if isinstance(chosen, Binomial) and isinstance(chosen.trials, str):
        names = ["k", "n"]
    if chosen.single and table.shape[1] != 1:
        raise UsageError(f"the family {chosen.name} takes one column of values: estimate each column on its own")
    table = np.ascontiguousarray(table, dtype=np.float64)
    return Encoded(np.zeros((len(table), 0), np.int32), none, none, table), [Column(name, NUMBER) for name in names]


def _named(chosen: Family, rows: Sequence[Mapping[str, Any]]) -> Shares:
    if isinstance(chosen, Gaussian):
        return {"mean": rows[0]["mean"], "variance": rows[0]["deviation"] ** 2}
    if isinstance(chosen, Poisson):
        return {"rate": rows[0]["rate"]}
    if isinstance(chosen, Bernoulli):
        return {"p": next(row["probability"] for row in rows if row["value"] is True)}
    if isinstance(chosen, Binomial):
        return {"p": rows[0]["probability"]}
    key = "value" if isinstance(chosen, Categorical) else "column"
    return {row[key]: row["probability"] for row in rows}


def _log_likelihood(
    chosen: Family, counted: Mapping[str, Array], columns: Sequence[Column], numbers: Array, w: Array
) -> Callable[[Shares], float]:
    """log P(values | parameters) as a function of the parameters, from what was counted."""
    if isinstance(chosen, Gaussian):
        n, mean, spread = (float(counted[part][0]) for part in ("n", "mean", "spread"))
        return lambda p: (
            -0.5 * (n * math.log(2 * math.pi * p["variance"]) + (spread + n * (mean - p["mean"]) ** 2) / p["variance"])
        )
    seen = counted["seen"][0]
    if isinstance(chosen, Poisson):
        constant = float(w @ log_factorial(numbers[:, 0]))
        return lambda p: _times(seen[1], p["rate"]) - seen[0] * p["rate"] - constant
    if isinstance(chosen, (Bernoulli, Binomial)):
        ways = 0.0
        if isinstance(chosen, Binomial):
            pair = chosen.pair(numbers)
            ways = float(
                w @ (log_factorial(pair[:, 1]) - log_factorial(pair[:, 0]) - log_factorial(pair[:, 1] - pair[:, 0]))
            )
        return lambda p: _times(seen[0], 1 - p["p"]) + _times(seen[1], p["p"]) + ways
    if isinstance(chosen, Categorical):  # values one after the other: one order, so no coefficient
        return lambda p: math.fsum(_times(seen[i], p[key]) for i, key in enumerate(columns[0].values))
    ways = float(w @ (log_factorial(numbers.sum(1)) - log_factorial(numbers).sum(1)))
    return lambda p: ways + math.fsum(_times(seen[i], p[c.name]) for i, c in enumerate(columns))


def _times(count: float, probability: float) -> float:
    """count · log probability, where nothing seen costs nothing."""
    if count == 0:
        return 0.0
    return float(count) * math.log(probability) if probability > 0 else -math.inf


def _grid(found: Estimate, name: Any, points: int) -> list[float]:
    """Where the curve is drawn: all of (0, 1) for a share, around the maximum for the rest."""
    if points < 2:
        raise UsageError(f"points={points}: at least two are needed")
    top = found.ml[name]
    if found.family in ("gaussian", "poisson"):
        wide = 4 * math.sqrt((found.ml.get("variance", top) or 1.0) / found.n)
        low, high = (top - wide, top + wide) if name == "mean" else (top / 10 + 1e-12, 3 * top + 1e-12)
        return [low + (high - low) * i / (points - 1) for i in range(points)]
    return [(i + 0.5) / points for i in range(points)]
