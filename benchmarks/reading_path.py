"""How far a reader walks: the files that a fit passes through before its first release, and those of a recommendation.

Files count in the order of their first call; a folder change is a file that lies in another folder than the one before.
"""

import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import dpals
from dpals.cli import dpals as command

SOURCE = str(Path(dpals.__file__).parent) + "/"


class FirstReleaseError(Exception):
    """Ends the walk."""


def walked(work, until=""):
    """Files below src/dpals in the order of their first call, up to the first call of the function `until`."""
    files = []

    def watch(frame, event, _):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(SOURCE) and frame.f_code.co_name not in ("<module>", "<lambda>"):
            if name not in files:
                files.append(name)
            if until and frame.f_code.co_name == until:
                sys.setprofile(None)
                raise FirstReleaseError

    sys.setprofile(watch)
    try:
        work()
    except FirstReleaseError:
        pass
    finally:
        sys.setprofile(None)
    return [Path(name.removeprefix(SOURCE)) for name in files]


def main():
    ratings = dpals.simulate.movielens_like(n_users=500, n_items=60, mean_ratings=20, seed=1)
    model = dpals.PooledDPALS(1.0, insecure_seed=1).fit(ratings).model_  # loads what is loaded on first use
    folder = Path(tempfile.mkdtemp())
    command(["simulate", str(folder / "ratings.csv"), "--users", "300", "--items", "200", "-q"], standalone_mode=False)
    source, model_folder = str(folder / "ratings.csv"), str(folder / "model")
    fit = ["fit", source, "-o", model_folder, "--epsilon", "1", "--rating-range", "0.5", "5", "-q"]
    fit += ["--ledger", str(folder / "ledger.db")]
    for name, work, end in (
        ("dpals fit, to its first release", lambda: command(fit, standalone_mode=False), "release_together"),
        ("fit of PooledDPALS, to its first release", lambda: dpals.PooledDPALS(1.0).fit(ratings), "release_together"),
        ("fit of DPALS, to its first release", lambda: dpals.DPALS(1.0).fit(ratings), "release_together"),
        ("recommend", lambda: model.recommend(ratings, k=5), ""),
    ):
        files = walked(work, end)
        changes = sum(one.parent != other.parent for one, other in pairwise(files))
        print(f"{name}: {len(files)} files, {changes} folder changes")
        if "--files" in sys.argv:
            print(*(f"    {file}" for file in files), sep="\n")


if __name__ == "__main__":
    main()
