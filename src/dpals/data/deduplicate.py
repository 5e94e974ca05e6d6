"""Rows sorted by user and item, with one row kept where a user has an item more than once."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from dpals.data.bad_rows import ReadingReport
from dpals.data.rating_arrays import Range, SomeRatings
from dpals.kernels.grouping import order_by_user_and_item, take

Arrays = dict[str, NDArray[Any]]
"""Columns by role: user, item and, if there are any, rating and timestamp."""


def sort_and_deduplicate(
    ratings_class: type[SomeRatings],
    columns: Arrays,
    *,
    users: NDArray[Any],
    items: NDArray[Any],
    rating_range: Range | None,
    catalogue_declared: bool,
    rows_dropped: Mapping[str, int],
    schema: str = "",
    anonymous: bool = False,
) -> SomeRatings:
    """Sort rows into a sparse matrix. Empties `columns` meanwhile, so that no column is in memory twice for long.

    Formal guarantee (docs/privacy.md, step 10): which of several rows for one user and item stays is a function of
    these rows: the latest, and the highest rating of equally late ones.

    Parameters
    ----------
    ratings_class
        `Ratings` or a subclass of it.
    columns
        Rows in any order, with indices in place of ids.
    users, items
        The ids that the indices stand for.
    """
    n_rows = len(columns["user"])
    indptr, order = order_by_user_and_item(
        columns.pop("user"), columns["item"], columns.get("timestamp"), columns.get("rating"), n_users=len(users)
    )
    sorted_columns = {role: take(columns.pop(role), order) for role in list(columns)}
    return ratings_class(
        indptr=indptr,
        indices=sorted_columns["item"],
        values=sorted_columns.get("rating"),
        timestamps=sorted_columns.get("timestamp"),
        users=users,
        items=items,
        rating_range=rating_range,
        catalogue_declared=catalogue_declared,
        report=ReadingReport(
            rows_read=n_rows + sum(rows_dropped.values()),
            duplicates_replaced=n_rows - len(order),
            rows_dropped=dict(rows_dropped),
        ),
        schema=schema,
        anonymous=anonymous,
    )
