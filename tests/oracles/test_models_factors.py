"""Factor models agree with BayesPy, with the closed form of maximum likelihood, and leave their saddle points."""

from typing import Any

import numpy as np
import pytest
from bayespy.nodes import Add, Dot, Gamma, GaussianARD

from caviar import Posterior, models
from caviar._typing import Array
from caviar.models.probabilistic_pca import MAXIMUM_LIKELIHOOD, POINT
from caviar.testing import numerical_gradient


def _rows(seed: int, n: int, d: int, k: int, noise: float) -> Array:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) + 3 + noise * rng.normal(size=(n, d))


def _bayespy_bound(x: Array, posterior: Posterior, n_factors: int, n_sweeps: int) -> float:
    """Return BayesPy's bound after sweeps that begin at the means of a posterior."""
    n, d = x.shape
    columns = posterior["tau"].mean.shape
    alpha = Gamma(1e-3, 1e-3, plates=(n_factors,), name="alpha")
    loadings = GaussianARD(0, alpha, shape=(n_factors,), plates=(1, d), name="loadings")
    latent = GaussianARD(0, 1, shape=(n_factors,), plates=(n, 1), name="z")
    mean = GaussianARD(0, 1e-3, shape=(), plates=(1, d), name="mean")
    tau = Gamma(1.0, 1.0, plates=(1, *columns) if columns else (), name="tau")
    rows = GaussianARD(Add(Dot(loadings, latent), mean), tau, name="x")
    rows.observe(x)
    latent.initialize_from_value(posterior.local({"x": x})["z"].mean[:, None, :])
    mean.initialize_from_value(posterior["mean"].mean[None])
    for node, factor in ((alpha, posterior["alpha"]), (tau, posterior["tau"])):
        node.initialize_from_parameters(np.broadcast_to(factor.shape, factor.mean.shape), factor.rate)
    for _ in range(n_sweeps):
        for node in (loadings, latent, mean, alpha, tau):
            node.update()
    nodes = (rows, latent, loadings, mean, alpha, tau)
    return float(sum(node.lower_bound_contribution() for node in nodes))


@pytest.mark.slow
@pytest.mark.parametrize("state", [models.probabilistic_pca, models.factor_analysis])
def test_elbo_agrees_with_bayespy(state: Any) -> None:
    """From the means of the fixed point BayesPy settles at the same bound."""
    x = _rows(0, 60, 4, 2, 0.5)
    posterior = state(4, 2, relevance=True).fit({"x": x}, seed=0, tol=1e-13, max_iter=5000)
    assert _bayespy_bound(x, posterior, 2, 100) == pytest.approx(posterior.elbo, rel=1e-9)


def test_maximum_likelihood_reaches_the_closed_form() -> None:
    n, d, k = 150, 5, 2
    x = _rows(1, n, d, k, 0.5)
    model = models.probabilistic_pca(d, k, **MAXIMUM_LIKELIHOOD)
    posterior = model.fit({"x": x}, point=POINT, seed=0, tol=1e-13, max_iter=5000)
    eigenvalues = np.sort(np.linalg.eigvalsh(np.cov(x, rowvar=False, bias=True)))[::-1]
    noise = eigenvalues[k:].mean()
    explained = d * np.log(2 * np.pi) + np.log(eigenvalues[:k]).sum() + (d - k) * np.log(noise) + d
    assert posterior.elbo == pytest.approx(-n / 2 * explained, rel=1e-10)
    assert 1 / posterior["tau"].value == pytest.approx(noise, rel=1e-6)
    np.testing.assert_allclose(posterior["mean"].value, x.mean(axis=0), rtol=1e-5)
    loadings = posterior["loadings"].value
    own = np.sort(np.linalg.eigvalsh(loadings @ loadings.T))[::-1]
    np.testing.assert_allclose(own[:k], eigenvalues[:k] - noise, rtol=1e-4)


def _ratings(n: int = 120) -> dict[str, Array]:
    rng = np.random.default_rng(3)
    user, item = rng.integers(8, size=n), rng.integers(6, size=n)
    u, v = rng.normal(size=(8, 2)), rng.normal(size=(6, 2))
    rating = 3 + np.sum(u[user] * v[item], axis=1) + 0.1 * rng.normal(size=n)
    return {"user": user, "item": item, "rating": rating}


@pytest.mark.slow
def test_start_leaves_the_saddle_point_of_a_matrix_factorisation() -> None:
    """The priors' means are a fixed point of every update; draws from the priors are not."""
    data, model = _ratings(), models.matrix_factorisation(8, 6, 2)
    saddle = model.fit(data, init="prior", max_iter=3)
    np.testing.assert_array_equal(saddle["users"].mean, 0.0)
    posterior = model.fit(data, seed=0, max_iter=500)
    assert posterior.elbo > saddle.elbo + 50
    product = np.sum(posterior["users"].mean[data["user"]] * posterior["items"].mean[data["item"]], axis=1)
    assert np.corrcoef(product, data["rating"])[0, 1] > 0.99
    # seeded, and another draw for another seed
    assert model.fit(data, seed=0, max_iter=2).elbo == model.fit(data, seed=0, max_iter=2).elbo
    assert model.fit(data, seed=0, max_iter=2).elbo != model.fit(data, seed=1, max_iter=2).elbo


@pytest.mark.slow
def test_matrix_factorisation_ends_where_no_factor_can_move() -> None:
    """The gradient of the ELBO by the means of the factors vanishes at the end, and not before."""
    data, model = _ratings(40), models.matrix_factorisation(8, 6, 2)

    def largest(max_iter: int) -> float:
        posterior = model.fit(data, seed=0, tol=0, accelerate=False, max_iter=max_iter)
        users, objective = posterior["users"], posterior._objective(data)

        def elbo(step: Array) -> float:
            return objective({"users": users.translate(step.reshape(8, 2))})

        return float(np.abs(numerical_gradient(elbo, np.zeros(16), n_halvings=2).value).max())

    assert largest(1200) < 1e-4
    assert largest(2) > 1e-3
