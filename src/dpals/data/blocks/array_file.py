"""Arrays in one file, in the format safetensors: written whole or not at all, and mapped into memory to be read."""

import errno
import hashlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.data.ids import is_text
from dpals.errors import InputError
from dpals.system.files import OWNER_ONLY, draft

Arrays = Mapping[str, NDArray[Any]]

_TYPES: dict[str, np.dtype[Any]] = {
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U8": np.dtype("u1"),
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_ALIGNMENT = 8
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def content_of(arrays: Arrays, about: Mapping[str, str] | None = None) -> list[Any]:
    """What a file of these arrays consists of, piece by piece: a function of the arrays alone.

    Arrays of large elements come first, so that all of them are aligned.

    Examples
    --------
    >>> b"".join(content_of({"x": np.array([1, 2], np.uint8)}))[8:].rstrip(b"\\x01\\x02")
    b'{"x":{"data_offsets":[0,2],"dtype":"U8","shape":[2]}}   '
    """
    header: dict[str, Any] = {"__metadata__": dict(about)} if about else {}
    ordered = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    start = 0
    for name in ordered:
        array = arrays[name]
        stop = start + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [start, stop]}
        start = stop
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    buffers = [np.ascontiguousarray(arrays[name]).view(np.uint8).data for name in ordered if arrays[name].nbytes]
    return [len(text).to_bytes(8, "little"), text, *buffers]


def digest_of(content: Sequence[Any]) -> str:
    """The sha256 of the pieces of a file."""
    digest = hashlib.sha256()
    for piece in content:
        digest.update(piece)
    return digest.hexdigest()


def write_content(path: Path, content: Sequence[Any]) -> None:
    """Write the pieces of a file that only its owner may read."""
    with full_disk_explained(path.parent), draft(path, OWNER_ONLY) as place, place.open("wb") as file:
        for piece in content:
            file.write(piece)


@contextmanager
def full_disk_explained(folder: Path) -> Iterator[None]:
    """Where the disk is full, say which it is and what to do."""
    try:
        yield
    except OSError as problem:
        if problem.errno not in _NO_SPACE:
            raise
        full = OSError(problem.errno, os.strerror(problem.errno), str(folder))
        full.add_note("Free some space and write the blocks again: what is finished is kept.")
        raise full from problem


class MappedFile:
    """A file of arrays that is mapped into memory: it takes up none before it is read, and can always be dropped.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_content(Path(folder, "a"), content_of({"x": np.array([3, 4]), "y": np.empty(0, np.int32)}))
    ...     file = MappedFile(Path(folder, "a"))
    ...     {name: array.tolist() for name, array in file.arrays.items()}
    {'x': [3, 4], 'y': []}
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                facts = os.fstat(file.fileno())
                self._bytes: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if facts.st_size else b""
        except FileNotFoundError as problem:
            raise InputError(f"{path} is missing. Write the blocks again") from problem
        self.state = str(path), facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
        """What changes when the file is changed or replaced."""

    def digest(self) -> str:
        """The sha256 of the whole file."""
        return hashlib.sha256(self._bytes).hexdigest()

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, read-only."""
        return {name: self._array(entry) for name, entry in self._header.items() if name != "__metadata__"}

    @property
    def about(self) -> dict[str, str]:
        """What the writer noted beside the arrays."""
        return dict(self._header.get("__metadata__", {}))

    @cached_property
    def _header(self) -> dict[str, Any]:
        try:
            header = json.loads(self._bytes[8 : self._start])
        except ValueError as problem:
            raise self._damaged() from problem
        return dict(header)

    @property
    def _start(self) -> int:
        return 8 + int.from_bytes(self._bytes[:8], "little")

    def _array(self, entry: dict[str, Any]) -> NDArray[Any]:
        try:
            (length,), (first, stop), dtype = entry["shape"], entry["data_offsets"], _TYPES[entry["dtype"]]
            if stop - first != length * dtype.itemsize:
                raise self._damaged()
            return np.frombuffer(self._bytes, dtype, length, self._start + first)
        except (KeyError, TypeError, ValueError) as problem:
            raise self._damaged() from problem

    def _damaged(self) -> InputError:
        return InputError(f"{self.path} is damaged. Write the blocks again")


def store_ids(name: str, ids: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Ids as arrays of a file: text as its bytes in UTF-8 and where each id ends.

    Examples
    --------
    >>> {name: array.tolist() for name, array in store_ids("users", np.array(["é", "b"], "T")).items()}
    {'users.bytes': [195, 169, 98], 'users.ends': [2, 3]}
    """
    if not is_text(ids):
        return {name: ids}
    texts = [text.encode() for text in ids.tolist()]
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), dtype=np.int64)
    return {f"{name}.bytes": np.frombuffer(b"".join(texts), np.uint8), f"{name}.ends": ends}


def stored_ids(arrays: Arrays, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
    """Ids from the arrays of a file, or those from start to stop."""
    if name in arrays:
        return arrays[name][start:stop]
    first = arrays[f"{name}.ends"][start - 1] if start else 0
    ends = (arrays[f"{name}.ends"][start:stop] - first).tolist()
    encoded = arrays[f"{name}.bytes"][first:][: ends[-1] if ends else 0].tobytes()
    places = zip([0, *ends], ends, strict=False)
    if encoded.isascii():  # as ids mostly are: then bytes and letters have the same places
        letters = encoded.decode()
        texts = [letters[low:high] for low, high in places]
    else:
        texts = [encoded[low:high].decode() for low, high in places]
    return np.array(texts, np.dtypes.StringDType())
