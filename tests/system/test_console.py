"""Texts that anybody may have written, through every way that rich has to print them."""

import io

from rich.table import Table
from tests.system.test_terminal import Terminal

from dpals.system.console import Console

TEXT = "[/b] [red]x[/red] :smile: \x1b[31m \u202eab"


def printed(file):
    console = Console(file=file, width=100)
    table = Table(TEXT, title=TEXT)
    table.add_row(TEXT)
    with console.doing(TEXT) as tell:
        tell(f"{TEXT} next")
    console.print(TEXT)
    console.print(table)
    return file.getvalue()


def test_texts_are_printed_as_they_are():
    text = printed(io.StringIO())
    assert text.count(TEXT) == 4  # what is being done is only for terminals


def test_texts_are_visible_on_a_terminal():
    text = printed(Terminal())
    assert text.count("[/b] [red]x[/red] :smile: \\u001b[31m \\u202eab") >= 5
    assert "\x1b[31m" not in text
    assert "\u202e" not in text
