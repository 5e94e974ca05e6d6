"""Speed and memory of one iteration of alternating least squares, and of the item step with noise.

Everything is timed in turns in one process, and the fastest of several turns counts. The peer is `implicit`
(``pip install implicit``): its exact solver, and its approximate one with three conjugate-gradient steps. The
data are simulated, in the shape of MovieLens 10M.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy.sparse as sp
from numba import njit
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from dpals import simulate
from dpals.kernels.item_solve import _eigenpairs, _unpack, _workspaces, solve_psd
from dpals.kernels.least_squares import solve_rows
from dpals.kernels.threads import in_threads

RANKS = (32, 64, 128)
TURNS = 5
LONG = 20.0
GEMM_ORDER = 4_096
RIDGE = np.float32(0.1)


def run() -> None:
    ratings = simulate.movielens_like(seed=0)
    shape = ratings.n_users, ratings.n_items
    by_user = sp.csr_matrix((ratings.values, ratings.indices, ratings.indptr), shape, copy=True)  # implicit writes
    del ratings
    _iterations(by_user)
    _memory(by_user)
    _item_step(n_items=shape[1], rank=32)


def _iterations(by_user: sp.csr_matrix) -> None:
    by_item = by_user.T.tocsr()
    table = Table(title=f"One iteration over {by_user.nnz:,} ratings, seconds")
    for heading in ("rank", "dpals", "implicit, exact", "ratio", "implicit, CG", "ratio", "GFLOP/s", "of sgemm"):
        table.add_column(heading, justify="right")
    for rank in RANKS:
        square = np.random.default_rng(0).random((GEMM_ORDER, GEMM_ORDER), np.float32)
        works = {"dpals": _iteration(by_user, by_item, rank), "sgemm": lambda square=square: square @ square}
        works |= _peers(by_user, by_item, rank)
        seconds = _fastest(works)
        flops = 2 * by_user.nnz * rank * (rank + 1) + sum(by_user.shape) * rank**3 / 3
        speed, peak = flops / seconds["dpals"], 2 * GEMM_ORDER**3 / seconds["sgemm"]
        compared = []
        for peer in ("exact", "cg"):
            known = peer in seconds
            compared += [f"{seconds[peer]:.2f}" if known else "-"]
            compared += [f"{seconds[peer] / seconds['dpals']:.1f}" if known else "-"]
        table.add_row(
            str(rank), f"{seconds['dpals']:.2f}", *compared, f"{speed / 1e9:.0f}", f"{100 * speed / peak:.0f} %"
        )
    Console().print(table)


def _iteration(by_user: sp.csr_matrix, by_item: sp.csr_matrix, rank: int) -> Callable[[], None]:
    """Both halves of a step of dpals, as a function to time."""
    items = np.random.default_rng(0).normal(0, 0.1, (by_user.shape[1], rank)).astype(np.float32)

    def solve(matrix: sp.csr_matrix, features: np.ndarray) -> np.ndarray:
        ridges = RIDGE * np.diff(matrix.indptr).astype(np.float32)
        base = np.zeros((rank, rank), np.float32)
        return solve_rows(matrix.indptr.astype(np.int64), matrix.indices, matrix.data, features, ridges, base)

    return lambda: solve(by_item, solve(by_user, items))


def _peers(by_user: sp.csr_matrix, by_item: sp.csr_matrix, rank: int) -> dict[str, Callable[[], None]]:
    """The same by `implicit`, where it is installed."""
    try:
        from implicit.cpu.als import AlternatingLeastSquares
    except ImportError:
        print("implicit is not installed, so there is nothing to compare with: pip install implicit")
        return {}
    rng = np.random.default_rng(0)
    users, items = (rng.normal(0, 0.01, (n, rank)).astype(np.float32) for n in by_user.shape)

    def work(use_cg: bool) -> Callable[[], None]:
        def iterate() -> None:
            with threadpool_limits(1, user_api="blas"):  # as implicit recommends
                model = AlternatingLeastSquares(factors=rank, use_cg=use_cg, num_threads=os.cpu_count())
                model.solver(by_user, users, items, model.regularization, num_threads=model.num_threads)
                model.solver(by_item, items, users, model.regularization, num_threads=model.num_threads)

        return iterate

    return {"exact": work(use_cg=False), "cg": work(use_cg=True)}


def _fastest(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Fastest of several turns, after one to warm up. What takes long has one turn only."""
    seconds = dict.fromkeys(works, np.inf)
    for turn in range(TURNS + 1):
        for name, work in works.items():
            if turn <= 1 or seconds[name] < LONG:
                start = time.perf_counter()
                work()
                taken = time.perf_counter() - start
                seconds[name] = min(seconds[name], taken) if turn else np.inf
    return seconds


def _memory(by_user: sp.csr_matrix) -> None:
    """Peak memory of an iteration, the matrix by items included, above the ratings, in a process of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.npz"
        sp.save_npz(path, by_user, compressed=False)
        for rank in RANKS:
            command = [sys.executable, __file__, str(path), str(rank)]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            print(f"rank {rank:3}: peak memory of an iteration {int(output) / 1e6:.0f} MB above the ratings")


def _measure_memory(path: str, rank: int) -> int:
    by_user = sp.load_npz(path)
    tiny = by_user[:10]
    _iteration(tiny, tiny.T.tocsr(), rank)()  # compiled code is not memory of an iteration
    before = _status("VmRSS")
    _iteration(by_user, by_user.T.tocsr(), rank)()
    return _status("VmHWM") - before


def _status(field: str) -> int:
    """Memory in bytes, from Linux."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def _item_step(n_items: int, rank: int) -> None:
    """The item step against nothing but the eigendecompositions it is made of."""
    rng = np.random.default_rng(0)
    gram, moments = rng.normal(size=(n_items, rank * (rank + 1) // 2)), rng.normal(size=(n_items, rank))
    ridges, root = np.ones(n_items), rng.normal(size=(rank, rank)) / rank
    seconds = _fastest(
        {
            "bare": lambda: in_threads(lambda start, stop: _decompose(gram, rank, start, stop), np.arange(n_items + 1)),
            "solved": lambda: solve_psd(gram, moments, ridges),
            "with a base": lambda: solve_psd(gram, moments, ridges, root @ root.T),
        }
    )
    print(f"item step, {n_items:,} items of rank {rank}: bare eigendecompositions {seconds['bare']:.3f} s")
    for name in ("solved", "with a base"):
        print(f"  {name:12} {seconds[name]:.3f} s, {seconds[name] / seconds['bare']:.2f} times as long")


@njit(nogil=True)
def _decompose(gram, rank, start, stop):
    matrix, values, workspaces = np.empty((rank, rank)), np.empty(rank), _workspaces(rank)
    for j in range(start, stop):
        _unpack(gram[j], matrix)
        _eigenpairs(matrix, values, *workspaces)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(_measure_memory(sys.argv[1], int(sys.argv[2])))
    else:
        run()
