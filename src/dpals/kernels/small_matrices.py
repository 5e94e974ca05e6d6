"""Products and Cholesky solutions of small matrices, tile by tile in the vector registers of the processor.

BLAS packs and splits matrices before it multiplies them, which for the small matrices of factor models takes
longer than the product. Here the rows are multiplied in place: a tile of the result stays in registers while the
rows stream past. The tiles are written as LLVM vectors of 32 bytes, which LLVM maps to the vector instructions of
the processor.

Every sum has a fixed order, a fixed number of lanes, and products that are added in one step, with one rounding. So
the bits are the same on every processor: what users contribute may be computed on machines of different types.

Rows are padded to whole vectors, see `padded`. All arrays are two-dimensional and contiguous, of one type.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as untyped_cgutils
from numba.extending import intrinsic

cgutils: Any = untyped_cgutils

_VECTOR_BYTES = 32


def padded(length: int, dtype: Any) -> int:
    """The length rounded up to whole vectors.

    Examples
    --------
    >>> padded(5, np.float32), padded(5, np.float64), padded(4, np.float64)
    (8, 8, 4)
    """
    lanes = _VECTOR_BYTES // int(np.dtype(dtype).itemsize)
    return -(-length // lanes) * lanes


class _Vectors:
    """LLVM code for vectors in contiguous two-dimensional arrays."""

    def __init__(self, context: Any, builder: Any, array_type: Any) -> None:
        self.context, self.builder = context, builder
        self.size = array_type.dtype.bitwidth // 8
        self.lanes = _VECTOR_BYTES // self.size
        self.type = ir.VectorType(context.get_data_type(array_type.dtype), self.lanes)
        self.zeros = ir.Constant(self.type, [0.0] * self.lanes)
        fused = ir.FunctionType(self.type, [self.type] * 3)
        name = f"llvm.fma.v{self.lanes}f{array_type.dtype.bitwidth}"
        self.fused = cgutils.get_or_insert_function(builder.module, fused, name)

    def array(self, array_type: Any, value: Any) -> Any:
        return self.context.make_array(array_type)(self.context, self.builder, value)

    def shifted(self, index: Any, by: int) -> Any:
        return self.builder.add(index, ir.Constant(index.type, by))

    def place(self, array: Any, row: Any, column: Any) -> Any:
        width = cgutils.unpack_tuple(self.builder, array.shape, 2)[1]
        return self.builder.gep(array.data, [self.builder.add(self.builder.mul(row, width), column)])

    def load(self, array: Any, row: Any, column: Any) -> Any:
        place = self.builder.bitcast(self.place(array, row, column), self.type.as_pointer())
        return self.builder.load(place, align=self.size)

    def store(self, vector: Any, array: Any, row: Any, column: Any) -> None:
        place = self.builder.bitcast(self.place(array, row, column), self.type.as_pointer())
        self.builder.store(vector, place, align=self.size)

    def spread(self, array: Any, row: Any, column: Any) -> Any:
        """One number of the array in all lanes."""
        number = self.builder.load(self.place(array, row, column))
        first = self.builder.insert_element(self.zeros, number, ir.Constant(ir.IntType(32), 0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, self.zeros, lanes)

    def sum(self, vector: Any) -> Any:
        """Sum over the lanes, first against last, halving."""
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            low, high = (
                ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(start, start + lanes)))
                for start in (0, lanes)
            )
            vector = self.builder.fadd(
                self.builder.shuffle_vector(vector, vector, low), self.builder.shuffle_vector(vector, vector, high)
            )
        return self.builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    def multiply_and(self, combine: str, total: Any, factor: Any, other: Any) -> Any:
        """total plus (fadd) or minus (fsub) factor * other, rounded once, on processors without such a step as well."""
        factor = self.builder.fneg(factor) if combine == "fsub" else factor
        return self.builder.call(self.fused, [factor, other, total])


def _tile(height: int | None, vectors: int, combine: str) -> Any:
    """Function of (out, i, j, left, right, depth) for use in kernels, on `height` rows of `vectors` vectors.

    out[i + h, j + v] gets added (fadd) or subtracted (fsub) the sum over k < depth, from zero and in the order
    of k, of left[k, i + h] * right[k, j + v]. Without a height, the tile is as high as a vector is long.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vec = _Vectors(context, builder, signature.args[0])
        out, left, right = (vec.array(signature.args[n], arguments[n]) for n in (0, 3, 4))
        i, j, depth = (arguments[n] for n in (1, 2, 5))
        columns = [vec.shifted(j, v * vec.lanes) for v in range(vectors)]
        tile = [[cgutils.alloca_once_value(builder, vec.zeros) for _ in columns] for _ in range(height or vec.lanes)]
        with cgutils.for_range(builder, depth) as loop:
            factors = [vec.load(right, loop.index, column) for column in columns]
            for h, sums in enumerate(tile):
                scale = vec.spread(left, loop.index, vec.shifted(i, h))
                for total, factor in zip(sums, factors, strict=True):
                    builder.store(vec.multiply_and("fadd", builder.load(total), scale, factor), total)
        for h, sums in enumerate(tile):
            for total, column in zip(sums, columns, strict=True):
                old = vec.load(out, vec.shifted(i, h), column)
                vec.store(getattr(builder, combine)(old, builder.load(total)), out, vec.shifted(i, h), column)
        return context.get_dummy_value()

    def tile(_typing, out, _i, _j, left, right, _depth):  # type: ignore[no-untyped-def]
        return types.void(out, types.intp, types.intp, left, right, types.intp), build

    return intrinsic(tile)


