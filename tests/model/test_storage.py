"""A model's folder: what is in it, and what happens where it is damaged or writing fails."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save
from tests.small_models import N_ITEMS, history_of, model_of, statement, table_of_ratings

import dpals
from dpals.model.factor_model import FactorModel
from dpals.private.frank_wolfe import FrankWolfeSteps

half_trained = np.arange(N_ITEMS) % 2 == 0

catalogues = {
    "integers": np.arange(N_ITEMS) - 5,
    "beyond int64": np.arange(N_ITEMS, dtype=np.uint64) + np.uint64(2**64 - N_ITEMS),
    "text": np.array([f'Amélie «{at}» 映画 🎬 "\\\n' for at in range(N_ITEMS)], dtype=np.dtypes.StringDType()),
}


@pytest.mark.parametrize("items", catalogues.values(), ids=catalogues.keys())
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"user_bias_ridge": 0.1, "user_exponent": 1 / 3, "global_mean": np.float32(3.3), "is_trained": half_trained},
        {"rating_range": None, "unseen_weight": 0.07, "item_factors": np.zeros((N_ITEMS, 0))},
        {"user_bias_ridge": 2.0, "history_factors": np.full((N_ITEMS, 4), 0.25, np.float32)},
        {"settings": {"method": "ItemMean", "epsilon": 0.1, "bias_prior": None, "grid": {"é": [1, 2.5, True]}}},
    ],
    ids=["plain", "everything", "implicit", "history factors", "settings"],
)
@pytest.mark.parametrize("is_private", [True, False])
def test_a_model_comes_back_as_it_was(tmp_path, items, changes, is_private):
    model = model_of(16, items=items, **changes, privacy=statement() if is_private else None)
    model.save(tmp_path / "deep" / "model")
    loaded = dpals.load(tmp_path / "deep" / "model")
    for name in FactorModel.__dataclass_fields__:
        stored, original = getattr(loaded, name), getattr(model, name)
        assert type(stored) is type(original)
        if isinstance(original, np.ndarray):
            assert stored.dtype == original.dtype
            assert not stored.flags.writeable
        assert np.array_equal(stored, original) if isinstance(original, np.ndarray) else stored == original


@given(
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=5, unique=True)
    | st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5, unique=True)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5, unique=True),
    st.floats(-1e6, 1e6),
)
def test_any_ids_and_numbers_come_back(tmp_path_factory, items, mean):
    folder = tmp_path_factory.mktemp("model")
    model = FactorModel(items, np.zeros((len(items), 1)), np.zeros(len(items)), mean, 1.0)
    model.save(folder)
    loaded = FactorModel.load(folder)
    assert loaded.items.tolist() == items
    assert loaded.items.dtype == model.items.dtype
    assert loaded.global_mean == mean


def numbers_in(value):
    """All numbers anywhere in JSON."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for part in value for number in numbers_in(part)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


@pytest.mark.parametrize("method", [dpals.PooledDPALS(1.0, rank=3, steps=2), dpals.ALS(rank=3)], ids=["pooled", "als"])
@pytest.mark.parametrize("implicit", [False, True])
def test_nothing_private_is_in_the_folder_of_a_trained_model(tmp_path, method, implicit):
    rng = np.random.default_rng(5)
    rows, columns = np.nonzero(rng.random((347, 31)) < 0.5)
    users = np.array([f"user-{number:05}-of-ours" for number in range(347)])[rows]
    rated = {} if implicit else {"values": rng.integers(1, 6, len(rows)), "rating_range": (1, 5)}
    ratings = dpals.Ratings.from_arrays(users, columns + 1, **rated)
    method.fit(ratings).save(tmp_path)
    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(contents) == 2 + isinstance(method, dpals.PooledDPALS)
    for content in contents.values():
        assert b"user-" not in content
        assert b"of-ours" not in content
    arrays = safetensors.numpy.load(contents[arrays_in(tmp_path).name])
    assert {len(array) for array in arrays.values()} == {31}
    numbers = numbers_in(json.loads(contents["model.json"]))
    assert not {347, ratings.n_ratings} & set(numbers)
    written = "".join(content.decode() for name, content in contents.items() if not name.startswith("arrays"))
    assert f"{ratings.n_ratings:,}" not in written
    assert "347 users" not in written


