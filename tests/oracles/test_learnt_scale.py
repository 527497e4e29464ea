"""A scale that all components have in common: its ELBO written out, the exact evidence by quadrature, its fixed point.

The inverse scale of the precisions is ``diag(b + floor)`` with ``b`` a Gamma, and the logarithm of the sum enters by
the bound ``log(b + floor) >= log b``.
"""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma, gammaln, logsumexp, multigammaln
from scipy.stats import gamma as gamma_distribution
from tests.estimators.evidence import EVIDENCE

import caviar as cv
from caviar.datasets import load_faithful
from caviar.testing import check_model

FAITHFUL = load_faithful().values
FEATURE = cv.Plate("feature", 3)


def _log_det(df, inverse_scale):
    """Return the expected log determinant of Wisharts."""
    size = inverse_scale.shape[-1]
    digammas = digamma((np.asarray(df)[..., None] - np.arange(size)) / 2).sum(axis=-1)
    return digammas + size * np.log(2) - np.linalg.slogdet(inverse_scale)[1]


def _entropy(gamma):
    """Return the entropy of Gammas."""
    return gamma.shape - np.log(gamma.rate) + gammaln(gamma.shape) + (1 - gamma.shape) * digamma(gamma.shape)


def _own_elbo(X, mixture):
    """Return the ELBO of a fitted full, joint mixture, written out from section 5 of the mathematics."""
    weights, theta, scale = (mixture.posterior_[name] for name in ("weights", "theta", "scale"))
    n, size = X.shape
    alpha0 = mixture.weight_concentration_prior_ * np.ones(len(weights.concentration))
    m0, df0, kappa = (
        mixture.mean_prior_,
        mixture.degrees_of_freedom_prior_,
        mixture.posterior_["mean_precision"],
    )
    kappa0, log_kappa = kappa.shape / kappa.rate, digamma(kappa.shape) - np.log(kappa.rate)
    variances = X.var(axis=0)
    floor = (1e-6 + 1e-12 * n) * variances

    log_pi = digamma(weights.concentration) - digamma(weights.concentration.sum())
    precision = theta.df[:, None, None] * np.linalg.inv(theta.inverse_scale)
    log_det = _log_det(theta.df, theta.inverse_scale)
    deviation = X[:, None] - theta.mean
    distance = np.einsum("nki,kij,nkj->nk", deviation, precision, deviation) + size / theta.mean_precision
    rows = logsumexp(0.5 * (log_det - distance - size * np.log(2 * np.pi)) + log_pi, axis=1).sum()

    of_weights = (
        gammaln(alpha0.sum())
        - gammaln(alpha0).sum()
        - gammaln(weights.concentration.sum())
        + gammaln(weights.concentration).sum()
        + (alpha0 - weights.concentration) @ log_pi
    )
    shift = theta.mean - m0
    of_means = 0.5 * (
        size * (log_kappa - np.log(theta.mean_precision))
        + size
        - kappa0 * size / theta.mean_precision
        - kappa0 * np.einsum("ki,kij,kj->k", shift, precision, shift)
    )
    expected, log_scale = scale.shape / scale.rate, digamma(scale.shape) - np.log(scale.rate)
    prior = (
        0.5 * df0 * log_scale.sum()
        - 0.5 * np.einsum("i,kii->k", expected + floor, precision)
        + 0.5 * (df0 - size - 1) * log_det
        - 0.5 * df0 * size * np.log(2)
        - multigammaln(df0 / 2, size)
    )
    own = (
        0.5 * theta.df * np.linalg.slogdet(theta.inverse_scale)[1]
        - 0.5 * theta.df * size
        + 0.5 * (theta.df - size - 1) * log_det
        - 0.5 * theta.df * size * np.log(2)
        - [multigammaln(df / 2, size) for df in theta.df]
    )
    of_scale = -np.log(variances) - expected / variances
    of_scale = (of_scale + _entropy(scale)).sum()
    return rows + of_weights + (of_means + prior - own).sum() + of_scale + _entropy(kappa) - kappa0


