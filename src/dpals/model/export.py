"""The item side of a model for other programs: a Parquet file, or arrays for an index of nearest neighbours."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpals.data.ids import to_series
from dpals.errors import InputError
from dpals.system.files import draft

if TYPE_CHECKING:
    from dpals.model.factor_model import FactorModel

Exported = tuple[NDArray[Any], NDArray[np.float32]]


def export_model(model: "FactorModel", format: str, path: str | os.PathLike[str] | None) -> Exported | None:
    """Do the work of `FactorModel.export`."""
    if format == "parquet":
        if path is None:
            raise InputError('export("parquet") needs a path: export("parquet", "items.parquet")')
        with draft(Path(path)) as place:
            items_frame(model).write_parquet(place)
        return None
    if format == "arrays":
        if path is not None:
            raise InputError('export("arrays") returns the arrays and writes nothing: leave out the path')
        return model.items, model.item_side().copy()
    raise InputError(f'the format must be "parquet" or "arrays", not {format!r}')


def items_frame(model: "FactorModel") -> pl.DataFrame:
    """One row per item: item, bias, factor_0, factor_1, ..., history_0, ... of a model that has them, trained.

    Examples
    --------
    >>> from dpals.model.factor_model import FactorModel
    >>> items_frame(FactorModel(["tea", "rum"], [[1.0], [-1.0]], [0.5, 0.25], 3.0, 1.0)).rows()
    [('tea', 0.5, 1.0, True), ('rum', 0.25, -1.0, True)]
    """
    columns = {"item": to_series(model.items), "bias": model.item_biases, **_numbered("factor", model.item_factors)}
    if model.history_factors is not None:
        columns |= _numbered("history", model.history_factors)
    return pl.DataFrame({**columns, "trained": model.is_trained})


def _numbered(name: str, matrix: NDArray[np.float32]) -> dict[str, Any]:
    return {f"{name}_{number}": column for number, column in enumerate(matrix.T)}
