"""What users contribute to PooledDPALS: residuals times vectors, and what all users' vectors have in common."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import remembered
from dpals.data.ratings import Ratings
from dpals.kernels.rows import entry_norms, row_combinations, row_norms, row_sums, scale_rows
from dpals.private.histories import HistoryFit, history_fit_contribution
from dpals.private.means import pattern_of
from dpals.private.sampling import share_of_users, unit_weights
from dpals.private.scales import Fits, FitUnits, fit_contribution
from dpals.private.user_vectors import LeastSquaresProblem, LogisticProblem
from dpals.release.contribution import Contribution, Pattern

Doubles = NDArray[np.float64]

_JUST_BELOW = 1 - 1e-9  # so that rounding on the mechanism's grid does not scale a user down once more
_JUST_BELOW_SINGLE = 1 - 2.0**-22  # the same for coefficients in single precision


def covariance_share(rank: int) -> float:
    """Share of the users who contribute the covariance of their vectors: fewer beyond rank 32, to save time."""
    return min(1.0, (32 / max(rank, 1)) ** 3)


class Bounds(NamedTuple):
    """Sensitivities of the three releases of a step."""

    moments: float
    gram: float
    covariance: float


class RatingWeights(NamedTuple):
    """What decides the weights of ratings and users: public.

    `of_items` is what a rating of each item weighs before a user's weights are scaled to length 1. Users whose weights
    add up to `largest_sum` or more count fully in pooled sums.
    """

    of_items: Doubles
    largest_sum: float


class WeightedUsers(NamedTuple):
    """Users with the weights of their ratings, which stay the same for the whole run.

    `weights` are w_ij, one per rating; the squares of each user's weights add up to 1. `user_weights` are b_i, one per
    user, at most 1: how much the user says about all items together. It is the sum of the user's weights as a share of
    the largest sum that counts.
    """

    pattern: Pattern
    weights: Doubles
    user_weights: Doubles


@remembered
def weighted_users(ratings: Ratings, public: RatingWeights) -> WeightedUsers:
    """Weights in proportion to public weights of the items."""
    weights = unit_weights(ratings, public.of_items)
    user_weights = np.minimum(row_sums(ratings.indptr, weights) / public.largest_sum, 1.0)
    return WeightedUsers(pattern_of(ratings), weights, user_weights)


def user_weight_contribution(ratings: Ratings, public: RatingWeights) -> Contribution:
    """The weight of the user, at most 1."""
    return Contribution(Pattern.one_item(ratings.n_users), weighted_users(ratings, public).user_weights)


def item_weight_contribution(ratings: Ratings, public: RatingWeights) -> Contribution:
    """The weights of a user's ratings. Norm at most 1."""
    users = weighted_users(ratings, public)
    return Contribution(users.pattern, users.weights)


def weight_contributions(ratings: Ratings, public: RatingWeights) -> tuple[Contribution, Contribution]:
    """Both, for one pass."""
    return user_weight_contribution(ratings, public), item_weight_contribution(ratings, public)


class Groups(NamedTuple):
    """The group of each item, and how many groups there are."""

    weights: RatingWeights
    of_items: NDArray[np.int32]
    number: int


def squared_weight_contribution(ratings: Ratings, public: Groups) -> Contribution:
    """The sum of the user's squared weights for the items of each group. They add up to 1, so the norm is at most 1."""
    users = weighted_users(ratings, public.weights)
    members = np.eye(public.number)[public.of_items]
    vectors = row_combinations(ratings.indptr, ratings.indices, users.weights**2, members)
    return Contribution(Pattern.one_item(ratings.n_users), np.full(ratings.n_users, _JUST_BELOW), vectors)


def activity_contribution(ratings: Ratings, n_bins: int) -> Contribution:
    """1 in the bin of the user's number of items, two bins for each doubling. Norm at most 1."""
    counts, n_users = np.diff(ratings.indptr), ratings.n_users
    bins = np.frexp(np.maximum(counts, 1).astype(np.float64) ** 2)[1].astype(np.int32) - 1  # 2 log2, rounded down
    return Contribution(Pattern(np.arange(n_users + 1), bins, n_bins), (counts > 0).astype(np.float64))


class Features(NamedTuple):
    """Features of the items, and the largest norm of what a user contributes to their Gram matrix."""

    weights: RatingWeights
    of_items: Doubles
    bound: float


def feature_gram_contribution(ratings: Ratings, public: Features) -> Contribution:
    """The weighted sum of the features of the user's items, for its Gram matrix, with the weight of the user."""
    users = weighted_users(ratings, public.weights)
    vectors = _feature_sums(ratings, users, public.of_items)
    parts = _within(public.bound, users.user_weights, row_norms(vectors) ** 2)
    return Contribution(Pattern.one_item(ratings.n_users), parts, vectors)


def direction_contribution(ratings: Ratings, public: Features) -> Contribution:
    """Weight times the direction of this sum, for each item. Norm at most 1."""
    users = weighted_users(ratings, public.weights)
    vectors = _feature_sums(ratings, users, public.of_items)
    lengths = row_norms(vectors)[:, None]
    directions = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return Contribution(users.pattern, users.weights * _JUST_BELOW, directions)