@pytest.mark.parametrize("n_components", [1, 3])
def test_the_elbo_is_the_one_written_out(n_components):
    """Every term with every constant, for correlated columns in different units."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 3)), 6 + rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3))])
    X = X * [1.0, 1e3, 1e-3]
    mixture = cv.BayesianGaussianMixture(n_components, random_state=0).fit(X)
    assert mixture.elbo_ == pytest.approx(_own_elbo(X, mixture), rel=1e-10)


def _evidence_over_scales(structure, X, mixture):
    """Return the exact log evidence of one component, with the scale of each column integrated out by quadrature."""
    # the columns are independent, so that their evidences multiply
    return sum(_evidence_of_column(structure, X[:, [d]], d, mixture) for d in range(X.shape[1]))


def _evidence_of_column(structure, x, d, mixture):
    variance = x.var()
    floor, prior = (1e-6 + 1e-12 * len(x)) * variance, gamma_distribution(1.0, scale=variance)

    def log_joint(log_scale):
        scale = np.exp(log_scale)
        inverse_scale = np.full((1, 1), scale + floor) if structure == "full" else np.array([scale + floor])
        given = EVIDENCE[structure](
            x, mixture.mean_prior_[[d]], 1.0, mixture.degrees_of_freedom_prior_, inverse_scale
        )
        return float(given) + prior.logpdf(scale) + log_scale

    grid = np.linspace(np.log(variance) - 30, np.log(variance) + 20, 400)
    highest = max(log_joint(u) for u in grid)
    mass = quad(
        lambda u: np.exp(log_joint(u) - highest), grid[0], grid[-1], limit=400, points=[np.log(variance)]
    )
    return highest + np.log(mass[0])


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("structure", "columns"), [("full", [0]), ("full", [1]), ("diag", [0, 1])])
def test_the_elbo_is_a_bound_of_the_exact_evidence(structure, columns):
    """With one component, by quadrature over the scale; what mean field loses is less than a nat a column."""
    X = FAITHFUL[:40, columns]
    mixture = cv.BayesianGaussianMixture(
        1, covariance_type=structure, mean_precision_prior=1.0, random_state=0
    )
    mixture.fit(X)
    exact = _evidence_over_scales(structure, X, mixture)
    assert exact - len(columns) < mixture.elbo_ < exact


def test_scales_and_precisions_are_at_their_common_fixed_point():
    """One component: the two updates iterated by hand end where the fit does."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 3)) @ np.array([[1.0, 0.9, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 1e-3]])
    n, size = X.shape
    mixture = cv.BayesianGaussianMixture(1, tol=1e-13, mean_precision_prior=1.0, random_state=0).fit(X)
    variances = X.var(axis=0)
    floor, scatter = (1e-6 + 1e-12 * n) * variances, (X - X.mean(axis=0)).T @ (X - X.mean(axis=0))
    scale = variances
    for _ in range(2000):
        precision = (size + n) * np.linalg.inv(scatter + np.diag(scale + floor))
        scale = (1 + size / 2) / (1 / variances + np.diagonal(precision) / 2)
    np.testing.assert_allclose(mixture.precisions_[0], precision, rtol=1e-4)
    np.testing.assert_allclose(mixture.covariance_prior_, np.diag(scale + floor), rtol=1e-4)


@pytest.mark.parametrize("structure", ["full", "spherical"])
def test_a_mean_precision_that_is_learnt_is_a_bound_and_at_its_fixed_point(structure):
    """With one component, given the covariance of the data: the evidence by quadrature over the number."""
    X, m0 = FAITHFUL[:40], np.array([1.0, 60.0])
    mixture = cv.BayesianGaussianMixture(
        1, covariance_type=structure, covariance_prior="empirical", mean_prior=m0, tol=1e-13, random_state=0
    ).fit(X)
    given = mixture.degrees_of_freedom_prior_, mixture.covariance_prior_

    def joint(kappa):
        return np.exp(EVIDENCE[structure](X, m0, kappa, *given) - mixture.elbo_ - kappa)

    exact = mixture.elbo_ + np.log(quad(joint, 0, 20, points=[1e-3, 0.1, 1.0])[0])
    assert exact - 0.5 < mixture.elbo_ < exact
    theta, kappa = mixture.posterior_["theta"], mixture.posterior_["mean_precision"]
    shift, precision = mixture.means_[0] - m0, np.linalg.inv(mixture.covariance_matrices()[0])
    spread = (2 / theta.mean_precision).ravel()[0]
    assert kappa.shape == pytest.approx(2.0)
    assert kappa.rate == pytest.approx(1 + 0.5 * (shift @ precision @ shift + spread), rel=1e-4)


