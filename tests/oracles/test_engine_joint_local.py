"""A label and a true value under known noise: one joint factor q(z) q(t | z) a row, or two separate ones."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import caviar as cv

WEIGHTS = np.array([0.2, 0.5, 0.3])
N, D = 40, 2


def _definite(rng, *batch, d=D):
    a = rng.normal(size=(*batch, d, d))
    return a @ np.swapaxes(a, -1, -2) + 0.4 * np.eye(d)


def _vectors(seed, shift=0.0):
    """Return known means and precisions, the rows and the precision of the noise of each."""
    rng = np.random.default_rng(seed)
    means, precisions, noise = rng.normal(0, 3, (3, D)) + shift, _definite(rng, 3), _definite(rng, N)
    rows = means[rng.integers(0, 3, N)] + rng.normal(0, 1.5, (N, D))
    return means, precisions, rows, noise


def _known_globals(means, precisions):
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    mean = cv.Constant("mean", means, plates=component)
    precision = cv.Constant("precision", precisions, plates=component)
    z = cv.Categorical("z", WEIGHTS, plates=obs)
    t = cv.MultivariateNormal("t", mean[z], precision[z], plates=obs)
    return cv.Model(cv.MultivariateNormal("x", t, cv.Data("noise_precision", plates=obs), plates=obs))


def _log_joint(means, precisions, rows, noise):
    """Return log w_k + log N(x_n; mu_k, Lambda_k^-1 + noise_n^-1), (N, K), by SciPy."""
    return np.array(
        [
            [
                np.log(w) + multivariate_normal.logpdf(x, m, np.linalg.inv(precision) + np.linalg.inv(s))
                for w, m, precision in zip(WEIGHTS, means, precisions, strict=True)
            ]
            for x, s in zip(rows, noise, strict=True)
        ]
    )


@pytest.mark.parametrize(("seed", "shift"), [(0, 0.0), (1, 0.0), (2, 1e5)])
def test_joint_factor_of_vectors_is_exact(seed, shift):
    """With known means and precisions the ELBO is the log evidence, and q(z, t) the exact posterior, of every row."""
    means, precisions, rows, noise = _vectors(seed, shift)
    data = {"x": rows, "noise_precision": noise}
    posterior = _known_globals(means, precisions).fit(data)
    log_joint = _log_joint(means, precisions, rows, noise)
    assert posterior.elbo == pytest.approx(logsumexp(log_joint, axis=1).sum(), rel=1e-9)
    assert posterior.converged
    local = posterior.local(data)
    exact = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
    np.testing.assert_allclose(local["z"].probabilities, exact, rtol=1e-6, atol=1e-12)
    for n in range(N):
        for k in range(3):
            precision = precisions[k] + noise[n]
            mean = np.linalg.solve(precision, precisions[k] @ means[k] + noise[n] @ rows[n])
            np.testing.assert_allclose(local["t"].conditional.precision[n, k], precision, rtol=1e-9)
            np.testing.assert_allclose(local["t"].conditional.mean[n, k], mean, rtol=1e-8, atol=1e-9)
    mixed = np.einsum("nk,nkd->nd", local["z"].probabilities, local["t"].conditional.mean)
    np.testing.assert_allclose(local["t"].mean, mixed, rtol=1e-12)


def test_joint_factor_of_numbers_is_exact():
    """The same for numbers, with weights of the rows: the weighted sum of the rows' log evidences."""
    rng = np.random.default_rng(5)
    means, precisions, noise = rng.normal(0, 3, 3), rng.gamma(2, 1, 3), rng.gamma(2, 1, N)
    rows, sample_weight = rng.normal(0, 3, N), rng.integers(0, 4, N)
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    z = cv.Categorical("z", WEIGHTS, plates=obs)
    mean = cv.Constant("mean", means, plates=component)
    t = cv.Normal("t", mean[z], cv.Constant("precision", precisions, plates=component)[z], plates=obs)
    model = cv.Model(cv.Normal("x", t, cv.Data("noise_precision", plates=obs), plates=obs))
    data = {"x": rows, "noise_precision": noise}
    posterior = model.fit(data, sample_weight=sample_weight)
    spread = np.sqrt(1 / precisions + 1 / noise[:, None])
    log_joint = np.log(WEIGHTS) + norm.logpdf(rows[:, None], means, spread)
    assert posterior.elbo == pytest.approx(sample_weight @ logsumexp(log_joint, axis=1), rel=1e-11)
    local = posterior.local(data)
    exact = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
    np.testing.assert_allclose(local["z"].probabilities, exact, rtol=1e-9, atol=1e-12)
    precision = precisions + noise[:, None]
    np.testing.assert_allclose(local["t"].conditional.precision, precision, rtol=1e-12)
    expected = (precisions * means + (noise * rows)[:, None]) / precision
    np.testing.assert_allclose(local["t"].conditional.mean, expected, rtol=1e-9)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(5))
