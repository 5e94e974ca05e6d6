"""Recommender models under user-level joint differential privacy.

The names below are the public interface. They are loaded on first use, so that ``import dpals`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Ratings": "dpals.ratings",
    "InputError": "dpals.ratings",
    "read_ratings": "dpals.io",
}
_MODULES = {"simulate": "dpals.simulate"}

__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module 'dpals' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


if TYPE_CHECKING:
    from dpals import simulate as simulate
    from dpals.io import read_ratings as read_ratings
    from dpals.ratings import InputError as InputError
    from dpals.ratings import Ratings as Ratings
