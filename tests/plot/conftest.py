"""No window opens, and no figure stays open after its test."""

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def closed_figures():
    mpl.use("Agg")
    yield
    plt.close("all")
