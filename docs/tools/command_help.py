"""Puts the help texts of the command into the page that has a line `<!-- help -->`, whenever the pages are built."""

from collections.abc import Iterator
from typing import Any

import click

MARK = "<!-- help -->"
WIDTH = 80


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    return markdown.replace(MARK, "\n".join(sections())) if MARK in markdown else markdown


def sections() -> Iterator[str]:
    """A heading and the help text of every command and of its own commands."""
    from dpals.cli import dpals

    for context in contexts("dpals", dpals):
        yield f"## {context.command_path}\n\n```text\n{context.get_help()}\n```\n"


def contexts(name: str, command: click.Command, parent: click.Context | None = None) -> Iterator[click.Context]:
    """The command and all below it, each as if it were called."""
    context = click.Context(
        command, parent, name, terminal_width=WIDTH, max_content_width=WIDTH, **command.context_settings
    )
    yield context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from contexts(below, found, context)
