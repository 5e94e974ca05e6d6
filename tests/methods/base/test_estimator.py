"""What every private method does with a ledger besides spending."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import dpals
from dpals.methods.base.estimator import note_users

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
    note_users(ledger, "films", dpals.Ratings.from_csr(csr_array(np.ones((5, 1))), implicit=True))
    assert ledger.entries() == []
    note_users(ledger, "films", dpals.Ratings.from_arrays(range(5), [1] * 5))
    assert {entry.kind for entry in ledger.entries()} == {"population"}


def test_ids_are_the_same_people_as_numbers_and_as_text(caplog):
    ledger = dpals.Ledger()
    note_users(ledger, "films", dpals.Ratings.from_arrays(range(500), [1] * 500))
    note_users(ledger, "films as text", dpals.Ratings.from_arrays([str(user) for user in range(500)], [1] * 500))
    assert "as 'films' already" in caplog.text


def test_a_ledger_that_is_none_is_refused_before_anything_else():
    with pytest.raises(dpals.InputError, match=r"ledger must be a dpals\.Ledger"):
        dpals.ItemMean(1.0).fit(RATINGS, ledger="ledger.db")


@pytest.mark.parametrize("scale", [(1, 1e16), (-1e30, 5)])
def test_ratings_whose_sums_of_squares_could_overflow_are_refused_before_anything_else(scale):
    ledger = dpals.Ledger()
    ratings = dpals.Ratings.from_arrays([1, 2], [1, 2], [3, 4], rating_range=scale)
    with pytest.raises(dpals.InputError, match="declare a narrower one"):
        dpals.PooledDPALS(1.0).fit(ratings, ledger=ledger)
    assert ledger.entries() == []


def test_the_statement_of_each_step_counts_the_whole_run(tmp_path):
    """Until a run ends, it may still spend all that it reserved."""
    steps, ledger = [], dpals.Ledger(tmp_path / "ledger.db")
    method = dpals.DPSGD(1.0, 1e-5, steps=2).fit(RATINGS, ledger=ledger, callbacks=[steps.append])
    assert [step.model.privacy.dataset_epsilon for step in steps] == [1.0, 1.0]
    assert steps[0].model.privacy.epsilon < method.privacy.epsilon <= 1.0


def test_of_two_fits_at_once_the_second_is_refused_whole_and_the_first_finishes(tmp_path):
    """The second one begins while the first is between its steps. The budget is enough for one and a half."""
    ledger, refused = dpals.Ledger(tmp_path / "ledger.db"), []
    ledger.declare("films", 1.3, 1e-5)

    def meanwhile(_step):
        with pytest.raises(dpals.PrivacyBudgetExceeded, match="Runs that have not ended hold") as refusal:
            dpals.DPSGD(1.0, 1e-5).fit(RATINGS, ledger=dpals.Ledger(ledger.path), dataset="films")
        refused.append(refusal)

    first = dpals.DPSGD(1.0, 1e-5, steps=2)
    first.fit(RATINGS, ledger=ledger, dataset="films", callbacks=[meanwhile])
    assert len(refused) == 2
    assert ledger.spent("films") == sum(release.cost for release in first.privacy.releases)
    assert ledger.open_runs() == []


@pytest.mark.parametrize("method", [dpals.DPSGD, dpals.PooledDPALS])
def test_an_interrupted_fit_gives_back_what_it_may(method, tmp_path):
    ledger = dpals.Ledger(tmp_path / "ledger.db")

    def stop(_step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        method(1.0, 1e-5).fit(RATINGS, ledger=ledger, callbacks=[stop])
    spent = sum(entry.cost for entry in ledger.entries() if entry.kind == "spend")
    whole = dpals.Budget(1.0, 1e-5).cost
    assert 0 < spent < 0.9 * whole
    assert ledger.spent("ratings") == (whole if method.adaptive_costs else spent)
    assert ledger.open_runs() == []
