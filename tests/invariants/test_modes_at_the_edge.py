"""Point masses at the edge of their family: a component that lost its rows has no precision, and is no obstacle."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.stats import gamma, norm

import caviar as cv
from caviar import families


def rows(scale):
    rng = np.random.default_rng(0)
    return scale * (rng.normal(size=(600, 3)) + rng.choice([-3.0, 0.0, 3.0], 600)[:, None])


@pytest.mark.thinned(8)
@pytest.mark.parametrize("point", [["precision"], ["precision", "mean"], ["precision", "weights", "mean"]])
@pytest.mark.parametrize("scale", [1.0, 1e-2])
def test_a_component_whose_precision_has_its_mode_at_zero_ends_without_rows(scale, point):
    """With df = D + 1 the mode of the prior is 0: where a component has no row, log|0| meets a weight of 0."""
    model = cv.models.gaussian_mixture(3, 8)
    posterior = model.fit({"x": rows(scale)}, point=point, seed=0, tol=1e-10)
    assert posterior.converged
    assert np.isfinite(posterior.elbo_trace).all()
    assert (np.diff(posterior.elbo_trace) >= -1e-9 * abs(posterior.elbo)).all()
    # no prior mode at zero, and next to nothing else that differs: the objective is that of a limit
    other = cv.models.gaussian_mixture(3, 8, df=4.0 + 1e-9).fit(
        {"x": rows(scale)}, point=point, init={name: posterior[name] for name in posterior}, max_iter=0
    )
    assert posterior.elbo == pytest.approx(other.elbo, rel=1e-5)


def test_a_start_without_a_finite_objective_is_not_taken_for_the_end():
    posterior = cv.models.gaussian_mixture(3, 3).fit(
        {"x": rows(1.0)}, point=["precision"], init="prior", tol=1e-10
    )
    assert posterior.converged
    assert posterior.n_iter > 1
    assert np.isfinite(posterior.elbo_trace[1:]).all()


def test_the_log_determinant_of_a_singular_matrix_is_that_of_the_smallest_numbers():
    log_det, x = families.Wishart.statistics_of([[0.0, 0.0], [0.0, 0.0]])
    assert log_det == 2 * np.log(np.finfo(float).smallest_subnormal)
    assert np.array_equal(x, np.zeros((2, 2)))
    tiny = np.diag([1e-300, 1e-300])
    assert families.Wishart.statistics_of(tiny)[0] == pytest.approx(2 * np.log(1e-300), rel=1e-12)


def test_precisions_whose_prior_modes_are_zero():
    """Two precisions at the modes of their priors, 0, leave no location an update: they begin at the means instead."""
    groups = np.repeat(np.arange(3), 4)
    x = np.array([0.2, -0.4, 1.1, 0.3, 2.1, 2.6, 1.8, 2.2, -1.0, -1.9, -0.7, -1.2])
    mu = cv.Normal(
        "mu", cv.Normal("m", 0.0, 0.01), cv.Gamma("between", 1.0, 1.0), plates=cv.Plate("group", 3)
    )
    rows = cv.Plate("row")
    model = cv.Model(cv.Normal("x", mu[cv.Data("g", plates=rows)], cv.Gamma("within", 1.0, 2.0), plates=rows))
    posterior = model.fit(
        {"x": x, "g": groups}, point=["m", "mu", "between", "within"], seed=0, tol=1e-12, max_iter=5_000
    )

    def log_joint(theta):
        m, means, between, within = theta[0], theta[1:4], np.exp(theta[4]), np.exp(theta[5])
        total = norm.logpdf(m, 0, 10) + norm.logpdf(means, m, between**-0.5).sum()
        total += norm.logpdf(x, means[groups], within**-0.5).sum()
        return total + gamma.logpdf(between, 1.0) + gamma.logpdf(within, 1.0, scale=0.5)

    at = [posterior["m"].mean, *posterior["mu"].mean]
    at += [np.log(posterior["between"].mean), np.log(posterior["within"].mean)]
    assert_allclose(posterior.elbo, log_joint(np.array(at)), rtol=1e-12)
    assert_allclose(approx_fprime(np.array(at), log_joint, 1e-6), 0.0, atol=1e-4)
