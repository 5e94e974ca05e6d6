"""Watch where noise comes from: the keys and words of streams, and which spend paid for each."""

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from dpals.ledger.ledger import Ledger
from dpals.release import noise as noise_module
from dpals.release.noise import NoiseStream

KEY_BYTES = 32


@dataclass(eq=False)
class NoiseWatch:
    """What was seen of all streams.

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
    drawn: list[NDArray[np.uint64]] = field(default_factory=list)
    spends: int = 0
    unpaid: int = 0
    owed: int = 0
    late: int = 0

    @property
    def words(self) -> NDArray[np.uint64]:
        """All words, in the order in which they were drawn."""
        return np.concatenate([np.empty(0, np.uint64), *self.drawn])

    @property
    def repeated_words(self) -> int:
        return len(self.words) - len(np.unique(self.words))

    @property
    def repeated_keys(self) -> int:
        return len(self.keys) - len(set(self.keys))

    @property
    def foreign_keys(self) -> int:
        """Keys that are not 256 bits of the operating system."""
        return sum(key not in self.from_system or len(key) != KEY_BYTES for key in self.keys)


@contextmanager
def watched_noise():
    """Watch keys, words and spends of every stream and ledger of this process.

    Examples
    --------
    >>> with watched_noise() as watch:
    ...     words = NoiseStream().words(5)
    >>> len(watch.keys), len(watch.words), watch.unpaid
    (1, 5, 1)
    """
    watch = NoiseWatch()
    paid_by = {}  # stream: number of its spend
    real_start, real_words, real_spend = NoiseStream._start, NoiseStream.words, Ledger.spend

    def start(stream, key):
        watch.keys.append(key)
        paid = watch.owed > 0
        watch.owed, watch.unpaid = watch.owed - paid, watch.unpaid + (not paid)
        paid_by.pop(id(stream), None)
        if paid:
            paid_by[id(stream)] = watch.spends
        real_start(stream, key)

    def words(stream, count):
        watch.late += paid_by.get(id(stream), watch.spends) != watch.spends
        watch.drawn.append(real_words(stream, count))
        return watch.drawn[-1]

    def spend(ledger, *arguments, **named):
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
