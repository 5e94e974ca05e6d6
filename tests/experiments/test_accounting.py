"""The epsilons of the paper's table, against numbers that were computed without this library."""

import pytest

from dpals.experiments.accounting import WAYS, epsilons

# docs/errata.md: (a) the paper's conversion, (b) exact, (c) exact with the errors corrected
TABLE = {
    "ml-10m-top400": {
        0.8: (0.801, 0.584, 0.607),
        4: (4.006, 3.255, 3.263),
        8: (7.387, 6.218, 6.702),
        16: (14.871, 12.978, 13.306),
    },
    "ml-10m": {
        1: (1.001, 0.742, 0.833),
        5: (5.008, 4.124, 4.740),
        10: (10.041, 8.592, 10.155),
        20: (19.824, 17.533, 18.667),
    },
    "ml-20m": {
        1: (1.011, 0.756, 0.756),
        5: (5.047, 4.173, 4.192),
        10: (10.078, 8.648, 8.673),
        20: (20.135, 17.853, 17.949),
    },
}


@pytest.mark.parametrize(("name", "printed"), [(name, printed) for name in TABLE for printed in TABLE[name]])
def test_epsilons_of_the_table(name, printed):
    found = epsilons(name, printed)
    assert [found[way] for way in WAYS] == pytest.approx(TABLE[name][printed], abs=6e-4)
