"""Conjugate models of every family, stated in the language, against closed forms, enumeration and published figures."""

from itertools import product
from math import lgamma, log, pi

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, digamma, gammaln, logsumexp
from scipy.stats import gamma, multivariate_normal, norm

import caviar as cv
from caviar import families
from oracles import published
from oracles.reference import dirichlet_counts, known_precision_mixture, normal_unknown, wishart

OBS = cv.Plate("obs")


def _components(k):
    return cv.Plate("component", k)


def _log_dirichlet_multinomial(concentration, counts):
    return dirichlet_counts.log_evidence(np.asarray(concentration, float), np.asarray(counts, float))


# -- one conjugate pair: the ELBO is the evidence ------------------------------------------------------------------


def test_dirichlet_categorical_is_exact():
    """The ELBO is the log probability of the sequence of draws, and the posterior Dirichlet counts them."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        concentration, x = rng.uniform(0.3, 3, 4), rng.integers(0, 4, 12)
        posterior = cv.Model(cv.Categorical("x", cv.Dirichlet("p", concentration), plates=OBS)).fit({"x": x})
        counts = np.bincount(x, minlength=4)
        assert posterior.elbo == pytest.approx(_log_dirichlet_multinomial(concentration, counts), rel=1e-12)
        np.testing.assert_allclose(posterior["p"].concentration, concentration + counts, rtol=1e-14)


def test_dirichlet_categorical_is_infer_nets():
    """Infer.NET's bound for one draw under Dirichlet(1, 1, 1, 1), with a data plate and without one."""
    concentration, draw = published.DIRICHLET_CATEGORICAL_CONCENTRATION, published.DIRICHLET_CATEGORICAL_DRAW
    for plates, data in ((OBS, [draw]), ((), draw)):
        model = cv.Model(cv.Categorical("x", cv.Dirichlet("p", concentration), plates=plates))
        assert model.fit({"x": data}).elbo == pytest.approx(published.DIRICHLET_CATEGORICAL_BOUND, abs=5e-8)


@pytest.mark.parametrize("data_plate", ["row", "draw"])
def test_dirichlet_multinomial_is_bayespys(data_plate):
    """BayesPy's evidence of three rows of counts, as draws on two plates, whichever of them runs over the data."""
    row, draw = cv.Plate("row", 3), cv.Plate("draw", 20)
    p = cv.Dirichlet("p", published.DIRICHLET_MULTINOMIAL_CONCENTRATION, plates=row)
    model = cv.Model(cv.Categorical("x", p, plates=(row, draw)))
    counts = published.DIRICHLET_MULTINOMIAL_COUNTS
    x = np.array([np.repeat(np.arange(5), c) for c in counts])
    posterior = model.fit({"x": x}, data_plate=data_plate)
    coefficients = sum(dirichlet_counts.log_multinomial_coefficient(c) for c in counts)
    assert posterior.elbo + coefficients == pytest.approx(
        published.DIRICHLET_MULTINOMIAL_LOG_EVIDENCE, abs=5e-6
    )
    if data_plate == "draw":
        np.testing.assert_allclose(posterior["p"].concentration, 0.5 + counts, rtol=1e-14)


@pytest.mark.parametrize("trials", [None, 20, [20, 20, 20]])
def test_multinomial_is_bayespys(trials):
    """BayesPy's evidence of three rows of counts, the multinomial coefficients included."""
    row, counts = cv.Plate("row", 3), published.DIRICHLET_MULTINOMIAL_COUNTS
    p = cv.Dirichlet("p", published.DIRICHLET_MULTINOMIAL_CONCENTRATION, plates=row)
    posterior = cv.Model(cv.Multinomial("x", trials, p, plates=row)).fit({"x": counts})
    assert posterior.elbo == pytest.approx(published.DIRICHLET_MULTINOMIAL_LOG_EVIDENCE, abs=5e-6)
    np.testing.assert_allclose(posterior.local({"x": counts})["p"].concentration, 0.5 + counts, rtol=1e-14)


