"""Narrow components far from each other and from the origin lose no digits.

The logit of a row holds (x - m)' Lambda (x - m). Expanded into raw moments its terms are as large as
x' Lambda x and all but a few digits cancel: for two sites 1e4 apart with components of width 1e-4 they are of
size 1e16, so that the logits are off by whole units and responsibilities by 0.2 and more
(``test_raw_moments_...``). What the library returns is compared with the same formula in 50 digits at the
posterior's own factors.
"""

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose
from oracles.reference import high_precision

from caviar import families
from caviar.engine.ascent.status import Status
from edges import stated

WIDTH, APART = 1e-4, 2e-4


def sites(distance, d, rows=40, seed=0):
    """Return rows and labels: two sites, each of two overlapping components along the first column."""
    rng = np.random.default_rng(seed)
    centres = np.zeros((4, d))
    centres[:, 0] = [-APART / 2, APART / 2, distance - APART / 2, distance + APART / 2]
    labels = np.repeat(np.arange(4), rows)
    return centres[labels] + WIDTH * rng.standard_normal((4 * rows, d)), labels


def far(mean, d, rows=60, seed=0):
    """Return rows and labels: two overlapping components of width 1 near ``mean``."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1], rows)
    x = rng.standard_normal((2 * rows, d)) + mean
    x[:, 0] += 2.0 * labels
    return x, labels


DATA = {
    "two sites at 1e4": (lambda d: sites(1e4, d), WIDTH, 1e4, 4),
    "two sites at 1e6": (lambda d: sites(1e6, d), WIDTH, 1e6, 4),
    "mean 1e8": (lambda d: far(1e8, d), 1.0, 1.0, 2),
    "two blocks 1e10 apart": (lambda d: _blocks(1e10, d), 1.0, 1e10, 2),
}
"""Name -> (rows and labels by dimension, width of a component, spread of the whole, components)."""

FORMS = [
    "independent-1",
    "independent-2",
    "joint-1",
    "joint-2",
    "tied-2",
    "spherical-2",
    "scalar independent",
    "scalar joint",
    "known variance",
]


def _blocks(distance, d):
    x, labels = far(0.0, d)
    return x + distance * labels[:, None], labels


def make(form, data):
    """Return model, data as it takes them, rows (N, D), labels, known variance or None, and its prior's numbers."""
    build, width, spread, k = DATA[data]
    d = 2 if form.endswith("-2") else 1
    x, labels = build(d)
    at = x.mean(axis=0)
    loose, tight = spread**-2.0, 1e-2 * (width / spread) ** 2
    if form.startswith("independent"):
        return (
            stated.independent(k, d, at=at, mean_precision=loose, scale=width**2),
            x,
            x,
            labels,
            None,
            (at, loose),
        )
    if form in ("tied-2", "spherical-2"):
        state = stated.tied if form == "tied-2" else stated.spherical
        model = state(k, d, at=at, mean_precision=tight, scale=width**2)
        return model, x, x, labels, None, (at, tight)
    if form.startswith("joint"):
        return (
            stated.joint(k, d, at=at, mean_precision=tight, scale=width**2),
            x,
            x,
            labels,
            None,
            (at, tight),
        )
    if form == "known variance":
        model = stated.known_variance(k, at=at[0], mean_precision=loose, variance=width**2)
        return model, x[:, 0], x, labels, width**2, (at, loose)
    state = stated.scalar_joint if form == "scalar joint" else stated.scalar_independent
    precision = tight if form == "scalar joint" else loose
    model = state(k, at=at[0], mean_precision=precision, scale=width**2)
    return model, x[:, 0], x, labels, None, (at, precision)


