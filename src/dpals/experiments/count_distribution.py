"""How skewed popularity is, as it is and under two ways of sampling 50 ratings per user."""

from functools import lru_cache

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from dpals.data.ratings import Ratings
from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import label, legend, line, panels
from dpals.experiments.tasks import data_of, identity_of, load_split, title_of
from dpals.private.sampling import least_counted, uniform_sample

TITLE = "Popularity under sampling"
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SAMPLE_SIZE = 50
WAYS = ("all ratings", "uniform sample", "adaptive sample")


@lru_cache(maxsize=2)
def samples(data: str, seed: int, scale: Scale) -> dict[str, Ratings]:
    """The training ratings, and 50 of each user, drawn in two ways. Counts here are exact."""
    train = load_split("ratings", data, seed, scale).train
    counts = np.bincount(train.indices, minlength=train.n_items).astype(np.float64)
    drawn = uniform_sample(train, SAMPLE_SIZE, seed), least_counted(train, counts, SAMPLE_SIZE)
    return dict(zip(WAYS, (train, *drawn), strict=True))


def share_of_ratings(ratings: Ratings, share_of_movies: float) -> float:
    """The part of all ratings that the most popular movies have."""
    counts = np.sort(np.bincount(ratings.indices, minlength=ratings.n_items))[::-1]
    return float(counts[: max(1, round(share_of_movies * len(counts)))].sum() / counts.sum())


def cells(scale: Scale) -> list[Cell]:
    seed = scale.seeds()[0]
    return [
        _cell(data, way, share, seed, scale) for data in data_of("ratings", scale) for way in WAYS for share in SHARES
    ]


def _cell(data: str, way: str, share: float, seed: int, scale: Scale) -> Cell:
    def measure() -> dict[str, float]:
        sample = samples(data, seed, scale)[way]
        return {"share of ratings": share_of_ratings(sample, share)}

    labels = {"data": title_of(data), "ratings": way, "share of movies": share}
    return Cell(labels, {"experiment": "count-distribution", **identity_of(data, scale), "seed": seed}, measure)


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    names = table["data"].unique(maintain_order=True).to_list()
    figure, axes = panels(TITLE, names)
    for axis, name in zip(axes, names, strict=True):
        for number, way in enumerate(WAYS):
            line(axis, table.filter(data=name, ratings=way), "share of movies", "share of ratings", way, number)
        label(axis, "share of the movies, most popular first", "their share of the ratings", SHARES)
    return {"distribution": legend(figure, axes)}


def findings(table: pl.DataFrame) -> list[str]:
    result = []
    for data in table["data"].unique(maintain_order=True):
        tenth = [
            float(table.filter(pl.col("share of movies") == 0.1, data=data, ratings=way)["share of ratings"].item())
            for way in WAYS
        ]
        result.append(
            verdict(
                tenth[1] > tenth[0] > tenth[2],
                f"{data}: the top tenth of the movies has {tenth[0]:.0%} of the ratings, {tenth[1]:.0%} of a uniform "
                f"sample and {tenth[2]:.0%} of an adaptive one.",
            )
        )
    return result


EXPERIMENT = Experiment(
    name="count-distribution",
    title=TITLE,
    claim=(
        "Popularity is heavily skewed; sampling uniformly for each user makes it more so, adaptive sampling less so."
    ),
    cells=cells,
    draw=draw,
    findings=findings,
)
