"""Priors: pseudocounts, m-estimates, Dirichlet, normal–inverse-gamma; by column, by class and for the classes.

Never: rows.
"""

from __future__ import annotations

from likely.priors.by_column import PRIORS, ByClass, Prior, Priors, prior, priors, textbook
from likely.priors.conjugate_priors import (
    Dirichlet,
    LeaveOneOut,
    MEstimate,
    NormalInverseGamma,
    Pseudocount,
    Spread,
)

__all__ = [
    "PRIORS", "ByClass", "Dirichlet", "LeaveOneOut", "MEstimate", "NormalInverseGamma", "Prior", "Priors", "Pseudocount",
    "Spread", "prior", "priors", "textbook",
]  # fmt: skip
