"""Loading by name: what is said where the data is missing, and when it is downloaded."""

import os
import re
from pathlib import Path

import pytest
from tests.data.datasets.conftest import Server, expected, status
from tests.same_ratings import assert_same_arrays

import dpals
from dpals import InputError
from dpals.data.datasets import DownloadError


def test_data_that_is_not_there(cache: Path, tmp_path: Path) -> None:
    message = f"{re.escape(str(cache))}: ml-1m is not here.*5.9 MB.*download=True.*https://.*/ml-1m.zip.*path"
    with pytest.raises(InputError, match=message):
        dpals.datasets.load("ml-1m")
    assert not cache.exists()
    with pytest.raises(InputError, match=f"{re.escape(str(tmp_path))}: ml-1m is not here"):
        dpals.datasets.load("ml-1m", tmp_path)
    for download in (False, True):
        with pytest.raises(InputError, match="nowhere: there is no such file or folder"):
            dpals.datasets.load("ml-1m", tmp_path / "nowhere", download=download)


def test_download(served: Server, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert_same_arrays(dpals.datasets.load("ml-1m", download=True), expected("ml-1m"))
    assert os.listdir(cache) == ["ml-1m.zip"]
    printed = capfd.readouterr()
    assert printed.err.count("must not be redistributed") == 1
    assert printed.out == ""
    dpals.datasets.load("ml-1m", download=True)
    assert dpals.datasets.get("ml-1m") == cache / "ml-1m.zip"
    assert len(served.ranges) == 1
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("served")
def test_download_to_a_chosen_folder(tmp_path: Path) -> None:
    folder = tmp_path / "chosen"
    folder.mkdir()
    dpals.datasets.load("ml-1m", folder, download=True)
    assert os.listdir(folder) == ["ml-1m.zip"]


def test_a_failed_download(served: Server) -> None:
    served.answers = [status(404)]
    with pytest.raises(DownloadError, match=r"/ml-1m\.zip: the server answers HTTP 404 Not Found"):
        dpals.datasets.load("ml-1m", download=True)
