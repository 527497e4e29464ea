"""Mixtures with full, tied, diagonal, spherical and known covariances, against evidences and posteriors in closed form.

Given labels, rows with means that are integrated out are Normal with the covariance V between rows, V = I +
sum_k 1_k 1_k' / kappa_k, times that of the columns. What is left to integrate is one precision, which gives
Student distributions of SciPy's. Nothing here uses the library's formulas, but for its divergences of conjugate
factors, which have tests of their own.
"""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.linalg import block_diag, cholesky, solve_triangular
from scipy.special import gammaln, logsumexp
from scipy.stats import dirichlet, gamma, multivariate_normal, multivariate_t, norm, wishart
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import caviar as cv
from caviar import families, models
from caviar.engine.binding.bind import bind
from caviar.testing import check_model

KAPPA = np.array([0.4, 1.7, 0.9])
"""Rows that the knowledge of each component's mean is worth."""

MEANS = np.array([[0.3, -0.2], [1.0, 0.4], [-0.5, 0.1]])
CONCENTRATION = np.array([0.8, 1.5, 1.1])
SHAPES, RATES = np.array([1.7, 2.4, 3.0]), np.array([1.3, 0.6, 0.9])
DFS = np.array([3.5, 4.5, 3.0])
SCALES = np.array([[[1.5, 0.3], [0.3, 0.8]], [[0.7, -0.2], [-0.2, 0.5]], [[1.0, 0.1], [0.1, 2.0]]])
DIAGONAL_SHAPES, DIAGONAL_RATES = np.outer(SHAPES, [1.0, 1.2]), np.outer(RATES, [0.7, 1.0])
VARIANCES = np.array([0.6, 1.4])


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) * [1.0, 0.7] + rng.choice([-1.0, 1.2], (n, 1))


def state(structure, k):
    """State the joint form of a structure with priors that differ from component to component."""
    common = {"concentration": CONCENTRATION[:k], "prior_mean": MEANS[:k], "mean_precision": KAPPA[:k]}
    match structure:
        case "full":
            return models.normal_wishart_mixture(2, k, **common, df=DFS[:k], inverse_scale=SCALES[:k])
        case "tied":
            return models.tied_mixture(2, k, **common, df=DFS[0], inverse_scale=SCALES[0])
        case "diag":
            shapes, rates = DIAGONAL_SHAPES[:k], DIAGONAL_RATES[:k]
            return models.diagonal_mixture(2, k, **common, shape=shapes, rate=rates)
        case "spherical":
            return models.spherical_mixture(2, k, **common, shape=SHAPES[:k], rate=RATES[:k])
    return models.unit_variance_mixture(2, k, **common, variance=VARIANCES)


STRUCTURES = ["full", "tied", "diag", "spherical", "unit"]


def between_rows(labels):
    """Return the covariance of rows whose means are integrated out, in units of that of a row given its mean."""
    same = labels[:, None] == labels[None, :]
    return np.eye(len(labels)) + same / KAPPA[labels][:, None]


def evidence_of_matrix(residuals, covariance, df, scale):
    """Return log p of rows with a Wishart precision: made independent, each is a Student given those before."""
    lower = cholesky(covariance, lower=True)
    whitened, d = solve_triangular(lower, residuals, lower=True), residuals.shape[1]
    total = -d * np.log(np.diag(lower)).sum()
    scale = scale.copy()
    for row in whitened:
        total += multivariate_t(np.zeros(d), scale / (df - d + 1), df - d + 1).logpdf(row)
        scale, df = scale + np.outer(row, row), df + 1
    return total


def evidence_of_numbers(residuals, covariance, shape, rate):
    """Return log p of numbers with this covariance over a precision with a Gamma distribution."""
    student = multivariate_t(np.zeros(len(residuals)), rate / shape * covariance, 2 * shape)
    return student.logpdf(residuals)


