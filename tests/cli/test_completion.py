"""Completion, as the shells ask for it."""

import subprocess

import pytest
from tests.cli.conftest import refused, run, run_process


def completed(*words):
    """What bash is told about the last word."""
    asked = {
        "COMP_WORDS": " ".join(("dpals", *words)),
        "COMP_CWORD": str(len(words)),
        "_DPALS_COMPLETE": "bash_complete",
    }
    result = run_process(env=asked)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_with_a_line_of_how_to_install_it(shell):
    script = run("completion", shell).stdout
    assert "_DPALS_COMPLETE" in script
    assert script.startswith("# To load this in every new shell: ")
    assert f"dpals completion {shell}" in script.splitlines()[0]


def test_bash_takes_the_script():
    script = run("completion", "bash").stdout
    assert subprocess.run(["bash", "-c", f"{script}\ncomplete -p dpals"], capture_output=True, check=True).stdout


def test_commands_options_choices_and_files():
    assert completed("re") == ["plain,recommend", "plain,reproduce"]
    assert "plain,--history" in completed("recommend", "--")
    assert completed("fit", "--method", "po") == ["plain,pooled", "plain,popularity"]
    assert completed("recommend", "") == ["dir,"]
    assert completed("recommend", "model", "--history", "") == ["file,"]


def test_another_shell():
    refused(run("completion", "cmd"), "'cmd' is not one of", code=2)
