"""Factors and arrays are plain values and back, to the bit and to the place in memory."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine.binding.clamped.factor import ClampedFactor, PointMass
from caviar.engine.checkpoint.states import plain, restored
from caviar.families import FAMILIES, Gamma, MeanPrecision, Normal, Wishart
from caviar.storage import pack, unpack

BASE = np.random.default_rng(0).normal(size=(4, 5, 6))
LAYOUTS = {
    "contiguous": BASE,
    "turned": BASE.transpose(2, 0, 1),
    "columns first": np.asfortranarray(BASE),
    "repeated": np.broadcast_to(BASE[0], (3, 5, 6)),
    "repeated and turned": np.broadcast_to(BASE[:, :1], (4, 5, 6)).transpose(1, 0, 2),
    "with gaps": BASE[:, ::2, 1:4],
    "diagonal": np.einsum("ijj->ij", BASE[:, :, :5]),
    "number": np.array(2.5),
    "empty": BASE[:, :0],
    "labels": np.arange(12).reshape(3, 4).T,
    "mask": (BASE > 0).transpose(1, 0, 2),
}


def through_a_file(value):
    header, arrays = pack({"value": plain(value)}, once=True)
    return restored(unpack(header, arrays)["value"])


@pytest.mark.parametrize("name", LAYOUTS)
def test_arrays_lie_as_they_did(name):
    array = LAYOUTS[name]
    found = through_a_file(array)
    np.testing.assert_array_equal(found, array, strict=True)
    where = [size > 1 for size in array.shape]
    if array.size:
        assert np.array(found.strides)[where].tolist() == np.array(array.strides)[where].tolist()


def test_arrays_that_lie_backwards_or_far_apart_keep_their_numbers():
    wide = np.zeros((1000, 1000))
    wide[:, 3] = np.arange(1000)
    for array in (BASE[::-1], wide[:, 3]):
        np.testing.assert_array_equal(through_a_file(array), array, strict=True)


def test_numbers_and_what_holds_them():
    value = (
        1,
        2.5,
        -0.0,
        np.inf,
        None,
        True,
        "a",
        [np.float64(0.1), MeanPrecision(BASE, BASE[0])],
        {"b": ()},
    )
    found = through_a_file(value)
    assert found[:7] == value[:7]
    assert np.signbit(found[2])
    assert type(found[7][0]) is np.float64
    assert isinstance(found[7][1], MeanPrecision)
    assert found[8] == {"b": ()}


def test_factors_keep_what_was_computed_of_them():
    factor = Wishart.from_natural((np.array([3.0, 4.0]), np.array([-np.eye(2), -3 * np.eye(2)])))
    _ = factor.expected_statistics
    for value in (
        factor,
        ClampedFactor(Normal([0.0], [1.0]), PointMass(Normal, np.array([2.0])), np.array([True, False])),
        PointMass(cv.families.Categorical, np.array([1, 0]), 3),
    ):
        found = through_a_file(value)
        assert type(found) is type(value)
        assert list(vars(found)) == list(vars(value)) or set(vars(found)) == set(vars(value))
        for mine, theirs in zip(found.expected_statistics, value.expected_statistics, strict=True):
            np.testing.assert_array_equal(mine, theirs, strict=True)


@pytest.mark.parametrize("name", ["module", "Gamma ", "object"])
def test_other_families_are_refused(name):
    document = plain(Gamma(1.0, 2.0))
    with pytest.raises(LookupError):
        restored({**document, "name": name})
    assert name not in FAMILIES


def test_other_values_are_refused():
    with pytest.raises(TypeError, match="a set cannot be kept"):
        plain({1})
    with pytest.raises(ValueError, match="a Gamma with 'sample'"):
        restored({"kind": "family", "name": "Gamma", "held": {"sample": np.ones(1)}})
