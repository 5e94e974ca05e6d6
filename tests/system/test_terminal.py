"""What a terminal would obey is shown on one, and unchanged in files and pipes."""

import io
import json
import sys
import unicodedata

import pytest

from dpals.system.terminal import echo, visible

HOSTILE = "\x1b]0;title\x07 \x9b2J \r\x08\x7f\x00 \u202egpj.exe\u202c \u2066x\u2069 \udc9b"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_all_that_a_terminal_obeys_is_shown():
    """Unicode's own list of control characters, but for tabs and ends of lines, and of overrides of direction."""
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    for character in map(chr, range(sys.maxunicode + 1)):
        kind = unicodedata.category(character)
        obeyed = kind in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(character) in turning
        assert (visible(character) != character) == (obeyed and character not in "\n\t"), hex(ord(character))


def test_codes_say_which_character_it_was():
    """As JSON says it, so that JSON on a terminal can be used."""
    assert json.loads(f'"{visible(HOSTILE)}"') == HOSTILE
    assert visible(HOSTILE).isprintable()


@pytest.mark.parametrize(("err", "name"), [(False, "stdout"), (True, "stderr")])
def test_echo_shows_on_a_terminal_and_keeps_elsewhere(monkeypatch, err, name):
    text = HOSTILE[:-1]
    for stream, expected in ((Terminal(), visible(text)), (io.StringIO(), text)):
        monkeypatch.setattr(sys, name, stream)
        echo(text, err=err)
        assert stream.getvalue() == f"{expected}\n"


def test_colours_are_for_terminals(monkeypatch):
    for stream, expected in ((Terminal(), "\x1b[32m\\u001b[31mfine\x1b[0m\n"), (io.StringIO(), "\x1b[31mfine\n")):
        monkeypatch.setattr(sys, "stdout", stream)
        echo("\x1b[31mfine", fg="green")
        assert stream.getvalue() == expected
