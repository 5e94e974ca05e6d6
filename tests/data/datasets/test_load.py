"""Loading by name: from everywhere the data may be, and what is said when it is not there or not right."""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.data.datasets.conftest import COUNTS, ROWS, Server, status, text_of, write_zip
from tests.same_ratings import assert_same_arrays

import dpals
from dpals import InputError
from dpals.data.datasets import DownloadError
from dpals.data.datasets.movielens import DATA_SETS
from dpals.evaluation.splits import pairs

REAL = Path.home() / ".cache" / "dpals"


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
    from dpals.data.datasets.archive import cache_folder

    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    monkeypatch.setenv("DPALS_CACHE", "~/data")
    assert cache_folder() == Path("/home/ann/data")
    monkeypatch.delenv("DPALS_CACHE")
    assert cache_folder() == Path("/caches/dpals")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("/home/ann/.cache/dpals")


def test_top400_keeps_the_items_with_the_most_ratings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [(user, item) for user in range(2) for item in range(399)] + [(2, 500), (3, 500), (3, 501)]
    (tmp_path / "ratings.dat").write_text("".join(f"{user}::{item}::4.5::0\n" for user, item in items))
    data = DATA_SETS["ml-10m-top400"]
    assert (data.users, data.items, data.ratings) == (69_692, 400, 4_490_000)
    small = replace(data, users=4, ratings=800, ratings_rounded_to=10)
    assert len(items) == 801
    monkeypatch.setitem(DATA_SETS, "ml-10m-top400", small)
    ratings = dpals.datasets.load("ml-10m-top400", tmp_path)
    assert ratings.items.tolist() == [*range(399), 500]
    monkeypatch.setitem(DATA_SETS, "ml-10m-top400", replace(small, ratings=810))
    with pytest.raises(InputError, match=r"4 users, 400 items and 810 ratings, but this has .* 800 ratings"):
        dpals.datasets.load("ml-10m-top400", tmp_path)


def test_ml20m_is_what_users_liked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    liked = {(user, item) for user, item, stars in ROWS if stars >= 4 and user < 7}
    items = sorted({item for _, item in liked})
    assert 99 not in items
    counts = {"users": 6, "items": len(items), "ratings": len(liked)}
    monkeypatch.setitem(DATA_SETS, "ml-20m", replace(DATA_SETS["ml-20m"], **counts))
    unpack(tmp_path, "ml-20m/ratings.csv")
    ratings = dpals.datasets.load("ml-20m", tmp_path)
    assert ratings.is_implicit
    assert ratings.items.tolist() == items
    users, items = pairs(ratings)
    assert set(zip(users.tolist(), items.tolist(), strict=True)) == liked


@pytest.mark.parametrize("wrong", ["users", "items", "ratings"])
@pytest.mark.usefixtures("small")
def test_wrong_statistics(wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = unpack(tmp_path, "ml-1m/ratings.dat")
    monkeypatch.setitem(DATA_SETS, "ml-1m", replace(DATA_SETS["ml-1m"], **{wrong: 6_041}))
    should = " ".join(f"{COUNTS[what] if what != wrong else 6041:,} {what}.*" for what in COUNTS)
    with pytest.raises(InputError, match=rf"ratings\.dat: ml-1m should have {should}but this has 7 users, 8 items and"):
        dpals.datasets.load("ml-1m", file)


def test_an_unknown_name() -> None:
    with pytest.raises(InputError, match=r"no data set is called 'ml-2m'\. Known are ml-100k, ml-1m,"):
        dpals.datasets.load("ml-2m")


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


def test_the_real_movielens_1m() -> None:
    if not (REAL.exists() and dpals.datasets.is_here("ml-1m", REAL)):
        pytest.skip(f"MovieLens 1M is not in {REAL}; get it with `dpals datasets get ml-1m`")
    ratings = dpals.datasets.load("ml-1m", REAL)
    assert repr(ratings) == "Ratings(6,040 users, 3,706 items, 1,000,209 ratings from 1 to 5)"
    assert ratings.values is not None
    assert ratings.values.mean() == pytest.approx(3.5816, abs=1e-4)
