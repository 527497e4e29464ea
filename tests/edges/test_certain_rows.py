"""Hidden variables of rows with priors worth millions of rows: the ELBO keeps the digits of what the rows say."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import caviar as cv

OBS = cv.Plate("obs")
X = np.array([0.3, -1.2, 2.5, 0.1, -0.4])


def t_density(x, df, mean=0.0, scale=1.0):
    """Return the log density of Student's t, which is nearly a Normal's, to 50 digits."""
    with mp.workdps(50):
        nu, z = mp.mpf(df), (mp.mpf(float(x)) - mean) / scale
        normaliser = mp.loggamma((nu + 1) / 2) - mp.loggamma(nu / 2) - mp.log(nu * mp.pi) / 2 - mp.log(scale)
        return normaliser - (nu + 1) / 2 * mp.log(1 + z * z / nu)


def student(df, plates=OBS):
    return cv.Model(cv.Normal("x", 0.0, cv.Gamma("u", df / 2, df / 2, plates=plates), plates=plates))


@pytest.mark.parametrize("df", [1e5, 1e8, 1e10, 1e12, 1e15])
def test_students_t_becomes_a_normal(df):
    posterior = student(df).fit({"x": X}, seed=0)
    assert_allclose(posterior.elbo, float(mp.fsum(t_density(x, df) for x in X)), rtol=1e-13)
    assert_allclose(sum(posterior.elbo_terms.values()), posterior.elbo, rtol=1e-13)


def test_weights_missing_entries_and_columns():
    columns = cv.Plate("column", 2)
    df = np.array([1e10, 3.0])
    shape = cv.Constant("half", df / 2, plates=columns)
    u = cv.Gamma("u", shape, shape, plates=(columns, OBS))
    model = cv.Model(cv.Normal("x", 0.0, u, plates=(columns, OBS)))
    x = np.stack([X, X[::-1] * 3])
    x[0, 1] = np.nan
    weights = np.array([1.0, 0.0, 2.0, 0.5, 1.0])
    expected = mp.fsum(
        w * t_density(x[j, n], df[j]) for j in range(2) for n, w in enumerate(weights) if np.isfinite(x[j, n])
    )
    for schedule in ("batch", cv.Incremental()):
        elbo = model.fit({"x": x}, sample_weight=weights, seed=0, schedule=schedule).elbo
        assert_allclose(elbo, float(expected), rtol=1e-13)


def test_scales_that_a_label_chooses_among():
    """Scales and the label have one factor: with all else known the ELBO is the evidence of a mixture of t."""
    df, means, weights, scales = 1e8, [-1.0, 2.0], [0.3, 0.7], [0.5, 2.0]
    k = cv.Plate("k", 2)
    z = cv.Categorical("z", weights, plates=OBS)
    u = cv.Gamma("u", df / 2, df / 2, plates=OBS)
    precision = cv.Constant("t", 1 / np.square(scales), plates=k)
    model = cv.Model(cv.Normal("x", cv.Constant("m", means, plates=k)[z], u * precision[z], plates=OBS))
    evidence = mp.fsum(
        mp.log(
            mp.fsum(
                w * mp.exp(t_density(x, df, m, s)) for w, m, s in zip(weights, means, scales, strict=True)
            )
        )
        for x in X
    )
    assert_allclose(model.fit({"x": X}, seed=0).elbo, float(evidence), rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(2e12, 1e12), (3.0, 1e9), (1e5, 1e5)])
def test_hidden_probabilities_of_rows(a, b):
    p = cv.Beta("p", a, b, plates=OBS)
    x = np.array([1, 0, 0, 1, 1])
    expected = np.sum(np.log(np.where(x == 1, a, b) / (a + b)))
    assert_allclose(
        cv.Model(cv.Bernoulli("x", p, plates=OBS)).fit({"x": x}, seed=0).elbo, expected, rtol=1e-13
    )


def test_hidden_rates_of_rows():
    """A count of its own rate each: negative binomial."""
    a = b = 1e11
    counts = np.array([0, 3, 17])
    with mp.workdps(60):
        expected = mp.fsum(
            mp.loggamma(a + int(n))
            - mp.loggamma(a)
            - mp.loggamma(int(n) + 1)
            + a * mp.log(mp.mpf(b) / (b + 1))
            - int(n) * mp.log(mp.mpf(b) + 1)
            for n in counts
        )
    model = cv.Model(cv.Poisson("x", cv.Gamma("r", a, b, plates=OBS), plates=OBS))
    assert_allclose(model.fit({"x": counts}, seed=0).elbo, float(expected), rtol=1e-13)


def test_hidden_proportions_of_rows():
    document = cv.Plate("document")
    words, own = np.array([[2, 0, 1], [0, 3, 1]]), 1e9
    model = cv.Model(
        cv.Multinomial("x", None, cv.Dirichlet("p", np.full(3, own), plates=document), plates=document)
    )
    with mp.workdps(60):
        expected = mp.mpf(0)
        for n in words:
            coefficient = mp.factorial(int(n.sum())) / mp.fprod(mp.factorial(int(v)) for v in n)
            rising = mp.fprod(mp.rf(mp.mpf(own), int(v)) for v in n)
            expected += mp.log(coefficient * rising / mp.rf(mp.mpf(3 * own), int(n.sum())))
    assert_allclose(model.fit({"x": words}, seed=0).elbo, float(expected), rtol=1e-13)


def test_a_mixture_of_certain_scales_is_one_of_normals():
    """With 1e12 degrees of freedom: not exact, but the bound of the mixture of Normals to all digits that it shows."""
    x = np.random.default_rng(0).normal(size=(40, 1)) + np.repeat([[0.0], [6.0]], 20, axis=0)
    k = cv.Plate("k", 2)

    def elbo(scaled):
        z = cv.Categorical("z", cv.Dirichlet("w", [1.0, 1.0]), plates=OBS)
        mean, t = cv.Normal("m", 0, 0.1, plates=k), cv.Gamma("t", 1, 1, plates=k)
        precision = cv.Gamma("u", 5e11, 5e11, plates=OBS) * t[z] if scaled else t[z]
        leaf = cv.Normal("x", mean[z], precision, plates=OBS)
        return cv.Model(leaf).fit({"x": x[:, 0]}, seed=0, tol=1e-12, max_iter=2_000).elbo

    assert_allclose(elbo(scaled=True), elbo(scaled=False), rtol=1e-8)
