"""Time and memory of writing blocks of users from Parquet.

The file is written here: distinct ids, some users and items more active than others, rows in random order. Blocks are
written in a fresh process. Memory is the highest resident size of that process.

    python benchmarks/blocks.py 100     # million ratings; 10 by default
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

N_USERS, N_ITEMS = 480_000, 18_000
PART = 5_000_000
RANGE = (0.5, 5.0)


def run(millions: int = 10) -> None:
    """Write the table, write its blocks, print what it took."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "ratings", millions * 1_000_000)
        output = subprocess.run([sys.executable, __file__, "--in", name], capture_output=True, text=True, check=True)
    print(f"write_blocks, {millions} million rows: {json.loads(output.stdout)}")


def write_table(folder: Path, n_rows: int) -> None:
    """Write rows to parts of a Parquet table."""
    folder.mkdir()
    for number, start in enumerate(range(0, n_rows, PART)):
        rng, size = np.random.default_rng(number), min(PART, n_rows - start)
        columns = {
            "user": (rng.random(size) ** 2 * N_USERS).astype(np.int64) + 1,
            "item": (rng.random(size) ** 2 * N_ITEMS).astype(np.int64) * 6 + 1,
            "rating": rng.integers(1, 11, size).astype(np.float32) / np.float32(2),
        }
        pl.DataFrame(columns).write_parquet(folder / f"{number:04}.parquet")


def measure(folder: Path) -> dict[str, object]:
    """Write blocks in this process."""
    import dpals

    start = time.perf_counter()
    blocks = dpals.write_blocks(folder / "ratings", folder / "blocks", rating_range=RANGE)
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return {"blocks": repr(blocks), "seconds": round(seconds, 1), "peak, GB": round(peak / 2**20, 2)}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--in"]:
        print(json.dumps(measure(Path(sys.argv[2]))))
    else:
        run(*map(int, sys.argv[1:]))
