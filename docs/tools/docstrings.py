"""What docstrings need before they are Markdown: tables, and parameters that share a sentence."""

import re
from typing import Any

import griffe

TABLE = re.compile(r"^(=+)( +)=+ *\n((?:(?!=).*\n)+)=+ +=+ *$", re.MULTILINE)
SHARED = re.compile(r"^(\w+(?:, \w+)+)\n((?: +.+\n?)+)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Tables between lines of = signs become Markdown tables; "low, high" become two parameters.

    The latter because griffe would give all names in one line the type and the default of the first.
    """

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for everything that may have a docstring."""
        if obj.docstring is not None:
            text = TABLE.sub(_markdown, obj.docstring.value)
            obj.docstring.value = SHARED.sub(_one_by_one, text)


def _markdown(found: re.Match[str]) -> str:
    split = len(found[1]) + len(found[2])
    rows = [(line[:split].strip(), line[split:].strip()) for line in found[3].splitlines()]
    return "\n".join(["| | |", "|---|---|", *(f"| {case} | {result} |" for case, result in rows)])


def _one_by_one(found: re.Match[str]) -> str:
    sentence = found[2].rstrip("\n") + "\n"
    return "".join(f"{name}\n{sentence}" for name in found[1].split(", "))
