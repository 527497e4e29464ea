"""Labels of few rows, enumerated: weights to second order sum to one, and components without rows are told."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from thinning import amount

import caviar as cv

ALPHA = np.array([0.5, 1.0, 2.0])
MEANS = np.array([0.0, 3.0, 7.0])


def enumerated(y, alpha, means, precision):
    """Return log p(y, labels) of all labels, with unit variances and means integrated out, and the rows of each."""
    labels = np.array(list(itertools.product(range(len(alpha)), repeat=len(y))))
    own = np.eye(len(alpha))[labels]
    n, total, squares = own.sum(axis=1), y @ own, (y**2) @ own
    before, after = precision * means, precision + n
    logs = (
        0.5 * (np.log(precision) - np.log(after) + (before + total) ** 2 / after)
        - 0.5 * (precision * means**2 + squares + n * np.log(2 * np.pi))
    ).sum(axis=1)
    logs += (
        gammaln(alpha.sum())
        - gammaln(alpha.sum() + len(y))
        + (gammaln(alpha + n) - gammaln(alpha)).sum(axis=1)
    )
    return logs, n


def fitted(y, alpha, means, precision, **more):
    obs, k = cv.Plate("obs"), cv.Plate("k", len(alpha))
    z = cv.Categorical("z", cv.Dirichlet("w", alpha), plates=obs)
    mu = cv.Normal("mu", means, precision, plates=k)
    return cv.Model(cv.Normal("y", mu[z], 1.0, plates=obs)).fit({"y": y}, seed=0, tol=1e-10, **more)


def test_weights_to_second_order_sum_to_one_and_are_no_worse():
    """They summed to 0.975 to 1; mean field, whose weights sum to one, is off by a quarter more."""
    off = []
    for seed in range(amount(4, 12)):
        rng = np.random.default_rng(seed)
        y = rng.normal(MEANS[rng.integers(0, 3, 9)])
        logs, n = enumerated(y, ALPHA, MEANS, 1.0)
        exact = np.exp(logs - logsumexp(logs)) @ ((ALPHA + n) / (ALPHA.sum() + len(y)))
        posterior = fitted(y, ALPHA, MEANS, 1.0, uncertainty="second_order")
        shown = np.array([row.mean for row in posterior.summary().rows if row.variable == "w"])
        assert shown.sum() == pytest.approx(1.0, abs=1e-12)
        assert (shown > 0).all()
        off.append((np.abs(shown - exact).sum(), np.abs(posterior["w"].mean - exact).sum()))
    second, mean_field = np.mean(off, axis=0)
    assert second < 0.9 * mean_field


def test_a_component_without_rows_is_told_to_hide_more_than_its_orders():
    rng = np.random.default_rng(0)
    y = np.append(rng.normal(0, 1, 4), rng.normal(6, 1, 4))
    told = {}
    for n_components in (2, 3):
        alpha, means = np.ones(n_components), np.zeros(n_components)
        posterior = fitted(y, alpha, means, 0.04)
        found = posterior.evidence({"y": y}, method="second_order")
        logs, _ = enumerated(y, alpha, means, 0.04)
        told[n_components] = found, logsumexp(logs) - found.value - found.log_orders
    found, left = told[2]
    assert abs(left) < 0.02
    assert found.empty == ()
    assert "no rows" not in found.remark
    found, left = told[3]
    assert left > 0.4
    assert found.empty == (("z", 1),)
    assert found.remark.endswith("labels that give it rows are left out: more than log K! is missing then.")
    assert replace(found, empty=(("z", 2),)).remark.endswith("log K! may be too much or too little.")


def test_a_state_without_rows_is_told():
    rng = np.random.default_rng(1)
    y = np.repeat([0.0, 8.0, 0.0, 8.0], 15) + rng.normal(0, 0.2, 60)
    step, k = cv.Plate("step"), cv.Plate("k", 3)
    transition = cv.Dirichlet("transition", np.ones(3), plates=k)
    s = cv.MarkovChain("s", cv.Dirichlet("initial", np.ones(3)), transition, along=step)
    mu = cv.Normal("mu", 0, 0.04, plates=k)
    posterior = cv.Model(cv.Normal("y", mu[s], 1.0, plates=step)).fit({"y": y}, seed=0)
    used = len(np.unique(posterior.local({"y": y})["s"].probabilities.argmax(axis=1)))
    assert used == 2
    assert posterior.evidence({"y": y}, method="elbo").empty == (("s", 1),)
