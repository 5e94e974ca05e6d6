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
    assert "films: item counts" in text
    assert text.splitlines()[-1] == (
        "films: epsilon 0.2862 at delta 1e-06 (mu 0.07363) spent in all, "
        "epsilon 1 at delta 1e-06 (mu 0.2367) allowed in all"
    )
    told = json.loads(run("ledger", "show", ledger.path, "--json").stdout)
    assert [entry["kind"] for entry in told["entries"]] == ["budget", "spend"]
    assert told["entries"][1]["cost"] == 10**17
    facts = told["datasets"]["films"]
    assert (facts["cost"], facts["budget"]) == (10**17, {"epsilon": 1.0, "delta": 1e-6})
    assert (facts["epsilon"], facts["delta"]) == ledger.total("films").at(1e-6)
    assert told["open_runs"] == []


def test_show_names_searches_and_hides_what_is_about_people(ledger):
    ledger.enter_search("films", "search with DPALS", 0.25, 5e-7)
    ledger.note_users("films", range(5))
    text = run("ledger", "show", ledger.path).stdout
    assert "a search: epsilon 0.25 at delta 5e-07" in text
    told = json.loads(run("ledger", "show", ledger.path, "--json").stdout)
    assert told["datasets"]["films"]["searches"] == [[0.25, 5e-7]]
    for entry in ledger.entries():
        for secret in (entry.nonce, *entry.sketch):
            assert secret not in text + json.dumps(told)


def test_runs_that_have_not_ended_are_listed_and_can_be_released(ledger):
    for name, adaptive in (("plain", False), ("adaptive", True)):
        ledger.reserve("books", f"training {name}", dpals.Budget(1.0, 1e-6), name, adaptive)
        ledger.spend("books", "counts", 10**15, run=name)
    shown = run("ledger", "show", ledger.path).stdout
    for name in ("plain", "adaptive"):
        assert f"'training {name}' on 'books' since" in shown
        assert f"dpals ledger release {ledger.path} {name}" in shown
    told = json.loads(run("ledger", "show", ledger.path, "--json").stdout)
    assert [held["name"] for held in told["open_runs"]] == ["plain", "adaptive"]
    whole = dpals.Budget(1.0, 1e-6).cost
    assert ledger.spent("books") == 2 * whole
    assert "gives back what it did not spend" in run("ledger", "release", ledger.path, "plain").stdout
    assert ledger.spent("books") == whole + 10**15
    given_back = json.loads(run("ledger", "release", ledger.path, "adaptive", "--json").stdout)["given_back"]
    assert given_back == 0
    assert ledger.spent("books") == whole + 10**15
    again = run("ledger", "release", ledger.path, "plain")
    assert again.returncode == 1
    assert "has no open run 'plain'" in again.stderr


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


def test_verify_takes_the_head_before_the_first_entry(tmp_path):
    path = tmp_path / "ledger.db"
    head = dpals.Ledger(path).verify()
    dpals.Ledger(path).spend("films", "counts", 1)
    assert run("ledger", "verify", path, "--head", head).returncode == 0


def test_verify_finds_out_a_head_that_never_was(ledger):
    result = run("ledger", "verify", ledger.path, "--head", "0" * 64)
    assert result.returncode == 1
    assert "was never in this ledger" in result.stderr


def test_declare(tmp_path):
    result = run("ledger", "declare", "book.db", "films", "--epsilon", 2, "--delta", 1e-6, cwd=tmp_path)
    assert result.returncode == 0
    assert "films: epsilon 2 at delta 1e-06 (mu 0.4483) allowed in all, epsilon 0 at delta" in result.stdout
    ledger = dpals.Ledger(tmp_path / "book.db")
    assert ledger.allowance("films") == dpals.Budget(2.0, 1e-6).cost
    wrong = run("ledger", "declare", "other.db", "films", "--epsilon", -2, "--delta", 1e-6, cwd=tmp_path)
    assert wrong.returncode == 1
    assert "epsilon must be a positive number" in wrong.stderr
    assert not (tmp_path / "other.db").exists()
