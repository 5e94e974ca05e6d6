"""What the manifest says, and which manifests are refused."""

import json

import pytest

from dpals import InputError, Ratings, open_blocks, write_blocks
from dpals.data.bad_rows import ReadingReport
from dpals.data.blocks.manifest import FORMAT, MANIFEST, Entry, Facts, Manifest, _checksum, read_manifest

FACTS = Facts((0.5, 5.0), False, True, "text", "The header line says so, é.")
MADE = Manifest(FACTS, "0" * 64, ReadingReport(9, 2, {"missing rating": 1}), (Entry("a", "01", 2, 6, "1" * 64),))


def test_it_comes_back(tmp_path):
    MADE.write(tmp_path)
    assert read_manifest(tmp_path) == MADE


def test_the_order_of_what_was_dropped_changes_nothing(tmp_path):
    contents = []
    for dropped in ({"a": 1, "b": 2}, {"b": 2, "a": 1}):
        Manifest(FACTS, "0" * 64, ReadingReport(9, 2, dropped), ()).write(tmp_path)
        contents.append((tmp_path / MANIFEST).read_bytes())
    assert contents[0] == contents[1]


def test_it_names_no_machine_and_no_version(tmp_path):
    MADE.write(tmp_path)
    assert set(json.loads((tmp_path / MANIFEST).read_bytes())) == {
        *("format", "facts", "items", "report", "blocks", "checksum"),
    }


@pytest.fixture
def folder(tmp_path):
    write_blocks(Ratings.from_arrays([1, 2], [1, 1]), tmp_path / "blocks")
    return tmp_path / "blocks"


def changed(folder, **entries):
    content = json.loads((folder / MANIFEST).read_bytes()) | entries
    (folder / MANIFEST).write_text(json.dumps(content | {"checksum": _checksum(content)}))


def test_folders_without_blocks_are_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty holds no blocks: manifest\.json is missing"):
        open_blocks(tmp_path / "empty")
    with pytest.raises(InputError, match="nowhere is not a folder of blocks"):
        open_blocks(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is not a folder of blocks"):
        open_blocks(folder / MANIFEST)
    (folder / MANIFEST).unlink()
    with pytest.raises(InputError, match="holds blocks that are not complete"):
        open_blocks(folder)


@pytest.mark.parametrize("other", [FORMAT + 1, 0, None, "1"])
def test_another_format_is_refused(folder, other):
    changed(folder, format=other)
    with pytest.raises(InputError, match=f"blocks of format {other}, and this version of dpals reads format {FORMAT}"):
        open_blocks(folder)


def test_two_manifests_are_refused(folder):
    (folder / "manifest (1).json").write_bytes((folder / MANIFEST).read_bytes())
    with pytest.raises(InputError, match=r"has several manifests, manifest \(1\)\.json and manifest\.json"):
        open_blocks(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b"\xff"])
def test_what_is_no_manifest_is_refused(folder, content):
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(InputError, match=r"is damaged, or was edited|of format None"):
        open_blocks(folder)


def test_an_edited_manifest_is_refused(folder):
    (folder / MANIFEST).write_text((folder / MANIFEST).read_text().replace('"n_users": 2', '"n_users": 3'))
    with pytest.raises(InputError, match="is damaged, or was edited"):
        open_blocks(folder)
    changed(folder, blocks=[{"file": "a"}])
    with pytest.raises(InputError, match="is damaged, or was edited"):
        open_blocks(folder)
