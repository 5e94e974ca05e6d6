"""Runs remember what they measured, and tables say what the cells said."""

import io
import json

import polars as pl
import pytest
from rich.console import Console

from dpals.experiments import runner
from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import label, line, panels
from dpals.experiments.runner import markdown, run, table_of


def quiet():
    return Console(file=io.StringIO())


class Counting:
    """An experiment on two methods and three seeds that counts how often it measures."""

    def __init__(self, factor=1.0, stop_after=None):
        self.measured, self.factor, self.stop_after = [], factor, stop_after

    def cell(self, method, seed):
        def measure():
            if self.stop_after is not None and len(self.measured) >= self.stop_after:
                raise KeyboardInterrupt
            self.measured.append((method, seed))
            return {"RMSE": self.factor * seed}

        return Cell({"method": method, "x": 1.0, "seed": seed}, {"factor": self.factor}, measure)

    def experiment(self):
        def draw(table):
            figure, (axis,) = panels("A title", ["one"])
            line(axis, table, "x", "RMSE", "DPALS")
            label(axis, "x", "RMSE")
            return {"picture": figure}

        return Experiment(
            name="counting",
            title="A title",
            claim="Something.",
            cells=lambda _: [self.cell(method, seed) for method in ("a", "b") for seed in (1, 2, 3)],
            draw=draw,
            findings=lambda table: [verdict(True, f"{len(table)} rows")],
        )


def test_writes_table_picture_and_findings(tmp_path):
    home = run(Counting().experiment(), Scale(), tmp_path, quiet(), "dpals reproduce counting")
    table = pl.read_csv(home / "table.csv")
    assert table.columns == ["method", "x", "RMSE", "RMSE spread"]
    assert table["RMSE"].to_list() == [2.0, 2.0]
    assert table["RMSE spread"].to_list() == pytest.approx([(2 / 3) ** 0.5] * 2)
    assert (home / "picture.png").read_bytes().startswith(b"\x89PNG")
    page = (home / "README.md").read_text()
    for part in (
        "# A title",
        "Something.",
        "Confirmed: 2 rows",
        "![picture](picture.png)",
        "`dpals reproduce counting`",
    ):
        assert part in page


def test_what_was_measured_is_not_measured_again(tmp_path):
    run(Counting().experiment(), Scale(), tmp_path, quiet(), "")
    again = Counting()
    run(again.experiment(), Scale(), tmp_path, quiet(), "")
    assert again.measured == []


def test_other_settings_are_measured(tmp_path):
    run(Counting().experiment(), Scale(), tmp_path, quiet(), "")
    other = Counting(factor=2.0)
    home = run(other.experiment(), Scale(), tmp_path, quiet(), "")
    assert len(other.measured) == 6
    assert pl.read_csv(home / "table.csv")["RMSE"].to_list() == [4.0, 4.0]


def test_another_version_measures_anew(tmp_path, monkeypatch):
    run(Counting().experiment(), Scale(), tmp_path, quiet(), "")
    monkeypatch.setattr(runner, "__version__", "99")
    newer = Counting()
    run(newer.experiment(), Scale(), tmp_path, quiet(), "")
    assert len(newer.measured) == 6


def test_a_run_that_was_stopped_goes_on_where_it_stopped(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Counting(stop_after=4).experiment(), Scale(), tmp_path, quiet(), "")
    rest = Counting()
    run(rest.experiment(), Scale(), tmp_path, quiet(), "")
    assert rest.measured == [("b", 2), ("b", 3)]


def test_a_line_that_was_cut_off_is_measured_again(tmp_path):
    run(Counting().experiment(), Scale(), tmp_path, quiet(), "")
    memory = tmp_path / "cells.jsonl"
    memory.write_text(memory.read_text()[:-10])
    for expected in ([("b", 3)], []):
        again = Counting()
        run(again.experiment(), Scale(), tmp_path, quiet(), "")
        assert again.measured == expected
    assert all(json.loads(line) for line in memory.read_text().splitlines() if line.endswith("]"))


def test_without_seeds_the_table_has_all_cells():
    rows = [{"a": 1, "value": None}, {"a": 2, "value": 0.123456}]
    assert table_of(rows).rows() == [(1, None), (2, 0.123456)]
    assert markdown(table_of(rows)) == ["| a | value |", "|---|---|", "| 1 |  |", "| 2 | 0.1235 |"]


def test_quick_runs_have_one_seed_and_never_one_that_was_tuned_on():
    assert len(Scale(quick=True).seeds()) == 1
    assert len(Scale().seeds(5)) == 5
    assert min(Scale().seeds()) > 20
