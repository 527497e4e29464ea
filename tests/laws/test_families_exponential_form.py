"""Every family is the exponential family that it says: natural parameters, statistics and log-partition fit."""

import numpy as np
import pytest

from caviar.families import FAMILIES, Categorical, Gamma, Normal, NormalGamma, NormalWishart
from caviar.families.base.family import ExponentialFamily


def directions(q, rng):
    """Return a random direction for each natural parameter, symmetric where the parameter is a matrix."""
    result = []
    for eta, shape in zip(q.natural, q.statistic_shapes(q.event_shape), strict=True):
        direction = rng.normal(size=eta.shape)
        if len(shape) == 2 and np.array_equal(eta, eta.swapaxes(-1, -2)):
            direction = direction + direction.swapaxes(-1, -2)
        result.append(direction)
    return result


def test_every_family_is_registered(laws):
    # these are those of bounds: test_polya_gamma_sum.py, test_sums_of_rates.py, test_categories_behind_links.py,
    # test_expected_links.py
    own = {"PolyaGammaSum", "Shares", "SoftmaxTangent", "LogGammaTangent", "LogitMoments", "ProbitMoments"}
    # what a Categorical is beside other labels: test_labels_together.py
    own |= {"JointLabels"}
    # whose intervals are among the natural parameters: test_partly_seen.py
    own |= {"IntervalNormal", "UnseenNormal"}
    assert {type(case).__name__ for case in laws.cases.values()} == set(FAMILIES) - own


def test_gradient_of_the_log_partition_is_the_expected_statistic(q, laws):
    rng = np.random.default_rng(7)
    for _ in range(4):
        direction = directions(q, rng)

        def slope(h, direction=direction):
            up = [eta + h * d for eta, d in zip(q.natural, direction, strict=True)]
            down = [eta - h * d for eta, d in zip(q.natural, direction, strict=True)]
            return (q.from_natural(tuple(up)).log_partition - q.from_natural(tuple(down)).log_partition) / (
                2 * h
            )

        h = 2e-4
        extrapolated = (4.0 * slope(h / 2) - slope(h)) / 3.0
        np.testing.assert_allclose(
            extrapolated, laws.inner(q, direction, q.expected_statistics), rtol=1e-7, atol=1e-7
        )


