"""Models of papers from 2021 to 2026, stated from the documentation alone, each against an oracle of its own.

Exact where the paper's approximation is exact, or below the evidence by no more than the figure of the test.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma, multivariate_normal, nbinom, norm, poisson

import caviar as cv

from .exact import log_orthant, normal_evidence, over_grid, sum_over_labels

OBS = cv.Plate("obs")


def assert_below(posterior: cv.Posterior, exact: float, by: float) -> None:
    """Check that an ELBO is a bound, and how far it is below."""
    assert exact - by < posterior.elbo < exact + 1e-9 * abs(exact), f"{posterior.elbo} beside {exact}"


def test_effects_from_summary_statistics():
    """Zou, Carbonetto, Wang and Stephens (PLOS Genetics, 2022): z-scores around R b with covariance R.

    With R = L L', the vector L^-1 z has independent entries around L'b.
    """
    rng = np.random.default_rng(0)
    R = np.corrcoef(rng.normal(size=(30, 6)) + rng.normal(size=(30, 1)), rowvar=False)
    root = np.linalg.cholesky(R)
    z = 3.0 * R[:, 2] + root @ rng.normal(size=6)
    b, columns = cv.SingleEffect("b", 6, precision=0.25), cv.Data("X", plates=OBS)
    model = cv.Model(cv.Normal("y", cv.dot(columns, b), 1.0, plates=OBS))
    posterior = model.fit({"y": np.linalg.solve(root, z), "X": root.T})
    logs = [multivariate_normal(np.zeros(6), R + 4.0 * np.outer(r, r)).logpdf(z) - np.log(6) for r in R.T]
    assert_allclose(posterior.elbo - np.log(np.diag(root)).sum(), logsumexp(logs), rtol=1e-10)
    assert_allclose(posterior["b"].inclusion, np.exp(logs - logsumexp(logs)), rtol=1e-8)


def test_mixture_of_widths_of_coefficients():
    """Kim, Wang, Carbonetto and Stephens (arXiv 2208.10910), mr.ash: each coefficient has one of several widths."""
    rng = np.random.default_rng(1)
    X, variances, shares = rng.normal(size=(25, 3)), np.array([0.01, 0.3, 4.0]), np.array([0.5, 0.3, 0.2])
    y = 1.5 * X[:, 0] + rng.normal(size=25)
    column, width = cv.Plate("column", 3), cv.Plate("width", 3)
    kind = cv.Categorical("kind", shares, plates=column)
    precision = cv.Constant("precisions", 1 / variances, plates=width)[kind]
    w = cv.MultivariateNormal("w", np.zeros(3), cv.diagonal(precision))
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), 1.0, plates=OBS))
    posterior = model.fit({"y": y, "X": X})

    def log_joint(kinds):
        own = list(kinds)
        return np.log(shares[own]).sum() + normal_evidence(y, 0.0, np.eye(25), X * variances[own] @ X.T)

    exact, _ = sum_over_labels((3, 3, 3), log_joint)
    assert_below(posterior, exact, 1.5)


def test_spike_and_slab_in_high_dimensions():
    """Ray and Szabó (JASA, doi 10.1080/01621459.2020.1847121), with a Normal slab in place of their Laplace slab."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 5))
    y = X @ [1.5, 0.0, 0.0, -1.0, 0.0] + rng.normal(size=30)
    b = cv.SpikeSlab("b", 0.2, precision=0.5, length=5)
    posterior = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), b), 1.0, plates=OBS)).fit(
        {"y": y, "X": X}
    )

    def log_joint(subset):
        own = np.flatnonzero(subset)
        prior = len(own) * np.log(0.2) + (5 - len(own)) * np.log(0.8)
        return prior + normal_evidence(y, 0.0, np.eye(30), 2.0 * X[:, own] @ X[:, own].T)

    exact, probabilities = sum_over_labels((2,) * 5, log_joint)
    included = [probabilities.sum(axis=tuple(j for j in range(5) if j != i))[1] for i in range(5)]
    assert_below(posterior, exact, 0.5)
    assert_allclose(posterior["b"].inclusion, included, atol=0.1)