def test_nothing_in_the_files_belongs_to_a_user(tmp_path):
    """Two models that differ in nothing but the users they serve have the same files, which name no user."""
    model = model_of(17, privacy=statement())
    model.save(tmp_path / "before")
    history = history_of(table_of_ratings(18))
    model.recommend(history, 3)
    model.predict(history, ["user 3"], [100])
    model.save(tmp_path / "after")
    before, after = ({path.name: path.read_bytes() for path in (tmp_path / at).iterdir()} for at in ("before", "after"))
    assert before == after
    assert set(json.loads(after["model.json"])) == {
        "format",
        "dpals",
        "sha256",
        "checksum",
        "items",
        "global_mean",
        "user_ridge",
        "user_exponent",
        "user_bias_ridge",
        "unseen_weight",
        "log_odds",
        "replay",
        "rating_range",
        "privacy",
        "settings",
    }
    assert not any(b"user 3" in content for content in after.values())


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "model"
    model_of(19, privacy=statement()).save(folder)
    return folder


def arrays_in(folder):
    (path,) = folder.glob("arrays-*.safetensors")
    return path


def put_facts(folder, facts):
    """With the right checksum."""
    others = {name: value for name, value in facts.items() if name != "checksum"}
    checksum = hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()
    (folder / "model.json").write_text(json.dumps({**others, "checksum": checksum}))


def test_steps_of_frank_wolfe_keep_the_name_that_older_versions_gave_them(tmp_path):
    steps = FrankWolfeSteps(np.full(3, 0.2), np.array([0.9, 0.8, 0.7]), 2.0)
    model_of(1, frank_wolfe_steps=steps).save(tmp_path)
    written = json.loads((tmp_path / "model.json").read_text())
    assert written["replay"] == {"gains": [0.2] * 3, "keeps": [0.9, 0.8, 0.7], "clip": 2.0}
    assert FactorModel.load(tmp_path).frank_wolfe_steps.to_dict() == steps.to_dict()


def change_facts(folder, **changes):
    put_facts(folder, {**json.loads((folder / "model.json").read_text()), **changes})


def put_arrays(folder, **changes):
    """Other arrays in place of the model's own, with the right digest."""
    model = FactorModel.load(folder)
    arrays = {name: getattr(model, name) for name in ("item_factors", "item_biases", "is_trained")}
    arrays = {name: array for name, array in {**arrays, **changes}.items() if array is not None}
    put_content(folder, save(arrays))


def put_content(folder, content):
    digest = hashlib.sha256(content).hexdigest()
    arrays_in(folder).rename(folder / f"arrays-{digest[:16]}.safetensors")
    arrays_in(folder).write_bytes(content)
    change_facts(folder, sha256=digest)


