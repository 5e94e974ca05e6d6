"""The statement in words."""

import re
from pathlib import Path

import pytest

import dpals
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import Budget
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism
from dpals.statement.record import Statement
from dpals.statement.text import GLOSSARY, NOT_COVERED, SEE_GLOSSARY

BUDGET = Budget(epsilon=1.0, delta=1e-5)


def test_the_record_names_the_head_of_a_ledger_on_disk(statement, tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    mechanism = Mechanism(BUDGET, ledger)
    mechanism.release(Query("all", 3, sensitivity=1.0), [], BUDGET.cost)
    on_disk = Statement.of(mechanism, ())
    assert on_disk.ledger_head == ledger.verify()
    assert ledger.verify() in str(on_disk)
    assert "in memory only" in str(statement())


@pytest.mark.parametrize("form", [str, Statement.to_html])
def test_says_all_that_a_reviewer_asks_for(statement, form):
    text = form(statement())
    for word in ["epsilon = 1 at delta = 1e-05", "One user with all their ratings", "adding or removing"]:
        assert word in text
    for word in [
        "release 0",
        "release 1",
        "25.0%",
        "75.0%",
        "recognises at most 2%",
        "AES-256",
        "ledger in memory only",
    ]:
        assert word in text
    for line in NOT_COVERED:
        assert line in text
    assert "NOT PRIVATE" not in text


@pytest.mark.parametrize("form", [str, Statement.to_html, Statement.to_json])
def test_a_seed_taints_every_form(statement, form):
    tainted = statement(insecure_seed=1)
    assert not tainted.is_private
    assert "NOT PRIVATE" in form(tainted)
    assert "AES-256" not in form(tainted)


def test_numbers_shown_are_never_smaller_than_the_truth():
    mechanism = Mechanism(Budget(epsilon=1.23456, delta=1e-5))
    mechanism.release(Query("all", 3, sensitivity=1.0), [], mechanism.budget.cost)
    assert "epsilon = 1.235 " in str(Statement.of(mechanism, ()))


def test_the_glossary_is_named(statement):
    assert str(statement()).endswith(f"\n\nTerms\n  {SEE_GLOSSARY}")


def test_terms_are_those_of_the_glossary():
    pages = Path(dpals.__file__).parents[2] / "docs"
    glossary = (pages / re.search(r"docs/(\w+\.md)", SEE_GLOSSARY)[1]).read_text()
    assert [term for term in GLOSSARY if f"**{term}**" not in glossary] == []