def test_coefficients_of_two_values():
    """Mukherjee and Sen (JMLR, 2022): coefficients with a product prior, here -1 or 1."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 4))
    signs = np.array([1, -1, -1, 1])
    y = X @ signs + 1.5 * rng.normal(size=12)
    parts = [(2 * cv.Bernoulli(f"b{j}", 0.5) - 1) * cv.Data(f"x{j}", plates=OBS) for j in range(4)]
    model = cv.Model(cv.Normal("y", sum(parts[1:], start=parts[0]), 1 / 2.25, plates=OBS))
    posterior = model.fit({"y": y, **{f"x{j}": X[:, j] for j in range(4)}})

    def log_joint(values):
        return norm(X @ (2 * np.array(values) - 1), 1.5).logpdf(y).sum() - 4 * np.log(2)

    exact, probabilities = sum_over_labels((2,) * 4, log_joint)
    assert_below(posterior, exact, 0.5)
    for j in range(4):
        other = tuple(i for i in range(4) if i != j)
        assert_allclose(posterior[f"b{j}"].mean, probabilities.sum(axis=other)[1], atol=0.1)


def test_probit_regression_with_more_columns_than_rows():
    """Fasano, Durante and Zanella (Biometrika, 2022): the evidence is the probability of an orthant.

    With a factor for each hidden number the bound is 6.8 nats low, as the paper warns.
    """
    rng = np.random.default_rng(4)
    X = rng.normal(size=(6, 30))
    y = (X @ rng.normal(size=30) > 0).astype(int)
    w = cv.MultivariateNormal("w", np.zeros(30), np.eye(30))
    link = cv.probit(cv.dot(cv.Data("X", plates=OBS), w), method="expectation")
    posterior = cv.Model(cv.Bernoulli("y", link, plates=OBS)).fit({"y": y, "X": X})
    signed = X * (2 * y - 1)[:, None]
    exact = log_orthant(np.zeros(6), np.eye(6) + signed @ signed.T)
    assert_below(posterior, exact, 1.0)
    apart = cv.probit(cv.dot(cv.Data("X", plates=OBS), cv.MultivariateNormal("w", np.zeros(30), np.eye(30))))
    bound = cv.Model(cv.Bernoulli("y", apart, plates=OBS)).fit({"y": y, "X": X}, tol=1e-12, max_iter=5000)
    assert_allclose(exact - bound.elbo, 6.8, atol=0.1)


def test_tobit_regression():
    """Anceschi, Fasano, Durante and Zanella (arXiv 2206.08118): answers below zero are recorded as zero."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=20)
    y = np.maximum(0.8 * x + rng.normal(size=20), 0.0)
    w = cv.Normal("w", 0.0, 1.0)
    mean = w * cv.Data("x", plates=OBS)
    model = cv.Model(cv.CensoredNormal("y", mean, 1.0, censored=cv.Data("below", plates=OBS), plates=OBS))
    posterior = model.fit({"y": y, "x": x, "below": np.where(y == 0, -1, 0)})
    grid = np.linspace(-4, 4, 2001)
    at = grid[:, None] * x
    log_joint = norm.logpdf(grid) + np.where(y > 0, norm.logpdf(y, at), norm.logcdf(-at)).sum(axis=1)
    exact, (mean_of_w,) = over_grid(log_joint, grid)
    assert_below(posterior, exact, 0.5)
    assert_allclose(posterior["w"].mean, mean_of_w, atol=0.05)


def test_categories_as_independent_answers():
    """Wojnowicz, Aeron, Miller and Hughes (arXiv 2206.00093): a binary regression for each category, in one model."""
    rng = np.random.default_rng(6)
    X, kinds = rng.normal(size=(30, 1)), rng.integers(3, size=30)
    category = cv.Plate("category", 3)
    w = cv.MultivariateNormal("w", np.zeros(1), np.eye(1), plates=category)
    link = cv.logistic(cv.dot(cv.Data("X", plates=OBS), w))
    model = cv.Model(cv.Bernoulli("is", link, plates=(OBS, category)))
    posterior = model.fit({"is": np.eye(3, dtype=int)[kinds], "X": X})
    grid, exact = np.linspace(-6, 6, 2001), 0.0
    for own in range(3):
        signed = np.where(kinds == own, 1.0, -1.0) * X[:, 0]
        found, _ = over_grid(norm.logpdf(grid) - np.logaddexp(0, -np.outer(grid, signed)).sum(axis=1), grid)
        exact += found
    assert_below(posterior, exact, 0.3)


