"""What a text table is made of: its columns, its separator, what its ids are. Declared, never guessed from rows.

The header line declares it, or the caller, or the name of a MovieLens file. A row of data may be anyone's: it decides
nothing about other rows.
"""

from dataclasses import dataclass
from pathlib import PurePath

from dpals.data.columns import ColumnOptions
from dpals.data.text_lines import DOUBLE_COLON, header_fields, shortened
from dpals.errors import InputError

_MOVIELENS = {"ratings.dat": DOUBLE_COLON, "u.data": "\t"}
"""Files of MovieLens without a header line: the separator. Their ids are integers."""
_MOVIELENS_COLUMNS = ("user", "item", "rating", "timestamp")
_TABS = (".tsv", ".tab")


@dataclass(frozen=True)
class TextFormat:
    """How to read the lines of a text table."""

    names: tuple[str, ...]
    separator: str
    has_header: bool
    integer_ids: bool
    declared_by: str
    """Who or what says so."""


def text_format(name: str, first_line: str, options: ColumnOptions) -> TextFormat:
    """The format of a file, from what the caller says, from its name, or from its first line, which is then a header.

    Examples
    --------
    >>> text_format("ratings.csv", "userId;movieId;rating", ColumnOptions())
    TextFormat(names=('userId', 'movieId', 'rating'), separator=';', has_header=True, integer_ids=False, \
declared_by='The header line')
    >>> options = ColumnOptions(columns=("user", "item", "rating"), separator=";")
    >>> text_format("ratings.csv", "7;50;3", options).declared_by
    'The caller'
    """
    plain_name = PurePath(name.removesuffix(".gz"))
    if options.columns is not None:
        separator = options.separator or ("\t" if plain_name.suffix in _TABS else ",")
        return TextFormat(tuple(options.columns), separator, False, False, "The caller")
    if plain_name.name in _MOVIELENS and not options.named() and options.separator is None:
        separator = _MOVIELENS[plain_name.name]
        return TextFormat(_MOVIELENS_COLUMNS, separator, False, True, f"The name {plain_name.name} of MovieLens files")
    if "\r" in first_line:
        raise InputError(
            f"{name}: carriage returns inside the first line. Save the file with a newline at the end of each line"
        )
    separator = options.separator or find_separator(first_line)
    names = tuple(header_fields(first_line, separator, f"{name}, the header line"))
    if len(names) < 2:
        raise InputError(
            f"{name}: the header line has only one column: {shortened(first_line)}. Separate columns by comma, tab, "
            "semicolon or '::', or name another separator with separator=..."
        )
    return TextFormat(names, separator, True, False, "The header line")


def find_separator(header: str) -> str:
    """What stands between the names in a header line.

    Examples
    --------
    >>> find_separator("userId;movieId;stars, 1 to 5")
    ';'
    """
    if DOUBLE_COLON in header and not any(separator in header for separator in "\t;,"):
        return DOUBLE_COLON
    if "\t" in header:
        return "\t"
    return ";" if header.count(";") > header.count(",") else ","
