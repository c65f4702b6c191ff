"""How probable parameters are beforehand: what `derive` makes as large as it can, together with the likelihood.

Every smoothing is the mode under a conjugate prior. EM never lets the sum of log evidence and this density fall; a
constant that no parameter can change is left out. Imagined rows that follow the whole table ("background", the overall
rate of events) are as fixed as any: the shares of a row add up to one, so no round of EM moves the table as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.errors import UsageError
from likely.families.base import Family, Imagined, Parameters, imagined_rows
from likely.families.binned import Binned
from likely.families.categorical import Bernoulli, Categorical
from likely.families.counting import Binomial, Multinomial, Poisson
from likely.families.forms import Lookup
from likely.families.gaussian import Gaussian
from likely.families.joint import Joint
from likely.families.statistics import Array
from likely.families.text import Text
from likely.schema import Column


def log_density(
    family: Family, columns: tuple[Column, ...], statistic: Any, prior: Imagined, parameters: Parameters
) -> float:
    """The log density of a block's parameters under its prior, up to a constant."""
    form: Any = parameters.form
    if isinstance(family, Categorical | Bernoulli):
        values = (False, True) if isinstance(family, Bernoulli) else columns[0].values
        return _weighed(imagined_rows(prior, values, statistic.seen), form.table[: len(values)].T)
    if isinstance(family, Binomial):
        return _weighed(imagined_rows(prior, (False, True), statistic.seen), form.slope[::-1].T)
    if isinstance(family, Multinomial):
        return _weighed(imagined_rows(prior, [c.name for c in columns], statistic.seen), form.slope.T)
    if isinstance(family, Binned):  # cut by all rows together, so that the bins stay where they are
        bins = len(form.table) - 2
        return _weighed(np.broadcast_to(prior.pseudocounts(range(bins)), (form.table.shape[1], bins)), form.table[:-2].T)
    if isinstance(family, Poisson):
        return _rates(statistic.seen, prior.rows, form)
    if isinstance(family, Gaussian):
        return 0.0 if family.variance is not None else _bells(prior.normal, form)
    if isinstance(family, Joint):
        return _block(statistic, prior, form)
    if isinstance(family, Text):
        return _words(family, form)
    raise UsageError(f"the family {family.name} cannot be learned by EM")


def _weighed(imagined: Array, logs: Array) -> float:
    """Imagined rows times the log of their shares; where none is imagined, nothing is asked."""
    return float(np.where(imagined > 0, imagined * np.where(imagined > 0, logs, 0.0), 0.0).sum())


def _rates(seen: Array, extra: float, form: Any) -> float:
    events, n = seen[:, 1].sum(), seen[:, 0].sum()
    overall = (events or min(extra, 1.0)) / n if n > 0 else 1.0
    return _weighed(np.full(form.slope.shape, extra * overall), form.slope) + extra * float(form.level.sum())


def _bells(normal: tuple[float, float, float, float] | None, form: Any) -> float:
    if normal is None:
        return 0.0
    mean, strength, shape, scale = normal
    variance = -0.5 / form.curve
    apart = 2 * scale + strength * (form.mean - mean) ** 2
    return float((-(shape + 1.5) * np.log(variance) - apart / (2 * variance)).sum())


def _block(cloud: Any, prior: Imagined, form: Any) -> float:
    """The cells of a table and the Gaussians within them."""
    size = cloud.n.shape[1:]
    cells = max(int(np.prod(size)), 1)
    pseudo = prior.pseudocounts(range(cells)).reshape(size) if size else np.zeros(())
    inner = tuple(slice(0, s) for s in size)
    if isinstance(form, Lookup):
        padded = form.table.T.reshape(cloud.n.shape[0], *(s + 2 for s in size))
        return _weighed(np.broadcast_to(pseudo, cloud.n.shape), padded[(slice(None), *inner)])
    total = 0.0
    if size:
        weight = form.weight.reshape(cloud.n.shape[0], *form.lines)[(slice(None), *inner)]
        total = _weighed(np.broadcast_to(pseudo, cloud.n.shape), weight)
    scatter = getattr(prior, "scatter", None)
    if scatter is None:
        return total
    rows, spread = scatter
    places = np.arange(form.weight.shape[1]).reshape(form.lines or (1,))[inner or (slice(None),)].reshape(-1)
    covariance = form.covariance[:, places]
    inverse = np.linalg.inv(covariance)
    traces = np.einsum("kgii,i->kg", inverse, np.broadcast_to(spread, covariance.shape[-1:]))
    return total - 0.5 * float((rows * np.linalg.slogdet(covariance)[1] + traces).sum())


def _words(family: Text, form: Any) -> float:
    refuse_text(family)
    alive = form.words.seen.any(1)
    seen = form.words.seen[alive]
    if family.kind == "bernoulli":
        share = (seen + form.pseudocount) / (form.words.documents + 2 * form.pseudocount)
        return _weighed(np.array(form.pseudocount), np.log(share) + np.log1p(-share)) if form.pseudocount else 0.0
    overall = seen.sum(1, keepdims=True)
    extra = form.pseudocount + form.background * overall / max(float(overall.sum()), 1e-300)
    return _weighed(np.broadcast_to(extra, seen.shape), form.table[alive])


def refuse_text(family: Text) -> None:
    """EM counts what it scores: a model of texts that scores something else has no likelihood to climb."""
    if family.kind == "complement" or family.idf or family.limit:
        raise UsageError(
            f"{family} cannot be learned from rows without labels: choose kind='multinomial' or 'bernoulli', no idf, no limit"
        )
