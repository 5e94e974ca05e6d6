"""A Spark session, and the errors of Spark in words that say what to do."""

import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

from dpals.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(
    master: str | None = None, *, settings: Mapping[str, str] | None = None, wait_seconds: float = 45
) -> "SparkSession":
    """A Spark session, or an `InputError` that says why there is none.

    Parameters
    ----------
    master
        Such as ``spark://host:7077`` or ``local[2]``; by default what ``spark-submit`` says, or this machine.
    settings
        Of Spark. Where others use the network or the machines, encrypt what executors exchange and write to local
        disks: ``{"spark.authenticate": "true", "spark.network.crypto.enabled": "true",
        "spark.io.encryption.enabled": "true"}``, and outside YARN and Kubernetes ``spark.authenticate.secret`` as well.
    wait_seconds
        How long the first executor may take to answer.
    """
    builder: SparkSession.Builder = _pyspark().sql.SparkSession.builder
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    if not submitted and shutil.which(java) is None:
        raise InputError(f"Spark needs Java 17 or later, and there is no {java}: apt-get install default-jre-headless")
    _check_answers(master or "")
    usual = {
        "spark.app.name": "dpals",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if master or not submitted:
        usual["spark.master"] = master or "local[*,4]"  # a task that fails is tried four times
    if not submitted and usual["spark.master"].startswith("local"):  # Spark would take whatever python3 is on the path
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = builder.config(map={**usual, **(settings or {})})
    tried: Future[int] = Future()
    Thread(target=_try, args=(builder, tried), daemon=True).start()
    with clear_errors():
        try:
            tried.result(wait_seconds)
        except TimeoutError:
            raise InputError(
                f"Spark, master {master or usual.get('spark.master')}, did no work within {wait_seconds:g} seconds: "
                "is this the address of a master, and has it free workers?"
            ) from None
        return builder.getOrCreate()


def _try(builder: "SparkSession.Builder", tried: "Future[int]") -> None:
    """Make a session and let an executor do something: where nobody answers, Spark waits for minutes or for ever."""
    try:
        tried.set_result(builder.getOrCreate().range(1).count())
    except Exception as problem:
        tried.set_exception(problem)


def _check_answers(master: str) -> None:
    """Raise if nothing listens at the address of a standalone master: Spark would try for a long time."""
    places = re.findall(r"([^,/:]+):(\d+)", master) if master.startswith("spark://") else []
    for host, port in places:
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=10):
            return
    if places:
        raise InputError(f"the Spark master {master} does not answer: is it running, and is this its address?")


def active() -> "SparkSession":
    """The session that is active."""
    spark: SparkSession = _pyspark().sql.SparkSession.active()
    return spark


def _pyspark() -> Any:
    try:
        import pyspark.sql
    except ModuleNotFoundError as problem:
        raise InputError(f"Spark is not installed ({problem}): pip install 'dpals[spark]'") from None
    return pyspark


@contextmanager
def clear_errors() -> Iterator[None]:
    """Errors of Spark in one sentence that says what to do. Whatever was under way, it was before any noise."""
    _pyspark()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as problem:
        text = str(problem)
        if "No module named 'dpals'" in text:
            raise InputError("the executors have no dpals: install the same version on each of them") from problem
        lines = re.findall(r"^(?:dpals\.errors\.)?(\w[\w.]*(?:Error|Exception)\b.*)$", text, re.MULTILINE)
        reason = [text.split("\n")[0], *lines][-1]
        if reason.startswith("InputError: "):
            raise InputError(reason.removeprefix("InputError: ")) from problem
        raise RuntimeError(f"Spark did not finish, and nothing was spent for this pass: {reason}") from problem
