"""The second stage: column weights by leave-one-out, interactions, discriminant, averaging over columns.

Never: files, rows in bulk.
"""

from __future__ import annotations

from likely.calibration.calibration import Calibration, Interaction
from likely.calibration.stages import DEPENDENCE, calibrate

__all__ = ["DEPENDENCE", "Calibration", "Interaction", "calibrate"]
