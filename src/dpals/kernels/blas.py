"""SciPy's BLAS and LAPACK for compiled kernels.

The routines are Fortran: every argument is a pointer. They are looked up by name when a kernel is loaded, so
that kernels can be cached on disk.

Fortran stores matrices by column. A C matrix of k rows of length r, as gathered by our kernels, is for Fortran
an r x k matrix with leading dimension r.
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


ssyrk = _routine("cython_blas", "ssyrk", 10)
"""uplo, trans, n, k, alpha, a, lda, beta, c, ldc: C = alpha A A^T + beta C"""
sgemv = _routine("cython_blas", "sgemv", 11)
"""trans, m, n, alpha, a, lda, x, incx, beta, y, incy: y = alpha A x + beta y"""
sposv = _routine("cython_lapack", "sposv", 8)
"""uplo, n, nrhs, a, lda, b, ldb, info: solve A X = B by Cholesky"""
dgemm = _routine("cython_blas", "dgemm", 13)
"""transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc: C = alpha op(A) op(B) + beta C"""
dsyevd = _routine("cython_lapack", "dsyevd", 11)
"""jobz, uplo, n, a, lda, w, work, lwork, iwork, liwork, info: eigenvalues w, eigenvectors in a"""

UPPER = np.array([ord("U")], np.uint8)
PLAIN = np.array([ord("N")], np.uint8)
TRANSPOSED = np.array([ord("T")], np.uint8)
VECTORS = np.array([ord("V")], np.uint8)
