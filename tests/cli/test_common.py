"""Options that several commands share, and what the commands print."""

import json
import logging

import click
import pytest
from click.testing import CliRunner

from dpals.cli import common, dpals

COMMANDS = [dpals.get_command(click.Context(dpals), name) for name in dpals.list_commands(click.Context(dpals))]


def read_with(*arguments):
    """What a command gets from the options about reading."""

    @click.command()
    @common.reading_options
    def command(**options):
        common.print_json(options)

    return CliRunner().invoke(command, arguments)


def test_reading_options():
    found = json.loads(read_with("--columns", "who, what ,stars", "--separator", "tab", "--user", "who").output)
    assert found == {
        "columns": ["who", "what", "stars"],
        "separator": "\t",
        "user": "who",
        "item": None,
        "rating": None,
        "timestamp": None,
        "ids": "auto",
        "on_bad_rows": "error",
    }
    assert json.loads(read_with("--separator", "\\t").output)["separator"] == "\t"
    assert json.loads(read_with("--separator", ";").output)["separator"] == ";"
    assert read_with("--on-bad-rows", "ignore").exit_code == 2


@pytest.mark.parametrize("name", ["--delta", "--rating-range", "--json", "--quiet", "--history", "--on-bad-rows"])
def test_an_option_is_the_same_in_every_command(name):
    """Same default, same help, same type; `dpals ledger` has commands of its own."""
    found = [option for command in COMMANDS for option in command.params if name in option.opts]
    assert len(found) > 1
    first = found[0].to_info_dict()
    assert [option.to_info_dict() for option in found] == [first] * len(found)


def test_messages_go_to_standard_error(capsys):
    common.messages(quiet=False).print("reading")
    common.messages(quiet=True).print("not shown")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "reading\n")


def test_warnings_of_the_library_are_shown(capsys):
    logger = logging.getLogger("dpals")
    with common.warnings_shown():
        logger.warning("many users are known")
        logger.info("a step")
    assert capsys.readouterr().err == "Warning: many users are known.\n"
    assert logger.handlers == []
