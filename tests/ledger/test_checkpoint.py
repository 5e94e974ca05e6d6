"""Interrupted training resumes where it stopped: the same model, released once, paid once."""

import copy
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load

import dpals
from dpals.ledger.checkpoint import Checkpoint, remove_checkpoint
from dpals.release.accounting import Release
from dpals.release.mechanism import Mechanism

RECORD = Release("counts", (3, 2), "vector", sensitivity=2**60, variance=2**90, step=0.25, seeded=False)
TABLE = np.array([[1, -2], [3, 2**62], [0, 5]])


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoint"


def test_keeps_tables_and_records_to_the_last_bit(folder):
    with Checkpoint(folder, {"method": "DPALS"}) as first:
        first.save(1, RECORD, TABLE)
        run = first.run
    with Checkpoint(folder, {"method": "DPALS"}) as second:
        assert second.run == run
        assert np.array_equal(second.load(1, RECORD), TABLE)
        assert second.load(2, RECORD) is None
        assert second.n_releases == 1


def test_runs_have_names_of_their_own(tmp_path):
    with Checkpoint(tmp_path / "a", {}) as a, Checkpoint(tmp_path / "b", {}) as b:
        assert a.run != b.run


@pytest.mark.parametrize(
    "change",
    [{"purpose": "means"}, {"variance": 2**90 + 1}, {"sensitivity": 2**60 - 1}, {"shape": (2, 3)}, {"seeded": True}],
)
def test_another_release_is_refused(folder, change):
    with Checkpoint(folder, {}) as checkpoint:
        checkpoint.save(1, RECORD, TABLE)
        with pytest.raises(dpals.InputError, match=r"release 1 .* is 'counts'.* start over"):
            checkpoint.load(1, replace(RECORD, **change))


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
        checkpoint.save(1, RECORD, TABLE)
        (path,) = folder.glob("release-*")
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(dpals.InputError, match="is damaged: remove the checkpoint"):
            checkpoint.load(1, RECORD)


def test_belongs_to_one_process_at_a_time(folder):
    with Checkpoint(folder, {}), pytest.raises(OSError, match="another process is training"):
        Checkpoint(folder, {})
    Checkpoint(folder, {}).__exit__()


def modes(folder):
    return {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}


def test_only_its_owner_can_read_it(folder):
    """A table is there before the ledger has its digest."""
    before = os.umask(0o022)
    try:
        with Checkpoint(folder, {}) as checkpoint:
            checkpoint.save(1, RECORD, TABLE)
            names = ("lock", "run.json", "release-0001.safetensors")
            assert modes(folder) == {"checkpoint": 0o700, **dict.fromkeys(names, 0o600)}
    finally:
        os.umask(before)


def test_a_link_in_place_of_the_lock_is_refused(folder, tmp_path):
    folder.mkdir()
    (tmp_path / "precious").write_text("mine")
    (folder / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="is a link"):
        Checkpoint(folder, {})
    assert (tmp_path / "precious").read_text() == "mine"


def test_drafts_of_its_own_are_removed_and_others_stay(folder):
    folder.mkdir()
    ours = {".run.json.0123456789ab.part", ".release-0002.safetensors.0123456789ab.part"}
    others = {".download.part", ".notes.txt.0123456789ab.part"}
    for name in ours | others:
        (folder / name).write_text("half")
    with Checkpoint(folder, {}):
        assert not ours & set(os.listdir(folder))
    remove_checkpoint(folder)
    assert set(os.listdir(folder)) == others


def test_removal_leaves_what_others_put_there(folder):
    with Checkpoint(folder, {}) as checkpoint:
        checkpoint.save(1, RECORD, TABLE)
    (folder / "notes.txt").write_text("mine")
    remove_checkpoint(folder, run="another run")
    assert len(os.listdir(folder)) == 4
    remove_checkpoint(folder, checkpoint.run)
    assert os.listdir(folder) == ["notes.txt"]
    remove_checkpoint(folder / "not there")


def test_a_run_that_goes_on_is_not_removed(folder):
    with Checkpoint(folder, {}) as checkpoint:
        checkpoint.save(1, RECORD, TABLE)
        with pytest.raises(OSError, match="another process is training"):
            remove_checkpoint(folder)
        assert np.array_equal(checkpoint.load(1, RECORD), TABLE)


def test_a_table_is_kept_once(folder):
    with Checkpoint(folder, {}) as checkpoint:
        checkpoint.save(1, RECORD, TABLE)
        with pytest.raises(RuntimeError, match="already"):
            checkpoint.save(1, RECORD, TABLE + 1)
        assert np.array_equal(checkpoint.load(1, RECORD), TABLE)
        checkpoint.discard(1)
        assert checkpoint.load(1, RECORD) is None


def test_tables_without_a_run_belong_to_nobody(folder):
    """As after a kill in the middle of the removal."""
    with Checkpoint(folder, {}) as checkpoint:
        checkpoint.save(1, RECORD, TABLE)
    (folder / "run.json").unlink()
    with Checkpoint(folder, {"method": "another"}) as checkpoint:
        assert checkpoint.n_releases == 0


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
    "Popularity": {},
}


