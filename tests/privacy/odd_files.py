"""Data sets of odd people: what is declared about them, and text files of every kind."""

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.privacy.odd_rows import RANGES, Person, Range, broken_line, cell, people, rating_text, time_text

from dpals.data.bad_rows import BadRows, OnBadRows
from dpals.data.cells import BLANKS
from dpals.data.columns import ColumnOptions, IdOption
from dpals.data.ratings import Ratings
from dpals.data.read import read_ratings
from dpals.data.streamed_history import stream_history


@dataclass(frozen=True)
class Declared:
    """What the caller says, all of it public."""

    limits: Range | None
    catalogue: tuple[int, ...] | tuple[str, ...]
    with_catalogue: bool
    ids: IdOption
    policy: OnBadRows
    unknown: OnBadRows | None
    with_times: bool

    @property
    def facts(self) -> dict[str, Any]:
        """As arguments of `read_ratings`."""
        return {
            "rating_range": self.limits,
            "catalogue": list(self.catalogue) if self.with_catalogue else None,
            "on_bad_rows": self.policy,
            "on_unknown_items": self.unknown,
        }


def declared(dice: Random) -> Declared:
    """Anything that could be declared."""
    return _declared(dice, None if dice.random() < 0.3 else dice.choice(RANGES), 12, dice.random() < 0.5)


def declared_for(dice: Random, limits: Range | None, n_items: int) -> Declared:
    """The same with what training needs: a catalogue of this size, and a range or None for implicit feedback."""
    return _declared(dice, limits, n_items, True)


def _declared(dice: Random, limits: Range | None, n_items: int, with_catalogue: bool) -> Declared:
    ids: IdOption = dice.choice(["auto", "auto", "integer", "string"])
    numbers = ids == "integer" or (ids == "auto" and dice.random() < 0.5)
    return Declared(
        limits,
        tuple(range(n_items)) if numbers else tuple(f"i{item}" for item in range(n_items)),
        with_catalogue,
        ids,
        dice.choice(["drop", "drop", "error"]),
        dice.choice([None, None, "drop"]),
        dice.random() < 0.6,
    )


@dataclass(frozen=True)
class DataSet:
    """Rows of several people, which can be read with and without some.

    ``owners`` has the person of each row, as the ratings name them; ``read`` reads the rows of these numbers, in this
    order. The rows of an anonymous matrix are its people, who have no other name than their place.
    """

    kind: str
    owners: Sequence[Any]
    declared: Declared
    read: Callable[[Sequence[int]], list[Ratings]]
    in_any_order: bool = True
    anonymous: bool = False


