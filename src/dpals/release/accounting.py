"""What a release costs, and what the costs add up to.

Every release of this library is a Gaussian mechanism: a statistic of sensitivity S, which is how far one user can move
it in l2 norm, plus Gaussian noise of variance V. Such a release is mu-Gaussian-DP with mu^2 = S^2 / V, and any sequence
of them, even adaptive, is mu-GDP with mu^2 = sum of mu_t^2, exactly (Dong, Roth & Su 2022).

Costs are therefore squared mu. They are kept as **integers, in units of 2^-64**, so that they add up without rounding:
the cost of a release is rounded up, a budget is rounded down. Floats appear where mu, epsilon and delta do: when a
budget is turned into a cost, and when a cost is reported. Each is rounded to the side that never promises too much.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from scipy.special import erfcx, ndtr, ndtri

COST_BITS = 64

_UNIT_ROUNDOFF = 2.0**-53  # the largest relative error of one rounding
_LARGEST = 1e9
_SMALLEST = 2.0**-1000  # below this, floats lose digits
_PART_DELTA = 1e-15


class PrivacyBudgetExceeded(RuntimeError):  # noqa: N818, a public name
    """A release was refused because it would have cost more than what is left of a budget."""


def delta(mu: float, epsilon: float) -> float:
    """Smallest delta for which mu-Gaussian-DP implies (epsilon, delta)-DP.

    Formal guarantee (docs/privacy.md, step 6): the value returned is at least the true one,
    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu). Where that is at least 1e-15, the relative excess is
    below 2e-13 (mu + 1/mu): below 1e-9 for mu between 0.001 and 1000, and up to 2e-5 for a mu of 1e-9 or 1e9.

    =====================  ===================================================
    mu = 0                 0: nothing depends on any user
    mu = infinity          1
    too small for a float  2^-1000, never 0
    =====================  ===================================================

    Examples
    --------
    >>> round(delta(mu=1.0, epsilon=1.0), 6)
    0.126937
    """
    _check(mu >= 0, f"mu must be at least 0, got {mu}")
    _check(epsilon >= 0, f"epsilon must be at least 0, got {epsilon}")
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    if math.isinf(epsilon):
        return _SMALLEST
    ratio = epsilon / mu
    near, far = ratio - mu / 2, ratio + mu / 2
    if near < -30:
        return 1.0  # true to 190 decimal places
    # e^epsilon * phi(far) = phi(near), so both terms can be written with phi(near): nothing overflows.
    density = math.exp(-near * near / 2) / math.sqrt(2 * math.pi)
    far_mills = _mills(far)
    near_mills = _mills(near) if near >= 0 else float(ndtr(-near)) / density
    difference = density * (near_mills - far_mills)
    # First-order bounds on the rounding errors, in units of 2^-53: of the factor phi(near); of the two ratios
    # themselves; of `near` and `far`, where the slope of the ratio is 1 - x * ratio(x).
    common = difference * (4 + near * near + abs(near) * (ratio + mu))
    ratios = density * (near_mills + far_mills)
    slopes = density * (2 - near * near_mills - far * far_mills) * (ratio + mu)
    error = 8 * _UNIT_ROUNDOFF * (common + ratios + slopes)
    return min(1.0, max(difference + error, _SMALLEST))


def epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon for which mu-Gaussian-DP implies (epsilon, delta)-DP.

    Formal guarantee (docs/privacy.md, step 6): never below the true value. The relative excess is below 1e-9 for
    epsilon between 1e-3 and 1e3 and delta between 1e-15 and 0.5.

    =====================  ===================================================
    mu = 0                 0
    mu above 1e9           infinity
    delta is generous      0, where (0, delta)-DP already holds
    =====================  ===================================================

    Examples
    --------
    >>> round(epsilon(mu=1.0, delta=1e-5), 4)
    4.3772
    """
    _check(mu >= 0, f"mu must be at least 0, got {mu}")
    _check_delta(delta)
    if mu > _LARGEST:
        return math.inf
    return boundary(lambda value: _delta(mu, value) <= delta)[1]


def mu(epsilon: float, delta: float) -> float:
    """Largest mu for which mu-Gaussian-DP implies (epsilon, delta)-DP: what a budget buys.

    Formal guarantee (docs/privacy.md, step 6): never above the true value. The relative shortfall is below 1e-9 for
    epsilon between 1e-3 and 1e3 and delta between 1e-15 and 0.5.

    Examples
    --------
    >>> round(mu(epsilon=1.0, delta=1e-5), 6)
    0.268051
    """
    _check(0 <= epsilon <= _LARGEST, f"epsilon must lie between 0 and {_LARGEST:g}, got {epsilon}")
    _check_delta(delta)
    return boundary(lambda value: _delta(value, epsilon) > delta)[0]


def compose(mus: Iterable[float]) -> float:
    """The mu of several releases together: the root of the sum of squares, rounded up (docs/privacy.md, step 5).

    Examples
    --------
    >>> compose([3.0, 4.0]) >= 5.0
    True
    """
    return mu_of(sum(cost_of(value) + 1 for value in mus))


def attack_power(mu: float, false_positive_rate: float) -> float:
    """Largest share of members that any attack can recognise at this rate of false alarms.

    Examples
    --------
    >>> round(attack_power(mu=1.0, false_positive_rate=0.01), 3)
    0.092
    """
    return float(ndtr(ndtri(false_positive_rate) + mu))


