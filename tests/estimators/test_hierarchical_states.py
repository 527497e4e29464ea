"""Hidden Markov models whose transitions are around common weights: statement, states that are emptied, and moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caviar as cv

pytestmark = pytest.mark.first_guess

RNG = np.random.default_rng(0)
PATH = np.repeat([0, 1, 2, 0, 2, 1], 20)
X = RNG.poisson(np.array([[2.0, 20.0], [10.0, 2.0], [30.0, 30.0]])[PATH])


def hmm(n_components: Any = 4, **arguments: Any) -> cv.HiddenMarkovModel:
    return cv.HiddenMarkovModel(
        n_components,
        transition_prior_type="dirichlet_process",
        emission="poisson",
        count_prior=(1.0, 0.1),
        random_state=0,
        **arguments,
    )


def test_it_is_the_stated_model() -> None:
    found = hmm(
        3, initial_prior=2.0, transition_prior=0.7, state_concentration=3.0, stickiness=4.0, tol=1e-10
    )
    found.fit(X, lengths=[60, 60])
    state, time = cv.Plate("state", 3), cv.Plate("time")
    weights = cv.StickBreaking("weights", 3.0, 3)
    stay = cv.Constant("stay", 4.0 * np.eye(3), plates=state)
    transition = cv.Dirichlet("transition", 0.7 * weights + stay, plates=state)
    starts = np.zeros(120)
    starts[[0, 60]] = 1.0
    s = cv.MarkovChain(
        "s",
        cv.Dirichlet("initial", 2.0 * weights),
        transition,
        along=time,
        starts=cv.Data("starts", plates=time),
    )
    feature = cv.Plate("feature", 2)
    rates = cv.Gamma("rate", 1.0, 0.1, plates=(state, feature))
    model = cv.Model(cv.Poisson("x", rates[s], plates=(time, feature)))
    init = {"s": found.predict_proba(X, lengths=[60, 60])}
    own = model.fit({"x": X, "starts": starts}, init=init, tol=1e-10, max_iter=1000)
    assert own.elbo == pytest.approx(found.elbo_, abs=1e-5)
    np.testing.assert_allclose(found.state_weights_, own["weights"].mean, rtol=1e-4)
    np.testing.assert_allclose(found.transition_, own["transition"].mean, rtol=1e-4)


@pytest.mark.usefixtures("figures_of_factors")
def test_states_that_no_row_needs_are_emptied_and_it_is_saved(tmp_path: Path) -> None:
    found = hmm(5, state_concentration=1.0).fit(X)
    assert (np.sort(found.occupancy_)[:2] < 0.02).all()
    assert (np.sort(found.occupancy_)[2:] > 0.2).all()
    found.save(tmp_path / "hmm")
    again = cv.load(tmp_path / "hmm")
    np.testing.assert_array_equal(again.state_weights_, found.state_weights_)
    np.testing.assert_array_equal(again.predict(X), found.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("stickiness", [0.0, 5.0])
def test_the_number_of_states_is_found_by_moves_that_raise_the_bound(stickiness: float) -> None:
    found = hmm("auto", stickiness=stickiness).fit(X)
    assert found.n_components_ == 3
    accepted = [move for move in found.moves_ if move.accepted]
    assert len(accepted) >= 2
    assert all(move.elbo_after > move.elbo_before for move in accepted)
    given = hmm(3, stickiness=stickiness).fit(X)
    assert found.elbo_ > given.elbo_ - 1e-3
    assert found.elbo_ > hmm(4, stickiness=stickiness).fit(X).elbo_


def test_one_number_for_all_states_is_asked_for() -> None:
    for arguments, message in [
        ({"transition_prior": [1.0, 2.0, 1.0, 1.0]}, "transition_prior, of a Dirichlet process,"),
        ({"initial_prior": np.ones(4)}, "initial_prior, of a Dirichlet process,"),
        ({"state_concentration": 0.0}, "state_concentration"),
        ({"stickiness": -1.0}, "stickiness"),
    ]:
        with pytest.raises(cv.ParameterError, match=message):
            hmm(**arguments).fit(X)
    with pytest.raises(cv.ParameterError, match="transition_prior_type"):
        cv.HiddenMarkovModel(2, transition_prior_type="process").fit(X)
