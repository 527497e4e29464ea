"""Models of textbooks and papers: each against a closed form, a sum over labels, or quadrature."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, gammaln, log_expit, logsumexp, xlogy
from scipy.stats import (
    betabinom,
    binom,
    dirichlet_multinomial,
    gamma,
    multivariate_normal,
    nbinom,
    norm,
    poisson,
    weibull_min,
)
from scipy.stats import (
    t as student_t,
)

import caviar as cv

from .exact import normal_evidence, over_grid, path_evidence, sum_over_labels

OBS, TIME = cv.Plate("obs"), cv.Plate("time")
RNG = np.random.default_rng(0)
N = 12
G, H = np.repeat([0, 1, 2], 4), np.tile([0, 1, 2, 3], 3)
Y = RNG.normal(size=N)


def same(labels):
    """Return the matrix of which rows have the same label."""
    return np.equal.outer(labels, labels).astype(float)


def of(variable, name):
    """Return a variable as the records choose it."""
    return variable[cv.Data(name, plates=OBS)]


# ---- sums of group effects, known variances: one Normal of all data --------------------------------


@pytest.mark.parametrize("kind", ["crossed", "nested", "multilevel", "random slopes"])
def test_linear_models_of_groups(kind):
    """The factor of all effects together gives the exact evidence."""
    a = cv.Normal("a", 0.0, 1.0, plates=cv.Plate("g", 3))
    data: dict = {"y": Y, "g": G}
    exact = same(G)
    if kind == "crossed":
        b = cv.Normal("b", 0.0, 2.0, plates=cv.Plate("h", 4))
        mean, exact = of(a, "g") + of(b, "h"), exact + same(H) / 2
        data["h"] = H
    elif kind == "nested":
        pairs = 2 * G + H // 2
        b = cv.Normal("b", 0.0, 2.0, plates=cv.Plate("pair", 6))
        mean, exact = of(a, "g") + of(b, "pair"), exact + same(pairs) / 2
        data["pair"] = pairs
    elif kind == "multilevel":
        a = cv.Normal("own", cv.Normal("all", 0.0, 0.5), 1.0, plates=cv.Plate("g", 3))
        mean, exact = of(a, "g"), exact + 2.0
    else:
        x = np.linspace(-1, 1, N)
        b = cv.Normal("b", 0.0, 2.0, plates=cv.Plate("h of", 3))
        own = cv.Data("g", plates=OBS)
        mean = a[own] + b[own] * cv.Data("x", plates=OBS)
        exact, data["x"] = exact + np.outer(x, x) * same(G) / 2, x
    model = cv.Model(cv.Normal("y", mean, 4.0, plates=OBS))
    names = [own for own in model.variables if own != "y"]
    arguments = {"factors": [tuple(names)]} if len(names) > 1 else {}
    posterior = model.fit(data, tol=1e-13, **arguments)
    assert posterior.elbo == pytest.approx(normal_evidence(Y, 0.0, exact, np.eye(N) / 4), rel=1e-9)


def test_vector_hierarchy_with_an_unknown_mean():
    """Coefficients of groups around an unknown vector: in one factor, exact."""
    x = np.column_stack([np.ones(N), np.linspace(-1, 1, N)])
    mu = cv.MultivariateNormal("mu", np.zeros(2), np.eye(2) / 4)
    w = cv.MultivariateNormal("w", mu, 2 * np.eye(2), plates=cv.Plate("g", 3))
    mean = cv.dot(cv.Data("X", plates=OBS), of(w, "g"))
    posterior = cv.Model(cv.Normal("y", mean, 4.0, plates=OBS)).fit(
        {"y": Y, "X": x, "g": G}, factors=[("mu", "w")], tol=1e-13
    )
    exact = normal_evidence(Y, 0.0, 4 * x @ x.T, x @ x.T * same(G) / 2, np.eye(N) / 4)
    assert posterior.elbo == pytest.approx(exact, rel=1e-9)


def test_predictors_of_groups_for_vectors():
    """The mean of a group's vector is a sum of vectors times what is known of the group."""
    x = np.column_stack([np.ones(N), np.linspace(-1, 1, N)])
    u, group = np.array([-1.0, 0.5, 2.0]), cv.Plate("g", 3)
    first, second = (cv.MultivariateNormal(own, np.zeros(2), np.eye(2)) for own in ("first", "second"))
    w = cv.MultivariateNormal(
        "w", first + second * cv.Constant("u", u, plates=group), 2 * np.eye(2), plates=group
    )
    mean = cv.dot(cv.Data("X", plates=OBS), of(w, "g"))
    model, data = cv.Model(cv.Normal("y", mean, 4.0, plates=OBS)), {"y": Y, "X": x, "g": G}
    k = x @ x.T
    exact = normal_evidence(Y, 0.0, k, k * np.outer(u[G], u[G]), k * same(G) / 2, np.eye(N) / 4)
    together = model.fit(data, factors=[("first", "second", "w")], tol=1e-12)
    assert together.elbo == pytest.approx(exact, rel=1e-9)
    assert exact - 4.0 < model.fit(data, tol=1e-12).elbo <= exact + 1e-9


# ---- one unknown number or a conjugate pair ---------------------------------------------------------


def test_hierarchical_logistic_regression():
    """Two groups around zero with a known spread: quadrature, for groups are independent."""
    y, g = np.array([1, 1, 0, 1, 0, 0, 0, 1]), np.repeat([0, 1], 4)
    a = cv.Normal("a", 0.0, 1.0, plates=cv.Plate("g", 2))
    posterior = cv.Model(cv.Bernoulli("y", cv.logistic(of(a, "g")), plates=OBS)).fit(
        {"y": y, "g": g}, tol=1e-12
    )
    grid, exact = np.linspace(-7, 7, 4001), 0.0
    for own in range(2):
        sign = np.where(y[g == own], 1.0, -1.0)
        log_p = norm.logpdf(grid) - np.logaddexp(0, -np.outer(sign, grid)).sum(axis=0)
        evidence, (mean,) = over_grid(log_p, grid)
        exact += evidence
        assert posterior["a"].mean[own] == pytest.approx(mean, abs=0.03)
    assert exact - 0.1 < posterior.elbo < exact


