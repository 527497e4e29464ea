"""``compare_mixtures``: the table has the figures of the fits it names, and log K! is what it is said to be."""

import logging
import math
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning

import caviar as cv

from .evidence import normal_wishart

FAITHFUL = cv.datasets.load_faithful().values


@pytest.fixture(scope="module")
def found():
    return cv.compare_mixtures(FAITHFUL, (1, 2, 3), ("full", "tied"), held_out=0.2, n_init=2, random_state=0)


def log_evidence(X, n_components, prior):
    """Return log p(X) of a mixture with uniform weights by enumeration of all labels."""
    terms = []
    for labels in product(range(n_components), repeat=len(X)):
        counts = np.bincount(labels, minlength=n_components)
        log_labels = gammaln(n_components) - gammaln(n_components + len(X)) + gammaln(1 + counts).sum()
        rows = [X[np.array(labels) == k] for k in range(n_components) if counts[k]]
        terms.append(log_labels + sum(normal_wishart(own, *prior) for own in rows))
    return logsumexp(terms)


@pytest.mark.parametrize(("distance", "separated"), [(50.0, True), (0.5, False)])
def test_log_k_factorial_is_what_separated_components_lack(distance, separated):
    """Against exact evidence: the ELBO is below it, by log K! where components are separated and by less otherwise."""
    X = np.array([[0.0], [0.1], [0.3], [0.4], [0.0], [0.2], [0.3], [0.5]])
    X[4:] += distance
    prior = (np.zeros(1), 0.01, 4.0, np.array([[0.2]]))
    names = ("mean_prior", "mean_precision_prior", "degrees_of_freedom_prior", "covariance_prior")
    table = cv.compare_mixtures(X, 2, "full", random_state=0, **dict(zip(names, prior, strict=True)))
    exact = log_evidence(X, 2, prior)
    (row,) = table.rows
    assert row.elbo < exact
    if separated:
        np.testing.assert_allclose(row.corrected, exact, atol=0.35)
        np.testing.assert_allclose(row.elbo + math.log(2), row.corrected)


def test_rows_are_the_fits_that_they_name(found):
    assert [(row.n_components, row.covariance_type) for row in found.rows] == [
        (k, structure) for structure in ("full", "tied") for k in (1, 2, 3)
    ]
    for row in found.rows:
        alone = cv.BayesianGaussianMixture(
            row.n_components, covariance_type=row.covariance_type, weight_concentration_prior=1.0, n_init=4,
            random_state=3,
        ).fit(FAITHFUL)  # fmt: skip
        np.testing.assert_allclose(row.elbo, alone.elbo_, atol=0.1)
        np.testing.assert_allclose(row.corrected - row.elbo, math.log(math.factorial(row.n_components)))
        assert row.converged
        assert row.seconds > 0


def test_the_best_is_the_fit_with_the_highest_elbo(found):
    assert found.best_row is max(found.rows, key=lambda row: row.elbo)
    assert (found.best.n_components, found.best.covariance_type) == (3, "tied")
    assert found.best.elbo_ == found.best_row.elbo
    np.testing.assert_allclose(
        found.best.posterior_.elbo_at({}, {"x": FAITHFUL}), found.best_row.elbo, rtol=1e-9
    )


def test_held_out_rows_are_scored_by_a_fit_that_did_not_see_them(found):
    scores = [row.held_out for row in found.rows]
    in_sample = found.best.score(FAITHFUL)
    assert all(np.isfinite(scores))
    assert abs(found.best_row.held_out - in_sample) < 0.3
    assert found.rows[0].held_out < found.rows[1].held_out
    # rows without weight are not among those held out: what they hold does not matter
    weights = np.append(np.ones(272), np.zeros(30))
    far = np.concatenate([FAITHFUL, np.full((30, 2), 1e4)])
    weighted = cv.compare_mixtures(far, 2, "full", sample_weight=weights, held_out=0.3, random_state=0)
    assert weighted.rows[0].held_out > -6


def test_the_table_reads_in_columns(found):
    lines = str(found).splitlines()
    assert repr(found) == str(found)
    assert lines[0].split() == [
        "K", "covariance", "ELBO", "ELBO", "+", "log", "K!", "iterations", "seconds", "held", "out", "per", "row",
    ]  # fmt: skip
    assert len(lines) == 7
    assert [line for line in lines if line.endswith("best")] == [lines[6]]
    ends = {
        line.index(f"{row.elbo:.2f}") + len(f"{row.elbo:.2f}")
        for line, row in zip(lines[1:], found.rows, strict=True)
    }
    assert len(ends) == 1
    html = found._repr_html_()
    assert html.count("<tr>") == 7
    assert f"<b>{found.best_row.elbo:.2f}</b>" in html


def test_the_table_as_columns(found):
    columns = found.to_dict()
    assert columns["n_components"] == [1, 2, 3, 1, 2, 3]
    assert columns["elbo"] == [row.elbo for row in found.rows]
    assert all(len(column) == 6 for column in columns.values())


def test_the_same_seed_gives_the_same_figures():
    one, two = (cv.compare_mixtures(FAITHFUL, (2, 3), "diag", random_state=5, held_out=0.1) for _ in range(2))
    same = ("elbo", "n_iter", "held_out")
    assert [one.to_dict()[name] for name in same] == [two.to_dict()[name] for name in same]


def test_auto_is_a_number_among_others():
    table = cv.compare_mixtures(FAITHFUL[::4], ("auto", 1), "tied", random_state=0)
    assert table.rows[0].n_components == table.best.n_components_ > 1
    assert table.best.n_components == "auto"


def test_a_fit_that_did_not_converge_is_marked_and_does_not_warn():
    table = cv.compare_mixtures(FAITHFUL, 3, "full", random_state=0, max_iter=2, tol=1e-13)
    assert not table.rows[0].converged
    assert "2, not converged" in str(table)


def test_verbose_is_a_line_a_fit(caplog):
    with caplog.at_level(logging.INFO, logger="caviar"):
        cv.compare_mixtures(FAITHFUL, (1, 2), ("tied", "unit"), random_state=0, verbose=True)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 4
    assert told[2].startswith("fit 3/4  1 components, unit  ELBO ")


def test_an_interrupted_comparison_has_the_fits_so_far():
    starts = iter(range(10**6))

    def interrupt(progress):
        if progress.iteration == 1 and next(starts) == 2:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="after 2 of 3 fits"):
        table = cv.compare_mixtures(FAITHFUL, (1, 2, 3), "full", n_init=1, random_state=0, verbose=interrupt)
    assert [row.n_components for row in table.rows] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 0}, "n_components, or each in it, must be a whole number"),
        ({"n_components": ()}, "at least one each"),
        ({"covariance_type": "round"}, "covariance_type, or each in it, must be"),
        ({"held_out": 1.0}, "held_out must be None or a share"),
        ({"held_out": 0.9999}, "leaves none to fit"),
        ({"n_init": 0}, "n_init"),
        ({"concentration": 1.0}, "no argument 'concentration'"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        cv.compare_mixtures(FAITHFUL, **arguments)
