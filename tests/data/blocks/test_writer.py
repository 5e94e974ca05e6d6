"""Blocks against what `read_ratings` makes of the same input; the same bytes, whatever is done to them on the way."""

import errno
import itertools
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.tables import RANGE, columns, few_rows
from tests.same_ratings import assert_same_population

import dpals
from dpals import InputError, Ratings, open_blocks, read_ratings, write_blocks
from dpals.data.blocks import source as block_source
from dpals.evaluation.splits import split_entries

NAMES = ("user", "item", "rating", "timestamp")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(block_source, "ROWS_AT_ONCE", 7)


def files(folder):
    """The names and bytes of all files in a folder, hidden ones as well."""
    return {path.name: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def frame_of(rows, names=NAMES):
    users, items, *numbers = columns(rows)
    ids = [
        pl.Series(ids, dtype=pl.UInt64 if max(ids) >= 2**63 else None) if isinstance(ids[0], int) else pl.Series(ids)
        for ids in (users, items)
    ]
    return pl.DataFrame(dict(zip(names, [*ids, *numbers], strict=True)))


def read_or_problem(table, facts):
    try:
        return read_ratings(table, **facts)
    except InputError as problem:
        return str(problem)


@settings(max_examples=60)
@given(
    few_rows(),
    st.sampled_from(["plain", "implicit", "times", "catalogue", "unknown dropped", "bad dropped"]),
    st.sampled_from([1, 4, 1000]),
)
def test_blocks_hold_what_read_ratings_reads(rows, kind, ratings_per_block):
    frame = frame_of(rows)
    facts = {"rating_range": RANGE}
    if kind == "implicit":
        facts = {"implicit": True}
    if kind != "times":
        frame = frame.drop("timestamp")
    if kind in ("catalogue", "unknown dropped"):
        items = frame["item"].unique().sort(descending=True)
        facts["catalogue"] = items.to_list() if kind == "catalogue" else items[: len(items) // 2 + 1].to_list()
        facts["on_unknown_items"] = "drop"
    if kind == "bad dropped":
        frame = frame.with_columns(rating=pl.when(pl.col("rating") > 4).then(9.0).otherwise("rating"))
        facts["on_bad_rows"] = "drop"
    with TemporaryDirectory() as name:
        table, folder = Path(name, "table.parquet"), Path(name, "blocks")
        frame.write_parquet(table)
        expected = read_or_problem(table, facts)
        if isinstance(expected, str):
            with pytest.raises(InputError, match=re.escape(expected)):
                write_blocks(table, folder, **facts)
            assert not folder.exists()
            return
        blocks = write_blocks(table, folder, ratings_per_block=ratings_per_block, **facts)
        assert_same_population(blocks, expected)
        assert_same_population(open_blocks(folder), expected)
        assert all(part.n_ratings <= ratings_per_block or part.n_users == 1 for part in blocks)


@pytest.mark.parametrize("bad_first", [True, False])
def test_all_rows_that_are_read_at_once_may_be_bad(tmp_path, monkeypatch, bad_first):
    monkeypatch.setattr(block_source, "ROWS_AT_ONCE", 2)
    rows = [("ann", "tea", 9.0), ("ann", "rye", 9.0), ("bob", "tea", 3.0), ("bob", "rye", 4.0)]
    frame = pl.DataFrame(rows if bad_first else rows[::-1], schema=["user", "item", "rating"], orient="row")
    frame.write_parquet(tmp_path / "table.parquet", row_group_size=2)
    facts = {"rating_range": RANGE, "on_bad_rows": "drop"}
    blocks = write_blocks(tmp_path / "table.parquet", tmp_path / "blocks", **facts)
    assert_same_population(blocks, read_ratings(tmp_path / "table.parquet", **facts))


@settings(max_examples=30)
@given(few_rows(), st.randoms(use_true_random=False))
def test_the_bytes_do_not_depend_on_order_or_parts(rows, dice):
    rows = list(dict.fromkeys(rows))
    with TemporaryDirectory() as name:
        (whole := Path(name, "whole")).mkdir()
        frame_of(rows).write_parquet(whole / "all.parquet")
        write_blocks(whole, Path(name, "a"), rating_range=RANGE, ratings_per_block=5)
        dice.shuffle(rows)
        (parts := Path(name, "parts")).mkdir()
        cut = dice.randrange(len(rows) + 1)
        for number, part in enumerate((rows[:cut], rows[cut:])):
            frame_of(rows)[[rows.index(row) for row in part]].write_parquet(parts / f"{number}.parquet")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(block_source, "ROWS_AT_ONCE", dice.randint(1, 50))
            write_blocks(parts, Path(name, "b"), rating_range=RANGE, ratings_per_block=5)
        assert files(Path(name, "a")) == files(Path(name, "b"))


def random_frame(n_rows=200, seed=0, text=False):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "user": rng.integers(0, 40, n_rows),
            "item": rng.integers(0, 12, n_rows) * 10,
            "rating": rng.integers(1, 11, n_rows) / 2,
            "timestamp": rng.integers(0, 5, n_rows),
        }
    )
    return frame.with_columns(user=pl.format("u {}", "user"), item=pl.format("é {}", "item")) if text else frame


