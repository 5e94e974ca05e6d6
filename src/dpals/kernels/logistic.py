"""A small logistic regression for every row of a sparse matrix: which of the columns the row has."""

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
_BLOCK = 256  # columns that are looked at together, so that they stay in the nearest cache
_LARGEST_LOG_ODDS = np.float32(30)
_BITS_OF_E = np.float32(1 / LOG_2)
_SERIES = np.cumprod([1.0, *(LOG_2 / k for k in range(1, 7))]).astype(np.float32)  # of 2^t, good for |t| <= 1/2
_LANES = padded(1, np.float32)


def solve_logistic(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    features: Floats,
    offsets: Floats,
    base: Floats,
    considered: NDArray[np.bool_],
    *,
    ridged: int,
    inverses: Floats | None = None,
    inverted: NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> Floats:
    """The most likely x_i of every row, if the row has column j with log odds o_j + x_i . f_j.

    Minimises the sum over the considered columns j of log(1 + exp(h_ij)) - [i has j] h_ij, h_ij = o_j + x_i . f_j,
    plus x_i . base x_i / 2, by three steps of Newton's method. The last feature must be 1 for all columns: its
    coordinate says how many columns the row has. A row's solution depends on that row's entries alone, to the last
    bit, for any number of threads and any type of processor.

    Parameters
    ----------
    indptr, indices
        The columns of each row.
    features, offsets
        f_j and o_j, one row and one number per column.
    base
        Symmetric and positive: the ridges.
    considered
        Which columns count. Leaving out rare ones saves time.
    ridged
        How many of the leading coordinates `inverses` is about.
    inverses
        If given, it is filled with the inverse of a row's last Newton system on the ridged coordinates: its upper
        triangle, one line for each row that is `inverted`. Rows without a considered column leave their line as it was.
    inverted
        The rows that `inverses` has a line for; all by default.
    threads
        How many to use; all cores by default.

    Returns
    -------
    array with one solution per row; zero for rows without a considered column
    """
    rank = features.shape[1]
    solutions = np.zeros((len(indptr) - 1, rank), np.float32)
    columns = _columns(features[considered], offsets[considered], base)
    places = np.where(considered, np.cumsum(considered) - 1, -1)
    wanted = lines_of(len(solutions), inverses, inverted)
    # Newton's method has two starting points for each doubling of the number of columns that a row has.
    levels = np.arange(2 * max(int(considered.sum()), 1).bit_length() + 1)
    total = np.maximum(exponentials(offsets[considered]).sum(), 1e-30)
    starts = (levels * (LOG_2 / 2) - logarithms(total)).astype(np.float32)
    beginnings = (starts, *_first_expectations(starts, rank, columns))

    def work(start: int, stop: int) -> None:
        _solve(indptr, indices, places, columns, beginnings, ridged, start, stop, solutions, *wanted)

    in_threads(work, np.arange(len(indptr), dtype=np.int64), threads)
    return solutions


def _columns(features: Floats, offsets: Floats, base: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Features by row and, in blocks, by coordinate; offsets; the ridges. All are padded, with columns of no odds."""
    (n_columns, rank), common = features.shape, padded_system(base)
    n_blocks, width = -(-n_columns // _BLOCK), len(common)
    rows = np.zeros((n_blocks * _BLOCK, width), np.float32)
    rows[:n_columns, :rank] = features
    logs = np.full(n_blocks * _BLOCK, -_LARGEST_LOG_ODDS)
    logs[:n_columns] = offsets
    lines = np.ascontiguousarray(rows.reshape(n_blocks, _BLOCK, width).transpose(0, 2, 1))
    return rows, lines, logs, common


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
def _first_expectations(starts, rank, columns):  # type: ignore[no-untyped-def]
    """`_expectations` at the starting points of Newton's method, which many rows share."""
    width = columns[0].shape[1]
    moments = np.empty((len(starts), 1, width), np.float32)
    systems = np.zeros((len(starts), width, width + _LANES), np.float32)
    scratch = _scratch(width)
    solution = np.zeros(rank, np.float32)
    for level in range(len(starts)):
        solution[rank - 1] = starts[level]
        _expectations(solution, columns, moments[level], systems[level], scratch)
    return moments, systems


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
def _solve(indptr, indices, places, columns, beginnings, ridged, start, stop, solutions, inverses, lines):  # type: ignore[no-untyped-def]
    rows, _, _, common = columns
    starts, first_moments, first_systems = beginnings
    width, rank = rows.shape[1], solutions.shape[1]
    system = np.zeros((width, width + _LANES), np.float32)
    step, reciprocals = np.empty((1, width), np.float32), np.empty((1, width), np.float32)
    observed, moments = np.empty((1, width), np.float32), np.empty((1, width), np.float32)
    root = np.empty((width, width), np.float32)
    scratch = _scratch(width)
    for i in range(start, stop):
        count = _sum_of_observed(indices[indptr[i] : indptr[i + 1]], places, rows, observed)
        if count == 0:
            continue
        solution, level = solutions[i], _half_doublings(count)
        solution[rank - 1] = starts[level]
        moments[:] = first_moments[level]
        system[:] = first_systems[level]
        solved = True
        for number in range(_NEWTON_STEPS):
            if number:
                _expectations(solution, columns, moments, system, scratch)
            for k in range(width):
                pull = observed[0, k] - moments[0, k]
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
def _scratch(width):  # type: ignore[no-untyped-def]
    """Buffers for one block of columns."""
    chances, scaled = np.empty((_BLOCK, 1), np.float32), np.empty((_BLOCK, width), np.float32)
    return chances, scaled, np.empty(_BLOCK, np.float32), np.empty(_BLOCK, np.int32)


@njit(nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _sum_of_observed(columns, places, rows, observed):  # type: ignore[no-untyped-def]
    """Sum of the features of the row's considered columns, and the number of these columns."""
    count = 0
    observed[:] = 0
    for column in columns:
        if places[column] >= 0:
            count += 1
            for k in range(rows.shape[1]):
                observed[0, k] += rows[places[column], k]
    return count


@njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
def _expectations(solution, columns, moments, system, scratch):  # type: ignore[no-untyped-def]
    """moments = sum_j p_j f_j and system = common + sum_j p_j (1 - p_j) f_j f_j^T, p_j the chance of column j."""
    rows, lines, logs, common = columns
    chances, scaled, odds, bits = scratch
    width = rows.shape[1]
    moments[:] = 0
    for k in range(width):
        for other in range(k, width):
            system[k, other] = common[k, other]
    for block in range(len(lines)):
        first = block * _BLOCK
        for j in range(_BLOCK):
            odds[j] = logs[first + j]
        for k in range(len(solution)):
            for j in range(_BLOCK):
                odds[j] += solution[k] * lines[block, k, j]
        _exponentials(odds, bits)
        for j in range(_BLOCK):
            chances[j, 0] = odds[j] / (1 + odds[j])
            odds[j] = np.sqrt(odds[j]) / (1 + odds[j])
        for j in range(_BLOCK):
            for k in range(width):
                scaled[j, k] = odds[j] * rows[first + j, k]
        add_weighted_rows(moments, chances, rows[first : first + _BLOCK], _BLOCK)
        add_product(system, scaled, scaled, _BLOCK)


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
