"""What canaries contribute: users who reach the bound of a release and share no published number with each other.

Bound, noise and cost of a release do not depend on how many items it has. So one release over many items stands for
many releases: canary number i has items of its own and, for long vectors, a *lane* of coordinates of its own. What is
published elsewhere has independent noise and says nothing about canary i.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpals.audit.recorded_run import RecordedRelease
from dpals.kernels.hashing import hashed_normal, hashed_uniform
from dpals.release.contribution import MAX_SENSITIVITY_BITS, Contribution, Grid, Pattern, Query

CYCLE = 128
"""Number of canaries in which every second one takes part; in every second half of it, the other one of each two."""
_LANE = 4

Floats = NDArray[np.float64]
Key = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Canaries:
    """Canaries as one release sees them.

    ``known`` is what each of them adds, in steps of the grid and times the weight of the coordinate, by group, item,
    lane and place in the lane; ``squares`` the squared norm of that; ``columns`` where lanes are in the table.
    """

    rows: int
    contribution: Contribution
    known: Floats
    squares: Floats
    columns: NDArray[np.int64]

    def projections(self, table: Floats) -> Floats:
        """The inner product of what was published, in steps, with what each canary would have added."""
        groups, items, lanes, _ = self.known.shape
        if lanes == 1 and table.shape[1] == self.columns.shape[1]:  # nothing to pick out
            result: Floats = np.einsum("gk,gk->g", table.reshape(groups, -1), self.known.reshape(groups, -1))
            return result
        own = table.reshape(groups, items, -1)[:, :, self.columns]
        result = np.einsum("gilk,gilk->gl", own, self.known)
        return result.reshape(-1)[: len(self.squares)]


def canaries_for(release: RecordedRelease, size: int, wide: bool) -> Canaries:
    """Canaries for a release: along one axis, along all with equal weight, or anywhere, on one item or on several.

    A quarter of them is at the bound, the others far above it, so that the mechanism has to scale them down. They are
    chosen as integers on the grid and contributed a quarter of a step beyond, so that what they add is known without
    the mechanism.
    """
    query, number = release.query, np.arange(size)
    bits = round(math.log2(query.sensitivity / release.record.step))
    items, lanes = items_per_canary(query), _n_lanes(query, wide)
    group, lane = np.divmod(number, lanes)
    places = np.arange(query.dimension // lanes * lanes).reshape(lanes, -1)
    weights = np.array(query.weights or [1] * query.dimension)[places][lane]
    vectors, coefficients = _integers(query, bits, weights, items)
    columns, products, counts = _products(query, vectors, weights, places)
    added = coefficients[:, :, None] * products[:, None, :]
    known = np.zeros((-(-size // lanes), items, lanes, columns.shape[1]))
    known[group, :, lane] = added * counts[:, None, :]
    own_items = group[:, None] * items + np.arange(items)
    contribution = _contribution(query, Grid.of(query, bits), own_items, coefficients, vectors, places[lane])
    return Canaries(
        contribution.pattern.n_items, contribution, known, (added**2 * counts[:, None, :]).sum(axis=(1, 2)), columns
    )


def _integers(query: Query, bits: int, weights: NDArray[np.int64], items: int) -> tuple[Floats, Floats]:
    """Vectors and coefficients of canaries in steps of the grid, just within the bound of 2^bits."""
    size, width = weights.shape
    length = 2.0 ** {"scalar": 0, "vector": bits // 2, "symmetric": bits // 3}[query.form]
    vectors = np.rint(length * _directions(0, size, width) / np.sqrt(weights))
    lightest = weights == weights.min(axis=1, keepdims=True)
    vectors = np.where(np.any(vectors, axis=1, keepdims=True), vectors, lightest)  # no canary of zeros
    if query.form == "scalar":
        vectors = np.ones((size, 1))
    norms = np.sqrt((weights * vectors**2).sum(axis=1)) ** (2 if query.form == "symmetric" else 1)
    coefficients = np.trunc(_directions(10, size, items) * (2.0**bits / np.maximum(norms, 1.0))[:, None])
    return vectors, coefficients


def _products(
    query: Query, vectors: Floats, weights: NDArray[np.int64], places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Columns of the table for each lane, what a vector adds there, and how much each column counts in the norm.

    Written down here once more, and not asked of the query: a matrix has the entries off its diagonal twice.
    """
    if query.form != "symmetric":
        return places, vectors, weights
    rows, columns = np.triu_indices(places.shape[1])
    numbers = np.zeros((query.dimension, query.dimension), np.int64)
    upper = np.triu_indices(query.dimension)
    numbers[upper] = np.arange(len(upper[0]))
    counts = np.broadcast_to(np.where(rows == columns, 1, 2), (len(vectors), len(rows)))
    return numbers[places[:, rows], places[:, columns]], vectors[:, rows] * vectors[:, columns], counts


