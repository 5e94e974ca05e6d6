"""A progress bar with the time that is left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str, wanted: bool = True) -> Iterator[Callable[[float, float | None], None]]:
    """Show a bar on standard error, if that is a terminal.

    The function it yields takes how much is done, and of how much, None if that is unknown.

    Examples
    --------
    >>> with progress_bar("Counting") as advance:
    ...     for number in range(3):
    ...         advance(number + 1, 3)
    """
    if not wanted:
        yield lambda *_: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as TimeLeftColumn

    from dpals.system.console import Console
    from dpals.system.terminal import visible

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    left = (TextColumn("left:"), TimeLeftColumn())
    with Progress(
        *columns,
        *left,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        redirect_stdout=False,  # what is printed meanwhile goes where it always goes, and not to standard error
    ) as bar:
        task = bar.add_task(visible(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
