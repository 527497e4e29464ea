"""Examples of RxInfer: evidence of all data by one dense Normal, a sum over paths, or quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln, expit, gammaln, logsumexp
from scipy.stats import binom, gamma, multivariate_t, norm

import caviar as cv

from .exact import log_orthant, normal_evidence, over_grid, path_evidence, sum_over_labels

OBS, TIME = cv.Plate("obs"), cv.Plate("time")
RNG = np.random.default_rng(0)
N = 8
STEPS = np.minimum.outer(np.arange(N), np.arange(N))


def test_coin_toss():
    x = np.array([1, 0, 1, 1, 1, 0, 1])
    posterior = cv.Model(cv.Bernoulli("x", cv.Beta("theta", 4.0, 8.0), plates=OBS)).fit({"x": x})
    assert posterior.elbo == pytest.approx(betaln(4 + 5, 8 + 2) - betaln(4, 8), rel=1e-12)


def test_linear_regression():
    design, y = RNG.normal(size=(N, 2)), RNG.normal(size=N)
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2) / 4)
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), 2.0, plates=OBS))
    exact = normal_evidence(y, 0.0, 4 * design @ design.T, np.eye(N) / 2)
    assert model.fit({"X": design, "y": y}).elbo == pytest.approx(exact, rel=1e-12)


def test_binomial_regression():
    x, trials, y = np.linspace(-2, 2, N), np.full(N, 5), np.array([0, 1, 1, 2, 2, 4, 4, 5])
    w = cv.Normal("w", 0.0, 1.0)
    eta = w * cv.Data("x", plates=OBS)
    model = cv.Model(cv.Binomial("y", cv.Data("n", plates=OBS), cv.logistic(eta), plates=OBS))
    posterior = model.fit({"x": x, "n": trials, "y": y}, tol=1e-12)
    grid = np.linspace(-5, 5, 4001)
    log_p = norm.logpdf(grid) + binom.logpmf(y[:, None], 5, expit(x[:, None] * grid)).sum(axis=0)
    evidence, (mean,) = over_grid(log_p, grid)
    assert evidence - 0.4 < posterior.elbo < evidence
    assert posterior["w"].mean == pytest.approx(mean, abs=0.06)


def test_probit_regression():
    x, y = np.linspace(-2, 2, N), np.array([0, 0, 1, 0, 1, 0, 1, 1])
    w = cv.Normal("w", 0.0, 1.0)
    model = cv.Model(cv.Bernoulli("y", cv.probit(w * cv.Data("x", plates=OBS)), plates=OBS))
    posterior = model.fit({"x": x, "y": y}, tol=1e-12)
    grid = np.linspace(-5, 5, 4001)
    log_p = norm.logpdf(grid) + norm.logcdf(np.where(y, 1, -1)[:, None] * x[:, None] * grid).sum(axis=0)
    evidence, (mean,) = over_grid(log_p, grid)
    assert evidence - 0.8 < posterior.elbo < evidence
    assert posterior["w"].mean == pytest.approx(mean, abs=0.1)


INITIAL, MOVES = np.array([0.6, 0.3, 0.1]), np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
SHOWN = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]])
ROOMS = np.array([0, 0, 1, 2, 2, 1, 0, 0])


def test_hidden_markov_model():
    s = cv.MarkovChain("s", INITIAL, MOVES, along=TIME)
    shown = cv.Constant("shown", SHOWN, plates=cv.Plate("room", 3))
    posterior = cv.Model(cv.Categorical("x", shown[s], plates=TIME)).fit({"x": ROOMS})
    exact = path_evidence(INITIAL, MOVES, np.log(SHOWN[:, ROOMS].T))
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)


def walk(**more):
    """Return a chain of one number that keeps .9 of its value."""
    return cv.LinearGaussianChain("s", [0.0], [[1.0]], [[0.9]], [[4.0]], along=TIME, **more)


def covariance_of_walk():
    """Return the covariance of its states, from the equations of the steps."""
    back = np.linalg.inv(np.eye(N) - 0.9 * np.eye(N, k=-1))
    return back @ np.diag([1.0] + [0.25] * (N - 1)) @ back.T, back


def test_kalman_filter_with_known_noise():
    y = RNG.normal(size=N)
    posterior = cv.Model(cv.Normal("y", cv.dot([1.0], walk()), 2.0, plates=TIME)).fit({"y": y})
    exact = normal_evidence(y, 0.0, covariance_of_walk()[0], np.eye(N) / 2)
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def test_kalman_filter_with_unknown_noise():
    """Below the evidence by quadrature over the precision, and near its mean."""
    y = np.cumsum(RNG.normal(size=N) / 2) + RNG.normal(size=N)
    tau = cv.Gamma("tau", 3.0, 2.0)
    posterior = cv.Model(cv.Normal("y", cv.dot([1.0], walk()), tau, plates=TIME)).fit({"y": y}, tol=1e-12)
    grid = np.linspace(0.01, 12, 500)
    states = covariance_of_walk()[0]
    log_p = np.array([normal_evidence(y, 0.0, states, np.eye(N) / own) for own in grid])
    evidence, (mean,) = over_grid(log_p + gamma(3.0, scale=0.5).logpdf(grid), grid)
    assert evidence - 0.3 < posterior.elbo < evidence
    assert posterior["tau"].mean == pytest.approx(mean, rel=0.1)


def test_kalman_filter_with_inputs():
    y, u = RNG.normal(size=N), RNG.normal(size=N)
    chain = walk(inputs=cv.Data("u", plates=TIME), input_weights=[[1.5]])
    posterior = cv.Model(cv.Normal("y", cv.dot([1.0], chain), 2.0, plates=TIME)).fit(
        {"y": y, "u": u[:, None]}
    )
    states, back = covariance_of_walk()
    mean = back @ np.append(0.0, 1.5 * u[1:])
    assert posterior.elbo == pytest.approx(normal_evidence(y, mean, states, np.eye(N) / 2), rel=1e-11)


def test_gaussian_process_by_a_state_space():
    """Matérn with smoothness 1/2 at equal steps: exp(-|t - t'| / l)."""
    y, keep = RNG.normal(size=N), np.exp(-1 / 3)
    chain = cv.LinearGaussianChain("f", [0.0], [[1.0]], [[keep]], [[1 / (1 - keep**2)]], along=TIME)
    posterior = cv.Model(cv.Normal("y", cv.dot([1.0], chain), 5.0, plates=TIME)).fit({"y": y})
    lags = np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    exact = normal_evidence(y, 0.0, np.exp(-lags / 3), np.eye(N) / 5)
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def test_autoregression():
    """Two lags as columns, coefficients and noise in one factor: one Student-t of all values."""
    y = RNG.normal(size=N + 2)
    lags = np.column_stack([y[1:-1], y[:-2]])
    theta = cv.NormalGamma("theta", np.zeros(2), np.eye(2) / 2, 2.0, 1.0)
    model = cv.Model(
        cv.Normal("y", cv.dot(cv.Data("lags", plates=OBS), theta.mean), theta.precision, plates=OBS)
    )
    posterior = model.fit({"y": y[2:], "lags": lags})
    shape = 0.5 * (np.eye(N) + 2 * lags @ lags.T)
    assert posterior.elbo == pytest.approx(multivariate_t(np.zeros(N), shape, df=4).logpdf(y[2:]), rel=1e-10)


def test_latent_autoregression():
    """Two hidden lags are one state of two numbers, of which the first is seen."""
    y, moves = RNG.normal(size=N), np.array([[0.6, 0.3], [1.0, 0.0]])
    noise = np.diag([4.0, 1e6])
    chain = cv.LinearGaussianChain("s", np.zeros(2), np.eye(2), moves, noise, along=TIME)
    posterior = cv.Model(cv.Normal("y", cv.dot([1.0, 0.0], chain), 2.0, plates=TIME)).fit({"y": y})
    back = np.linalg.inv(np.eye(2 * N) - np.kron(np.eye(N, k=-1), moves))
    spread = back @ np.diag([1.0, 1.0] + [0.25, 1e-6] * (N - 1)) @ back.T
    exact = normal_evidence(y, 0.0, spread[::2, ::2], np.eye(N) / 2)
    assert posterior.elbo == pytest.approx(exact, rel=1e-9)


def test_univariate_mixture():
    x = np.concatenate([RNG.normal(-3, 1, 20), RNG.normal(3, 1, 10)])
    z = cv.Categorical("z", [0.7, 0.3], plates=OBS)
    mean = cv.Constant("mean", [-3.0, 3.0], plates=cv.Plate("k", 2))
    posterior = cv.Model(cv.Normal("x", mean[z], 1.0, plates=OBS)).fit({"x": x})
    exact = logsumexp(np.log([0.7, 0.3]) + norm.logpdf(x[:, None], [-3.0, 3.0]), axis=1).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("shapes", [[2.0, 2.0], [0.8, 5.0]])
def test_gamma_mixture_with_known_shapes(shapes):
    """One shape, and one for each component."""
    x, rates = RNG.gamma(2.0, 1.0, 20), np.array([0.5, 2.0])
    k = cv.Plate("k", 2)
    z = cv.Categorical("z", [0.4, 0.6], plates=OBS)
    rate, shape = cv.Constant("rate", rates, plates=k), cv.Constant("shape", shapes, plates=k)
    posterior = cv.Model(cv.Gamma("x", shape[z], rate[z], plates=OBS)).fit({"x": x})
    each = gamma.logpdf(x[:, None], shapes, scale=1 / rates)
    exact = logsumexp(np.log([0.4, 0.6]) + each, axis=1).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def test_skills_of_a_student():
    """Lazy or not, studied or not: three questions with tables over both."""
    tables = [np.array([[0.2, 0.9], [0.05, 0.6]]), np.array([[0.5, 0.95], [0.1, 0.4]])]
    person = cv.Plate("person")
    plates = [cv.Plate("if lazy", 2), cv.Plate("if studied", 2)]
    lazy, studied = (cv.Categorical(own, [0.5, 0.5], plates=person) for own in ("lazy", "studied"))
    leaves = [
        cv.Bernoulli(f"x{i}", cv.Constant(f"p{i}", own, plates=plates)[lazy, studied], plates=person)
        for i, own in enumerate(tables)
    ]
    posterior = cv.Model(*leaves).fit({"x0": [1], "x1": [0]})
    evidence, probability = sum_over_labels(
        (2, 2), lambda own: np.log(0.25 * tables[0][own] * (1 - tables[1][own]))
    )
    assert posterior.elbo == pytest.approx(evidence, rel=1e-12)
    found = posterior.local({"x0": [1], "x1": [0]})["lazy"].of("lazy", "studied")[0]
    np.testing.assert_allclose(found, probability, atol=1e-12)


def test_probit_random_walk():
    """The hidden path of a random walk behind answers: orthants of all of them."""
    y = np.array([0, 0, 1, 0, 1, 1, 1, 1])
    chain = cv.LinearGaussianChain("s", [0.0], [[1.0]], [[1.0]], [[4.0]], along=TIME)
    model = cv.Model(cv.Bernoulli("y", cv.probit(cv.dot([1.0], chain)), plates=TIME))
    posterior = model.fit({"y": y}, tol=1e-10, max_iter=2000)
    sign = np.where(y, 1.0, -1.0)
    exact = log_orthant(np.zeros(N), np.outer(sign, sign) * (1 + 0.25 * STEPS) + np.eye(N))
    assert exact - 2.5 < posterior.elbo < exact
    path = posterior.local({"y": y})["s"].mean[:, 0]
    assert path[0] < 0 < path[-1]


def test_multinomial_regression_by_stick_breaking():
    """Two questions, each a logistic regression of those who get there."""
    x, kind = np.linspace(-2, 2, N), np.array([2, 2, 1, 2, 0, 1, 0, 0])
    w = cv.Normal("w", 0.0, 1.0, plates=cv.Plate("question", 2))
    eta = w * cv.Data("x", plates=OBS)
    posterior = cv.Model(cv.Categorical("kind", cv.stick_breaking(eta), plates=OBS)).fit(
        {"x": x, "kind": kind}, tol=1e-12
    )
    grid, total = np.linspace(-6, 6, 4001), 0.0
    for question in range(2):
        asked = kind >= question
        sign = np.where(kind[asked] == question, 1.0, -1.0)
        log_p = norm.logpdf(grid) - np.logaddexp(0, -np.outer(sign * x[asked], grid)).sum(axis=0)
        total += over_grid(log_p, grid)[0]
    assert total - 0.4 < posterior.elbo < total


def test_bayesian_network():
    """An alarm with two causes, and two neighbours who call."""
    house, yes = cv.Plate("house"), [cv.Plate(f"if {own}", 2) for own in ("burglary", "quake", "alarm")]
    ring = np.array([[0.001, 0.29], [0.94, 0.95]])
    burglary = cv.Categorical("burglary", [0.999, 0.001], plates=house)
    quake = cv.Categorical("quake", [0.998, 0.002], plates=house)
    table = cv.Constant("ring", np.stack([1 - ring, ring], axis=-1), plates=yes[:2])
    alarm = cv.Categorical("alarm", table[burglary, quake], plates=house)
    calls = [
        cv.Bernoulli(name, cv.Constant(f"of {name}", p, plates=yes[2])[alarm], plates=house)
        for name, p in (("john", [0.05, 0.9]), ("mary", [0.01, 0.7]))
    ]
    data = {"john": [1], "mary": [1]}
    posterior = cv.Model(*calls).fit(data)
    # Russell and Norvig, "Artificial Intelligence": 0.284
    found = posterior.local(data)["burglary"].probabilities[0, 1]
    assert found == pytest.approx(0.284, abs=5e-4)
    calling = np.array([0.05 * 0.01, 0.9 * 0.7])
    prior = np.outer([0.999, 0.001], [0.998, 0.002])
    both = (prior[..., None] * np.stack([1 - ring, ring], axis=-1) * calling).sum(axis=(1, 2))
    assert found == pytest.approx(both[1] / both.sum(), rel=1e-10)
    assert posterior.elbo == pytest.approx(np.log(both.sum()), rel=1e-11)


def test_poisson_and_exponential_counts():
    """A rate of counts in windows of other lengths, as in the counts of a detector."""
    y, width = np.array([3, 0, 4, 2]), np.array([1.0, 0.5, 2.0, 1.0])
    rate = cv.Gamma("rate", 2.0, 1.0)
    model = cv.Model(cv.Poisson("y", rate * cv.Data("width", plates=OBS), plates=OBS))
    posterior = model.fit({"y": y, "width": width})
    total, time = y.sum(), width.sum()
    exact = (y * np.log(width) - gammaln(y + 1)).sum() + gammaln(2 + total) - (2 + total) * np.log(1 + time)
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)


