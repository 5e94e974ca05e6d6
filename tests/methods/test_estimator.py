"""What every private method does with a ledger besides spending."""

from types import SimpleNamespace

import numpy as np
import pytest

import dpals
from dpals.methods.estimator import note_population

RATINGS = dpals.simulate.movielens_like(n_users=300, n_items=40, mean_ratings=25, seed=1)


def test_the_same_people_under_a_new_name_are_warned_of_and_trained_on(tmp_path, caplog):
    ledger = dpals.Ledger(tmp_path / "ledger.db")
    dpals.ItemMean(1.0).fit(RATINGS, ledger=ledger, dataset="films")
    dpals.ItemMean(1.0).fit(RATINGS, ledger=ledger, dataset="films")
    assert "already" not in caplog.text
    copied = dpals.ItemMean(1.0).fit(RATINGS, ledger=ledger, dataset="a copy of films")
    assert "many users of 'a copy of films' are in this ledger as 'films' already" in caplog.text
    said = str(copied.privacy).replace("a copy of films", "")
    assert "films" not in said, "it depends on the data, so it is not published"


def test_rows_that_are_only_numbered_are_not_taken_for_people():
    ledger = dpals.Ledger()
    note_population(ledger, "films", SimpleNamespace(users=np.arange(5), anonymous=True))
    assert ledger.entries() == []
    note_population(ledger, "films", SimpleNamespace(users=np.arange(5), anonymous=False))
    assert {entry.kind for entry in ledger.entries()} == {"population"}


def test_ids_are_the_same_people_as_numbers_and_as_text(caplog):
    ledger = dpals.Ledger()
    note_population(ledger, "films", SimpleNamespace(users=np.arange(500)))
    note_population(ledger, "films as text", SimpleNamespace(users=np.arange(500).astype(str)))
    assert "as 'films' already" in caplog.text


def test_a_ledger_that_is_none_is_refused_before_anything_else():
    with pytest.raises(dpals.InputError, match=r"ledger must be a dpals\.Ledger"):
        dpals.ItemMean(1.0).fit(RATINGS, ledger="ledger.db")


def test_the_statement_of_each_step_counts_the_whole_run(tmp_path):
    """Until a run ends, it may still spend all that it reserved."""
    steps, ledger = [], dpals.Ledger(tmp_path / "ledger.db")
    method = dpals.PrivateBiases(1.0, 1e-5, steps=2).fit(RATINGS, ledger=ledger, callbacks=[steps.append])
    assert [step.model.privacy.dataset_epsilon for step in steps] == [1.0, 1.0]
    assert steps[0].model.privacy.epsilon < method.privacy.epsilon <= 1.0