def evidence_given(structure, x, labels):
    """Return log p(x | labels)."""
    residuals, covariance = x - MEANS[labels], between_rows(labels)
    if structure == "tied":
        return evidence_of_matrix(residuals, covariance, DFS[0], SCALES[0])
    total = 0.0
    for k in np.unique(labels):
        own = labels == k
        y, v = residuals[own], covariance[np.ix_(own, own)]
        if structure == "full":
            total += evidence_of_matrix(y, v, DFS[k], SCALES[k])
        elif structure == "spherical":
            total += evidence_of_numbers(y.ravel(), np.kron(v, np.eye(2)), SHAPES[k], RATES[k])
        elif structure == "diag":
            numbers = zip(y.T, DIAGONAL_SHAPES[k], DIAGONAL_RATES[k], strict=True)
            total += sum(evidence_of_numbers(column, v, a, b) for column, a, b in numbers)
        else:
            total += multivariate_normal(cov=np.kron(v, np.diag(VARIANCES))).logpdf(y.ravel())
    return total


def log_prior_of(labels, k):
    """Return log p(labels) with the weights integrated out."""
    counts, alpha = np.bincount(labels, minlength=k), CONCENTRATION[:k]
    gain = gammaln(alpha + counts).sum() - gammaln(alpha).sum()
    return gain + gammaln(alpha.sum()) - gammaln(alpha.sum() + len(labels))


def posterior_given(structure, x, labels, k):
    """Return the distribution of the parameters given labels: sums over rows, one at a time."""
    counts = np.bincount(labels, minlength=k)
    kappa = KAPPA[:k] + counts
    totals = np.array([x[labels == j].sum(axis=0) for j in range(k)])
    mean = (KAPPA[:k, None] * MEANS[:k] + totals) / kappa[:, None]
    # each prior mean is KAPPA rows, so that squares about the new means are those of rows and prior means
    scatter = np.array(
        [
            KAPPA[j] * np.outer(MEANS[j] - mean[j], MEANS[j] - mean[j])
            + sum((np.outer(row - mean[j], row - mean[j]) for row in x[labels == j]), np.zeros((2, 2)))
            for j in range(k)
        ]
    )
    squares = np.einsum("kdd->kd", scatter)
    match structure:
        case "full":
            return families.NormalWishart(mean, kappa, DFS[:k] + counts, SCALES[:k] + scatter)
        case "tied":
            return families.TiedNormalWishart(mean, kappa, DFS[0] + len(x), SCALES[0] + scatter.sum(axis=0))
        case "diag":
            shape = DIAGONAL_SHAPES[:k] + counts[:, None] / 2
            return families.NormalGamma(mean, kappa[:, None], shape, DIAGONAL_RATES[:k] + squares / 2)
        case "spherical":
            rate = RATES[:k] + squares.sum(axis=1) / 2
            return families.TiedNormalGamma(mean, kappa[:, None], SHAPES[:k] + counts, rate)
    return families.Normal(mean, kappa[:, None] / VARIANCES)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_of_one_component_the_elbo_is_the_evidence_and_q_the_posterior(structure):
    x, labels = rows(30), np.zeros(30, dtype=int)
    posterior = state(structure, 1).fit({"x": x})
    assert posterior.elbo == pytest.approx(evidence_given(structure, x, labels), abs=1e-10)
    exact = posterior_given(structure, x, labels, 1)
    q = posterior["mean" if structure == "unit" else "theta"]
    for name, value in exact._parameters().items():
        np.testing.assert_allclose(getattr(q, name), value, rtol=1e-12, atol=1e-13)


def enumerated(structure, x, k, known=()):
    """Return all labellings, and log p(x, labels) of each; ``known`` holds (row, label)."""
    every = [np.array(z) for z in product(range(k), repeat=len(x))]
    every = [z for z in every if all(z[n] == label for n, label in known)]
    return every, np.array([evidence_given(structure, x, z) + log_prior_of(z, k) for z in every])


