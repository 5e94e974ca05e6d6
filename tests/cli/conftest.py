"""The command, in this process or in one of its own, and small models and histories for it to work on."""

import io
import os
import pty
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dpals
from dpals.cli import main

COMMAND = Path(sys.executable).with_name("dpals")
ENVIRONMENT = {**os.environ, "COLUMNS": "120"}


def run(*arguments, cwd=None):
    """Run dpals to its end in this process, which saves starting one; standard output and error are text."""
    arguments = [str(COMMAND), *map(str, arguments)]
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", arguments)
        patch.setenv("COLUMNS", ENVIRONMENT["COLUMNS"])
        patch.chdir(cwd or ".")
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]), pytest.raises(SystemExit) as ended:
            main()
    signal.signal(signal.SIGTERM, handler)
    printed = [stream.buffer.getvalue().decode() for stream in streams]
    return subprocess.CompletedProcess(arguments, ended.value.code or 0, *printed)


def run_process(*arguments, cwd=None, **more):
    """The same in a process of its own."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, **more.pop("env", {})},
        **more,
    )


def run_on_terminal(*arguments, cwd=None, command=(COMMAND,), **outputs):
    """Run dpals with its output on a terminal, unless said otherwise; its exit code, and what is seen there."""
    ours, terminal = pty.openpty()
    process = subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=cwd,
        env={**ENVIRONMENT, "TERM": "xterm"},
        **{"stdout": terminal, "stderr": terminal, **outputs},
    )
    os.close(terminal)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return process.wait(), seen.decode()


def refused(result, *words, code=1):
    """A command that failed as it should: one sentence, no trace."""
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    if code == 1:
        assert result.stderr.count("\n") == 1, result.stderr
    for word in words:
        assert word in result.stderr


@pytest.fixture(scope="session")
def ratings_file(tmp_path_factory):
    """Simulated ratings of 2,000 users on 200 items, to train on."""
    path = tmp_path_factory.mktemp("data") / "ratings.csv"
    assert run("simulate", path, "--users", 2000, "--items", 200, "--mean-ratings", 30).returncode == 0
    return path


@pytest.fixture(scope="session")
def blocks_folder(ratings_file, tmp_path_factory):
    """The same ratings in blocks."""
    folder = tmp_path_factory.mktemp("blocks") / "ratings"
    dpals.write_blocks(ratings_file, folder, rating_range=(0.5, 5.0), ratings_per_block=8000)
    assert len(dpals.open_blocks(folder).blocks) > 5
    return folder


FIT = ("--epsilon", "1", "--rating-range", "0.5", "5")
SMALL = ("--set", "rank=4", "--set", "steps=3")

INTERRUPTED = """
import os, sys
from dpals.ledger.checkpoint import Checkpoint
from dpals.cli import main

how, after = int(sys.argv.pop(1)), int(sys.argv.pop(1))
save = Checkpoint.save

def interrupted(self, number, record, table):
    save(self, number, record, table)
    if number == after:
        os.kill(os.getpid(), how)

Checkpoint.save = interrupted
main()
"""


def interrupted_fit(file, folder, how, after, *more):
    """Train a small model, and send the process a signal once the checkpoint has some releases."""
    scale = FIT[2:] if file.is_file() else ()
    arguments = ["fit", file, "-o", "model", *FIT[:2], *scale, *SMALL, *more]
    command = [sys.executable, "-c", INTERRUPTED, *map(str, (int(how), after, *arguments))]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@dataclass(frozen=True)
class Files:
    """Where things are."""

    private: Path
    """A model of ratings under privacy, with numbers for items."""
    titled: Path
    """One without privacy, with film titles for items."""
    implicit: Path
    """A model of implicit feedback without factors."""
    history: Path
    """Ratings of 300 users on the items of the first model and 20 others, in random order, columns uid and film."""
    test: Path
    """Other ratings of the same users and of three newcomers."""


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Files:
    folder = tmp_path_factory.mktemp("cli")
    ratings = dpals.simulate.movielens_like(300, 120, 40, seed=3)
    known = ratings.items[:100]
    frame = pl.DataFrame(
        {"uid": ratings.users[ratings.rows] * 7 - 50, "film": ratings.items[ratings.indices], "stars": ratings.values}
    ).sample(fraction=1.0, shuffle=True, seed=4)
    facts = {"rating_range": (0.5, 5.0), "catalogue": known, "on_unknown_items": "drop"}
    trained = dpals.Ratings.from_frame(frame, user="uid", item="film", **facts)
    dpals.PooledDPALS(epsilon=5, delta=1e-5, rank=3, steps=1).fit(trained).save(folder / "private")
    titled = dpals.simulate.movielens_like(300, 120, 40, seed=3, titles=True)
    dpals.ALS(rank=4, steps=2).fit(titled).save(folder / "titled")
    pairs = dpals.Ratings.from_arrays(trained.users[trained.rows], trained.items[trained.indices], catalogue=known)
    dpals.Popularity(epsilon=5, delta=1e-5).fit(pairs).save(folder / "implicit")
    is_test = np.random.default_rng(5).random(frame.height) < 0.2
    frame.filter(~is_test).write_csv(folder / "history.csv")
    newcomers = pl.DataFrame({"uid": [9001, 9002, 9003], "film": [1, 2, 3], "stars": [4, 4, 4]}, schema=frame.schema)
    pl.concat([frame.filter(is_test), newcomers]).write_csv(folder / "test.csv")
    return Files(*(folder / name for name in ("private", "titled", "implicit", "history.csv", "test.csv")))
