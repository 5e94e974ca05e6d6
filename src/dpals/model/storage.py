"""A model's folder: model.json, one safetensors file and the statement, replaced as a whole, refused if damaged."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from dpals import __version__
from dpals.errors import InputError
from dpals.private.frank_wolfe import FrankWolfeSteps
from dpals.statement.record import Statement
from dpals.system.files import draft, remove_drafts, write_whole

if TYPE_CHECKING:
    from dpals.model.factor_model import FactorModel

FORMAT = 2  # folders of format 1 have no history factors
ARRAYS = ("item_factors", "item_biases", "is_trained")
OPTIONAL_ARRAYS = ("history_factors",)
NUMBERS = ("global_mean", "user_ridge", "user_exponent", "user_bias_ridge", "unseen_weight")
FACTS = (*NUMBERS, "rating_range", "log_odds")
_DESCRIPTION, _PAGE = "model.json", "statement.html"
_DRAFTED = r"model\.json|statement\.html|arrays-[0-9a-f]{16}\.safetensors"


def write_model(folder: Path, model: "FactorModel") -> None:
    """Write a model so that an interruption leaves either the old model or the new one, complete.

    The arrays are written first, under a name made of their contents. Then model.json, which refers to that name, is
    put in place in one step, and arrays that it no longer needs are removed. The page with the statement is removed
    before that step and written last, so that it never belongs to another model.
    """
    from safetensors.numpy import save

    arrays = {name: getattr(model, name) for name in (*ARRAYS, *OPTIONAL_ARRAYS)}
    stored = save({name: array for name, array in arrays.items() if array is not None})
    digest = hashlib.sha256(stored).hexdigest()
    described = _described(model, digest)
    folder.mkdir(parents=True, exist_ok=True)
    place, older = folder / _arrays_file(digest), set(folder.glob(_arrays_file("*")))
    try:
        write_whole(place, stored)
        with draft(folder / _DESCRIPTION) as description:
            description.write_bytes(described)
            (folder / _PAGE).unlink(missing_ok=True)
    except BaseException:
        if place not in older and not _belongs(folder, digest):
            place.unlink(missing_ok=True)
        raise
    for unneeded in older - {place}:
        unneeded.unlink(missing_ok=True)
    remove_drafts(folder, _DRAFTED)
    if model.privacy is not None:
        write_whole(folder / _PAGE, model.privacy.to_html().encode())


def read_model(folder: Path) -> dict[str, Any]:
    """The constructor's arguments of a model that `write_model` wrote; InputError if the folder holds anything else."""
    facts, arrays = _read(folder)
    with damage_reported(folder):
        privacy, steps = facts["privacy"], facts["replay"]
        settings = facts.get("settings")  # earlier versions of dpals did not write them
        return {
            **{name: arrays[name] for name in ARRAYS},
            **{name: arrays.get(name) for name in OPTIONAL_ARRAYS},
            **{name: facts[name] for name in ("items", *FACTS)},
            "frank_wolfe_steps": None if steps is None else FrankWolfeSteps.from_dict(steps),
            "privacy": None if privacy is None else Statement.from_json(json.dumps(privacy)),
            "settings": None if settings is None else dict(settings),
        }


@contextmanager
def damage_reported(folder: Path) -> Iterator[None]:
    """Name the folder of the model if something in it is missing or wrong."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise InputError(f"the model in {folder} is damaged: {problem}") from problem


def _described(model: "FactorModel", digest: str) -> bytes:
    """The content of model.json. Its last entry is a checksum of the others."""
    facts = {
        "format": FORMAT,
        "dpals": __version__,
        "sha256": digest,
        **{name: getattr(model, name) for name in FACTS},
        "replay": None if model.frank_wolfe_steps is None else model.frank_wolfe_steps.to_dict(),
        "privacy": None if model.privacy is None else json.loads(model.privacy.to_json()),
        "settings": model.settings,
        "items": model.items.tolist(),
    }
    facts["checksum"] = _checksum(facts)
    return json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False).encode()


def _checksum(facts: dict[str, Any]) -> str:
    """A hash of all entries but the checksum itself, whatever their order and spacing."""
    others = {name: value for name, value in facts.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


def _belongs(folder: Path, digest: str) -> bool:
    """Whether model.json is in place and refers to arrays with this digest."""
    file = folder / _DESCRIPTION
    return file.exists() and digest.encode() in file.read_bytes()


def _arrays_file(digest: str) -> str:
    return f"arrays-{digest[:16]}.safetensors"


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The content of model.json, and the arrays that belong to it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        facts = _read_description(folder)
        digest = facts["sha256"]
        stored = (folder / _arrays_file(digest)).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise InputError(f"{folder} is not a model folder: {Path(problem.filename).name} is missing") from problem
    if hashlib.sha256(stored).hexdigest() != digest:
        raise InputError(f"{folder / _arrays_file(digest)} is damaged, or belongs to another model")
    try:
        return facts, load(stored)
    except SafetensorError as problem:
        raise InputError(f"the model in {folder} is damaged: {problem}") from problem


def _read_description(folder: Path) -> dict[str, Any]:
    """The content of model.json, if this version can read its format and it is undamaged."""
    file = folder / _DESCRIPTION
    try:
        facts = json.loads(file.read_bytes())
    except (json.JSONDecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{file} is damaged: {problem}") from problem
    written = facts.get("format") if isinstance(facts, dict) else None
    if isinstance(written, int) and written > FORMAT:
        raise InputError(
            f"{folder} was written by a newer version of dpals (format {written}; this one reads formats up to "
            f"{FORMAT}): update dpals"
        )
    if written not in range(1, FORMAT + 1):
        raise InputError(
            f"{file} was not written by dpals: its format is unknown (this version reads formats up to {FORMAT})"
        )
    if facts.get("checksum") != _checksum(facts):
        raise InputError(f"{file} is damaged, or was edited: its checksum is wrong. Save the model again")
    if not re.fullmatch("[0-9a-f]{64}", str(facts.get("sha256"))):
        raise InputError(f"{file} is damaged: it does not say which arrays belong to it")
    return dict(facts)
