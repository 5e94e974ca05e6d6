"""The archive of a data set: where it comes from, where it is on this machine, and how its ratings are read."""

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpals.data.bad_rows import BadRows
from dpals.data.columns import ColumnOptions
from dpals.errors import InputError

if TYPE_CHECKING:
    from dpals.data.ratings import Ratings

SITE = "https://files.grouplens.org/datasets/movielens"


@dataclass(frozen=True)
class Archive:
    """A zip archive on the MovieLens site."""

    name: str
    size: int
    """In bytes."""
    md5: str
    """As published beside the archive."""
    member: str
    """The file with the ratings; nothing else in the archive is read."""
    rating_range: tuple[float, float]
    """Lowest and highest possible rating, by the documentation of the data."""

    @property
    def url(self) -> str:
        """Where it can be downloaded."""
        return f"{SITE}/{self.name}.zip"


def cache_folder() -> Path:
    """Where downloads go: ``DPALS_CACHE``, or ``dpals`` in the cache folder of the user."""
    if chosen := os.environ.get("DPALS_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpals"


def find(archive: Archive, place: Path) -> Path | None:
    """The file to read: `place` itself if it is a file, otherwise what is in this folder, None if nothing is."""
    if place.is_file():
        return place
    folder, file = archive.member.split("/")
    candidates = (Path(archive.name, file), Path(folder, file), Path(f"{archive.name}.zip"), Path(file))
    return next((place / candidate for candidate in candidates if (place / candidate).is_file()), None)


def read(archive: Archive, file: Path) -> "Ratings":
    """Read the ratings from the archive or from the file that was in it.

    The archive is read as a stream: nothing is unpacked to the disk, and only blocks of it are in memory.
    """
    if file.suffix.lower() != ".zip":
        from dpals.data.read import read_ratings

        return read_ratings(file, rating_range=archive.rating_range, ids="integer")

    from dpals.data.build import build
    from dpals.data.ratings import Ratings
    from dpals.data.text_file import TextSource

    try:
        with zipfile.ZipFile(file) as opened:
            if archive.member not in opened.namelist():
                raise InputError(f"{file}: there is no {archive.member} in it. Is this {archive.name}.zip?")
            source = TextSource(zipfile.Path(opened, archive.member), ColumnOptions())
            return build(
                Ratings,
                source,
                rating_range=archive.rating_range,
                catalogue=None,
                bad=BadRows("error"),
                ids="integer",
            )
    except zipfile.BadZipFile as error:
        raise InputError(
            f"{file}: the archive is damaged or cut short ({error}). Delete it and download it again"
        ) from error
