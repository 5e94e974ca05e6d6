"""The page on the model folder does what it says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "model_format.md"


def test_the_examples_run_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    namespace: dict[str, object] = {}
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) > 6
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), namespace)
