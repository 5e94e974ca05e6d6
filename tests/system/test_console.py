"""Texts that anybody may have written, through every way that rich has to print them."""

import io

import pytest
from rich.table import Table
from tests.system.test_terminal import Terminal

from dpals.system.console import Console
from dpals.system.progress import progress_bar

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
    assert text.count(TEXT) == 4  # what is being done is for terminals alone


def test_texts_are_visible_on_a_terminal():
    text = printed(Terminal())
    assert text.count("[/b] [red]x[/red] :smile: \\u001b[31m \\u202eab") >= 5
    assert "\x1b[31m" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("what", ["Reading [/b].csv", "Reading \x1b[31m.csv"])
def test_bars_have_any_title(monkeypatch, what):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar(what) as advance:
        advance(1, 2)
    assert what.replace("\x1b", "\\u001b") in terminal.getvalue()
