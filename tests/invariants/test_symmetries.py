"""What a fit does not depend on: the order of rows and components, repetition or weight, origin, unit, threads."""

import dataclasses
from math import log

import numpy as np
import pytest

import caviar as cv
from caviar import families
from caviar.engine.binding.clamped.factor import PointMass
from invariants.registry import CASES


def _arrays(factor):
    if isinstance(factor, PointMass):
        return {"value": factor.value}
    return {field.name: getattr(factor, field.name) for field in dataclasses.fields(factor)}


def _assert_same_bits(one, other):
    """Every parameter, the ELBO and its trace are the same bits."""
    assert one.elbo == other.elbo
    assert np.array_equal(one.elbo_trace, other.elbo_trace)
    assert one.elbo_terms == other.elbo_terms
    for name in one:
        for parameter, value in _arrays(one[name]).items():
            assert np.array_equal(value, _arrays(other[name])[parameter]), (name, parameter)


def _assert_close(one, other, rtol=1e-7):
    """Every parameter and the ELBO agree up to rounding, which the sweeps may have enlarged."""
    assert other.elbo == pytest.approx(one.elbo, rel=1e-9)
    for name in one:
        for parameter, value in _arrays(one[name]).items():
            found, scale = _arrays(other[name])[parameter], np.abs(value).max()
            np.testing.assert_allclose(
                found, value, rtol=rtol, atol=rtol * scale, err_msg=f"{name}.{parameter}"
            )


@pytest.mark.thinned(48)
@pytest.mark.parametrize("name", CASES)
def test_order_of_the_rows_does_not_matter(name):
    """Permuted rows lead to the same fit, in as many iterations, from a start that the engine chooses."""
    case, rng = CASES[name], np.random.default_rng(0)
    data = case.draw(rng, 40)
    order = rng.permutation(40)
    one, other = case.fit(data), case.fit({key: value[order] for key, value in data.items()})
    assert one.n_iter == other.n_iter
    _assert_close(one, other)


@pytest.mark.thinned(48)
@pytest.mark.parametrize("name", CASES)
def test_weight_of_two_is_the_row_twice(name):
    """Repeated rows, the same rows with whole-number weights, and rows with their weight split lead to the same fit."""
    case, rng = CASES[name], np.random.default_rng(1)
    data = case.draw(rng, 30)
    times = rng.integers(1, 4, 30)
    repeated = case.fit({key: np.repeat(value, times, axis=0) for key, value in data.items()})
    weighted = case.fit(data, sample_weight=times)
    twice = {key: np.concatenate([value, value]) for key, value in data.items()}
    share = rng.uniform(0.2, 0.8, 30)
    split = case.fit(twice, sample_weight=np.concatenate([share * times, (1 - share) * times]))
    _assert_close(repeated, weighted)
    _assert_close(repeated, split)
    assert repeated.n_iter == weighted.n_iter
    # not vacuous: the weights change the fit
    assert case.fit(data).elbo != pytest.approx(repeated.elbo, rel=1e-3)


@pytest.mark.thinned(48)
@pytest.mark.parametrize("name", CASES)
def test_rows_of_weight_zero_are_not_there(name):
    """Other rows with weight zero change nothing."""
    case, rng = CASES[name], np.random.default_rng(2)
    data, more = case.draw(rng, 30), case.draw(rng, 10)
    far = {
        key: value * 100 if key == "x" and value.dtype.kind == "f" else value for key, value in more.items()
    }
    both = {key: np.concatenate([value, far[key]]) for key, value in data.items()}
    weights = np.concatenate([np.ones(30), np.zeros(10)])
    _assert_close(case.fit(data), case.fit(both, sample_weight=weights))


@pytest.mark.parametrize("name", ["joint", "independent", "tied"])
def test_relabelled_components_are_relabelled_factors(name):
    """A start with permuted labels ends with permuted components and the same ELBO, for exchangeable priors."""
    case, rng = CASES[name], np.random.default_rng(3)
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    data, labels, order = case.draw(rng, 50), rng.integers(0, 3, 50), np.array([2, 0, 1])
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=obs)
    mean = cv.MultivariateNormal("mean", np.zeros(2), np.eye(2) / 9, plates=component)
    if name == "joint":
        theta = cv.NormalWishart("theta", np.zeros(2), 0.2, 3.5, np.eye(2), plates=component)
        model = cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))
    elif name == "independent":
        precision = cv.Wishart("precision", 3.5, np.eye(2), plates=component)
        model = cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))
    else:
        model = cv.Model(
            cv.MultivariateNormal("x", mean[z], cv.Wishart("precision", 3.5, np.eye(2)), plates=obs)
        )
    one = model.fit(data, init={"z": labels}, max_iter=30, tol=0)
    other = model.fit(data, init={"z": order[labels]}, max_iter=30, tol=0)
    assert other.elbo == pytest.approx(one.elbo, rel=1e-10)
    location = "theta" if name == "joint" else "mean"
    np.testing.assert_allclose(other[location].mean[order], one[location].mean, rtol=1e-6)
    np.testing.assert_allclose(other["weights"].concentration[order], one["weights"].concentration, rtol=1e-6)
    assert not np.allclose(other[location].mean, one[location].mean, rtol=0.01)


