"""Where noise comes from: each release pays, opens a stream under a key of its own, and uses each word once."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats
from tests.privacy.noise_watch import watched_noise

import dpals
from dpals.audit.noise_samples import weights_by_definition
from dpals.audit.p_values import chi_square_p_value
from dpals.audit.simulated_data import odd_users
from dpals.ledger.ledger import Ledger
from dpals.release import mechanism as mechanism_module
from dpals.release import noise as noise_module
from dpals.release.accounting import Budget, PrivacyBudgetExceeded
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism
from dpals.release.noise import InsecureSeededStream, NoiseStream, rounded_gaussian

BUDGET = Budget(epsilon=1.0, delta=1e-5)
ROUNDED = 0.51  # steps: half of one, and a little for floating point
QUERIES = [
    Query("counts", 5000, 1.0),
    Query("weighted vectors", 2000, 1.0, "vector", 3, weights=(1, 2, 7)),
    Query("matrices", 2000, 1.0, "symmetric", 3),
]
METHODS = [
    (dpals.ItemMean(1.0), False, 0),
    (dpals.DPFrankWolfe(1.0), False, 0),
    (dpals.DPALS(1.0, rank=3), True, 0),
    (dpals.PooledDPALS(1.0, rank=2), False, 0),
    (dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, tries=3), False, 1),
]
"""With implicit feedback or not, and how many streams draw tries instead of noise."""


def aes_words(key, count):
    cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * count)), "<u8")


def gaussian_of(words):
    """The normal number of each word: its first bit is the sign, the others are those of a tail probability."""
    tails = ((words & np.uint64(2**63 - 1)).astype(float) + 0.5) * 2.0**-64
    sizes = stats.norm.isf(tails)
    return np.where(words >> np.uint64(63), -sizes, sizes)


def source_errors(query):
    """What is wrong with the noise of one release, worked out anew from its key."""
    with watched_noise() as watch:
        mechanism = Mechanism(BUDGET)
        table = mechanism.release(query, (), BUDGET.cost)
    record = mechanism.releases[0]
    noise = np.rint(table / record.step).ravel()
    words = watch.words[: noise.size]
    if len(watch.keys) != 1 or len(words) < noise.size:
        return ["the noise is not made of the words of one stream"]
    sigmas = np.tile(np.sqrt(record.variance / weights_by_definition(query)), len(table))
    found = []
    if np.any(words != aes_words(watch.keys[0], len(words))):
        found.append("words are others than AES-256 gives under the key")
    if np.any(np.abs(gaussian_of(words) * sigmas - noise) > ROUNDED):
        found.append("numbers are others than their words give")
    return found


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.purpose)
def test_noise_is_made_of_the_words_of_its_own_stream_by_aes_under_its_key(query):
    assert source_errors(query) == []


def guess(_, rows, variance, weights):
    normal = np.random.default_rng().normal(size=(rows, len(weights)))
    return np.rint(normal * np.sqrt(variance / weights)).astype(np.int64)


def draw_words_in_vain(stream, rows, variance, weights):
    return rounded_gaussian(stream, 2 * rows, variance, weights)[rows:]


@pytest.mark.parametrize(
    ("noise", "error"),
    [(guess, "the noise is not made of the words of one stream"), (draw_words_in_vain, "numbers are others")],
)
def test_noise_from_elsewhere_is_noticed(monkeypatch, noise, error):
    monkeypatch.setattr(mechanism_module, "rounded_gaussian", noise)
    assert source_errors(QUERIES[0])[0].startswith(error)


def test_short_keys_are_noticed(monkeypatch):
    monkeypatch.setattr(noise_module, "Cipher", lambda aes, mode: Cipher(algorithms.AES(aes.key[:4] * 8), mode))
    assert source_errors(QUERIES[0]) == ["words are others than AES-256 gives under the key"]


@pytest.mark.parametrize(("method", "implicit", "free_streams"), METHODS)
def test_every_release_pays_first_and_then_opens_a_stream_of_its_own(method, implicit, free_streams):
    ratings = odd_users(40, 40, implicit).ratings()
    with watched_noise() as watch:
        for _ in range(2):
            method.fit(ratings)
    assert watch.unpaid == 2 * free_streams
    assert watch.owed == watch.late == 0
    assert watch.repeated_words == watch.repeated_keys == watch.foreign_keys == 0


def test_no_word_of_a_large_table_is_used_twice():
    with watched_noise() as watch:
        Mechanism(BUDGET).release(Query("counts", 500_000, 1.0), (), BUDGET.cost)
    assert len(watch.words) >= 500_000
    assert watch.repeated_words == 0


def test_where_the_ledger_refuses_the_spend_no_stream_is_opened():
    class Refusing(Ledger):
        def spend(self, *_, **__):
            raise PrivacyBudgetExceeded("this ledger takes no spend")

    with watched_noise() as watch, pytest.raises(PrivacyBudgetExceeded):
        Mechanism(BUDGET, Refusing()).release(QUERIES[0], (), BUDGET.cost)
    assert watch.keys == []


def draw_before_paying(pay):
    def early(mechanism, *arguments):
        NoiseStream().words(1)
        return pay(mechanism, *arguments)

    return early


def share_a_stream(pay):
    shared = []

    def sharing(mechanism, *arguments):
        shared.append(pay(mechanism, *arguments))
        return shared[0]

    return sharing


@pytest.mark.parametrize(
    ("broken", "method"),
    [
        (draw_before_paying, dpals.ItemMean(1.0)),
        (draw_before_paying, METHODS[-1][0]),
        (share_a_stream, dpals.ItemMean(1.0)),
    ],
)
def test_streams_that_are_not_paid_for_are_noticed(monkeypatch, broken, method):
    monkeypatch.setattr(Mechanism, "_pay", broken(Mechanism._pay))
    with watched_noise() as watch:
        method.fit(odd_users(40, 40, implicit=False).ratings())
    assert watch.unpaid > 1 or watch.late > 0


def test_keys_that_the_operating_system_did_not_give_are_noticed():
    with watched_noise() as watch:
        InsecureSeededStream(1, release=1).words(3)
    assert watch.foreign_keys == 1


def test_a_watch_sees_who_paid_and_leaves_nothing_behind():
    before = NoiseStream.words, NoiseStream._start, Ledger.spend
    with watched_noise() as watch:
        Mechanism(BUDGET).release(Query("counts", 3, 1.0), (), 2**50)
        assert (watch.spends, watch.owed, watch.unpaid, len(watch.words)) == (1, 0, 0, 3)
        NoiseStream()
        Ledger().spend("ratings", "nothing", 1)
    assert (watch.spends, watch.owed, watch.unpaid) == (2, 1, 1)
    assert (NoiseStream.words, NoiseStream._start, Ledger.spend) == before


@pytest.mark.parametrize("sigma", [1, 3])
def test_small_noise_has_the_exact_chances_of_a_rounded_gaussian(sigma):
    """Where sigma is small, every integer can be counted."""
    weights = np.array([1, 2, 7])
    noise = rounded_gaussian(NoiseStream(), 60_000, sigma**2, weights)
    for column, weight in zip(noise.T, weights, strict=True):
        edges = np.arange(-12 * sigma, 12 * sigma + 2) - 0.5
        chances = np.diff(stats.norm.cdf(edges * np.sqrt(weight) / sigma))
        assert chi_square_p_value(np.histogram(column, edges)[0], chances) > 1e-8