@dataclass(frozen=True)
class Format:
    """A kind of text file."""

    kind: str
    file: str
    separator: str
    header: bool = True
    in_parts: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the name of the file says what is in it."""
        return self.kind.startswith("MovieLens")


FORMATS = (
    Format("CSV", "ratings.csv", ","),
    Format("CSV without header", "ratings.csv", ",", header=False),
    Format("CSV, gzipped", "ratings.csv.gz", ","),
    Format("semicolons", "ratings.csv", ";"),
    Format("semicolons without header", "ratings.csv", ";", header=False),
    Format("TSV", "ratings.tsv", "\t"),
    Format("TSV without header", "ratings.tsv", "\t", header=False),
    Format("double colons", "ratings.txt", "::"),
    Format("MovieLens ratings.dat", "ratings.dat", "::", header=False),
    Format("MovieLens u.data", "u.data", "\t", header=False),
    Format("CSV as history in parts", "history.csv", ",", in_parts=True),
)
_HEADERS = {
    "user": ("user", "userId", "User ID", " uid "),
    "item": ("item", "movieId", "product_id"),
    "rating": ("rating", "stars"),
    "timestamp": ("timestamp", "ts", "Date"),
}


def text_file(dice: Random, said: Declared, folder: Path, form: Format) -> DataSet:
    """A text file, with the rows in any order."""
    if form.is_known and isinstance(said.catalogue[0], str):
        said = replace(said, ids="string")  # for these files have integers otherwise
    integers = said.ids == "integer" or (form.is_known and said.ids == "auto")
    roles = _roles(dice, said, form)
    comments = form.header and dice.random() < 0.2
    rows = [
        (_name(person, integers), _line(dice, person, said, form.separator, roles, comments))
        for person in people(dice, integers=integers, clean=said.policy == "error")
        for _ in range(person.n_rows)
    ]
    dice.shuffle(rows)
    if dice.random() < 0.5:  # the row that looks least like the others comes first
        rows.sort(key=lambda row: row[1].count(form.separator) >= len(roles) - 1)
    start = "\ufeff" if dice.random() < 0.15 else ""
    if form.header:
        start += form.separator.join([dice.choice(_HEADERS[role]) for role in roles] + ["comment"] * comments) + "\n"
    newline = dice.choice(["\n", "\n", "\r\n"])
    rows_at_once = max(dice.choice([3, 10, 1000]), len(rows) // 20)
    path = folder / form.file
    given: dict[str, Any] = {"implicit": said.limits is None, "ids": said.ids, **said.facts}
    if not form.header and not form.is_known:
        given |= {"columns": roles, "separator": form.separator}

    def read(numbers: Sequence[int]) -> list[Ratings]:
        content = (start + "".join(rows[number][1] + "\n" for number in numbers)).replace("\n", newline).encode()
        path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
        return in_parts(path, said, rows_at_once) if form.in_parts else [read_ratings(path, **given)]

    return DataSet(form.kind, [name for name, _ in rows], said, read)


def _roles(dice: Random, said: Declared, form: Format) -> list[str]:
    """The columns, in the order of the file."""
    rated, timed = form.is_known or said.limits is not None, form.is_known or said.with_times
    roles = ["user", "item", *["rating"] * rated, *["timestamp"] * timed]
    if not form.is_known and dice.random() < 0.3:
        dice.shuffle(roles)
    return roles


def _name(person: Person, integers: bool) -> int | str:
    """The id of a person in what is read: text without blanks around it, or an integer where ids are."""
    name = person.name.strip(BLANKS)
    digits = name.removeprefix("-")
    return int(name) if integers and digits.isascii() and digits.isdigit() else name


def _line(dice: Random, person: Person, said: Declared, separator: str, roles: list[str], comments: bool) -> str:
    """One line of a person."""
    item = str(dice.choice(said.catalogue[: 1 + person.n_rows // 2]))
    if dice.random() < person.broken:
        item = dice.choice([item, f"0{item}", "nowhere", "1000000", "", "\u00a0" + item])
    texts = {
        "user": dice.choice(["", " "]) if dice.random() < person.broken / 4 else dice.choice(person.writings),
        "item": dice.choice([item, item, f" {item}", f"{item} "]),
        "rating": rating_text(dice, person, said.limits or RANGES[0]),
        "timestamp": time_text(dice, person),
    }
    cells = [cell(dice, texts[role].strip("\t") if separator == "\t" else texts[role], separator) for role in roles]
    if comments:
        cells.append(cell(dice, dice.choice(["", "so so", "a,b;c", 'a "b"', "\u202e", "5"]), separator))
    return broken_line(dice, cells, separator) if dice.random() < person.broken / 3 else separator.join(cells)


def in_parts(path: Path, said: Declared, rows_at_once: int) -> list[Ratings]:
    """The users of a history in parts, as ``dpals recommend`` reads them."""
    is_text = isinstance(said.catalogue[0], str)
    with stream_history(
        path,
        ColumnOptions(implicit=said.limits is None),
        rating_range=said.limits,
        catalogue=np.array(said.catalogue, np.dtypes.StringDType() if is_text else np.int64),
        bad=BadRows(said.policy, "drop"),
        user_ids=said.ids,
        rows_at_once=rows_at_once,
    ) as parts:
        return list(parts)
