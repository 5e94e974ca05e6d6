"""Time and memory of reading 10 million rows from CSV and Parquet.

The files are written here, shaped like MovieLens 10M. Each is read in a fresh process. Memory is the highest
resident size while reading, above that after the imports, in units of the finished object.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

N_ROWS, N_USERS, N_ITEMS = 10_000_000, 69_878, 10_677
RANGE = (0.5, 5.0)


def run() -> None:
    """Write the files, read each one, print a table."""
    table = Table(title=f"Reading {N_ROWS:,} rows")
    table.add_column("file")
    for heading in ("seconds", "object, MB", "peak, MB", "peak / object"):
        table.add_column(heading, justify="right")
    with TemporaryDirectory() as folder:
        for path in write_files(Path(folder)):
            table.add_row(path.stem + ", " + path.suffix.removeprefix("."), *measured(path))
            path.unlink()
    Console().print(table)


def measured(path: Path) -> tuple[str, str, str, str]:
    """Read a file in a process of its own and return the cells of its line."""
    output = subprocess.run([sys.executable, __file__, str(path)], capture_output=True, text=True, check=True)
    result = json.loads(output.stdout)
    size, peak = result["size"] / 1e6, result["peak"] / 1e6
    return f"{result['seconds']:.1f}", f"{size:.0f}", f"{peak:.0f}", f"{peak / size:.2f}"


def write_files(folder: Path) -> list[Path]:
    """Write distinct (user, item) pairs sorted by user, as MovieLens does, some items more popular."""
    rng = np.random.default_rng(0)
    users = (rng.random(2 * N_ROWS) ** 2 * N_USERS).astype(np.int64)
    items = (rng.random(2 * N_ROWS) ** 3 * N_ITEMS).astype(np.int64)
    pairs = np.unique(users * N_ITEMS + items)
    pairs = np.sort(rng.choice(pairs, N_ROWS, replace=False))
    frame = pl.DataFrame(
        {
            "userId": pairs // N_ITEMS + 1,
            "movieId": pairs % N_ITEMS * 6 + 1,
            "rating": rng.integers(1, 11, N_ROWS) / 2,
            "timestamp": rng.integers(800_000_000, 1_400_000_000, N_ROWS),
        }
    )
    text_ids = {"userId": pl.format("user {}", "userId"), "movieId": pl.format("film {}", "movieId")}
    variants = {
        "plain": frame.drop("timestamp"),
        "with timestamps": frame,
        "with timestamps, shuffled": frame.sample(fraction=1.0, shuffle=True, seed=0),
        "with timestamps, text ids": frame.with_columns(**text_ids),
    }
    paths = []
    for name, variant in variants.items():
        paths += [folder / f"{name}.csv", folder / f"{name}.parquet"]
        variant.write_csv(paths[-2])
        variant.write_parquet(paths[-1])
    return paths


def read_one(path: str) -> dict[str, float]:
    """Read a file in this process and measure it."""
    import numba  # noqa: F401

    import dpals.data.build
    import dpals.data.parquet
    import dpals.data.text_file

    before = _status("VmRSS")
    start = time.perf_counter()
    ratings = dpals.read_ratings(path, rating_range=RANGE)
    seconds = time.perf_counter() - start
    arrays = (
        ratings.indptr,
        ratings.indices,
        ratings.values,
        ratings.timestamps,
        ratings.users,
        ratings.items,
    )
    size = sum(array.nbytes for array in arrays if array is not None)
    return {"seconds": seconds, "size": size, "peak": _status("VmHWM") - before}


def _status(field: str) -> int:
    """Memory in bytes, from Linux."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(read_one(sys.argv[1])))
    else:
        run()
