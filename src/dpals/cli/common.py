"""What several commands share: options, messages and progress.

Results go to standard output, everything else to standard error, so that results can be piped.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

Command = TypeVar("Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing but results and errors.")


def column_options(command: Command) -> Command:
    """Which column of a table is what, for those that are not found by their names."""
    for role in ("timestamp", "rating", "item", "user"):
        text = f"Column with the {role}s, if its name does not tell." if role != "timestamp" else "And with the times."
        command = click.option(f"--{role}", metavar="COLUMN", help=text)(command)
    return command


def messages(quiet: bool) -> "Console":
    """Where to say what is going on."""
    from rich.console import Console

    return Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)


@contextmanager
def warnings_shown(console: "Console") -> Iterator[None]:
    """Print what the library warns of."""
    import logging

    class Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            console.print(f"Note: {record.getMessage()}.", markup=False)

    handler, logger = Shown(logging.WARNING), logging.getLogger("dpals")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
