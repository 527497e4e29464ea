"""The log predictive density of rows: SciPy's distributions, integrals, the evidence, and Monte Carlo over q."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp

import caviar as cv
import caviar.engine.evaluation.predictive
import caviar.models

OBS = cv.Plate("obs")
PLANE = np.array([[2.0, 0.5], [0.5, 1.0]])
PAIRS = np.random.default_rng(0).normal([1.0, -2.0], [0.5, 2.0], (20, 2))
NUMBERS = PAIRS[:, 0]
COUNTS = np.array([0, 1, 3, 2, 7, 1])
LABELS = np.array([0, 2, 1, 1, 2, 2])


def fitted(leaf, x, **arguments):
    return cv.Model(leaf).fit({leaf.name: x}, **arguments)


def student(q, x):
    """Return the density of a number whose mean and precision have this factor."""
    scale = np.sqrt(q.rate * (1 + 1 / q.mean_precision) / q.shape)
    return stats.t(2 * q.shape, q.mean, scale).logpdf(x)


def vector_student(q, x):
    df = q.df - q.mean.shape[-1] + 1
    shape = q.inverse_scale * (1 + 1 / q.mean_precision) / df
    return stats.multivariate_t(q.mean, shape, df=df).logpdf(x)


def normal_gamma():
    p = fitted(cv.Normal("x", cv.NormalGamma("theta", 0.3, 0.5, 1.5, 0.8), plates=OBS), NUMBERS)
    return p, np.array([-3.0, 0.0, 8.0]), lambda x: student(p["theta"], x)


def normal_wishart():
    theta = cv.NormalWishart("theta", [0.3, -1.0], 0.5, 3.5, PLANE)
    p = fitted(cv.MultivariateNormal("x", theta, plates=OBS), PAIRS)
    return p, PAIRS[:5] * 2, lambda x: vector_student(p["theta"], x)


def known_precision():
    p = fitted(cv.Normal("x", cv.Normal("mean", 0.5, 0.1), 2.0, plates=OBS), NUMBERS)
    return p, NUMBERS, lambda x: stats.norm(p["mean"].mean, np.sqrt(0.5 + p["mean"].variance)).logpdf(x)


def known_matrix():
    mean = cv.MultivariateNormal("mean", np.zeros(2), np.eye(2) / 9)
    p = fitted(cv.MultivariateNormal("x", mean, PLANE, plates=OBS), PAIRS)
    spread = np.linalg.inv(PLANE) + p["mean"].covariance
    return p, PAIRS, lambda x: stats.multivariate_normal(p["mean"].mean, spread).logpdf(x)


def known_mean():
    p = fitted(cv.Normal("x", 0.5, cv.Gamma("tau", 1.5, 0.8), plates=OBS), NUMBERS)
    q = p["tau"]
    return p, NUMBERS, lambda x: stats.t(2 * q.shape, 0.5, np.sqrt(q.rate / q.shape)).logpdf(x)


def known_vector():
    p = fitted(cv.MultivariateNormal("x", [0.5, 0.0], cv.Wishart("W", 3.5, PLANE), plates=OBS), PAIRS)
    df = p["W"].df - 1
    return p, PAIRS, lambda x: stats.multivariate_t([0.5, 0.0], p["W"].inverse_scale / df, df=df).logpdf(x)


def counts():
    p = fitted(cv.Poisson("x", cv.Gamma("rate", 1.5, 0.8), plates=OBS), COUNTS)
    q = p["rate"]
    return p, np.arange(9), lambda x: stats.nbinom(q.shape, q.rate / (1 + q.rate)).logpmf(x)


def answers():
    p = fitted(cv.Bernoulli("x", cv.Beta("p", 1.5, 0.8), plates=OBS), [1, 0, 0, 1, 0])
    return p, np.array([0, 1]), lambda x: stats.bernoulli(p["p"].mean).logpmf(x)


def repeated_answers():
    """Five answers a row with one probability for all: a beta-binomial, in any order."""
    item = cv.Plate("item", 5)
    leaf = cv.Bernoulli("x", cv.Beta("p", 1.5, 0.8), plates=(OBS, item))
    p = fitted(leaf, np.eye(5)[:3])
    x = np.array([[0, 0, 0, 0, 0], [1, 0, 1, 0, 0], [1, 1, 1, 1, 1]])
    whole = stats.betabinom(5, p["p"].a, p["p"].b)
    return p, x, lambda x: whole.logpmf(x.sum(1)) - np.log(stats.binom(5, 0.5).pmf(x.sum(1)) * 32)


def labels():
    p = fitted(cv.Categorical("x", cv.Dirichlet("p", [0.5, 1.0, 2.0]), plates=OBS), LABELS)
    return p, np.arange(3), lambda x: np.log(p["p"].mean[x])


def sticks():
    p = fitted(cv.Categorical("x", cv.StickBreaking("p", 1.5, 3), plates=OBS), LABELS)
    return p, np.arange(3), lambda x: np.log(p["p"].mean[x])


def tallies():
    x = np.array([[3, 1, 0], [0, 2, 2], [1, 1, 2]])
    p = fitted(cv.Multinomial("x", 4, cv.Dirichlet("p", [0.5, 1.0, 2.0]), plates=OBS), x)
    return p, x, lambda x: stats.dirichlet_multinomial(p["p"].concentration, 4).logpmf(x)


def times():
    p = fitted(cv.Gamma("x", 2.5, cv.Gamma("rate", 1.5, 0.8), plates=OBS), np.abs(NUMBERS))
    q = p["rate"]
    return p, np.abs(NUMBERS), lambda x: stats.betaprime(2.5, q.shape, scale=q.rate).logpdf(x)


def point():
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1), cv.Gamma("tau", 2, 1), plates=OBS))
    p = model.fit({"x": NUMBERS}, point=["mean", "tau"])
    return p, NUMBERS, lambda x: stats.norm(p["mean"].value, p["tau"].value ** -0.5).logpdf(x)


def half_point():
    """A point for the precision leaves a Normal with the variance of the mean on top."""
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1), cv.Gamma("tau", 2, 1), plates=OBS))
    p = model.fit({"x": NUMBERS}, point=["tau"])
    spread = np.sqrt(1 / p["tau"].value + p["mean"].variance)
    return p, NUMBERS, lambda x: stats.norm(p["mean"].mean, spread).logpdf(x)


SINGLE = [
    normal_gamma, normal_wishart, known_precision, known_matrix, known_mean, known_vector, counts, answers,
    repeated_answers, labels, sticks, tallies, times, point, half_point,
]  # fmt: skip


@pytest.mark.parametrize("case", SINGLE)
def test_it_is_the_density_of_scipy(case):
    posterior, x, expected = case()
    found = posterior.log_predictive({"x": x})
    assert found.shape == (len(x),)
    np.testing.assert_allclose(found, expected(x), rtol=1e-10, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("case", [normal_gamma, known_precision, known_mean, times])
def test_densities_of_numbers_integrate_to_one(case):
    posterior, _, _ = case()

    def density(x):
        return float(np.exp(posterior.log_predictive({"x": [x]})[0]))

    low = 0.0 if case is times else -np.inf
    assert quad(density, low, np.inf, epsabs=1e-7)[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("case", "every"), [(counts, 400), (answers, 2), (labels, 3), (sticks, 3)])
def test_probabilities_sum_to_one(case, every):
    posterior, _, _ = case()
    assert np.exp(posterior.log_predictive({"x": np.arange(every)})).sum() == pytest.approx(1.0, rel=1e-12)


def mixture(leaf_of, weights=None):
    component = cv.Plate("component", 3)
    z = cv.Categorical(
        "z", cv.Dirichlet("weights", [1.0, 0.7, 2.0]) if weights is None else weights, plates=OBS
    )
    return cv.Model(leaf_of(component, z))


def clusters(d, n=60):
    rng = np.random.default_rng(4)
    return rng.normal(size=(n, d)) + rng.choice([-4.0, 0.0, 5.0], (n, 1))


def test_a_mixture_of_joint_factors_is_that_of_the_estimator():
    X = clusters(2)
    estimator = cv.BayesianGaussianMixture(3, random_state=0).fit(X)
    found = estimator.posterior_.log_predictive({"x": X})
    np.testing.assert_allclose(found, estimator.score_samples(X), rtol=1e-10)


def test_a_mixture_of_known_variance_is_that_of_the_estimator():
    X = clusters(1)
    estimator = cv.KnownVarianceMixture(3, random_state=0).fit(X)
    found = estimator.posterior_.log_predictive({"x": X[:, 0]})
    np.testing.assert_allclose(found, estimator.score_samples(X), rtol=1e-10)


def test_maximum_likelihood_is_that_of_the_estimator():
    X = clusters(2)
    estimator = cv.GaussianMixture(3, random_state=0).fit(X)
    found = estimator.posterior_.log_predictive({"x": X})
    np.testing.assert_allclose(found, estimator.score_samples(X), rtol=1e-10)


def mixed_with_columns():
    """Numbers, counts and labels that one Categorical chooses, with weights that break a stick."""
    component, feature = cv.Plate("component", 3), cv.Plate("feature", 2)
    z = cv.Categorical("z", cv.StickBreaking("weights", 1.5, 3), plates=OBS)
    theta = cv.NormalGamma("theta", 0.1, 0.3, 1.5, 1.2, plates=(component, feature))
    rate = cv.Gamma("rate", 1.2, 0.5, plates=component)
    p = cv.Dirichlet("p", [0.6, 1.0, 1.7], plates=component)
    model = cv.Model(
        cv.Normal("x", theta[z], plates=(OBS, feature)),
        cv.Poisson("n", rate[z], plates=OBS),
        cv.Categorical("c", p[z], plates=OBS),
    )
    rng = np.random.default_rng(6)
    X = clusters(2)
    data = {"x": X, "n": rng.poisson(np.abs(X[:, 0])), "c": rng.integers(0, 3, len(X))}
    return model.fit(data, seed=0), data


def test_a_mixture_of_mixed_columns_is_written_out():
    posterior, data = mixed_with_columns()
    theta, rate, p = posterior["theta"], posterior["rate"], posterior["p"]
    by_component = [
        np.log(posterior["weights"].mean[k])
        + student(theta[k], data["x"]).sum(axis=1)
        + stats.nbinom(rate.shape[k], rate.rate[k] / (1 + rate.rate[k])).logpmf(data["n"])
        + np.log(p.mean[k, data["c"]])
        for k in range(3)
    ]
    expected = logsumexp(by_component, axis=0)
    np.testing.assert_allclose(posterior.log_predictive(data), expected, rtol=1e-10)


@pytest.mark.slow
def test_missing_entries_give_the_marginal():
    posterior, data = mixed_with_columns()
    few = {name: value[:4].astype(float) for name, value in data.items()}
    without = {name: value.copy() for name, value in few.items()}
    without["x"][:, 1] = np.nan
    without["n"][1] = np.nan

    grid, step = np.linspace(-60, 60, 2401, retstep=True)

    def summed(row, counts):
        """The joint density, summed over counts and integrated over the second column."""
        n, x1 = (values.ravel() for values in np.meshgrid(counts, grid))
        x = np.stack(np.broadcast_arrays(few["x"][row, 0], x1), axis=1)
        rows = {"x": x, "n": n, "c": np.full(len(x), few["c"][row])}
        return np.exp(posterior.log_predictive(rows)).sum() * step

    found = np.exp(posterior.log_predictive(without))
    assert found[0] == pytest.approx(summed(0, few["n"][0]), rel=1e-5)
    assert found[1] == pytest.approx(summed(1, np.arange(150.0)), rel=1e-3)


def test_a_row_of_which_nothing_is_known_has_probability_one():
    posterior, data = mixed_with_columns()
    nothing = {name: value[:2].astype(float) for name, value in data.items()}
    for value in nothing.values():
        value[1] = np.nan
    found = posterior.log_predictive(nothing)
    assert found[1] == pytest.approx(0.0, abs=1e-12)
    alone = posterior.log_predictive({name: value[:1] for name, value in data.items()})
    assert found[0] == pytest.approx(alone[0], rel=1e-14)


def test_a_mixture_is_the_mean_of_densities_at_draws_from_q():
    """Independent of every formula of A: E_q of the density given weights, means and precisions."""
    posterior, data = mixed_with_columns()
    few = {name: value[:6] for name, value in data.items()}
    n = 20_000
    draws = posterior.sample(n, seed=0)
    location, precision = draws["theta"]
    density = np.zeros((n, 6))
    for k in range(3):
        own = draws["weights"][:, [k]] * stats.poisson.pmf(few["n"], draws["rate"][:, [k]])
        own *= draws["p"][:, k, few["c"]]
        for j in range(2):
            spread = precision[:, [k], j] ** -0.5
            own *= stats.norm.pdf(few["x"][:, j], location[:, [k], j], spread)
        density += own
    error = density.std(axis=0) / np.sqrt(n)
    found = np.exp(posterior.log_predictive(few))
    assert np.all(np.abs(found - density.mean(axis=0)) < 5 * error)
    assert np.all(error < 0.03 * found)


def regression():
    theta = cv.NormalGamma("theta", [0.4, -1.0], PLANE, 1.7, 0.9)
    mean = 0.3 + cv.dot(cv.Data("X", plates=OBS), theta.mean)
    noise = cv.Data("noise", plates=OBS)
    return cv.Model(cv.Normal("y", mean, noise * theta.precision, plates=OBS))


def known_noise():
    w = cv.MultivariateNormal("w", [0.4, -1.0], PLANE)
    mean = 0.3 + cv.dot(cv.Data("X", plates=OBS), w)
    return cv.Model(cv.Normal("y", mean, cv.Data("noise", plates=OBS), plates=OBS))


def grouped():
    group = cv.Plate("group", 2)
    theta = cv.MultivariateNormalGamma("theta", [0.4, -1.0], PLANE, 1.7, 0.9, plates=group)[
        cv.Data("group", plates=OBS)
    ]
    return cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), theta.mean), theta.precision, plates=OBS))


def two_leaves():
    """Two numbers a row with one factor for both: dependent, although the leaves are not."""
    theta = cv.NormalGamma("theta", 0.4, 0.3, 1.7, 0.9)
    x = cv.Normal("x", cv.Data("c", plates=OBS) * theta.mean, theta.precision, plates=OBS)
    return cv.Model(cv.Normal("y", theta.mean * 1.0, 0.5 * theta.precision, plates=OBS), x)


@pytest.mark.parametrize("state", [regression, known_noise, grouped, two_leaves])
def test_it_is_the_evidence_with_the_row_over_that_without(state):
    """The definition, log p(y*, y) - log p(y), where the ELBO is the evidence."""
    rng = np.random.default_rng(7)
    data = {"X": rng.normal(size=(10, 2)), "y": rng.normal(size=10)}
    if state is two_leaves:
        data = {"x": data["y"], "y": rng.normal(size=10), "c": rng.normal(size=10)}
    elif state is grouped:
        data["group"] = rng.integers(0, 2, 10)
    else:
        data["noise"] = rng.gamma(2, 1, 10)
    model = state()
    before = {name: value[:6] for name, value in data.items()}
    posterior = model.fit(before)
    found = posterior.log_predictive({name: value[6:] for name, value in data.items()})
    for row in range(6, 10):
        more = {name: np.append(value, data[name][[row]], axis=0) for name, value in before.items()}
        assert found[row - 6] == pytest.approx(model.fit(more).elbo - posterior.elbo, rel=1e-9)


def test_conjugate_regression_is_a_student_t():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    posterior = cv.models.conjugate_regression(2).fit({"X": X, "y": y})
    q = posterior["theta"]
    scale = np.sqrt(q.rate / q.shape * (1 + np.einsum("ni,ij,nj->n", X, np.linalg.inv(q.mean_precision), X)))
    expected = stats.t(2 * q.shape, X @ q.mean, scale).logpdf(y)
    np.testing.assert_allclose(posterior.log_predictive({"X": X, "y": y}), expected, rtol=1e-10)


def test_a_mixture_of_regressions_is_one_of_student_ts():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] * np.where(np.arange(60) % 3, 4.0, -4.0) + rng.normal(size=60)

    def leaf(component, z):
        theta = cv.MultivariateNormalGamma("theta", np.zeros(2), PLANE, 1.5, 1.0, plates=component)[z]
        return cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), theta.mean), theta.precision, plates=OBS)

    posterior = mixture(leaf).fit({"X": X, "y": y}, seed=0)
    each = []
    for weight, k in zip(posterior["weights"].mean, range(3), strict=True):
        q = posterior["theta"][k]
        spread = 1 + np.einsum("ni,ij,nj->n", X, np.linalg.inv(q.mean_precision), X)
        each.append(
            np.log(weight) + stats.t(2 * q.shape, X @ q.mean, np.sqrt(q.rate / q.shape * spread)).logpdf(y)
        )
    found = posterior.log_predictive({"X": X, "y": y})
    np.testing.assert_allclose(found, logsumexp(each, axis=0), rtol=1e-9)


def test_known_labels_give_the_joint_density_with_the_label():
    X = clusters(2)
    z = (X[:, 0] > 2).astype(int)
    model = mixture(
        lambda component, z: cv.MultivariateNormal(
            "x", cv.NormalWishart("theta", np.zeros(2), 0.2, 3.5, np.eye(2), plates=component)[z], plates=OBS
        )
    )
    posterior = model.fit({"x": X}, seed=0)
    each = np.stack([posterior.log_predictive({"x": X, "z": np.full(len(X), k)}) for k in range(3)])
    np.testing.assert_allclose(logsumexp(each, axis=0), posterior.log_predictive({"x": X}), rtol=1e-12)
    one = np.log(posterior["weights"].mean[0]) + vector_student(posterior["theta"][0], X)
    np.testing.assert_allclose(each[0], one, rtol=1e-10)
    assert posterior.log_predictive({"x": X, "z": z}).shape == (len(X),)


def test_a_shared_precision_is_one_factor_of_every_component():
    """Known means that a label chooses, one Gamma for all: the factor has no plate of components."""
    component = cv.Plate("component", 3)
    z = cv.Categorical("z", [0.2, 0.3, 0.5], plates=OBS)
    means = cv.Constant("means", [-4.0, 0.0, 5.0], plates=component)
    X = clusters(1)[:, 0]
    posterior = fitted(cv.Normal("x", means[z], cv.Gamma("tau", 1.5, 1.0), plates=OBS), X, seed=0)
    q = posterior["tau"]
    each = [
        np.log(w) + stats.t(2 * q.shape, m, np.sqrt(q.rate / q.shape)).logpdf(X)
        for w, m in zip([0.2, 0.3, 0.5], means.value, strict=True)
    ]
    np.testing.assert_allclose(posterior.log_predictive({"x": X}), logsumexp(each, axis=0), rtol=1e-10)


def test_a_row_does_not_depend_on_the_others_nor_on_the_origin():
    posterior, x, expected = normal_gamma()
    with_outlier = posterior.log_predictive({"x": np.append(x, 1e14)})
    np.testing.assert_allclose(with_outlier[:-1], expected(x), rtol=1e-12)
    assert with_outlier[-1] == pytest.approx(expected(1e14), rel=1e-10)
    shifted = NUMBERS + 1e7
    theta = cv.NormalGamma("theta", 1e7 + 0.3, 0.5, 1.5, 0.8)
    far = fitted(cv.Normal("x", theta, plates=OBS), shifted)
    np.testing.assert_allclose(far.log_predictive({"x": x + 1e7}), expected(x), rtol=1e-6)


def test_narrow_components_far_apart_keep_their_digits():
    x = NUMBERS + 1e7 * (np.arange(20) % 2)
    component = cv.Plate("component", 2)
    theta = cv.NormalGamma("theta", 0, 1e-16, 1, 1, plates=component)
    z = cv.Categorical("z", [0.4, 0.6], plates=OBS)
    q = (posterior := fitted(cv.Normal("x", theta[z], plates=OBS), x, seed=0))["theta"]
    assert q.rate.max() < 10
    each = [np.log(w) + student(q[k], x) for k, w in enumerate([0.4, 0.6])]
    np.testing.assert_allclose(posterior.log_predictive({"x": x}), logsumexp(each, axis=0), rtol=1e-9)


@pytest.mark.slow
def test_blocks_of_rows_do_not_matter(monkeypatch):
    posterior, data = mixed_with_columns()
    one = posterior.log_predictive(data)
    monkeypatch.setattr(caviar.engine.evaluation.predictive, "_ENTRIES", 7)
    np.testing.assert_allclose(posterior.log_predictive(data), one, rtol=1e-14)


def independent():
    return cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1), cv.Gamma("tau", 2, 1), plates=OBS))


def robust():
    u = cv.Gamma("u", 2.0, 2.0, plates=OBS)
    return cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1), u * 2.0, plates=OBS))


def chain():
    state = cv.Plate("state", 2)
    s = cv.MarkovChain("s", [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], along=OBS)
    return cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1, plates=state)[s], 1.0, plates=OBS))


def labels_of_entries():
    component, feature = cv.Plate("component", 2), cv.Plate("feature", 2)
    z = cv.Categorical("z", [0.5, 0.5], plates=(OBS, feature))
    return cv.Model(
        cv.Normal("x", cv.Normal("mean", 0, 0.1, plates=component)[z], 1.0, plates=(OBS, feature))
    )


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (independent, r"'x' has no closed form: 'tau' and 'mean', independent.*With a NormalGamma for both"),
        (robust, r"the local Gamma 'u' would have to be integrated out"),
        (chain, r"rows of the MarkovChain 's' depend on their neighbours"),
        (
            labels_of_entries,
            r"summed over Categoricals with one label for each row; 'z' has several",
        ),
    ],
)
def test_without_a_closed_form_it_is_refused(state, text):
    x = np.tile(NUMBERS[:, None], 2) if state is labels_of_entries else NUMBERS
    posterior = state().fit({"x": x}, seed=0, max_iter=3)
    with pytest.raises(cv.ModelError, match=text + r".*posterior.predictive\(...\) draws from it"):
        posterior.log_predictive({"x": x})


def test_labels_known_in_part_are_refused():
    posterior = mixture(
        lambda component, z: cv.Normal("x", cv.Normal("mean", 0, 0.1, plates=component)[z], 1.0, plates=OBS)
    ).fit({"x": NUMBERS}, seed=0)
    with pytest.raises(cv.ModelError, match="labels of 'z' for all rows or for none"):
        posterior.log_predictive({"x": NUMBERS, "z": np.where(np.arange(20) < 3, 1.0, np.nan)})


def test_a_vector_that_is_missing_in_part_is_refused():
    posterior, _, _ = normal_wishart()
    with pytest.raises(cv.ModelError, match="'x' are missing in part"):
        posterior.log_predictive({"x": [[1.0, np.nan]]})


def test_far_from_all_data_it_is_still_the_density():
    posterior, _, expected = counts()
    x = np.array([0, 10**6])
    np.testing.assert_allclose(posterior.log_predictive({"x": x}), expected(x), rtol=1e-9)


@pytest.mark.parametrize("labelled", [False, True])
def test_vectors_with_a_known_mean_for_each_row_and_a_latent_precision(labelled):
    """A multivariate t about each row's own mean; the message m_i x_j to the Wishart is not symmetric by itself."""
    rng, obs = np.random.default_rng(3), cv.Plate("obs")
    means = rng.normal(size=(40, 3)) * [1.0, 5.0, 0.2] + [10.0, 0.0, -3.0]
    x = means + rng.multivariate_normal(np.zeros(3), [[1, 0.6, 0], [0.6, 2, -0.3], [0, -0.3, 0.5]], size=40)
    known = cv.Data("m", plates=obs)
    if labelled:
        kind = cv.Plate("kind", 2)
        precision = cv.Wishart("L", 5.0, np.eye(3), plates=kind)
        z = cv.Categorical("z", [0.3, 0.7], plates=obs)
        model = cv.Model(cv.MultivariateNormal("x", known, precision[z], plates=obs))
    else:
        model = cv.Model(cv.MultivariateNormal("x", known, cv.Wishart("L", 5.0, np.eye(3)), plates=obs))
    data = {"x": x, "m": means}
    posterior = model.fit(data, seed=0)
    new = {"x": x[::-1] + 1.0, "m": means}
    q = posterior["L"]
    weights = [0.3, 0.7] if labelled else [1.0]
    dfs, scales = np.atleast_1d(q.df), q.inverse_scale.reshape(-1, 3, 3)
    each = [
        [
            stats.multivariate_t(m, scale / (df - 2), df - 2).logpdf(row)
            for row, m in zip(new["x"], means, strict=True)
        ]
        for df, scale in zip(dfs, scales, strict=True)
    ]
    expected = logsumexp(np.array(each) + np.log(weights)[:, None], axis=0)
    np.testing.assert_allclose(posterior.log_predictive(new), expected, rtol=1e-11)


