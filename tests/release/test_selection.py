"""What choosing costs, against theorems in many digits, dp_accounting and the exact outcome of small searches."""

import math
from itertools import islice, pairwise, permutations

import mpmath
import numpy as np
import pytest
from dp_accounting.dp_event import GaussianDpEvent, RepeatAndSelectDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy import stats

from dpals.release import accounting, selection
from dpals.release.noise import InsecureSeededStream
from dpals.release.selection import Poisson, TruncatedNegativeBinomial, best_of, liu_talwar_bound, tries_distribution

GEOMETRIC = TruncatedNegativeBinomial(1.0, 0.1)
DISTRIBUTIONS = {
    "geometric": GEOMETRIC,
    "geometric, many": TruncatedNegativeBinomial(1.0, 0.005),
    "logarithmic": TruncatedNegativeBinomial(0.0, 0.03),
    "shape 0.5": TruncatedNegativeBinomial(0.5, 0.05),
    "shape 3": TruncatedNegativeBinomial(3.0, 0.4),
    "shape -0.5": TruncatedNegativeBinomial(-0.5, 0.001),
    "poisson": Poisson(10.0),
    "poisson, one": Poisson(1.0),
}
SHAPES = {name: tries for name, tries in DISTRIBUTIONS.items() if not isinstance(tries, Poisson)}
MUS = [0.003, 0.05, 0.2, 1.0, 3.0]


def exact_delta(mu, epsilon):
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def exact_epsilon(mu, delta):
    """In logarithms, because delta is small."""
    start = accounting.epsilon(float(mu), float(delta))
    return mpmath.findroot(lambda e: mpmath.log(exact_delta(mu, e) / delta), (start * 0.999, start), tol=1e-25)


def exact_mean(tries):
    if isinstance(tries, Poisson):
        return mpmath.mpf(tries.mean)
    gamma, eta = mpmath.mpf(tries.gamma), mpmath.mpf(tries.eta)
    if eta == 0:
        return (1 / gamma - 1) / mpmath.log(1 / gamma)
    return eta * (1 - gamma) / (gamma * (1 - gamma**eta))


def exact_profile_bound(mu, delta, tries):
    """The theorem of the module, in 40 digits."""
    mean = exact_mean(tries)
    if isinstance(tries, Poisson):
        growth = mean * exact_delta(mu, mpmath.mpf(0))
    else:
        gamma = mpmath.mpf(tries.gamma)
        start = tries.log_likelihood_shift(float(mu)) / (1 + tries.eta)
        crossing = mpmath.findroot(
            lambda e: (1 - gamma) * exact_delta(mu, e) / (gamma * mpmath.expm1(e)) - 1,
            (start * 0.999, start),
            tol=1e-25,
        )
        growth = (1 + mpmath.mpf(tries.eta)) * crossing
    return exact_epsilon(mu, delta / mean) + growth


def exact_renyi_bound(mu, delta, tries):
    """Papernot & Steinke with the conversion of Canonne, Kamath & Steinke, over a fine mesh of orders."""
    mean, best = exact_mean(tries), mpmath.inf
    centre = math.sqrt(2 * math.log(float(mean / delta))) / float(mu)
    if not isinstance(tries, Poisson):
        log = mpmath.log(1 / mpmath.mpf(tries.gamma))
        middle = mpmath.sqrt(2 * log) / mu
        seconds = [max(mpmath.mpf(1), middle * mpmath.mpf(factor)) for factor in np.geomspace(0.5, 2, 21)]
        second = min((1 - 1 / b) * b * mu**2 / 2 + log / b for b in seconds)
    for excess in centre * np.geomspace(0.05, 5, 400):
        order = 1 + mpmath.mpf(excess)
        if isinstance(tries, Poisson):
            choosing = mean * exact_delta(mu, mpmath.log(1 + 1 / (order - 1)))
        else:
            choosing = (1 + mpmath.mpf(tries.eta)) * second
        renyi = order * mu**2 / 2 + choosing + mpmath.log(mean) / (order - 1)
        best = min(best, renyi + mpmath.log(1 - 1 / order) - mpmath.log(delta * order) / (order - 1))
    return best


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_epsilon_is_just_above_the_better_of_the_two_theorems(name, mu):
    tries = DISTRIBUTIONS[name]
    with mpmath.workdps(40):
        exact_mu, delta = mpmath.mpf(mu), mpmath.mpf(1e-6)
        profile, renyi = exact_profile_bound(exact_mu, delta, tries), exact_renyi_bound(exact_mu, delta, tries)
        ours = selection.epsilon(mu, 1e-6, tries)
        # The mesh of orders is a little worse than the best order.
        assert min(profile, renyi * (1 - mpmath.mpf("1e-3"))) <= ours <= min(profile, renyi) * (1 + mpmath.mpf("1e-6"))
        if name in SHAPES:
            assert profile <= ours
            assert profile < renyi


