"""Rows of known groups and rows with a known mean keep their digits, wherever they are: the ELBO is the evidence."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import caviar as cv

OBS = cv.Plate("obs")
PRIOR = (0.0, 0.1, 1.5, 0.7)
"""Mean, rows that it is worth, shape and rate."""

SCALES = np.array([0.3, -1.2, 0.8, 0.1, -0.4, 1.1, 2.0, -0.7, 0.6]) * [
    1e-9,
    1e-9,
    1,
    1,
    1,
    1e9,
    1e9,
    1e-9,
    1e9,
]
PLACES = np.array([2.0**40, 2.0**40 + 1, 5, 6, 7, 0, 0, 2.0**40 + 7, 9])
OFFSETS = np.array([1e9, 1e9 + 1, -1e9, -1e9 + 2, -1e9, 3, 4, 1e9 + 3, 5])
GROUPS = np.array([0, 0, 2, 2, 2, 5, 5, 0, 5])


@pytest.fixture(autouse=True)
def _many_digits():
    with mp.workdps(80):
        yield


def exact(value):
    return mp.mpf(float(value))


def evidence_of(x, prior=PRIOR, weights=None):
    """Return the log evidence of Normals with a Normal-Gamma prior."""
    m, k, a, b = map(exact, prior)
    values = [exact(v) for v in x]
    w = [mp.mpf(1)] * len(values) if weights is None else [exact(v) for v in weights]
    n = mp.fsum(w)
    if not n:
        return mp.mpf(0)
    mean = mp.fsum(u * v for u, v in zip(w, values, strict=True)) / n
    squares = mp.fsum(u * (v - mean) ** 2 for u, v in zip(w, values, strict=True))
    rate = b + squares / 2 + k * n / (k + n) * (mean - m) ** 2 / 2
    gammas = mp.loggamma(a + n / 2) - mp.loggamma(a) + a * mp.log(b) - (a + n / 2) * mp.log(rate)
    return gammas + mp.log(k / (k + n)) / 2 - n / 2 * mp.log(2 * mp.pi)


def evidence(x, groups, prior=PRIOR, weights=None):
    """Return the sum of the log evidences of the groups."""
    own = np.ones(len(x)) if weights is None else np.asarray(weights)
    return float(mp.fsum(evidence_of(x[groups == g], prior, own[groups == g]) for g in set(groups)))


def by_data(prior=PRIOR, size=7):
    theta = cv.NormalGamma("theta", *prior, plates=cv.Plate("group", size))
    return cv.Model(cv.Normal("x", theta[cv.Data("g", plates=OBS)], plates=OBS))


@pytest.mark.parametrize("x", [SCALES, PLACES, OFFSETS], ids=["scales", "places", "offsets"])
def test_groups_far_apart(x):
    """[2^40, 2^40 + 1] was refused beside [5, 6, 7], and groups of very different scales were 5 nats off."""
    posterior = by_data().fit({"x": x, "g": GROUPS}, seed=0)
    assert_allclose(posterior.elbo, evidence(x, GROUPS), rtol=1e-13)
    means = [x[g == GROUPS].sum() / (0.1 + np.count_nonzero(g == GROUPS)) for g in range(7)]
    assert_allclose(posterior["theta"].mean, means, rtol=1e-12)


def test_order_of_the_rows():
    order = np.array([5, 0, 3, 8, 1, 7, 2, 4, 6])
    fits = [by_data().fit({"x": PLACES[o], "g": GROUPS[o]}, seed=0).elbo for o in (order, np.arange(9))]
    assert_allclose(*fits, rtol=1e-14)


def test_a_label_that_is_observed():
    """An observed Categorical chooses as known labels do, and its own evidence is beside."""
    z = cv.Categorical("z", np.full(6, 1 / 6), plates=OBS)
    theta = cv.NormalGamma("theta", *PRIOR, plates=cv.Plate("group", 6))
    posterior = cv.Model(cv.Normal("x", theta[z], plates=OBS)).fit({"x": PLACES, "z": GROUPS}, seed=0)
    assert_allclose(posterior.elbo, evidence(PLACES, GROUPS) - 9 * np.log(6), rtol=1e-13)


def test_weights_and_missing_rows():
    """What is missing, or has no weight, has no say in where a group is; a weight of 2 is the row twice."""
    x = np.append(PLACES, [np.nan, 1e30])
    groups, weights = np.append(GROUPS, [0, 0]), np.array([2.0, 1, 1, 0.5, 1, 1, 3, 1, 1, 1, 0])
    posterior = by_data().fit({"x": x, "g": groups}, sample_weight=weights, seed=0)
    assert_allclose(posterior.elbo, evidence(PLACES, GROUPS, weights=weights[:9]), rtol=1e-13)


@pytest.mark.parametrize("prior", [(3.0, 1e12, 1.5, 0.7), (-1e8, 1e3, 2.0, 1e-6)])
def test_prior_means_worth_more_than_a_group(prior):
    assert_allclose(
        by_data(prior).fit({"x": OFFSETS, "g": GROUPS}, seed=0).elbo,
        evidence(OFFSETS, GROUPS, prior),
        rtol=1e-12,
    )


def test_columns():
    """Columns that share the locations of the groups, and columns with their own."""
    x = np.stack([PLACES, PLACES + 3], axis=1)
    columns, groups = cv.Plate("column", 2), cv.Plate("group", 6)
    g = cv.Data("g", plates=OBS)
    both = np.repeat(GROUPS, 2)
    shared = cv.Normal("x", cv.NormalGamma("theta", *PRIOR, plates=groups)[g], plates=(OBS, columns))
    assert_allclose(
        cv.Model(shared).fit({"x": x, "g": GROUPS}, seed=0).elbo, evidence(x.ravel(), both), rtol=1e-13
    )
    apart = cv.Normal(
        "x", cv.NormalGamma("theta", *PRIOR, plates=(columns, groups))[g], plates=(OBS, columns)
    )
    wanted = evidence(x[:, 0], GROUPS) + evidence(x[:, 1], GROUPS)
    assert_allclose(cv.Model(apart).fit({"x": x, "g": GROUPS}, seed=0).elbo, wanted, rtol=1e-13)


def test_rows_behind_columns():
    """The plate of the rows may be the last one of the data."""
    x = np.stack([PLACES, PLACES + 3])
    columns = cv.Plate("column", 2)
    theta = cv.NormalGamma("theta", *PRIOR, plates=(columns, cv.Plate("group", 6)))
    model = cv.Model(cv.Normal("x", theta[cv.Data("g", plates=OBS)], plates=(columns, OBS)))
    posterior = model.fit({"x": x, "g": GROUPS}, data_plate=OBS, seed=0)
    assert_allclose(posterior.elbo, evidence(x[0], GROUPS) + evidence(x[1], GROUPS), rtol=1e-13)
    means = cv.Constant("c", [[1e9, -1e9], [3.0, 5e9]], plates=(columns, cv.Plate("group", 2)))
    residuals, groups = np.array([[1.0, -0.5, 0.25], [2.0, -1.0, 0.5]]), np.array([0, 1, 1])
    known = cv.Normal("x", means[cv.Data("g", plates=OBS)], cv.Gamma("t", 1.0, 1.0), plates=(columns, OBS))
    data = {"x": means.value[:, groups] + residuals, "g": groups}
    wanted = gamma_evidence(residuals.ravel(), 1.0, 1.0)
    assert_allclose(cv.Model(known).fit(data, data_plate=OBS, seed=0).elbo, wanted, rtol=1e-13)


def test_vectors_and_a_shared_precision():
    """Two columns that are independent under a known precision: each has the evidence of a Normal mean."""
    x = np.stack([PLACES, -2 * PLACES], axis=1)
    mu = cv.MultivariateNormal("mu", np.zeros(2), 1e-26 * np.eye(2), plates=cv.Plate("group", 6))
    model = cv.Model(
        cv.MultivariateNormal("x", mu[cv.Data("g", plates=OBS)], np.diag([4.0, 1.0]), plates=OBS)
    )
    total = mp.mpf(0)
    for column, t in ((x[:, 0], mp.mpf(4)), (x[:, 1], mp.mpf(1))):
        for g in set(GROUPS):
            own, k = [exact(v) for v in column[g == GROUPS]], exact(1e-26)
            n, mean = len(own), mp.fsum(own) / len(own)
            squares = mp.fsum((v - mean) ** 2 for v in own) * t + k * n * t / (k + n * t) * mean**2
            total += n * mp.log(t / (2 * mp.pi)) / 2 + mp.log(k / (k + n * t)) / 2 - squares / 2
    assert_allclose(model.fit({"x": x, "g": GROUPS}, seed=0).elbo, float(total), rtol=1e-13)


def test_later_batches_and_new_rows():
    """An update by the second half is the fit of both; the density of a new row is a ratio of evidences."""
    first = np.array([0, 2, 3, 5, 6])
    rest = np.setdiff1d(np.arange(9), first)
    model = by_data()
    half = model.fit({"x": PLACES[first], "g": GROUPS[first]}, seed=0)
    whole = model.fit({"x": PLACES[rest], "g": GROUPS[rest]}, prior=half, seed=0)
    at_once = model.fit({"x": PLACES, "g": GROUPS}, seed=0)
    assert_allclose(whole["theta"].rate, at_once["theta"].rate, rtol=1e-9)
    new, group = np.array([2.0**40 + 3, 6.5, 2.0, 11.0]), np.array([0, 2, 5, 3])
    wanted = [
        evidence_of([*PLACES[g == GROUPS], v]) - evidence_of(PLACES[g == GROUPS])
        for v, g in zip(new, group, strict=True)
    ]
    found = at_once.log_predictive({"x": new, "g": group})
    assert_allclose(found, np.array(wanted, dtype=float), rtol=1e-9)
    alone = [at_once.log_predictive({"x": new[[i]], "g": group[[i]]})[0] for i in range(4)]
    assert_allclose(alone, found, rtol=1e-12)


@pytest.mark.parametrize("schedule", [cv.Incremental(n_batches=3), "batch"])
def test_beside_a_latent_precision_of_rows(schedule):
    """Scales that are latent labels: the sums over rows are made anew in each pass, and groups keep their digits."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(3), 40)
    residuals = rng.normal(size=120) * np.where(rng.random(120) < 0.3, 5.0, 0.5)
    z = cv.Categorical("z", [0.5, 0.5], plates=OBS)
    mu = cv.Normal("mu", 0.0, 1e-30, plates=cv.Plate("group", 3))
    width = cv.Plate("width", 2)
    t = cv.Gamma("t", 2.0, np.array([0.5, 50.0]), plates=width)
    model = cv.Model(cv.Normal("x", mu[cv.Data("g", plates=OBS)], t[z], plates=OBS))
    places = np.array([0.0, 2.0**30, -(2.0**31)])
    x = residuals + places[groups]
    near, far = (
        model.fit({"x": values, "g": groups}, seed=0, schedule=schedule, tol=1e-10)
        for values in (x - places[groups], x)
    )
    assert_allclose(far.elbo, near.elbo, rtol=1e-9)
    assert_allclose(far["mu"].mean - places, near["mu"].mean, atol=1e-6)


