"""The statement as a page for the browser."""

import html
import re

from dpals.statement.page import page
from dpals.statement.text import GLOSSARY


def test_html_is_escaped(statement):
    shown = statement().to_html()
    assert "0.5 &amp; 5 &lt;stars&gt;" in shown
    assert "<stars>" not in shown


def test_the_terms_are_explained_on_the_page_itself(statement):
    """A page that is filed stands alone: its terms are explained, folded, and nothing is loaded from elsewhere."""
    shown = statement().to_html()
    folded = re.search(r"<details>\n<summary>.+</summary>(.+)</details>", shown, re.DOTALL)[1]
    for term, meaning in GLOSSARY.items():
        assert f"<dt>{term}</dt><dd>{html.escape(meaning)}</dd>" in folded
    assert not re.search(r"(src|href)=|<script|<link|@import", shown)


def test_a_seeded_statement_is_marked_in_style(statement):
    assert "<body class=seeded>" in statement(insecure_seed=1).to_html()
    assert "<body>" in statement().to_html()


def test_titles_are_escaped():
    assert "<title>a &lt; b</title>" in page("a < b", "")