@pytest.mark.slow
def test_relevance_determination_of_one_weight():
    """Weight and its precision apart: below the evidence by quadrature over the precision."""
    x, y = np.linspace(-1, 1, N), np.linspace(-1, 1, N) * 1.5 + 0.1 * Y
    alpha = cv.Gamma("alpha", 1.0, 1.0, plates=cv.Plate("direction", 1))
    w = cv.MultivariateNormal("w", [0.0], cv.diagonal(alpha))
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), 4.0, plates=OBS))
    posterior = model.fit({"X": x[:, None], "y": y}, tol=1e-12)
    grid = np.linspace(0.002, 12, 3000)
    kernel = np.outer(x, x)
    log_p = np.array([normal_evidence(y, 0.0, kernel / own, np.eye(N) / 4) for own in grid])
    exact, (mean,) = over_grid(log_p - grid, grid)
    assert exact - 0.4 < posterior.elbo < exact
    assert posterior["alpha"].mean[0] == pytest.approx(mean, rel=0.15)


def test_student_t_by_a_gamma_of_each_row():
    """With a known centre each row's scale is integrated out exactly."""
    u = cv.Gamma("u", 2.0, 2.0, plates=OBS)
    posterior = cv.Model(cv.Normal("y", 0.5, u, plates=OBS)).fit({"y": Y})
    assert posterior.elbo == pytest.approx(student_t(4, 0.5).logpdf(Y).sum(), rel=1e-11)


def test_dirichlet_multinomial():
    x, doc = RNG.multinomial(7, [0.2, 0.5, 0.3], 5), cv.Plate("doc")
    p = cv.Dirichlet("p", [0.8, 1.5, 2.0], plates=doc)
    posterior = cv.Model(cv.Multinomial("x", 7, p, plates=doc)).fit({"x": x})
    exact = dirichlet_multinomial([0.8, 1.5, 2.0], 7).logpmf(x).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def test_beta_binomial():
    x, p = np.array([0, 3, 5, 2]), cv.Beta("p", 0.7, 1.4, plates=OBS)
    posterior = cv.Model(cv.Binomial("x", 5, p, plates=OBS)).fit({"x": x})
    assert posterior.elbo == pytest.approx(betabinom(5, 0.7, 1.4).logpmf(x).sum(), rel=1e-11)


FAILURES = np.array([5, 1, 5, 14, 3, 19, 1, 1, 4, 22])
HOURS = np.array([94.32, 15.72, 62.88, 125.76, 5.24, 31.44, 1.048, 1.048, 2.096, 10.48])


def test_pump_failures():
    """Rates around an unknown scale: below the evidence by quadrature, in which each pump is negative binomial."""
    scale = cv.Gamma("scale", 0.1, 1.0)
    rate = cv.Gamma("rate", 1.8, scale, plates=OBS)
    model = cv.Model(cv.Poisson("x", rate * cv.Data("hours", plates=OBS), plates=OBS))
    posterior = model.fit({"x": FAILURES, "hours": HOURS}, tol=1e-12)
    grid = np.linspace(0.005, 12, 6000)
    each = nbinom.logpmf(FAILURES[:, None], 1.8, grid / (grid + HOURS[:, None])).sum(axis=0)
    exact, (mean,) = over_grid(each + gamma(0.1).logpdf(grid), grid)
    assert exact - 0.4 < posterior.elbo < exact
    assert posterior["scale"].mean == pytest.approx(mean, rel=0.05)


def test_zero_inflated_poisson():
    """A label of each row chooses between a rate of zero and the other one."""
    x = np.array([0, 0, 3, 1, 0, 4, 0, 2])
    z = cv.Categorical("z", [0.3, 0.7], plates=OBS)
    rate = cv.Constant("rate", [1e-12, 2.0], plates=cv.Plate("k", 2))
    posterior = cv.Model(cv.Poisson("x", rate[z], plates=OBS)).fit({"x": x})
    exact = np.log(0.3 * (x == 0) + 0.7 * poisson(2.0).pmf(x)).sum()
    assert posterior.elbo == pytest.approx(exact, abs=1e-9)


def test_frailty():
    """Exponential lifetimes of families that share a Gamma: closed form."""
    t, family = RNG.exponential(1.0, N), cv.Plate("family", 3)
    w = cv.Gamma("w", 2.0, 2.0, plates=family)
    posterior = cv.Model(cv.Gamma("t", 1.0, of(w, "g"), plates=OBS)).fit({"t": t, "g": G})
    total = np.bincount(G, t)
    exact = (2 * np.log(2) + gammaln(6) - 6 * np.log(2 + total)).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def test_weibull_lifetimes_of_known_shape():
    """The power of a lifetime is exponential; the derivative of the power is a constant."""
    t = RNG.weibull(1.7, N)
    rate = cv.Gamma("rate", 2.0, 1.0)
    posterior = cv.Model(cv.Gamma("power", 1.0, rate, plates=OBS)).fit({"power": t**1.7})
    jacobian = (np.log(1.7) + 0.7 * np.log(t)).sum()
    grid = np.linspace(1e-4, 15, 20_001)
    each = weibull_min(1.7, scale=grid[:, None] ** (-1 / 1.7)).logpdf(t).sum(axis=1)
    exact, _ = over_grid(each + gamma(2.0).logpdf(grid), grid)
    assert posterior.elbo + jacobian == pytest.approx(exact, abs=1e-5)


