"""A fit on a device is the fit of the processor: the sums of a pass to 1e-12, and the whole fit to rounding.

array-api-strict knows nothing but the standard, and its ``device1`` neither mixes with arrays of the host nor is read
by NumPy, so what passes here uses no more than a GPU has.
"""

import numpy as np
import pytest
from invariants.registry import CASES, ON_DEVICES
from numpy.testing import assert_allclose

import caviar as cv
from device.devices import reached, strict, sums, uneven_weights

N = 400


def drawn(name):
    return CASES[name].draw(np.random.default_rng(1), N)


def assert_same_sums(found, expected):
    assert found.parts.keys() == expected.parts.keys()
    for part, value in expected.parts.items():
        assert_allclose(found.parts[part], value, rtol=1e-12, atol=1e-12 * np.abs(value).max(initial=0.0))
    for factor, entropy in expected.entropies.items():
        # the entropy is a difference of sums as large as the log densities
        assert_allclose(found.entropies[factor], entropy, rtol=1e-11, atol=1e-11 * N)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", ON_DEVICES)
def test_a_pass_gives_the_same_sums(name, weighted):
    case = CASES[name]
    plan, q, row_map = reached(
        case.state(),
        drawn(name),
        weights=uneven_weights(N) if weighted else None,
        point=case.arguments.get("point", ()),
    )
    expected = sums(plan, q, row_map.source, row_map.executor)
    assert_same_sums(sums(plan, q, row_map.source, strict(block_rows=150)), expected)


@pytest.mark.thinned(12)
@pytest.mark.parametrize("name", ON_DEVICES)
def test_a_fit_ends_at_the_same_posterior(name):
    data, case = drawn(name), CASES[name]
    here = case.fit(data, max_iter=15)
    there = case.fit(data, max_iter=15, executor=strict())
    assert there.n_iter == here.n_iter
    assert_allclose(there.elbo_trace, here.elbo_trace, rtol=1e-11)
    for variable in here:
        for mine, theirs in zip(_arrays(there[variable]), _arrays(here[variable]), strict=True):
            assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)


def _arrays(factor):
    mean = factor.mean
    return mean if isinstance(mean, tuple) else (mean,)


def test_every_other_case_is_refused_before_the_fit_starts():
    for name in CASES.keys() - set(ON_DEVICES):
        told = []
        with pytest.raises(cv.ParameterError, match="Leave executor= out"):
            CASES[name].fit(drawn(name), executor=strict(), progress=told.append)
        assert told == [], name


@pytest.mark.parametrize("name", ["diagonal", "counts", "categoricals", "known-variance"])
def test_missing_entries_of_leaves_that_factorise(name):
    data = {key: np.array(value, dtype=float) for key, value in drawn(name).items()}
    for value in data.values():
        value[np.random.default_rng(2).random(value.shape) < 0.2] = np.nan
    here, there = (CASES[name].fit(data, max_iter=10, executor=executor) for executor in (None, strict()))
    assert_allclose(there.elbo_trace, here.elbo_trace, rtol=1e-11)


@pytest.mark.slow
def test_weights_and_restarts():
    data, case, weights = drawn("independent"), CASES["independent"], uneven_weights(N)
    here, there = (
        case.fit(data, sample_weight=weights, n_restarts=2, max_iter=8, executor=executor)
        for executor in (None, strict(block_rows=64))
    )
    assert_allclose(there.restart_elbos, here.restart_elbos, rtol=1e-10)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "schedule", [cv.Incremental(4), cv.Stochastic(100)], ids=["incremental", "stochastic"]
)
def test_schedules(schedule, dtype):
    x = np.random.default_rng(0).choice([-2.0, 2.0], (1000, 1)) + np.random.default_rng(1).normal(
        size=(1000, 2)
    )
    model = cv.models.normal_wishart_mixture(2, 2)
    here, there = (
        model.fit({"x": x}, seed=0, schedule=schedule, max_iter=20, executor=executor)
        for executor in (None, strict(dtype=dtype))
    )
    assert_allclose(there.elbo, here.elbo, rtol=1e-10 if dtype == "float64" else 1e-6)


def test_components_that_are_measured_from_their_own_mean():
    rng = np.random.default_rng(0)
    x = np.repeat([0.0, 1e6], 150)[:, None] + rng.standard_normal((300, 2)) * 1e-2
    model = cv.models.gaussian_mixture(2, 2, prior_precision=1e-12, inverse_scale=1e-4)
    plan, q, row_map = reached(model, {"x": x}, n_iter=5)
    assert plan.rows.has_centres
    expected = sums(plan, q, row_map.source, row_map.executor)
    assert_same_sums(sums(plan, q, row_map.source, strict()), expected)
    here, there = (model.fit({"x": x}, seed=0, executor=executor) for executor in (None, strict()))
    assert_allclose(there.elbo, here.elbo, rtol=1e-10)


def test_a_categorical_on_a_plate_inside_a_row_is_refused():
    obs, part, component = cv.Plate("obs"), cv.Plate("part", 3), cv.Plate("component", 2)
    mean = cv.Normal("mean", 0.0, 0.1, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=(obs, part))
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=(obs, part)))
    x = np.random.default_rng(0).choice([-2.0, 2.0], (200, 3)) + np.random.default_rng(1).normal(
        size=(200, 3)
    )
    with pytest.raises(cv.ParameterError, match="otherwise than in a matrix product"):
        model.fit({"x": x}, executor=strict())
