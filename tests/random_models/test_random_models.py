"""Random models of every kind that the language states: what each fit owes, held against densities and sums."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import caviar as cv
from caviar.language import Label

from .checks import (
    assert_elbo_is_that_of_the_densities,
    assert_same_trace,
    assert_sane,
    assert_stationary,
    has_coupled_rows,
    rows_of,
)
from .closed_forms import PAIRS, enumerated_evidence
from .gaps import with_gaps, with_known_labels, with_known_numbers
from .statement import state
from .strategy import Drawn, examples, models

FEW = {"max_iter": 4, "tol": 0.0, "seed": 0}


@examples(100, share=8)
@given(models(), st.sampled_from(["auto", "prior"]), st.integers(0, 3), st.booleans())
def test_a_fit_ends_at_a_stationary_point_of_the_elbo(drawn: Drawn, init: str, plate: int, apart: bool):
    """It rises to where no global factor can be improved, and is what the families' densities say."""
    stated, data = drawn.stated, drawn.data
    plates = [None, *(p.name for leaf in stated.model.leaves for p in leaf.plates)]
    data_plate = None if stated.writer.has_chain else plates[plate % len(plates)]
    arguments = {"data_plate": data_plate, "factors": [] if apart else None}
    posterior = stated.model.fit(data, seed=0, init=init, max_iter=400, tol=1e-11, **arguments)
    assert_sane(posterior)
    found = posterior.elbo_at({}, data)
    close = abs(found - posterior.elbo) < 1e-7 * (1 + abs(posterior.elbo))
    # hidden values of a row that depend on each other are found anew, perhaps elsewhere
    assume(close or not has_coupled_rows(stated, posterior))
    assert close
    assert_elbo_is_that_of_the_densities(posterior, data)
    if posterior.converged:
        assert_stationary(posterior, data)


@examples(80)
@given(models())
def test_rows_in_any_order_and_by_weight(drawn: Drawn):
    """Permuted rows, and rows as often as their weight says, are fitted in the same way."""
    stated, data, rng = drawn.stated, drawn.data, drawn.rng
    assume(stated.data_plate is not None and not stated.writer.has_chain)
    given_plate = {"data_plate": stated.data_plate, **FEW}
    order = rng.permutation(drawn.n_rows)
    one = stated.model.fit(data, **given_plate)
    assert_same_trace(one, stated.model.fit(rows_of(stated, data, order), **given_plate))
    times = rng.integers(0, 3, drawn.n_rows) + (np.arange(drawn.n_rows) == 0)
    repeated = stated.model.fit(
        rows_of(stated, data, np.repeat(np.arange(drawn.n_rows), times)), **given_plate
    )
    assert_same_trace(repeated, stated.model.fit(data, sample_weight=times, **given_plate))


@examples(60)
@given(models())
def test_names_and_order_of_a_statement_do_not_matter(drawn: Drawn):
    """Other names, leaves passed the other way round: the same updates from the same start."""
    stated, data = drawn.stated, drawn.data
    start = {"init": "prior", **FEW}
    one = stated.model.fit(data, **start)

    def rename(name: str) -> str:
        return f"its {name[::-1]}"

    def renamed(name: str) -> str:
        variable: Any = drawn.stated.model.variables[name]
        # what another variable brings is named after it
        return f"{rename(variable.answer.name)}.{variable.noun}" if variable.is_brought else rename(name)

    other = state(drawn.choices, rename=rename).model
    named = {rename(name): value for name, value in data.items()}
    assert_same_trace(one, other.fit(named, order=[renamed(name) for name in one], **start))
    if not has_coupled_rows(stated, one):
        backwards = state(drawn.choices, backwards=True).model
        assert_same_trace(one, backwards.fit(data, order=list(one), **start))