def divergence(structure, x, k, posterior, data, every, log_joint):
    """Return KL(q || exact posterior) over labels and parameters, by the labellings."""
    log_posterior = log_joint - logsumexp(log_joint)
    log_q = np.log(np.maximum(posterior.local(data)["z"].probabilities, 1e-300))
    q = posterior["mean" if structure == "unit" else "theta"]
    total = 0.0
    for z, log_p in zip(every, log_posterior, strict=True):
        log_weight = log_q[np.arange(len(x)), z].sum()
        counts = np.bincount(z, minlength=k)
        given = np.sum(q.kl(posterior_given(structure, x, z, k)))
        given += posterior["weights"].kl(families.Dirichlet(CONCENTRATION[:k] + counts))
        total += np.exp(log_weight) * (log_weight - log_p + given)
    return total


@pytest.mark.thinned(16)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("seed", [0, 1])
def test_of_two_components_the_elbo_is_below_the_evidence_by_the_divergence(structure, seed):
    x = rows(7, seed)
    every, log_joint = enumerated(structure, x, 2)
    posterior = state(structure, 2).fit({"x": x}, seed=seed, tol=1e-13, max_iter=3000)
    gap = logsumexp(log_joint) - posterior.elbo
    assert gap > 0
    exact = divergence(structure, x, 2, posterior, {"x": x}, every, log_joint)
    assert gap == pytest.approx(exact, abs=1e-8)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_labels_known_in_part_leave_the_gap_the_divergence(structure):
    x, known = rows(7, 3), [(0, 1), (4, 0), (5, 1)]
    labels = np.full(7, np.nan)
    for n, label in known:
        labels[n] = label
    data = {"x": x, "z": labels}
    every, log_joint = enumerated(structure, x, 2, known)
    posterior = state(structure, 2).fit(data, seed=0, tol=1e-13, max_iter=3000)
    exact = divergence(structure, x, 2, posterior, data, every, log_joint)
    assert logsumexp(log_joint) - posterior.elbo == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_with_all_labels_known_the_elbo_is_the_evidence(structure):
    x, labels = rows(12, 4), np.random.default_rng(1).integers(0, 3, 12)
    posterior = state(structure, 3).fit({"x": x, "z": labels})
    exact = evidence_given(structure, x, labels) + log_prior_of(labels, 3)
    assert posterior.elbo == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("structure", ["diag", "spherical", "unit"])
def test_missing_entries_are_left_out_of_the_evidence(structure):
    x, rng = rows(9, 5), np.random.default_rng(2)
    x[rng.random(x.shape) < 0.3] = np.nan
    x[0] = np.nan
    seen = ~np.isnan(x)
    v = between_rows(np.zeros(9, dtype=int))
    residuals = x - MEANS[0]
    if structure == "diag":
        numbers = zip(residuals.T, seen.T, DIAGONAL_SHAPES[0], DIAGONAL_RATES[0], strict=True)
        exact = sum(evidence_of_numbers(y[own], v[np.ix_(own, own)], a, b) for y, own, a, b in numbers)
    else:
        scale = np.eye(2) if structure == "spherical" else np.diag(VARIANCES)
        own = seen.ravel()
        covariance = np.kron(v, scale)[np.ix_(own, own)]
        if structure == "spherical":
            exact = evidence_of_numbers(residuals.ravel()[own], covariance, SHAPES[0], RATES[0])
        else:
            exact = multivariate_normal(cov=covariance).logpdf(residuals.ravel()[own])
    posterior = state(structure, 1).fit({"x": x})
    assert posterior.elbo == pytest.approx(exact, abs=1e-10)


