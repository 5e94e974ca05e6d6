"""Work in progress: kept for the same task, and for nobody else."""

import pytest

from dpals import InputError
from dpals.data.blocks.work_folder import is_interrupted, work_folder


def interrupted(folder, task, problem=KeyboardInterrupt):
    def work_and_stop():
        with work_folder(folder, task) as work:
            (work / "half").write_text("done")
            raise problem("stop")

    with pytest.raises(problem):
        work_and_stop()


def test_it_is_gone_when_the_work_is_done(tmp_path):
    with work_folder(tmp_path / "new" / "folder", {"a": 1}) as work:
        assert work.stat().st_mode & 0o777 == 0o700
        (work.parent / "result").write_text("whole")
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["result"]


def test_the_same_task_finds_what_was_done(tmp_path):
    interrupted(tmp_path, {"a": 1})
    assert is_interrupted(tmp_path, {"a": 1})
    with work_folder(tmp_path, {"a": 1}) as work:
        assert (work / "half").read_text() == "done"
    assert not is_interrupted(tmp_path, {"a": 1})


def test_another_task_finds_nothing(tmp_path):
    interrupted(tmp_path, {"a": 1})
    assert not is_interrupted(tmp_path, {"a": 2})
    with work_folder(tmp_path, {"a": 2}) as work:
        assert not (work / "half").exists()


@pytest.mark.parametrize(("task", "problem"), [(None, KeyboardInterrupt), ({"a": 1}, InputError)])
def test_nothing_is_kept_that_nobody_can_use(tmp_path, task, problem):
    interrupted(tmp_path / "folder", task, problem)
    assert not (tmp_path / "folder").exists()


def test_two_cannot_work_in_one_folder(tmp_path):
    second = work_folder(tmp_path, {"a": 1})
    with work_folder(tmp_path, {"a": 1}), pytest.raises(InputError, match="another process is writing to"), second:
        pass
