"""The statement as data."""

import json

import numpy as np
import pytest

from dpals.errors import InputError
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import Budget, epsilon, mu_of
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.mechanism import Mechanism
from dpals.statement.record import Statement

BUDGET = Budget(epsilon=1.0, delta=1e-5)


def test_states_what_was_spent(statement):
    whole = statement()
    assert whole.epsilon <= 1.0
    assert whole.epsilon == pytest.approx(1.0, rel=1e-6)
    assert whole.delta == 1e-5
    assert whole.mu == pytest.approx(BUDGET.mu, rel=1e-6)
    assert whole.shares == pytest.approx((0.25, 0.75), rel=1e-6)


def test_states_what_was_spent_and_not_what_was_allowed():
    mechanism = Mechanism(BUDGET)
    mechanism.release(Query("half", 3, sensitivity=1.0), [], BUDGET.split(1, 1)[0])
    spent = Statement.of(mechanism, ())
    assert spent.epsilon == epsilon(mu_of(mechanism.spent), 1e-5) < 0.75


def test_an_overspent_mechanism_would_say_so():
    mechanism = Mechanism(BUDGET)
    mechanism.release(Query("all", 3, sensitivity=1.0), [], BUDGET.cost)
    mechanism.releases *= 2
    assert Statement.of(mechanism, ()).epsilon > 1.4


