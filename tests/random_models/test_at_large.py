"""Random models with everything that the language states: the first of the seeds that ``at_large`` runs through."""

import warnings

import pytest
import thinning
from thinning import amount

from .at_large import check

DEAR = (25, 31, 47, 59)
"""Seeds that take as long as a dozen others or more."""


@pytest.mark.parametrize("part", range(4))
def test_models_with_links_tables_effects_and_chains(part: int):
    """Each against enumeration, or its densities and finite differences; the seed says which model."""
    for seed in range(part, amount(40, 300), 4):
        if seed in DEAR and not thinning.is_whole:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check(seed)
            except Exception as error:
                raise AssertionError(f"the model of seed {seed}: {error}") from error


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(401218, id="vectors with ARD, looked up by two labels"),
        pytest.param(
            401285, id="a chain with a diagonal of unknown noise, times weights", marks=pytest.mark.slow
        ),
    ],
)
def test_models_that_had_failed(seed: int):
    """Found by runs through other seeds: these fits ended with an error of a shape or a key."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "elbo anew" in check(seed)
