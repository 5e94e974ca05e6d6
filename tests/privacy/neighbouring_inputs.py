"""Neighbouring files, frames and matrices, in which everyone else must be read alike, to the last bit."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.privacy.odd_files import DataSet, declared, declared_for
from tests.privacy.odd_frames import makers

from dpals.audit.neighbours import differences
from dpals.audit.recorded_run import record_run
from dpals.audit.simulated_data import RANGE
from dpals.data import parquet, text_file
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.methods.base.estimator import PrivateEstimator

Read = list[tuple[Any, Any]]
"""Each user's id, and all that a method could know of the user."""

_SMALL_PIECES = ((text_file, "BLOCK_BYTES", 2000), (parquet, "BATCH_ROWS", 3))
"""Sizes of the pieces in which files are read, so small that even small files have several."""


@dataclass
class Findings:
    """Pairs that were compared, pairs of which one or both were refused, and what differs, by kind of input."""

    compared: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    different: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def scope(self) -> str:
        """How many pairs of each kind were compared, in words."""
        by_kind = ", ".join(f"{kind} {count:,}" for kind, count in sorted(self.compared.items()))
        return f"{self.compared.total():,} pairs: {by_kind}; {self.refused.total():,} more were refused"


def neighbours_read(pairs: int, seed: int = 0, kinds: Sequence[str] = ()) -> Findings:
    """Read data sets of odd people with and without each of them, until so many pairs have been compared.

    Formal guarantee: none; what it finds is real. It looks for what privacy.md asks of reading: a user's row is a
    function of that user's own rows and of what is declared.

    Examples
    --------
    >>> neighbours_read(30).problems
    []
    """
    findings = Findings()
    for dice, data in _data_sets(pairs, findings, seed, kinds):
        findings.problems += _counted_problems(data, findings, _read_differently(data, dice, findings))
    return findings


def neighbours_trained(
    estimator: PrivateEstimator, implicit: bool, n_items: int, pairs: int, insecure_seed: int, seed: int = 0
) -> Findings:
    """Train a method on data sets of odd people with and without one of them, and compare all that is released.

    The second run is given the releases of the first. What moves beyond its bound or differs in another way is found.
    """
    findings = Findings()
    for dice, data in _data_sets(pairs, findings, seed, (), None if implicit else RANGE, n_items):
        found = _trained_differently(data, dice, findings, estimator, insecure_seed)
        findings.problems += _counted_problems(data, findings, found)
    return findings


def _data_sets(
    pairs: int,
    findings: Findings,
    seed: int,
    kinds: Sequence[str],
    limits: tuple[float, float] | None = None,
    n_items: int = 0,
) -> Iterator[tuple[Random, DataSet]]:
    """Data sets of these kinds in turn, or of all, each with its generator, until so many pairs have been compared.

    There are at most as many as pairs that are wanted, and two of each kind. They are for training if there are items.
    """
    ways = makers()
    if n_items:
        ways = {kind: make for kind, make in ways.items() if "history" not in kind and "blocks" not in kind}
    chosen = kinds or tuple(ways)
    with TemporaryDirectory() as name:
        for number in range(pairs + 2 * len(chosen)):
            kind = chosen[number % len(chosen)]
            dice = Random(f"{seed}, {number}, {kind}")
            said = declared_for(dice, limits, n_items) if n_items else declared(dice)
            with _pieces(small=dice.random() < 0.5):
                yield dice, ways[kind](dice, said, Path(name))
            if findings.compared.total() >= pairs:
                return
    findings.problems.append(f"only {findings.compared.total()} pairs could be compared: the others were refused")


@contextmanager
def _pieces(small: bool) -> Iterator[None]:
    with ExitStack() as stack:
        for module, name, size in _SMALL_PIECES if small else ():
            stack.enter_context(patch.object(module, name, size))
        yield


