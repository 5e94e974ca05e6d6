"""Puts the help texts of the command into the page that has a line `<!-- help -->`, whenever the pages are built."""

from collections.abc import Iterator
from typing import Any

import click

MARK = "<!-- help -->"
WIDTH = 100


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    return markdown.replace(MARK, "\n".join(sections())) if MARK in markdown else markdown


def sections() -> Iterator[str]:
    """A heading and the help text of every command and of its own commands."""
    from dpals.cli import _dpals

    for name, command in commands("dpals", _dpals):
        context = click.Context(command, info_name=name, max_content_width=WIDTH, terminal_width=WIDTH)
        yield f"## {name}\n\n```text\n{command.get_help(context)}\n```\n"


def commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """The command and all below it, each with the words to call it."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands(f"{name} {below}", found)
