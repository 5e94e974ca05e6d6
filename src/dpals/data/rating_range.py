"""The rating range: the bounds of the scale, which the caller declares and nothing infers from data."""

from math import isfinite

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
