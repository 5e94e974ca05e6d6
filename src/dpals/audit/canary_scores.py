"""Score canaries: how well what was published tells those who took part from those who did not."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from dpals.audit.canary_contributions import (
    CYCLE,
    Canaries,
    Floats,
    Key,
    canaries_for,
    entries_per_canary,
    key_of,
    takes_part,
)
from dpals.audit.recorded_run import RecordedRelease, RecordedRun
from dpals.release.accounting import Budget
from dpals.release.mechanism import Mechanism

_BATCH_ENTRIES = 2**20  # published numbers of a release: 8 MB for each table
_WIDE_SHARE = 1 / 16
_MOST_DRAWS = 1.6e9


@dataclass(frozen=True, eq=False)
class MechanismReleases:
    """Releases of one mechanism, with its budget. A fit has one mechanism, a try of a search two."""

    budget: Budget
    releases: tuple[RecordedRelease, ...]


def releases_by_mechanism(run: RecordedRun, n_mechanisms: int | None = None) -> list[MechanismReleases]:
    """The releases of each of the first mechanisms of a run, without those that no user can move."""
    parts, start = [], 0
    for mechanism in run.mechanisms[:n_mechanisms]:
        stop = start + len(mechanism.releases)
        moved = tuple(release for release in run.releases[start:stop] if release.query.sensitivity > 0)
        parts.append(MechanismReleases(mechanism.budget, moved))
        start = stop
    return parts


@dataclass(frozen=True, eq=False)
class CanaryScores:
    """Scores of absent and of present canaries, and the mu that each of those present should reach."""

    absent: Floats
    present: Floats
    reaches: Floats

    @property
    def reach(self) -> float:
        return float(self.reaches.mean())


def score_canaries(
    parts: Sequence[MechanismReleases], n_canaries: int, mechanism_class: type[Mechanism] = Mechanism
) -> dict[str, CanaryScores]:
    """Scores of about so many canaries, half of them present: by everything that is released, and by each form of it.

    Each batch goes through mechanisms of its own, with the costs of the recorded releases. The score is the logarithm
    of the likelihood ratio of what was published about the canary, scaled so that it is N(0, 1) for absent ones and
    N(mu, 1) for present ones, if noise is what the records say. Everything together is called ``all``.
    """
    seen: dict[str, list[CanaryScores]] = {}
    for wide, size, count in _batches(parts, n_canaries):
        canaries: dict[Key, Canaries] = {}
        for release in (release for part in parts for release in part.releases):
            if key_of(release) not in canaries:
                canaries[key_of(release)] = canaries_for(release, size, wide)
        here = takes_part(size)
        for _ in range(count):
            by_form = _evidence(parts, canaries, size, mechanism_class)
            together = np.sum(list(by_form.values()), axis=0)
            for name, (projections, squares) in {"all": together, **by_form}.items():
                roots = np.sqrt(squares)
                score = projections / roots
                seen.setdefault(name, []).append(CanaryScores(score[~here], score[here], roots[here]))
    return {name: _joined(batches) for name, batches in seen.items()}


def _evidence(
    parts: Sequence[MechanismReleases], canaries: dict[Key, Canaries], size: int, mechanism_class: type[Mechanism]
) -> dict[str, Floats]:
    """Inner products of published and known numbers, over the variance, and squared norms over it, for each form."""
    found: dict[str, Floats] = {}
    for part in parts:
        mechanism = mechanism_class(part.budget, quiet=True)
        for release in part.releases:
            some = canaries[key_of(release)]
            published = mechanism.release(replace(release.query, n_items=some.rows), some.contribution, release.cost)
            record = mechanism.releases[-1]
            sums = found.setdefault(release.query.form, np.zeros((2, size)))
            sums += np.stack([some.projections(published / record.step), some.squares]) / record.variance
    return found


def _joined(batches: list[CanaryScores]) -> CanaryScores:
    return CanaryScores(
        *(np.concatenate([getattr(one, part.name) for one in batches]) for part in fields(CanaryScores))
    )


def _batches(parts: Sequence[MechanismReleases], n_canaries: int) -> list[tuple[bool, int, int]]:
    """For canaries in lanes and for a few wide ones: how many go together, and how many times.

    Wide ones take the same time as the others at most, and all together not more than a minute or two: releases of
    very large matrices have fewer canaries.
    """
    queries = [release.query for part in parts for release in part.releases]
    draws = {wide: sum(entries_per_canary(query, wide) for query in queries) for wide in (False, True)}
    n_canaries = min(n_canaries, int(_MOST_DRAWS / draws[False]))
    several = draws[False] != draws[True]
    share = min(_WIDE_SHARE, draws[False] / draws[True] / 2) if several else 0.0
    plan = []
    for wide, number in ((False, n_canaries * (1 - share)), (True, n_canaries * share)):
        if number > 0:
            together = _BATCH_ENTRIES // max(entries_per_canary(query, wide) for query in queries)
            count = math.ceil(number / max(CYCLE, together))
            plan.append((wide, CYCLE * math.ceil(number / count / CYCLE), count))
    return plan