def _feature_sums(ratings: Ratings, users: WeightedUsers, features: Doubles) -> Doubles:
    """The weighted sum of the features of each user's items, whatever the ratings."""
    return row_combinations(ratings.indptr, ratings.indices, users.weights, features)


class PooledStep(NamedTuple):
    """What users must know in one step. `constant` is the coordinate beside a user's vector.

    With `fit`, users also say how well they are fitted (see `fit_contribution`), and with `history`, how their vectors
    depend on their histories (see `history_fit_contribution`).
    """

    weights: RatingWeights
    problem: LeastSquaresProblem | LogisticProblem
    constant: float
    bounds: Bounds
    fit: FitUnits | None = None
    history: HistoryFit | None = None


def step_contributions(ratings: Ratings, public: PooledStep) -> tuple[Contribution, ...]:
    """Contributions of one step: the Gram matrix of the x_i, the covariance of the u_i, fits, and moments c_ij x_i.

    With x_i = (u_i, constant), the user's vector and a constant for the item's bias, and residuals e_ij of the
    user's own fit, or 1 for implicit feedback, c_ij = f_i w_ij e_ij, where f_i <= 1 scales the whole contribution
    down to its bound. The other two have the weight f_i b_i. The covariance, which says how uncertain u_i is given
    the user's ratings, and the fits come from some of the users only: see `covariance_share`. Without factors there is
    no covariance, and without a unit there are no fits.
    """
    users, problem, bounds = weighted_users(ratings, public.weights), public.problem, public.bounds
    n_users, rank = ratings.n_users, problem.rank
    sampled = share_of_users(ratings, covariance_share(rank))
    inverses = np.zeros((int(sampled.sum()), rank * (rank + 1) // 2), np.float32)
    solved = problem.solve(ratings, inverses=inverses if rank else None, inverted=sampled)
    coefficients = problem.residuals(ratings, solved)
    norms_of_residuals = entry_norms(ratings.indptr, coefficients) if public.fit is not None else np.zeros(0)
    coefficients *= users.weights
    vectors = np.column_stack([solved[:, :rank], np.full(n_users, public.constant)]).astype(np.float64)

    lengths = row_norms(vectors)
    norms = entry_norms(ratings.indptr, coefficients) * lengths
    scales = np.minimum(1.0, bounds.moments / np.maximum(norms, 1e-300)) * _JUST_BELOW_SINGLE
    scale_rows(ratings.indptr, coefficients, scales)

    everyone, parts = Pattern.one_item(n_users), users.user_weights * scales
    contributions = [Contribution(everyone, _within(bounds.gram, parts, lengths**2), vectors)]
    inverses *= np.float32(problem.ridge)
    if rank:
        shares = _within(bounds.covariance, parts[sampled], row_norms(inverses))
        contributions.append(Contribution(Pattern.one_item(len(inverses)), shares, inverses))
    if public.fit is not None:
        assert isinstance(problem, LeastSquaresProblem)
        # A user whose contribution is scaled down hides one of its dimensions.
        hidden = np.where(scales < _JUST_BELOW_SINGLE, 1 / np.maximum(np.diff(ratings.indptr), 1), 0.0)
        fits = _fits(ratings, problem, norms_of_residuals**2, inverses, sampled, parts * (1 - hidden))
        contributions.append(fit_contribution(fits, public.fit))
    if public.history is not None:
        assert isinstance(problem, LeastSquaresProblem)
        contributions.append(history_fit_contribution(ratings, problem, solved, public.history))
    return (*contributions, Contribution(users.pattern, coefficients, vectors))


def _fits(
    ratings: Ratings,
    problem: LeastSquaresProblem,
    squares: Doubles,
    covariances: NDArray[np.float32],
    sampled: NDArray[np.bool_],
    parts: Doubles,
) -> Fits:
    """How well the sampled users are fitted, given their squared residuals and the covariances of their vectors.

    Covariances are in units of the ridge. A fit to n ratings then has as many parameters as the rank less the trace of
    the covariance; and a bias, close to n / (n + its ridge) more. `parts` is by how much what users contribute would
    follow their ratings if they were not fitted to them.
    """
    counts, bias_ridge = np.diff(ratings.indptr), float(problem.base[-1, -1])
    targets = problem.targets(ratings)
    sums = row_sums(ratings.indptr, targets)
    biases = sums / (counts + bias_ridge)
    squares_alone = entry_norms(ratings.indptr, targets) ** 2 - (2 * sums - counts * biases) * biases
    alone = counts[sampled] / (counts[sampled] + bias_ridge)
    rank, (rows, columns) = problem.rank, np.triu_indices(problem.rank)
    variances = np.ascontiguousarray(covariances[:, rows == columns]).ravel()
    traces = row_sums(rank * np.arange(len(covariances) + 1), variances)
    parameters = alone + rank - traces
    responses = parts[sampled] * (1 - parameters / np.maximum(counts[sampled], 1))
    return Fits(counts[sampled], squares[sampled], parameters, squares_alone[sampled], alone, responses)


def _within(bound: float, coefficients: Doubles, sizes: Doubles) -> Doubles:
    """The coefficients, reduced where coefficient times size would exceed the bound."""
    return np.minimum(coefficients, bound * _JUST_BELOW / np.maximum(sizes, 1e-300))
