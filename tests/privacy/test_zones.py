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
NUMBERS = re.compile(
    r"np\.random|numpy\.random|default_rng|(?:import|from) random\b|standard_normal|NoiseStream|release\.noise\b"
)
MAY_DRAW_NUMBERS = ("release/", "audit/", "data/simulate.py")
NAMES = re.compile(r"(?:import|from) secrets\b|urandom|uuid4")
MAY_DRAW_NAMES = ("release/", "ledger/", "system/files.py")
"""Of runs, entries and temporary files, which nobody may guess or use twice."""


def test_the_import_contract_holds():
    linter = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([linter, "--no-cache"], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_no_module_imports_itself_by_way_of_others():
    """Imports inside functions count; those only for type checkers do not."""
    graph = grimp.build_graph("dpals", cache_dir=None, exclude_type_checking_imports=True)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as problem:
        pytest.fail(f"an import cycle: {' <- '.join(problem.args[1])}")


@pytest.mark.parametrize(("randomness", "allowed"), [(NUMBERS, MAY_DRAW_NUMBERS), (NAMES, MAY_DRAW_NAMES)])
def test_randomness_comes_from_the_mechanism_the_audit_and_the_simulator_alone(randomness, allowed):
    offenders = [
        f"{path.relative_to(SOURCE)}: {match.group()}"
        for path in SOURCE.rglob("*.py")
        if not path.relative_to(SOURCE).as_posix().startswith(allowed)
        for match in randomness.finditer(path.read_text())
    ]
    assert offenders == []