def test_beta_bernoulli_is_exact():
    """The ELBO is log B(a + s, b + f) - log B(a, b) for every feature of a plate, with different priors."""
    rng = np.random.default_rng(0)
    a, b, x = rng.uniform(0.4, 3, 5), rng.uniform(0.4, 3, 5), rng.integers(0, 2, (9, 5))
    feature = cv.Plate("feature", 5)
    posterior = cv.Model(cv.Bernoulli("x", cv.Beta("p", a, b, plates=feature), plates=(OBS, feature))).fit(
        {"x": x}
    )
    yes = x.sum(axis=0)
    exact = (betaln(a + yes, b + 9 - yes) - betaln(a, b)).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)
    np.testing.assert_allclose(posterior["p"].a, a + yes, rtol=1e-13)
    np.testing.assert_allclose(posterior["p"].b, b + 9 - yes, rtol=1e-13)


def test_normal_with_known_precision_is_exact():
    """The ELBO is log N(x; m0 1, I/t + v0 11') by SciPy, also with a precision of its own for every row."""
    rng = np.random.default_rng(1)
    x, precisions, m0, v0 = rng.normal(3, 2, 7), rng.gamma(2, 1, 7), 1.5, 4.0
    mean = cv.Normal("mean", m0, 1 / v0)
    constant = cv.Model(cv.Normal("x", mean, 0.8, plates=OBS)).fit({"x": x})
    covariance = np.eye(7) / 0.8 + v0
    assert constant.elbo == pytest.approx(
        multivariate_normal.logpdf(x, np.full(7, m0), covariance), rel=1e-12
    )
    by_row = cv.Model(cv.Normal("x", mean, cv.Data("t", plates=OBS), plates=OBS)).fit(
        {"x": x, "t": precisions}
    )
    covariance = np.diag(1 / precisions) + v0
    assert by_row.elbo == pytest.approx(multivariate_normal.logpdf(x, np.full(7, m0), covariance), rel=1e-12)


def test_known_offset_of_a_row_moves_it():
    """A location that comes with the data, one a row for several columns: the Normal density at x - offset."""
    rng = np.random.default_rng(2)
    x, offset, feature = rng.normal(5, 1, (6, 3)), rng.normal(5, 2, 6), cv.Plate("feature", 3)
    precision = cv.Gamma("precision", 2.0, 3.0, plates=feature)
    model = cv.Model(cv.Normal("x", cv.Data("offset", plates=OBS), precision, plates=(OBS, feature)))
    posterior = model.fit({"x": x, "offset": offset})
    square = ((x - offset[:, None]) ** 2).sum(axis=0)
    shape, rate = 2.0 + 3, 3.0 + square / 2
    exact = (gammaln(shape) - gammaln(2.0) + 2 * log(3.0) - shape * np.log(rate) - 3 * log(2 * pi)).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)
    np.testing.assert_allclose(posterior["precision"].rate, rate, rtol=1e-12)