@examples(60)
@given(models(), st.sampled_from([-3.0, 1e3]))
def test_the_origin_does_not_matter(drawn: Drawn, shift: float):
    """Data and prior means moved by the same amount have the same ELBO."""
    stated, data = drawn.stated, drawn.data
    assume(not stated.writer.has_predictor)
    far = state(drawn.choices, shift=shift).model
    locations = [
        leaf.name for leaf in stated.model.leaves if isinstance(leaf, cv.Normal | cv.MultivariateNormal)
    ]
    locations += [name for name, (holds, *_) in stated.known.items() if holds == "location"]
    assume(locations)
    moved = {name: value + shift if name in locations else value for name, value in data.items()}
    start = {"init": "prior", **FEW}
    assert_same_trace(stated.model.fit(data, **start), far.fit(moved, **start), rtol=1e-7)


@examples(80)
@given(models())
def test_missing_entries_and_variables_of_the_rows_known_in_part(drawn: Drawn):
    """Entries are left out of the densities, labels and numbers are what is told; empty rows are not there at all."""
    stated, rng = drawn.stated, drawn.rng
    every = stated.simulate_all(drawn.seed, drawn.n_rows)
    data = with_known_labels(stated, every, with_gaps(stated, drawn.data, rng), rng)
    data = with_known_numbers(stated, every, data, rng)
    fixed = {"data_plate": stated.data_plate, "seed": 0}
    try:
        posterior = stated.model.fit(data, max_iter=200, tol=1e-11, **fixed)
    except cv.DataError as error:
        if not re.search("leaves the latent .* without an observation below it", str(error)):
            raise
        # the one thing that missing entries may not do
        return
    assert_sane(posterior)
    found = posterior.elbo_at({}, data)
    if abs(found - posterior.elbo) < 1e-7 * (1 + abs(posterior.elbo)):
        assert_elbo_is_that_of_the_densities(posterior, data)
    else:
        assert has_coupled_rows(stated, posterior)


@examples(50)
@given(models())
def test_rows_with_nothing_observed_are_not_there(drawn: Drawn):
    """Rows without an entry, between and behind the others, change no iteration."""
    stated, data = drawn.stated, drawn.data
    nodes = {node.name: node for node in stated.model.nodes}
    along = [leaf.name for leaf in stated.model.leaves if stated.data_plate in leaf.plates]
    assume(stated.data_plate is not None and not stated.writer.has_chain)
    rows = np.arange(2 * drawn.n_rows) // 2
    padded = rows_of(stated, data, rows)
    for name in along:
        gaps = np.array(padded[name], dtype=float)
        np.moveaxis(gaps, nodes[name].plates.index(stated.data_plate), 0)[1::2] = np.nan
        padded[name] = gaps
    fixed = {"data_plate": stated.data_plate, **FEW}
    assert_same_trace(stated.model.fit(data, **fixed), stated.model.fit(padded, **fixed))


@examples(60)
@given(models(), st.integers(0, 2**16))
def test_starts_at_the_truth(drawn: Drawn, which: int):
    """Any of the hidden variables may be given as they were drawn; the fit goes up from there."""
    stated, data = drawn.stated, drawn.data
    truth = stated.simulate_all(drawn.seed, drawn.n_rows)
    init = {name: truth[name] for i, name in enumerate(stated.latent) if which >> i & 1}
    rows = stated.model.fit(data, max_iter=0, seed=0).data_plate
    for name, value in init.items():
        # rows stand first in a start
        plates = stated.model.variables[name].plates
        if rows in plates:
            # a pair of a mean and a precision for each row is not taken
            assume(not isinstance(value, tuple))
            init[name] = np.moveaxis(value, plates.index(rows), 0)
    try:
        assert_sane(stated.model.fit(data, init=init, max_iter=20, seed=0))
    except cv.ModelError as error:
        if "is not possible inside the joint factor" not in str(error):
            raise


