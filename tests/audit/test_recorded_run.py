"""Runs with a recording mechanism: everything is noted, nothing is changed, and releases can be replayed."""

import logging
import warnings

import numpy as np
import pytest

import dpals
from dpals.audit.recorded_run import TrainingFailed, record_run
from dpals.audit.simulated_data import odd_users

RATINGS = odd_users(12, 40, implicit=False).ratings()
METHOD = dpals.ItemMean(2.0, 1e-5)


def test_a_recorded_run_publishes_what_an_unrecorded_one_does():
    run = record_run(METHOD, RATINGS, insecure_seed=3)
    plain = dpals.ItemMean(2.0, 1e-5, insecure_seed=3).fit(RATINGS)
    assert run.model.item_biases.tobytes() == plain.model_.item_biases.tobytes()
    assert run.model.privacy == plain.privacy
    assert "model_" not in vars(METHOD)


def test_every_release_is_recorded_with_its_sums_and_noise():
    run = record_run(METHOD, RATINGS)
    assert [release.record for release in run.releases] == list(run.model.privacy.releases)
    for release in run.releases:
        assert np.array_equal((release.sums + release.noise) * release.record.step, release.published)
        assert release.noise.any()
    assert len(run.mechanisms) == 1
    assert any("released" in line for line in run.log)


def test_replayed_releases_are_published_again():
    whole = record_run(METHOD, RATINGS)
    again = record_run(METHOD, RATINGS, whole.releases)
    for one, other in zip(whole.releases, again.releases, strict=True):
        assert one.published.tobytes() == other.published.tobytes()
        assert np.array_equal(one.sums, other.sums)
    assert again.model.item_biases.tobytes() == whole.model.item_biases.tobytes()


def test_what_is_logged_warned_of_and_printed_is_captured():
    class Talks(dpals.ItemMean):
        def _fit(self, ratings, mechanism):
            print("printed")
            warnings.warn("warned", stacklevel=1)
            logging.getLogger("elsewhere").info("logged")
            return super()._fit(ratings, mechanism)

    assert {"printed", "warned", "logged"} <= set(record_run(Talks(1.0), RATINGS).log)


def test_an_error_in_training_is_a_finding_and_one_of_the_caller_is_not():
    class Fails(dpals.ItemMean):
        def _fit(self, *_):
            raise ZeroDivisionError("no users")

    with pytest.raises(TrainingFailed, match="training ended with ZeroDivisionError: no users"):
        record_run(Fails(1.0), RATINGS)
    with pytest.raises(dpals.InputError):
        record_run(dpals.ItemMean(1.0), odd_users(12, 40, implicit=True).ratings())
