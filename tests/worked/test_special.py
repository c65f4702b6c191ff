"""Distribution functions and quantiles against SciPy."""

import math

import pytest

from likely.bayes import special

stats = pytest.importorskip("scipy.stats", reason="SciPy IS NOT INSTALLED: the special functions are not compared")

SHAPES = [(0.5, 0.5), (1, 1), (2, 5), (0.01, 3), (30, 2), (12.5, 900), (1e4, 2e4), (3e6, 1e6), (1, 1e6)]
PROBABILITIES = [1e-9, 0.001, 0.025, 0.2, 0.5, 0.7, 0.975, 0.999]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_beta(a: float, b: float) -> None:
    for p in PROBABILITIES:
        x = special.beta_quantile(a, b, p)
        assert x == pytest.approx(stats.beta.ppf(p, a, b), rel=1e-11, abs=1e-14)
        if 0 < x < 1:
            assert special.beta_cdf(a, b, x)[0] == pytest.approx(p, rel=1e-10)
    mean = a / (a + b)
    assert special.beta_cdf(a, b, mean)[0] == pytest.approx(stats.beta.cdf(mean, a, b), rel=1e-12)
    assert special.beta_cdf(a, b, mean)[1] == pytest.approx(stats.beta.sf(mean, a, b), rel=1e-12)
    density = special.log_beta_density(a, b, mean) - math.log(mean) - math.log1p(-mean)
    assert density == pytest.approx(stats.beta.logpdf(mean, a, b), abs=1e-8)  # SciPy's own error with millions of counts


@pytest.mark.parametrize("shape", [0.01, 0.5, 1, 3, 20, 1e3, 1e6])
def test_gamma(shape: float) -> None:
    for p in PROBABILITIES:
        x = special.gamma_quantile(shape, p)
        assert x == pytest.approx(stats.gamma.ppf(p, shape), rel=1e-11 if shape < 1e5 else 1e-9)
        assert x == 0.0 or special.gamma_cdf(shape, x)[0] == pytest.approx(p, rel=1e-10)
    assert special.gamma_cdf(shape, shape)[0] == pytest.approx(stats.gamma.cdf(shape, shape), rel=1e-12)
    assert special.gamma_cdf(shape, 3 * shape)[1] == pytest.approx(stats.gamma.sf(3 * shape, shape), rel=1e-9)


@pytest.mark.parametrize("degrees", [0.5, 1, 2, 5.5, 30, 1e4, 1e7])
def test_student(degrees: float) -> None:
    for p in PROBABILITIES:
        assert special.student_quantile(degrees, p) == pytest.approx(stats.t.ppf(p, degrees), rel=1e-11, abs=1e-14)
    for t in (-3.0, -0.2, 0.0, 1.5, 8.0):
        assert special.student_cdf(degrees, t) == pytest.approx(stats.t.cdf(t, degrees), rel=1e-12)


def test_normal() -> None:
    for p in PROBABILITIES:
        assert special.normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-13, abs=1e-15)
    assert special.normal_cdf(-9.0) == pytest.approx(stats.norm.cdf(-9.0), rel=1e-12)


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_log_beta(a: float, b: float) -> None:
    from scipy.special import betaln

    assert special.log_beta(a, b) == pytest.approx(betaln(a, b), rel=1e-13, abs=1e-13)


def test_digits_are_kept_with_millions_of_counts() -> None:
    """Reference values computed with forty digits."""
    density = special.log_beta_density(3e6, 1e6, 0.75) - math.log(0.75) - math.log(0.25)
    assert density == pytest.approx(7.518952052845467615052777851441399474917, abs=1e-14)
    assert special.gamma_cdf(1e6, 994013.8460490515)[0] == pytest.approx(9.999999999993217441427809562603981e-10, rel=1e-13)
