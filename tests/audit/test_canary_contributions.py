"""Canaries: what they add is known beforehand, and at the bound."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dpals.audit.canary_contributions import canaries_for
from dpals.release import accounting
from dpals.release.contribution import Contribution, Grid, Pattern, Query, quantize_and_clip
from dpals.release.mechanism import Mechanism
from dpals.release.sums import add_exactly, empty_sums


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    "query",
    [
        Query("counts", 40, 1.0),
        Query("one sum", 1, 2.5),
        Query("vectors", 40, 3.0, "vector", 9, 0.7),
        Query("weighted vectors", 3, 3.0, "vector", 5, 0.7, (1, 3, 7, 1, 20)),
        Query("matrices", 40, 3.0, "symmetric", 9, 2.0),
        Query("one matrix", 1, 0.3, "symmetric", 3),
    ],
    ids=lambda query: query.purpose,
)
def test_what_canaries_add_is_known_and_at_the_bound(query, wide):
    """Against the sums of the real code, without noise."""
    mechanism = Mechanism(accounting.Budget(1.0, 1e-5))
    nobody = Contribution(Pattern(np.zeros(1), np.zeros(0), query.n_items), np.zeros(0))
    if query.form != "scalar":
        nobody = replace(nobody, vectors=np.zeros((0, query.dimension)))
    mechanism.release(query, nobody, mechanism.budget.cost)
    record = mechanism.releases[0]
    canaries = canaries_for(SimpleNamespace(query=query, record=record), 256, wide)
    asked = replace(query, n_items=canaries.rows)
    grid = Grid.of(asked, record.sensitivity.bit_length() - 1)
    sums = empty_sums(asked)
    add_exactly(sums, quantize_and_clip(canaries.contribution, asked, grid), asked)
    projections = canaries.projections(sums.astype(float))
    here = projections > 0
    assert here.sum() == 128
    assert (projections[~here] == 0).all(), "who is absent adds nothing to anyone's numbers"
    norms = np.sqrt(canaries.squares)
    assert (norms <= record.sensitivity * (1 + 1e-7)).all()
    assert (norms > 0.995 * record.sensitivity).mean() > 0.95
    assert projections[here] / norms[here] == pytest.approx(norms[here], rel=0.01)
    assert (projections[here] == canaries.squares[here]).mean() > 0.1, "many are there to the last step"
