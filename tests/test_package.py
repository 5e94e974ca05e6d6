import subprocess
import sys
from pathlib import Path

import pytest

import dpals

SOURCE = Path(dpals.__file__).parent
TESTS = Path(__file__).parent
WITHOUT_TESTS_OF_THEIR_OWN = ("__init__.py", "__main__.py", "errors.py", "version.py", "experiments/")
"""Tested by way of others: the command, every error, the version; all experiments at once in `test_experiments`."""


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


def test_tests_mirror_the_source():
    modules = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if path.name != "__init__.py")
    mirrors = {TESTS / module.with_name(f"test_{module.name}"): module.as_posix() for module in modules}
    missing = {name for mirror, name in mirrors.items() if not mirror.exists()}
    assert {name for name in missing if not name.startswith(WITHOUT_TESTS_OF_THEIR_OWN)} == set()
