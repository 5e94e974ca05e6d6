"""Training that is broken off goes on where it stopped: the same model, released once, paid once."""

import os
from dataclasses import replace

import numpy as np
import pytest

import dpals
from dpals.checkpoint import Checkpoint
from dpals.release.mechanism import Door, Release

RECORD = Release("counts", (3, 2), "vector", bound=2**60, variance=2**90, step=0.25, seeded=False)
TABLE = np.array([[1, -2], [3, 2**62], [0, 5]])


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoint"


def test_keeps_tables_and_records_to_the_last_bit(folder):
    with Checkpoint(folder, {"method": "DPALS"}) as first:
        first.keep(1, RECORD, TABLE)
        run = first.run
    with Checkpoint(folder, {"method": "DPALS"}) as second:
        assert second.run == run
        assert np.array_equal(second.recall(1, RECORD), TABLE)
        assert second.recall(2, RECORD) is None
        assert second.n_releases == 1


def test_runs_have_names_of_their_own(tmp_path):
    with Checkpoint(tmp_path / "a", {}) as a, Checkpoint(tmp_path / "b", {}) as b:
        assert a.run != b.run


@pytest.mark.parametrize(
    "change", [{"purpose": "means"}, {"variance": 2**90 + 1}, {"bound": 2**60 - 1}, {"shape": (2, 3)}]
)
def test_another_release_is_refused(folder, change):
    with Checkpoint(folder, {}) as checkpoint:
        checkpoint.keep(1, RECORD, TABLE)
        with pytest.raises(dpals.InputError, match=r"release 1 .* is 'counts'.* start over"):
            checkpoint.recall(1, replace(RECORD, **change))


def test_another_training_is_refused_and_said_which(folder):
    Checkpoint(folder, {"method": "DPALS", "epsilon": "1.0"}).__exit__()
    with pytest.raises(dpals.InputError, match=r"epsilon was 1\.0 and is now 2\.0"):
        Checkpoint(folder, {"method": "DPALS", "epsilon": "2.0"})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 2, "run": "a", "started": "", "training": {}}'])
def test_a_damaged_checkpoint_is_refused(folder, content):
    Checkpoint(folder, {}).__exit__()
    (folder / "run.json").write_bytes(content)
    with pytest.raises(dpals.InputError, match="is no checkpoint of this version"):
        Checkpoint(folder, {})


def test_a_damaged_release_is_refused(folder):
    with Checkpoint(folder, {}) as checkpoint:
        checkpoint.keep(1, RECORD, TABLE)
        (path,) = folder.glob("release-*")
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(dpals.InputError, match="is damaged: remove the checkpoint"):
            checkpoint.recall(1, RECORD)


def test_belongs_to_one_process_at_a_time(folder):
    with Checkpoint(folder, {}), pytest.raises(OSError, match="another process is training"):
        Checkpoint(folder, {})
    Checkpoint(folder, {}).__exit__()


def test_removal_leaves_what_others_put_there(folder):
    with Checkpoint(folder, {}) as checkpoint:
        checkpoint.keep(1, RECORD, TABLE)
        (folder / "notes.txt").write_text("mine")
        checkpoint.remove()
    assert os.listdir(folder) == ["notes.txt"]


METHODS = {
    "PooledDPALS": {"rank": 2, "steps": 2},
    "DPALS": {"rank": 2, "steps": 2, "frequent_fraction": 0.5},
    "AdaDPALS": {"rank": 2, "steps": 1},
    "DPFrankWolfe": {"steps": 2},
    "DPSVD": {"rank": 2},
    "DPSGD": {"rank": 2, "steps": 2},
    "SGLD": {"rank": 2, "steps": 2},
    "PrivateBiases": {"steps": 2},
    "ItemMean": {},
    "GlobalMean": {},
    "UserMean": {},
}


@pytest.fixture(scope="module")
def ratings():
    return dpals.simulate.movielens_like(n_users=300, n_items=60, mean_ratings=25, seed=1)


def make(name):
    return getattr(dpals, name)(epsilon=4.0, delta=1e-5, insecure_seed=3, **METHODS[name])


class CrashError(Exception):
    """Stands for a process that is gone."""


def crash_at(monkeypatch, place, which):
    """Make a call of Ledger or Checkpoint the last one: before or after it did its work."""
    owner, name, when = place
    original, calls = getattr(owner, name), []

    def crashing(self, *arguments, **named):
        calls.append(1)
        if len(calls) == which and when == "before":
            raise CrashError
        result = original(self, *arguments, **named)
        if len(calls) == which and when == "after":
            raise CrashError
        return result

    monkeypatch.setattr(owner, name, crashing)