def test_joint_normal_gamma_is_exact():
    """With the joint prior of mean and precision the ELBO is the Student-t evidence, and q the exact posterior."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(2, 1.5, 8)
        prior = normal_unknown.NormalGamma(*(float(v) for v in (rng.normal(), *rng.gamma(2, 1, 3))))
        theta = cv.NormalGamma("theta", prior.mean, prior.mean_precision, prior.shape, prior.rate)
        posterior = cv.Model(cv.Normal("x", theta, plates=OBS)).fit({"x": x})
        assert posterior.elbo == pytest.approx(normal_unknown.student_t_log_evidence(x, prior), rel=1e-11)
        exact = normal_unknown.normal_gamma_posterior(x, prior)
        for name, value in vars(exact).items():
            assert getattr(posterior["theta"], name) == pytest.approx(value, rel=1e-11), name


# -- two factors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_plate", [True, False])
def test_factorised_normal_is_infer_nets(with_plate):
    """Infer.NET's bound and expectations for q(m) q(tau) given one observation, with a data plate and without one."""
    m = cv.Normal("m", published.NORMAL_PRIOR_MEAN, 1 / published.NORMAL_PRIOR_VARIANCE)
    tau = cv.Gamma("tau", published.NORMAL_PRIOR_SHAPE, published.NORMAL_PRIOR_RATE)
    model = cv.Model(cv.Normal("x", m, tau, plates=OBS if with_plate else ()))
    x = published.NORMAL_X if with_plate else published.NORMAL_X[0]
    posterior = model.fit({"x": x}, tol=1e-15, max_iter=5000)
    tolerance = published.NORMAL_TOLERANCE
    assert posterior.elbo == pytest.approx(published.NORMAL_BOUND, abs=tolerance)
    log_tau, tau_mean = posterior["tau"].expected_statistics
    first, second = posterior["m"].expected_statistics
    assert tau_mean == pytest.approx(published.NORMAL_EXPECTED_PRECISION, abs=tolerance)
    assert log_tau == pytest.approx(published.NORMAL_EXPECTED_LOG_PRECISION, abs=tolerance)
    assert first == pytest.approx(published.NORMAL_EXPECTED_MEAN, abs=tolerance)
    assert second == pytest.approx(published.NORMAL_EXPECTED_SQUARED_MEAN, abs=tolerance)


@pytest.mark.slow
def test_factorised_normal_is_below_the_evidence_by_quadrature():
    """For random data the fixed point is the literal one, and its ELBO lies below the evidence."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(1, 2, int(rng.integers(1, 8)))
        prior = normal_unknown.Factorised(*(float(v) for v in (rng.normal(), *rng.gamma(2, 1, 3))))
        m = cv.Normal("m", prior.mean, 1 / prior.variance)
        model = cv.Model(cv.Normal("x", m, cv.Gamma("tau", prior.shape, prior.rate), plates=OBS))
        posterior = model.fit({"x": x}, tol=1e-15, max_iter=5000)
        q = normal_unknown.factorised_fixed_point(x, prior)
        assert posterior.elbo == pytest.approx(normal_unknown.factorised_elbo(x, prior, q), rel=1e-11)
        assert posterior["m"].mean == pytest.approx(q.mean, rel=1e-6)
        assert posterior["tau"].rate == pytest.approx(q.rate, rel=1e-6)
        assert posterior.elbo < normal_unknown.factorised_log_evidence(x, prior)


@pytest.mark.parametrize("init", ["auto", {"z": 0}, {"mean": np.array([6.85, 7.5])}])
def test_two_component_mixture_is_infer_nets(init):
    """Infer.NET's mixture of one observation without a data plate, where the label is a global variable."""
    variances = np.array(published.TWO_MEANS_PRIOR_VARIANCES)
    weights = cv.Dirichlet("weights", published.TWO_MEANS_CONCENTRATION)
    mean = cv.Normal("mean", published.TWO_MEANS_PRIOR_MEANS, 1 / variances, plates=_components(2))
    z = cv.Categorical("z", weights)
    model = cv.Model(cv.Normal("x", mean[z], published.TWO_MEANS_PRECISION))
    data = {"x": published.TWO_MEANS_X[0]}
    posterior = model.fit(data, tol=1e-15, max_iter=5000, init=init, factors="apart")
    tolerance = published.TWO_MEANS_TOLERANCE
    assert posterior.elbo == pytest.approx(published.TWO_MEANS_BOUND, abs=5e-8)
    np.testing.assert_allclose(
        posterior["z"].probabilities, published.TWO_MEANS_RESPONSIBILITIES, atol=tolerance
    )
    np.testing.assert_allclose(posterior["mean"].mean, published.TWO_MEANS_EXPECTED_MEANS, atol=tolerance)
    (log_weights,) = posterior["weights"].expected_statistics
    np.testing.assert_allclose(log_weights, published.TWO_MEANS_EXPECTED_LOG_WEIGHTS, atol=tolerance)