def test_natural_parameters_give_back_the_standard_ones(q):
    back = q.from_natural(q.natural)
    fresh = type(q)(**back._parameters())  # without the caches that from_natural filled
    assert back.batch_shape == q.batch_shape
    assert back.event_shape == q.event_shape
    for name, value in q._parameters().items():
        np.testing.assert_allclose(getattr(back, name), value, rtol=1e-13, atol=1e-13)
    for eta, again in zip(q.natural, fresh.natural, strict=True):
        np.testing.assert_allclose(again, eta, rtol=1e-13, atol=1e-13)
    for expected, again in zip(q.expected_statistics, back.expected_statistics, strict=True):
        np.testing.assert_allclose(again, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(back.log_partition, q.log_partition, rtol=1e-12, atol=1e-12)


def test_log_density_is_linear_in_the_statistics(q, laws):
    value = laws.as_one(laws.draw(q, 50, seed=3))
    shifted = [eta + c for eta, c in zip(q.natural, q.base_measure, strict=True)]
    linear = (
        laws.inner(q, shifted, laws.statistics_at(q, value)) - q.log_partition + laws.log_carrier(q, value)
    )
    np.testing.assert_allclose(q.log_density(value), linear, rtol=1e-9, atol=1e-9)


def test_entropy_is_what_the_exponential_form_gives(q, laws):
    shifted = [eta + c for eta, c in zip(q.natural, q.base_measure, strict=True)]
    expected = q.log_partition - laws.inner(q, shifted, q.expected_statistics) - laws.expected_log_carrier(q)
    np.testing.assert_allclose(q.entropy(), expected, rtol=1e-11, atol=1e-11)


def test_shapes(q, laws):
    shapes = q.statistic_shapes(q.event_shape)
    assert len(shapes) == len(q.statistics) == len(q.base_measure)
    value = laws.as_one(laws.draw(q, (3, 2)))
    statistics = laws.statistics_at(q, value)
    for shape, eta, expected, statistic in zip(
        shapes, q.natural, q.expected_statistics, statistics, strict=True
    ):
        assert eta.shape == expected.shape == q.batch_shape + shape
        assert statistic.shape == (3, 2, *q.batch_shape, *shape)
    assert np.shape(q.log_partition) == np.shape(q.entropy()) == q.batch_shape
    assert q.log_density(value).shape == (3, 2, *q.batch_shape)


def test_indexing_takes_a_part_of_the_batch(q):
    if not q.batch_shape:
        with pytest.raises(IndexError):
            q[0]
        return
    for index in (0, -1, slice(None, None, -1), np.array([0, 0]), (..., -1), None):
        part = q[index]
        rows = np.arange(np.prod(q.batch_shape)).reshape(q.batch_shape)[index]
        assert part.batch_shape == np.shape(rows)
        np.testing.assert_allclose(part.entropy(), q.entropy()[index], rtol=1e-12)
        for expected, whole in zip(part.expected_statistics, q.expected_statistics, strict=True):
            np.testing.assert_allclose(expected, whole[np.unravel_index(rows, q.batch_shape)], rtol=1e-12)


def test_natural_parameters_of_different_batch_shapes_broadcast(q):
    if not q.batch_shape or len(q.natural) == 1:
        pytest.skip("one natural parameter, or no batch")
    shared = list(q.natural)
    position = len(q.natural) // 2
    shared[position] = shared[position][(0,) * len(q.batch_shape)]
    shared = tuple(shared)
    spread = tuple(
        np.array(np.broadcast_to(eta, full.shape)) for eta, full in zip(shared, q.natural, strict=True)
    )
    mixed, whole = q.from_natural(shared), q.from_natural(spread)
    assert mixed.batch_shape == whole.batch_shape == q.batch_shape
    np.testing.assert_allclose(mixed.entropy(), whole.entropy(), rtol=1e-13)
    np.testing.assert_allclose(mixed.log_partition, whole.log_partition, rtol=1e-13)


@pytest.mark.parametrize("position", [1, 2])
@pytest.mark.parametrize(
    "joint",
    [
        NormalWishart([[0.0, 1.0], [2.0, -3.0], [4.0, 5.0]], 2.0, 4.0, np.eye(2)),
        NormalGamma([0.0, 2.0, -4.0], 2.0, 3.0, 1.5),
    ],
    ids=["normal-wishart", "normal-gamma"],
)
def test_a_precision_that_a_batch_shares_is_one_for_each_of_its_members(joint, position):
    natural = list(joint.natural)
    natural[position] = natural[position][0]
    shared = joint.from_natural(tuple(natural))
    assert shared.batch_shape == (3,)
    for name in joint._parameters():
        np.testing.assert_allclose(getattr(shared, name), getattr(joint, name), rtol=1e-14, strict=True)
    for found, expected in zip(shared[1:].expected_statistics, joint.expected_statistics, strict=True):
        np.testing.assert_allclose(found, expected[1:], rtol=1e-13, atol=1e-14, strict=True)


def test_printed_form_names_family_parameters_and_batch(q):
    text = repr(q)
    assert text.startswith(type(q).__name__)
    assert all(f"{name}=" in text for name in q._parameters())
    assert f"batch {q.batch_shape}" in text


def test_large_batches_are_printed_short():
    assert len(repr(Normal(np.zeros(10_000), 1.0))) < 200


def test_unnormalised_log_probabilities_are_kept():
    q = Categorical.from_natural((np.array([1.0, 2.0, -np.inf]),))
    np.testing.assert_allclose(q.log_partition, np.logaddexp(1.0, 2.0), rtol=1e-15)
    np.testing.assert_allclose(q.log_density(np.array([0, 1])), np.log(q.probabilities[:2]), rtol=1e-14)
    assert q.log_density(2) == -np.inf


def test_a_family_needs_its_natural_parameters_expectations_and_log_partition():
    class Unfinished(Gamma):
        natural = ExponentialFamily.natural
        expected_statistics = ExponentialFamily.expected_statistics
        log_partition = ExponentialFamily.log_partition

    with pytest.raises(TypeError, match=r"expected_statistics.*log_partition.*natural"):
        Unfinished(1.0, 1.0)