def _mixture(mean, covariance, df, inverse_scale, k=3):
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    location = cv.MultivariateNormal("mean", mean, np.linalg.inv(covariance), plates=component)
    precision = cv.Wishart("precision", df, inverse_scale, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(k)), plates=obs)
    return cv.Model(cv.MultivariateNormal("x", location[z], precision[z], plates=obs))


@pytest.mark.parametrize("unit", [1e-6, 0.1, 1e6])
def test_origin_and_unit_are_the_users_choice(unit):
    """Data and prior in other units, from another origin: the same fit in these units.

    The densities of N rows of D columns change by the factor unit^-ND, and with it the ELBO by -N D log unit.
    """
    rng = np.random.default_rng(4)
    x, labels = rng.normal(0, 1, (50, 2)) + rng.choice([-3, 0, 3], (50, 1)), rng.integers(0, 3, 50)
    origin = unit * np.array([10.0, -300.0])
    moved = unit * x + origin
    x = (moved - origin) / unit
    one = _mixture(np.ones(2), 9 * np.eye(2), 3.5, np.eye(2)).fit(
        {"x": x}, init={"z": labels}, max_iter=25, tol=0
    )
    there = _mixture(unit * np.ones(2) + origin, 9 * unit**2 * np.eye(2), 3.5, unit**2 * np.eye(2))
    other = there.fit({"x": moved}, init={"z": labels}, max_iter=25, tol=0)
    assert other.elbo == pytest.approx(one.elbo - 100 * log(unit), rel=1e-10)
    np.testing.assert_allclose((other["mean"].mean - origin) / unit, one["mean"].mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other["mean"].covariance / unit**2, one["mean"].covariance, rtol=1e-7)
    np.testing.assert_allclose(
        other["precision"].inverse_scale / unit**2, one["precision"].inverse_scale, rtol=1e-7, atol=1e-7
    )
    assert other["weights"].concentration == pytest.approx(one["weights"].concentration, rel=1e-8)


@pytest.mark.thinned(48)
@pytest.mark.parametrize("name", CASES)
def test_same_seed_is_the_same_bits(name):
    """Twice the same call gives the same bits, restarts included."""
    case = CASES[name]
    data = case.draw(np.random.default_rng(5), 60)
    _assert_same_bits(case.fit(data, seed=7, n_restarts=2), case.fit(data, seed=7, n_restarts=2))


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    "name", ["independent", "shared-precision", "bernoullis", "measured", "measured-apart"]
)
def test_threads_are_the_same_bits(name):
    """On 1, 2 or 4 threads, and on none given, a fit of many blocks of rows gives the same bits."""
    case = CASES[name]
    data = case.draw(np.random.default_rng(6), 30_000)
    fits = [case.fit(data, max_iter=4, tol=0, executor=executor) for executor in (1, 2, 4, None)]
    for other in fits[1:]:
        _assert_same_bits(fits[0], other)


def test_tolerance_is_per_row():
    """The same data ten times over converge in the same number of iterations: `tol` counts per row.

    Under flat priors each iteration is the same, and the log-likelihood ten times as large.
    """
    rng = np.random.default_rng(7)
    x = rng.normal(0, 1, (80, 2)) + rng.choice([-1.5, 1.5], (80, 1))
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    mean = cv.MultivariateNormal("mean", np.zeros(2), 0, plates=component)
    precision = cv.Wishart("precision", 3, np.zeros((2, 2)), plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    model = cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))
    point = ["weights", "mean", "precision"]
    for tol in (1e-3, 1e-6):
        one = model.fit({"x": x}, seed=0, point=point, tol=tol, accelerate=False)
        ten = model.fit({"x": np.tile(x, (10, 1))}, seed=0, point=point, tol=tol, accelerate=False)
        weighted = model.fit(
            {"x": x}, seed=0, point=point, tol=tol, accelerate=False, sample_weight=np.full(80, 10.0)
        )
        assert one.converged
        assert one.n_iter == ten.n_iter == weighted.n_iter
        assert ten.elbo == pytest.approx(10 * one.elbo, rel=1e-9)
        changes = np.diff(one.elbo_trace) / 80
        assert changes[-1] < tol
        assert np.all(changes[:-1] >= tol)


def test_blocks_of_rows_are_all_of_them():
    """The ELBO of many blocks is that of the formula over all rows at once."""
    rng = np.random.default_rng(8)
    x = rng.normal(0, 1, 30_001) + rng.choice([-2.0, 2.0], 30_001)
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    z = cv.Categorical("z", [0.4, 0.6], plates=obs)
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0.0, 0.1, plates=component)[z], 1.0, plates=obs))
    q = families.Normal(np.array([-1.9, 2.1]), np.array([1e4, 2e4]))
    posterior = model.fit({"x": x}, init={"mean": q}, max_iter=0)
    logits = (
        np.log([0.4, 0.6]) - 0.5 * np.log(2 * np.pi) - 0.5 * ((x[:, None] - q.mean) ** 2 + 1 / q.precision)
    )
    rows = np.logaddexp(logits[:, 0], logits[:, 1]).sum()
    prior = families.Normal(np.zeros(2), np.full(2, 0.1))
    assert posterior.elbo == pytest.approx(rows - q.kl(prior).sum(), rel=1e-12)
