"""Which rows can be used: both ids are there, the rating lies in the declared range, the timestamp is a number."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from dpals.data.bad_rows import BadRows
from dpals.data.rating_arrays import Range
from dpals.data.sources import Batch


def usable_rows(batch: Batch, names: Mapping[str, str], limits: Range | None, bad: BadRows) -> Batch:
    """Return the rows that have all they need; the others go to `bad`.

    Formal guarantee (docs/privacy.md, step 10): whether a row can be used depends on that row and the declared range
    alone.

    Parameters
    ----------
    names
        Role and name of each column, for messages.
    limits
        The declared rating range, None where there are no ratings.

    Examples
    --------
    >>> frame = pl.DataFrame({"user": ["ann", None], "item": [1, 2]})
    >>> bad = BadRows("drop")
    >>> usable_rows(Batch(frame, str), {"user": "who", "item": "what"}, None, bad).frame.rows()
    [('ann', 1)]
    >>> bad.dropped
    Counter({'missing user id': 1})
    """
    frame, place = batch.frame, batch.place
    problems = _problems(frame, limits)
    if not frame.select(pl.any_horizontal(is_bad.any() for _, is_bad, _ in problems.values())).item():
        return batch
    rows = np.arange(frame.height, dtype=np.int32)
    for reason, (role, is_bad, problem) in problems.items():
        mask = frame.select(is_bad).to_series()
        if mask.any():
            row = mask.arg_max() or 0
            where = f"{place(int(rows[row]))}, column {names[role]!r}"
            bad.found(reason, int(mask.sum()), where, problem.format(frame[role][row]))
            frame, rows = frame.filter(~mask), rows[~mask.to_numpy()]
    return Batch(frame, lambda row: place(int(rows[row])))


def _problems(frame: pl.DataFrame, limits: Range | None) -> dict[str, tuple[str, pl.Expr, str]]:
    """For every reason a row can be bad: the column it is about, which rows, and how to say it."""
    problems: dict[str, tuple[str, pl.Expr, str]] = {}
    for role in ("user", "item"):
        is_missing = pl.col(role).is_null()
        if frame.schema[role] == pl.String:
            is_missing |= pl.col(role) == ""
        problems[f"missing {role} id"] = (role, is_missing, f"the {role} id is missing")
    if limits is not None:
        rating = pl.col("rating")
        low, high = (float(np.float32(bound)) for bound in limits)  # ratings are kept in single precision
        outside = f"{{:g}} is outside the declared rating_range {limits[0]:g} to {limits[1]:g}"
        problems["missing rating"] = ("rating", rating.is_null() | rating.is_nan(), "the rating is missing")
        problems["infinite rating"] = ("rating", rating.is_infinite(), "the rating is infinite")
        problems["rating outside the range"] = ("rating", ~rating.is_between(low, high), outside)
    if "timestamp" in frame.columns:
        is_missing = pl.col("timestamp").is_null()
        problems["missing timestamp"] = ("timestamp", is_missing, "the timestamp is missing or is not an exact number")
    return problems
