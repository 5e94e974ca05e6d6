"""What docstrings need before they are Markdown: tables, parameters that share a sentence, parameters of methods."""

import inspect
import re
from importlib import import_module
from typing import Any

import griffe

from dpals.methods.base.parameters import Parameters

TABLE = re.compile(r"^(=+)( +)=+ *\n((?:(?!=).*\n)+)=+ +=+ *$", re.MULTILINE)
SHARED = re.compile(r"^(\w+(?:, \w+)+)\n((?: +.+\n?)+)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Tables between lines of = signs become Markdown tables; "low, high" become two parameters.

    The latter because griffe would give all names in one line the type and the default of the first. Methods declare
    their parameters, and have their constructor and a part of their docstring only once they are loaded.
    """

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for everything that may have a docstring."""
        if isinstance(obj, griffe.Class) and obj.docstring is not None:
            _take_parameters(obj, obj.docstring)
        if obj.docstring is not None:
            text = TABLE.sub(_markdown, obj.docstring.value)
            obj.docstring.value = SHARED.sub(_one_by_one, text)


def _take_parameters(cls: griffe.Class, docstring: griffe.Docstring) -> None:
    """Docstring and constructor of a class that declares its parameters, as Python has them."""
    if not cls.path.startswith("dpals.methods."):
        return
    method = getattr(import_module(cls.module.path), cls.name, None)
    if not (isinstance(method, type) and issubclass(method, Parameters)):
        return
    docstring.value = inspect.getdoc(method) or ""
    parameters = [
        griffe.Parameter(
            name,
            annotation=None if found.annotation is found.empty else _type(found.annotation),
            kind=griffe.ParameterKind(found.kind.description),
            default=None if found.default is found.empty else repr(found.default),
        )
        for name, found in inspect.signature(method.__init__).parameters.items()
    ]
    cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*parameters), returns="None"))


def _type(annotation: Any) -> str:
    """Without the modules that its parts are from."""
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", inspect.formatannotation(annotation))


def _markdown(found: re.Match[str]) -> str:
    split = len(found[1]) + len(found[2])
    rows = [(line[:split].strip(), line[split:].strip()) for line in found[3].splitlines()]
    return "\n".join(["| | |", "|---|---|", *(f"| {case} | {result} |" for case, result in rows)])


def _one_by_one(found: re.Match[str]) -> str:
    sentence = found[2].rstrip("\n") + "\n"
    return "".join(f"{name}\n{sentence}" for name in found[1].split(", "))