def _contribution(
    query: Query,
    grid: Grid,
    own_items: NDArray[np.int64],
    coefficients: Floats,
    vectors: Floats,
    places: NDArray[np.int64],
) -> Contribution:
    """What the canaries that take part contribute, some of them too much."""
    size, items = own_items.shape
    here = takes_part(size)
    pattern = Pattern(
        np.arange(here.sum() + 1) * items, own_items[here].reshape(-1).astype(np.int32), int(own_items[-1, -1]) + 1
    )
    chance = hashed_uniform(20, np.arange(size))[:, None]
    louder = np.where(chance < 0.25, 1, np.where(chance < 0.5, 3, np.where(chance < 0.9, 50, 1)))
    most = 2.0**MAX_SENSITIVITY_BITS / np.maximum(np.abs(coefficients).max(axis=1, keepdims=True), 1)
    louder = np.minimum(louder, np.maximum(most, 1))  # beyond it the mechanism cuts each number by itself
    longer = np.where(chance < 0.9, 1, 1.5)
    contributed = (_quarter_step_beyond(coefficients) * louder * grid.coefficient_step)[here].reshape(-1)
    if query.form == "scalar":
        return Contribution(pattern, contributed)
    whole = np.zeros((size, query.dimension))
    np.put_along_axis(whole, places, _quarter_step_beyond(vectors) * longer * grid.vector_step, axis=1)
    return Contribution(pattern, contributed, whole[here])


def _directions(seed: int, size: int, width: int) -> Floats:
    """Vectors of length 1: along an axis, along all axes alike, or anywhere."""
    number, place = np.arange(size)[:, None], np.arange(width)[None, :]
    chance = hashed_uniform(seed, number)
    axis = np.floor(width * hashed_uniform(seed + 1, number)) == place
    normal = hashed_normal(seed + 2, number, place)
    vectors = np.where(chance < 0.2, axis, np.where(chance < 0.7, np.sign(normal), normal))
    result: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return result


def _quarter_step_beyond(integers: Floats) -> Floats:
    """A quarter of a step further from zero, so that rounding toward zero gives the integers again."""
    return integers + 0.25 * np.sign(integers)


def takes_part(size: int) -> NDArray[np.bool_]:
    """Every second canary; which of two neighbours it is changes, so that each lane has canaries of both kinds."""
    number = np.arange(size)
    result: NDArray[np.bool_] = (number + number // (CYCLE // 2)) % 2 == 0
    return result


def items_per_canary(query: Query) -> int:
    """How many items each canary has, if the release has as many."""
    return min(query.n_items, 4 if query.dimension == 1 else 2)


def _n_lanes(query: Query, wide: bool) -> int:
    """Into how many lanes the coordinates are divided; one if canaries are to be wide."""
    return 1 if wide else max(1, query.dimension // _LANE)


def entries_per_canary(query: Query, wide: bool) -> int:
    """How many numbers are published for each canary."""
    coordinates = query.dimension * (query.dimension + 1) // 2 if query.form == "symmetric" else query.dimension
    return -(-items_per_canary(query) * coordinates // _n_lanes(query, wide))


def key_of(release: RecordedRelease) -> Key:
    """Releases alike in this have the same canaries."""
    query = release.query
    shape = query.form, query.dimension, query.weights, items_per_canary(query)
    return *shape, query.sensitivity, query.coefficient_norm, release.record.step
