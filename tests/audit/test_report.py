"""A report says what was found, in words, as data and as a page."""

import json

import pytest

from dpals.audit.plots import Curve
from dpals.audit.report import Check, Level, Report, worst

LIMIT = Curve("what the promise allows", "limit", (0.0, 0.5, 1.0), (0.0, 0.6, 1.0))
ATTACK = Curve("an attack", "attack", (0.0, 0.5, 1.0), (0.0, 0.55, 1.0))


def report(*verdicts):
    levels = [
        Level(
            number,
            "name",
            (Check("is it <so>?", "passed", "yes"), Check("and this?", verdict, "the reason")),
            {"x": 1.5},
        )
        for number, verdict in enumerate(verdicts, 1)
    ]
    return Report("Method(epsilon=1.0)", "simulated ratings", 1.0, 1e-6, 0.2367, tuple(levels))


@pytest.mark.parametrize(
    ("verdicts", "whole", "words"),
    [
        (["passed", "passed"], "passed", "The promise held in everything that was tried."),
        (["passed", "failed"], "failed", "THE PROMISE IS BROKEN: see level 2."),
        (["inconclusive", "failed"], "failed", "THE PROMISE IS BROKEN: see level 2."),
        (["passed", "inconclusive"], "inconclusive", "level 2 could not have found anything: that is no proof."),
    ],
)
def test_the_worst_verdict_is_that_of_the_whole(verdicts, whole, words):
    found = report(*verdicts)
    assert found.verdict == whole
    assert str(found).endswith(words)
    assert words in found.to_html()
    assert json.loads(found.to_json())["verdict"] == whole


def test_nothing_tried_is_nothing_shown():
    assert worst([]) == "inconclusive"
    assert report().verdict == "inconclusive"


def test_text_has_every_check_and_its_reason():
    text = str(report("failed"))
    assert "Audit of Method(epsilon=1.0)\non simulated ratings. Claimed: epsilon 1 at delta 1e-06 (mu 0.2367)." in text
    assert "  failed        and this?\n                the reason" in text


def test_json_has_everything():
    content = json.loads(report("passed").to_json())
    assert content["epsilon"] == 1.0
    assert content["levels"][0]["facts"] == {"x": 1.5}
    assert content["levels"][0]["checks"][1] == {"question": "and this?", "verdict": "passed", "detail": "the reason"}


def test_a_page_is_whole_by_itself_and_shows_curves():
    level = Level(3, "canary", (Check("is it <so>?", "passed", "yes"),), {}, (LIMIT, ATTACK))
    page = Report("Method()", "simulated ratings", 1.0, 1e-6, None, (level,)).to_html()
    assert page.startswith("<!doctype html>")
    assert "is it &lt;so&gt;?" in page
    assert page.count("<svg") == 1
    assert "an attack" in page
    assert "share of members recognised" in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )
