"""``dpals recommend`` against the library on the whole history at once."""

import json
import os
import resource
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from tests.cli.conftest import COMMAND, ENVIRONMENT, refused, run, run_on_terminal, run_process

import dpals

NAMES = ("--user", "uid", "--item", "film", "--rating", "stars")


def at_once(files, k=20, exclude_seen=True):
    """Rows of user, rank, item, score from everything in memory, and how many rows of the history were left out."""
    model = dpals.load(files.private)
    facts = {"user": "uid", "item": "film", "rating": "stars", "rating_range": model.rating_range}
    history = dpals.read_ratings(files.history, **facts, catalogue=model.items, on_unknown_items="drop")
    ids, scores = model.recommend(history, k, exclude_seen)
    rows = [
        (user, place + 1, item, score)
        for user, items, row in zip(history.users.tolist(), ids.tolist(), scores.tolist(), strict=True)
        for place, (item, score) in enumerate(zip(items, row, strict=True))
    ]
    return [row for row in rows if row[3] > -np.inf], history.report.rows_dropped["item outside the catalogue"]


def test_parquet_is_what_the_library_recommends(files, tmp_path):
    expected, unknown = at_once(files)
    result = run("recommend", files.private, "--history", files.history, *NAMES, "-o", "out.parquet", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert "Recommendations for 300 users are in out.parquet" in result.stderr
    assert f"{unknown:,} item outside the catalogue" in result.stderr
    table = pl.read_parquet(tmp_path / "out.parquet")
    assert table.columns == ["uid", "rank", "film", "score"]
    assert table.rows() == expected
    assert os.listdir(tmp_path) == ["out.parquet"]


def test_csv_and_json_on_standard_output(files):
    expected, _ = at_once(files, k=3, exclude_seen=False)
    arguments = ("recommend", files.private, "--history", files.history, *NAMES, "-k", 3, "--include-seen", "--quiet")
    result = run(*arguments)
    assert result.stderr == ""
    table = pl.read_csv(result.stdout.encode(), schema_overrides={"uid": pl.String, "score": pl.Float32})
    assert table.rows() == expected
    lines = [json.loads(line) for line in run(*arguments, "--json").stdout.splitlines()]
    assert [list(line) for line in lines] == [["user", "items", "scores"]] * 300
    assert [(line["user"], item) for line in lines for item in line["items"]] == [(row[0], row[2]) for row in expected]
    assert np.float32([line["scores"] for line in lines]).ravel().tolist() == [row[3] for row in expected]


def test_some_users(files, tmp_path):
    expected, _ = at_once(files, k=2)
    arguments = ("recommend", files.private, "--history", files.history, *NAMES, "-k", 2, "--user-id=-43")
    result = run(*arguments, "--user-id", "6", "-o", "two.csv", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    table = pl.read_csv(tmp_path / "two.csv", schema_overrides={"uid": pl.String, "score": pl.Float32})
    assert table.rows() == [row for row in expected if row[0] in ("-43", "6")]
    assert len(table) == 4
    refused(run(*arguments, "--user-id", "77777"), "'77777' is not in", "history.csv")


def test_a_model_of_clicks_leaves_ratings_aside(files):
    result = run("recommend", files.implicit, "--history", files.history, *NAMES, "-k", 1, "-q")
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 301


def test_text_ids_in_files_of_several_kinds(files, tmp_path):
    """The same users with the same histories get the same, whatever the file and the order of its rows."""
    model = dpals.load(files.titled)
    rng = np.random.default_rng(0)
    rows = [(f"user {at}, é", str(item), 4.0) for at in range(30) for item in rng.choice(model.items, 5, replace=False)]
    frame = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
    frame.write_parquet(tmp_path / "a.parquet")
    frame.sample(fraction=1.0, shuffle=True, seed=1).write_csv(tmp_path / "b.tsv", separator="\t")
    first, second = (
        run("recommend", files.titled, "--history", tmp_path / name, "-k", 4, "-q") for name in ("a.parquet", "b.tsv")
    )
    assert first.stdout == second.stdout
    table = pl.read_csv(first.stdout.encode())
    assert table["user"].unique(maintain_order=True).to_list() == sorted({row[0] for row in rows})
    assert set(table["item"]) <= set(model.items.tolist())


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("missing/out.csv", ["missing does not exist", "create it"]),
        ("file.txt/out.csv", ["file.txt is a file, not a folder"]),
        ("/proc/out.parquet", ["/proc"]),
    ],
)
def test_an_output_that_cannot_be_written(files, tmp_path, output, words):
    (tmp_path / "file.txt").touch()
    refused(run("recommend", files.private, "--history", files.history, *NAMES, "-o", output, cwd=tmp_path), *words)
    assert os.listdir(tmp_path) == ["file.txt"]


