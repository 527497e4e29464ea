"""Globals that share one Gaussian factor: exact where the rest is known, by dense algebra over all rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv

OBS, FIRST, SECOND = cv.Plate("obs"), cv.Plate("first", 7), cv.Plate("second", 5)
N_A, N_B, N = FIRST.size, SECOND.size, 40
REGION = np.array([0, 2, 1, 1, 0, 2, 2])


def _one_hot(labels, n):
    return np.eye(n)[labels]


def _data(seed=0):
    rng = np.random.default_rng(seed)
    i, j, X = rng.integers(N_A, size=N), rng.integers(N_B, size=N), rng.normal(size=(N, 3))
    y = 2 + rng.normal(size=N_A)[i] + 0.5 * rng.normal(size=N_B)[j] + X[:, 0] + rng.normal(size=N)
    return {"y": y, "i": i, "j": j, "X": X}


def _rows(name):
    return cv.Data(name, plates=OBS)


def _crossed():
    """A common level and two crossed effects."""
    mu, a = cv.Normal("mu", 1.0, 0.01), cv.Normal("a", 0.0, 1.0, plates=FIRST)
    b = cv.Normal("b", 0.5, 2.0, plates=SECOND)
    y = cv.Normal("y", mu + a[_rows("i")] + b[_rows("j")], 1.5, plates=OBS)

    def oracle(data):
        A, B = _one_hot(data["i"], N_A), _one_hot(data["j"], N_B)
        return {"mu": np.ones((N, 1)), "a": A, "b": B}, {
            "mu": (1.0, 100 * np.eye(1)),
            "b": (0.5, np.eye(N_B) / 2),
        }

    return y, ("i", "j"), {}, oracle


def _level_and_groups():
    """Groups about a level: what meets in a prior."""
    mu = cv.Normal("mu", 1.0, 0.01)
    a = cv.Normal("a", mu, 2.0, plates=FIRST)
    y = cv.Normal("y", a[_rows("i")], 1.5, plates=OBS)

    def oracle(data):
        A = _one_hot(data["i"], N_A)
        # a = mu + its deviation
        return {"mu": np.ones((N, 1)), "a": A}, {"mu": (1.0, 100 * np.eye(1)), "a": (0.0, np.eye(N_A) / 2)}

    return y, ("i",), {"a": lambda values: values["mu"] + values["a"]}, oracle


def _nested():
    """Groups within regions within a country."""
    region = cv.Plate("region", 3)
    mu = cv.Normal("mu", 1.0, 0.01)
    b = cv.Normal("b", mu, 0.5, plates=region)
    a = cv.Normal("a", b[cv.Data("region", plates=FIRST)], 2.0, plates=FIRST)
    y = cv.Normal("y", a[_rows("i")], 1.5, plates=OBS)

    def oracle(data):
        A, R = _one_hot(data["i"], N_A), _one_hot(REGION, 3)
        designs = {"mu": np.ones((N, 1)), "b": A @ R, "a": A}
        priors = {"mu": (1.0, 100 * np.eye(1)), "b": (0.0, 2 * np.eye(3)), "a": (0.0, np.eye(N_A) / 2)}
        return designs, priors

    return y, ("i", "region"), {}, oracle


def _regression_and_slopes():
    """Coefficients, groups, and slopes of groups."""
    X = _rows("X")
    mu = cv.MultivariateNormal("mu", [0.5, 0.0, -0.5], np.diag([1.0, 2.0, 3.0]))
    a = cv.MultivariateNormal("a", np.zeros(3), np.eye(3) + 0.3, plates=FIRST)
    b = cv.Normal("b", 0.0, 1.0, plates=SECOND)
    y = cv.Normal("y", cv.dot(X, mu) + cv.dot(X, a[_rows("i")]) + b[_rows("j")] * 1.0, 1.5, plates=OBS)

    def oracle(data):
        slopes = (_one_hot(data["i"], N_A)[:, :, None] * data["X"][:, None, :]).reshape(N, -1)
        designs = {"mu": data["X"], "a": slopes, "b": _one_hot(data["j"], N_B)}
        within = np.kron(np.eye(N_A), np.linalg.inv(np.eye(3) + 0.3))
        priors = {"mu": (np.array([0.5, 0.0, -0.5]), np.diag([1, 1 / 2, 1 / 3])), "a": (0.0, within)}
        return designs, priors

    return y, ("i", "j", "X"), {}, oracle


@pytest.fixture(params=[0, 10_000], ids=["eliminated", "dense"])
def _sizes_of_dense_matrices(request, monkeypatch):
    """Small matrices are dense; large ones are solved by eliminating their most repeated variable."""
    monkeypatch.setattr("caviar.families.shared.arrow._DENSE", request.param)


BOTH_WAYS = pytest.mark.usefixtures("_sizes_of_dense_matrices")

CASES = {
    "crossed": _crossed,
    "level and groups": _level_and_groups,
    "nested": _nested,
    "regression and slopes": _regression_and_slopes,
}


def _evidence(data, designs, priors, precision=1.5):
    """Return log p(y), and of each variable (deviations of nested ones) posterior means and covariances."""
    names = list(designs)
    D = np.concatenate([designs[name] for name in names], axis=1)
    means, blocks = [], []
    for name in names:
        mean, covariance = priors.get(name, (0.0, np.eye(designs[name].shape[1])))
        means.append(np.broadcast_to(mean, designs[name].shape[1]))
        blocks.append(covariance)
    mean, covariance = np.concatenate(means), np.zeros((D.shape[1], D.shape[1]))
    start = 0
    for block in blocks:
        own = slice(start, start + len(block))
        covariance[own, own] = block
        start += len(block)
    total = D @ covariance @ D.T + np.eye(len(D)) / precision
    gain = covariance @ D.T @ np.linalg.inv(total)
    log_p = multivariate_normal(D @ mean, total).logpdf(data["y"])
    return log_p, mean + gain @ (data["y"] - D @ mean), covariance - gain @ D @ covariance, D


def _fitted(case, **arguments):
    leaf, names, _, oracle = CASES[case]()
    data = _data()
    if "region" in names:
        data["region"] = REGION
    given = {name: data[name] for name in ("y", *names)}
    model = cv.Model(leaf)
    groups = [tuple(name for name in ("mu", "a", "b") if name in model.variables)]
    return model.fit(given, seed=0, factors=groups, **arguments), given, oracle(data)


@BOTH_WAYS
@pytest.mark.parametrize("case", CASES)
def test_with_known_precisions_the_bound_is_the_evidence(case):
    posterior, data, oracle = _fitted(case)
    log_p, *_ = _evidence(data, *oracle)
    assert posterior.elbo == pytest.approx(log_p, abs=1e-9)
    assert posterior.n_iter <= 3
    assert posterior.is_exact


@BOTH_WAYS
@pytest.mark.parametrize("case", CASES)
def test_predictions_have_the_covariances_of_all_variables(case):
    """Mean and standard deviation of new rows are those of the exact posterior, which independent factors miss."""
    posterior, data, oracle = _fitted(case)
    _, mean, covariance, D = _evidence(data, *oracle)
    told = posterior.predict({name: value for name, value in data.items() if name != "y"})["y"]
    assert told.mean == pytest.approx(D @ mean, abs=1e-9)
    variance = np.einsum("nk,kl,nl->n", D, covariance, D) + 1 / 1.5
    assert np.square(told.standard_deviation) == pytest.approx(variance, rel=1e-9)


@BOTH_WAYS
@pytest.mark.parametrize("case", ["crossed", "regression and slopes"])
def test_marginals_and_draws_are_those_of_the_exact_posterior(case):
    posterior, data, oracle = _fitted(case)
    _, mean, covariance, _ = _evidence(data, *oracle)
    start, places = 0, {}
    for name, design in oracle[0].items():
        places[name] = slice(start, start + design.shape[1])
        start += design.shape[1]
    for name, own in places.items():
        factor = posterior[name]
        assert np.ravel(factor.mean) == pytest.approx(mean[own], abs=1e-9)
        variances = (
            np.ravel(factor.variance)
            if isinstance(factor, cv.families.Normal)
            else np.ravel(np.diagonal(factor.covariance, axis1=-2, axis2=-1))
        )
        assert variances == pytest.approx(np.diag(covariance)[own], rel=1e-9)
    n = 40_000
    draws = posterior.sample(n, seed=1)
    flat = np.concatenate([draws[name].reshape(n, -1) for name in places], axis=1)
    spread = np.sqrt(np.diag(covariance))
    # correlations of so many draws have a standard error of 1 / sqrt(n)
    assert np.abs((np.cov(flat.T) - covariance) / np.outer(spread, spread)).max() < 5 * np.sqrt(2 / n)


def test_weights_of_draws_are_all_equal():
    """The density of a shared factor is that of the exact posterior: Pareto k is 0, the evidence exact."""
    posterior, data, oracle = _fitted("crossed")
    found = posterior.diagnose(data, n_draws=100, seed=0)
    assert found.pareto_k == 0.0
    assert found.log_evidence == pytest.approx(_evidence(data, *oracle)[0], abs=1e-8)


def _with_learnt_precisions(leaf_of):
    mu = cv.Normal("mu", 1.0, 0.01)
    tau, first, second = (cv.Gamma(name, 2.0, 1.0) for name in ("tau", "first", "second"))
    a = cv.Normal("a", mu, first, plates=FIRST)
    b = cv.Normal("b", 0.0, second, plates=SECOND)
    return cv.Model(leaf_of(a[_rows("i")] + b[_rows("j")], tau))


def _gaussian():
    return _with_learnt_precisions(lambda predictor, tau: cv.Normal("y", predictor, tau, plates=OBS))


@pytest.mark.slow
def test_learnt_precisions_are_at_the_fixed_point_of_dense_coordinate_ascent():
    """The same updates written out with dense matrices end at the same ELBO."""
    data = _data(1)
    data.pop("X")
    posterior = _gaussian().fit(data, seed=0, factors=[("mu", "a", "b")], tol=1e-13)
    D = np.concatenate([np.zeros((N, 1)), _one_hot(data["i"], N_A), _one_hot(data["j"], N_B)], axis=1)
    level = np.concatenate([-np.ones((N_A, 1)), np.eye(N_A), np.zeros((N_A, N_B))], axis=1)
    of_b = np.concatenate([np.zeros((N_B, 1 + N_A)), np.eye(N_B)], axis=1)
    residual = [(D, data["y"], N), (level, np.zeros(N_A), N_A), (of_b, np.zeros(N_B), N_B)]
    precisions = np.ones(3)
    for _ in range(2_000):
        P, h = np.zeros((1 + N_A + N_B, 1 + N_A + N_B)), np.zeros(1 + N_A + N_B)
        P[0, 0], h[0] = 0.01, 0.01
        for tau, (M, y, _n) in zip(precisions, residual, strict=True):
            P, h = P + tau * M.T @ M, h + tau * M.T @ y
        V = np.linalg.inv(P)
        m = V @ h
        squares = [np.sum((y - M @ m) ** 2) + np.trace(M @ V @ M.T) for M, y, _ in residual]
        precisions = np.array(
            [(2 + n / 2) / (1 + s / 2) for (_, _, n), s in zip(residual, squares, strict=True)]
        )
    names = ("tau", "first", "second")
    assert [float(posterior[name].mean) for name in names] == pytest.approx(precisions, rel=1e-6)
    assert posterior["a"].mean == pytest.approx(m[1 : 1 + N_A], abs=1e-6)
    assert posterior["b"].variance == pytest.approx(np.diag(V)[1 + N_A :], rel=1e-6)


def test_a_shared_factor_is_a_larger_family():
    """Its ELBO is above that of independent factors, and below the evidence where that is known."""
    data = _data(1)
    data.pop("X")
    model = _gaussian()
    shared = model.fit(data, seed=0, factors=[("mu", "a", "b")], tol=1e-10)
    pairs = model.fit(data, seed=0, factors=[("a", "b")], tol=1e-10)
    apart = model.fit(data, seed=0, factors=[], tol=1e-10)
    assert shared.elbo > pairs.elbo + 0.1 > apart.elbo + 0.2
    assert np.diff(shared.elbo_trace).min() > -1e-9


def test_rows_and_weights_and_threads():
    """A weight of 2 is a row twice, a row without a value is none, and threads change no bit."""
    data = _data(2)
    data.pop("X")
    model, groups = _gaussian(), [("mu", "a", "b")]
    again = np.concatenate([np.arange(N), np.arange(10)])
    twice = model.fit({k: v[again] for k, v in data.items()}, seed=0, factors=groups, tol=1e-13)
    weighted = model.fit(
        data, seed=0, factors=groups, tol=1e-13, sample_weight=np.where(np.arange(N) < 10, 2.0, 1.0)
    )
    assert weighted.elbo == pytest.approx(twice.elbo, abs=1e-8)
    missing = {**data, "y": np.where(np.arange(N) % 4 == 0, np.nan, data["y"])}
    kept = np.arange(N) % 4 != 0
    some = model.fit({k: v[kept] for k, v in data.items()}, seed=0, factors=groups, tol=1e-13)
    assert model.fit(missing, seed=0, factors=groups, tol=1e-13).elbo == pytest.approx(some.elbo, abs=1e-8)
    one, three = (model.fit(data, seed=0, factors=groups, executor=n) for n in (1, 3))
    assert np.array_equal(one.elbo_trace, three.elbo_trace)


@BOTH_WAYS
def test_groups_without_rows_count_nothing():
    """A plate with repetitions that no row is of has the ELBO of one without, and forecasts for them."""
    data = _data(3)
    data.pop("X")
    groups = [("mu", "a", "b")]

    def fitted(size):
        mu, precision = cv.Normal("mu", 1.0, 0.01), cv.Gamma("precision", 3.0, 1.0)
        a = cv.Normal("a", mu, precision, plates=cv.Plate("first", size))
        b = cv.Normal("b", 0.0, 1.0, plates=SECOND)
        leaf = cv.Normal("y", a[_rows("i")] + b[_rows("j")], 1.0, plates=OBS)
        return cv.Model(leaf).fit(data, seed=0, factors=groups, tol=1e-13)

    few, many = fitted(N_A), fitted(N_A + 4)
    assert many.elbo == pytest.approx(few.elbo, abs=1e-8)
    assert many["a"].mean[:N_A] == pytest.approx(few["a"].mean, abs=1e-7)
    assert many["a"].mean[N_A:] == pytest.approx(float(few["mu"].mean), abs=1e-7)
    shape, rate = few["precision"].shape, few["precision"].rate
    assert many["a"].variance[N_A:] == pytest.approx(rate / (shape - 1) + few["mu"].variance, rel=1e-6)


@pytest.mark.parametrize("schedule", ["batch", "incremental", "stochastic"])
def test_schedules_come_to_the_same_end(schedule):
    data = _data(2)
    data.pop("X")
    model, groups = _gaussian(), [("mu", "a", "b")]
    best = model.fit(data, seed=0, factors=groups, tol=1e-12).elbo
    found = model.fit(data, seed=0, factors=groups, schedule=schedule, tol=1e-12, max_iter=400)
    assert found.elbo == pytest.approx(best, abs=1e-5)


def test_a_saved_posterior_predicts_the_same(tmp_path):
    data = _data(2)
    data.pop("X")
    posterior = _gaussian().fit(data, seed=0, factors=[("mu", "a", "b")])
    posterior.save(tmp_path / "m.caviar")
    loaded = cv.load(tmp_path / "m.caviar")
    new = {"i": data["j"], "j": data["j"]}
    told, again = posterior.predict(new)["y"], loaded.predict(new)["y"]
    assert np.array_equal(told.standard_deviation, again.standard_deviation)
    assert loaded.elbo_at({}, data) == pytest.approx(posterior.elbo, abs=1e-9)
    assert np.array_equal(loaded.sample(3, seed=0)["a"], posterior.sample(3, seed=0)["a"])


def test_a_fit_goes_on_from_a_checkpoint(tmp_path):
    class StopError(Exception):
        pass

    def stop(progress):
        if progress.iteration == 3:
            raise StopError

    data = _data(2)
    data.pop("X")
    model, own = _gaussian(), {"seed": 0, "factors": [("mu", "a", "b")], "tol": 1e-12}
    whole = model.fit(data, **own)
    kept = {"checkpoint": tmp_path / "fit", "checkpoint_every": 0}
    with pytest.raises(StopError):
        model.fit(data, **own, **kept, progress=stop)
    assert np.array_equal(model.fit(data, **own, **kept).elbo_trace, whole.elbo_trace)
    ended = model.fit(data, **own, **kept)
    assert ended.elbo == whole.elbo
    assert np.array_equal(ended["a"].variance, whole["a"].variance)
    assert np.array_equal(ended.sample(2, seed=0)["a"], whole.sample(2, seed=0)["a"])


@pytest.mark.slow
def test_a_later_start_goes_on_from_a_checkpoint(tmp_path):
    class StopError(Exception):
        pass

    def stop(progress):
        if progress.restart == 1 and progress.iteration == 2:
            raise StopError

    data = _data(2)
    data.pop("X")
    model, own = _gaussian(), {"seed": 0, "factors": [("mu", "a", "b")], "n_restarts": 2}
    whole = model.fit(data, **own)
    kept = {"checkpoint": tmp_path / "fit", "checkpoint_every": 0}
    with pytest.raises(StopError):
        model.fit(data, **own, **kept, progress=stop)
    assert np.array_equal(model.fit(data, **own, **kept).elbo_trace, whole.elbo_trace)


def test_logistic_regression_with_effects_rises_and_has_its_own_precision():
    """Given the auxiliary variables the effects are Gaussian: P = P0 + sum of E[omega] x x', h = sum of (y - 1/2) x."""
    data = _data(4)
    y = (data["y"] > 2).astype(int)
    mu, a = cv.Normal("mu", 0.0, 0.5), cv.Normal("a", 0.0, 1.0, plates=FIRST)
    b = cv.Normal("b", 0.0, 2.0, plates=SECOND)
    leaf = cv.Bernoulli("y", cv.logistic(mu + a[_rows("i")] + b[_rows("j")]), plates=OBS)
    given = {"y": y, "i": data["i"], "j": data["j"]}
    model = cv.Model(leaf)
    posterior = model.fit(given, seed=0, factors=[("mu", "a", "b")], tol=1e-13)
    D = np.concatenate([np.ones((N, 1)), _one_hot(data["i"], N_A), _one_hot(data["j"], N_B)], axis=1)
    prior = np.concatenate([[0.5], np.ones(N_A), np.full(N_B, 2.0)])
    omega = np.full(N, 0.25)
    for _ in range(500):
        V = np.linalg.inv(np.diag(prior) + D.T @ (omega[:, None] * D))
        m = V @ (D.T @ (y - 0.5))
        c = np.sqrt((D @ m) ** 2 + np.einsum("nk,kl,nl->n", D, V, D))
        omega = np.tanh(c / 2) / (2 * c)
    # the bound of Jaakkola and Jordan at its optimum
    bound = np.sum(-np.logaddexp(0, -c) - c / 2) + 0.5 * (
        m @ np.linalg.solve(V, m) + np.linalg.slogdet(V)[1] + np.log(prior).sum()
    )
    bound += 0.5 * np.sum(omega * c**2)
    assert posterior.elbo == pytest.approx(bound, abs=1e-7)
    assert posterior["a"].mean == pytest.approx(m[1 : 1 + N_A], abs=1e-6)
    assert posterior["b"].variance == pytest.approx(np.diag(V)[1 + N_A :], rel=1e-6)
    assert posterior.elbo > model.fit(given, seed=0, factors=[], tol=1e-12).elbo + 0.1


