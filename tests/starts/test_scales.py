"""Scales of products: what the data say nothing about is at its best, and fits of products end alike."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine.starts.products.scales import _scaled, balanced
from starts.test_basis import made_from

OBS = cv.Plate("obs")


def _label(name, size):
    return cv.Categorical(name, cv.Dirichlet(f"w_{name}", np.ones(size)), plates=OBS)


def _numbers(sizes, priors=(0.1, 0.1)):
    first, second = (
        cv.Normal(name, 0, prior, plates=cv.Plate(f"k_{name}", size))
        for name, size, prior in zip("ab", sizes, priors, strict=True)
    )
    return cv.Normal(
        "x", first[_label("z", sizes[0])] * second[_label("v", sizes[1])], cv.Gamma("t", 1, 1), plates=OBS
    )


def _rates(sizes):
    first, second = (
        cv.Gamma(name, 1, 1, plates=cv.Plate(f"k_{name}", size))
        for name, size in zip("ab", sizes, strict=True)
    )
    return cv.Gamma("x", 4.0, first[_label("z", sizes[0])] * second[_label("v", sizes[1])], plates=OBS)


def _balanced(leaf, x, sizes, one, other):
    """Return the factors of a and b before and after their scales are found."""
    basis = made_from(cv.Model(leaf), {"x": x})
    problem = basis.problem
    given = {
        variable: {"a": one, "b": other}.get(variable.name, basis.q[variable]) for variable in problem.order
    }
    _, q = balanced((problem, given))
    return {variable.name: q[variable] for variable in problem.order}


@pytest.mark.parametrize(
    "factor",
    [
        cv.families.Normal([1.0, -2.0], [0.5, 4.0]),
        cv.families.MultivariateNormal([1.0, -2.0], [[2.0, 0.5], [0.5, 1.0]]),
        cv.families.Gamma([2.0, 5.0], [0.5, 4.0]),
    ],
)
def test_a_scaled_factor_is_that_of_the_variable_times_the_scale(factor):
    scaled = _scaled(factor, 3.0)
    np.testing.assert_allclose(scaled.mean, 3.0 * factor.mean, rtol=1e-12)
    spread = "covariance" if hasattr(factor, "covariance") else "variance"
    np.testing.assert_allclose(getattr(scaled, spread), 9.0 * getattr(factor, spread), rtol=1e-12)


@pytest.mark.parametrize("sizes", [(2, 2), (4, 2)])
def test_the_scale_of_numbers_is_the_root_of_the_slope(sizes):
    """tau_a A c^4 - (n_a - n_b) c^2 - tau_b B = 0 with the sums A and B of second moments."""
    rng = np.random.default_rng(0)
    one = cv.families.Normal(5 * rng.normal(size=sizes[0]), np.full(sizes[0], 3.0))
    other = cv.families.Normal(0.1 * rng.normal(size=sizes[1]), np.full(sizes[1], 200.0))
    q = _balanced(_numbers(sizes, (0.1, 0.7)), rng.normal(size=30), sizes, one, other)
    a, b = (np.sum(own.mean**2 + 1 / own.precision) for own in (one, other))
    slope = [0.1 * a, -(sizes[0] - sizes[1]), -0.7 * b]
    scale = np.sqrt(np.roots(slope).max())
    assert abs(np.log(scale)) > 0.2
    np.testing.assert_allclose(q["a"].mean, one.mean * scale, rtol=3e-3)
    np.testing.assert_allclose(q["b"].mean, other.mean / scale, rtol=3e-3)
    np.testing.assert_allclose(q["a"].mean[:, None] * q["b"].mean, one.mean[:, None] * other.mean, rtol=1e-12)
    np.testing.assert_allclose(q["a"].precision * scale**2, one.precision, rtol=6e-3)


def test_the_scale_of_rates_is_the_root_of_the_slope():
    """A c^2 - (n_a - n_b) c - B = 0 with the sums A and B of means, where all shapes are 1."""
    one = cv.families.Gamma(np.array([30.0, 12.0, 20.0]), np.array([1.0, 3.0, 0.1]))
    other = cv.families.Gamma(np.array([8.0, 9.0]), np.array([7.0, 90.0]))
    q = _balanced(_rates((3, 2)), np.random.default_rng(0).gamma(2.0, size=30), (3, 2), one, other)
    scale = np.roots([one.mean.sum(), -1.0, -other.mean.sum()]).max()
    np.testing.assert_allclose(q["a"].mean, one.mean * scale, rtol=3e-3)
    np.testing.assert_allclose(q["a"].shape, one.shape, rtol=1e-12)
    np.testing.assert_allclose(q["b"].mean, other.mean / scale, rtol=3e-3)


def test_what_is_elsewhere_too_keeps_its_scale():
    """A slope that is also a mean by itself is told by the data."""
    a, b = cv.Normal("a", 0, 0.1), cv.Normal("b", 0, 0.1)
    u = cv.Data("u", plates=OBS)
    model = cv.Model(cv.Normal("x", a * b * u, 1.0, plates=OBS), cv.Normal("y", a, 1.0, plates=OBS))
    rng = np.random.default_rng(0)
    basis = made_from(model, {"x": rng.normal(size=20), "y": rng.normal(size=20), "u": rng.normal(size=20)})
    moved = {v: own.translate(np.asarray(3.0 if v.name == "a" else 0.01)) for v, own in basis.q.items()}
    _, q = balanced((basis.problem, moved))
    assert q == moved


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("first", "second", "width", "seed"),
    [
        ([1, 3], [-2, 5], 0.3, 11),
        ([1, 3], [-2, 1, 5], 0.3, 12),
        pytest.param([1, 3, -2], [-2, 1, 5], 0.2, 13, marks=pytest.mark.slow),
    ],
)
def test_fits_of_products_of_labels_settle_at_one_height(first, second, width, seed):
    """They went on for all 500 iterations, and differed by .01 to .04 nats a row."""
    rng = np.random.default_rng(seed)
    z, v = rng.integers(len(first), size=300), rng.integers(len(second), size=300)
    x = np.array(first)[z] * np.array(second)[v] + width * rng.normal(size=300)
    model = cv.Model(_numbers((len(first), len(second))))
    ends = [model.fit({"x": x}, seed=seed) for seed in range(2)]
    best = max(end.elbo for end in ends)
    assert min(end.elbo for end in ends) > best - 0.01 * 300
    assert min(end.n_iter for end in ends) < 150