@pytest.mark.slow
def test_two_parameter_item_response():
    """Discrimination times ability minus difficulty: the ELBO is that of the densities, abilities in order."""
    rng = np.random.default_rng(3)
    theta, items = np.linspace(-2, 2, 40), 8
    answers = rng.random((40, items)) < expit(np.outer(theta, np.full(items, 1.5)) - rng.normal(size=items))
    person, item = cv.Plate("person"), cv.Plate("item", items)
    ability = cv.Normal("ability", 0.0, 1.0, plates=person)
    slope = cv.Normal("slope", 1.0, 4.0, plates=item)
    easy = cv.Normal("easy", 0.0, 1.0, plates=item)
    eta = ability * slope + easy
    model = cv.Model(cv.Bernoulli("right", cv.logistic(eta), plates=(person, item)))
    posterior = model.fit({"right": answers}, seed=0)
    found = posterior.local({"right": answers})["ability"].mean
    assert np.corrcoef(found, theta)[0, 1] > 0.85
    estimate = cv.testing.elbo_estimate(posterior, {"right": answers}, n_draws=200)
    assert abs(posterior.elbo - estimate.value) < 4 * estimate.error


def test_bradley_terry():
    """Strengths of three teams with a joint factor: quadrature over the two differences that matter."""
    pairs = np.array([[1, -1, 0], [1, 0, -1], [0, 1, -1], [-1, 0, 1], [1, -1, 0]], dtype=float)
    w = cv.MultivariateNormal("w", np.zeros(3), np.eye(3))
    model = cv.Model(cv.Bernoulli("won", cv.logistic(cv.dot(cv.Data("X", plates=OBS), w)), plates=OBS))
    posterior = model.fit({"won": np.ones(5), "X": pairs}, tol=1e-12)
    grid = np.linspace(-5, 5, 81)
    a, b, c = np.meshgrid(grid, grid, grid, indexing="ij")
    log_p = norm.logpdf(a) + norm.logpdf(b) + norm.logpdf(c)
    for row in pairs:
        log_p = log_p - np.logaddexp(0, -(row[0] * a + row[1] * b + row[2] * c))
    exact, means = over_grid(log_p, grid, grid, grid)
    assert exact - 0.2 < posterior.elbo < exact
    np.testing.assert_allclose(posterior["w"].mean, means, atol=0.03)


# ---- labels ------------------------------------------------------------------------------------------


def test_mixture_of_regressions():
    x = np.linspace(-1, 1, N)
    w = cv.Constant("w", [[0.0, 1.5], [1.0, -1.0]], plates=cv.Plate("k", 2))
    z = cv.Categorical("z", [0.4, 0.6], plates=OBS)
    design = np.column_stack([np.ones(N), x])
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w[z]), 2.0, plates=OBS))
    means = design @ np.array([[0.0, 1.5], [1.0, -1.0]]).T
    exact = logsumexp(np.log([0.4, 0.6]) + norm.logpdf(Y[:, None], means, 2**-0.5), axis=1).sum()
    assert model.fit({"X": design, "y": Y}).elbo == pytest.approx(exact, rel=1e-11)


def test_a_label_and_another_one_in_a_sum():
    """a[z] + b[v]: all pairs of labels share a factor."""
    z, v = cv.Categorical("z", [0.4, 0.6], plates=OBS), cv.Categorical("v", [0.2, 0.5, 0.3], plates=OBS)
    a = cv.Constant("a", [0.0, 2.0], plates=cv.Plate("ka", 2))
    b = cv.Constant("b", [0.0, -1.0, 0.5], plates=cv.Plate("kb", 3))
    posterior = cv.Model(cv.Normal("y", a[z] + b[v], 2.0, plates=OBS)).fit({"y": Y})
    means = np.add.outer([0.0, 2.0], [0.0, -1.0, 0.5]).ravel()
    shares = np.log(np.outer([0.4, 0.6], [0.2, 0.5, 0.3])).ravel()
    exact = logsumexp(shares + norm.logpdf(Y[:, None], means, 2**-0.5), axis=1).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("which", ["B[z][v]", "mu[z][Data]", "mu[Data][z]"])
def test_tables_with_two_indices(which):
    table = np.array([[0.0, 2.0, -1.0, 1.0], [1.0, -2.0, 0.5, 3.0]])
    first, second = cv.Plate("first", 2), cv.Plate("second", 4)
    z = cv.Categorical("z", [0.4, 0.6], plates=OBS)
    h = cv.Data("h", plates=OBS)
    mu = cv.Constant("mu", table, plates=(first, second))
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    if which == "B[z][v]":
        mean = mu[z][cv.Categorical("v", shares, plates=OBS)]
        logs = np.log([0.4, 0.6])[:, None] + np.log(shares) + norm.logpdf(Y[:, None, None], table)
        exact = logsumexp(logs, axis=(1, 2)).sum()
    else:
        mean = (
            mu[z][h] if which == "mu[z][Data]" else cv.Constant("mu", table.T, plates=(second, first))[h][z]
        )
        exact = logsumexp(np.log([0.4, 0.6]) + norm.logpdf(Y[:, None], table[:, H].T), axis=1).sum()
    data = {"y": Y} if which == "B[z][v]" else {"y": Y, "h": H}
    assert cv.Model(cv.Normal("y", mean, 1.0, plates=OBS)).fit(data).elbo == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("kind", ["z[Data]", "flexmix |id", "latent-class growth"])
def test_labels_of_ragged_groups(kind):
    """All records of a group share its label."""
    g, x = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 2]), np.linspace(0, 1, N)
    z = cv.Categorical("z", [0.4, 0.6], plates=cv.Plate("group", 3))
    own = of(z, "g")
    w = np.array([[0.0, 0.0], [1.0, 0.0]]) if kind == "z[Data]" else np.array([[0.0, 1.5], [1.0, -1.0]])
    k = cv.Plate("k", 2)
    if kind == "flexmix |id":
        mean = cv.dot(cv.Data("X", plates=OBS), cv.Constant("w", w, plates=k)[own])
        data = {"y": Y, "g": g, "X": np.column_stack([np.ones(N), x])}
    else:
        mean = cv.Constant("level", w[:, 0], plates=k)[own]
        data = {"y": Y, "g": g}
        if kind == "latent-class growth":
            mean = mean + cv.Constant("growth", w[:, 1], plates=k)[own] * cv.Data("x", plates=OBS)
            data["x"] = x
    each = norm.logpdf(Y[:, None], w[:, 0] + np.outer(x, w[:, 1]))
    exact = sum(logsumexp(np.log([0.4, 0.6]) + each[g == i].sum(axis=0)) for i in range(3))
    assert cv.Model(cv.Normal("y", mean, 1.0, plates=OBS)).fit(data).elbo == pytest.approx(exact, rel=1e-11)


