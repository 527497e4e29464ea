"""The incremental schedule: monotone, exact, and at the fixed points of batch ascent."""

import numpy as np
import pytest
from invariants.registry import CASES

import caviar as cv
from caviar.engine.ascent.schedules import incremental
from caviar.engine.ascent.schedules.batch import Batch
from caviar.engine.assemble import as_schedule
from caviar.engine.local.statistics import Sums
from caviar.engine.rows.sums_by_batch import SumsByBatch

N_ROWS = 3_000

CHAINS = {name for name, case in CASES.items() if any(v.summed for v in case.state().variables.values())}


def three_clusters(n=N_ROWS, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + rng.choice([-6.0, 0.0, 6.0], n)[:, None]


@pytest.fixture
def elbos(monkeypatch):
    """Objectives after each batch of a fit."""
    found = []
    step = incremental.advance_by_batch

    def recorded(state, *arguments):
        found.append(state.elbo)
        after, half = step(state, *arguments)
        found.append(after.elbo)
        return after, half

    monkeypatch.setattr(incremental, "advance_by_batch", recorded)
    return found


def n_batches_of(stated, problem, n_rows, *, accelerate):
    """Return after how many batches of the rows the globals are updated; 0 for once a pass."""
    schedule = stated.resolved(problem, n_rows, accelerate=accelerate)
    return 0 if isinstance(schedule, Batch) else schedule.n_batches


@pytest.mark.thinned(24)
@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("name", [name for name in CASES if name not in CHAINS | {"expected odds"}])
def test_the_objective_rises_with_every_batch_and_is_that_of_the_factors(name, accelerate, elbos):
    case = CASES[name]
    data = case.draw(np.random.default_rng(1), N_ROWS)
    # abilities and the numbers of their answers are updated in turn, and settle over more passes
    max_iter = 8 if name == "items" else 4
    posterior = case.fit(data, schedule=cv.Incremental(5), max_iter=max_iter, accelerate=accelerate)
    rises = np.diff(elbos)
    assert (rises >= -1e-9 * np.abs(elbos[-1])).all()
    # a last pass brings the local factors of all batches to their optimum
    assert posterior.elbo >= max(elbos, default=posterior.elbo) - 1e-9 * abs(posterior.elbo)
    exact = posterior.elbo_at({name: posterior[name] for name in posterior}, data)
    if name == "measured-apart":
        # local factors taken apart settle as far as their sweeps go
        assert exact >= posterior.elbo - 1e-12 * abs(exact)
    else:
        assert posterior.elbo == pytest.approx(exact, rel=1e-7)


def test_it_ends_at_the_fixed_point_of_batch_ascent():
    X = three_clusters()
    model = cv.models.normal_wishart_mixture(2, 3)
    batch = model.fit({"x": X}, seed=0, tol=1e-13)
    incremental = model.fit({"x": X}, seed=0, tol=1e-13, schedule="incremental")
    assert incremental.converged
    assert incremental.elbo == pytest.approx(batch.elbo, rel=1e-10)
    np.testing.assert_allclose(incremental["theta"].mean[0], batch["theta"].mean[0], rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("accelerate", "share"), [(False, 0.6), (True, 0.4)])
def test_it_needs_fewer_passes_than_batch_ascent_to_the_same_objective(accelerate, share):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 3)) + rng.choice([-1.2, 0.0, 1.2], 20_000)[:, None]
    model = cv.models.normal_wishart_mixture(3, 3)
    start = {"z": rng.integers(0, 3, len(X))}
    batch = model.fit({"x": X}, init=start, max_iter=30, accelerate=False)
    incremental = model.fit(
        {"x": X}, init=start, max_iter=30, schedule=cv.Incremental(32), accelerate=accelerate
    )
    passes = int(np.argmax(incremental.elbo_trace >= batch.elbo))
    assert 0 < passes <= share * batch.n_iter


def test_a_large_table_is_fitted_incrementally_and_a_small_one_in_one_batch():
    problem = plan_of(cv.models.normal_wishart_mixture(16, 32), {"x": three_clusters(100, d=16)})
    auto = as_schedule("auto")
    assert n_batches_of(auto, problem, 3_000, accelerate=True) == 0
    # two products of 32 x 153 numbers a row: 4e9 operations
    assert n_batches_of(auto, problem, 200_000, accelerate=True) == 13
    assert n_batches_of(auto, problem, 100_000_000, accelerate=True) == 32
    assert n_batches_of(auto, problem, 200_000, accelerate=False) == 0
    assert n_batches_of(as_schedule("batch"), problem, 200_000, accelerate=True) == 0
    assert n_batches_of(as_schedule("incremental"), problem, 3_000, accelerate=False) == 16


