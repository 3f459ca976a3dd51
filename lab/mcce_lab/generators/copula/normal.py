"""The normal distribution, for arrays: probabilities, quantiles, and draws from intervals.

Rational approximations of published accuracy: Cody (1969) for the error function, Wichura (1988,
AS 241) for quantiles. The errors are a few units in the last place, also far out in the tails.

Always true: every number is computed by itself, so it does not depend on the others in an array.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcce.kernels import FloatArray

# Cody: erf up to 0.46875, erfc up to 4, and beyond; numerator and denominator, highest power first.
_ERF = (
    (1.85777706184603153e-1, 3.16112374387056560, 113.864154151050156, 377.485237685302021,
     3209.37758913846947),
    (1.0, 23.6012909523441209, 244.024637934444173, 1282.61652607737228, 2844.23683343917062),
)  # fmt: skip
_ERFC = (
    (2.15311535474403846e-8, 0.564188496988670089, 8.88314979438837594, 66.1191906371416295,
     298.635138197400131, 881.952221241769090, 1712.04761263407058, 2051.07837782607147,
     1230.33935479799725),
    (1.0, 15.7449261107098347, 117.693950891312499, 537.181101862009858, 1621.38957456669019,
     3290.79923573345963, 4362.61909014324716, 3439.36767414372164, 1230.33935480374942),
)  # fmt: skip
_TAIL = (
    (1.63153871373020978e-2, 0.305326634961232344, 0.360344899949804439, 0.125781726111229246,
     1.60837851487422766e-2, 6.58749161529837803e-4),
    (1.0, 2.56852019228982242, 1.87295284992346047, 0.527905102951428412, 6.05183413124413191e-2,
     2.33520497626869185e-3),
)  # fmt: skip
# Wichura: quantiles of the middle, of either side, and far out.
_MIDDLE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080),
    (5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
     5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0),
)  # fmt: skip
_SIDE = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 0.241780725177450611770,
     1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
     4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     0.148103976427480074590, 0.689767334985100004550, 1.67638483018380384940,
     2.05319162663775882187, 1.0),
)  # fmt: skip
_FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 0.296560571828504891230, 1.78482653991729133580,
     5.46378491116411436990, 6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 0.136929880922735805310,
     0.599832206555887937690, 1.0),
)  # fmt: skip
# The smallest and the largest probability of a finite quantile.
NEVER_0_OR_1 = (5e-324, 1.0 - 2.0**-53)
ROOT_2, ROOT_PI = np.sqrt(2.0), np.sqrt(np.pi)


def cdf(x: FloatArray) -> FloatArray:
    """Probability of a standard normal number up to each value.

    Examples
    --------
    >>> cdf(np.array([-np.inf, 0.0, 1.96])).round(4)
    array([0.   , 0.5  , 0.975])
    """
    x = np.asarray(x, dtype=np.float64)
    y = np.abs(x) / ROOT_2
    lower = np.empty_like(y)
    small, far = y <= 0.46875, y > 4.0
    middle = ~(small | far)
    square = y[small] ** 2
    lower[small] = 0.5 - 0.5 * y[small] * _ratio(_ERF, square)
    lower[middle] = 0.5 * _ratio(_ERFC, y[middle]) * np.exp(-(y[middle] ** 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = 1.0 / y[far] ** 2
        tail = (1.0 / ROOT_PI - inverse * _ratio(_TAIL, inverse)) / y[far]
        lower[far] = 0.5 * tail * np.exp(-(y[far] ** 2))
    return np.where(x > 0, 1.0 - lower, lower)


def pdf(x: FloatArray) -> FloatArray:
    """Density of the standard normal distribution; 0 at infinity."""
    return np.exp(-0.5 * np.square(x)) / np.sqrt(2.0 * np.pi)


def ppf(p: FloatArray) -> FloatArray:
    """Quantiles of the standard normal distribution; infinite at 0 and 1.

    Examples
    --------
    >>> ppf(np.array([0.0, 0.5, 0.975])).round(4)
    array([-inf, 0.  , 1.96])
    """
    p = np.asarray(p, dtype=np.float64)
    centred = p - 0.5
    found = np.empty_like(p)
    middle = np.abs(centred) <= 0.425
    q = centred[middle]
    found[middle] = q * _ratio(_MIDDLE, 0.180625 - q * q)
    outer = p[~middle]
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.sqrt(-np.log(np.minimum(outer, 1.0 - outer)))
        side = np.where(r <= 5.0, _ratio(_SIDE, r - 1.6), _ratio(_FAR, r - 5.0))
    side = np.where(np.isinf(r), np.inf, side)
    found[~middle] = np.where(outer < 0.5, -side, side)
    return found


def within(low: FloatArray, high: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standard normal numbers restricted to intervals, by inversion.

    Parameters
    ----------
    low, high : (n,)
        The ends of each interval, low <= high; they may be infinite.
    u : (n,)
        Uniform numbers.

    Returns
    -------
    numbers : (n,)
        The quantile ``u`` of the normal distribution given the interval; the end nearer to 0 of an
        interval so far out that its probability is 0 in float64.
    mass : (n,)
        The probability of each interval.
    """
    # Mirrored to the lower tail, where small probabilities keep their digits.
    mirrored = low > 0
    a, b = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    below, above = cdf(a), cdf(b)
    mass = above - below
    share = np.where(mirrored, 1.0 - u, u)
    numbers = np.clip(ppf(np.clip(below + share * mass, *NEVER_0_OR_1)), a, b)
    nearest = np.where(np.abs(a) < np.abs(b), a, b)
    numbers = np.where(mass > 0, numbers, nearest)
    return np.where(mirrored, -numbers, numbers), mass


def _ratio(parts: tuple[Sequence[float], Sequence[float]], x: FloatArray) -> FloatArray:
    """The quotient of two polynomials."""
    return _polynomial(parts[0], x) / _polynomial(parts[1], x)


def _polynomial(coefficients: Sequence[float], x: FloatArray) -> FloatArray:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value
