"""The site opens from the disk: no page asks for a network, formulas are drawn, and the search answers.

It takes the packages of the extra ``docs``, playwright and Chromium. The checks of accessibility are axe-core's: a file
axe.min.js, in the environment variable AXE or in .venv, where ``make test-all`` puts it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the extra docs is not installed")
pytest.importorskip("latex2mathml", reason="the extra docs is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")

ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]
WIDTHS = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1400, "height": 900}}
PAGES = (
    "index.html",
    "mathematics.html",
    "derivation/bayesian-mixture.html",
    "other-words.html",
    "refusals.html",
    "api/factors.html",
    "galleries/index.html",
    "command-line.html",
    "models/gaussian_mixture.html",
)
AXE = Path(os.environ.get("AXE", ROOT / ".venv" / "axe.min.js"))
LOOKS = {"phone": "light", "desk": "dark"}
"""Colour scheme in which axe looks at each width."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the site, built as ``make docs`` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def opened(browser, site):
    """Return a function that opens a page, and lists of what it asked of a network and of its errors."""
    asked, errors, tabs = [], [], []

    def open_page(name, viewport):
        tab = browser.new_page(viewport=viewport)
        tab.on("request", lambda r: asked.append(r.url) if r.url.startswith("http") else None)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto((site / name).as_uri())
        tabs.append(tab)
        return tab

    open_page.asked, open_page.errors = asked, errors
    yield open_page
    for tab in tabs:
        tab.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_needs_no_network_and_is_no_wider_than_the_window(opened, page, width):
    tab = opened(page, WIDTHS[width])
    tab.wait_for_timeout(300)
    assert opened.asked == []
    assert opened.errors == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]["width"]


def test_formulas_are_mathml(opened):
    tab = opened("mathematics.html", WIDTHS["desk"])
    assert tab.locator("math").count() > 40
    assert "\\frac" not in tab.locator("article").inner_text()
    height = tab.locator(".formula math").first.bounding_box()["height"]
    assert height > 15


def test_the_search_finds_a_page_by_another_word(opened):
    tab = opened("models/index.html", WIDTHS["desk"])
    tab.locator(".md-search__input").click()
    tab.keyboard.type("GMM")
    tab.wait_for_selector(".md-search-result__item", timeout=10_000)
    assert "Other words" in tab.locator(".md-search-result__list").inner_text()
    assert opened.errors == []


def test_colours_follow_the_system_and_the_switch(browser, site):
    tab = browser.new_page(color_scheme="dark")
    tab.goto((site / "index.html").as_uri())
    assert tab.locator("body").get_attribute("data-md-color-scheme") == "slate"
    tab.locator("label[for=__palette_0]").click()
    assert tab.locator("body").get_attribute("data-md-color-scheme") == "default"
    tab.close()


@pytest.mark.skipif(not AXE.is_file(), reason=f"there is no axe-core at {AXE}")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing(browser, site, page, width):
    tab = browser.new_page(viewport=WIDTHS[width], color_scheme=LOOKS[width])
    tab.goto((site / page).as_uri())
    tab.wait_for_timeout(300)
    tab.evaluate(AXE.read_text(encoding="utf-8"))
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    tab.close()
    assert [(violation["id"], violation["nodes"][0]["html"]) for violation in found] == []


def test_the_keyboard_reaches_a_formula_that_scrolls(browser, site):
    """A formula wider than a phone is a stop of the tab key; where it fits, it is none."""
    tab = browser.new_page(viewport=WIDTHS["phone"])
    tab.goto((site / "mathematics.html").as_uri())
    stops = ".formula[tabindex='0'][role=group][aria-label=Formula]"
    tab.wait_for_selector(stops)
    on_phone = tab.locator(stops).count()
    tab.set_viewport_size(WIDTHS["desk"])
    tab.wait_for_timeout(300)
    assert 0 <= tab.locator(stops).count() < on_phone
    tab.close()
