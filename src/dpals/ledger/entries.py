"""The rows of a ledger, and how they are written."""

import json
import re
from dataclasses import MISSING, asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

SEEDED = " (seeded: not private)"
"""How the purpose of a spend ends if its noise came from a known seed."""


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Entry:
    """One row of the ledger.

    ``kind`` says what it is:

    ===============  =======================================================================================
    ``budget``       all that may be spent on the data set from now on: `epsilon`, `delta` and, without
                     searches, `cost`
    ``reservation``  `run` may cost up to `cost`, which is `epsilon` at `delta`; `adaptive` if its costs
                     depend on what it released
    ``spend``        `run` spent `cost`
    ``publication``  what was paid for under this receipt was published; the purpose is the digest of the numbers
    ``end``          `run` has ended, and `cost` of what it had reserved was refunded
    ``search``       the best of a secret number of tries, for `epsilon` and `delta`
    ``population``   a `sketch` of the users in the data (`user_sketch`)
    ===============  =======================================================================================

    `cost` is in units of 2^-64 of squared mu. `receipt` is the name of the run and the number of the release in it,
    for runs that can be resumed. `nonce` is random and secret: a hash of the row reveals nothing to
    those who do not know it.
    """

    kind: str
    dataset: str
    purpose: str
    cost: int = 0
    time: str = field(default_factory=lambda: now())
    receipt: str = ""
    run: str = ""
    adaptive: bool = False
    epsilon: float = 0.0
    delta: float = 0.0
    sketch: tuple[str, ...] = field(default=(), repr=False)
    nonce: str = field(default="", repr=False)

    def public(self) -> dict[str, Any]:
        """What may be shown: all but the sketch and the nonce, with which one could test who is in the data."""
        return {name: value for name, value in asdict(self).items() if name not in ("sketch", "nonce")}

    def to_json(self) -> str:
        """The row as it is written, without fields that have their default value."""
        defaults = {part.name: part.default for part in fields(self) if part.default is not MISSING}
        written = {
            name: value for name, value in asdict(self).items() if name not in defaults or value != defaults[name]
        }
        return json.dumps(written, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Entry":
        """The row that this or an earlier version of dpals wrote."""
        data: dict[str, Any] = json.loads(text)
        data["sketch"] = tuple(data.get("sketch", ()))
        if data["kind"] == "budget" and "epsilon" not in data:  # earlier versions wrote it only in words
            found = re.fullmatch(r"epsilon (\S+), delta (\S+)", data["purpose"])
            assert found is not None
            data |= {"epsilon": float(found[1]), "delta": float(found[2])}
        if "run" not in data:  # earlier versions wrote it only in the receipt
            data["run"] = data.get("receipt", "").rpartition("/")[0]
        return cls(**data)
