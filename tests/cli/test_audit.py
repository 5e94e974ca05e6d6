"""``dpals audit`` as a process."""

import json

import pytest
from tests.cli.conftest import refused, run

import dpals

RATINGS = dpals.simulate.movielens_like(n_users=300, n_items=40, mean_ratings=20, seed=1)


def test_a_method_is_audited_and_the_report_is_a_page_with_plots(tmp_path):
    result = run("audit", "--method", "item-mean", "--epsilon", 1, "--quick", "-o", "audit.html", cwd=tmp_path)
    assert result.returncode == 0, result.stdout
    assert result.stdout.startswith("Audit of ItemMean(epsilon=1.0, delta=1e-06)\non simulated ratings.")
    for number, name in enumerate(("replay", "noise", "canary", "one run"), 1):
        assert f"Level {number}, {name}: passed" in result.stdout
    assert "The promise held in everything that was tried." in result.stdout
    assert "audit.html" in result.stderr
    assert (tmp_path / "audit.html").read_text().count("<svg") == 2


def test_json_has_the_lower_bound_and_the_claim(tmp_path):
    options = ("--epsilon", 1, "--level", 3, "--runs", 3000, "--json", "-q")
    result = run("audit", "--method", "popularity", *options, cwd=tmp_path)
    assert result.returncode == 0
    assert result.stderr == ""
    (level,) = json.loads(result.stdout)["levels"]
    assert level["verdict"] == "passed"
    assert 0.5 < level["facts"]["mu_at_least"] / level["facts"]["mu_claimed"] < 1


def test_too_few_runs_are_no_pass(tmp_path):
    result = run("audit", "--method", "global-mean", "--epsilon", 1, "--level", 3, "--runs", 2, cwd=tmp_path)
    assert result.returncode == 1
    assert "inconclusive" in result.stdout
    assert "level 3 could not have found anything" in result.stdout


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "model"


def test_a_model_is_audited_with_its_own_settings(folder):
    dpals.ItemMean(0.5, 1e-6, residual_bound=0.3).fit(RATINGS).save(folder)
    result = run("audit", folder, "--level", 1, "--quick")
    assert result.returncode == 0
    assert "ItemMean(epsilon=0.5, delta=1e-06, residual_bound=0.3)" in result.stdout


def test_settings_can_come_from_a_file(tmp_path):
    file = tmp_path / "settings.json"
    file.write_text('{"method": "ItemMean", "epsilon": 2, "delta": 1e-06}')
    result = run("audit", file, "--level", 3, "--quick")
    assert result.returncode == 0
    assert "ItemMean(epsilon=2, delta=1e-06)" in result.stdout
    for content, words in {
        '{"method": "Magic"}': "Magic",
        '{"method": "ItemMean", "rank": 3}': "rank",
        "rank = 3": "is not a JSON file of a method's settings",
        "[1]": "is not a JSON file of a method's settings",
        '{"method": "ALS"}': "ALS is not private",
    }.items():
        file.write_text(content)
        refused(run("audit", file), words)


def test_models_that_promise_nothing_are_refused(folder, tmp_path):
    dpals.ALS(rank=2, steps=1).fit(RATINGS).save(folder)
    refused(run("audit", folder), "is not private: it promises nothing", code=2)
    dpals.ItemMean(insecure_seed=1).fit(RATINGS).save(tmp_path / "seeded")
    refused(run("audit", tmp_path / "seeded"), "NOT PRIVATE", code=2)
    (tmp_path / "empty").mkdir()
    refused(run("audit", tmp_path / "empty"), "is not a model folder")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "say what to audit"),
        (["--method", "als"], "als is not private: it promises nothing"),
        (["--method", "pooled"], "say how much privacy to spend with --epsilon"),
        (["--method", "search"], "say how much privacy to spend with --epsilon"),
        (["--method", "search", "--epsilon", 1, "--set", "tries=9"], "for one of your own, call"),
        (["--method", "pooled", "--epsilon", 1, "--level", 5], "5 is not in the range"),
        (["--method", "pooled", "--epsilon", 1, "--set", "rnk=3"], "has no parameter 'rnk'"),
        (["--method", "pooled", "--epsilon", 1, "--runs", 0], "0 is not in the range"),
        (["--method", "pooled", "--epsilon", 1, "-o", "audit.pdf"], "must end in .html"),
        (["--method", "what"], "is not one of"),
        ([".", "--epsilon", 1], "a model has its own settings"),
    ],
)
def test_wrong_commands_are_refused(arguments, words, tmp_path):
    refused(run("audit", *arguments, cwd=tmp_path), words, code=2)


def test_settings_that_cannot_be_audited_are_refused_with_the_reason(tmp_path):
    seeded = ("--method", "item-mean", "--epsilon", 1, "--set", "insecure_seed=3")
    refused(run("audit", *seeded, cwd=tmp_path), "with an insecure_seed is not private")
    refused(run("audit", "--method", "global-mean", "--epsilon", 1, "--implicit", cwd=tmp_path), "needs ratings")
    refused(run("audit", "--method", "pooled", "--epsilon", -1, cwd=tmp_path), "epsilon must be a positive number")