def without(folder, name):
    facts = json.loads((folder / "model.json").read_text())
    del facts[name]
    put_facts(folder, facts)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "model.json").unlink(), "model.json is missing"),
        (lambda folder: arrays_in(folder).unlink(), "arrays-.* is missing"),
        (
            lambda folder: change_facts(folder, format=3),
            r"written by a newer version of dpals \(format 3; this one reads formats up to 2\): update dpals",
        ),
        (lambda folder: change_facts(folder, format=0), "not written by dpals: its format is unknown"),
        (lambda folder: change_facts(folder, format="new"), "not written by dpals"),
        (lambda folder: without(folder, "format"), "not written by dpals"),
        (lambda folder: (folder / "model.json").write_text("[]"), "not written by dpals"),
        (lambda folder: (folder / "model.json").write_bytes(b'{"format": 1'), "model.json is damaged"),
        (lambda folder: (folder / "model.json").write_bytes(b"\xff\xfe\xfa"), "model.json is damaged"),
        (lambda folder: (folder / "model.json").write_bytes(b""), "model.json is damaged"),
        (lambda folder: change_facts(folder, sha256="../../etc/passwd"), "does not say which arrays"),
        (lambda folder: change_facts(folder, sha256=None), "does not say which arrays"),
        (lambda folder: os.truncate(arrays_in(folder), 100), "damaged, or belongs to another model"),
        (lambda folder: os.truncate(arrays_in(folder), 0), "damaged, or belongs to another model"),
        (lambda folder: change_facts(folder, items=[1, 2]), "one row for each of 2 items"),
        (lambda folder: change_facts(folder, items=None), "is damaged"),
        (lambda folder: change_facts(folder, items=[1, "a", *range(3, 15)]), "mixed id types"),
        (lambda folder: change_facts(folder, user_ridge="high"), "is damaged"),
        (lambda folder: change_facts(folder, user_ridge=None), "is damaged"),
        (lambda folder: change_facts(folder, global_mean=float("nan")), "must be finite"),
        (lambda folder: change_facts(folder, rating_range=[5, 1, 2]), "is damaged"),
        (lambda folder: change_facts(folder, privacy={"epsilon": 1}), "is damaged"),
        (lambda folder: change_facts(folder, privacy="yes"), "is damaged"),
        (lambda folder: change_facts(folder, settings="yes"), "is damaged"),
        (lambda folder: change_facts(folder, settings=3), "is damaged"),
        (lambda folder: without(folder, "privacy"), "is damaged.*privacy"),
        (lambda folder: without(folder, "user_exponent"), "is damaged.*user_exponent"),
        (lambda folder: put_arrays(folder, item_biases=np.zeros(3, np.float32)), "item_biases must have one row"),
        (lambda folder: put_arrays(folder, item_factors=np.zeros(N_ITEMS, np.float32)), "item_factors must have one"),
        (lambda folder: put_arrays(folder, is_trained=None), "is damaged.*is_trained"),
    ],
)
def test_damaged_folders_are_refused(saved, damage, message):
    damage(saved)
    with pytest.raises(dpals.InputError, match=message):
        FactorModel.load(saved)


def test_damaged_arrays_with_the_right_digest_are_refused(saved):
    put_content(saved, b"not a safetensors file")
    with pytest.raises(dpals.InputError, match="is damaged"):
        FactorModel.load(saved)


def test_arrays_of_another_model_are_refused(saved, tmp_path):
    model_of(20).save(tmp_path / "other")
    arrays_in(saved).write_bytes(arrays_in(tmp_path / "other").read_bytes())
    with pytest.raises(dpals.InputError, match="belongs to another model"):
        FactorModel.load(saved)


def test_any_flipped_bit_in_the_arrays_is_noticed(saved):
    content = arrays_in(saved).read_bytes()
    for at in range(0, len(content), 37):
        arrays_in(saved).write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(dpals.InputError):
            FactorModel.load(saved)


def test_any_flipped_bit_in_the_facts_is_noticed(saved):
    """Unless it is in the last digits of a number, where it changes nothing."""
    content = (saved / "model.json").read_bytes()
    facts = json.loads(content)
    harmless = 0
    for at in range(0, len(content), 23):
        damaged = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        (saved / "model.json").write_bytes(damaged)
        try:
            FactorModel.load(saved)
        except dpals.InputError:
            continue
        harmless += 1
        assert json.loads(damaged) == facts
    assert harmless < 5


def test_facts_edited_by_hand_are_refused(saved):
    text = (saved / "model.json").read_text()
    (saved / "model.json").write_text(text.replace('"global_mean": 3.4', '"global_mean": 3.5'))
    with pytest.raises(dpals.InputError, match="edited: its checksum is wrong"):
        FactorModel.load(saved)
    (saved / "model.json").write_text(json.dumps(json.loads(text)))  # only the spaces
    assert FactorModel.load(saved).global_mean == 3.4


def test_facts_of_another_model_are_refused(saved, tmp_path):
    model_of(20).save(tmp_path / "other")
    (saved / "model.json").write_bytes((tmp_path / "other" / "model.json").read_bytes())
    with pytest.raises(dpals.InputError, match=r"arrays-.*\.safetensors is missing"):
        FactorModel.load(saved)


def test_settings_edited_by_hand_are_refused(tmp_path):
    model_of(19, settings={"method": "ItemMean", "epsilon": 1.0}).save(tmp_path)
    text = (tmp_path / "model.json").read_text()
    (tmp_path / "model.json").write_text(text.replace('"epsilon": 1.0', '"epsilon": 0.1'))
    with pytest.raises(dpals.InputError, match="edited: its checksum is wrong"):
        FactorModel.load(tmp_path)