def test_crossed_random_slopes():
    """Crossed random slopes (arXiv 2307.12378): intercept and slope for each of both kinds of groups."""
    rng = np.random.default_rng(7)
    n, g, h = 40, rng.integers(4, size=40), rng.integers(3, size=40)
    X = np.column_stack([np.ones(n), rng.normal(size=n)])
    y = X @ [1.0, -0.5] + rng.normal(size=n)
    x = cv.Data("X", plates=OBS)
    beta = cv.MultivariateNormal("beta", np.zeros(2), np.eye(2) / 10)
    u = cv.MultivariateNormal("u", np.zeros(2), 2.0 * np.eye(2), plates=cv.Plate("first", 4))
    v = cv.MultivariateNormal("v", np.zeros(2), 4.0 * np.eye(2), plates=cv.Plate("second", 3))
    mean = cv.dot(x, beta) + cv.dot(x, u[cv.Data("g", plates=OBS)]) + cv.dot(x, v[cv.Data("h", plates=OBS)])
    posterior = cv.Model(cv.Normal("y", mean, 1.0, plates=OBS)).fit({"y": y, "X": X, "g": g, "h": h})
    inner = X @ X.T
    spread = np.eye(n) + 10 * inner + inner * (g[:, None] == g) / 2 + inner * (h[:, None] == h) / 4
    assert_allclose(posterior.elbo, normal_evidence(y, 0.0, spread), rtol=1e-9)


def test_structural_equations():
    """Dang, Maestrini and Hui (arXiv 2407.08140), without mixtures: one latent number a person, the first loading 1."""
    rng = np.random.default_rng(8)
    eta = rng.normal(size=25)
    first, second = eta + 0.5 * rng.normal(size=25), 0.7 * eta + 0.5 * rng.normal(size=25)
    latent, loading = cv.Normal("eta", 0.0, 1.0, plates=OBS), cv.Normal("loading", 0.0, 1.0)
    model = cv.Model(
        cv.Normal("first", latent, 4.0, plates=OBS), cv.Normal("second", loading * latent, 4.0, plates=OBS)
    )
    posterior = model.fit({"first": first, "second": second})
    grid, logs = np.linspace(-1, 3, 401), []
    for own in grid:
        spread = np.outer([1, own], [1, own]) + np.eye(2) / 4
        logs.append(multivariate_normal(np.zeros(2), spread).logpdf(np.column_stack([first, second])).sum())
    exact, (mean,) = over_grid(np.array(logs) + norm.logpdf(grid), grid)
    assert_below(posterior, exact, 1.0)
    assert_allclose(posterior["loading"].mean, mean, atol=0.1)


def test_vector_autoregression_with_shrinkage():
    """Katz and Weiss (arXiv 2504.05489): a horseshoe over all lags."""
    rng = np.random.default_rng(9)
    turn = np.array([[0.6, 0.0, 0.0], [0.4, 0.5, 0.0], [0.0, 0.0, 0.7]])
    states = [np.zeros(3)]
    for _ in range(300):
        states.append(turn @ states[-1] + 0.5 * rng.normal(size=3))
    series, lag = cv.Plate("series", 3), cv.Plate("lag", 3)
    common = cv.Gamma("common", 0.5, cv.Gamma("scale", 0.5, 1.0))
    own = cv.Gamma("own", 0.5, cv.Gamma("scales", 0.5, 1.0, plates=(series, lag)), plates=(series, lag))
    w = cv.MultivariateNormal("w", np.zeros(3), cv.diagonal(common * own), plates=series)
    tau = cv.Gamma("tau", 1.0, 1.0, plates=series)
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("before", plates=OBS), w), tau, plates=(OBS, series)))
    before, after = np.array(states[:-1]), np.array(states[1:])
    posterior = model.fit({"y": after, "before": before})
    least_squares = np.linalg.lstsq(before, after, rcond=None)[0].T
    found = posterior["w"].mean
    assert np.abs(found - turn).max() < 0.12
    # zeros are nearer to zero than least squares has them, what is there is kept
    assert np.all(np.abs(found[turn == 0]) < np.abs(least_squares[turn == 0]))
    assert_allclose(found[turn != 0], least_squares[turn != 0], atol=0.05)


