"""``dpals similar`` against the library."""

import json

import numpy as np
import pytest
from tests.cli.conftest import refused, run

import dpals


@pytest.fixture
def numbered(tmp_path):
    """A model with numbers for items; it has learnt nothing about the last one."""
    factors = np.random.default_rng(0).normal(size=(8, 3))
    factors[-1] = 0
    model = dpals.FactorModel(np.arange(-1, 7), factors, np.zeros(8), 3.0, 1.0, rating_range=(0.5, 5))
    model.save(tmp_path / "model")
    return tmp_path / "model"


def test_items_and_cosines_are_those_of_numpy(numbered):
    factors = dpals.load(numbered).item_factors[:-1]
    directions = factors / np.linalg.norm(factors, axis=1, keepdims=True)
    cosines = directions @ directions[4]
    best = [at for at in np.argsort(-cosines) if at != 4][:4]
    shown = run("similar", numbered, 3, "-k", 4)
    assert shown.returncode == 0, shown.stderr
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert [int(name) for _, name in lines] == [at - 1 for at in best]
    assert [float(cosine) for cosine, _ in lines] == pytest.approx(cosines[best], abs=1e-4)
    found = json.loads(run("similar", numbered, "--json", "--", -1).stdout)
    assert sorted(one["item"] for one in found) == [0, 1, 2, 3, 4, 5]


def test_a_misspelled_title_is_corrected(files):
    title = dpals.load(files.titled).items.tolist()[0]
    assert run("similar", files.titled, title).returncode == 0
    refused(run("similar", files.titled, title.lower()[:-1]), "Did you mean", repr(title))
    refused(run("similar", files.titled, "zzzzzzzzzzz"), "has no item 'zzzzzzzzzzz'", "ids look like")


def test_what_has_no_similar_items(files, numbered):
    refused(run("similar", files.implicit, 3), "holds biases and no factors")
    refused(run("similar", numbered, 6), "no factors for the item 6")
    refused(run("similar", numbered, 99_999), "has no item 99999", "from -1 to 6")
    refused(run("similar", numbered, "Casablanca"), "the ids of items are integers in this model")
    refused(run("similar", numbered), "ITEM", code=2)