def test_clustering_of_columns():
    """A label of each column of a table, known levels: columns are independent."""
    table = RNG.normal([0.0, 2.0, 2.0], size=(6, 3))
    column, k = cv.Plate("column", 3), cv.Plate("k", 2)
    z = cv.Categorical("z", [0.5, 0.5], plates=column)
    mean = cv.Constant("mean", [0.0, 2.0], plates=k)
    posterior = cv.Model(cv.Normal("y", mean[z], 1.0, plates=(OBS, column))).fit({"y": table})
    each = norm.logpdf(table[:, :, None], [0.0, 2.0]).sum(axis=0)
    exact = logsumexp(np.log([0.5, 0.5]) + each, axis=1).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def bernoulli_pairs(table, x):
    """Return the log-probability of each binary entry in each cell of a table of probabilities."""
    return np.where(x[..., None, None], np.log(table), np.log1p(-table))


BLOCK = np.array([[0.9, 0.2], [0.15, 0.7]])


def test_stochastic_block_model():
    """Five members: below the sum over all labellings, above that over the best one."""
    n = 5
    sender, receiver = (own[~np.eye(n, dtype=bool)] for own in np.indices((n, n)))
    edge = np.random.default_rng(0).random(len(sender)) < BLOCK[sender % 2, receiver % 2]
    z = cv.Categorical("z", [0.5, 0.5], plates=cv.Plate("person", n))
    block = cv.Constant("block", BLOCK, plates=(cv.Plate("from", 2), cv.Plate("to", 2)))
    model = cv.Model(cv.Bernoulli("edge", block[of(z, "s"), of(z, "r")], plates=OBS))
    posterior = model.fit({"edge": edge, "s": sender, "r": receiver}, seed=0)
    each = bernoulli_pairs(BLOCK, edge)
    rows = np.arange(len(edge))

    def log_joint(own):
        labels = np.array(own)
        return each[rows, labels[sender], labels[receiver]].sum() + n * np.log(0.5)

    exact, probability = sum_over_labels((2,) * n, log_joint)
    assert exact + np.log(probability.max()) - 1e-6 < posterior.elbo < exact


def test_mixed_membership_block_model():
    """A label of each side of each pair, with shares of the members: the exact sum where shares are known."""
    n = 4
    sender, receiver = (own[~np.eye(n, dtype=bool)] for own in np.indices((n, n)))
    edge = np.random.default_rng(1).random(len(sender)) < 0.5
    shares = np.random.default_rng(2).dirichlet([1, 1], n)
    member, k = cv.Plate("member", n), (cv.Plate("from", 2), cv.Plate("to", 2))
    pi = cv.Constant("pi", shares, plates=member)
    z, v = (cv.Categorical(name, of(pi, side), plates=OBS) for name, side in (("z", "s"), ("v", "r")))
    block = cv.Constant("block", BLOCK, plates=k)
    posterior = cv.Model(cv.Bernoulli("edge", block[z, v], plates=OBS)).fit(
        {"edge": edge, "s": sender, "r": receiver}
    )
    logs = (
        np.log(shares)[sender][:, :, None] + np.log(shares)[receiver][:, None] + bernoulli_pairs(BLOCK, edge)
    )
    assert posterior.elbo == pytest.approx(logsumexp(logs, axis=(1, 2)).sum(), rel=1e-11)


def test_biclustering():
    """Labels of rows and of columns: below the sum over all of both."""
    x = np.random.default_rng(0).random((4, 3)) < 0.5
    column = cv.Plate("column", 3)
    z = cv.Categorical("z", [0.4, 0.6], plates=OBS)
    v = cv.Categorical("v", [0.5, 0.5], plates=column)
    block = cv.Constant("block", BLOCK, plates=(cv.Plate("of row", 2), cv.Plate("of column", 2)))
    posterior = cv.Model(cv.Bernoulli("x", block[z, v], plates=(OBS, column))).fit({"x": x}, seed=0)
    each = bernoulli_pairs(BLOCK, x)

    def log_joint(own):
        rows, columns = np.array(own[:4]), np.array(own[4:])
        prior = np.log([0.4, 0.6])[rows].sum() + 3 * np.log(0.5)
        return each[np.arange(4)[:, None], np.arange(3), rows[:, None], columns].sum() + prior

    exact, probability = sum_over_labels((2,) * 7, log_joint)
    assert exact + np.log(probability.max()) - 1e-6 < posterior.elbo < exact


def test_a_change_point():
    """When a rate changed: a label for each possible time, exact with both rates in its factor."""
    x = np.array([[1, 0, 2, 1, 5, 4, 6, 5]])
    after = np.arange(8)[:, None] >= np.arange(1, 8)
    series, year, when = cv.Plate("series"), cv.Plate("year", 8), cv.Plate("when", 7)
    tau = cv.Categorical("tau", np.full(7, 1 / 7), plates=series)
    rate = cv.Gamma("rate", 2.0, 1.0, plates=(series, cv.Plate("side", 2)))
    side = cv.Data("side of", plates=(year, when))
    posterior = cv.Model(cv.Poisson("x", rate[side[tau]], plates=(series, year))).fit(
        {"x": x, "side of": after.astype(int)}
    )
    logs = (
        np.array(
            [
                sum(
                    gammaln(2 + x[0][own].sum()) - (2 + x[0][own].sum()) * np.log(1 + own.sum())
                    for own in (a, ~a)
                )
                for a in after.T
            ]
        )
        - gammaln(x + 1).sum()
    )
    assert posterior.elbo == pytest.approx(logsumexp(logs) - np.log(7), rel=1e-10)


