"""All methods of the library, one line each.

The public names of the package, the command line, the experiments, and the tests that every method must pass read this
table. It imports nothing but the standard library, so that ``import dpals`` stays quick.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

_SMALL = {"rank": 3, "steps": 2}
_FREQUENT = {**_SMALL, "frequent_fraction": 0.5}


class Method(NamedTuple):
    """What the rest of the library needs to know of a method before it is loaded.

    Attributes
    ----------
    name
        Of the class, which is public as ``dpals.NAME``.
    file
        The module with the class, below ``dpals.methods``.
    command
        What the method is called on the command line; empty where ``dpals fit`` cannot train it.
    private
        Whether it keeps to a privacy budget.
    ratings, implicit
        Whether it takes ratings, and implicit feedback.
    small
        Arguments with which it trains in an instant on 40 items, for tests. A search is given its method besides.
    """

    name: str
    file: str
    command: str
    private: bool
    ratings: bool
    implicit: bool
    small: Mapping[str, Any]

    @property
    def module(self) -> str:
        """The module with the class, in full."""
        return f"dpals.methods.{self.file}"


METHODS = (
    # name, file, command, private, ratings, implicit, small
    Method("PooledDPALS", "pooled.pooled_dpals", "pooled", True, True, True, _SMALL),
    Method("DPALS", "dpals", "dpals", True, True, True, {**_FREQUENT, "ratings_per_user": 10}),
    Method("AdaDPALS", "ada_dpals", "ada-dpals", True, True, True, _FREQUENT),
    Method("DPFrankWolfe", "frank_wolfe", "frank-wolfe", True, True, False, {"steps": 3, "frequent_fraction": 0.9}),
    Method("DPSVD", "dp_svd", "svd", True, True, False, {"rank": 3, "most_items": 35}),
    Method("DPSGD", "dp_sgd", "sgd", True, True, False, _SMALL),
    Method("SGLD", "sgld", "sgld", True, True, False, _SMALL),
    Method("PrivateBiases", "biases", "biases", True, True, False, {"steps": 2}),
    Method("ItemMean", "means", "item-mean", True, True, False, {}),
    Method("GlobalMean", "means", "global-mean", True, True, False, {}),
    Method("UserMean", "means", "user-mean", True, True, False, {}),
    Method("Popularity", "popularity", "popularity", True, False, True, {}),
    Method("PrivateSearch", "private_search", "", True, True, True, {"grid": {"clip": [1.0, 2.0]}, "tries": 2}),
    Method("ALS", "als", "als", False, True, True, _SMALL),
    Method("StagewiseALS", "stagewise_als", "stagewise-als", False, True, False, {**_SMALL, "stage_size": 2}),
    Method("TraceNorm", "trace_norm", "trace-norm", False, True, False, _SMALL),
)
NOT_PRIVATE = tuple(method.name for method in METHODS if not method.private)
