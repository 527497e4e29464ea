"""Linear response of random models: symmetric, and the change of the updates that it says, whatever is stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import caviar as cv
from caviar.engine.ascent.schedules.moves.saddles import _Response
from caviar.engine.ascent.state import AscentState, begin
from caviar.engine.evaluation.evaluate import in_frame
from caviar.engine.response.operator import ResponseOperator

from .strategy import Drawn, examples, models


def _with_naturals(state: AscentState, operator: ResponseOperator) -> AscentState:
    """Return a state with the natural parameters of its factors, as differences want them."""
    natural = {}
    for variable in state.problem.order:
        factor = state.q[variable]
        is_whole = isinstance(factor, cv.families.ExponentialFamily)
        natural[variable] = factor.natural if is_whole else operator.natural[variable]
    return replace(state, natural=natural)


@examples(60)
@given(models(), st.booleans())
def test_responses_are_symmetric_and_those_of_the_updates(drawn: Drawn, apart: bool):
    stated, data = drawn.stated, drawn.data
    factors = [] if apart else None
    posterior = stated.model.fit(data, seed=0, max_iter=300, tol=1e-11, factors=factors)
    problem, rows = posterior._evaluator.bind(data)
    assume(problem.order)
    state = begin(problem, in_frame(problem, posterior._shared.beside(posterior._factors, ())), rows)
    operator = ResponseOperator(state.problem, state.q, state.arrays, state.rows, state.warm)
    matrix = operator.matrix()
    counts = operator.counts
    own = matrix[np.ix_(counts, counts)]
    np.testing.assert_allclose(own, own.T, atol=1e-9 * max(1.0, np.abs(own).max(initial=0.0)))
    if state.problem.rows.keeps_locals or not operator.size:
        return
    # the finite differences that look for saddle points, in the same coordinates
    differenced = _Response(_with_naturals(state, operator))
    coordinates = np.random.default_rng(0).normal(size=(operator.size, 1))
    change = differenced.of_updates(operator.times(coordinates)[:, 0])
    wanted = operator.transposed(change[:, None])[:, 0]
    found = operator.apply(coordinates)[:, 0]
    np.testing.assert_allclose(found, wanted, atol=3e-3 * max(1.0, np.abs(found).max(initial=0.0)))