def gamma_evidence(residuals, shape, rate, weights=None):
    """Return the log evidence of residuals with a Gamma precision, times known factors."""
    p = np.ones(len(residuals)) if weights is None else np.asarray(weights)
    a, b, n = exact(shape), exact(rate), mp.mpf(len(residuals))
    squares = mp.fsum(exact(w) * r**2 for w, r in zip(p, residuals, strict=True))
    logs = mp.fsum(mp.log(exact(w)) for w in p) / 2
    gammas = a * mp.log(b) - mp.loggamma(a) + mp.loggamma(a + n / 2) - (a + n / 2) * mp.log(b + squares / 2)
    return float(gammas + logs - n / 2 * mp.log(2 * mp.pi))


@pytest.mark.parametrize(
    ("x", "m", "shape", "rate"),
    [
        ([1e8 + 1, 2e8 + 2, 5e8], [1e8, 2e8, 5e8], 1.0, 1.0),
        ([1e12 + 0.25, -3e12, 7.0], [1e12, -3e12 - 1, 6.5], 2.0, 0.1),
        ([1.0, 2.0, 5.0], [1.0, 2.0, 5.0], 1e-3, 1e-12),
        ([1e100, 1e-3, 0.0], [1e100, 0.0, 1e-4], 1.0, 1e-6),
    ],
)
def test_a_known_mean_for_each_row(x, m, shape, rate):
    """Residuals of 1 about known means of 1e8 were .6 nats off."""
    x, m, p = np.array(x), np.array(m), np.array([1.0, 2.0, 0.1])
    precision = cv.Gamma("t", shape, rate) * cv.Data("p", plates=OBS)
    model = cv.Model(cv.Normal("x", cv.Data("m", plates=OBS), precision, plates=OBS))
    residuals = [exact(a) - exact(b) for a, b in zip(x, m, strict=True)]
    assert_allclose(
        model.fit({"x": x, "m": m, "p": p}, seed=0).elbo,
        gamma_evidence(residuals, shape, rate, p),
        rtol=1e-13,
    )


