"""Distributions against SciPy: densities and probabilities to 1e-12, quantiles, intervals and draws."""

import math

import numpy as np
import pytest

from likely.bayes import continuous as d
from likely.bayes import discrete
from likely.errors import UsageError

stats = pytest.importorskip("scipy.stats", reason="SciPy IS NOT INSTALLED: the distributions are not compared")

CONTINUOUS = [
    (d.Normal(-2.0, 9.0), stats.norm(-2.0, 3.0)),
    (d.Student(4.5, 1.0, 2.0), stats.t(4.5, 1.0, 2.0)),
    (d.Beta(3.0, 2.0), stats.beta(3.0, 2.0)),
    (d.Gamma(2.5, 4.0), stats.gamma(2.5, scale=0.25)),
    (d.InverseGamma(3.5, 2.0), stats.invgamma(3.5, scale=2.0)),
]
COUNTS = [
    (discrete.Poisson(3.7), stats.poisson(3.7)),
    (discrete.Binomial(12, 0.3), stats.binom(12, 0.3)),
    (discrete.NegativeBinomial(2.5, 4.0), stats.nbinom(2.5, 0.8)),
]


def named(pair):
    return type(pair[0]).__name__


@pytest.mark.parametrize("pair", CONTINUOUS, ids=named)
def test_continuous(pair) -> None:
    ours, theirs = pair
    for p in (0.01, 0.3, 0.5, 0.975):
        x = theirs.ppf(p)
        assert ours.quantile(p) == pytest.approx(x, rel=1e-12)
        assert ours.cdf(x) == pytest.approx(p, rel=1e-12)
        assert ours.density(x) == pytest.approx(theirs.pdf(x), rel=1e-12)
    assert ours.mean == pytest.approx(theirs.mean())
    assert ours.variance == pytest.approx(theirs.var())
    assert ours.between(*theirs.ppf([0.2, 0.7])) == pytest.approx(0.5)
    assert ours.interval(0.9) == pytest.approx(theirs.interval(0.9))
    assert abs(ours.density(ours.mode) - max(y for _, y in ours.curve(2001))) < 1e-3
    assert stats.kstest(ours.draw(4000, 1), theirs.cdf).pvalue > 0.001


@pytest.mark.parametrize("pair", COUNTS, ids=named)
def test_counts(pair) -> None:
    ours, theirs = pair
    for k in range(12):
        assert ours.density(k) == pytest.approx(theirs.pmf(k), rel=1e-12)
        assert ours.cdf(k) == pytest.approx(theirs.cdf(k), rel=1e-12)
    assert ours.density(1.5) == 0.0
    assert ours.density(-1) == 0.0
    for p in (0.01, 0.3, 0.5, 0.975):
        assert ours.quantile(p) == theirs.ppf(p)
    assert ours.mean == pytest.approx(theirs.mean())
    assert ours.variance == pytest.approx(theirs.var())
    assert ours.between(1, 4) == pytest.approx(theirs.pmf(2) + theirs.pmf(3))
    assert ours.draw(4000, 2).mean() == pytest.approx(theirs.mean(), rel=0.1)


def test_the_notes_own_numbers() -> None:
    """Bernoulli, binomial and the integral of a Gaussian (ITEMS 54, 84 and 86)."""
    assert discrete.Binomial(1, 0.3).density(1) == pytest.approx(0.3)
    assert discrete.Binomial(4, 0.5).density(3) == pytest.approx(0.25)
    assert d.Normal(0.0, 1.0).between(-1, 1) == pytest.approx(0.6826894921370859)
    assert discrete.Categorical({"a": 0.25, "b": 0.75}).mode == "b"
    assert discrete.Categorical({"a": 0.25}).density("z") == 0.0


def test_edges_are_values_and_nonsense_is_refused() -> None:
    assert discrete.Poisson(0.0).density(0) == 1.0
    assert discrete.Binomial(5, 0.0).density(0) == 1.0
    assert discrete.Binomial(5, 1.0).quantile(1.0) == 5.0
    assert math.isnan(d.Student(1.0).mean)
    assert math.isinf(d.InverseGamma(1.0, 2.0).mean)
    with pytest.raises(UsageError, match="between 0 and 1"):
        d.Beta(1, 1).quantile(1.5)
    with pytest.raises(UsageError, match="between 0 and 1"):
        d.Beta(1, 1).interval(95)
    assert np.isnan(d.Beta(0.5, 0.5).mode)
