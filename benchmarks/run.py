"""All benchmarks, each in a process of its own. Compare numbers of one run only: machines differ and are shared."""

import subprocess
import sys
from pathlib import Path

for name in (
    "starting",
    "mechanism",
    "loading",
    "blocks",
    "simulation",
    "als",
    "pooled",
    "engines",
    "wide_table",
    "recommend",
):
    print(f"== {name} ==", flush=True)
    subprocess.run([sys.executable, Path(__file__).with_name(f"{name}.py")], check=True)
    print(flush=True)
