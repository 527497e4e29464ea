"""Linear response of vectors of many coefficients: from square roots in closed form, and ranges of few dimensions."""

import time

import numpy as np
import pytest
from scipy import integrate, stats

import caviar as cv
from caviar.engine.response.solutions.chosen import LowRank
from caviar.engine.response.solutions.formed import Formed
from caviar.families import MultivariateNormal

OBS = cv.Plate("obs")


def _regression(d, n=90, tol=1e-13):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n, d)) @ np.linalg.cholesky(0.3 + 0.7 * np.eye(d)).T
    y = 0.2 * X @ rng.normal(size=d) + rng.normal(size=n)
    w = cv.MultivariateNormal("w", np.zeros(d), np.eye(d))
    at = cv.dot(cv.Data("X", plates=OBS), w)
    model = cv.Model(cv.Normal("y", at, cv.Gamma("tau", 2, 2), plates=OBS))
    return model.fit({"X": X, "y": y}, tol=tol, max_iter=2000), {"X": X, "y": y}


@pytest.mark.parametrize("shape", [(), (3,)])
def test_roots_of_normal_vectors(shape):
    """Their squares are the covariances of the statistics, by the derivatives of the expected ones."""
    rng = np.random.default_rng(0)
    d = 3
    a = rng.normal(size=(*shape, d, 5))
    q = MultivariateNormal(rng.normal(size=(*shape, d)), a @ a.swapaxes(-1, -2))
    q = q if shape else MultivariateNormal(q.mean[None], q.precision[None])
    roots, n = q.roots(), len(q.mean)
    rank = roots.ranks[0]
    assert rank == d + d * (d + 1) // 2
    whole = roots.times(np.eye(n * rank))
    np.testing.assert_allclose(roots.transposed(np.eye(len(whole))), _symmetric(whole, n, d).T, atol=1e-12)
    for number in range(n):
        own = whole.reshape(n, -1, n, rank)[number][:, number]
        for entry in range(d + d * d):
            change = [np.zeros((n, d)), np.zeros((n, d, d))]
            if entry < d:
                change[0][number, entry] = 1.0
            else:
                i, j = divmod(entry - d, d)
                change[1][number, i, j] += 0.5
                change[1][number, j, i] += 0.5
            told = np.concatenate([part[number].ravel() for part in q.response(tuple(change))])
            np.testing.assert_allclose(own @ own[entry], told, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(own @ roots.values[number], own @ own[:d].T, atol=1e-12)


def _symmetric(whole, n, d):
    """Return roots whose rows of xx' are those of its symmetric part."""
    own = whole.reshape(n, d + d * d, -1).copy()
    square = own[:, d:].reshape(n, d, d, -1)
    own[:, d:] = (0.5 * (square + square.swapaxes(1, 2))).reshape(n, d * d, -1)
    return own.reshape(whole.shape)


def test_a_range_of_few_dimensions_is_that_of_the_matrix():
    posterior, data = _regression(25)
    response = posterior.linear_response(data)._response
    found, operator = response._solution, response._operator
    assert isinstance(found, LowRank)
    formed = Formed(operator)
    columns = np.random.default_rng(0).normal(size=(operator.size, 3))
    np.testing.assert_allclose(found.excess(columns), formed.excess(columns), atol=1e-9)
    assert found.smallest_eigenvalue == pytest.approx(formed.smallest_eigenvalue, rel=1e-9)
    assert found.log_determinant == pytest.approx(formed.log_determinant, rel=1e-8)


@pytest.mark.parametrize("smallest", [0.3, 1e-5, 1e-9, -0.2])
def test_a_matrix_is_solved_with_and_without_flat_directions(smallest):
    """By Cholesky's factor, and by eigenvectors where a direction is flat or rises."""
    posterior, data = _regression(3, 20)
    operator = posterior.linear_response(data)._response._operator
    rng = np.random.default_rng(1)
    values = np.append(rng.uniform(0.5, 3.0, operator.size - 1), smallest)
    turned = np.linalg.qr(rng.normal(size=(operator.size, operator.size)))[0]
    formed = Formed(operator, np.eye(operator.size) - (turned * values) @ turned.T)
    assert formed.is_above(-0.1) == (smallest > -0.1)
    assert formed.is_above(1e-7) == (smallest > 1e-7)
    shares = rng.normal(size=(operator.size - 1, 2))
    columns = turned[:, :-1] @ shares
    told = turned[:, :-1] @ (shares / values[:-1, None]) - columns
    np.testing.assert_allclose(formed.excess(columns), told, atol=1e-9)
    assert list(formed.flat(np.stack([turned[:, 0], turned[:, -1]], axis=1))) == [False, smallest == 1e-9]
    assert formed.smallest_eigenvalue == pytest.approx(smallest, abs=1e-12)
    if smallest > 1e-7:
        assert formed.log_determinant == pytest.approx(np.log(values).sum(), abs=1e-9)


@pytest.mark.slow
def test_sixty_coefficients():
    """Their marginals by quadrature over the precision of the noise; found by default and in no time."""
    posterior, data = _regression(60)
    start = time.process_time()
    assert posterior.uncertainty == "integrated"
    # 13 s before
    assert time.process_time() - start < 1.0
    X, y = data["X"], data["y"]

    def moments(tau):
        covariance = np.linalg.inv(np.eye(60) + tau * X.T @ X)
        mean = covariance @ (tau * X.T @ y)
        log_evidence = stats.multivariate_normal(np.zeros(len(y)), np.eye(len(y)) / tau + X @ X.T).logpdf(y)
        return np.exp(log_evidence + stats.gamma(2, scale=0.5).logpdf(tau) + 140), mean[0], covariance[0, 0]

    nodes = np.linspace(0.2, 4.0, 120)
    weight, mean, variance = (np.array(own) for own in zip(*map(moments, nodes), strict=True))
    total = integrate.trapezoid(weight, nodes)
    center = integrate.trapezoid(weight * mean, nodes) / total
    spread = integrate.trapezoid(weight * (variance + (mean - center) ** 2), nodes) / total
    assert posterior.sd("w")[0] == pytest.approx(np.sqrt(spread), rel=0.02)
    tau = integrate.trapezoid(weight * nodes, nodes) / total
    exact = np.sqrt(integrate.trapezoid(weight * (nodes - tau) ** 2, nodes) / total)
    of_q = np.sqrt(posterior["tau"].variance)
    assert abs(posterior.sd("tau") / exact - 1) < 0.05 < abs(of_q / exact - 1)