def raw_responsibilities(x, q):
    """Return responsibilities from raw moments, in doubles, as a straightforward program has them."""
    logits = np.empty((len(x), len(q.means)))
    for k, (mean, precision) in enumerate(zip(q.means, q.precisions, strict=True)):
        quadratic = (
            np.einsum("ni,ij,nj->n", x, precision, x) - 2 * x @ precision @ mean + mean @ precision @ mean
        )
        logits[:, k] = (
            q.log_weights[k]
            + 0.5 * q.log_dets[k]
            - 0.5 * quadratic
            - 0.5 * np.trace(precision @ q.covariances[k])
        )
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("generate", [high_precision.two_distant_sites, high_precision.far_from_the_origin])
def test_raw_moments_are_off_by_a_tenth_and_more_on_such_data(generate):
    x, q = generate(np.random.default_rng(0))
    exact, _ = high_precision.responsibilities(x, q)
    assert np.abs(raw_responsibilities(x, q) - exact).max() > 0.1


@pytest.mark.thinned(15)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("form", FORMS)
def test_responsibilities_agree_with_fifty_digits(form, data):
    model, values, x, labels, variance, _ = make(form, data)
    posterior = model.fit({"x": values}, init={"z": labels}, max_iter=30)
    r = posterior.local({"x": values})["z"].probabilities
    exact, _ = high_precision.responsibilities(x, stated.expectations(posterior, variance))
    if data != "two blocks 1e10 apart":
        assert np.sort(exact, axis=1)[:, -2].max() > 0.05, "components that do not overlap would show nothing"
    assert_allclose(r, exact, rtol=0, atol=1e-6)


@pytest.mark.thinned(9)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("form", FORMS)
def test_the_objective_rises_and_is_never_said_to_fall(form, data):
    model, values, _, labels, _, _ = make(form, data)
    posterior = model.fit({"x": values}, init={"z": labels}, max_iter=60)
    assert posterior.status in (Status.CONVERGED, Status.MAX_ITER)
    assert stated.largest_fall(posterior) < 1e-9


@pytest.mark.thinned(9)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("form", ["independent-1", "independent-2", "joint-1", "joint-2"])
def test_the_objective_is_the_log_normalisers_minus_the_divergences(form, data):
    model, values, x, labels, _, (at, mean_precision) = make(form, data)
    width, k, d = DATA[data][1], DATA[data][3], x.shape[1]
    posterior = model.fit({"x": values}, init={"z": labels}, max_iter=10)
    _, log_normalisers = high_precision.responsibilities(x, stated.expectations(posterior))
    scale = width**2 * np.eye(d)
    if form.startswith("joint"):
        divergence = posterior["theta"].kl(families.NormalWishart(at, mean_precision, d + 1.0, scale)).sum()
    else:
        divergence = posterior["mean"].kl(families.MultivariateNormal(at, mean_precision * np.eye(d))).sum()
        divergence += posterior["precision"].kl(families.Wishart(d + 1.0, scale)).sum()
    divergence += posterior["weights"].kl(families.Dirichlet(np.ones(k))).sum()
    assert_allclose(posterior.elbo, log_normalisers.sum() - divergence, rtol=1e-8, atol=1e-5)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("form", ["independent-1", "independent-2", "joint-1", "joint-2"])
def test_means_and_scale_matrices_agree_with_fifty_digits_at_the_same_responsibilities(form, data):
    model, values, x, labels, _, (at, mean_precision) = make(form, data)
    width = DATA[data][1]
    joint = form.startswith("joint")
    arguments = {"init": {"z": labels}, "tol": 0.0, "accelerate": False}
    if not joint:
        arguments["order"] = ["weights", "mean", "precision"]
    before = model.fit({"x": values}, max_iter=7, **arguments)
    after = model.fit({"x": values}, max_iter=8, **arguments)
    r = before.local({"x": values})["z"].probabilities
    step = _joint_update if joint else _independent_update
    given = None if joint else before["precision"].mean
    means, scales = step(x, r, at, mean_precision, width**2, given)
    q = after["theta"] if joint else after["mean"]
    scale = (after["theta"] if joint else after["precision"]).inverse_scale
    # a mean is stored about the user's origin, in which it is one double
    assert_allclose(q.mean, means, rtol=4e-16, atol=1e-6 * width)
    sizes = np.sqrt(np.einsum("kii->ki", scales))
    assert np.abs((scale - scales) / (sizes[:, :, None] * sizes[:, None, :])).max() < 1e-6


