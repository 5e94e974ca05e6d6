"""Exact integer noise: round(sigma * N(0, 1)), bit by bit from a cryptographic generator.

One 64-bit word gives a sign and 63 bits of a tail probability p in (0, 1/2); the sample is the sign times
sigma * |z| rounded, where P(Z > |z|) = p. A real p has infinitely many bits, of which 63 are known: they
leave an interval. Floating point finds its image under the inverse normal with a known error. Where every
point of interval and error rounds to the same integer, that integer is the sample. Where not, which happens
less than once in a thousand draws, the decision is made again with more bits of p and more digits, until it
is certain. So the result has exactly the distribution round(sigma * N(0, 1)): no tail is cut off, no float
rounding shows in the low bits.
"""

import hashlib
import os
from typing import Any, NoReturn, Protocol

import mpmath
import numba
import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

INVERSE_NORMAL_ERROR = 2.0**-47
"""Bound on |computed - true| / max(1, true) of `_upper_quantile` for a given float p.

All terms of its polynomials are positive, so at most 40 roundings of 2^-53 add up, which is below 2^-47; the
approximation itself adds 1e-16. The tests measure 2^-50.
"""

_CHUNK_WORDS = 1 << 16
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class WordSource(Protocol):
    """Where 64-bit words come from."""

    def words(self, count: int) -> NDArray[np.uint64]: ...


class NoiseStream:
    """Words from AES-256 in counter mode, under a key that the operating system gave for this stream alone.

    Formal guarantee: no word is given out twice. A new stream has a new 256-bit key; within a stream the
    counter only moves forward; a stream cannot be copied or pickled; after a fork the child's copy refuses
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

    def __reduce__(self) -> NoReturn:
        raise TypeError("a noise stream can be neither pickled nor copied: that would repeat its noise")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self.__reduce__()


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

    Formal guarantee: each entry has exactly that distribution, given ideal random words and
    `INVERSE_NORMAL_ERROR`. On integers, x + round(Z) = round(x + Z): adding such noise to an exact sum is
    post-processing of the ideal Gaussian mechanism.

    =========================  ===============================================================
    large weights              sigma below 1, mostly zeros, still exact
    sigma above 2^34           exact, but slower: more draws need more digits
    sigma not in [1, 2^40]     ValueError
    error = infinity           every draw is decided with more digits (for tests)
    =========================  ===============================================================
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


def _round_certainly(word: int, guess: int, variance: int, weight: int, source: WordSource) -> int:
    """The magnitude that belongs to a word, found from a nearby guess with as many bits as it takes.

    The magnitude is the number k for which |z| lies between (k - 1/2) / sigma and (k + 1/2) / sigma, that is,
    for which the tail probability lies between those of the two boundaries.
    """
    bits, known = word & (2**63 - 1), 64
    magnitude = guess
    while True:
        bits, known = (bits << 64) | int(source.words(1)[0]), known + 64
        while (above := _is_beyond(magnitude, bits, known, variance, weight)) is True:
            magnitude += 1
        while above is False:
            if magnitude == 0:
                return 0
            above = _is_beyond(magnitude - 1, bits, known, variance, weight)
            if above is True:
                return magnitude
            if above is False:
                magnitude -= 1


def _is_beyond(magnitude: int, bits: int, known: int, variance: int, weight: int) -> bool | None:
    """Whether sigma * |z| exceeds magnitude + 1/2; None where the known bits do not tell."""
    with mpmath.workprec(known + 64):
        boundary = mpmath.sqrt(mpmath.mpf(weight) / (8 * variance)) * (2 * magnitude + 1)
        tail = mpmath.ldexp(mpmath.erfc(boundary), known - 1)  # in units of the last known bit
        slack = mpmath.ldexp(tail, -known - 32)
        if bits + 1 <= tail - slack:
            return True
        if bits >= tail + slack:
            return False
        return None


@numba.njit(cache=True, nogil=True)
def _upper_quantile(p):  # type: ignore[no-untyped-def]
    """The z >= 0 with P(Z > z) = p for 0 < p <= 1/2: Wichura's algorithm AS 241 (1988), PPND16."""
    q = 0.5 - p
    if q <= 0.425:
        r = 0.180625 - q * q
        top = 2.5090809287301226727e3
        for a in (
            3.3430575583588128105e4,
            6.7265770927008700853e4,
            4.5921953931549871457e4,
            1.3731693765509461125e4,
            1.9715909503065514427e3,
            1.3314166789178437745e2,
            3.3871328727963666080e0,
        ):
            top = top * r + a
        bottom = 5.2264952788528545610e3
        for b in (
            2.8729085735721942674e4,
            3.9307895800092710610e4,
            2.1213794301586595867e4,
            5.3941960214247511077e3,
            6.8718700749205790830e2,
            4.2313330701600911252e1,
            1.0,
        ):
            bottom = bottom * r + b
        return q * top / bottom
    r = np.sqrt(-np.log(p))
    if r <= 5.0:
        r -= 1.6
        top = 7.74545014278341407640e-4
        for a in (
            2.27238449892691845833e-2,
            2.41780725177450611770e-1,
            1.27045825245236838258e0,
            3.64784832476320460504e0,
            5.76949722146069140550e0,
            4.63033784615654529590e0,
            1.42343711074968357734e0,
        ):
            top = top * r + a
        bottom = 1.05075007164441684324e-9
        for b in (
            5.47593808499534494600e-4,
            1.51986665636164571966e-2,
            1.48103976427480074590e-1,
            6.89767334985100004550e-1,
            1.67638483018380384940e0,
            2.05319162663775882187e0,
            1.0,
        ):
            bottom = bottom * r + b
        return top / bottom
    r -= 5.0
    top = 2.01033439929228813265e-7
    for a in (
        2.71155556874348757815e-5,
        1.24266094738807843860e-3,
        2.65321895265761230930e-2,
        2.96560571828504891230e-1,
        1.78482653991729133580e0,
        5.46378491116411436990e0,
        6.65790464350110377720e0,
    ):
        top = top * r + a
    bottom = 2.04426310338993978564e-15
    for b in (
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        1.48753612908506148525e-2,
        1.36929880922735805310e-1,
        5.99832206555887937690e-1,
        1.0,
    ):
        bottom = bottom * r + b
    return top / bottom


@numba.njit(cache=True, nogil=True)
def _round_quickly(words, sigmas, phase, error, result, undecided):  # type: ignore[no-untyped-def]
    """Round each draw into `result`; list the positions that are not certain and return how many they are."""
    count = 0
    column = phase
    for k in range(len(words)):
        bits = words[k] & np.uint64(0x7FFFFFFFFFFFFFFF)
        sigma = sigmas[column]
        column = column + 1 if column + 1 < len(sigmas) else 0
        # The interval of p has the width 2^-64, and its middle is off by p * 2^-52 in float64 and by half the
        # width. That moves z by at most 1.26 times as much relative to p, the largest Mills ratio.
        p = (np.float64(bits) + 0.5) * 2.0**-64
        z = _upper_quantile(p)
        doubt = sigma * max(1.0, z) * (error + 2.0**-50 + 2.0 / (np.float64(bits) + 1.0))
        nearest = np.floor(sigma * z + 0.5)
        if not 0.5 - abs(sigma * z - nearest) > doubt or bits < 2**20:
            undecided[count] = k
            count += 1
        value = np.int64(nearest)
        result[k] = -value if words[k] >> np.uint64(63) else value
    return count