def test_empirical_bayes_matrix_factorisation():
    """Wang and Stephens (JMLR, 2021), Normal priors of unknown width: the solution of rank one is known.

    Its singular value is that of Nakajima, Sugiyama, Babacan and Tomioka (JMLR, 2013), for a known variance of noise.
    """
    rng = np.random.default_rng(10)
    n, d = 30, 20
    Y = 3.0 * np.outer(rng.normal(size=n), rng.normal(size=d)) / 2 + rng.normal(size=(n, d))
    column = cv.Plate("column", d)
    left = cv.Normal("left", 0.0, cv.Gamma("alpha", 1, 0), plates=OBS)
    right = cv.Normal("right", 0.0, cv.Gamma("beta", 1, 0), plates=column)
    model = cv.Model(cv.Normal("y", left * right, 1.0, plates=(OBS, column)))
    posterior = model.fit({"y": Y}, point=["alpha", "beta"], tol=1e-13, max_iter=5000)
    rows, values, columns = np.linalg.svd(Y)
    size = values[0]
    own = 1 - (n + d) / size**2
    kept = 0.5 * size * (own + np.sqrt(own**2 - 4 * n * d / size**4))
    found = np.outer(posterior.local({"y": Y})["left"].mean, posterior["right"].mean)
    assert_allclose(found, kept * np.outer(rows[:, 0], columns[0]), atol=1e-4)


def test_components_under_noise_that_differs():
    """Hong, Gilman, Balzano and Fessler (IEEE TSP, 2021), HePPCAT: a variance of noise for each group of rows."""
    rng = np.random.default_rng(11)
    g, W = np.repeat([0, 1], 30), rng.normal(size=(4, 1))
    Y = rng.normal(size=(60, 1)) @ W.T + np.where(g == 0, 0.2, 1.5)[:, None] * rng.normal(size=(60, 4))
    column, group = cv.Plate("column", 4), cv.Plate("group", 2)
    w = cv.MultivariateNormal("w", np.zeros(1), np.eye(1), plates=column)
    z = cv.MultivariateNormal("z", np.zeros(1), np.eye(1), plates=OBS)
    tau = cv.Gamma("tau", 1, 0, plates=group)
    model = cv.Model(cv.Normal("y", cv.dot(w, z), tau[cv.Data("g", plates=OBS)], plates=(OBS, column)))
    posterior = model.fit({"y": Y, "g": g}, point=["w", "tau"], tol=1e-13, max_iter=3000)

    def objective(loadings, precisions):
        logs = norm.logpdf(loadings).sum()
        for own, precision in enumerate(precisions):
            spread = np.outer(loadings, loadings) + np.eye(4) / precision
            logs += multivariate_normal(np.zeros(4), spread).logpdf(Y[g == own]).sum()
        return logs

    loadings, precisions = posterior["w"].mean[:, 0], posterior["tau"].mean
    top = objective(loadings, precisions)
    assert_allclose(posterior.elbo, top, rtol=1e-7)
    for step in 0.01 * np.eye(6):
        for sign in (-1, 1):
            assert objective(loadings + sign * step[:4], precisions * np.exp(sign * step[4:])) < top
    assert precisions[0] > 5 * precisions[1]


