import copy
import math
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from dpals.release.noise import InsecureSeededStream, NoiseStream, rounded_gaussian

ONE = np.ones(1, np.int64)
SURPRISE = 1e-6
"""Tests of fresh noise fail by chance less often than this; those of seeded noise never do."""


def draw(source, count, variance, **options):
    return rounded_gaussian(source, count, variance, ONE, **options)[:, 0]


def exact_quantile(p):
    """The z with P(Z > z) = p, in 50 digits."""
    with mpmath.workdps(50):
        return mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * p)


def chi_square(samples, sigma):
    """p-value against the probabilities of round(sigma * Z), with the tails in two cells."""
    reach = max(1, round(3 * sigma))
    step = max(1, reach // 40)
    edges = np.arange(-reach, reach + 1, step) - 0.5
    expected = np.diff(stats.norm.cdf(np.r_[-np.inf, edges, np.inf] / sigma)) * len(samples)
    observed = np.histogram(samples, np.r_[-(2.0**62), edges, 2.0**62])[0]
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize("variance", [1, 2, 14, 1_000, 10**8])
def test_frequencies_are_those_of_a_rounded_gaussian(variance):
    assert chi_square(draw(InsecureSeededStream(1, 0), 400_000, variance), math.sqrt(variance)) > 1e-3
    assert chi_square(draw(NoiseStream(), 400_000, variance), math.sqrt(variance)) > SURPRISE


@pytest.mark.parametrize("variance", [1, 14, 10**8])
def test_the_slow_path_has_the_same_distribution(variance):
    samples = draw(InsecureSeededStream(2, 0), 8_000, variance, error=math.inf)
    assert chi_square(samples, math.sqrt(variance)) > 1e-3


@pytest.mark.parametrize("variance", [1, 3, 10**8, 2**60])
def test_the_slow_path_decides_as_the_fast_one(variance):
    """With the same first 63 bits both must give the same sample: extra bits matter only at boundaries."""
    fast = draw(InsecureSeededStream(3, 0), 2_000, variance)
    words = InsecureSeededStream(3, 0).words(2_000)
    slow = draw(Replay(words), 2_000, variance, error=math.inf)
    assert np.array_equal(fast, slow)


class Replay:
    """Gives out the words of a list, then fresh ones."""

    def __init__(self, words):
        self.first, self.rest = np.asarray(words, np.uint64), NoiseStream()

    def words(self, count):
        if len(self.first) >= count:
            result, self.first = self.first[:count], self.first[count:]
            return result
        return self.rest.words(count)


@pytest.mark.parametrize("variance", [2**40, 2**60, 2**68])
def test_large_noise_is_gaussian(variance):
    sigma = math.sqrt(variance)
    seeded = draw(InsecureSeededStream(4, 0), 200_000, variance) / sigma
    assert stats.kstest(seeded, "norm").pvalue > 1e-3
    assert stats.kstest(draw(NoiseStream(), 200_000, variance) / sigma, "norm").pvalue > SURPRISE


@pytest.mark.parametrize("variance", [100, 10**8, 2**60, 2**68])
@pytest.mark.parametrize("bit", [0, 1, 2])
def test_low_bits_are_fair_coins(variance, bit):
    """A float that lost digits would show here: its low bits are zero."""
    samples = draw(NoiseStream(), 400_000, variance)
    ones = int(((samples >> bit) & 1).sum())
    assert stats.binomtest(ones, len(samples), 0.5).pvalue > SURPRISE


def test_each_weight_divides_the_variance_of_its_column():
    weights = np.array([1, 2, 7], np.int64)
    noise = rounded_gaussian(NoiseStream(), 200_000, 10**10, weights)
    for column, weight in enumerate(weights):
        scaled = noise[:, column] / math.sqrt(10**10 / weight)
        assert stats.kstest(scaled, "norm").pvalue > SURPRISE
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 6 / math.sqrt(200_000)


def test_columns_keep_their_weights_across_chunks():
    weights = np.array([1, 10**9, 10**9], np.int64)
    noise = rounded_gaussian(NoiseStream(), 50_000, 10**8, weights)  # more than two chunks, 3 divides none
    assert np.abs(noise[:, 1:]).max() <= 3
    assert np.abs(noise[:, 0]).mean() > 1_000


def test_every_word_maps_to_the_sample_of_the_definition():
    """Against the definition itself, in 50 digits, from the far tail to the middle."""
    interesting = [2**k + d for k in range(1, 63) for d in (-1, 0, 12345)] + [2**63 - 1, 2**63 - 2**40]
    words = np.array([*interesting, *(w | 1 << 63 for w in interesting)], np.uint64)
    samples = draw(Replay(words), len(words), 2**60)
    for word, sample in zip(words.tolist(), samples.tolist(), strict=True):
        bits = word & (2**63 - 1)
        with mpmath.workdps(50):
            most = exact_quantile(mpmath.mpf(bits) / 2**64) if bits else mpmath.inf
            least = exact_quantile(mpmath.mpf(bits + 1) / 2**64)
            assert 2**30 * least - 0.5001 <= abs(sample) <= 2**30 * most + 0.5001
        assert (sample < 0) == bool(word >> 63) or sample == 0


@pytest.mark.parametrize("weight", [1, 2, 7])
def test_words_at_a_rounding_boundary_are_decided_by_the_definition(weight):
    """The words just around the tail probability of a boundary, where floats cannot tell which side they are."""
    variance, checked = 2**60, 0
    for magnitude in (0, 1, 10**6, 2**29, 2**30, 3 * 2**30, 5 * 2**30):
        with mpmath.workdps(60):
            sigma = mpmath.sqrt(mpmath.mpf(variance) / weight)
            boundary = (magnitude + mpmath.mpf(1) / 2) / sigma
            tail = int(mpmath.floor(mpmath.erfc(boundary / mpmath.sqrt(2)) / 2 * 2**64))
        for word in (tail - 2, tail - 1, tail + 1, tail + 2):
            if 0 < word < 2**63:
                weights = np.array([weight], np.int64)
                sample = int(rounded_gaussian(Replay([word]), 1, variance, weights)[0, 0])
                assert (sample > magnitude) == (word < tail)
                checked += 1
    assert checked > 15


def test_the_slow_path_uses_the_weights():
    weights = np.array([1, 2, 7], np.int64)
    words = InsecureSeededStream(3, 0).words(600)
    fast, slow = (rounded_gaussian(Replay(words), 200, 10**8, weights, error=error) for error in (2.0**-47, math.inf))
    assert np.array_equal(fast, slow)


def test_bits_beyond_the_first_word_are_random_too():
    """The rarest word: its tail reaches to infinity, and later bits decide where in it the sample lies."""
    samples = [draw(Replay([0]), 1, 2**60)[0] / 2**30 for _ in range(400)]
    tails = stats.norm.sf(samples) * 2.0**64
    assert stats.kstest(tails, "uniform").pvalue > SURPRISE


def test_a_stream_is_keyed_with_256_bits_of_the_operating_system(monkeypatch):
    asked = []
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(size) or bytes(range(size)))
    words = NoiseStream().words(2)
    assert asked == [32]
    cipher = Cipher(algorithms.AES(bytes(range(32))), modes.ECB()).encryptor()
    assert words.tobytes() == cipher.update(bytes(16)), "the first block of counter mode"