def _substitution() -> Any:
    """Function of (matrix, top, j, reciprocals): solve R^T X = S in place, for the square tile S at (top, j).

    R is the upper triangle at (top, top), and `reciprocals` one row, of one over the diagonal of the matrix.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vec = _Vectors(context, builder, signature.args[0])
        matrix, reciprocals = (vec.array(signature.args[n], arguments[n]) for n in (0, 3))
        top, j = arguments[1:3]
        rows = [vec.shifted(top, h) for h in range(vec.lanes)]
        solved: list[Any] = []
        for row in rows:
            rest = vec.load(matrix, row, j)
            for above, known in zip(rows, solved, strict=False):
                rest = vec.multiply_and("fsub", rest, vec.spread(matrix, above, row), known)
            solved.append(builder.fmul(rest, vec.spread(reciprocals, ir.Constant(row.type, 0), row)))
            vec.store(solved[-1], matrix, row, j)
        return context.get_dummy_value()

    def substitution(_typing, matrix, _top, _j, reciprocals):  # type: ignore[no-untyped-def]
        return types.void(matrix, types.intp, types.intp, reciprocals), build

    return intrinsic(substitution)


def _elimination() -> Any:
    """Function of (solution, matrix, top): solution[0, i] -= sum of matrix[i, j] * solution[0, j].

    For the rows i of the square tile at (top, top), over all columns j behind it.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vec = _Vectors(context, builder, signature.args[0])
        solution, matrix = (vec.array(signature.args[n], arguments[n]) for n in (0, 1))
        top, zero = arguments[2], ir.Constant(arguments[2].type, 0)
        stop = cgutils.unpack_tuple(builder, solution.shape, 2)[1]
        step = ir.Constant(top.type, vec.lanes)
        rows = [vec.shifted(top, h) for h in range(vec.lanes)]
        sums = [cgutils.alloca_once_value(builder, vec.zeros) for _ in rows]
        with cgutils.for_range_slice(builder, builder.add(top, step), stop, step, inc=True) as (j, _):
            known = vec.load(solution, zero, j)
            for row, total in zip(rows, sums, strict=True):
                builder.store(vec.multiply_and("fadd", builder.load(total), vec.load(matrix, row, j), known), total)
        for row, total in zip(rows, sums, strict=True):
            place = vec.place(solution, zero, row)
            builder.store(builder.fsub(builder.load(place), vec.sum(builder.load(total))), place)
        return context.get_dummy_value()

    def elimination(_typing, solution, matrix, _top):  # type: ignore[no-untyped-def]
        return types.void(solution, matrix, types.intp), build

    return intrinsic(elimination)


