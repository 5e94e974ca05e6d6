"""Passes on Spark: the same bits, each block once, and nothing secret on executors."""

import os
import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import dpals
from dpals.engines import spark as engine_module
from dpals.engines.local import LocalEngine
from dpals.methods.base.registry import METHODS
from dpals.private.means import weight_contribution
from dpals.release.accounting import Budget
from dpals.release.contribution import Grid, Query
from dpals.release.mechanism import Mechanism
from dpals.release.passes import Pass, PassRefused, check_receipts

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpals[spark]'")
if shutil.which("java") is None:
    pytest.skip("there is no Java: apt-get install default-jre-headless", allow_module_level=True)

from tests.engines import spark_blocks
from tests.engines.spark_blocks import DRIVER, Broken, Part, Quick, Slow, in_parts, threads_of_a_task

ROOT = Path(__file__).parents[2]
N_ITEMS = 40
COUNT = Query("weights", N_ITEMS, 1.0)
BUDGET = Budget(2.0, 1e-5)
SETTINGS = {"spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1"}


@pytest.fixture(scope="module")
def spark():
    """Executors run this very source."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(dpals.__file__).parents[1]), str(ROOT)]))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv(DRIVER, str(os.getpid()))
        session = dpals.spark.session("local[2,4]", settings=SETTINGS)
        session.sparkContext.setLogLevel("OFF")  # tests kill workers
        yield session
        session.stop()


@pytest.fixture(scope="module")
def engine(spark):
    return dpals.spark.Engine(spark)


@pytest.fixture(scope="module")
def ratings():
    return dpals.simulate.movielens_like(n_users=300, n_items=N_ITEMS, mean_ratings=22, seed=2)


@pytest.fixture(scope="module")
def implicit(ratings):
    users, items = ratings.users[ratings.rows], ratings.items[ratings.indices]
    return dpals.Ratings.from_arrays(users, items, catalogue=ratings.items)


class Recording:
    """An engine that keeps the exact sums of every pass."""

    def __init__(self, engine):
        self.engine, self.tables = engine, []

    def run(self, work, blocks):
        tables, receipts = self.engine.run(work, blocks)
        self.tables += [table.copy() for table in tables]
        return tables, receipts


def assert_same_bits(make, data, engine, n_parts):
    here, there = Recording(LocalEngine()), Recording(engine)
    expected = make().fit(data, options=dpals.Options(engine=here))
    fitted = make().fit(in_parts(data, n_parts), options=dpals.Options(engine=there))
    assert len(here.tables) == len(there.tables)
    assert all(map(np.array_equal, here.tables, there.tables))
    assert np.array_equal(expected.item_factors_, fitted.item_factors_)
    assert np.array_equal(expected.model_.item_biases, fitted.model_.item_biases)


PRIVATE = [method for method in METHODS if method.private and method.name != "PrivateSearch"]


@pytest.mark.parametrize("name", [method.name for method in PRIVATE if method.ratings])
def test_every_method_gives_the_same_bits(ratings, engine, name):
    small = next(method.small for method in METHODS if method.name == name)
    assert_same_bits(lambda: getattr(dpals, name)(epsilon=8.0, insecure_seed=3, **small), ratings, engine, 7)


@pytest.mark.parametrize("name", [method.name for method in PRIVATE if method.implicit])
def test_every_method_gives_the_same_bits_for_implicit_feedback(implicit, engine, name):
    small = next(method.small for method in METHODS if method.name == name)
    assert_same_bits(lambda: getattr(dpals, name)(epsilon=8.0, insecure_seed=3, **small), implicit, engine, 7)


@pytest.mark.parametrize("n_parts", [1, 64])
def test_any_number_of_blocks_gives_the_same_bits(ratings, engine, n_parts):
    assert_same_bits(lambda: dpals.PrivateBiases(epsilon=8.0, insecure_seed=3, steps=2), ratings, engine, n_parts)


def weights(function=weight_contribution, public=None):
    return Pass(function, public, (COUNT,), (Grid.of(COUNT, 20),))


def assert_same_pass(engine, work, blocks, same_blocks=None):
    tables, receipts = engine.run(work, blocks)
    expected, _ = LocalEngine().run(work, same_blocks or blocks)
    check_receipts(receipts, blocks)
    assert all(map(np.array_equal, tables, expected))


def test_no_blocks_are_nobody(engine):
    tables, receipts = engine.run(weights(), [])
    assert receipts == []
    assert np.array_equal(tables[0], np.zeros((N_ITEMS, 1)))


@pytest.mark.parametrize("piece", [1 << 26, 1 << 17])
def test_a_table_of_many_shards_arrives_whole(engine, monkeypatch, piece):
    """All at once, and in several pieces."""
    monkeypatch.setattr(engine_module, "_PIECE", piece)
    assert_same_pass(engine, Quick((12_000, 33)), [Part(None, str(k)) for k in range(5)])


def test_a_task_uses_the_cores_that_it_has(ratings, engine, tmp_path):
    engine.run(weights(threads_of_a_task, str(tmp_path / "threads")), in_parts(ratings, 1).blocks)
    assert (tmp_path / "threads").read_text() == "1"


def when_written(path, wanted, seconds=60):
    """What another process writes to a file, as soon as there is something in it that is wanted."""
    end = time.monotonic() + seconds
    while not (found := path.exists() and wanted(path.read_text())):
        assert time.monotonic() < end, f"nobody wrote {path}"
        time.sleep(0.02)
    return found


def kill(process):
    """End a process that this test started, by way of others."""
    parent = process
    while parent not in (os.getpid(), 1):
        parent = int(Path(f"/proc/{parent}/stat").read_text().rsplit(")", 1)[1].split()[1])
    assert parent == os.getpid()
    os.kill(process, signal.SIGKILL)


def test_a_worker_that_is_killed_changes_nothing(engine, ratings, tmp_path):
    parts = in_parts(ratings, 4).blocks
    blocks = [Slow(parts[0], tmp_path), *parts[1:]]
    killer = threading.Thread(target=lambda: kill(int(when_written(tmp_path / "processes", str.split)[0])))
    killer.start()
    assert_same_pass(engine, weights(), blocks, parts)
    killer.join()
    assert (tmp_path / "second").exists(), "the block was opened again"


@pytest.mark.parametrize("fault", ["missing_share", "same_share_twice", "other_names", "other_version"])
def test_a_pass_with_wrong_receipts_is_refused_and_nothing_is_spent(ratings, engine, monkeypatch, fault):
    monkeypatch.setattr(engine_module, "_partial_sums", getattr(spark_blocks, fault))
    ledger = dpals.Ledger()
    mechanism = Mechanism(BUDGET, ledger, engine=engine)
    with pytest.raises(PassRefused, match="nothing was spent"):
        mechanism.release_together(in_parts(ratings, 3), weight_contribution, None, [(COUNT, BUDGET.cost)])
    mechanism.close()
    assert mechanism.releases == []
    assert ledger.spent("ratings") == 0


def agreed(change):
    shard, text = engine_module._SHARD, '[{"family": "f"}, [["a", 1]]]'
    mark = engine_module._digest(text)
    return engine_module._agreed(change([(shard, [mark]), (0, [text]), (2 * shard, [mark])]), 2 * shard + 5)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[:2],
        lambda rows: rows[::2],
        lambda rows: rows[:0],
        lambda rows: [*rows, rows[0]],
        lambda rows: [(rows[0][0], rows[0][1] * 2), *rows[1:]],
        lambda rows: [(rows[0][0], []), *rows[1:]],
        lambda rows: [rows[0], (0, rows[1][1] * 2), rows[2]],
    ],
    ids=["last missing", "first missing", "all missing", "shard twice", "block twice", "no block", "first twice"],
)
def test_shards_must_cover_the_same_blocks(change):
    with pytest.raises(PassRefused, match="not of the same blocks"):
        agreed(change)


def test_a_damaged_block_is_an_error_in_one_sentence(ratings, engine):
    blocks = [*in_parts(ratings, 2).blocks, Broken(None, "third")]
    with pytest.raises(dpals.InputError, match=r"^block third is damaged: write it again$"):
        engine.run(weights(), blocks)


def test_executors_without_dpals_are_an_error(ratings, engine, monkeypatch):
    monkeypatch.setattr(engine_module, "_partial_sums", spark_blocks.without_dpals)
    with pytest.raises(dpals.InputError, match="install the same version"):
        engine.run(weights(), in_parts(ratings, 2).blocks)


def test_ratings_in_memory_are_not_sent(ratings, engine):
    with pytest.raises(dpals.InputError, match="write_blocks"):
        dpals.GlobalMean(epsilon=1.0).fit(ratings, options=dpals.Options(engine=engine))


def test_settings_of_the_session_are_left_alone(spark):
    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    dpals.spark.Engine(spark)
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == before


def test_a_master_that_is_not_there_is_an_error():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(dpals.InputError, match=f"127.0.0.1:{port} does not answer"):
            dpals.spark.session(f"spark://127.0.0.1:{port}")


def test_without_java_or_pyspark_the_error_says_what_to_install(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("JAVA_HOME", "/nowhere")
        patch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
        with pytest.raises(dpals.InputError, match="apt-get install default-jre-headless"):
            dpals.spark.session("local[1]")
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(dpals.InputError, match=r"pip install 'dpals\[spark\]'"):
        dpals.spark.session("local[1]")


def frame_of(spark, ratings):
    users, items = ratings.users[ratings.rows].tolist(), ratings.items[ratings.indices].tolist()
    columns = {"who": users, "film": items, "stars": ratings.values.tolist()}
    schema = f"who {'string' if isinstance(users[0], str) else 'long'}, film long, stars float, note string"
    return spark.createDataFrame([(*row, "unused") for row in zip(*columns.values(), strict=True)], schema)


@pytest.fixture(scope="module")
def frame(spark, ratings):
    return frame_of(spark, ratings).repartition(3).cache()


NAMES = {"user": "who", "item": "film"}


@pytest.fixture(scope="module")
def blocks(frame, ratings, tmp_path_factory):
    declared = {"rating_range": (0.5, 5.0), "catalogue": ratings.items, "ratings_per_block": 2000}
    return dpals.spark.write_blocks(frame, tmp_path_factory.mktemp("spark") / "blocks", **NAMES, **declared)


def test_blocks_of_a_frame_are_those_of_the_same_ratings(blocks, ratings, tmp_path):
    expected = dpals.write_blocks(ratings, tmp_path, ratings_per_block=2000)
    assert [block.name for block in blocks.blocks] == [block.name for block in expected.blocks]
    assert len(blocks.blocks) > 2
    hidden = [path.name for path in blocks.folder.iterdir() if path.name.startswith(".")]
    assert hidden == [], "what Spark wrote on the way is gone"


def test_blocks_on_disk_give_the_same_bits(blocks, ratings, engine):
    tables, receipts = engine.run(weights(), blocks.blocks)
    check_receipts(receipts, blocks.blocks)
    assert np.array_equal(tables[0], LocalEngine().run(weights(), ratings.blocks)[0][0])


def test_a_block_that_has_changed_is_refused(blocks, engine, tmp_path):
    copy = dpals.open_blocks(shutil.copytree(blocks.folder, tmp_path / "copy"))
    path = copy.blocks[1].path
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(dpals.InputError, match="is damaged, or is another file"):
        engine.run(weights(), copy.blocks)


def rows_of(table):
    return sorted(tuple(row) for row in table.collect())


def test_recommendations_are_those_of_the_model(ratings, frame, blocks):
    """From a frame in any order, and from blocks."""
    fitted = dpals.PrivateBiases(epsilon=8.0, insecure_seed=3).fit(ratings)
    ids, scores = fitted.recommend(ratings, k=3)
    expected = [
        (int(user), rank + 1, int(item), float(score))
        for user, row, values in zip(ratings.users, ids, scores, strict=True)
        for rank, (item, score) in enumerate(zip(row, values, strict=True))
        if score > -np.inf
    ]
    from_frame = dpals.spark.recommend(fitted, frame, 3, **NAMES)
    assert from_frame.columns == ["who", "rank", "film", "score"]
    assert rows_of(from_frame) == sorted(expected)
    assert rows_of(dpals.spark.recommend(fitted.model_, blocks, 3)) == sorted(expected)


def test_rows_are_cut_between_users(monkeypatch):
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr(engine_module, "_ROWS_AT_ONCE", 3)
    batches = [pa.record_batch({"user": users}) for users in (["a", "a"], ["a", "b"], ["b", "b"], ["c"], ["d", "d"])]
    cut = [table.column("user").to_pylist() for table in engine_module._whole_users(iter(batches), "user")]
    assert cut == [["a", "a", "a"], ["b", "b", "b"], ["c"], ["d", "d"]]