def test_a_folder_from_before_there_were_settings_is_read(tmp_path):
    model = model_of(19, settings={"method": "ItemMean"})
    model.save(tmp_path)
    without(tmp_path, "settings")
    loaded = FactorModel.load(tmp_path)
    assert loaded.settings is None
    assert np.array_equal(loaded.item_factors, model.item_factors)


def test_the_folder_says_which_version_wrote_it(saved):
    assert json.loads((saved / "model.json").read_text())["dpals"] == dpals.__version__


@pytest.mark.parametrize("what", ["no such folder", "a file"])
def test_what_is_no_folder_is_refused(tmp_path, what):
    if what == "a file":
        (tmp_path / what).write_text("hello")
    with pytest.raises(dpals.InputError, match="is not a model folder"):
        FactorModel.load(tmp_path / what)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def assert_page_belongs(folder):
    """The page with the statement is that of the model, where there is one."""
    page = folder / "statement.html"
    assert not page.exists() or page.read_text() == FactorModel.load(folder).privacy.to_html()


def named(dataset):
    return replace(statement(), dataset=dataset)


def test_a_model_is_replaced_by_another(saved):
    assert names_in(saved) == [arrays_in(saved).name, "model.json", "statement.html"]
    assert_page_belongs(saved)
    other = model_of(21, privacy=named("another data set"))
    other.save(saved)
    assert np.array_equal(FactorModel.load(saved).item_factors, other.item_factors)
    assert names_in(saved) == [arrays_in(saved).name, "model.json", "statement.html"]
    assert "another data set" in (saved / "statement.html").read_text()
    assert_page_belongs(saved)
    model_of(22).save(saved)
    assert names_in(saved) == [arrays_in(saved).name, "model.json"]


@pytest.mark.parametrize("file", [1, 2, 3], ids=["arrays", "facts", "statement"])
@pytest.mark.parametrize(("owner", "step"), [(os, "fsync"), (Path, "replace")], ids=["write", "rename"])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("same_arrays", [True, False])
@pytest.mark.parametrize("problem", [OSError("disk full"), KeyboardInterrupt("disk full")], ids=["error", "Ctrl-C"])
def test_a_failed_save_leaves_nothing_behind(tmp_path, monkeypatch, owner, step, file, is_first, same_arrays, problem):
    folder, old, new = tmp_path / "model", model_of(22, privacy=named("old")), model_of(23, privacy=named("new"))
    if same_arrays:
        new = replace(old, global_mean=1.0, privacy=named("new"))
    folder.mkdir()
    if not is_first:
        old.save(folder)
    before = names_in(folder)
    calls, working = [], getattr(owner, step)
    last = file if step == "replace" else 2 * file - 1  # a file is synchronised, then the folder

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) == last:
            raise problem
        return working(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, failing)
        with pytest.raises(type(problem), match="disk full"):
            new.save(folder)
    if file == 1:
        assert names_in(folder) == before
    elif file == 2:
        assert names_in(folder) == [name for name in before if name != "statement.html"]
    else:
        assert names_in(folder) == [arrays_in(folder).name, "model.json"]
    if file == 3 or not is_first:
        loaded, expected = FactorModel.load(folder), new if file == 3 else old
        assert loaded.privacy == expected.privacy
        assert np.array_equal(loaded.item_factors, expected.item_factors)
        assert_page_belongs(folder)