def test_two_component_mixture_with_a_plate_is_the_literal_one():
    """The same model for several rows on a data plate: the ELBO of the literal loops at their fixed point."""
    x = np.array([7.0, 6.7, 7.4, 7.9])
    reference = known_precision_mixture.Model(np.array([1.0, 2.0]), (6.85, 7.5), (0.1, 0.2), 10.0)
    q = known_precision_mixture.run(x, reference, 3000)
    mean = cv.Normal(
        "mean", reference.prior_means, 1 / np.array(reference.prior_variances), plates=_components(2)
    )
    z = cv.Categorical("z", cv.Dirichlet("weights", reference.concentration), plates=OBS)
    posterior = cv.Model(cv.Normal("x", mean[z], 10.0, plates=OBS)).fit(
        {"x": x}, init="prior", tol=1e-15, max_iter=5000
    )
    assert posterior.elbo == pytest.approx(known_precision_mixture.elbo(x, reference, q), rel=1e-10)
    np.testing.assert_allclose(posterior["mean"].mean, q.means, rtol=1e-6)


# -- hierarchies ---------------------------------------------------------------------------------------------------


def test_gamma_rate_under_a_gamma_prior_is_exact():
    """Gamma data with a Gamma prior on their rate: the ELBO is the closed evidence, checked by quadrature."""
    x, a, c, d = np.array([0.7, 2.1, 0.2, 3.3]), 1.7, 2.5, 0.9
    posterior = cv.Model(cv.Gamma("x", a, cv.Gamma("rate", c, d), plates=OBS)).fit({"x": x})
    shape, rate = c + len(x) * a, d + x.sum()
    exact = (
        lgamma(shape) - shape * log(rate) - lgamma(c) + c * log(d) + ((a - 1) * np.log(x) - lgamma(a)).sum()
    )
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)
    assert (posterior["rate"].shape, posterior["rate"].rate) == pytest.approx((shape, rate), rel=1e-13)

    def joint(b):
        return np.exp(gamma.logpdf(x, a, scale=1 / b).sum() + gamma.logpdf(b, c, scale=1 / d))

    assert posterior.elbo == pytest.approx(log(quad(joint, 0, 30, epsabs=0)[0]), rel=1e-8)


def _expected_log_gamma(a, rate_mean, rate_log, x_mean, x_log):
    return a * rate_log - lgamma(a) + (a - 1) * x_log - rate_mean * x_mean


def test_precisions_under_a_learnt_rate_are_the_literal_ones():
    """Normal data, precision tau_k ~ Gamma(a, b), b ~ Gamma(c, d): fixed point and ELBO of the literal updates."""
    rng = np.random.default_rng(4)
    x, a, c, d = rng.normal(0, [1.0, 3.0, 0.5], (6, 3)), 1.5, 2.0, 3.0
    group = cv.Plate("group", 3)
    rate = cv.Gamma("rate", c, d)
    tau = cv.Gamma("tau", a, rate, plates=group)
    posterior = cv.Model(cv.Normal("x", 0.0, tau, plates=(OBS, group))).fit(
        {"x": x}, tol=1e-15, max_iter=5000
    )
    mean_rate = 1.0
    for _ in range(2000):
        tau_shape, tau_rate = a + 3.0, mean_rate + (x**2).sum(axis=0) / 2
        rate_shape, rate_rate = c + 3 * a, d + (tau_shape / tau_rate).sum()
        mean_rate = rate_shape / rate_rate
    np.testing.assert_allclose(posterior["tau"].rate, tau_rate, rtol=1e-7)
    np.testing.assert_allclose(posterior["tau"].shape, tau_shape, rtol=1e-13)
    assert posterior["rate"].rate == pytest.approx(rate_rate, rel=1e-7)
    log_rate = digamma(rate_shape) - log(rate_rate)
    total = _expected_log_gamma(c, d, log(d), mean_rate, log_rate)
    total += families.Gamma(rate_shape, rate_rate).entropy()
    for k in range(3):
        tau_mean, log_tau = tau_shape / tau_rate[k], digamma(tau_shape) - log(tau_rate[k])
        total += _expected_log_gamma(a, mean_rate, log_rate, tau_mean, log_tau)
        total += families.Gamma(tau_shape, tau_rate[k]).entropy()
        total += (0.5 * log_tau - 0.5 * log(2 * pi) - 0.5 * tau_mean * x[:, k] ** 2).sum()
    assert posterior.elbo == pytest.approx(float(total), rel=1e-10)


