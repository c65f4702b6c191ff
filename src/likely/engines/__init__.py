"""Rows to tally and rows to scores, in memory, in a database and on Spark; E-step and forward–backward.

Never: calibration.
"""

from __future__ import annotations

from likely.engines.adding import truncated
from likely.engines.memory import Plan, tally_source
from likely.engines.scorer import Scorer

__all__ = ["Plan", "Scorer", "tally_source", "truncated"]
