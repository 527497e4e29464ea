"""The pages of RxInfer's examples: a section for each row of the gallery, with the random numbers of Julia."""

import re

import numpy as np
import pytest
from build_examples import DOCS
from julia_random import MersenneTwister, StableRNG

GALLERIES = DOCS / "galleries"
PAGES = ("rxinfer.md", "rxinfer-sequences.md")


def table_after(heading: str, page: str) -> list[str]:
    """Return the first cells of the first table after a heading."""
    text = (GALLERIES / page).read_text(encoding="utf-8")
    table = re.search(rf"^{heading}.*?\n\|---[^\n]*\n((?:\|[^\n]*\n)+)", text, re.MULTILINE | re.DOTALL)
    assert table is not None
    return [row.strip("|").split("|")[0].strip() for row in table[1].splitlines()]


def test_each_row_of_the_gallery_has_a_section():
    """Rows that are one example share a line of the contents; "latent autoregression" is in such a line."""
    contents = ", ".join(own for page in PAGES for own in table_after(r"\| rows of the", page))
    rows = table_after("## RxInfer", "index.md")
    assert len(rows) == 20
    assert [row for row in rows if row not in contents] == []


@pytest.mark.parametrize("page", PAGES)
def test_sections_of_the_contents_have_code(page):
    text = (GALLERIES / page).read_text(encoding="utf-8")
    sections = {
        title.lower().replace(" ", "-"): body
        for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    }
    linked = re.findall(r"\]\(#([\w-]+)\)", text)
    assert sorted(linked) == sorted(sections)
    assert [
        title for title, body in sections.items() if not re.search("```python.*```text", body, re.DOTALL)
    ] == []


def test_the_mersenne_twister_is_that_of_julia():
    """Julia's documentation has the first two numbers; RxInfer prints the heads of 500 throws by the posterior."""
    julia = MersenneTwister(123)
    assert [julia.rand(), julia.rand()] == [0.37453777969575874, 0.8735343642013971]
    julia = MersenneTwister(42)
    assert sum(julia.rand() <= 0.75 for _ in range(500)) == 373


def test_the_stable_generator_is_that_of_julia():
    """RxInfer prints the coefficients that its multinomial regression simulates."""
    printed = [-0.12683768965424458, 0.6668851724871252, -1.2566124895590247]
    printed += [-0.08499562516549662, -0.094274004848194]
    np.testing.assert_allclose(StableRNG(123).randn(5), printed, rtol=1e-12)


def test_draws_have_the_moments_of_their_distributions():
    julia, n = StableRNG(1), 20_000
    normal = julia.randn(n)
    assert np.mean(normal) == pytest.approx(0, abs=0.03)
    assert np.mean(normal**4) == pytest.approx(3, abs=0.15)
    assert np.mean([julia.randexp() for _ in range(n)]) == pytest.approx(1, abs=0.03)
    assert np.mean([julia.binomial(12, 0.7) for _ in range(n)]) == pytest.approx(8.4, abs=0.05)
    weights = [0.1, 0.2, 0.15, 0.3, 0.25]
    shares = np.bincount(MersenneTwister(1).categories(weights, n), minlength=5) / n
    np.testing.assert_allclose(shares, weights, atol=0.012)
    shares = np.bincount([julia.category(weights) for _ in range(n)], minlength=5) / n
    np.testing.assert_allclose(shares, weights, atol=0.012)


def test_matrices_are_filled_by_columns_and_certain_events_occur():
    drawn = StableRNG(5).randn(6)
    np.testing.assert_array_equal(StableRNG(5).randn(3, 2), drawn.reshape(2, 3).T)
    assert StableRNG(5).randn() == drawn[0]
    assert (StableRNG(5).binomial(3, 1.0), StableRNG(5).binomial(3, 0.0)) == (3, 0)
