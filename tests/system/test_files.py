import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dpals.system.files import OWNER_ONLY, draft, lock, remove_drafts, write_whole


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "numbers"
    with draft(path) as place:
        place.write_bytes(b"12")
        assert not path.exists()
    assert path.read_bytes() == b"12"
    write_whole(path, b"345")
    assert path.read_bytes() == b"345"
    assert os.listdir(tmp_path) == ["numbers"]


def half_write(path, problem):
    with draft(path) as place:
        place.write_bytes(b"ne")
        raise problem


@pytest.mark.parametrize("problem", [OSError, KeyboardInterrupt])
def test_what_was_there_stays_where_writing_fails(tmp_path, problem):
    path = tmp_path / "numbers"
    path.write_bytes(b"old")
    with pytest.raises(problem):
        half_write(path, problem)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["numbers"]


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "numbers", b"12")


def mode(path):
    return path.stat().st_mode & 0o777


@pytest.fixture
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
def test_a_file_can_be_for_its_owner_alone(tmp_path):
    """From the moment that it is there, whatever was there before."""
    path = tmp_path / "numbers"
    write_whole(path, b"for everyone")
    assert mode(path) == 0o644
    with draft(path, OWNER_ONLY) as place:
        assert mode(place) == 0o600
        place.write_bytes(b"for me")
    assert mode(path) == 0o600


ABANDONED = """
import os, signal, sys
from pathlib import Path
from dpals.system.files import draft
with draft(Path(sys.argv[1])) as place:
    place.write_bytes(b"half")
    print(place.name, flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""


def drafting(path, what):
    command = [sys.executable, "-c", ABANDONED, path, what]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_the_next_draft_of_a_file_removes_what_a_killed_process_left(tmp_path):
    with drafting(tmp_path / "numbers", "killed") as process:
        (left,) = process.stdout.read().split()
    assert process.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == [left]
    write_whole(tmp_path / "numbers", b"12")
    assert os.listdir(tmp_path) == ["numbers"]


def test_a_draft_that_someone_works_on_stays(tmp_path):
    path = tmp_path / "numbers"
    with drafting(path, "working") as process:
        place = tmp_path / process.stdout.readline().strip()
        write_whole(path, b"ours")
        remove_drafts(tmp_path, ".*")
        assert place.exists()
        process.stdin.close()
    assert process.returncode == 0
    assert path.read_bytes() == b"half"
    assert os.listdir(tmp_path) == ["numbers"]


OTHERS = [".notes.part", ".numbers.part", ".numbers.0123456789ab.part2", ".numbers.0123456789AB.part", "numbers.part"]


def test_only_drafts_of_the_named_files_are_removed(tmp_path):
    for name in [*OTHERS, ".letters.0123456789ab.part", ".numbers.0123456789ab.part"]:
        (tmp_path / name).write_text("mine")
    (tmp_path / "precious").write_text("mine")
    (tmp_path / ".numbers.00000000000a.part").symlink_to("precious")
    remove_drafts(tmp_path, "numbers|words")
    left = {*OTHERS, ".letters.0123456789ab.part", "precious", ".numbers.00000000000a.part"}
    assert set(os.listdir(tmp_path)) == left
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_lock_follows_no_link_and_changes_nothing(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "link").symlink_to(precious)
    (tmp_path / "nowhere").symlink_to(tmp_path / "made")
    for name in ("link", "nowhere"):
        with pytest.raises(OSError, match=f"{name} is a link, and should be a file of dpals"):
            lock(tmp_path / name)
    assert not (tmp_path / "made").exists()
    with lock(precious):
        assert precious.read_text() == "mine"
        with pytest.raises(BlockingIOError):
            lock(precious)
    lock(precious).close()


def test_a_lock_that_its_holder_removes_is_made_anew(tmp_path, monkeypatch):
    """Or else two processes could hold locks on two files of one name."""
    path, flock, waiting = tmp_path / "lock", fcntl.flock, []

    def after_removal(file, how):
        if not waiting:
            waiting.append(how)
            path.unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", after_removal)
    with lock(path, wait=True) as held:
        assert waiting
        assert os.path.samestat(os.fstat(held.fileno()), path.stat())


def test_file_systems_without_locks_will_do(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", none)
    write_whole(Path(tmp_path, "numbers"), b"12", OWNER_ONLY)
    assert mode(tmp_path / "numbers") == 0o600
    assert os.listdir(tmp_path) == ["numbers"]
