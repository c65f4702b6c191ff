"""Models derived again from the same tally: under another prior, family or averaging, or with the calibration fitted again."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from likely.calibration import calibrate
from likely.errors import LikelyWarning, UsageError, no_column
from likely.families import Block, family
from likely.model.parameters import fit_stages
from likely.priors import Priors, priors
from likely.tally import Tally

if TYPE_CHECKING:
    from likely.model.model import Model

MOST_NAMED = 5  # columns in a warning
NO_ROWS = "the model holds no rows of its table; learn it anew from the data, with rows"


def relearned(model: Model, smoothing: Any, class_prior: Any, families: Any, average: bool | None) -> Model:
    """Copy of the model with these settings; None keeps the present one."""
    tally = model.tally
    if families is not None:
        _refuse_unknown(families, tally.blocks)
        tally = replace(tally, blocks=tuple(_with_family(block, families) for block in tally.blocks))
    prior = model.prior
    if smoothing is not None:
        own = priors(smoothing, None, plain=tally.sample is None and not model.frozen, blocks=tally.blocks)
        prior = replace(own, classes=prior.classes)
    if class_prior is not None:
        prior = replace(prior, classes=priors(1.0, class_prior, model.classes).classes)
    average = model.average if average is None else bool(average)
    tally = with_named_values(tally.pruned(model.declared), prior)
    other = replace(model, tally=tally, prior=prior, average=average)
    if model.frozen and not (smoothing is None and class_prior is None and families is None):
        if prior.default.chosen or model.stages:
            raise UsageError(f"the calibration would have to be fitted again: {NO_ROWS}")
        return replace(other, calibration=None)
    if average and not model.average:
        warn_of_unaveraged(other)
    return other.recalibrate() if tally.sample is not None else other


def warn_of_unaveraged(model: Model) -> None:
    """Warn of columns that averaging leaves as they are, because their family has no marginal likelihood to average by."""
    found = [block for i, block in enumerate(model.blocks) if model.average and not _has_arc(model, i)]
    if found:
        named = ", ".join(f"column {block.name!r} ({block.family.name})" for block in found[:MOST_NAMED])
        more = f" and {len(found) - MOST_NAMED:,} more columns" if len(found) > MOST_NAMED else ""
        warnings.warn(
            f"averaging changes nothing of {named}{more}: a family without a marginal likelihood in closed form always depends "
            "on the class",
            LikelyWarning,
            stacklevel=3,
        )


def _has_arc(model: Model, i: int) -> bool:
    try:
        return model.arc(i) is not None
    except UsageError:  # an improper prior, which is refused when the parameters are derived
        return True


def _with_family(block: Block, families: Any) -> Block:
    by_column = isinstance(families, Mapping)
    named = (
        [families[key] for key in (block.columns, *block.names, "*") if key in families] if by_column else [families]
    )
    given = named[0] if named else None
    if given is None:
        return block
    other = family(given)
    if not other.counts_like(block.family):
        for_all = not by_column or not any(key in families for key in (block.columns, *block.names))
        if for_all and type(other) is not type(block.family):
            return block
        raise UsageError(
            f"column {block.name!r} was counted as {block.family.name}: another family needs the data again (learn anew)"
        )
    return replace(block, family=other)


def with_named_values(tally: Tally, prior: Priors) -> Tally:
    """The tally with entries for the values that a prior names, even if no row has them yet."""
    prior.check(tally.blocks)
    return tally.with_values(prior.named(tally.schema, tally.blocks))


def _refuse_unknown(families: Any, blocks: Sequence[Block]) -> None:
    """Refuse families of columns that the model does not have."""
    known = {key for block in blocks for key in (block.columns, *block.names)}
    odd = [key for key in families if key not in known and key != "*"] if isinstance(families, Mapping) else []
    if odd:
        names = [block.name for block in blocks]
        raise no_column("the model", odd[0], names)


def recalibrated(model: Model) -> Model:
    """Copy of the model whose weights and interactions are fitted again."""
    if model.frozen:
        raise UsageError(f"the calibration cannot be fitted again: {NO_ROWS}")
    found = fit_stages(model.tally)
    stages = {name: curve for name, (curve, _) in found.items()}
    if not model.calibrates:
        return replace(model, stages=stages, calibration=None)
    documents = {name: left_out for name, (_, left_out) in found.items()}
    calibration = calibrate(model.tally, model.plain_parameters, model.dependence, documents, model.prior)
    fitted = replace(model, stages=stages, calibration=calibration)
    type(model).plain_parameters.copy_value(model, fitted)  # of the same tally and prior: derived once
    return fitted


def is_stale(model: Model) -> bool:
    """Whether rows were counted or forgotten since weights and interactions were fitted."""
    named = {block.name: s for block, s in zip(model.blocks, model.tally.statistics, strict=True)}
    fitted = model.calibration
    if model.calibrates if fitted is None else fitted.counted != float(model.tally.classes.sum()):
        return True
    return any(float(named[name].weight().sum()) != stage.documents for name, stage in model.stages.items())