@pytest.mark.slow
def test_known_values_added_to_a_rate_are_a_bound():
    """A Gamma whose rate is a Gamma plus a number: the exact evidence by quadrature is above the ELBO, and near."""
    x = np.array([0.3, 0.1, 0.7, 0.4])

    def evidence(added):
        def joint(rate):
            # the precision is integrated out by hand: its Gamma is conjugate
            shape, after = 2.0 + len(x) / 2, rate + added + 0.5 * (x @ x)
            log_given = 2.0 * np.log(rate + added) + gammaln(shape) - shape * np.log(after) - gammaln(2.0)
            given = np.exp(log_given - 0.5 * len(x) * np.log(2 * np.pi))
            return given * gamma_distribution(3.0).pdf(rate)

        return np.log(quad(joint, 0, 60)[0])

    for added, lost in ((0.01, 0.4), (0.5, 1.0)):
        rate = cv.Gamma("rate", 3.0, 1.0)
        tau = cv.Gamma("tau", 2.0, rate + added)
        posterior = cv.Model(cv.Normal("x", 0.0, tau, plates=cv.Plate("obs"))).fit({"x": x}, tol=1e-12)
        exact = evidence(added)
        assert exact - lost < posterior.elbo < exact
        # the updates: a shape each, and rates that hold the other's mean and what is added
        q_tau, q_rate = posterior["tau"], posterior["rate"]
        assert q_tau.rate == pytest.approx(q_rate.mean + added + 0.5 * (x @ x), rel=1e-6)
        assert q_rate.rate == pytest.approx(1 + q_tau.mean, rel=1e-6)


def _matrices(inverse_scale):
    """Return a model of Wishart precisions with such an inverse scale, and its data."""
    component, obs = cv.Plate("component", 2), cv.Plate("obs")
    precision = cv.Wishart("precision", 4.0, inverse_scale, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=obs)
    x = cv.MultivariateNormal("x", np.zeros(3), precision[z], plates=obs)
    rng = np.random.default_rng(3)
    data = np.vstack([rng.normal(size=(15, 3)), 5 * rng.normal(size=(15, 3))])
    return cv.Model(x), {"x": data}


def test_a_diagonal_of_one_value_is_that_diagonal_matrix():
    """With nearly no spread in the scales, an inverse scale that is learnt is the known one."""
    known = np.array([1.0, 2.0, 3.0])
    scale = cv.Gamma("scale", 1e9, 1e9 / known, plates=FEATURE)
    floor = cv.Constant("floor", np.full(3, 0.25), plates=FEATURE)
    # the bound of the logarithm leaves out the floor, so it is the same for both up to a constant
    learnt, data = _matrices(cv.diagonal(2.0 * scale + floor))
    given, _ = _matrices(np.diag(2.0 * known + 0.25))
    ours, theirs = (model.fit(data, seed=0, tol=1e-12) for model in (learnt, given))
    # in the order of the components by their rows, which is that of the starts
    one, other = (own["precision"].inverse_scale[np.argsort(own["precision"].df)] for own in (ours, theirs))
    np.testing.assert_allclose(one, other, rtol=1e-4)
    lost = 2 * 4.0 / 2 * (np.log(2 * known + 0.25) - np.log(2 * known)).sum()
    assert ours.elbo + lost == pytest.approx(theirs.elbo, abs=1e-3)


@pytest.mark.slow
def test_a_learnt_scale_passes_the_verification_of_a_model():
    """Ascent, stationarity, the ELBO from the densities alone: with a matrix, and a diagonal, of scales."""
    scale = cv.Gamma("scale", 2.0, 2.0, plates=FEATURE)
    floor = cv.Constant("floor", np.full(3, 1e-6), plates=FEATURE)
    for inverse_scale in (
        cv.diagonal(scale + floor),
        cv.Wishart("scale", 4.0, np.eye(3)) + cv.Constant("floor", 1e-6 * np.eye(3)),
    ):
        model, data = _matrices(inverse_scale)
        report = check_model(model, data, n_draws=50, n_directions=10)
        assert report.passed, report


def test_a_model_with_a_learnt_scale_is_saved_and_simulated(tmp_path):
    """The statement comes back: the same fit, the same draws, and the log joint density of the exact sum."""
    scale = cv.Gamma("scale", 2.0, 2.0, plates=FEATURE)
    floor = cv.Constant("floor", np.full(3, 0.5), plates=FEATURE)
    model, data = _matrices(cv.diagonal(2.0 * scale + floor))
    model.save(tmp_path / "model.caviar")
    loaded = cv.load(tmp_path / "model.caviar")
    assert loaded.fit(data, seed=0).elbo == model.fit(data, seed=0).elbo
    draws = model.simulate(sizes={"obs": 4}, seed=5)
    assert loaded.log_joint(draws) == model.log_joint(draws)
    other = cv.Wishart("precision", 4.0, np.diag(2 * draws["scale"] + 0.5), plates=cv.Plate("component", 2))
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=cv.Plate("obs"))
    given = cv.Model(cv.MultivariateNormal("x", np.zeros(3), other[z], plates=z.plates))
    of_scale = gamma_distribution(2.0, scale=0.5).logpdf(draws["scale"]).sum()
    assert model.log_joint(draws) == pytest.approx(given.log_joint(draws) + of_scale, rel=1e-12)
