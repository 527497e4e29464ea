"""Plain values come back as they were, of the same types; anything else is refused with its place."""

import json
import math

import numpy as np
import pytest

from caviar.storage import pack, unpack

VALUES = {
    "none": None,
    "yes": True,
    "whole": 2**130,
    "number": 0.1,
    "infinite": [math.inf, -math.inf],
    "text": 'quote " and ä',
    "list": [1, [2.5, None], "x"],
    "tuple": (1, (2, "x")),
    "nested": {"a": {"b/c d": np.arange(3.0)}, "e": {"f": {"g": {"h": np.eye(2)}}}},
    "names": np.array(["a", "ä b"], dtype=object),
    "whole numbers": np.array([[1, 2], [3, 4]]),
    "mask": np.array([True, False]),
    "scalar": np.array(1.5),
    "empty": np.empty((0, 2)),
}


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other)
    return type(one) is type(other) and one == other


def test_values_come_back_as_they_were():
    plain, arrays = pack(VALUES)
    assert all(array.dtype != object for array in arrays.values())
    text = json.dumps(plain, allow_nan=False)
    assert same(VALUES, unpack(json.loads(text), arrays))


def test_numpy_scalars_become_numbers_and_not_a_number_stays_one():
    plain, _ = pack([np.float64(0.5), np.int32(3), np.bool_(True), math.nan])
    assert plain == [0.5, 3, True, {"$float": "nan"}]
    assert math.isnan(unpack(plain, {})[3])


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, {"$array": "x"}, np.array([object()]), np.array([1j]), {1, 2}, b"bytes", lambda: 0],
)
def test_anything_else_is_refused_with_its_place(value):
    with pytest.raises(TypeError, match="'outer/inner'"):
        pack({"outer": {"inner": value}})


@pytest.mark.parametrize(
    "value", [{"$array": "nope"}, {"$float": "1"}, {"$code": "x"}, {"$tuple": [1], "x": 2}]
)
def test_made_up_values_are_refused(value):
    with pytest.raises((ValueError, LookupError)):
        unpack({"a": [value]}, {})


def test_an_array_in_several_places_is_kept_once_where_that_is_asked_for():
    array, other = np.arange(3.0), np.arange(3.0)
    value = {"a": array, "b": [array, other]}
    header, arrays = pack(value, once=True)
    assert len(arrays) == 2
    found = unpack(header, arrays)
    assert found["a"] is found["b"][0]
    assert found["a"] is not found["b"][1]
    assert len(pack(value)[1]) == 3
