"""Starts at the priors, where products of hidden locations are 0, and draws from vague ones."""

import numpy as np
import pytest

import caviar as cv

N_ROWS, N_COLUMNS, N_STATES = 60, 4, 2


def _state_space(vague: float = 1e-5) -> cv.Model:
    row, entry, column = cv.Plate("row"), cv.Plate("entry", N_STATES), cv.Plate("column", N_COLUMNS)
    alpha = cv.Gamma("alpha", vague, vague, plates=cv.Plate("before", N_STATES))
    gamma = cv.Gamma("gamma", vague, vague, plates=cv.Plate("hidden", N_STATES))
    transition = cv.MultivariateNormal("transition", np.zeros(N_STATES), cv.diagonal(alpha), plates=entry)
    s = cv.LinearGaussianChain(
        "s", np.zeros(N_STATES), 1e-3 * np.eye(N_STATES), transition, np.eye(N_STATES), along=row
    )
    loadings = cv.MultivariateNormal("C", np.zeros(N_STATES), cv.diagonal(gamma), plates=column)
    noise = cv.Gamma("tau", 1e-5, 1e-5)
    return cv.Model(cv.Normal("x", cv.dot(loadings, s), noise, plates=(row, column)))


@pytest.fixture(scope="module")
def series() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    states = [rng.normal(size=N_STATES)]
    for _ in range(N_ROWS - 1):
        states.append([[0.9, -0.3], [0.3, 0.9]] @ states[-1] + rng.normal(size=N_STATES))
    loadings = rng.normal(size=(N_COLUMNS, N_STATES))
    return {"x": np.array(states) @ loadings.T + 0.5 * rng.normal(size=(N_ROWS, N_COLUMNS))}


def test_a_product_that_has_not_left_zero_is_told(series):
    with pytest.warns(cv.CaviarWarning, match="'C' is still 0: the product explains nothing"):
        unmoved = _state_space().fit(series, init="prior")
    assert np.abs(unmoved["C"].mean).max() < 1e-6
    assert _state_space().fit(series).elbo > unmoved.elbo + 100


def test_a_product_that_leaves_zero_is_not(series, recwarn):
    row, column = cv.Plate("row"), cv.Plate("column", N_COLUMNS)
    z = cv.MultivariateNormal("z", np.zeros(2), np.eye(2), plates=row)
    loadings = cv.MultivariateNormal("W", np.zeros(2), np.eye(2), plates=column)
    model = cv.Model(cv.Normal("x", cv.dot(loadings, z), cv.Gamma("tau", 1, 1), plates=(row, column)))
    fitted = model.fit(series, init="prior")
    assert np.abs(fitted["W"].mean).max() > 0.1
    assert not [own for own in recwarn if issubclass(own.category, cv.CaviarWarning)]


def test_what_is_known_in_part_has_not_stayed_where_it_began(series, recwarn):
    known = np.full((N_COLUMNS, N_STATES), np.nan)
    known[0] = 0.0
    _state_space(1.0).fit({**series, "C": known}, init="prior", max_iter=20)
    assert not [own for own in recwarn if "explains nothing" in str(own.message)]


def test_draws_from_vague_priors_that_lead_nowhere_are_told(series):
    with pytest.warns(cv.CaviarWarning) as told:
        fitted = _state_space().fit(series, init="prior", n_restarts=4, seed=0)
    n_failed = 4 - len(fitted.restart_elbos)
    assert n_failed > 0
    said = [str(own.message) for own in told]
    assert any(own.startswith(f"{n_failed} of 4 starts led nowhere") for own in said)
    assert any("give narrower priors, or init='auto'" in own for own in said)
