"""The mixture of Normals with known variance, stated in the language, against enumeration and literal loops."""

import warnings

import numpy as np
import pytest
from thinning import amount

import caviar as cv
from caviar import families
from caviar.engine.ascent.status import Status
from caviar.fitting import model as fitting
from caviar.fitting import restarts
from caviar.testing import exact_kl, exact_log_evidence, exact_posterior
from oracles.reference import known_variance


def _stated(weights, variance, prior_mean, prior_variance):
    """State x_n ~ N(mean[z_n], variance); an infinite prior variance is the flat prior."""
    obs, component = cv.Plate("obs"), cv.Plate("component", len(weights))
    mean = cv.Normal("mean", prior_mean, 1 / prior_variance, plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.Normal("x", mean[z], 1 / variance, plates=obs))


def _random_case(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    reference = known_variance.Model(
        weights=rng.dirichlet(np.full(k, 2.0)),
        variance=float(rng.gamma(2.0, 0.7)),
        prior_mean=float(rng.normal(0, 2)),
        prior_variance=float(np.exp(rng.uniform(-2, 4))),
    )
    x = rng.normal(0, rng.choice([0.3, 1.0, 5.0]), n) + rng.normal(0, 2)
    return x, reference


def _fit(x, reference, **arguments):
    model = _stated(reference.weights, reference.variance, reference.prior_mean, reference.prior_variance)
    return model.fit({"x": x}, **arguments)


def _factors(posterior, x):
    mean = posterior["mean"]
    responsibilities = posterior.local({"x": x})["z"].probabilities
    return known_variance.Factors(mean.mean, 1 / mean.precision, responsibilities)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_gap_to_the_exact_evidence_is_the_exact_divergence(first):
    """For 200 random data sets: ELBO <= log p(x), and log p(x) - ELBO = KL(q || p(c, mu | x)), by enumeration.

    It holds wherever the fit is stopped, so a third of them are stopped after 0 to 2 iterations.
    """
    for seed in range(first, first + 20):
        x, reference = _random_case(seed)
        max_iter = seed % 9 if seed % 9 < 3 else 500
        posterior = _fit(x, reference, seed=seed, max_iter=max_iter)
        q = _factors(posterior, x)
        model = {
            "prior_variance": reference.prior_variance,
            "variance": reference.variance,
            "weights": reference.weights,
            "prior_mean": reference.prior_mean,
        }
        exact = exact_log_evidence(x, len(reference.weights), **model)
        gap = exact - posterior.elbo
        assert gap >= -1e-9
        divergence = exact_kl(x, q.means, q.mean_variances, q.responsibilities, **model)
        assert gap == pytest.approx(divergence, abs=1e-9, rel=1e-9), seed


def test_elbo_is_the_literal_formula():
    """The ELBO is that of section 2, summed term by term in loops, at every stage of a fit."""
    for seed in range(amount(10, 60)):
        x, reference = _random_case(seed)
        posterior = _fit(x, reference, seed=seed, max_iter=seed % 5)
        assert posterior.elbo == pytest.approx(
            known_variance.elbo(x, reference, _factors(posterior, x)), rel=1e-11
        )


@pytest.mark.slow
def test_sweeps_are_the_literal_sweeps():
    """From given means, the factors after each sweep are those of the updates written as loops."""
    for seed in range(40):
        x, reference = _random_case(seed)
        k = len(reference.weights)
        rng = np.random.default_rng(1000 + seed)
        start = known_variance.Factors(rng.normal(0, 2, k), rng.gamma(2, 0.5, k), np.full((len(x), k), 1 / k))
        for n_sweeps in (1, 2, 5):
            init = {"mean": families.Normal(start.means, 1 / start.mean_variances)}
            posterior = _fit(x, reference, init=init, max_iter=n_sweeps, tol=0, accelerate=False)
            expected = known_variance.run(x, reference, start, n_sweeps)
            expected = known_variance.update_responsibilities(x, reference, expected)
            q = _factors(posterior, x)
            np.testing.assert_allclose(q.means, expected.means, rtol=1e-10, atol=1e-11)
            np.testing.assert_allclose(q.mean_variances, expected.mean_variances, rtol=1e-11)
            np.testing.assert_allclose(q.responsibilities, expected.responsibilities, rtol=1e-9, atol=1e-12)


def test_one_component_is_exact():
    """With K = 1 mean field is no restriction: the ELBO is the evidence and q(mu) the exact posterior."""
    for seed in range(20):
        x, reference = _random_case(seed)
        m0, s0, v = reference.prior_mean, reference.prior_variance, reference.variance
        posterior = _stated([1.0], v, m0, s0).fit({"x": x})
        assert posterior.elbo == pytest.approx(
            exact_log_evidence(x, 1, s0, v, prior_mean=m0), rel=1e-12, abs=1e-11
        )
        exact = exact_posterior(x, 1, s0, v, prior_mean=m0)
        assert posterior["mean"].mean[0] == pytest.approx(exact.means[0, 0], rel=1e-11, abs=1e-12)
        assert 1 / posterior["mean"].precision[0] == pytest.approx(exact.mean_variances[0, 0], rel=1e-12)


def test_component_of_weight_zero_changes_nothing():
    """A component that no row can belong to keeps its prior and leaves the ELBO as it is without it."""
    x = np.array([-1.3, 0.4, 2.5, 0.1])
    with_it = _stated([0.4, 0.0, 0.6], 0.8, 0.5, 4.0).fit({"x": x}, init={"mean": [-1.0, 0.0, 1.0]})
    without = _stated([0.4, 0.6], 0.8, 0.5, 4.0).fit({"x": x}, init={"mean": [-1.0, 1.0]})
    assert with_it.elbo == pytest.approx(without.elbo, abs=1e-10)
    assert with_it["mean"].mean[1] == pytest.approx(0.5, abs=1e-12)
    assert with_it["mean"].precision[1] == pytest.approx(0.25, rel=1e-12)


def test_flat_prior_sweeps_are_those_of_section_3():
    """With a flat prior and two components each sweep is the one that section 3 writes down; log p(mu) counts as 0."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(-1.5, 1, 40), rng.normal(2, 1, 30)])
    for p in (0.5, 0.3, 0.8):
        reference = known_variance.Model(weights=[p, 1 - p], prior_variance=np.inf)
        means, variances = (-1.0, 1.0), (0.3, 0.4)
        init = {"mean": families.Normal(np.array(means), 1 / np.array(variances))}
        for n_sweeps in range(1, 6):
            means, variances, _ = known_variance.flat_two_component_sweep(x, p, means, variances)
            posterior = _fit(x, reference, init=init, max_iter=n_sweeps, tol=0, accelerate=False)
            np.testing.assert_allclose(posterior["mean"].mean, means, rtol=1e-11)
            np.testing.assert_allclose(1 / posterior["mean"].precision, variances, rtol=1e-11)
            literal = known_variance.elbo(x, reference, _factors(posterior, x))
            assert posterior.elbo == pytest.approx(literal, rel=1e-12)


def _collapses(x, p, means, n_sweeps=3000):
    """Return whether the literal loops of section 3 end with less than half a row in a component."""
    variances = (0.1, 0.1)
    for _ in range(n_sweeps):
        means, variances, r = known_variance.flat_two_component_sweep(x, p, means, variances)
        if min(sum(r), len(x) - sum(r)) < 0.5:
            return True
    return False


def test_collapse_is_told():
    """With p = 0.01, N = 100, a flat prior, every start collapses in literal loops; a fit says so in finite numbers."""
    x = np.random.default_rng(8).normal(0, 1, 100)
    for start in ((-2.0, 2.0), (0.0, 0.1), (2.0, -2.0)):
        assert _collapses(x, 0.01, start)
    model = _stated([0.01, 0.99], 1.0, 0.0, np.inf)
    with pytest.warns(cv.CollapseWarning, match="proper prior"):
        posterior = model.fit({"x": x}, seed=0, n_restarts=4)
    assert posterior.status is Status.COLLAPSED
    assert not posterior.converged
    for values in (posterior.elbo, posterior.elbo_trace, posterior["mean"].mean, posterior["mean"].precision):
        assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(posterior.local({"x": x})["z"].probabilities))


def test_collapse_needs_a_flat_prior():
    """The same data under a proper prior: the small component empties as it should, and nothing has collapsed."""
    x = np.random.default_rng(8).normal(0, 1, 100)
    posterior = _stated([0.01, 0.99], 1.0, 0.0, 4.0).fit({"x": x}, seed=0)
    assert posterior.converged


def test_start_that_did_not_collapse_is_preferred(monkeypatch):
    """Of two starts the one that did not collapse is kept, though the collapsed one has the larger objective."""
    x = np.array([-4.0, -4.1, 4.0, 4.2, 4.1])
    away = {"mean": families.Normal([4.1, 400.0], [3.0, 1e-4])}
    good = {"mean": families.Normal([-4.0, 4.0], [2.0, 3.0])}
    model = _stated([0.5, 0.5], 100.0, 0.0, np.inf)

    begin = restarts.beginning

    def fit(starts):
        queue = list(starts)
        for module in (restarts, fitting):
            monkeypatch.setattr(
                module,
                "beginning",
                lambda problem, row_map, init, *rest: begin(problem, row_map, queue.pop(0), *rest),
            )
        return model.fit({"x": x}, n_restarts=len(starts), seed=0)

    with pytest.warns(cv.CollapseWarning):
        collapsed = fit([away])
    assert collapsed.status is Status.COLLAPSED
    for starts in ([away, good], [good, away]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kept = fit(starts)
        assert kept.status is not Status.COLLAPSED
        assert collapsed.elbo in kept.restart_elbos
        assert collapsed.elbo > kept.elbo


def test_start_from_values_is_the_start_from_ever_narrower_factors():
    """Values as a start: their objective is minus infinity, as that of a point is, and a sweep later all is finite."""
    x = np.array([-1.3, 0.4, 2.5, 0.1])
    model = _stated([0.4, 0.6], 0.8, 0.5, 4.0)
    values = np.array([-1.0, 1.0])
    posterior = model.fit({"x": x}, init={"mean": values}, max_iter=1)
    narrow = model.fit({"x": x}, init={"mean": families.Normal(values, [1e14, 1e14])}, max_iter=1)
    assert posterior.elbo_trace[0] == -np.inf
    assert posterior.elbo == pytest.approx(narrow.elbo, rel=1e-10)
    np.testing.assert_allclose(posterior["mean"].mean, narrow["mean"].mean, rtol=1e-10)
    assert model.fit({"x": x}, init={"mean": values}).converged


@pytest.mark.parametrize("init", ["auto", "prior"])
def test_flat_prior_of_a_single_normal_starts_anywhere(init):
    """A flat mean without a mixture: the sample mean and v / N, from either start."""
    x = np.array([0.3, 1.1, 4.0])
    mean = cv.Normal("mean", 0.0, 0.0)
    model = cv.Model(cv.Normal("x", mean, 2.0, plates=cv.Plate("obs")))
    posterior = model.fit({"x": x}, init=init)
    assert posterior["mean"].mean == pytest.approx(x.mean(), rel=1e-12)
    assert posterior["mean"].precision == pytest.approx(6.0, rel=1e-12)
    assert posterior.converged
