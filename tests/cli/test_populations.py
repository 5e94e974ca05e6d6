"""Blocks and engines on the command line."""

import shutil
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.cli.conftest import refused, run, run_process

import dpals
from dpals.cli.populations import holds_blocks


def fit(*arguments, folder):
    return run("fit", *arguments, "-o", "model", "--epsilon", 1, "--method", "item-mean", "-q", cwd=folder)


def test_what_a_folder_of_blocks_is(blocks_folder, ratings_file, tmp_path):
    assert holds_blocks(blocks_folder)
    assert not any(map(holds_blocks, (ratings_file, tmp_path, tmp_path / "nowhere")))
    (tmp_path / "manifest.json").touch()
    assert not holds_blocks(tmp_path), "others have manifests, too"
    (tmp_path / ".writing").mkdir()
    assert holds_blocks(tmp_path)
    refused(fit(tmp_path, folder=tmp_path), "damaged")


def test_blocks_that_are_not_complete_say_what_to_do(blocks_folder, tmp_path):
    shutil.copytree(blocks_folder, tmp_path / "blocks")
    (tmp_path / "blocks" / "manifest.json").unlink()
    for command in (("fit", "blocks", "-o", "model", "--epsilon", 1, "-q"), ("split", "blocks", "a", "b")):
        refused(run(*command, cwd=tmp_path), "not complete", "Run `dpals blocks`, which resumes")
    assert [path.name for path in tmp_path.iterdir()] == ["blocks"]


@pytest.mark.parametrize(
    "option",
    [
        ("--rating-range", 0.5, 5),
        ("--implicit",),
        ("--catalogue", __file__),
        ("--columns", "user,item"),
        ("--separator", ","),
        ("--ids", "auto"),
        ("--on-bad-rows", "error"),
        *((f"--{role}", "x") for role in ("user", "item", "rating", "timestamp")),
    ],
)
def test_options_for_reading_a_file_are_refused(blocks_folder, tmp_path, option):
    words = (f"{option[0]} is for reading a file", f"dpals blocks RATINGS -o FOLDER {option[0]}")
    refused(fit(blocks_folder, *option, folder=tmp_path), *words, code=2)
    if option[0] not in ("--rating-range", "--implicit", "--catalogue"):
        refused(run("split", blocks_folder, "a", "b", *option, cwd=tmp_path), *words, code=2)
    assert list(tmp_path.iterdir()) == []


def test_engines_that_do_not_go_with_the_rest(blocks_folder, ratings_file, tmp_path):
    on_file = fit(ratings_file, "--rating-range", 0.5, 5, "--engine", "spark", folder=tmp_path)
    refused(on_file, "Spark needs users in blocks", f"dpals blocks {ratings_file}", code=2)
    refused(fit(blocks_folder, "--master", "local", folder=tmp_path), "pass --engine spark as well", code=2)
    assert list(tmp_path.iterdir()) == []


class TestSparkThatIsNotThere:
    """One sentence, and nothing is spent."""

    @pytest.fixture
    def refused_fit(self, blocks_folder, tmp_path):
        ledger = dpals.Ledger(tmp_path / "dpals-ledger.db")
        ledger.spend("ratings", "counts", cost=1)
        before = (tmp_path / "dpals-ledger.db").read_bytes()

        def tried(*words, master="local[1]"):
            refused(fit(blocks_folder, "--engine", "spark", "--master", master, folder=tmp_path), *words)
            assert (tmp_path / "dpals-ledger.db").read_bytes() == before
            assert [path.name for path in tmp_path.iterdir()] == ["dpals-ledger.db"]

        return tried

    def test_a_dead_master(self, refused_fit):
        pytest.importorskip("pyspark")
        if shutil.which("java") is None:
            pytest.skip("there is no Java: apt-get install default-jre-headless")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        refused_fit(f"the Spark master {address} does not answer", master=address)

    def test_no_java(self, refused_fit, monkeypatch, tmp_path):
        pytest.importorskip("pyspark")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        refused_fit("Spark needs Java 17", "default-jre-headless")

    def test_no_pyspark(self, refused_fit, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyspark", None)
        refused_fit("Spark is not installed", "pip install 'dpals[spark]'")


@pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java: apt-get install default-jre-headless")
@pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is not installed: pip install 'dpals[spark]'")
class TestSpark:
    """The same model and the same recommendations as from this machine."""

    ON_SPARK = ("--engine", "spark", "--master", "local[2]")

    def test_it_trains_and_recommends_the_same(self, blocks_folder, tmp_path):
        same = ("fit", blocks_folder, "--epsilon", 1, "--method", "item-mean", "--set", "insecure_seed=5")
        local = run(*same, "-o", "local", cwd=tmp_path)
        elsewhere = {"PATH": f"{Path(shutil.which('java')).parent}:/usr/bin:/bin"}  # another Python, or none
        spark = run_process(*same, "-o", "spark", *self.ON_SPARK, cwd=tmp_path, env=elsewhere)
        assert (local.returncode, spark.returncode) == (0, 0), spark.stderr
        one, other = (dpals.load(tmp_path / name) for name in ("local", "spark"))
        assert one.item_biases.tobytes() == other.item_biases.tobytes()
        recommend = ("recommend", "local", "--history", blocks_folder, "-k", 3)
        assert run(*recommend, "-o", "one.parquet", cwd=tmp_path).returncode == 0
        result = run_process(*recommend, *self.ON_SPARK, "-o", "lists.parquet", "-q", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert "Traceback" not in result.stderr
        lists = pl.read_parquet(tmp_path / "lists.parquet" / "*.parquet")
        assert lists.sort("user", "rank").equals(pl.read_parquet(tmp_path / "one.parquet").sort("user", "rank"))
        assert {path.stat().st_mode & 0o077 for path in (tmp_path / "lists.parquet").iterdir()} == {0}
        for there, word in (("lists.parquet", "is a directory"), ("one.parquet", "Spark writes to a new folder")):
            refused(run(*recommend, *self.ON_SPARK, "-o", there, cwd=tmp_path), word, code=2)
        for wrong in ((), ("-o", "x.csv"), ("-o", "x.parquet", "--user-id", 1)):
            refused(run(*recommend, *self.ON_SPARK, *wrong, cwd=tmp_path), "pass -o FOLDER.parquet", code=2)

    def test_a_damaged_block_is_one_sentence(self, blocks_folder, tmp_path):
        shutil.copytree(blocks_folder, tmp_path / "ratings")
        block = next((tmp_path / "ratings").glob("block-*"))
        content = np.frombuffer(block.read_bytes(), np.uint8).copy()
        content[-1] ^= 1
        block.write_bytes(content.tobytes())
        same = ("fit", "ratings", "--epsilon", 1, "--method", "item-mean", "-o", "model", "-q", *self.ON_SPARK)
        result = run_process(*same, cwd=tmp_path)
        assert result.returncode == 1
        assert result.stderr.strip().endswith("is damaged, or is another file than was written. Write the blocks again")
        assert "Traceback" not in result.stderr
        assert dpals.Ledger(tmp_path / "dpals-ledger.db").spent("ratings") == 0