def test_a_known_mean_for_each_row_of_several_columns():
    columns = cv.Plate("column", 2)
    m = np.array([1e9, -4e10, 3.0])
    residuals = np.array([[1.0, -0.5], [0.25, 2.0], [1.5, 0.0]])
    model = cv.Model(cv.Normal("x", cv.Data("m", plates=OBS), cv.Gamma("t", 1.0, 1.0), plates=(OBS, columns)))
    posterior = model.fit({"x": m[:, None] + residuals, "m": m}, seed=0)
    assert_allclose(posterior.elbo, gamma_evidence(residuals.ravel(), 1.0, 1.0), rtol=1e-13)


def test_known_means_chosen_by_known_labels():
    places = np.array([1e9, -1e9, 3.0])
    groups, residuals = np.array([0, 1, 2, 0, 1]), np.array([1.0, -0.5, 0.25, 2.0, -1.0])
    means = cv.Constant("c", places, plates=cv.Plate("group", 3))[cv.Data("g", plates=OBS)]
    model = cv.Model(cv.Normal("x", means, cv.Gamma("t", 1.0, 1.0), plates=OBS))
    data = {"x": places[groups] + residuals, "g": groups}
    posterior = model.fit(data, seed=0)
    assert_allclose(posterior.elbo, gamma_evidence(residuals, 1.0, 1.0), rtol=1e-13)
    more = gamma_evidence([*residuals, 0.5], 1.0, 1.0) - gamma_evidence(residuals, 1.0, 1.0)
    assert_allclose(posterior.log_predictive({"x": [1e9 + 0.5], "g": [0]}), [more], rtol=1e-12)


