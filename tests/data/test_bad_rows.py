"""Bad rows: an error, or dropped and counted by reason."""

from pathlib import Path
from typing import Any

import pytest
from tests.data.tables import RANGE, read, write

from dpals import InputError, Ratings, read_ratings
from dpals.data.bad_rows import ReadingReport


def test_bad_rows_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = [
        "1,1,3,5",
        "1,2,abc,5",
        "1,3,9,5",
        "1,4",
        ",5,3,5",
        "1,,3,5",
        "1,7,nan,5",
        "1,8,3,x",
        "1,9,,5",
        "2,1,4,6",
    ]
    path = write(tmp_path, "user,item,rating,timestamp\n" + "\n".join(rows))
    ratings = read("r.csv", tmp_path, on_bad_rows="drop")
    assert path.exists()
    assert ratings.users.tolist() == ["1", "2"]
    assert ratings.n_ratings == 2
    assert ratings.report.rows_read == 10
    assert ratings.report.rows_dropped == {
        "rating that is not a number": 1,
        "line with a wrong number of columns": 1,
        "timestamp that is not a number or date": 1,
        "missing user id": 1,
        "missing item id": 1,
        "missing rating": 2,
        "rating outside the range": 1,
    }


def test_bad_rows_can_be_dropped_and_are_counted_by_reason() -> None:
    ratings = Ratings.from_arrays(
        ["a", None, "", "d", "e", "f", "g"],
        [1, 2, 3, None, 5, 6, 7],
        [3, 3, 3, 3, float("nan"), 9, float("inf")],
        rating_range=(1, 5),
        on_bad_rows="drop",
    )
    assert ratings.users.tolist() == ["a"]
    assert ratings.items.tolist() == [1]
    assert ratings.report.rows_read == 7
    assert ratings.report.rows_dropped == {
        "missing user id": 2,
        "missing item id": 1,
        "missing rating": 1,
        "infinite rating": 1,
        "rating outside the range": 1,
    }
    assert "6 dropped (2 missing user id, 1 missing item id" in str(ratings.report)


def test_unknown_items_and_other_bad_rows_each_have_their_way() -> None:
    users, items = ["ann", "ann", "bob", "eve", "eve"], ["tea", None, "gin", None, "tea"]
    arguments: dict[str, Any] = {"rating_range": RANGE, "catalogue": ["tea"]}

    def made(**ways: Any) -> Ratings:
        return Ratings.from_arrays(users, items, [3, 4, 5, 1, 9], **arguments, **ways)

    with pytest.raises(InputError, match=r"row 1 .*the item id is missing.*on_bad_rows"):
        made(on_unknown_items="drop")
    with pytest.raises(InputError, match=r"row 2 .*the item 'gin' is not in the catalogue.*on_unknown_items"):
        made(on_bad_rows="drop", on_unknown_items="error")
    both = made(on_bad_rows="drop", on_unknown_items="drop")
    assert both.users.tolist() == ["ann", "bob"]
    assert both.report.rows_dropped == {
        "missing item id": 2,
        "rating outside the range": 1,
        "item outside the catalogue": 1,
    }
    assert made(on_bad_rows="drop").users.tolist() == ["ann"]
    with pytest.raises(InputError, match="on_unknown_items must be"):
        made(on_unknown_items="ignore")


def test_unknown_items_are_left_out_where_other_bad_rows_are_not(tmp_path: Path) -> None:
    path = write(tmp_path, "user,item\n1,5\n2,7\n")
    ratings = read_ratings(path, catalogue=[5], on_unknown_items="drop")
    assert ratings.users.tolist() == ["1", "2"]
    assert ratings.report.rows_dropped == {"item outside the catalogue": 1}
    path = write(tmp_path, "user,item\n1,\n1,5\n\n2,x\n2,7\n")
    with pytest.raises(InputError, match=r"line 6, column 'item': the item 7 is not"):
        read_ratings(path, catalogue=[5], on_bad_rows="drop", on_unknown_items="error")
    ratings = read_ratings(write(tmp_path, "user,item\n1,5\n2,x\n"), catalogue=[5], on_bad_rows="drop")
    assert ratings.users.tolist() == ["1"]


BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "policy": ({"on_bad_rows": "ignore"}, 'on_bad_rows must be "error" or "drop", not \'ignore\''),
}


@pytest.mark.parametrize(("change", "message"), BAD_ARRAYS.values(), ids=list(BAD_ARRAYS))
def test_arrays_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_arrays(**({"users": [1, 2], "items": [1, 2]} | change))


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (ReadingReport(0), "0 rows read"),
        (ReadingReport(1_000), "1,000 rows read"),
        (ReadingReport(9, 2), "9 rows read, 2 repeated for the same user and item"),
        (
            ReadingReport(2_000, rows_dropped={"missing rating": 1_200, "missing user id": 1}),
            "2,000 rows read, 1,201 dropped (1,200 missing rating, 1 missing user id)",
        ),
    ],
)
def test_it_says_what_happened_and_nothing_else(report: ReadingReport, words: str) -> None:
    assert str(report) == words
