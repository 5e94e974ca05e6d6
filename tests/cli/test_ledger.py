"""``dpals ledger`` as a process."""

import json

import pytest
from tests.cli.conftest import run

import dpals


@pytest.fixture
def ledger(tmp_path):
    ledger = dpals.Ledger(tmp_path / "ledger.db")
    ledger.declare("films", epsilon=1.0, delta=1e-6)
    ledger.spend("films", "item counts", cost=10**17)
    return ledger


def test_show(ledger):
    text = run("ledger", "show", ledger.path).stdout
    for word in ("films: item counts", "spent in all", "allowed", "epsilon 1.0, delta 1e-06"):
        assert word in text
    entries = json.loads(run("ledger", "show", ledger.path, "--json").stdout)
    assert [entry["kind"] for entry in entries] == ["budget", "spend"]
    assert entries[1]["cost"] == 10**17


def test_what_was_paid_and_not_published_is_marked(ledger):
    for number in (1, 2):
        ledger.spend("films", f"release {number}", cost=7, receipt=f"run/{number}")
    ledger.publish("films", "run/1", "digest")
    lines = run("ledger", "show", ledger.path).stdout.splitlines()
    assert [line.endswith("not published") for line in lines] == [False, False, False, True, False]
    assert "release 2, not published" in lines[3]


def test_verify(ledger):
    assert ledger.verify() in run("ledger", "verify", ledger.path).stdout
    told = json.loads(run("ledger", "verify", ledger.path, "--json").stdout)
    assert told == {"sound": True, "head": ledger.verify()}
    ledger.path.write_bytes(b"scribble")
    for action in ("verify", "show"):
        result = run("ledger", action, ledger.path)
        assert result.returncode == 1
        assert "cannot be trusted" in result.stderr


def test_verify_finds_out_a_head_that_never_was(ledger):
    result = run("ledger", "verify", ledger.path, "--head", "0" * 64)
    assert result.returncode == 1
    assert "never was in it" in result.stderr


def test_declare(tmp_path):
    result = run("ledger", "declare", "book.db", "films", "--epsilon", 2, "--delta", 1e-6, cwd=tmp_path)
    assert result.returncode == 0
    assert "films: mu 0.448" in result.stdout
    ledger = dpals.Ledger(tmp_path / "book.db")
    assert ledger.allowance("films") == dpals.Budget(2.0, 1e-6).cost
    wrong = run("ledger", "declare", "other.db", "films", "--epsilon", -2, "--delta", 1e-6, cwd=tmp_path)
    assert wrong.returncode == 1
    assert "epsilon must be a positive number" in wrong.stderr
    assert not (tmp_path / "other.db").exists()
