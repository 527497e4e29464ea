"""Impossible parameters are refused with a text that says what was expected, what came and where."""

import numpy as np
import pytest

from caviar._errors import ImproperError, ParameterError
from caviar.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    MultivariateNormal,
    MultivariateNormalGamma,
    Normal,
    NormalGamma,
    NormalWishart,
    Poisson,
    PolyaGamma,
    StickBreaking,
    TruncatedNormal,
    Wishart,
)

INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
SKEW = np.array([[1.0, 0.5], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: Normal(0.0, 0.0), r"Normal: precision must be positive, got 0\.0"),
        (lambda: Normal(0.0, [1.0, -2.0]), r"precision must be positive, got -2\.0 at index \(1,\)"),
        (lambda: Normal(np.nan, 1.0), r"Normal: mean must be finite, got nan"),
        (lambda: Normal("one", 1.0), r"mean must be an array of numbers, got 'one'"),
        (lambda: Normal([0.0, 1.0], [1.0, 1.0, 1.0]), r"must broadcast, got mean \(2,\), precision \(3,\)"),
        (lambda: MultivariateNormal(0.0, np.eye(2)), r"mean must have at least 1 axes .* got shape \(\)"),
        (lambda: MultivariateNormal([0.0, 0.0, 0.0], np.eye(2)), r"\(\.\.\., 3, 3\).*got shape \(2, 2\)"),
        (lambda: MultivariateNormal([0.0, 0.0], INDEFINITE), r"positive definite.*, got -1\.0"),
        (lambda: MultivariateNormal([0.0, 0.0], SKEW), r"must be symmetric, got 0\.5 at index \(0, 1\)"),
        (lambda: MultivariateNormal([0.0, 0.0], np.ones((2, 3))), r"must be square.*got shape \(2, 3\)"),
        (lambda: Gamma(-1.0, 1.0), r"Gamma: shape must be positive, got -1\.0"),
        (lambda: Gamma(1.0, 0.0), r"Gamma: rate must be positive, got 0\.0"),
        (lambda: Wishart(1.0, np.eye(2)), r"df must be greater than D - 1 = 1 .* got 1\.0"),
        (lambda: Wishart(3.0, [np.eye(2), -np.eye(2)]), r"positive definite.* at index \(1,\)"),
        (lambda: NormalGamma(0.0, -1.0, 1.0, 1.0), r"NormalGamma: mean_precision must be positive"),
        (lambda: NormalGamma(0.0, 1.0, 1.0, np.inf), r"NormalGamma: rate must be finite"),
        (
            lambda: MultivariateNormalGamma([0.0, 0.0], INDEFINITE, 1.0, 1.0),
            r"mean_precision must be positive def",
        ),
        (
            lambda: MultivariateNormalGamma([0.0], np.eye(2), 1.0, 1.0),
            r"\(\.\.\., 1, 1\).*got shape \(2, 2\)",
        ),
        (lambda: MultivariateNormalGamma([0.0], np.eye(1), 0.0, 1.0), r"shape must be positive, got 0\.0"),
        (lambda: NormalWishart([0.0, 0.0], 0.0, 3.0, np.eye(2)), r"mean_precision must be positive"),
        (lambda: NormalWishart([0.0], 1.0, 3.0, np.eye(2)), r"\(\.\.\., 1, 1\).*got shape \(2, 2\)"),
        (lambda: Dirichlet([1.0, 0.0]), r"concentration must be positive, got 0\.0 at index \(1,\)"),
        (lambda: Dirichlet(1.0), r"concentration must have at least 1 axes"),
        (lambda: Dirichlet([]), r"at least one category"),
        (lambda: Beta(1.0, -1.0), r"Beta: b must be positive"),
        (lambda: Categorical([0.5, 0.6]), r"must sum to one, got 1\.1.*Divide"),
        (lambda: Categorical([1.5, -0.5]), r"must not be negative, got -0\.5 at index \(1,\)"),
        (lambda: Categorical([0.5, 0.5]).log_density(2), r"integers from 0 to 1, got 2"),
        (lambda: Categorical.statistics_of([0.5], 3), r"integers from 0 to 2, got 0\.5"),
        (lambda: Bernoulli(1.5), r"between 0 and 1, got 1\.5"),
        (lambda: Poisson([1.0, 0.0]), r"Poisson: rate must be positive, got 0\.0 at index \(1,\)"),
        (lambda: TruncatedNormal(0.0, [1.0, 0.0]), r"TruncatedNormal: precision must be positive, got 0\.0"),
        (
            lambda: PolyaGamma([0.0, -1.0]),
            r"PolyaGamma: tilt must not be negative, got -1\.0 at index \(1,\)",
        ),
        (lambda: StickBreaking([1.0, -1.0], [1.0, 1.0]), r"a must be positive, got -1\.0 at index \(1,\)"),
        (lambda: StickBreaking([1.0, 1.0], [1.0]), r"K - 1 shares.*got 2 and 1"),
        (lambda: StickBreaking([], []), r"K at least 2.*got 0 and 0"),
    ],
)
def test_bad_standard_parameters(build, text):
    with pytest.raises(ParameterError, match=text):
        build()


