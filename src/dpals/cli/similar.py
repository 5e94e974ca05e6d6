"""``dpals similar``: items that are similar to an item."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpals.cli.common import count_option, json_option, model_argument, print_json
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.model.factor_model import FactorModel


@click.command("similar")
@model_argument
@click.argument("item")
@count_option(10, "Number of items to show.")
@json_option
def command(model: Path, item: str, k: int, as_json: bool) -> None:
    """Show the items of MODEL that are most similar to ITEM, with the cosine similarity of their factors.

    The list comes from the model alone and may be shown to anyone. Items that the model has learned nothing about are
    left out.

    \b
    Examples:
        dpals similar model/ 50
        dpals similar model/ Casablanca -k 5 --json

    Put `--` before an ITEM that begins with a dash: dpals similar model/ -- -7
    """
    from dpals.model.factor_model import load

    loaded = load(model)
    if loaded.rank < 2:
        holds = "biases and no factors" if loaded.rank == 0 else "one factor"
        raise ValueError(f"{model} holds {holds}, too little to say which items are similar")
    ids, cosines = loaded.similar_items(_id_of(item, loaded), k)
    if as_json:
        rows = zip(ids.tolist(), cosines.tolist(), strict=True)
        print_json([{"item": name, "cosine": round(cosine, 6)} for name, cosine in rows])
        return
    for name, cosine in zip(ids.tolist(), cosines.tolist(), strict=True):
        echo(f"{cosine:7.4f}  {name}")


def _id_of(item: str, model: "FactorModel") -> Any:
    """The id of the item, an integer or text as in the catalogue."""
    from dpals.data.ids import is_text, positions

    known = model.items.tolist()
    if is_text(model.items):
        import numpy as np

        if positions(model.items, np.array([item], model.items.dtype))[0] >= 0:
            return item
        raise ValueError(f"the model has no item {item!r}. {_advice(item, known)}")
    try:
        number = int(item)
    except ValueError:
        raise ValueError(
            f"the ids of items are integers in this model, such as {known[0]}, and {item!r} is not"
        ) from None
    if number not in known:
        raise ValueError(f"the model has no item {number}. Its items are integers from {min(known)} to {max(known)}")
    return number


def _advice(item: str, known: list[str]) -> str:
    """Suggest ids that are spelled nearly the same, or contain the text."""
    from difflib import get_close_matches

    lower: dict[str, str] = {}
    for name in known:
        lower.setdefault(name.lower(), name)
    close = get_close_matches(item.lower(), lower, n=3) or [name for name in lower if item.lower() in name][:3]
    if close:
        return f"Did you mean {' or '.join(repr(lower[name]) for name in close)}?"
    return f"Its ids look like {', '.join(map(repr, known[:3]))}"