@pytest.mark.parametrize("text", [False, True])
def test_every_kind_of_source_gives_the_same_blocks(tmp_path, text):
    frame = random_frame(text=text)
    expected = Ratings.from_frame(frame, rating_range=RANGE)
    sources = {"polars": frame, "lazy": frame.lazy(), "arrow": frame.to_arrow(), "pandas": frame.to_pandas()}
    for name, source in sources.items():
        blocks = write_blocks(source, tmp_path / name, rating_range=RANGE, ratings_per_block=20)
        assert_same_population(blocks, expected)
        assert files(tmp_path / name) == files(tmp_path / "polars")
    assert_same_population(write_blocks(expected, tmp_path / "ratings", ratings_per_block=20), expected)
    assert {name for name in files(tmp_path / "polars") if "manifest" not in name} <= set(files(tmp_path / "ratings"))


@pytest.mark.parametrize("text", [False, True])
def test_blocks_and_parts_of_them_give_the_bytes_of_ratings_in_memory(tmp_path, text):
    """Users who have no rating in a part stay."""
    ratings = Ratings.from_frame(random_frame(text=text), rating_range=RANGE)
    blocks = write_blocks(ratings, tmp_path / "blocks", ratings_per_block=20)
    assert len(blocks.blocks) > 5
    again = write_blocks(blocks, tmp_path / "again", ratings_per_block=20)
    assert files(again.folder) == files(blocks.folder)
    shares = (0.9, 0.1)
    for number, pair in enumerate(zip(split_entries(ratings, shares), split_entries(blocks, shares), strict=True)):
        known, found = (
            write_blocks(part, tmp_path / f"{kind} {number}", ratings_per_block=30)
            for kind, part in zip(("memory", "blocks"), pair, strict=True)
        )
        assert found.n_users == ratings.n_users
        assert files(found.folder) == files(known.folder)


def test_blocks_of_nobody_can_be_written_again(tmp_path):
    empty = Ratings.from_arrays(np.empty(0, np.int64), np.empty(0, np.int64), catalogue=["a"])
    nothing = write_blocks(empty, tmp_path / "empty")
    write_blocks(split_entries(nothing)[0], tmp_path / "part")
    assert files(tmp_path / "part") == files(tmp_path / "empty")


def test_a_csv_file_with_bad_lines(tmp_path):
    lines = [f"{row % 9},{row % 5},{row % 7}" for row in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["who,what,stars", *lines, "x,1,2,3,4", "3,,1", ",1,1"]) + "\n")
    facts = {"rating_range": (1, 5), "user": "who", "item": "what", "on_bad_rows": "drop", "ids": "integer"}
    blocks = write_blocks(tmp_path / "a.csv", tmp_path / "blocks", ratings_per_block=10, **facts)
    expected = read_ratings(tmp_path / "a.csv", **facts)
    assert expected.report.rows_dropped
    assert_same_population(blocks, expected)


def test_users_of_unknown_items_stay_without_ratings(tmp_path):
    frame = pl.DataFrame({"user": [*range(20)] * 2, "item": [1] * 20 + [2] * 20})
    facts = {"catalogue": [2], "on_unknown_items": "drop"}
    blocks = write_blocks(frame[:30], tmp_path / "blocks", ratings_per_block=3, **facts)
    assert blocks.n_users == 20
    assert max(block.n_users for block in blocks.blocks) <= 3
    assert_same_population(blocks, Ratings.from_frame(frame[:30], **facts))


def test_ratings_keep_their_catalogue_and_report(tmp_path):
    ratings = Ratings.from_arrays([3, 1, 1], ["b", "b", "a"], catalogue=["z", "b", "a"])
    assert_same_population(write_blocks(ratings, tmp_path), ratings)
    empty = Ratings.from_arrays(np.empty(0, np.int64), np.empty(0, np.int64))
    nothing = write_blocks(empty, tmp_path / "empty")
    assert (nothing.n_users, nothing.blocks) == (0, ())


