"""A report in a real browser: it works, by pointer and by keyboard, on a phone and on a desk, on paper and in the dark.

It takes Chromium and the package playwright. The checks of accessibility are axe-core's: a file axe.min.js, in the
environment variable AXE or in .venv, where ``make test-all`` puts it.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import caviar as cv

playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
AXE = Path(os.environ.get("AXE", Path(__file__).parents[2] / ".venv" / "axe.min.js"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return reports by name: of few columns, of many, without data, of one column."""
    folder = tmp_path_factory.mktemp("reports")
    X = cv.datasets.load_faithful().values
    few = cv.BayesianGaussianMixture(3, n_init=3, random_state=0).fit(X)
    few.about_ = {"columns": ["eruptions", "waiting"], "source": "faithful.csv", "rows": 272}
    rng = np.random.default_rng(0)
    wide = rng.normal(0, 5, (6, 7))[rng.integers(0, 6, 1500)] + rng.normal(size=(1500, 7))
    wide[rng.random(wide.shape) < 0.05] = np.nan
    many = cv.BayesianGaussianMixture(8, random_state=0).fit(wide)
    many.about_ = {
        "columns": ["mass", HOSTILE, "petal length", "d", "e", "f", "a long name that goes on and on"]
    }
    far = np.concatenate([X, [[500.0, 60.0], [-400.0, 9000.0]]])
    one = cv.KnownVarianceMixture(2, random_state=0).fit(X[:, :1])
    reports = {
        "few": (few, X),
        "many": (many, wide),
        "without data": (few, None),
        "one": (one, X[:, :1]),
        "far out": (few, far),
        **posteriors(),
    }
    for name, (estimator, rows) in reports.items():
        cv.report.write(estimator, folder / f"{name}.html", rows)
    return {name: (folder / f"{name}.html").as_uri() for name in reports}