def test_inverse_scale_under_a_wishart_prior_is_the_literal_one():
    """Normal data, Lambda ~ Wishart(nu, B), B ~ Wishart(eta, C): fixed point and ELBO of the literal updates.

    Since log p(Lambda | B) = (nu / 2) log|B| - tr(B Lambda) / 2 + ..., q(B) = Wishart(eta + nu, C + <Lambda>).
    """
    rng = np.random.default_rng(5)
    x, nu, eta = rng.normal(size=(9, 2)) @ [[1.0, 0.4], [0.0, 2.0]], 4.5, 3.5
    c = np.array([[1.2, 0.3], [0.3, 0.7]])
    scale = cv.Wishart("scale", eta, c)
    precision = cv.Wishart("precision", nu, scale)
    model = cv.Model(cv.MultivariateNormal("x", np.zeros(2), precision, plates=OBS))
    posterior = model.fit({"x": x}, tol=1e-15, max_iter=5000)
    b = np.eye(2)
    for _ in range(2000):
        df, inverse_scale = nu + 9, b + x.T @ x
        above = c + wishart.mean(df, inverse_scale)
        b = wishart.mean(eta + nu, above)
    np.testing.assert_allclose(posterior["precision"].inverse_scale, inverse_scale, rtol=1e-6)
    np.testing.assert_allclose(posterior["scale"].inverse_scale, above, rtol=1e-6)
    assert posterior["scale"].df == pytest.approx(eta + nu, rel=1e-13)
    mean, log_det = wishart.mean(df, inverse_scale), wishart.expected_log_det(df, inverse_scale)
    mean_b, log_det_b = wishart.mean(eta + nu, above), wishart.expected_log_det(eta + nu, above)
    total = wishart.expected_log_density(eta, c, mean_b, log_det_b) + wishart.entropy(eta + nu, above)
    # <log p(Lambda | B)>: the density at <B> with log|<B>| replaced by <log|B|>
    total += wishart.expected_log_density(nu, mean_b, mean, log_det)
    total += nu / 2 * (log_det_b - wishart.log_det(mean_b)) + wishart.entropy(df, inverse_scale)
    total += 9 * (0.5 * log_det - log(2 * pi)) - 0.5 * float(np.trace(x.T @ x @ mean))
    assert posterior.elbo == pytest.approx(total, rel=1e-10)


def test_means_under_a_learnt_mean_are_below_the_exact_evidence():
    """Group means under a common mean: below the exact (jointly Normal) evidence by what mean field loses there."""
    rng = np.random.default_rng(6)
    x, group = rng.normal(0, 2, (5, 3)), cv.Plate("group", 3)
    top = cv.Normal("top", 1.0, 0.25)
    mean = cv.Normal("mean", top, 0.5, plates=group)
    posterior = cv.Model(cv.Normal("x", mean, 1.5, plates=(OBS, group))).fit(
        {"x": x}, tol=1e-15, max_iter=5000, factors="apart"
    )
    covariance = 4.0 + np.kron(np.eye(3), np.full((5, 5), 2.0)) + np.eye(15) / 1.5
    exact = multivariate_normal.logpdf(x.T.ravel(), np.ones(15), covariance)
    assert posterior.elbo < exact
    # a Normal posterior: mean field finds its mean exactly, and the diagonal of its precision
    joint = np.array([[0.25 + 1.5, *[-0.5] * 3], *[[-0.5, *(8.0 * np.eye(3)[k])] for k in range(3)]])
    linear = np.array([0.25, *(1.5 * x.sum(axis=0))])
    centre = np.linalg.solve(joint, linear)
    np.testing.assert_allclose([posterior["top"].mean, *posterior["mean"].mean], centre, rtol=1e-6)
    diagonal = [posterior["top"].precision, *posterior["mean"].precision]
    np.testing.assert_allclose(diagonal, np.diag(joint), rtol=1e-12)
    gap = 0.5 * (np.log(np.diag(joint)).sum() - np.linalg.slogdet(joint)[1])
    assert exact - posterior.elbo == pytest.approx(gap, rel=1e-8)


