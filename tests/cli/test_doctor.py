"""``dpals doctor`` as a process."""

import json
import os

from tests.cli.conftest import run, run_process


def test_doctor_finds_this_installation_well():
    result = run("doctor")
    assert result.returncode == 0
    assert "a release works" in result.stdout


def test_json_and_quiet():
    checks = json.loads(run("doctor", "--json").stdout)["checks"]
    assert [check["works"] for check in checks.values()] == [True] * 5
    result = run("doctor", "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_what_is_wrong_is_said(tmp_path):
    """Here: a library that is broken."""
    (tmp_path / "cryptography.py").write_text("")
    broken = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    result = run_process("doctor", "--quiet", env=broken)
    assert result.returncode == 1
    assert "kernels and noise" in result.stdout
    assert "libraries:" not in result.stdout
    assert "this installation does not work" in result.stderr
