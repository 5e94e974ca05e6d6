"""Download a large file of known size and checksum, over several connections and several runs if need be."""

import errno
import hashlib
import os
import shutil
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from dpals.system.files import lock
from dpals.system.terminal import echo

TIMEOUT_SECONDS = 30.0
PAUSES_SECONDS = (1.0, 2.0, 4.0)  # before trying again, as long as no attempt gets any further
CHUNK_BYTES = 2**18
_SERVER_IS_BUSY = (408, 429, 500, 502, 503, 504)


class DownloadError(RuntimeError):
    """A download that failed. The message says why and what to do."""


def download(url: str, target: Path, size: int, md5: str, progress: Callable[[int], object]) -> None:
    """Download a file, unless it is there.

    What has arrived is kept in ``target.part``, and a later run resumes there. The target itself appears only
    when it is complete and its checksum is right. Of several processes one downloads and the others wait for it.

    Parameters
    ----------
    progress
        Called with the number of bytes that have arrived, whenever there are more.

    Raises
    ------
    DownloadError
        If the download fails.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    with _only_process(target):
        if target.exists():
            return
        resumed = _size(part) > 0
        _download_rest(url, part, size, progress)
        if resumed and _md5(part) != md5:  # what an earlier run left was not of this file
            part.unlink()
            _download_rest(url, part, size, progress)
        if _md5(part) != md5:
            part.unlink()
            raise DownloadError(
                f"{url}: what was downloaded has a wrong checksum, and was deleted. Try again, or get the file in "
                "another way and give its path"
            )
        os.replace(part, target)


@contextmanager
def _only_process(target: Path) -> Iterator[None]:
    """Wait until no other process downloads to the target, and keep others out."""
    path = target.with_name(f"{target.name}.lock")
    try:
        held = lock(path)
    except BlockingIOError:
        echo(f"Another process is downloading {target}; waiting for it.", err=True)
        held = lock(path, wait=True)
    with held:
        yield
        path.unlink(missing_ok=True)  # the target is there now, so nobody needs the lock any more


def _download_rest(url: str, part: Path, size: int, progress: Callable[[int], object]) -> None:
    """Download the rest of a file that has arrived in part, over several connections if need be."""
    failures, furthest = 0, _size(part)
    while (start := _size(part)) < size:
        _check_space(part, size - start)
        try:
            _receive(url, part, start, size, progress)
        except (URLError, HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as problem:
            if start and isinstance(problem, HTTPError) and problem.code == 416:  # the file is shorter than the part
                problem.close()
                part.unlink()
                continue
            _raise_if_permanent(url, problem)
            failures = 0 if _size(part) > furthest else failures + 1
            furthest = max(furthest, _size(part))
            if failures == len(PAUSES_SECONDS):
                raise DownloadError(
                    f"{url}: {_reason(problem)}, {failures} times in a row. What has arrived is kept: try again later "
                    "to resume, or get the file in another way and give its path"
                ) from problem
            time.sleep(PAUSES_SECONDS[failures])
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.EDQUOT):
                raise _no_space(part, size - _size(part)) from problem
            raise


def _receive(url: str, part: Path, start: int, size: int, progress: Callable[[int], object]) -> None:
    """Append to the part what one connection delivers."""
    headers = {"User-Agent": "dpals"} | ({"Range": f"bytes={start}-"} if start else {})
    request = Request(url, headers=headers)
    with urlopen(request, timeout=TIMEOUT_SECONDS) as response, open(part, "ab", opener=_no_link) as file:
        _check_size(url, response, size)
        arrived = start if response.status == 206 else 0  # the server may send everything, whatever was asked for
        file.truncate(arrived)
        while arrived < size and (chunk := response.read1(min(CHUNK_BYTES, size - arrived))):
            file.write(chunk)
            arrived += len(chunk)
            progress(arrived)
        file.flush()
        os.fsync(file.fileno())
    if arrived < size:
        raise ConnectionError("the connection was interrupted")


def _no_link(path: str, flags: int) -> int:
    """Open a file to write to, unless it is a link to another one."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _check_size(url: str, response: HTTPResponse, size: int) -> None:
    announced = response.headers.get("Content-Range", "").rpartition("/")[2] or response.headers.get("Content-Length")
    if announced and announced.isdigit() and int(announced) != size:
        raise DownloadError(
            f"{url}: the server has a file of {int(announced):,} bytes, but it should have {size:,}. Look at the "
            "address in a browser; if the file is right, get it in another way and give its path"
        )


def _raise_if_permanent(url: str, problem: Exception) -> None:
    """Raise where another attempt would fail in the same way."""
    if isinstance(problem, HTTPError):
        problem.close()
        if problem.code not in _SERVER_IS_BUSY:
            raise DownloadError(
                f"{url}: the server answers {_reason(problem)}. Look at the address in a browser, or get the file in "
                "another way and give its path"
            ) from problem
    if isinstance(problem, URLError) and isinstance(problem.reason, ssl.SSLCertVerificationError):
        raise DownloadError(
            f"{url}: the certificate of the server is not valid ({problem.reason.verify_message}). Get the file in "
            "another way and give its path"
        ) from problem


def _reason(problem: Exception) -> str:
    if isinstance(problem, HTTPError):
        return f"HTTP {problem.code} {problem.reason}"
    cause = problem.reason if isinstance(problem, URLError) else problem
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def _check_space(part: Path, needed: int) -> None:
    if shutil.disk_usage(part.parent).free < needed:
        raise _no_space(part, needed)


def _no_space(part: Path, needed: int) -> DownloadError:
    return DownloadError(
        f"{part.parent}: not enough space on the disk for another {needed / 1e6:,.1f} MB. Make room, or choose another "
        "folder with the environment variable DPALS_CACHE"
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
