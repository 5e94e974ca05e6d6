"""Hyper-parameters chosen under privacy."""

import json
import math

import numpy as np
import pytest

import dpals
from dpals.methods import private_search
from dpals.release import selection
from dpals.release.accounting import mu_of
from dpals.release.contribution import Contribution, Pattern
from dpals.release.mechanism import Mechanism
from dpals.release.selection import tries_distribution

RATINGS = dpals.simulate.movielens_like(n_users=1500, n_items=60, mean_ratings=20, seed=3)
LIKED = dpals.Ratings.from_arrays(
    RATINGS.users[RATINGS.rows], RATINGS.items[RATINGS.indices], catalogue=RATINGS.items.tolist()
)
GRID = {"bias_prior": [1e-6, 0.25], "residual_bound": [0.01, 0.5]}


def search(grid=GRID, estimator=None, **changes):
    arguments = {"epsilon": 4.0, "delta": 1e-5, "tries": 6, "insecure_seed": 1, **changes}
    return dpals.PrivateSearch(estimator or dpals.ItemMean(), grid, **arguments)


def mechanisms(monkeypatch):
    """All mechanisms that a search opens from now on: two for each try."""
    opened = []

    class RecordingMechanism(Mechanism):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.published, self.contributions = [], []
            opened.append(self)

        def release_together(self, population, function, public, queries):
            def watched(block, public):
                contributed = function(block, public)
                self.contributions += contributed if isinstance(contributed, tuple) else [contributed]
                return contributed

            results = super().release_together(population, watched, public, queries)
            self.published += results
            return results

    monkeypatch.setattr(dpals.PrivateSearch, "mechanism_class", RecordingMechanism)
    return opened


def test_each_try_spends_what_the_guarantee_says(monkeypatch):
    opened = mechanisms(monkeypatch)
    found = search(tries=20).fit(RATINGS)
    statement = found.privacy
    assert len(opened) >= 4
    for training, scoring in zip(opened[::2], opened[1::2], strict=True):
        assert mu_of(training.budget.cost + scoring.budget.cost) == statement.selection.mu
        assert scoring.spent / (training.spent + scoring.spent) == pytest.approx(0.1, rel=1e-3)
        assert training.spent + scoring.spent <= training.budget.cost + scoring.budget.cost
        assert not training.ledger.path
        assert not scoring.ledger.path
    tries = tries_distribution("geometric", 20.0)
    assert statement.epsilon == pytest.approx(selection.epsilon(statement.selection.mu, 1e-5, tries), rel=1e-9)
    assert 3.999 < statement.epsilon <= 4.0


def test_the_best_score_that_was_released_wins(monkeypatch):
    opened, made = mechanisms(monkeypatch), []

    def best_of(tries, n_candidates, attempt, insecure_seed):
        def recorded(candidate, seed):
            made.append(attempt(candidate, seed))
            return made[-1]

        return selection.best_of(tries, n_candidates, recorded, insecure_seed)

    monkeypatch.setattr(private_search, "best_of", best_of)
    found = search(tries=20).fit(RATINGS)
    scores = [score for score, _ in made]
    assert len(scores) > 3
    assert scores == [scoring.published[0][0, 0] for scoring in opened[1::2]]
    best = int(np.argmax(scores))
    assert found.best_params_ == made[best][1][0] == {"bias_prior": 0.25, "residual_bound": 0.5}
    assert found.model_.item_biases is made[best][1][1].item_biases
    shown = found.privacy.releases
    assert shown == (*opened[2 * best].releases, *opened[2 * best + 1].releases), "of the best try, and of no other"
    assert shown[-1].purpose == "score on ratings held back"


def test_no_two_tries_share_their_noise(monkeypatch):
    opened = mechanisms(monkeypatch)
    search({"bias_prior": [0.25]}, tries=20).fit(RATINGS)
    means = [training.published[0][0, 0] for training in opened[::2]]
    assert len(set(means)) == len(means)


@pytest.mark.parametrize("distribution", ["geometric", "logarithmic", "poisson"])
def test_finds_what_is_good_where_the_rest_is_terrible(distribution):
    """Where there was a try with it: with 30 tries on average that is nearly always so."""
    found = [search(distribution=distribution, tries=30, insecure_seed=seed).fit(RATINGS) for seed in range(4)]
    good = sum(one.best_params_ == {"bias_prior": 0.25, "residual_bound": 0.5} for one in found)
    assert good >= (1 if distribution == "logarithmic" else 3)


