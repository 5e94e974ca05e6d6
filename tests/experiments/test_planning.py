"""Plans: the size that is simulated, the budget that goes with it, and what comes out."""

import pytest

from dpals import accounting
from dpals.errors import InputError
from dpals.experiments.planning import MOST_CELLS, MOST_RATINGS, Size, draw_plan, make_plan


def test_small_data_is_simulated_at_its_own_size():
    assert Size.of(1_000, 100, 20_000) == Size(1_000, 100, 20_000, 1.0)
    assert Size.of(1_000, 100, 20_000).budget_for(1.0, 1e-6) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("users", "items", "ratings"),
    [(70_000, 10_000, 10_000_000), (10**7, 100, 10**8), (10**6, 10**5, 10**7), (10**6, 20_000, 10**8)],
)
def test_large_data_is_simulated_smaller_and_with_less_noise_in_proportion(users, items, ratings):
    """Each user has as many ratings, and what an item has of them rises as far above the noise."""
    size = Size.of(users, items, ratings)
    assert size.items <= items
    assert size.ratings / size.users == pytest.approx(ratings / users, rel=0.01)
    assert size.ratings <= 1.01 * MOST_RATINGS
    assert size.users * size.items <= max(1.01 * MOST_CELLS, 500 * items)
    mu = accounting.mu(size.budget_for(1.0, 1e-6), 1e-6)
    assert mu * size.ratings / size.items == pytest.approx(accounting.mu(1.0, 1e-6) * ratings / items, rel=1e-3)


def test_a_catalogue_of_which_users_have_much_is_not_simulated_smaller():
    assert Size.of(10**7, 100, 10**8).items == 100


@pytest.mark.parametrize("wrong", [(50, 100, 1_000), (1_000, 5, 2_000), (1_000, 100, 100), (1_000, 100, 100_001)])
def test_sizes_that_cannot_be_are_refused(wrong):
    with pytest.raises(InputError):
        Size.of(*wrong)


@pytest.mark.parametrize("task", ["ratings", "items"])
def test_a_plan_orders_methods_and_knows_that_more_budget_is_better(task):
    said = []
    plan = make_plan(task, Size.of(1_500, 150, 45_000), 5.0, 1e-5, said.append)
    scores = [expected.score for expected in plan.methods]
    assert scores == sorted(scores, reverse=task == "items")
    assert plan.best_at[5.0] == scores[0]
    better = plan.best_at[20.0] < plan.best_at[1.25]
    assert better == (task == "ratings")
    assert any("Simulating 1,500 users" in line for line in said)
    assert len(draw_plan(plan, 5.0).axes) == 2
