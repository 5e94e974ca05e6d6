"""People whose rows are odd in every way that a reader of tables could trip over: ids, ratings, times and whole lines.

What they give is drawn from lists of oddities by a generator with a seed, so that a failure can be had again.
"""

import csv
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from random import Random

from dpals.data.cells import BLANKS

Range = tuple[float, float]

RANGES: tuple[Range, ...] = ((0.5, 5.0), (1.0, 1.000001), (-1.0, 1.0), (-3e38, 3e38))
"""Usual stars; so narrow that the last bit counts; around zero; and as wide as single precision."""

_NAMES = (
    *("guest", "user", "item", "rating", "timestamp", "userId", "null", "None", "NaN", "NA", "inf", "true", "#", "-"),
    *(
        "\ufeffbob",
        "bo\ufeffb",
        "bob",
        "Bob",
        "\u00a07",
        "7\u00a0",
        "7\u2003",
        "\u200b7",
        "\x1f7",
        "7\x85",
        "\u2028",
        "\x0b7",
    ),
    *(
        "e\u0301",
        "\u00e9",
        "\u05d0\u05d1",
        "\u202e7",
        "\U0001f600",
        "\U0001f468\u200d\U0001f469",
        "\uff17",
        "\u0667",
        "\u2167",
    ),
    *(
        "a b",
        "a  b",
        "1 2",
        "1,2",
        "1;2",
        "1:2",
        "1:2:3",
        "1|2",
        "a\\b",
        "'7'",
        "x" * 300,
        'say "hi"',
        "7\r8",
        "\r7",
        "0x10",
        "1_000",
        "1.0",
        "1e5",
    ),
)
_PLAIN_INTEGERS = (
    *("100000", "-1", "-7", "4294967296", "9007199254740993", "9223372036854775807", "-9223372036854775808"),
    *(str(number) for number in range(12)),
)
_OTHER_INTEGERS = (
    "007",
    "07",
    "00",
    "-0",
    "+7",
    "9223372036854775808",
    "18446744073709551615",
    "-9223372036854775809",
    "1" * 40,
)
_SIGNS = ("-1", "-7", "9223372036854775808", "18446744073709551615")
"""Some fit integers with a sign, some those without."""
_BAD_RATINGS = (
    *(
        "",
        " ",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "1e308",
        "-1e308",
        "1e999",
        "x",
        "4,5",
        "4.5.5",
        "1_000",
        "0x1p2",
        "--1",
        "4 5",
    ),
    *("\uff14", "\u0664", "\u22124", "\ufeff4", "4\u00a0", "\u20034", "null", "None", "true", "1e", "."),
)
_BAD_TIMES = (
    *(
        "",
        "  ",
        "nan",
        "inf",
        "x",
        "9223372036854775808",
        "-9223372036854775809",
        "1e30",
        "2024-13-01",
        "2024-01-01T25:00",
    ),
    *("12:30", "\uff11", "1_000", "null", "yesterday"),
)
_DATES = (
    *(
        "2024-01-02",
        "2024-01-02T03:04:05",
        "2024-01-02 03:04:05.678",
        "2024-01-02T03:04:05Z",
        "2024-01-02T03:04:05+01:00",
    ),
    *("1969-12-31", "0001-01-01", "9999-12-31"),
)
_FEW, _MANY = 9, 10_000
_STAMP = 1_700_000_000_123_456_789


@dataclass(frozen=True)
class Person:
    """How somebody's rows look.

    ``name`` is the id and ``writings`` the ways in which it is written. ``ratings`` and ``times`` say which
    oddities are drawn, ``broken`` is the share of rows that cannot be used.
    """

    name: str
    writings: tuple[str, ...]
    ratings: str
    times: str
    n_rows: int
    broken: float


def people(dice: Random, *, integers: bool, clean: bool) -> list[Person]:
    """Two to nine people, each with another id, and at least one of them with an id that is a plain integer.

    Parameters
    ----------
    integers
        Whether ids are declared to be integers.
    clean
        Whether every row can be used. If not, some people give rows that cannot.
    """
    known: dict[str, Person] = {}
    wanted = dice.randint(2, _FEW)
    while len(known) < wanted:
        person = _person(dice, _pools(integers, clean), clean)
        known.setdefault(person.name.strip(BLANKS), person)
    return list(known.values())


def _pools(integers: bool, clean: bool) -> list[tuple[str, ...]]:
    """Lists of ids to choose from."""
    if integers:
        return [_PLAIN_INTEGERS] if clean else [_PLAIN_INTEGERS, _PLAIN_INTEGERS, _SIGNS, _OTHER_INTEGERS, _NAMES]
    return [_PLAIN_INTEGERS, _OTHER_INTEGERS, _NAMES]


def _person(dice: Random, pools: list[tuple[str, ...]], clean: bool) -> Person:
    name = dice.choice(dice.choice(pools))
    broken = 0.0 if clean else dice.choice([0.0, 0.0, 0.3, 1.0])
    return Person(
        name,
        tuple(name if kind == "as it is" else _padded(dice, name) for kind in dice.choice(_MANNERS)),
        dice.choice(["plain", "plain", "long", "exponent", "padded", "edge", "edge"]),
        dice.choice(["seconds", *["nanoseconds"] * 3, "decimal", "date", "edge", "few"]),
        _number_of_rows(dice),
        broken,
    )


