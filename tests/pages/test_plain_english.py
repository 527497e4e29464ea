"""Pages, public docstrings and messages avoid words that stop a reader; each is listed with what to write instead."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
SOURCE = ROOT / "src" / "caviar"
PARTS = sorted(path for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__")
TEMPLATES = sorted((ROOT / "src" / "caviar").rglob("*.html"))
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


# whether a text contains any, which few do
ANY = re.compile(rf"\b(?:{'|'.join(REFUSED)})\b", re.IGNORECASE)


def prose(text: str) -> str:
    """Return a page without code, addresses and what it prints."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>", " ", text)
    return re.sub(r"\s+", " ", text)


def refused(text: str) -> list[str]:
    """Return the passages of a text that contain a refused phrase."""
    if not ANY.search(text):
        return []
    return [
        f"{text[max(0, found.start() - 30) : found.end() + 20]!r}: write {instead}"
        for phrase, instead in REFUSED.items()
        for found in re.finditer(rf"\b(?:{phrase})\b", text, re.IGNORECASE)
    ]


def public_docstrings(tree: ast.AST) -> Iterator[str]:
    """Yield the docstrings of functions and classes that do not begin with an underscore, nor what they belong to."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield ast.get_docstring(node) or ""
            yield from public_docstrings(node)


def messages(tree: ast.AST) -> Iterator[str]:
    """Yield texts of four words or more that are no docstrings: messages, titles, labels; a value in one is an X."""
    nodes = list(ast.walk(tree))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(own.value if isinstance(own, ast.Constant) else "X" for own in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        if text.count(" ") >= 3:
            yield text


def without_markup(text: str) -> str:
    """Return a docstring or a message without code, references, formulas, options and the names of attributes."""
    named = re.sub(r"^\w+(?:, \w+)*$(?=\n )", " ", text, flags=re.MULTILINE)
    return re.sub(
        r"\s+", " ", re.sub(r"``[^`]*``|:\w+:`[^`]*`|^ *>>>.*$|--[\w-]+", " ", named, flags=re.MULTILINE)
    )


def refused_in(path: Path) -> list[str]:
    """Return the passages of a file of the library that contain a refused phrase."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = map(without_markup, [*public_docstrings(tree), *messages(tree)])
    return [f"{path.name}: {passage}" for text in found for passage in refused(text)]


@pytest.mark.parametrize("part", [SOURCE, *PARTS], ids=lambda part: part.name)
def test_docstrings_and_messages_are_in_plain_english(part):
    paths = part.glob("*.py") if part == SOURCE else part.rglob("*.py")
    assert [passage for path in sorted(paths) for passage in refused_in(path)] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_report_is_in_plain_english(path):
    text = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}|<[^>]*>", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r'"([^"]*)"', path.read_text(encoding="utf-8"))
    shown = [text, *(own for own in headings if " " in own)]
    assert [passage for own in shown for passage in refused(re.sub(r"\s+", " ", own))] == []


def test_docstrings_and_messages_are_found():
    source = '''
def shown(x):
    """Return a picture."""
    raise ValueError(f"the {x} stands in the way of it")

def _hidden():
    """Return a picture."""
'''
    tree = ast.parse(source)
    assert list(public_docstrings(tree)) == ["Return a picture."]
    assert list(messages(tree)) == ["the X stands in the way of it"]
    assert len(refused("the X stands in the way of it")) == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_in_plain_english(page):
    assert refused(prose(page.read_text(encoding="utf-8"))) == []


def test_refused_phrases_are_found():
    assert len(refused("What stands in it, but for tables of yours, has not a picture.")) == 5
    assert refused("The plots that you have not been shown.") == []