def test_rows_with_missing_vectors_count_nothing_under_a_tied_precision():
    x = rows(20)
    holes = x.copy()
    holes[[3, 11]] = np.nan
    with_holes = state("tied", 2).fit({"x": holes}, seed=0, tol=1e-13)
    without = state("tied", 2).fit({"x": np.delete(x, [3, 11], axis=0)}, seed=0, tol=1e-13)
    assert with_holes.elbo == pytest.approx(without.elbo, abs=1e-10)
    assert with_holes["theta"].df == DFS[0] + 18


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_weight_is_that_many_rows(structure):
    x, weights = rows(15), np.random.default_rng(0).integers(1, 4, 15)
    r = np.random.default_rng(1).dirichlet([1.0, 1.0], 15)
    weighted = state(structure, 2).fit({"x": x}, sample_weight=weights, init={"z": r}, max_iter=5)
    repeated = state(structure, 2).fit(
        {"x": np.repeat(x, weights, axis=0)}, init={"z": np.repeat(r, weights, axis=0)}, max_iter=5
    )
    assert weighted.elbo == pytest.approx(repeated.elbo, abs=1e-9)


def test_what_the_precisions_learn_is_every_number_that_they_are_about():
    x = rows(40)
    tied, spherical = (state(name, 3).fit({"x": x}, seed=0) for name in ("tied", "spherical"))
    assert tied["theta"].df == pytest.approx(DFS[0] + 40, rel=1e-14)
    counts = spherical["weights"].concentration - CONCENTRATION
    np.testing.assert_allclose(spherical["theta"].shape, SHAPES + 2 * counts / 2, rtol=1e-12)
    assert spherical["theta"].mean.shape == (3, 2)
    assert spherical["theta"].shape.shape == (3,)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_predictive_densities_are_ratios_of_evidences(structure):
    """With one component the predictive density of a row is p(rows and it) / p(rows), which has a closed form."""
    x, new = rows(12), rows(3, 9)
    posterior = state(structure, 1).fit({"x": x})
    found = posterior.log_predictive({"x": new})
    before = evidence_given(structure, x, np.zeros(12, dtype=int))
    for row, density in zip(new, found, strict=True):
        after = evidence_given(structure, np.vstack([x, row]), np.zeros(13, dtype=int))
        assert density == pytest.approx(after - before, abs=1e-9)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_predictive_densities_of_mixtures_integrate_each_component(structure):
    """Of q with the labels of all rows known, the predictive density is a sum of ratios of evidences."""
    x, labels = rows(12), np.random.default_rng(3).integers(0, 3, 12)
    posterior = state(structure, 3).fit({"x": x, "z": labels})
    row = rows(1, 8)
    before = evidence_given(structure, x, labels) + log_prior_of(labels, 3)
    after = [
        evidence_given(structure, np.vstack([x, row]), np.append(labels, k))
        + log_prior_of(np.append(labels, k), 3)
        for k in range(3)
    ]
    (found,) = posterior.log_predictive({"x": row})
    assert found == pytest.approx(logsumexp(after) - before, abs=1e-9)