CERTAIN = {
    "dirichlet": lambda: (
        cv.Categorical("x", cv.Dirichlet("p", [1e12, 2e12, 3e12]), plates=OBS),
        np.array([0, 1, 2]),
        np.log([1 / 6, 2 / 6, 3 / 6]),
    ),
    "beta": lambda: (
        cv.Bernoulli("x", cv.Beta("p", 1e15, 3e15), plates=OBS),
        np.array([1, 0]),
        np.log([0.25, 0.75]),
    ),
    "gamma": lambda: (
        cv.Poisson("x", cv.Gamma("r", 2e13, 1e13), plates=OBS),
        np.array([0, 3]),
        stats.poisson(2.0).logpmf([0, 3]),
    ),
    "precision": lambda: (
        cv.Normal("x", 1.0, cv.Gamma("t", 2e13, 1e13), plates=OBS),
        NUMBERS,
        stats.norm(1.0, np.sqrt(0.5)).logpdf(NUMBERS),
    ),
    "normal-wishart": lambda: (
        cv.MultivariateNormal("x", cv.NormalWishart("t", [1.0, -2.0], 1e13, 1e13, 1e13 * PLANE), plates=OBS),
        PAIRS,
        stats.multivariate_normal([1.0, -2.0], PLANE).logpdf(PAIRS),
    ),
}


@pytest.mark.parametrize("name", CERTAIN)
def test_what_is_all_but_certain_has_the_density_at_its_value(name):
    """Log-partitions of 1e13 nats and more, of which a row changes a few."""
    leaf, x, expected = CERTAIN[name]()
    found = fitted(leaf, x).log_predictive({"x": x})
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
