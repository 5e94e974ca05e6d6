"""Ratings: who rated what, as arrays that never change, with the facts declared public about them."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpals.data.bad_rows import BadRows, OnBadRows
from dpals.data.columns import ColumnOptions
from dpals.data.population import MemoryBlock, declared_facts
from dpals.data.rating_arrays import RatingArrays
from dpals.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_RATINGS_PER_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class Ratings(RatingArrays):
    """Ratings, or the pairs seen in implicit feedback, as a sparse matrix of users by items.

    Make one with `from_arrays`, `from_frame`, `from_csr` or `dpals.read_ratings`. The constructor itself is for code
    that has the sparse matrix already: it checks the arrays, takes them over and makes them read-only. The fields are
    described in `RatingArrays`.

    Examples
    --------
    >>> ratings = Ratings.from_arrays(["bob", "ann", "bob"], [10, 10, 30], [4, 3.5, 1], rating_range=(0.5, 5))
    >>> ratings
    Ratings(2 users, 2 items, 3 ratings from 0.5 to 5)
    >>> ratings.users.tolist(), ratings.items.tolist()
    (['ann', 'bob'], [10, 30])
    >>> ratings.to_csr().toarray()
    array([[3.5, 0. ],
           [4. , 1. ]], dtype=float32)
    """

    @classmethod
    def from_arrays(
        cls,
        users: ArrayLike,
        items: ArrayLike,
        values: ArrayLike | None = None,
        *,
        timestamps: ArrayLike | None = None,
        rating_range: tuple[float, float] | None = None,
        catalogue: ArrayLike | None = None,
        on_bad_rows: OnBadRows = "error",
        on_unknown_items: OnBadRows | None = None,
    ) -> Self:
        """Make ratings from one array per column, in any row order.

        Parameters
        ----------
        users, items
            Ids: integers or text.
        values
            Ratings. None for implicit feedback.
        timestamps
            Whole numbers; decimals are rounded down, dates and times become seconds since 1970 (UTC). Where a user
            rated an item more than once the latest rating stays, and the highest of equally late ones, whatever the
            order of rows.
        rating_range
            Lowest and highest possible rating. A public fact, which only you can declare: the smallest and
            the largest rating in the data would leak who is in it.
        catalogue
            Ids of all items, in the order you want. Without it the items in the data are the catalogue, and
            thereby declared public.
        on_bad_rows
            "error" refuses data with an unusable row and says where it is, "drop" drops such rows and counts
            them in `report`.
        on_unknown_items
            The same for rows whose item is not in the catalogue. With "drop", users who have no other rows stay as
            users without ratings. None does as `on_bad_rows` says, and drops those users.

        Examples
        --------
        >>> Ratings.from_arrays([1, 1, 2], ["tea", "rye", "tea"], catalogue=["rye", "tea", "jam"])
        Ratings(2 users, 3 items, 3 implicit pairs)
        >>> ratings = Ratings.from_arrays([1, 2], ["tea", "gin"], catalogue=["tea"], on_unknown_items="drop")
        >>> ratings.users.tolist(), ratings.report.rows_dropped
        ([1, 2], {'item outside the catalogue': 1})
        """
        from dpals.data.build import build
        from dpals.data.frames import ArraySource

        source = ArraySource(users, items, values, timestamps)
        bad = BadRows(on_bad_rows, on_unknown_items)
        return build(cls, source, rating_range=rating_range, catalogue=catalogue, bad=bad)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        timestamp: str | None = None,
        implicit: bool = False,
        rating_range: tuple[float, float] | None = None,
        catalogue: ArrayLike | None = None,
        on_bad_rows: OnBadRows = "error",
        on_unknown_items: OnBadRows | None = None,
    ) -> Self:
        """Make ratings from a pandas or polars frame or an Arrow table.

        Anything with the Arrow stream interface (``__arrow_c_stream__``) works.

        Parameters
        ----------
        user, item, rating, timestamp
            Names of the columns. Usual names ("user_id", "movieId", "stars", ...) are recognised.
        implicit
            Leave out the rating column: only who saw what counts. A table without one is implicit anyway.
        rating_range, catalogue, on_bad_rows, on_unknown_items
            As in `from_arrays`.

        Examples
        --------
        >>> import polars as pl
        >>> frame = pl.DataFrame({"userId": [1, 2], "movieId": [7, 7], "stars": [3, 4]})
        >>> Ratings.from_frame(frame, rating_range=(1, 5))
        Ratings(2 users, 1 item, 2 ratings from 1 to 5)
        """
        from dpals.data.build import build
        from dpals.data.frames import FrameSource

        source = FrameSource(frame, ColumnOptions(user, item, rating, timestamp, implicit))
        bad = BadRows(on_bad_rows, on_unknown_items)
        return build(cls, source, rating_range=rating_range, catalogue=catalogue, bad=bad)

    @classmethod
    def from_csr(
        cls,
        matrix: Any,
        *,
        users: ArrayLike | None = None,
        items: ArrayLike | None = None,
        rating_range: tuple[float, float] | None = None,
        implicit: bool = False,
    ) -> Self:
        """Make ratings from a SciPy sparse matrix of users by items.

        Every stored entry is a rating, a stored zero as well: call ``matrix.eliminate_zeros()`` first if zero
        stands for nothing. Rows without entries stay as users without ratings. All columns together are the
        catalogue, which is thereby declared. Where an entry is stored twice the highest one counts.

        Parameters
        ----------
        matrix
            A SciPy sparse matrix or array, of any format but BSR, which stores zeros that are not ratings.
        users, items
            Ids of the rows and of the columns. By default the ids of the columns are 0, 1, 2, ..., and rows have no
            ids: a user is then looked up by the number of the row. Methods that choose by a hash of user ids then hash
            the content of the row, so that adding or removing a row changes nothing for the others.
        rating_range
            As in `from_arrays`.
        implicit
            Keep only which entries are stored, not their values.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> ratings = Ratings.from_csr(csr_array([[0, 5], [0, 0], [2, 3]]), rating_range=(1, 5))
        >>> ratings
        Ratings(3 users, 2 items, 3 ratings from 1 to 5)
        >>> ratings.users.tolist()
        [0, 1, 2]
        """
        from dpals.data.sparse import from_sparse

        return from_sparse(cls, matrix, users, items, rating_range, implicit)

    @property
    def blocks(self) -> tuple[MemoryBlock, ...]:
        """The users in blocks, which threads share: views of these ratings, and one block if they are few."""
        blocks: tuple[MemoryBlock, ...] | None = self.memory.get("blocks")
        if blocks is None:
            goals = np.arange(_RATINGS_PER_BLOCK, self.n_ratings, _RATINGS_PER_BLOCK)
            edges = np.unique([0, *np.searchsorted(self.indptr, goals), self.n_users]).tolist()
            parts = [self] if len(edges) <= 2 else [self.take_users(slice(*ends)) for ends in pairwise(edges)]
            blocks = tuple(MemoryBlock(part, f"memory {number}") for number, part in enumerate(parts))
            if len(blocks) > 1:
                self.memory["blocks"] = blocks
        return blocks

    def to_csr(self) -> "csr_array[Any, tuple[int, int]]":
        """Copy as a SciPy matrix of users by items, with ones for implicit feedback."""
        from scipy.sparse import csr_array

        values = np.ones(self.n_ratings, np.float32) if self.values is None else self.values
        return csr_array((values, self.indices, self.indptr), shape=(self.n_users, self.n_items), copy=True)

    def user_index(self, ids: ArrayLike, *, unknown_ok: bool = False) -> NDArray[np.int64]:
        """Find users by id.

        Parameters
        ----------
        ids
            Ids of users.
        unknown_ok
            Give -1 for an id that is not there, instead of an error.

        Examples
        --------
        >>> ratings = Ratings.from_arrays(["bob", "ann"], [10, 10])
        >>> ratings.user_index(["bob", "eve"], unknown_ok=True)
        array([ 1, -1])
        """
        from dpals.data.ids import find

        return find(self.users, ids, "user", unknown_ok)

    def item_index(self, ids: ArrayLike, *, unknown_ok: bool = False) -> NDArray[np.int64]:
        """Find items by id, as `user_index` does for users."""
        from dpals.data.ids import find

        return find(self.items, ids, "item", unknown_ok)

    def user_hashes(self) -> NDArray[np.uint64]:
        """A 64-bit number for each user, for choices that look random and are always the same.

        Formal guarantee (docs/privacy.md, step 10): a user's number is a function of that user's id, or of their
        ratings where they have no id, and never of a position among the others.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> everyone = Ratings.from_csr(csr_array([[0, 5], [4, 0], [2, 3]]), rating_range=(1, 5))
        >>> others = Ratings.from_csr(csr_array([[4, 0], [2, 3]]), rating_range=(1, 5))
        >>> bool(np.all(everyone.user_hashes()[1:] == others.user_hashes()))
        True
        """
        from dpals.kernels.hashing import id_hashes, row_hashes

        if not self.anonymous:
            return id_hashes(self.users)
        words = [id_hashes(self.items)[self.indices]]
        if self.values is not None:
            words.append(self.values.view(np.uint32))
        return row_hashes(self.indptr, *words)

    def keep(self, chosen: NDArray[np.bool_]) -> Self:
        """Keep the chosen ratings only, and all users and items.

        Parameters
        ----------
        chosen
            One truth value per rating.

        Examples
        --------
        >>> ratings = Ratings.from_arrays([1, 1, 2], [5, 6, 5])
        >>> ratings.keep(np.array([True, False, True]))
        Ratings(2 users, 2 items, 2 implicit pairs)
        """
        before = np.concatenate([[0], np.cumsum(chosen)])
        return replace(
            self,
            indptr=before[self.indptr],
            indices=self.indices[chosen],
            values=None if self.values is None else self.values[chosen],
            timestamps=None if self.timestamps is None else self.timestamps[chosen],
            is_checked=True,
        )

    def take_users(self, chosen: NDArray[np.bool_] | slice) -> "Ratings":
        """Some of the users with all their ratings, in the same order, and the same catalogue.

        Parameters
        ----------
        chosen
            One truth value per user, or a slice of the users.

        Examples
        --------
        >>> ratings = Ratings.from_arrays([1, 1, 2, 3], [5, 6, 5, 6])
        >>> ratings.take_users(np.array([True, False, True])).users.tolist()
        [1, 3]
        >>> ratings.take_users(slice(1, 3))
        Ratings(2 users, 2 items, 2 implicit pairs)
        """
        lengths = np.diff(self.indptr)[chosen]
        if isinstance(chosen, slice):
            if chosen.step not in (None, 1):
                raise InputError(f"a slice of users has no step, but this one has {chosen.step}: give truth values")
            rows = range(self.n_users)[chosen]
            entries: Any = slice(self.indptr[rows.start], self.indptr[rows.stop])
        else:
            entries = np.repeat(chosen, np.diff(self.indptr))
        return replace(
            self,
            users=self.users[chosen],
            indptr=np.concatenate([[0], np.cumsum(lengths)]),
            indices=self.indices[entries],
            values=None if self.values is None else self.values[entries],
            timestamps=None if self.timestamps is None else self.timestamps[entries],
            is_checked=True,
        )

    def public_facts(self) -> list[str]:
        """Say what the caller declared public, for the privacy statement.

        Examples
        --------
        >>> for fact in Ratings.from_arrays([1], [2], [3.0], rating_range=(1, 5)).public_facts():
        ...     print(fact)
        Every rating lies between 1 and 5: declared by the caller.
        The catalogue has 1 item: taken from the data and thereby declared public by the caller.
        """
        return declared_facts(self)