# ---- sequences ---------------------------------------------------------------------------------------

INITIAL, MOVES = np.array([0.6, 0.4]), np.array([[0.8, 0.2], [0.3, 0.7]])


@pytest.mark.thinned(3)
@pytest.mark.parametrize("emission", ["Student-t", "autoregression", "mixture", "probit", "logistic"])
def test_hidden_markov_models_with_other_emissions(emission):
    s = cv.MarkovChain("s", INITIAL, MOVES, along=TIME)
    state, means = cv.Plate("state", 2), np.array([-1.0, 1.5])
    y = Y[:8]
    if emission == "autoregression":
        a = cv.Constant("a", [[0.0, 0.9], [1.0, -0.5]], plates=state)
        design = np.column_stack([np.ones(7), y[:-1]])
        leaf = cv.Normal("y", cv.dot(cv.Data("X", plates=TIME), a[s]), 2.0, plates=TIME)
        logs = norm.logpdf(y[1:, None], design @ np.array([[0.0, 0.9], [1.0, -0.5]]).T, 2**-0.5)
        found = cv.Model(leaf).fit({"y": y[1:], "X": design}).elbo
        assert found == pytest.approx(path_evidence(INITIAL, MOVES, logs), rel=1e-11)
    elif emission == "mixture":
        kind = cv.Categorical(
            "kind", cv.Constant("shares", [[0.9, 0.1], [0.3, 0.7]], plates=state)[s], plates=TIME
        )
        leaf = cv.Normal("y", cv.Constant("mean", means, plates=cv.Plate("k", 2))[kind], 1.0, plates=TIME)
        logs = np.log(np.exp(norm.logpdf(y[:, None], means)) @ np.array([[0.9, 0.1], [0.3, 0.7]]).T)
        found = cv.Model(leaf).fit({"y": y}).elbo
        assert found == pytest.approx(path_evidence(INITIAL, MOVES, logs), rel=1e-11)
    elif emission == "Student-t":
        u = cv.Gamma("u", 2.0, 2.0, plates=TIME)
        leaf = cv.Normal("y", cv.Constant("mean", means, plates=state)[s], u, plates=TIME)
        found = cv.Model(leaf).fit({"y": y}, tol=1e-12).elbo
        exact = path_evidence(INITIAL, MOVES, student_t(4, means).logpdf(y[:, None]))
        # the scale of a row and its state have a factor each
        assert exact - 1.0 < found < exact
    else:
        link = getattr(cv, emission)(cv.Normal("m", means, 1e6, plates=state)[s])
        found = cv.Model(cv.Bernoulli("y", link, plates=TIME)).fit({"y": y > 0}, tol=1e-12).elbo
        log_cdf = norm.logcdf if emission == "probit" else log_expit
        exact = path_evidence(INITIAL, MOVES, log_cdf(np.where(y > 0, 1.0, -1.0)[:, None] * means))
        assert exact - 2.5 < found < exact


@pytest.mark.slow
def test_factorial_hidden_markov_model():
    """Two chains with a factor each: below the evidence of the chain of pairs."""
    chains = [cv.MarkovChain(f"s{i}", INITIAL, MOVES, along=TIME) for i in range(2)]
    levels = [np.array([0.0, 2.0]), np.array([0.0, -1.0])]
    means = [cv.Constant(f"m{i}", own, plates=cv.Plate(f"k{i}", 2)) for i, own in enumerate(levels)]
    y = Y[:8]
    posterior = cv.Model(cv.Normal("y", means[0][chains[0]] + means[1][chains[1]], 2.0, plates=TIME)).fit(
        {"y": y}
    )
    pairs = np.add.outer(*levels).ravel()
    exact = path_evidence(
        np.kron(INITIAL, INITIAL), np.kron(MOVES, MOVES), norm.logpdf(y[:, None], pairs, 2**-0.5)
    )
    assert exact - 1.5 < posterior.elbo < exact


def test_mixture_of_hidden_markov_models():
    moves = np.stack([MOVES, MOVES[:, ::-1]])
    starts = np.tile([1, 0, 0, 0], 3)
    s = cv.MarkovChainMixture(
        "s", [0.3, 0.7], INITIAL, moves, along=TIME, starts=cv.Data("starts", plates=TIME)
    )
    mean = cv.Constant("mean", [-1.0, 1.0], plates=cv.Plate("state", 2))
    posterior = cv.Model(cv.Normal("y", mean[s], 1.0, plates=TIME)).fit({"y": Y, "starts": starts})
    exact = 0.0
    for own in np.split(norm.logpdf(Y[:, None], [-1.0, 1.0]), 3):
        exact += logsumexp(
            [np.log(w) + path_evidence(INITIAL, m, own) for w, m in zip([0.3, 0.7], moves, strict=True)]
        )
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def walk(name, noise=4.0):
    return cv.LinearGaussianChain(name, [0.0], [[1.0]], [[1.0]], [[noise]], along=TIME)


STEPS = np.minimum.outer(np.arange(N), np.arange(N))


@pytest.mark.slow
def test_two_gaussian_chains():
    """Level and its slow companion, a factor each: below the evidence of their sum."""
    mean = cv.dot([1.0], walk("a")) + cv.dot([1.0], walk("b", 100.0))
    posterior = cv.Model(cv.Normal("y", mean, 2.0, plates=TIME)).fit({"y": Y}, tol=1e-12, max_iter=2000)
    exact = normal_evidence(Y, 0.0, np.full((N, N), 2.0), STEPS / 4, STEPS / 100, np.eye(N) / 2)
    assert exact - 2.5 < posterior.elbo < exact
    both = cv.LinearGaussianChain("s", np.zeros(2), np.eye(2), np.eye(2), np.diag([4.0, 100.0]), along=TIME)
    together = cv.Model(cv.Normal("y", cv.dot([1.0, 1.0], both), 2.0, plates=TIME)).fit({"y": Y})
    assert together.elbo == pytest.approx(exact, rel=1e-10)