def test_wrong_commands(files, tmp_path):
    whole = ("recommend", files.private, "--history", files.history)
    for arguments, word in [
        ((*whole, "-o", "out.xlsx"), "must end in .parquet or .csv or .jsonl"),
        ((*whole, "-o", "out.csv", "--json"), "--json is for standard output"),
        ((*whole, "-k", 0), "-k"),
        ((*whole[:3], "nowhere.csv"), "nowhere.csv"),
        (("recommend", "nowhere", *whole[2:]), "nowhere"),
        (whole[:2], "--history"),
    ]:
        refused(run(*arguments, cwd=tmp_path), word, code=2)
    copy = tmp_path / "copy.csv"
    copy.write_bytes(files.history.read_bytes())
    refused(run(*whole[:3], copy, *NAMES, "-o", copy), "overwrite the history", code=2)
    assert copy.read_bytes() == files.history.read_bytes()


def test_histories_that_cannot_be_used(files, tmp_path):
    def tried(text, *more):
        (tmp_path / "h.csv").write_text(text)
        return run("recommend", files.private, "--history", "h.csv", *more, cwd=tmp_path)

    refused(tried("who,item,rating\n1,2,3\n"), "no column looks like the user", "--user COLUMN")
    refused(tried("user,item\n1,2\n"), "no column looks like the rating", "--rating COLUMN")
    refused(tried("user,item,rating\n1,2,7\n"), "line 2", "outside", "0.5 to 5", "--on-bad-rows drop")
    refused(tried("user,item,rating\n1,2,3\nann,2,3\n", "--ids", "integer"), "line 3", "'ann'", "integer")
    refused(tried("1,2,3\n2,2,4\n"), "no column looks like the user", "--columns user,item,rating")
    assert tried("1;2;3\n2;2;4\n", "--columns", "user,item,rating", "--separator", ";", "-k", 1).returncode == 0
    assert tried("1\t2\t3\n2\t2\t4\n", "--columns", "user,item,rating", "--separator", "tab", "-k", 1).returncode == 0
    refused(tried("user,item,rating\n1,2,3\n", "--separator", "x"), "separator must be one of")
    refused(tried(""), "empty")
    refused(run("recommend", tmp_path, "--history", "h.csv", cwd=tmp_path), "is not a model folder")
    assert tried("user,item,rating\n1,2,3\nann,2,3\n", "-k", 1).stdout.count("\n") == 3
    dropped = tried("user,item,rating\n1,2,7\n1,3,3\n", "--on-bad-rows", "drop", "-k", 1)
    assert dropped.stdout.count("\n") == 2
    assert "1 rating outside the range" in dropped.stderr


