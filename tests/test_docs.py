"""Numbers in the documentation are those of the code."""

from pathlib import Path

import pytest

from dpals.release import accounting, selection
from dpals.release.selection import tries_of

DOCS = Path(__file__).parents[1] / "docs"
DELTA = 1e-5
COLUMNS = [("geometric", 3), ("geometric", 10), ("geometric", 100), ("logarithmic", 10), ("poisson", 10)]


def test_the_costs_of_a_search():
    lines = (DOCS / "private_search.md").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| one try |")) + 2
    rows = [[float(cell) for cell in line.strip("|").split("|")] for line in lines[start : start + 5]]
    for one, *totals, by_renyi in rows:
        mu = accounting.mu(one, DELTA)
        found = [selection.epsilon(mu, DELTA, tries_of(name, mean)) for name, mean in COLUMNS]
        assert totals == pytest.approx(found, abs=0.006)
        assert by_renyi == pytest.approx(selection._by_renyi(mu, DELTA, tries_of("geometric", 10)), abs=0.006)
