"""The compilation target: what the bits of users' rows can depend on besides data and public values.

All processors of a family give the same rows: their sums have a fixed order, and neither BLAS nor functions of the C
library take part. Another version of a compiler may give other bits, and nothing tests that families agree. So blocks
of users from different targets must not be added up: a user whose row is computed twice must contribute the same both
times.
"""

import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from dpals.errors import InputError
from dpals.version import __version__

_MUST_AGREE = ("family", "dpals", "numpy", "numba", "llvmlite")


@dataclass(frozen=True)
class Target:
    """Versions and machine. All fields are short texts, so that a target can be sent as JSON: ``Target(**fields)``.

    Attributes
    ----------
    family
        The instruction set, such as x86_64, and the order of bytes.
    dpals, numpy, numba, llvmlite
        Versions of what computes users' rows.
    scipy, blas
        Version, and the type of processor that each BLAS has code for. They matter for item factors, which are computed
        in one place, and not for users' rows.
    processor, features
        What kernels are compiled for. These do not change users' rows either.
    """

    family: str
    dpals: str
    numpy: str
    numba: str
    llvmlite: str
    scipy: str
    blas: str
    processor: str
    features: str


@cache
def target() -> Target:
    """The target of this process.

    Examples
    --------
    >>> target().dpals == __version__
    True
    """
    import llvmlite.binding as llvm
    from numba.core import config as untyped_config
    from threadpoolctl import threadpool_info

    config: Any = untyped_config
    own = sorted(name for name, has in llvm.get_host_cpu_features().items() if has)
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return Target(
        family=f"{platform.machine()}, {sys.byteorder} endian",
        dpals=__version__,
        **{name: version(name) for name in ("numpy", "numba", "llvmlite", "scipy")},
        blas="; ".join(f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}" for pool in pools),
        processor=config.CPU_NAME or llvm.get_host_cpu_name(),
        features=",".join(own) if config.CPU_FEATURES is None else config.CPU_FEATURES,
    )


def check_same(targets: Iterable[Target]) -> None:
    """Raise if users' rows from these targets may differ in their last bits.

    Formal guarantee (docs/privacy.md, step 11): if it returns, a user's row is the same to the last bit on each of
    the machines, so it does not matter which of them computed it. tests/privacy/test_processors.py compiles kernels for
    several processors.

    Examples
    --------
    >>> check_same([target(), target()])
    """
    found = list(targets)
    for name in _MUST_AGREE:
        values = sorted({getattr(one, name) for one in found})
        if len(values) > 1:
            raise InputError(
                f"users' rows were computed with different versions or machines, {name}: {' and '.join(values)}. "
                "Rows may then differ in their last bits: compute all blocks with the same versions"
            )
