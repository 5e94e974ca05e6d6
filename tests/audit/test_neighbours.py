"""What tells two runs apart that saw the same releases."""

from dataclasses import replace

import numpy as np
import pytest

import dpals
from dpals.audit import neighbours
from dpals.audit.neighbours import differences, is_consecutive_removal, share_of_bound, squared_distance
from dpals.audit.recorded_run import record_run
from dpals.audit.simulated_data import odd_users

ROWS = odd_users(12, 40, implicit=False)
METHOD = dpals.DPALS(2.0, 1e-5, rank=2, ratings_per_user=4, frequent_fraction=0.5)


def run(keep=slice(None), replayed=None, **changes):
    return record_run(METHOD, ROWS.ratings(keep), replayed, **{"insecure_seed": 1, **changes})


@pytest.fixture(scope="module")
def whole():
    return run()


def kinds(whole, other):
    return {difference.kind for difference in differences(whole, other)}


def test_a_user_less_with_the_same_releases_makes_no_difference(whole):
    assert kinds(whole, run(ROWS.users != 3, whole.releases)) == set()


def test_other_releases_make_another_model(whole):
    assert neighbours.MODEL in kinds(whole, run(ROWS.users != 3, insecure_seed=2))


def test_other_settings_make_other_records(whole):
    assert neighbours.RECORD in kinds(whole, run(ROWS.users != 3, whole.releases, epsilon=2.5))
    assert neighbours.RECORD in kinds(whole, run(ROWS.users != 3, whole.releases, steps=1))


def test_sums_that_move_too_far_are_noticed(whole):
    other = run(ROWS.users != 3, whole.releases)
    release = other.releases[2]
    beyond = release.sums.copy()
    beyond[0, 0] += 2 * release.record.sensitivity
    other.releases[2] = replace(release, sums=beyond)
    assert kinds(whole, other) == {neighbours.BOUND}


def test_the_last_bit_of_what_another_user_contributes_is_noticed(whole):
    other = run(ROWS.users != 3, whole.releases)
    release = other.releases[-1]
    coefficients = release.contributions[0].coefficients.copy()
    coefficients[-1] = np.nextafter(coefficients[-1], np.inf)
    other.releases[-1] = replace(release, contributions=(replace(release.contributions[0], coefficients=coefficients),))
    assert kinds(whole, other) == {neighbours.CONTRIBUTIONS}


def test_the_last_bit_of_the_model_and_what_was_found_are_noticed(whole):
    other = run(ROWS.users != 3, whole.releases)
    factors = other.model.item_factors.copy()
    factors[0, 0] = np.nextafter(factors[0, 0], np.float32(9))
    other.estimator.model_ = replace(other.model, item_factors=factors)
    assert kinds(whole, other) == {neighbours.MODEL}
    another = run(ROWS.users != 3, whole.releases)
    another.estimator.chosen_ = 3
    assert kinds(whole, another) == {neighbours.MODEL}


def test_what_is_logged_is_compared(whole):
    other = run(ROWS.users != 3, whole.releases)
    assert any("released" in line for line in other.log)
    other.log.append("there are 11 users")
    assert kinds(whole, other) == {neighbours.LOG}


def test_distances_are_those_of_plain_integers(whole):
    other = run(ROWS.users != 3, whole.releases)
    for one, two in zip(whole.releases, other.releases, strict=True):
        weights = [int(w) for w in one.query.coordinate_weights]
        plain = sum(
            weights[k] * (int(one.sums[j, k]) - int(two.sums[j, k])) ** 2
            for j in range(one.sums.shape[0])
            for k in range(one.sums.shape[1])
        )
        assert squared_distance(one, two) == plain
        assert share_of_bound(one, two) == pytest.approx((plain / one.record.sensitivity**2) ** 0.5)


@pytest.mark.parametrize(
    ("before", "after", "removal"),
    [
        ([1, 2, 3], [1, 2, 3], True),
        ([1, 2, 3], [2, 3], True),
        ([1, 2, 3], [1, 2], True),
        ([1, 2, 3], [], True),
        ([1, 2, 3], [1, 3], True),
        ([1, 2, 3, 4], [2, 4], False),  # two places
        ([1, 2], [1, 2, 3], False),
        ([0.0, 1], [-0.0, 1], False),  # not to the last bit
    ],
)
def test_a_removal_takes_consecutive_rows(before, after, removal):
    assert is_consecutive_removal(np.array(before, float), np.array(after, float)) is removal
    matrix = np.array(before, float)[:, None] * np.ones(3), np.array(after, float)[:, None] * np.ones(3)
    assert is_consecutive_removal(*matrix) is removal


def test_rows_of_another_width_or_type_are_no_removal():
    assert not is_consecutive_removal(np.zeros((2, 3)), np.zeros((1, 2)))
    assert not is_consecutive_removal(np.zeros(2), np.zeros(1, np.float32))
