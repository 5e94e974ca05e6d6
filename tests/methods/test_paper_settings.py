import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import dpals
from dpals.methods.paper_settings import private_settings, reference_settings

PAPER = Path(__file__).parents[3] / "shared" / "paper" / "private-als.tex"
COLUMNS = {"ml-10m-top400": (0.8, 4, 8, 16), "ml-10m": (1, 5, 10, 20), "ml-20m": (1, 5, 10, 20)}
SYMBOLS = {
    "$r$": "rank",
    r"$\lambda$": "ridge",
    r"$\lambda_0$": "unseen_weight",
    r"$\mu$": "item_exponent",
    r"$\nu$": "user_exponent",
    "$T$": "steps",
    "$k$": "ratings_per_user",
    r"$\sigma_G$": "gram_noise",
    r"$\sigma_g$": "moment_noise",
    r"$\beta$": "frequent_fraction",
    r"$\sigma_p$": "count_noise",
}
PRIVATE = [(name, epsilon) for name, epsilons in COLUMNS.items() for epsilon in epsilons]


def printed_table():
    """{(data set, epsilon or None): {argument: number}} as printed in the paper."""
    text = PAPER.read_text()
    table = text[text.index(r"\label{tab:optimal-parameters}") :]
    table = table[: table.index(r"\end{tabular}")]
    columns = [(name, epsilon) for name, epsilons in COLUMNS.items() for epsilon in (*epsilons, None)]
    printed = {column: {} for column in columns}
    for line in table.splitlines():
        symbol, *cells = (cell.strip() for cell in re.sub(r"\\\\.*", "", line).split("&"))
        if symbol == r"$\epsilon$":
            assert [None if cell == "-" else float(cell) for cell in cells] == [epsilon for _, epsilon in columns]
        if symbol in SYMBOLS:
            for column, cell in zip(columns, cells, strict=True):
                printed[column][SYMBOLS[symbol]] = None if cell == "-" else float(cell)
    return printed


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not part of the repository")
def test_every_number_is_the_printed_one():
    printed = printed_table()
    assert all(column.keys() == set(SYMBOLS.values()) for column in printed.values())
    for (name, epsilon), column in printed.items():
        ours = reference_settings(name) if epsilon is None else private_settings(name, epsilon)
        for argument, number in column.items():
            if number is None and argument.endswith("exponent"):
                assert ours[argument] == 0, "a dash for an exponent: all ridges are the same"
            elif number is not None:
                assert ours[argument] == number, (name, epsilon, argument)


def test_a_few_numbers_by_hand():
    assert private_settings("ml-10m", 1)["frequent_fraction"] == 0.05
    assert private_settings("ml-10m", 20)["moment_noise"] == 3.8
    assert private_settings("ml-10m-top400", 0.8)["ratings_per_user"] == 40
    assert private_settings("ml-20m", 10)["ratings_per_user"] == 100
    assert private_settings("ml-20m", 5)["delta"] == pytest.approx(1 / 136_677)
    assert reference_settings("ml-20m")["ridge"] == 30.0
    assert reference_settings("ml-10m-top400")["rank"] == 50


@pytest.mark.parametrize(("name", "epsilon"), PRIVATE)
def test_every_private_column_makes_a_model(name, epsilon):
    model = dpals.DPALS.from_paper(name, epsilon)
    assert model.epsilon is None, "the noise is given, the epsilon follows from it"
    assert model.row_clip == 1.0
    assert model.gram_noise == private_settings(name, epsilon)["gram_noise"]


@pytest.mark.parametrize("name", COLUMNS)
def test_every_reference_column_makes_a_model(name):
    model = dpals.ALS.from_paper(name)
    assert model.steps == 15
    assert model.biases is False


def test_changes_win():
    assert dpals.DPALS.from_paper("ml-10m", 5, rank=3).rank == 3
    assert dpals.ALS.from_paper("ml-10m", rank=3).rank == 3


def test_what_is_not_in_the_paper_is_named():
    with pytest.raises(ValueError, match=r"ml-10m-top400, ml-10m, ml-20m, not for 'ml-25m'"):
        dpals.DPALS.from_paper("ml-25m", 1)
    with pytest.raises(ValueError, match=r"1, 5, 10, 20 for ml-10m, not 2"):
        dpals.DPALS.from_paper("ml-10m", 2)
    with pytest.raises(ValueError, match="not None"):
        dpals.DPALS.from_paper("ml-10m", None)
    with pytest.raises(ValueError, match="ml-25m"):
        dpals.ALS.from_paper("ml-25m")


def exact_epsilon(squared_mu, delta):
    """Of the Gaussian mechanism, by the formula of Balle and Wang (2018)."""
    mu = np.sqrt(squared_mu)

    def excess(epsilon):
        return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta

    return brentq(excess, 1e-6, 100)


@pytest.mark.parametrize(("name", "epsilon"), PRIVATE)
def test_the_statement_says_what_the_printed_noise_costs(name, epsilon):
    """Errata: two mechanisms per step, counts twice where items have ridges by their counts, the corrected mean, K."""
    column = private_settings(name, epsilon)
    implicit = name == "ml-20m"
    data = dpals.simulate.movielens_like(60, 50, 20, seed=1)
    if implicit:
        data = dpals.Ratings.from_csr(data.to_csr(), implicit=True)
    statement = dpals.DPALS.from_paper(name, epsilon, rank=2, insecure_seed=1).fit(data).privacy
    k, steps = column["ratings_per_user"], column["steps"]
    gram, moment, count = (column[key] ** -2 for key in ("gram_noise", "moment_noise", "count_noise"))
    expected = k * steps * (gram + moment)
    expected += k * count if implicit else 2 * k * count + count
    expected += steps * gram if implicit else 0
    assert statement.mu**2 == pytest.approx(expected, rel=1e-6)
    assert statement.epsilon == pytest.approx(exact_epsilon(expected, column["delta"]), rel=1e-5)


def test_the_column_for_epsilon_five_costs_less_than_five():
    data = dpals.simulate.movielens_like(60, 50, 20, seed=1)
    assert 4.1 <= dpals.DPALS.from_paper("ml-10m", 5, rank=2).fit(data).privacy.epsilon <= 4.8
