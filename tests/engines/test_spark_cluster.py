"""A standalone cluster on this machine: a master and two workers, each with an executor of its own.

In `local` mode, driver and executor are one process, and Spark never starts a slow task a second time.
"""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.engines.spark_blocks import Slow, in_parts
from tests.engines.spark_checks import assert_same_bits, assert_same_pass, kill, weights, when_written

import dpals

pytestmark = pytest.mark.slow
MASTER = re.compile(r"Starting Spark master at (spark://\S+)")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, installed):  # noqa: ARG001
    """The address of a master with two workers of one core each."""
    import pyspark

    place = tmp_path_factory.mktemp("cluster")
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home)}
    started = []

    def start(name, host, *arguments):
        command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", "--host", host]
        log = place / f"{len(started)}.log"
        with log.open("w") as output:
            started.append(
                subprocess.Popen(
                    [*map(str, command), "--webui-port", "0", *arguments],
                    stdout=output,
                    stderr=output,
                    env={**environment, "SPARK_LOCAL_IP": host},
                    cwd=place,
                )
            )
        return log

    try:
        log = start("master.Master", "127.0.0.1", "--port", "0")
        address = when_written(log, lambda text: MASTER.search(text))[1]
        for host in ("127.0.0.2", "127.0.0.3"):  # a task is never started twice on one host
            start("worker.Worker", host, "--cores", "1", "--memory", "1g", "--work-dir", str(place / host), address)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(20)


@pytest.fixture(scope="module")
def spark(cluster, settings):
    """Slow tasks are started again on the other executor."""
    often = {
        "spark.executor.memory": "512m",
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.multiplier": "3",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "3s",
    }
    session = dpals.spark.session(cluster, settings={**settings, **often})
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def engine(spark):
    return dpals.spark.Engine(spark, tasks=4)


def test_a_whole_training_gives_the_same_bits(ratings, engine):
    assert_same_bits(lambda: dpals.PooledDPALS(8.0, insecure_seed=3, rank=3, steps=2), ratings, engine, 7)


def test_a_slow_task_is_run_twice_and_counts_once(ratings, engine, tmp_path):
    parts = in_parts(ratings, 4).blocks
    assert_same_pass(engine, weights(), [Slow(parts[0], tmp_path), *parts[1:]], parts)
    assert (tmp_path / "second").exists(), "the block was opened by two tasks"


def executor_above(path):
    """Of a worker that writes its id: the process of its executor, which is above the daemon of Python workers."""
    process = int(when_written(path, str.split)[1])
    while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{process}/cmdline").read_bytes():
        process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return process


def test_an_executor_that_is_killed_changes_nothing(ratings, engine, tmp_path):
    parts = in_parts(ratings, 4).blocks
    killer = threading.Thread(target=lambda: kill(executor_above(tmp_path / "processes")))
    killer.start()
    assert_same_pass(engine, weights(), [*parts[:2], Slow(parts[2], tmp_path), parts[3]], parts)
    killer.join()
    assert (tmp_path / "second").exists()
    assert np.array_equal(*(engine.run(weights(), parts)[0][0] for _ in range(2))), "the session goes on"


def test_a_master_that_says_nothing_is_an_error_within_a_minute(installed):  # noqa: ARG001
    """Something listens at the address, but it is no Spark master. Spark itself gives up after a minute."""
    code = (
        "import socket, time, dpals\n"
        "with socket.create_server(('127.0.0.1', 0)) as silent:\n"
        "    start = time.monotonic()\n"
        "    try:\n"
        "        dpals.spark.session(f'spark://127.0.0.1:{silent.getsockname()[1]}')\n"
        "    except (dpals.InputError, RuntimeError) as problem:\n"
        "        print(type(problem).__name__, problem, round(time.monotonic() - start))\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False).stdout
    name, *_, seconds = said.split()
    assert name == "InputError"
    assert int(seconds) < 60
