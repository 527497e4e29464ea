"""The ELBO rises, belongs to the factors that are returned, and is stationary where a fit has converged."""

import dataclasses
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import amount

from caviar import families
from caviar.families.shared.shared_factor import SharedFactor
from caviar.testing import numerical_gradient
from invariants.registry import CASES

pytestmark = pytest.mark.first_guess


@pytest.mark.thinned(36)
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=amount(5, 12))
@given(seed=st.integers(0, 10**6), n=st.integers(3, 60))
def test_elbo_never_falls(name, seed, n):
    """On random data the ELBO rises from iteration to iteration, and the fit ends for one of its two good reasons."""
    case, rng = CASES[name], np.random.default_rng(seed)
    posterior = case.fit(case.draw(rng, n), seed=seed, max_iter=500)
    assert posterior.status.value in ("converged", "max_iter")
    scale = max(1.0, abs(posterior.elbo))
    assert np.all(np.diff(posterior.elbo_trace) > -1e-10 * scale)
    assert len(posterior.elbo_trace) == posterior.n_iter + 1


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", CASES)
def test_elbo_is_that_of_the_returned_factors(name):
    """Stopped anywhere, `elbo` ends the trace, is the sum of `elbo_terms`, and is `elbo_at` of the factors."""
    case = CASES[name]
    data = case.draw(np.random.default_rng(1), 30)
    for max_iter in (1, 3, 200):
        posterior = case.fit(data, max_iter=max_iter)
        assert posterior.elbo == posterior.elbo_trace[-1]
        assert sum(posterior.elbo_terms.values()) == pytest.approx(posterior.elbo, rel=1e-12)
        given_factors = {key: posterior[key] for key in posterior}
        # local factors that depend on each other are found anew by elbo_at; they are the same at the end of a fit only
        if name not in ("measured-apart", "items") or max_iter == 200:
            assert posterior.elbo_at(given_factors, data) == pytest.approx(posterior.elbo, rel=1e-7)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].labels and name != "map"])
def test_given_labels_are_taken_as_they_are(name):
    """`elbo_at` with the local Categorical given is the ELBO of that factor: lower, unless it is the optimal one."""
    case, rng = CASES[name], np.random.default_rng(2)
    data = case.draw(rng, 20)
    posterior = case.fit(data)
    z = posterior.local(data)["z"]
    assert posterior.elbo_at({"z": z}, data) == pytest.approx(posterior.elbo, rel=1e-10)
    other = rng.dirichlet(np.ones(z.probabilities.shape[1]), len(z.probabilities))
    divergence = families.Categorical(other).kl(z).sum()
    # with the globals fixed the ELBO of q(z) lies below the best one by the divergence of q(z) from the best q(z)
    lower = posterior.elbo_at({"z": families.Categorical(other)}, data)
    assert posterior.elbo - lower == pytest.approx(divergence, rel=1e-8)


def _symmetric_directions(size):
    for i in range(size):
        for j in range(i + 1):
            direction = np.zeros((size, size))
            direction[i, j] = direction[j, i] = 1.0
            yield direction


def _directions(value, event_ndim):
    """Yield directions in which a parameter can move: entries, or symmetric pairs of entries of a matrix."""
    batch = value.shape[: value.ndim - event_ndim]
    event = value.shape[value.ndim - event_ndim :]
    # of two axes the means of several vectors are too
    is_symmetric = event_ndim == 2 and np.array_equal(value, np.swapaxes(value, -1, -2))
    entries = list(_symmetric_directions(event[0])) if is_symmetric else None
    if entries is None:
        entries = [e.reshape(event) for e in np.eye(int(np.prod(event, dtype=int)))]
    for index in np.ndindex(*batch):
        for entry in entries:
            direction = np.zeros(value.shape)
            direction[index] = entry
            yield direction


_SEEDS = {"measured-apart": {"seed": 1}}
"""At its highest end its local factors have two optima, and `elbo_at`, which begins them anew, finds the lower one."""


