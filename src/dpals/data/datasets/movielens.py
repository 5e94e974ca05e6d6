"""The MovieLens data sets by name: which archive each comes from, what is made of it, and what must be in it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpals.data.datasets.archive import Archive
from dpals.errors import InputError

if TYPE_CHECKING:
    from dpals.data.ratings import Ratings


@dataclass(frozen=True)
class DataSet:
    """A data set: an archive, what is made of its ratings, and how many there must then be."""

    name: str
    archive: Archive
    users: int
    items: int
    ratings: int
    ratings_rounded_to: int = 1
    """The number of ratings is published only to the nearest multiple of this."""
    prepare: Callable[["Ratings"], "Ratings"] = lambda ratings: ratings

    def check(self, ratings: "Ratings", source: Path) -> None:
        """Raise unless there are as many users, items and ratings as there should be."""
        found = (ratings.n_users, ratings.n_items, ratings.n_ratings)
        rounded = round(found[2] / self.ratings_rounded_to) * self.ratings_rounded_to
        if (*found[:2], rounded) != (self.users, self.items, self.ratings):
            raise InputError(
                f"{source}: {self.name} should have {_counts(self.users, self.items, self.ratings)}, but this has "
                f"{_counts(*found)}. The file is incomplete, changed or of another data set. Get {self.archive.url} "
                "again, or read other ratings with dpals.read_ratings"
            )


def _counts(users: int, items: int, ratings: int) -> str:
    return f"{users:,} users, {items:,} items and {ratings:,} ratings"


def _top400(ratings: "Ratings") -> "Ratings":
    from dpals.evaluation.splits import top_items

    return top_items(ratings, 400)


def _liked(ratings: "Ratings") -> "Ratings":
    """What users liked, of the items that anybody did."""
    import numpy as np

    from dpals.evaluation.splits import keep_items, liked

    pairs = liked(ratings)
    return keep_items(pairs, np.bincount(pairs.indices, minlength=pairs.n_items) > 0)


_HALF_STARS, _STARS = (0.5, 5.0), (1.0, 5.0)
_100K = Archive("ml-100k", 4_924_029, "0e33842e24a9c977be4e0107933c0723", "ml-100k/u.data", _STARS)
_1M = Archive("ml-1m", 5_917_549, "c4d9eecfca2ab87c1945afe126590906", "ml-1m/ratings.dat", _STARS)
_10M = Archive("ml-10m", 65_566_137, "ce571fd55effeba0271552578f2648bd", "ml-10M100K/ratings.dat", _HALF_STARS)
_20M = Archive("ml-20m", 198_702_078, "cd245b17a1ae2cc31bb14903e1204af3", "ml-20m/ratings.csv", _HALF_STARS)

# Of MovieLens 20M the paper counts 20,108 items: those that its training users liked. That is after the split.
DATA_SETS = {
    data_set.name: data_set
    for data_set in (
        DataSet("ml-100k", _100K, users=943, items=1_682, ratings=100_000),
        DataSet("ml-1m", _1M, users=6_040, items=3_706, ratings=1_000_209),
        DataSet("ml-10m", _10M, users=69_878, items=10_677, ratings=10_000_054),
        DataSet("ml-10m-top400", _10M, 69_692, 400, ratings=4_490_000, ratings_rounded_to=10_000, prepare=_top400),
        DataSet("ml-20m", _20M, users=136_677, items=20_720, ratings=9_990_682, prepare=_liked),
    )
}


def look_up(name: str) -> DataSet:
    """The data set of this name."""
    if name not in DATA_SETS:
        raise InputError(f"no data set is called {name!r}. Known are {', '.join(DATA_SETS)}")
    return DATA_SETS[name]
