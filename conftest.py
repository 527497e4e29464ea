"""What tests and the examples of docstrings share."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Close all figures after each test: those of the examples alone are more than Matplotlib keeps in silence."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
