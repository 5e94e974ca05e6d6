"""The proof names its code, and the code its step of the proof; the trusted base is as long as the proof says.

Run as a program, this file writes the measured line counts into docs/privacy.md.
"""

import ast
import io
import pkgutil
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

import dpals

SOURCE = Path(dpals.__file__).parent
PROOF = SOURCE.parents[1] / "docs" / "privacy.md"
STEP = re.compile(r'^### (\d+)\. .+ <a id="step-(\d+)"></a>$', re.MULTILINE)
ROW = re.compile(r"^\| `([\w/.]+)` \| ([\d,]+) \|", re.MULTILINE)
GUARANTEE = re.compile(r"Formal guarantee(?: \(docs/privacy\.md, step (\d+)\))?")
PROVES_NOTHING = "audit"
"""The audit tries to break the promise: its guarantees are about its own findings."""
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def proof() -> dict[int, list[str]]:
    """The steps of the proof, and the functions and classes that each names as its code."""
    pieces = STEP.split(PROOF.read_text())[1:]
    steps = {}
    for number, anchor, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        assert number == anchor, f"step {number} has the anchor of step {anchor}"
        named = re.search(r"^Code: (.+?)\.$", text, re.MULTILINE | re.DOTALL)
        assert named, f"step {number} names no code"
        steps[int(number)] = re.findall(r"`([\w.]+)`", named[1])
    return steps


def documented(path: Path) -> Iterator[tuple[str, str]]:
    """Dotted names below dpals of everything in a file that has a docstring, and the docstrings."""
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)

    def inside(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield name, ast.get_docstring(node) or ""
            for child in node.body:
                yield from inside(child, f"{name}.{getattr(child, 'name', '')}")

    return inside(ast.parse(path.read_text()), module)


def resolved(name: str) -> object:
    """What a dotted name below dpals stands for."""
    return pkgutil.resolve_name(f"dpals.{name}")


def test_the_steps_are_numbered_without_a_gap():
    assert list(proof()) == list(range(1, len(proof()) + 1))


@pytest.mark.parametrize(("step", "name"), [(step, name) for step, names in proof().items() for name in names])
def test_what_a_step_names_exists_and_names_the_step(step, name):
    found = resolved(name)
    words = " ".join((found.__doc__ or "").split())
    assert f"docs/privacy.md, step {step}" in words, f"the docstring of {name} does not name its step of the proof"


def test_every_formal_guarantee_names_a_step_that_names_it():
    steps, missing = proof(), []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] == PROVES_NOTHING:
            continue
        for name, words in documented(path):
            for step in GUARANTEE.findall(" ".join(words.split())):
                if not step:
                    missing.append(f"{name} names no step: write 'Formal guarantee (docs/privacy.md, step N): ...'")
                elif name not in steps.get(int(step), ()):
                    missing.append(f"{name} names step {step}, whose line 'Code:' in docs/privacy.md does not name it")
    assert missing == []


def code_lines(path: Path) -> int:
    """Lines of code in a file, or in all files of a folder, without docstrings, comments and blank lines."""
    if path.is_dir():
        return sum(map(code_lines, path.rglob("*.py")))
    source = path.read_text()
    strings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            strings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - strings)


def counted(text: str) -> str:
    """The page with measured line counts."""
    return ROW.sub(lambda row: f"| `{row[1]}` | {code_lines(SOURCE / row[1]):,} |", text)


def test_lines_of_code_are_counted(tmp_path):
    path = tmp_path / "example.py"
    path.write_text(
        '"""Words,\nmore words."""\n\nimport os  # a comment\n\n# another\nx = """a\nb"""\n"""About x."""\n\n\n'
        'def f(\n    a,\n):\n    """Words."""\n    return a\n'
    )
    assert code_lines(path) == 1 + 2 + 3 + 1
    assert code_lines(tmp_path) == code_lines(path)


def test_the_trusted_base_is_as_long_as_the_proof_says():
    text = PROOF.read_text()
    assert len(ROW.findall(text)) > 20
    table = "\n".join(line for line in counted(text).splitlines() if ROW.match(line))
    advice = f"run `python tests/privacy/test_trusted_base.py`, or write:\n{table}"
    assert counted(text) == text, advice


def test_nothing_that_the_release_zone_or_the_ledger_imports_is_missing():
    """Each module has a row of its own; those of the statement are together."""
    rows = {name for name, _ in ROW.findall(PROOF.read_text())}
    graph = grimp.build_graph("dpals", cache_dir=None)
    inside = {module for module in graph.modules if module.startswith(("dpals.release.", "dpals.ledger."))}
    needed = inside.union(*(graph.find_upstream_modules(module) for module in inside))
    files = {f"{module.removeprefix('dpals.').replace('.', '/')}.py" for module in needed}
    missing = {file for file in files if (SOURCE / file).exists() and code_lines(SOURCE / file)} - rows
    assert missing == set(), "the trusted base in docs/privacy.md has no row for these"


if __name__ == "__main__":
    PROOF.write_text(counted(PROOF.read_text()))