# -- mixtures of other leaves --------------------------------------------------------------------------------------


def _enumerated(x, concentration, log_evidence_of_rows):
    """Return log p(x) of a mixture with learnt weights: every assignment, its rows integrated out component-wise."""
    k, terms = len(concentration), []
    for assignment in product(range(k), repeat=len(x)):
        labels = np.array(assignment)
        term = _log_dirichlet_multinomial(concentration, np.bincount(labels, minlength=k))
        terms.append(term + sum(log_evidence_of_rows(x[labels == j]) for j in range(k)))
    return float(logsumexp(terms))


def _literal_mixture_elbo(posterior, r, concentration, expected_log_likelihood, divergence):
    """Return the ELBO of a mixture from its factors: (N, K) expected log likelihoods and KL of the parameters."""
    q = posterior["weights"].concentration
    log_weights = np.array(wishart.expected_log_weights(q))
    total = wishart.expected_log_dirichlet(concentration, list(log_weights))
    total -= wishart.expected_log_dirichlet(q, list(log_weights))
    entropy = -(r * np.log(np.where(r > 0, r, 1))).sum()
    return total + (r * (log_weights + expected_log_likelihood)).sum() + entropy - divergence


@pytest.mark.parametrize("seed", range(4))
def test_mixture_of_bernoullis(seed):
    """Yes/no answers: the ELBO is the literal one, at most the evidence by enumeration; the updates hold at the end."""
    rng = np.random.default_rng(seed)
    x, concentration, a, b = rng.integers(0, 2, (8, 3)), np.array([1.0, 2.0]), 0.8, 1.5
    component, feature = _components(2), cv.Plate("feature", 3)
    p = cv.Beta("p", a, b, plates=(component, feature))
    z = cv.Categorical("z", cv.Dirichlet("weights", concentration), plates=OBS)
    model = cv.Model(cv.Bernoulli("x", p[z], plates=(OBS, feature)))
    posterior = model.fit({"x": x}, seed=seed, tol=1e-15, max_iter=5000)
    r, q = posterior.local({"x": x})["z"].probabilities, posterior["p"]
    log_yes, log_no = digamma(q.a) - digamma(q.a + q.b), digamma(q.b) - digamma(q.a + q.b)
    likelihood = x @ log_yes.T + (1 - x) @ log_no.T
    prior = families.Beta(np.full((2, 3), a), np.full((2, 3), b))
    literal = _literal_mixture_elbo(posterior, r, concentration, likelihood, q.kl(prior).sum())
    assert posterior.elbo == pytest.approx(literal, rel=1e-11)
    np.testing.assert_allclose(q.a, a + r.T @ x, rtol=1e-5)
    np.testing.assert_allclose(q.b, b + r.T @ (1 - x), rtol=1e-5)
    np.testing.assert_allclose(posterior["weights"].concentration, concentration + r.sum(axis=0), rtol=1e-5)

    def evidence(rows):
        yes = rows.sum(axis=0)
        return (betaln(a + yes, b + len(rows) - yes) - betaln(a, b)).sum()

    assert posterior.elbo < _enumerated(x, concentration, evidence)


