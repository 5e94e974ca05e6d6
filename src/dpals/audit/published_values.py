"""Everything that a training run publishes, in a form in which two runs can be compared, to the last bit."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dpals.model.factor_model import FactorModel

_SET_BY_AUDIT = ("mechanism_class", "choose")
"""Attributes of an estimator in which the audit itself puts recording doubles."""


def published_values(estimator: Any, steps: list[FactorModel]) -> dict[str, Any]:
    """The model, its statement and files, the model of each step, and whatever else the estimator keeps, by name."""
    model: FactorModel = estimator.model_
    kept = {
        name: comparable(value) for name, value in vars(estimator).items() if name not in ("model_", *_SET_BY_AUDIT)
    }
    return {**comparable(model), **kept, **_files(model), "models of the steps": comparable(steps)}


def _files(model: FactorModel) -> dict[str, bytes]:
    """The files of the model as it is saved."""
    with TemporaryDirectory() as name:
        model.save(name)
        return {f"the file {path.name}": path.read_bytes() for path in Path(name).iterdir()}


def comparable(value: Any) -> Any:
    """Equal for two values only if they agree to the last bit.

    Examples
    --------
    >>> comparable(np.array([0.0])) == comparable(np.array([-0.0]))
    False
    """
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tolist() if value.dtype.hasobject else value.tobytes()
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: comparable(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, dict):
        return {key: comparable(content) for key, content in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(content) for content in value]
    if hasattr(value, "__dict__") and not callable(value):
        return type(value).__name__, comparable(vars(value))
    return repr(value)
