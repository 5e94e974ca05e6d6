"""Write ratings to files."""

from pathlib import Path

import polars as pl

from dpals.data.ids import BLANKS, is_text, to_series
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.system.files import draft


def write_ratings(ratings: Ratings, path: Path, mode: int = 0o666) -> None:
    """Write the columns user, item and, unless it is implicit feedback, rating to a .csv or .parquet file.

    The file is written whole or not at all.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "ratings.csv")
    ...     write_ratings(Ratings.from_arrays(["bob"], ["tea"], [4.5], rating_range=(1, 5)), file)
    ...     print(file.read_text(), end="")
    user,item,rating
    bob,tea,4.5
    """
    if path.suffix == ".csv":
        _check_ids_survive(ratings)
    columns = {
        "user": to_series(ratings.users)[ratings.rows],
        "item": to_series(ratings.items)[ratings.indices],
    }
    frame = pl.DataFrame(columns if ratings.values is None else {**columns, "rating": ratings.values})
    with draft(path, mode) as place:
        frame.write_csv(place) if path.suffix == ".csv" else frame.write_parquet(place)


def _check_ids_survive(ratings: Ratings) -> None:
    """Raise if an id would change on the way through a text file."""
    for ids in (ratings.users, ratings.items):
        if is_text(ids) and (lost := [text for text in ids.tolist() if text != text.strip(BLANKS)]):
            raise InputError(f"the id {lost[0]!r} has blanks around it, which CSV would lose: write to a .parquet file")