def test_vectors_with_a_known_mean_for_each_row():
    """With the precision known, the log density of the residuals."""
    m = np.array([[1e9, -1e9], [3e10, 2.0], [0.0, 5e8]])
    residuals = np.array([[1.0, 0.5], [-2.0, 0.25], [0.5, 0.5]])
    model = cv.Model(
        cv.MultivariateNormal("x", cv.Data("m", plates=OBS), cv.Wishart("T", 3.0, np.eye(2)), plates=OBS)
    )
    posterior = model.fit({"x": m + residuals, "m": m}, seed=0)
    centred = model.fit({"x": residuals, "m": np.zeros((3, 2))}, seed=0)
    scale = np.eye(2) + residuals.T @ residuals
    gammas = mp.loggamma(3) + mp.loggamma(mp.mpf(5) / 2) - mp.loggamma(mp.mpf(3) / 2) - mp.loggamma(1)
    wanted = float(gammas - 3 * mp.log(mp.pi)) - 3.0 * np.log(np.linalg.det(scale))
    assert_allclose([posterior.elbo, centred.elbo], wanted, rtol=1e-13)


def test_precisions_of_known_groups():
    """Scales of groups that differ by 1e18, about one known mean: each group is measured from that."""
    x, groups = np.array([1e-9, -2e-9, 1.0, 0.5, 3e9, -1e9]), np.array([0, 0, 1, 1, 2, 2])
    t = cv.Gamma("t", 1.0, np.array([1e-18, 1.0, 1e18]), plates=cv.Plate("group", 3))
    model = cv.Model(cv.Normal("x", 0.0, t[cv.Data("g", plates=OBS)], plates=OBS))
    rates = (1e-18, 1.0, 1e18)
    own = [gamma_evidence([exact(v) for v in x[groups == g]], 1.0, rates[g]) for g in range(3)]
    assert_allclose(model.fit({"x": x, "g": groups}, seed=0).elbo, sum(own), rtol=1e-12)


