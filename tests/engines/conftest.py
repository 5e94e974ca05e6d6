"""A session of Spark for each file of tests that asks for it, and ratings to train on."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dpals

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def installed():
    """Skip the tests where Spark cannot run."""
    if find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed: pip install 'dpals[spark]'")
    if shutil.which("java") is None:
        pytest.skip("there is no Java: apt-get install default-jre-headless")


@pytest.fixture(scope="session")
def settings(installed):  # noqa: ARG001
    """Executors run this very source, and can tell that they are not the driver."""
    here = {
        "PYTHONPATH": os.pathsep.join([str(Path(dpals.__file__).parents[1]), str(ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
        "DPALS_TEST_DRIVER": str(os.getpid()),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in here.items():
            patch.setenv(name, value)
        for_executors = {f"spark.executorEnv.{name}": value for name, value in here.items()}
        yield {"spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1", **for_executors}


@pytest.fixture(scope="module")
def spark(settings):
    session = dpals.spark.session("local[2,4]", settings=settings)
    session.sparkContext.setLogLevel("OFF")  # tests kill workers
    yield session
    session.stop()


@pytest.fixture(scope="module")
def engine(spark):
    return dpals.spark.Engine(spark)


@pytest.fixture(scope="module")
def ratings():
    return dpals.simulate.movielens_like(n_users=300, n_items=40, mean_ratings=22, seed=2)
