"""Moves of a search are judged from sums over the rows: what they gain is what a fit then tells."""

import functools

import numpy as np
import pytest

import caviar as cv
import caviar.estimators.automatic.search as search
from caviar.engine.ascent.schedules.moves.swaps import Mixture
from caviar.engine.ascent.schedules.moves.weighed import weighed
from caviar.estimators.automatic.problem import Problem, factors_of, state_at
from caviar.estimators.automatic.proposals import QUICK, cuts_of

PRIOR = np.eye(2)


def clusters(n_clusters, rows_each=100):
    rng = np.random.default_rng(n_clusters)
    centres = 12.0 * np.stack([np.arange(n_clusters) % 3, np.arange(n_clusters) // 3], axis=1)
    return (centres[:, None] + rng.normal(size=(n_clusters, rows_each, 2))).reshape(-1, 2)


@functools.cache
def fitted(cuts):
    """Return four clusters and a fit to them that begins at labels, given as edges of the ordered rows."""
    X = clusters(4)
    labels = np.digitize(np.arange(len(X)), cuts)
    number = len(cuts) + 1
    return X, cv.BayesianGaussianMixture(
        number,
        covariance_prior=PRIOR,
        weight_concentration_prior=1.0,
        init_params=labels,
        mean_precision_prior=0.01,
    ).fit(X)


def mixture_of(X, fit):
    found = weighed(state_at(fit.posterior_.model, {"x": X}, factors_of(fit.posterior_)))
    assert found is not None
    return found


def test_components_cost_their_divergence_from_the_prior():
    """Beside it the fit's own account of its objective, factor by factor."""
    X, fit = fitted((100, 200, 300))
    np.testing.assert_allclose(mixture_of(X, fit).costs.sum(), -fit.posterior_.elbo_terms["theta"], rtol=1e-9)


def test_a_split_gains_what_the_fit_after_it_tells():
    X, three = fitted((100, 300))
    _, four = fitted((100, 200, 300))
    mixture = mixture_of(X, three)
    best = mixture.further(mixture.cuts(), 4)[0]
    assert mixture.counts[best.places[0]] == pytest.approx(200, abs=2)
    # the weights, and what the other components gain by it, are left out
    assert best.gain == pytest.approx(four.elbo_ - three.elbo_, rel=0.08)


def test_splits_of_some_components_are_those_among_all():
    """Their halves are found in the places of any component."""
    X = clusters(6, 60)
    halves = np.repeat(np.arange(12), 30)
    labels = np.where(halves < 4, 0, halves - 3)
    fit = cv.BayesianGaussianMixture(
        9, covariance_prior=PRIOR, weight_concentration_prior=1.0, init_params=labels, max_iter=1, tol=1e9
    ).fit(X)
    mixture = mixture_of(X, fit)
    every = {own.components: own for own in cuts_of(mixture, QUICK)}
    for k in range(9):
        for own in cuts_of(mixture, QUICK, [k]):
            assert own.components == (k,)
            assert own.gain == pytest.approx(every[k,].gain, abs=1.0)
    (real,) = (own for own in every.values() if own.gain > 0)
    (alone,) = cuts_of(mixture, QUICK, [real.components[0]])
    np.testing.assert_allclose(alone.share, real.share, atol=1e-3)


@pytest.mark.slow
def test_components_that_did_not_change_are_not_cut_again(monkeypatch):
    cut, found = [], Mixture.cuts

    def counted(self, each=2, some=None):
        cut.append((self.components.size, self.components.size if some is None else len(some)))
        return found(self, each, some)

    monkeypatch.setattr(Mixture, "cuts", counted)
    monkeypatch.setattr(search, "_MANY", 3)
    monkeypatch.setattr(search, "_LARGE", 0)
    mixture = cv.BayesianGaussianMixture("auto", random_state=0, covariance_prior=PRIOR).fit(clusters(6, 40))
    assert mixture.n_components_ == 6
    sizes, numbers = np.array(cut).T
    assert (numbers < sizes).any()


def test_a_merge_and_a_deletion_gain_what_the_fit_after_them_tells():
    X, five = fitted((50, 100, 200, 300))
    _, four = fitted((100, 200, 300))
    mixture = mixture_of(X, five)
    best = mixture.merges()[0]
    assert mixture.counts[[best.taken, best.into]].sum() == pytest.approx(100, abs=0.1)
    assert best.gain == pytest.approx(four.elbo_ - five.elbo_, abs=6)
    # the rows of a deleted component go to the others as they are, which is worse than a merge
    deleted = dict(mixture.deletions())
    assert max(deleted[best.taken], deleted[best.into]) <= best.gain + 1e-6


@pytest.mark.slow
def test_a_move_that_cannot_win_is_given_up_early():
    X = clusters(3, 60)
    iterations = []
    cv.BayesianGaussianMixture(
        "auto", random_state=0, verbose=lambda told: iterations.append(told.iteration)
    ).fit(X)
    ends = [one for one, after in zip(iterations, [*iterations[1:], 1], strict=True) if after == 1]
    assert max(ends) < 40
    assert np.median(ends) <= 8


def test_a_move_begins_at_what_does_not_depend_on_the_number():
    X = clusters(3, 40)

    def model_of(number):
        return (
            cv.BayesianGaussianMixture(number, max_iter=1, weight_concentration_prior=1.0)
            .fit(X)
            .posterior_.model
        )

    problem = Problem(model_of, X, np.ones(len(X)), 3, 1.0)
    assert set(problem.shared(problem.fit(3))) == {"scale", "mean_precision"}


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [3, 10, 30])
def test_as_many_clusters_are_found_as_there_are(n_clusters):
    rng = np.random.default_rng(n_clusters)
    centres = rng.normal(size=(n_clusters, 5)) * 10
    X = (centres[:, None] + rng.normal(size=(n_clusters, 40, 5))).reshape(-1, 5)
    assert cv.BayesianGaussianMixture("auto", random_state=0).fit(X).n_components_ == n_clusters