def _joint_update(x, r, at, mean_precision, scale, _):
    """Return m_k and B_k of the Normal-Wishart factors in 50 digits, rounded at the end."""

    def one(weights, rows, prior, identity):
        total = sum(weights, mpf(0))
        mean = (mean_precision * prior + weights @ rows) / (total + mpf(mean_precision))
        residuals, away = rows - mean, mean - prior
        spread = (residuals * weights[:, None]).T @ residuals
        return mean, scale * identity + spread + mpf(mean_precision) * np.outer(away, away)

    return _by_component(x, r, at, one)


def _independent_update(x, r, at, mean_precision, scale, expected_precisions):
    """Return m_k and B_k of the independent factors, the mean updated first, in 50 digits."""
    given = iter(_in_digits(expected_precisions))

    def one(weights, rows, prior, identity):
        precision, total = next(given), sum(weights, mpf(0))
        covariance = _inverse(mpf(mean_precision) * identity + total * precision)
        mean = covariance @ (mpf(mean_precision) * prior + precision @ (weights @ rows))
        residuals = rows - mean
        return mean, scale * identity + (residuals * weights[:, None]).T @ residuals + total * covariance

    return _by_component(x, r, at, one)


def _by_component(x, r, at, one):
    with mp.workdps(50):
        rows, prior, identity = _in_digits(x), _in_digits(at), _in_digits(np.eye(x.shape[1]))
        pairs = [one(weights, rows, prior, identity) for weights in _in_digits(r.T)]
        return tuple(np.array([pair[i] for pair in pairs], dtype=float) for i in (0, 1))


def _in_digits(array):
    return np.vectorize(lambda value: mpf(float(value)), otypes=[object])(array)


def _inverse(matrix):
    return np.array((mp.matrix(matrix.tolist()) ** -1).tolist(), dtype=object).reshape(matrix.shape)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("form", FORMS)
def test_components_that_only_separate_during_the_fit_keep_their_digits(form):
    """Nothing but the data says where the sites are: the start must find them, or the first passes."""
    model, values, x, _, variance, _ = make(form, "two sites at 1e6")
    posterior = model.fit({"x": values}, seed=0, max_iter=100)
    assert stated.largest_fall(posterior) < 1e-9
    exact, _ = high_precision.responsibilities(x, stated.expectations(posterior, variance))
    assert_allclose(posterior.local({"x": values})["z"].probabilities, exact, rtol=0, atol=1e-6)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("state", [stated.independent, stated.joint])
@pytest.mark.parametrize("distance", [1e6, 1e8, 1e10])
def test_components_that_shrink_within_one_update_keep_their_digits(state, distance):
    """Both components start as wide as the whole; once they part, one update makes them 1e-6 and less as wide.

    Along one column: a wide covariance off the axes has the square of that as its condition, beyond a double.
    """
    x, labels = far(0.0, 2)
    x[:, 0] += distance * labels
    leaning = np.full((len(x), 2), 0.4)
    leaning[np.arange(len(x)), labels] = 0.6
    precision = distance**-2.0 if state is stated.independent else 1e-2 * distance**-2.0
    model = state(2, 2, at=x.mean(axis=0), mean_precision=precision)
    posterior = model.fit({"x": x}, init={"z": leaning}, max_iter=200)
    known = model.fit({"x": x}, init={"z": labels}, max_iter=200)
    assert stated.largest_fall(posterior) < 1e-9
    assert_allclose(posterior.elbo, known.elbo, rtol=1e-9)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("state", [stated.independent, stated.joint])
