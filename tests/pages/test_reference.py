"""The reference has every public name, and shows docstrings as they are meant."""

import re

import pytest
from build_examples import DOCS
from list_names import MODULES
from list_names import page as names_page

import caviar as cv

SHOWN = [
    name
    for page in sorted((DOCS / "api").glob("*.md"))
    for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.fixture(scope="module")
def package():
    griffe = pytest.importorskip("griffe", reason="pages of the reference are built with the extra docs")
    from sphinx_markup import SphinxMarkup

    return griffe.load(
        "caviar",
        search_paths=[DOCS.parent / "src"],
        extensions=griffe.load_extensions(SphinxMarkup),
        resolve_aliases=True,
    )


def test_every_public_name_stands_in_the_reference_once():
    top = {f"caviar.{name}" for name in cv.__all__} - {"caviar.__version__"}
    below = {f"caviar.{module}.{name}" for module in MODULES for name in getattr(cv, module).__all__}
    twice = {
        f"caviar.{module}.{name}"
        for module in MODULES
        for name in getattr(cv, module).__all__
        if name in cv.__all__ and getattr(cv, name) is getattr(getattr(cv, module), name)
    }
    assert sorted(SHOWN) == sorted(top | (below - twice))
    assert "`caviar.__version__`" in (DOCS / "api" / "index.md").read_text(encoding="utf-8")


def test_the_list_of_names_is_that_of_the_package():
    """`python docs/list_names.py` writes it."""
    listed = (DOCS / "api" / "names.md").read_text(encoding="utf-8")
    assert listed == names_page()
    assert not re.search(r"\| *\|$|\| (dict|str|tuple|list)\(", listed, re.MULTILINE)


@pytest.mark.slow
def test_what_is_shown_is_what_has_the_name(package):
    """Functions and classes have docstrings in which no markup of Sphinx is left; no module covers a function."""
    for name in SHOWN:
        found = package[name.removeprefix("caviar.")]
        assert found.docstring is not None, name
        assert found.is_class or found.is_function or found.is_attribute, f"{name} is a {found.kind}"
        left = re.search(r":[a-z]+:`|^ *\.\. math::|::$", found.docstring.value, re.MULTILINE)
        assert left is None, f"{name}: {left and left[0]}"


def test_markup_of_sphinx_becomes_markdown():
    pytest.importorskip("griffe", reason="pages of the reference are built with the extra docs")
    from sphinx_markup import markdown

    text = "Mean :math:`x\n+ 1`; see :meth:`fit`, :class:`~caviar.Normal`.\n\n.. math:: a\n    b\n\nEnd::\n\n    code"
    assert markdown(text) == (
        "Mean \\(x + 1\\); see `fit`, "
        '<autoref identifier="caviar.Normal" optional><code>Normal</code></autoref>.\n\n'
        "\n\\[\na\nb\n\\]\n\nEnd:\n\n    code"
    )


def test_formulas_become_mathml():
    pytest.importorskip("latex2mathml", reason="pages are built with the extra docs")
    from mathml import with_mathml

    inline = with_mathml(r'<p><span class="arithmatex">\(\log x &lt; 1\)</span></p>')
    assert '<mi>log</mi><mspace width="0.167em" /><mi>x</mi><mo>&#x0003C;</mo><mn>1</mn>' in inline
    tex = r"\begin{aligned} a &amp;= \bigl\langle b \bigr\rangle \\ c &amp;= d \end{aligned}"
    shown = with_mathml(rf'<div class="arithmatex">\[{tex}\]</div>')
    assert shown.startswith('<div class="formula"><math')
    assert shown.count("<mtr>") == 2
    with pytest.raises(ValueError, match="notacommand"):
        with_mathml(r'<span class="arithmatex">\(\notacommand\)</span>')


def test_every_column_of_a_table_has_a_name():
    """A screen reader says the header with each cell."""
    heads = r"^(\|.*\|)\n\|[-: |]+\|$"
    for page in sorted(DOCS.rglob("*.md")):
        for head in re.findall(heads, page.read_text(encoding="utf-8"), re.MULTILINE):
            assert all(cell.strip() for cell in head.strip("|").split("|")), f"{page.name}: {head}"


def test_what_the_theme_leaves_without_a_name_gets_one():
    from accessibility import accessible

    section = (
        '<nav class="md-nav" aria-labelledby="__nav_1_label"><label class="md-nav__title" for="__nav_1">'
        '<span class="md-nav__icon md-icon"></span> <a>Start &amp; go</a></label>'
    )
    named = section.replace('aria-labelledby="__nav_1_label"', 'aria-label="Start &amp; go"')
    assert accessible(section) == named
    switch = '<input class="md-toggle" data-md-toggle="search"'
    assert accessible(switch) == switch + ' aria-label="Open the search"'
