"""Rows to tally, and parameters with rows to log joint: the two verbs of an engine, here in memory."""

from __future__ import annotations

from likely.engines.memory import Plan, settled, tally_source
from likely.engines.score import Scorer

__all__ = ["Plan", "Scorer", "settled", "tally_source"]
