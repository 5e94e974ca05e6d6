"""What a search may tell: its best try, and nothing of the others, not even how many there were."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpals.audit.recorded_run import RecordedRelease, RecordedRun, record_run
from dpals.audit.simulated_data import Rows
from dpals.data.ratings import Ratings
from dpals.methods.private_search import PrivateSearch
from dpals.release.selection import best_of

_SEEDS = range(1, 41)
_ENOUGH_TRIES = 4


@dataclass(frozen=True)
class Try:
    """The candidate of a try, the seed of its noise, and its score."""

    candidate: int
    seed: int | None
    score: float


def run_search(search: PrivateSearch, ratings: Ratings, seed: int) -> tuple[RecordedRun, list[Try]]:
    """A run of the search, and its tries in order."""
    tries: list[Try] = []

    def choose(distribution: Any, n_candidates: int, attempt: Any) -> Any:
        def noted(candidate: int, noise_seed: int | None) -> Any:
            score, result = attempt(candidate, noise_seed)
            tries.append(Try(candidate, noise_seed, score))
            return score, result

        return best_of(distribution, n_candidates, noted, seed)

    return _with_choice(choose, search, ratings, seed), tries


def _with_choice(choose: Callable[..., Any], search: PrivateSearch, ratings: Ratings, seed: int) -> RecordedRun:
    """A run of the search in which `choose` stands for its own choice of the best try."""
    subject: Any = copy.deepcopy(search)
    subject.choose = choose
    return record_run(subject, ratings, insecure_seed=seed)


def seed_with_several_tries(search: PrivateSearch, ratings: Ratings) -> int:
    """A seed with several tries, the best not the first and not of the candidate that came last; or with the most."""
    most, longest = 0, _SEEDS[0]
    for seed in _SEEDS:
        _, tries = run_search(search, ratings, seed)
        if len(tries) >= _ENOUGH_TRIES and tries[0] != _best(tries) and _best(tries).candidate != tries[-1].candidate:
            return seed
        if len(tries) > most:
            most, longest = len(tries), seed
    return longest


def _best(tries: list[Try]) -> Try:
    return max(tries, key=lambda one: one.score)


def search_leaks(search: PrivateSearch, rows: Rows, seed: int) -> Iterator[str]:
    """What a search tells besides its best try, with a seed for which there is something to tell."""
    ratings = rows.ratings()
    run, tries = run_search(search, ratings, seed)
    if len(run.mechanisms) != 2 * len(tries):
        yield f"{len(tries)} tries used {len(run.mechanisms)} mechanisms: tries are not independent"
    if tries:
        best = _best(tries)
        alone = _with_choice(lambda _, __, attempt: attempt(best.candidate, best.seed)[1], search, ratings, seed)
        yield from _published_differences(run, alone, f"the best of {len(tries)} tries alone")
    everyone, others = (
        _with_choice(lambda *_: None, search, rows.ratings(keep), seed)
        for keep in (slice(None), rows.users != rows.users.min())
    )
    yield from _published_differences(everyone, others, "the same without a user, where there are no tries")
    scores = [number for number, release in enumerate(run.releases) if release.query.purpose.startswith("score")]
    winners = [
        record_run(search, ratings, _with_best_score(run.releases, scores, best), insecure_seed=seed).published
        for best in scores
    ]
    if any(one == winners[0] for one in winners[1:]):
        yield "which try wins does not depend on the released scores"


def _published_differences(run: RecordedRun, other: RecordedRun, whom: str) -> Iterator[str]:
    one, two = ({**each.published, "log": each.log} for each in (run, other))
    for name in sorted(one.keys() | two.keys()):
        if one.get(name) != two.get(name):
            yield f"{name} differs from {whom}"


def _with_best_score(releases: list[RecordedRelease], scores: list[int], best: int) -> list[RecordedRelease]:
    """The same releases, but for the scores: one of them is the best by far."""
    return [
        replace(release, published=np.full_like(release.published, 1e9 if number == best else -1e9))
        if number in scores
        else release
        for number, release in enumerate(releases)
    ]
