"""Whether the users of a data set are in a ledger under another name.

Costs add up by the name of the data set, and a copy of a file has another name. So the ledger stores a *sketch* of the
users of each data set: the 1024 smallest keyed hashes of their ids. Users who come and go change it a little, new
ratings do not.

**What it reveals, and to whom.** The sketch depends on who is in the data, exactly, without noise. It stays in the file
of the ledger, which only its owner can read, as the ratings do; the key is in there, too. What leaves the file is the
ledger's head, which statements print. It is a hash over rows that have 16 secret random bytes each (`Entry.nonce`).
As long as nobody without these bytes can tell SHA-256 from a random function, the head is a random number, whatever the
sketch. A warning about shared users goes to the operator, who has the data, like any other message.
"""

import hashlib
import heapq
import logging
from collections.abc import Iterable
from typing import Any

from dpals.ledger.entries import Entry

logger = logging.getLogger(__name__)

SIZE = 1024
"""A subset of known users is noticed if it is larger than about a hundredth of them, and often if it is smaller."""
SHARED = 0.1
"""From this share of the smaller data set on, the users of two data sets are taken to be the same people."""

Sketch = tuple[str, ...]


def sketch_of(key: bytes, ids: Iterable[Any]) -> Sketch:
    """The smallest keyed hashes of ids (docs/privacy.md, step 9). The integer 7 and the text "7" are the same id here.

    Examples
    --------
    >>> len(sketch_of(b"key", range(1000))), sketch_of(b"key", [3, 1]) == sketch_of(b"key", ["1", "3"])
    (1000, True)
    """
    return tuple(heapq.nsmallest(SIZE, (_keyed(key, id_) for id_ in ids)))


def merged(one: Sketch, other: Sketch) -> Sketch:
    """The sketch of the users of two data sets together.

    Examples
    --------
    >>> merged(sketch_of(b"key", [1, 2]), sketch_of(b"key", [2, 3])) == sketch_of(b"key", [1, 2, 3])
    True
    """
    return tuple(sorted({*one, *other})[:SIZE])


def overlap(one: Sketch, other: Sketch) -> float:
    """An estimate of how many of the users of the smaller data set are in both, as a share.

    Below the largest hash of a full sketch, all hashes of the users are known.

    Examples
    --------
    >>> people = range(100_000)
    >>> overlap(sketch_of(b"key", people), sketch_of(b"key", people[:10_000]))
    1.0
    >>> overlap(sketch_of(b"key", people[:1000]), sketch_of(b"key", people[1000:]))
    0.0
    """
    known_to = min((sketch[-1] for sketch in (one, other) if len(sketch) >= SIZE), default="g")
    ours, theirs = ({tag for tag in sketch if tag <= known_to} for sketch in (one, other))
    smaller = min(len(ours), len(theirs))
    return len(ours & theirs) / smaller if smaller else 0.0


def sketches_of(entries: Iterable[Entry]) -> dict[str, Sketch]:
    """The latest sketch of each data set."""
    return {entry.dataset: entry.sketch for entry in entries if entry.kind == "population"}


def warn_of_shared_users(entries: Iterable[Entry], dataset: str, sketch: Sketch) -> None:
    """Log a warning if many of the users are in the ledger under the name of another data set."""
    others = [
        name for name, other in sketches_of(entries).items() if name != dataset and overlap(sketch, other) >= SHARED
    ]
    if others:
        logger.warning(
            "many users of %r are in this ledger as %s already, and what is spent on them adds up under one name only. "
            "If they are the same people, use that name for them (dataset=..., or --dataset)",
            dataset,
            " and ".join(map(repr, others)),
        )


def _keyed(key: bytes, id_: Any) -> str:
    return hashlib.blake2b(str(id_).encode("utf-8", "surrogatepass"), key=key, digest_size=8).hexdigest()