@pytest.mark.slow
def test_factors_that_are_smooth_in_time():
    """Velten and others (Nature Methods, 2022), MEFISTO: a factor with a Gaussian-process prior along time."""
    rng = np.random.default_rng(12)
    times = np.linspace(0, 3, 8)
    kernel = np.exp(-0.5 * np.subtract.outer(times, times) ** 2) + 1e-3 * np.eye(8)
    factor = np.linalg.cholesky(kernel) @ rng.normal(size=8)
    Y = np.outer(factor, [1.0, -0.7]) + 0.5 * rng.normal(size=(8, 2))
    feature = cv.Plate("feature", 2)
    f = cv.MultivariateNormal("f", np.zeros(8), np.linalg.inv(kernel))
    w = cv.Normal("w", 0.0, 1.0, plates=feature)
    at = cv.dot(cv.Data("at", plates=OBS), f)
    posterior = cv.Model(cv.Normal("y", w * at, 4.0, plates=(OBS, feature))).fit({"y": Y, "at": np.eye(8)})
    grid = np.linspace(-4, 4, 41)
    logs = np.array(
        [
            [
                norm.logpdf([a, b]).sum()
                + normal_evidence(Y.T.ravel(), 0.0, np.kron(np.outer([a, b], [a, b]), kernel), np.eye(16) / 4)
                for b in grid
            ]
            for a in grid
        ]
    )
    exact, _ = over_grid(logs, grid, grid)
    # one of two signs: at most log 2 of it
    assert_below(posterior, exact, 2.0)


@pytest.mark.slow
def test_deep_mixture_of_factor_analysers():
    """Kock, Klein and Nott (Statistics and Computing, 2022): the factors of a mixture have a mixture themselves."""
    rng = np.random.default_rng(13)
    loadings, levels = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    deep, shares, inner = np.array([-2.0, 2.0]), np.array([0.3, 0.7]), np.array([0.6, 0.4])
    Y = rng.normal(size=(6, 3))
    column, outside, inside = cv.Plate("column", 3), cv.Plate("outside", 2), cv.Plate("inside", 2)
    z, v = cv.Categorical("z", shares, plates=OBS), cv.Categorical("v", inner, plates=OBS)
    x = cv.Normal("x", cv.Constant("deep", deep, plates=inside)[v], 4.0, plates=OBS)
    B = cv.Constant("B", loadings, plates=(outside, column))
    d = cv.Constant("d", levels, plates=(outside, column))
    model = cv.Model(cv.Normal("y", B[z] * x + d[z], 2.0, plates=(OBS, column)))
    posterior = model.fit({"y": Y}, factors=[("z", "v", "x")])
    exact = 0.0
    for row in Y:
        logs = [
            np.log(shares[k] * inner[j])
            + normal_evidence(
                row, levels[k] + deep[j] * loadings[k], np.eye(3) / 2, np.outer(*[loadings[k]] * 2) / 4
            )
            for k, j in product(range(2), range(2))
        ]
        exact += logsumexp(logs)
    assert_allclose(posterior.elbo, exact, rtol=1e-12)
    assert_allclose(exact - model.fit({"y": Y}, seed=0, tol=1e-12).elbo, 0.54, atol=0.1)


def test_dynamic_mixtures_of_finite_mixtures():
    """Frühwirth-Schnatter, Malsiner-Walli and Grün (2021): weights Dirichlet(alpha / K)."""
    labels, K = np.array([0, 0, 1, 0, 2, 0, 0, 1]), 5
    alpha = cv.Gamma("alpha", 2.0, 1.0)
    weights = cv.Dirichlet("weights", alpha * cv.Constant("equal", np.full(K, 1 / K)))
    posterior = cv.Model(cv.Categorical("z", weights, plates=OBS)).fit({"z": labels})
    grid = np.linspace(1e-4, 20, 20_001)
    counts = np.bincount(labels, minlength=K)
    logs = (
        gammaln(grid)
        - gammaln(grid + 8)
        + (gammaln(grid[:, None] / K + counts) - gammaln(grid / K)[:, None]).sum(1)
    )
    exact, (mean,) = over_grid(logs + gamma(2.0).logpdf(grid), grid)
    assert_below(posterior, exact, 0.7)
    assert_allclose(posterior["alpha"].mean, mean, rtol=0.25)


