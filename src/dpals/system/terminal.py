"""Text on a terminal: control characters are shown as codes, and not sent to it."""

import re
import sys
from typing import TextIO

import click

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except tabs and line ends, overrides of the direction of writing, and surrogates."""


def visible(text: str) -> str:
    r"""The text with a code in place of each character that a terminal would obey.

    Ids, titles and statements come from files that anybody may have written. On a terminal such characters could
    change what stands above them, or type commands. JSON stays JSON, of the same text.

    Examples
    --------
    >>> print(visible("Gone \x1b[2J with the \u202ewind"))
    Gone \u001b[2J with the \u202ewind
    >>> visible("Amélie\t映画\n")
    'Amélie\t映画\n'
    """
    return _OBEYED.sub(lambda obeyed: f"\\u{ord(obeyed[0]):04x}", text)


def echo(text: object = "", *, err: bool = False, nl: bool = True, fg: str | None = None) -> None:
    """Print to standard output or error: visible and in colour on a terminal, as it is in files and pipes.

    Examples
    --------
    >>> echo("3 users")
    3 users
    """
    shown = str(text)
    if is_terminal(sys.stderr if err else sys.stdout):
        shown = click.style(visible(shown), fg=fg) if fg else visible(shown)
    click.echo(shown, err=err, nl=nl, color=True)  # or else click takes colours out of ids


def is_terminal(stream: TextIO | None) -> bool:
    """Whether people see at once what is written to a stream."""
    return stream is not None and stream.isatty()
