"""Lists of PooledDPALS with its defaults from implicit feedback, beside popularity and tuned ALS; delta 1e-5.

    python benchmarks/implicit_quality.py                # every set, epsilon 0.3 to 1000: about an hour
    python benchmarks/implicit_quality.py msweb ml-1m

Of each user's n items, n / 5, rounded down, are to be found; the others are known. Everything that a user does not have
is ranked. Real sets are looked for as in `rating_sets.py`. ALS is not private; its settings are the best of a grid on
another split. Recall@20 and NDCG@20 are means over at most 6,000 users and three seeds.
"""

import itertools
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import dpals
import rating_sets
from dpals.evaluation.metrics import ndcg_at_k, recall_at_k
from dpals.evaluation.splits import liked
from dpals.methods.base.estimator import Estimator

SEEDS, SEED_OF_TUNING = (1, 2, 3), 11
EPSILONS = (0.3, 1, 5, 20, 1000)
GOALS = {  # share of the Recall@20 of tuned ALS, at epsilon 1, 5 and 20
    "anime": (0.88, 0.96, 0.99),
    "ml-1m": (0.72, 0.93, 1.0),
    "msweb": (0.97, 0.985, 0.99),
    "bookcrossing": (0.0, 0.5, 0.8),
}
GRID = [
    {"rank": rank, "unseen_weight": weight, "ridge": ridge}
    for rank, weight, ridge in itertools.product((32, 64), (0.003, 0.02, 0.1, 0.3), (1.0, 3.0, 10.0))
]
MOST_USERS = 6000


class Parts(NamedTuple):
    """What is known of users, and for some of them what is known and what is to be found."""

    train: dpals.Ratings
    history: dpals.Ratings
    target: dpals.Ratings


def _liked_films(seed: int) -> dpals.Ratings | None:
    films = rating_sets.SETS["ml-1m"](seed)
    return None if films is None else liked(films)


def _real(folder: str, name: str, least: int = 1) -> Callable[[int], dpals.Ratings | None]:
    def load(seed: int) -> dpals.Ratings | None:  # noqa: ARG001
        table = rating_sets.real_table(folder, name)
        if table is None:
            return None
        pairs = table[["user", "item"]]
        return dpals.Ratings.from_frame(pairs[pairs.groupby("user")["item"].transform("size") >= least])

    return load


def places(seed: int, n_users: int = 30_000, n_items: int = 40_000, n_areas: int = 400) -> dpals.Ratings:
    """Simulated visits: nine of ten are near a user's home, in areas whose places are of very different popularity."""
    rng = np.random.default_rng(seed)
    size, at = rng.gamma(1.0, size=n_areas), rng.normal(size=(n_areas, 6))
    distances = ((at[:, None] - at) ** 2).sum(axis=2)
    visits = np.exp(-2 * distances) * size
    visits /= visits.sum(axis=1, keepdims=True)
    popularity, area = rng.lognormal(0, 1.3, n_items), rng.choice(n_areas, n_items, p=size / size.sum())
    everywhere = np.cumsum(popularity) / popularity.sum()
    order = np.argsort(area, kind="stable")
    within = np.append(0.0, np.cumsum(popularity[order]))
    ends = np.searchsorted(area[order], np.arange(n_areas + 1))
    counts = np.clip(np.exp(rng.normal(3.2, 0.7, n_users)), 5, 1500).astype(int)
    users = np.repeat(np.arange(n_users), counts)
    homes = rng.choice(n_areas, n_users, p=size / size.sum())
    areas = np.concatenate([rng.choice(n_areas, n, p=visits[home]) for home, n in zip(homes, counts, strict=True)])
    low, high = within[ends[areas]], within[ends[areas + 1]]
    near = order[np.clip(np.searchsorted(within, rng.uniform(low, high)) - 1, 0, n_items - 1)]
    far = np.searchsorted(everywhere, rng.random(len(users)))
    items = np.where((rng.random(len(users)) < 0.9) & (high > low), near, far)
    return dpals.Ratings.from_arrays(users, items)


SETS: dict[str, Callable[[int], dpals.Ratings | None]] = {
    "ml-1m": _liked_films,
    "anime": _real("anime", "watched"),
    "msweb": _real("msweb", "ratings"),
    "bookcrossing": _real("bookcrossing", "ratings", least=5),
    "places, simulated": places,
}


def parts(name: str, seed: int) -> Parts | None:
    """A fifth of each user's items to be found; None, with a word about it, where the set is not here."""
    pairs = SETS[name](seed)
    if pairs is None:
        return None
    rng, counts = np.random.default_rng(seed), np.diff(pairs.indptr)
    order = np.lexsort((rng.random(pairs.n_ratings), pairs.rows))
    place = np.empty(pairs.n_ratings, int)
    place[order] = np.arange(pairs.n_ratings) - np.repeat(pairs.indptr[:-1], counts)
    hidden = place < (counts // 5)[pairs.rows]
    some = np.zeros(pairs.n_users, bool)
    some[rng.permutation(np.flatnonzero(counts >= 5))[:MOST_USERS]] = True
    train, asked = pairs.keep(~hidden), some[pairs.rows]
    return Parts(train, pairs.keep(~hidden & asked), pairs.keep(hidden & asked))


def scores(method: Estimator, part: Parts) -> tuple[float, float]:
    """Recall@20 and NDCG@20."""
    ids, _ = method.fit(part.train).recommend(part.history, k=20)
    return recall_at_k(ids, part.target), ndcg_at_k(ids, part.target)


def show(name: str, found: list[tuple[float, float]], reference: float, goal: float | None = None) -> None:
    """Means and the spread of the recall, and its share of the reference."""
    (recall, ndcg), spread = np.mean(found, axis=0), np.std(found, axis=0)[0]
    verdict = ""
    if goal is not None:
        verdict = f"   goal {goal:.3f}: {'reached' if recall >= goal * reference else 'NOT REACHED'}"
    print(f"  {name:28} {recall:.4f} ± {spread:.4f}  {ndcg:.4f}  {recall / reference:6.3f}{verdict}", flush=True)


def run(name: str) -> None:
    """One table."""
    found = {seed: parts(name, seed) for seed in (SEED_OF_TUNING, *SEEDS)}
    by_seed = {seed: part for seed, part in found.items() if part is not None}
    if not by_seed:
        return
    tuning = by_seed.pop(SEED_OF_TUNING)
    best = max(GRID, key=lambda settings: scores(dpals.ALS(**settings), tuning)[0])
    tuned = [scores(dpals.ALS(**best), part) for part in by_seed.values()]
    reference = float(np.mean(tuned, axis=0)[0])
    print(f"{name}: Recall@20, NDCG@20, share of tuned ALS {best}")
    show("ALS, tuned, not private", tuned, reference)
    show("ALS, defaults, not private", [scores(dpals.ALS(), part) for part in by_seed.values()], reference)
    goals = dict(zip((1, 5, 20), GOALS.get(name, ()), strict=False))
    for epsilon in EPSILONS:
        for method in (dpals.Popularity, dpals.PooledDPALS):
            ours = [scores(method(epsilon, 1e-5, insecure_seed=seed), part) for seed, part in by_seed.items()]
            goal = goals.get(epsilon) if method is dpals.PooledDPALS else None
            show(f"{method.__name__}, epsilon {epsilon}", ours, reference, goal)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or SETS:
        run(chosen)
