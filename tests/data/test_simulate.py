import itertools
import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from tests.reference_als import ExplicitALS, ImplicitALS

import dpals
from dpals.data.simulate import _pick, movielens_like, paper_synthetic


def user_of_rating(ratings):
    return np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))


def same(one, two):
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ("indptr", "indices", "values"))


class Split:
    """A random 80 % of the entries to train, 10 % to test; the rest would be for validation."""

    def __init__(self, ratings):
        part = np.random.default_rng(1).random(ratings.n_ratings)
        users = user_of_rating(ratings)
        train, test = part < 0.8, part >= 0.9
        self.train = csr_array(
            (ratings.values[train], (users[train], ratings.indices[train])), (ratings.n_users, ratings.n_items)
        )
        self.users, self.items, self.values = users[test], ratings.indices[test], ratings.values[test]

    def rmse(self, prediction):
        return float(np.sqrt(np.mean((prediction - self.values) ** 2, dtype=np.float64)))

    def rmse_of_als(self, **settings):
        return self.rmse(np.clip(ExplicitALS(**settings).fit(self.train).predict(self.users, self.items), 0.5, 5))

    def rmse_of_means(self):
        """Test error of the global mean, users' means, items' means, and the two biases together."""
        entries = self.train.tocoo()
        mean = entries.data.mean(dtype=np.float64)
        centred = entries.data - mean

        def shrunken_mean(index, values, length, ridge):
            return np.bincount(index, values, length) / (np.bincount(index, minlength=length) + ridge)

        n_users, n_items = self.train.shape
        user_mean = shrunken_mean(entries.row, centred, n_users, 1e-9)
        item_mean = shrunken_mean(entries.col, centred, n_items, 1e-9)
        user_bias = np.zeros(n_users)
        for _ in range(6):
            item_bias = shrunken_mean(entries.col, centred - user_bias[entries.row], n_items, 3)
            user_bias = shrunken_mean(entries.row, centred - item_bias[entries.col], n_users, 5)
        return {
            "global": self.rmse(mean),
            "user": self.rmse(mean + user_mean[self.users]),
            "item": self.rmse(mean + item_mean[self.items]),
            "biases": self.rmse(mean + user_bias[self.users] + item_bias[self.items]),
        }


class NewUsers:
    """Ratings of 4 stars and more as implicit feedback; 80 % of the pairs of held-out users are their history."""

    def __init__(self, ratings, held_out):
        rng = np.random.default_rng(2)
        liked = ratings.values >= 4
        users, items = user_of_rating(ratings)[liked], ratings.indices[liked]
        order = rng.permutation(ratings.n_users)
        new = np.isin(users, order[:held_out])
        row = np.empty_like(order)
        row[order] = np.arange(len(order))
        rows, target = row[users], rng.random(len(users)) < 0.2

        def pairs(chosen, first, count):
            ones = np.ones(np.count_nonzero(chosen), np.float32)
            return csr_array((ones, (rows[chosen] - first, items[chosen])), (count, ratings.n_items))

        self.train = pairs(~new, held_out, ratings.n_users - held_out)
        self.history = pairs(new & ~target, 0, held_out)
        self.target = pairs(new & target, 0, held_out)

    def recall(self, score, k=20):
        """Mean Recall@k of ``score(rows)``, in blocks of users."""
        recalls = []
        for start in range(0, self.history.shape[0], 1000):
            rows = slice(start, start + 1000)
            scores = np.where(self.history[rows].toarray() > 0, -np.inf, score(rows))
            top = np.argpartition(-scores, k, axis=1)[:, :k]
            wanted = self.target[rows].toarray()
            number = wanted.sum(axis=1)
            hits = np.take_along_axis(wanted, top, axis=1).sum(axis=1)
            recalls.append((hits / np.minimum(k, np.maximum(number, 1)))[number > 0])
        return float(np.concatenate(recalls).mean())

    def recall_of_popularity(self):
        return self.recall(lambda _: self.train.sum(axis=0))

    def recall_of_als(self, **settings):
        model = ImplicitALS(**settings).fit(self.train)
        users = model.fold_in(self.history)
        return self.recall(lambda rows: users[rows] @ model.items.T)


@pytest.fixture(scope="module")
def full_size():
    return movielens_like(seed=1)


@pytest.fixture(scope="module", params=["a tenth of the users", pytest.param("full size", marks=pytest.mark.slow)])
def like_10m(request):
    """The whole catalogue, and enough users for the same facts to hold; the constants were calibrated at full size."""
    return request.getfixturevalue("full_size") if request.param == "full size" else movielens_like(6_988, seed=1)


