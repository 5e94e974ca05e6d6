"""``dpals similar`` against the library."""

import json

import pytest
from tests.cli.conftest import refused, run

import dpals


def test_items_and_cosines_are_those_of_the_library(files):
    model = dpals.load(files.private)
    item = int(model.items[model.is_trained][3])
    ids, cosines = model.similar_items(item, 4)
    shown = run("similar", files.private, item, "-k", 4)
    assert shown.returncode == 0, shown.stderr
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert [int(name) for _, name in lines] == ids.tolist()
    assert [float(cosine) for cosine, _ in lines] == pytest.approx(cosines.tolist(), abs=1e-4)
    found = json.loads(run("similar", files.private, item, "-k", 4, "--json").stdout)
    assert [one["item"] for one in found] == ids.tolist()
    assert [one["cosine"] for one in found] == pytest.approx(cosines.tolist(), abs=1e-6)


def test_a_misspelled_title_is_corrected(files):
    title = dpals.load(files.titled).items.tolist()[0]
    assert run("similar", files.titled, title).returncode == 0
    refused(run("similar", files.titled, title.lower()[:-1]), "Did you mean", repr(title))
    refused(run("similar", files.titled, "zzzzzzzzzzz"), "has no item 'zzzzzzzzzzz'", "ids look like")


def test_what_has_no_similar_items(files):
    refused(run("similar", files.implicit, 3), "holds biases and no factors")
    refused(run("similar", files.private, 99_999), "has no item 99999", "from 0 to 99")
    refused(run("similar", files.private, "Casablanca"), "items are integers here")
    refused(run("similar", files.private), "ITEM", code=2)
