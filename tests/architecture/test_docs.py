"""The documents hold together: links resolve, imports too, examples run, versions agree, nothing refers outside."""

import ast
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from caviar._version import __version__

ROOT = Path(__file__).parents[2]
FOLDERS = (".ci", ".github", "benchmarks", "docs", "examples", "packaging", "src", "tests")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])

CODE_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SCRIPTS = sorted(
    path
    for name in ("benchmarks", "docs", "packaging", "tests/golden", "tests/mutations")
    for path in (ROOT / name).glob("*.py")
)
FILE = re.compile(r"`((?:[\w.-]+/)+\w+\.py)(?:: (\w+))?`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def project_files() -> Iterator[Path]:
    """Yield every text file of the project."""
    for path in ROOT.iterdir():
        if path.is_file() and path.name not in {".git", ".coverage"}:
            yield path
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def prose(document: Path) -> str:
    """Return a document without its blocks of code."""
    return CODE_BLOCK.sub("", document.read_text(encoding="utf-8"))


def python_of(document: Path) -> str:
    """Return the Python blocks of a document as one program, every line where it stands in the document."""
    text = document.read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in CODE_BLOCK.finditer(text):
        if block[1] == "python":
            first = text.count("\n", 0, block.start(2))
            code = block[2].splitlines()
            lines[first : first + len(code)] = code
    return "\n".join(lines)


def anchors(document: Path) -> set[str]:
    """Return the anchors that a renderer gives to a document's headings."""
    text = prose(document)
    titles = (re.sub(r"[^\w\s-]", "", title.lower()) for title in HEADING.findall(text))
    # a reference has an anchor for each name that it shows
    return {title.replace(" ", "-") for title in titles} | set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_resolve(document):
    broken = []
    for link in LINK.findall(prose(document)):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def imported(program: str) -> Iterator[str]:
    """Yield the dotted names that a program imports from caviar."""
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "caviar":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "caviar")


def is_there(name: str) -> bool:
    """Return whether a dotted name is that of a module, or of something in one."""
    try:
        pkgutil.resolve_name(name)
    except AttributeError:
        return False
    return True


def test_what_documents_and_scripts_import_is_there():
    """Neither tests nor pyright run through most of these scripts."""
    programs = {path: python_of(path) for path in DOCUMENTS}
    programs |= {path: path.read_text(encoding="utf-8") for path in SCRIPTS}
    names = {name for program in programs.values() for name in imported(program)}
    absent = {name for name in names if not is_there(name)}
    found = {
        str(path.relative_to(ROOT)): absent.intersection(imported(program))
        for path, program in programs.items()
    }
    assert {path: absent for path, absent in found.items() if absent} == {}


def test_what_is_not_there_is_found():
    program = "from caviar import Model, Modell\nfrom caviar.engine import compiled\nimport caviar.enigne\n"
    assert [name for name in imported(program) if not is_there(name)] == ["caviar.Modell", "caviar.enigne"]


def test_files_that_documents_name_are_there():
    """By the end of their paths, with the name in them that follows; the change log tells of files that were."""
    named = {
        (path.name, *found)
        for path in DOCUMENTS
        if path.name != "CHANGELOG.md"
        for found in FILE.findall(prose(path))
    }
    there = {f"/{path.relative_to(ROOT).as_posix()}": path for path in project_files()}

    def holds(name: str, inside: str) -> bool:
        paths = [path for end, path in there.items() if end.endswith(f"/{name}")]
        return any(
            re.search(rf"^ *(def|class) {inside}\b|^{inside}\b", path.read_text(), re.M) for path in paths
        )

    assert sorted(own for own in named if not holds(*own[1:])) == []


def test_no_file_refers_outside_the_project():
    outside = ("/" + "work/", ".." + "/shared")
    found = {
        str(path.relative_to(ROOT))
        for path in project_files()
        if any(text in path.read_text(encoding="utf-8", errors="ignore") for text in outside)
    }
    assert found == set()


def test_the_version_is_the_same_in_every_document():
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