def test_one_row_far_from_its_group():
    """Precisions of rows beside known groups: the median is where a group is, and one row takes nothing along."""
    x, groups = np.array([1e9, 1e9 + 1, 1e9 - 2, 3.0, 2.0, 1e11]), np.array([0, 0, 0, 1, 1, 1])
    model = cv.Model(
        cv.Normal(
            "x",
            cv.Normal("mu", 0.0, 1e-30, plates=cv.Plate("group", 2))[cv.Data("g", plates=OBS)],
            cv.Gamma("u", 1.5, 1.5, plates=OBS),
            plates=OBS,
        )
    )
    far = model.fit({"x": x, "g": groups}, seed=0, tol=1e-13)
    near = model.fit({"x": x - [1e9, 1e9, 1e9, 0, 0, 0], "g": groups}, seed=0, tol=1e-13)
    assert_allclose(far.elbo, near.elbo, rtol=1e-9)
    assert_allclose(far["mu"].mean - [1e9, 0], near["mu"].mean, rtol=1e-5)


def normal_evidence(x, precisions, mean, own):
    """Return the log density of Normals with known precisions about a Normal mean."""
    p, k, m = [exact(v) for v in precisions], exact(own), exact(mean)
    away = [exact(v) - m for v in x]
    total = k + mp.fsum(p)
    pull = mp.fsum(u * v for u, v in zip(p, away, strict=True))
    squares = mp.fsum(u * v**2 for u, v in zip(p, away, strict=True)) - pull**2 / total
    return float((mp.fsum(map(mp.log, p)) + mp.log(k / total) - len(p) * mp.log(2 * mp.pi) - squares) / 2)


@pytest.mark.parametrize(
    ("x", "precisions"),
    [
        ([1.0, 2.0, 3.0], [1e-12, 1.0, 1e12]),
        ([1e6, 2.0, 3.0, 2.5], [1e-12, 1e-3, 1e12, 1e-5]),
        ([5.0, 5.0 + 1e-8, -1e5], [1e16, 1e15, 1.0]),
    ],
)
def test_known_precisions_of_very_different_size(x, precisions):
    """The row that is known best is where digits matter: 6e-5 nats were lost without a word."""
    x, p = np.array(x), np.array(precisions)
    mu = cv.Normal("mu", 0.0, 1.0)
    model = cv.Model(cv.Normal("x", mu, cv.Data("p", plates=OBS), plates=OBS))
    posterior = model.fit({"x": x, "p": p}, seed=0)
    assert_allclose(posterior.elbo, normal_evidence(x, p, 0.0, 1.0), rtol=1e-12)


def test_hidden_values_of_rows_with_precisions_of_very_different_size():
    x, p = np.array([1.0, 2.0, 4.0]), np.array([1e10, 1.0, 1e-10])
    hidden = cv.Normal("y", 1.0, 1e6, plates=OBS)
    posterior = cv.Model(cv.Normal("x", hidden, cv.Data("p", plates=OBS), plates=OBS)).fit(
        {"x": x, "p": p}, seed=0
    )
    wanted = sum(normal_evidence([v], [t], 1.0, 1e6) for v, t in zip(x, p, strict=True))
    assert_allclose(posterior.elbo, wanted, rtol=1e-13)


def mean_field_bound(x, rows, priors, precision):
    """Return the best ELBO of independent factors in a Gaussian hierarchy with known precisions.

    Given the exact posterior, with precision P, the best independent factors have its means and the diagonal blocks of
    P as precisions, so that the bound is the log evidence + (log det P - sum of log det P_kk) / 2.

    Parameters
    ----------
    x
        Values, (N, D).
    rows
        For each row the number of its location.
    priors
        For each location its parent (a number, or None for a mean of 0) and its precision.
    precision
        Of the rows.
    """
    size, n = x.shape[1], len(priors)
    joint, linear, constant = mp.zeros(n), mp.zeros(n, size), mp.mpf(0)
    for k, (parent, own) in enumerate(priors):
        t = exact(own)
        joint[k, k] += t
        constant += size * mp.log(t) / 2
        if parent is not None:
            joint[parent, parent] += t
            joint[k, parent] -= t
            joint[parent, k] -= t
    t = exact(precision)
    for row, k in zip(x, rows, strict=True):
        joint[k, k] += t
        constant += size * mp.log(t / (2 * mp.pi)) / 2
        for d, value in enumerate(row):
            linear[k, d] += t * exact(value)
            constant -= t * exact(value) ** 2 / 2
    for d in range(size):
        own = mp.matrix([linear[k, d] for k in range(n)])
        constant += (own.T * mp.lu_solve(joint, own))[0] / 2
    # half of log det P is taken off for the evidence, and added for the bound
    return float(constant - size * mp.fsum(mp.log(joint[k, k]) for k in range(n)) / 2)


