"""How long it takes to start: the help of the command, and the import of the package. The best of five."""

import subprocess
import sys
import time

COMMANDS = {"dpals --help": ["-m", "dpals", "--help"], "import dpals": ["-c", "import dpals"]}


def seconds(arguments: list[str]) -> float:
    """Of one run of Python."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


for name, arguments in COMMANDS.items():
    print(f"{name:14} {min(seconds(arguments) for _ in range(5)):6.2f} s")
