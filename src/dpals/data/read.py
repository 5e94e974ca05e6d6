"""Read ratings from files. What takes long to import is imported when a file is read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from numpy.typing import ArrayLike

from dpals.data.bad_rows import BadRows, OnBadRows
from dpals.data.columns import ColumnOptions, IdOption
from dpals.data.rating_arrays import Range
from dpals.data.ratings import Ratings
from dpals.errors import InputError


def read_ratings(
    path: str | Path,
    *,
    rating_range: tuple[float, float] | None = None,
    catalogue: ArrayLike | None = None,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
    implicit: bool = False,
    columns: Sequence[str] | None = None,
    separator: str | None = None,
    ids: IdOption = "auto",
    on_bad_rows: OnBadRows = "error",
    on_unknown_items: OnBadRows | None = None,
) -> Ratings:
    """Read ratings from a CSV, TSV, MovieLens or Parquet file, or from a folder of Parquet files.

    Text is UTF-8 and may be gzipped. Its first line names the columns and shows what separates them: a comma, a tab, a
    semicolon or "::". Where it does not, give `columns` or `separator`. MovieLens files without a header line are known
    by their names, ``ratings.dat`` and ``u.data``. A damaged file is always an error, and so is one that changes while
    it is read: nothing half-read is returned.

    Formal guarantee (docs/privacy.md, step 10): what becomes of a row depends on that row and on what the caller, the
    name of the file, its header line or its schema declare. No row decides how another one is read. Which row stays of
    several for one (user, item) is a function of these rows: the latest, and the highest rating of equally late ones.

    Parameters
    ----------
    path
        The file or folder.
    rating_range
        Lowest and highest possible rating, for example ``(0.5, 5.0)``. A public fact, which only you can
        declare: the smallest and the largest rating in the data would leak who is in it.
    catalogue
        Ids of all items, in the order you want. Without it the items in the data are the catalogue, and
        thereby declared public.
    user, item, rating, timestamp
        Names of the columns. Usual names ("user_id", "movieId", "stars", ...) are recognised.
    implicit
        Leave out the rating column: only who saw what counts. A table without one is implicit anyway.
    columns
        Names of all columns of a text file without a header line, in order: ``["user", "item", "rating"]``.
    separator
        What separates the columns of a text file: ``","``, ``";"``, ``"::"``, ``"|"``, a tab or a space. It overrides
        the default, which is what the header line shows (``"|"`` and a space are not recognised there). For a file
        without a header line the default is a tab in ``.tsv`` and ``.tab`` files, and a comma in others.
    ids
        What the ids are. With "auto" they have the type in the schema of a Parquet file. In a text file they are text,
        without blanks around them, and in a MovieLens file integers. If you give a catalogue, item ids have its type.
        You may look up text ids by integers.
    on_bad_rows
        "error" refuses data with an unusable row and says where it is, "drop" drops such rows and counts
        them in the ``report`` of the ratings.
    on_unknown_items
        The same for rows whose item is not in the catalogue. With "drop", users who have no other rows stay as users
        without ratings. None does as `on_bad_rows` says, and drops those users.

    Raises
    ------
    InputError
        With the file, the line, the column and what to do about it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "ratings.csv")
    ...     _ = file.write_text("userId,movieId,rating\\n7,50,4.5\\n7,60,3\\n7,50,5\\n")
    ...     ratings = read_ratings(file, rating_range=(0.5, 5.0))
    >>> ratings
    Ratings(1 user, 2 items, 2 ratings from 0.5 to 5)
    >>> print(ratings.report)
    3 rows read, 1 repeated for the same user and item
    """
    if ids not in get_args(IdOption):
        raise InputError(f'ids must be "auto", "integer" or "string", not {ids!r}')
    return read_file(
        Path(path),
        ColumnOptions(user, item, rating, timestamp, implicit, columns=columns, separator=separator),
        rating_range=rating_range,
        catalogue=catalogue,
        bad=BadRows(on_bad_rows, on_unknown_items),
        ids=ids,
    )


def read_file(
    path: Path,
    options: ColumnOptions,
    *,
    rating_range: Range | None,
    catalogue: Any,
    bad: BadRows,
    ids: IdOption = "auto",
    user_ids: IdOption = "auto",
) -> Ratings:
    """Do the work of `dpals.read_ratings`. User ids may be of another type than item ids."""
    from dpals.data.build import build, refuse_if_no_rows
    from dpals.data.file_format import open_table, refuse_changes

    with refuse_changes(path):
        source, id_type = open_table(path, options, ids)
        ratings = build(
            Ratings,
            source,
            rating_range=rating_range,
            catalogue=catalogue,
            bad=bad,
            ids=id_type,
            user_ids=None if user_ids == "auto" else user_ids,
        )
    refuse_if_no_rows(source.name, ratings.report)
    return ratings