def test_implicit_feedback():
    grid = {"weight_exponent": [0.1, 0.3]}
    found = search(grid, dpals.PooledDPALS(rank=1, steps=1), tries=2).fit(LIKED)
    assert found.best_params_["weight_exponent"] in (0.1, 0.3)
    assert found.recommend(LIKED, k=5)[0].shape == (LIKED.n_users, 5)
    assert found.privacy.epsilon <= 4.0


def test_the_statement_is_that_of_a_search_in_every_form(tmp_path):
    found = search(insecure_seed=None).fit(RATINGS, dataset="films")
    statement = found.privacy
    assert statement.is_private
    assert (statement.mu, statement.dataset_mu, statement.ledger_head) == (None, None, None)
    assert statement.together == "unknown"
    for text in (str(statement), statement.to_html()):
        assert (
            "epsilon = 4 at delta = 1e-05, for the best of a secret number of tries (geometric, 6 on average)" in text
        )
        assert "from Gaussian" not in text
        assert "Releases of the best try" in text
        assert "in any other way than by this search." in text
        assert "All runs on this data together: unknown" in text
    bound = 1 - math.exp(-4.0) * (1 - 1e-5 - 0.01)
    assert statement.attack_power == pytest.approx(min(bound, math.exp(4.0) * 0.01 + 1e-5), rel=1e-3)
    assert dpals.Statement.from_json(statement.to_json()) == statement
    found.save(tmp_path / "model")
    assert dpals.load(tmp_path / "model").privacy == statement


def test_a_seed_repeats_the_search_and_taints_it():
    first, second = (search().fit(RATINGS) for _ in range(2))
    assert first.best_params_ == second.best_params_
    assert np.array_equal(first.model_.item_biases, second.model_.item_biases)
    assert not first.privacy.is_private
    assert "NOT PRIVATE" in str(first.privacy)


def test_what_is_kept_does_not_tell_how_many_tries_there_were(monkeypatch):
    """The same winner, after another number of tries, leaves the same behind."""

    def kept(number):
        gains = iter([0.5] + [-0.5] * number)
        monkeypatch.setattr(selection, "_number", lambda *_: number)
        monkeypatch.setattr(
            private_search, "score_contribution", lambda *_: Contribution(Pattern.one_item(1), np.array([next(gains)]))
        )
        found = search(epsilon=1000.0).fit(RATINGS)
        state = {name: value for name, value in vars(found).items() if name not in ("model_", "estimator")}
        assert vars(found.estimator) == dpals.ItemMean().get_params()
        return repr(state), found.privacy, found.model_.item_biases.tolist()

    assert kept(1) == kept(5)


def test_without_a_try_the_model_needs_no_data(monkeypatch):
    monkeypatch.setattr(selection, "_number", lambda *_: 0)
    for ratings, middle in ((RATINGS, 2.75), (LIKED, 0.0)):
        estimator = dpals.PooledDPALS(rank=1)
        found = search({"steps": [1, 2]}, estimator, distribution="poisson").fit(ratings)
        assert found.best_params_ is None
        assert found.model_.global_mean == middle
        assert not found.model_.item_biases.any()
        assert found.privacy.releases == ()
        assert 3.999 < found.privacy.epsilon <= 4.0, "that there was no try does not make the promise better"
        assert "poisson, 6 on average" in str(found.privacy)


def test_a_method_that_is_given_its_noise_gets_the_noise_of_the_search():
    noisy = dpals.DPALS(
        None, rank=2, steps=1, gram_noise=9.0, moment_noise=9.0, count_noise=9.0, frequent_fraction=0.5, insecure_seed=5
    )
    found = search({"ridge": [10.0, 40.0]}, noisy, tries=2).fit(RATINGS)
    assert 3.999 < found.privacy.epsilon <= 4.0
    assert noisy.epsilon is None


def test_a_method_fitted_before_is_searched_from_its_arguments():
    """PooledDPALS shows the rank it chose; what it was given is None."""
    before = dpals.PooledDPALS(2.0, steps=1, insecure_seed=1).fit(RATINGS)
    found = search({"clip": [1.0, 2.0]}, before, tries=2)
    assert found._with({"clip": 2.0}).rank is None
    assert found._with({"clip": 2.0}).clip == 2.0
    assert before.clip != 2.0


