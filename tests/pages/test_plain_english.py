"""The pages avoid words that stop a reader: CONTRIBUTING.md lists them, each with what to write instead."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
REFUSED = {
    r"stands? (?:in|for|by|at|below|above|there|here)": "is, says, lists",
    r"holds? [^.]{1,30} against|held against": "checks ... against",
    r"but for": "except",
    r"of them (?:two|three|four|five)": "three of them",
    r"of (?:yours|ours)": "your tables",
    r"lacking|rows? lacks?": "missing",
    r"pictures?": "plot",
    r"yes or no|yes and no": "binary",
    r"the short of it": "in short",
    r"on the way up": "convergence",
    r"is it to be": "can it be",
    r"(?:has|have) not (?:a|an|the|any|one)": "lacks, does not have",
    r"there is none|none that": "no ... ",
    r"what is there": "the existing ...",
    r"had better": "should",
}


def prose(text: str) -> str:
    """Return a page without code, addresses and what it prints."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>", " ", text)
    return re.sub(r"\s+", " ", text)


def refused(text: str) -> list[str]:
    """Return the passages of a text that contain a refused phrase."""
    return [
        f"{text[max(0, found.start() - 30) : found.end() + 20]!r}: write {instead}"
        for phrase, instead in REFUSED.items()
        for found in re.finditer(rf"\b(?:{phrase})\b", text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_in_plain_english(page):
    assert refused(prose(page.read_text(encoding="utf-8"))) == []


def test_refused_phrases_are_found():
    assert len(refused("What stands in it, but for tables of yours, has not a picture.")) == 5
    assert refused("The plots that you have not been shown.") == []