def wide_plan(n_columns, n_components):
    model = cv.models.normal_wishart_mixture(n_columns, n_components)
    return plan_of(model, {"x": three_clusters(100, d=n_columns)})


def test_sums_of_batches_take_no_more_memory_than_the_data_unless_these_are_small():
    """Sums of a full covariance have K (1 + D + D (D + 1) / 2) numbers, and natural parameters K (2 + D + D D)."""
    problem, auto = wide_plan(60, 20), as_schedule("auto")
    assert problem.rows.n_sums == 20 * (1 + 60 + 60 * 61 // 2)
    assert problem.n_natural == 20 * (2 + 60 + 60**2) + 20
    kept = 8 * (2 * problem.rows.n_sums + problem.n_natural)
    for n_rows in (5_000, 200_000, 10_000_000, 10**9):
        room = max(2**28, n_rows * 60 * 8)
        for schedule in (auto, cv.Incremental(64), cv.Incremental(2)):
            n_batches = n_batches_of(schedule, problem, n_rows, accelerate=True)
            assert n_batches * kept <= min(room, 2**31)


@pytest.mark.parametrize(("n_rows", "expected"), [(4_600, 0), (10_000_000, 14)])
def test_few_rows_of_many_columns_are_fitted_in_one_batch(n_rows, expected, monkeypatch):
    """11 MB of data with 100 components in 300 columns: the sums of 32 batches would take 8 GB."""
    problem = wide_plan(8, 3)
    for owner, name, value in (
        (type(problem.rows), "n_sums", 100 * (1 + 300 + 300 * 301 // 2)),
        (type(problem), "n_natural", 100 * (3 + 300 + 300**2)),
        (type(problem.bound), "bytes_a_row", 2400.0),
        (type(problem.rows), "operations_a_row", 4.0 * 100 * (1 + 300 + 300 * 301 // 2)),
    ):
        monkeypatch.setattr(owner, name, property(lambda own, value=value: value))
    assert n_batches_of(as_schedule("auto"), problem, n_rows, accelerate=True) == expected
    assert n_batches_of(cv.Incremental(64), problem, n_rows, accelerate=True) == max(2, expected)


def plan_of(model, data):
    posterior = model.fit(data, init="prior", max_iter=0)
    return posterior._evaluator.bind(data)[0]


def test_threads_do_not_change_a_bit():
    X = three_clusters()
    model = cv.models.normal_wishart_mixture(2, 3)
    one, two = (
        model.fit({"x": X}, seed=0, schedule=cv.Incremental(4), max_iter=5, executor=n) for n in (1, 2)
    )
    assert np.array_equal(one.elbo_trace, two.elbo_trace)


def test_a_model_without_local_factors_has_one_pass_to_make():
    x = np.random.default_rng(0).normal(size=5_000)
    model = cv.models.normal_gamma()
    batch, incremental = (model.fit({"x": x}, schedule=name) for name in ("batch", "incremental"))
    assert incremental.elbo == batch.elbo


def test_totals_are_the_sums_of_all_batches_and_those_before_stay_as_they_were():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 8, 64):
        sums = SumsByBatch.of(n)
        held = [rng.integers(0, 100, 4).astype(float) for _ in range(n)]
        for number, value in enumerate(held):
            sums = sums.replaced(number, Sums({None: value.copy()}, {}, {}, {}))
        first, before = sums, np.sum(held, axis=0)
        for _ in range(200):
            number = int(rng.integers(n))
            held[number] = rng.integers(0, 100, 4).astype(float)
            sums = sums.replaced(number, Sums({None: held[number].copy()}, {}, {}, {}))
        assert len(sums.batches) == n
        assert np.array_equal(first.total.fused[None], before)
        assert np.array_equal(sums.total.fused[None], np.sum(held, axis=0))


@pytest.mark.parametrize("number", [1, 65, 2.5, "many"])
def test_numbers_of_batches_out_of_range_are_refused(number):
    with pytest.raises(cv.ParameterError, match="n_batches must be a whole number from 2 to 64"):
        cv.Incremental(number)


def test_an_unknown_schedule_is_refused():
    with pytest.raises(cv.ParameterError, match="schedule is 'auto', 'batch', 'incremental', 'stochastic'"):
        cv.models.normal_gamma().fit({"x": [1.0, 2.0]}, schedule="online")