def theirs(mu, tries, orders):
    shape = math.inf if isinstance(tries, Poisson) else tries.eta
    accountant = RdpAccountant(orders)
    return accountant.compose(RepeatAndSelectDpEvent(GaussianDpEvent(1 / mu), tries.mean, shape))


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("name", [name for name in DISTRIBUTIONS if name != "shape -0.5"])  # which they do not have
def test_agrees_with_dp_accounting(name, mu):
    """Their orders are a list, ours all, and ours knows more: the exact theorem, and delta for the Poisson one."""
    tries = DISTRIBUTIONS[name]
    orders = 1 + np.geomspace(0.02, 5000, 600)
    accountant = theirs(mu, tries, orders)
    ours, reference = selection.epsilon(mu, 1e-6, tries), accountant.get_epsilon(1e-6)
    assert 0.5 * reference <= ours <= reference
    tolerance = 0.25 if isinstance(tries, Poisson) else 0.01
    assert reference * (1 - tolerance) <= selection._by_renyi(mu, 1e-6, tries) <= reference * (1 + 1e-9)
    # Divergences rise with the order, which they make use of for small ones.
    curve = np.minimum.accumulate([tries.renyi(order, mu) for order in orders[::-1]])[::-1]
    assert (curve <= np.asarray(accountant.rdp) * (1 + 1e-6)).all()
    if not isinstance(tries, Poisson):
        assert np.asarray(accountant.rdp) == pytest.approx(curve, rel=0.01)


def derivative(tries, x):
    """f'(x) of f(x) = E[x^K], from the probabilities."""
    if isinstance(tries, Poisson):
        return tries.mean * np.exp(tries.mean * (x - 1))
    scale = tries.gamma / (1 - (1 - tries.gamma) * x)
    return tries.mean * scale ** (1 + tries.eta)


@pytest.mark.parametrize("name", ["geometric", "logarithmic", "shape 3", "poisson"])
@pytest.mark.parametrize("order", ["rising", "falling", "outward"])
@pytest.mark.parametrize("mu", [0.1, 0.7])
def test_covers_the_true_loss_of_a_search_over_gaussians(name, order, mu):
    """Tries are numbers, 0 or mu plus normal noise, and the best one is the largest, the smallest or the farthest."""
    tries, delta = DISTRIBUTIONS[name], 1e-4
    y, step = np.linspace(-12, 12, 400_001, retstep=True)
    chosen = []
    for mean in (0.0, mu):
        if order == "outward":
            below = stats.norm.cdf(np.abs(y) - mean) - stats.norm.cdf(-np.abs(y) - mean)
        else:
            below = stats.norm.cdf(y - mean) if order == "rising" else stats.norm.sf(y - mean)
        chosen.append(derivative(tries, below) * stats.norm.pdf(y - mean) * step)
    if isinstance(tries, Poisson):
        assert sum(chosen[0]) == pytest.approx(1 - math.exp(-tries.mean), rel=1e-6)
    else:
        assert sum(chosen[0]) == pytest.approx(1, rel=1e-6)
    promised = selection.epsilon(mu, delta, tries)

    def lost(epsilon):
        return max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in (chosen, chosen[::-1]))

    assert lost(promised) <= delta
    if order == "rising":
        assert lost(0.45 * promised) > delta, "the bound is not far from the truth"


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("gamma", [0.5, 0.01, 1e-6])
def test_three_epsilon_covers_small_searches_whatever_the_order_of_outcomes(epsilon, gamma):
    """Three outcomes with given chances; the best of geometrically many tries is worked out exactly."""
    factor, rare, rarer = math.exp(epsilon), 1e-2, 1e-5
    one = np.array([1 - rare - factor * rarer, factor * rarer, rare])
    other = np.array([1 - factor * rare - rarer, rarer, factor * rare])
    assert np.abs(np.log(one / other)).max() <= epsilon + 1e-12, "tries are epsilon-DP"

    def best(chances):
        below = np.concatenate([[0], np.cumsum(chances)])
        return np.diff(gamma * below / (1 - (1 - gamma) * below))

    orders = [list(order) for order in permutations(range(3))]
    largest = max(np.abs(np.log(best(one[order]) / best(other[order]))).max() for order in orders)
    promised, delta = liu_talwar_bound(epsilon, 0.0, gamma)
    assert (promised, delta) == (pytest.approx(3 * epsilon), 0.0)
    assert largest <= promised
    if gamma == 1e-6:
        assert largest > 2.95 * epsilon, "it is not less than that"


