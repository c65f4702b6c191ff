"""The second stage: column weights by leave-one-out, interactions, discriminant, averaging over columns.

Never: files, rows in bulk.
"""

from __future__ import annotations

from likely.calibration._stages import DEPENDENCE, calibrate
from likely.calibration.calibration import Calibration, Interaction

__all__ = ["DEPENDENCE", "Calibration", "Interaction", "calibrate"]