def test_mixture_of_latent_class_models():
    """Malsiner-Walli, Grün and Frühwirth-Schnatter (arXiv 2407.05431): classes within clusters of categorical data."""
    rng = np.random.default_rng(14)
    clusters, classes, item = cv.Plate("clusters", 2), cv.Plate("classes", 2), cv.Plate("item", 3)
    shares, within = np.array([0.6, 0.4]), np.array([[0.5, 0.5], [0.8, 0.2]])
    table = rng.dirichlet(np.ones(4), size=(2, 2, 3))
    answers = rng.integers(4, size=(7, 3))
    z = cv.Categorical("z", shares, plates=OBS)
    v = cv.Categorical("v", cv.Constant("within", within, plates=clusters)[z], plates=OBS)
    p = cv.Constant("p", table, plates=(clusters, classes, item))
    posterior = cv.Model(cv.Categorical("answer", p[z, v], plates=(OBS, item))).fit({"answer": answers})
    exact = 0.0
    for row in answers:
        logs = np.log(shares[:, None] * within) + np.log(table[:, :, np.arange(3), row]).sum(axis=-1)
        exact += logsumexp(logs)
    assert_allclose(posterior.elbo, exact, rtol=1e-12)


def test_block_model_with_attributes():
    """Legramanti, Rigon, Durante and Dunson (arXiv 2007.08569): roles inform the communities."""
    rng = np.random.default_rng(15)
    n, block, roles = 5, np.array([[0.8, 0.1], [0.1, 0.7]]), np.array([[0.9, 0.1], [0.2, 0.8]])
    role = np.array([0, 0, 0, 1, 1])
    one, other = np.triu_indices(n, 1)
    linked = (rng.random(len(one)) < block[role[one], role[other]]).astype(int)
    pair, person, community = cv.Plate("pair"), cv.Plate("person", n), cv.Plate("community", 2)
    z = cv.Categorical("z", [0.5, 0.5], plates=person)
    links = cv.Constant("links", block, plates=(community, cv.Plate("to", 2)))
    attribute = cv.Constant("roles", roles, plates=community)
    model = cv.Model(
        cv.Bernoulli(
            "linked", links[z[cv.Data("one", plates=pair)], z[cv.Data("other", plates=pair)]], plates=pair
        ),
        cv.Categorical("role", attribute[z], plates=person),
    )
    posterior = model.fit({"linked": linked, "one": one, "other": other, "role": role})

    def log_joint(labels):
        own = np.array(labels)
        p = block[own[one], own[other]]
        return np.log(np.where(linked, p, 1 - p)).sum() + np.log(roles[own, role]).sum() - n * np.log(2)

    exact, probabilities = sum_over_labels((2,) * n, log_joint)
    best = exact + np.log(probabilities.max())
    assert best <= posterior.elbo + 1e-9
    assert posterior.elbo <= exact


def test_measurement_and_expression():
    """Sarkar and Stephens (Nature Genetics, 2021): Poisson measurement of a Gamma expression is negative binomial."""
    rng = np.random.default_rng(16)
    size, count = rng.uniform(1e3, 1e4, size=30), rng.integers(0, 12, size=30)
    expression = cv.Gamma("expression", 2.0, 1500.0, plates=OBS)
    posterior = cv.Model(cv.Poisson("count", expression * cv.Data("size", plates=OBS), plates=OBS)).fit(
        {"count": count, "size": size}
    )
    assert_allclose(posterior.elbo, nbinom(2.0, 1500.0 / (1500.0 + size)).logpmf(count).sum(), rtol=1e-12)


@pytest.mark.slow
def test_cell_types_in_spots():
    """cell2location (Nature Biotechnology, doi 10.1038/s41587-021-01139-4): known signatures, unknown abundances.

    With Poisson counts, and a known background of each gene.
    """
    signatures, background = np.array([[4.0, 0.5, 1.0], [0.3, 3.0, 1.0]]), np.array([0.2, 0.1, 0.3])
    count = np.array([[9, 4, 3]])
    spot, kind, gene = cv.Plate("spot"), cv.Plate("kind", 2), cv.Plate("gene", 3)
    abundance = cv.Gamma("abundance", 1.0, 0.5, plates=(spot, kind))
    known = cv.Constant("signatures", signatures, plates=(kind, gene))
    rate = cv.dot(abundance, known) + cv.Constant("background", background, plates=gene)
    posterior = cv.Model(cv.Poisson("count", rate, plates=(spot, gene))).fit({"count": count})
    grid = np.linspace(0.005, 12, 1200)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    logs = gamma(1, scale=2).logpdf(a) + gamma(1, scale=2).logpdf(b)
    for g in range(3):
        logs += poisson(a * signatures[0, g] + b * signatures[1, g] + background[g]).logpmf(count[0, g])
    exact, means = over_grid(logs, grid, grid)
    assert_below(posterior, exact, 0.7)
    assert_allclose(posterior.local({"count": count})["abundance"].mean[0], means, rtol=0.1)


