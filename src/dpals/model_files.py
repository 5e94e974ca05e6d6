"""A model's folder: model.json and one safetensors file, replaced as a whole and refused where damaged."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dpals.errors import InputError
from dpals.files import write_whole

FORMAT = 1
_FACTS = "model.json"


def write_model(folder: Path, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> None:
    """Write arrays and facts so that an interruption leaves the model from before or the new one, whole.

    The arrays go first, under a name made of their contents; model.json, which says the name, is then put in
    place in one step, and arrays that it no longer needs are removed.
    """
    from safetensors.numpy import save

    stored = save(arrays)
    digest = hashlib.sha256(stored).hexdigest()
    described = json.dumps({"format": FORMAT, "sha256": digest, **facts}, indent=1, ensure_ascii=False, allow_nan=False)
    folder.mkdir(parents=True, exist_ok=True)
    place, older = folder / _arrays_file(digest), set(folder.glob(_arrays_file("*")))
    try:
        write_whole(place, stored)
        write_whole(folder / _FACTS, described.encode())
    except OSError:
        if place not in older:
            place.unlink(missing_ok=True)
        raise
    for unneeded in older - {place}:
        unneeded.unlink(missing_ok=True)


def read_model(folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and facts that `write_model` wrote; InputError where the folder holds anything else."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    facts, stored = _read(folder)
    try:
        return load(stored), facts
    except SafetensorError as problem:
        raise InputError(f"the model in {folder} is damaged: {problem}") from problem


def _arrays_file(digest: str) -> str:
    return f"arrays-{digest[:16]}.safetensors"


def _read(folder: Path) -> tuple[dict[str, Any], bytes]:
    """The facts and the arrays that belong to them."""
    try:
        facts = json.loads((folder / _FACTS).read_bytes())
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            raise InputError(f"{folder} was not written by this version of dpals: its format is not {FORMAT}")
        digest = str(facts.get("sha256"))
        if not re.fullmatch("[0-9a-f]{64}", digest):
            raise InputError(f"{folder / _FACTS} is damaged: it does not say which arrays are its own")
        stored = (folder / _arrays_file(digest)).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise InputError(f"{folder} is not a model folder: {Path(problem.filename).name} is missing") from problem
    except (json.JSONDecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{folder / _FACTS} is damaged: {problem}") from problem
    if hashlib.sha256(stored).hexdigest() != digest:
        raise InputError(f"{folder / _arrays_file(digest)} is damaged, or belongs to another model")
    return facts, stored