@pytest.mark.parametrize("ratio", [1e3, 1e8, 1e12])
def test_groups_of_a_population(ratio):
    """Groups that are 1e8 times as far apart as their rows were 86 nats off, and refused from 1e10 on."""
    rng = np.random.default_rng(1)
    groups = rng.integers(5, size=40)
    x = ratio * rng.normal(size=6)[groups] + rng.normal(size=40)
    m = cv.Normal("m", 0.0, 1e-2 / ratio**2)
    mu = cv.Normal("mu", m, 1 / ratio**2, plates=cv.Plate("group", 6))
    model = cv.Model(cv.Normal("x", mu[cv.Data("g", plates=OBS)], 1.0, plates=OBS))
    posterior = model.fit({"x": x, "g": groups}, seed=0, tol=1e-13, max_iter=2_000, factors="apart")
    # the sixth group, which has no rows, counts nothing
    priors = [(5, 1 / ratio**2)] * 5 + [(None, 1e-2 / ratio**2)]
    assert_allclose(posterior.elbo, mean_field_bound(x[:, None], groups, priors, 1.0), rtol=1e-11)
    learnt = cv.Model(cv.Normal("x", mu[cv.Data("g", plates=OBS)], cv.Gamma("t", 1.0, 1.0), plates=OBS)).fit(
        {"x": x, "g": groups}, seed=0, factors="apart", tol=1e-13
    )
    residuals = x - np.array([x[groups == g].mean() for g in range(5)])[groups]
    assert_allclose(learnt["t"].rate, 1 + 0.5 * (residuals @ residuals + 5 / learnt["t"].mean), rtol=1e-6)


def test_vectors_of_groups_within_groups():
    """Known labels of the groups choose their means among several, of vectors, in every schedule."""
    rng = np.random.default_rng(2)
    rows, outer = rng.integers(4, size=30), np.array([0, 1, 1, 0])
    x = 1e9 * rng.normal(size=(4, 2))[rows] + rng.normal(size=(30, 2))
    groups, above = cv.Plate("group", 4), cv.Plate("above", 2)
    nu = cv.MultivariateNormal("nu", np.zeros(2), 1e-20 * np.eye(2), plates=above)
    mu = cv.MultivariateNormal("mu", nu[cv.Data("h", plates=groups)], 1e-18 * np.eye(2), plates=groups)
    model = cv.Model(cv.MultivariateNormal("x", mu[cv.Data("g", plates=OBS)], np.eye(2), plates=OBS))
    wanted = mean_field_bound(x, rows, [(4 + h, 1e-18) for h in outer] + [(None, 1e-20)] * 2, 1.0)
    data = {"x": x, "g": rows, "h": outer}
    for schedule in ("batch", cv.Incremental(n_batches=3)):
        posterior = model.fit(data, seed=0, schedule=schedule, tol=1e-13, max_iter=2_000)
        assert_allclose(posterior.elbo, wanted, rtol=1e-11)
    assert_allclose(posterior.elbo_at({}, data), posterior.elbo, rtol=1e-12)


def test_locations_that_share_one_precision():
    """Tied Normal-Gammas: the groups have locations of their own and one precision."""
    own = cv.Plate("group", 7)
    theta = cv.NormalGamma("theta", 0.0, 0.2, 1.5, 2.0, plates=own, tied=own)
    posterior = cv.Model(cv.Normal("x", theta[cv.Data("g", plates=OBS)], plates=OBS)).fit(
        {"x": PLACES, "g": GROUPS}, seed=0
    )
    k, squares, logs = exact(0.2), mp.mpf(0), mp.mpf(0)
    for g in set(GROUPS):
        values = [exact(v) for v in PLACES[g == GROUPS]]
        n, mean = len(values), mp.fsum(values) / len(values)
        squares += mp.fsum((v - mean) ** 2 for v in values) + k * n / (k + n) * mean**2
        logs += mp.log(k / (k + n)) / 2
    a, b, half = mp.mpf(1.5), mp.mpf(2), mp.mpf(9) / 2
    gammas = mp.loggamma(a + half) - mp.loggamma(a) + a * mp.log(b) - (a + half) * mp.log(b + squares / 2)
    assert_allclose(posterior.elbo, float(gammas + logs - half * mp.log(2 * mp.pi)), rtol=1e-13)