@pytest.mark.thinned(3)
@BOTH_WAYS
@pytest.mark.parametrize("case", CASES)
def test_an_update_is_the_fit_of_all_rows(case, tmp_path):
    """The earlier factor, with its covariances, is the prior: log p(first) + log p(second | first) = log p(both)."""
    whole, data, oracle = _fitted(case)
    model, groups = whole.model, [tuple(name for name in ("mu", "a", "b") if name in whole.model.variables)]
    halves = [
        {name: value if name == "region" else value[rows] for name, value in data.items()}
        for rows in (slice(None, 25), slice(25, None))
    ]
    first = model.fit(halves[0], seed=0, factors=groups)
    first.save(tmp_path / "first.caviar")
    both = cv.load(tmp_path / "first.caviar").update(halves[1], seed=0)
    assert first.elbo + both.elbo == pytest.approx(_evidence(data, *oracle)[0], abs=1e-8)
    assert both["mu"].mean == pytest.approx(whole["mu"].mean, abs=1e-8)
    assert both["a"].mean == pytest.approx(whole["a"].mean, abs=1e-8)
    new = {name: value for name, value in data.items() if name != "y"}
    told, again = whole.predict(new)["y"], both.predict(new)["y"]
    assert again.standard_deviation == pytest.approx(told.standard_deviation, rel=1e-8)
    both.save(tmp_path / "both.caviar")
    assert cv.load(tmp_path / "both.caviar").elbo_at({}, halves[1]) == pytest.approx(both.elbo, abs=1e-8)


