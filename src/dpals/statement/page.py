"""A privacy statement as a page for the browser."""

import html
from typing import TYPE_CHECKING

from dpals.statement.text import GLOSSARY, sections

if TYPE_CHECKING:
    from dpals.statement.record import Statement


def page_of(statement: "Statement") -> str:
    """The statement as a page of its own, with the meaning of its terms folded at the end."""
    body = "".join(
        f"<h2>{html.escape(heading)}</h2>\n<ul>\n"
        + "".join(f"<li>{html.escape(line.strip())}</li>\n" for line in content)
        + "</ul>\n"
        for heading, content in sections(statement)
    )
    return page("Privacy statement", body + _glossary(), "" if statement.is_private else "seeded")


def _glossary() -> str:
    terms = "".join(f"<dt>{html.escape(term)}</dt><dd>{html.escape(what)}</dd>\n" for term, what in GLOSSARY.items())
    return f"<details>\n<summary>What the terms mean</summary>\n<dl>\n{terms}</dl>\n</details>\n"


def page(title: str, body: str, kind: str = "") -> str:
    """A page of HTML that needs no other files. `kind` is a class for the style of its body."""
    return _PAGE.format(title=html.escape(title), body=body, kind=f" class={kind}" if kind else "")


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }}
h1 {{ font-size: 1.6rem }} h2 {{ font-size: 1.05rem; margin: 1.4rem 0 .3rem }}
ul {{ margin: 0; padding-left: 1.2rem }} li {{ overflow-wrap: anywhere }}
table {{ border-collapse: collapse }} td, th {{ padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top }}
summary {{ cursor: pointer }} dt {{ font-weight: 600 }} dd {{ margin: 0 0 .3rem 1.2rem }}
svg {{ max-width: 100%; height: auto }}
.seeded h2:first-of-type + ul, .failed {{ color: #a00; font-weight: 600 }} .inconclusive {{ color: #960 }}
</style>
</head>
<body{kind}>
<h1>{title}</h1>
{body}
</body>
</html>
"""