def test_separate_factors_are_lower(seed):
    """With `factors=[]` q(z) q(t) is a smaller family, so that its ELBO is lower; `elbo_at` finds the same locals."""
    means, precisions, rows, noise = _vectors(seed)
    data, model = {"x": rows, "noise_precision": noise}, _known_globals(means, precisions)
    joint = model.fit(data)
    separate = model.fit(data, factors=[], tol=1e-12)
    assert separate.elbo < joint.elbo - 1e-3
    assert np.all(np.diff(separate.elbo_trace) > -1e-9)
    assert separate.converged
    assert separate.elbo_at({}, data) == pytest.approx(separate.elbo, abs=1e-6)
    assert separate.elbo_terms.keys() == {"x", "z", "t"}
    assert joint.elbo_terms.keys() == {"x", "z,t"}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(3))
def test_separate_factors_are_the_literal_ones(seed):
    """With `factors=[]` the ELBO is the literal sum over rows for q(z) q(t), which are at their fixed point."""
    means, precisions, rows, noise = _vectors(seed)
    data, model = {"x": rows, "noise_precision": noise}, _known_globals(means, precisions)
    posterior = model.fit(data, factors=[], tol=1e-14, max_iter=5000)
    local = posterior.local(data)
    r, t = local["z"].probabilities, local["t"]
    total = 0.0
    for n in range(N):
        m, s = t.mean[n], np.linalg.inv(t.precision[n])
        total += 0.5 * np.linalg.slogdet(2 * np.pi * np.e * s)[1] - r[n] @ np.log(r[n])
        total += multivariate_normal.logpdf(rows[n], m, np.linalg.inv(noise[n])) - 0.5 * np.trace(
            noise[n] @ s
        )
        for k in range(3):
            prior = multivariate_normal.logpdf(m, means[k], np.linalg.inv(precisions[k]))
            total += r[n, k] * (np.log(WEIGHTS[k]) + prior - 0.5 * np.trace(precisions[k] @ s))
        precision = np.einsum("k,kij->ij", r[n], precisions) + noise[n]
        shifted = np.einsum("k,kij,kj->i", r[n], precisions, means) + noise[n] @ rows[n]
        np.testing.assert_allclose(t.precision[n], precision, rtol=1e-6)
        np.testing.assert_allclose(m, np.linalg.solve(precision, shifted), rtol=1e-6, atol=1e-6)
    assert posterior.elbo == pytest.approx(total, rel=1e-8)


