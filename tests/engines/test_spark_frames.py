"""Blocks from frames of Spark, and recommendations as frames."""

import shutil

import numpy as np
import pytest
from tests.engines.spark_checks import weights

import dpals
from dpals.engines import spark_frames
from dpals.engines.local import LocalEngine
from dpals.release.passes import check_receipts


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
    monkeypatch.setattr(spark_frames, "_ROWS_AT_ONCE", 3)
    batches = [pa.record_batch({"user": users}) for users in (["a", "a"], ["a", "b"], ["b", "b"], ["c"], ["d", "d"])]
    cut = [table.column("user").to_pylist() for table in spark_frames._whole_users(iter(batches), "user")]
    assert cut == [["a", "a", "a"], ["b", "b", "b"], ["c"], ["d", "d"]]
