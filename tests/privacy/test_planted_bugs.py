"""Bugs can be planted where they are meant to be, and what notices them is reported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.privacy import planted_bugs
from tests.privacy.planted_bugs import (
    PROJECT,
    AuditCrashed,
    Bug,
    Change,
    StaleBug,
    check_unchanged,
    copy_with,
    failed_check,
    known_bugs,
    plant,
    run_tests,
)

BUGS = known_bugs()
HARMLESS = Change("errors.py", '"""Errors that say what the caller has to change."""', '"""Errors."""')


def test_names_are_their_own_and_methods_are_those_of_the_command():
    from dpals.cli.methods import PRIVATE_CHOICES

    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert {bug.method for bug in BUGS} <= {*PRIVATE_CHOICES, "search", ""}


def test_every_bug_names_tests_that_are_there():
    assert [bug.name for bug in BUGS if not bug.tests] == []
    assert {test for bug in BUGS for test in bug.tests if not (PROJECT / test).is_file()} == set()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_source_is_as_the_bug_expects_and_valid_with_it(bug):
    texts = {change.file: (planted_bugs.SOURCE / change.file).read_text() for change in bug.changes}
    for change in bug.changes:
        assert texts[change.file].count(change.before) == 1
        texts[change.file] = texts[change.file].replace(change.before, change.after)
        assert change.after in texts[change.file]
    for file, text in texts.items():
        compile(text, file, "exec")


def test_a_bug_that_does_not_fit_is_refused(tmp_path):
    with pytest.raises(StaleBug, match=r"'stale' does not fit errors\.py: the code has changed"):
        copy_with(Bug("stale", (), (Change("errors.py", "no such text", ""),)), tmp_path)


def test_files_that_other_processes_are_writing_are_left_alone(tmp_path, monkeypatch):
    """Python and numba write such files, which may be gone before they can be copied: here they never were there."""
    source = tmp_path / "source"
    cache = source / "__pycache__"
    cache.mkdir(parents=True)
    (source / "errors.py").write_text(HARMLESS.before)
    for name in ("errors.cpython-311.pyc.139872", "rows.sums-28.py311.nbi.tmp.0a1b2c3d"):
        (cache / name).symlink_to("gone")
    (cache / "rows.sums-28.py311.nbi").write_text("compiled")
    monkeypatch.setattr(planted_bugs, "SOURCE", source)
    copy_with(Bug("harmless", (), (HARMLESS,)), tmp_path)
    assert os.listdir(tmp_path / "dpals" / "__pycache__") == ["rows.sums-28.py311.nbi"]


def test_the_copy_is_what_runs(tmp_path):
    copy_with(Bug("harmless", (), (HARMLESS,)), tmp_path)
    script = "import dpals.errors; print(dpals.errors.__doc__, dpals.errors.__file__)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Errors. ")
    assert str(tmp_path) in done.stdout


def test_tests_run_on_the_copy(tmp_path):
    copy_with(Bug("harmless", (), (HARMLESS,)), tmp_path / "src")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(
        "import dpals.errors\n\n\ndef test_it():\n    assert dpals.errors.__doc__ == 'Errors.'\n"
    )
    assert run_tests(["tests/test_it.py"], tmp_path).returncode == 0
    (tmp_path / "tests" / "test_it.py").write_text("def test_it():\n    assert False\n")
    assert run_tests(["tests/test_it.py"], tmp_path).returncode == 1


@pytest.fixture
def failing_tests(monkeypatch):
    monkeypatch.setattr(planted_bugs, "run_tests", lambda *_: subprocess.CompletedProcess([], 1, "", ""))


@pytest.mark.usefixtures("failing_tests")
def test_what_the_audit_notices_is_reported_and_what_it_misses_survives(monkeypatch):
    monkeypatch.setattr(planted_bugs, "LEVELS", (1,))
    (mean,) = (bug for bug in BUGS if bug.name == "a release outside the mechanism")
    caught, survived = plant(mean), plant(Bug("harmless", (), (HARMLESS,), mean.method))
    assert caught.verdict == "caught"
    assert caught.check == "level 1, replay: the published model depends on the data through releases only"
    assert (survived.verdict, survived.check) == ("SURVIVED the audit", "")


@pytest.mark.parametrize(("code", "verdict"), [(0, "SURVIVED the tests"), (1, "caught"), (2, "TESTS DID NOT RUN (2)")])
def test_a_bug_is_caught_only_where_tests_fail(monkeypatch, code, verdict):
    monkeypatch.setattr(planted_bugs, "run_tests", lambda *_: subprocess.CompletedProcess([], code, "", ""))
    assert plant(Bug("harmless", (), (HARMLESS,))).verdict == verdict


@pytest.mark.usefixtures("failing_tests")
def test_an_audit_that_does_not_come_to_its_end_has_noticed_nothing(monkeypatch):
    monkeypatch.setattr(planted_bugs, "COMMAND", "raise SystemExit('broken for another reason')")
    outcome = plant(Bug("harmless", (), (HARMLESS,), "item-mean"))
    assert outcome.verdict.endswith("did not come to its end: broken for another reason")
    with pytest.raises(AuditCrashed):
        failed_check(Bug("harmless", (), (), "item-mean"), Path.cwd())


def test_an_unchanged_copy_must_pass_and_not_just_not_fail(monkeypatch):
    check = {"question": "enough runs", "verdict": "inconclusive", "detail": "more would do"}
    monkeypatch.setattr(planted_bugs, "run_audit", lambda *_: {"name": "canary", "checks": [check]})
    monkeypatch.setattr(planted_bugs, "run_tests", lambda *_: subprocess.CompletedProcess([], 0, "", ""))
    bug = Bug("harmless", (), (HARMLESS,), "item-mean")
    assert "item-mean does not pass without any bug: level 1, canary: enough runs" in check_unchanged([bug])
    assert failed_check(bug, Path.cwd()) == ""
    monkeypatch.setattr(planted_bugs, "run_tests", lambda *_: subprocess.CompletedProcess([], 1, "1 failed", ""))
    assert "the tests do not pass without any bug" in check_unchanged([bug])
