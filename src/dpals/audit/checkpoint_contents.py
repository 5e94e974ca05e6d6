"""What a checkpoint tells about the data besides the releases that it keeps."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from dpals.audit.recorded_run import failures_as_findings
from dpals.audit.simulated_data import Rows
from dpals.ledger.checkpoint import RUN_FILE
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.base.options import Options


def checkpoint_leaks(estimator: PrivateEstimator, rows: Rows) -> Iterator[str]:
    """Whatever a checkpoint says about the run that is not the same without a user."""
    everyone, others = np.ones(len(rows.users), bool), rows.users != rows.users.min()
    whole, without = (_run_facts(estimator, rows, keep) for keep in (everyone, others))
    for name in sorted(whole.keys() | without.keys()):
        if whole.get(name) != without.get(name):
            yield f"the checkpoint says {name!r}, which is not the same without a user"


def _run_facts(estimator: PrivateEstimator, rows: Rows, keep: NDArray[np.bool_]) -> dict[str, str]:
    """What the checkpoint says about the run, and the names of all else in that file: run and time are random."""
    with TemporaryDirectory() as name:
        with failures_as_findings():
            copy.deepcopy(estimator).fit(rows.ratings(keep), options=Options(checkpoint=name))
        facts = json.loads(Path(name, RUN_FILE).read_bytes())
    return {"what it has": str(sorted(facts)), **facts["training"]}
