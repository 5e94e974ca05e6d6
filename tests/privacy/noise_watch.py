"""Where noise comes from: keys, words, who paid for them, and what other processes draw."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from scipy import stats

from dpals.audit.noise_samples import weights_by_definition
from dpals.audit.recorded_run import RecordedRelease, RecordedRun
from dpals.audit.report import Check
from dpals.ledger.entries import SEEDED
from dpals.ledger.ledger import Ledger
from dpals.release import noise as noise_module
from dpals.release.accounting import Budget, PrivacyBudgetExceeded
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism
from dpals.release.noise import NoiseStream

_KEY_BYTES = 32
_LOOKED_AT = 5000
_ROUNDED = 0.51  # steps: half of one, and a little for floating point


@dataclass(eq=False)
class Watch:
    """What was seen of all streams while a watch was on.

    Attributes
    ----------
    from_system
        Every string of bytes that the operating system gave out.
    unpaid
        Streams that no spend stands for.
    owed
        Spends for which no stream was opened.
    late
        How often words were drawn from the stream of an earlier spend.
    """

    keys: list[bytes] = field(default_factory=list)
    from_system: set[bytes] = field(default_factory=set)
    words: list[NDArray[np.uint64]] = field(default_factory=list)
    spends: int = 0
    unpaid: int = 0
    owed: int = 0
    late: int = 0


@contextmanager
def watched_streams() -> Iterator[Watch]:
    """Watch keys, words and spends of every stream and ledger of this process.

    Examples
    --------
    >>> with watched_streams() as watch:
    ...     words = NoiseStream().words(5)
    >>> len(watch.keys), len(np.concatenate(watch.words)), watch.unpaid
    (1, 5, 1)
    """
    watch = Watch()
    paid_by: dict[int, int] = {}  # stream: number of its spend
    real_start, real_words, real_spend = NoiseStream._start, NoiseStream.words, Ledger.spend

    def start(stream: NoiseStream, key: bytes) -> None:
        watch.keys.append(key)
        paid = watch.owed > 0
        watch.owed, watch.unpaid = watch.owed - paid, watch.unpaid + (not paid)
        paid_by.pop(id(stream), None)
        if paid:
            paid_by[id(stream)] = watch.spends
        real_start(stream, key)

    def words(stream: NoiseStream, count: int) -> NDArray[np.uint64]:
        watch.late += paid_by.get(id(stream), watch.spends) != watch.spends
        watch.words.append(real_words(stream, count))
        return watch.words[-1]

    def spend(ledger: Ledger, *arguments: Any, **named: Any) -> None:
        real_spend(ledger, *arguments, **named)
        watch.spends, watch.owed = watch.spends + 1, watch.owed + 1

    with (
        patch.object(NoiseStream, "_start", start),
        patch.object(NoiseStream, "words", words),
        patch.object(Ledger, "spend", spend),
        patch.object(noise_module, "os", _OperatingSystem(watch.from_system)),
    ):
        yield watch


class _OperatingSystem:
    """The module ``os``, but every string of bytes that it returns is remembered."""

    def __init__(self, given: set[bytes]) -> None:
        self._given = given

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)

        def call(*arguments: Any) -> Any:
            result = real(*arguments)
            if isinstance(result, bytes):
                self._given.add(result)
            return result

        return call if callable(real) else real


def check_no_reuse(watch: Watch) -> Check:
    """No word twice, and every stream under a key of its own."""
    words = np.concatenate([np.empty(0, np.uint64), *watch.words])
    repeated = len(words) - len(np.unique(words))
    foreign = sum(key not in watch.from_system or len(key) != _KEY_BYTES for key in watch.keys)
    again = len(watch.keys) - len(set(watch.keys))
    return Check(
        "no random bits are used twice: not in a release, between releases, fits or mechanisms",
        "passed" if not (repeated or foreign or again) else "failed",
        f"{len(words):,} words of 64 bits, {repeated:,} of them seen before; {len(watch.keys):,} streams, {again:,} "
        f"under the key of another, {foreign:,} not under 256 bits of the operating system",
    )


def check_source(release: RecordedRelease, mechanism_class: type[Mechanism]) -> Check:
    """The noise of a release is made of the words of its stream, and these of its key, worked out anew here."""
    weights = weights_by_definition(release.query)
    rows = -(-_LOOKED_AT // len(weights))
    with watched_streams() as watch:
        mechanism = mechanism_class(Budget.of_cost(2 * release.cost))
        table = mechanism.release(replace(release.query, n_items=rows), (), release.cost)
    noise = np.rint(table / release.record.step).ravel()
    words = np.concatenate([np.empty(0, np.uint64), *watch.words])[: noise.size]
    due = _aes_words(watch.keys[0], len(words)) if watch.keys else words[:0]
    question = "noise is made of the words of its own stream, by AES-256 under its key"
    if len(due) < noise.size:
        return Check(
            question, "failed", f"{noise.size:,} numbers were made of {len(due):,} words of the mechanism's streams"
        )
    sigmas = np.tile(np.sqrt(release.record.variance / weights), rows)
    foreign = int(np.sum(words != due))
    other = int(np.sum(np.abs(_gaussian_of(words) * sigmas - noise) > _ROUNDED))
    return Check(
        question,
        "failed" if foreign or other else "passed",
        f"{noise.size:,} numbers of {passage.record.purpose!r}: {foreign:,} words are others than AES gives, {other:,} "
        "numbers are others than their words give",
    )


def _aes_words(key: bytes, count: int) -> NDArray[np.uint64]:
    cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * count)), "<u8")


def _gaussian_of(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The normal number of each word: its first bit is the sign, the others are those of a tail probability."""
    tails = ((words & np.uint64(2**63 - 1)).astype(float) + 0.5) * 2.0**-64
    sizes = stats.norm.isf(tails)
    return np.where(words >> np.uint64(63), -sizes, sizes)


