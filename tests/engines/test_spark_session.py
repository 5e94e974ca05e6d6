"""No session: errors that say why, and what to do."""

import socket
import sys

import pytest

import dpals


def test_a_master_that_is_not_there_is_an_error(installed):  # noqa: ARG001
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(dpals.InputError, match=f"127.0.0.1:{port} does not answer"):
            dpals.spark.session(f"spark://127.0.0.1:{port}")


def test_without_java_or_pyspark_the_error_says_what_to_install(monkeypatch, installed):  # noqa: ARG001
    with monkeypatch.context() as patch:
        patch.setenv("JAVA_HOME", "/nowhere")
        patch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
        with pytest.raises(dpals.InputError, match="apt-get install default-jre-headless"):
            dpals.spark.session("local[1]")
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(dpals.InputError, match=r"pip install 'dpals\[spark\]'"):
        dpals.spark.session("local[1]")