def test_a_reader_who_has_seen_enough(files):
    """`dpals recommend ... | head -1` ends without a word."""
    arguments = [COMMAND, "recommend", files.private, "--history", files.history, *NAMES, "-k", "90", "-q"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


STOPPED = """
import os, sys
import dpals.data.streamed_history, dpals.data.external_sort, dpals.model.batch
from dpals.cli import main

number = int(sys.argv.pop(1))
dpals.data.streamed_history.stream_history.__wrapped__.__kwdefaults__["rows_at_once"] = 1_000
recommended = dpals.model.batch.recommend_in_blocks

def stopped(*arguments):
    for block in recommended(*arguments):
        yield block
        print(sorted(os.listdir()), flush=True)
        os.kill(os.getpid(), number)

dpals.model.batch.recommend_in_blocks = stopped
main()
"""


def stopped(files, folder, number, output):
    """Recommend to users whose histories do not fit in memory, and get a signal when some have been written."""
    arguments = ["recommend", files.private, "--history", files.history, *NAMES, "-o", output]
    command = [sys.executable, "-c", STOPPED, str(int(number)), *arguments]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_in_the_middle_nothing_is_left(files, tmp_path, number, output):
    """The half-written output is removed; an output from before stays."""
    (tmp_path / output).write_text("from before")
    result = stopped(files, tmp_path, number, output)
    assert result.returncode == 1
    assert result.stdout.count(".part") == 1
    assert result.stderr.strip() == "Stopped."
    assert os.listdir(tmp_path) == [output]
    assert (tmp_path / output).read_text() == "from before"


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_killed_in_the_middle_no_history_is_left(files, tmp_path, output):
    """And half of the recommendations in a file that only its owner can read, until the next run."""
    assert stopped(files, tmp_path, signal.SIGKILL, output).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(f".{output}.")
    assert left.stat().st_mode & 0o777 == 0o600
    result = run("recommend", files.private, "--history", files.history, *NAMES, "-o", output, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert os.listdir(tmp_path) == [output]


@pytest.mark.parametrize("output", ["out.csv", "out.parquet", "out.jsonl"])
def test_recommendations_are_for_their_owner_alone(files, tmp_path, output):
    (tmp_path / output).write_text("from before, for everyone")
    result = run("recommend", files.private, "--history", files.history, *NAMES, "-o", output, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / output).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_a_full_disk_is_one_sentence(files, tmp_path, output):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))

    arguments = ("recommend", files.private, "--history", files.history, *NAMES, "-q", "-o", output)
    refused(run_process(*arguments, cwd=tmp_path, preexec_fn=limit), "the disk is full", "Free some space")
    assert os.listdir(tmp_path) == []


def test_progress_is_for_terminals(files, tmp_path):
    """A bar with the time left appears on a terminal, and not in a pipe."""
    arguments = ("recommend", files.private, "--history", files.history, *NAMES, "-o")
    code, seen = run_on_terminal(*arguments, "out.parquet", cwd=tmp_path)
    assert code == 0, seen
    for word in ("Reading history.csv", "Recommending", "left:", "%"):
        assert word in seen
    again = run(*arguments, "again.parquet", cwd=tmp_path)
    assert again.stdout == ""
    assert "Recommendations for 300 users are in again.parquet.\n" in again.stderr
    assert "Recommending" not in again.stderr
    assert pl.read_parquet(tmp_path / "again.parquet").equals(pl.read_parquet(tmp_path / "out.parquet"))


def test_blocks_come_one_after_another(files, tmp_path):
    expected, _ = at_once(files, k=3)
    model = dpals.load(files.private)
    facts = {"user": "uid", "item": "film", "rating": "stars", "rating_range": model.rating_range}
    known = {"catalogue": model.items, "on_unknown_items": "drop", "ratings_per_block": 900}
    blocks = dpals.write_blocks(files.history, tmp_path / "blocks", **facts, **known)
    arguments = ("recommend", files.private, "--history", "blocks", "-k", 3)
    result = run(*arguments, "-o", "out.parquet", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    table = pl.read_parquet(tmp_path / "out.parquet")
    assert table.columns == ["user", "rank", "item", "score"]
    assert table["user"].unique(maintain_order=True).to_list() == [user for part in blocks for user in part.users]
    assert sorted(table.rows()) == sorted(expected)
    some = run(*arguments, "--user-id=-43", "--user-id", 6, "--json", cwd=tmp_path)
    assert sorted(json.loads(line)["user"] for line in some.stdout.splitlines()) == ["-43", "6"]
    refused(run(*arguments, "--user-id", 6, "--user-id", "77777", cwd=tmp_path), "'77777' is not in blocks")
    refused(run(*arguments, "--user", "uid", cwd=tmp_path), "--user is for reading a file", code=2)
