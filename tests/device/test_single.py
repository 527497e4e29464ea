"""Blocks in float32: no responsibility off by more than 1e-4, or in float64; and float64 at the end of a fit."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from checkpoint.comparing import Broken, after, assert_same_bits
from invariants.registry import CASES
from numpy.testing import assert_allclose

import caviar as cv
from caviar.engine.ascent.problem import statistics_of
from caviar.engine.ascent.schedules.batch import Batch
from caviar.engine.ascent.status import Status
from caviar.engine.rows.device.device_pass import DevicePass
from caviar.engine.rows.device.layout import layout_of
from caviar.engine.rows.row_map import Precision, RowMap
from caviar.engine.rows.tasks import InferBlocks, rows_at
from caviar.engine.rows.terms.row_term import BlockWork
from caviar.execution.array_libraries import library_of
from device.devices import hard, reached, strict, sums

BUDGET = 1e-4
EASY = ["close clusters", "far from zero", "columns of different size", "collinear columns"]
"""Data whose components overlap and stay within the budget."""

BEYOND = ["farther clusters", "very far clusters"]
KINDS = [*EASY, "far clusters", "outliers", *BEYOND]


def in_both_forms(kinds):
    """Return pairs (kind, form); without covariances columns are not collinear."""
    return [
        (kind, form)
        for kind in kinds
        for form in ("full", "diag")
        if (kind, form) != ("collinear columns", "diag")
    ]


def model_of(means, precisions, form="full"):
    """Return a mixture with priors of the size of the components, and where it starts."""
    centre, variances = means.mean(axis=0), np.diagonal(np.linalg.inv(precisions[0]))
    if form == "full":
        model = cv.models.gaussian_mixture(
            3,
            4,
            prior_mean=centre,
            prior_precision=1e-6 * precisions[0],
            inverse_scale=np.linalg.inv(precisions[0]),
        )
        return model, {"mean": means, "precision": precisions}
    model = cv.models.diagonal_mixture_independent(
        3, 4, prior_mean=centre, prior_precision=1e-6 / variances, rate=variances
    )
    return model, {"mean": means, "precision": np.broadcast_to(1 / variances, (4, 3))}


def start(kind, form="full", n_iter=1):
    """Return rows, and a problem, factors and passes one iteration after the true components."""
    x, means, precisions = hard(kind)
    model, init = model_of(means, precisions, form)
    return x, *reached(model, {"x": x}, init=init, n_iter=n_iter)


def rough_sums(problem, q, source, device):
    """Return the sums of a pass that need not be exact."""
    with device.session():
        rows = RowMap(problem.rows, source, device, Precision.SINGLE)
        return rows.summary(problem.rows.coefficients(statistics_of(problem, q)))


def single_block(problem, q, source):
    """Return responsibilities of all rows in float64, those in float32, and the error that is claimed for these."""
    coefficients = problem.rows.coefficients(statistics_of(problem, q))
    work, library = InferBlocks(problem.rows, coefficients), library_of("array_api_strict", "device1")
    rows = rows_at(source, (0, source.n_rows))
    (factor,) = problem.rows.factors
    problem.rows.summarize(BlockWork(rows, coefficients, work.scratch))
    exact = work.scratch.array((factor, "natural"), (factor.n_rows, rows.n_rows))
    layout = layout_of(problem.rows, rows_at(source, (0, 500), every=True))
    there = DevicePass(problem.rows, coefficients, layout, library)
    block = there.layout.move(rows, library)
    there.summarize(block)
    claimed = float(library.numpy(there.error(block)))
    found = library.numpy(there.scratch.array((factor, "natural"), (factor.n_rows, rows.n_rows)))
    assert found.dtype == np.float32
    return exact, found, claimed


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("kind", "form"), in_both_forms([*EASY, "far clusters", "farther clusters"]))
def test_the_error_that_is_claimed_is_the_true_one(kind, form):
    _, problem, q, row_map = start(kind, form)
    assert not problem.rows.has_centres
    exact, found, claimed = single_block(problem, q, row_map.source)
    assert ((exact > 0.01) & (exact < 0.99)).mean() > 0.05, "no components overlap: the test shows nothing"
    # rounding of the rows themselves, which is not in what is claimed, counts less
    true = np.abs(found - exact).max()
    assert 0.5 * claimed - 5e-6 <= true <= 1.5 * claimed + 5e-6


@pytest.mark.parametrize(("kind", "form"), in_both_forms(EASY))
def test_hard_data_that_are_within_the_budget(kind, form):
    x, problem, q, row_map = start(kind, form)
    exact = sums(problem, q, row_map.source, row_map.executor)
    # a warning would be an error
    found = rough_sums(problem, q, row_map.source, strict(dtype="float32"))
    assert any(not np.array_equal(found.parts[part], value) for part, value in exact.parts.items())
    for part, value in exact.parts.items():
        assert_allclose(found.parts[part], value, atol=BUDGET * np.abs(value).max())
    for factor, entropy in exact.entropies.items():
        assert_allclose(found.entropies[factor], entropy, atol=BUDGET * len(x))


def test_columns_whose_squares_are_beyond_float32():
    x, means, _ = hard("close clusters")
    size = np.array([1e-25, 1.0, 1e25])
    model = cv.models.diagonal_mixture_independent(3, 4, prior_precision=1e-6 / size**2, rate=size**2)
    init = {"mean": means * size, "precision": np.broadcast_to(1 / size**2, (4, 3))}
    problem, q, row_map = reached(model, {"x": x * size}, init=init, n_iter=1)
    exact, found, claimed = single_block(problem, q, row_map.source)
    assert claimed < BUDGET
    assert np.abs(found - exact).max() < BUDGET


@pytest.mark.thinned(9)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_ends_as_in_float64_whatever_the_data(kind):
    x, means, precisions = hard(kind)
    model, init = model_of(means, precisions)
    here = model.fit({"x": x}, init=init)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        there = model.fit({"x": x}, init=init, executor=strict(dtype="float32"))
    assert [warning.category for warning in told] == ([cv.PrecisionWarning] if kind in BEYOND else [])
    assert there.status is here.status
    # the last digits of where a fit stops depend on its way
    assert_allclose(there.elbo, here.elbo, atol=1e-6 * len(x))


@pytest.mark.parametrize("kind", BEYOND)
def test_a_pass_beyond_the_budget_is_that_of_float64(kind):
    _, problem, q, row_map = start(kind, n_iter=0)
    exact = sums(problem, q, row_map.source, strict())
    with pytest.warns(cv.PrecisionWarning, match=r"float32 would cost more than 0.0001 in a responsibility"):
        found = rough_sums(problem, q, row_map.source, strict(dtype="float32"))
    for part, value in exact.parts.items():
        assert np.array_equal(found.parts[part], value)


def _values(posterior):
    return {name: posterior[name] for name in posterior}


def test_the_elbo_that_is_reported_comes_from_float64():
    data = CASES["independent"].draw(np.random.default_rng(3), 2000)
    there = CASES["independent"].fit(data, executor=strict(dtype="float32"), max_iter=4)
    again = CASES["independent"].state().fit(data, init=_values(there), max_iter=0)
    assert_allclose(there.elbo, again.elbo, rtol=1e-12)


def test_an_interrupted_fit_ends_in_float64_too():
    data = CASES["independent"].draw(np.random.default_rng(3), 2000)

    def interrupt(progress):
        raise KeyboardInterrupt

    there = CASES["independent"].fit(data, executor=strict(dtype="float32"), progress=interrupt)
    again = CASES["independent"].state().fit(data, init=_values(there), max_iter=0)
    assert "interrupted" in str(there.status)
    assert_allclose(there.elbo, again.elbo, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.thinned(2)
@pytest.mark.parametrize("broken_off_at", [1, 4])
def test_a_fit_that_was_broken_off_in_float32_goes_on_in_it(broken_off_at, tmp_path):
    data = CASES["joint"].draw(np.random.default_rng(3), 2000)

    def fit(**arguments):
        return CASES["joint"].fit(data, seed=0, init="prior", executor=strict(dtype="float32"), **arguments)

    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    with pytest.raises(Broken):
        fit(**kept, progress=after(broken_off_at))
    told = []
    assert_same_bits(fit(**kept, progress=told.append), fit())
    assert told[0].iteration == broken_off_at + 1


@pytest.mark.slow
def test_a_fall_in_float32_is_asked_again_in_float64():
    # tol=0 keeps the loop going at the noise of float32, where the objective goes up and down
    data = CASES["joint"].draw(np.random.default_rng(3), 2000)
    there = CASES["joint"].fit(data, executor=strict(dtype="float32"), tol=0.0, max_iter=300)
    here = CASES["joint"].fit(data, tol=0.0, max_iter=300)
    assert_allclose(there.elbo, here.elbo, rtol=1e-11)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("goes_wrong", ["improper", "fell"])
def test_what_goes_wrong_in_float32_is_asked_again_in_float64(goes_wrong, monkeypatch):
    step, rough = Batch.step, []

    def failing(schedule, state):
        if rough or state.rows.is_single:
            rough.append(state.rows.is_single)
        if len(rough) != 3:
            return step(schedule, state)
        if goes_wrong == "improper":
            raise cv.ImproperError("a parameter left its domain")
        return replace(step(schedule, state), status=Status.FELL)

    data = CASES["joint"].draw(np.random.default_rng(3), 2000)
    # the start from the data is so near the optimum that there are too few steps in float32
    here = CASES["joint"].fit(data, seed=0, init="prior")
    monkeypatch.setattr(Batch, "step", failing)
    there = CASES["joint"].fit(data, seed=0, init="prior", executor=strict(dtype="float32"))
    assert rough[:4] == [True, True, True, False]
    assert there.status is here.status is Status.CONVERGED
    assert_allclose(there.elbo, here.elbo, atol=1e-6 * 2000)
