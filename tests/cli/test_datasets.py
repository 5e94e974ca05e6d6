"""The command ``dpals datasets``."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.data.datasets import conftest as site

from dpals.cli.datasets import command

cache, small, server, served = site.cache, site.small, site.server, site.served


def test_the_list_says_what_is_here(cache: Path) -> None:
    (cache / "ml-1m").mkdir(parents=True)
    (cache / "ml-1m" / "ratings.dat").touch()
    lines = CliRunner().invoke(command, []).output.splitlines()
    assert [line.split()[0] for line in lines] == ["ml-100k", "ml-1m", "ml-10m", "ml-10m-top400", "ml-20m"]
    for word in ("6,040 users", "3,706 items", "1,000,209 ratings", "5.9 MB", str(cache / "ml-1m" / "ratings.dat")):
        assert word in lines[1]
    assert [line.endswith("not downloaded") for line in lines] == [True, False, True, True, True]
    assert "about 4,490,000 ratings" in lines[3]


def test_get_downloads_once(served: site.Server, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        command(["get", "ml-1m"], standalone_mode=False)
        assert capfd.readouterr().out == f"{cache / 'ml-1m.zip'}\n"
    assert os.listdir(cache) == ["ml-1m.zip"]
    assert len(served.ranges) == 1


def test_json(cache: Path) -> None:
    (cache / "ml-1m").mkdir(parents=True)
    file = cache / "ml-1m" / "ratings.dat"
    file.touch()
    listed = {one.pop("name"): one for one in json.loads(CliRunner().invoke(command, ["--json"]).output)}
    assert listed["ml-1m"] == {"users": 6_040, "items": 3_706, "ratings": 1_000_209, "file": str(file)}
    assert listed["ml-10m"]["file"] is None
    found = CliRunner().invoke(command, ["get", "ml-1m", "--json"]).output
    assert json.loads(found) == {"name": "ml-1m", "file": str(file)}
    misplaced = CliRunner().invoke(command, ["--json", "get", "ml-1m"])
    assert misplaced.exit_code == 2
    assert "put --json after the command" in misplaced.output
