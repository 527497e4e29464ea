"""Numerical derivatives agree with derivatives known in closed form, within the error they report."""

from math import cos, exp, log

import numpy as np
import pytest

from caviar._errors import ParameterError
from caviar._typing import Array
from caviar.testing import numerical_gradient
from oracles.reference import known_variance


def test_gradient_of_a_matrix_function() -> None:
    a = np.array([[2.0, 0.3], [0.3, 1.0]])
    gradient = numerical_gradient(lambda m: float(np.linalg.slogdet(m)[1]), a)
    np.testing.assert_allclose(gradient.value, np.linalg.inv(a).T, rtol=1e-10)
    assert gradient.error.shape == a.shape


@pytest.mark.parametrize("x", [-3.0, 1e-3, 0.0, 40.0])
def test_error_estimate_covers_the_error(x: float) -> None:
    gradient = numerical_gradient(lambda v: float(np.sin(v)), x)
    assert gradient.value.shape == ()
    assert abs(float(gradient.value) - cos(x)) <= 10 * float(gradient.error) + 1e-14
    assert abs(float(gradient.value) - cos(x)) < 1e-9


def test_a_large_constant_costs_only_its_own_digits() -> None:
    """An ELBO of -1e6 leaves about nine digits of a derivative of size one."""
    gradient = numerical_gradient(lambda v: exp(float(v)) - 1e6, 0.3)
    assert float(gradient.value) == pytest.approx(exp(0.3), abs=1e-7)


def test_small_entries_near_the_edge_of_a_domain_need_a_small_scale() -> None:
    def function(v: Array) -> float:
        return log(v[0]) if v[0] > 0 else np.nan

    with pytest.raises(ParameterError, match="lower relative_step or smallest_scale"):
        numerical_gradient(function, [1e-3])
    gradient = numerical_gradient(function, [1e-3], smallest_scale=1e-3)
    assert gradient.value[0] == pytest.approx(1e3, rel=1e-9)


@pytest.mark.parametrize("setting", [{"relative_step": 0.0}, {"smallest_scale": -1.0}, {"n_halvings": 0}])
def test_impossible_settings_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match="must be > 0"):
        numerical_gradient(lambda v: 0.0, [1.0], **setting)  # type: ignore[arg-type]


@pytest.mark.parametrize("prior_variance", [4.0, np.inf])
def test_elbo_is_stationary_at_a_fixed_point(prior_variance: float) -> None:
    """In every variational parameter, the responsibilities by their logits."""
    x = np.array([-2.1, -1.4, -1.9, 0.3, 2.2, 2.6, 1.7])
    model = known_variance.Model((0.4, 0.6), 0.9, 0.3, prior_variance)
    start = known_variance.Factors(np.array([-1.0, 1.0]), np.ones(2), np.full((7, 2), 0.5))
    q = known_variance.run(x, model, start, 300)

    def elbo(parameters: Array) -> float:
        logits = np.stack([parameters[4:], np.zeros(7)], axis=1)
        r = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return known_variance.elbo(
            x, model, known_variance.Factors(parameters[:2], np.exp(parameters[2:4]), r)
        )

    logits = np.log(q.responsibilities[:, 0] / q.responsibilities[:, 1])
    fixed_point = np.concatenate([q.means, np.log(q.mean_variances), logits])
    np.testing.assert_allclose(numerical_gradient(elbo, fixed_point).value, 0.0, atol=1e-9)
    assert np.abs(numerical_gradient(elbo, fixed_point + 0.01).value).max() > 1e-3