@pytest.fixture(scope="module")
def ratings():
    return dpals.simulate.movielens_like(n_users=300, n_items=60, mean_ratings=25, seed=1)


def make(name, **changes):
    return getattr(dpals, name)(**{"epsilon": 4.0, "delta": 1e-5, "insecure_seed": 3, **METHODS[name], **changes})


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
    for owner, name in ((dpals.Ledger, "spend"), (Checkpoint, "save"), (dpals.Ledger, "publish"))
    for when in ("before", "after")
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place[2]} {place[1]}")
@pytest.mark.parametrize("name", ["PooledDPALS", "DPALS"])
def test_wherever_it_is_interrupted_it_is_released_once_and_paid_once(name, place, ratings, tmp_path, monkeypatch):
    """With a budget that is just enough, so that paying twice for anything would be refused."""
    whole = make(name, insecure_seed=None).fit(ratings)
    n_releases = len(whole.privacy.releases)
    for which in (1, 2, n_releases):
        ledger = dpals.Ledger(tmp_path / f"{which}.db")
        ledger.declare("films", 4.0, 1e-5)
        folder = tmp_path / f"checkpoint {which}"
        options = dpals.Options(checkpoint=folder)
        with monkeypatch.context() as patch:
            crash_at(patch, place, which)
            with pytest.raises(CrashError):
                make(name, insecure_seed=None).fit(ratings, ledger=ledger, dataset="films", options=options)
        before = kept(folder)
        assert ledger.spent("films") in (dpals.Budget(4.0, 1e-5).cost, 0), "all of it, until the run has ended"
        assert bool(ledger.spent("films")) == bool(paid(ledger))
        resumed = make(name, insecure_seed=None).fit(ratings, ledger=ledger, dataset="films", options=options)
        assert kept(folder).items() >= before.items()
        assert set(digests(folder)) == published(ledger)
        assert len(published(ledger)) == n_releases == len(resumed.privacy.releases)
        assert paid(ledger) == sum(release.cost for release in resumed.privacy.releases)
        assert ledger.spent("films") == booked(resumed)
        assert ledger.open_runs() == []
        assert resumed.privacy.is_private


def kept(folder):
    return {path.name: path.read_bytes() for path in folder.glob("release-*")}


def digests(folder):
    """Of all tables in a folder, under whatever names."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in ("run.json", "lock"):
            yield hashlib.sha256(load(path.read_bytes())["table"].tobytes()).hexdigest()


def paid(ledger):
    return sum(entry.cost for entry in ledger.entries() if entry.kind == "spend")


def booked(method):
    """What the ledger must count for a run: all of its budget, where costs depend on releases."""
    whole = dpals.Budget(method.epsilon, method.delta).cost
    return whole if method.adaptive_costs else sum(release.cost for release in method.privacy.releases)


def published(ledger):
    return {entry.purpose for entry in ledger.entries() if entry.kind == "publication"}


KILLED = """
import os, signal, sys
from pathlib import Path
import dpals

ratings = dpals.simulate.movielens_like(n_users=300, n_items=60, mean_ratings=25, seed=1)
if len(sys.argv) > 2:
    rename = Path.replace

    def killed(self, target):
        if sys.argv[2] in self.name:
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(self, target)

    Path.replace = killed