@pytest.mark.slow
def test_robust_kalman_filter():
    """A Gamma of each step widens outliers: the path does not follow one that the plain filter follows."""
    y = np.append(np.zeros(6), [8.0, *np.zeros(5)])
    u = cv.Gamma("u", 1.0, 1.0, plates=TIME)
    robust = cv.Model(cv.Normal("y", cv.dot([1.0], walk("s")), 4.0 * u, plates=TIME))
    plain = cv.Model(cv.Normal("y", cv.dot([1.0], walk("s")), 4.0, plates=TIME))
    at = robust.fit({"y": y}, tol=1e-10)
    paths = [own.fit({"y": y}).local({"y": y})["s"].mean[6, 0] for own in (robust, plain)]
    assert paths[0] < 0.3 < 2.0 < paths[1]
    estimate = cv.testing.elbo_estimate(at, {"y": y}, n_draws=200)
    assert abs(at.elbo - estimate.value) < 4 * estimate.error


# ---- numbers 0 or 1, sums and products ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["SpikeSlab", "Bernoulli times Normal", "gated constants"])
def test_spike_and_slab(kind):
    """Three weights that may be absent: below the sum over all subsets."""
    x = RNG.normal(size=(N, 3))
    y = 1.5 * x[:, 0] + 0.5 * Y
    data = {"y": y, "X": x, **{f"x{d}": x[:, d] for d in range(3)}}
    if kind == "SpikeSlab":
        w = cv.SpikeSlab("w", 0.4, 0.0, 1.0, length=3)
        mean, names = cv.dot(cv.Data("X", plates=OBS), w), {"y", "X"}
    elif kind == "Bernoulli times Normal":
        parts = [
            cv.Bernoulli(f"g{d}", 0.4) * cv.Normal(f"w{d}", 0, 1) * cv.Data(f"x{d}", plates=OBS)
            for d in range(3)
        ]
        mean, names = parts[0] + parts[1] + parts[2], {"y", "x0", "x1", "x2"}
    else:
        narrow = cv.Categorical("narrow", [0.4, 0.6], plates=cv.Plate("entry", 3))
        widths = cv.Constant("widths", [1.0, 1e6], plates=cv.Plate("kind", 2))
        w = cv.MultivariateNormal("w", np.zeros(3), cv.diagonal(widths[narrow]))
        mean, names = cv.dot(cv.Data("X", plates=OBS), w), {"y", "X"}
    posterior = cv.Model(cv.Normal("y", mean, 4.0, plates=OBS)).fit(
        {name: own for name, own in data.items() if name in names}, tol=1e-12, seed=0
    )
    exact = logsumexp(
        [
            normal_evidence(y, 0.0, (x * g) @ (x * g).T, np.eye(N) / 4) + np.log(np.where(g, 0.4, 0.6)).sum()
            for g in map(np.array, product([0, 1], repeat=3))
        ]
    )
    assert exact - 1.5 < posterior.elbo < exact + 1e-3


def test_single_effects():
    """One of three weights: exact."""
    x = RNG.normal(size=(N, 3))
    effect = cv.SingleEffect("b", [0.2, 0.3, 0.5], 0.0, 1.0)
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), effect), 4.0, plates=OBS))
    each = [normal_evidence(Y, 0.0, np.outer(x[:, d], x[:, d]), np.eye(N) / 4) for d in range(3)]
    exact = logsumexp(np.log([0.2, 0.3, 0.5]) + each)
    assert model.fit({"X": x, "y": Y}).elbo == pytest.approx(exact, rel=1e-10)


@pytest.mark.slow
def test_binary_factors():
    """Finite Indian buffet: which of two known features are in each row, exact by one factor for both."""
    rows = [cv.Categorical(f"z{k}", [0.6, 0.4], plates=OBS) for k in range(2)]
    both = cv.Constant(
        "sum", np.add.outer([0.0, 1.5], [0.0, -2.0]), plates=(cv.Plate("k0", 2), cv.Plate("k1", 2))
    )
    posterior = cv.Model(cv.Normal("y", both[rows[0], rows[1]], 4.0, plates=OBS)).fit({"y": Y})
    means = np.array([0.0, -2.0, 1.5, -0.5])
    shares = np.log(np.outer([0.6, 0.4], [0.6, 0.4])).ravel()
    exact = logsumexp(shares + norm.logpdf(Y[:, None], means, 0.5), axis=1).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)
    parts = [cv.Bernoulli(f"g{k}", 0.4, plates=OBS) * own for k, own in enumerate((1.5, -2.0))]
    apart = cv.Model(cv.Normal("y", parts[0] + parts[1], 4.0, plates=OBS)).fit({"y": Y}, tol=1e-12)
    total = 0.0
    for y in Y:
        table = norm.logpdf(y, np.add.outer([0.0, 1.5], [0.0, -2.0]), 0.5) + np.log(
            np.outer([0.6, 0.4], [0.6, 0.4])
        )
        total += max(_ascended(table, list(q)) for q in product([0.01, 0.5, 0.99], repeat=2))
    assert apart.elbo == pytest.approx(total, rel=1e-9)
    assert apart.elbo < exact


def _ascended(table, q):
    """Return the best bound that two independent numbers 0 or 1 reach from a start, of a table of log joints."""
    for _ in range(200):
        q[0] = expit(np.array([1 - q[1], q[1]]) @ (table[1] - table[0]))
        q[1] = expit(np.array([1 - q[0], q[0]]) @ (table[:, 1] - table[:, 0]))
    both = [np.array([1 - own, own]) for own in q]
    return both[0] @ table @ both[1] - sum(xlogy(own, own).sum() for own in both)