@examples(80)
@given(models(), st.integers(0, 2**16))
def test_point_masses(drawn: Drawn, which: int):
    """With any of the globals at points the objective is still that of the densities; a missing mode is said."""
    stated, data = drawn.stated, drawn.data
    globals_ = list(stated.model.fit(data, max_iter=0, seed=0))
    point = [name for i, name in enumerate(globals_) if which >> i & 1] or globals_
    try:
        posterior = stated.model.fit(data, point=point, seed=0, max_iter=200, tol=1e-11)
    except cv.ImproperError as error:
        if "has no optimum" not in str(error):
            raise
        return
    assert_sane(posterior)
    if abs(posterior.elbo_at({}, data) - posterior.elbo) < 1e-7 * (1 + abs(posterior.elbo)):
        assert_elbo_is_that_of_the_densities(posterior, data)
    else:
        assert has_coupled_rows(stated, posterior)


@examples(120, share=3)
@given(models(known_only=True, most_rows=4))
def test_the_elbo_of_labels_is_bounded_by_the_sum_over_them(drawn: Drawn):
    """Where all but labels is known; with one label a row, or a chain, it is that sum."""
    stated, data = drawn.stated, drawn.data
    assume(stated.latent)
    assume(all(isinstance(stated.model.variables[name], Label) for name in stated.latent))
    every = stated.simulate_all(drawn.seed, drawn.n_rows)
    exact = enumerated_evidence(stated, data, {name: np.shape(every[name]) for name in stated.latent})
    assume(exact is not None)
    posterior = stated.model.fit(data, seed=0, max_iter=200, tol=1e-12)
    assert posterior.elbo <= exact + 1e-8 * (1 + abs(exact))
    if len(stated.latent) == 1 and stated.is_one_factor:
        assert posterior.elbo == pytest.approx(exact, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("pair", PAIRS)
@examples(5, share=1)
@given(st.integers(0, 10_000), st.integers(1, 8))
def test_the_elbo_of_a_conjugate_pair_is_the_evidence(pair: str, seed: int, n_rows: int):
    """One latent variable and no mean-field split: SciPy's distributions give log p(x)."""
    state_pair, draw = PAIRS[pair]
    x = draw(np.random.default_rng(seed), n_rows)
    model, exact = state_pair(x)
    assert model.fit({"x": x}).elbo == pytest.approx(exact, rel=1e-9, abs=1e-9)


@pytest.mark.usefixtures("figures_of_factors")
@examples(50)
@given(models())
def test_what_a_posterior_gives(drawn: Drawn):
    """Draws have the shapes of their plates, tables name every global, pickles and copies give the same objective."""
    stated, data = drawn.stated, drawn.data
    posterior = stated.model.fit(data, seed=0, max_iter=5, n_restarts=2)
    assert posterior.elbo == posterior.restart_elbos.max()
    truth = stated.simulate_all(drawn.seed, drawn.n_rows)
    draws = posterior.sample(3, seed=0)
    for name in posterior:
        # a pair of a mean and a precision, or one array
        parts = (
            zip(draws[name], truth[name], strict=True)
            if isinstance(truth[name], tuple)
            else [(draws[name], truth[name])]
        )
        for found, value in parts:
            assert np.shape(found) == (3, *np.shape(value))
        if name in posterior.stated_names:
            assert name in str(posterior.summary(max_rows=None))
    sizes = {} if stated.data_plate is None else {stated.data_plate.name: drawn.n_rows}
    known = {stated.writer.rename(name): data[stated.writer.rename(name)] for name in stated.known}
    new = posterior.predictive(sizes, data=known, n_draws=2, seed=0)
    for name in stated.leaves:
        assert np.shape(new[name]) == (2, *np.shape(data[name]))
    again = pickle.loads(pickle.dumps(posterior))
    # arrays may lie in memory in another order, which sums see in their last digit
    assert again.elbo_at({}, data) == pytest.approx(posterior.elbo_at({}, data), rel=1e-12, abs=1e-12)