def test_a_million_ratings_of_one_user_are_one_block(tmp_path, monkeypatch):
    monkeypatch.setattr(block_source, "ROWS_AT_ONCE", 1 << 18)
    users = np.concatenate([np.zeros(1_000_000, np.int64), np.arange(1, 1001)])
    items = np.concatenate([np.arange(1_000_000), np.arange(1000)])
    blocks = write_blocks(pl.DataFrame({"user": users, "item": items}), tmp_path, ratings_per_block=1000)
    assert max(block.n_ratings for block in blocks.blocks) >= 1_000_000
    assert all(block.n_ratings <= 1000 or block.n_users == 1 for block in blocks.blocks)
    assert blocks.n_ratings == len(users)


def test_only_the_owner_can_read_the_files(tmp_path):
    write_blocks(random_frame(), tmp_path / "blocks", rating_range=RANGE, ratings_per_block=20)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "blocks").iterdir()} == {0o600}


class TestInterruptions:
    FACTS = {"rating_range": RANGE, "ratings_per_block": 40}  # noqa: RUF012

    @pytest.fixture
    def table(self, tmp_path, monkeypatch):
        monkeypatch.setattr(block_source, "ROWS_AT_ONCE", 40)
        random_frame().write_parquet(tmp_path / "table.parquet")
        write_blocks(tmp_path / "table.parquet", tmp_path / "whole", **self.FACTS)
        return tmp_path / "table.parquet"

    @staticmethod
    def stop_at(patch, number, after, problem=KeyboardInterrupt):
        """Stop at the file with this number, before or after it gets its name; count the files."""
        counter = itertools.count()
        real = Path.replace

        def replace(self, target):
            stopped = next(counter) == number
            if stopped and not after:
                raise problem
            real(self, target)
            if stopped:
                raise problem

        patch.setattr(Path, "replace", replace)
        return counter

    @pytest.mark.parametrize("after", [False, True])
    def test_what_was_stopped_anywhere_ends_with_the_same_bytes(self, table, tmp_path, after):
        whole, resumed = files(tmp_path / "whole"), 0
        for number in itertools.count():
            folder = tmp_path / f"{number}"
            with pytest.MonkeyPatch.context() as patch:
                self.stop_at(patch, number, after)
                try:
                    write_blocks(table, folder, **self.FACTS)
                    break
                except KeyboardInterrupt:
                    pass
            if "manifest.json" not in files(folder):
                with pytest.raises(InputError, match=r"manifest\.json is missing"):
                    open_blocks(folder)
            with pytest.MonkeyPatch.context() as patch:
                written = self.stop_at(patch, -1, after)
                write_blocks(table, folder, **self.FACTS)
                resumed += next(written) < number
            assert files(folder) == whole
        assert number > 20
        assert resumed > number / 3  # less was left to write than had been written

    def test_a_table_that_has_changed_is_read_from_the_start(self, table, tmp_path):
        with pytest.MonkeyPatch.context() as patch:
            self.stop_at(patch, 9, after=True)
            with pytest.raises(KeyboardInterrupt):
                write_blocks(table, tmp_path / "blocks", **self.FACTS)
        random_frame(seed=1).write_parquet(table)
        blocks = write_blocks(table, tmp_path / "blocks", **self.FACTS)
        assert_same_population(blocks, read_ratings(table, rating_range=RANGE))
        write_blocks(table, tmp_path / "again", **self.FACTS)
        assert files(tmp_path / "blocks") == files(tmp_path / "again")

    def test_other_arguments_start_over(self, table, tmp_path):
        with pytest.MonkeyPatch.context() as patch:
            self.stop_at(patch, 9, after=True)
            with pytest.raises(KeyboardInterrupt):
                write_blocks(table, tmp_path / "blocks", **self.FACTS)
        blocks = write_blocks(table, tmp_path / "blocks", rating_range=(0, 5), ratings_per_block=20)
        assert blocks.rating_range == (0, 5)

    def test_a_full_disk_says_what_to_do_and_leaves_nothing_that_opens(self, table, tmp_path):
        full = OSError(errno.ENOSPC, "No space left on device")
        for number in (0, 3, 14, 18):
            folder = tmp_path / f"full{number}"
            with pytest.MonkeyPatch.context() as patch:
                self.stop_at(patch, number, after=False, problem=full)
                with pytest.raises(OSError, match="No space left on device") as raised:
                    write_blocks(table, folder, **self.FACTS)
            assert raised.value.errno == errno.ENOSPC
            assert "Free some space and write the blocks again" in raised.value.__notes__[0]
            with pytest.raises(InputError, match=r"manifest\.json is missing"):
                open_blocks(folder)

    def test_a_frame_leaves_no_work_behind(self, tmp_path):
        with pytest.MonkeyPatch.context() as patch:
            self.stop_at(patch, 12, after=True)
            with pytest.raises(KeyboardInterrupt):
                write_blocks(random_frame(), tmp_path / "blocks", **self.FACTS)
        assert not (tmp_path / "blocks" / ".writing").exists()

    def test_work_in_progress_is_for_its_owner_alone(self, table, tmp_path):
        with pytest.MonkeyPatch.context() as patch:
            self.stop_at(patch, 15, after=True)
            with pytest.raises(KeyboardInterrupt):
                write_blocks(table, tmp_path / "blocks", **self.FACTS)
        work = tmp_path / "blocks" / ".writing"
        assert work.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in work.iterdir()} == {0o600}


