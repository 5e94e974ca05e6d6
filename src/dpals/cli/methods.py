"""Methods as they are called on the command line, and how to make one from its options."""

import ast
from typing import TYPE_CHECKING, Any

import click

from dpals.methods.base import registry

if TYPE_CHECKING:
    from dpals.methods.base.estimator import Estimator

PRIVATE_CHOICES = {method.command: method.name for method in registry.METHODS if method.command and method.private}
NOT_PRIVATE_CHOICES = {
    method.command: method.name for method in registry.METHODS if method.command and not method.private
}

settings_option = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="An argument of the method; repeatable."
)


def estimator_of(method: str, epsilon: float | None, delta: float, settings: tuple[str, ...]) -> "Estimator":
    """The method with its arguments, or a usage error."""
    import dpals

    arguments: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise click.UsageError(f"--set takes NAME=VALUE, for example --set rank=16, not {setting!r}")
        if name in ("epsilon", "delta"):
            raise click.UsageError(f"give {name} as --{name} {value}, not with --set")
        arguments[name] = _value(value)
    if method in NOT_PRIVATE_CHOICES:
        if epsilon is not None:
            raise click.UsageError(f"{method} is not private, so --epsilon has no meaning: leave it out")
    else:
        arguments = {"epsilon": required_epsilon(epsilon), "delta": delta, **arguments}
    method_class = getattr(dpals, {**PRIVATE_CHOICES, **NOT_PRIVATE_CHOICES}[method])
    try:
        estimator: Estimator = method_class().set_params(**arguments)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    return estimator


def required_epsilon(epsilon: float | None) -> float:
    """The epsilon, or a usage error if it was not given: it has no default."""
    if epsilon is None:
        raise click.UsageError(
            "say how much privacy to spend with --epsilon: smaller is more private, and 1 is a good start "
            "(`dpals plan` shows what accuracy to expect)"
        )
    return epsilon


def _value(text: str) -> Any:
    """A number, True, False or None where it looks like one, and text otherwise."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