def _row_product() -> Any:
    """Function of (left, i, right, j): the inner product of row i of `left` and row j of `right`."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vec = _Vectors(context, builder, signature.args[0])
        left, right = (vec.array(signature.args[n], arguments[n]) for n in (0, 2))
        i, j = arguments[1], arguments[3]
        start, step = ir.Constant(i.type, 0), ir.Constant(i.type, vec.lanes)
        stop = cgutils.unpack_tuple(builder, left.shape, 2)[1]
        total = cgutils.alloca_once_value(builder, vec.zeros)
        with cgutils.for_range_slice(builder, start, stop, step, inc=True) as (k, _):
            factors = vec.load(left, i, k), vec.load(right, j, k)
            builder.store(vec.multiply_and("fadd", builder.load(total), *factors), total)
        return vec.sum(builder.load(total))

    def product(_typing, left, _i, right, _j):  # type: ignore[no-untyped-def]
        return left.dtype(left, types.intp, right, types.intp), build

    return intrinsic(product)


row_product = _row_product()
_add_wide, _add_square = _tile(4, 2, "fadd"), _tile(None, 1, "fadd")
_add_line, _add_long_line = _tile(1, 1, "fadd"), _tile(1, 4, "fadd")
_subtract_wide, _subtract_square = _tile(4, 2, "fsub"), _tile(None, 1, "fsub")
_substitute, _eliminate = _substitution(), _elimination()


@numba.njit(nogil=True)
def add_product(out, left, right, depth):  # type: ignore[no-untyped-def]
    """out += left[:depth].T @ right[:depth] on the upper triangle, and on some places below it.

    `out` may have more columns than `left` and `right`; they are left alone.
    """
    width, lanes = left.shape[1], _VECTOR_BYTES // out.itemsize
    for j in range(0, width - lanes, 2 * lanes):
        for i in range(0, j + lanes, 4):
            _add_wide(out, i, j, left, right, depth)
        _add_square(out, j + lanes, j + lanes, left, right, depth)
    if width % (2 * lanes):
        for i in range(0, width, lanes):
            _add_square(out, i, width - lanes, left, right, depth)


@numba.njit(nogil=True)
def add_to_panel(out, left, panel):  # type: ignore[no-untyped-def]
    """out += left.T @ panel, where `panel` and `out` are two vectors wide, and the rows of `left` a multiple of 4 long.

    Every number is a sum in the order of the rows, so it depends on its own column of `left` and of `panel` only.
    """
    for i in range(0, left.shape[1], 4):
        _add_wide(out, i, 0, left, panel, len(left))


@numba.njit(nogil=True)
def add_weighted_rows(out, weights, rows, depth):  # type: ignore[no-untyped-def]
    """out += weights[:depth].T @ rows[:depth], where out is one row and weights are one column."""
    width, lanes = out.shape[1], _VECTOR_BYTES // out.itemsize
    whole = width - width % (4 * lanes)
    for j in range(0, whole, 4 * lanes):
        _add_long_line(out, 0, j, weights, rows, depth)
    for j in range(whole, width, lanes):
        _add_line(out, 0, j, weights, rows, depth)


@numba.njit(nogil=True)
def solve_positive(system, solution, reciprocals):  # type: ignore[no-untyped-def]
    """Solve A x = b by Cholesky; False where A is not positive.

    Parameters
    ----------
    system
        The upper triangle of A, then one vector more in each row, whose first number is b. Overwritten.
    solution
        One row for x.
    reciprocals
        One row of scratch.
    """
    width, lanes = solution.shape[1], _VECTOR_BYTES // system.itemsize
    columns = width + lanes
    for top in range(0, width, lanes):
        for j in range(top, columns - lanes, 2 * lanes):
            for i in range(top, top + lanes, 4):
                _subtract_wide(system, i, j, system, system, top)
        if (columns - top) % (2 * lanes):
            _subtract_square(system, top, width, system, system, top)
        if not _factor_square(system, top, reciprocals):
            return False
        for j in range(top + lanes, columns, lanes):
            _substitute(system, top, j, reciprocals)
    for k in range(width):
        solution[0, k] = system[k, width]
    for top in range(width - lanes, -1, -lanes):
        _eliminate(solution, system, top)
        for k in range(top + lanes - 1, top - 1, -1):
            solution[0, k] *= reciprocals[0, k]
            for i in range(top, k):
                solution[0, i] -= system[i, k] * solution[0, k]
    return True


@numba.njit(nogil=True)
def _factor_square(system, top, reciprocals):  # type: ignore[no-untyped-def]
    """Cholesky of the square tile at (top, top), in place."""
    lanes = _VECTOR_BYTES // system.itemsize
    for k in range(top, top + lanes):
        if not system[k, k] > 0:
            return False
        reciprocals[0, k] = 1 / np.sqrt(system[k, k])
        for j in range(k, top + lanes):
            system[k, j] *= reciprocals[0, k]
        for i in range(k + 1, top + lanes):
            for j in range(i, top + lanes):
                system[i, j] -= system[k, i] * system[k, j]
    return True
