"""What cannot be drawn is refused, and the message says what to do."""

from functools import cache

import numpy as np
import pytest

import caviar as cv
from plot.fits import (
    FAITHFUL,
    GALAXIES,
    PENGUINS,
    VOCABULARY,
    chain,
    factors,
    faithful,
    penguins,
    restarted,
    topics,
)


def mixed():
    return cv.MixedMixture(2, random_state=0, max_iter=2, tol=1.0).fit(FAITHFUL)


COUNTS = np.random.default_rng(0).poisson(2.0, (8, 5))


@cache
def counted():
    return cv.LatentDirichletAllocation(2, random_state=0).fit(COUNTS)


def all_known():
    """A fit in which nothing is hidden."""
    return cv.Model(cv.Normal("x", 0.0, 1.0, plates=cv.Plate("obs"))).fit({"x": [0.1, 0.2]})


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda: cv.plot.forest(all_known()), "forest draws a global variable, and this fit has none"),
        (lambda: cv.plot.prior_posterior(all_known()), "draws a global variable, and this fit has none"),
        (lambda: cv.plot.weights(all_known()), "no global variable 'weights'; it has none"),
        (lambda: cv.plot.responsibilities(all_known(), {"x": [0.1, 0.2]}), "rows have no hidden labels"),
        (lambda: cv.plot.elbo_trace(cv.BayesianGaussianMixture(2)), "call fit first"),
        (lambda: cv.plot.elbo_trace(3), "expected a posterior.*int"),
        (lambda: cv.plot.pairs(restarted(), FAITHFUL), "fitted mixture of Gaussians.*Posterior.*forest"),
        (lambda: cv.plot.pairs(mixed(), FAITHFUL), "fitted mixture of Gaussians.*MixedMixture.*forest"),
        (lambda: cv.plot.density(cv.BayesianGaussianMixture(2), FAITHFUL), "after fit"),
        (lambda: cv.plot.density(penguins(), PENGUINS.values[:, 2:6]), "4; caviar.plot.pairs"),
        (lambda: cv.plot.pairs(faithful(), FAITHFUL, level=95), "between 0 and 1.*95"),
        (
            lambda: cv.plot.pairs(faithful(), FAITHFUL, columns=["waiting"]),
            "'waiting'; the columns are x0, x1",
        ),
        (lambda: cv.plot.pairs(faithful(), FAITHFUL, columns=[0]), "caviar.plot.density"),
        (lambda: cv.plot.pairs(faithful(), FAITHFUL, names=["a"]), "each of the 2 columns; got 1"),
        (
            lambda: cv.plot.weights(restarted(), variable="w"),
            "no global variable 'w'; it has 'theta', 'weights'",
        ),
        (lambda: cv.plot.weights(chain(), variable="transition"), r"\(3, 3\).*forest"),
        (lambda: cv.plot.weights(faithful(), names=["a"]), "2 entries, but names= gives 1"),
        (lambda: cv.plot.forest(factors()), "choose one of.*'loadings'"),
        (lambda: cv.plot.forest(faithful(), "theta"), "'means' or 'precisions'"),
        (lambda: cv.plot.forest(faithful(), "theta.scale"), "no part 'theta.scale'"),
        (lambda: cv.plot.forest(factors(), "mean", max_entries=3), "max_entries=5"),
        (
            lambda: cv.plot.forest(factors(), "mean", names={"column": "abcde"}),
            "the axes of 'mean' are 'feature'",
        ),
        (lambda: cv.plot.forest(factors(), "mean", only={"feature": ["7"]}), "which has 0, 1, 2, 3, 4"),
        (lambda: cv.plot.loadings(faithful(), variable="weights"), "table of columns by factors"),
        (lambda: cv.plot.topic_words(topics()), "the words of these topics are not known"),
        (lambda: cv.plot.topic_words(topics(), ["goal"]), "over 6 words, but the vocabulary has 1"),
        (lambda: cv.plot.topic_words(topics(), VOCABULARY, topics=[2]), "from 0 to 1; got 2"),
        (lambda: cv.plot.topic_words(topics(), VOCABULARY, n_words=0), "at least 1; got 0"),
        (lambda: cv.plot.topic_words(factors(), VOCABULARY), "no global variable 'topics'"),
        (
            lambda: cv.plot.partial_effects(counted(), COUNTS),
            "'word' must be one number in each row to be drawn against a column",
        ),
        (lambda: cv.plot.regression(counted(), COUNTS), "'word' must be one number in each row"),
    ],
)
def test_the_message_says_what_to_do(draw, says):
    with pytest.raises(cv.ParameterError, match=f"(?s){says}"):
        draw()


def test_too_many_columns_are_refused():
    rows = np.random.default_rng(0).normal(size=(60, 9))
    mixture = cv.BayesianGaussianMixture(1, random_state=0).fit(rows)
    with pytest.raises(cv.ParameterError, match=r"9 columns are too many.*columns="):
        cv.plot.pairs(mixture, rows)
    assert cv.plot.pairs(mixture, rows, columns=[8, 0]).shape == (2, 2)


@pytest.mark.parametrize("rows", [GALAXIES, np.empty((0, 2)), [["a", "b"]], np.ones(3)])
def test_other_rows_are_refused(rows):
    with pytest.raises(cv.DataError, match="expected rows"):
        cv.plot.pairs(faithful(), rows)


def test_a_table_without_the_columns_of_the_fit_is_refused():
    import pandas as pd

    table = pd.DataFrame(FAITHFUL, columns=["eruptions", "waiting"])
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(table)
    with pytest.raises(cv.DataError, match="lacks the columns waiting"):
        cv.plot.pairs(mixture, table[["eruptions"]])
