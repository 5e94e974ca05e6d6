"""The manifest of a folder of blocks: what is declared about the ratings, and which files are theirs."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from dpals.data.bad_rows import ReadingReport
from dpals.data.blocks.array_file import full_disk_explained
from dpals.data.rating_arrays import Range
from dpals.errors import InputError
from dpals.system.files import OWNER_ONLY, write_whole

FORMAT = 1
MANIFEST = "manifest.json"
UserIds = Literal["int64", "uint64", "text"]


@dataclass(frozen=True)
class Facts:
    """What holds for the ratings of all blocks."""

    rating_range: Range | None
    catalogue_declared: bool
    has_timestamps: bool
    user_ids: UserIds
    schema: str

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> "Facts":
        limits = facts["rating_range"]
        return cls(**{**facts, "rating_range": None if limits is None else (float(limits[0]), float(limits[1]))})


@dataclass(frozen=True)
class Entry:
    """A block as the manifest has it: its file, the prefix that its users' hashes have, and its size."""

    file: str
    prefix: str
    n_users: int
    n_ratings: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a folder of blocks holds. The same ratings and facts have the same manifest."""

    facts: Facts
    items: str
    """The sha256 of the file of the catalogue."""
    report: ReadingReport
    blocks: tuple[Entry, ...]

    def write(self, folder: Path) -> None:
        """Put the manifest into the folder, which completes it."""
        content = {"format": FORMAT, **asdict(self)}
        content["checksum"] = _checksum(content)
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False).encode()
        with full_disk_explained(folder):
            write_whole(folder / MANIFEST, text, OWNER_ONLY)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder; InputError where there is none, or not one that can be used."""
    content = _content(folder)
    try:
        report = ReadingReport(**content["report"])
        blocks = tuple(Entry(**entry) for entry in content["blocks"])
        return Manifest(Facts.from_dict(content["facts"]), content["items"], report, blocks)
    except (KeyError, TypeError, ValueError) as problem:
        raise _damaged(folder / MANIFEST) from problem


def _content(folder: Path) -> dict[str, Any]:
    """The entries of the manifest, if this version can read its format and it is undamaged."""
    file, others = folder / MANIFEST, sorted(folder.glob("*manifest*.json")) if folder.is_dir() else []
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder of blocks. Write one with dpals.write_blocks")
    if len(others) > 1:
        names = " and ".join(other.name for other in others)
        raise InputError(f"{folder} has several manifests, {names}. Keep the one that belongs to its blocks")
    try:
        content = json.loads(file.read_bytes())
    except FileNotFoundError as problem:
        state = "holds blocks that are not complete" if _has_blocks(folder) else "holds no blocks"
        raise InputError(
            f"{folder} {state}: {MANIFEST} is missing. Run dpals.write_blocks, which resumes where it stopped"
        ) from problem
    except ValueError as problem:
        raise _damaged(file) from problem
    written = content.get("format") if isinstance(content, dict) else None
    if written != FORMAT:
        raise InputError(
            f"{folder} has blocks of format {written}, and this version of dpals reads format {FORMAT}: write the "
            "blocks again, or use the version that wrote them"
        )
    if content.get("checksum") != _checksum(content):
        raise _damaged(file)
    return dict(content)


def _checksum(content: dict[str, Any]) -> str:
    """A hash of all entries but the checksum itself, whatever their order and spacing."""
    others = {name: value for name, value in content.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


def _has_blocks(folder: Path) -> bool:
    return any(folder.glob("block-*.safetensors"))


def _damaged(file: Path) -> InputError:
    return InputError(f"{file} is damaged, or was edited. Write the blocks again")