@pytest.mark.parametrize("seed", range(4))
def test_mixture_of_categoricals(seed):
    """Answers of three kinds to two questions: literal ELBO, at most the evidence by enumeration, and the updates."""
    rng = np.random.default_rng(seed)
    x, concentration, prior = rng.integers(0, 3, (7, 2)), np.array([1.0, 0.5]), np.array([0.6, 1.0, 1.7])
    component, feature = _components(2), cv.Plate("feature", 2)
    p = cv.Dirichlet("p", prior, plates=(component, feature))
    z = cv.Categorical("z", cv.Dirichlet("weights", concentration), plates=OBS)
    model = cv.Model(cv.Categorical("x", p[z], plates=(OBS, feature)))
    posterior = model.fit({"x": x}, seed=seed, tol=1e-15, max_iter=5000)
    r, q = posterior.local({"x": x})["z"].probabilities, posterior["p"].concentration
    one_hot = np.eye(3)[x]
    log_p = digamma(q) - digamma(q.sum(axis=-1, keepdims=True))
    likelihood = np.einsum("nfv,kfv->nk", one_hot, log_p)
    divergence = posterior["p"].kl(families.Dirichlet(np.broadcast_to(prior, (2, 2, 3)))).sum()
    literal = _literal_mixture_elbo(posterior, r, concentration, likelihood, divergence)
    assert posterior.elbo == pytest.approx(literal, rel=1e-11)
    np.testing.assert_allclose(q, prior + np.einsum("nk,nfv->kfv", r, one_hot), rtol=1e-5)

    def evidence(rows):
        counts = np.array([np.bincount(rows[:, f], minlength=3) for f in range(2)])
        return sum(_log_dirichlet_multinomial(prior, c) for c in counts)

    assert posterior.elbo < _enumerated(x, concentration, evidence)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("turned", [False, True])
def test_plates_inside_plates(turned):
    """Columns of numbers whose means a label chooses, with a precision a column: literal ELBO and updates.

    Stated with the plates in either order, which changes nothing but the axes.
    """
    rng = np.random.default_rng(7)
    x, concentration = rng.normal(0, 1, (12, 3)) + rng.choice([-2.0, 2.0], (12, 1)), np.array([1.0, 1.5])
    component, feature = _components(2), cv.Plate("feature", 3)
    mean = cv.Normal("mean", 0.5, 0.1, plates=(feature, component) if turned else (component, feature))
    tau = cv.Gamma("tau", 1.5, 0.7, plates=feature)
    z = cv.Categorical("z", cv.Dirichlet("weights", concentration), plates=OBS)
    model = cv.Model(cv.Normal("x", mean[z], tau, plates=(feature, OBS) if turned else (OBS, feature)))
    data = {"x": x.T if turned else x}
    posterior = model.fit(data, init={"z": np.arange(12) % 2}, tol=1e-15, max_iter=5000)
    r = posterior.local(data)["z"].probabilities
    m, precision = posterior["mean"].mean, posterior["mean"].precision
    m, precision = (m.T, precision.T) if turned else (m, precision)
    log_tau, tau_mean = posterior["tau"].expected_statistics
    square = (x[:, None, :] - m) ** 2 + 1 / precision
    likelihood = (0.5 * log_tau - 0.5 * log(2 * pi) - 0.5 * tau_mean * square).sum(axis=-1)
    divergence = (
        families.Normal(m, precision).kl(families.Normal(np.full((2, 3), 0.5), np.full((2, 3), 0.1))).sum()
    )
    divergence += posterior["tau"].kl(families.Gamma(np.full(3, 1.5), np.full(3, 0.7))).sum()
    literal = _literal_mixture_elbo(posterior, r, concentration, likelihood, divergence)
    assert posterior.elbo == pytest.approx(literal, rel=1e-11)
    count = r.sum(axis=0)[:, None]
    np.testing.assert_allclose(precision, 0.1 + count * tau_mean, rtol=1e-6)
    np.testing.assert_allclose(m, (0.05 + tau_mean * (r.T @ x)) / precision, rtol=1e-5)
    np.testing.assert_allclose(posterior["tau"].shape, 1.5 + 6, rtol=1e-12)
    np.testing.assert_allclose(
        posterior["tau"].rate, 0.7 + (r[:, :, None] * square).sum(axis=(0, 1)) / 2, rtol=1e-5
    )


