"""Amounts of privacy in words: what is spent is rounded up, what is allowed is rounded down."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from dpals.release.accounting import mu as largest_mu


def up(value: float, digits: int = 4) -> str:
    """The value with this many significant digits, rounded up.

    Examples
    --------
    >>> up(0.23671), up(1e-6), up(2.0)
    ('0.2368', '1e-06', '2')
    """
    return _rounded(value, digits, ROUND_CEILING)


def down(value: float, digits: int = 4) -> str:
    """The value with this many significant digits, rounded down.

    Examples
    --------
    >>> down(0.23679), down(1.5)
    ('0.2367', '1.5')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, direction: str) -> str:
    rounded = Context(prec=digits, rounding=direction).create_decimal(repr(float(value)))
    return f"{float(rounded):.{digits}g}"


def spent(epsilon: float, delta: float, mu: float | None = None) -> str:
    """What was spent, in words.

    Examples
    --------
    >>> spent(1.0, 1e-6, 0.23671)
    'epsilon 1 at delta 1e-06 (mu 0.2368)'
    """
    return f"epsilon {up(epsilon)} at delta {up(delta)}" + ("" if mu is None else f" (mu {up(mu)})")


def allowed(epsilon: float, delta: float) -> str:
    """What may be spent, in words.

    Examples
    --------
    >>> allowed(1.0, 1e-6)
    'epsilon 1 at delta 1e-06 (mu 0.2367)'
    """
    return f"epsilon {down(epsilon)} at delta {down(delta)} (mu {down(largest_mu(epsilon, delta))})"


def total_spent(
    epsilon: float, delta: float, mu: float, searches: Sequence[tuple[float, float]], partial: bool = False
) -> str:
    """What training runs, of mu in all, and searches add up to, in words.

    Examples
    --------
    >>> total_spent(1.5, 2e-6, 0.2367, [(0.5, 1e-6)])
    'epsilon 1.5 at delta 2e-06 (training runs: mu 0.2367; a search: epsilon 0.5 at delta 1e-06)'
    """
    at_least = "at least " * partial
    if not searches:
        return at_least + spent(epsilon, delta, mu)
    parts = [f"training runs: mu {up(mu)}"] * (mu > 0) + [f"a search: {spent(*search)}" for search in searches]
    return f"{at_least}{spent(epsilon, delta)} ({'; '.join(parts)})"
