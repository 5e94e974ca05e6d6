"""A folder with the tables that a run has released, so that an interrupted run can resume."""

import json
import logging
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from dpals.errors import InputError
from dpals.release.accounting import Release
from dpals.system.files import OWNER_ONLY, lock, remove_drafts, write_whole

logger = logging.getLogger(__name__)

FORMAT = 1
RUN_FILE, _LOCK = "run.json", "lock"
_DRAFTED = r"run\.json|release-\d+\.safetensors"


class Checkpoint:
    """The released tables of one run, each in a file of its own (docs/privacy.md, step 8).

    The folder belongs to this process until it is closed. Everything in it has noise and was paid for, but keep it
    secret: a table is here before the ledger knows it, and the ledger may still refuse it. Only the owner can read the
    files, and the folder if it is made here. It holds no hash of the ratings, which would reveal something about them.
    So a run may resume with other ratings: it is as private, but its model is made from both.

    Parameters
    ----------
    folder
        Where to store the run; made if it does not exist.
    training
        What determines the releases: the method, its arguments, the public facts. A folder of another run is
        refused.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> record = Release("item counts", (2, 1), "scalar", sensitivity=5, variance=9, step=0.5, seeded=False)
    >>> with TemporaryDirectory() as folder:
    ...     with Checkpoint(folder, {"method": "ItemMean"}) as checkpoint:
    ...         checkpoint.save(1, record, np.array([[3], [4]]))
    ...     with Checkpoint(folder, {"method": "ItemMean"}) as checkpoint:
    ...         checkpoint.load(1, record).tolist(), checkpoint.load(2, record)
    ([[3], [4]], None)
    """

    def __init__(self, folder: str | Path, training: Mapping[str, str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(self.folder)
        try:
            remove_drafts(self.folder, _DRAFTED)  # their numbers were never published
            self.run = self._opened(dict(training))
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    @property
    def n_releases(self) -> int:
        """How many releases are stored."""
        return len(list(self.folder.glob(_file_name("*"))))

    def load(self, number: int, record: Release) -> NDArray[np.int64] | None:
        """The table of a release, None if it is not stored; InputError if it is another release."""
        from safetensors import SafetensorError, safe_open

        path = self._path(number)
        if not path.exists():
            return None
        try:
            with safe_open(path, framework="numpy") as file:
                stored: dict[str, Any] = json.loads(file.metadata()["release"])
                table: NDArray[np.int64] = file.get_tensor("table")
        except (SafetensorError, KeyError, TypeError, ValueError) as problem:
            raise InputError(f"{path} is damaged: remove the checkpoint to start over ({problem})") from problem
        if stored != _described(record) or table.shape != record.shape or table.dtype != np.int64:
            raise InputError(
                f"release {number} in the checkpoint {self.folder} is {stored.get('purpose')!r}, not what this "
                f"training releases, {record.purpose!r}: remove the checkpoint to start over"
            )
        return table

    def save(self, number: int, record: Release, table: NDArray[np.int64]) -> None:
        """Store the table of a release, durably and once."""
        from safetensors.numpy import save

        path = self._path(number)
        if path.exists():
            raise RuntimeError(f"release {number} is in the checkpoint {self.folder} already")
        content = save({"table": table}, metadata={"release": json.dumps(_described(record))})
        write_whole(path, content, OWNER_ONLY)

    def discard(self, number: int) -> None:
        """Remove the table of a release that may not be published."""
        self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self.folder / _file_name(f"{number:04}")

    def _opened(self, training: dict[str, str]) -> str:
        """Name of the run that is stored here, or of a new one."""
        try:
            facts = json.loads((self.folder / RUN_FILE).read_bytes())
            run, started, earlier = str(facts["run"]), str(facts["started"]), dict(facts["training"])
            if facts["format"] != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
        except FileNotFoundError:
            for path in self.folder.glob(_file_name("*")):  # of a run whose removal was interrupted
                path.unlink()
            run, started = uuid.uuid4().hex, datetime.now(UTC).isoformat(timespec="seconds")
            facts = {"format": FORMAT, "run": run, "started": started, "training": training}
            write_whole(self.folder / RUN_FILE, json.dumps(facts, indent=1).encode(), OWNER_ONLY)
            return run
        except (KeyError, TypeError, ValueError) as problem:
            raise InputError(f"{self.folder} is no checkpoint of this version of dpals: {problem}") from problem
        for name in earlier.keys() | training.keys():
            before, now = (facts.get(name, "not there") for facts in (earlier, training))
            if before != now:
                raise InputError(
                    f"the checkpoint {self.folder} is of another training: {name} was {before} and is now {now}. "
                    "Resume with what it was, or start over (--fresh, or another folder)"
                )
        if self.n_releases:
            logger.warning(
                "resuming with %d releases of the run that began at %s, which are not made or paid for again; if the "
                "ratings have changed since, start over (--fresh, or another folder)",
                self.n_releases,
                started,
            )
        return run


def run_in(folder: Path) -> str:
    """Name of the run that is stored in a folder, "" if there is none."""
    try:
        return str(json.loads((folder / RUN_FILE).read_bytes())["run"])
    except (OSError, KeyError, TypeError, ValueError):
        return ""


def remove_checkpoint(folder: Path, run: str = "") -> None:
    """Remove the run that is stored in a folder, if it is the given one, and the folder if nothing else is in it."""
    if not folder.exists():
        return
    with _locked(folder):
        if run and run_in(folder) != run:
            return
        (folder / RUN_FILE).unlink(missing_ok=True)  # first: without it the rest means nothing
        remove_drafts(folder, _DRAFTED)
        for path in [*folder.glob(_file_name("*")), folder / _LOCK]:
            path.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def _locked(folder: Path) -> IO[bytes]:
    """The lock file of a folder, held until it is closed; OSError if another process holds it."""
    try:
        return lock(folder / _LOCK, OWNER_ONLY)
    except BlockingIOError:
        raise OSError(f"another process is training with the checkpoint {folder}: wait for it") from None


def _file_name(number: str) -> str:
    return f"release-{number}.safetensors"


def _described(record: Release) -> dict[str, Any]:
    """The record as JSON gives it back. Integers are text, because they are too long for some readers.

    "bound" is the sensitivity, under the name that it had in earlier versions.
    """
    facts = {"bound" if name == "sensitivity" else name: value for name, value in asdict(record).items()}
    return facts | {"shape": list(record.shape), "bound": str(record.sensitivity), "variance": str(record.variance)}
