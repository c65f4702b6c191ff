"""Distribution functions and quantiles of beta, gamma, Student and normal variables, in plain Python.

SciPy has them, but is too heavy to be a run-time dependency for a few scalars. Powers and factorials are never taken apart:
the densities are written around their mode, so that digits are kept with millions of counts (held against SciPy in the tests).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

TINY = 1e-300
EPSILON = 1e-16
MOST_TERMS = 200_000
LARGE = 10.0  # from here on, Stirling's series has all digits
# Coefficients of Stirling's series for log Γ: Bernoulli numbers B₂ₖ / 2k (2k − 1).
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def stirling_rest(x: float) -> float:
    """log Γ(x) less Stirling's (x − ½) log x − x + ½ log 2π, for x of ten or more."""
    inverse, square = 1.0 / x, 1.0 / (x * x)
    total = 0.0
    for coefficient in reversed(STIRLING):
        total = total * square + coefficient
    return total * inverse


def log1p_less(x: float) -> float:
    """log(1 + x) − x without cancellation."""
    if abs(x) > 0.3:
        return math.log1p(x) - x
    # log(1 + x) = 2 atanh(r) with r = x / (2 + x); its series converges fast.
    r = x / (2.0 + x)
    square, power, total, n = r * r, r * r * r, 0.0, 3
    while abs(power) > EPSILON * abs(total) * 0.01 or n < 9:
        total += power / n
        power *= square
        n += 2
    return 2.0 * total - x * r  # 2r − x = −x·r


def log_beta_density(a: float, b: float, x: float, rest: float | None = None) -> float:
    """log x^a (1 − x)^b / B(a, b); `rest` is 1 − x where it is known more exactly."""
    y = 1.0 - x if rest is None else rest
    if x <= 0.0 or y <= 0.0:
        return -math.inf
    if min(a, b) < LARGE:
        log_x, log_y = (math.log(x) if x < 0.5 else math.log1p(-y)), (math.log(y) if y < 0.5 else math.log1p(-x))
        return a * log_x + b * log_y - log_beta(a, b)
    middle = a / (a + b)
    away = x - middle if x <= 0.5 else (b / (a + b)) - y
    around = a * log1p_less(away / middle) + b * log1p_less(-away / (b / (a + b)))
    corrections = stirling_rest(a + b) - stirling_rest(a) - stirling_rest(b)
    return around + 0.5 * (math.log(a) + math.log(b) - math.log(a + b) - math.log(2 * math.pi)) + corrections


def log_beta(a: float, b: float) -> float:
    """log B(a, b)."""
    small, large = min(a, b), max(a, b)
    if small >= LARGE:
        ratio = small / large
        rest = stirling_rest(small) + stirling_rest(large) - stirling_rest(small + large)
        turn = (small - 0.5) * math.log(ratio / (1.0 + ratio)) - large * math.log1p(ratio)
        return 0.5 * math.log(2 * math.pi / large) + turn + rest
    if large >= LARGE:  # log Γ(large) − log Γ(large + small) by Stirling, without their large parts
        whole = large + small
        grown = (large - 0.5) * math.log1p(-small / whole) - small * (math.log(whole) - 1.0)
        return math.lgamma(small) + grown + stirling_rest(large) - stirling_rest(whole)
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _fraction(term: Callable[[int], tuple[float, float]]) -> float:
    """A continued fraction b₀ + a₁/(b₁ + a₂/(b₂ + …)) by Lentz's method; `term(i)` is (aᵢ, bᵢ)."""
    value = term(0)[1] or TINY
    c, d = value, 0.0
    for i in range(1, MOST_TERMS):
        a, b = term(i)
        d = 1.0 / ((b + a * d) or TINY)
        c = (b + a / c) or TINY
        value *= c * d
        if abs(c * d - 1.0) < EPSILON:
            break
    return value


def beta_cdf(a: float, b: float, x: float, rest: float | None = None) -> tuple[float, float]:
    """P(X ≤ x) and P(X > x) of a Beta(a, b) variable, both to full relative precision where they are small."""
    y = 1.0 - x if rest is None else rest
    if x <= 0.0:
        return 0.0, 1.0
    if y <= 0.0:
        return 1.0, 0.0
    if x > (a + 1.0) / (a + b + 2.0):
        upper, lower = beta_cdf(b, a, y, x)
        return lower, upper

    surplus = (a + b) * y - b if y < x else a - (a + b) * x  # the even part of the fraction: nothing cancels near one

    def term(n: int) -> tuple[float, float]:
        above = 0.0 if n == 0 else (a + n - 1) * (a + b + n - 1) * n * (b - n) * (x / (a + 2 * n - 1)) ** 2
        below = 0.0 if n == 0 else n + n * (b - n) * x / (a + 2 * n - 1)
        return above, below + (a + n) / (a + 2 * n + 1) * (surplus + 1.0 + n * (1.0 + y))

    low = min(math.exp(log_beta_density(a, b, x, y)) / _fraction(term), 1.0)
    return low, 1.0 - low