def test_hidden_markov_model_with_control():
    """A known input of each step chooses the table of transitions: the sum over all paths, exact."""
    u, y = np.array([0, 1, 1, 0, 1, 0, 1]), np.array([0, 0, 1, 2, 2, 1, 0])
    tables = np.stack([MOVES, MOVES[::-1]])
    state = cv.Plate("state", 3)
    chosen = cv.Constant("moves", tables, plates=(cv.Plate("input", 2), state))[cv.Data("u", plates=TIME)]
    s = cv.MarkovChain("s", INITIAL, chosen, along=TIME)
    model = cv.Model(cv.Categorical("y", cv.Constant("shown", SHOWN, plates=state)[s], plates=TIME))

    def log_joint(path):
        before = np.log(INITIAL[path[0]]) + np.log(SHOWN[path[0], y[0]])
        steps = zip(u[1:], path[:-1], path[1:], y[1:], strict=True)
        return before + sum(np.log(tables[own, a, b]) + np.log(SHOWN[b, seen]) for own, a, b, seen in steps)

    evidence, probabilities = sum_over_labels((3,) * len(y), log_joint)
    posterior = model.fit({"u": u, "y": y})
    assert posterior.elbo == pytest.approx(evidence, rel=1e-12)
    marginals = [probabilities.sum(axis=tuple(j for j in range(7) if j != t)) for t in range(7)]
    np.testing.assert_allclose(posterior.local({"u": u, "y": y})["s"].probabilities, marginals, atol=1e-12)


