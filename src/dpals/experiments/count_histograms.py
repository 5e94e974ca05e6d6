"""Who rates what: a joint histogram of the counts of users and movies, over all ratings and under sampling."""

from functools import lru_cache

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpals.experiments.count_distribution import WAYS, samples
from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import panels
from dpals.experiments.tasks import data_of, identity_of, title_of

TITLE = "Counts of users against counts of movies, over all ratings"
BINS = 8


@lru_cache(maxsize=6)
def _histogram(data: str, way: str, seed: int, scale: Scale) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The share of the ratings in each bin of (user count, movie count), the bins' edges, and the correlation.

    Counts are those in all ratings, whatever the sample. The bins are octaves up to the largest count.
    """
    drawn = samples(data, seed, scale)
    train, sample = drawn[WAYS[0]], drawn[way]
    users = np.diff(train.indptr)[sample.rows]
    movies = np.bincount(train.indices, minlength=train.n_items)[sample.indices]
    edges = np.stack([np.geomspace(counts.min(), counts.max() + 1, BINS + 1) for counts in (users, movies)])
    joint = np.histogram2d(users, movies, [edges[0], edges[1]])[0] / len(users)
    return joint, edges, float(np.corrcoef(users, movies)[0, 1])


def cells(scale: Scale) -> list[Cell]:
    seed, data = scale.seeds()[0], data_of("ratings", scale)[0]
    return [
        _cell(data, way, user_bin, movie_bin, seed, scale)
        for way in WAYS
        for user_bin in range(BINS)
        for movie_bin in range(BINS)
    ]


def _cell(data: str, way: str, user_bin: int, movie_bin: int, seed: int, scale: Scale) -> Cell:
    def measure() -> dict[str, float]:
        joint, edges, correlation = _histogram(data, way, seed, scale)
        return {
            "users with at least": float(edges[0, user_bin]),
            "movies with at least": float(edges[1, movie_bin]),
            "share of ratings": float(joint[user_bin, movie_bin]),
            "correlation": correlation,
        }

    labels = {"data": title_of(data), "ratings": way, "user bin": user_bin, "movie bin": movie_bin}
    return Cell(labels, {"experiment": "count-histograms", **identity_of(data, scale), "seed": seed}, measure)


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    figure, axes = panels(f"{TITLE}\n{table['data'][0]}", WAYS, height=4.6)
    before = _joint(table, WAYS[0])
    for axis, way in zip(axes, WAYS, strict=True):
        joint = _joint(table, way)
        first = way == WAYS[0]
        shown = joint if first else joint - before
        largest = float(np.abs(shown).max())
        image = axis.imshow(
            shown,
            origin="lower",
            aspect="auto",
            cmap="Greys" if first else "RdBu_r",
            vmin=0 if first else -largest,
            vmax=largest,
        )
        figure.colorbar(image, ax=axis, label="share of the ratings" if first else "change of it by sampling")
        here = table.filter(ratings=way)
        at = range(BINS)
        axis.set_yticks(at, [f"{here.filter(pl.col('user bin') == k)['users with at least'][0]:.0f}" for k in at])
        axis.set_xticks(at, [f"{here.filter(pl.col('movie bin') == k)['movies with at least'][0]:.0f}" for k in at])
        axis.set_xlabel("ratings that the movie has, at least")
        axis.set_ylabel("ratings that the user gave, at least")
        axis.grid(visible=False)
    return {"histograms": figure}


def _joint(table: pl.DataFrame, way: str) -> NDArray[np.float64]:
    here = table.filter(ratings=way).sort("user bin", "movie bin")
    return here["share of ratings"].to_numpy().reshape(BINS, BINS)


def findings(table: pl.DataFrame) -> list[str]:
    correlation = table.filter(ratings=WAYS[0])["correlation"][0]
    before, uniform, adaptive = (_joint(table, way)[:, BINS - 2 :].sum() for way in WAYS)
    return [
        verdict(
            correlation < -0.1,
            f"{table['data'][0]}: the correlation between user count and movie count over all ratings is "
            f"{correlation:.3f}.",
        ),
        verdict(
            uniform > before > adaptive,
            f"{table['data'][0]}: movies in the two most popular bins have {before:.1%} of the ratings, {uniform:.1%} "
            f"of a uniform sample, {adaptive:.1%} of an adaptive one.",
        ),
    ]


EXPERIMENT = Experiment(
    name="count-histograms",
    title=TITLE,
    claim=(
        "Users who rate little rate popular movies: the correlation of user and movie counts over the ratings is "
        "-0.243. So a uniform sample per user raises the share of popular movies; an adaptive one lowers it."
    ),
    cells=cells,
    draw=draw,
    findings=findings,
)