def _counted_problems(data: DataSet, findings: Findings, problems: Iterator[str]) -> list[str]:
    """The problems of a data set, with an unexpected end among them; counts them."""
    found: list[str] = []
    try:
        found.extend(problems)
    except Exception as problem:  # whatever it is, it says something about somebody's rows
        found.append(f"reading ends with {type(problem).__name__}: {problem}")
    findings.different[data.kind] += len(found)
    return [f"{data.kind}: {problem}" for problem in found]


def _read_differently(data: DataSet, dice: Random, findings: Findings) -> Iterator[str]:
    """What is read differently when somebody is removed, each in turn."""
    everyone = range(len(data.owners))
    whole = _read(data, everyone)
    for person in dict.fromkeys(data.owners):
        others = _without(data, person, dice)
        without = _read(data, others)
        expected = [entry for entry in whole or () if entry[0] != person]
        both_refused = whole is None and (without is None or data.declared.policy == "error")
        if both_refused or (without is None and not expected):
            findings.refused[data.kind] += 1
            continue
        findings.compared[data.kind] += 1
        if whole is None:
            yield f"only what has the rows of {_shortened(person)} is refused"
        elif without is None:
            yield f"only what lacks the rows of {_shortened(person)} is refused"
        elif expected != without:
            yield f"without {_shortened(person)}: {_first_difference(expected, without)}"


def _without(data: DataSet, person: Any, dice: Random) -> list[int]:
    """The rows of everyone else, often in another order."""
    others = [row for row, owner in enumerate(data.owners) if owner != person]
    if data.in_any_order and dice.random() < 0.5:
        dice.shuffle(others)
    return others


def _trained_differently(
    data: DataSet, dice: Random, findings: Findings, estimator: PrivateEstimator, insecure_seed: int
) -> Iterator[str]:
    """What is released differently when somebody is removed, one at random."""
    person = dice.choice(data.owners)
    try:
        (everyone,), (others,) = data.read(range(len(data.owners))), data.read(_without(data, person, dice))
    except InputError:
        findings.refused[data.kind] += 1
        return
    findings.compared[data.kind] += 1
    whole = record_run(estimator, everyone, insecure_seed=insecure_seed)
    without = record_run(estimator, others, whole.releases, insecure_seed=insecure_seed)
    for difference in differences(whole, without):
        yield f"without {_shortened(person)}: {difference.kind}: {difference.where}"


def _read(data: DataSet, rows: Sequence[int]) -> Read | None:
    """What is read of everyone in these rows; None where they are refused. People without names are called by place."""
    if not rows:
        return None
    try:
        read = [entry for ratings in data.read(rows) for entry in known_of(ratings)]
    except InputError:
        return None
    return [(row, known) for row, (_, known) in zip(rows, read, strict=True)] if data.anonymous else read


def known_of(ratings: Ratings) -> Read:
    """Each user's id with the hash that decides choices, and the items, ratings and times to the last bit."""
    columns: list[list[Any]] = [ratings.items[ratings.indices].tolist()]
    if ratings.values is not None:
        columns.append(ratings.values.view(np.int32).tolist())
    if ratings.timestamps is not None:
        columns.append(ratings.timestamps.tolist())
    rows = list(zip(*columns, strict=True))
    starts = ratings.indptr.tolist()
    return [
        (user, (number, rows[starts[at] : starts[at + 1]]))
        for at, (user, number) in enumerate(zip(ratings.users.tolist(), ratings.user_hashes().tolist(), strict=True))
    ]


def _first_difference(expected: Read, found: Read) -> str:
    """What differs first between people as they were and as they are read now."""
    for (user, (number, rows)), (user_now, (number_now, rows_now)) in zip(expected, found, strict=False):
        if (user, type(user)) != (user_now, type(user_now)):
            return f"the user {_shortened(user)} becomes {_shortened(user_now)}"
        for row, row_now in zip(rows, rows_now, strict=False):
            if row != row_now:
                return f"a row of {_shortened(user)} is {row_now}, and not {row}"
        if len(rows) != len(rows_now):
            return f"{_shortened(user)} has {len(rows_now)} rows, and not {len(rows)}"
        if number != number_now:
            return f"another hash decides for {_shortened(user)}"
    return f"{len(expected)} others become {len(found)}"


def _shortened(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
