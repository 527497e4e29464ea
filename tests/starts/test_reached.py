"""Default fits end where fits from the values that made the data do: few models here, all of them when slow."""

import warnings

import pytest
from thinning import amount

from starts.case import TOLERANCE
from starts.registry import CASES

FAST = (
    "columns of the example",
    "columns of widths",
    "rows and columns added",
    "groups by a hidden location",
    "groups of four kinds",
    "groups in two columns",
    "two by three",
    "three by two by two with weights",
    "four by three with weights",
    "slopes beside levels",
    "level and slope",
    "many groups beside clusters",
    "a hundred groups beside clusters",
    "slopes of groups beside clusters",
    "two binary factors",
    "six prototypes of answers",
    "four latent classes",
    "five topics of long documents",
    "holes in two clusters",
    "shapes 9 and 2, order (1, 0)",
    "prior means, order (0, 1, 2)",
    "widths 0.1 and 3, order (0, 1)",
    "widths 0.1 and 3, order (1, 0)",
    "concentrations, order (1, 2, 0)",
    "known weights, order (1, 2, 0)",
    "known weights of five counts",
    "rates multiplied",
    "numbers multiplied",
    "numbers multiplied in columns",
    "one mean, widths 0.1, 1 and 10",
    "widths in widths",
    "two pairs of states in turn",
    "ten states for three",
    "four columns",
    "three values",
    "known transitions, turned",
    "left to right, eight states",
    "left to right, states alike",
    "factors of ten columns",
    "factors beside a regression",
    "factors beside groups",
    "principal components",
    "three ways of much noise",
    "two factor analysers",
    "states and labels in a table",
    "one table",
    "two crossing lines",
    "fifty pieces of thirty rows",
)

NOT_REACHED = {
    "thirty pieces of thirty rows": "0.7 nats below: one of thirty rows is in the other cluster",
    "counts that vary more": "8 nats of 5745 below: one of eight restarts ends nearer",
    "rows and columns multiplied": "2 nats of 669 below: products of labels on both sides of a table",
}
"""Models that fewer than nine seeds in ten reach, and how they end."""


@pytest.mark.thinned(25)
@pytest.mark.parametrize("name", FAST)
# of crossed effects the last ten thousandths of a nat take longer than the default number of iterations
@pytest.mark.filterwarnings("ignore::caviar.ConvergenceWarning")
def test_a_default_fit_ends_where_the_truth_leads(name):
    assert max(CASES[name].shortfalls(amount(1, 2))) <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in NOT_REACHED])
def test_nine_seeds_in_ten_end_where_the_truth_leads(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shortfalls = CASES[name].shortfalls(10)
    assert sum(shortfall <= TOLERANCE for shortfall in shortfalls) >= 9, shortfalls