home = Path(sys.argv[1])
options = dpals.Options(checkpoint=home / "model" / "checkpoint")
method = dpals.ItemMean(1.0, 1e-6).fit(ratings, ledger=dpals.Ledger(home / "ledger.db"), options=options)
method.save(home / "model")
"""


@pytest.mark.parametrize("when", ["release-0001", "release-0003", "run.json", "model.json"])
def test_a_killed_process_leaves_no_second_table_of_one_spend(when, tmp_path):
    """A draft that is complete and never got its name holds noise that nobody paid for."""
    for arguments in ([when], [when], []):
        done = subprocess.run([sys.executable, "-c", KILLED, tmp_path, *arguments], check=False)
        assert done.returncode == (-signal.SIGKILL if arguments else 0)
    folder, ledger = tmp_path / "model", dpals.Ledger(tmp_path / "ledger.db")
    assert not list(folder.rglob("*.part*"))
    assert not (folder / "checkpoint").exists()
    assert len(published(ledger)) == 3
    assert ledger.open_runs() == []
    model = dpals.load(folder)
    assert ledger.spent("ratings") == sum(release.cost for release in model.privacy.releases)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataset": "books"}, "the data set's name was ratings and is now books"),
        ({"epsilon": 3.0}, r"epsilon was 4\.0 and is now 3\.0"),
        ({"bias_prior": 0.5}, r"bias_prior was 0\.25 and is now 0\.5"),
        ({"rating_range": (0.0, 5.0)}, r"the rating range was \(0\.5, 5\.0\) and is now \(0\.0, 5\.0\)"),
        ({"items": range(1, 61)}, "the catalogue was"),
    ],
)
def test_only_the_same_training_goes_on(change, message, ratings, tmp_path):
    options = dpals.Options(checkpoint=tmp_path)
    make("ItemMean").fit(ratings, options=options)
    facts = {"rating_range": (0.5, 5.0), "items": range(60)}
    facts |= {name: change[name] for name in facts if name in change}
    other = dpals.Ratings.from_csr(ratings.to_csr(), **facts)
    arguments = {name: value for name, value in change.items() if name in ("epsilon", "bias_prior")}
    with pytest.raises(dpals.InputError, match=message):
        make("ItemMean", **arguments).fit(other, dataset=change.get("dataset", "ratings"), options=options)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_resumed(name, ratings, tmp_path, monkeypatch):
    options = dpals.Options(checkpoint=tmp_path / "checkpoint")
    data = dpals.Ratings.from_csr(ratings.to_csr(), implicit=True) if name == "Popularity" else ratings
    whole = make(name).fit(data)
    ledger = dpals.Ledger(tmp_path / "ledger.db")
    if whole.privacy.releases:
        with monkeypatch.context() as patch:
            crash_at(patch, (dpals.Ledger, "publish", "after"), -(-len(whole.privacy.releases) // 2))
            with pytest.raises(CrashError):
                make(name).fit(data, ledger=ledger, options=options)
    resumed = make(name).fit(data, ledger=ledger, options=options)
    assert np.array_equal(resumed.item_factors_, whole.item_factors_)
    assert np.array_equal(resumed.model_.item_biases, whole.model_.item_biases)
    assert paid(ledger) == sum(release.cost for release in whole.privacy.releases)
    assert ledger.spent("ratings") == booked(resumed)
    assert ledger.open_runs() == []


def test_secure_noise_is_the_same_when_it_is_recalled(ratings, tmp_path):
    options = dpals.Options(checkpoint=tmp_path / "checkpoint")
    methods = [dpals.PooledDPALS(4.0, rank=2, steps=2) for _ in range(2)]
    ledger = dpals.Ledger()
    first, second = (method.fit(ratings, ledger=ledger, options=options) for method in methods)
    assert np.array_equal(first.item_factors_, second.item_factors_)
    assert second.privacy.is_private
    assert paid(ledger) == sum(release.cost for release in first.privacy.releases)
    assert ledger.spent("ratings") == booked(first)
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


def test_a_fitted_method_can_be_copied(ratings, tmp_path):
    method = make("ItemMean").fit(ratings, options=dpals.Options(checkpoint=tmp_path / "checkpoint"))
    for copied in (copy.deepcopy(method), pickle.loads(pickle.dumps(method))):
        assert np.array_equal(copied.model_.item_biases, method.model_.item_biases)


def test_resuming_is_logged(ratings, tmp_path, caplog):
    options = dpals.Options(checkpoint=tmp_path / "checkpoint")
    make("ItemMean").fit(ratings, options=options)
    assert not caplog.records
    make("ItemMean").fit(ratings, options=options)
    assert "resuming with 3 releases" in caplog.text
    assert caplog.records[0].name.split(".")[0] == "dpals"


def test_nothing_in_it_tells_about_the_ratings_but_what_was_released(ratings, tmp_path, monkeypatch):
    """The same noise and the same releases give the same folder, whoever is in the data."""
    released = np.zeros((60, 1), np.int64)
    monkeypatch.setattr(
        Mechanism,
        "exact_sums",
        lambda _, work, __: [released[: query.n_items].repeat(_width(query), 1) for query in work.queries],
    )
    fewer = dpals.Ratings.from_csr(ratings.to_csr()[:200], rating_range=(0.5, 5.0))
    contents = []
    for number, data in enumerate((ratings, fewer)):
        folder = tmp_path / str(number)
        make("ItemMean").fit(data, options=dpals.Options(checkpoint=folder))
        facts = json.loads((folder / "run.json").read_text())
        contents.append((kept(folder), facts["training"]))
        assert set(facts) == {"format", "run", "started", "training"}
    assert contents[0] == contents[1]
    assert len(contents[0][0]) == 3


def _width(query):
    return len(query.coordinate_weights)


def test_methods_without_releases_refuse_a_checkpoint(ratings, tmp_path):
    with pytest.raises(ValueError, match="releases nothing that a checkpoint could keep"):
        dpals.ALS(rank=2).fit(ratings, options=dpals.Options(checkpoint=tmp_path))


def test_a_record_is_stored_as_it_always_was(folder):
    """Earlier versions called the sensitivity the bound: their checkpoints resume."""
    with Checkpoint(folder, {}) as checkpoint:
        checkpoint.save(1, RECORD, TABLE)
    with safe_open(folder / "release-0001.safetensors", framework="numpy") as file:
        stored = file.metadata()["release"]
    assert stored == (
        '{"purpose": "counts", "shape": [3, 2], "form": "vector", "bound": "1152921504606846976", '
        '"variance": "1237940039285380274899124224", "step": 0.25, "seeded": false}'
    )
