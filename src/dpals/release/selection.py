"""The best of a secret number of tries: how many there are, and what choosing costs.

A *try* draws a candidate, trains it and releases its score; it is mu-Gaussian-DP as a whole. A search makes a random
number K of independent tries and publishes the one with the best score, nothing about the others and nothing about K.
The best of a fixed number of tries can reveal nearly as much as all of them together. With K drawn from the right
distribution it reveals a few times as much as one try, and that grows slowly with the mean of K (Liu & Talwar 2019;
Papernot & Steinke 2022).

**The theorem used.** Let Q and Q' be what one try gives on neighbouring data, in order of the score, with ties
broken at random; f(x) = E[x^K] and m = E[K] = f'(1). The best of K tries has the density f'(Q(<= y)) dQ(y). Let the
number e_K be such that f'(Q(<= y)) <= exp(e_K) f'(Q'(<= y)) for every y. Then for every set S and every epsilon

    A(S) - exp(epsilon + e_K) A'(S) <= int_S f'(Q(<= y)) (dQ - exp(epsilon) dQ')(y) <= m delta_mu(epsilon),

because f' <= m, with delta_mu(epsilon) of the Gaussian mechanism. So the search is
(epsilon_mu(delta / m) + e_K, delta)-DP. With t = Q(> y), t' = Q'(> y) and t' <= exp(e) t + delta_mu(e) for all e:

* truncated negative binomial: f'(x) is in proportion to (gamma + (1 - gamma) t)^-(1 + eta), so that
  e_K = (1 + eta) e for the e with (1 - gamma) delta_mu(e) = gamma (exp(e) - 1);
* Poisson: f'(x) = m exp(-m t), and e_K = m delta_mu(0).

Koskela, Redberg & Wang (2024) went this way first. If tries are exactly epsilon-DP, it gives the 3 epsilon of Liu &
Talwar for the geometric distribution (eta = 1). The Renyi bounds of Papernot & Steinke are used as well: for Poisson
they are mostly smaller, for the negative binomial never, because they bound the same two terms once more.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, TypeVar

from dpals.release import accounting
from dpals.release.accounting import boundary
from dpals.release.noise import InsecureSeededStream, NoiseStream, WordSource, mpmath_context

Result = TypeVar("Result")

DISTRIBUTIONS = ("geometric", "logarithmic", "poisson")

_MARGIN = 1e-12  # far more than rounding errors of a few floating-point operations
_LARGEST_MU = 1e9


@dataclass(frozen=True)
class TruncatedNegativeBinomial:
    """P(K = k) in proportion to (1 - gamma)^k prod_(l < k) (l + eta) / (l + 1), for k = 1, 2, ...

    Parameters
    ----------
    eta
        Shape, above -1: 1 is the geometric distribution, 0 the logarithmic one. The larger it is, the less K varies
        and the more a search costs.
    gamma
        Between 0 and 1; the smaller it is, the more tries. The mean of the geometric distribution is 1 / gamma.
    """

    eta: float
    gamma: float

    def __post_init__(self) -> None:
        if not (-1 < self.eta < math.inf and 1e-9 < self.gamma < 1 - 1e-9):
            raise ValueError(f"eta must be above -1 and gamma between 0 and 1, got {self.eta} and {self.gamma}")

    @classmethod
    def of_mean(cls, eta: float, mean: float) -> "TruncatedNegativeBinomial":
        """The distribution with this shape and this many tries on average."""
        stays = boundary(lambda ratio: ratio > 0 and cls(eta, 1 / (1 + ratio)).mean >= mean)[1]
        return cls(eta, 1 / (1 + stays))

    @property
    def mean(self) -> float:
        """E[K], rounded up."""
        log = -math.log(self.gamma)
        weight = 1 / log if self.eta == 0 else self.eta / -math.expm1(-self.eta * log)
        return weight * (1 - self.gamma) / self.gamma * (1 + _MARGIN)

    def log_likelihood_shift(self, mu: float) -> float:
        """e_K: the most that the other tries can shift the log-likelihood of the best one."""
        stay, stop = 1 - self.gamma, self.gamma * (1 - _MARGIN)
        return (1 + self.eta) * boundary(lambda e: stay * accounting.delta(mu, e) <= stop * math.expm1(e))[1]

    def renyi(self, order: float, mu: float) -> float:
        """Renyi divergence of a search: Papernot & Steinke (2022), theorem 2, at its best second order."""
        log = -math.log(self.gamma)
        second = max(1.0, math.sqrt(2 * log) / mu)
        return (
            order * mu**2 / 2
            + (1 + self.eta) * ((second - 1) * mu**2 / 2 + log / second)
            + math.log(self.mean) / (order - 1)
        )

    def probabilities(self, mp: Any) -> Iterator[tuple[int, Any]]:
        """k and P(K = k) in the precision of an mpmath context."""
        stay, log, eta = 1 - mp.mpf(self.gamma), -mp.log(self.gamma), mp.mpf(self.eta)
        chance = stay / log if eta == 0 else stay * eta / mp.expm1(eta * log)
        for k in count(1):
            yield k, chance
            chance *= stay * (k + eta) / (k + 1)


@dataclass(frozen=True)
class Poisson:
    """P(K = k) = exp(-mean) mean^k / k!, for k = 0, 1, ... With no try at all, the result is one that needs no data."""

    mean: float

    def __post_init__(self) -> None:
        if not 1 <= self.mean < 1e9:
            raise ValueError(f"the mean must be at least 1 and below 1e9, got {self.mean}")

    def log_likelihood_shift(self, mu: float) -> float:
        """e_K, as for the other distribution."""
        return self.mean * accounting.delta(mu, 0.0)

    def renyi(self, order: float, mu: float) -> float:
        """Renyi divergence of a search: Papernot & Steinke (2022), theorem 6."""
        near = math.log1p(1 / (order - 1)) * (1 - _MARGIN)
        return order * mu**2 / 2 + self.mean * accounting.delta(mu, near) + math.log(self.mean) / (order - 1)

    def probabilities(self, mp: Any) -> Iterator[tuple[int, Any]]:
        """k and P(K = k), as for the other distribution."""
        chance = mp.exp(-mp.mpf(self.mean))
        for k in count():
            yield k, chance
            chance *= mp.mpf(self.mean) / (k + 1)


TriesDistribution = TruncatedNegativeBinomial | Poisson
"""The distribution of K, the number of tries."""


@dataclass(frozen=True)
class Selection:
    """What is public about a search.

    Attributes
    ----------
    distribution
        Name of the distribution of the number of tries, one of `DISTRIBUTIONS`.
    tries
        Mean of that distribution. The number of tries itself is secret.
    mu
        Of one try.
    """

    distribution: str
    tries: float
    mu: float


def tries_distribution(distribution: str, mean: float) -> TriesDistribution:
    """The distribution of the number of tries with this name and this mean.

    Examples
    --------
    >>> tries_distribution("geometric", 10.0).mean >= 10.0
    True
    """
    if distribution == "poisson":
        return Poisson(mean)
    return TruncatedNegativeBinomial.of_mean({"geometric": 1.0, "logarithmic": 0.0}[distribution], mean)


def epsilon(mu: float, delta: float, tries: TriesDistribution) -> float:
    """An epsilon for which the best of K tries, each mu-Gaussian-DP, is (epsilon, delta)-DP; `tries` is how K is drawn.

    Formal guarantee (docs/privacy.md, step 12): never below the smaller of the two bounds above; the relative excess is
    below 1e-6. Both bounds hold if tries are independent given the data, K is independent of them, and nothing else is
    published: neither K nor which candidates were drawn. The Renyi bound is converted by Canonne, Kamath & Steinke
    (2020), proposition 12. It holds for every order, so a badly chosen order only makes the result larger.

    =====================  ===================================================
    mu = 0                 0
    mu above 1e9           infinity
    =====================  ===================================================

    Examples
    --------
    >>> round(epsilon(mu=0.1, delta=1e-5, tries=tries_distribution("geometric", 10.0)), 4)
    0.5771
    >>> round(accounting.epsilon(mu=0.1, delta=1e-5), 4)  # a single try
    0.3407
    """
    single = accounting.epsilon(mu, delta)  # refuses invalid parameters
    if mu == 0 or mu > _LARGEST_MU:
        return single
    by_profile = accounting.epsilon(mu, delta / tries.mean) + tries.log_likelihood_shift(mu)
    return min(by_profile, _by_renyi(mu, delta, tries)) * (1 + _MARGIN)


@cache  # because it takes a tenth of a second
def mu(epsilon: float, delta: float, tries: TriesDistribution) -> float:
    """Largest mu of one try for which the best of K tries is (epsilon, delta)-DP; `tries` is how K is drawn.

    Formal guarantee (docs/privacy.md, step 12): `epsilon` of the result is at most the one given.

    Examples
    --------
    >>> round(mu(epsilon=1.0, delta=1e-5, tries=tries_distribution("geometric", 10.0)), 4)
    0.1689
    """
    accounting.Budget(epsilon, delta)  # refuses invalid parameters
    return boundary(lambda value: _epsilon(value, delta, tries) > epsilon)[0]


def liu_talwar_bound(epsilon: float, delta: float, gamma: float) -> tuple[float, float]:
    """What the best of a geometric number of tries, 1 / gamma on average, guarantees if each is (epsilon, delta)-DP.

    Formal guarantee (docs/privacy.md, step 12): the theorem above with delta_mu(e) <= delta for e >= epsilon. For
    delta = 0 it is that of Liu & Talwar (2019): 3 epsilon. Tries here are Gaussian, never exactly epsilon-DP, and more
    is known about them than one pair: `epsilon` uses all pairs and is smaller.

    ========================================  =========================================================
    delta = 0                                 (3 epsilon, 0)
    delta up to about gamma epsilon           (3 epsilon, delta / gamma)
    delta above                               epsilon is larger
    ========================================  =========================================================

    Examples
    --------
    >>> liu_talwar_bound(0.5, 0.0, gamma=0.1)
    (1.5, 0.0)
    """
    return epsilon + 2 * max(epsilon, math.log1p((1 - gamma) / gamma * delta)), delta / gamma


def best_of(
    tries: TriesDistribution,
    n_candidates: int,
    attempt: Callable[[int, int | None], tuple[float, Result]],
    insecure_seed: int | None = None,
) -> Result | None:
    """Call ``attempt(candidate, seed)`` a secret number of times and keep the result with the best score.

    Formal guarantee (docs/privacy.md, step 12): the number of calls has exactly the distribution `tries`, and the
    candidate of each call is uniform. Both come from a cryptographic generator under a key of their own and never leave
    this function. Candidates must not be known beforehand, from a public seed for instance: tries would then not be
    identically distributed, and the position of the best among them would reveal how many there were. Of equal scores
    the first wins, which is as good as a random one, because the order of independent tries is random.

    Parameters
    ----------
    attempt
        Takes the number of a candidate and the seed of its noise, None for secure noise; returns score and result.
    insecure_seed
        As for the mechanism: repeatable, and not private.

    ======================  ===================================================
    no tries (Poisson)      None
    ======================  ===================================================
    """
    stream = NoiseStream() if insecure_seed is None else InsecureSeededStream(insecure_seed, release=0)
    best: tuple[float, Result] | None = None
    for _ in range(_number(tries, stream)):
        candidate = _uniform(n_candidates, stream)
        seed = None if insecure_seed is None else int(stream.words(1)[0])
        score, result = attempt(candidate, seed)
        if best is None or score > best[0]:
            best = score, result
    return None if best is None else best[1]


_epsilon = epsilon  # the name without a shadow, for functions that have an argument called epsilon


def _by_renyi(mu: float, delta: float, tries: TriesDistribution) -> float:
    """The smallest epsilon that the Renyi bound gives at any order, rounded up."""
    from scipy.optimize import minimize_scalar

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        terms = tries.renyi(order, mu), math.log1p(-1 / order), -math.log(delta * order) / excess
        return sum(terms) + _MARGIN * sum(map(abs, terms))

    guess = math.log(math.sqrt(2 * math.log(tries.mean / delta)) / mu)
    return max(0.0, float(minimize_scalar(at, bounds=(guess - 5, guess + 5), method="bounded").fun))


def _number(tries: TriesDistribution, source: WordSource) -> int:
    """The k for which a uniform number lies between P(K < k) and P(K <= k), exactly.

    Bits of the uniform number are drawn until it is certain on which side of each sum it lies. The error of a sum of k
    terms is below 10 k + 100 units in the last place of mpmath, 64 bits below the last known bit: `slack` is enough for
    2^28 terms.
    """
    mp, slack = mpmath_context(), 2.0**-32
    bits, known = int(source.words(1)[0]), 64
    while True:
        mp.prec = known + 64
        total = mp.mpf(0)  # in units of the last known bit
        for k, chance in tries.probabilities(mp):
            total += mp.ldexp(chance, known)
            if bits + 1 <= total - slack:
                return k
            if bits < total + slack:
                break
        bits, known = (bits << 64) | int(source.words(1)[0]), known + 64


def _uniform(n: int, source: WordSource) -> int:
    """A number below n, each with the same probability."""
    while (word := int(source.words(1)[0])) >= 2**64 // n * n:
        pass
    return word % n
