"""Every experiment draws and finds something, whatever was measured; the quick ones run."""

import io
import os

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from rich.console import Console

import dpals
from dpals.data.simulate import movielens_like, paper_synthetic
from dpals.errors import InputError
from dpals.evaluation.splits import pairs
from dpals.experiments import NAMES, find
from dpals.experiments.convergence import epsilon_after
from dpals.experiments.experiment import Scale
from dpals.experiments.initialization import subspace_error
from dpals.experiments.runner import run, table_of, write
from dpals.experiments.sample_complexity import GOAL, exponent, users_needed
from dpals.experiments.tasks import load_ratings

ONLY_SIMULATED = {True: Scale(quick=True, data=("simulated",)), False: Scale(data=("simulated",))}


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_pictures_and_findings_of_any_numbers(name, quick, tmp_path):
    """Numbers are made up here, so that nothing has to be trained."""
    experiment = find(name)
    assert experiment.name == name
    cells = experiment.cells(ONLY_SIMULATED[quick])
    labels = [cell.labels for cell in cells]
    assert len({str(label) for label in labels}) == len(labels) > 0
    numbers = _numbers(name)
    rng = np.random.default_rng(1)
    rows = [{**cell.labels, **{number: rng.uniform(0.1, 1) for number in numbers}} for cell in cells]
    write(experiment, table_of(rows), tmp_path, "a command")
    page = (tmp_path / "README.md").read_text()
    assert experiment.claim in page
    assert "onfirmed: " in page or "Not tested: " in page
    for finding in experiment.findings(table_of(rows)):
        assert "simulated" in finding or "Not tested: " in finding or name == "accounting"
    assert list(tmp_path.glob("*.png"))
    assert plt.get_fignums() == []


def _numbers(name):
    return {
        "accounting": ["paper's conversion", "exact", "exact and corrected"],
        "count-distribution": ["share of ratings"],
        "count-histograms": ["users with at least", "movies with at least", "share of ratings", "correlation"],
        "frequent-ratings": ["RMSE", "ratings"],
        "frequent-items": ["Recall@20"],
        "tradeoff-items": ["Recall@20"],
        "initialization": ["subspace error"],
        "rank": ["RMSE", "Recall@20"],
        "frontier": ["RMSE", "Recall@20"],
    }.get(name, ["RMSE"])


def test_simulated_data_says_so():
    for name in NAMES:
        for cell in find(name).cells(ONLY_SIMULATED[False]):
            says = " ".join([*map(str, cell.labels), *map(str, cell.labels.values()), find(name).title])
            assert "simulated" in says or name == "accounting"


def test_data_that_a_task_does_not_have_is_refused():
    with pytest.raises(InputError, match="runs on ml-10m, not on ml-20m"):
        find("tradeoff-ratings").cells(Scale(data=("ml-20m",)))
    with pytest.raises(InputError, match=r"'nothing\.csv' is neither simulated, ml-100k"):
        find("tradeoff-ratings").cells(Scale(data=("nothing.csv",)))
    with pytest.raises(ValueError, match="no experiment 'tradeof'"):
        find("tradeof")


@pytest.fixture
def own_file(tmp_path):
    """Marks from 1 to 10, of 300 users."""
    ratings = movielens_like(300, 60, 25, seed=3)
    path = tmp_path / "marks.csv"
    columns = {"user": ratings.rows, "item": ratings.indices, "rating": 2 * ratings.values}
    pl.DataFrame(columns).write_csv(path)
    return path


def test_own_data(own_file):
    """The same protocol, scored like a fit by hand; a file that has changed is measured again."""
    scale = Scale(quick=True, data=(str(own_file),), rating_range=(1, 10))
    cells = {cell.labels["method"]: cell for cell in find("tradeoff-ratings").cells(scale)}
    cell = cells["UserMean"]
    assert cell.labels["data"] == "marks.csv"
    parts = dpals.datasets.split("ml-10m", dpals.read_ratings(own_file, rating_range=(1, 10)), seed=21)
    model = dpals.UserMean(insecure_seed=21).fit(parts.train)
    predicted = model.predict(parts.train, *pairs(parts.test.target))
    by_hand = np.sqrt(np.mean((predicted - parts.test.target.values) ** 2))
    assert cell.measure()["RMSE"] == pytest.approx(by_hand)

    assert len(load_ratings("items", str(own_file), 21, scale).indices) < len(parts.train.indices)  # 8 to 10 are liked
    os.utime(own_file, (1, 1))
    changed = {cell.labels["method"]: cell for cell in find("tradeoff-ratings").cells(scale)}["UserMean"]
    assert changed.labels == cell.labels
    assert changed.settings != cell.settings


