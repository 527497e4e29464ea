"""The Bayesian Gaussian mixture, stated in the language, against literal CAVI, Bishop's ELBO and BayesPy."""

import numpy as np
import pytest

import caviar as cv
from caviar import families
from oracles.reference import bayesian_mixture, bayespy_models, normal_wishart_mixture

CASES = [(1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 2, 3), (5, 3, 4)]
"""(seed, D, K)"""


def _rows(seed, d, n=25):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (n, d)) * rng.uniform(0.5, 2, d) + rng.choice([-3.0, 0.0, 3.0], (n, 1)) + 1.5


def _definite(rng, d):
    a = rng.normal(size=(d, d))
    return a @ a.T + 0.5 * np.eye(d)


# -- section 5: mu and Lambda independent under q ----------------------------------------------------------------


def _prior(seed, d, k):
    rng = np.random.default_rng(100 + seed)
    return bayesian_mixture.Prior(
        concentration=rng.uniform(0.4, 2, k),
        mean=rng.normal(0, 1, d),
        covariance=4 * _definite(rng, d),
        df=d + rng.uniform(-0.5, 3),
        inverse_scale=_definite(rng, d),
    )


def _independent(prior):
    obs, component = cv.Plate("obs"), cv.Plate("component", len(prior.concentration))
    weights = cv.Dirichlet("weights", concentration=prior.concentration)
    mean = cv.MultivariateNormal("mean", prior.mean, np.linalg.inv(prior.covariance), plates=component)
    precision = cv.Wishart("precision", df=prior.df, inverse_scale=prior.inverse_scale, plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))


def _random_start(seed, d, k, n):
    rng = np.random.default_rng(200 + seed)
    return bayesian_mixture.Factors(
        responsibilities=np.full((n, k), 1 / k),
        concentration=rng.uniform(0.5, 9, k),
        means=rng.normal(0, 2, (k, d)),
        covariances=np.array([0.3 * _definite(rng, d) for _ in range(k)]),
        dfs=rng.uniform(d, d + 9, k),
        inverse_scales=np.array([3 * _definite(rng, d) for _ in range(k)]),
    )


def _as_init(q):
    return {
        "weights": families.Dirichlet(q.concentration),
        "mean": families.MultivariateNormal(q.means, np.linalg.inv(q.covariances)),
        "precision": families.Wishart(q.dfs, q.inverse_scales),
    }


def _factors(posterior, x):
    return bayesian_mixture.Factors(
        responsibilities=posterior.local({"x": x})["z"].probabilities,
        concentration=posterior["weights"].concentration,
        means=posterior["mean"].mean,
        covariances=posterior["mean"].covariance,
        dfs=posterior["precision"].df,
        inverse_scales=posterior["precision"].inverse_scale,
    )


def _assert_same(actual, expected, rtol=1e-9):
    for name, value in vars(expected).items():
        scale = np.max(np.abs(value))
        np.testing.assert_allclose(getattr(actual, name), value, rtol=rtol, atol=1e-10 * scale, err_msg=name)


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("seed", "d", "k"), CASES)
def test_independent_form_elbo_is_the_literal_formula_and_that_of_bayespy(seed, d, k):
    """For the same factors the ELBO is that of section 5 summed in loops, and BayesPy's bound, at any stage."""
    x, prior = _rows(seed, d), _prior(seed, d, k)
    for max_iter in (0, 1, 3, 500):
        posterior = _independent(prior).fit({"x": x}, seed=seed, max_iter=max_iter)
        q = _factors(posterior, x)
        assert posterior.elbo == pytest.approx(bayesian_mixture.elbo(x, prior, q), rel=1e-10)
        positive = np.maximum(q.responsibilities, 1e-300)
        other = bayespy_models.bound(x, prior, bayesian_mixture.replace(q, responsibilities=positive))
        assert posterior.elbo == pytest.approx(other, rel=1e-9)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("seed", "d", "k"), CASES)
