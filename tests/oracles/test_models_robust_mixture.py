"""The robust mixture: its ELBO is a bound, and its joint factor of label and scale is the exact conditional."""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t, norm, t

import caviar as cv
from caviar import models


def test_elbo_is_below_the_evidence_by_enumeration() -> None:
    """Three rows in one dimension, known precision and weights: all labels by enumeration, both means by quadrature."""
    x, nu = np.array([-1.0, 1.5, 4.0]), 3.0
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    mean = cv.Normal("mean", 0.0, 0.25, plates=component)
    z = cv.Categorical("z", [0.3, 0.7], plates=obs)
    u = cv.Gamma("u", nu / 2, nu / 2, plates=obs)
    model = cv.Model(cv.Normal("x", mean[z], 2.0 * u, plates=obs))
    joint = model.fit({"x": x}, seed=0, tol=1e-13)
    apart = model.fit({"x": x}, seed=0, tol=1e-13, factors=[])
    grid = np.linspace(-20, 20, 8001)
    prior = norm(0, 2).logpdf(grid)
    rows = t(nu, 0, np.sqrt(0.5)).logpdf(x[:, None] - grid)
    total = []
    for labels in product(range(2), repeat=3):
        log_p = float(np.log([0.3, 0.7])[list(labels)].sum())
        for k in range(2):
            chosen = rows[[n for n in range(3) if labels[n] == k]].sum(axis=0)
            log_p += np.log(np.exp(prior + chosen).sum() * 0.005)
        total.append(log_p)
    evidence = logsumexp(total)
    assert evidence - 2.0 < joint.elbo < evidence - 1e-3
    assert apart.elbo < joint.elbo


def test_rows_are_student_t_given_globals() -> None:
    """With points for all globals the rows are integrated out exactly: a mixture of Student-t densities."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(7, 2)) * 3
    model = models.robust_mixture(2, 2, scale_df=3.0)
    means = np.array([[0.5, -1.0], [2.0, 1.0]])
    precisions = np.array([[[2.0, 0.3], [0.3, 1.0]], [[0.5, -0.1], [-0.1, 1.5]]])
    given = {"weights": [0.4, 0.6], "mean": means, "precision": precisions}
    data = {"x": x}
    point = model.fit(data, init=given, point=list(given), max_iter=0)
    without = model.fit({"x": x[:1]}, init=given, point=list(given), max_iter=0)
    # the densities of the globals are the same in both, so that their difference is that of the other rows
    rows = np.array(
        [
            np.log(w) + multivariate_t(m, np.linalg.inv(L), df=3.0).logpdf(x)
            for w, m, L in zip([0.4, 0.6], means, precisions, strict=True)
        ]
    )
    exact = logsumexp(rows, axis=0)
    assert point.elbo - without.elbo == pytest.approx(exact[1:].sum(), rel=1e-12)
    np.testing.assert_allclose(point.local(data)["z"].probabilities.T, np.exp(rows - exact), rtol=1e-9)


def test_row_far_out_moves_a_robust_mixture_less() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 8])
    labels = np.repeat([0, 1], 50)
    x[0] = [60.0, -60.0]
    robust = models.robust_mixture(2, 2).fit({"x": x}, init={"z": labels})
    plain = models.gaussian_mixture(2, 2).fit({"x": x}, init={"z": labels})
    assert np.abs(robust["mean"].mean - [[0, 0], [8, 8]]).max() < 0.5
    assert np.abs(plain["mean"].mean - [[0, 0], [8, 8]]).max() > 1.0
