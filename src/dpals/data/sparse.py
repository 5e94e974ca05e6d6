"""Ratings from a SciPy sparse matrix."""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, issparse

from dpals.data.deduplicate import sort_and_deduplicate
from dpals.data.ids import id_array
from dpals.data.rating_arrays import Range, SomeRatings, checked_range
from dpals.errors import InputError


def from_sparse(
    ratings_class: type[SomeRatings], matrix: Any, users: Any, items: Any, rating_range: Range | None, implicit: bool
) -> SomeRatings:
    """Do the work of `Ratings.from_csr`."""
    if not issparse(matrix):
        raise InputError(f"expected a SciPy sparse matrix of users by items, not {type(matrix).__name__}")
    if getattr(matrix, "format", "") == "bsr":  # its blocks store zeros of one user because of what a neighbour has
        raise InputError("a BSR matrix stores zeros for whole blocks of users: give matrix.tocoo() without these zeros")
    limits = checked_range(rating_range, has_ratings=not implicit)
    entries: Any = coo_array(cast(Any, matrix))
    columns = {"user": entries.row.astype(np.int32), "item": entries.col.astype(np.int32)}
    if limits is not None:
        values = entries.data.astype(np.float64).astype(np.float32) + np.float32(0)  # which makes 0 of -0
        low, high = np.float32(limits[0]), np.float32(limits[1])
        usable = (values >= low) & (values <= high)
        if not usable.all():
            at = int(np.argmin(usable))
            raise InputError(
                f"matrix[{entries.row[at]}, {entries.col[at]}] is {entries.data[at]:g}, outside the declared "
                f"rating_range {limits[0]:g} to {limits[1]:g}: bring the entries to that scale, or call "
                "matrix.eliminate_zeros() if it is zeros that stand for nothing"
            )
        columns["rating"] = values
    n_users, n_items = entries.shape
    return sort_and_deduplicate(
        ratings_class,
        columns,
        users=_ids(users, "users", n_users, entries.shape),
        items=_ids(items, "items", n_items, entries.shape),
        rating_range=limits,
        catalogue_declared=True,
        rows_dropped={},
        anonymous=users is None,
    )


def _ids(given: Any, name: str, length: int, shape: tuple[int, int]) -> NDArray[Any]:
    """Ids that the caller gives, or numbers."""
    ids = np.arange(length) if given is None else id_array(given, name)
    if len(ids) != length:
        raise InputError(f"{name} has {len(ids):,} ids, but the matrix {shape} needs {length:,}")
    return ids
