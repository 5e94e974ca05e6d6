"""Plain alternating least squares without privacy: the yardstick for how much there is to learn in data.

It shares no code with dpals, so that tests can hold dpals and its simulated data against it.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits


@njit(parallel=True, fastmath=True, cache=True)
def _solve_rows(indptr, indices, targets, fixed, shared_gram, ridges, result):
    """Row i minimises sum_j (target_ij - x . fixed_j)^2 + x' (shared_gram + diag(ridges_i)) x."""
    for i in prange(len(indptr) - 1):
        row = slice(indptr[i], indptr[i + 1])
        features = fixed[indices[row]]
        gram = shared_gram + np.dot(features.T, features)
        for d in range(gram.shape[0]):
            gram[d, d] += ridges[i, d]
        result[i] = np.linalg.solve(gram, np.dot(features.T, targets[row]))


def solve_rows(matrix, targets, fixed, shared_gram, ridges):
    result = np.empty((matrix.shape[0], fixed.shape[1]), np.float32)
    with threadpool_limits(1, user_api="blas"):
        _solve_rows(matrix.indptr, matrix.indices, targets, fixed, shared_gram, ridges.astype(np.float32), result)
    return result


@dataclass
class ExplicitALS:
    """Rating = mean + user . item, or with biases mean + user bias + item bias + user . item.

    The ridge of a row with c ratings is ``ridge * c ** ridge_power``, and `bias_ridge` for its bias.
    """

    rank: int = 32
    ridge: float = 0.3
    ridge_power: float = 0.7
    biases: bool = True
    bias_ridge: float = 5.0
    steps: int = 15

    def fit(self, train: csr_array) -> "ExplicitALS":
        self.mean = train.data.mean(dtype=np.float64)
        centred = csr_array((train.data - np.float32(self.mean), train.indices, train.indptr), train.shape)
        by_item = centred.T.tocsr()
        items = 0.1 * np.random.default_rng(0).standard_normal((train.shape[1], self.rank), dtype=np.float32)
        item_bias = np.zeros(train.shape[1], np.float32)
        for _ in range(self.steps):
            users, user_bias = self._half_step(centred, items, item_bias)
            items, item_bias = self._half_step(by_item, users, user_bias)
        self.users, self.user_bias, self.items, self.item_bias = users, user_bias, items, item_bias
        return self

    def _half_step(self, matrix, fixed, fixed_bias):
        counts = np.diff(matrix.indptr)
        ridges = np.repeat(self.ridge * np.maximum(counts, 1)[:, None] ** self.ridge_power, self.rank, axis=1)
        targets = matrix.data - fixed_bias[matrix.indices]
        if not self.biases:
            gram = np.zeros((self.rank, self.rank), np.float32)
            return solve_rows(matrix, targets, fixed, gram, ridges), np.zeros(len(counts), np.float32)
        features = np.column_stack([fixed, np.ones(len(fixed), np.float32)])
        gram = np.zeros((self.rank + 1, self.rank + 1), np.float32)
        ridges = np.column_stack([ridges, np.full(len(counts), self.bias_ridge)])
        solved = solve_rows(matrix, targets, features, gram, ridges)
        return np.ascontiguousarray(solved[:, :-1]), solved[:, -1]

    def predict(self, users, items):
        biases = self.mean + self.user_bias[users] + self.item_bias[items]
        return biases + np.einsum("nk,nk->n", self.users[users], self.items[items])


@dataclass
class ImplicitALS:
    """Scores near 1 for pairs that were seen and, with weight `unseen`, near 0 for all pairs.

    The ridge of a row with c pairs is ``ridge * (c + unseen * number of columns)``.
    """

    rank: int = 64
    unseen: float = 0.1
    ridge: float = 0.003
    steps: int = 8

    def fit(self, train: csr_array) -> "ImplicitALS":
        by_item = train.T.tocsr()
        start = np.random.default_rng(0).standard_normal((train.shape[1], self.rank), dtype=np.float32)
        self.items = 0.1 / np.sqrt(np.float32(self.rank)) * start
        for _ in range(self.steps):
            users = self.fold_in(train)
            self.items = self._half_step(by_item, users)
        return self

    def fold_in(self, history: csr_array):
        """Vectors of users with these pairs."""
        return self._half_step(history, self.items)

    def _half_step(self, matrix, fixed):
        ridge = self.ridge * (np.diff(matrix.indptr) + self.unseen * len(fixed))
        ridges = np.repeat(ridge[:, None], self.rank, axis=1)
        return solve_rows(matrix, np.ones_like(matrix.data), fixed, np.float32(self.unseen) * (fixed.T @ fixed), ridges)
