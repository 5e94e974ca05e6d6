"""Whether people are known to a ledger under another name.

Costs add up by the name of the data set, and a copy of a file has another name. So the ledger keeps a *sketch* of the
people of each data set: the 1024 smallest keyed hashes of their ids. People who come and go change it a little, new
ratings do not.

**What it tells, and to whom.** The sketch depends on who is in the data, exactly, without noise. It stays in the file
of the ledger, which its owner alone can read, as the ratings do; the key is in there, too. What leaves the file is the
ledger's head, which statements print. It is a hash over rows that have 16 secret random bytes each (`Entry.nonce`).
As long as SHA-256 cannot be told from a random function by those who do not know these, the head is a random number,
whatever the sketch. A warning about a known population goes to the operator, who has the data, like any other message.
"""

import hashlib
import heapq
from collections.abc import Iterable
from typing import Any

SIZE = 1024
"""Parts of a known population are noticed if they are larger than about a hundredth of it, and often if smaller."""
ALIKE = 0.1
"""The share of the smaller population from which on two are taken for the same people."""

Sketch = tuple[str, ...]


def sketch_of(key: bytes, ids: Iterable[Any]) -> Sketch:
    """The smallest keyed hashes of ids. The integer 7 and the text "7" are the same id here.

    Examples
    --------
    >>> len(sketch_of(b"key", range(1000))), sketch_of(b"key", [3, 1]) == sketch_of(b"key", ["1", "3"])
    (1000, True)
    """
    return tuple(heapq.nsmallest(SIZE, (_keyed(key, id_) for id_ in ids)))


def merged(one: Sketch, other: Sketch) -> Sketch:
    """The sketch of two populations together.

    Examples
    --------
    >>> merged(sketch_of(b"key", [1, 2]), sketch_of(b"key", [2, 3])) == sketch_of(b"key", [1, 2, 3])
    True
    """
    return tuple(sorted({*one, *other})[:SIZE])


def overlap(one: Sketch, other: Sketch) -> float:
    """About the share of the smaller population that is in both.

    Below the largest hash of a full sketch, all hashes of the population are known.

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


def _keyed(key: bytes, id_: Any) -> str:
    return hashlib.blake2b(str(id_).encode("utf-8", "surrogatepass"), key=key, digest_size=8).hexdigest()
