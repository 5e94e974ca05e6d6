"""The command ``dpals``."""

import sys

import click


class _Commands(click.Group):
    """Commands that are imported when they are called, so that ``dpals --help`` is quick."""

    modules = {  # noqa: RUF012, read-only
        "datasets": "List the data sets known by name, or download one.",
        "doctor": "Check that this installation works.",
        "fit": "Train a private model on a file of ratings.",
        "ledger": "Show or verify what was spent on which data set.",
        "plan": "Show what accuracy to expect, without touching data.",
        "quickstart": "Simulate ratings, train a private model, print its privacy statement.",
        "reproduce": "Rerun tables and figures of the paper.",
        "simulate": "Write simulated ratings to a file.",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self.modules:
            return None
        from importlib import import_module

        command: click.Command = import_module(f"dpals.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(self.modules.items()))


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from dpals import __version__

        click.echo(f"dpals {__version__}")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
def _dpals() -> None:
    """Train recommenders from people's ratings without exposing any person.

    Start with `dpals quickstart`.
    """


def main() -> None:
    """Run the command. Exit codes: 0 done, 1 the work failed, 2 the command was wrong."""
    try:
        sys.exit(_dpals(standalone_mode=False))
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as mistake:
        mistake.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        sys.exit(1)
    except (OSError, RuntimeError, ValueError) as problem:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(1)
