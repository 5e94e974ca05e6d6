import numpy as np
import pytest

from dpals.release.accounting import Budget
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.mechanism import Mechanism
from dpals.statement.record import Statement

BUDGET = Budget(epsilon=1.0, delta=1e-5)
FACT = "Ratings lie between 0.5 & 5 <stars>."


@pytest.fixture(scope="session")
def statement():
    """A function that makes the statement of a mechanism with some releases."""

    def make(weights=(1, 3), **options):
        mechanism = Mechanism(BUDGET, **options)
        contribution = Contribution(Pattern([0, 1], [0], 3), np.ones(1))
        for number, cost in enumerate(BUDGET.split(*weights)):
            mechanism.release(Query(f"release {number}", 3, sensitivity=1.0), contribution, cost)
        return Statement.of(mechanism, (FACT,))

    return make
