"""``dpals plan`` as a process."""

import json

from tests.cli.conftest import refused, run

from dpals.cli.plan import _print_json
from dpals.experiments.planning import Expected, Plan, Size


def test_plan_prints_a_table_and_draws(tmp_path):
    size = ("--users", 800, "--items", 100, "--ratings", 20_000)
    result = run("plan", *size, "--epsilon", 5, "-o", "plan.png", cwd=tmp_path)
    assert result.returncode == 0
    assert "PooledDPALS" in result.stdout
    assert "simulated" in result.stdout
    assert (tmp_path / "plan.png").stat().st_size > 10_000


def test_json_has_all_numbers(capsys):
    """Called as a function: what makes a plan takes long."""
    size = Size.of(800, 100, 20_000)
    methods = [Expected("PooledDPALS", 0.25, {"rank": 4}), Expected("Popularity", 0.2, {})]
    asked = {"users": 800, "epsilon": 5.0, "task": "items"}
    _print_json(Plan("items", size, methods, {2.5: 0.2, 5.0: 0.25}, 0.3), size, asked)
    assert json.loads(capsys.readouterr().out) == {
        **asked,
        "simulated": {"users": 800, "items": 100},
        "metric": "Recall@20",
        "methods": [
            {"method": "PooledDPALS", "score": 0.25, "settings": {"rank": 4}},
            {"method": "Popularity", "score": 0.2, "settings": {}},
        ],
        "not_private": 0.3,
        "best_at": [{"epsilon": 2.5, "score": 0.2}, {"epsilon": 5.0, "score": 0.25}],
    }


def test_a_plot_that_cannot_be_written_ends_it_before_the_work(tmp_path):
    size = ("--users", 800, "--items", 100, "--ratings", 20_000, "--epsilon", 5)
    refused(run("plan", *size, "-o", "missing/plan.png", cwd=tmp_path), "missing does not exist")


def test_what_cannot_be_planned_for_says_what_can(tmp_path):
    few = run("plan", "--users", 2000, "--items", 300, "--ratings", 20_000, "--epsilon", 1, cwd=tmp_path)
    refused(few, "fewer than 20 ratings", "plan for those of your users who have so many")
    narrow = ("--users", 2000, "--items", 30, "--ratings", 50_000, "--epsilon", 1, "--task", "items")
    refused(run("plan", *narrow, cwd=tmp_path), "at least 40 to choose from")
    wrong = run(
        "plan", "--users", 800, "--items", 100, "--ratings", 20_000, "--epsilon", 1, "-o", "p.pdf", cwd=tmp_path
    )
    refused(wrong, "must end in .png", code=2)