def dense_steps(transition, noise, initial, seen):
    """Return the covariance of the data of one number a step, with these transitions and variances of each step."""
    n = len(transition)
    through = np.eye(n)
    for t in range(1, n):
        through[t] += transition[t] * through[t - 1]
    return through @ np.diag([initial, *noise[1:]]) @ through.T + seen * np.eye(n)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", ["switching linear dynamics", "hierarchical Gaussian filter"])
def test_dynamics_that_switch(kind):
    """The bound lies below the sum over all paths of modes, and finds them.

    The filter has levels of volatility: the logarithm of the noise takes one of two values, which a chain of states
    chooses, in the place of a walk whose exponential no update is known for.
    """
    is_filter = kind.startswith("hierarchical")
    slopes = np.array([1.0, 1.0]) if is_filter else np.array([0.95, -0.9])
    variances = np.array([0.01, 4.0]) if is_filter else np.array([0.04, 0.04])
    z = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    rng = np.random.default_rng(4)
    x = np.cumsum(np.sqrt(variances[z]) * rng.normal(size=N)) if is_filter else None
    if x is None:
        x = [2.0]
        for t in range(1, N):
            x.append(slopes[z[t]] * x[-1] + 0.2 * rng.normal())
    y = np.asarray(x) + 0.1 * rng.normal(size=N)
    mode, entry = cv.Plate("mode", 2), cv.Plate("entry", 1)
    moves = np.array([[0.8, 0.2], [0.2, 0.8]])
    modes = cv.MarkovChain("mode", [0.5, 0.5], moves, along=TIME)
    a = [[1.0]] if is_filter else cv.Constant("a", slopes.reshape(2, 1, 1), plates=mode)[modes]
    q = cv.diagonal(cv.Constant("q", 1 / variances[:, None], plates=(mode, entry))[modes])
    state = cv.LinearGaussianChain("x", [0.0], [[0.25]], a, q, along=TIME)
    posterior = cv.Model(cv.Normal("y", cv.dot([1.0], state), 100.0, plates=TIME)).fit({"y": y}, tol=1e-12)

    def log_joint(path):
        path = np.array(path)
        covariance = dense_steps(slopes[path], variances[path], 4.0, 0.01)
        prior = np.log(0.5) + np.log(moves[path[:-1], path[1:]]).sum()
        return prior + normal_evidence(y, 0.0, covariance)

    evidence, probabilities = sum_over_labels((2,) * N, log_joint)
    assert evidence - 1.5 < posterior.elbo < evidence
    marginals = np.array([probabilities.sum(axis=tuple(j for j in range(N) if j != t))[1] for t in range(N)])
    found = posterior.local({"y": y})["mode"].probabilities[:, 1]
    np.testing.assert_allclose(found, marginals, atol=0.25)