def test_independent_factors_after_a_shared_one_have_its_density_as_their_prior():
    """Mean field under a dense Gaussian prior: precisions are its diagonal, and means those of the exact posterior."""
    whole, data, oracle = _fitted("crossed")
    halves = [{name: value[rows] for name, value in data.items()} for rows in (slice(25), slice(25, None))]
    first = whole.model.fit(halves[0], seed=0, factors=[("mu", "a", "b")])
    both = first.update(halves[1], seed=0, factors=[], tol=1e-14, max_iter=5_000)
    log_p, mean, covariance, _ = _evidence(data, *oracle)
    P = np.linalg.inv(covariance)
    assert np.concatenate([np.ravel(both[name].mean) for name in ("mu", "a", "b")]) == pytest.approx(
        mean, abs=1e-4
    )
    precisions = np.concatenate([np.ravel(both[name].precision) for name in ("mu", "a", "b")])
    assert precisions == pytest.approx(np.diag(P), rel=1e-8)
    gap = 0.5 * (np.log(np.diag(P)).sum() - np.linalg.slogdet(P)[1])
    assert first.elbo + both.elbo == pytest.approx(log_p - gap, abs=1e-4)


def test_what_is_told_by_one_leaf_knows_the_covariances_of_its_own_variables():
    """With two leaves, one of them absent, latent rows above the other see a part of the shared factor."""
    data = _data(5)
    mu, a = cv.Normal("mu", 0.0, 1.0), cv.Normal("a", 0.0, 1.0, plates=FIRST)
    b = cv.Normal("b", 0.0, 1.0, plates=SECOND)
    u = cv.Gamma("u", 3.0, 3.0, plates=OBS)
    first = cv.Normal("first", mu + a[_rows("i")], u, plates=OBS)
    second = cv.Normal("second", mu + b[_rows("j")], 2.0, plates=OBS)
    known = {"i": data["i"], "j": data["j"]}
    given = {"first": data["y"], "second": data["y"][::-1], **known}
    posterior = cv.Model(first, second).fit(given, seed=0, factors=[("mu", "a", "b")])
    told = posterior.predict({"first": data["y"], **known})
    square = (data["y"] - posterior["mu"].mean - posterior["a"].mean[data["i"]]) ** 2
    draws = posterior.sample(200_000, seed=0)
    own = np.var(draws["mu"][:, None] + draws["a"], axis=0)[data["i"]]
    assert told["u"].rate == pytest.approx(3 + (square + own) / 2, rel=2e-3)
    assert told["second"].standard_deviation.shape == (N,)


