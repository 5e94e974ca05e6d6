"""``dpals statement`` prints what the model holds."""

import json
import os

from tests.cli.conftest import refused, run

import dpals


def test_text_json_and_html(files, tmp_path):
    privacy = dpals.load(files.private).privacy
    assert run("statement", files.private).stdout == f"{privacy}\n"
    assert json.loads(run("statement", files.private, "--json").stdout) == json.loads(privacy.to_json())
    page = run("statement", files.private, "--html").stdout
    assert page == f"{privacy.to_html()}\n"
    result = run("statement", files.private, "-o", "page.html", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert (tmp_path / "page.html").read_text() == page


def test_no_privacy_no_statement(files):
    result = run("statement", files.titled)
    refused(result, "trained without privacy")
    assert result.stdout == ""


def test_bad_use(files, tmp_path):
    refused(run("statement", files.private, "-o", "missing/page.html", cwd=tmp_path), "missing does not exist")
    refused(run("statement", files.private, "--html", "--json"), "not both", code=2)
    refused(run("statement", tmp_path), "is not a model folder")
    assert os.listdir(tmp_path) == []
