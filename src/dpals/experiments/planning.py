"""What accuracy to expect on data of a given size, from simulated data, at no cost in privacy."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpals.data.simulate import FEWEST_RATINGS, movielens_like
from dpals.errors import InputError
from dpals.experiments.settings import make, settings_for
from dpals.experiments.tasks import FEW_USERS, METRICS, split_for
from dpals.release import accounting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_ITEMS = 40
MOST_RATINGS = 2_500_000
MOST_CELLS = 125_000_000  # users times items, which simulation takes time in proportion to
MOST_THINNING = 10  # with fewer people per item than a tenth, chance would count for more than noise
DENSEST = 0.1  # share of the items that users may have for a catalogue to be simulated smaller
METHODS = {
    "ratings": ("PooledDPALS", "DPSGD", "AdaDPALS", "DPALS", "DPSVD", "PrivateBiases", "ItemMean", "UserMean"),
    "items": ("PooledDPALS", "AdaDPALS", "DPALS", "Popularity"),
}
MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
SEED = 0


@dataclass(frozen=True)
class Size:
    """The size of a data set, and of the simulated data that stands for it."""

    users: int
    items: int
    ratings: int
    thinning: float
    """The real data has this many times the ratings per item."""

    @classmethod
    def of(cls, users: int, items: int, ratings: int) -> "Size":
        """Simulated data may have fewer users, and beyond some point fewer items as well; not fewer ratings per user.

        Examples
        --------
        >>> Size.of(users=1_000_000, items=20_000, ratings=100_000_000)
        Size(users=25000, items=5000, ratings=2500000, thinning=10.0)
        """
        if users < 100 or items < 10:
            raise InputError(f"{users:,} users and {items:,} items are too few to plan for: at least 100 and 10")
        if not users <= ratings <= users * items:
            raise InputError(
                f"{ratings:,} ratings of {users:,} users on {items:,} items are not possible: between {users:,} and "
                f"{users * items:,}"
            )
        rows, cells = ratings / MOST_RATINGS, users * items / MOST_CELLS
        thinning = min(max(1.0, rows, cells), MOST_THINNING)
        # Fewer items and fewer users in the same proportion leave the ratings per item as they are.
        smaller = min(max(1.0, rows / thinning, (cells / thinning) ** 0.5), max(1.0, DENSEST * users * items / ratings))
        thinning = max(thinning, rows / smaller, cells / smaller**2)
        fewer = min(users, max(500, round(users / smaller / thinning)))
        return cls(fewer, round(items / smaller), round(ratings * fewer / users), users / smaller / fewer)

    def budget_for(self, epsilon: float, delta: float) -> float:
        """The epsilon under which fewer users have the same signal above the noise as all users under `epsilon`.

        Sums over users shrink with their number, and noise with mu: so mu is multiplied by what they are divided by.
        """
        return accounting.epsilon(accounting.mu(epsilon, delta) * self.thinning, delta)


@dataclass(frozen=True)
class Expected:
    """What to expect of one method."""

    method: str
    score: float
    settings: dict[str, Any]
    """Arguments that are not the method's defaults."""


@dataclass(frozen=True)
class Plan:
    """The expected accuracy of the methods, best first, and that of the best one under other budgets."""

    task: str
    size: Size
    methods: list[Expected]
    best_at: dict[float, float]
    """Score of the best method by epsilon."""
    reference: float
    """Score of ALS, which is not private."""


def make_plan(
    task: str, size: Size, epsilon: float, delta: float, say: Callable[[str], object] = lambda _: None
) -> Plan:
    """Simulate data of the size and try the methods on it. `say` is told what is being done."""
    if task == "items" and size.items < FEWEST_ITEMS:
        raise InputError(f"to recommend 20 items there must be at least {FEWEST_ITEMS} to choose from")
    if size.ratings < size.users * min(FEWEST_RATINGS, size.items):
        raise InputError(
            f"users with fewer than {FEWEST_RATINGS} ratings on average cannot be simulated: plan for those of your "
            "users who have so many, and count only their ratings"
        )
    say(f"Simulating {size.users:,} users ...")
    ratings = movielens_like(size.users, size.items, size.ratings / size.users, seed=SEED)
    if task == "items":
        ratings = replace(ratings, values=None, rating_range=None)
    split = split_for(task, ratings, SEED)
    budget, lower = size.budget_for(epsilon, delta), METRICS[task] == "RMSE"
    small = size.users * size.thinning < FEW_USERS

    def tried(method: str, epsilon: float) -> Expected:
        say(f"Training {method} ...")
        settings = settings_for(task, method, epsilon, small)
        if "rank" in settings:
            settings["rank"] = min(settings["rank"], size.items)
        scored = split.fit_and_score(make(method, epsilon, SEED, settings))
        return Expected(method, scored, settings)

    found = [tried(method, budget) for method in METHODS[task]]
    found.sort(key=lambda expected: expected.score if lower else -expected.score)
    others = {multiple: size.budget_for(multiple * epsilon, delta) for multiple in MULTIPLES}
    best_at = {
        multiple * epsilon: found[0].score if multiple == 1 else tried(found[0].method, other).score
        for multiple, other in others.items()
    }
    return Plan(task, size, found, best_at, tried("ALS", 1.0).score)


def draw_plan(plan: Plan, epsilon: float) -> "Figure":
    """Methods side by side at this epsilon, and the best of them at others."""
    from dpals.experiments.pictures import label, panels

    best, metric = plan.methods[0].method, METRICS[plan.task]
    figure, (left, right) = panels(
        "What to expect, simulated", [f"all methods at epsilon {epsilon:g}", f"{best} at other epsilons"]
    )
    names = [expected.method for expected in reversed(plan.methods)]
    left.plot([expected.score for expected in reversed(plan.methods)], range(len(names)), "o", color="#0072B2")
    left.set_yticks(range(len(names)), names)
    left.set_xlabel(f"expected {metric}")
    right.plot(list(plan.best_at), list(plan.best_at.values()), "o-", color="#D55E00", label=best)
    for axis, draw_line in ((left, left.axvline), (right, right.axhline)):
        draw_line(plan.reference, color="#7F7F7F", linestyle="--", label="ALS, not private")
        axis.legend(frameon=False, fontsize=9)
    label(right, "epsilon", f"expected {metric}", list(plan.best_at))
    return figure


def significant(number: float) -> str:
    """A number for a table: three decimals, as more would only be noise of one simulation."""
    return f"{number:.3f}"
