"""The pages of the literature and of papers: a section with code for each row of the gallery."""

import re

import pytest
from build_examples import DOCS

GALLERIES = DOCS / "galleries"
PAGES = ("literature.md", "literature-labels.md")
HEADING = re.compile(r"^##+ (.*?)\n(.*?)(?=^##+ |\Z)", re.MULTILINE | re.DOTALL)


def tables_of(heading: str) -> list[str]:
    """Return the first cells of the table below a heading of the gallery."""
    text = (GALLERIES / "index.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    return [row.strip("| ").split(" | ")[0] for row in re.findall(r"^\|.*\|$", section[1], re.MULTILINE)[2:]]


def contents_of(page: str) -> list[tuple[str, list[str]]]:
    """Return rows of the gallery that a page has, and the sections that its contents link to."""
    text = (GALLERIES / page).read_text(encoding="utf-8")
    lines = re.findall(r"^\| (.*) \| (.*) \|$", text.partition("```")[0], re.MULTILINE)[1:]
    return [(rows, re.findall(r"\]\(#([\w-]+)\)", links)) for rows, links in lines if "#" in links]


def sections_of(page: str) -> dict[str, str]:
    """Return what is below each heading of a page."""
    text = (GALLERIES / page).read_text(encoding="utf-8")
    return {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-"): body for title, body in HEADING.findall(text)
    }


def test_each_row_of_the_literature_is_in_the_contents_of_a_page():
    listed = [own for page in PAGES for rows, _ in contents_of(page) for own in rows.split("; ")]
    rows = [own for row in tables_of("The literature") for own in row.split("; ")]
    assert sorted(listed) == sorted(rows)


@pytest.mark.parametrize("page", PAGES)
def test_sections_of_the_contents_have_code(page):
    sections = sections_of(page)
    linked = {own for _, links in contents_of(page) for own in links}
    assert linked == {title for title, body in sections.items() if "```python" in body}
    assert [own for own in linked if not re.search("```python.*```text", sections[own], re.DOTALL)] == []


def test_each_paper_has_a_section():
    """The first page ends with a plot of one of its models."""
    rows = tables_of("Papers since 2021")
    first, further = (list(sections_of(page)) for page in ("recent-papers.md", "further-papers.md"))
    assert len(rows) == len(first) - 1 + len(further) - 1
    titles = [row.replace(" ", "-") for row in rows[len(first) - 1 :]]
    assert [own for own, title in zip(titles, further, strict=False) if not title.startswith(own)] == []
