"""Priors: pseudocounts, m-estimates, Dirichlet, normal–inverse-gamma; by column, by class and for the classes.

Never: rows.
"""

from __future__ import annotations

from likely.priors._by_column import PRIORS, ByClass, Prior, Priors, prior, priors, textbook
from likely.priors._conjugate_priors import (
    Dirichlet,
    GammaPrior,
    LeaveOneOut,
    MEstimate,
    NormalInverseGamma,
    Pseudocount,
    Spread,
)

__all__ = [
    "PRIORS", "ByClass", "Dirichlet", "GammaPrior", "LeaveOneOut", "MEstimate", "NormalInverseGamma", "Prior", "Priors",
    "Pseudocount", "Spread", "prior", "priors", "textbook",
]  # fmt: skip
