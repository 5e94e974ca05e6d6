"""The command ``dpals datasets``."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.data.datasets.conftest import Server

from dpals.cli.datasets import command


def test_the_list_says_what_is_here(cache: Path) -> None:
    (cache / "ml-1m").mkdir(parents=True)
    (cache / "ml-1m" / "ratings.dat").touch()
    lines = CliRunner().invoke(command, []).output.splitlines()
    assert [line.split()[0] for line in lines] == ["ml-100k", "ml-1m", "ml-10m", "ml-10m-top400", "ml-20m"]
    for word in ("6,040 users", "3,706 items", "1,000,209 ratings", "5.9 MB", str(cache / "ml-1m" / "ratings.dat")):
        assert word in lines[1]
    assert [line.endswith("not here") for line in lines] == [True, False, True, True, True]
    assert "about 4,490,000 ratings" in lines[3]


def test_get_downloads_once(served: Server, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        command(["get", "ml-1m"], standalone_mode=False)
        assert capfd.readouterr().out == f"{cache / 'ml-1m.zip'}\n"
    assert os.listdir(cache) == ["ml-1m.zip"]
    assert len(served.ranges) == 1
