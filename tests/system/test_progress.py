"""Bars with any title, on a terminal and elsewhere."""

import io

import pytest
from tests.system.test_terminal import Terminal

from dpals.system.progress import progress_bar


@pytest.mark.parametrize("what", ["Reading [/b].csv", "Reading \x1b[31m.csv"])
def test_bars_have_any_title(monkeypatch, what):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar(what) as advance:
        advance(1, 2)
    assert what.replace("\x1b", "\\u001b") in terminal.getvalue()


@pytest.mark.parametrize(("stream", "wanted"), [(io.StringIO, True), (Terminal, False)])
def test_bars_are_for_terminals_and_for_who_wants_them(monkeypatch, stream, wanted):
    shown = stream()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("Reading", wanted) as advance:
        advance(1, 2)
    assert shown.getvalue().strip() == ""
