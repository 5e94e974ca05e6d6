"""What values the arguments of a method may have."""

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Within:
    """A number between two limits, which count only where `closed`; whole numbers or None where so allowed."""

    low: float = 0.0
    high: float = math.inf
    closed: bool = False
    whole: bool = False
    optional: bool = False

    def allows(self, value: Any) -> bool:
        if value is None:
            return self.optional
        if isinstance(value, bool) or not isinstance(value, numbers.Integral if self.whole else numbers.Real):
            return False
        number = float(value)
        inside = self.low <= number <= self.high if self.closed else self.low < number < self.high
        return inside and math.isfinite(number)

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        low = f"of at least {self.low:g}" if self.closed else f"above {self.low:g}"
        high = "" if math.isinf(self.high) else f" and {'at most' if self.closed else 'below'} {self.high:g}"
        return f"{kind} {low}{high}{' or None' if self.optional else ''}"


@dataclass(frozen=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def allows(self, value: Any) -> bool:
        return value in self.words

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


POSITIVE = Within()
NOT_NEGATIVE = Within(closed=True)
WHOLE = Within(closed=True, whole=True)
COUNT = Within(low=1, closed=True, whole=True)
SHARE = Within(high=1, closed=False)


def check_arguments(estimator: Any, constraints: Mapping[str, Within | OneOf]) -> None:
    """Raise a ValueError that names the first argument that is not allowed."""
    for name, constraint in constraints.items():
        value = getattr(estimator, name)
        if not constraint.allows(value):
            raise ValueError(f"{name} must be {constraint}, got {value!r}")
