"""Exclusive and durable transactions on the file of a ledger."""

import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpals.ledger import hash_chain
from dpals.ledger.entries import Entry
from dpals.ledger.hash_chain import LedgerDamaged

_OPEN: dict[str, Any] = {"uri": True, "isolation_level": None, "timeout": 10}


class LedgerFile:
    """A chained file on disk, or a table in memory if there is no path."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._memory: sqlite3.Connection | None = None
        if path is None:
            self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            hash_chain.create(self._memory)
        elif not path.exists():
            hash_chain.create_file(path)

    @contextmanager
    def transaction(self) -> Iterator[tuple[sqlite3.Connection, list[Entry]]]:
        """A connection and all entries, after checking the chain.

        Formal guarantee (docs/privacy.md, step 7): no other thread or process begins a transaction on the ledger until
        this one ends. What was appended is on disk if the block ends without an exception, and not in the ledger if it
        ends with one. A ledger whose chain does not hold raises `LedgerDamaged` before the block begins.
        """
        with self._lock:
            try:
                connection = self._memory or sqlite3.connect(f"file:{quote(str(self.path))}?mode=rw", **_OPEN)
                try:
                    connection.execute("PRAGMA synchronous = EXTRA")
                    connection.execute("PRAGMA fullfsync = ON")
                    connection.execute("BEGIN IMMEDIATE")
                    yield connection, [Entry.from_json(content) for content in hash_chain.read(connection)]
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    if connection is not self._memory:
                        connection.close()
            except sqlite3.OperationalError as problem:
                busy = getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
                advice = "another process holds it. Try again when that is done" if busy else str(problem)
                raise OSError(f"{self._name} cannot be used: {advice}") from problem
            except (sqlite3.DatabaseError, LedgerDamaged) as problem:
                raise LedgerDamaged(f"{self._name} cannot be trusted: {problem}") from problem

    @property
    def _name(self) -> str:
        return f"the ledger {self.path}" if self.path else "the ledger in memory"


def append(connection: sqlite3.Connection, entry: Entry) -> None:
    """Add an entry, with random bytes of its own."""
    hash_chain.append(connection, replace(entry, nonce=entry.nonce or secrets.token_hex(16)).to_json())
