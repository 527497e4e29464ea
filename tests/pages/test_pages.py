"""The documentation tells the truth: its code runs, prints what the pages say, and states the library's models."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from build_examples import DOCS, PageRun, agree, commands, pages, run_page

import caviar as cv

QUICK = [DOCS / name for name in ("index.md", "derivation/one-row.md", "densities.md")]
REFUSALS = DOCS / "refusals.md"
SLOW = [
    pytest.param(page, marks=pytest.mark.posix) if commands(page) else page
    for page in pages()
    if page not in (*QUICK, REFUSALS)
]
STATED = re.compile(r"`(caviar\.models\.\w+\(.*\))`\s+returns\s+this\s+statement")
PICTURE = re.compile(r"!\[[^\]]*\]\((?:\.\./)?pictures/([\w.]+)\)")


def relative(page: Path) -> str:
    return str(page.relative_to(DOCS))


def statement_run(page: Path, tmp_path: Path) -> PageRun:
    """Run only the statement of a model's page, its first block that defines ``model``."""
    text = page.read_text(encoding="utf-8")
    first = text.index("model = cv.Model(")
    copy = tmp_path / page.name
    copy.write_text(text[: text.index("```\n", first) + 4], encoding="utf-8")
    return run_page(copy)


def known_values(model: cv.Model) -> dict[str, list]:
    """Return the numbers of a statement: variable and slot -> value; numbers for all elements as one."""
    constants = {
        f"{variable}.{name}": slot.node.value
        for variable, node in model.variables.items()
        for name, slot in node.slots.items()
        if isinstance(slot.node, cv.Constant)
    }
    return {name: np.unique(value).tolist() for name, value in constants.items()}


def model_pages() -> list[Path]:
    """Return the page of each model."""
    return sorted(page for page in (DOCS / "models").glob("*.md") if page.name != "index.md")


@pytest.mark.parametrize("page", QUICK, ids=relative)
def test_a_page_prints_what_it_says(page):
    assert run_page(page).differences() == []


@pytest.mark.slow
@pytest.mark.posix
def test_the_tour_prints_what_the_first_page_says(tmp_path):
    """By itself, for its page is among the slow ones, and it is what a user sees first."""
    copy = tmp_path / "start.md"
    text = (DOCS / "start.md").read_text(encoding="utf-8")
    first = text.index("```sh\ncaviar demo")
    copy.write_text(text[first : text.index("```\n", text.index("```text", first)) + 4], encoding="utf-8")
    run = run_page(copy)
    assert len(run.outputs) == 1
    assert run.differences() == []


def test_the_readme_prints_what_it_says(tmp_path):
    """Its commands are left out: they read what ``make demo`` writes."""
    copy = tmp_path / "README.md"
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    copy.write_text(re.sub(r"```sh\n.*?```\n", "", text, flags=re.DOTALL), encoding="utf-8")
    run = run_page(copy)
    assert len([stated for _, stated, _ in run.outputs if stated]) >= 2
    assert run.differences() == []


@pytest.mark.slow
# a library that pages compare with leaves a file open, which a later page would be blamed for
@pytest.mark.filterwarnings("ignore:unclosed file .*vb_autosave:ResourceWarning")
@pytest.mark.parametrize("page", SLOW, ids=relative)
def test_a_page_prints_what_it_says_and_draws_its_pictures(page):
    run = run_page(page)
    assert run.differences() == []
    # a page of many has them among its thumbnails, too
    assert sorted(run.pictures) == sorted(set(PICTURE.findall(run.text)))


def test_refusals_are_word_for_word():
    run = run_page(REFUSALS)
    assert run.differences(exactly=True) == []
    assert sum(re.match(r"\w+(Error|Warning): ", printed) is not None for _, _, printed in run.outputs) >= 20


