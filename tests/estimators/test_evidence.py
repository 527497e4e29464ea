"""Fitted estimators have the evidence of their posterior, and ``compare`` takes them by name."""

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import gamma, multivariate_normal

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful()
X = FAITHFUL.values[::4]
FITS = {
    "mixture": (cv.BayesianGaussianMixture(2, random_state=0), X, {"x": X}),
    "sequence": (cv.HiddenMarkovModel(2, random_state=0), X, None),
    "known": (cv.KnownVarianceMixture(2, variance=30.0, random_state=0), X[:, 1:], {"x": X[:, 1]}),
    "topics": (cv.LatentDirichletAllocation(2, random_state=0), X.round(), None),
    "mixed": (cv.MixedMixture(2, random_state=0), X, None),
}


@pytest.mark.parametrize("kind", FITS)
def test_an_estimator_has_the_evidence_of_its_posterior(kind):
    estimator, rows, data = FITS[kind]
    estimator.fit(rows)
    assert estimator.evidence(None, method="elbo").value == estimator.posterior_.elbo
    (row,) = cv.compare({"own": estimator}).rows
    assert (row.name, row.evidence.elbo) == ("own", estimator.posterior_.elbo)
    if data is not None:
        own, of_posterior = estimator.evidence(rows, method="second_order"), estimator.posterior_
        assert own.value == of_posterior.evidence(data, method="second_order").value != own.elbo


def test_estimators_of_several_kinds_are_compared_by_their_table():
    """Eruptions alternate, so a chain of states explains them better than independent rows."""
    rows = FAITHFUL.values
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(rows)
    chain = cv.HiddenMarkovModel(2, random_state=0).fit(rows)
    found = cv.compare({"independent": mixture, "chain": chain}, rows, method="second_order")
    assert [row.name for row in found.rows] == ["chain", "independent"]
    assert found.rows[1].difference == pytest.approx(-31.4, abs=0.5)
    assert (
        found.rows[1].evidence.value == mixture.posterior_.evidence({"x": rows}, method="second_order").value
    )


def test_what_has_no_evidence_is_refused():
    rows = np.arange(12.0)[:, None]
    with pytest.raises(
        cv.ParameterError, match="'g', of type GaussianMixture, is not fitted or has no evidence"
    ):
        cv.compare({"g": cv.GaussianMixture(2, random_state=0).fit(rows)}, rows)
    with pytest.raises(cv.DataError, match="expected the data of the fit"):
        cv.BayesianGaussianMixture(1).fit(rows).evidence(rows[:6])


def test_rows_with_errors_have_the_evidence_of_quadrature():
    """One component in one column: the precision is integrated numerically, the mean in closed form."""
    rows, errors = np.array([0.3, -1.2, 0.8, 2.1, -0.4, 1.0]), np.array([0.1, 0.9, 0.3, 1.2, 0.05, 0.4])
    kappa, df, scale = 0.5, 5.0, 2.0
    data = {"X": rows[:, None], "noise_covariance": errors[:, None]}
    mixture = cv.BayesianGaussianMixture(
        1,
        mean_prior=[0.0],
        mean_precision_prior=kappa,
        degrees_of_freedom_prior=df,
        covariance_prior=[[scale]],
    ).fit(**data)

    def joint(log_precision):
        precision = np.exp(log_precision)
        covariance = np.diag(1 / precision + errors) + 1 / (kappa * precision)
        return (
            multivariate_normal(np.zeros(6), covariance).pdf(rows)
            * gamma(df / 2, scale=2 / scale).pdf(precision)
            * precision
        )

    exact = np.log(integrate.quad(joint, -8, 6)[0])
    found = mixture.evidence(data, n_draws=100)
    assert found.method == "importance_sampling"
    assert found.value == pytest.approx(exact, abs=4 * found.error)
    second = mixture.evidence(data, method="second_order")
    assert abs(second.value - exact) < second.error < exact - second.elbo


def test_data_of_a_fit_with_errors_or_labels_are_asked_for_by_name():
    errors, labels = [0.01, 1.0], np.where(X[:, 0] > 4, 1, -1)
    measured = cv.BayesianGaussianMixture(2, random_state=0).fit(X, noise_covariance=errors)
    labelled = cv.BayesianGaussianMixture(2, semi_supervised=True, random_state=0).fit(X, labels)
    with pytest.raises(cv.ParameterError, match=r"\{'X': X, 'noise_covariance': noise_covariance\}"):
        measured.evidence(X)
    with pytest.raises(cv.ParameterError, match=r"\{'X': X, 'y': y\}"):
        labelled.evidence(X)
    with pytest.raises(cv.ParameterError, match="got 'rows'"):
        measured.evidence({"rows": X})
    known = {"x": X, "z": np.where(labels < 0, np.nan, labels)}
    own = labelled.evidence({"X": X, "y": labels}, method="second_order").value
    assert own == labelled.posterior_.evidence(known, method="second_order").value
    data = {"X": X, "noise_covariance": errors}
    one = cv.BayesianGaussianMixture(1).fit(**data)
    assert cv.compare({"one": one, "two": measured}, data, method="second_order").best == "two"
