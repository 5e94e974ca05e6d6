"""SciPy's BLAS and LAPACK for compiled kernels.

The routines are Fortran: every argument is a pointer. They are looked up by name when a kernel is loaded, so
that kernels can be cached on disk.

Fortran stores matrices by column. A C matrix of k rows of length r is for Fortran an r x k matrix with leading
dimension r, and the upper triangle of a C matrix is for Fortran the lower one.
"""

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import types
from numba.extending import get_cython_function_address


def _routine(module: str, name: str, arguments: int) -> Any:
    symbol = f"dpals_{name}"
    llvm.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.{module}", name))
    return types.ExternalFunction(symbol, types.void(*[types.voidptr] * arguments))


dsyrk = _routine("cython_blas", "dsyrk", 10)
"""uplo, trans, n, k, alpha, a, lda, beta, c, ldc: C = alpha A A^T + beta C"""
dposv = _routine("cython_lapack", "dposv", 8)
"""uplo, n, nrhs, a, lda, b, ldb, info: solve A X = B by Cholesky"""
dsyevd = _routine("cython_lapack", "dsyevd", 11)
"""jobz, uplo, n, a, lda, w, work, lwork, iwork, liwork, info: eigenvalues w, eigenvectors in a"""

LOWER = np.array([ord("L")], np.uint8)
PLAIN = np.array([ord("N")], np.uint8)
VECTORS = np.array([ord("V")], np.uint8)
