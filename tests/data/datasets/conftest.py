"""A small MovieLens and a web server to get it from, with all the faults of real ones."""

import hashlib
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import dpals
from dpals.data.datasets.movielens import DATA_SETS

Answer = Callable[[BaseHTTPRequestHandler, bytes], None]

# Item 3 is rated by everyone, item 1 by almost everyone. Users 1 to 6 like five items or more, user 7 one only.
ROWS = [(user, item, 5 if (user + item) % 7 else 2) for user in range(1, 7) for item in (1, 2, 3, 5, 8, 13, 21)]
ROWS += [(7, 3, 4), (7, 2, 3), (7, 99, 1)]
COUNTS = {"users": 7, "items": 8, "ratings": len(ROWS)}


def text_of(member: str) -> str:
    separator = {"dat": "::", "csv": ",", "data": "\t"}[member.rpartition(".")[2]]
    header = "userId,movieId,rating,timestamp\n" if separator == "," else ""
    return header + "".join(separator.join(map(str, (*row, 978300760))) + "\n" for row in ROWS)


def write_zip(path: Path, member: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../outside", "nothing should ever write this")
        archive.writestr(member, text_of(member))


def expected(name: str) -> dpals.Ratings:
    users, items, values = zip(*ROWS, strict=True)
    return dpals.Ratings.from_arrays(
        users,
        items,
        values,
        timestamps=[978300760] * len(ROWS),
        rating_range=DATA_SETS[name].archive.rating_range,
    )


def unpack(folder: Path, member: str) -> Path:
    file = folder / member
    file.parent.mkdir(parents=True)
    file.write_text(text_of(member))
    return file


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, which does not exist yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DPALS_CACHE", str(folder))
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the known data sets that are not changed after reading have the size of the small one."""
    for name in ("ml-100k", "ml-1m", "ml-10m"):
        monkeypatch.setitem(DATA_SETS, name, replace(DATA_SETS[name], **COUNTS))


class Server(ThreadingHTTPServer):
    """Serves one file. Answers come from a list, the last one again and again; requests are recorded."""

    daemon_threads = True
    body = b""
    answers: list[Answer]
    ranges: list[str | None]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients go away in these tests."""


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.ranges.append(self.headers["Range"])
        answers = self.server.answers
        (answers.pop(0) if len(answers) > 1 else answers[0])(self, self.server.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), _Handler) as running:
        running.answers, running.ranges = [whole], []
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def whole(request: BaseHTTPRequestHandler, body: bytes) -> None:
    """A server that does everything right."""
    _send_head(request, body)
    request.wfile.write(body[_start(request) :])


def without_range(request: BaseHTTPRequestHandler, body: bytes) -> None:
    """A server that always sends everything."""
    del request.headers["Range"]
    whole(request, body)


def interrupted(after: int) -> Answer:
    """The connection ends after some bytes."""

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> None:
        _send_head(request, body)
        request.wfile.write(body[_start(request) :][:after])

    return answer


def in_pieces(pieces: int, ready: threading.Semaphore) -> Answer:
    """The file comes in pieces, each when the client is ready for it."""

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> None:
        _send_head(request, body)
        rest = body[_start(request) :]
        length = -(-len(rest) // pieces)
        for at in range(0, len(rest), length):
            ready.acquire()
            request.wfile.write(rest[at : at + length])

    return answer


def stopped_halfway(until: threading.Event) -> Answer:
    """Half of the file comes at once, the rest after an event."""

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> None:
        _send_head(request, body)
        request.wfile.write(body[: len(body) // 2])
        until.wait(timeout=600)
        request.wfile.write(body[len(body) // 2 :])

    return answer


def status(code: int) -> Answer:
    return lambda request, _: request.send_error(code)


def _start(request: BaseHTTPRequestHandler) -> int:
    return int((request.headers["Range"] or "bytes=0-").removeprefix("bytes=").removesuffix("-"))


def _send_head(request: BaseHTTPRequestHandler, body: bytes) -> None:
    start = _start(request)
    request.send_response(206 if request.headers["Range"] else 200)
    request.send_header("Content-Length", str(len(body) - start))
    if request.headers["Range"]:
        request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
    request.end_headers()


@pytest.fixture
def served(server: Server, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:  # noqa: ARG001
    """The site with the small data set as ml-1m."""
    data = DATA_SETS["ml-1m"]
    write_zip(tmp_path / "served.zip", data.archive.member)
    server.body = (tmp_path / "served.zip").read_bytes()
    archive = replace(data.archive, size=len(server.body), md5=hashlib.md5(server.body).hexdigest())
    monkeypatch.setitem(DATA_SETS, "ml-1m", replace(data, archive=archive))
    monkeypatch.setattr("dpals.data.datasets.archive.SITE", server.url)
    return server
