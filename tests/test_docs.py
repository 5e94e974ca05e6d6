"""The documentation runs, its numbers are those of the code, and it builds."""

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dpals
from dpals.release import accounting, selection
from dpals.release.selection import tries_distribution

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(ROOT) for path in (ROOT / "README.md", *DOCS.rglob("*.md")))
BLOCK = re.compile(r"^( *)```(python|console)\n(.*?)^\1```\n(?:\s*^\1```text\n(.*?)^\1```$)?", re.MULTILINE | re.DOTALL)
FILMS = ["Casablanca", "Alien", "Amélie", "Metropolis", "Vertigo", "Rashomon", "Tampopo", "Paprika", "Heat", "Fargo"]
PEOPLE = ["ann", "bob", "eve"]
TERMS = """user-level, joint differential privacy, neighbouring data sets, mechanism, query, sensitivity, contribution,
clipping, release, noise, accountant, mu, epsilon, delta, budget, ledger, reservation, receipt, checkpoint, statement,
public facts, catalogue, implicit feedback, co-occurrence, prior, evidence, damping, canary, membership attack, block,
population, engine, zone, seeded noise"""
DELTA = 1e-5
COLUMNS = [("geometric", 3), ("geometric", 10), ("geometric", 100), ("logarithmic", 10), ("poisson", 10)]


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Language and text of the blocks of a page that run, and the text block that comes right after each, if any.

    Texts of Python begin with as many empty lines as there are before them in the page, so that errors tell where.
    """
    page_text = page.read_text()
    found = []
    for block in BLOCK.finditer(page_text):
        margin, language, text, shown = (part or "" for part in block.groups())
        lines_before = page_text.count("\n", 0, block.start(3)) if language == "python" else 0
        found.append((language, "\n" * lines_before + _unindented(text, len(margin)), _unindented(shown, len(margin))))
    return found


def _unindented(text: str, margin: int) -> str:
    return "".join(line[margin:] for line in text.splitlines(keepends=True))


PAGES_THAT_RUN = [page for page in PAGES if blocks(ROOT / page)]


@pytest.fixture(scope="session")
def example() -> pl.DataFrame:
    """Ratings of people and films with names, simulated."""
    ratings = dpals.simulate.movielens_like(n_users=2_000, n_items=60, mean_ratings=25, seed=3)
    users = np.array([*PEOPLE, *(f"person {number}" for number in range(len(PEOPLE), ratings.n_users))])
    films = np.array([*FILMS, *(f"Film {number}" for number in range(len(FILMS), ratings.n_items))])
    return pl.DataFrame({"user": users[ratings.rows], "film": films[ratings.indices], "rating": ratings.values})


@pytest.fixture
def desk(tmp_path: Path, example: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages speak of, to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPALS_CACHE", str(tmp_path / "cache"))
    films = example["film"].unique(maintain_order=True)
    example.rename({"film": "item"}).write_csv("ratings.csv")
    example.select("user", item="film").write_csv("clicks.csv")
    Path("films.txt").write_text("\n".join(films))
    example.rename({"film": "item"}).filter(pl.col("user").is_in(PEOPLE)).write_csv("today.csv")
    return tmp_path


@pytest.fixture
def no_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated ratings in place of MovieLens; tests/data/datasets is about the real loading."""

    def load(*_: object, **__: object) -> dpals.Ratings:
        return dpals.simulate.movielens_like(n_users=2_000, n_items=60, mean_ratings=25)

    monkeypatch.setattr(dpals.datasets, "load", load)


@pytest.fixture
def quiet_again() -> Iterator[None]:
    """A page may ask for log messages."""
    yield
    logging.getLogger("dpals").setLevel(logging.NOTSET)


@pytest.mark.usefixtures("no_downloads", "quiet_again")
@pytest.mark.parametrize("page", PAGES_THAT_RUN, ids=str)
def test_every_example_runs(page: Path, desk: Path) -> None:
    if page.name == "tour.md":  # it starts with nothing
        for file in desk.iterdir():
            file.unlink()
    names: dict[str, object] = {}
    for language, text, shown in blocks(ROOT / page):
        if language == "python":
            with redirect_stdout(StringIO()) as printed:
                exec(compile(text, str(page), "exec"), names)
            assert shown in ("", printed.getvalue())
        else:
            for line in commands(text):
                run(line)


def commands(text: str) -> Iterator[str]:
    """The lines that a person types."""
    for line in text.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            yield line.removeprefix("$ ")


