"""Comparison of two `Ratings`, array by array."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals import Blocks, Ratings


def assert_same_arrays(a: Ratings, b: Ratings) -> None:
    for field in ("indptr", "indices", "values", "timestamps", "users", "items"):
        left, right = getattr(a, field), getattr(b, field)
        if left is None or right is None:
            assert left is right
        else:
            assert left.dtype == right.dtype, field
            np.testing.assert_array_equal(left, right)


def joined(blocks: Blocks) -> Ratings:
    """The users of all blocks, sorted by id as `read_ratings` does."""
    parts = list(blocks)
    order = np.argsort(np.concatenate([part.users for part in parts]), kind="stable")
    rows = [(part, row) for part in parts for row in range(part.n_users)]
    chosen = [rows[at] for at in order]
    entries = [slice(*part.indptr[row : row + 2]) for part, row in chosen]

    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name)[at] for (part, _), at in zip(chosen, entries, strict=True)])

    return Ratings(
        indptr=np.cumsum([0, *(at.stop - at.start for at in entries)]),
        indices=column("indices"),
        values=None if blocks.is_implicit else column("values"),
        timestamps=None if parts[0].timestamps is None else column("timestamps"),
        users=np.concatenate([part.users for part in parts])[order],
        items=blocks.items,
        rating_range=blocks.rating_range,
        catalogue_declared=blocks.catalogue_declared,
        report=blocks.report,
        schema=blocks.schema,
    )


def assert_same_population(blocks: Blocks, ratings: Ratings) -> None:
    """The same users, rows, report and public facts."""
    assert_same_arrays(joined(blocks), ratings)
    assert (blocks.n_users, blocks.n_items, blocks.n_ratings) == (ratings.n_users, ratings.n_items, ratings.n_ratings)
    assert blocks.report == ratings.report
    assert blocks.public_facts() == ratings.public_facts()
    assert (blocks.rating_range, blocks.is_implicit) == (ratings.rating_range, ratings.is_implicit)
    assert (blocks.catalogue_declared, blocks.anonymous) == (ratings.catalogue_declared, ratings.anonymous)
