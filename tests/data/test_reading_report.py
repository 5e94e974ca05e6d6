"""What became of the rows, in words."""

import pytest

from dpals.data.reading_report import ReadingReport


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
