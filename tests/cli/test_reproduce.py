"""``dpals reproduce`` as a process."""

from tests.cli.conftest import run


def test_reproduce_lists_its_names():
    shown = run("reproduce", "--list").stdout
    assert "frontier" in shown
    assert "tradeoff-synthetic" in shown


def test_reproduce_writes_what_it_found_and_remembers_it(tmp_path):
    for said in ("", "12 of 12 cells were measured before"):
        result = run("reproduce", "accounting", "-o", "out", cwd=tmp_path)
        assert result.returncode == 0
        assert "keep what is printed" in result.stdout
        assert said in result.stdout
    assert sorted(path.name for path in (tmp_path / "out" / "accounting").iterdir()) == [
        "README.md",
        "accounting.png",
        "table.csv",
    ]


def test_reproduce_on_a_file_of_ones_own(tmp_path):
    """It is used where it can be; where not, the command says so; a range that is missing ends it before anything."""
    assert run("simulate", "own.csv", "--users", 300, "--items", 200, cwd=tmp_path).returncode == 0
    result = run("reproduce", "count-distribution", "--data", "own.csv", cwd=tmp_path)
    assert result.returncode == 1
    assert "need --rating-range LOW HIGH" in result.stderr
    own = ("--data", "own.csv", "--rating-range", 0.5, 5)
    result = run("reproduce", "count-distribution", "accounting", *own, cwd=tmp_path)
    assert result.returncode == 0
    assert "own.csv: the top tenth" in result.stdout
    assert "accounting has data of its own: --data is ignored" in result.stdout
    assert "count-distribution has data of its own" not in result.stdout
    page = (tmp_path / "results" / "count-distribution" / "README.md").read_text()
    assert "`dpals reproduce count-distribution --data own.csv --rating-range 0.5 5.0`" in page