def test_three_epsilon_is_what_the_theorem_gives_for_one_pair():
    mu, gamma = 0.1, 0.1
    for epsilon in (0.2, 0.3, 0.4):
        total, delta = liu_talwar_bound(epsilon, accounting.delta(mu, epsilon), gamma)
        assert total == pytest.approx(3 * epsilon)
        assert selection.epsilon(mu, delta, GEOMETRIC) <= total
    assert liu_talwar_bound(0.01, 0.5, gamma)[0] > 3


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_more_tries_and_louder_tries_cost_more(name):
    tries = DISTRIBUTIONS[name]
    costs = [selection.epsilon(mu, 1e-5, tries) for mu in np.geomspace(1e-4, 20, 40)]
    assert costs == sorted(costs)
    assert all(selection.epsilon(mu, 1e-5, tries) >= accounting.epsilon(mu, 1e-5) for mu in MUS)
    if name in SHAPES:
        many = TruncatedNegativeBinomial(tries.eta, tries.gamma / 3)
        assert all(selection.epsilon(mu, 1e-5, many) > selection.epsilon(mu, 1e-5, tries) for mu in MUS)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_mu_is_what_the_budget_buys(name, epsilon):
    tries = DISTRIBUTIONS[name]
    mu = selection.mu(epsilon, 1e-5, tries)
    assert selection.epsilon(mu, 1e-5, tries) <= epsilon
    assert selection.epsilon(mu * (1 + 1e-6), 1e-5, tries) > epsilon


def test_the_ends_of_the_range():
    assert selection.epsilon(0.0, 1e-5, GEOMETRIC) == 0
    assert selection.epsilon(1e10, 1e-5, GEOMETRIC) == math.inf
    assert 0 < selection.mu(1e-6, 1e-5, GEOMETRIC) < selection.mu(1e4, 1e-5, GEOMETRIC)
    hardly_any = TruncatedNegativeBinomial.of_mean(1.0, 1.01)
    assert selection.epsilon(0.2, 1e-5, hardly_any) == pytest.approx(accounting.epsilon(0.2, 1e-5), rel=0.02)


@pytest.mark.parametrize(
    "wrong", [(-1.0, 0.1), (math.inf, 0.1), (1.0, 0.0), (1.0, 1.0), (math.nan, 0.1), (1.0, math.nan)]
)
def test_refuses_what_is_no_distribution(wrong):
    with pytest.raises(ValueError, match="eta must be above -1 and gamma between 0 and 1"):
        TruncatedNegativeBinomial(*wrong)


@pytest.mark.parametrize("wrong", [0.5, math.nan, math.inf])
def test_refuses_a_mean_below_one(wrong):
    with pytest.raises(ValueError, match="mean must be at least 1"):
        Poisson(wrong)


def test_refuses_what_is_no_budget():
    with pytest.raises(ValueError, match="epsilon must be"):
        selection.mu(-1.0, 1e-5, GEOMETRIC)
    with pytest.raises(ValueError, match="delta must lie"):
        selection.mu(1.0, 2.0, GEOMETRIC)
    with pytest.raises(ValueError, match="delta must lie"):
        selection.epsilon(1.0, 2.0, GEOMETRIC)
    with pytest.raises(ValueError, match="mu must be"):
        selection.epsilon(math.nan, 1e-5, GEOMETRIC)


@pytest.mark.parametrize("distribution", selection.DISTRIBUTIONS)
@pytest.mark.parametrize("mean", [1.01, 3.0, 10.0, 1e4])
def test_has_the_mean_that_was_asked_for(distribution, mean):
    assert tries_distribution(distribution, mean).mean == pytest.approx(mean, rel=1e-9)


