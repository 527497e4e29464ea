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

pytestmark = pytest.mark.first_guess

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_same_seed_gives_the_same_figures():
    one, two = (cv.compare_mixtures(FAITHFUL, (2, 3), "diag", random_state=5, held_out=0.1) for _ in range(2))
    same = ("elbo", "n_iter", "held_out")
    assert [one.to_dict()[name] for name in same] == [two.to_dict()[name] for name in same]


@pytest.mark.slow
def test_auto_is_a_number_among_others():
    table = cv.compare_mixtures(FAITHFUL[::4], ("auto", 1), "tied", random_state=0)
    assert table.rows[0].n_components == table.best.n_components_ > 1
    assert table.best.n_components == "auto"


@pytest.mark.slow
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
        ({"n_components": ()}, "must each have at least one value"),
        ({"covariance_type": "round"}, "covariance_type, or each in it, must be"),
        ({"held_out": 1.0}, "held_out must lie between 0 and 1"),
        ({"held_out": 0.9999}, "leaves none to fit"),
        ({"n_init": 0}, "n_init"),
        ({"concentration": 1.0}, "nor BayesianGaussianMixture has an argument 'concentration'"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        cv.compare_mixtures(FAITHFUL, **arguments)


PENGUINS = cv.datasets.load_penguins()
COLUMNS = ("bill_length_mm", "species", "sex")
PLACES = [PENGUINS.columns.index(name) for name in COLUMNS]
MIXED = cv.data.Table(
    PENGUINS.values[:, PLACES], COLUMNS, {name: PENGUINS.categories[name] for name in COLUMNS[1:]}
)


def as_lists():
    words = [MIXED.categories.get(name) for name in COLUMNS]
    return [
        [None if x != x else (x if own is None else own[int(x)]) for x, own in zip(row, words, strict=True)]
        for row in MIXED.values.tolist()
    ]


def as_pandas():
    return pytest.importorskip("pandas").DataFrame(as_lists(), columns=COLUMNS)


def as_arrow():
    return pytest.importorskip("pyarrow").table(
        dict(zip(COLUMNS, zip(*as_lists(), strict=True), strict=True))
    )


def as_polars():
    return pytest.importorskip("polars").DataFrame(as_lists(), schema=list(COLUMNS), orient="row")


@pytest.mark.slow
def test_mixtures_of_mixed_columns_are_compared_by_fits_of_their_own():
    table = cv.compare_mixtures(MIXED, (1, 3, "auto"), estimator=cv.MixedMixture(), n_init=2, random_state=0)
    assert [row.covariance_type for row in table.rows] == [None] * 3
    for row in table.rows[:2]:
        alone = cv.MixedMixture(row.n_components, weight_concentration_prior=1.0, n_init=4, random_state=3)
        assert row.elbo == pytest.approx(alone.fit(MIXED).elbo_, abs=0.1)
        assert row.corrected == pytest.approx(row.elbo + gammaln(row.n_components + 1))
    assert isinstance(table.best, cv.MixedMixture)
    assert table.best.elbo_ == table.best_row.elbo == max(row.elbo for row in table.rows)
    assert "covariance" not in str(table)
    assert "ELBO + log K!" in str(table)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("rows", [as_lists, as_pandas, as_arrow, as_polars], ids=lambda rows: rows.__name__)
def test_rows_of_every_table_are_held_out_alike(rows):
    arguments = {"estimator": cv.MixedMixture(), "n_init": 1, "random_state": 0, "held_out": 0.25}
    table = cv.compare_mixtures(rows(), 2, **arguments)
    expected = cv.compare_mixtures(MIXED, 2, **arguments)
    assert table.rows[0].held_out == pytest.approx(expected.rows[0].held_out)
    assert table.rows[0].elbo == pytest.approx(expected.rows[0].elbo)
    # less than the density of rows that were seen
    assert expected.rows[0].held_out != pytest.approx(expected.best.score(MIXED), abs=1e-3)


def test_the_estimator_gives_its_arguments_to_all_fits():
    table = cv.compare_mixtures(
        MIXED, 2, estimator=cv.MixedMixture(category_prior=50.0), n_init=1, random_state=0
    )
    assert table.best.category_prior == 50.0
    known = cv.BayesianGaussianMixture(weight_concentration_prior=3.0)
    assert cv.compare_mixtures(FAITHFUL, 2, "tied", estimator=known).best.weight_concentration_prior == 3.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": cv.MixedMixture(), "covariance_type": "full"}, "leave covariance_type out"),
        ({"estimator": cv.GaussianMixture()}, "must be a BayesianGaussianMixture or a MixedMixture"),
        (
            {"estimator": cv.MixedMixture(), "covariance_prior": 1.0},
            "neither compare_mixtures nor MixedMixture",
        ),
    ],
)
def test_an_estimator_that_does_not_fit_is_refused(arguments, message):
    with pytest.raises(cv.ParameterError, match=message):
        cv.compare_mixtures(MIXED, 2, **arguments)


def test_words_are_refused_with_the_estimator_that_takes_them():
    table = {"size": [1.0, 2.0, 3.0], "kind": ["a", "b", "a"]}
    frame = pytest.importorskip("pandas").DataFrame(table)
    with pytest.raises(
        cv.DataError, match=r"or give estimator=MixedMixture\(\), which takes columns of texts"
    ):
        cv.compare_mixtures(frame, [1])
    assert len(cv.compare_mixtures(frame, [1], estimator=cv.MixedMixture(max_iter=2), n_init=1).rows) == 1
