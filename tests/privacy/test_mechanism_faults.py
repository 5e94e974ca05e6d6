"""The mechanism under the worst callers: users far beyond the bound, in odd numbers, contributed twice, out of turn."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpals.audit.recorded_run import RecordedRelease
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.kernels.hashing import hashed_normal
from dpals.release.accounting import COST_BITS, Budget, PrivacyBudgetExceeded
from dpals.release.contribution import MAX_BOUND_BITS, Contribution, Grid, Pattern, Query, quantize_and_clip
from dpals.release.mechanism import Mechanism
from dpals.release.sums import SLAB_USERS, add_exactly, empty_sums

_BUDGET = Budget(epsilon=1.0, delta=1e-5)
_MOST_ITEMS = 3
_EVERYONE = 40
_OTHER_QUERIES = (
    Query("drill with many numbers", 200, 1.0),
    Query("drill with vectors", 200, 1.0, "vector", 3),
    Query("drill with weighted vectors", 20, 1.0, "vector", 4, weights=(1, 2, 7, 2**20)),
    Query("drill with matrices", 20, 1.0, "symmetric", 3),
)
"""Also for methods that do not use such releases, or too few items: others may."""


def beyond_bounds(releases: Sequence[RecordedRelease]) -> Iterator[str]:
    """Users who could move a release of the method by more than its bound, if they contributed whatever they liked.

    For each release, users of many kinds go through the code that puts contributions on the grid and adds them up,
    alone and together. The bound is compared in Python's integers, which do not overflow.
    """
    for release in _distinct(releases):
        query, record = replace(release.query, n_items=min(release.query.n_items, _MOST_ITEMS)), release.record
        if record.variance * release.cost < record.bound**2 << COST_BITS:
            yield f"{query.purpose}: the noise is less than the cost allows"
        grid = Grid.of(query, round(math.log2(query.sensitivity / record.step)) if query.sensitivity else 0)
        if grid.bound != record.bound:
            yield f"{query.purpose}: the recorded bound is not the one that is enforced"
        yield from _beyond(query, grid, record.bound)
    for query in _OTHER_QUERIES:
        yield from _beyond(query, Grid.of(query, MAX_BOUND_BITS), 2**MAX_BOUND_BITS)


def _beyond(query: Query, grid: Grid, bound: int) -> Iterator[str]:
    """Users who move a release beyond its bound, and sums that are not exact."""
    weights = query.coordinate_weights.astype(object)
    contribution = _loud_users(query, grid)
    together, alone = (
        _sums(contribution, query, grid),
        [_sums(_one(contribution, i), query, grid) for i in range(_EVERYONE)],
    )
    if not np.array_equal(together, sum(alone)):
        yield f"{query.purpose}: the sum over users is not exact"
    for user, sums in enumerate(alone):
        if (sums**2 * weights).sum() > bound**2:
            yield f"{query.purpose}: user {user} of the drill moves it beyond its bound"
            break


def _distinct(releases: Sequence[RecordedRelease]) -> list[RecordedRelease]:
    """One passage of each kind: steps repeat themselves."""

    def kind(release: RecordedRelease) -> tuple[object, ...]:
        query = release.query
        return query.form, query.dimension, query.weights, query.n_items == 1, release.record.bound

    return list({kind(release): release for release in releases}.values())


def _loud_users(query: Query, grid: Grid) -> Contribution:
    """Users at the bound, one step above it, far above it, of extreme numbers, and of none."""
    m, d = query.n_items, query.dimension
    user, item, axis = np.arange(_EVERYONE)[:, None], np.arange(m)[None, :], np.arange(d)[None, :]
    coefficients = query.coefficient_norm * hashed_normal(1, user, item)
    vectors = hashed_normal(2, user, axis) * grid.vector_step
    with np.errstate(over="ignore"):
        coefficients *= 10.0 ** np.linspace(-3, 12, _EVERYONE)[:, None]
        vectors *= 2.0 ** np.linspace(0, 60, _EVERYONE)[::-1, None]
    coefficients[0], coefficients[1], coefficients[2] = 0.0, 1e300, -1e300
    # Just above the bound by one step, where rounding to a float would hide it, or by the weight of a coordinate.
    coefficients[3:8], vectors[3:8] = 0.0, 0.0
    coefficients[3:8, 0] = (grid.bound + 0.5) * grid.coefficient_step
    coefficients[4, -1] = coefficients[6, -1] = 1.5 * grid.coefficient_step
    vectors[3:7, 0] = 1.5 * grid.vector_step
    vectors[5:8, -1] += 1.5 * grid.vector_step
    pattern = Pattern(np.arange(0, m * _EVERYONE + 1, m), np.tile(np.arange(m), _EVERYONE), m)
    return Contribution(pattern, coefficients.reshape(-1), None if query.form == "scalar" else vectors)


def _one(contribution: Contribution, user: int) -> Contribution:
    m = contribution.pattern.n_items
    row = slice(user * m, (user + 1) * m)
    pattern = Pattern(np.array([0, m]), contribution.pattern.items[row], m)
    return Contribution(
        pattern,
        contribution.coefficients[row],
        None if contribution.vectors is None else contribution.vectors[user : user + 1],
    )


def _sums(contribution: Contribution, query: Query, grid: Grid) -> NDArray[np.object_]:
    sums = empty_sums(query)
    add_exactly(sums, quantize_and_clip(contribution, query, grid), query)
    return sums.astype(object)


def breaches() -> Iterator[str]:
    """What the mechanism or the reading of data lets through and must refuse."""
    if not is_refused(ValueError, lambda: Pattern(np.array([0, 2]), np.array([1, 1]), 3)):
        yield "a user may name an item twice"
    if not is_refused(ValueError, lambda: _release(_counts(2), _counts(2, first_user=1))):
        yield "a user may be in two blocks of one release"
    if not is_refused(ValueError, lambda: _release(_counts(2), _counts(2, first_user=2), _counts(1))):
        yield "a user may be in two blocks of one release that do not follow each other"
    if not is_refused(ValueError, lambda: _release(Contribution(Pattern.one_item(1), np.array([np.nan])))):
        yield "what users contribute may be no number"
    if not is_refused(PrivacyBudgetExceeded, _release_twice):
        yield "a mechanism spends more than its budget"
    if not is_refused(PrivacyBudgetExceeded, _release_inside_another):
        yield "a release inside another spends the budget twice"
    if not is_refused(InputError, lambda: Ratings.from_arrays([1], [1], [3.0])):
        yield "the rating range is taken from the data"
    rows = Ratings.from_arrays([1, 1, 1, 2], [5, 5, 6, 5], [1, 5, 3, 2], rating_range=(1, 5))
    if rows.n_ratings != 3:
        yield "a row that is there twice counts twice"
    if Ratings.from_arrays([7, 7 + 2**32, -7], [1, 1, 1]).n_users != 3:
        yield "two users become one"
    if not is_refused(InputError, lambda: replace(rows, users=rows.users[[0, 0]])):
        yield "one user may have two rows"
    orders = [Ratings.from_arrays(*(column[::step] for column in _NAMED)) for step in (1, -1)]
    if any(np.any(getattr(orders[0], ids) != getattr(orders[1], ids)) for ids in ("users", "items")):
        yield "the order of users or items tells in which order they came"
    if SLAB_USERS << MAX_BOUND_BITS > 2**53:
        yield "sums of floats may be inexact"
    if not any("taken from the data" in fact for fact in rows.public_facts()):
        yield "a catalogue that was taken from the data is not declared public"


_NAMED = (["cy", "ann", "bob", "ann"], ["tea", "rum", "ale", "ale"])


def is_refused(errors: type[Exception], action: Callable[[], object]) -> bool:
    """Whether the action ends with such an error.

    Examples
    --------
    >>> is_refused(ZeroDivisionError, lambda: 1 / 0)
    True
    """
    try:
        action()
    except errors:
        return True
    return False


def _counts(users: int = 2, first_user: int = 0) -> Contribution:
    return Contribution(Pattern.one_item(users, first_user), np.ones(users))


def _release(*contributions: Contribution) -> None:
    Mechanism(_BUDGET).release(Query("drill", 1, 1.0), contributions, _BUDGET.cost)


def _release_twice() -> None:
    mechanism = Mechanism(_BUDGET)
    for _ in range(2):
        mechanism.release(Query("drill", 1, 1.0), _counts(), 3 * _BUDGET.cost // 5)


def _release_inside_another() -> None:
    mechanism = Mechanism(_BUDGET)

    def contributions() -> Iterator[Contribution]:
        mechanism.release(Query("inner", 1, 1.0), _counts(), _BUDGET.cost)
        yield _counts()

    mechanism.release(Query("outer", 1, 1.0), contributions(), _BUDGET.cost)
