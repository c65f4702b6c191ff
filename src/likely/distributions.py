"""Distributions by name: density or probability, distribution function, quantiles, intervals and draws."""

from likely.bayes.continuous import Beta, Gamma, InverseGamma, Normal, Student
from likely.bayes.discrete import BetaBinomial, Binomial, Categorical, NegativeBinomial, Poisson
from likely.bayes.discrete import bernoulli as Bernoulli  # noqa: N812 - a distribution like the others
from likely.bayes.distribution import Distribution
from likely.bayes.outcomes import Multinomial, MultivariateBernoulli

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