def gamma_cdf(shape: float, x: float) -> tuple[float, float]:
    """P(X ≤ x) and P(X > x) of a gamma variable of this shape and rate one."""
    if x <= 0.0:
        return 0.0, 1.0
    density = math.exp(log_gamma_density(shape, x))
    if x < shape + 1.0:
        total = term = 1.0 / shape
        n = shape
        for _ in range(MOST_TERMS):
            n += 1.0
            term *= x / n
            total += term
            if term < EPSILON * total:
                break
        low = min(density * total, 1.0)
        return low, 1.0 - low
    fraction = _fraction(lambda i: (0.0, x + 1.0 - shape) if i == 0 else (-i * (i - shape), x + 2 * i + 1.0 - shape))
    high = min(density / fraction, 1.0)
    return 1.0 - high, high


def log_gamma_density(shape: float, x: float) -> float:
    """log x^shape e^−x / Γ(shape)."""
    if x <= 0.0:
        return -math.inf
    if shape < LARGE:
        return shape * math.log(x) - x - math.lgamma(shape)
    around = shape * log1p_less((x - shape) / shape)
    return around + 0.5 * (math.log(shape) - math.log(2 * math.pi)) - stirling_rest(shape)


def _invert(cdf: Callable[[float], tuple[float, float]], p: float, q: float, low: float, high: float) -> float:
    """The point at which a distribution function equals p = 1 − q, by bisection and the secant method (Illinois' rule)."""

    def away(x: float) -> float:
        below, above = cdf(x)
        return q - above if q < p else below - p

    f_low, f_high, side = away(low), away(high), 0
    for _ in range(200):
        width = high - low
        if width <= 2e-16 * max(abs(low), abs(high)):
            break
        middle = high - f_high * width / (f_high - f_low) if f_high != f_low else low + width / 2
        if not low < middle < high:
            middle = low + width / 2
        f = away(middle)
        if f == 0.0:
            return middle
        if f < 0.0:
            low, f_low, f_high, side = middle, f, (f_high / 2 if side == -1 else f_high), -1
        else:
            high, f_high, f_low, side = middle, f, (f_low / 2 if side == 1 else f_low), 1
    return low + (high - low) / 2


def beta_quantile(a: float, b: float, p: float) -> float:
    """The x with P(X ≤ x) = p of a Beta(a, b) variable."""
    return beta_quantiles(a, b, p, 1.0 - p)[0]


def beta_quantiles(a: float, b: float, p: float, q: float) -> tuple[float, float]:
    """The x with P(X ≤ x) = p = 1 − q of a Beta(a, b) variable, and 1 − x, each to full relative precision."""
    if p <= 0.0 or q <= 0.0:
        return (0.0, 1.0) if p <= 0.0 else (1.0, 0.0)
    if beta_cdf(a, b, 0.5)[0] < p:  # near one, the distance from one has the digits
        rest = _invert(lambda y: beta_cdf(b, a, y), q, p, 0.0, 0.5)
        return 1.0 - rest, rest
    x = _invert(lambda x: beta_cdf(a, b, x), p, q, 0.0, 0.5)
    return x, 1.0 - x


def gamma_quantile(shape: float, p: float) -> float:
    """The x with P(X ≤ x) = p of a gamma variable of this shape and rate one."""
    if p <= 0.0 or p >= 1.0:
        return 0.0 if p <= 0.0 else math.inf
    high = shape + 10.0 * math.sqrt(shape) + 10.0
    while gamma_cdf(shape, high)[1] > 1.0 - p:
        high *= 2.0
    return _invert(lambda x: gamma_cdf(shape, x), p, 1.0 - p, 0.0, high)


def student_cdf(degrees: float, t: float) -> float:
    """P(T ≤ t) of Student's t."""
    if math.isinf(degrees):
        return normal_cdf(t)
    square = t * t
    tail = 0.5 * beta_cdf(degrees / 2, 0.5, degrees / (degrees + square), square / (degrees + square))[0]
    return tail if t < 0 else 1.0 - tail


def student_quantile(degrees: float, p: float) -> float:
    """The t with P(T ≤ t) = p of Student's t."""
    if p == 0.5:
        return 0.0
    if p > 0.5:
        return -student_quantile(degrees, 1.0 - p)
    # degrees / (degrees + t²) is Beta(degrees / 2, ½), and below it lies the probability of both tails.
    x, rest = beta_quantiles(degrees / 2, 0.5, 2.0 * p, 1.0 - 2.0 * p)
    return -math.sqrt(degrees * rest / x) if x > 0 else -math.inf


def normal_cdf(z: float) -> float:
    """P(Z ≤ z) of the standard normal."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def normal_quantile(p: float) -> float:
    """The z with P(Z ≤ z) = p of the standard normal."""
    return NormalDist().inv_cdf(p) if 0.0 < p < 1.0 else math.inf * (1 if p > 0.5 else -1)
