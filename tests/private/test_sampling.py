import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpals
from dpals.private.sampling import adaptive_weights, least_counted, on_items, uniform_sample

N_ITEMS = 12
histories = st.dictionaries(
    st.integers(0, 10**9), st.sets(st.integers(0, N_ITEMS - 1), max_size=N_ITEMS), min_size=1, max_size=8
).filter(lambda users: any(users.values()))
most = st.integers(1, N_ITEMS + 2)


def to_ratings(history):
    """Ratings whose value says which item it is of."""
    pairs = [(user, item, 1 + item / 100) for user in sorted(history) for item in history[user]]
    users, items, values = zip(*pairs, strict=True)
    return dpals.Ratings.from_arrays(
        users,
        [f"item {i}" for i in items],
        values,
        rating_range=(1, 2),
        catalogue=[f"item {i}" for i in range(N_ITEMS)],
    )


def by_user(ratings):
    """{user id: {item id: value}} of a Ratings."""
    found = {user: {} for user in ratings.users.tolist()}
    users, items = ratings.users[ratings.rows].tolist(), ratings.items[ratings.indices].tolist()
    for user, item, value in zip(users, items, ratings.values.tolist(), strict=True):
        found[user][item] = value
    return found


def random_ratings(n_users, n_items, share=0.5, seed=0):
    users, items = np.nonzero(np.random.default_rng(seed).random((n_users, n_items)) < share)
    return dpals.Ratings.from_arrays(users, items, catalogue=range(n_items))


@settings(max_examples=50)
@given(histories, most, st.integers(0, 5))
def test_a_uniform_sample_has_at_most_so_many_of_each_user_and_only_true_ones(history, at_most, seed):
    ratings = to_ratings(history)
    everything, chosen = by_user(ratings), by_user(uniform_sample(ratings, at_most, seed))
    assert chosen.keys() == everything.keys()
    for user, rated in everything.items():
        assert len(chosen[user]) == min(at_most, len(rated))
        assert chosen[user].items() <= rated.items()


@settings(max_examples=50)
@given(histories, most, st.data())
def test_the_least_counted_are_those_of_a_plain_sort(history, at_most, data):
    ratings = to_ratings(history)
    counts = np.array(data.draw(st.lists(st.integers(-3, 5), min_size=N_ITEMS, max_size=N_ITEMS)), float)
    chosen = by_user(least_counted(ratings, counts, at_most))
    for user, rated in by_user(ratings).items():
        places = [int(item.removeprefix("item ")) for item in rated]
        first = sorted(places, key=lambda place: (counts[place], place))[:at_most]
        assert chosen[user] == {f"item {place}": rated[f"item {place}"] for place in first}


@settings(max_examples=50)
@given(histories, most, st.data())
def test_what_is_chosen_of_a_user_does_not_change_when_others_leave(history, at_most, data):
    ratings = to_ratings(history)
    staying = np.array(data.draw(st.lists(st.booleans(), min_size=ratings.n_users, max_size=ratings.n_users)))
    fewer = ratings.take_users(staying)
    counts = np.arange(N_ITEMS, dtype=float) % 3
    for choose in (lambda r: uniform_sample(r, at_most, 1), lambda r: least_counted(r, counts, at_most)):
        before, after = by_user(choose(ratings)), by_user(choose(fewer))
        assert after == {user: before[user] for user in fewer.users.tolist()}


@settings(max_examples=50)
@given(histories, st.data())
def test_weights_of_a_user_keep_their_bits_when_others_leave(history, data):
    ratings = to_ratings(history)
    staying = np.array(data.draw(st.lists(st.booleans(), min_size=ratings.n_users, max_size=ratings.n_users)))
    popularity = np.linspace(-4.0, 300.0, N_ITEMS)
    before = adaptive_weights(ratings, popularity, 0.3)
    after = adaptive_weights(ratings.take_users(staying), popularity, 0.3)
    assert np.array_equal(after, before[staying[ratings.rows]])


def test_a_uniform_sample_favours_no_item():
    ratings = random_ratings(4_000, 10, share=1.0)
    counts = np.bincount(uniform_sample(ratings, 3, seed=2).indices, minlength=10)
    expected, deviation = 4_000 * 0.3, np.sqrt(4_000 * 0.3 * 0.7)
    assert (abs(counts - expected) < 5 * deviation).all()


def test_other_seeds_choose_otherwise_and_the_same_seed_the_same():
    ratings = random_ratings(50, 20)
    first, again, other = (uniform_sample(ratings, 3, seed).indices for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@settings(max_examples=50)
@given(histories, st.lists(st.booleans(), min_size=N_ITEMS, max_size=N_ITEMS).filter(any))
def test_on_items_keeps_ids_and_values_of_the_chosen_items(history, chosen):
    ratings = to_ratings(history)
    restricted = on_items(ratings, np.array(chosen))
    kept = [item for item, wanted in zip(ratings.items.tolist(), chosen, strict=True) if wanted]
    assert restricted.items.tolist() == kept
    for user, rated in by_user(restricted).items():
        assert rated == {item: value for item, value in by_user(ratings)[user].items() if item in kept}


@settings(max_examples=50)
@given(histories, st.floats(0, 1), st.lists(st.floats(-50, 1e6), min_size=N_ITEMS, max_size=N_ITEMS))
def test_adaptive_weights_follow_their_formula(history, exponent, popularity):
    ratings = to_ratings(history)
    weights = adaptive_weights(ratings, np.array(popularity), exponent)
    for row in range(ratings.n_users):
        entries = range(ratings.indptr[row], ratings.indptr[row + 1])
        raw = [max(popularity[ratings.indices[e]], 1.0) ** -exponent for e in entries]
        total = sum(w * w for w in raw) ** 0.5
        np.testing.assert_allclose(weights[list(entries)], [w / total for w in raw], rtol=1e-9)
        assert not raw or np.isclose(sum(weights[e] ** 2 for e in entries), 1.0, rtol=1e-9)


def test_rare_items_weigh_more_and_items_below_the_floor_weigh_the_same():
    ratings = dpals.Ratings.from_arrays([1] * 4, range(4))
    negative, tiny, one, hundred = adaptive_weights(ratings, np.array([-7.0, 1e-9, 1.0, 100.0]), 0.5)
    assert negative == tiny == one
    assert one == pytest.approx(10 * hundred)


def test_exponent_zero_gives_everybody_equal_weights():
    ratings = random_ratings(20, 8)
    counts = np.diff(ratings.indptr)[ratings.rows]
    np.testing.assert_allclose(adaptive_weights(ratings, np.arange(8.0), 0.0), counts**-0.5, rtol=1e-12)


def test_nobody_rated_anything():
    ratings = random_ratings(5, 4).keep(np.zeros(random_ratings(5, 4).n_ratings, bool))
    assert uniform_sample(ratings, 3).n_ratings == 0
    assert least_counted(ratings, np.ones(4), 3).n_ratings == 0
    assert adaptive_weights(ratings, np.ones(4), 0.3).shape == (0,)


def test_among_equally_counted_items_the_first_of_the_catalogue_are_chosen_in_long_histories_too():
    ratings = random_ratings(3, 200, share=1.0)
    counts = np.arange(200.0) % 2
    assert least_counted(ratings, counts, 30).indices.reshape(3, 30).tolist() == [list(range(0, 60, 2))] * 3
