"""What became of the rows of a table: how many were read, repeated and dropped."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReadingReport:
    """What became of the rows of a table on their way into `Ratings`.

    Examples
    --------
    >>> print(ReadingReport(rows_read=1200, duplicates_replaced=1, rows_dropped={"missing rating": 2}))
    1,200 rows read, 1 repeated for the same user and item, 2 dropped (2 missing rating)
    """

    rows_read: int
    duplicates_replaced: int = 0
    rows_dropped: Mapping[str, int] = field(default_factory=dict)
    """Number of bad rows dropped, by reason."""

    def __str__(self) -> str:
        parts = [f"{self.rows_read:,} rows read"]
        if self.duplicates_replaced:
            parts.append(f"{self.duplicates_replaced:,} repeated for the same user and item")
        if self.rows_dropped:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.rows_dropped.items())
            parts.append(f"{sum(self.rows_dropped.values()):,} dropped ({reasons})")
        return ", ".join(parts)
