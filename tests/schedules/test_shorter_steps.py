"""An iteration that goes too far ends a part of the way along natural parameters, also one from a start of factors."""

import numpy as np
import pytest
from starts.test_basis import made_from

import caviar as cv
from caviar.engine.ascent.state import _naturals, advance, at_natural, begin, joined


def from_a_start():
    """Return the state of a start, in which no natural parameters are kept, and the one after an iteration."""
    x = np.array([[-1.0, 0.3], [-0.5, 0.1], [2.0, 0.2], [2.5, -0.4]])
    basis = made_from(cv.models.normal_wishart_mixture(2, 2), {"x": x})
    before = begin(basis.problem, basis.q, basis.row_map)
    return before, advance(before)


def test_a_start_is_where_the_natural_parameters_of_its_factors_are():
    before, after = from_a_start()
    assert not before.natural
    natural = joined(before.problem, _naturals(before, after.natural))
    assert at_natural(after, natural).elbo == pytest.approx(before.elbo, rel=1e-12)
    assert after.elbo > before.elbo + 0.1


def test_there_is_no_way_from_factors_of_other_shapes():
    before, after = from_a_start()
    name = next(iter(after.natural))
    other = {**after.natural, name: after.natural[name][:-1]}
    assert _naturals(before, other) is None
    assert _naturals(before, {}) is None
    assert _naturals(after, other) is after.natural