def posteriors():
    """Return posteriors and their data by name, with names from outside: coefficients, hidden states, topics."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(6), 20)
    X = pandas.DataFrame({"intercept": np.ones(120), HOSTILE: rng.normal(size=120)})
    y = X.to_numpy() @ [1.0, 2.0] + 0.4 * group + 0.3 * rng.normal(size=120)
    data = {"X": X, "group": group, "y": y}
    hidden = {"x": rng.normal(4.0 * (np.arange(400) // 20 % 3)[:, None], 1.0, (400, 2))}
    chain = cv.models.gaussian_hidden_markov_model(2, 3).fit(hidden, seed=0, n_restarts=3)
    corpus = cv.datasets.load_political_blogs()
    topics = cv.LatentDirichletAllocation(5, random_state=0, tol=1.0).fit(corpus.counts[:150])
    topics.about_ = {"columns": [HOSTILE, *corpus.words[1:]], "source": "blogs"}
    return {
        "regression": (cv.models.varying_coefficients(2, 6).fit(data), data),
        "hidden": (chain, hidden),
        "hidden without data": (chain, None),
        "topics": (topics, corpus.counts[:150]),
    }


NAMES = ["few", "many", "without data", "one", "far out"]
POSTERIORS = ["regression", "hidden", "hidden without data", "topics"]


@pytest.fixture
def opened(browser, files):
    """Return a function that opens a report; what the browser complains of fails the test."""
    complaints, contexts = [], []

    def open_report(name, viewport=DESK, **settings):
        context = browser.new_context(viewport=viewport, **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append("a script from the data ran"), dialog.dismiss()))
        page.on(
            "request",
            lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url),
        )
        page.goto(files[name])
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert complaints == []


def column(page, table, number):
    return page.eval_on_selector_all(
        f"#{table} tbody tr", f"rows => rows.map(row => row.cells[{number}].textContent.trim())"
    )


def test_a_heading_sorts_up_and_down(opened):
    page = opened("few")
    button = page.get_by_role("button", name="Surprise, nats")
    heading = page.locator("#outliers th", has_text="Surprise, nats")
    button.click()
    first = [float(text) for text in column(page, "outliers", 2)]
    assert first == sorted(first)
    assert heading.get_attribute("aria-sort") == "ascending"
    button.click()
    assert [float(text) for text in column(page, "outliers", 2)] == first[::-1]
    assert heading.get_attribute("aria-sort") == "descending"


def test_the_components_are_filtered(opened):
    page = opened("few")
    shown = page.locator("#component-table tbody tr:visible")
    assert shown.count() == 3
    page.get_by_label("Weight at least").fill("50")
    assert shown.count() == 1
    assert page.locator("#component-count").inner_text() == "1 of 3 components shown"
    page.get_by_label("Weight at least").fill("0")
    page.get_by_label("Find").fill("no such")
    assert shown.count() == 0


def test_a_component_is_hidden_in_every_plot(opened):
    page = opened("few")
    ovals, areas = page.locator("#pair-plot .oval"), page.locator("#density-plot .area")
    n_shown = ovals.count()
    assert areas.count() == n_shown >= 2
    page.locator("#chips button").first.click()
    assert (ovals.count(), areas.count()) == (n_shown - 1, n_shown - 1)
    assert page.locator("#pair-plot .dots").count() == n_shown - 1
    page.locator("#chips button").first.click()
    assert ovals.count() == n_shown


def test_another_pair_is_drawn_by_a_small_picture_and_by_name(opened):
    page = opened("many")
    plot = page.locator("#pair-plot svg")
    before = plot.get_attribute("aria-label")
    page.locator(".thumb").last.click()
    after = plot.get_attribute("aria-label")
    assert after != before
    assert page.locator('.thumb[aria-pressed="true"]').count() == 1
    page.get_by_label("Across").select_option("6")
    assert "against a long name that goes on and on" in plot.get_attribute("aria-label")


def test_a_row_is_read_by_pointer_and_by_number(opened):
    page = opened("few")
    page.get_by_label("Row", exact=True).fill("0")
    page.locator("#pair-plot").scroll_into_view_if_needed()
    assert page.locator("#pair-readout").inner_text().startswith("Row 0, component")
    assert "eruptions 3.6, waiting 79" in page.locator("#pair-readout").inner_text()
    ring = page.locator("#pair-plot .here").bounding_box()
    page.get_by_label("Row", exact=True).fill("1")
    page.mouse.move(ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2)
    assert "eruptions 3.6, waiting 79" in page.locator("#pair-readout").inner_text()


def test_the_density_is_read_by_keyboard(opened):
    page = opened("few")
    slider = page.get_by_label("Read the density at")
    before = page.locator("#density-readout").inner_text()
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator("#density-readout").inner_text() != before
    assert slider.get_attribute("aria-valuetext").startswith("eruptions")


def test_leaving_out_the_farthest_rows_draws_the_others_larger(opened):
    page = opened("many")
    before = page.locator("#pair-plot .oval").first.bounding_box()["width"]
    page.get_by_label("Leave out the farthest 2%").check()
    assert page.locator("#pair-plot .oval").first.bounding_box()["width"] > before


def test_rows_far_out_do_not_make_the_others_small(opened):
    page = opened("far out")
    assert page.get_by_label("Leave out the farthest 2%").is_checked()
    close = page.locator("#pair-plot .oval").first.bounding_box()["width"]
    page.get_by_label("Leave out the farthest 2%").uncheck()
    assert page.locator("#pair-plot .oval").first.bounding_box()["width"] < close / 2


def test_the_way_up_can_be_seen_on_a_logarithmic_scale(opened):
    page = opened("few")
    before = page.locator("#trace-plot .trace").get_attribute("d")
    page.get_by_label("Distance to the end").check()
    assert page.locator("#trace-plot .trace").get_attribute("d") != before
    assert "1e" in page.locator("#trace-plot").inner_text()


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("name", NAMES + POSTERIORS)
def test_nothing_is_wider_than_the_window(opened, name, viewport):
    page = opened(name, viewport)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("name", ["few", "many", *POSTERIORS])
def test_the_keyboard_reaches_every_control_and_shows_where_it_is(opened, name):
    page = opened(name)
    wanted = page.evaluate(
        """() => { const all = [...document.querySelectorAll('a[href], button, input, select, [tabindex="0"]')]
            .filter(element => element.offsetParent !== null || element.className === 'skip');
            all.forEach((element, number) => { element.dataset.number = number; }); return all.length; }"""
    )
    reached = set()
    for _ in range(wanted):
        page.keyboard.press("Tab")
        number, outline = page.evaluate(
            """() => [document.activeElement.dataset.number,
                parseFloat(getComputedStyle(document.activeElement).outlineWidth)]"""
        )
        assert outline >= 2, (
            f"the focus on {page.evaluate('document.activeElement.outerHTML')[:200]} is not seen"
        )
        reached.add(number)
    assert len(reached) == wanted


def test_a_heading_sorts_by_keyboard(opened):
    page = opened("few")
    page.get_by_role("button", name="Weight").focus()
    page.keyboard.press("Enter")
    lightest = [float(text.split("%")[0]) for text in column(page, "component-table", 1)]
    assert lightest == sorted(lightest)
    page.keyboard.press("Space")
    assert [float(text.split("%")[0]) for text in column(page, "component-table", 1)] == lightest[::-1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("name", NAMES + POSTERIORS)
@pytest.mark.skipif(not AXE.is_file(), reason=f"there is no axe-core at {AXE}")
def test_axe_finds_nothing(opened, name, viewport, scheme):
    page = opened(name, viewport, color_scheme=scheme, bypass_csp=True)
    page.add_script_tag(path=AXE)
    results = page.evaluate("axe.run(document)")
    assert len(results["passes"]) > 20
    found = results["violations"]
    assert [(entry["id"], [node["html"][:150] for node in entry["nodes"]][:3]) for entry in found] == []


@pytest.mark.parametrize("name", ["few", "many", *POSTERIORS])
def test_it_prints(opened, name):
    page = opened(name, color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(23, 32, 43)"
    assert page.locator("nav").is_hidden()
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_without_scripts_the_tables_are_there(opened):
    page = opened("few", java_script_enabled=False)
    assert page.locator("#component-table tbody tr").count() == 3
    assert "The plots need scripts" in page.locator("#plots").inner_text()


def test_entries_are_filtered_by_variable_and_by_name(opened):
    page = opened("regression")
    shown = page.locator("#variable-table tbody tr:visible")
    every = shown.count()
    page.locator("#variables select").select_option("w")
    assert shown.count() == 12 < every
    page.get_by_label("Find").fill("group 3")
    assert shown.count() == 2
    page.get_by_label("Find").fill("no such")
    assert shown.count() == 0


def test_every_variable_can_be_drawn(opened):
    page = opened("regression")
    plot = page.locator("#intervals-plot svg")
    choices = page.locator("#intervals-controls select")
    for name in choices.locator("option").all_inner_texts():
        choices.select_option(label=name)
        assert f"entries of {name}" in page.locator("#intervals-readout").inner_text()
        assert plot.locator(".dot, .share").count() > 0
    assert page.locator("#cells-plot .cell").count() == 12
    assert page.locator("#scatter-plot .dots").count() == 1


def test_a_hidden_state_is_read_by_keyboard_and_by_pointer(opened):
    page = opened("hidden")
    readout = page.locator("#chain-readout")
    assert readout.inner_text().startswith("Step 0: state ")
    slider = page.get_by_label("Read the step at")
    slider.focus()
    page.keyboard.press("End")
    assert readout.inner_text().startswith("Step 399: state ")
    page.get_by_label("Show").select_option(label="100 steps")
    assert readout.inner_text().startswith("Step 399: state ")
    page.locator("#chain-plot").scroll_into_view_if_needed()
    box = page.locator("#chain-plot svg").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + box["height"] / 2)
    step = int(readout.inner_text().split(":")[0].removeprefix("Step "))
    assert 300 <= step < 310


def test_words_of_topics_are_shown_by_what_sets_them_apart(opened):
    page = opened("topics")
    first = page.locator(".topic svg").first
    before = first.get_attribute("aria-label")
    page.get_by_label("Words of each topic").select_option(label="what sets it apart")
    assert first.get_attribute("aria-label") != before
    assert page.locator(".topic .share").count() == 5 * 12


def test_without_scripts_the_words_of_topics_are_there(opened):
    page = opened("topics", java_script_enabled=False)
    assert page.locator(".topic .words").first.is_visible()
    assert page.locator(".topic .words").first.bounding_box()["height"] > 10
