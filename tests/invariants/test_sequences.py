"""Chains run through blocks of whole sequences: how rows are cut into blocks changes nothing but the rounding."""

import tracemalloc
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from oracles.reference.hidden_markov import Dirichlets, ascend

import caviar as cv
import caviar.models
from caviar.data import ArrayRows
from caviar.engine.ascent.problem import statistics_of
from caviar.engine.design.keys import ColumnKey
from caviar.engine.rows import e_step as row_pass
from caviar.engine.rows import sequences
from caviar.engine.starts.factors.prior import prior_draw, prior_start
from caviar.execution.threads import Threads

pytestmark = pytest.mark.first_guess

STATES = 3


def starts_of(kind: str, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    starts = np.zeros(n_rows, dtype=bool)
    if kind == "lengths from one to hundreds":
        lengths = np.concatenate([rng.geometric(0.2, n_rows), rng.integers(200, 400, 5)])
        ends = np.cumsum(rng.permutation(lengths))
        starts[ends[ends < n_rows]] = True
    if kind == "length one":
        starts[:] = True
    if kind == "a long one between short ones":
        starts[: n_rows // 4 : 5] = starts[3 * n_rows // 4 :: 5] = True
    starts[0] = True
    return starts


KINDS = ["lengths from one to hundreds", "length one", "a long one between short ones", "one"]


def rows(kind: str, n_rows: int, gaps: str = "") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(len(kind) + n_rows)
    starts = starts_of(kind, n_rows, rng)
    path = np.repeat(rng.integers(STATES, size=n_rows // 4 + 1), 4)[:n_rows]
    x = 2.0 * np.array([[0, 0], [1, 0], [0, 1]])[path] + rng.normal(size=(n_rows, 2))
    if gaps == "steps":
        x[rng.random(n_rows) < 0.2] = np.nan
    if gaps == "entries":
        x[rng.random(x.shape) < 0.2] = np.nan
    return {"x": x, "starts": starts}


INIT = {"mean": [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]}


def hidden_markov(data: dict[str, np.ndarray], **settings: Any) -> cv.Posterior:
    model = cv.models.gaussian_hidden_markov_model(2, STATES, with_starts=True)
    return model.fit(data, init=INIT, max_iter=3, tol=0.0, accelerate=False, **settings)


def linear_gaussian(data: dict[str, np.ndarray], **settings: Any) -> cv.Posterior:
    model = cv.models.linear_dynamical_system(2, 2, with_starts=True)
    init = {"loadings": np.array([[1.0, 0.5], [-0.3, 1.0]])}
    return model.fit(data, init=init, max_iter=3, tol=0.0, accelerate=False, **settings)


CHAINS = pytest.mark.parametrize("fit", [hidden_markov, linear_gaussian])


def cut(monkeypatch: pytest.MonkeyPatch, numbers: int, tile: int) -> None:
    """Let a block have about so many numbers, and a tile so many rows."""
    monkeypatch.setattr(sequences, "_BLOCK_NUMBERS", numbers)
    monkeypatch.setattr(sequences, "_FEWEST_BLOCKS", 1)
    monkeypatch.setattr(row_pass.IndependentRows, "block_rows", tile)


def assert_same(one: cv.Posterior, other: cv.Posterior) -> None:
    np.testing.assert_allclose(other.elbo_trace, one.elbo_trace, rtol=1e-12)
    for name in one:
        np.testing.assert_allclose(other[name].mean, one[name].mean, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
@CHAINS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gaps", ["", "steps", "entries"])
def test_any_blocks_give_the_sums_of_one(fit, kind, gaps, monkeypatch):
    data = rows(kind, 800, gaps)
    cut(monkeypatch, 1 << 30, 1 << 20)
    whole = fit(data)
    for numbers, tile in [(1, 64), (600, 64), (3_000, 192), (1 << 30, 64)]:
        cut(monkeypatch, numbers, tile)
        assert_same(whole, fit(data, executor=2))


@pytest.mark.starts_of_users
@pytest.mark.slow
@CHAINS
@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_threads_gives_the_same_bits(fit, kind, monkeypatch):
    cut(monkeypatch, 1_000, 64)
    data = rows(kind, 1_500)
    one, *others = (fit(data, executor=threads) for threads in (1, 3))
    for other in others:
        np.testing.assert_array_equal(other.elbo_trace, one.elbo_trace)
        np.testing.assert_array_equal(other["transition"].mean, one["transition"].mean)


@pytest.mark.thinned(4)
@CHAINS
@pytest.mark.parametrize("kind", KINDS)
def test_local_factors_do_not_depend_on_the_blocks(fit, kind, monkeypatch):
    data = rows(kind, 1_000, "steps")
    posterior = fit(data)
    name = next(iter(posterior.local(data)))
    whole = posterior.local(data)[name]
    cut(monkeypatch, 300, 64)
    parts = posterior.local(data)[name]
    np.testing.assert_allclose(parts.mean, whole.mean, atol=1e-12)
    assert posterior.elbo_at({}, data) == pytest.approx(posterior.elbo, rel=1e-12)


def test_blocks_of_many_sequences_are_the_textbooks_loops(monkeypatch):
    """Each block is inferred by itself, and their sums are those of a loop over all steps."""
    cut(monkeypatch, 1, 64)
    rng = np.random.default_rng(0)
    n, k, m = 700, 2, 3
    prior, begin = (
        Dirichlets(*(rng.uniform(0.5, 3, shape) for shape in (k, (k, k), (k, m)))) for _ in range(2)
    )
    data = {"x": rng.integers(0, m, n), "starts": (rng.random(n) < 0.15) | (np.arange(n) == 0)}
    model = cv.models.categorical_hidden_markov_model(
        m,
        k,
        initial_concentration=prior.initial,
        transition_concentration=prior.transition,
        emission_concentration=prior.emission,
        with_starts=True,
    )
    names = ("initial", "transition", "emission")
    init = {name: cv.families.Dirichlet(getattr(begin, name)) for name in names}
    posterior = model.fit(data, init=init, order=names, max_iter=4, tol=0.0, accelerate=False, executor=2)
    q, trace = ascend(data["x"], data["starts"], prior, begin, 4)
    np.testing.assert_allclose(posterior.elbo_trace, trace, rtol=1e-12)
    for name in names:
        np.testing.assert_allclose(posterior[name].concentration, getattr(q, name), rtol=1e-9)


def bound(data: dict[str, np.ndarray], n_states: int = STATES) -> tuple[Any, Any]:
    """Return the problem and the passes of a fit to these rows."""
    posterior = cv.models.gaussian_hidden_markov_model(2, n_states, with_starts=True).fit(data, max_iter=0)
    return posterior._evaluator.bind(data)


def _coefficients(problem: Any) -> Any:
    """Return what rows need of globals at their priors, the means apart."""
    q = prior_start(problem)
    mean = next(variable for variable in problem.order if variable.name == "mean")
    q[mean] = prior_draw(problem, mean, statistics_of(problem, q), np.random.default_rng(0))
    return problem.rows.coefficients(statistics_of(problem, q))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("size", [1, 100, 5_000])
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_whole_sequences(kind, size, monkeypatch):
    data = rows(kind, 3_000)
    problem, row_map = bound(data)
    cut(monkeypatch, STATES * size, 1)
    found = sequences.sequence_bounds(problem.rows, row_map.source)
    assert found[0][0] == 0
    assert found[-1][1] == 3_000
    assert all(one[1] == other[0] for one, other in pairwise(found))
    begins = np.flatnonzero(data["starts"])
    for start, stop in found:
        assert start == 0 or start in begins
        # a block that is too long is one sequence, and the next sequence would not fit into one that is not
        inside = begins[(begins > start) & (begins < stop)]
        assert stop - start <= size or not len(inside)
        after = begins[begins > stop]
        following = int(after[0]) if len(after) else 3_000
        assert stop == 3_000 or following - start > size


def test_there_are_as_many_blocks_as_batches(monkeypatch):
    _, row_map = bound(rows("lengths from one to hundreds", 3_000))
    assert replace(row_map, n_batches=12).n_batches_made == 12


def test_sums_kept_by_batch_are_those_of_all_rows():
    data = rows("lengths from one to hundreds", 3_000)
    problem, row_map = bound(data)
    coefficients = _coefficients(problem)
    with row_map.executor.session():
        whole = row_map.summary(coefficients)
        apart = replace(row_map, n_batches=5)
        kept = apart.look(coefficients)
        again = apart.look(coefficients, kept.warm, kept.by_batch, batch=2)
    assert len(kept.by_batch.batches) == 5
    for other in (kept.summary, again.summary):
        assert other.entropies[problem.chains[0].key] == pytest.approx(
            whole.entropies[problem.chains[0].key], rel=1e-12
        )
        for key, value in whole.parts.items():
            np.testing.assert_allclose(other.parts[key], value, rtol=1e-10, atol=1e-9)


@pytest.mark.slow
def test_a_pass_holds_blocks_and_no_array_of_all_rows(monkeypatch):
    """Of 40,000 steps in 20 states the array of what each says of its state would take 6.4 MB."""
    monkeypatch.setattr(sequences, "_BLOCK_NUMBERS", 1)
    peaks = []
    for n_rows in (10_000, 40_000):
        problem, row_map = bound(rows("lengths from one to hundreds", n_rows), 20)
        coefficients = _coefficients(problem)
        row_map = replace(row_map, executor=Threads(1))
        with row_map.executor.session():
            row_map.summary(coefficients)
            tracemalloc.start()
            row_map.summary(coefficients)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_the_work_does_not_grow_with_the_rows():
    """What says where sequences begin is a column of the rows: the factor of a chain has no array of them."""
    for n_rows in (50, 5_000):
        problem, row_map = bound(rows("lengths from one to hundreds", n_rows))
        assert problem.chains[0].starts.column == ColumnKey("starts")
        sizes = [
            np.size(value) for value in vars(problem.chains[0]).values() if isinstance(value, np.ndarray)
        ]
        assert not [size for size in sizes if size >= n_rows]
        assert isinstance(row_map.source, ArrayRows)


def test_starts_may_be_stated_with_the_model_or_be_everywhere():
    data = rows("lengths from one to hundreds", 400)
    time, state = cv.Plate("time"), cv.Plate("state", 2)

    def elbo(starts: Any) -> float:
        s = cv.MarkovChain("s", [0.3, 0.7], [[0.9, 0.1], [0.2, 0.8]], along=time, starts=starts)
        mean = cv.Constant("mean", [0.0, 2.0], plates=state)
        return cv.Model(cv.Normal("x", mean[s], 1.0, plates=time)).fit({"x": data["x"][:, 0]}).elbo

    assert elbo(True) == pytest.approx(elbo(np.ones(400)), rel=1e-13)
    assert elbo(np.arange(400) == 0) == pytest.approx(elbo(None), rel=1e-13)
    assert len({elbo(starts) for starts in (True, None, data["starts"])}) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "schedule", [cv.Incremental(6), cv.Stochastic(500)], ids=["incremental", "stochastic"]
)
def test_schedules_take_whole_sequences(schedule):
    """They end where ascent in whole passes does, the bound with them; a step within a sequence counts as one."""
    data = rows("lengths from one to hundreds", 4_000)
    model = cv.models.gaussian_hidden_markov_model(2, STATES, with_starts=True)
    batch = model.fit(data, init=INIT, schedule="batch")
    found = model.fit(data, init=INIT, schedule=schedule, max_iter=60)
    assert found.elbo == pytest.approx(batch.elbo, abs=1e-4 * 4_000 if "Stoch" in str(schedule) else 1e-3)
    np.testing.assert_allclose(found["transition"].mean, batch["transition"].mean, atol=0.01)
    steps = 4_000 - data["starts"].sum()
    assert found["transition"].concentration.sum() == pytest.approx(STATES**2 + steps, rel=0.1)