@pytest.mark.slow
def test_normal_means_with_known_errors():
    """Willwerscheid, Carbonetto and Stephens (Journal of Statistical Software, 2025), ebnm: a scale mixture of Normals.

    The weights are points: maximum likelihood, at which no small change of them is better.
    """
    rng = np.random.default_rng(17)
    sd, variances = rng.uniform(0.5, 2.0, size=60), np.array([1e-3, 1.0, 9.0])
    x = np.where(rng.random(60) < 0.5, 0.0, rng.normal(0, 3, size=60)) + sd * rng.normal(size=60)
    weights = cv.Dirichlet("weights", np.ones(3))
    z = cv.Categorical("z", weights, plates=OBS)
    width = cv.Constant("width", 1 / variances, plates=cv.Plate("kind", 3))
    theta = cv.Normal("theta", 0.0, width[z], plates=OBS)
    model = cv.Model(cv.Normal("x", theta, cv.Data("precision", plates=OBS), plates=OBS))
    posterior = model.fit({"x": x, "precision": 1 / sd**2}, point=["weights"], tol=1e-14, max_iter=5000)

    def log_likelihood(shares):
        each = norm(0, np.sqrt(variances + sd[:, None] ** 2)).pdf(x[:, None])
        return np.log(each @ shares).sum()

    found = posterior["weights"].mean
    assert_allclose(posterior.elbo, log_likelihood(found) + gammaln(3), rtol=1e-9)
    for other in np.eye(3):
        assert log_likelihood(0.999 * found + 0.001 * other) < log_likelihood(found) + 1e-6


def test_tensors_of_spikes():
    """Soulat, Keshavarzi, Margrie and Sahani (2021): log-odds of spikes are a product of factors."""
    spikes, bins = np.array([[3, 1], [1, 2]]), 4
    trial, time = cv.Plate("trial", 2), cv.Plate("time", 2)
    a, b = cv.Normal("a", 0.0, 1.0, plates=trial), cv.Normal("b", 0.0, 1.0, plates=time)
    posterior = cv.Model(cv.Binomial("spikes", bins, cv.logistic(a * b), plates=(trial, time))).fit(
        {"spikes": spikes}
    )
    grid = np.linspace(-4.5, 4.5, 61)
    # given both factors of time the trials are independent
    eta = grid[:, None, None, None] * np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    total = norm.logpdf(grid)[:, None] + norm.logpdf(grid)
    for own in spikes:
        choose = gammaln(bins + 1) - gammaln(own + 1) - gammaln(bins - own + 1)
        logs = (choose + own * eta - bins * np.logaddexp(0, eta)).sum(axis=-1) + norm.logpdf(grid)[
            :, None, None
        ]
        total = total + logsumexp(logs, axis=0) + np.log(grid[1] - grid[0])
    exact, _ = over_grid(total, grid, grid)
    assert_below(posterior, exact, 1.0)


def test_sequences_by_their_contexts():
    """Amin, Weinstein and Marks (NeurIPS, 2021), BEAR: transitions from each context of letters have a Dirichlet."""
    rng = np.random.default_rng(18)
    letters = rng.integers(4, size=300)
    context, following = 4 * letters[:-2] + letters[1:-1], letters[2:]
    transition = cv.Dirichlet("transition", np.full(4, 0.5), plates=cv.Plate("context", 16))
    model = cv.Model(cv.Categorical("following", transition[cv.Data("of", plates=OBS)], plates=OBS))
    posterior = model.fit({"following": following, "of": context})
    counts = np.zeros((16, 4))
    np.add.at(counts, (context, following), 1)
    exact = (
        gammaln(2.0) - gammaln(2.0 + counts.sum(axis=1)) + (gammaln(0.5 + counts) - gammaln(0.5)).sum(axis=1)
    ).sum()
    assert_allclose(posterior.elbo, exact, rtol=1e-12)