@BOTH_WAYS
@pytest.mark.parametrize("case", ["crossed", "regression and slopes"])
def test_linear_response_has_the_covariances_of_the_exact_posterior(case):
    posterior, data, oracle = _fitted(case)
    _, _, covariance, _ = _evidence(data, *oracle)
    response, start, places = posterior.linear_response(data), 0, {}
    for name, design in oracle[0].items():
        places[name] = slice(start, start + design.shape[1])
        start += design.shape[1]
    new = {name: value for name, value in data.items() if name != "y"}
    told, again = posterior.predict(new)["y"], response.predict(new)["y"]
    # what the shared factor has, and what linear response has, is the same and counts once
    assert again.standard_deviation == pytest.approx(told.standard_deviation, rel=1e-8)
    for one, rows in places.items():
        assert np.ravel(response.sd(one)) == pytest.approx(np.sqrt(np.diag(covariance)[rows]), rel=1e-8)
        for other, columns in places.items():
            found = np.reshape(response.covariance(one, other), covariance[rows, columns].shape)
            assert found == pytest.approx(covariance[rows, columns], abs=1e-9)


def test_linear_response_of_learnt_precisions_is_that_of_refits():
    """The derivative of every mean by the prior of the level, between a shared factor and independent ones."""
    data = _data(1)
    data.pop("X")
    groups = [("mu", "a", "b")]

    def model(level, rate):
        mu = cv.Normal("mu", level, 0.5)
        tau, precision = cv.Gamma("tau", 2.0, rate), cv.Gamma("precision", 2.0, 1.0)
        a, b = cv.Normal("a", mu, precision, plates=FIRST), cv.Normal("b", 0.0, 1.0, plates=SECOND)
        leaf = cv.Normal("y", a[_rows("i")] + b[_rows("j")], tau, plates=OBS)
        return cv.Model(leaf).fit(data, seed=0, factors=groups, tol=1e-15, max_iter=3_000)

    names, step = ("mu", "a", "b", "tau", "precision"), 1e-2
    response = model(1.0, 1.0).linear_response(data)
    for prior, at in (
        ("mu.mean", lambda x: model(1.0 + x, 1.0)),
        ("tau.rate", lambda x: model(1.0, 1.0 + x)),
    ):
        ends = [at(sign * step) for sign in (1, -1)]
        for name in names:
            slope = (ends[0][name].mean - ends[1][name].mean) / (2 * step)
            assert response.sensitivity(name)[prior] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_a_shared_factor_of_many_statistics_takes_no_rows_that_depend_on_others():
    rng = np.random.default_rng(0)
    first, second = cv.Plate("first", 60), cv.Plate("second", 60)
    mu, a = cv.Normal("mu", 0.0, 1.0), cv.Normal("a", 0.0, 1.0, plates=first)
    b = cv.Normal("b", 0.0, 1.0, plates=second)
    weight = cv.Gamma("weight", 2.0, 2.0, plates=OBS)
    leaf = cv.Normal("y", mu + a[_rows("i")] + b[_rows("j")], weight * cv.Gamma("tau", 2, 2), plates=OBS)
    i, j = rng.integers(60, size=(2, 2_500))
    data = {"i": i, "j": j, "y": rng.normal(size=2_500)}
    posterior = cv.Model(leaf).fit(data, seed=0, factors=[("mu", "a", "b")])
    assert posterior.uncertainty == "mean_field"
    with pytest.raises(
        cv.ModelError, match="takes no hidden variables of the rows that depend on other variables"
    ):
        posterior.linear_response(data)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("link", ["bound", "expectation", "probit"])
