"""The method that trained a model and its arguments, as plain values that go to JSON, and back to an estimator."""

import logging
import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from dpals.errors import InputError
from dpals.methods.base.parameters import Parameters
from dpals.methods.base.registry import METHODS

if TYPE_CHECKING:
    from dpals.methods.base.estimator import Estimator

logger = logging.getLogger(__name__)

_RENAMED = {"PooledDPALS": {"company_share": "cooccurrence_share"}}
"""Arguments of earlier versions that have another name now."""
_REMOVED = {
    "PooledDPALS": {
        "growth": 1.15,
        "caution": 0.3,
        "fading": 0.5,
        "settling": 0.4,
        "mean_share": 0.005,
        "bias_share": 0.04,
    },
    "DPFrankWolfe": {"mean_share": 0.01},
}
"""Arguments of earlier versions that are constants now, and their values."""
_IN_OTHER_UNITS: dict[str, dict[str, Any]] = {
    "PooledDPALS": {
        "weight_exponent": None,
        "clip": 0.5,
        "noise_scale": 0.33,
        "taste_scale": 0.1,
        "bias_scale": 0.25,
        "user_bias_ridge": 3.0,
    },
    "PrivateBiases": {"bias_scale": 0.25, "user_bias_ridge": 3.0},
}
"""Arguments of versions that did not learn the scales of ratings, and their usual values. All those versions had
`user_bias_ridge`."""


def settings_of(estimator: "Estimator") -> dict[str, Any] | None:
    """The name of the method and the arguments it was given; None where they cannot be told in JSON.

    That is so for methods that are not of this library, and for arguments that are objects of other classes.
    Arguments are public, all of them. What a method chose in place of None when it was fitted is not told.

    Examples
    --------
    >>> import dpals
    >>> settings_of(dpals.GlobalMean(2.0))
    {'method': 'GlobalMean', 'epsilon': 2.0, 'delta': 1e-05, 'insecure_seed': None}
    """
    try:
        return _told(estimator)
    except _NotPlainError:
        return None


def estimator_from(settings: Mapping[str, Any] | None) -> "Estimator":
    """An estimator with the settings that a model remembers, not fitted; InputError if that cannot be.

    Models of earlier versions remember arguments that were renamed or became constants since, or that were in units of
    the rating range. If they will be trained otherwise for this reason, a warning is logged.

    Examples
    --------
    >>> estimator_from({"method": "GlobalMean", "epsilon": 2.0})
    GlobalMean(epsilon=2.0, delta=1e-05, insecure_seed=None)
    """
    if settings is None:
        raise InputError(
            "this model does not say how it was trained: it was made by an older version of dpals or by a method of "
            "your own"
        )
    if not isinstance(settings, Mapping):
        raise InputError(f"settings name a method and its arguments, and are not {settings!r}")
    name = settings.get("method")
    method = _method_named(name)
    if method is None or not isinstance(name, str):
        raise InputError(f"{name!r} is not a method of this version of dpals")
    arguments = _current(name, {argument: value for argument, value in settings.items() if argument != "method"})
    for argument, value in arguments.items():
        if argument not in method._parameter_names():
            raise InputError(f"{name} of this version of dpals has no argument {argument!r}")
        if isinstance(value, Mapping) and isinstance(value.get("method"), str):  # in a grid it would be a list
            if isinstance(arguments.get("grid"), Mapping):
                arguments["grid"] = _current(value["method"], arguments["grid"])
            arguments[argument] = estimator_from(value)
    try:
        return method(**arguments)
    except TypeError as problem:
        raise InputError(f"{name} lacks an argument: {problem}") from problem


def _current(method: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a model made by an earlier version, under the names they have now and without those removed."""
    renamed, removed = _RENAMED.get(method, {}), _REMOVED.get(method, {})
    if "user_bias_ridge" in arguments:
        usual = _IN_OTHER_UNITS.get(method, {})
        for argument in arguments.keys() & usual.keys():
            if arguments[argument] != usual[argument]:
                logger.warning(
                    "%s of this version of dpals learns the scales of ratings: "
                    "%s, which this model has for %r, is left out",
                    *(method, arguments[argument], argument),
                )
        arguments = {name: value for name, value in arguments.items() if name not in usual}
    for argument in arguments.keys() & removed.keys():
        if arguments[argument] not in (removed[argument], [removed[argument]]):
            logger.warning(
                "%s of this version of dpals has no argument %r: it is always %s, and not %s as for this model",
                *(method, argument, removed[argument], arguments[argument]),
            )
    return {renamed.get(name, name): value for name, value in arguments.items() if name not in removed}


class _NotPlainError(Exception):
    """There is a value without a form in JSON."""


def _told(estimator: Parameters) -> dict[str, Any]:
    """Plain attributes, and not get_params, which may show what was chosen when the method was fitted."""
    name = type(estimator).__name__
    if _method_named(name) is not type(estimator):
        raise _NotPlainError
    arguments = {argument: getattr(estimator, argument) for argument in estimator._parameter_names()}
    return {"method": name, **{argument: _plain(value) for argument, value in arguments.items()}}


def _plain(value: Any) -> Any:
    """The value as JSON gives it back: Python's own numbers and text, lists and dicts."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, Parameters):
        return _told(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): _plain(content) for key, content in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return [_plain(content) for content in value]
    raise _NotPlainError


def _method_named(name: Any) -> "type[Estimator] | None":
    """The class of a method of this library."""
    modules = {method.name: method.module for method in METHODS}
    if not isinstance(name, str) or name not in modules:
        return None
    found: type[Estimator] = getattr(import_module(modules[name]), name)
    return found
