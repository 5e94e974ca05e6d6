"""Passes on Spark: the same bits, each block once, and nothing secret on executors."""

import threading

import numpy as np
import pytest
from tests.engines import spark_blocks
from tests.engines.spark_blocks import Broken, Part, Quick, Slow, in_parts, threads_of_a_task
from tests.engines.spark_checks import COUNT, assert_same_bits, assert_same_pass, kill, weights, when_written

import dpals
from dpals.engines import spark as engine_module
from dpals.methods.base.registry import METHODS
from dpals.private.means import weight_contribution
from dpals.release.accounting import Budget
from dpals.release.mechanism import Mechanism
from dpals.release.passes import PassRefused

BUDGET = Budget(2.0, 1e-5)


@pytest.fixture(scope="module")
def implicit(ratings):
    users, items = ratings.users[ratings.rows], ratings.items[ratings.indices]
    return dpals.Ratings.from_arrays(users, items, catalogue=ratings.items)


PRIVATE = [method for method in METHODS if method.private and method.name != "PrivateSearch"]


@pytest.mark.parametrize("name", [method.name for method in PRIVATE if method.ratings])
def test_every_method_gives_the_same_bits(ratings, engine, name):
    small = next(method.small for method in METHODS if method.name == name)
    assert_same_bits(lambda: getattr(dpals, name)(epsilon=8.0, insecure_seed=3, **small), ratings, engine, 7)


@pytest.mark.parametrize("name", [method.name for method in PRIVATE if method.implicit])
def test_every_method_gives_the_same_bits_for_implicit_feedback(implicit, engine, name):
    small = next(method.small for method in METHODS if method.name == name)
    assert_same_bits(lambda: getattr(dpals, name)(epsilon=8.0, insecure_seed=3, **small), implicit, engine, 7)


@pytest.mark.parametrize("name", ["PrivateSearch", "ALS"])
def test_block_files_give_the_same_bits(ratings, engine, tmp_path, name):
    blocks = dpals.write_blocks(ratings, tmp_path / "blocks", ratings_per_block=ratings.n_ratings // 5)
    searched = dpals.PrivateSearch(dpals.ItemMean(), {"bias_prior": [0.1, 0.5]}, epsilon=8.0, tries=2, insecure_seed=3)
    method = {"PrivateSearch": searched, "ALS": dpals.ALS(rank=3, steps=2)}[name]
    here = method.fit(blocks).model_
    there = method.fit(blocks, options=dpals.Options(engine=engine)).model_
    assert len(blocks.blocks) > 4
    for array in ("item_factors", "item_biases"):
        assert getattr(here, array).tobytes() == getattr(there, array).tobytes()


@pytest.mark.parametrize("n_parts", [1, 64])
def test_any_number_of_blocks_gives_the_same_bits(ratings, engine, n_parts):
    assert_same_bits(lambda: dpals.PrivateBiases(epsilon=8.0, insecure_seed=3, steps=2), ratings, engine, n_parts)


def test_no_blocks_are_nobody(engine):
    tables, receipts = engine.run(weights(), [])
    assert receipts == []
    assert np.array_equal(tables[0], np.zeros((40, 1)))


@pytest.mark.parametrize(("small", "piece"), [(1 << 21, 1 << 26), (0, 1 << 26), (0, 1 << 17)])
def test_a_table_of_many_shards_arrives_whole(engine, monkeypatch, small, piece):
    """Added up by the driver, or by executors; all at once, or in several pieces."""
    monkeypatch.setattr(engine_module, "_SMALL", small)
    monkeypatch.setattr(engine_module, "_PIECE", piece)
    assert_same_pass(engine, Quick((12_000, 33)), [Part(None, str(k)) for k in range(5)])


def test_a_task_uses_the_cores_that_it_has(ratings, engine, tmp_path):
    engine.run(weights(threads_of_a_task, str(tmp_path / "threads")), in_parts(ratings, 1).blocks)
    assert (tmp_path / "threads").read_text() == "1"


def test_a_worker_that_is_killed_changes_nothing(engine, ratings, tmp_path):
    parts = in_parts(ratings, 4).blocks
    blocks = [Slow(parts[0], tmp_path), *parts[1:]]
    killer = threading.Thread(target=lambda: kill(int(when_written(tmp_path / "processes", str.split)[0])))
    killer.start()
    assert_same_pass(engine, weights(), blocks, parts)
    killer.join()
    assert (tmp_path / "second").exists(), "the block was opened again"


@pytest.mark.parametrize("small", [1 << 21, 0], ids=["driver", "executors"])
@pytest.mark.parametrize("fault", ["missing_share", "same_share_twice", "other_names", "other_version"])
def test_a_pass_with_wrong_receipts_is_refused_and_nothing_is_spent(ratings, engine, monkeypatch, fault, small):
    monkeypatch.setattr(engine_module, "_SMALL", small)
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


def test_a_search_on_ratings_in_memory_is_refused_before_it_is_entered(ratings, engine):
    ledger = dpals.Ledger()
    search = dpals.PrivateSearch(dpals.ItemMean(), {"bias_prior": [0.1, 0.5]}, epsilon=1.0, tries=2)
    with pytest.raises(dpals.InputError, match="in the memory of one machine"):
        search.fit(ratings, ledger=ledger, options=dpals.Options(engine=engine))
    assert ledger.entries() == []
