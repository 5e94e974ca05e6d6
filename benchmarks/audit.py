"""Audit every private method of the library on all levels, and print a table.

    python benchmarks/audit.py [--quick] [-o FOLDER] [NAME ...]

All data is simulated. Epsilon is 1 and delta 1e-6. The noise is secure, so figures differ a little from run to run.
Names such as DPALS leave out all other methods. A folder gets the table as README.md and pictures of the attacks on
PooledDPALS with ratings.
"""

import argparse
import sys
import time
from pathlib import Path

import dpals
from dpals.audit.plots import draw_curves
from dpals.audit.run import run_audit
from dpals.cli.methods import PRIVATE_CHOICES

SETTINGS = {"epsilon": 1.0, "delta": 1e-6}
IMPLICIT = ("PooledDPALS", "DPALS", "AdaDPALS", "Popularity")
HEADING = """# The audit of every method

`python benchmarks/audit.py -o docs/results/audit`, dpals {version}. All data is simulated; epsilon is 1, delta 1e-6.
What the levels are, and what they can show, is on [the page of the audit](../../audit.md). `make mutants` writes
[what notices planted bugs](../planted_bugs/README.md).
"""
TABLE = """
The share is the lower bound on mu over what is claimed, with {runs} pairs of releases. Right guesses are those about
canaries in one run, of the method and of its twin without privacy.

| method | data | replay | noise | canary | mu at least / claimed | epsilon at least | one run | right guesses |
|---|---|---|---|---|---|---|---|---|
"""


def subjects():
    for name in PRIVATE_CHOICES.values():
        for implicit in (False, True):
            if (name in IMPLICIT) if implicit else (name != "Popularity"):
                yield name, getattr(dpals, name)(**SETTINGS), implicit
    yield "PrivateSearch", dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, **SETTINGS), False


def row(name, report):
    verdicts = {level.number: level.verdict for level in report.levels}
    canary, one_run = (report.levels[number - 1].facts for number in (3, 4))
    mu = "nothing released"
    if claimed := canary["mu_claimed"]:
        mu = f"{canary['mu_at_least']:.4f} / {claimed:.4f} = {canary['mu_at_least'] / claimed:.1%}"
    guesses = f"{one_run['correct']:.0f} and {one_run['correct_without_privacy']:.0f} of {one_run['guesses']:.0f}"
    data = report.data.removeprefix("simulated ")
    cells = [name, data, verdicts[1], verdicts[2], verdicts[3], mu, f"{canary['epsilon_at_least']:.2f}"]
    return "| " + " | ".join([*cells, verdicts[4], guesses]) + " |\n"


def draw(report, folder):
    for level in report.levels:
        if level.curves:
            draw_curves(level.curves).savefig(folder / f"{level.name.replace(' ', '_')}.png", dpi=110)


def audited(name, estimator, implicit, options):
    """The row of a method. What did not pass is told on the standard error."""
    report = run_audit(estimator, implicit=implicit, quick=options.quick)
    for level in report.levels:
        for check in level.checks:
            if check.verdict != "passed":
                print(f"    {name}, level {level.number}: {check.question}: {check.detail}", file=sys.stderr)
    if options.folder and (name, implicit) == ("PooledDPALS", False):
        draw(report, options.folder)
    return row(name, report)


def lines(options):
    yield HEADING.format(version=dpals.__version__)
    yield TABLE.format(runs="5,000" if options.quick else "100,000")
    for name, estimator, implicit in subjects():
        if not options.names or name in options.names:
            yield audited(name, estimator, implicit, options)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("-o", dest="folder", type=Path)
    options = parser.parse_args()
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    start, written = time.perf_counter(), []
    for line in lines(options):
        print(line, end="", flush=True)
        written.append(line)
    if options.folder:
        (options.folder / "README.md").write_text("".join(written))
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