def test_independent_form_elbo_terms_are_the_literal_ones(seed, d, k):
    """Each factor's part of the ELBO is its expected log density plus its entropy, and they sum to the ELBO."""
    x, prior = _rows(seed, d), _prior(seed, d, k)
    posterior = _independent(prior).fit({"x": x}, seed=seed, max_iter=4, tol=0, accelerate=False)
    literal = bayesian_mixture.elbo_terms(x, prior, _factors(posterior, x))
    names = {
        "x": "x",
        "responsibilities": "z",
        "weights": "weights",
        "means": "mean",
        "precisions": "precision",
    }
    assert posterior.elbo_terms.keys() == set(names.values())
    for reference_name, name in names.items():
        assert posterior.elbo_terms[name] == pytest.approx(literal[reference_name], rel=1e-9, abs=1e-9), name
    assert sum(posterior.elbo_terms.values()) == pytest.approx(posterior.elbo, rel=1e-12)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("order", [("mean", "precision", "weights"), ("precision", "weights", "mean")])
@pytest.mark.parametrize(("seed", "d", "k"), CASES)
def test_independent_form_sweeps_are_the_literal_sweeps(seed, d, k, order):
    """From given factors, every parameter after each sweep is that of the literal CAVI loops, in either order."""
    x, prior = _rows(seed, d), _prior(seed, d, k)
    start = _random_start(seed, d, k, len(x))
    names = {"mean": "means", "precision": "precisions", "weights": "weights"}
    literal_order = ("responsibilities", *(names[name] for name in order))
    expected, model = start, _independent(prior)
    for n_sweeps in range(1, 5):
        expected = bayesian_mixture.sweep(x, prior, expected, literal_order)
        posterior = model.fit(
            {"x": x}, init=_as_init(start), order=order, max_iter=n_sweeps, tol=0, accelerate=False
        )
        current = bayesian_mixture.update_responsibilities(x, prior, expected)
        _assert_same(_factors(posterior, x), current)
        assert posterior.elbo_trace[-1] == pytest.approx(bayesian_mixture.elbo(x, prior, current), rel=1e-10)


def test_independent_form_follows_bayespy():
    """Ten sweeps from the same start give the factors of BayesPy's ten sweeps."""
    x, prior = _rows(7, 2, n=40), _prior(7, 2, 3)
    start = _random_start(7, 2, 3, len(x))
    other = bayespy_models.run(x, prior, start, n_sweeps=10).factors
    posterior = _independent(prior).fit(
        {"x": x},
        init=_as_init(start),
        order=("mean", "precision", "weights"),
        max_iter=10,
        tol=0,
        accelerate=False,
    )
    q = _factors(posterior, x)
    _assert_same(q, bayesian_mixture.update_responsibilities(x, prior, other), rtol=1e-8)


def test_weighted_rows_are_repeated_rows_in_the_literal_formula():
    """With whole-number weights the ELBO is the literal one of the repeated rows."""
    x, prior = _rows(3, 2), _prior(3, 2, 3)
    times = np.random.default_rng(0).integers(1, 4, len(x))
    posterior = _independent(prior).fit({"x": x}, seed=0, sample_weight=times)
    q = _factors(posterior, x)
    repeated = bayesian_mixture.replace(q, responsibilities=np.repeat(q.responsibilities, times, axis=0))
    literal = bayesian_mixture.elbo(np.repeat(x, times, axis=0), prior, repeated)
    assert posterior.elbo == pytest.approx(literal, rel=1e-10)


# -- the joint Normal-Wishart form --------------------------------------------------------------------------------


def _joint_prior(seed, d, k):
    rng = np.random.default_rng(300 + seed)
    return normal_wishart_mixture.Prior(
        concentration=rng.uniform(0.4, 2, k),
        mean=rng.normal(0, 1, d),
        mean_precision=float(rng.uniform(0.05, 2)),
        df=d + rng.uniform(-0.5, 3),
        inverse_scale=_definite(rng, d),
    )


def _joint(prior):
    obs, component = cv.Plate("obs"), cv.Plate("component", len(prior.concentration))
    weights = cv.Dirichlet("weights", concentration=prior.concentration)
    theta = cv.NormalWishart(
        "theta", prior.mean, prior.mean_precision, prior.df, prior.inverse_scale, plates=component
    )
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))


