"""Runs that can be resumed, under the worst luck: crashes, lost numbers, checkpoints that were copied."""

import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from dpals.audit.simulated_data import Rows
from dpals.audit.drills import is_refused
from dpals.audit.recorded_run import failures_as_findings
from dpals.ledger.checkpoint import _RUN, Checkpoint
from dpals.ledger.ledger import Ledger
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.base.options import Options
from dpals.release.accounting import Budget, PrivacyBudgetExceeded
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.mechanism import Mechanism, Release
from dpals.system.files import draft

_BUDGET = Budget(epsilon=1.0, delta=1e-5)
_DATASET = "drill"


class _Memory:
    """A checkpoint that loses the tables that it is given, but remembers them for the drill."""

    run = "drill"

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.given: list[NDArray[np.int64]] = []
        self.unpaid = 0
        self.dropped = 0

    def recall(self, number: int, record: Release) -> NDArray[np.int64] | None:  # noqa: ARG002
        return None

    def keep(self, number: int, record: Release, table: NDArray[np.int64]) -> None:  # noqa: ARG002
        self.given.append(table.copy())
        self.unpaid += not any(entry.kind == "spend" for entry in self.ledger.entries())

    def drop(self, number: int) -> None:  # noqa: ARG002
        self.dropped += 1


def resume_breaches() -> Iterator[str]:
    """Ways in which more is published, or kept on disk, than is paid for."""
    ledger = Ledger()
    memory, lost = _Memory(ledger), _Memory(ledger)
    published = _release(ledger, memory)
    if memory.unpaid or [table.tobytes() for table in memory.given] != [published.tobytes()]:
        yield "numbers are kept on disk that are not those that are paid for and published"
    if ledger.published(f"{_Memory.run}/1") is None:
        yield "numbers leave the mechanism before the ledger knows them"
    if not is_refused(RuntimeError, lambda: _release(ledger, lost)) or lost.given:
        yield "numbers that were published and lost are drawn again for free"
    if not is_refused(RuntimeError, lambda: _publish_twice(Ledger())):
        yield "two tables are published under one spend"
    if _kept_in_vain():
        yield "numbers that may not be published stay in the checkpoint"
    if not is_refused(RuntimeError, lambda: _pay_with_old_receipt(Ledger())):
        yield "a receipt stands for a dearer release than it was paid for"
    if not is_refused(PrivacyBudgetExceeded, lambda: _overspend_with_receipts(Ledger())):
        yield "a run that can be resumed may exceed the data set's budget"
    with TemporaryDirectory() as name:
        if _draft_stays(Path(name)):
            yield "numbers that were never published stay in the checkpoint after a crash"


def checkpoint_leaks(estimator: PrivateEstimator, rows: Rows) -> Iterator[str]:
    """What a checkpoint tells about the data besides its releases: anything that is not the same without a user."""
    whole, without = (
        _run_file(estimator, rows, keep) for keep in (np.ones(len(rows.users), bool), rows.users != rows.users.min())
    )
    for name in sorted(whole.keys() | without.keys()):
        if whole.get(name) != without.get(name):
            yield f"the checkpoint says {name!r}, which is not the same without a user"


def _run_file(estimator: PrivateEstimator, rows: Rows, keep: NDArray[np.bool_]) -> dict[str, str]:
    """What the file of the run says, but for its own name and time."""
    with TemporaryDirectory() as name:
        with failures_as_findings():
            copy.deepcopy(estimator).fit(rows.ratings(keep), options=Options(checkpoint=name))
        facts = json.loads(Path(name, _RUN).read_bytes())
    return {"what it has": str(sorted(facts)), **facts["training"]}


def _release(ledger: Ledger, keeper: _Memory) -> NDArray[np.int64]:
    """A release of two people's number, in steps of the grid."""
    contribution = Contribution(Pattern.one_item(2), np.ones(2))
    mechanism = Mechanism(_BUDGET, ledger, _DATASET, keeper=keeper)
    published = mechanism.release(Query("drill", 1, 1.0), contribution, _BUDGET.cost)
    return np.rint(published / mechanism.releases[-1].step).astype(np.int64)


def _publish_twice(ledger: Ledger) -> None:
    ledger.spend(_DATASET, "drill", 1000, receipt="drill/1")
    for table in (b"one table", b"another table"):
        ledger.publish(_DATASET, "drill/1", hashlib.sha256(table).hexdigest())


def _kept_in_vain() -> bool:
    """Whether a table stays where another one was published at the same time, by a copy of the checkpoint."""

    class Faster(_Memory):
        def keep(self, number: int, record: Release, table: NDArray[np.int64]) -> None:
            super().keep(number, record, table)
            self.ledger.publish(_DATASET, f"{self.run}/{number}", "of the copy")

    ledger = Ledger()
    keeper = Faster(ledger)
    return is_refused(RuntimeError, lambda: _release(ledger, keeper)) and keeper.dropped == 0


def _pay_with_old_receipt(ledger: Ledger) -> None:
    for cost in (1, 1000):
        ledger.spend(_DATASET, "drill", cost, receipt="drill/1")


def _overspend_with_receipts(ledger: Ledger) -> None:
    ledger.declare(_DATASET, _BUDGET.epsilon, _BUDGET.delta)
    for number in (1, 2):
        ledger.spend(_DATASET, "drill", _BUDGET.cost, receipt=f"drill/{number}")


def _draft_stays(folder: Path) -> bool:
    """Whether numbers that a killed process left behind are still there when the checkpoint is opened again."""
    with draft(folder / "release-0001.safetensors") as place:
        place.write_bytes(b"numbers")
    place.write_bytes(b"numbers")
    with Checkpoint(folder, {"method": "drill"}):
        return place.exists()
