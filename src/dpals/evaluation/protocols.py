"""How the paper splits each data set for training, choosing settings and testing."""

from typing import TYPE_CHECKING

from dpals.errors import InputError

if TYPE_CHECKING:
    from dpals.data.ratings import Ratings
    from dpals.evaluation.splits import UserSplit

FRACTIONS = {
    "ml-100k": (0.8, 0.1, 0.1),
    "ml-1m": (0.8, 0.1, 0.1),
    "ml-10m": (0.8, 0.1, 0.1),
    "ml-10m-top400": (0.98, 0.01, 0.01),
}
"""Training, validation and test part of the ratings, where these are drawn one by one."""
HELD_OUT_SHARE = {"ml-20m": 20_000 / 136_677}
"""The part of the users for validation and testing, where whole users are held out."""


def split(name: str, ratings: "Ratings", seed: int = 0) -> "UserSplit":
    """Split ratings as the paper splits the data set of this name.

    They may be other ratings than those of the data set, for instance simulated ones of the same kind.

    "ml-20m" is split by users: 20,000 of 136,677, or the same share of another number, are held out, half of them for
    validation and half for testing, and items that nobody in the training part has are left out (see `split_users`).
    The paper counts the 20,108 items that are left in its own draw. The others are split by ratings: 98 % for training
    and 1 % each for validation and testing of "ml-10m-top400", 80 % and 10 % each of the others, where the paper has
    no "ml-1m" and "ml-100k". Here everyone is trained on, so what is known about the users to test on, their
    ``history``, is the training part.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=500, n_items=100, mean_ratings=25, seed=1)
    >>> parts = dpals.datasets.split("ml-10m", ratings)
    >>> parts.train
    Ratings(500 users, 100 items, 9,945 ratings from 0.5 to 5)
    >>> parts.test.history is parts.train
    True
    >>> by_users = dpals.datasets.split("ml-20m", ratings)
    >>> by_users.train.n_users, by_users.validation.history.n_users, by_users.test.target.n_users
    (427, 36, 37)
    """
    from dpals.evaluation.splits import HeldOutUsers, UserSplit, split_entries, split_users

    if name in HELD_OUT_SHARE:
        held_out = round(ratings.n_users * HELD_OUT_SHARE[name])
        return split_users(ratings, held_out, train_items_only=True, seed=seed)
    if name not in FRACTIONS:
        raise InputError(f"no split is known for {name!r}, only for {', '.join([*FRACTIONS, *HELD_OUT_SHARE])}")
    train, validation, test = split_entries(ratings, FRACTIONS[name], seed)
    return UserSplit(train, validation=HeldOutUsers(train, validation), test=HeldOutUsers(train, test))
