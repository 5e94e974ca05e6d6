"""A small logistic regression for every row of a sparse matrix: which of the columns the row has."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpals.kernels.elementary import LOG_2, exponentials, logarithms
from dpals.kernels.least_squares import invert, lines_of, padded_system
from dpals.kernels.small_matrices import add_product, add_weighted_rows, padded, solve_positive
from dpals.kernels.threads import in_threads

Floats = NDArray[np.float32]

_NEWTON_STEPS = 3
_LONGEST_STEP = np.float32(2)
_LARGEST_LOG_ODDS = np.float32(30)
_BITS_OF_E = np.float32(1 / LOG_2)
_SERIES = np.cumprod([1.0, *(LOG_2 / k for k in range(1, 7))]).astype(np.float32)  # of 2^t, good for |t| <= 1/2
_LANES = padded(1, np.float32)


class ColumnGroups(NamedTuple):
    """Groups of columns that are alike, so that a row need not look at every column.

    A group counts as `counts` columns whose log odds are normal over the group: for a row with the solution x they have
    the mean offsets + x . means and the variance x^2 . variances, which raises the mean of the odds.
    """

    counts: Floats
    offsets: Floats
    means: Floats
    variances: Floats


def solve_logistic(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    features: Floats,
    groups: ColumnGroups,
    base: Floats,
    *,
    ridged: int,
    inverses: Floats | None = None,
    inverted: NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> Floats:
    """The most likely x_i of every row, if the row has column j with log odds o_j + x_i . f_j.

    Minimises the sum over all columns j of log(1 + exp(h_ij)) - [i has j] h_ij, h_ij = o_j + x_i . f_j, plus
    x_i . base x_i / 2, by three steps of Newton's method. In the first term groups stand for their columns. So the time
    is that of the groups and of the row's own entries. The last feature must be 1 for all columns: its coordinate says
    how many columns the row has. A row's solution depends on that row's entries alone, to the last bit, for any number
    of threads and any type of processor.

    Parameters
    ----------
    indptr, indices
        The columns of each row.
    features
        f_j, one row per column.
    groups
        All columns.
    base
        Symmetric and positive: the ridges.
    ridged
        How many of the leading coordinates `inverses` is about.
    inverses
        If given, it is filled with the inverse of a row's last Newton system on the ridged coordinates: its upper
        triangle, one line for each row that is `inverted`. Rows without entries leave their line as it was.
    inverted
        The rows that `inverses` has a line for; all by default.
    threads
        How many to use; all cores by default.

    Returns
    -------
    array with one solution per row; zero for rows without entries
    """
    rank = features.shape[1]
    solutions = np.zeros((len(indptr) - 1, rank), np.float32)
    padded_groups = _padded(groups, base)
    wanted = lines_of(len(solutions), inverses, inverted)
    # Newton's method has two starting points for each doubling of the number of columns that a row has.
    levels = np.arange(2 * len(features).bit_length() + 1)
    total = np.maximum(np.sum(groups.counts * exponentials(groups.offsets)), 1e-30)
    starts = (levels * (LOG_2 / 2) - logarithms(total)).astype(np.float32)
    beginnings = (starts, *_first_expectations(starts, rank, padded_groups))

    def work(start: int, stop: int) -> None:
        _solve(indptr, indices, features, padded_groups, beginnings, ridged, start, stop, solutions, *wanted)

    in_threads(work, indptr, threads)
    return solutions


def _padded(groups: ColumnGroups, base: Floats) -> tuple[Floats, ...]:
    """Means and variances by group and by coordinate, padded with groups of no columns; log odds; counts; ridges."""
    (n_groups, rank), common = groups.means.shape, padded_system(base)
    depth, width = padded(n_groups, np.float32), len(common)
    means, variances = np.zeros((2, depth, width), np.float32)
    means[:n_groups, :rank], variances[:n_groups, :rank] = groups.means, groups.variances
    counts, logs = np.zeros(depth, np.float32), np.zeros(depth, np.float32)
    counts[:n_groups], logs[:n_groups] = groups.counts, groups.offsets
    lines = np.ascontiguousarray(means.T), np.ascontiguousarray(variances.T) / np.float32(2)
    return means, variances, *lines, logs, counts, common


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
def _first_expectations(starts, rank, groups):  # type: ignore[no-untyped-def]
    """`_expectations` at the starting points of Newton's method, which many rows share."""
    means = groups[0]
    width = means.shape[1]
    moments = np.empty((len(starts), 1, width), np.float32)
    systems = np.zeros((len(starts), width, width + _LANES), np.float32)
    scratch = _scratch(means)
    solution = np.zeros(rank, np.float32)
    for level in range(len(starts)):
        solution[rank - 1] = starts[level]
        _expectations(solution, groups, moments[level], systems[level], scratch)
    return moments, systems


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
def _solve(indptr, indices, features, groups, beginnings, ridged, start, stop, solutions, inverses, lines):  # type: ignore[no-untyped-def]
    means, common = groups[0], groups[-1]
    starts, first_moments, first_systems = beginnings
    width, rank = means.shape[1], solutions.shape[1]
    system = np.zeros((width, width + _LANES), np.float32)
    step, reciprocals = np.empty((1, width), np.float32), np.empty((1, width), np.float32)
    observed, moments = np.empty(rank, np.float32), np.empty((1, width), np.float32)
    root = np.empty((width, width), np.float32)
    scratch = _scratch(means)
    for i in range(start, stop):
        count = indptr[i + 1] - indptr[i]
        if count == 0:
            continue
        observed[:] = 0
        for column in indices[indptr[i] : indptr[i + 1]]:
            for k in range(rank):
                observed[k] += features[column, k]
        solution, level = solutions[i], _half_doublings(count)
        solution[rank - 1] = starts[level]
        moments[:] = first_moments[level]
        system[:] = first_systems[level]
        solved = True
        for number in range(_NEWTON_STEPS):
            if number:
                _expectations(solution, groups, moments, system, scratch)
            for k in range(width):
                pull = observed[k] - moments[0, k] if k < rank else np.float32(0)
                for other in range(rank):
                    pull -= common[k, other] * solution[other]
                system[k, width] = pull
                for pad in range(1, _LANES):
                    system[k, width + pad] = 0
            solved = solve_positive(system, step, reciprocals)
            if not solved:  # `step` and `reciprocals` may hold numbers of another row
                break
            length = np.float32(0)
            for k in range(rank):
                length += step[0, k] * step[0, k]
            shorter = min(np.float32(1), _LONGEST_STEP / np.sqrt(length))
            for k in range(rank):
                solution[k] += shorter * step[0, k]
        if solved and lines[i] >= 0:
            invert(system, reciprocals, rank, ridged, root, inverses[lines[i]])


