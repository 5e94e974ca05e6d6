import pytest

from dpals.ledger import transactions
from dpals.ledger.ledger import Ledger


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """On a busy machine a turn may be long in coming: SQLite is not fair to those who wait."""
    monkeypatch.setitem(transactions._OPEN, "timeout", 600)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    ledger = Ledger(path)
    ledger.declare("films", epsilon=1.0, delta=1e-6)
    for number in range(5):
        ledger.spend("films", f"release {number}", cost=1_000 + number)
    return ledger