def test_every_refusal_has_a_recipe_that_runs():
    """It links to a heading of a page whose code is executed, with code between it and the next heading."""
    sections = re.split(r"^### ", REFUSALS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(sections) > 60
    for section in sections:
        links = re.findall(r"^Recipe: \[([^]]+)\]\(([\w-]+\.md)#([\w-]+)\)\.$", section, re.MULTILINE)
        assert len(links) == 1, section
        title, page, anchor = links[0]
        assert anchor == re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        assert DOCS / page in pages()
        text = (DOCS / page).read_text(encoding="utf-8")
        found = re.search(rf"^##+ {re.escape(title)}$(.*?)(?=^#{{2,3}} |\Z)", text, re.MULTILINE | re.DOTALL)
        assert found is not None, title
        assert "```python" in found[1], title


@pytest.mark.parametrize("page", model_pages(), ids=relative)
def test_the_statement_of_a_page_is_that_of_the_library(page, tmp_path):
    """The terms of the page's statement are those of the function of ``caviar.models`` that the page names."""
    named = STATED.search(page.read_text(encoding="utf-8"))
    assert named is not None, "the page does not name its function"
    run = statement_run(page, tmp_path)
    stated = run.namespace["model"]
    library = eval(named[1], {**run.namespace, "caviar": cv, "np": np})
    assert sorted(map(str, stated.terms)) == sorted(map(str, library.terms))
    assert known_values(stated) == known_values(library)
    sizes = [
        {plate.name: plate.size for v in m.variables.values() for plate in v.plates}
        for m in (stated, library)
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("page", model_pages(), ids=relative)
def test_a_model_has_a_picture_and_references(page):
    text = page.read_text(encoding="utf-8")
    pictures = PICTURE.findall(text)
    assert pictures
    for name in pictures:
        assert 0 < (DOCS / "pictures" / name).stat().st_size < 100_000
    for heading in ("## The model", "## The model in caviar", "## Updates and ELBO", "## References"):
        assert heading in text


def test_groups_of_points_are_told_apart_by_their_markers_too():
    """In grey, or with another colour vision, colours alone are not enough."""
    lines = [
        (page.name, line.strip())
        for page in DOCS.rglob("*.md")
        for line in page.read_text(encoding="utf-8").splitlines()
        if ".scatter(" in line and re.search(r'f"C\{', line)
    ]
    assert len(lines) > 2
    assert [own for own in lines if "marker=" not in own[1]] == []


def test_every_model_has_a_page():
    """Each public name of ``caviar.models`` stands on a page."""
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "models").glob("*.md"))
    assert [name for name in cv.models.__all__ if name not in text] == []


def test_every_page_is_in_the_navigation():
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"[\w/-]+\.md", navigation))
    assert listed == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}


@pytest.mark.parametrize(
    ("stated", "printed", "same"),
    [
        ("ELBO -12.34\n", "ELBO -12.34\n", True),
        ("ELBO -12.34\n", "ELBO -12.35\n", True),
        ("ELBO -12.34\n", "ELBO -12.38\n", False),
        ("ELBO -12.34\n", "ELBO 12.34\n", False),
        ("12 rows\n", "13 rows\n", False),
        ("a 1.0\n", "b 1.0\n", False),
        ("[1.0 2.0]\n", "[1.0 2.0 3.0]\n", False),
        ("a   1.0\n", "a 1.0\n", True),
    ],
)
def test_outputs_agree_but_for_rounding(stated, printed, same):
    assert agree(stated, printed) is same


@pytest.mark.slow
@pytest.mark.posix
def test_commands_of_a_page_are_run_and_other_programs_left_out(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\npip install nothing\ncaviar --version\n```\n\n```text\nold\n```\n\n"
        '```sh\ncaviar show absent.caviar || echo "status $?"\n```\n',
        encoding="utf-8",
    )
    run = run_page(page)
    (_, stated, version), (_, _, refused) = run.outputs
    assert (stated, version) == ("old\n", f"caviar {cv.__version__}\n")
    assert refused.splitlines()[-1] == "status 2"
    assert refused.startswith("error: ")
    assert f"caviar --version\n```\n\n```text\ncaviar {cv.__version__}\n```\n" in run.text
    assert len(run.differences()) == 2


@pytest.mark.posix
def test_a_command_that_fails_unexpectedly_is_an_error(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\ncaviar show\n```\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="status 2"):
        run_page(page)
