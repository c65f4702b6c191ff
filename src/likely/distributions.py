"""Distributions by name: density or probability, distribution function, quantiles, intervals and draws."""

from likely.bayes.continuous import Beta, Distribution, Gamma, InverseGamma, Normal, Student
from likely.bayes.discrete import (
    BetaBinomial,
    Binomial,
    Categorical,
    Multinomial,
    MultivariateBernoulli,
    NegativeBinomial,
    Poisson,
)
from likely.bayes.discrete import bernoulli as Bernoulli  # noqa: N812 - a distribution like the others

__all__ = [
    "Bernoulli",
    "Beta",
    "BetaBinomial",
    "Binomial",
    "Categorical",
    "Distribution",
    "Gamma",
    "InverseGamma",
    "Multinomial",
    "MultivariateBernoulli",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "Student",
]
