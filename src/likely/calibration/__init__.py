"""What is fitted on top of the counts: how far each column is believed, which columns speak together, a bias per class."""

from __future__ import annotations

from likely.calibration.fit import DEPENDENCE, calibrate
from likely.calibration.parts import Calibration, Interaction

__all__ = ["DEPENDENCE", "Calibration", "Interaction", "calibrate"]