class TestWhatIsThere:
    def test_complete_blocks_are_replaced_only_if_so_asked(self, tmp_path):
        write_blocks(random_frame(), tmp_path, rating_range=RANGE, ratings_per_block=20)
        before = files(tmp_path)
        with pytest.raises(InputError, match="holds blocks: choose another folder, or pass overwrite=True"):
            write_blocks(random_frame(seed=1), tmp_path, rating_range=RANGE)
        assert files(tmp_path) == before
        write_blocks(random_frame(seed=1), tmp_path, rating_range=RANGE, overwrite=True)
        write_blocks(random_frame(seed=1), tmp_path / "new", rating_range=RANGE)
        assert files(tmp_path / "new") == {
            path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()
        }

    def test_old_blocks_stay_until_the_new_ones_are_complete(self, tmp_path):
        random_frame(seed=1).write_parquet(tmp_path / "table.parquet")
        old = write_blocks(random_frame(), tmp_path / "blocks", rating_range=RANGE)
        with pytest.MonkeyPatch.context() as patch:
            TestInterruptions.stop_at(patch, 66, after=True)
            with pytest.raises(KeyboardInterrupt):
                write_blocks(
                    tmp_path / "table.parquet",
                    tmp_path / "blocks",
                    rating_range=RANGE,
                    ratings_per_block=20,
                    overwrite=True,
                )
        assert open_blocks(tmp_path / "blocks").blocks == old.blocks
        assert [part.n_users for part in open_blocks(tmp_path / "blocks")] == [part.n_users for part in old]

    def test_other_files_in_the_folder_stay(self, tmp_path):
        for name in ("notes.txt", "block-mine.safetensors", "weights.safetensors"):
            (tmp_path / name).write_text("mine")
        (tmp_path / f"block-{'0' * 16}.safetensors").write_text("left by an earlier call")
        write_blocks(random_frame(), tmp_path, rating_range=RANGE)
        left = {name for name, content in files(tmp_path).items() if len(content) < 50}
        assert left == {"notes.txt", "block-mine.safetensors", "weights.safetensors"}

    def test_a_file_in_place_of_the_folder_is_refused(self, tmp_path):
        (tmp_path / "file").write_text("mine")
        with pytest.raises(InputError, match="there is a file, not a folder"):
            write_blocks(random_frame(), tmp_path / "file", rating_range=RANGE)


def test_pieces_with_ids_of_different_types_are_refused(tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    pl.DataFrame({"user": range(20), "item": [1] * 20}).write_parquet(parts / "0.parquet")
    pl.DataFrame({"user": ["x"], "item": [1]}).write_parquet(parts / "1.parquet")
    with pytest.raises(InputError, match="column 'user': mixed id types"):
        write_blocks(parts, tmp_path / "blocks")
    pl.DataFrame({"user": [-1], "item": [1]}).write_parquet(parts / "0.parquet")
    pl.DataFrame(
        {"user": [2**64 - 1] * 20, "item": [1] * 20}, schema={"user": pl.UInt64, "item": pl.Int64}
    ).write_parquet(parts / "1.parquet")
    with pytest.raises(InputError, match="do not fit in 64 bits"):
        write_blocks(parts, tmp_path / "blocks")
    assert not (tmp_path / "blocks").exists()


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    random_frame().write_parquet(table := tmp_path / "table.parquet")
    real = block_source.sort_table

    def sort_and_change(*arguments, **facts):
        runs = real(*arguments, **facts)
        random_frame(seed=1).write_parquet(table)
        return runs

    monkeypatch.setattr(block_source, "sort_table", sort_and_change)
    with pytest.raises(InputError, match="changed while it was read"):
        write_blocks(table, tmp_path / "blocks", rating_range=RANGE)


def test_the_size_of_blocks_is_a_number(tmp_path):
    for wrong in (0, 2.5, "many"):
        with pytest.raises(InputError, match="ratings_per_block must be a whole number from 1 on"):
            write_blocks(random_frame(), tmp_path, rating_range=RANGE, ratings_per_block=wrong)


def test_it_is_public():
    assert dpals.write_blocks is write_blocks
