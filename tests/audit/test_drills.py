"""Drills: nothing to report of a sound mechanism, and each hole in it is reported."""

from dataclasses import replace

import pytest

import dpals
from dpals.audit.data import odd_people
from dpals.audit.drills import _EVERYONE, _OTHER_QUERIES, _distinct, _loud_users, _one, _sums, beyond_bounds, breaches
from dpals.audit.recording import recorded
from dpals.release import contribution as contribution_module
from dpals.release import mechanism as mechanism_module
from dpals.release.contribution import Grid, Pattern

METHODS = [dpals.DPALS(rank=3), dpals.DPSVD(), dpals.GlobalMean(), dpals.PooledDPALS(50.0, rank=2)]


@pytest.fixture(scope="module", params=METHODS, ids=lambda method: type(method).__name__)
def passages(request):
    return recorded(request.param, odd_people(12, 40, implicit=False).ratings(), insecure_seed=1).passages


def test_a_sound_mechanism_scales_everyone_to_the_bound(passages):
    assert list(beyond_bounds(passages)) == []


def test_a_mechanism_that_trusts_its_callers_is_found_out(passages, monkeypatch):
    """But for single numbers: putting them on the grid cuts them to the bound already."""
    monkeypatch.setattr(contribution_module, "_clip_users", lambda *_: None)
    beyond = [problem for problem in beyond_bounds(passages) if "beyond its bound" in problem]
    of_method = sum(one.query.form != "scalar" or one.query.n_items > 1 for one in _distinct(passages))
    assert len(beyond) == of_method + len(_OTHER_QUERIES)


def test_a_bound_other_than_the_recorded_one_is_found_out(passages):
    smaller = [replace(one, record=replace(one.record, sensitivity=one.record.sensitivity // 2)) for one in passages]
    found = "; ".join(beyond_bounds(smaller))
    assert "the recorded bound is not the one that is enforced" in found
    assert "moves it beyond its bound" in found


def test_users_of_the_drill_come_as_close_to_the_bound_as_they_may(passages):
    """Or the drill would not notice a bound that is a little too large."""
    for passage in _distinct(passages):
        query, bits = passage.query, passage.record.sensitivity.bit_length() - 1
        grid = Grid.of(query, bits)
        contribution = _loud_users(query, grid)
        weights = query.coordinate_weights.astype(object)
        norms = [(_sums(_one(contribution, i), query, grid) ** 2 * weights).sum() for i in range(_EVERYONE)]
        assert max(norms) > 0.9 * passage.record.sensitivity**2


def test_a_sound_mechanism_refuses_what_it_must():
    assert list(breaches()) == []


def test_holes_are_reported(monkeypatch):
    monkeypatch.setattr(Pattern, "__post_init__", lambda _: None)
    monkeypatch.setattr(mechanism_module, "_check_new_users", lambda *_: None)
    monkeypatch.setattr(mechanism_module.Mechanism, "_check_affordable", lambda *_: None)
    monkeypatch.setattr(dpals.Ratings, "public_facts", lambda _: [])
    found = list(breaches())
    assert "a user may name an item twice" in found
    assert "a user may be in two blocks of one release" in found
    assert "a release inside another spends the budget twice" in found
    assert "a user may be in two blocks of one release that do not follow each other" in found
    assert "a mechanism spends more than its budget" in found
    assert "a catalogue that was taken from the data is not declared public" in found


def test_ratings_that_mix_up_users_are_reported(monkeypatch):
    monkeypatch.setattr("dpals.data.ratings._are_distinct", lambda _: True)
    monkeypatch.setattr("dpals.audit.drills.SLAB_USERS", 2**30)
    assert list(breaches()) == ["one user may have two rows", "sums of floats may be inexact"]