def check_paid_first(
    watch: Watch, free_streams: int, release: RecordedRelease, mechanism_class: type[Mechanism] = Mechanism
) -> Check:
    """Every stream was opened after its own spend was recorded; only `free_streams` draw no noise and need none."""
    unpaid = watch.unpaid - free_streams
    shared = max(watch.owed, watch.late)
    refused, drawn = _drawn_without_ledger(release, mechanism_class)
    return Check(
        "every release pays first, and then opens a stream of its own",
        "passed" if unpaid == shared == drawn == 0 and refused else "failed",
        f"{watch.spends:,} spends; {unpaid:,} streams were opened before their spend was recorded, {shared:,} "
        f"releases had no stream of their own; where a ledger refuses the spend, "
        f"{'numbers are published all the same' if not refused else f'{drawn} streams are opened'}",
    )


class _RefusingLedger(Ledger):
    def spend(self, *_: object, **__: object) -> None:
        raise PrivacyBudgetExceeded("this ledger takes no spend")


def _drawn_without_ledger(release: RecordedRelease, mechanism_class: type[Mechanism]) -> tuple[bool, int]:
    """Whether a release ends where its ledger refuses the spend, and how many streams it opened by then."""
    with watched_streams() as watch:
        try:
            mechanism_class(Budget.of_cost(2 * release.cost), _RefusingLedger()).release(
                release.query, (), release.cost
            )
        except PrivacyBudgetExceeded:
            return True, len(watch.keys)
    return False, len(watch.keys)


def check_labels(secure: RecordedRun, seeded: RecordedRun) -> Check:
    """The statement says of secure noise that it is private and of seeded noise that it is not; the ledger too."""
    problems = []
    if not secure.estimator.privacy.is_private:
        problems.append("the statement calls secure noise not private")
    if seeded.estimator.privacy.is_private:
        problems.append("the statement calls noise from a known seed private")
    for run, warns in ((secure, False), (seeded, True)):
        statement = run.estimator.privacy
        before_promise = [text.partition("epsilon =")[0] for text in (str(statement), statement.to_html())]
        if any(("NOT PRIVATE" in text) != warns for text in before_promise):
            problems.append("the statement does not tell its readers so, or of the wrong noise")
    if any(_marks(secure)):
        problems.append("the ledger marks secure noise as seeded")
    if not all(_marks(seeded)):
        problems.append("the ledger does not mark noise from a known seed")
    return Check(
        "noise from a known seed is called not private, all other noise private",
        "failed" if problems else "passed",
        "; ".join(problems) or f"statements of two fits, {len(_marks(secure) + _marks(seeded))} spends in ledgers",
    )


def _marks(run: RecordedRun) -> list[bool]:
    """For each spend of a run, whether it is marked as seeded."""
    entries = [entry for mechanism in run.mechanisms for entry in mechanism.ledger.entries()]
    return [entry.purpose.endswith(SEEDED) for entry in entries if entry.kind == "spend"]


_OTHER_PROCESS = """
import json, os, sys
from dpals.release.accounting import Budget
from dpals.release import noise as noise_module
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism
from dpals.release.noise import NoiseStream

query, cost = Query("noise of another process", 4, 1.0), 2**60

def told(work):
    try:
        work()
        return "worked"
    except RuntimeError:
        return "refused"

def tell(**facts):
    print(json.dumps(facts))
    sys.stdout.flush()

mechanism, stream = Mechanism(Budget.of_cost(4 * cost)), NoiseStream()
tell(noise=mechanism.release(query, (), cost).ravel().tolist())
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        tell(stream=told(lambda: stream.words(4)), mechanism=told(lambda: mechanism.release(query, (), cost)))
        tell(noise=Mechanism(Budget.of_cost(4 * cost)).release(query, (), cost).ravel().tolist())
        os._exit(0)
    os.waitpid(child, 0)
    tell(noise=mechanism.release(query, (), cost).ravel().tolist())
"""


def other_processes() -> list[subprocess.Popen[str]]:
    """Two fresh processes that release noise, for `check_processes`, which waits for them."""
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-W", "ignore", "-c", _OTHER_PROCESS]
    environment = {**os.environ, "PYTHONPATH": paths}
    return [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]


def check_processes(started: Sequence[subprocess.Popen[str]]) -> Check:
    """The other processes and their children draw noise of their own; what the children inherit refuses to work."""
    question = "other processes draw other noise, and a forked one cannot repeat its parent's"
    told = [json.loads(line) for process in started for line in process.communicate()[0].splitlines()]
    if any(process.returncode for process in started):
        return Check(question, "inconclusive", "another process failed; run the audit where Python can start some")
    here = Mechanism(Budget.of_cost(2**62)).release(Query("noise of this process", 4, 1.0), (), 2**60)
    noise = [*here.ravel().tolist(), *(number for facts in told for number in facts.get("noise", []))]
    inherited = [facts[kind] for facts in told if "mechanism" in facts for kind in ("stream", "mechanism")]
    working = sum(answer == "worked" for answer in inherited)
    repeated = len(noise) - len(set(noise))
    return Check(
        question,
        "passed" if repeated == working == 0 else "failed",
        f"{len(noise)} numbers of 3 processes and {len(inherited) // 2} children, {repeated} of them twice; "
        f"{len(inherited)} streams and mechanisms used after a fork, {working} of them still worked",
    )
