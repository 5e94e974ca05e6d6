"""Which column holds the user, the item, the rating and the timestamp: named by the caller, or by a usual name."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from dpals.errors import InputError

USUAL_NAMES = {
    "user": ["user", "userid", "uid", "customer", "customerid", "reviewer", "reviewerid"],
    "item": [
        *("item", "itemid", "iid", "movie", "movieid", "product", "productid"),
        *("book", "bookid", "song", "songid", "track", "trackid", "article", "articleid"),
    ],
    "rating": ["rating", "score", "stars", "value"],
    "timestamp": ["timestamp", "time", "ts", "date", "datetime"],
}
"""Names in lower case and without punctuation, so that userId, user_id and "User ID" are one name."""

IdType = Literal["given", "integer", "string"]
"""What ids are: of the type in which they arrive, integers or text."""
IdOption = Literal["auto", "integer", "string"]
"""What the caller says that ids are; "auto" leaves it to the format of the file."""

SEPARATORS = (",", ";", "\t", "|", " ", "::")
"""What may stand between the columns of a text file."""


@dataclass(frozen=True)
class Columns:
    """The name of each column that is used."""

    user: str
    item: str
    rating: str | None = None
    timestamp: str | None = None

    def used(self) -> dict[str, str]:
        """Role and name of the columns that are there."""
        return {role.name: name for role in fields(self) if (name := getattr(self, role.name)) is not None}

    def declared_by(self, who: str, separator: str = "") -> str:
        """Say who or what declares these columns, for the statement.

        Examples
        --------
        >>> Columns("who", "what").declared_by("The header line", ",")
        "The header line declares the columns 'who' (user) and 'what' (item), separated by ','."
        """
        *others, last = (f"{name!r} ({role})" for role, name in self.used().items())
        separated = f", separated by {separator!r}" if separator else ""
        return f"{who} declares the columns {', '.join(others)} and {last}{separated}."


@dataclass(frozen=True)
class ColumnOptions:
    """What the caller says about the columns of a table."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    timestamp: str | None = None
    implicit: bool = False
    rated: bool = False
    """Whether there must be a rating column, because the table is for a model of ratings."""
    columns: Sequence[str] | None = None
    """Names of all columns of a text file that has no header line."""
    separator: str | None = None
    """What separates the columns of a text file, one of `SEPARATORS`; overrides what its header line or name says."""

    def __post_init__(self) -> None:
        if self.columns is not None:
            object.__setattr__(self, "columns", _checked_names(self.columns))
        if self.separator not in (None, *SEPARATORS):
            raise InputError(f"separator must be one of {', '.join(map(repr, SEPARATORS))}, not {self.separator!r}")
        if self.implicit and self.rating is not None:
            raise InputError("implicit=True leaves out the ratings: give it or rating=..., not both")

    def named(self) -> dict[str, str]:
        """Role and name of the columns the caller named."""
        return {role: name for role in USUAL_NAMES if (name := getattr(self, role)) is not None}

    def find(self, found: Sequence[str], source: str) -> Columns:
        """Choose among the columns found in a table.

        Examples
        --------
        >>> ColumnOptions(item="film").find(["userId", "film", "stars"], "a.csv")
        Columns(user='userId', item='film', rating='stars', timestamp=None)
        >>> ColumnOptions().find(["userId", "film", "stars"], "a.csv")
        Traceback (most recent call last):
        dpals.errors.InputError: a.csv: no column looks like the item. Say which it is with item=... \
Columns found: 'userId', 'film', 'stars'
        """
        listing = "Columns found: " + ", ".join(repr(name) for name in found)
        named = self.named()
        chosen: dict[str, str] = {}
        for role, usual in USUAL_NAMES.items():
            if role == "rating" and self.implicit:
                continue
            if role in named:
                candidates = [name for name in found if name == named[role]]
                if not candidates:
                    raise InputError(f"{source}: there is no column {named[role]!r} ({role}=...). {listing}")
            else:
                free = [name for name in found if name not in named.values()]
                candidates = [name for name in free if _plain(name) in usual]
            if len(candidates) > 1:
                several = " and ".join(repr(name) for name in candidates)
                raise InputError(f"{source}: {several} both look like the {role}. Say which with {role}=... {listing}")
            if candidates:
                chosen[role] = candidates[0]
            elif role in ("user", "item") or (role == "rating" and self.rated):
                needed = ", and the model needs ratings" if role == "rating" else ""
                raise InputError(
                    f"{source}: no column looks like the {role}{needed}. Say which it is with {role}=... {listing}"
                )
        if len(set(chosen.values())) < len(chosen):
            raise InputError(f"{source}: one column cannot play two roles: {chosen}")
        return Columns(**chosen)


def _checked_names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names) or len(names) < 2:
        raise InputError(
            'columns must be a list of the names of all columns, for example columns=["user", "item", "rating"], '
            f"not {names!r}"
        )
    return tuple(names)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