def _learnt(prior_scale=2.0):
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    weights = cv.Dirichlet("weights", np.ones(3))
    mean = cv.MultivariateNormal("mean", np.zeros(D), np.eye(D) / 50, plates=component)
    precision = cv.Wishart("precision", D + 1, prior_scale * np.eye(D), plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    t = cv.MultivariateNormal("t", mean[z], precision[z], plates=obs)
    return cv.Model(cv.MultivariateNormal("x", t, cv.Data("noise_precision", plates=obs), plates=obs))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_learnt_globals_climb_with_either_factorisation(seed):
    """With the means and precisions learnt too, the ELBO rises in every pass, whether q(z, t) is one factor or two.

    At the globals where the separate factors end, the joint factor has a larger ELBO.
    """
    _, _, rows, noise = _vectors(seed)
    data = {"x": rows, "noise_precision": noise}
    # the race of starts settles but for the last digits
    joint = _learnt().fit(data, seed=0, tol=1e-12)
    separate = _learnt().fit(data, seed=0, tol=1e-12, factors=[])
    for posterior in (joint, separate):
        assert posterior.n_iter > 1
        assert np.all(np.diff(posterior.elbo_trace) > -1e-9)
        assert posterior.converged
    at_separate = joint.elbo_at({name: separate[name] for name in separate}, data)
    # equal where the scale of a row does not depend on its label
    assert at_separate >= separate.elbo - 1e-9


def test_named_factor_is_the_default_one():
    """`factors=[("z", "t")]` says what the engine chooses by itself."""
    means, precisions, rows, noise = _vectors(0)
    data, model = {"x": rows, "noise_precision": noise}, _known_globals(means, precisions)
    assert model.fit(data, factors=[("z", "t")]).elbo == model.fit(data).elbo


def test_precise_measurements_leave_the_mixture_itself():
    """As the noise vanishes the ELBO with learnt globals becomes that of the mixture of the rows themselves."""
    _, _, rows, _ = _vectors(0)
    noise = np.broadcast_to(np.eye(D) * 1e6, (N, D, D))
    labels = np.random.default_rng(0).integers(0, 3, N)
    # terms of size 1e6 per row leave the bound no more digits than that
    noisy = _learnt().fit({"x": rows, "noise_precision": noise}, init={"z": labels}, tol=1e-8)
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    mean = cv.MultivariateNormal("mean", np.zeros(D), np.eye(D) / 50, plates=component)
    precision = cv.Wishart("precision", D + 1, 2 * np.eye(D), plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=obs)
    plain = cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))
    exact = plain.fit({"x": rows}, init={"z": labels}, tol=1e-12)
    assert noisy.elbo == pytest.approx(exact.elbo, abs=1e-4)
    np.testing.assert_allclose(noisy["mean"].mean, exact["mean"].mean, atol=1e-4)


@pytest.mark.parametrize("sticks", [False, True])
def test_weights_of_a_row_are_joint_with_its_label(sticks):
    """With the rest known, q(label, weights) is exact: the weights integrate to their mean."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)

    if sticks:
        weights, mean = cv.StickBreaking("weights", 2.0, 3, plates=obs), np.array([1 / 3, 2 / 9, 4 / 9])
    else:
        weights, mean = cv.Dirichlet("weights", [1.0, 2.0, 0.5], plates=obs), np.array([1.0, 2.0, 0.5]) / 3.5
    z = cv.Categorical("z", weights, plates=obs)
    centres = cv.Constant("centres", [-1.0, 0.0, 2.0], plates=component)
    model = cv.Model(cv.Normal("x", centres[z], 1.0, plates=obs))
    x = np.array([0.5, -2.0, 1.0, 3.0])
    densities = norm(np.array([-1.0, 0.0, 2.0]), 1.0).pdf(x[:, None])
    posterior = model.fit({"x": x}, seed=0)
    assert posterior.elbo == pytest.approx(np.log(densities @ mean).sum(), rel=1e-12)
    expected = densities * mean / (densities @ mean)[:, None]
    np.testing.assert_allclose(posterior.local({"x": x})["z"].probabilities, expected, rtol=1e-12)


def test_init_of_a_joint_factor_of_each_row_is_refused_in_words_that_fit() -> None:
    obs = cv.Plate("obs")
    model = cv.Model(cv.Normal("x", cv.NormalGamma("theta", 0.0, 1.0, 2.0, 2.0, plates=obs), plates=obs))
    for value in (np.zeros(3), np.zeros((3, 2)), (np.zeros(3), np.ones(3))):
        with pytest.raises(
            cv.ParameterError, match=r"'theta', a NormalGamma with .* takes no init: .*Leave it out"
        ):
            model.fit({"x": [1.0, 2.0, 3.0]}, init={"theta": value})
