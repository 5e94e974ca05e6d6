"""What the entries of a ledger add up to, and whether that is within a budget.

Two kinds of entries add up. *Training runs* are Gaussian: their costs are squared mu, and their sum is exact.
*Searches* (`release.selection`) have an epsilon and a delta each, and no mu. docs/privacy.md, step 6, adds up both.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from dpals.ledger import amounts
from dpals.ledger.entries import SEEDED, Entry
from dpals.release import accounting
from dpals.release.accounting import cost_of, mu_of

_SMALLEST_DELTA = 1e-250
_USUAL_DELTA = 1e-6


@dataclass(frozen=True)
class Run:
    """What one training run has reserved and spent.

    Attributes
    ----------
    is_open
        Whether it is in progress, or was interrupted and may be resumed.
    adaptive
        Whether the costs of its releases depend on what it released.
    """

    name: str
    dataset: str
    purpose: str = ""
    since: str = ""
    reserved: int = 0
    spent: int = 0
    is_open: bool = False
    adaptive: bool = False

    @property
    def charge(self) -> int:
        """What it counts for: all that it reserved until it has ended, and what it spent after that.

        This is docs/privacy.md, step 5: of adaptive costs only the limit was fixed before anything was released, so the
        limit counts even then. A run that ended without a spend released nothing.
        """
        if self.is_open or (self.adaptive and self.spent):
            return max(self.reserved, self.spent)
        return self.spent


def runs_of(entries: Iterable[Entry]) -> list[Run]:
    """All runs, in the order of their first entries. Spends without a run are one run without a name."""
    runs: dict[tuple[str, str], Run] = {}
    for entry in entries:
        if entry.kind not in ("reservation", "spend", "end"):
            continue
        key = entry.dataset, entry.run
        run = runs.get(key, Run(entry.run, entry.dataset))
        if entry.kind == "spend":
            run = replace(run, spent=run.spent + entry.cost)
        elif entry.kind == "end":
            run = replace(run, is_open=False)
        else:
            run = replace(
                run,
                purpose=entry.purpose,
                since=entry.time,
                reserved=max(run.reserved, entry.cost),
                is_open=True,
                adaptive=run.adaptive or entry.adaptive,
            )
        runs[key] = run
    return list(runs.values())


@dataclass(frozen=True)
class Total:
    """Everything that was spent on a data set.

    Attributes
    ----------
    cost
        Of all training runs.
    searches
        Epsilon and delta of each.
    seeded
        Whether the noise of some of it came from a known seed, so that it promises nothing.
    partial
        Whether an earlier version of dpals wrote some of it. That version counted what adaptive runs used, not what
        they promised, and no searches: the true total may be larger.
    """

    cost: int = 0
    searches: tuple[tuple[float, float], ...] = ()
    seeded: bool = False
    partial: bool = False

    @property
    def mu(self) -> float:
        """Of the training runs."""
        return mu_of(self.cost)

    def at(self, delta: float) -> tuple[float, float]:
        """Epsilon and delta of everything together: at the given delta, or at a larger one if searches need it.

        Formal guarantee (docs/privacy.md, step 6): runs of mu in all and searches of (e_i, d_i) are together
        (epsilon(mu, d') + sum e_i, d' + sum d_i)-DP for every d'. Here d' is what the searches leave of `delta`, or
        `delta` itself if they leave nothing. Sums are exact and rounded up.

        ==================  ============================
        nothing spent       (0, delta)
        no searches         (epsilon(mu, delta), delta)
        ==================  ============================

        Examples
        --------
        >>> Total(accounting.Budget(1.0, 9e-6).cost, ((0.5, 1e-6),)).at(1e-5)
        (1.5, 1e-05)
        >>> Total(0, ((0.5, 1e-6),)).at(1e-7)
        (0.5, 1e-06)
        """
        epsilons, deltas = self._searched
        own, whole = Fraction(delta) - deltas, Fraction(delta)
        if self.cost == 0:
            return _above(epsilons), max(delta, _above(deltas))
        if own < _SMALLEST_DELTA:
            own, whole = Fraction(delta), Fraction(delta) + deltas
        epsilon = accounting.epsilon(self.mu, _below(own))
        if math.isinf(epsilon):
            return epsilon, _above(whole)
        together = _above(epsilons + Fraction(epsilon))
        tidy = float(f"{together:.9g}")  # taken if it is true as well, so that a budget spent in full shows as itself
        left = Fraction(tidy) - epsilons
        if left > 0 and self.cost <= cost_of(accounting.mu(_below(left), _below(own))):
            together = min(together, tidy)
        return together, _above(whole)

    def allowance(self, budget: Entry) -> int:
        """What runs may cost in all beside these searches; -1 if the searches alone exceed the budget.

        Formal guarantee (docs/privacy.md, step 6): runs within it and these searches are within the budget.
        """
        if not self.searches:
            return budget.cost
        epsilons, deltas = self._searched
        left, own = Fraction(budget.epsilon) - epsilons, Fraction(budget.delta) - deltas
        if left < 0 or own < 0:
            return -1
        return 0 if own < _SMALLEST_DELTA else cost_of(accounting.mu(_below(left), _below(own)))

    def text(self, delta: float) -> str:
        """In words, rounded up.

        Examples
        --------
        >>> Total(cost_of(0.24999)).text(1e-6)
        'epsilon 1.061 at delta 1e-06 (mu 0.25)'
        """
        return amounts.total_spent(*self.at(delta), self.mu, self.searches, self.partial)

    @property
    def _searched(self) -> tuple[Fraction, Fraction]:
        """The sums of epsilon and delta over the searches, exactly."""
        epsilons, deltas = zip(*self.searches, strict=True) if self.searches else ((), ())
        return sum(map(Fraction, epsilons), Fraction(0)), sum(map(Fraction, deltas), Fraction(0))


def total_of(entries: Iterable[Entry], dataset: str) -> Total:
    """What was spent on a data set, and what runs that have not ended may still spend."""
    own = [entry for entry in entries if entry.dataset == dataset]
    return Total(
        cost=sum(run.charge for run in runs_of(own)),
        searches=tuple((entry.epsilon, entry.delta) for entry in own if entry.kind == "search"),
        seeded=any(entry.purpose.endswith(SEEDED) for entry in own),
        partial=any(entry.kind == "spend" and not entry.nonce for entry in own),
    )


def budget_of(entries: Iterable[Entry], dataset: str) -> Entry | None:
    """The last declaration of a data set's budget."""
    budgets = [entry for entry in entries if (entry.kind, entry.dataset) == ("budget", dataset)]
    return budgets[-1] if budgets else None


def delta_of(entries: Iterable[Entry], dataset: str) -> float:
    """The delta at which to show a data set's total: of its budget, else of its latest entry, else the usual one."""
    own = [entry for entry in entries if entry.dataset == dataset and entry.delta]
    budget = budget_of(own, dataset)
    return budget.delta if budget else own[-1].delta if own else _USUAL_DELTA


def _above(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _below(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)
