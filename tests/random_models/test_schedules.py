"""Random models under every schedule: the objective rises where it should, is exact, and streams are bounds too."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import norm

import caviar as cv

from .checks import assert_sane, has_coupled_rows, rows_of
from .gaps import with_gaps
from .statement import Stated
from .strategy import Drawn, examples, models


def _assert_exact(posterior: cv.Posterior, stated: Stated, data: dict, **arguments) -> None:
    found = posterior.elbo_at({}, data, **arguments)
    close = abs(found - posterior.elbo) < 1e-7 * (1 + abs(posterior.elbo))
    # hidden values of a row that depend on each other are found anew, perhaps elsewhere
    assert close or has_coupled_rows(stated, posterior)


def _weights(drawn: Drawn) -> dict:
    if drawn.stated.writer.has_chain:
        return {}
    weights = drawn.rng.gamma(0.7, size=drawn.n_rows)
    weights[drawn.rng.random(drawn.n_rows) < 0.3] = 0.0
    weights[0] = 1.5
    return {"sample_weight": weights}


@examples(60)
@given(models(most_rows=40), st.integers(2, 9), st.booleans(), st.booleans())
def test_incremental_ascent_rises_to_an_exact_objective(drawn: Drawn, n: int, far: bool, weighted: bool):
    """With weights and gaps, in batches of few rows, some without any."""
    stated = drawn.stated
    assume(stated.data_plate is not None)
    data = drawn.data if weighted else with_gaps(stated, drawn.data, drawn.rng)
    weights = _weights(drawn) if weighted else {}
    try:
        posterior = stated.model.fit(
            data,
            data_plate=stated.data_plate,
            seed=0,
            schedule=cv.Incremental(n),
            accelerate=far,
            max_iter=12,
            **weights,
        )
    except cv.DataError:
        assert any(np.isnan(np.asarray(value, dtype=float)).any() for value in data.values())
        return
    assert_sane(posterior)
    _assert_exact(posterior, stated, data, **weights)


def test_a_model_of_which_all_is_known_has_batches_too():
    """Nothing is summed nor kept for it."""
    x = np.random.default_rng(0).normal(size=7)
    posterior = cv.Model(cv.Normal("x", 0.5, 2.0, plates=cv.Plate("row"))).fit(
        {"x": x}, schedule=cv.Incremental(3)
    )
    assert np.isclose(posterior.elbo, norm(0.5, np.sqrt(0.5)).logpdf(x).sum(), rtol=1e-13)


@examples(60)
@given(models(most_rows=40), st.integers(1, 20))
def test_stochastic_steps_end_in_an_exact_objective(drawn: Drawn, batch_rows: int):
    """However few rows a batch has, every step stays in its family."""
    stated, data = drawn.stated, drawn.data
    assume(stated.data_plate is not None)
    weights = _weights(drawn)
    posterior = stated.model.fit(
        data,
        data_plate=stated.data_plate,
        seed=0,
        schedule=cv.Stochastic(batch_rows),
        max_iter=2,
        **weights,
    )
    assert np.isfinite(posterior.elbo_trace).all()
    assert posterior.status.value in ("converged", "max_iter")
    _assert_exact(posterior, stated, data, **weights)


@examples(60)
@given(models(most_rows=20))
def test_a_stream_of_rows_has_exact_objectives(drawn: Drawn):
    """Yesterday's posterior in the place of the priors, where plates have a size of their own."""
    stated, data = drawn.stated, drawn.data
    assume(stated.data_plate is not None and not stated.writer.has_chain and drawn.n_rows > 1)
    half = drawn.n_rows // 2
    first, second = (rows_of(stated, data, rows) for rows in np.split(np.arange(drawn.n_rows), [half]))
    posterior = stated.model.fit(first, data_plate=stated.data_plate, seed=0, max_iter=20)
    try:
        posterior = posterior.update(second, data_plate=stated.data_plate, seed=0, max_iter=20)
    except (cv.PlateError, cv.ModelError) as error:
        if "earlier posterior" not in str(error):
            raise
        return
    assert_sane(posterior)
    _assert_exact(posterior, stated, second)
