"""The comparison of neighbouring inputs notices readers that let one user's rows decide about another's."""

from contextlib import suppress
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.privacy import neighbouring_inputs
from tests.privacy.neighbouring_inputs import neighbours_read, neighbours_trained
from tests.privacy.odd_files import DataSet, declared, declared_for
from tests.privacy.odd_frames import makers
from tests.privacy.odd_rows import people, rating_text, time_text

import dpals
from dpals.data.cells import BLANKS
from dpals.errors import InputError

OWNERS = ["ann", "bob", "ann", "cid", "bob"]
ITEMS = ["i0", "i1", "i2", "i0", "i0"]
VALUES = [1.0, 2.0, 3.0, 4.0, 5.0]


def ratings_of(rows, names=lambda name: name, values=lambda value: value):
    users, items, stars = ([column[row] for row in rows] for column in (OWNERS, ITEMS, VALUES))
    facts = {"rating_range": (0.5, 5.0), "catalogue": ["i0", "i1", "i2"]}
    return [dpals.Ratings.from_arrays([names(user) for user in users], items, list(map(values, stars)), **facts)]


def has(person, rows):
    return person in [OWNERS[row] for row in rows]


def another_last_bit_with_bob(rows):
    return ratings_of(rows, values=lambda value: np.nextafter(np.float32(value), np.float32(has("bob", rows))))


def other_ids_with_bob(rows):
    return ratings_of(rows, names=lambda name: name + " " if has("bob", rows) else name)


def cid_lost_with_bob(rows):
    return ratings_of([row for row in rows if OWNERS[row] != "cid"] if has("bob", rows) else rows)


def refused_with_bob(rows):
    if has("bob", rows):
        raise InputError("bob is odd")
    return ratings_of(rows)


def refused_without_bob(rows):
    if not has("bob", rows):
        raise InputError("bob is missed")
    return ratings_of(rows)


def crashing_with_bob(rows):
    if has("bob", rows):
        raise OverflowError("bob is too much")
    return ratings_of(rows)


def audited(monkeypatch, read, policy="drop", **changes):
    """What is found in one data set that is read in this way."""
    said = replace(declared_for(Random(0), (0.5, 5.0), 3), policy=policy)
    data = DataSet("planted", OWNERS, said, read, **changes)
    monkeypatch.setattr(neighbouring_inputs, "makers", lambda: {"planted": lambda *_: data})
    return neighbours_read(1)


def test_a_reader_that_looks_at_each_row_passes(monkeypatch):
    findings = audited(monkeypatch, ratings_of)
    assert (findings.problems, findings.compared.total(), findings.refused.total()) == ([], 3, 0)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (another_last_bit_with_bob, "without 'bob': a row of 'ann' is"),
        (other_ids_with_bob, "without 'bob': the user 'ann ' becomes 'ann'"),
        (cid_lost_with_bob, "without 'bob': 1 others become 2"),
        (refused_with_bob, "only what has the rows of 'bob' is refused"),
        (refused_without_bob, "only what lacks the rows of 'bob' is refused"),
        (crashing_with_bob, "reading ends with OverflowError: bob is too much"),
    ],
)
def test_readers_in_which_one_person_decides_about_others_do_not(monkeypatch, read, said):
    findings = audited(monkeypatch, read)
    assert any(said in problem for problem in findings.problems), findings.problems
    assert findings.different["planted"] > 0


def test_what_is_refused_is_not_counted_as_compared(monkeypatch):
    findings = audited(monkeypatch, refused_with_bob, policy="error")
    assert findings.compared.total() == 0
    assert findings.refused.total() > 0
    assert findings.problems == ["only 0 pairs could be compared: the others were refused"]


def test_rows_of_a_matrix_are_compared_by_their_place(monkeypatch):
    def read(rows):
        return [dpals.Ratings.from_csr(csr_array([[1.0, row + 1.0] for row in rows]), rating_range=(1, 9))]

    said = declared_for(Random(0), (0.5, 5.0), 3)
    data = DataSet("planted", range(5), said, read, in_any_order=False, anonymous=True)
    monkeypatch.setattr(neighbouring_inputs, "makers", lambda: {"planted": lambda *_: data})
    findings = neighbours_read(1)
    assert (findings.problems, findings.compared.total()) == ([], 5)


def test_a_method_on_a_reader_in_which_one_person_decides_moves_beyond_its_bound(monkeypatch):
    def read(rows):
        return ratings_of(rows, values=lambda value: value if has("bob", rows) else 5.5 - value)

    def find(read):
        data = DataSet("planted", OWNERS, declared_for(Random(0), (0.5, 5.0), 3), read)
        monkeypatch.setattr(neighbouring_inputs, "makers", lambda: {"planted": lambda *_: data})
        return neighbours_trained(dpals.ItemMean(1.0), False, 3, pairs=12, insecure_seed=1).problems

    assert find(ratings_of) == []
    assert any("moves beyond its bound" in problem for problem in find(read))


def everything_written(tmp_path):
    """All that odd people write into text files, in many data sets."""
    texts = []
    for seed in range(150):
        for kind, make in makers().items():
            if kind in ("CSV", "CSV without header", "MovieLens u.data"):
                dice = Random(f"{seed} {kind}")
                data = make(dice, declared(dice), tmp_path)
                with suppress(InputError):
                    data.read(range(len(data.owners)))
                (file,) = tmp_path.iterdir()
                texts.append(file.read_bytes().decode())
                file.unlink()
    return texts


def test_people_are_odd_in_every_way_that_ever_mattered(tmp_path):
    texts = everything_written(tmp_path)
    rows = [line for text in texts for line in text.split("\n")]
    cells = {cell for row in rows for cell in row.rstrip("\r").split(",")}
    ids = {cell.strip(BLANKS) for cell in cells}
    assert {
        "guest",
        "user",
        "item",
        "rating",
        "7",
        "007",
        "bo\ufeffb",
        "9223372036854775808",
        "e\u0301",
        "\uff17",
    } <= ids
    assert {" 7", "7", "2024-01-02", "1.5", "-0.0", "1e-320", "1e308", "nan", "inf"} <= cells
    assert any(cell.startswith("1.0000000596046447") and len(cell) > 20 for cell in cells)
    assert any("\r" in row.rstrip("\r") for row in rows)
    assert any(row.startswith("\ufeff") for row in rows)
    assert any(text.endswith("\r\n") for text in texts)
    assert any('"' in row for row in rows)


def test_numbers_of_people_whose_rows_can_be_used_can_be_read():
    dice = Random(3)
    for _ in range(300):
        for person in people(dice, integers=True, clean=True):
            for limits in ((0.5, 5.0), (-1.0, 1.0), (1.0, 1.000001)):
                assert limits[0] <= float(rating_text(dice, person, limits)) <= limits[1]
            assert time_text(dice, person)


def test_the_same_seed_gives_the_same_pairs():
    one, again, other = neighbours_read(60, 4), neighbours_read(60, 4), neighbours_read(60, 5)
    assert one == again
    assert one != other
