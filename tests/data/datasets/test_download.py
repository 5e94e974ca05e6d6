"""Downloads from a server on this machine, in every way they can go."""

import errno
import hashlib
import os
import random
import shutil
import ssl
import subprocess
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from tests.data.datasets.conftest import Server, in_pieces, interrupted, status, stopped_halfway, whole, without_range

from dpals.data.datasets import download as downloading
from dpals.data.datasets.download import DownloadError, download

BODY = random.Random(0).randbytes(1_000_000)
MD5 = hashlib.md5(BODY).hexdigest()


@pytest.fixture(autouse=True)
def quick(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.body = BODY
    monkeypatch.setattr(downloading, "PAUSES_SECONDS", (0.01, 0.01, 0.01))
    monkeypatch.setattr(downloading, "TIMEOUT_SECONDS", 600.0)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new" / "file.zip"


def part_of(target: Path) -> Path:
    return target.with_name("file.zip.part")


def leave_part(target: Path, content: bytes) -> None:
    target.parent.mkdir()
    part_of(target).write_bytes(content)


def run(server: Server, target: Path, and_then: Callable[[int], None] = lambda _: None) -> list[int]:
    """Download, and return what was reported."""
    reported: list[int] = []

    def progress(arrived: int) -> None:
        reported.append(arrived)
        and_then(arrived)

    download(server.url, target, len(BODY), MD5, progress)
    return reported


def assert_done(target: Path) -> None:
    assert target.read_bytes() == BODY
    assert os.listdir(target.parent) == [target.name]


def test_it_arrives_once(server: Server, target: Path) -> None:
    reported = run(server, target)
    assert_done(target)
    assert reported == sorted(reported)
    assert reported[-1] == len(BODY)
    assert run(server, target) == []
    assert server.ranges == [None]


def test_a_slow_server_is_waited_for(server: Server, target: Path) -> None:
    """Each piece comes when the one before has arrived."""
    arrived = threading.Semaphore(1)
    server.answers = [in_pieces(5, arrived)]
    assert len(run(server, target, lambda n: None if n % (len(BODY) // 5) else arrived.release())) >= 5
    assert_done(target)
    assert server.ranges == [None]


def test_a_stalled_connection_is_opened_again(server: Server, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience ends when half has arrived, and not before, however busy the machine may be."""
    never, opened = threading.Event(), []

    def remembered(*arguments: Any, timeout: float) -> Any:
        assert timeout == downloading.TIMEOUT_SECONDS
        opened.append(urlopen(*arguments, timeout=timeout))
        return opened[-1]

    def impatient(arrived: int) -> None:
        if arrived == len(BODY) // 2:
            opened[0].fp.raw._sock.settimeout(0.01)

    monkeypatch.setattr(downloading, "urlopen", remembered)
    server.answers = [stopped_halfway(until=never), whole]
    run(server, target, impatient)
    never.set()
    assert_done(target)
    assert server.ranges == [None, "bytes=500000-"]


def test_a_broken_download_goes_on_where_it_stopped(server: Server, target: Path) -> None:
    server.answers = [interrupted(after=300_000), interrupted(after=0), interrupted(after=1), whole]
    reported = run(server, target)
    assert_done(target)
    assert server.ranges == [None, "bytes=300000-", "bytes=300000-", "bytes=300001-"]
    assert reported == sorted(reported)


def test_progress_is_patient_and_standstill_is_not(server: Server, target: Path) -> None:
    server.answers = [*[interrupted(after=1_000)] * 10, interrupted(after=0)]
    with pytest.raises(DownloadError, match=r"connection was interrupted, 3 times in a row\. What has arrived is kept"):
        run(server, target)
    assert part_of(target).read_bytes() == BODY[:10_000]
    assert len(server.ranges) == 13


def test_a_later_run_goes_on_with_the_part(server: Server, target: Path) -> None:
    leave_part(target, BODY[:400_000])
    run(server, target)
    assert_done(target)
    assert server.ranges == ["bytes=400000-"]


def test_a_complete_part_needs_no_connection(server: Server, target: Path) -> None:
    leave_part(target, BODY)
    run(server, target)
    assert_done(target)
    assert server.ranges == []


def test_a_server_may_ignore_the_range(server: Server, target: Path) -> None:
    server.answers = [interrupted(after=300_000), without_range]
    run(server, target)
    assert_done(target)
    assert server.ranges == [None, "bytes=300000-"]


@pytest.mark.parametrize("left", [b"\0" * 400_000, BODY + b"more", b"\0" * 1_000_000])
def test_a_part_of_another_file_is_replaced(left: bytes, server: Server, target: Path) -> None:
    leave_part(target, left)
    run(server, target)
    assert_done(target)
    assert server.ranges[-1] is None


def test_a_part_that_the_server_says_is_too_long_is_replaced(server: Server, target: Path) -> None:
    leave_part(target, BODY[:400_000])
    server.answers = [status(416), whole]
    run(server, target)
    assert_done(target)
    assert server.ranges == ["bytes=400000-", None]


def test_a_wrong_checksum(server: Server, target: Path) -> None:
    server.body = BODY[:-1] + b"?"
    with pytest.raises(DownloadError, match="wrong checksum, and was deleted"):
        run(server, target)
    assert not target.exists()
    assert not part_of(target).exists()


@pytest.mark.parametrize("left", [b"", BODY[:100]])
def test_a_file_of_another_size_is_not_even_begun(left: bytes, server: Server, target: Path) -> None:
    if left:
        leave_part(target, left)
    server.body = b"<html>Please log in to the hotel</html>" * 10
    with pytest.raises(DownloadError, match="the server has a file of 390 bytes, but it should have 1,000,000"):
        run(server, target)
    assert part_of(target).read_bytes() == left


@pytest.mark.parametrize(("code", "requests"), [(404, 1), (403, 1), (503, 3)])
def test_http_errors(code: int, requests: int, server: Server, target: Path) -> None:
    server.answers = [status(code)]
    with pytest.raises(DownloadError, match=rf"127\.0\.0\.1.*HTTP {code} .*give its path"):
        run(server, target)
    assert len(server.ranges) == requests
    assert not target.exists()


def test_no_server(server: Server, target: Path) -> None:
    server.server_close()
    with pytest.raises(DownloadError, match=r"refused, 3 times in a row"):
        run(server, target)


def test_an_invalid_certificate_is_never_accepted(
    server: Server, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        problem = ssl.SSLCertVerificationError(1, "certificate verify failed")
        problem.verify_message = "certificate has expired"
        raise URLError(problem)

    monkeypatch.setattr(downloading, "urlopen", refuse)
    with pytest.raises(DownloadError, match=r"is not valid \(certificate has expired\)"):
        run(server, target)


def test_too_little_space_is_noticed_before(server: Server, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 600_000))
    with pytest.raises(DownloadError, match=r"new: not enough space on the disk for another 1\.0 MB.*DPALS_CACHE"):
        run(server, target)
    assert server.ranges == []
    part_of(target).write_bytes(BODY[:400_000])  # the rest fits
    run(server, target)
    assert_done(target)


def test_a_disk_that_fills_up(server: Server, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DownloadError, match="not enough space"):
            run(server, target)
    assert not target.exists()
    run(server, target)
    assert_done(target)


@pytest.mark.parametrize("name", ["file.zip.lock", "file.zip.part"])
def test_a_link_is_not_followed(name: str, server: Server, target: Path, tmp_path: Path) -> None:
    """In a folder that others can write to, it could be to any file."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    target.parent.mkdir()
    target.with_name(name).symlink_to(precious)
    with pytest.raises(OSError, match=f"{name} is a link|symbolic links"):
        run(server, target)
    assert precious.read_text() == "mine"
    target.with_name(name).unlink()
    run(server, target)
    assert_done(target)


def start_process(server: Server, target: Path) -> subprocess.Popen[str]:
    code = (
        "import sys; from pathlib import Path; from dpals.data.datasets import download\n"
        "download.TIMEOUT_SECONDS = 600\n"
        "download.download(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4], id)"
    )
    arguments = [server.url, str(target), str(len(BODY)), MD5]
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True)


def wait_for_bytes(target: Path, process: subprocess.Popen[str]) -> None:
    while not (part_of(target).exists() and part_of(target).stat().st_size):
        assert process.poll() is None
        time.sleep(0.01)


def test_a_killed_process_leaves_a_part_to_go_on_with(server: Server, target: Path) -> None:
    never = threading.Event()
    server.answers = [stopped_halfway(until=never), whole]
    with start_process(server, target) as process:
        wait_for_bytes(target, process)
        process.kill()
    never.set()
    assert not target.exists()
    have = part_of(target).stat().st_size
    assert 0 < have < len(BODY)
    run(server, target)
    assert_done(target)
    assert server.ranges == [None, f"bytes={have}-"]


def test_of_two_processes_one_downloads_and_the_other_waits(server: Server, target: Path) -> None:
    other_waits = threading.Event()
    server.answers = [stopped_halfway(until=other_waits)]
    with start_process(server, target) as one:
        wait_for_bytes(target, one)
        with start_process(server, target) as other:
            assert other.stderr is not None
            assert other.stderr.readline().startswith("Another process is downloading")
            other_waits.set()
    assert (one.returncode, other.returncode) == (0, 0)
    assert_done(target)
    assert server.ranges == [None]
