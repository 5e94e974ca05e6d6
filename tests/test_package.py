import subprocess
import sys

import pytest

import dpals


def test_every_public_name_exists():
    for name in dpals.__all__:
        assert getattr(dpals, name) is not None
    assert set(dpals.__all__) <= set(dir(dpals))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Oracle'"):
        dpals.Oracle  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, dpals; print([m for m in ('numpy', 'scipy', 'numba', 'polars') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
