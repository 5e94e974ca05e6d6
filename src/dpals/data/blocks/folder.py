"""Blocks of users on disk: ratings that need not fit in memory, for methods to train on."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dpals.data.bad_rows import ReadingReport
from dpals.data.blocks.array_file import MappedFile, stored_ids
from dpals.data.blocks.manifest import Facts, read_manifest
from dpals.data.blocks.user_rows import is_sorted, within
from dpals.data.population import declared_facts
from dpals.data.rating_arrays import Range, counted, sizes
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.kernels.hashing import block_hashes

_ITEMS = "items-{}.safetensors"
_BLOCK = "block-{}.safetensors"
_checked: set[tuple[Any, ...]] = set()
"""Files of this process that were checked whole, in the state in which they were."""


def items_file(digest: str) -> str:
    """The name of a catalogue's file."""
    return _ITEMS.format(digest[:16])


def block_file(digest: str) -> str:
    """The name of a block's file."""
    return _BLOCK.format(digest[:16])


@dataclass(frozen=True)
class FileBlock:
    """Some of the users, in a file. It is small, and can be sent to where it is opened."""

    path: Path
    prefix: str
    n_users: int
    n_ratings: int
    name: str
    """The sha256 of the file."""
    items: str
    """The sha256 of the file of the catalogue, which is in the same folder."""
    facts: Facts

    def open(self) -> Ratings:
        """The ratings of these users, mapped into memory.

        Formal guarantee (docs/privacy.md, step 1): the file is the one whose sha256 is the name; its users are those
        whose hashes begin with the prefix, each once; their numbers are those of the manifest. So no user is in two
        blocks with different prefixes. A file is read whole to check it when a process opens it first, and again when
        it has changed.
        """
        file = MappedFile(self.path)
        known = file.state, self
        if known not in _checked and file.digest() != self.name:
            raise InputError(f"{self.path} is damaged, or is another file than was written. Write the blocks again")
        arrays = file.arrays
        ratings = Ratings(
            indptr=arrays["indptr"],
            indices=arrays["indices"],
            values=arrays.get("values"),
            timestamps=arrays.get("timestamps"),
            users=stored_ids(arrays, "users"),
            items=load_items(self.path.parent, self.items),
            rating_range=self.facts.rating_range,
            catalogue_declared=self.facts.catalogue_declared,
            report=ReadingReport(self.n_ratings),
            schema=self.facts.schema,
            is_checked=known in _checked,
        )
        if known not in _checked:
            self._check_users(ratings)
            _checked.add(known)
        return ratings

    def _check_users(self, ratings: Ratings) -> None:
        hashes = block_hashes(ratings.users)
        if within(hashes, self.prefix) != (0, ratings.n_users) or not is_sorted(hashes, ratings.users):
            raise InputError(f"{self.path} has users who belong to another block. Write the blocks again")
        if (ratings.n_users, ratings.n_ratings) != (self.n_users, self.n_ratings):
            raise InputError(f"{self.path} has another size than the manifest says. Write the blocks again")


def load_items(folder: Path, digest: str) -> NDArray[Any]:
    """The catalogue of a folder of blocks, after checking that it is the one with this digest."""
    file = MappedFile(folder / items_file(digest))
    return _load_items(file.state, digest)


@lru_cache(maxsize=8)
def _load_items(state: tuple[str, int, int, int], digest: str) -> NDArray[Any]:
    """The same for a file in this state."""
    file = MappedFile(Path(state[0]))
    if file.digest() != digest:
        raise InputError(f"{file.path} is not the catalogue that the blocks were written with. Write the blocks again")
    items = stored_ids(file.arrays, "items").copy()
    items.setflags(write=False)
    return items


@dataclass(frozen=True, eq=False, repr=False)
class Blocks:
    """Ratings in a folder of blocks, which methods train on as they do on `Ratings`. Made by `open_blocks`.

    Iterating over it opens one block of users after another.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import dpals
    >>> ratings = dpals.Ratings.from_arrays([7, 8, 8, 9], [1, 1, 2, 2])
    >>> with TemporaryDirectory() as folder:
    ...     blocks = dpals.write_blocks(ratings, folder, ratings_per_block=2)
    ...     print(blocks)
    ...     [block.users.tolist() for block in blocks]
    Blocks(3 users, 2 items, 4 implicit pairs, in 3 blocks)
    [[7], [9], [8]]
    """

    folder: Path
    facts: Facts
    items: NDArray[Any]
    """Ids of all items, in the order of their indices."""
    report: ReadingReport
    """What became of the rows while reading."""
    blocks: tuple[FileBlock, ...]
    """The blocks, in the order of their prefixes."""
    anonymous = False
    """Users have ids."""

    def __post_init__(self) -> None:
        _check_disjoint(self.blocks, self.folder)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return sum(block.n_users for block in self.blocks)

    @property
    def n_items(self) -> int:
        """Number of items in the catalogue."""
        return len(self.items)

    @property
    def n_ratings(self) -> int:
        """Number of ratings, or of pairs in implicit feedback."""
        return sum(block.n_ratings for block in self.blocks)

    @property
    def rating_range(self) -> Range | None:
        """Lowest and highest possible rating, declared by the caller. None for implicit feedback."""
        return self.facts.rating_range

    @property
    def is_implicit(self) -> bool:
        """Whether there are pairs only, without values."""
        return self.facts.rating_range is None

    @property
    def catalogue_declared(self) -> bool:
        """Whether the caller gave the list of items."""
        return self.facts.catalogue_declared

    @property
    def schema(self) -> str:
        """What declares which columns there are and what they hold."""
        return self.facts.schema

    def public_facts(self) -> list[str]:
        """Say what the caller declared public, for the privacy statement."""
        return declared_facts(self)

    def __iter__(self) -> Iterator[Ratings]:
        return (block.open() for block in self.blocks)

    def __repr__(self) -> str:
        return f"Blocks({sizes(self)}, in {counted(len(self.blocks), 'block')})"


def open_blocks(folder: str | Path) -> Blocks:
    """Open a folder of blocks that `dpals.write_blocks` wrote.

    The manifest decides which files belong to the folder; others are ignored. The catalogue is checked now, and each
    block when it is opened.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    InputError
        Where the folder is incomplete, damaged or of another format.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import dpals
    >>> ratings = dpals.Ratings.from_arrays(["ann", "bob"], [10, 20], [4, 3.5], rating_range=(0.5, 5))
    >>> with TemporaryDirectory() as folder:
    ...     _ = dpals.write_blocks(ratings, folder)
    ...     dpals.open_blocks(folder)
    Blocks(2 users, 2 items, 2 ratings from 0.5 to 5, in 1 block)
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    items = load_items(folder, manifest.items)
    place = folder.absolute()
    blocks = tuple(
        FileBlock(
            place / entry.file,
            entry.prefix,
            entry.n_users,
            entry.n_ratings,
            entry.sha256,
            manifest.items,
            manifest.facts,
        )
        for entry in manifest.blocks
    )
    for block in blocks:
        if not block.path.exists():
            raise InputError(f"{block.path} is missing. Write the blocks again")
    return Blocks(folder, manifest.facts, items, manifest.report, blocks)


def _check_disjoint(blocks: tuple[FileBlock, ...], folder: Path) -> None:
    """Raise where a user could be in two blocks, because one prefix begins with another."""
    prefixes = [block.prefix for block in blocks]
    if any(after <= before or after.startswith(before) for before, after in pairwise(prefixes)):
        raise InputError(f"{folder}: blocks overlap, so users could count twice. Write blocks of all files together")
