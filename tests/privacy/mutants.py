"""Plant bugs that would break the promise, one at a time, and see that some test catches each.

Run by ``make mutants``. Each mutant changes one place in a copy of the source; the tests named beside it must
then fail (and pass on the unchanged copy). A mutant that survives fails the run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    before: str
    after: str
    tests: str


MUTANTS = [
    Mutant(
        "no clipping",
        "release/contribution.py",
        "    _enforce(pattern.indptr, coefficients, vectors, weights, symmetric, grid.bound)\n",
        "",
        "tests/privacy/test_neighbours.py",
    ),
    Mutant(
        "bound checked in floats",
        "release/contribution.py",
        "if norm > 0 and _squared_norm(row, ceiling) > square // norm:",
        "if np.sum(row.astype(np.float64) ** 2) * np.float64(norm) > np.float64(square):",
        "tests/release/test_contribution.py",
    ),
    Mutant(
        "an item may be there twice",
        "release/contribution.py",
        "if items[e] <= previous or",
        "if items[e] < previous or",
        "tests/release/test_contribution.py",
    ),
    Mutant(
        "off-diagonal noise too small",
        "release/contribution.py",
        "np.where(rows == columns, 1, 2)",
        "np.where(rows == columns, 1, 4)",
        "tests/privacy/test_neighbours.py tests/release/test_mechanism.py",
    ),
    Mutant(
        "sums in single precision",
        "release/sums.py",
        "part = np.zeros(sums.shape)",
        "part = np.zeros(sums.shape, np.float32)",
        "tests/release/test_sums.py",
    ),
    Mutant(
        "noise divided by the root of 2",
        "release/mechanism.py",
        "rounded_gaussian(stream, len(sums), record.variance,",
        "rounded_gaussian(stream, len(sums), record.variance // 2,",
        "tests/release/test_mechanism.py",
    ),
    Mutant(
        "the same noise for every release",
        "release/mechanism.py",
        "return NoiseStream()",
        "return InsecureSeededStream(0, release=0)",
        "tests/release/test_mechanism.py",
    ),
    Mutant(
        "noise added to a float",
        "release/mechanism.py",
        "        sums += rounded_gaussian(stream, len(sums), record.variance, query.coordinate_weights)\n"
        "        return sums\n",
        "        noise = rounded_gaussian(stream, len(sums), record.variance, query.coordinate_weights)\n"
        "        return (sums * grid.step + noise * grid.step) / grid.step\n",
        "tests/release/test_mechanism.py",
    ),
    Mutant(
        "spend after noise",
        "release/mechanism.py",
        "            self.ledger.spend(self.dataset, record.purpose + seeded, record.cost, receipt)\n",
        "            NoiseStream().words(1)\n"
        "            self.ledger.spend(self.dataset, record.purpose + seeded, record.cost, receipt)\n",
        "tests/release/test_mechanism.py",
    ),
    Mutant(
        "wrong composition: the dearest release instead of the sum",
        "release/mechanism.py",
        "return sum(release.cost for release in self.releases)",
        "return max((release.cost for release in self.releases), default=0)",
        "tests/release/test_mechanism.py tests/release/test_statement.py",
    ),
    Mutant(
        "the budget is checked too early only",
        "release/mechanism.py",
        "            self._check_affordable(record, record.cost)\n",
        "",
        "tests/release/test_mechanism.py",
    ),
    Mutant(
        "numbers leave before they are recorded as published",
        "release/mechanism.py",
        "            self.ledger.publish(self.dataset, receipt, hashlib.sha256(table.tobytes()).hexdigest())\n",
        "            pass\n",
        "tests/release/test_mechanism.py",
    ),
    Mutant(
        "lost numbers are drawn anew for free",
        "release/mechanism.py",
        "        elif self.ledger.published(receipt) is not None:",
        "        elif False:",
        "tests/release/test_mechanism.py",
    ),
    Mutant(
        "one receipt for two publications",
        "release/ledger.py",
        "            elif earlier != digest:",
        "            elif False:",
        "tests/release/test_ledger.py",
    ),
    Mutant(
        "a search tells in its log how often it tried",
        "methods/private_search.py",
        "door = self.door_class(training, insecure_seed=seed, quiet=True)",
        "door = self.door_class(training, insecure_seed=seed)",
        "tests/methods/test_private_search.py",
    ),
    Mutant(
        "numbers that a killed process left behind stay in the checkpoint",
        "checkpoint.py",
        "            remove_drafts(self.folder)  # numbers in them never were released\n",
        "",
        "tests/test_checkpoint.py",
    ),
    Mutant(
        "a user in two blocks",
        "release/mechanism.py",
        "            _check_new_users(offer, seen)\n",
        "",
        "tests/release/test_mechanism.py",
    ),
    Mutant(
        "seed left on",
        "release/mechanism.py",
        "    insecure_seed: int | None = None\n",
        "    insecure_seed: int | None = 0\n",
        "tests/release/test_mechanism.py tests/release/test_statement.py",
    ),
    Mutant(
        "a seeded model says that it is private",
        "release/statement.py",
        "is_private=door.insecure_seed is None and not any(release.seeded for release in door.releases),",
        "is_private=True,",
        "tests/release/test_statement.py",
    ),
    Mutant(
        "one release more than is paid for",
        "methods/gradient_steps.py",
        "        for step in range(1, self.steps + 1):\n",
        "        for step in range(1, self.steps + 2):\n",
        "tests/methods/test_conformance.py",
    ),
    Mutant(
        "a release outside the door",
        "methods/released_means.py",
        "moments = door.release(query, offer, costs[1])[:, 0]",
        "moments = np.bincount(offer.pattern.items, offer.coefficients, ratings.n_items)",
        "tests/privacy/test_methods.py",
    ),
    Mutant(
        "one user changes the rounding of the others",
        "kernels/rows.py",
        "    result = np.empty(len(indptr) - 1)\n    _row_sums(indptr, values, result)\n",
        "    totals = np.concatenate([[0.0], np.cumsum(values)])\n    result = np.diff(totals[indptr])\n",
        "tests/kernels/test_rows.py",
    ),
    Mutant(
        "duplicate rows counted twice",
        "kernels/grouping.py",
        "if kept > first_kept and items[order[kept - 1]] == key >> 32:",
        "if False:",
        "tests/test_ratings.py",
    ),
    Mutant(
        "catalogue inferred silently",
        "ratings.py",
        'origin = "given" if self.catalogue_declared else "taken from the data and thereby declared public"',
        'origin = "given"',
        "tests/methods/test_biases.py",
    ),
    Mutant(
        "rating range inferred from the data",
        "intake/builder.py",
        "    if rating_range is None:\n        raise InputError(",
        "    if rating_range is None:\n        return (-1e9, 1e9)\n        raise InputError(",
        "tests/test_ratings.py",
    ),
    Mutant(
        "ledger without fsync",
        "release/ledger.py",
        "PRAGMA synchronous = EXTRA",
        "PRAGMA synchronous = OFF",
        "tests/release/test_ledger.py",
    ),
    Mutant(
        "ledger forgets what was spent before",
        "release/ledger.py",
        "if allowance is not None and spent + cost > allowance:",
        "if allowance is not None and cost > allowance:",
        "tests/release/test_ledger.py",
    ),
    Mutant(
        "ledger does not look at the chain",
        "release/ledger.py",
        "if number != expected or stored != last:",
        "if number != expected:",
        "tests/release/test_ledger.py",
    ),
    Mutant(
        "a stream goes on after a fork",
        "release/randomness.py",
        "if (os.getpid(), _forks) != self._home:",
        "if False:",
        "tests/release/test_randomness.py",
    ),
    Mutant(
        "rounding errors on the unsafe side",
        "release/accounting.py",
        "max(difference + error, _SMALLEST)",
        "max(difference - error, _SMALLEST)",
        "tests/release/test_accounting.py",
    ),
    Mutant(
        "a budget that is not a whole: shares add up to more",
        "release/accounting.py",
        "return tuple(math.floor(self.cost * w / sum(exact)) for w in exact)",
        "return tuple(math.floor(self.cost * min(w, Fraction(1))) for w in exact)",
        "tests/release/test_accounting.py",
    ),
    Mutant(
        "a product over all users, whose rounding depends on who is there",
        "methods/pooled_releases.py",
        "whitened = people.company(centred @ inverse_root(unpacked(spread, size)))",
        "whitened = people.company(centred) @ inverse_root(unpacked(spread, size))",
        "tests/privacy/test_methods.py",
    ),
    Mutant(
        "the number of users taken from the data",
        "methods/pooled_releases.py",
        "breadth = max(float(breadth), door.releases[-1].sigma)",
        "breadth = float(people.breadths.sum())",
        "tests/privacy/test_methods.py",
    ),
    Mutant(
        "the number of users of gradient descent taken from the data",
        "methods/released_means.py",
        "max(users, noise) / largest",
        "float(ratings.n_users)",
        "tests/privacy/test_methods.py",
    ),
    Mutant(
        "the radius of Frank-Wolfe taken from the data",
        "methods/frank_wolfe.py",
        "radius = radius or self.radius * singular",
        "radius = radius or self.radius * float(np.linalg.norm(residuals))",
        "tests/privacy/test_methods.py",
    ),
    Mutant(
        "choosing is free",
        "release/selection.py",
        " + tries.growth(mu)\n",
        "\n",
        "tests/release/test_selection.py",
    ),
    Mutant(
        "delta is counted once for all tries",
        "release/selection.py",
        "accounting.epsilon(mu, delta / tries.mean)",
        "accounting.epsilon(mu, delta)",
        "tests/release/test_selection.py",
    ),
    Mutant(
        "candidates are tried in turn",
        "release/selection.py",
        "        candidate = _uniform(n_candidates, stream)\n",
        "        candidate = _ % n_candidates\n",
        "tests/release/test_selection.py",
    ),
    Mutant(
        "a fixed number of tries",
        "release/selection.py",
        "range(_number(tries, stream))",
        "range(round(tries.mean))",
        "tests/release/test_selection.py",
    ),
    Mutant(
        "a score without noise",
        "methods/private_search.py",
        "            return float(score), (",
        "            score = offer_of_gains(*model.two_sides(known), known, hidden).coefficients.sum()\n"
        "            return float(score), (",
        "tests/methods/test_private_search.py",
    ),
    Mutant(
        "the fit of a search spends what the search may",
        "methods/private_search.py",
        "door = self.door_class(training, insecure_seed=seed, quiet=True)",
        "door = self.door_class(Budget(self.epsilon, self.delta), insecure_seed=seed, quiet=True)",
        "tests/methods/test_private_search.py",
    ),
    Mutant(
        "how active users are taken from the data",
        "methods/pooled_choices.py",
        "    return Activity.of(released, door.releases[-1].sigma)",
        "    exact = np.bincount(people.offer_of_activity(n_groups).pattern.items, minlength=n_groups)\n"
        "    return Activity.of(exact, 0.0)",
        "tests/privacy/test_methods.py",
    ),
]


def copy_of_the_project(folder: Path, mutant: Mutant | None) -> None:
    for part in ("src", "tests"):
        shutil.copytree(PROJECT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("pyproject.toml", "README.md"):
        shutil.copy(PROJECT / part, folder / part)
    if mutant is not None:
        target = folder / "src" / "dpals" / mutant.file
        source = target.read_text()
        if source.count(mutant.before) != 1:
            sys.exit(f"mutant {mutant.name!r} does not fit {mutant.file}: the code has changed, change the mutant")
        target.write_text(source.replace(mutant.before, mutant.after))


def tested(mutant: Mutant | None, tests: str) -> subprocess.CompletedProcess[str]:
    """pytest on a copy of the project. Exit code 0: passed, 1: failed, others: did not run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_of_the_project(folder, mutant)
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests.split()],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder / "src"), "CI": "true"},
            capture_output=True,
            text=True,
            check=False,
        )


def main() -> None:
    everything = " ".join(sorted({test for mutant in MUTANTS for test in mutant.tests.split()}))
    unchanged = tested(None, everything)
    if unchanged.returncode != 0:
        sys.exit(f"{unchanged.stdout}\nthe tests do not pass without any mutant: mend them first")
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda mutant: tested(mutant, mutant.tests).returncode, MUTANTS)
        caught = 0
        for mutant, result in zip(MUTANTS, results, strict=True):
            caught += result == 1
            verdict = {0: "SURVIVED", 1: "caught"}.get(result, f"DID NOT RUN ({result})")
            print(f"{verdict:12}  {mutant.name}", flush=True)
    print(f"{caught} of {len(MUTANTS)} mutants caught")
    sys.exit(caught != len(MUTANTS))


if __name__ == "__main__":
    main()
