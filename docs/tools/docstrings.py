"""Makes Markdown of the plain-text tables in docstrings."""

import re
from typing import Any

import griffe

TABLE = re.compile(r"^(=+)( +)=+ *\n((?:(?!=).*\n)+)=+ +=+ *$", re.MULTILINE)


class Tables(griffe.Extension):
    """Tables between lines of = signs become Markdown tables."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for everything that has a docstring."""
        if obj.docstring is not None:
            obj.docstring.value = TABLE.sub(_markdown, obj.docstring.value)


def _markdown(found: re.Match[str]) -> str:
    split = len(found[1]) + len(found[2])
    rows = [(line[:split].strip(), line[split:].strip()) for line in found[3].splitlines()]
    return "\n".join(["| | |", "|---|---|", *(f"| {case} | {result} |" for case, result in rows)])