def _parameters(factor):
    """Yield each parameter of a factor: its name, value, the axes of an event, and the factor at another value.

    They are standard parameters, and natural ones of a factor that several variables share.
    """
    if isinstance(factor, SharedFactor):
        family, matrices = factor.family, {f"{own[0]}.xx" for own in factor.members if own[3] is not None}
        values = dict(zip(family.statistics, factor.natural, strict=True))
        ndims = [2 * (name in matrices) for name in values]
    else:
        family, values = type(factor), dataclasses.asdict(factor)
        ndims = family.parameter_ndims

    def at(name, value):
        moved = values | {name: value}
        return (
            family.from_natural(tuple(moved.values()))
            if isinstance(factor, SharedFactor)
            else family(**moved)
        )

    for (name, value), ndim in zip(values.items(), ndims, strict=True):
        yield name, value, ndim, partial(at, name)


def _slope_and_curvature(objective_at, value, direction):
    """Return the first two derivatives of the ELBO as a parameter moves by fractions of itself along a direction."""
    scale = max(np.abs(value * (direction != 0)).max(), 1e-3)

    def objective(step):
        return objective_at(value + float(step) * scale * direction)

    slope = float(numerical_gradient(objective, 0.0, relative_step=0.01, n_halvings=2).value)
    return slope, abs(objective(0.01) - 2 * objective(0.0) + objective(-0.01)) / 0.01**2


SHARED = ["regression", "utilities", "odds"]
"""Models in which several variables share a factor unless told otherwise."""


@pytest.mark.thinned(24)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [pytest.param(name, {}, id=name) for name in CASES if name != "map"]
    + [pytest.param(name, {"factors": "apart"}, id=f"{name}, apart") for name in SHARED],
)
def test_fixed_point_is_stationary_in_every_global_parameter(name, arguments):
    """Where a fit has converged, the derivative of `elbo_at` in each parameter of each factor vanishes.

    It is measured against the curvature of the ELBO: what is left is a tiny fraction of the factor's own scale.
    """
    case = CASES[name]
    data = case.draw(np.random.default_rng(3), 25)
    posterior = case.fit(data, tol=1e-15, max_iter=20000, **_SEEDS.get(name, {}), **arguments)
    elbo_at, factors = posterior._objective(data), posterior._independent
    assert any(isinstance(own, SharedFactor) for own in factors.values()) == (
        name in SHARED and not arguments
    )
    for variable, factor in factors.items():
        curvatures = []
        for parameter, value, ndim, moved in _parameters(factor):
            for direction in _directions(value, ndim):
                slope, curvature = _slope_and_curvature(
                    lambda other, own=variable, moved=moved: elbo_at({own: moved(other)}), value, direction
                )
                assert abs(slope) < 1e-5 * max(1.0, curvature), (variable, parameter)
                curvatures.append(curvature)
        # not vacuous: the ELBO is that of this factor
        assert max(curvatures) > 1e-3, variable


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].labels and name != "map"])
def test_fixed_point_is_stationary_in_every_responsibility(name):
    """The derivative of `elbo_at` in the logit of every responsibility vanishes, the globals fixed."""
    case = CASES[name]
    data = case.draw(np.random.default_rng(4), 6)
    posterior = case.fit(data, tol=1e-14, max_iter=5000)
    z = posterior.local(data)["z"].probabilities
    elbo_at = posterior._objective(data)

    def objective(logits):
        tilted = z * np.exp(logits)
        return elbo_at({"z": families.Categorical(tilted / tilted.sum(axis=1, keepdims=True))})

    slopes = numerical_gradient(objective, np.zeros(z.shape), relative_step=0.05, n_halvings=2)
    np.testing.assert_allclose(slopes.value, 0.0, atol=1e-7)
    uneven = np.zeros(z.shape)
    uneven[:, 0] = 0.5
    assert objective(uneven) < objective(np.zeros(z.shape))


def test_map_is_stationary():
    """The derivative of the log joint density in each entry of a point-mass mean vanishes at the end of MAP-EM."""
    case = CASES["map"]
    data = case.draw(np.random.default_rng(3), 40)
    posterior = case.fit(data, tol=1e-15, max_iter=20000)
    mean, elbo_at = posterior["mean"], posterior._objective(data)

    def objective(value):
        return elbo_at({"mean": dataclasses.replace(mean, value=value)})

    slopes = numerical_gradient(objective, mean.value, n_halvings=3)
    np.testing.assert_allclose(slopes.value, 0.0, atol=1e-4)