def test_linear_response_of_a_large_shared_factor_beside_binary_outcomes_is_that_of_a_small_one(
    link, monkeypatch
):
    """Rows are eliminated with the factor by conjugate gradients, and by the matrix of everything."""
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 9, 300), rng.integers(0, 6, 300)
    log_odds = rng.normal(size=9)[i] + rng.normal(size=6)[j]
    data = {"i": i, "j": j, "y": (rng.random(300) < 1 / (1 + np.exp(-log_odds))).astype(float)}
    a = cv.Normal("a", 0, cv.Gamma("of_a", 2, 2), plates=cv.Plate("first", 10))
    b = cv.Normal("b", 0, cv.Gamma("of_b", 2, 2), plates=cv.Plate("second", 6))
    eta = cv.Normal("mu", 0, 0.1) + a[_rows("i")] + b[_rows("j")]
    probability = cv.probit(eta) if link == "probit" else cv.logistic(eta, method=link)
    posterior = cv.Model(cv.Bernoulli("y", probability, plates=OBS)).fit(data, tol=1e-13)
    found = []
    for most in (2_000, 0):
        monkeypatch.setattr("caviar.engine.response.operator.MOST_OF_SHARED", most)
        response = posterior.linear_response(data)
        sds = [np.ravel(response.sd(name)) for name in ("mu", "a", "b", "of_a", "of_b")]
        crossed = [np.ravel(response.covariance("a", name)) for name in ("mu", "a", "b", "of_a", "of_b")]
        found.append(np.concatenate([*sds, *crossed]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-8)
    assert response.smallest_eigenvalue > 0
    with pytest.raises(cv.ModelError, match="the determinant of linear response is not formed"):
        _ = response.log_determinant
    # evidence needs it, and is told so before the covariances of all statistics are computed
    with monkeypatch.context() as patched:
        patched.setattr("caviar.engine.response.shared.SharedResponse.along", None)
        assert posterior.evidence(data).method == "elbo"
        with pytest.raises(cv.ModelError, match="the determinant of linear response is not formed"):
            posterior.evidence(data, method="second_order")
    monkeypatch.setattr("caviar.engine.response.shared._MOST_ASKED", 5)
    assert set(response.widths().sds) == {"mu", "of_a", "of_b"}
    with pytest.raises(cv.ModelError, match="tells at most 5 entries"):
        response.sd("a")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("n_groups", [9, 11])
def test_linear_response_of_a_shared_factor_of_many_statistics_is_that_of_few(n_groups, monkeypatch):
    """Along what others say to it, and with a dense root; groups without rows change neither."""
    rng = np.random.default_rng(3)
    i, j = rng.integers(0, 9, 80), rng.integers(0, 6, 80)
    data = {"i": i, "j": j, "y": rng.normal(size=80) + rng.normal(size=9)[i] + rng.normal(size=6)[j]}

    def fitted(n):
        a = cv.Normal("a", 0, cv.Gamma("of_a", 2, 2), plates=cv.Plate("first", n))
        slopes = cv.MultivariateNormal(
            "b", np.zeros(2), cv.Wishart("of_b", 4, np.eye(2)), plates=cv.Plate("second", 6)
        )
        x = cv.Constant("x", np.column_stack([np.ones(80), np.linspace(-1, 1, 80)]), plates=OBS)
        mean = cv.Normal("mu", 0, 0.1) + a[_rows("i")] + cv.dot(x, slopes[_rows("j")])
        return cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 2, 2), plates=OBS)).fit(data, tol=1e-13)

    found = []
    for n, most in ((9, 2_000), (n_groups, 2_000), (n_groups, 0)):
        monkeypatch.setattr("caviar.engine.response.operator.MOST_OF_SHARED", most)
        response = fitted(n).linear_response(data)
        sds = [np.ravel(response.sd(name))[:9] for name in ("mu", "a", "b", "of_a", "of_b", "tau")]
        crossed = [
            np.ravel(response.covariance("mu", name))[:9] for name in ("a", "b", "of_a", "of_b", "tau")
        ]
        figures = [[response.smallest_eigenvalue, response.log_determinant]]
        found.append(np.concatenate([*sds, *crossed, *figures]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-6, atol=1e-8)


def test_a_shared_factor_beside_a_hidden_label_and_products():
    """Fits that look for saddle points have shared factors too: their ELBO never falls, and is not lower."""
    data = _data(6)
    data["y"] = data["y"] + np.where(np.arange(N) % 2, 6.0, 0.0)
    mu, a = cv.Normal("mu", 0.0, 0.1), cv.Normal("a", 0.0, 1.0, plates=FIRST)
    z = cv.Categorical("z", np.full(2, 0.5), plates=OBS)
    c = cv.Normal("c", 0.0, 0.1, plates=cv.Plate("component", 2))
    model = cv.Model(cv.Normal("y", mu + c[z] + a[_rows("i")], cv.Gamma("tau", 2.0, 2.0), plates=OBS))
    given = {"y": data["y"], "i": data["i"]}
    shared = model.fit(given, seed=0, factors=[("mu", "a")], tol=1e-10)
    assert np.diff(shared.elbo_trace).min() > -1e-9
    assert shared.elbo > model.fit(given, seed=0, tol=1e-10, factors="apart").elbo
    assert model.fit(given, seed=0, tol=1e-10).elbo == shared.elbo
    all_of_them = model.fit(given, seed=0, tol=1e-10, factors=[("mu", "c", "a")])
    assert np.diff(all_of_them.elbo_trace).min() > -1e-9
    assert all_of_them.elbo > shared.elbo


def test_what_a_hidden_label_chooses_shares_a_factor_as_one_vector_does():
    """A line for each component, as two numbers and as a vector: the same factors, from anywhere on the axis of x."""
    rng, component = np.random.default_rng(0), cv.Plate("component", 2)
    x, z = rng.normal(5.0, 2.0, size=N), rng.random(N) < 0.4
    y = np.where(z, 3.0 + x, -3.0 - 0.5 * x) + 0.5 * rng.normal(size=N)

    def fitted(line, data, **how):
        label = cv.Categorical("z", cv.Dirichlet("shares", [1.0, 1.0]), plates=OBS)
        model = cv.Model(cv.Normal("y", line(label), cv.Gamma("tau", 1, 1), plates=OBS))
        return model.fit({"y": y, **data}, seed=0, tol=1e-12, **how)

    def of_numbers(label):
        level, slope = (cv.Normal(name, 0, 0.01, plates=component) for name in ("level", "slope"))
        return level[label] + slope[label] * cv.Data("x", plates=OBS)

    def of_vectors(label):
        both = cv.MultivariateNormal("both", np.zeros(2), 0.01 * np.eye(2), plates=component)
        return cv.dot(both[label], cv.Data("columns", plates=OBS))

    numbers = fitted(of_numbers, {"x": x}, factors=[("level", "slope")])
    vector = fitted(of_vectors, {"columns": np.column_stack([np.ones(N), x])})
    assert numbers.elbo == pytest.approx(vector.elbo, abs=1e-7)
    order = np.argsort(numbers.mean("slope")), np.argsort(vector.mean("both")[:, 1])
    for place, name in enumerate(("level", "slope")):
        for figure in ("mean", "sd"):
            own, other = getattr(numbers, figure)(name), getattr(vector, figure)("both")[:, place]
            np.testing.assert_allclose(own[order[0]], other[order[1]], rtol=1e-4)
    new = np.array([1.0, 8.0])
    # by the factors: weighted draws of two fits differ by chance
    told = fitted(of_numbers, {"x": x}, factors=[("level", "slope")], uncertainty="mean_field").predict(
        {"x": new}
    )["y"]
    again = fitted(
        of_vectors, {"columns": np.column_stack([np.ones(N), x])}, uncertainty="mean_field"
    ).predict({"columns": np.column_stack([np.ones(2), new])})["y"]
    np.testing.assert_allclose(told.mean, again.mean, rtol=1e-5)
    np.testing.assert_allclose(told.standard_deviation, again.standard_deviation, rtol=1e-5)
    # independent factors end lower, and further so the further x is from 0
    assert fitted(of_numbers, {"x": x}).elbo < numbers.elbo - 1.0


def test_a_variable_of_a_shared_factor_has_no_other_one():
    posterior, data, _ = _fitted("crossed")
    with pytest.raises(cv.ModelError, match="'a' has no separate factor: mu, a, b share one"):
        posterior.elbo_at({"a": cv.families.Normal(posterior["a"].mean, 1.0)}, data)
    # its marginal is what it has
    assert posterior.elbo_at({name: posterior[name] for name in posterior}, data) == pytest.approx(
        posterior.elbo, rel=1e-12
    )
    assert list(posterior) == ["mu", "a", "b"]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("case", CASES)
def test_by_default_what_is_added_up_shares_a_factor(case, tmp_path):
    """So the ELBO is the exact evidence; `update` and files keep that, and fits with independent factors as well."""
    shared, data, oracle = _fitted(case)
    posterior = shared.model.fit(data, seed=0)
    assert posterior.elbo == pytest.approx(_evidence(data, *oracle)[0], abs=1e-9)
    posterior.save(tmp_path / "shared.caviar")
    assert cv.load(tmp_path / "shared.caviar").update(data).elbo == pytest.approx(
        shared.update(data).elbo, rel=1e-12
    )
    apart = shared.model.fit(data, seed=0, factors="apart")
    assert apart.elbo < posterior.elbo - 1e-3
    assert apart.update(data).elbo == pytest.approx(apart.update(data, factors="apart").elbo, rel=1e-12)


def test_what_is_multiplied_with_each_other_keeps_its_own_factor_and_the_rest_shares_one():
    """A table with effects of rows and columns, and a product of factors of both."""
    rng = np.random.default_rng(0)
    data = {"y": rng.normal(size=60), "i": rng.integers(7, size=60), "j": rng.integers(5, size=60)}
    i, j = _rows("i"), _rows("j")
    u = cv.MultivariateNormal("u", np.zeros(2), np.eye(2), plates=FIRST)
    v = cv.MultivariateNormal("v", np.zeros(2), np.eye(2), plates=SECOND)
    mu = cv.Normal("mu", 0.0, 1.0)
    a, b = cv.Normal("a", 0.0, 1.0, plates=FIRST), cv.Normal("b", 0.0, 1.0, plates=SECOND)
    model = cv.Model(cv.Normal("y", mu + a[i] + b[j] + cv.dot(u[i], v[j]), 1.0, plates=OBS))
    posterior = model.fit(data, seed=0)
    assert list(posterior._shared.by_name) == ["mu, a, b"]
    assert posterior.elbo > model.fit(data, seed=0, factors="apart").elbo


def test_loadings_of_hidden_values_keep_their_own_factors():
    x = np.random.default_rng(0).normal(size=(20, 3))
    assert not cv.models.factor_analysis(3, 1).fit({"x": x}, seed=0)._shared.by_name


def test_a_summary_says_what_is_too_large_to_be_shared_by_default(tmp_path):
    rng = np.random.default_rng(0)
    sizes = {"i": 260, "j": 240}
    data = {name: rng.integers(size, size=600) for name, size in sizes.items()} | {"y": rng.normal(size=600)}
    mu = cv.Normal("mu", 0.0, 1.0)
    a = cv.Normal("a", 0.0, 1.0, plates=cv.Plate("many", 260))
    b = cv.Normal("b", 0.0, 1.0, plates=cv.Plate("other", 240))
    model = cv.Model(cv.Normal("y", mu + a[_rows("i")] + b[_rows("j")], 2.0, plates=OBS))
    posterior = model.fit(data, seed=0)
    told = (
        "'mu', 'a', 'b' have independent factors. One factor would need a dense matrix of 241 rows; "
        "factors=[('mu', 'a', 'b')] makes them share one."
    )
    assert str(posterior.summary()).endswith(told)
    posterior.save(tmp_path / "large.caviar")
    assert cv.load(tmp_path / "large.caviar").summary().on_factors == told
    assert not model.fit(data, seed=0, factors=[("mu", "a", "b")]).summary().on_factors


def test_the_density_of_a_shared_factor_is_a_normal_of_all_or_of_what_counts():
    data = _data(2)
    data.pop("X")
    posterior = _gaussian().fit(data, seed=0, factors=[("mu", "a", "b")])
    (shared,) = posterior._shared.by_name.values()
    values = shared.sample(3, seed=1)
    numbers = np.concatenate([values[name].reshape(3, -1) for name in shared.names], axis=1)
    times = shared.precision.pattern.times
    unit = np.eye(numbers.shape[1])
    precision = [times(shared.precision.blocks, shared.precision.entries, own) for own in unit]
    spread, counted = np.linalg.inv(precision), np.ones(len(unit), dtype=bool)
    counted[[1, 3]] = False
    for own, given in ((np.ones_like(counted), None), (counted, counted)):
        exact = multivariate_normal.logpdf(numbers[:, own], shared.mean_of_all[own], spread[np.ix_(own, own)])
        np.testing.assert_allclose(shared.log_density(values, given), exact, atol=1e-9)
