"""The sufficient statistics of a table by class, and the sample of its rows: both add.

Never: rows in bulk, smoothing.
"""

from __future__ import annotations

from likely.tally._tally import Tally

__all__ = ["Tally"]
