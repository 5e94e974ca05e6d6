"""``dpals completion``: completion in the shell."""

import click

from dpals.system.terminal import echo

_INSTALL = {
    "bash": """eval "$(dpals completion bash)"  in ~/.bashrc""",
    "zsh": """eval "$(dpals completion zsh)"  in ~/.zshrc, below compinit""",
    "fish": "dpals completion fish > ~/.config/fish/completions/dpals.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_INSTALL)))
def command(shell: str) -> None:
    """Print a script with which the Tab key completes the commands, options and files of dpals in your shell.

    To load it in every new shell:

    \b
        bash    eval "$(dpals completion bash)"  in ~/.bashrc
        zsh     eval "$(dpals completion zsh)"  in ~/.zshrc, below compinit
        fish    dpals completion fish > ~/.config/fish/completions/dpals.fish
    """
    from click.shell_completion import get_completion_class

    from dpals.cli import dpals

    kind = get_completion_class(shell)
    assert kind is not None
    echo(f"# To load this in every new shell: {_INSTALL[shell]}")
    echo(kind(dpals, {}, "dpals", "_DPALS_COMPLETE").source())
