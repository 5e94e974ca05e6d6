"""What a training run may spend of a data set's budget: checked before the data is read, announced, and given up."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpals.data.blocks.folder import Blocks
    from dpals.data.ratings import Ratings
    from dpals.ledger.ledger import Ledger
    from dpals.methods.base.estimator import Estimator
    from dpals.system.console import Console


@dataclass(frozen=True)
class PlannedRun:
    """A training run, the ledger that records what it spends, and the checkpoint that it can be resumed from.

    A method that is not private has neither.
    """

    estimator: "Estimator"
    dataset: str
    ledger: Path | None
    checkpoint: Path | None

    @property
    def method(self) -> str:
        """The name of the method."""
        return type(self.estimator).__name__

    def check(self, fresh: bool) -> None:
        """Refuse what the data set's budget does not allow. This creates no ledger."""
        from dpals.ledger.checkpoint import run_in
        from dpals.ledger.ledger import Ledger
        from dpals.release.accounting import Budget

        if self.ledger is None:
            return
        parameters = self.estimator.get_params()
        budget = Budget(parameters["epsilon"], parameters["delta"])
        if self.ledger.exists():
            run = "" if self.checkpoint is None else run_in(self.checkpoint)
            Ledger(self.ledger).check(self.dataset, f"training {self.method}", budget.cost, run, fresh)

    def facts(self) -> dict[str, Any]:
        """What training would spend, and on which data set."""
        from dpals.release.accounting import mu

        facts: dict[str, Any] = {"method": self.method, "dataset": self.dataset}
        if self.ledger is not None:
            parameters = self.estimator.get_params()
            epsilon, delta = parameters["epsilon"], parameters["delta"]
            facts |= {"epsilon": epsilon, "delta": delta, "mu": mu(epsilon, delta), "ledger": str(self.ledger)}
        return facts

    def announce(self, data: "Ratings | Blocks", console: "Console") -> None:
        """Say what was read, what will be spent, and what was spent before."""
        from dpals.data.ratings import Ratings

        say = console.print
        say(f"Read: {data.report}. {data}" if isinstance(data, Ratings) else f"Opened: {data}")
        if data.schema:
            say(f"{data.schema} All of this counts as public.")
        if self.ledger is None:
            say(f"{self.method} is NOT private: the model may reveal the ratings of people in the data.")
            return
        from dpals.ledger.amounts import spent

        facts = self.facts()
        limit = spent(facts["epsilon"], facts["delta"], facts["mu"])
        say(
            f"Will spend: at most {limit} on the data set {self.dataset!r}, to train {self.method}. The ledger is "
            f"{self.ledger}."
        )
        if self.estimator.get_params()["insecure_seed"] is not None:
            say("Noise from insecure_seed can be removed: the model will NOT be private.")
        if self.ledger.exists():
            self._announce_earlier(facts["delta"], console)

    def _announce_earlier(self, delta: float, console: "Console") -> None:
        """Say what was spent on the data set before, and which other data sets the ledger has."""
        from dpals.ledger.amounts import allowed
        from dpals.ledger.ledger import Ledger
        from dpals.ledger.totals import budget_of, total_of

        assert self.ledger is not None
        entries = Ledger(self.ledger).entries()
        budget, limit = budget_of(entries, self.dataset), "no budget is declared"
        if budget is not None:
            delta, limit = budget.delta, f"its budget is {allowed(budget.epsilon, budget.delta)}"
        before = total_of(entries, self.dataset).text(delta)
        console.print(f"Spent on {self.dataset!r} before: {before}; {limit}.")
        others = sorted({entry.dataset for entry in entries} - {self.dataset})
        if others:
            names = ", ".join(map(repr, others))
            advice = "If one of these is about the same people, pass its name as --dataset, so that costs add up."
            console.print(f"The ledger also has {names}. {advice}")

    def warn_of_shared_users(self, data: "Ratings | Blocks") -> None:
        """Warn if the ledger has the same users under another name."""
        from dpals.data.population import user_ids
        from dpals.ledger.ledger import Ledger

        if self.ledger is not None and self.ledger.exists() and not data.anonymous:
            Ledger(self.ledger).warn_of_shared_users(self.dataset, user_ids(data))

    def give_up(self, ledger: "Ledger") -> None:
        """Forget an interrupted run, and give back what it reserved and did not spend."""
        from dpals.ledger.checkpoint import remove_checkpoint, run_in

        assert self.checkpoint is not None
        run = run_in(self.checkpoint)
        remove_checkpoint(self.checkpoint)  # first: it refuses if the run is still going
        if run:
            ledger.end(run)