def release_all(ledger, **options):
    with Mechanism(BUDGET, ledger, "films", **options) as mechanism:
        mechanism.release(Query("all", 3, sensitivity=1.0), [], BUDGET.cost // 2)
    return Statement.of(mechanism, ())


def test_other_runs_on_the_same_data_are_added_up(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    for _ in range(4):
        last = release_all(ledger)
    assert last.dataset_mu == pytest.approx(2 * last.mu, rel=1e-6)
    assert last.dataset_epsilon == pytest.approx(epsilon(last.dataset_mu, 1e-5), rel=1e-8)
    assert "together: epsilon 1.466 at delta 1e-05 (mu 0.3791), if what each may cost was decided" in str(last)


def test_adaptive_runs_add_up_to_their_whole_budgets(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    statements = [release_all(ledger, adaptive=True) for _ in range(2)]
    assert [statement.mu for statement in statements] == [mu_of(BUDGET.cost)] * 2
    assert [statement.dataset_mu for statement in statements] == [mu_of(BUDGET.cost), mu_of(2 * BUDGET.cost)]
    assert statements[0].dataset_epsilon == 1.0


def test_a_ledger_in_memory_does_not_know_what_other_runs_spent():
    last = [release_all(Ledger()) for _ in range(2)][-1]
    assert (last.dataset_mu, last.dataset_epsilon, last.ledger_head, last.together) == (None, None, None, "unknown")
    assert "All runs on this data together: unknown, because no ledger was kept of them." in str(last)


def test_the_total_names_searches(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.enter_search("films", "search", 0.5, 1e-6)
    last = release_all(ledger)
    assert last.dataset_searches == ((0.5, 1e-6),)
    due = 0.5 + epsilon(last.dataset_mu, 9e-6)
    assert last.dataset_epsilon == pytest.approx(due, rel=1e-8)
    assert last.dataset_delta == 1e-5
    assert "(training runs: mu 0.1896; a search: epsilon 0.5 at delta 1e-06)" in str(last)
    assert Statement.from_json(last.to_json()) == last


def test_a_seeded_release_stays_seeded():
    mechanism = Mechanism(BUDGET, insecure_seed=1)
    mechanism.release(Query("all", 3, sensitivity=1.0), [], BUDGET.cost)
    mechanism.insecure_seed = None
    assert not Statement.of(mechanism, ()).is_private


def test_no_release_is_perfectly_private():
    empty = Statement.of(Mechanism(BUDGET), ())
    assert (empty.epsilon, empty.mu, empty.releases) == (0, 0, ())
    assert empty.attack_power == pytest.approx(0.01)
    assert "None." in str(empty)


def test_json_round_trip(statement):
    original = statement()
    assert Statement.from_json(original.to_json()) == original
    data = json.loads(original.to_json())
    assert data["epsilon"] == original.epsilon
    assert data["attack_power_at_1_percent_false_alarms"] == pytest.approx(0.0198, abs=1e-3)
    assert [release["purpose"] for release in data["releases"]] == ["release 0", "release 1"]


def test_seeded_runs_on_the_same_data_are_said(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    for seed, alarmed in ((None, False), (1, True), (None, True)):
        mechanism = Mechanism(BUDGET, ledger, "films", insecure_seed=seed)
        mechanism.release(Query("counts", 3, 1.0), Contribution(Pattern([0], [], 3), np.empty(0)), BUDGET.cost)
        statement = Statement.of(mechanism, ())
        assert ("together they are NOT PRIVATE" in str(statement)) == alarmed
        assert statement.is_private == (seed is None)
        assert Statement.from_json(statement.to_json()) == statement


def hostile(statement, changes):
    data = json.loads(statement.to_json())
    for name, value in changes.items():
        if name in ("bound", "variance", "step", "shape", "purpose", "sensitivity"):
            data["releases"][0][name] = value
        else:
            data[name] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": float("nan")},
        {"epsilon": -1.0},
        {"epsilon": float("inf")},
        {"epsilon": 10**400},
        {"epsilon": "1"},
        {"epsilon": True},
        {"epsilon": None},
        {"delta": 2.0},
        {"delta": 0.0},
        {"delta": float("nan")},
        {"mu": float("nan")},
        {"mu": None},
        {"dataset_mu": float("nan")},
        {"dataset_epsilon": -1},
        {"dataset_searches": [[1.0]]},
        {"dataset_searches": [[1.0, float("nan")]]},
        {"dataset_searches": 5},
        {"dataset": 7},
        {"assumptions": [["a"]]},
        {"assumptions": None},
        {"is_private": "yes"},
        {"ledger_head": 3},
        {"selection": {"distribution": "geometric", "tries": 3, "mu": 0.1}},
        {"selection": {"distribution": "all"}, "mu": None},
        {"selection": {"distribution": "all", "tries": 3, "mu": 0.1}, "mu": None},
        {"selection": {"distribution": "poisson", "tries": float("nan"), "mu": 0.1}, "mu": None},
        {"releases": [{}]},
        {"releases": {"a": 1}},
        {"variance": 0},
        {"variance": -1},
        {"variance": 2**200},
        {"bound": 2.5},
        {"bound": 10**300},
        {"step": float("nan")},
        {"step": "wide"},
        {"shape": [3]},
        {"shape": 3},
        {"shape": [3, "many"]},
        {"purpose": None},
        {"sensitivity": 1},
    ],
    ids=str,
)
def test_a_hostile_statement_is_refused_with_one_clear_error(statement, changes):
    with pytest.raises(InputError, match="this is not a privacy statement: "):
        Statement.from_json(hostile(statement(), changes))


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "{}", '{"epsilon": 1}', "[" * 100_000, "null"], ids=lambda text: text[:9]
)
def test_what_is_no_statement_at_all_is_refused(text):
    with pytest.raises(InputError, match="this is not a privacy statement: "):
        Statement.from_json(text)


def test_statements_of_earlier_versions_are_read(tmp_path):
    """They had no epsilon of all runs; mu of a ledger in memory was that of one run."""
    data = json.loads(release_all(Ledger(tmp_path / "ledger.db")).to_json())
    for name in ("dataset_epsilon", "dataset_delta", "dataset_searches"):
        del data[name]
    old = Statement.from_json(json.dumps(data))
    assert old.together == "epsilon 0.6842 at delta 1e-05 (mu 0.1896)"
    assert Statement.from_json(json.dumps({**data, "ledger_head": None})).together == "unknown"


def test_the_sensitivity_is_written_as_it_always_was(statement):
    """Statements of earlier versions called it the bound, and programs read it under that name."""
    data = json.loads(statement().to_json())
    fields = ["purpose", "shape", "form", "bound", "variance", "step", "seeded"]
    assert [list(release) for release in data["releases"]] == [fields] * 2
    data["releases"][0] = {
        "purpose": "item counts",
        "shape": [3, 1],
        "form": "scalar",
        "bound": 1073741824,
        "variance": 20562949871264735232,
        "step": 9.313225746154785e-10,
        "seeded": False,
    }
    old = Statement.from_json(json.dumps(data))
    assert old.releases[0].sensitivity == 2**30
    assert json.loads(old.to_json())["releases"] == data["releases"]