def _joint_factors(posterior, x):
    theta = posterior["theta"]
    return normal_wishart_mixture.Factors(
        responsibilities=posterior.local({"x": x})["z"].probabilities,
        concentration=posterior["weights"].concentration,
        means=theta.mean,
        mean_precisions=theta.mean_precision,
        dfs=theta.df,
        inverse_scales=theta.inverse_scale,
    )


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("seed", "d", "k"), CASES)
def test_joint_form_elbo_is_bishops(seed, d, k):
    """The ELBO with Normal-Wishart factors is Bishop's 10.70 with its constants, at any stage of a fit."""
    x, prior = _rows(seed, d), _joint_prior(seed, d, k)
    for max_iter in (0, 1, 3, 500):
        posterior = _joint(prior).fit({"x": x}, seed=seed, max_iter=max_iter)
        literal = normal_wishart_mixture.elbo(x, prior, _joint_factors(posterior, x))
        assert posterior.elbo == pytest.approx(literal, rel=1e-10)


@pytest.mark.parametrize(("seed", "d", "k"), CASES)
def test_joint_form_sweeps_are_the_literal_sweeps(seed, d, k):
    """From given factors, every parameter after each sweep is that of Bishop's updates in loops."""
    x, prior = _rows(seed, d), _joint_prior(seed, d, k)
    start = _random_start(seed, d, k, len(x))
    expected = normal_wishart_mixture.Factors(
        start.responsibilities,
        start.concentration,
        start.means,
        np.full(k, 1.7),
        start.dfs,
        start.inverse_scales,
    )
    theta = families.NormalWishart(
        expected.means, expected.mean_precisions, expected.dfs, expected.inverse_scales
    )
    init = {"weights": families.Dirichlet(start.concentration), "theta": theta}
    for n_sweeps in range(1, 5):
        expected = normal_wishart_mixture.sweep(x, prior, expected)
        posterior = _joint(prior).fit({"x": x}, init=init, max_iter=n_sweeps, tol=0, accelerate=False)
        _assert_same(
            _joint_factors(posterior, x), normal_wishart_mixture.update_responsibilities(x, prior, expected)
        )


@pytest.mark.parametrize("with_labels", [True, False])
@pytest.mark.parametrize(("seed", "d"), [(1, 1), (2, 2), (3, 4)])
def test_one_joint_component_is_exact(seed, d, with_labels):
    """With K = 1 the Normal-Wishart form is exact: its ELBO is the log evidence, to 1e-10."""
    x, prior = _rows(seed, d), _joint_prior(seed, d, 1)
    if with_labels:
        model = _joint(prior)
    else:
        theta = cv.NormalWishart("theta", prior.mean, prior.mean_precision, prior.df, prior.inverse_scale)
        model = cv.Model(cv.MultivariateNormal("x", theta, plates=cv.Plate("obs")))
    posterior = model.fit({"x": x}, seed=0)
    for exact in (
        normal_wishart_mixture.log_evidence_of_one_component(x, prior),
        normal_wishart_mixture.log_evidence_by_prediction(x, prior),
    ):
        assert posterior.elbo == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("shift", [1e3, 1e6])
def test_far_from_the_origin_no_digits_are_lost(shift):
    """Data, prior and start moved far from the origin: after 20 sweeps the ELBO and the factors as near it."""
    prior, labels = _joint_prior(4, 2, 3), np.random.default_rng(0).integers(0, 3, 25)
    # adding the shift rounds the data; the rounded ones are taken near the origin too
    moved = _rows(4, 2) + shift
    far = bayesian_mixture.replace(prior, mean=prior.mean + shift)
    near = bayesian_mixture.replace(prior, mean=far.mean - shift)
    there = _joint(far).fit({"x": moved}, init={"z": labels}, max_iter=20, tol=0, accelerate=False)
    here = _joint(near).fit({"x": moved - shift}, init={"z": labels}, max_iter=20, tol=0, accelerate=False)
    assert there.elbo == pytest.approx(here.elbo, rel=1e-11)
    np.testing.assert_allclose(there["theta"].inverse_scale, here["theta"].inverse_scale, rtol=1e-9)
    np.testing.assert_allclose(there["theta"].mean - shift, here["theta"].mean, atol=1e-10 * shift)
