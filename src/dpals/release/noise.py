"""Exact integer noise: round(sigma * N(0, 1)), bit by bit from a cryptographic generator.

One 64-bit word gives a sign and 63 bits of a tail probability p in (0, 1/2). The sample is the sign times
round(sigma * |z|), where P(Z > |z|) = p. A real p has infinitely many bits; the 63 known ones leave an interval.
Floating point finds the image of the interval under the inverse normal, with a known error. If every point within
interval and error rounds to the same integer, that integer is the sample. If not, which happens less than once in a
thousand draws, the decision is made again with more bits of p and more digits, until it is certain. So the result has
exactly the distribution round(sigma * N(0, 1)): no tail is cut off, no float rounding shows in the low bits.
"""

import hashlib
import os
import threading
from typing import Any, NoReturn, Protocol

import mpmath
import numba
import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dpals.kernels.inverse_normal import INVERSE_NORMAL_ERROR, upper_quantile

_CHUNK_WORDS = 1 << 16
_forks = 0
_per_thread = threading.local()  # mpmath's precision belongs to a context, so each thread has its own


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


def mpmath_context() -> Any:
    """The mpmath context of this thread."""
    if not hasattr(_per_thread, "context"):
        _per_thread.context = mpmath.MPContext()
    return _per_thread.context


class WordSource(Protocol):
    """Where 64-bit words come from."""

    def words(self, count: int) -> NDArray[np.uint64]: ...


class NoiseStream:
    """Words from AES-256 in counter mode, under a key that the operating system gave for this stream only.

    Formal guarantee (docs/privacy.md, step 3): no word is given out twice. A new stream has a new 256-bit key. Within a
    stream, the counter only moves forward. A stream cannot be copied or pickled. After a fork, the child's copy refuses
    to work.
    """

    def __init__(self) -> None:
        self._start(os.urandom(32))

    def _start(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._home = (os.getpid(), _forks)

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` words."""
        if (os.getpid(), _forks) != self._home:
            raise RuntimeError("a noise stream does not survive a fork: the child must make its own")
        return np.frombuffer(self._cipher.update(bytes(8 * count)), dtype="<u8")

    def __reduce__(self) -> NoReturn:  # copy.copy and copy.deepcopy call it, too
        raise TypeError("a noise stream can be neither pickled nor copied: that would repeat its noise")


class InsecureSeededStream(NoiseStream):
    """The same words every time, from a seed and the number of the release. **Not private**; for tests."""

    def __init__(self, insecure_seed: int, release: int) -> None:
        self._start(hashlib.sha256(f"dpals insecure {insecure_seed} {release}".encode()).digest())


def rounded_gaussian(
    source: WordSource,
    rows: int,
    variance: int,
    weights: NDArray[np.int64],
    *,
    error: float = INVERSE_NORMAL_ERROR,
) -> NDArray[np.int64]:
    """A table of independent samples of round(sqrt(variance / w_k) * N(0, 1)), one column per weight.

    Formal guarantee (docs/privacy.md, step 3): each entry has exactly that distribution, given ideal random words and
    `INVERSE_NORMAL_ERROR`. On integers, x + round(Z) = round(x + Z): adding such noise to an exact sum is
    post-processing of the ideal Gaussian mechanism.

    Here sigma is the standard deviation of a column, sqrt(variance / w_k).

    ============================  ============================================================
    variance not in [1, 2^80]     ValueError
    weight above the variance     sigma below 1: mostly zeros, still exact
    sigma above 2^34              exact, but slower: more draws need more digits
    error = infinity              every draw is decided with more digits (for tests)
    ============================  ============================================================
    """
    if not 1 <= variance <= 2**80:
        raise ValueError(f"the noise variance must lie between 1 and 2^80, got {variance}")
    columns = len(weights)
    sigmas = np.sqrt(float(variance) / weights)
    noise = np.empty(rows * columns, np.int64)
    undecided = np.empty(_CHUNK_WORDS, np.int64)
    for start in range(0, len(noise), _CHUNK_WORDS):
        chunk = noise[start : start + _CHUNK_WORDS]
        words = source.words(len(chunk))
        count = _round_quickly(words, sigmas, start % columns, error, chunk, undecided)
        for k in undecided[:count]:
            weight = int(weights[(start + k) % columns])
            magnitude = _round_certainly(int(words[k]), abs(int(chunk[k])), variance, weight, source)
            chunk[k] = -magnitude if words[k] >> 63 else magnitude
    return noise.reshape(rows, columns)


class _LazyProbability:
    """A uniform tail probability below 1/2 of which more bits are drawn whenever a comparison needs them."""

    def __init__(self, word: int, source: WordSource) -> None:
        self.bits, self.known, self.source = word & (2**63 - 1), 64, source
        self.mp = mpmath_context()

    def is_beyond(self, magnitude: int, variance: int, weight: int) -> bool:
        """Whether sigma * |z| exceeds magnitude + 1/2, that is, the probability is below the tail there."""
        mp = self.mp
        while True:
            mp.prec = self.known + 64
            boundary = mp.sqrt(mp.mpf(weight) / (8 * variance)) * (2 * magnitude + 1)
            tail = mp.ldexp(mp.erfc(boundary), self.known - 1)  # in units of the last known bit
            slack = mp.ldexp(tail, -self.known - 32)
            if self.bits + 1 <= tail - slack:
                return True
            if self.bits >= tail + slack:
                return False
            self.bits, self.known = (self.bits << 64) | int(self.source.words(1)[0]), self.known + 64


def _round_certainly(word: int, guess: int, variance: int, weight: int, source: WordSource) -> int:
    """The magnitude that belongs to a word: the k with k - 1/2 < sigma * |z| < k + 1/2, from any guess."""
    probability = _LazyProbability(word, source)

    def is_beyond(magnitude: int) -> bool:
        return magnitude < 0 or probability.is_beyond(magnitude, variance, weight)

    low, high, reach = guess - 1, guess, 1
    while not is_beyond(low):
        low, high, reach = max(-1, low - reach), low, 2 * reach
    while is_beyond(high):
        low, high, reach = high, high + reach, 2 * reach
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_beyond(middle) else (low, middle)
    return high


@numba.njit(cache=True, nogil=True)
def _round_quickly(words, sigmas, phase, error, result, undecided):  # type: ignore[no-untyped-def]
    """Round each draw into `result`; list the positions that are uncertain and return how many there are."""
    count = 0
    column = phase
    for k in range(len(words)):
        bits = words[k] & np.uint64(0x7FFFFFFFFFFFFFFF)
        sigma = sigmas[column]
        column = column + 1 if column + 1 < len(sigmas) else 0
        # The interval of p has the width 2^-64. Its middle is off by p * 2^-52 in float64 and by half the width.
        # That moves z by at most 1.26 times as much relative to p, the largest Mills ratio.
        p = (np.float64(bits) + 0.5) * 2.0**-64
        z = upper_quantile(p)
        doubt = sigma * max(1.0, z) * (error + 2.0**-50 + 2.0 / (np.float64(bits) + 1.0))
        nearest = np.floor(sigma * z + 0.5)
        if not 0.5 - abs(sigma * z - nearest) > doubt or bits < 2**20:
            undecided[count] = k
            count += 1
        value = np.int64(nearest)
        result[k] = -value if words[k] >> np.uint64(63) else value
    return count
