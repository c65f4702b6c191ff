"""The plan of a mixture: columns and families without a target, and fixed parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likely.engines import Plan
from likely.engines.planning import plan_columns
from likely.engines.targets import as_names
from likely.errors import DataError, UsageError, no_column
from likely.families import family as family_of
from likely.latent import em
from likely.schema import TEXT
from likely.sources import Source, require_rows

TARGET = "cluster"


def plan_clusters(
    source: Source,
    families: Any = None,
    joint: Sequence[Sequence[str]] = (),
    skip: Sequence[str] = (),
    *,
    weights: str | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of all columns, as for learning, but without a target."""
    first = next(iter(source.batches()), None)
    if first is None or first.rows == 0:
        require_rows(0, source.label)
    assert first is not None
    names = list(first.names)
    skip = as_names(skip)
    for wanted in skip:
        if wanted not in names:
            raise no_column(source.label, wanted, names)
    plan = plan_columns(first, [n for n in names if n not in skip], _target(names), families, joint, plain=True)
    if not plan.blocks:
        raise DataError(f"{source.label} has no column to cluster by: {dict(plan.ignored)}")
    asked = tuple((name, "asked for") for name in skip if name != weights)
    return with_fixed(replace(plan, weights=weights, ignored=(*asked, *plan.ignored)), fixed, families)


def with_fixed(plan: Plan, fixed: Mapping[str, Any] | None, families: Any = None) -> Plan:
    """The plan with fixed variances, and texts as EM counts them."""
    odd = sorted(set(fixed or {}) - {"variance", "weights"})
    if odd:
        raise UsageError(f"fixed={dict(fixed or {})!r}: {odd[0]!r} cannot be fixed, only 'variance' and 'weights'")
    variance, blocks = (fixed or {}).get("variance"), []
    for block in em.plan_hidden(plan).blocks:
        made = block.family
        if variance is not None:
            own = variance.get(block.columns[0]) if isinstance(variance, Mapping) else variance
            made = made.with_known_variance(own)
        if made.column_kind == TEXT and families in (None, "auto"):
            made = family_of(type(made), **made.settings() | {"counts": "log"})  # ten occurrences are no tenfold evidence
        blocks.append(replace(block, family=made))
    return replace(plan, blocks=tuple(blocks))


def equal_weights(fixed: Mapping[str, Any] | None) -> bool | Sequence[float]:
    """The component weights in `fixed`: True for equal ones, False if they are free, or the weights themselves."""
    given = (fixed or {}).get("weights")
    if given is None:
        return False
    if isinstance(given, str):
        if given != "equal":
            raise UsageError(f"fixed weights are 'equal' or a list of probabilities, not {given!r}")
        return True
    weights = [float(weight) for weight in given]
    if min(weights, default=-1.0) < 0 or not np.isclose(sum(weights), 1.0):
        raise UsageError(f"fixed weights {weights} are no probabilities: they must be zero or more and sum to 1")
    return weights


def _target(names: Sequence[str]) -> str:
    """A name for the column of clusters that the table does not have."""
    target = TARGET
    while target in names:
        target += "_"
    return target