def test_own_data_needs_ratings_and_their_range(own_file):
    with pytest.raises(InputError, match="need rating_range"):
        find("tradeoff-ratings").cells(Scale(quick=True, data=(str(own_file),)))
    clicks = own_file.with_name("clicks.csv")
    pl.read_csv(own_file).drop("rating").write_csv(clicks)
    scale = Scale(quick=True, data=(str(clicks),))
    with pytest.raises(InputError, match="has no ratings to predict"):
        load_ratings("ratings", str(clicks), 21, scale)
    assert load_ratings("items", str(clicks), 21, scale).is_implicit


def test_too_few_users_to_leave_some_out(own_file):
    scale = Scale(quick=True, data=(str(own_file),), rating_range=(1, 10))
    experiment = find("users")
    rows = [{**cell.labels, "RMSE": 1.0} for cell in experiment.cells(scale)]
    assert experiment.findings(table_of(rows)) == ["Not tested: there are too few users, 300."]


@pytest.mark.parametrize("name", ["count-distribution", "count-histograms"])
def test_counts_on_simulated_data(name, tmp_path):
    home = run(find(name), ONLY_SIMULATED[True], tmp_path, Console(file=io.StringIO()), "")
    table = pl.read_csv(home / "table.csv")
    if name == "count-histograms":
        assert table.group_by("ratings").agg(pl.col("share of ratings").sum())["share of ratings"].to_list() == (
            pytest.approx([1.0] * 3)
        )
    else:
        shares = table.filter(ratings="all ratings").sort("share of movies")["share of ratings"].to_numpy()
        assert np.all(np.diff(shares) > 0)
        assert shares[0] > 0.01  # the most popular hundredth has more than a hundredth


def test_users_needed_are_read_off_a_power_law():
    rows = [
        {"method": "DPALS", "items": items, "users, simulated": users, "RMSE": (users / items**1.5) ** -0.5}
        for items in (100, 200, 400)
        for users in (items, 10 * items, 100 * items, 1_000 * items)
    ]
    needed = users_needed(pl.DataFrame(rows))
    assert needed["users"].to_list() == pytest.approx([items**1.5 / GOAL**2 for items in (100, 200, 400)])
    assert exponent(needed) == pytest.approx(1.5)
    assert exponent(needed[:1]) is None
    too_few = pl.DataFrame(rows).filter(pl.col("users, simulated") <= 100)
    assert users_needed(too_few).is_empty()


def test_subspace_error_is_the_sine_of_the_largest_angle():
    truth = np.eye(5)[:, :2]
    turned = np.stack([truth[:, 0], np.cos(0.3) * truth[:, 1] + np.sin(0.3) * np.eye(5)[:, 4]], axis=1)
    assert subspace_error(truth[:, ::-1], truth) == pytest.approx(0)
    assert subspace_error(turned, truth) == pytest.approx(np.sin(0.3))


def test_epsilon_of_the_steps_is_what_a_fit_states():
    """The vertical scale of the convergence picture, against the statement of DPALS with that noise."""
    train = paper_synthetic(300, 100, seed=1).train
    model = dpals.DPALS(
        None,
        1e-5,
        rank=2,
        steps=3,
        ratings_per_user=150,
        gram_noise=20.0,
        moment_noise=20.0,
        count_noise=20.0,
        centre=False,
        sampling="uniform",
        frequent_fraction=1.0,
        item_exponent=0.0,
        insecure_seed=1,
    ).fit(train)
    assert model.privacy.epsilon == pytest.approx(epsilon_after(3, 20.0), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_quick_runs_work(name, tmp_path):
    home = run(find(name), ONLY_SIMULATED[True], tmp_path, Console(file=io.StringIO()), "")
    assert (home / "README.md").exists()
