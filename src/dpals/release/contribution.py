"""What users contribute, made integers and clipped to the sensitivity user by user.

A `Contribution` holds, for a block of users, coefficients c_ij on the items that each user touches and a vector x_i per
user. What user i adds to the published table is the outer product of (c_ij)_j and x_i, whose squared norm
factorises: |x_i|^2 * sum_j c_ij^2. `quantize_and_clip` makes sure, in integers, that this number is at most the square
of the sensitivity. Nothing here trusts the caller's arithmetic. Two duties stay with the private zone: each user is one
row, and a row depends on no other user.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpals.kernels.item_sums import entries_by_item

Form = Literal["scalar", "vector", "symmetric"]
FloatArray = NDArray[np.floating[Any]]

MAX_SENSITIVITY_BITS = 30
"""Integer sensitivities are at most 2^30: their squares, and sums up to one above, fit in int64."""

_LARGEST = 2**MAX_SENSITIVITY_BITS  # integers beyond it would exceed any sensitivity, so they saturate


@dataclass(frozen=True, eq=False)
class Pattern:
    """Which items each user of a block touches: the rows of a CSR matrix without its values.

    Formal guarantee (docs/privacy.md, step 1): no row names an item twice, so that no user counts twice for an item.
    The arrays are read-only copies unless they were read-only already.

    Parameters
    ----------
    indptr, items
        Row i holds ``items[indptr[i]:indptr[i + 1]]``, strictly increasing.
    n_items
        Size of the catalogue, a public number.
    first_user
        Number of the first row among all users. The blocks of one release may not overlap.

    ==========================  ====================================================
    user without items          allowed, contributes nothing
    item twice, out of order    ValueError
    item outside the catalogue  ValueError
    ==========================  ====================================================
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    n_items: int
    first_user: int = 0

    def __post_init__(self) -> None:
        indptr, items = _frozen(self.indptr, np.int64), _frozen(self.items, np.int32)
        object.__setattr__(self, "indptr", indptr)
        object.__setattr__(self, "items", items)
        if indptr.ndim != 1 or len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(items):
            raise ValueError("indptr must run from 0 to the number of entries")
        if np.any(indptr[1:] < indptr[:-1]) or self.first_user < 0:
            raise ValueError("indptr must not fall, and first_user must not be negative")
        if not _valid_rows(indptr, items, self.n_items):
            raise ValueError(
                f"each row must name items between 0 and {self.n_items - 1} in increasing order, none twice"
            )

    @property
    def n_users(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def by_item(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """The same entries ordered by item: item pointers, positions of the entries, their rows."""
        return entries_by_item(self.indptr, self.items, self.n_items)  # type: ignore[no-any-return]

    @classmethod
    def one_item(cls, n_users: int, first_user: int = 0) -> "Pattern":
        """Every user touches one pseudo-item: the pattern of global statistics."""
        return cls(np.arange(n_users + 1), np.zeros(n_users, np.int32), 1, first_user)


@dataclass(frozen=True, eq=False)
class Contribution:
    """What a block of users adds to the sums of a query, in real numbers, before it is quantized and clipped.

    Parameters
    ----------
    pattern
        Which items each user touches.
    coefficients
        One number per entry of the pattern.
    vectors
        One row per user; None if every x_i is 1.
    """

    pattern: Pattern
    coefficients: FloatArray
    vectors: FloatArray | None = None


@dataclass(frozen=True)
class Query:
    """The public description of a release: its shape, sensitivity and grid, all chosen without the data.

    Parameters
    ----------
    purpose
        What the release is for, in words that a reviewer understands.
    n_items
        Number of published rows; 1 for a global statistic.
    sensitivity
        The largest norm of what one user adds to the whole table: sqrt(sum_j c_ij^2) * |x_i|, and for the symmetric
        form sqrt(sum_j c_ij^2) * |u_i|^2. Users above it are clipped.
    form
        ``scalar`` publishes sum_i c_ij; ``vector`` sum_i c_ij x_i; ``symmetric`` the upper triangles of
        sum_i c_ij u_i u_i^T, row by row.
    dimension
        Length of the users' vectors; 1 for scalars.
    coefficient_norm
        Typical size of sqrt(sum_j c_ij^2). It only affects the grid: it splits the digits between coefficients and
        vectors.
    weights
        For vectors: how much each coordinate counts in the norm, as integers. A coordinate of weight w gets noise of
        variance V / w.
    """

    purpose: str
    n_items: int
    sensitivity: float
    form: Form = "scalar"
    dimension: int = 1
    coefficient_norm: float = 1.0
    weights: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not (self.sensitivity == 0 or 1e-100 <= self.sensitivity <= 1e100):
            raise ValueError(
                f"the sensitivity of {self.purpose!r} must be 0 or from 1e-100 to 1e100, got {self.sensitivity}"
            )
        if not 1e-100 <= self.coefficient_norm <= 1e100:
            raise ValueError(f"coefficient_norm must lie between 1e-100 and 1e100, got {self.coefficient_norm}")
        if self.form not in get_args(Form):
            raise ValueError(f"form must be one of {get_args(Form)}, got {self.form!r}")
        if self.n_items < 1 or self.dimension < 1:
            raise ValueError("a release needs at least one item and one dimension")
        if self.form == "scalar" and self.dimension != 1:
            raise ValueError("scalars have dimension 1")
        if self.weights is not None:
            if self.form != "vector" or len(self.weights) != self.dimension:
                raise ValueError("weights are for vectors, one for each coordinate")
            if any(int(w) != w or not 1 <= w <= _LARGEST for w in self.weights):
                raise ValueError(f"weights must be positive integers, got {self.weights}")

    @property
    def coordinate_weights(self) -> NDArray[np.int64]:
        """Weight of each published coordinate: off the diagonal of a symmetric matrix it is 2."""
        if self.form == "symmetric":
            rows, columns = np.triu_indices(self.dimension)
            return np.where(rows == columns, 1, 2).astype(np.int64)
        return np.array(self.weights or [1] * self.dimension, dtype=np.int64)


@dataclass(frozen=True)
class Grid:
    """The integer grid: the sensitivity in units of what is published, and the size of its units.

    `coefficient_step` is one unit of a coefficient, `vector_step` of a vector, and `step` of what is published.
    """

    sensitivity: int
    coefficient_step: float
    vector_step: float
    step: float

    @classmethod
    def of(cls, query: Query, bits: int) -> "Grid":
        """The grid on which the query's sensitivity is the integer 2^bits."""
        if not 0 <= bits <= MAX_SENSITIVITY_BITS:
            raise ValueError(f"the sensitivity takes between 0 and {MAX_SENSITIVITY_BITS} bits, not {bits}")
        if query.sensitivity == 0:
            return cls(0, coefficient_step=1.0, vector_step=1.0, step=1.0)
        step = math.ldexp(query.sensitivity, -bits)
        if query.form == "scalar":
            return cls(1 << bits, step, 1.0, step)
        vector_norm, factors = query.sensitivity / query.coefficient_norm, 1
        if query.form == "symmetric":  # the vector enters twice
            vector_norm, factors = math.sqrt(vector_norm), 2
        vector_bits = bits // (1 + factors)
        coefficient_step = math.ldexp(query.coefficient_norm, factors * vector_bits - bits)
        return cls(1 << bits, coefficient_step, math.ldexp(vector_norm, -vector_bits), step)


@dataclass(frozen=True, eq=False)
class ClippedContribution:
    """Integers within the sensitivity, ready to be summed. Only `quantize_and_clip` makes them."""

    pattern: Pattern
    coefficients: NDArray[np.int32]
    vectors: NDArray[np.int32]


def quantize_and_clip(contribution: Contribution, query: Query, grid: Grid) -> ClippedContribution:
    """Turn a contribution into integers and clip each user to the sensitivity.

    Formal guarantee (docs/privacy.md, step 1): in the result, for every user i, N_i * sum_j c_ij^2 is at most
    grid.sensitivity^2 in exact integer arithmetic, where N_i is sum_k w_k x_ik^2 for vectors, |u_i|^4 for symmetric
    matrices and 1 for scalars. Row i of the result depends on row i of the contribution alone.

    This is a safety net: a user far above the sensitivity loses digits and in the end vanishes. Methods clip in real
    numbers, in the private zone, to just below the sensitivity.

    ============================  ======================================================
    zero vector, no items         contributes nothing
    NaN or infinity               ValueError, whatever the sensitivity
    numbers beyond 2^30 steps     cut to 2^30 steps, then scaled down like any other
    sensitivity of zero           everyone is scaled down to nothing
    user above the sensitivity    all coefficients scaled by one factor, toward zero
    ============================  ======================================================
    """
    pattern, symmetric = contribution.pattern, query.form == "symmetric"
    if pattern.n_items != query.n_items:
        raise ValueError(f"the contribution covers {pattern.n_items} items, the query {query.n_items}")
    if contribution.coefficients.shape != pattern.items.shape:
        raise ValueError("one coefficient is needed for each entry of the pattern")
    coefficients = _truncated(contribution.coefficients, grid.coefficient_step, "coefficients")
    if query.form == "scalar":
        if contribution.vectors is not None:
            raise ValueError("scalars take coefficients only")
        vectors = np.ones((pattern.n_users, 1), np.int32)
    else:
        if contribution.vectors is None or contribution.vectors.shape != (pattern.n_users, query.dimension):
            raise ValueError(f"vectors must be of shape {(pattern.n_users, query.dimension)}")
        vectors = _truncated(contribution.vectors, grid.vector_step, "vectors")
    weights = np.ones(query.dimension, np.int64) if symmetric else query.coordinate_weights
    _clip_users(pattern.indptr, coefficients, vectors, weights, symmetric, grid.sensitivity)
    return ClippedContribution(pattern, coefficients, vectors)


def _frozen(array: ArrayLike, dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """The array itself if it and everything that it is a view of are read-only, else a read-only copy."""
    result = np.ascontiguousarray(array, dtype=dtype)
    owner: Any = result
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            result = result.copy()
            result.setflags(write=False)
            break
        owner = owner.base
    return result


def _truncated(values: FloatArray, step: float, name: str) -> NDArray[np.int32]:
    """values / step, rounded toward zero, as integers of at most 2^30."""
    result = np.empty(values.shape, np.int32)
    if not _truncate(np.ascontiguousarray(values).reshape(-1), 1 / step, result.reshape(-1)):
        raise ValueError(f"{name} must be finite numbers, found NaN or infinity")
    return result


@numba.njit(cache=True, nogil=True)
def _truncate(values, scale, result):  # type: ignore[no-untyped-def]
    for k in range(len(values)):
        value = values[k] * scale
        if not np.isfinite(values[k]):
            return False
        result[k] = np.int32(max(-float(_LARGEST), min(float(_LARGEST), value)))
    return True


@numba.njit(cache=True, nogil=True)
def _valid_rows(indptr, items, n_items):  # type: ignore[no-untyped-def]
    for i in range(len(indptr) - 1):
        previous = -1
        for e in range(indptr[i], indptr[i + 1]):
            if items[e] <= previous or items[e] >= n_items:
                return False
            previous = items[e]
    return True


@numba.njit(cache=True, nogil=True)
def _squared_norm(values, ceiling):  # type: ignore[no-untyped-def]
    """sum_k values_k^2 in exact integers, or `ceiling` if it is at least that much."""
    total = np.int64(0)
    for k in range(len(values)):
        total += np.int64(values[k]) * np.int64(values[k])
        if total >= ceiling:
            return ceiling
    return total


@numba.njit(cache=True, nogil=True)
def _weighted_squared_norm(values, weights, ceiling):  # type: ignore[no-untyped-def]
    """sum_k weights_k values_k^2 in exact integers, or `ceiling` if it is at least that much."""
    total = np.int64(0)
    for k in range(len(values)):
        square = np.int64(values[k]) * np.int64(values[k])
        if square > ceiling // weights[k]:
            return ceiling
        total += weights[k] * square
        if total >= ceiling:
            return ceiling
    return total


@numba.njit(cache=True, nogil=True)
def _clip_users(indptr, coefficients, vectors, weights, symmetric, sensitivity):  # type: ignore[no-untyped-def]
    """Scale the coefficients of each user, in place, until what the user adds is within the sensitivity.

    All decisions are made in int64: norms saturate at `ceiling`, one above the square of the sensitivity, which no
    user with a non-zero vector and a non-zero coefficient may reach.
    """
    square = np.int64(sensitivity) * np.int64(sensitivity)
    ceiling = square + 1
    plain = np.all(weights == 1)
    for i in range(len(indptr) - 1):
        row = coefficients[indptr[i] : indptr[i + 1]]
        norm = _squared_norm(vectors[i], ceiling) if plain else _weighted_squared_norm(vectors[i], weights, ceiling)
        if symmetric:
            norm = ceiling if norm > sensitivity else norm * norm
        if norm > 0 and _squared_norm(row, ceiling) > square // norm:
            _scale_down(row, vectors[i], weights, symmetric, sensitivity, square // norm)


@numba.njit(cache=True, nogil=True)
def _scale_down(row, vector, weights, symmetric, sensitivity, allowed):  # type: ignore[no-untyped-def]
    """Multiply a row by one factor, toward zero, until its squared norm is at most `allowed`.

    Floats only give a first guess of the factor: the loop ends on the integer check, or with a row of zeros.
    """
    original = row.astype(np.int64)
    size = np.sqrt(np.sum(weights * vector.astype(np.float64) ** 2)) ** (2 if symmetric else 1)
    guess = sensitivity / (size * np.sqrt(np.sum(original.astype(np.float64) ** 2)))
    factor = np.int64(min(guess, 1.0) * 2**24)
    while True:
        for k in range(len(row)):
            magnitude = (abs(original[k]) * factor) >> 24
            row[k] = magnitude if original[k] >= 0 else -magnitude
        if factor == 0 or _squared_norm(row, allowed + 1) <= allowed:
            return
        factor -= 1 + factor // 256
