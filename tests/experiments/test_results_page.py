"""The page of results: every experiment is on it, and what it shows is there."""

import re
from pathlib import Path

import pytest

from dpals.experiments import NAMES, find

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_is_on_the_page_and_as_it_is_now(name):
    page, own = (DOCS / "results.md").read_text(), (DOCS / "results" / name / "README.md").read_text()
    assert f"`dpals reproduce {name}`" in page
    assert f"(results/{name}/README.md)" in page
    for text in (page, own):
        assert find(name).claim in text
    findings = own.split("**Measured:**")[1].split("![")[0].strip()
    assert findings in page


def test_pictures_are_there():
    shown = re.findall(r"\]\((results/\S+)\)", (DOCS / "results.md").read_text())
    assert len(shown) > 2 * len(NAMES)
    assert [path for path in shown if not (DOCS / path).exists()] == []
