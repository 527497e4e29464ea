"""Contractions against sums written out entry by entry, whichever way they are evaluated."""

import itertools
import math
import pickle

import numpy as np
import pytest

import caviar as cv
from caviar.engine.design.contraction import Contraction
from caviar.engine.design.features import FeatureTable
from caviar.engine.design.gather import Factor
from caviar.language import Axis

ROW, COLUMN = Axis(cv.Plate("row")), Axis(cv.Plate("column"))
SIZES = {ROW: 5, COLUMN: 2}
RNG = np.random.default_rng(0)
TABLE, OTHER, VECTOR = RNG.normal(size=(5, 2)), RNG.normal(size=(5, 2)), RNG.normal(size=2)
BOTH = (ROW, COLUMN)

CASES = {
    "one array": ([(TABLE, BOTH)], []),
    "two arrays": ([(TABLE, BOTH), (OTHER, BOTH)], []),
    "two arrays, turned": ([(TABLE, BOTH), (OTHER.T, (COLUMN, ROW))], []),
    "an array and a constant": ([(TABLE, BOTH)], [(OTHER, BOTH)]),
    "an array stretched beside another": ([(TABLE, BOTH), (OTHER[:1], BOTH)], []),
    "an array stretched beside a constant": ([(TABLE[:, :1], BOTH)], [(OTHER, BOTH)]),
    "three arrays": ([(TABLE, BOTH), (OTHER, BOTH), (VECTOR, (COLUMN,))], []),
    "a matrix and a vector": ([(TABLE, BOTH), (VECTOR, (COLUMN,))], []),
    "a number and an array": ([(np.array(1.7), ()), (TABLE, BOTH)], []),
}


def entry(array, axes, where):
    """Return an entry of an array, of which an axis of length one is the same all along."""
    return array[tuple(where[axis] if n > 1 else 0 for axis, n in zip(axes, array.shape, strict=True))]


def products(operands):
    """Return the product of the operands at each place."""
    places = itertools.product(*(range(size) for size in SIZES.values()))
    wheres = [dict(zip(SIZES, place, strict=True)) for place in places]
    return [(w, math.prod(float(entry(*operand, w)) for operand in operands)) for w in wheres]


def stated(arrays, constants, coefficient):
    factors = [Factor(number, axes) for number, (_, axes) in enumerate(arrays)]
    return Contraction(coefficient, factors, constants, list(BOTH), SIZES.__getitem__)


@pytest.mark.parametrize("coefficient", [1.0, -0.5])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name, coefficient):
    arrays, constants = CASES[name]
    term = stated(arrays, constants, coefficient)
    given = {number: array for number, (array, _) in enumerate(arrays)}
    exact = coefficient * math.fsum(product for _, product in products([*arrays, *constants]))
    for own in (term, pickle.loads(pickle.dumps(term))):
        assert own.value(given) == pytest.approx(exact, rel=1e-13)
    for number, (array, axes) in enumerate(arrays):
        if array.shape != tuple(SIZES[axis] for axis in axes):
            continue
        others = [*arrays[:number], *arrays[number + 1 :], *constants]
        expected = np.zeros(array.shape)
        for where, product in products(others):
            expected[tuple(where[axis] for axis in axes)] += coefficient * product
        found = term.derivative(number)(given)
        np.testing.assert_allclose(np.broadcast_to(found, array.shape), expected, rtol=1e-12)
        assert not any(np.shares_memory(found, own) for own in given.values())


def test_the_only_block_of_rows_has_its_features_made_once(monkeypatch):
    fill, filled = FeatureTable.fill, []
    monkeypatch.setattr(FeatureTable, "fill", lambda self, *rest: filled.append(self) or fill(self, *rest))
    x = np.concatenate([RNG.normal(0, 1, (60, 2)), RNG.normal(2, 1, (60, 2))])
    means = x[:2].copy()
    posterior = cv.models.gaussian_mixture(2, 2).fit(
        {"x": x}, init={"mean": means}, max_iter=30, accelerate=False
    )
    assert posterior.n_iter == 30
    assert len(filled) < 12


@pytest.mark.parametrize(
    "axes", [(ROW, ROW, COLUMN, COLUMN), (ROW, COLUMN, COLUMN, ROW), (COLUMN, ROW, COLUMN)]
)
@pytest.mark.parametrize("others", [[(VECTOR, (COLUMN,))], [(VECTOR, (COLUMN,)), (OTHER, BOTH)]])
def test_derivatives_are_zero_off_each_diagonal(axes, others):
    """An operand with several axes twice, as a vector that labels gate meets diagonal noise."""
    array = np.random.default_rng(1).normal(size=[SIZES[axis] for axis in axes])
    term = stated([(array, axes), *others], [], -0.5)
    given = {number: own for number, (own, _) in enumerate([(array, axes), *others])}
    derivative = np.broadcast_to(term.derivative(0)(given), array.shape)
    for index in np.ndindex(array.shape):
        moved = array.copy()
        moved[index] += 1.0
        change = term.value({**given, 0: moved}) - term.value(given)
        assert derivative[index] == pytest.approx(change, abs=1e-12)
