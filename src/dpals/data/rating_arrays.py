"""The arrays of Ratings: a sparse matrix of users by items with its ids and range, checked once and never changed."""

from dataclasses import InitVar, dataclass, field
from math import isfinite
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpals.data.bad_rows import ReadingReport
from dpals.errors import InputError, RangeMissingError

Range = tuple[float, float]
"""Lowest and highest possible rating."""


def checked_range(rating_range: Range | None, *, has_ratings: bool) -> Range | None:
    """Return the declared range as floats, or raise if there is none where there should be one.

    Examples
    --------
    >>> checked_range((1, 5), has_ratings=True)
    (1.0, 5.0)
    """
    if not has_ratings:
        if rating_range is not None:
            raise InputError("there are no ratings, so rating_range has no meaning: leave it out")
        return None
    if rating_range is None:
        raise RangeMissingError(
            "ratings need rating_range=(lowest, highest), for example rating_range=(0.5, 5.0): the bounds of "
            "the scale, known without looking at the data. They are not inferred, because the smallest and the "
            "largest rating in the data would leak who is in it. For implicit feedback, who saw what, leave "
            "out the ratings instead (implicit=True where a table is read)"
        )
    try:
        low, high = (float(bound) for bound in rating_range)
    except (TypeError, ValueError):
        raise InputError(f"rating_range must be two numbers (lowest, highest), not {rating_range!r}") from None
    if not (isfinite(low) and isfinite(high) and low < high):
        raise InputError(f"rating_range must be two finite numbers, the lower one first, not {rating_range!r}")
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class RatingArrays:
    """What `Ratings` hold. Whatever builds ratings knows these arrays alone.

    The constructor checks the arrays, takes them over and makes them read-only.

    Examples
    --------
    >>> RatingArrays(
    ...     indptr=np.array([0, 1]), indices=np.array([2], np.int32), values=None, timestamps=None,
    ...     users=np.array([7]), items=np.array([10, 20]), rating_range=None, catalogue_declared=True,
    ...     report=ReadingReport(1),
    ... )
    Traceback (most recent call last):
    dpals.errors.InputError: indices must lie between 0 and 1, the last item
    """

    indptr: NDArray[np.int64]
    """User u has the entries ``indptr[u]:indptr[u + 1]`` of the next three arrays."""
    indices: NDArray[np.int32]
    """Index of the item, strictly increasing within a user: nobody rates an item twice."""
    values: NDArray[np.float32] | None
    """The ratings in single precision, or None for implicit feedback."""
    timestamps: NDArray[np.int64] | None
    """Whole numbers, or None."""
    users: NDArray[Any]
    """External ids in the order of the indices: int64 (uint64 if need be) or ``StringDType``."""
    items: NDArray[Any]
    """The same for items."""
    rating_range: Range | None
    """Lowest and highest possible rating, declared by the caller. None for implicit feedback."""
    catalogue_declared: bool
    """Whether the caller gave the list of items. If not, the items in the data are the catalogue, and the caller
    thereby declares them public."""
    report: ReadingReport
    """What became of the rows while reading."""
    schema: str = ""
    """What declares which columns there are and what they hold: a public fact for the statement."""
    anonymous: bool = False
    """Whether users have no ids of their own: `users` are then row numbers, for look-ups alone."""
    is_checked: InitVar[bool] = False
    """Whether the caller has checked the arrays, or took them from ratings that were checked."""
    memory: dict[Any, Any] = field(default_factory=dict, init=False)
    """What functions of these ratings keep for the next pass: see `data.population.remembered`."""

    def __post_init__(self, is_checked: bool) -> None:
        if (self.values is None) != (self.rating_range is None):
            raise InputError("values and rating_range go together: give both, or neither for implicit feedback")
        if not is_checked:
            _check_structure(self)
        for array in (self.indptr, self.indices, self.values, self.timestamps, self.users, self.items):
            if array is not None:
                array.setflags(write=False)

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to another process: not what functions keep, which may be large, and of this process alone."""
        return {**vars(self), "memory": {}}

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of items in the catalogue."""
        return len(self.items)

    @property
    def n_ratings(self) -> int:
        """Number of ratings, or of pairs in implicit feedback."""
        return len(self.indices)

    @property
    def is_implicit(self) -> bool:
        """Whether there are pairs only, without values."""
        return self.values is None

    @property
    def rows(self) -> NDArray[np.int64]:
        """Index of the user of each rating."""
        return np.repeat(np.arange(self.n_users), np.diff(self.indptr))

    def __repr__(self) -> str:
        return f"Ratings({sizes(self)})"


SomeRatings = TypeVar("SomeRatings", bound=RatingArrays)


def counted(number: int, noun: str) -> str:
    """A number and a noun in the singular or plural, for messages.

    Examples
    --------
    >>> counted(1, "item"), counted(1200, "user")
    ('1 item', '1,200 users')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Sized(Protocol):
    """What is said of ratings in a line."""

    @property
    def n_users(self) -> int: ...
    @property
    def n_items(self) -> int: ...
    @property
    def n_ratings(self) -> int: ...
    @property
    def rating_range(self) -> Range | None: ...


def sizes(ratings: Sized) -> str:
    """How many users, items and ratings there are, in words."""
    both = f"{counted(ratings.n_users, 'user')}, {counted(ratings.n_items, 'item')}"
    if ratings.rating_range is None:
        return f"{both}, {counted(ratings.n_ratings, 'implicit pair')}"
    low, high = ratings.rating_range
    return f"{both}, {counted(ratings.n_ratings, 'rating')} from {low:g} to {high:g}"


def _check_structure(ratings: RatingArrays) -> None:
    """Raise unless the arrays form a sparse matrix without duplicates, and the ratings lie in their range."""
    from dpals.kernels.structure import problem_of  # which takes long to import

    indptr, indices, n = ratings.indptr, ratings.indices, len(ratings.indices)
    types: dict[str, tuple[NDArray[Any] | None, type[np.generic], int]] = {
        "indptr": (indptr, np.int64, ratings.n_users + 1),
        "indices": (indices, np.int32, n),
        "values": (ratings.values, np.float32, n),
        "timestamps": (ratings.timestamps, np.int64, n),
    }
    for name, (array, dtype, length) in types.items():
        if array is not None and (array.dtype != dtype or array.shape != (length,)):
            raise InputError(f"{name} must be {np.dtype(dtype)} of length {length:,}, not {array.dtype} {array.shape}")
    for name, ids in {"users": ratings.users, "items": ratings.items}.items():
        if not _are_distinct(ids):
            raise InputError(f"{name} must all be different: one of them is there twice")
    problem = problem_of(indptr, indices, ratings.n_items, ratings.values, ratings.rating_range or (0.0, 0.0))
    if problem is not None:
        raise InputError(
            {
                "pointers": f"indptr must rise from 0 to the number of entries, {n:,}",
                "outside": f"indices must lie between 0 and {ratings.n_items - 1:,}, the last item",
                "order": "indices must strictly increase within each user: an item is out of order or there twice",
                "values": f"values must lie in the rating range {ratings.rating_range}",
            }[problem]
        )


def _are_distinct(ids: NDArray[Any]) -> bool:
    """Whether no id is there twice. Most ids come in rising order, and need not be sorted to see it."""
    return bool(np.all(ids[1:] > ids[:-1])) or _none_twice(ids)


def _none_twice(ids: NDArray[Any]) -> bool:
    if ids.dtype.kind not in "iu":
        return len(set(ids.tolist())) == len(ids)
    in_order = np.sort(ids)
    return bool(np.all(in_order[1:] != in_order[:-1]))
