"""Calibration of a model fitted again from the sample of rows that it keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from likely.calibration import calibrate
from likely.errors import UsageError
from likely.model.parameters import fit_stages

if TYPE_CHECKING:
    from likely.model.model import Model

NO_ROWS = "the model holds no rows of its table; learn it anew from the data, with rows"


def recalibrated(model: Model) -> Model:
    """Copy of the model whose weights and interactions are fitted again."""
    if model.frozen:
        raise UsageError(f"the calibration cannot be fitted again: {NO_ROWS}")
    found = fit_stages(model.tally)
    stages = {name: curve for name, (curve, _) in found.items()}
    if not model.calibrates:
        return replace(model, stages=stages, calibration=None)
    documents = {name: left_out for name, (_, left_out) in found.items()}
    calibration = calibrate(model.tally, model.plain_parameters, model.dependence, documents)
    fitted = replace(model, stages=stages, calibration=calibration)
    vars(fitted)["plain_parameters"] = model.plain_parameters  # of the same tally and prior: derived once
    return fitted


def is_stale(model: Model) -> bool:
    """Whether rows were counted or forgotten since weights and interactions were fitted."""
    named = {block.name: s for block, s in zip(model.blocks, model.tally.statistics, strict=True)}
    fitted = model.calibration
    if model.calibrates if fitted is None else fitted.counted != float(model.tally.classes.sum()):
        return True
    return any(float(named[name].weight().sum()) != stage.documents for name, stage in model.stages.items())
