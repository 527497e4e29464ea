"""Labels of groups and joint labels over rows that lack some values: the ELBO against sums over all labels.

Where entries of vectors with a full precision are missing, a label of groups is refused; the chain that the message
states instead has the exact evidence.
"""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import caviar as cv

OBS, SUBJECT, FEATURE = cv.Plate("obs"), cv.Plate("subject", 3), cv.Plate("feature", 3)
KIND, OTHER = cv.Plate("kind", 2), cv.Plate("other", 2)
G = cv.Data("g", plates=OBS)
GROUPS = np.array([0, 0, 1, 1, 1, 2, 2])
SHARES, MEANS = np.array([0.4, 0.6]), np.array([[0.0, 1.0, 2.0], [3.0, 2.0, -1.0]])
PRECISION = np.array([[1.0, 0.3, 0.0], [0.3, 2.0, 0.1], [0.0, 0.1, 1.0]])
ROWS = np.random.default_rng(0).normal(size=(7, 3)) + MEANS[[0, 0, 1, 1, 1, 0, 0]]
# a row without any value, others that lack one or two, and a complete group
for place in ((0, 1), (2, 0), (2, 1), (2, 2), (4, 0), (4, 2)):
    ROWS[place] = np.nan


def of_groups(log_likelihood: np.ndarray) -> float:
    """Return the log evidence of labels of groups, log-likelihoods (7, 2) of rows."""
    sums = np.array([log_likelihood[group == GROUPS].sum(axis=0) for group in range(3)])
    return float(logsumexp(np.log(SHARES) + sums, axis=1).sum())


def of_vectors(precision: np.ndarray) -> np.ndarray:
    """Return the log density of what was seen of each row in both categories, (7, 2)."""
    covariance, found = np.linalg.inv(precision), np.zeros((7, 2))
    for row, seen in enumerate(~np.isnan(ROWS)):
        if seen.any():
            own = covariance[np.ix_(seen, seen)]
            found[row] = [multivariate_normal(mean[seen], own).logpdf(ROWS[row, seen]) for mean in MEANS]
    return found


def test_numbers_of_groups():
    """A group of which some rows, and a plate of which some cells, were not seen."""
    z = cv.Categorical("z", SHARES, plates=SUBJECT)
    one = cv.Constant("one", MEANS[:, 0], plates=KIND)
    posterior = cv.Model(cv.Normal("y", one[z[G]], 1.0, plates=OBS)).fit({"y": ROWS[:, 0], "g": GROUPS})
    logs = np.nan_to_num(norm(MEANS[:, 0], 1).logpdf(ROWS[:, :1]))
    assert_allclose(posterior.elbo, of_groups(logs), rtol=1e-12)
    all_cells = cv.Constant("all", MEANS, plates=(KIND, FEATURE))
    model = cv.Model(cv.Normal("y", all_cells[z[G]], 1.0, plates=(OBS, FEATURE)))
    logs = np.nansum(norm(MEANS, 1).logpdf(ROWS[:, None]), axis=-1)
    assert_allclose(model.fit({"y": ROWS, "g": GROUPS}).elbo, of_groups(logs), rtol=1e-12)


def test_vectors_of_groups():
    """The chain of the message: a state that never changes, which begins anew with each group."""
    z = cv.Categorical("z", SHARES, plates=SUBJECT)
    mean = cv.Constant("mean", MEANS, plates=KIND)
    model = cv.Model(cv.MultivariateNormal("y", mean[z[G]], PRECISION, plates=OBS))
    with pytest.raises(cv.DataError, match="is also a chain that keeps its state") as error:
        model.fit({"y": ROWS, "g": GROUPS})
    found = re.search(
        r"(MarkovChain\(.*\)), 1 at the first row of each group\. Or state the columns", str(error.value)
    )
    assert found is not None
    names = {"MarkovChain": cv.MarkovChain, "Data": cv.Data, "probabilities": SHARES, "np": np, "obs": OBS}
    chain = eval(found[1], names)
    starts = np.diff(GROUPS, prepend=-1) != 0
    posterior = cv.Model(cv.MultivariateNormal("y", mean[chain], PRECISION, plates=OBS)).fit(
        {"y": ROWS, "starts": starts}
    )
    assert_allclose(posterior.elbo, of_groups(of_vectors(PRECISION)), rtol=1e-12)


def test_labels_together():
    """Two labels of a row in one factor, and two leaves of which different rows were seen."""
    z, v = cv.Categorical("z", SHARES, plates=OBS), cv.Categorical("v", [0.3, 0.7], plates=OBS)
    of_both = np.random.default_rng(1).normal(size=(2, 2, 3))
    table = cv.Constant("table", of_both, plates=(KIND, OTHER))
    alone = cv.Constant("alone", [0.0, 3.0], plates=KIND)
    x = np.array([1.0, np.nan, 2.0, 0.0, np.nan, 1.0, np.nan])
    model = cv.Model(
        cv.MultivariateNormal("y", table[z, v], PRECISION, plates=OBS),
        cv.Normal("x", alone[z], 1.0, plates=OBS),
    )
    posterior, covariance, exact = model.fit({"y": ROWS, "x": x}), np.linalg.inv(PRECISION), 0.0
    for row, seen in enumerate(~np.isnan(ROWS)):
        logs = np.log(SHARES)[:, None] + np.log([0.3, 0.7])
        own = covariance[np.ix_(seen, seen)]
        for k, j in np.ndindex(2, 2):
            if seen.any():
                logs[k, j] += multivariate_normal(of_both[k, j, seen], own).logpdf(ROWS[row, seen])
            if not np.isnan(x[row]):
                logs[k, j] += norm(3.0 * k, 1).logpdf(x[row])
        exact += logsumexp(logs)
    assert_allclose(posterior.elbo, exact, rtol=1e-12)


@pytest.mark.parametrize(
    "chain",
    [
        lambda **own: cv.MarkovChain("s", SHARES, np.eye(2), **own),
        lambda **own: cv.LinearGaussianChain("s", [0.0], [[1.0]], [[1.0]], [[1.0]], **own),
        lambda **own: cv.MarkovChainMixture("s", SHARES, SHARES, np.full((2, 2, 2), 0.5), **own),
    ],
)
def test_chains_within_groups_say_where_each_begins(chain):
    """A plate within another one was one sequence without a word; the statement of the message is exact."""
    step = cv.Plate("step", within=cv.Plate("series"))
    with pytest.raises(cv.PlateError, match=r"add starts=Data\('starts', plates=step\)"):
        chain(along=step)
    assert chain(along=step, starts=cv.Data("starts", plates=step)).plates == (step,)


def test_chains_within_groups_are_exact():
    """A list with an array for each group, and one with where each begins."""
    row = cv.Plate("row", within=cv.Plate("group"))
    z = cv.MarkovChain("z", SHARES, np.eye(2), along=row, starts=cv.Data("starts", plates=row))
    mean = cv.Constant("mean", MEANS, plates=KIND)
    parts = [ROWS[group == GROUPS] for group in range(3)]
    posterior = cv.Model(cv.MultivariateNormal("y", mean[z], PRECISION, plates=row)).fit(
        {"y": parts, "starts": [np.arange(len(own)) == 0 for own in parts]}
    )
    assert_allclose(posterior.elbo, of_groups(of_vectors(PRECISION)), rtol=1e-12)