@njit(nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _half_doublings(count):  # type: ignore[no-untyped-def]
    """2 log2 of the count, rounded down."""
    level, square = -1, count * count
    while square > 0:
        level, square = level + 1, square >> 1
    return level


@njit(nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _scratch(means):  # type: ignore[no-untyped-def]
    """Buffers for numbers by group."""
    depth, width = means.shape
    chances, scaled = np.empty((depth, 1), np.float32), np.empty((depth, width), np.float32)
    spreads = np.empty((1, width), np.float32)
    return chances, scaled, spreads, np.empty(depth, np.float32), np.empty(depth, np.int32)


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
def _expectations(solution, groups, moments, system, scratch):  # type: ignore[no-untyped-def]
    """moments = sum_j p_j f_j and system = common + sum_j p_j (1 - p_j) f_j f_j^T, p_j the chance of column j.

    Where the columns of a group have odds in proportion to exp(x . f_j), their features have the group's mean plus the
    variance times x.
    """
    means, variances, mean_lines, variance_lines, logs, counts, common = groups
    chances, scaled, spreads, odds, bits = scratch
    depth, width = means.shape
    for k in range(width):
        for other in range(k, width):
            system[k, other] = common[k, other]
    odds[:] = logs
    for k in range(len(solution)):
        square = solution[k] * solution[k]
        for j in range(depth):
            odds[j] += solution[k] * mean_lines[k, j] + square * variance_lines[k, j]
    _exponentials(odds, bits)
    for j in range(depth):
        chances[j, 0] = counts[j] * odds[j] / (1 + odds[j])
        odds[j] = np.sqrt(counts[j] * odds[j]) / (1 + odds[j])
    moments[:] = 0
    spreads[:] = 0
    add_weighted_rows(moments, chances, means, depth)
    add_weighted_rows(spreads, chances, variances, depth)
    for k in range(len(solution)):
        moments[0, k] += spreads[0, k] * solution[k]
        system[k, k] += spreads[0, k]
    for j in range(depth):
        scaled[j] = means[j]
        for k in range(len(solution)):
            scaled[j, k] += variances[j, k] * solution[k]
        for k in range(width):
            scaled[j, k] *= odds[j]
    add_product(system, scaled, scaled, depth)


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
def _exponentials(values, bits):  # type: ignore[no-untyped-def]
    """Replace values by their exponentials, many at a time: e^x is 2^whole times a series in the remainder."""
    powers = bits.view(np.float32)
    for j in range(len(values)):
        doublings = min(max(values[j], -_LARGEST_LOG_ODDS), _LARGEST_LOG_ODDS) * _BITS_OF_E
        whole = np.floor(doublings + np.float32(0.5))
        bits[j] = (np.int32(whole) + np.int32(127)) << np.int32(23)  # the exponent of a float32
        left = doublings - whole
        series = _SERIES[6]
        for k in range(5, -1, -1):
            series = series * left + _SERIES[k]
        values[j] = series
    for j in range(len(values)):
        values[j] *= powers[j]
