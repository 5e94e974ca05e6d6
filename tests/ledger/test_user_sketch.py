"""Users who are in a ledger under another name are warned of, and nothing about them leaves the file."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpals.ledger.ledger import Ledger
from dpals.ledger.user_sketch import merged, overlap, sketch_of


def test_users_under_a_new_name_are_warned_of(path, caplog):
    people = [f"user {number}" for number in range(3000)]
    Ledger(path).note_users("films", people)
    Ledger(path).note_users("films", people[:2000])
    assert caplog.text == ""
    Ledger(path).note_users("films of June", people[500:] + [f"new {number}" for number in range(900)])
    (warning,) = caplog.records
    assert warning.name.split(".")[0] == "dpals"
    assert "many users of 'films of June' are in this ledger as 'films' already" in warning.getMessage()


@pytest.mark.parametrize("share", [0.2, 1.0, 5.0])
def test_part_of_them_and_more_than_them_as_well(share, caplog):
    ledger = Ledger()
    ledger.note_users("films", range(10_000))
    ledger.note_users("other", range(int(10_000 * share)))
    assert "as 'films' already" in caplog.text


def test_other_people_are_not(caplog):
    ledger = Ledger()
    ledger.note_users("films", range(5000))
    ledger.note_users("books", range(5000, 9000))
    ledger.note_users("nobody", [])
    assert caplog.text == ""


def test_looking_remembers_nobody(path, caplog):
    ledger = Ledger(path)
    ledger.warn_of_shared_users("films", range(10))
    assert ledger.entries() == []
    ledger.note_users("films", range(10))
    before = ledger.verify()
    ledger.warn_of_shared_users("books", range(10))
    assert "as 'films' already" in caplog.text
    assert ledger.verify() == before


def test_the_same_people_are_remembered_once(path):
    ledger = Ledger(path)
    for _ in range(3):
        ledger.note_users("films", range(2000))
    assert [len(entry.sketch) for entry in ledger.entries()] == [0, 1024]


def test_nothing_about_people_leaves_the_file(path):
    """Heads of ledgers of the same people differ, and what may be shown of entries has no sketch and no key."""
    heads = set()
    for number in range(2):
        ledger = Ledger(path.with_name(f"{number}.db"))
        ledger.note_users("films", range(1000))
        heads.add(ledger.verify())
        shown = json.dumps([entry.public() for entry in ledger.entries()]) + repr(ledger.entries())
        for entry in ledger.entries():
            assert entry.nonce not in shown
            assert not any(tag in shown for tag in entry.sketch)
    assert len(heads) == 2


def test_ids_are_hashed_under_a_key_of_the_ledger():
    sketches = []
    for _ in range(2):
        ledger = Ledger()
        ledger.note_users("films", range(10))
        sketches.append(set(ledger.entries()[-1].sketch))
    assert len(sketches[0]) == 10
    assert not sketches[0] & sketches[1]


@given(left=st.sets(st.integers(0, 3000)), right=st.sets(st.integers(0, 3000)))
def test_merged_is_the_sketch_of_the_union(left, right):
    one, other, both = (sketch_of(b"key", ids) for ids in (left, right, left | right))
    assert merged(one, other) == both


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_overlap_estimates_the_share_of_the_smaller_data_set(share):
    smaller, larger = range(20_000), range(round(20_000 * (1 - share)), 100_000)
    assert overlap(sketch_of(b"key", smaller), sketch_of(b"key", larger)) == pytest.approx(share, abs=0.12)


def test_a_key_hides_the_ids():
    assert not set(sketch_of(b"one key", range(500))) & set(sketch_of(b"another", range(500)))
