"""Complete rows are given to components by a problem that is compiled once for all of them."""

import pickle

import numpy as np
import pytest

import caviar as cv
from caviar.engine import assemble
from caviar.fitting import model as fitting


@pytest.fixture
def compiled(monkeypatch):
    """The number of problems that are compiled."""
    seen = []
    monkeypatch.setattr(
        fitting, "assemble", lambda *given, **named: seen.append(given) or assemble.assemble(*given, **named)
    )
    return seen


@pytest.mark.thinned(4)
@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("estimator", [cv.BayesianGaussianMixture, cv.GaussianMixture])
def test_rows_by_themselves_and_together_have_the_responsibilities_of_the_posterior(estimator, structure):
    X = cv.datasets.load_faithful().values
    mixture = estimator(3, covariance_type=structure, random_state=0).fit(X)
    # far from the rows of the fit, too
    rows = np.vstack([X[::40], [[40.0, -300.0]]])
    derived = mixture.posterior_.local({"x": rows})["z"].probabilities
    np.testing.assert_allclose(mixture.predict_proba(rows), derived, rtol=1e-7, atol=1e-12)
    alone = np.vstack([mixture.predict_proba(rows[n : n + 1]) for n in range(len(rows))])
    np.testing.assert_allclose(alone, mixture.predict_proba(rows), rtol=1e-12, atol=0)


@pytest.mark.usefixtures("figures_of_factors")
def test_a_plan_is_compiled_once_for_all_rows_that_are_predicted(compiled):
    X = cv.datasets.load_faithful().values
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
    compiled.clear()
    labels = [mixture.predict(X[:n])[0] for n in (1, 2, 272)]
    assert len(compiled) == 1
    assert len(set(labels)) == 1
    copied = pickle.loads(pickle.dumps(mixture))
    np.testing.assert_array_equal(copied.predict_proba(X), mixture.predict_proba(X))


def test_another_fit_predicts_by_its_own_factors():
    X = cv.datasets.load_faithful().values
    mixture = cv.GaussianMixture(2, random_state=0).fit(X)
    mixture.predict(X)
    away = np.add(X, (10.0, 100.0))
    moved = mixture.fit(away).predict_proba(away)
    expected = cv.GaussianMixture(2, random_state=0).fit(X).predict_proba(X)
    order = np.argsort(moved[0]), np.argsort(expected[0])
    np.testing.assert_allclose(moved[:, order[0]], expected[:, order[1]], atol=1e-3)
