"""The file of a ledger: an append-only SQLite table whose rows are chained by hashes.

Each row's hash covers the row and the hash before it. A separate head holds the number of rows and the last hash. Every
row has 16 random bytes of its own (`Entry.nonce`), so that no two ledgers have a hash in common unless one began as a
copy of the other, and a hash reveals nothing about its row.

Format 1 had rows without random bytes, runs and searches. It is read as it is, with its hashes, and becomes format 2
when the first row is added.
"""

import hashlib
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

FORMAT = 2
FORMATS = (1, 2)
SCHEMA = """\
CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE TABLE head (count INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'ledgers are append-only'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'ledgers are append-only'); END;
""".splitlines()
GENESIS = hashlib.sha256(b"dpals ledger 1").hexdigest()
"""The head of a ledger without entries."""


class LedgerDamaged(RuntimeError):  # noqa: N818, a public name
    """The ledger is not as dpals wrote it, so nothing more may be spent."""


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty ledger."""
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("INSERT INTO head VALUES (0, ?)", (GENESIS,))


def create_file(path: Path) -> None:
    """A new ledger that only its owner can read. It appears complete or not at all, so an empty file means damage."""
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}.new")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        connection = sqlite3.connect(draft, isolation_level=None)
        create(connection)
        connection.close()
        with suppress(FileExistsError):  # another process was faster
            os.link(draft, path)
    except (sqlite3.OperationalError, FileNotFoundError, NotADirectoryError, PermissionError) as problem:
        raise OSError(f"the ledger {path} cannot be created: {problem}") from problem
    finally:
        with suppress(NotADirectoryError):
            draft.unlink(missing_ok=True)


def append(connection: sqlite3.Connection, content: str) -> None:
    """Add a row and move the head."""
    count, previous = connection.execute("SELECT count, hash FROM head").fetchone()
    linked = link(previous, count, content)
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (count, content, linked))
    connection.execute("UPDATE head SET count = ?, hash = ?", (count + 1, linked))


def read(connection: sqlite3.Connection) -> list[str]:
    """All rows, after walking the chain from its beginning to the head; `LedgerDamaged` if it does not hold."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in FORMATS:
        raise LedgerDamaged(f"this version of dpals does not know format {version}, only {FORMATS}")
    schema = connection.execute("SELECT sql FROM sqlite_schema ORDER BY rowid").fetchall()
    if [sql for (sql,) in schema] != [statement.rstrip(";") for statement in SCHEMA]:
        raise LedgerDamaged("its tables or the triggers that keep it append-only were changed")
    contents, last = [], GENESIS
    rows = connection.execute("SELECT number, content, hash FROM entries ORDER BY number").fetchall()
    for expected, (number, content, stored) in enumerate(rows):
        last = link(last, expected, content)
        if number != expected or stored != last:
            raise LedgerDamaged(f"the chain breaks at entry {expected}: the ledger was changed or damaged")
        contents.append(content)
    if connection.execute("SELECT count, hash FROM head").fetchall() != [(len(contents), last)]:
        raise LedgerDamaged(f"the head does not match the {len(contents)} entries: entries were removed or added")
    return contents


def head(connection: sqlite3.Connection) -> str:
    """The last hash."""
    last: str = connection.execute("SELECT hash FROM head").fetchone()[0]
    return last


def holds(connection: sqlite3.Connection, wanted: str) -> bool:
    """Whether a hash was the head at some time."""
    found = connection.execute("SELECT 1 FROM entries WHERE hash = ?", (wanted,)).fetchone()
    return wanted == GENESIS or found is not None


def link(previous: str, number: int, content: str) -> str:
    """The hash of a row, which covers the hash before it."""
    return hashlib.sha256(f"{previous}\n{number}\n{content}".encode()).hexdigest()
