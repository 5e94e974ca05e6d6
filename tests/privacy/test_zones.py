"""The import contract between the three zones, no import cycles, and the places where randomness may come from."""

import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

import dpals

SOURCE = Path(dpals.__file__).parent
PROJECT = SOURCE.parent.parent
RANDOMNESS = re.compile(r"np\.random|numpy\.random|default_rng|import random\b|import secrets|urandom|standard_normal")
MAY_DRAW = ("release/", "ledger/", "data/simulate.py")


def test_the_import_contract_holds():
    linter = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([linter, "--no-cache"], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_no_module_imports_itself_by_way_of_others():
    """Imports inside functions count; those for type checkers alone do not."""
    graph = grimp.build_graph("dpals", cache_dir=None, exclude_type_checking_imports=True)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as problem:
        pytest.fail(f"an import cycle: {' <- '.join(problem.args[1])}")


def test_no_randomness_outside_the_mechanism_and_the_simulator():
    offenders = [
        f"{path.relative_to(SOURCE)}: {match.group()}"
        for path in SOURCE.rglob("*.py")
        if not str(path.relative_to(SOURCE)).startswith(MAY_DRAW)
        for match in RANDOMNESS.finditer(path.read_text())
    ]
    assert offenders == []
