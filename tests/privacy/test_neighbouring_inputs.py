"""The promise from the file on: nobody's rows decide how another's are read, served or released."""

import copy
import json
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner
from tests.privacy.neighbouring_inputs import neighbours_read, neighbours_trained
from tests.privacy.odd_files import FORMATS, declared_for, text_file
from tests.privacy.odd_frames import makers
from tests.privacy.test_methods import IMPLICIT, METHODS
from tests.small_models import model_of

from dpals.audit.search_replay import seed_with_several_tries
from dpals.audit.simulated_data import four_users, odd_users, smallest_catalogue
from dpals.cli.recommend import command as recommend
from dpals.errors import InputError
from dpals.methods.private_search import PrivateSearch

EVERY_METHOD = [*((False, name) for name in METHODS), *((True, name) for name in IMPLICIT)]
_HISTORY = next(form for form in FORMATS if form.in_parts)


def read_alike(pairs, seed):
    """Nothing differs, and every kind of input has its share of the pairs."""
    findings = neighbours_read(pairs, seed)
    print(findings.scope)
    assert findings.problems == []
    assert findings.compared.total() >= pairs
    kinds = list(makers())
    assert len(kinds) == 22
    for kind in kinds:
        assert findings.compared[kind] >= pairs // len(kinds) // 2
        assert findings.refused[kind] <= findings.compared[kind] / 2


def test_everyone_else_is_read_alike_in_a_thousand_neighbouring_inputs():
    read_alike(1_200, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_everyone_else_is_read_alike_in_many_neighbouring_inputs(seed):
    read_alike(5_000, seed)


def released_alike(implicit, name, pairs, seed):
    """Releases from neighbouring inputs move by at most their bound, and nothing else differs."""
    method = (IMPLICIT if implicit else METHODS)[name]
    n_items = smallest_catalogue(method, lambda size: four_users(size, implicit).ratings())
    if method.epsilon is not None:
        method = copy.deepcopy(method).set_params(epsilon=50.0)  # so that there is something to learn
    noise_seed = 1
    if isinstance(method, PrivateSearch):
        noise_seed, pairs = seed_with_several_tries(method, odd_users(16, n_items, implicit).ratings()), pairs // 3
    findings = neighbours_trained(method, implicit, n_items, pairs, noise_seed, seed)
    print(findings.scope)
    assert findings.problems == []
    assert findings.compared.total() >= pairs


@pytest.mark.parametrize(("implicit", "name"), EVERY_METHOD)
def test_releases_from_neighbouring_inputs_move_by_at_most_their_bound(implicit, name):
    released_alike(implicit, name, pairs=16, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize(("implicit", "name"), EVERY_METHOD)
def test_releases_from_many_neighbouring_inputs_move_by_at_most_their_bound(implicit, name):
    released_alike(implicit, name, pairs=100, seed=1_000)


def served(data, rows, arguments, folder):
    """The lines that the command writes for the people of these rows, None where it refuses."""
    try:
        data.read(rows)  # which writes the file
    except InputError:
        return None
    done = CliRunner().invoke(recommend, [*arguments, "-o", str(folder / "served.jsonl")])
    assert done.exit_code == 0, done.output
    lines = (folder / "served.jsonl").read_bytes().decode().split("\n")[:-1]
    return lines, [json.loads(line)["user"] for line in lines]


def served_alike(seed, folder):
    """Every other person of a history gets the same line; how many were removed in turn."""
    dice = Random(seed)
    said = declared_for(dice, (0.5, 5.0), 12)
    data = text_file(dice, said, folder, _HISTORY)
    rng = np.random.default_rng(seed)
    model = model_of(
        0,
        items=np.array(said.catalogue, np.int64 if isinstance(said.catalogue[0], int) else np.dtypes.StringDType()),
        item_factors=rng.normal(0, 1, (12, 3)).astype(np.float32),
        item_biases=rng.normal(0, 1, 12).astype(np.float32),
    )
    model.save(folder / "model")
    files = [str(folder / "model"), "--history", str(folder / _HISTORY.file)]
    arguments = [*files, "--ids", said.ids, "--on-bad-rows", said.policy, "-q"]
    everyone = served(data, range(len(data.owners)), arguments, folder)
    compared = 0
    for person in dict.fromkeys(data.owners):
        others = served(data, [row for row, owner in enumerate(data.owners) if owner != person], arguments, folder)
        if everyone is not None and others is not None:
            assert others[0] == [line for line, user in zip(*everyone, strict=True) if user != person]
            compared += 1
    return compared


def test_everyone_else_is_served_the_same_lines(tmp_path):
    compared = 0
    for seed in range(12):
        (tmp_path / str(seed)).mkdir()
        compared += served_alike(seed, tmp_path / str(seed))
    assert compared >= 40