ZERO, ONE = np.zeros(2), np.ones(2)
BAD = np.array([1.0, -1.0])
EYES = np.stack((np.eye(2), -np.eye(2)))


@pytest.mark.parametrize(
    ("family", "natural"),
    [
        (Normal, (ZERO, -BAD)),
        (MultivariateNormal, (np.zeros((2, 2)), -EYES)),
        (Gamma, (BAD, -ONE)),
        (Gamma, (ONE, -BAD)),
        (Wishart, (np.array([2.0, 0.5]), -np.stack((np.eye(2), np.eye(2))))),
        (Wishart, (2.0 * ONE, -EYES)),
        (NormalGamma, (ZERO, -BAD, 2 * ONE, -ONE)),
        (NormalGamma, (np.array([0.0, 2.0]), -0.5 * ONE, 2 * ONE, -ONE)),
        (MultivariateNormalGamma, (np.zeros((2, 2)), -EYES, 3 * ONE, -ONE)),
        (MultivariateNormalGamma, (np.array([[0.0, 0.0], [2.0, 0.0]]), -np.eye(2) / 2, 3 * ONE, -ONE)),
        (NormalWishart, (np.zeros((2, 2)), -BAD, 2 * ONE, -np.stack((np.eye(2), np.eye(2))))),
        (NormalWishart, (np.zeros((2, 2)), -ONE, 2 * ONE, -EYES)),
        (Dirichlet, (np.array([[1.0, 1.0], [1.0, 0.0]]),)),
        (Beta, (ONE, BAD)),
        (Categorical, (np.array([[0.0, 1.0], [-np.inf, -np.inf]]),)),
        (Bernoulli, (np.array([1.0, np.nan]),)),
        (Poisson, (np.array([1.0, np.inf]),)),
        (TruncatedNormal, (ZERO, -BAD)),
        (TruncatedNormal, (np.array([0.0, np.inf]), -ONE)),
        (PolyaGamma, (-BAD,)),
        (PolyaGamma, (np.array([0.0, -np.inf]),)),
        (StickBreaking, (np.array([[1.0, 1.0], [-1.0, 3.0]]), np.zeros((2, 2)))),
        (StickBreaking, (np.ones((2, 3)), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -1.5]]))),
    ],
)
def test_natural_parameters_outside_the_domain_name_the_batch_index(family, natural):
    with pytest.raises(ImproperError, match=rf"{family.__name__} at batch index \(1,\)"):
        family.from_natural(natural)


def test_not_a_number_in_any_natural_parameter_is_refused(q):
    for position in range(len(q.natural)):
        natural = [np.array(eta) for eta in q.natural]
        natural[position][...] = np.nan
        with pytest.raises(ImproperError, match=type(q).__name__):
            q.from_natural(tuple(natural))


def test_one_matrix_with_not_a_number_among_good_ones_is_named():
    q = NormalWishart(np.zeros((3, 2)), 1.0, 4.0, np.eye(2))
    natural = [np.array(eta) for eta in q.natural]
    natural[3][2, 1, 0] = np.nan
    with pytest.raises(ImproperError, match=r"batch index \(2,\)"):
        NormalWishart.from_natural(tuple(natural))


def test_parameters_are_copied_and_fixed():
    concentration = np.array([1.0, 2.0])
    q = Dirichlet(concentration)
    concentration[0] = 7.0
    np.testing.assert_array_equal(q.concentration, [1.0, 2.0])
    with pytest.raises(AttributeError):
        q.concentration = concentration  # pyright: ignore[reportAttributeAccessIssue]


def test_parameters_broadcast_to_one_batch_shape():
    q = NormalWishart(np.zeros(2), np.ones((3, 1)), [4.0, 5.0], np.eye(2))
    assert q.batch_shape == (3, 2)
    assert q.mean.shape == (3, 2, 2)
    assert q.inverse_scale.shape == (3, 2, 2, 2)
    assert q.df.dtype == np.float64


@pytest.mark.parametrize(
    ("q", "delta"),
    [
        (Normal([0.5, 1.0], 2.0), 3.0),
        (MultivariateNormal([0.5, 1.0], np.eye(2)), [1.0, -2.0]),
        (NormalGamma(0.5, 2.0, 3.0, 4.0), [1.0, 2.0, 3.0]),
        (MultivariateNormalGamma([0.5, 1.0], np.eye(2), 3.0, 4.0), [[1.0, -2.0], [0.0, 5.0]]),
        (NormalWishart([0.5, 1.0], 2.0, 4.0, np.eye(2)), [[1.0, -2.0], [0.0, 5.0]]),
    ],
)
def test_translation_moves_the_location_only(q, delta, laws):
    moved = q.translate(delta)
    np.testing.assert_array_equal(moved.mean, q.mean + np.asarray(delta))
    np.testing.assert_allclose(moved.entropy(), np.broadcast_to(q.entropy(), moved.batch_shape), rtol=1e-14)
    value = laws.draw(q, seed=1)
    shifted = [value[0] + np.asarray(delta), *value[1:]]
    density = np.broadcast_to(q.log_density(laws.as_one(value)), moved.batch_shape)
    np.testing.assert_allclose(moved.log_density(laws.as_one(shifted)), density, rtol=1e-12)
