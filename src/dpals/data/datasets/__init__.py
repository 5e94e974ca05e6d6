"""MovieLens by name: found, checked, and split as in the paper.

MovieLens data may be used for research. It may not be redistributed, nor used commercially without permission of
GroupLens, so it does not come with this package: you download it, or let `load` do so.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dpals.data.datasets.archive import cache_folder, find, read
from dpals.data.datasets.download import DownloadError
from dpals.data.datasets.download import download as _download
from dpals.data.datasets.movielens import look_up
from dpals.errors import InputError
from dpals.evaluation.protocols import split
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.data.ratings import Ratings

__all__ = ["DownloadError", "get", "is_here", "load", "split"]

LICENCE = (
    "MovieLens data is by GroupLens Research at the University of Minnesota. It may be used for research, must not be "
    "redistributed, and needs permission for commercial use: see https://grouplens.org/datasets/movielens. Please cite "
    "Harper and Konstan (2015), https://doi.org/10.1145/2827872."
)


def load(name: str, path: str | Path | None = None, *, download: bool = False) -> "Ratings":
    """Load a data set by its name, and check that it is complete.

    The names are "ml-100k", "ml-1m", "ml-10m", "ml-10m-top400" (the 400 movies with the most ratings) and "ml-20m"
    (as implicit feedback: ratings of 4 or more, of users with at least 5 of them). The rating range is the documented
    one. The movies that were rated are the catalogue, as in the paper, and thereby declared public; the list of movies
    in the archives has some more, which nobody rated.

    Parameters
    ----------
    name
        Which data set.
    path
        Where it is: the official zip archive, the file with the ratings, the unpacked folder, or a folder that holds
        the archive or the unpacked folder. By default this is the cache folder: ``DPALS_CACHE`` in the environment, or
        else ``~/.cache/dpals``.
    download
        Download it to that folder if it is not there. MovieLens data may be used for research and may not be
        redistributed.

    Raises
    ------
    InputError
        If it is not there, or is not what it should be.
    DownloadError
        If the download fails. What has arrived is kept, so that the next attempt resumes there.

    Examples
    --------
    >>> load("ml-1m", download=True)  # doctest: +SKIP
    Ratings(6,040 users, 3,706 items, 1,000,209 ratings from 1 to 5)
    >>> load("ml-2m")
    Traceback (most recent call last):
    dpals.errors.InputError: no data set is called 'ml-2m'. Known are ml-100k, ml-1m, ml-10m, ml-10m-top400, ml-20m
    """
    data = look_up(name)
    place = _place(path)
    file = get(name, path) if download else find(data.archive, place)
    if file is None:
        raise InputError(
            f"{place}: {name} is not here. To download it ({data.archive.size / 1e6:.1f} MB), add download=True or run "
            f"`dpals datasets get {name}`; or get {data.archive.url} yourself and give the path of the archive or of "
            "the unpacked folder"
        )
    ratings = data.prepare(read(data.archive, file))
    data.check(ratings, file)
    return ratings


def is_here(name: str, path: str | Path | None = None) -> bool:
    """Whether `load` would find the data set without a download.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     is_here("ml-1m", folder)
    False
    """
    return find(look_up(name).archive, _place(path)) is not None


def get(name: str, path: str | Path | None = None) -> Path:
    """Download a data set unless it is there, and return the path of the archive or of the file with the ratings.

    `path` is as in `load`. Shows its progress if standard error is a terminal.

    Examples
    --------
    >>> get("ml-10m")  # doctest: +SKIP
    PosixPath('/home/ann/.cache/dpals/ml-10m.zip')
    """
    archive, place = look_up(name).archive, _place(path)
    if file := find(archive, place):
        return file
    target = place / f"{archive.name}.zip"
    echo(LICENCE, err=True)
    with _progress_bar(target.name, archive.size) as progress:
        _download(archive.url, target, archive.size, archive.md5, progress)
    return target


def _place(path: str | Path | None) -> Path:
    if path is None:
        return cache_folder()
    place = Path(path).expanduser()
    if not place.exists():
        raise InputError(f"{place}: there is no such file or folder. Check the path")
    return place


@contextmanager
def _progress_bar(name: str, size: int) -> Iterator[Callable[[int], None]]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from dpals.system.console import Console

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=size)
        yield lambda arrived: bar.update(task, completed=arrived)
