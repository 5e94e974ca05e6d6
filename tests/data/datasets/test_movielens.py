"""What each data set is made of, and what must be in it."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.data.datasets.conftest import COUNTS, ROWS, unpack

import dpals
from dpals import InputError
from dpals.data.datasets.movielens import DATA_SETS
from dpals.evaluation.splits import pairs

REAL = Path.home() / ".cache" / "dpals"


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


def test_the_real_movielens_1m() -> None:
    if not (REAL.exists() and dpals.datasets.is_here("ml-1m", REAL)):
        pytest.skip(f"MovieLens 1M is not in {REAL}; get it with `dpals datasets get ml-1m`")
    ratings = dpals.datasets.load("ml-1m", REAL)
    assert repr(ratings) == "Ratings(6,040 users, 3,706 items, 1,000,209 ratings from 1 to 5)"
    assert ratings.values is not None
    assert ratings.values.mean() == pytest.approx(3.5816, abs=1e-4)
