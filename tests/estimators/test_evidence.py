"""Fitted estimators have the evidence of their posterior, and ``compare`` takes them by name."""

import numpy as np
import pytest

import caviar as cv

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
        cv.ParameterError, match="'g' is a GaussianMixture that is not fitted or has no evidence"
    ):
        cv.compare({"g": cv.GaussianMixture(2, random_state=0).fit(rows)}, rows)
    with pytest.raises(cv.DataError, match="expected the data of the fit"):
        cv.BayesianGaussianMixture(1).fit(rows).evidence(rows[:6])
