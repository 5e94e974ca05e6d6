"""Samples of noise: of fits, of repeats of their releases, and of taller tables."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpals.audit.p_values import standardised
from dpals.audit.recorded_run import RecordedRelease, RecordedRun, record_run
from dpals.data.ratings import Ratings
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.private_search import PrivateSearch
from dpals.release.accounting import Budget
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Scores = NDArray[np.float64]

_AT_LEAST = 2000  # numbers for every release, where so many are asked for in all
_PER_REPEAT = 200  # one repeat of a release for so many numbers: repeats take longest
_FITS = 12  # a search may make no try at all: so many fits until two have releases


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of one release of the method: of its fits, of repeats just like it, and of a taller table.

    A taller table has the same query and cost, but more rows: what is added to an entry does not depend on how many
    there are, and a table takes no longer than a number.
    """

    number: int
    releases: tuple[RecordedRelease, ...]
    taller: NDArray[np.int64]

    @property
    def purpose(self) -> str:
        return self.releases[0].record.purpose

    @property
    def weights(self) -> NDArray[np.int64]:
        return weights_by_definition(self.releases[0].query)

    @property
    def sigmas(self) -> Scores:
        """Stated standard deviation of each column, in steps."""
        return np.sqrt(self.releases[0].record.variance / self.weights)

    @cached_property
    def whole(self) -> NDArray[np.int64]:
        """All of it, in steps."""
        return np.concatenate([*(release.noise for release in self.releases), self.taller])

    @cached_property
    def scores(self) -> Scores:
        """The same in standard deviations."""
        return standardised(self.whole, self.sigmas, seed=self.number)

    @property
    def as_released(self) -> Scores:
        """Of these, the ones of tables of the real size."""
        return self.scores[: len(self.scores) - len(self.taller)]


def weights_by_definition(query: Query) -> NDArray[np.int64]:
    """The weight of each column by the definition of a release, worked out apart from the mechanism.

    Examples
    --------
    >>> weights_by_definition(Query("Gram matrix", 1, 1.0, "symmetric", 3))
    array([1, 2, 2, 1, 2, 1])
    """
    if query.form == "symmetric":  # entries off the diagonal are there twice
        return np.concatenate([[1] + [2] * (query.dimension - row - 1) for row in range(query.dimension)])
    return np.array(query.weights or [1] * query.dimension)


def fits_with_releases(estimator: PrivateEstimator, ratings: Ratings) -> list[RecordedRun]:
    """Two fits; for searches as many as it takes for two of them to have releases."""
    runs: list[RecordedRun] = []
    while len(runs) < (_FITS if isinstance(estimator, PrivateSearch) else 2):
        runs.append(record_run(estimator, ratings, insecure_seed=None))
        if sum(bool(run.releases) for run in runs) == 2:
            break
    return runs


def noise_of_releases(
    runs: Sequence[RecordedRun], samples: int, mechanism_class: type[Mechanism] = Mechanism
) -> list[Noise]:
    """Noise of every kind of release, with repeats through mechanisms of their own until there is enough of it."""
    kinds: dict[tuple[object, int], list[RecordedRelease]] = {}
    for run in runs:
        for release in run.releases:
            kind = release.query, release.cost
            if kind in kinds or run is runs[0] or not runs[0].releases:  # other fits may have releases of other kinds
                kinds.setdefault(kind, []).append(release)
    enough = max(samples // max(1, len(kinds)), min(samples, _AT_LEAST))
    repeats = samples // (_PER_REPEAT * max(1, len(kinds)))
    return [_repeated(number, found, repeats, enough, mechanism_class) for number, found in enumerate(kinds.values())]


def _repeated(
    number: int, found: list[RecordedRelease], repeats: int, enough: int, mechanism_class: type[Mechanism]
) -> Noise:
    """Noise of a release that was found in fits, with at most so many repeats and, in all, `enough` numbers."""
    first, releases = found[0], list(found)
    budget, size = Budget.of_cost(2 * first.cost), first.sums.size
    for _ in range(min(repeats, -(-enough // size) - len(releases))):
        mechanism = mechanism_class(budget)
        published = mechanism.release(first.query, first.contributions, first.cost)
        releases.append(replace(first, record=mechanism.releases[-1], published=published))
    rows = -(-(enough - size * len(releases)) // first.sums.shape[1])
    return Noise(number, tuple(releases), taller_table(first, max(0, rows), mechanism_class))


def taller_table(release: RecordedRelease, rows: int, mechanism_class: type[Mechanism]) -> NDArray[np.int64]:
    """The noise of a table with so many rows and no users, in steps, for the query and the cost of a release."""
    if rows == 0:
        return np.empty((0, release.sums.shape[1]), np.int64)
    mechanism = mechanism_class(Budget.of_cost(2 * release.cost))
    table = mechanism.release(replace(release.query, n_items=rows), (), release.cost)
    return np.rint(table / release.record.step).astype(np.int64)


def pooled_scores(noises: Sequence[Noise]) -> Scores:
    """The scores of all releases."""
    return np.concatenate([noise.scores.ravel() for noise in noises])