def general_attack_power(epsilon: float, delta: float, false_positive_rate: float) -> float:
    """The same if nothing more is known than (epsilon, delta)-DP.

    Examples
    --------
    >>> round(general_attack_power(epsilon=1.0, delta=1e-5, false_positive_rate=0.01), 3)
    0.027
    """
    by_members = math.exp(min(epsilon, 700.0)) * false_positive_rate + delta
    by_others = 1 - math.exp(-epsilon) * (1 - delta - false_positive_rate)
    return min(1.0, by_members, by_others)


def cost(sensitivity: int, variance: int) -> int:
    """Cost of one release (docs/privacy.md, step 4): sensitivity^2 / variance in units of 2^-64, rounded up.

    =====================  ===================================================
    sensitivity = 0        0: no user can move the result
    variance = 0           ZeroDivisionError: without noise no cost is finite
    =====================  ===================================================
    """
    return -(-(sensitivity * sensitivity << COST_BITS) // variance)


def variance_for(sensitivity: int, cost: int) -> int:
    """Smallest noise variance, of at least 1, at which a release costs at most `cost` (docs/privacy.md, step 4)."""
    return max(1, -(-(sensitivity * sensitivity << COST_BITS) // cost))


def cost_of(mu: float) -> int:
    """The cost that a given mu allows, rounded down."""
    return int(Fraction(mu) ** 2 * 2**COST_BITS)


def mu_of(cost: int) -> float:
    """The mu of a cost, rounded up."""
    if cost == 0:
        return 0.0
    root = math.isqrt(cost << COST_BITS) + 1
    return math.nextafter(root / 2**COST_BITS, math.inf)


def boundary(holds_above: Callable[[float], bool]) -> tuple[float, float]:
    """Two floats at most 4 ulp apart: the predicate is false at the first, unless that is 0, and true at the second.

    Examples
    --------
    >>> [round(root, 6) for root in boundary(lambda x: x * x >= 2)]
    [1.414214, 1.414214]
    """
    if holds_above(0.0):
        return 0.0, 0.0
    high = 1.0
    while not holds_above(high):
        high *= 2
    low = high / 2
    while low > _SMALLEST and holds_above(low):
        low, high = low / 2, low
    while high - low > 4 * _UNIT_ROUNDOFF * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds_above(middle) else (middle, high)
    return low, high


@dataclass(frozen=True)
class Budget:
    """What one run may spend. Methods split it among their releases.

    Examples
    --------
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> counts, steps = budget.split(1, 9)
    >>> counts + steps <= budget.cost
    True
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _check(
            0 < self.epsilon <= _LARGEST,
            f"epsilon must be a positive number of at most {_LARGEST:g}, got {self.epsilon}",
        )
        _check_delta(self.delta)
        _check(self.cost > 0, f"epsilon {self.epsilon} with delta {self.delta} is too small to spend")

    @classmethod
    def of_cost(cls, cost: int) -> "Budget":
        """A budget that costs nearly `cost` and never more, for a part of a run that is accounted for as a whole.

        Its delta is 1e-15, at which epsilon is above 0 whatever the cost.

        Examples
        --------
        >>> half = Budget(epsilon=1.0, delta=1e-5).cost // 2
        >>> 0.999999 * half < Budget.of_cost(half).cost <= half
        True
        """
        allowed = epsilon(mu_of(cost), _PART_DELTA)
        while (budget := cls(allowed, _PART_DELTA)).cost > cost:
            allowed *= 1 - 2.0**-33  # what `epsilon` rounded up
        return budget

    @cached_property
    def mu(self) -> float:
        return mu(self.epsilon, self.delta)

    @cached_property
    def cost(self) -> int:
        """The whole budget as a cost, rounded down."""
        return cost_of(self.mu)

    def split(self, *weights: float) -> tuple[int, ...]:
        """Costs in proportion to `weights`, whose sum is at most the whole budget (docs/privacy.md, step 5)."""
        _check(
            bool(weights) and all(w >= 0 and math.isfinite(w) for w in weights) and sum(weights) > 0,
            f"shares must be numbers of at least 0 and not all 0, got {weights}",
        )
        exact = [Fraction(w) for w in weights]
        return tuple(math.floor(self.cost * w / sum(exact)) for w in exact)


@dataclass(frozen=True)
class Release:
    """The record of one release.

    Attributes
    ----------
    purpose
        What it was for, in words.
    shape, form
        Of the published table, as the query described it.
    sensitivity, variance
        In units of the integer grid, so that the cost can be checked exactly.
    step
        The size of one unit.
    seeded
        Whether its noise came from a known seed: it is not private then.
    """

    purpose: str
    shape: tuple[int, int]
    form: str
    sensitivity: int
    variance: int
    step: float
    seeded: bool

    @property
    def cost(self) -> int:
        return cost(self.sensitivity, self.variance)

    @property
    def mu(self) -> float:
        return mu_of(self.cost)

    @property
    def sigma(self) -> float:
        """Standard deviation of the published numbers (of a diagonal entry, for matrices)."""
        return math.sqrt(self.variance) * self.step


_delta = delta  # the name without a shadow, for functions that have an argument called delta


def _mills(x: float) -> float:
    """The tail of the normal distribution over its density, for x >= 0."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _check(condition: bool, message: str) -> None:
    if not condition:  # written so that NaN fails too
        raise ValueError(message)


def _check_delta(delta: float) -> None:
    _check(1e-250 <= delta < 1, f"delta must lie strictly between 0 and 1, and not below 1e-250, got {delta}")
