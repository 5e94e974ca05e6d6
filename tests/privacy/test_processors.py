"""What a user contributes has the same bits on every type of processor of one family.

Kernels are compiled for other processors than this one, and NumPy, BLAS and the C library are told not to use what
these do not have.
"""

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("contributions.py")
TARGETS = {
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "skylake-avx512": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "znver4": {"OPENBLAS_CORETYPE": "Zen"},
}
THIS = "this processor"
"""Whatever it is; its kernels are compiled already."""
WITHOUT_FMA = {"nehalem": {"OPENBLAS_CORETYPE": "Nehalem", "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA"}}

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="the processors to compile for are of x86_64"
)


def left_out(processor):
    """What NumPy has special code for and the processor does not have."""
    special = np._core._multiarray_umath.__cpu_dispatch__
    newer = [name for name in special if "512" in name or name == "X86_V4"]
    return {"haswell": newer, "nehalem": special}.get(processor, [])


def contributions(targets, folder):
    """By processor and name. Processors whose code this machine cannot run are left out."""
    running = {}
    for name, variables in targets.items():
        environment = {**os.environ, **variables}
        if name != THIS:
            environment |= {
                "NUMBA_CPU_NAME": name,
                "NUMBA_CPU_FEATURES": "",
                "NUMBA_CACHE_DIR": str(folder / name),
                "NPY_DISABLE_CPU_FEATURES": " ".join(left_out(name)),
            }
        command = [sys.executable, SCRIPT, folder / f"{name}.npz"]
        running[name] = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    found = {}
    for name, process in running.items():
        errors = process.communicate()[1]
        if process.returncode != -signal.SIGILL:
            assert process.returncode == 0, errors
            found[name] = dict(np.load(folder / f"{name}.npz"))
    if len(found) < 2:
        pytest.skip(f"this processor can run code for {list(found)} only, of {list(targets)}")
    return found


def differences(found):
    first, *others = found.values()
    assert all(other.keys() == first.keys() for other in others)
    return {name for other in others for name, array in first.items() if array.tobytes() != other[name].tobytes()}


@pytest.mark.parametrize(
    "targets",
    [
        pytest.param({THIS: {}, "haswell": TARGETS["haswell"]}, id="this one and another"),
        pytest.param(TARGETS, id="three", marks=pytest.mark.slow),
    ],
)
def test_contributions_have_the_same_bits_on_other_processors(tmp_path, targets):
    found = contributions(targets, tmp_path)
    assert differences(found) == set()
    first = next(iter(found.values()))
    assert all(np.isfinite(array).all() and array.any() for array in first.values())


@pytest.mark.slow
def test_a_processor_without_fused_products_gives_the_same_bits(tmp_path):
    assert differences(contributions({"haswell": TARGETS["haswell"], **WITHOUT_FMA}, tmp_path)) == set()
