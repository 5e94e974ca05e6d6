"""Two runs that saw the same releases: everything that still differs depends on the data in another way."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.audit.recorded_run import RecordedRelease, RecordedRun


@dataclass(frozen=True)
class Difference:
    """What differs between two runs, and where."""

    kind: str
    where: str


BOUND = "moves beyond its bound"
RECORD = "the releases differ in number, shape, bound, noise or cost"
CONTRIBUTIONS = "what other users contribute differs"
MODEL = "the published model differs"
LOG = "what is logged, warned of or printed differs"


def differences(whole: RecordedRun, without: RecordedRun, removed: int = 1) -> Iterator[Difference]:
    """All that differs between a run and one without some consecutive users, where both saw the same releases.

    The removed users may move sums, a single one by at most the bound. Nothing else may differ, to the last bit.
    """
    if len(whole.releases) != len(without.releases):
        yield Difference(RECORD, f"{len(whole.releases)} releases, {len(without.releases)} without the user")
    for number, (one, other) in enumerate(zip(whole.releases, without.releases, strict=False), 1):
        where = f"release {number}, {one.query.purpose}"
        if (one.query, one.cost, one.record) != (other.query, other.cost, other.record):
            yield Difference(RECORD, where)
        elif removed == 1 and squared_distance(one, other) > one.record.sensitivity**2:
            yield Difference(BOUND, f"{where}: {share_of_bound(one, other):.4g} of the bound")
        for part, before, after in zip(_PARTS, _rows(one), _rows(other), strict=True):
            if not is_consecutive_removal(before, after):
                yield Difference(CONTRIBUTIONS, f"{where}: {part}")
        if _n_users(one) - _n_users(other) > removed:
            yield Difference(CONTRIBUTIONS, f"{where}: number of users")
    for name in sorted(whole.published.keys() | without.published.keys()):
        if whole.published.get(name) != without.published.get(name):
            yield Difference(MODEL, name)
    if whole.log != without.log:
        yield Difference(LOG, f"{len(whole.log)} lines, {len(without.log)} without the user")


def squared_distance(one: RecordedRelease, other: RecordedRelease) -> int:
    """Squared distance of the exact sums, in integers, in the norm in which coordinate k counts its weight."""
    moved = one.sums - other.sums
    columns = np.nonzero(moved)[1]
    return int((moved[moved != 0].astype(object) ** 2 * one.query.coordinate_weights[columns].astype(object)).sum())


def share_of_bound(one: RecordedRelease, other: RecordedRelease) -> float:
    """By how much a release moved, as a share of its bound."""
    if one.record.sensitivity == 0:
        return 0.0 if squared_distance(one, other) == 0 else float("inf")
    return math.sqrt(Fraction(squared_distance(one, other), one.record.sensitivity**2))


_PARTS = ("number of items of each user", "items", "coefficients", "vectors")


def _rows(release: RecordedRelease) -> tuple[NDArray[Any], ...]:
    """What all users contribute, in their order, as one array for each of `_PARTS`."""
    counts = [np.diff(contribution.pattern.indptr) for contribution in release.contributions]
    items = [contribution.pattern.items for contribution in release.contributions]
    coefficients = [contribution.coefficients for contribution in release.contributions]
    vectors = [
        np.zeros((0, 1)) if contribution.vectors is None else contribution.vectors
        for contribution in release.contributions
    ]
    return tuple(np.concatenate(part) if part else np.zeros(0) for part in (counts, items, coefficients, vectors))


def _n_users(release: RecordedRelease) -> int:
    """How many users there are in a release."""
    return sum(contribution.pattern.n_users for contribution in release.contributions)


def is_consecutive_removal(before: NDArray[Any], after: NDArray[Any]) -> bool:
    """Whether `after` is `before` without some consecutive rows, bit by bit.

    Examples
    --------
    >>> is_consecutive_removal(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 4.0]))
    True
    >>> is_consecutive_removal(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 4.5]))
    False
    """
    gap = len(before) - len(after)
    if gap < 0 or before.dtype != after.dtype or before.shape[1:] != after.shape[1:]:
        return False
    if not len(after):
        return True
    here, there = (np.frombuffer(array.tobytes(), np.uint8).reshape(len(array), -1) for array in (before, after))
    changed = np.flatnonzero((here[: len(there)] != there).any(axis=1))
    first = int(changed[0]) if len(changed) else len(there)
    return bool(np.array_equal(here[first + gap :], there[first:]))