@pytest.mark.parametrize("data", ["near", "sites"])
def test_the_objective_does_not_change_with_the_origin(state, data):
    """Rows on a grid of powers of two, so that moving them is exact: nothing but the program can differ."""
    d, shift = 2, (2.0**27 if data == "near" else 2.0**16)
    x, labels = far(0.0, d) if data == "near" else sites(2.0**13, d)
    grid = 2.0**-20 if data == "near" else 2.0**-33
    x = np.round(x / grid) * grid
    assert (x + shift - shift == x).all()
    width, spread, k = (1.0, 1.0, 2) if data == "near" else (WIDTH, 2.0**13, 4)
    precision = spread**-2.0 if state is stated.independent else 1e-2 * (width / spread) ** 2

    def fitted(moved):
        model = state(k, d, at=moved, mean_precision=precision, scale=width**2)
        return model.fit({"x": x + moved}, init={"z": labels}, max_iter=40, tol=0.0)

    here, there = fitted(0.0), fitted(shift)
    assert_allclose(there.elbo_trace, here.elbo_trace, rtol=1e-9)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("state", [stated.independent, stated.joint])
@pytest.mark.parametrize("distance", [1e4, 1e6, 1e8, 1e12])
def test_one_far_outlier_leaves_the_other_rows_their_digits(state, distance):
    """With a component for the outlier, the others are what they are without it."""
    x, labels = far(0.0, 2)
    rows, groups = np.concatenate([x, [[distance, -distance]]]), np.append(labels, 2)
    precision = distance**-2.0 if state is stated.independent else 1e-2 * distance**-2.0
    posterior = state(3, 2, mean_precision=precision).fit({"x": rows}, init={"z": groups}, max_iter=200)
    alone = state(3, 2, mean_precision=precision).fit({"x": x}, init={"z": labels}, max_iter=200)
    assert posterior.status in (Status.CONVERGED, Status.MAX_ITER)
    assert stated.largest_fall(posterior) < 1e-9
    name = "mean" if state is stated.independent else "theta"
    assert_allclose(posterior[name].mean[:2], alone[name].mean[:2], atol=0.2)
    exact, _ = high_precision.responsibilities(rows, stated.expectations(posterior))
    assert_allclose(posterior.local({"x": rows})["z"].probabilities, exact, rtol=0, atol=1e-6)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("state", [stated.independent, stated.joint])
@pytest.mark.parametrize("distance", [1e6, 1e8, 1e10])
def test_separated_blocks_are_found_without_being_told(state, distance):
    x, labels = _blocks(distance, 3)
    precision = distance**-2.0 if state is stated.independent else 1e-2 * distance**-2.0
    model = state(3, 3, at=x.mean(axis=0), mean_precision=precision)
    posterior = model.fit({"x": x}, seed=0, max_iter=300)
    assert stated.is_finite(posterior)
    chosen = posterior.local({"x": x})["z"].probabilities.argmax(axis=1)
    assert not set(chosen[labels == 0]) & set(chosen[labels == 1])


@pytest.mark.parametrize("state", [stated.independent, stated.joint])
def test_columns_of_very_different_scale(state):
    """Scaling columns moves the objective by the log of the scales only, when the priors are scaled too."""
    x, labels = far(0.0, 3)
    scales = 2.0 ** np.array([-20, 0, 20])
    obs = {"init": {"z": labels}, "max_iter": 30, "tol": 0.0}
    plain = state(2, 3).fit({"x": x}, **obs)
    scaled = _column_scaled(state, scales).fit({"x": x * scales}, **obs)
    assert_allclose(scaled.elbo, plain.elbo - len(x) * np.log(scales).sum(), rtol=1e-9)
    name = "mean" if state is stated.independent else "theta"
    assert_allclose(scaled[name].mean / scales, plain[name].mean, rtol=1e-7, atol=1e-9)


def _column_scaled(state, scales):
    import caviar as cv

    d = len(scales)
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    weights = cv.Dirichlet("weights", np.ones(2))
    z = cv.Categorical("z", weights, plates=obs)
    if state is stated.joint:
        theta = cv.NormalWishart("theta", np.zeros(d), 1e-2, d + 1.0, np.diag(scales**2), plates=component)
        return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))
    mean = cv.MultivariateNormal("mean", np.zeros(d), np.diag(1e-2 / scales**2), plates=component)
    precision = cv.Wishart("precision", d + 1.0, np.diag(scales**2), plates=component)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))
