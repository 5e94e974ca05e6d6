"""Audit every private method of the library, levels 1 to 4, and print a table.

    python benchmarks/audit.py [--quick] [--pictures FOLDER] [NAME ...]

All data is simulated. Epsilon is 1 and delta 1e-6. The noise is secure, so figures differ a little from run to run.
Names such as DPALS leave out all other methods. Pictures are those of the attacks on PooledDPALS, with ratings.
"""

import argparse
import sys
import time
from pathlib import Path

import dpals
from dpals.audit.pictures import draw_curves
from dpals.audit.run import run_audit
from dpals.cli.methods import METHODS

SETTINGS = {"epsilon": 1.0, "delta": 1e-6}
IMPLICIT = ("PooledDPALS", "DPALS", "AdaDPALS", "Popularity")
COLUMNS = ("method", "data", "replay", "noise", "canary", "mu at least / claimed", "epsilon at least", "one run")


def subjects():
    for name in METHODS.values():
        for implicit in (False, True):
            if (name in IMPLICIT) if implicit else (name != "Popularity"):
                yield name, getattr(dpals, name)(**SETTINGS), implicit
    yield "PrivateSearch", dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, **SETTINGS), False


def row(name, report):
    verdicts = {level.number: level.verdict for level in report.levels}
    facts = {level.number: level.facts for level in report.levels}
    canary, one_run = facts[3], facts[4]
    mu = "nothing released"
    if canary["mu_claimed"]:
        claimed = canary["mu_claimed"]
        mu = f"{canary['mu_at_least']:.4f} / {claimed:.4f} = {canary['mu_at_least'] / claimed:.1%}"
    guesses = "nothing released"
    if "guesses" in one_run:
        guesses = (
            f"{one_run['correct']:.0f} of {one_run['guesses']:.0f}, {one_run['correct_without_privacy']:.0f} without"
        )
    data = report.data.removeprefix("simulated ")
    cells = [name, data, verdicts[1], verdicts[2], verdicts[3], mu, f"{canary['epsilon_at_least']:.2f}"]
    return "| " + " | ".join([*cells, verdicts[4], guesses]) + " |"


def draw(report, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for level in report.levels:
        if level.curves:
            draw_curves(level.curves).savefig(folder / f"{level.name.replace(' ', '_')}.png", dpi=110)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    print("Simulated data, epsilon 1, delta 1e-6", flush=True)
    print("| " + " | ".join([*COLUMNS, "right guesses"]) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|", flush=True)
    start = time.perf_counter()
    for name, estimator, implicit in subjects():
        if options.names and name not in options.names:
            continue
        report = run_audit(estimator, implicit=implicit, quick=options.quick)
        print(row(name, report), flush=True)
        if options.pictures and (name, implicit) == ("PooledDPALS", False):
            draw(report, options.pictures)
        for level in report.levels:
            for check in level.checks:
                if check.verdict != "passed":
                    print(f"    {name}, level {level.number}: {check.question}: {check.detail}", file=sys.stderr)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
