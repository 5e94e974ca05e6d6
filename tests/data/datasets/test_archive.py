"""Where the data may be, packed or not, and how it is read from there."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.data.datasets.conftest import expected, text_of, unpack, write_zip
from tests.same_ratings import assert_same_arrays

import dpals
from dpals import InputError
from dpals.data.datasets.archive import cache_folder
from dpals.data.datasets.movielens import DATA_SETS


def as_file(folder: Path, member: str) -> Path:
    return unpack(folder, member)


def as_unpacked_folder(folder: Path, member: str) -> Path:
    return unpack(folder, member).parent


def as_parent_folder(folder: Path, member: str) -> Path:
    unpack(folder, member)
    return folder


def as_zip(folder: Path, member: str) -> Path:
    folder.mkdir()
    write_zip(folder / "renamed.ZIP", member)
    return folder / "renamed.ZIP"


@pytest.mark.parametrize("name", ["ml-100k", "ml-1m", "ml-10m"])
@pytest.mark.parametrize("put", [as_file, as_unpacked_folder, as_parent_folder, as_zip])
@pytest.mark.usefixtures("small")
def test_every_place(name: str, put: Callable[[Path, str], Path], tmp_path: Path) -> None:
    path = put(tmp_path / "data", DATA_SETS[name].archive.member)
    before = sorted(tmp_path.rglob("*"))
    assert dpals.datasets.is_here(name, path)
    for given in (path, str(path)):
        ratings = dpals.datasets.load(name, given)
        assert_same_arrays(ratings, expected(name))
        assert not ratings.catalogue_declared
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.usefixtures("small")
def test_the_cache_is_the_default_place(zipped: bool, cache: Path) -> None:
    assert not dpals.datasets.is_here("ml-10m")
    if zipped:
        cache.mkdir()
        write_zip(cache / "ml-10m.zip", "ml-10M100K/ratings.dat")
    else:
        (cache / "ml-10m").mkdir(parents=True)
        (cache / "ml-10m" / "ratings.dat").write_text(text_of("ratings.dat"))
    assert dpals.datasets.is_here("ml-10m")
    assert not dpals.datasets.is_here("ml-1m")
    assert_same_arrays(dpals.datasets.load("ml-10m"), expected("ml-10m"))


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    monkeypatch.setenv("DPALS_CACHE", "~/data")
    assert cache_folder() == Path("/home/ann/data")
    monkeypatch.delenv("DPALS_CACHE")
    assert cache_folder() == Path("/caches/dpals")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("/home/ann/.cache/dpals")


@pytest.mark.usefixtures("small")
def test_damaged_archives(tmp_path: Path) -> None:
    path = tmp_path / "ml-1m.zip"
    write_zip(path, "ml-1m/ratings.dat")
    content = path.read_bytes()
    with pytest.raises(InputError, match=r"ml-1m\.zip: there is no ml-10M100K/ratings\.dat in it\. Is this ml-10m"):
        dpals.datasets.load("ml-10m", path)
    path.write_bytes(content[:-30])
    with pytest.raises(InputError, match=r"ml-1m\.zip: the archive is damaged or cut short .*Delete it"):
        dpals.datasets.load("ml-1m", path)
    at = content.index(b"ml-1m/ratings.dat") + 40
    for damaged in (b"\xff", b"\x00", b"\x55"):
        path.write_bytes(content[:at] + damaged * 30 + content[at + 30 :])
        with pytest.raises(InputError, match=r"ml-1m\.zip.*damaged or cut short"):
            dpals.datasets.load("ml-1m", path)