def test_ctrl_c_just_after_the_new_model_is_in_place_keeps_it(tmp_path, monkeypatch):
    old, new = model_of(22, privacy=named("old")), model_of(23, privacy=named("new"))
    old.save(tmp_path)
    calls, working = [], os.fsync

    def interrupted(handle):
        calls.append(handle)
        if len(calls) == 4:  # the folder, after model.json
            raise KeyboardInterrupt
        working(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            new.save(tmp_path)
    assert np.array_equal(FactorModel.load(tmp_path).item_factors, new.item_factors)
    assert_page_belongs(tmp_path)


DISK_FULL = """
import resource, sys
import numpy as np
from dpals.model.factor_model import FactorModel

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    FactorModel(np.arange(1000), np.ones((1000, int(sys.argv[3]))), np.zeros(1000), 2.0, 1.0).save(sys.argv[1])
except OSError as problem:
    print(problem.strerror)
"""


@pytest.mark.parametrize(
    ("largest_file", "rank"), [(0, 8), (36_000, 8), (6_000, 0)], ids=["everything", "arrays", "model.json"]
)
def test_a_disk_that_is_full_leaves_the_old_model(tmp_path, largest_file, rank):
    """Files of more than so many bytes cannot be written."""
    folder = tmp_path / "model"
    FactorModel(np.arange(2000), np.zeros((2000, 1)), np.zeros(2000), 1.0, 1.0).save(folder)
    before = names_in(folder)

    def save_within(size):
        command = [sys.executable, "-c", DISK_FULL, folder, str(size), str(rank)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert save_within(largest_file) == "File too large\n"
    assert names_in(folder) == before
    assert FactorModel.load(folder).global_mean == 1.0
    assert save_within(100_000) == ""
    assert FactorModel.load(folder).global_mean == 2.0


SAVING = """
import os, sys
from dataclasses import replace
import numpy as np
from pathlib import Path
from dpals.errors import InputError
from dpals.model.factor_model import FactorModel
from tests.small_models import statement

def dying(call):
    def counting(*arguments, **named):
        global steps
        steps -= 1
        if steps == 0:
            os._exit(9)
        return call(*arguments, **named)
    return counting

def model(value):
    privacy = replace(statement(), dataset=str(value))
    return FactorModel([1, 2], np.full((2, 1), value), np.zeros(2), value, 1.0, privacy=privacy)

old, new = model(1.0), model(2.0)
for life in range(1, 30):
    folder = Path(sys.argv[1]) / str(life)
    old.save(folder)
    child = os.fork()
    if child == 0:
        steps = life
        os.fsync, Path.replace, Path.unlink = dying(os.fsync), dying(Path.replace), dying(Path.unlink)
        new.save(folder)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
"""


def test_a_save_removes_drafts_of_a_model_and_nothing_else(tmp_path):
    ours = {f".{name}.0123456789ab.part" for name in ("model.json", "statement.html", f"arrays-{'0a' * 8}.safetensors")}
    others = {".download.part", ".thesis.tex.0123456789ab.part", ".arrays-of-mine.safetensors.0123456789ab.part"}
    for name in ours | others:
        (tmp_path / name).write_text("half")
    FactorModel([1, 2], np.ones((2, 1)), np.zeros(2), 3.0, 1.0).save(tmp_path)
    left = set(os.listdir(tmp_path))
    assert others < left
    assert not ours & left


def test_a_killed_save_leaves_the_old_model_or_the_new_one(tmp_path):
    """Processes that end without a word, each one step further: before every change that a save makes."""
    repository = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-W", "ignore", "-c", SAVING, tmp_path], check=True, cwd=repository)
    folders = sorted(tmp_path.iterdir(), key=lambda path: int(path.name))
    assert 5 < len(folders) < 29
    models = [FactorModel.load(folder) for folder in folders]
    assert all(model.item_factors.tolist() == [[model.global_mean]] * 2 for model in models)
    assert all(model.privacy.dataset == str(model.global_mean) for model in models)
    for folder in folders:
        assert_page_belongs(folder)
    means = [model.global_mean for model in models]
    assert means == sorted(means)
    assert set(means) == {1.0, 2.0}


@pytest.mark.parametrize(
    "hostile",
    [{"epsilon": float("nan")}, {"delta": 2}, {"mu": None}, {"releases": [{"purpose": "all"}]}, {"dataset_mu": -1}],
    ids=str,
)
def test_a_model_with_a_hostile_statement_is_refused_with_one_clear_error(saved, hostile):
    facts = json.loads((saved / "model.json").read_text())
    put_facts(saved, {**facts, "privacy": {**json.loads(statement().to_json()), **hostile}})
    with pytest.raises(dpals.InputError, match=r"the model in .* is damaged: this is not a privacy statement: "):
        dpals.load(saved)


def test_a_model_whose_release_has_no_noise_is_refused(saved):
    privacy = json.loads(statement().to_json())
    privacy["releases"][0]["variance"] = 0
    put_facts(saved, {**json.loads((saved / "model.json").read_text()), "privacy": privacy})
    with pytest.raises(dpals.InputError, match="a release must have"):
        dpals.load(saved)