PLACES = [
    (owner, name, when)
    for owner, name in ((dpals.Ledger, "spend"), (Checkpoint, "keep"), (dpals.Ledger, "publish"))
    for when in ("before", "after")
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place[2]} {place[1]}")
@pytest.mark.parametrize("name", ["PooledDPALS", "DPALS"])
def test_wherever_it_is_broken_off_it_is_released_once_and_paid_once(name, place, ratings, tmp_path, monkeypatch):
    """With a budget that is just enough, so that paying twice for anything would be refused."""
    whole = make(name).fit(ratings)
    n_releases = len(whole.privacy.releases)
    for which in (1, 2, n_releases):
        ledger = dpals.Ledger(tmp_path / f"{which}.db")
        ledger.declare("films", 4.0, 1e-5)
        options = dpals.Options(checkpoint=tmp_path / f"checkpoint {which}")
        with monkeypatch.context() as patch:
            crash_at(patch, place, which)
            with pytest.raises(CrashError):
                make(name).fit(ratings, ledger=ledger, dataset="films", options=options)
        resumed = make(name).fit(ratings, ledger=ledger, dataset="films", options=options)
        assert np.array_equal(resumed.item_factors_, whole.item_factors_)
        assert resumed.privacy.releases == whole.privacy.releases
        assert ledger.spent("films") == sum(release.cost for release in whole.privacy.releases)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_resumed(name, ratings, tmp_path):
    options = dpals.Options(checkpoint=tmp_path / "checkpoint")
    whole = make(name).fit(ratings)
    steps = []

    def stop(step):
        steps.append(step)
        raise CrashError

    ledger = dpals.Ledger(tmp_path / "ledger.db")
    try:
        make(name).fit(ratings, ledger=ledger, options=options, callbacks=[stop])
    except CrashError:
        assert len(steps) == 1
    resumed = make(name).fit(ratings, ledger=ledger, options=options)
    assert np.array_equal(resumed.item_factors_, whole.item_factors_)
    assert np.array_equal(resumed.model_.item_biases, whole.model_.item_biases)
    assert ledger.spent("ratings") == sum(release.cost for release in whole.privacy.releases)


def test_secure_noise_is_the_same_when_it_is_recalled(ratings, tmp_path):
    options = dpals.Options(checkpoint=tmp_path / "checkpoint")
    methods = [dpals.PooledDPALS(4.0, rank=2, steps=2) for _ in range(2)]
    ledger = dpals.Ledger()
    first, second = (method.fit(ratings, ledger=ledger, options=options) for method in methods)
    assert np.array_equal(first.item_factors_, second.item_factors_)
    assert second.privacy.is_private
    assert ledger.spent("ratings") == sum(release.cost for release in first.privacy.releases)
    fresh = dpals.PooledDPALS(4.0, rank=2, steps=2).fit(ratings)
    assert not np.array_equal(first.item_factors_, fresh.item_factors_)


def test_goes_on_with_a_ledger_that_never_saw_the_run(ratings, tmp_path):
    """What was spent is recorded there as well."""
    options = dpals.Options(checkpoint=tmp_path / "checkpoint")
    make("ItemMean").fit(ratings, options=options)
    ledger = dpals.Ledger(tmp_path / "ledger.db")
    again = make("ItemMean").fit(ratings, ledger=ledger, options=options)
    assert ledger.spent("ratings") == sum(release.cost for release in again.privacy.releases)


def test_saving_the_model_removes_the_checkpoint(ratings, tmp_path):
    options = dpals.Options(checkpoint=tmp_path / "checkpoint")
    method = make("ItemMean").fit(ratings, options=options)
    assert (tmp_path / "checkpoint").exists()
    method.save(tmp_path / "model")
    assert not (tmp_path / "checkpoint").exists()
    method.save(tmp_path / "model")


def test_going_on_is_said(ratings, tmp_path, caplog):
    options = dpals.Options(checkpoint=tmp_path / "checkpoint")
    make("ItemMean").fit(ratings, options=options)
    assert not caplog.records
    make("ItemMean").fit(ratings, options=options)
    assert "going on with 3 releases" in caplog.text
    assert caplog.records[0].name.split(".")[0] == "dpals"


def test_nothing_in_it_tells_about_the_ratings_but_what_was_released(ratings, tmp_path, monkeypatch):
    """The same noise and the same releases give the same folder, whoever is in the data."""
    released = np.zeros((60, 1), np.int64)
    monkeypatch.setattr(Door, "_exact_sums", lambda _, query, *__: released[: query.n_items].repeat(_width(query), 1))
    fewer = dpals.Ratings.from_csr(ratings.to_csr()[:200], rating_range=(0.5, 5.0))
    contents = []
    for number, data in enumerate((ratings, fewer)):
        folder = tmp_path / str(number)
        make("ItemMean").fit(data, options=dpals.Options(checkpoint=folder))
        contents.append({path.name: path.read_bytes() for path in folder.glob("release-*")})
    assert contents[0] == contents[1]
    assert len(contents[0]) == 3


def _width(query):
    return len(query.coordinate_weights)


def test_methods_without_releases_refuse_a_checkpoint(ratings, tmp_path):
    with pytest.raises(ValueError, match="releases nothing that a checkpoint could keep"):
        dpals.ALS(rank=2).fit(ratings, options=dpals.Options(checkpoint=tmp_path))
