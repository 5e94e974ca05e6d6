"""Ids as the caller gives them: integers or text, none missing; and where to find them."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpals.data.bad_rows import Place, row_of_array
from dpals.data.cells import is_missing, typed_series
from dpals.errors import InputError

_LARGEST = np.iinfo(np.int64).max


def id_series(values: Any, column: str, place: Place = row_of_array) -> pl.Series:
    """Ids as a series of integers or of text, in which null stands for a missing id.

    Examples
    --------
    >>> id_series(["b", None], "user").to_list()
    ['b', None]
    >>> id_series([1, "b"], "user")
    Traceback (most recent call last):
    dpals.errors.InputError: row 1 (counting from 0), column 'user': mixed id types: 'b' is text but the ids \
before it are integers. Make them all integers or all text
    """
    series = typed_series(values, column)
    if series is None:
        series = _from_objects(values, column, place)
    dtype = series.dtype
    if series.is_empty():
        return pl.Series([], dtype=pl.String if dtype == pl.String else pl.Int64)
    if dtype in (pl.Int128, pl.UInt128):
        raise InputError(f"column {column!r}: these integers do not fit in 64 bits. Make them text")
    if dtype.is_integer() or dtype == pl.String:
        return series
    if isinstance(dtype, pl.Categorical | pl.Enum | pl.Null):
        return series.cast(pl.String)
    if dtype.is_float():
        raise InputError(
            f"column {column!r} holds decimal numbers ({dtype}), but ids are integers or text. Convert it to "
            "integers first; if it became decimal because some ids are missing, drop those rows before"
        )
    raise InputError(f"column {column!r} holds {dtype} values, but ids are integers or text. Convert it first")


def _from_objects(values: Any, column: str, place: Place) -> pl.Series:
    """Ids from Python objects one by one; the slow way, which can name the row at fault."""
    objects = values.to_list() if hasattr(values, "to_list") else list(values)
    types = set(map(type, objects)) - {type(None)}
    clean = objects if types in ({int}, {str}) else _of_one_kind(objects, column, place)
    try:
        return pl.Series(clean)
    except Exception as error:
        raise InputError(f"column {column!r}: these ids cannot be used: {error}") from error


def _of_one_kind(objects: list[Any], column: str, place: Place) -> list[Any]:
    """The same ids as Python's integers or text, None where one is missing; an error where they are not all alike."""
    known: str | None = None
    clean: list[Any] = []
    for row, value in enumerate(objects):
        if is_missing(value):
            clean.append(None)
            continue
        kind = _kind(value)
        if known is not None and kind != known:
            raise InputError(
                f"{place(row)}, column {column!r}: mixed id types: {value!r} is {_singular(kind)} but the ids "
                f"before it are {known}. Make them all integers or all text"
            )
        known = kind
        clean.append(str(value) if kind == "text" else int(value) if kind == "integers" else value)
    return clean


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return "integers"
    return f"{type(value).__name__} values"


def _singular(kind: str) -> str:
    return {"text": "text", "integers": "an integer"}.get(kind, f"a {kind.removesuffix(' values')}")


def id_array(values: Any, column: str) -> NDArray[Any]:
    """Ids given by the caller, none missing and none twice, as an array.

    Examples
    --------
    >>> id_array((3, 1), "catalogue")
    array([3, 1])
    """
    series = _complete(id_series(values, column), column)
    if (repeated := series.is_duplicated()).any():
        raise InputError(f"column {column!r}: the id {series.filter(repeated)[0]!r} is there more than once")
    return to_array(series)


def find(ids: NDArray[Any], wanted: Any, role: str, unknown_ok: bool) -> NDArray[np.int64]:
    """Position in `ids` of every wanted id, -1 or an error where there is none. Integers are found among text, too."""
    series = _complete(id_series(wanted, f"{role} ids"), f"{role} ids")
    sought = to_array(series.cast(pl.String) if is_text(ids) else series)
    if len(ids) and len(sought) and is_text(ids) != is_text(sought):
        raise InputError(f"{role} ids are {type_name(ids)} here, and these are {type_name(sought)}: {_some(sought)}")
    at = positions(ids, sought)
    if not unknown_ok and (at < 0).any():
        unknown = sought[at < 0]
        raise InputError(f"{len(unknown):,} unknown {role} id{'s' if len(unknown) > 1 else ''}: {_some(unknown)}")
    return at


def positions(ids: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int64]:
    """Position in `ids` of every wanted id, -1 where there is none.

    Examples
    --------
    >>> positions(np.array([30, 10]), np.array([10, 20, 30]))
    array([ 1, -1,  0])
    """
    if len(ids) == 0 or len(wanted) == 0:
        return np.full(len(wanted), -1, np.int64)
    if is_text(ids):  # numpy 2.4 cannot search one StringDType array for the long strings of another
        sought = pl.DataFrame({"id": pl.Series(wanted.tolist(), dtype=pl.String)})
        known = pl.DataFrame({"id": pl.Series(ids.tolist(), dtype=pl.String), "at": np.arange(len(ids))})
        return sought.join(known, on="id", how="left", maintain_order="left")["at"].fill_null(-1).to_numpy()
    same_type = wanted.astype(ids.dtype)
    order = np.argsort(ids, kind="stable")
    at = order[np.minimum(np.searchsorted(ids, same_type, sorter=order), len(ids) - 1)]
    found = ids[at] == same_type
    if ids.dtype != wanted.dtype:  # int64 against uint64: wrapped around past 2^63
        found &= (ids[at] >= 0) & (wanted >= 0)
    return np.where(found, at, -1)


def _complete(series: pl.Series, column: str) -> pl.Series:
    missing = _missing(series)
    if missing.any():
        raise InputError(f"{row_of_array(missing.arg_max() or 0)}, column {column!r}: the id is missing")
    return series


def _missing(series: pl.Series) -> pl.Series:
    return series.is_null() | (series == "") if series.dtype == pl.String else series.is_null()


def to_array(series: pl.Series) -> NDArray[Any]:
    """Ids without nulls as int64, as uint64 if they need it, or as ``StringDType``."""
    if series.dtype == pl.String:
        return np.array(series.to_list(), dtype=np.dtypes.StringDType())
    return series.to_numpy().astype(np.uint64 if series.dtype == pl.UInt64 and _max(series) > _LARGEST else np.int64)


def _max(series: pl.Series) -> int:
    return int(series.max() or 0)  # type: ignore[arg-type]


def to_series(ids: NDArray[Any]) -> pl.Series:
    """Ids as a column of a table.

    Examples
    --------
    >>> to_series(np.array(["tea", "rum"], np.dtypes.StringDType())).to_list()
    ['tea', 'rum']
    """
    return pl.Series(ids.tolist(), dtype=pl.String) if is_text(ids) else pl.Series(ids)


def is_text(ids: NDArray[Any]) -> bool:
    """Whether ids are text, and not integers."""
    return isinstance(ids.dtype, np.dtypes.StringDType)


def type_name(ids: NDArray[Any]) -> str:
    """What ids are, in a word."""
    return "text" if is_text(ids) else "integers"


def _some(ids: NDArray[Any]) -> str:
    return ", ".join(repr(value) for value in ids[:5].tolist()) + (", ..." if len(ids) > 5 else "")
