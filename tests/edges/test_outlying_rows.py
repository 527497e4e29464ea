"""Rows with precisions of their own: one row may be far from all others, and they keep all their digits."""

import warnings

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import caviar as cv

OBS = cv.Plate("obs")


def student_evidence(x, df, weights=None):
    """Return the sum of the log densities of Student's t about 0."""
    nu, weights = mp.mpf(df), np.ones(np.shape(x)) if weights is None else weights
    normaliser = mp.loggamma((nu + 1) / 2) - mp.loggamma(nu / 2) - mp.log(nu * mp.pi) / 2
    densities = [normaliser - (nu + 1) / 2 * mp.log(1 + mp.mpf(float(v)) ** 2 / nu) for v in np.ravel(x)]
    return float(mp.fsum(w * d for w, d in zip(np.ravel(weights), densities, strict=True)))


def students(df, mean=0.0):
    u = cv.Gamma("u", df / 2, df / 2, plates=OBS)
    return cv.Model(cv.Normal("x", mean, u, plates=OBS))


@pytest.mark.parametrize(
    ("df", "x"),
    [
        (3.0, [1e9, 1.0]),
        (3.0, [1.0, 1e9]),
        (3.0, [1e9, 1e9 + 5.0, 1.0, -2.0]),
        (0.5, [1e100, 1e-100]),
        (1.0, [-1e120, 3.0, 1e60, 0.0]),
        (4.0, [1e12, 2.0, -1e12]),
    ],
)
def test_one_row_far_from_the_known_mean(df, x):
    """Given its mean, each row has one factor: the ELBO is the evidence."""
    posterior = students(df).fit({"x": np.array(x)}, seed=0)
    assert_allclose(posterior.elbo, student_evidence(x, df), rtol=1e-12)


def test_one_known_mean_for_each_column():
    columns = cv.Plate("column", 3)
    mean = np.array([0.0, 1e8, -2e3])
    x = mean + np.array([[1.0, 2.0, 3.0], [1e9, -1.0, 0.5], [0.0, 1e11, -4.0]])
    u = cv.Gamma("u", 1.0, 1.0, plates=(OBS, columns))
    model = cv.Model(cv.Normal("x", cv.Constant("m", mean, plates=columns), u, plates=(OBS, columns)))
    assert_allclose(model.fit({"x": x}, seed=0).elbo, student_evidence(x - mean, 2.0), rtol=1e-12)


def test_known_precisions_of_rows():
    """A row of nearly no precision does not cost the others their digits: the evidence is a Normal's."""
    x, precision = np.array([1e12, 1.0, 2.0]), np.array([1e-24, 1.0, 4.0])
    mu = cv.Normal("mu", 0.0, 1.0)
    model = cv.Model(cv.Normal("x", mu, cv.Data("precision", plates=OBS), plates=OBS))
    total, pull = 1.0 + precision.sum(), precision @ x
    log_dets = np.log(precision).sum() - np.log(total) - 3 * np.log(2 * np.pi)
    evidence = 0.5 * (log_dets - precision @ x**2 + pull**2 / total)
    assert_allclose(model.fit({"x": x, "precision": precision}, seed=0).elbo, evidence, rtol=1e-12)


def test_weights_and_missing_rows():
    x = np.array([1e9, 1.0, np.nan, 2.0, np.nan, np.nan, np.nan])
    mu = cv.Normal("mu", 0.0, 0.01)
    model = cv.Model(cv.Normal("x", mu, cv.Gamma("u", 1.5, 1.5, plates=OBS), plates=OBS))
    missing = model.fit({"x": x}, seed=0)
    present = model.fit({"x": x[[0, 1, 3]]}, seed=0)
    weighted = model.fit({"x": x[[0, 1, 3, 1]]}, sample_weight=[1.0, 0.5, 1.0, 0.5], seed=0)
    assert_allclose([missing.elbo, weighted.elbo], present.elbo, rtol=1e-10)
    assert abs(present["mu"].mean) < 3