_MANNERS = (("as it is",), ("as it is",), ("padded",), ("as it is", "padded"))


def _padded(dice: Random, name: str) -> str:
    return dice.choice(["", " ", "  ", "\t"]) + name + dice.choice(["", " "])


def _number_of_rows(dice: Random) -> int:
    if dice.random() < 0.001:
        return _MANY
    return 1 if dice.random() < 0.3 else dice.randint(2, 40 if dice.random() < 0.1 else 8)


def rating_text(dice: Random, person: Person, limits: Range) -> str:
    """A rating of this person as text; one that cannot be used where the person's rows are broken."""
    if dice.random() < person.broken:
        return dice.choice([*_BAD_RATINGS, *map(str, (limits[0] - 1, 2 * limits[1] + 1))])
    low, high = limits
    near_one = low == 1.0 and high < 1.1
    if person.ratings == "long" or near_one:
        return _near_midpoint(dice, 0.5 if high <= 1 else 1.0)
    if person.ratings == "edge":
        if low <= 0 <= high and dice.random() < 0.7:
            return dice.choice(["-0.0", "0"])
        inside = ["1e-320", "-1e-46", "1e-45", "0.1", "16777217", "3e38", "1e-400"]
        return dice.choice([text for text in inside if low <= float(text) <= high] or [repr(low), repr(high)])
    value = round(max(low, -10.0) + dice.random() * (min(high, 10.0) - max(low, -10.0)), dice.choice([0, 1, 1, 2, 17]))
    text = repr(min(max(value, low), high))
    if person.ratings == "exponent":
        return f"{float(text):.16e}"
    return f" {text} " if person.ratings == "padded" else text


def _near_midpoint(dice: Random, scale: float) -> str:
    """A decimal near the middle of two neighbours in single precision: rounded twice it becomes the other of them."""
    middle = 1 + Decimal(2 * dice.randint(0, 7) + 1) / 2**24
    near = middle + dice.choice([Decimal("1e-20"), Decimal("-1e-20"), Decimal(0), Decimal("1e-9")])
    return f"{near * Decimal(scale):f}"


def time_text(dice: Random, person: Person) -> str:
    """A time of this person as text: stamps that are close together, so that the last digit decides which is latest."""
    if dice.random() < person.broken / 2:
        return dice.choice(_BAD_TIMES)
    if person.times == "date":
        return dice.choice(_DATES)
    if person.times == "edge":
        return dice.choice(
            ["0", "-1", str(-(2**63)), str(2**63 - 1), str(2**53 + 1), "-1.5", "1e9", " 12 ", "+5", "007", "1.5"]
        )
    if person.times == "decimal":
        return f"{dice.randint(1, 3)}.{dice.randint(0, 9)}"
    if person.times == "nanoseconds":
        return str(_STAMP + dice.randint(0, 3))
    return str(dice.randint(1, 3) if person.times == "few" else 1_700_000_000 + dice.randint(0, 3))


def time_value(dice: Random, person: Person, with_dates: bool) -> int | float | datetime:
    """A time of this person as a number or a date of Python."""
    if person.times == "date" and with_dates:
        return datetime(2024, 1, dice.randint(1, 28), 3, 4, 5, dice.randint(0, 999_999), tzinfo=UTC)
    if person.times == "decimal":
        return dice.randint(1, 3) + dice.choice([0.0, 0.5])
    if person.times == "edge":
        return dice.choice([0, -1, -(2**63), 2**63 - 1, 2**53 + 1, -1.5])
    return _STAMP + dice.randint(0, 3) if person.times == "nanoseconds" else dice.randint(1, 3)


def broken_line(dice: Random, cells: list[str], separator: str) -> str:
    """A line that has not as many fields as it should, or other separators. Its quotes are in order."""
    quoted = any('"' in cell for cell in cells)
    other = separator if quoted else dice.choice([mark for mark in (",", ";", "\t", "::", "|") if mark != separator])
    line = dice.choice(
        [
            separator.join(cells[:-1]),
            separator.join([*cells, "more"]),
            separator.join(cells) + separator,
            cells[0],
            separator * (len(cells) + 1),
            other.join(cells),
            other.join([*cells, *cells]),
            "   ",
        ]
    )
    return cells[0] if len(fields_of(line, separator)) == len(cells) else line


def fields_of(line: str, separator: str) -> list[str]:
    """The fields of a line whose quotes are in order."""
    if separator == "::":
        return line.split(separator)
    return next(csv.reader([line.replace("\r", " ")], delimiter=separator), [])


def cell(dice: Random, text: str, separator: str) -> str:
    """A field of a text file: in quotes where it must be, and sometimes where it need not."""
    if separator == "::" or "\r" in text:
        return text
    if separator in text or '"' in text or dice.random() < 0.03:
        return '"' + text.replace('"', '""') + '"'
    return text