REFERENCES = {
    "geometric": lambda k: stats.geom.pmf(k, 0.1),
    "logarithmic": lambda k: stats.logser.pmf(k, 0.97),
    "shape 3": lambda k: (k > 0) * stats.nbinom.pmf(k, 3.0, 0.4) / stats.nbinom.sf(0, 3.0, 0.4),
    "shape 0.5": lambda k: (k > 0) * stats.nbinom.pmf(k, 0.5, 0.05) / stats.nbinom.sf(0, 0.5, 0.05),
    "poisson": lambda k: stats.poisson.pmf(k, 10.0),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_probabilities_are_those_of_scipy(name):
    ours = list(islice(DISTRIBUTIONS[name].probabilities(mpmath.mp), 60))
    expected = [REFERENCES[name](k) for k, _ in ours]
    assert [float(chance) for _, chance in ours] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_mean_is_that_of_the_probabilities_rounded_up(name):
    tries = DISTRIBUTIONS[name]
    with mpmath.workdps(30):
        assert exact_mean(tries) <= tries.mean <= exact_mean(tries) * (1 + mpmath.mpf("1e-11"))
        if name in REFERENCES:
            mean = mpmath.fsum(k * chance for k, chance in islice(tries.probabilities(mpmath.mp), 3000))
            assert mean == pytest.approx(float(exact_mean(tries)), rel=1e-6)


@pytest.mark.parametrize("name", REFERENCES)
def test_numbers_of_tries_are_distributed_as_they_should(name):
    stream = InsecureSeededStream(7, release=1)
    drawn = np.array([selection._number(DISTRIBUTIONS[name], stream) for _ in range(2000)])
    edges = np.arange(26)
    seen = np.append([np.sum(drawn == k) for k in edges], np.sum(drawn > edges[-1]))
    chances = np.append(REFERENCES[name](edges), 0.0)
    chances[-1] = 1 - chances.sum()
    used = chances > 1e-3
    seen, chances = np.append(seen[used], seen[~used].sum()), np.append(chances[used], chances[~used].sum())
    seen, chances = seen[chances > 0], chances[chances > 0]
    assert stats.chisquare(seen, 2000 * chances / chances.sum()).pvalue > 1e-3


class Words:
    """A source of given words."""

    def __init__(self, *words):
        self.rest = list(words)

    def words(self, count):
        taken, self.rest = self.rest[:count], self.rest[count:]
        return np.array(taken, np.uint64)


def test_numbers_at_the_edge_are_decided_by_more_bits():
    """For gamma = 1/2 the sums of probabilities are 1/2, 3/4, ...: exactly where words end."""
    half, last = TruncatedNegativeBinomial(1.0, 0.5), 2**64 - 1
    assert selection._number(half, Words(0)) == 1
    assert selection._number(half, Words(2**63 - 2)) == 1
    assert selection._number(half, Words(2**63 - 1, 0)) == 1
    assert selection._number(half, Words(2**63, 5)) == 2
    assert selection._number(half, Words(last, 5)) == 65
    assert selection._number(half, Words(last, last, 5)) == 129


def test_a_number_is_drawn_as_finely_as_it_must_be():
    """A word whose interval holds the edge between two numbers: later words decide, as the exact edge says."""
    tries = TruncatedNegativeBinomial(0.5, 0.05)
    with mpmath.workdps(60):
        edge = mpmath.fsum(chance for _, chance in islice(tries.probabilities(mpmath.mp), 3))
        word, rest = (int(part) for part in divmod(mpmath.floor(mpmath.ldexp(edge, 128)), 2**64))
    assert selection._number(tries, Words(word, rest - 2)) == 3
    assert selection._number(tries, Words(word, rest + 2)) == 4


def test_candidates_are_drawn_evenly_and_anew_for_each_try():
    drawn = []

    def attempt(candidate, seed):
        drawn.append((candidate, seed))
        return 0.0, None

    best_of(Poisson(6000.0), 3, attempt, insecure_seed=3)
    counts = np.bincount([candidate for candidate, _ in drawn])
    assert stats.chisquare(counts).pvalue > 1e-3
    pairs = np.bincount([3 * a + b for (a, _), (b, _) in pairwise(drawn)])
    assert stats.chisquare(pairs).pvalue > 1e-3
    assert len({seed for _, seed in drawn}) == len(drawn), "noise is not repeated"


def test_a_word_that_would_favour_some_candidates_is_left_out():
    assert selection._uniform(3, Words(2**64 - 1, 7)) == 1
    assert selection._uniform(4, Words(2**64 - 1)) == 3


def test_the_best_try_wins_and_the_first_of_equals():
    scores = iter([3.0, 5.0, 5.0, *[1.0] * 200])
    results = iter(range(300))
    assert best_of(Poisson(40.0), 2, lambda *_: (next(scores), next(results)), insecure_seed=1) == 1


def test_there_may_be_no_try_and_noise_is_secure_without_a_seed():
    outcomes = {best_of(Poisson(1.0), 2, lambda _, seed: (0.0, str(seed))) for _ in range(60)}
    assert outcomes == {None, "None"}