@pytest.mark.parametrize("kind", ["exposure", "rank one"])
def test_products_of_rates(kind):
    """Known columns are exact; two unknown rates have a factor each, below the evidence by quadrature."""
    x = np.array([3, 1, 4, 2])
    if kind == "exposure":
        rate = cv.Gamma("rate", 2.0, 1.0)
        posterior = cv.Model(cv.Poisson("x", rate * cv.Data("e", plates=OBS), plates=OBS)).fit(
            {"x": x, "e": [1.0, 0.5, 2.0, 1.0]}
        )
        exact = (x * np.log([1.0, 0.5, 2.0, 1.0]) - gammaln(x + 1)).sum() + gammaln(12) - 12 * np.log(5.5)
        assert posterior.elbo == pytest.approx(exact, rel=1e-11)
        return
    a, b = cv.Gamma("a", 2.0, 1.0), cv.Gamma("b", 3.0, 2.0)
    posterior = cv.Model(cv.Poisson("x", a * b, plates=OBS)).fit({"x": x}, tol=1e-12)
    grid = np.linspace(0.01, 12, 700)
    log_p = poisson.logpmf(x[:, None, None], np.multiply.outer(grid, grid)).sum(axis=0)
    log_p = log_p + gamma(2.0).logpdf(grid)[:, None] + gamma(3.0, scale=0.5).logpdf(grid)
    exact, _ = over_grid(log_p, grid, grid)
    assert exact - 1.5 < posterior.elbo < exact


def test_gamma_poisson_factorisation():
    """One source each: the split of a count between two known rates leaves the total as it is."""
    x, theta = np.array([4, 2]), cv.Gamma("theta", 2.0, 1.0)
    posterior = cv.Model(cv.Poisson("x", theta * 1.0 + cv.Constant("noise", 0.5), plates=OBS)).fit(
        {"x": x}, tol=1e-12
    )
    grid = np.linspace(1e-3, 15, 20_001)
    log_p = poisson.logpmf(x[:, None], grid + 0.5).sum(axis=0) + gamma(2.0).logpdf(grid)
    exact, (mean,) = over_grid(log_p, grid)
    assert exact - 0.2 < posterior.elbo < exact
    assert posterior["theta"].mean == pytest.approx(mean, rel=0.05)


def test_negative_binomial_of_an_unknown_mean():
    x, m = np.array([3, 0, 11, 5]), cv.Gamma("m", 2.0, 0.5)
    posterior = cv.Model(cv.NegativeBinomial("x", m, 2.0, plates=OBS)).fit({"x": x}, tol=1e-12)
    grid = np.linspace(0.01, 40, 8000)
    log_p = nbinom.logpmf(x[:, None], 2.0, 2 / (2 + grid)).sum(axis=0) + gamma(2.0, scale=2.0).logpdf(grid)
    exact, (mean,) = over_grid(log_p, grid)
    assert exact - 1.0 < posterior.elbo < exact
    assert posterior["m"].mean == pytest.approx(mean, rel=0.1)


@pytest.mark.parametrize("kind", ["local horseshoe", "global horseshoe"])
def test_horseshoes(kind):
    """Large effects stay, small ones shrink; the ELBO is that of the densities."""
    rng, entry = np.random.default_rng(0), cv.Plate("entry", 6)
    x = rng.normal(size=(60, 6))
    y = x @ [3.0, 0, 0, -2.0, 0, 0] + rng.normal(size=60)
    own = cv.Gamma("own", 0.5, cv.Gamma("aux", 0.5, 1.0, plates=entry), plates=entry)
    precision = own if kind == "local horseshoe" else cv.Gamma("common", 2.0, 0.1) * own
    w = cv.MultivariateNormal("w", np.zeros(6), cv.diagonal(precision))
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), 1.0, plates=OBS))
    posterior = model.fit({"X": x, "y": y})
    plain = np.linalg.lstsq(x, y, rcond=None)[0]
    small = [1, 2, 4, 5]
    assert np.abs(posterior["w"].mean[small]).sum() < 0.95 * np.abs(plain[small]).sum()
    np.testing.assert_allclose(posterior["w"].mean[[0, 3]], [3.0, -2.0], atol=0.35)
    estimate = cv.testing.elbo_estimate(posterior, {"X": x, "y": y}, n_draws=100)
    assert abs(posterior.elbo - estimate.value) < 4 * estimate.error


@pytest.mark.parametrize("kind", ["regression", "VAR"])
def test_several_outputs_with_common_noise(kind):
    """Known noise: one Normal of all outputs, exact."""
    noise, x = np.array([[2.0, 0.5], [0.5, 1.0]]), np.linspace(-1, 1, 6)
    y = RNG.normal(size=(6, 2))
    if kind == "regression":
        w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
        mean, data = w * cv.Data("x", plates=OBS), {"y": y, "x": x}
        designs = [x]
    else:
        w = [cv.MultivariateNormal(f"w{i}", np.zeros(2), np.eye(2)) for i in range(2)]
        mean = w[0] * cv.Data("b0", plates=OBS) + w[1] * cv.Data("b1", plates=OBS)
        data = {"y": y[1:], "b0": y[:-1, 0], "b1": y[:-1, 1]}
        designs = [y[:-1, 0], y[:-1, 1]]
    model = cv.Model(cv.MultivariateNormal("y", mean, noise, plates=OBS))
    n = len(data["y"])
    spread = np.kron(np.eye(n), np.linalg.inv(noise)) + sum(
        np.kron(np.outer(d, d), np.eye(2)) for d in designs
    )
    exact = multivariate_normal(np.zeros(2 * n), spread).logpdf(data["y"].ravel())
    found = model.fit(data, tol=1e-13).elbo
    assert exact - 1.5 < found < exact + 1e-9
    if kind == "regression":
        assert found == pytest.approx(exact, rel=1e-10)


# ---- links and truncation ------------------------------------------------------------------------------