class TestMovielensLikeAtFullSize:
    """The facts of MovieLens 10M that the constants of the simulation were calibrated against."""

    def test_declares_public_facts(self, like_10m):
        assert isinstance(like_10m, dpals.Ratings)
        assert like_10m.rating_range == (0.5, 5.0)
        assert like_10m.catalogue_declared
        assert_array_equal(like_10m.items, np.arange(10_677))
        assert like_10m.n_users in (69_878, 6_988)

    def test_stars(self, like_10m):
        assert_array_equal(np.unique(like_10m.values), np.arange(1, 11) / 2)
        assert 3.5 <= like_10m.values.mean(dtype=np.float64) <= 3.7
        assert 1.04 <= like_10m.values.std(dtype=np.float64) <= 1.06

    def test_popularity(self, like_10m):
        counts = np.sort(np.bincount(like_10m.indices, minlength=like_10m.n_items))[::-1]
        assert 0.85 <= counts[: len(counts) // 5].sum() / like_10m.n_ratings <= 0.87
        assert counts[: len(counts) // 20].sum() / like_10m.n_ratings > 0.5

    def test_ratings_per_user(self, like_10m):
        counts = np.diff(like_10m.indptr)
        assert counts.min() == 20
        assert 69 <= np.median(counts) <= 95
        assert_allclose(counts.mean(), 143, atol=0.1)

    @pytest.mark.slow
    def test_the_heaviest_user(self, full_size):
        assert full_size.n_users == 69_878
        assert 4_000 <= np.diff(full_size.indptr).max() <= 8_000  # 7,359 in MovieLens

    def test_heavy_users_rate_the_tail(self, like_10m):
        of_user = np.diff(like_10m.indptr)[user_of_rating(like_10m)]
        of_item = np.bincount(like_10m.indices)[like_10m.indices]
        assert -0.3 <= np.corrcoef(of_user, of_item)[0, 1] <= -0.2

    def test_popular_items_are_better(self, like_10m):
        counts = np.bincount(like_10m.indices, minlength=like_10m.n_items)
        sums = np.bincount(like_10m.indices, like_10m.values, like_10m.n_items)
        rated = counts > 0
        correlation = np.corrcoef(np.log(counts[rated]), sums[rated] / counts[rated])[0, 1]
        assert 0.1 <= correlation <= 0.5

    @pytest.mark.slow
    def test_means_and_biases(self, full_size):
        rmse = Split(full_size).rmse_of_means()
        assert 1.04 <= rmse["global"] <= 1.06
        assert 0.95 <= rmse["user"] <= 0.98
        assert 0.93 <= rmse["item"] <= 0.95
        assert 0.848 <= rmse["biases"] <= 0.86

    @pytest.mark.slow
    def test_als(self, full_size):
        split = Split(full_size)
        assert 0.755 <= split.rmse_of_als() <= 0.765
        assert 0.755 <= split.rmse_of_als(biases=False) <= 0.785

    @pytest.mark.slow
    def test_taste_shows_in_what_is_picked(self, full_size):
        users = NewUsers(full_size, held_out=10_000)
        popularity, als = users.recall_of_popularity(), users.recall_of_als()
        assert 0.1 <= popularity <= 0.16
        assert als >= 0.23


class TestMovielensLikeAtOtherSizes:
    @pytest.mark.parametrize(
        ("n_users", "n_items", "mean_ratings"),
        [(2_000, 500, 143), (5_000, 3_000, 143), (3_000, 20_108, 73), (50, 30, 29.5), (50, 30, 20), (7, 12, 12)],
    )
    def test_ratings_per_user(self, n_users, n_items, mean_ratings):
        ratings = movielens_like(n_users, n_items, mean_ratings)
        counts = np.diff(ratings.indptr)
        assert (ratings.n_users, ratings.n_items) == (n_users, n_items)
        assert counts.min() >= min(20, n_items)
        assert_allclose(counts.mean(), mean_ratings, atol=0.2)

    @pytest.mark.parametrize("n_items", [1, 2, 19, 20, 21])
    def test_one_user_of_a_tiny_catalogue_rates_all_of_it(self, n_items):
        assert_array_equal(movielens_like(1, n_items, n_items).indices, np.arange(n_items))

    @pytest.mark.parametrize(
        ("n_users", "n_items", "mean_ratings", "complaint"),
        [
            (10, 100, 143, "between 20, .* and 100, .* not 143"),
            (10, 100, 19, "between 20, .* and 100, .* not 19"),
            (10, 100, float("nan"), "not nan"),
            (0, 100, 50, "at least one user"),
            (10, 0, 0, "at least one user and one item"),
        ],
    )
    def test_impossible_sizes(self, n_users, n_items, mean_ratings, complaint):
        with pytest.raises(dpals.InputError, match=complaint):
            movielens_like(n_users, n_items, mean_ratings)

    def test_same_seed_same_bits_whatever_the_number_of_threads(self, monkeypatch):
        versions = []
        for threads in (1, 5):
            monkeypatch.setattr(os, "cpu_count", lambda threads=threads: threads)
            versions.append(movielens_like(4_000, 1_000, 50, seed=3))
        assert same(*versions)

    def test_other_seed_other_ratings(self):
        one, two = (movielens_like(200, 100, 30, seed=seed) for seed in (1, 2))
        assert not np.array_equal(one.indices, two.indices)
        assert not np.array_equal(one.indptr, two.indptr)

    def test_each_kind_of_model_finds_something(self):
        """As at full size, but the fewer the ratings the less a model can learn."""
        ratings = movielens_like(4_000, 1_000, 100, seed=1)
        split = Split(ratings)
        rmse = split.rmse_of_means()
        rmse["als"] = split.rmse_of_als(rank=8, steps=8)
        assert rmse["global"] - 0.06 > rmse["user"] > rmse["biases"] + 0.06
        assert rmse["global"] - 0.06 > rmse["item"] > rmse["biases"] + 0.06
        assert rmse["biases"] - 0.04 > rmse["als"]

        users = NewUsers(ratings, held_out=1_000)
        assert users.recall_of_als(rank=16, ridge=0.01) > 1.4 * users.recall_of_popularity()

    def test_items_are_drawn_one_after_the_other(self):
        """The chance of each pair in two draws without replacement, with odds 1 : 2 : 3 : 4."""
        odds = np.array([1, 2, 3, 4])
        n = 100_000
        log_odds = np.tile(np.log(odds).astype(np.float32), (n, 1))
        drawn = _pick(log_odds, np.full(n, 2), np.random.default_rng(0)).reshape(n, 2)
        for i, j in itertools.combinations(range(4), 2):
            share = np.mean((drawn == (i, j)).all(axis=1))
            p, q = odds[[i, j]] / odds.sum()
            assert_allclose(share, p * q / (1 - p) + q * p / (1 - q), atol=0.006)


@pytest.fixture(scope="module")
def task():
    return paper_synthetic(5_000, seed=1)


class TestPaperSynthetic:
    def test_factors_are_orthonormal(self, task):
        for factors, side in ((task.user_factors, 5_000), (task.item_factors, 1_000)):
            assert factors.shape == (side, 5)
            assert_allclose(factors.T @ factors, np.eye(5), atol=1e-12)

    def test_entries_are_those_of_a_matrix_of_rank_five_and_deviation_one(self, task):
        truth = task.scale * task.user_factors @ task.item_factors.T
        assert np.linalg.matrix_rank(truth[:500]) == 5
        assert_allclose(truth.std(), 1, rtol=1e-4)
        for part in (task.train, task.test):
            assert_allclose(part.values, truth[user_of_rating(part), part.indices], rtol=1e-6, atol=1e-6)
            assert_allclose(part.values.std(dtype=np.float64), 1, atol=0.01)

    def test_entries_are_seen_independently(self, task):
        p = 20 * np.log(5_000) / 1_000
        assert_allclose(task.train.n_ratings, 5e6 * p, atol=5 * np.sqrt(5e6 * p * (1 - p)))
        assert_allclose(task.test.n_ratings, 5e6 * p / 10, atol=5 * np.sqrt(5e6 * p / 10))
        for axis, other in ((0, 5_000), (1, 1_000)):  # binomial counts of items and of users
            counts = (task.train.to_csr() != 0).sum(axis=axis)
            assert_allclose(counts.var(), other * p * (1 - p), rtol=0.2)

    def test_train_and_test_are_disjoint(self, task):
        cells = [user_of_rating(part) * 1_000 + part.indices for part in (task.train, task.test)]
        assert len(np.intersect1d(*cells)) == 0

    def test_range_is_public_and_wide_enough(self, task):
        assert task.train.rating_range == task.test.rating_range == (-10.0, 10.0)
        assert task.train.catalogue_declared
        assert np.abs(task.train.values).max() < 10
        other = paper_synthetic(200, n_items=50, rank=1, seed=4)
        assert other.train.rating_range == (-10.0, 10.0)

    def test_everything_seen_leaves_nothing_to_test(self):
        task = paper_synthetic(40, n_items=30, rank=2)
        assert task.train.n_ratings == 40 * 30
        assert task.test.n_ratings == 0

    def test_seeds(self, monkeypatch):
        one = paper_synthetic(4_000, seed=1)
        monkeypatch.setattr(os, "cpu_count", lambda: 1)
        again, other = paper_synthetic(4_000, seed=1), paper_synthetic(4_000, seed=2)
        assert same(one.train, again.train)
        assert same(one.test, again.test)
        assert not same(one.train, other.train)

    @pytest.mark.parametrize(("n_users", "n_items", "rank"), [(3, 100, 5), (100, 3, 5), (100, 100, 0), (0, 10, 1)])
    def test_impossible_rank(self, n_users, n_items, rank):
        with pytest.raises(dpals.InputError, match="rank must lie between"):
            paper_synthetic(n_users, n_items, rank)