MAXIMUM_LIKELIHOOD = {
    "full": (models.gaussian_mixture, {"df": 3, "inverse_scale": np.zeros((2, 2))}),
    "tied": (models.tied_mixture_independent, {"df": 3, "inverse_scale": 0.0}),
    "diag": (models.diagonal_mixture_independent, {"shape": 1.0, "rate": 0.0}),
    "spherical": (models.spherical_mixture_independent, {"shape": 1.0, "rate": 0.0}),
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("structure", MAXIMUM_LIKELIHOOD)
@pytest.mark.parametrize("k", [1, 3])
def test_em_takes_the_path_of_scikit_learn(structure, k):
    rng = np.random.default_rng(k)
    x = rng.normal(size=(80, 2)) * [1.0, 0.5] + rng.choice([-2.0, 0.0, 3.0], (80, 1)) + 5.0
    make, flat = MAXIMUM_LIKELIHOOD[structure]
    model = make(2, k, prior_precision=0.0, **flat)
    weights, means = rng.dirichlet(np.full(k, 5.0)), x[rng.choice(80, k, replace=False)]
    shape = {"full": (k, 2, 2), "tied": (2, 2), "diag": (k, 2), "spherical": (k,)}[structure]
    precision = np.broadcast_to(np.eye(2), shape) if shape[-2:] == (2, 2) and structure != "diag" else 0
    precision = precision * 0.7 if np.ndim(precision) else rng.uniform(0.5, 1.5, shape)
    init = {"weights": weights, "mean": means, "precision": precision}
    other = GaussianMixture(
        k,
        covariance_type=structure,
        reg_covar=0,
        tol=0,
        max_iter=1,
        warm_start=True,
        weights_init=weights,
        means_init=means,
        precisions_init=precision,
    )
    for n in range(1, 9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            other.fit(x)
        posterior = model.fit(
            {"x": x},
            init=init,
            point=["weights", "mean", "precision"],
            order=["weights", "mean", "precision"],
            max_iter=n,
            accelerate=False,
            tol=0,
        )
        np.testing.assert_allclose(posterior["weights"].value, other.weights_, rtol=1e-8)
        np.testing.assert_allclose(posterior["mean"].value, other.means_, rtol=1e-8)
        np.testing.assert_allclose(posterior["precision"].value, other.precisions_, rtol=1e-8)
    constant = gammaln(k)
    assert posterior.elbo - constant == pytest.approx(80 * other.score(x), abs=1e-8)


@pytest.mark.parametrize("structure", ["tied", "diag", "spherical"])
def test_floors_hold_and_are_the_maximum_under_them(structure):
    """One step from given labels: the best variances are those of the data, or the floor where they are below it."""
    x = rows(40) * [1.0, 0.05]
    labels = np.arange(40) % 2
    make, flat = MAXIMUM_LIKELIHOOD[structure]
    floor = 0.2 if structure == "tied" else 0.9
    model = make(2, 2, prior_precision=0.0, smallest_variance=floor, **flat)
    posterior = model.fit({"x": x, "z": labels}, point=["weights", "mean", "precision"])
    residuals = x - np.array([x[labels == k].mean(axis=0) for k in range(2)])[labels]
    precision = posterior["precision"].value
    if structure == "tied":
        values, vectors = np.linalg.eigh(residuals.T @ residuals / 40)
        expected = vectors @ np.diag(1 / np.maximum(values, floor)) @ vectors.T
    else:
        variances = np.array([(residuals[labels == k] ** 2).mean(axis=0) for k in range(2)])
        variances = variances.mean(axis=1) if structure == "spherical" else variances
        expected = 1 / np.maximum(variances, floor)
        assert (variances < floor).any()
    np.testing.assert_allclose(precision, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("structure", "features"), [("full", 6), ("tied", 3), ("diag", 5), ("spherical", 4), ("unit", 3)]
)
def test_a_pass_takes_only_the_features_that_tell_components_apart(structure, features):
    model = state(structure, 3)
    problem = model._problem(bind(model.nodes, model.leaves, {"x": rows(20)}), (), None)
    (factor,) = problem.factors
    assert problem.compiled.tables[factor].n_rows == features


def test_covariances_of_marginals_are_those_of_the_blocks():
    """The locations of a tied factor covary through the precision only: block_diag given it, none between them."""
    q = posterior_given("tied", rows(20), np.arange(20) % 3, 3)
    given = block_diag(*(np.linalg.inv(k * q.precision_marginal.mean) for k in q.mean_precision))
    # E Lambda^-1 = B / (nu - D - 1), against (E Lambda)^-1 = B / nu
    ratio = q.df / (q.df - 3)
    np.testing.assert_allclose(block_diag(*q.covariance), given * ratio, rtol=1e-12)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("structure", ["tied", "spherical"])
def test_the_kit_finds_nothing_wrong(structure):
    report = check_model(state(structure, 2), {"x": rows(25)}, n_draws=300, replications=2)
    assert report.passed, report


@pytest.mark.parametrize("structure", ["tied", "spherical"])
def test_the_log_joint_of_drawn_values_is_the_sum_of_densities(structure):
    model = state(structure, 3)
    drawn = model.simulate(4, sizes={"obs": 6})
    mean, precision = drawn["theta"]
    if structure == "tied":
        assert precision.shape == (2, 2)
        total = wishart(DFS[0], np.linalg.inv(SCALES[0])).logpdf(precision)
        precisions = np.broadcast_to(precision, (3, 2, 2))
    else:
        assert precision.shape == (3,)
        total = gamma(SHAPES, scale=1 / RATES).logpdf(precision).sum()
        precisions = precision[:, None, None] * np.eye(2)
    covariances = np.linalg.inv(precisions)
    for k in range(3):
        total += multivariate_normal(MEANS[k], covariances[k] / KAPPA[k]).logpdf(mean[k])
    total += dirichlet(CONCENTRATION).logpdf(drawn["weights"])
    for row, z in zip(drawn["x"], drawn["z"], strict=True):
        total += multivariate_normal(mean[z], covariances[z]).logpdf(row) + np.log(drawn["weights"][z])
    assert model.log_joint(drawn) == pytest.approx(total, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["tied", "spherical"])
def test_predicted_moments_are_those_of_draws(structure):
    posterior = state(structure, 2).fit({"x": rows(40)}, seed=0)
    found = posterior.predict({})["x"]
    draws = posterior.predictive({"obs": 1}, n_draws=4000, seed=0)["x"][:, 0]
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(found.mean[0] - draws.mean(axis=0)) < 5 * error)
    np.testing.assert_allclose(found.standard_deviation[0], draws.std(axis=0), rtol=0.1)


@pytest.mark.slow
def test_a_summary_shows_a_shared_precision_once():
    table = state("tied", 3).fit({"x": rows(20)}, seed=0).summary()
    where = [row.index for row in table.rows if row.variable == "theta.precision"]
    assert where == ["[0, 0]", "[1, 0]", "[1, 1]"]
    table = state("spherical", 3).fit({"x": rows(20)}, seed=0).summary()
    where = [row.index for row in table.rows if row.variable == "theta.precision"]
    assert where == ["component 0", "component 1", "component 2"]
    assert sum(row.variable == "theta.mean" for row in table.rows) == 6


@pytest.mark.parametrize("structure", ["tied", "spherical"])
def test_a_flat_prior_is_fitted_by_maximum_likelihood(structure):
    """The density 1 over means and precisions jointly: one step from known labels gives the best variances."""
    x, labels = rows(30), np.arange(30) % 3
    component, feature, obs = cv.Plate("component", 3), cv.Plate("feature", 2), cv.Plate("obs")
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=obs)
    if structure == "tied":
        theta = cv.NormalWishart(
            "theta", np.zeros(2), 0, 0, np.zeros((2, 2)), plates=component, tied=component
        )
        model = cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))
    else:
        theta = cv.NormalGamma("theta", 0, 0, 0, 0, plates=(component, feature), tied=feature)
        model = cv.Model(cv.Normal("x", theta[z], plates=(obs, feature)))
    assert theta.is_flat
    posterior = model.fit({"x": x, "z": labels}, point=["weights", "theta"])
    mean, precision = posterior["theta"].value
    means = np.array([x[labels == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(mean, means, rtol=1e-10)
    residuals = x - means[labels]
    if structure == "tied":
        expected = np.linalg.inv(residuals.T @ residuals / 30)
        likelihood = multivariate_normal(cov=np.linalg.inv(expected)).logpdf(residuals).sum()
    else:
        variances = np.array([(residuals[labels == k] ** 2).mean() for k in range(3)])
        expected = 1 / variances
        likelihood = norm(scale=np.sqrt(variances)[labels][:, None]).logpdf(residuals).sum()
    np.testing.assert_allclose(precision, expected, rtol=1e-10)
    of_labels = 10 * 3 * np.log(1 / 3) + gammaln(3)
    assert posterior.elbo == pytest.approx(likelihood + of_labels, rel=1e-12)