def test_a_label_for_each_entry():
    """Labels on two plates, z[obs, feature]: the same as one label a row with all entries in one column."""
    rng = np.random.default_rng(8)
    x, feature, weights = rng.normal(0, 2, (5, 4)), cv.Plate("feature", 4), [0.3, 0.7]
    mean = cv.Normal("mean", [-1.0, 1.0], 0.1, plates=_components(2))
    wide = cv.Model(
        cv.Normal("x", mean[cv.Categorical("z", weights, plates=(OBS, feature))], 1.0, plates=(OBS, feature))
    )
    long = cv.Model(cv.Normal("x", mean[cv.Categorical("z", weights, plates=OBS)], 1.0, plates=OBS))
    init = {"mean": families.Normal([-2.0, 2.0], [1.0, 1.0])}
    one = wide.fit({"x": x}, init=init, max_iter=10, tol=0, accelerate=False)
    other = long.fit({"x": x.ravel()}, init=init, max_iter=10, tol=0, accelerate=False)
    np.testing.assert_allclose(one.elbo_trace, other.elbo_trace, rtol=1e-11)
    np.testing.assert_allclose(one["mean"].mean, other["mean"].mean, rtol=1e-10)
    np.testing.assert_allclose(
        one.local({"x": x})["z"].probabilities.reshape(-1, 2),
        other.local({"x": x.ravel()})["z"].probabilities,
        rtol=1e-8,
    )


def test_observed_labels_make_it_exact():
    """With the labels as data the ELBO is the evidence: Student-t times Dirichlet-multinomial."""
    rng = np.random.default_rng(9)
    x, labels, concentration = rng.normal(0, 2, 11), rng.integers(0, 3, 11), np.array([0.7, 1.0, 2.0])
    prior = normal_unknown.NormalGamma(0.4, 0.6, 1.8, 2.2)
    theta = cv.NormalGamma("theta", 0.4, 0.6, 1.8, 2.2, plates=_components(3))
    z = cv.Categorical("z", cv.Dirichlet("weights", concentration), plates=OBS)
    posterior = cv.Model(cv.Normal("x", theta[z], plates=OBS)).fit({"x": x, "z": labels})
    exact = _log_dirichlet_multinomial(concentration, np.bincount(labels, minlength=3))
    exact += sum(normal_unknown.student_t_log_evidence(x[labels == k], prior) for k in range(3))
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)
    for k in range(3):
        q = normal_unknown.normal_gamma_posterior(x[labels == k], prior)
        assert posterior["theta"].rate[k] == pytest.approx(q.rate, rel=1e-10)


def test_two_labels_that_choose_different_parents():
    """One label chooses the mean, another the precision: together they are exact, apart the ELBO is the literal one.

    Known means, precisions and probabilities; q(z) q(k) for each row, and the exact evidence sums over both.
    """
    rng = np.random.default_rng(10)
    x, means, precisions = rng.normal(0, 3, 15), np.array([-2.0, 2.0]), np.array([0.1, 1.0, 5.0])
    p_z, p_k, kind = np.array([0.4, 0.6]), np.array([0.2, 0.5, 0.3]), cv.Plate("kind", 3)
    z, k = cv.Categorical("z", p_z, plates=OBS), cv.Categorical("k", p_k, plates=OBS)
    mean = cv.Constant("means", means, plates=_components(2))
    precision = cv.Constant("precisions", precisions, plates=kind)
    model = cv.Model(cv.Normal("x", mean[z], precision[k], plates=OBS))
    posterior = model.fit({"x": x}, tol=1e-14, factors=[])
    local = posterior.local({"x": x})
    r, s = local["z"].probabilities, local["k"].probabilities
    density = norm.logpdf(x[:, None, None], means[:, None], 1 / np.sqrt(precisions))
    literal = np.einsum("nz,nk,nzk->", r, s, density) + (r * (np.log(p_z) - np.log(r))).sum()
    literal += (s * (np.log(p_k) - np.log(s))).sum()
    assert posterior.elbo == pytest.approx(literal, abs=1e-8)
    assert np.all(np.diff(posterior.elbo_trace) > -1e-10)
    exact = logsumexp(density + np.log(p_z)[:, None] + np.log(p_k), axis=(1, 2)).sum()
    assert posterior.elbo < exact
    assert model.fit({"x": x}).elbo == pytest.approx(exact, rel=1e-13)
