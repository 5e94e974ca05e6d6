"""The users' own ratings, in whatever form they come, as a model needs them."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import issparse

from dpals.data.bad_rows import UNKNOWN_ITEM, BadRows
from dpals.data.blocks.folder import Blocks
from dpals.data.build import build
from dpals.data.columns import ColumnOptions
from dpals.data.frames import FrameSource, is_pandas
from dpals.data.ids import is_text, positions
from dpals.data.population import PartOfPopulation, Population
from dpals.data.ratings import Ratings
from dpals.data.read import read_file
from dpals.errors import InputError
from dpals.model.table import Layout, library_of

Range = tuple[float, float] | None

_LOG = logging.getLogger("dpals")


class ColumnNames(TypedDict, total=False):
    """Names of the columns of a table, if they are not the usual ones. The last two are for text files."""

    user: str | None
    item: str | None
    rating: str | None
    timestamp: str | None
    columns: Sequence[str] | None
    separator: str | None


def take_history(
    data: Any, items: NDArray[Any], rating_range: Range, **columns: Unpack[ColumnNames]
) -> tuple[Ratings, Layout | None]:
    """Do the work of `FactorModel.history`; with the layout of frames of recommendations, if the data is a frame."""
    if isinstance(data, Ratings):
        check_facts(data, items, rating_range)
        return data, None
    if issparse(data):
        return _from_sparse(data, items, rating_range), None
    if isinstance(data, str | os.PathLike):
        raise InputError(f"the history is a path, {str(data)!r}: read it with model.read_history first")
    if isinstance(data, Blocks | PartOfPopulation):
        raise InputError(
            "the history is in blocks, which may not fit in memory: take one block after another, as in "
            "`for block in history.blocks: model.recommend(block.open())`"
        )
    if not (is_pandas(data) or isinstance(data, pl.LazyFrame) or hasattr(data, "__arrow_c_stream__")):
        raise InputError(
            "the history must be a dpals.Ratings, a pandas or polars frame, an Arrow table or a SciPy sparse matrix, "
            f"not a {type(data).__name__}"
        )
    source = FrameSource(data, wanted_columns(rating_range, columns), name="the history (see FactorModel.history)")
    ratings = build(Ratings, source, rating_range=rating_range, catalogue=items, bad=_bad_rows(rating_range))
    _say_what_was_left_out(ratings)
    return ratings, Layout(library_of(data), source.columns.user, source.columns.item)


def read_history(
    path: str | os.PathLike[str], items: NDArray[Any], rating_range: Range, **columns: Unpack[ColumnNames]
) -> Ratings:
    """Do the work of `FactorModel.read_history`."""
    wanted, bad = wanted_columns(rating_range, columns), _bad_rows(rating_range)
    ratings = read_file(Path(path), wanted, rating_range=rating_range, catalogue=items, bad=bad)
    _say_what_was_left_out(ratings)
    return ratings


def wanted_columns(rating_range: Range, columns: ColumnNames) -> ColumnOptions:
    """Which columns of a table a model needs: the ratings too, if it has a range for them."""
    if rating_range is None:
        others: ColumnNames = {**columns, "rating": None}
        return ColumnOptions(**others, implicit=True)
    return ColumnOptions(**columns, rated=True)


def _bad_rows(rating_range: Range) -> BadRows:
    scale = "" if rating_range is None else ": the model is made for ratings from {:g} to {:g}".format(*rating_range)
    return BadRows("error", "drop", f"Correct such rows or leave them out{scale}")


def _say_what_was_left_out(ratings: Ratings) -> None:
    """Log it once; the report of the ratings has it as well."""
    unknown = ratings.report.rows_dropped.get(UNKNOWN_ITEM, 0)
    if unknown:
        message = "%s of %s rows of the history are about items that the model does not know: they were left out"
        _LOG.warning(message, f"{unknown:,}", f"{ratings.report.rows_read:,}")


def _from_sparse(matrix: Any, items: NDArray[Any], rating_range: Range) -> Ratings:
    if matrix.ndim != 2 or matrix.shape[1] != len(items):
        raise InputError(
            f"the history has the shape {matrix.shape}: a matrix needs a row for each user and a column for each of "
            f"the {len(items):,} items of the model, in the order of model.items"
        )
    return Ratings.from_csr(matrix, items=items, rating_range=rating_range, implicit=rating_range is None)


def check_facts(ratings: Population, items: NDArray[Any], rating_range: Range, what: str = "history") -> None:
    """Raise unless the history, or what it is called, has the catalogue and the rating range of the model."""
    if not np.array_equal(ratings.items, items):
        raise InputError(_catalogue_problem(ratings.items, items, what))
    if ratings.is_implicit and rating_range is not None:
        raise InputError(
            f"the model is made for ratings, and the {what} holds implicit feedback: make it with the ratings and "
            "rating_range=model.rating_range"
        )
    if rating_range is None and not ratings.is_implicit:
        raise InputError(
            f"the model is made for implicit feedback, and the {what} holds ratings: leave them out when you make it "
            "(implicit=True where a table is read)"
        )
    if ratings.rating_range != rating_range:
        raise InputError(
            f"the {what} has the rating range {ratings.rating_range}, the model {rating_range}: bring the "
            "ratings to the scale of the model and give rating_range=model.rating_range"
        )


def _catalogue_problem(given: NDArray[Any], known: NDArray[Any], what: str) -> str:
    """How the items of a history differ from those of the model, and what to do about it."""
    advice = f"Make the {what} with catalogue=model.items"
    if len(given) and len(known) and is_text(given) != is_text(known):
        kinds = ("text", "integers") if is_text(given) else ("integers", "text")
        return f"the items of the {what} are {kinds[0]}, those of the model {kinds[1]}. {advice}"
    unknown = given[positions(known, given) < 0]
    missing = len(known) - (len(given) - len(unknown))
    if len(unknown):
        example = f"{len(unknown):,} items that the model does not know, {unknown.tolist()[0]!r} for one"
        return f"the {what} has {example}. {advice} and on_unknown_items='drop'"
    if missing:
        return f"the {what} lacks {missing:,} items of the model. {advice}"
    return f"the {what} has the items of the model in another order. {advice}"
