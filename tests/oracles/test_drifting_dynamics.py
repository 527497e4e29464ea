"""Linear dynamics that drift are what mean field written by hand gives: two dense Gaussians, each given the other."""

import numpy as np
import pytest

import caviar as cv

N, D, K = 6, 2, 2
STARTS = np.arange(N) % 4 == 0
RNG = np.random.default_rng(1)
PARTS = RNG.normal(0, 0.6, (K, D, D))
Q, P = np.array([2.0, 0.7]), np.array([[0.9, 0.1], [-0.2, 0.8]])
Y = RNG.normal(size=(N, D))


def stated(parts):
    time = cv.Plate("time")
    starts = cv.Data("starts", plates=time)
    s = cv.LinearGaussianChain("s", [1.0, 0.0], np.eye(K), P, 3 * np.eye(K), along=time, starts=starts)
    x = cv.LinearGaussianChain("x", np.zeros(D), np.eye(D), parts(s), np.diag(Q), along=time, starts=starts)
    return cv.Model(cv.MultivariateNormal("y", x, 4 * np.eye(D), plates=time))


def chain(transition, second, noise, mean):
    """Return precision (N D, N D), linear term and constant of a chain with these <A_t> and <A_t' Q A_t>."""
    size = len(mean)
    precision, linear = np.zeros((N, size, N, size)), np.zeros((N, size))
    constant = -0.5 * N * size * np.log(2 * np.pi)
    for t in range(N):
        if STARTS[t]:
            precision[t, :, t] += np.eye(size)
            linear[t] += mean
            constant -= 0.5 * mean @ mean
            continue
        precision[t, :, t] += noise
        precision[t - 1, :, t - 1] += second[t]
        precision[t, :, t - 1] -= noise @ transition[t]
        precision[t - 1, :, t] -= transition[t].T @ noise
        constant += 0.5 * np.linalg.slogdet(noise)[1]
    return precision.reshape(N * size, N * size), linear.ravel(), constant


def moments(precision, linear, size):
    covariance = np.linalg.inv(precision)
    mean = covariance @ linear
    second = (covariance + np.outer(mean, mean)).reshape(N, size, N, size)
    entropy = 0.5 * (len(mean) * (1 + np.log(2 * np.pi)) - np.linalg.slogdet(precision)[1])
    return mean.reshape(N, size), second, entropy


def by_hand(known):
    """Return the bound of the best product of a Gaussian of states and one of weights, and the means of both."""
    size, noise, before = known.shape[0], np.diag(Q), -np.inf
    own, told, other = chain([P] * N, [3 * P.T @ P] * N, 3 * np.eye(size), np.array([1.0, 0.0]))
    mean, second, entropy_of_weights = moments(own, told, size)
    for _ in range(5000):
        transition = np.einsum("tk,kij->tij", mean, known)
        squares = [np.einsum("kl,kij,i,lim->jm", second[t, :, t], known, Q, known) for t in range(N)]
        precision, linear, constant = chain(transition, squares, noise, np.zeros(D))
        precision += 4 * np.eye(N * D)
        linear = linear + 4 * Y.ravel()
        constant += 0.5 * N * D * np.log(4 / (2 * np.pi)) - 2 * np.vdot(Y, Y)
        x, xx, entropy = moments(precision, linear, D)
        bound = constant + linear @ x.ravel() - 0.5 * np.vdot(precision, xx.reshape(N * D, N * D)) + entropy
        bound += (
            other + told @ mean.ravel() - 0.5 * np.vdot(own, second.reshape(own.shape)) + entropy_of_weights
        )
        if abs(bound - before) < 1e-13:
            break
        before = bound
        information, pulls = own.copy().reshape(N, size, N, size), told.copy().reshape(N, size)
        for t in np.flatnonzero(~STARTS):
            pulls[t] += np.einsum("kij,i,ij->k", known, Q, xx[t, :, t - 1])
            information[t, :, t] += np.einsum("kij,i,lim,jm->kl", known, Q, known, xx[t - 1, :, t - 1])
        mean, second, entropy_of_weights = moments(information.reshape(own.shape), pulls.ravel(), size)
    return bound, x, mean


@pytest.mark.parametrize("is_node", [False, True])
def test_bound_and_both_chains_are_those_of_mean_field_by_hand(is_node):
    rows = cv.Constant("parts", PARTS.swapaxes(0, 1).reshape(D, K * D), plates=cv.Plate("row", D))
    data = {"y": Y, "starts": STARTS.astype(float)}
    posterior = stated(lambda s: cv.weighted_sum(s, rows if is_node else PARTS)).fit(
        data, tol=1e-14, max_iter=3000
    )
    bound, x, s = by_hand(PARTS)
    local = posterior.local(data)
    assert posterior.elbo == pytest.approx(bound, abs=1e-9)
    np.testing.assert_allclose(local["x"].mean, x, atol=1e-6)
    np.testing.assert_allclose(local["s"].mean, s, atol=1e-6)


def test_a_chain_may_be_the_entries_of_the_matrix():
    """A state of one number has a number as its transition; the bound is a little below the evidence by quadrature."""
    time, y = cv.Plate("time"), np.array([[0.5], [1.0], [0.3]])
    a = cv.LinearGaussianChain("a", [0.8], [[4.0]], [[1.0]], [[10.0]], along=time)
    x = cv.LinearGaussianChain("x", [0.0], [[1.0]], a, [[2.0]], along=time)
    posterior = cv.Model(cv.MultivariateNormal("y", x, [[4.0]], plates=time)).fit({"y": y}, tol=1e-12)
    grid, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    total = 0.0
    for second, of_second in zip(grid, weights, strict=True):
        for third, of_third in zip(grid, weights, strict=True):
            # the first number of the chain meets no step; the second has the variance of both
            a2 = 0.8 + second * np.sqrt(1 / 4 + 1 / 10)
            a3 = a2 + third * np.sqrt(1 / 10)
            through = np.array([[1.0, 0, 0], [a2, 1, 0], [a2 * a3, a3, 1]])
            covariance = through @ np.diag([1.0, 0.5, 0.5]) @ through.T + np.eye(3) / 4
            density = np.exp(-0.5 * y.ravel() @ np.linalg.solve(covariance, y.ravel()))
            total += of_second * of_third * density / np.sqrt(np.linalg.det(2 * np.pi * covariance))
    assert np.log(total) - 0.2 < posterior.elbo < np.log(total)
