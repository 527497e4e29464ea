"""A shared Gaussian factor from plain values: the one that they were made from, or refused where they disagree."""

from copy import deepcopy

import numpy as np
import pytest

from caviar.families.shared.coupled_normals import CoupledLayout, CoupledNormals, Cross, Member


def plain():
    """Return the values of a factor of a level and three groups."""
    cross = Cross("level*a", (0, 1), np.zeros(3, dtype=np.intp), np.arange(3), (3,))
    layout = CoupledLayout((Member("level", (), None), Member("a", (3,), None)), (cross,))
    natural = np.array(0.5), np.array(-9.0), np.arange(3.0), np.full(3, -4.0), np.array([0.3, -0.2, 0.1])
    return layout.from_natural(natural).as_plain()


def changed(change):
    values = deepcopy(plain())
    change(values)
    return values


def in_cross(place, value):
    def change(values):
        values["crosses"][0][place] = value

    return change


def test_values_of_a_factor_are_the_factor():
    values = plain()
    again = CoupledNormals.of_plain(values)
    np.testing.assert_array_equal(again.mean_of_all, values["mean"])
    for own, other in zip(again.precision.blocks, values["blocks"], strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (in_cross(2, np.zeros(3)), "whole numbers, one for each"),
        (in_cross(3, np.arange(3.0)), "whole numbers, one for each"),
        (in_cross(4, [4]), "whole numbers, one for each"),
        (in_cross(2, np.full(3, 1)), "beyond its variables"),
        (in_cross(2, np.full(3, -1)), "beyond its variables"),
        (in_cross(3, np.array([0, 1, 3])), "beyond its variables"),
        (in_cross(1, [0, 2]), "beyond its variables"),
        (in_cross(1, [-1, 1]), "beyond its variables"),
        (in_cross(1, [1, 1]), "within one variable"),
        (lambda values: values.update(known=np.zeros(4)), "which of its numbers are known"),
        (lambda values: values.update(known=np.zeros(3, dtype=bool)), "which of its numbers are known"),
        (lambda values: values.update(mean=np.zeros(5)), "numbers of a factor"),
        (lambda values: values.update(mean=np.full(4, np.nan)), "numbers of a factor"),
        (lambda values: values.update(mean=np.zeros(4, dtype=np.float32)), "numbers of a factor"),
        (lambda values: values["entries"].__setitem__(0, np.zeros(2)), "numbers of a factor"),
    ],
)
def test_values_that_disagree_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        CoupledNormals.of_plain(changed(change))