def test_threads_sample_with_their_own_precision():
    """mpmath's precision is shared between threads unless each has its own context."""
    expected = draw(InsecureSeededStream(5, 0), 300, 2**60, error=math.inf)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: draw(InsecureSeededStream(5, 0), 300, 2**60, error=math.inf), range(8)))
    assert all(np.array_equal(result, expected) for result in results)
    assert mpmath.mp.prec == 53


def test_two_streams_share_no_word():
    words = np.concatenate([NoiseStream().words(100_000) for _ in range(3)])
    assert len(np.unique(words)) == len(words)


def test_a_stream_never_repeats_itself():
    stream = NoiseStream()
    words = np.concatenate([stream.words(70_000) for _ in range(4)])
    assert len(np.unique(words)) == len(words)


def test_words_are_fair_in_every_bit():
    words = NoiseStream().words(200_000)
    for bit in range(64):
        ones = int((words >> np.uint64(bit) & np.uint64(1)).sum())
        assert stats.binomtest(ones, len(words), 0.5).pvalue > SURPRISE / 64


@pytest.mark.parametrize("stream", [NoiseStream(), InsecureSeededStream(1, 0)])
@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_streams_cannot_be_duplicated(stream, duplicate):
    with pytest.raises(TypeError, match="neither pickled nor copied"):
        duplicate(stream)


def in_child(work):
    """What `work` returns, as text, in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        return pipe.read()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_stream_dies_on_fork_and_children_draw_other_noise():
    stream = NoiseStream()

    def use_inherited():
        try:
            return stream.words(1)
        except RuntimeError as refusal:
            return refusal

    assert "does not survive a fork" in in_child(use_inherited)
    children = {in_child(lambda: draw(NoiseStream(), 4, 2**60).tolist()) for _ in range(5)}
    assert len(children) == 5
    assert stream.words(1).size == 1, "the parent's stream goes on"


def test_seeded_noise_repeats_and_differs_between_releases_and_seeds():
    reference = draw(InsecureSeededStream(1, 0), 100, 2**60)
    assert np.array_equal(reference, draw(InsecureSeededStream(1, 0), 100, 2**60))
    for other in (InsecureSeededStream(1, 1), InsecureSeededStream(2, 0)):
        assert not np.intersect1d(reference, draw(other, 100, 2**60)).size


@pytest.mark.parametrize("variance", [0, -1, 2**80 + 1])
def test_a_variance_out_of_range_is_refused(variance):
    with pytest.raises(ValueError, match="variance must lie between"):
        draw(NoiseStream(), 1, variance)


def test_no_rows_give_no_noise():
    assert rounded_gaussian(NoiseStream(), 0, 4, ONE).shape == (0, 1)