def test_a_search_is_entered_as_a_whole_before_it_begins(monkeypatch, tmp_path):
    ledger, seen = dpals.Ledger(tmp_path / "ledger.db"), []

    def best_of(*arguments):
        seen.append(ledger.total("films").searches)
        return selection.best_of(*arguments)

    monkeypatch.setattr(private_search, "best_of", best_of)
    found = search(insecure_seed=None).fit(RATINGS, ledger=ledger, dataset="films").privacy
    assert seen == [((found.epsilon, 1e-5),)] == [found.dataset_searches]
    assert (found.dataset_epsilon, found.dataset_delta) == (found.epsilon, 1e-5)
    assert found.ledger_head == ledger.verify()
    after = dpals.ItemMean(1.0, 1e-6).fit(RATINGS, ledger=ledger, dataset="films").privacy
    assert after.dataset_epsilon == pytest.approx(found.epsilon + 1.0, rel=1e-6)
    assert after.dataset_delta == pytest.approx(1.1e-5)
    assert "a search: epsilon 4 at delta 1e-05" in str(after)


def test_a_search_counts_against_a_declared_budget(monkeypatch):
    ledger = dpals.Ledger()
    ledger.declare("films", 5.0, 2e-5)
    search().fit(RATINGS, ledger=ledger, dataset="films")
    monkeypatch.setattr(private_search, "best_of", None)
    with pytest.raises(dpals.PrivacyBudgetExceeded, match=r"'search with ItemMean .*' would bring"):
        search().fit(RATINGS, ledger=ledger, dataset="films")
    with pytest.raises(dpals.PrivacyBudgetExceeded):
        dpals.ItemMean(1.1, 1e-5).fit(RATINGS, ledger=ledger, dataset="films")
    dpals.ItemMean(0.9, 1e-5).fit(RATINGS, ledger=ledger, dataset="films")
    assert ledger.total("films").seeded


def test_the_ledger_does_not_tell_how_many_tries_there_were(monkeypatch):
    for number in (0, 1, 5):
        monkeypatch.setattr(selection, "_number", lambda *_, number=number: number)
        ledger = dpals.Ledger()
        search(distribution="poisson").fit(RATINGS, ledger=ledger)
        assert [entry.kind for entry in ledger.entries()] == ["population", "population", "search"]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "the grid must say which arguments to choose"),
        ([1, 2], "the grid must say which arguments to choose"),
        ({"bias_prior": []}, "list of values for bias_prior"),
        ({"bias_prior": 0.25}, "list of values for bias_prior"),
        ({"bias_prior": "0.25"}, "list of values for bias_prior"),
        ({"nonsense": [1]}, "ItemMean has no parameter 'nonsense'"),
        ({"epsilon": [1.0, 2.0]}, "epsilon is set by the search"),
        ({"insecure_seed": [1]}, "insecure_seed is set by the search"),
        ({"bias_prior": [0.25, -1.0]}, "bias_prior must be a number above 0"),
    ],
)
def test_a_wrong_grid_is_refused_before_anything_is_released(grid, message, monkeypatch):
    opened = mechanisms(monkeypatch)
    with pytest.raises(ValueError, match=message):
        search(grid).fit(RATINGS)
    assert opened == []


def test_a_candidate_that_does_not_fit_the_data_is_refused_before_anything_is_released(monkeypatch):
    opened = mechanisms(monkeypatch)
    with pytest.raises(dpals.InputError, match="rank 61 is more than the number of items"):
        search({"rank": [2, 61]}, dpals.PooledDPALS()).fit(RATINGS)
    with pytest.raises(dpals.InputError, match="ItemMean needs ratings"):
        search().fit(LIKED)
    assert opened == []


@pytest.mark.parametrize("estimator", [dpals.ALS(), "ItemMean", search()])
def test_only_private_methods_can_be_searched(estimator):
    with pytest.raises(TypeError, match="needs a private method"):
        search({"rank": [1]}, estimator).fit(RATINGS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tries": 1.0},
        {"tries": math.inf},
        {"distribution": "fixed"},
        {"score_share": 1.0},
        {"validation_fraction": 0.0},
    ],
)
def test_arguments_are_checked(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        search(**wrong).fit(RATINGS)


def test_json_has_the_distribution_and_no_number_of_tries():
    data = json.loads(search().fit(RATINGS).privacy.to_json())
    assert data["selection"].keys() == {"distribution", "tries", "mu"}
    assert (data["selection"]["distribution"], data["selection"]["tries"]) == ("geometric", 6.0)


def test_the_log_does_not_tell_how_many_tries_there_were(caplog):
    ratings = dpals.simulate.movielens_like(n_users=300, n_items=60, mean_ratings=25, seed=1)
    with caplog.at_level("DEBUG", logger="dpals"):
        dpals.PrivateSearch(dpals.PooledDPALS(rank=2, steps=2), {"clip": [0.5, 1.0]}, epsilon=4.0, tries=3).fit(ratings)
    assert not caplog.records