def test_ordinal_probit():
    x, grade = np.linspace(-2, 2, N), np.array([0, 0, 0, 1, 0, 1, 1, 2, 1, 2, 2, 2])
    w, cuts = cv.Normal("w", 0.0, 1.0), np.array([-0.5, 0.8])
    eta = w * cv.Data("x", plates=OBS)
    posterior = cv.Model(cv.Categorical("grade", cv.ordered(eta, cuts), plates=OBS)).fit(
        {"x": x, "grade": grade}, tol=1e-12
    )
    grid = np.linspace(-5, 5, 4001)
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    eta_of = np.outer(x, grid)
    p = norm.cdf(ends[grade + 1][:, None] - eta_of) - norm.cdf(ends[grade][:, None] - eta_of)
    exact, (mean,) = over_grid(np.log(np.maximum(p, 1e-300)).sum(axis=0) + norm.logpdf(grid), grid)
    assert exact - 0.8 < posterior.elbo < exact
    assert posterior["w"].mean == pytest.approx(mean, abs=0.1)


def test_censoring_with_an_unknown_variance():
    y, kind = np.array([0.2, 0.5, 0.9, 1.0, 1.0]), np.array([0, 0, 0, 1, 1])
    mu, tau = cv.Normal("mu", 0.5, 1.0), cv.Gamma("tau", 3.0, 1.0)
    model = cv.Model(cv.CensoredNormal("y", mu, tau, censored=cv.Data("kind", plates=OBS), plates=OBS))
    posterior = model.fit({"y": y, "kind": kind}, tol=1e-12)
    m, t = np.linspace(-2, 4, 301), np.linspace(0.05, 15, 300)
    sd = t**-0.5
    log_p = norm.logpdf(y[:3, None, None], m[:, None], sd).sum(axis=0) + 2 * norm.logsf(1.0, m[:, None], sd)
    log_p = log_p + norm.logpdf(m, 0.5, 1.0)[:, None] + gamma(3.0).logpdf(t)
    exact, means = over_grid(log_p, m, t)
    assert exact - 0.7 < posterior.elbo < exact
    assert posterior["mu"].mean == pytest.approx(means[0], abs=0.1)


def test_a_potential_of_known_densities():
    """Clones of cells: a table of log densities over a grid of prevalences, as in PyClone-VI."""
    counts, grid = np.array([3, 9, 5]), np.linspace(0.05, 0.95, 10)
    table = binom.logpmf(counts[:, None], 10, grid)
    z = cv.Categorical("z", np.full(10, 0.1), plates=OBS)
    posterior = cv.Model(cv.Potential("t", z, plates=OBS)).fit({"t": table})
    assert posterior.elbo == pytest.approx((logsumexp(table, axis=1) - np.log(10)).sum(), rel=1e-11)


# ---- tables and products of factors ---------------------------------------------------------------------


def test_matrix_factorisation():
    """Rank one of two signs: below the evidence by quadrature over one side, the other integrated out."""
    y = np.array([[1.2, 0.7], [-0.9, -0.8], [0.3, 0.5]])
    row, column = cv.Plate("row"), cv.Plate("column", 2)
    u, v = cv.Normal("u", 0.0, 1.0, plates=row), cv.Normal("v", 0.0, 1.0, plates=column)
    posterior = cv.Model(cv.Normal("y", u * v, 4.0, plates=(row, column))).fit({"y": y}, tol=1e-12, seed=0)
    grid = np.linspace(-5, 5, 161)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    log_p = norm.logpdf(first) + norm.logpdf(second)
    square = first**2 + second**2
    for own in y:
        # N(y; 0, I / 4 + v v')
        inner = own[0] * first + own[1] * second
        log_p += -0.5 * (4 * own @ own - 16 * inner**2 / (1 + 4 * square)) - 0.5 * np.log1p(4 * square)
        log_p += np.log(4) - np.log(2 * np.pi)
    exact, _ = over_grid(log_p, grid, grid)
    # one of the two signs
    assert exact - np.log(2) - 1.5 < posterior.elbo < exact


def test_gaussian_factors_seen_from_two_sides():
    """Canonical correlation and mixtures of factor analysers rest on it: loadings known, one dense Normal."""
    loadings = [np.array([[1.0, 0.2], [0.4, -1.0]]), np.array([[0.5, 0.5]])]
    f = cv.MultivariateNormal("f", np.zeros(2), np.eye(2), plates=OBS)
    leaves, data, total = [], {}, np.vstack(loadings)
    for i, own in enumerate(loadings):
        column = cv.Plate(f"column {i}", len(own))
        mean = cv.dot(cv.Constant(f"W{i}", own, plates=column), f)
        leaves.append(cv.Normal(f"x{i}", mean, 4.0, plates=(OBS, column)))
        data[f"x{i}"] = RNG.normal(size=(5, len(own)))
    posterior = cv.Model(*leaves).fit(data)
    joint = multivariate_normal(np.zeros(3), total @ total.T + np.eye(3) / 4)
    exact = joint.logpdf(np.hstack(list(data.values()))).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-10)


def test_an_unknown_total_of_a_beta():
    """An unknown total of a Beta: quadrature over it, since the answers of groups integrate out."""
    on, n = np.array([2, 5, 1]), 6
    total, group = cv.Gamma("total", 3.0, 0.5), cv.Plate("group")
    p = cv.Beta("p", 0.4 * total, 0.6 * total, plates=group)
    posterior = cv.Model(cv.Binomial("on", n, p, plates=group)).fit({"on": on}, tol=1e-12)
    grid = np.linspace(0.05, 40, 4000)
    log_p = betabinom.logpmf(on[:, None], n, 0.4 * grid, 0.6 * grid).sum(axis=0)
    exact, (mean,) = over_grid(log_p + gamma(3.0, scale=2.0).logpdf(grid), grid)
    assert exact - 1.0 < posterior.elbo < exact
    assert posterior["total"].mean == pytest.approx(mean, rel=0.35)
