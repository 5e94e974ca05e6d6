"""The command ``dpals``."""

import signal
import sys
from io import StringIO
from types import FrameType
from typing import NoReturn

import click

from dpals.system.terminal import echo

_SECTIONS = {
    "Start": {
        "quickstart": "Simulate people, train with and without privacy, compare, recommend.",
    },
    "Use": {
        "fit": "Train a private model on a file of ratings.",
        "blocks": "Write ratings larger than memory to a folder of blocks, to train on.",
        "split": "Split a file of ratings into a training file and a test file.",
        "evaluate": "Measure how well a model predicts ratings that it has not seen.",
        "recommend": "Recommend items to every user of a file.",
        "similar": "Show the items that are most similar to an item.",
        "statement": "Print the privacy statement of a model.",
        "ledger": "Show, verify or limit what is spent on each data set.",
    },
    "Before you have data": {
        "plan": "Estimate the accuracy to expect, without touching any data.",
        "simulate": "Write simulated ratings to a file.",
        "datasets": "List the data sets known by name, or download one.",
    },
    "Science": {
        "reproduce": "Rerun tables and figures of the paper.",
        "audit": "Try to break the privacy promise of a method, on simulated data.",
    },
    "Help": {
        "doctor": "Check that this installation works.",
        "completion": "Set up Tab completion of commands, options and files.",
    },
}
"""Every command with its line in ``dpals --help``. Each command is in the module of the same name."""


class _Commands(click.Group):
    """Commands that are imported on first use, so that ``dpals --help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [name for section in _SECTIONS.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        from importlib import import_module

        command: click.Command = import_module(f"dpals.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as mistake:
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not close:
                raise
            raise click.UsageError(f"{mistake.message} Did you mean {close[0]!r}?", ctx) from mistake

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for section, commands in _SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:{width}}", text) for name, text in commands.items()])


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from dpals import __version__

        echo(f"dpals {__version__}")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
def dpals() -> None:
    """Train recommenders from people's ratings without exposing any person.

    Start with `dpals quickstart`. Every command explains itself with --help.
    """


def main() -> None:
    """Run the command. Exit codes: 0 done, 1 the work failed, 2 the command was wrong."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        sys.exit(dpals(prog_name="dpals", standalone_mode=False))
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as mistake:
        message = StringIO()
        mistake.show(message)
        echo(message.getvalue(), err=True, nl=False)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        echo("Stopped.", err=True)
        sys.exit(1)
    except Exception as problem:
        from dpals.cli.problems import in_one_sentence

        sentence = in_one_sentence(problem)
        if sentence is None:  # a bug: show its trace
            from traceback import format_exc

            sentence = format_exc()
        echo(f"Error: {sentence}", err=True)
        sys.exit(1)


def _stop(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    """Treat SIGTERM like Ctrl-C: whatever is half done is undone."""
    raise KeyboardInterrupt