def location(far):
    x = np.array([0.3, -1.2, 0.8, 0.1, -0.4, 1.1, far])
    rows = cv.Gamma("u", 1.5, 1.5, plates=OBS) * cv.Gamma("t", 1, 1)
    return cv.Model(cv.Normal("x", cv.Normal("m", 0, 0.01), rows, plates=OBS)).fit(
        {"x": x}, seed=0, tol=1e-12, max_iter=5_000
    )


def mixture(far):
    x = np.random.default_rng(1).normal(size=(30, 2))
    x[5, 0] = far
    return cv.models.robust_mixture(2, 2).fit({"x": x}, seed=0, tol=1e-12, max_iter=5_000)


@pytest.mark.parametrize(("fitted", "tail"), [(location, 3), (mixture, None)])
def test_the_tail_of_an_outlier_is_a_power(fitted, tail):
    """Far out, a row adds the tail of Student's t: -(df + 1) log of its distance, and moves nothing else."""
    near, far, farther = fitted(1e7), fitted(1e9), fitted(1e11)
    step, next_step = near.elbo - far.elbo, far.elbo - farther.elbo
    assert_allclose(step, next_step, rtol=1e-6)
    if tail is not None:
        assert_allclose(step, (tail + 1) * np.log(100.0), rtol=1e-6)
        assert_allclose(near["m"].mean, farther["m"].mean, atol=1e-5)


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical", "tied"])
@pytest.mark.parametrize("kind", [cv.GaussianMixture, cv.BayesianGaussianMixture])
def test_rows_whose_squares_are_beyond_a_double_are_refused_in_words(kind, covariance_type):
    """The message was of a Categorical with probability NaN, after nine warnings."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(40, 2)), rng.normal(6, 1, (40, 2))])
    mixture = kind(2, covariance_type=covariance_type, random_state=0).fit(rows)
    for far in (1e160, -1e200, 1e305):
        for method in (mixture.predict, mixture.predict_proba):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(cv.DataError, match="whose squares are beyond a double; divide the data"):
                    method([[0.0, 1.0], [far, 1.0]])
    # a log density needs no squares of data, unless it is beyond a double itself
    density = mixture.score_samples([[0.0, 1.0], [1e200, 1.0]])
    assert density[1] < -1e3


@pytest.mark.thinned(2)
@pytest.mark.parametrize("far", [1e17, -1e100])
def test_rows_beside_one_far_away_keep_their_labels(far):
    """The mean of the rows was the point that components were measured from: far away it left them no digits."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-3, 1, 50), rng.normal(3, 1, 50)])
    near = np.array([1.0, -0.5])
    known = cv.KnownVarianceMixture(2, random_state=0).fit(x)
    shares = np.exp(-0.5 * (near[:, None] - known.means_) ** 2 - 0.5 * known.mean_variances_)
    expected = shares / shares.sum(axis=1, keepdims=True)
    found = known.predict_proba(np.append(near, far))
    assert_allclose(found[:2], expected, rtol=1e-9)
    assert_allclose(
        found[2], known.means_ == (known.means_.max() if far > 0 else known.means_.min()), atol=1e-99
    )
    two = np.stack([x, rng.normal(size=100)], axis=1)
    rows = np.array([[1.0, 0.3], [-0.5, 0.0], [far, 0.0]])
    for fitted in (
        cv.models.normal_wishart_mixture(2, 2).fit({"x": two}, seed=0),
        cv.models.tied_mixture(2, 2).fit({"x": two}, seed=0),
    ):
        together, alone = (fitted.local({"x": own})["z"].probabilities for own in (rows, rows[:2]))
        assert_allclose(together[:2], alone, rtol=1e-9)
    states = cv.HiddenMarkovModel(2, random_state=0).fit(two)
    together = states.predict_proba(rows, lengths=[1, 1, 1])[:2]
    assert_allclose(together, states.predict_proba(rows[:2], lengths=[1, 1]), rtol=1e-9)
