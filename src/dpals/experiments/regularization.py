"""Exponents of the regularisation: heavier for frequent users (nu) and movies (mu) or the same for all."""

import polars as pl
from matplotlib.figure import Figure

from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import label, legend, line, panels
from dpals.experiments.tasks import data_of, method_cell

TITLE = "Exponents of the regularisation, epsilon 10"
FRACTIONS = (0.1, 0.2, 0.4, 1.0)
EXPONENTS = ((0.0, 0.0), (0.0, 0.5), (1.0, 0.0), (1.0, 0.5), (1.0, 1.0))
USUAL = (1.0, 0.5)


def cells(scale: Scale) -> list[Cell]:
    data = data_of("ratings", scale)[0]
    return [
        method_cell(
            "ratings",
            data,
            "DPALS",
            10.0,
            seed,
            scale,
            {"user exponent": user, "movie exponent": movie, "movies": fraction},
            frequent_fraction=fraction,
            user_exponent=user,
            item_exponent=movie,
        )
        for seed in scale.seeds(2)
        for user, movie in EXPONENTS
        for fraction in FRACTIONS
    ]


def _of(table: pl.DataFrame, exponents: tuple[float, float]) -> pl.DataFrame:
    return table.filter(pl.col("user exponent") == exponents[0], pl.col("movie exponent") == exponents[1])


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    figure, (axis,) = panels(TITLE, [table["data"][0]])
    for number, pair in enumerate(EXPONENTS):
        line(axis, _of(table, pair), "movies", "RMSE", f"users {pair[0]:g}, movies {pair[1]:g}", number)
    label(axis, "share of the movies that is trained on", "test RMSE (lower is better)", FRACTIONS)
    return {"regularization": legend(figure, [axis])}


def findings(table: pl.DataFrame) -> list[str]:
    best = {pair: float(_of(table, pair)["RMSE"].min()) for pair in EXPONENTS}  # type: ignore[arg-type]
    everything = {pair: float(_of(table, pair).filter(movies=1.0)["RMSE"].item()) for pair in EXPONENTS}
    winner = min(best, key=best.__getitem__)
    loss, plain = (everything[pair] - best[pair] for pair in (winner, (0.0, 0.0)))
    return [
        verdict(
            max(best.values()) - min(best.values()) > 0.005,
            f"{table['data'][0]}: best of each, "
            + ", ".join(f"{score:.4f} (users {u:g}, movies {m:g})" for (u, m), score in best.items())
            + ".",
        ),
        verdict(
            winner == USUAL and loss < plain,
            f"{table['data'][0]}: the best are users {winner[0]:g}, movies {winner[1]:g}; training on all movies then "
            f"costs {loss:.4f} against {plain:.4f} without exponents.",
        ),
    ]


EXPERIMENT = Experiment(
    name="regularization",
    title=TITLE,
    claim=(
        "The exponents matter: at the best ones (users 1, movies 0.5) the model can be trained on a much larger share "
        "of the movies, with little loss."
    ),
    cells=cells,
    draw=draw,
    findings=findings,
)
