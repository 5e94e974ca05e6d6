"""Mistakes can be planted where they are meant to be, and what notices them is reported."""

import os
import subprocess
import sys

import pytest
from dpals.audit.planted_bugs import Bug, Change, audit_planted_bugs, copy_with, known_bugs

import dpals
from dpals.audit import planted_bugs

BUGS = known_bugs()
HARMLESS = Change("errors.py", '"""Errors that tell the user what to change."""', '"""Errors."""')


def test_names_are_their_own_and_methods_are_those_of_the_command():
    from dpals.cli.methods import METHODS

    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert {bug.method for bug in BUGS} <= {*METHODS, "search"}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_source_is_as_the_mistake_expects_and_valid_with_it(bug, tmp_path):
    copy_with(bug, tmp_path)
    for change in bug.changes:
        changed = (tmp_path / "dpals" / change.file).read_text()
        assert change.after in changed
        compile(changed, change.file, "exec")


def test_a_mistake_that_does_not_fit_is_refused(tmp_path):
    bug = Bug("stale", "item-mean", (), (Change("errors.py", "no such text", ""),))
    with pytest.raises(dpals.InputError, match=r"'stale' does not fit errors\.py: the code has changed"):
        copy_with(bug, tmp_path)


def test_files_that_other_processes_are_writing_are_left_alone(tmp_path, monkeypatch):
    """Python and numba write such files, which may be gone before they can be copied: here they never were there."""
    source = tmp_path / "source"
    cache = source / "__pycache__"
    cache.mkdir(parents=True)
    (source / "errors.py").write_text(HARMLESS.before)
    for name in ("errors.cpython-311.pyc.139872", "rows.sums-28.py311.nbi.tmp.0a1b2c3d"):
        (cache / name).symlink_to("gone")
    (cache / "rows.sums-28.py311.nbi").write_text("compiled")
    monkeypatch.setattr(planted_bugs, "_SOURCE", source)
    copy_with(Bug("harmless", "item-mean", (), (HARMLESS,)), tmp_path)
    assert os.listdir(tmp_path / "dpals" / "__pycache__") == ["rows.sums-28.py311.nbi"]


def test_the_copy_is_what_runs(tmp_path):
    copy_with(Bug("harmless", "item-mean", (), (HARMLESS,)), tmp_path)
    script = "import dpals.errors; print(dpals.errors.__doc__, dpals.errors.__file__)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Errors. ")
    assert str(tmp_path) in done.stdout


def test_what_notices_a_mistake_is_reported_and_what_is_not_noticed_fails(monkeypatch):
    monkeypatch.setattr(planted_bugs, "_LEVELS", (1,))
    (mean,) = (bug for bug in BUGS if bug.name == "a release outside the mechanism")
    level = audit_planted_bugs(bugs=[mean, Bug("harmless", mean.method, (), (HARMLESS,))])
    sound, caught, survived = level.checks
    assert (sound.verdict, caught.verdict, survived.verdict) == ("passed", "passed", "failed")
    assert caught.detail.startswith("level 1, replay: the published model depends on the data through releases only")
    assert survived.detail == "not noticed in an audit of item-mean"
    assert level.facts == {"bugs": 2, "caught": 1}


def test_an_audit_that_does_not_come_to_its_end_has_noticed_nothing(monkeypatch):
    monkeypatch.setattr(planted_bugs, "_COMMAND", "raise SystemExit('broken for another reason')")
    level = audit_planted_bugs(bugs=[Bug("harmless", "item-mean", (), (HARMLESS,))])
    assert [check.verdict for check in level.checks] == ["failed", "failed"]
    assert all("did not come to its end: broken for another reason" in check.detail for check in level.checks)
    assert level.facts["caught"] == 0


def test_a_sound_copy_must_pass_and_not_just_not_fail(monkeypatch):
    check = {"question": "enough runs", "verdict": "inconclusive", "detail": "more would do"}
    monkeypatch.setattr(planted_bugs, "_audited", lambda *_: {"name": "canary", "checks": [check]})
    sound, survived = audit_planted_bugs(bugs=[Bug("harmless", "item-mean", (), (HARMLESS,))]).checks
    assert (sound.verdict, survived.verdict) == ("failed", "failed")
    assert "enough runs (more would do)" in sound.detail
    assert "not noticed" in survived.detail