def run(line: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_blocks_are_found() -> None:
    """Blocks are marked as one of the languages that the tests know, and those that look like commands run."""
    for page in PAGES:
        text = (ROOT / page).read_text()
        assert set(re.findall(r"^ *```(\w+)", text, re.MULTILINE)) <= {"python", "console", "text"}, page
        for language, block, _ in blocks(ROOT / page):
            assert language == "python" or list(commands(block)), page


def test_the_reference_has_every_public_name() -> None:
    pages = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    documented = set(re.findall(r"^::: dpals\.(\w+)$", pages, re.MULTILINE))
    assert documented == set(dpals.__all__)


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="?(https?://[^">\s]+)', page.read_text())
        assert not loaded, f"{page} needs the network"
    assert "dpals ledger verify" in (tmp_path / "reference" / "command.html").read_text()


def table(page: str, first_cell: str) -> list[list[str]]:
    """The rows of a table, found by the head of its first column."""
    lines = (DOCS / page).read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first_cell} |")) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def percent(share: float) -> str:
    """A share with one digit, rounded up as in the privacy statement."""
    return f"{np.ceil(1000 * share) / 10:.1f} %"


def test_what_epsilon_means_for_a_person() -> None:
    rows = table("guide/epsilon.md", "epsilon")
    assert len(rows) == 8
    for epsilon, *shares, _ in rows:
        mu = accounting.mu(float(epsilon), 1e-6)
        assert shares == [percent(accounting.attack_power(mu, alarms)) for alarms in (0.01, 0.05)]


def test_what_runs_add_up_to() -> None:
    rows = table("guide/budgets.md", "runs")
    assert len(rows) == 5
    for runs, epsilon, share in rows:
        mu = accounting.compose([accounting.mu(1.0, 1e-6)] * int(runs))
        assert float(epsilon) == pytest.approx(accounting.epsilon(mu, 1e-6) + 0.005, abs=0.005001)  # rounded up
        assert share == percent(accounting.attack_power(mu, 0.01))


def test_a_year_of_runs_is_within_its_budget() -> None:
    text = (DOCS / "guide" / "budgets.md").read_text()
    for runs, epsilon in ((12, "0.52"), (4, "0.94")):
        assert f" {epsilon}" in text
        each = float(epsilon)
        for value, fits in ((each, True), (each + 0.01, False)):
            spent = accounting.compose([accounting.mu(value, 1e-6)] * runs)
            assert (spent <= accounting.mu(2.0, 1e-6)) == fits


def test_every_pitfall_has_an_owner() -> None:
    text = (DOCS / "pitfalls.md").read_text()
    owners = {}
    for heading, body in re.findall(r"^### (.*)\n\n(.*)", text, re.MULTILINE):
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        owner = re.match(r"\*\*Owner: (.*?)\.\*\*", body)
        assert owner, heading
        owners[f"#{anchor}"] = owner[1]
    listed = {
        link: owner for text, owner in table("pitfalls.md", "pitfall") for link in re.findall(r"\((#.*?)\)", text)
    }
    assert listed == owners


def test_the_glossary_explains_the_words() -> None:
    """Each word once."""
    entries = re.findall(r"^\* \*\*(.*?)\*\*", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    explained = [word.lower() for entry in entries for word in entry.split(", ")]
    assert len(set(explained)) == len(explained)
    assert set(re.split(r",\s", TERMS)) <= set(explained)


def test_the_tables_of_one_round_name_functions_that_exist() -> None:
    text = (DOCS / "layout.md").read_text()
    steps = re.findall(r"\| `(\w+)` \| `([\w/]+\.py)` \|", text)
    assert len(steps) > 20
    for function, file in steps:
        assert re.search(rf"^ *def {function}\(", (ROOT / "src" / "dpals" / file).read_text(), re.MULTILINE), function
    for file in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (ROOT / file).is_file(), file


def test_the_costs_of_a_search() -> None:
    rows = [[float(cell) for cell in row] for row in table("private_search.md", "one try")]
    assert len(rows) == 5
    for one, *totals, by_renyi in rows:
        mu = accounting.mu(one, DELTA)
        found = [selection.epsilon(mu, DELTA, tries_distribution(name, mean)) for name, mean in COLUMNS]
        assert totals == pytest.approx(found, abs=0.006)
        assert by_renyi == pytest.approx(selection._by_renyi(mu, DELTA, tries_distribution("geometric", 10)), abs=0.006)
