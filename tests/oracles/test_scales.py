"""Numbers that are multiplied, turned to the scales that are optimal for their priors; and where that leads."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

import caviar as cv
from caviar.engine.ascent.schedules.expansion.scales import Learnt, Said, best_logs, gain_of
from caviar.engine.ascent.schedules.expansion.scalings import Scaling, scalings_of
from caviar.engine.ascent.schedules.expansion.turn import Turned
from caviar.engine.ascent.state import at_natural, joined
from caviar.numerics.records import replaced
from oracles.turns import states_before_turns

ROW, PART = cv.Plate("row"), cv.Plate("part", 3)


def _said(rng, learnt, is_dual, size=3):
    known = None
    if learnt:
        width = size if learnt == "each" else 1
        below, weight = rng.gamma(0.5, 1.0, (7, size)), rng.gamma(2.0, 0.5, (7, 1))
        known = Learnt(rng.gamma(4.0, 1.0, (7, width)), rng.gamma(2.0, 1.0, (7, width)), below, weight)
    count, linear = rng.gamma(9.0, 1.0, size), rng.gamma(9.0, 1.0, size)
    if known is not None:
        # of a proper prior: rates have a shape beside those of the numbers below them
        total = known.weight * known.shape
        count, linear = 0.9 * total.sum() / size * np.ones(size) / width, np.zeros(size)
    return Said(count, linear, known, is_dual)


@pytest.mark.parametrize("learnt", [None, "all", "each"])
@pytest.mark.parametrize("is_dual", [False, True])
def test_what_is_said_has_these_derivatives(learnt, is_dual):
    rng = np.random.default_rng(3)
    said, logs = _said(rng, learnt, is_dual), rng.normal(size=3)
    slope, fall = said.derivatives(logs)
    np.testing.assert_allclose(slope, approx_fprime(logs, said.value, 1e-6), rtol=1e-4, atol=1e-4)
    falls = [-approx_fprime(logs, lambda at, k=k: said.derivatives(at)[0][k], 1e-6) for k in range(3)]
    np.testing.assert_allclose(fall, falls, rtol=1e-4, atol=1e-4)
    assert np.linalg.eigvalsh(fall).min() > -1e-9


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("learnt", [None, "all", "each"])
def test_no_scales_are_better_than_the_best(seed, learnt):
    rng = np.random.default_rng(seed)
    sides = [_said(rng, learnt, False), _said(rng, None, True), _said(rng, "all", True)]
    best = best_logs(sides)
    searched = minimize(
        lambda logs: -sum(own.value(logs) for own in sides),
        np.zeros(3),
        method="BFGS",
        options={"gtol": 1e-8},
    )
    top = -searched.fun - sum(own.value(np.zeros(3)) for own in sides)
    assert gain_of(sides, best) == pytest.approx(top, abs=1e-7)


def _gamma(name, own, rate):
    return cv.Gamma(name, 0.4, rate, plates=own)


def _rates(kind):
    """Rates of a table whose rows are those of the data: known, learnt for each row and column, or for each part."""
    column = cv.Plate("column", 12)
    of_rows, of_columns = {
        "known": (0.7, np.array([0.2, 0.5, 1.0])),
        "learnt": (
            cv.Gamma("activity", 0.4, 0.4, plates=ROW),
            cv.Gamma("popularity", 0.4, 0.4, plates=column),
        ),
        "of parts": (cv.Gamma("activity", 2.0, 1.0, plates=PART), cv.Gamma("popularity", 2.0, 1.0)),
    }[kind]
    u, v = _gamma("u", (ROW, PART), of_rows), _gamma("v", (column, PART), of_columns)
    return cv.dot(u, v), (ROW, column)


def _counts(seed, n_rows=30, n_columns=12):
    rng = np.random.default_rng(seed)
    scores, loadings = (rng.gamma(0.4, 3.0, (n, 3)) for n in (n_rows, n_columns))
    return rng.poisson(scores @ loadings.T)


def table(kind, seed=0):
    rate, plates = _rates(kind)
    return cv.Model(cv.Poisson("x", rate, plates=plates)), {"x": _counts(seed)}


def pairs(kind, seed=0):
    """The same counts, a record each: rows and columns are groups of records, and no numbers are of one record."""
    counts, entry = _counts(seed), cv.Plate("entry")
    one, other = cv.Plate("one", counts.shape[0]), cv.Plate("other", counts.shape[1])
    of_one = {"known": 0.7, "learnt": cv.Gamma("activity", 0.4, 0.4, plates=one)}.get(kind)
    of_other = cv.Gamma("popularity", 2.0, 1.0, plates=PART)
    of_one = cv.Gamma("activity", 2.0, 1.0) if of_one is None else of_one
    u = _gamma("u", (one, PART), of_one)
    v = _gamma("v", (other, PART), 0.5 if kind == "known" else of_other)
    i, j = np.indices(counts.shape)
    rate = cv.dot(u[cv.Data("i", plates=entry)], v[cv.Data("j", plates=entry)])
    return cv.Model(cv.Poisson("x", rate, plates=entry)), {
        "x": counts.ravel(),
        "i": i.ravel(),
        "j": j.ravel(),
    }


def _scaling_and_state(model, data, step, **arguments):
    seen, _ = states_before_turns(model, data, seed=0, max_iter=step + 2, tol=0, **arguments)
    schedule, state = seen[step]
    (scaling,) = (own for own in schedule.turns if isinstance(own, Scaling))
    return scaling, state


def _turned(scaling, state):
    place = Turned.of(state)
    gain = scaling.made(state, 0.0, place)
    found = at_natural(replaced(state, warm=place.warm), joined(state.problem, place.naturals))
    assert found is not None
    return gain, found


def _away(model, data):
    """Return a start far from the best scales."""
    q = model.fit(data, seed=0, max_iter=3)
    return {"v": q["v"].mean * np.array([0.1, 3.0, 20.0])}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", ["known", "learnt", "of parts"])
@pytest.mark.parametrize("make", [table, pairs])
def test_a_turn_gains_what_it_promises(kind, make):
    model, data = make(kind)
    scaling, state = _scaling_and_state(model, data, 1, init=_away(model, data))
    assert {own.variable.name for own in scaling.members} == {"u", "v"}
    assert scaling.along == (PART,)
    gain, found = _turned(scaling, state)
    assert gain > 0.1
    # factors of the rows, and rates above them, are at their optimum afterwards, and not only turned
    assert found.elbo - state.elbo > gain - 1e-8
    if make is pairs and kind == "known":
        assert found.elbo - state.elbo == pytest.approx(gain, abs=1e-8)
    # nothing is left to gain
    assert 0 <= _turned(scaling, found)[0] < 1e-7 + 0.1 * (found.elbo - state.elbo - gain)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", ["known", "learnt", "of parts"])
def test_no_other_scales_lead_higher(kind):
    """Of the objective itself, at numbers that are multiplied and divided by hand."""
    model, data = pairs(kind)
    scaling, state = _scaling_and_state(model, data, 1, init=_away(model, data))
    _, best = _turned(scaling, state)
    by_name = {own.name: own for own in state.problem.order}
    rng = np.random.default_rng(0)
    for _ in range(10):
        scales = np.exp(0.01 * rng.normal(size=3))
        naturals = dict(best.natural)
        for name, by in (("u", scales), ("v", 1 / scales)):
            shape, negative_rate = naturals[by_name[name]]
            naturals[by_name[name]] = shape, negative_rate / by
        other = at_natural(best, joined(best.problem, naturals))
        assert other is not None
        assert other.elbo < best.elbo


@pytest.mark.parametrize("kind", ["known", pytest.param("learnt", marks=pytest.mark.slow)])
def test_weights_of_rows_count_as_equal_rows(kind):
    model, data = table(kind)
    twice = {"x": np.concatenate([data["x"], data["x"][:10]])}
    weights = np.where(np.arange(30) < 10, 2.0, 1.0)
    start = {"v": np.random.default_rng(0).gamma(1.0, 1.0, (12, 3))}
    one = model.fit(data, sample_weight=weights, init=start, tol=1e-10)
    other = model.fit(twice, init=start, tol=1e-10)
    assert one.elbo == pytest.approx(other.elbo, abs=1e-5)


@pytest.mark.slow  # crossed groups below settle as quickly
@pytest.mark.thinned(18)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["known", "learnt", "of parts"])
@pytest.mark.parametrize("make", [table, pairs])
def test_fits_end_where_plain_updates_do_in_a_few_of_the_iterations(make, kind, seed):
    model, data = make(kind, seed)
    start = {"v": model.fit(data, seed=0)["v"].mean * np.array([0.3, 1.0, 3.0])}
    found = model.fit(data, init=start)
    plain = model.fit(data, init=start, max_iter=4000, accelerate=False)
    assert found.converged
    assert np.all(np.diff(found.elbo_trace) > -1e-7)
    assert found.elbo > plain.elbo - 1e-3
    assert found.n_iter < 0.3 * plain.n_iter


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(2))
def test_rates_of_crossed_groups_settle_in_a_few_iterations(seed):
    rng = np.random.default_rng(seed)
    entry, sizes, rate, data = cv.Plate("entry"), {"a": 30, "b": 20, "c": 5}, 3.0, {}
    means = np.full(400, 3.0)
    for name, size in sizes.items():
        above = cv.Gamma(f"rate of {name}", 1, 1) if size > 5 else 0.5
        own = cv.Gamma(name, 0.5, above, plates=cv.Plate(f"group {name}", size))
        data[f"of {name}"] = rng.integers(size, size=400)
        rate = rate * own[cv.Data(f"of {name}", plates=entry)]
        means = means * rng.gamma(0.5, 2.0, size)[data[f"of {name}"]]
    model, data = cv.Model(cv.Poisson("x", rate, plates=entry)), {"x": rng.poisson(means), **data}
    found, plain = model.fit(data), model.fit(data, accelerate=False, max_iter=3000)
    assert found.converged
    assert found.n_iter < 30
    assert plain.n_iter > 200
    assert found.elbo > plain.elbo - 1e-6


def test_what_two_turns_of_a_step_have_in_common_is_known_to_the_second():
    rng = np.random.default_rng(0)
    column = cv.Plate("column", 6)
    above = cv.Gamma("a", 0.5, 0.5)
    rate = cv.Gamma("u", 0.5, 2.0, plates=ROW) * cv.Gamma("v", 0.5, 0.1, plates=column) * above
    model = cv.Model(cv.Poisson("x", rate, plates=(ROW, column)))
    data = {"x": rng.poisson(rng.gamma(1.0, 3.0, (40, 1)) * rng.gamma(1.0, 1.0, 6))}
    start = {"v": np.full(6, 30.0), "a": 0.01}
    seen, _ = states_before_turns(model, data, init=start, max_iter=3, tol=0)
    schedule, state = seen[0]
    place, promised = Turned.of(state), 0.0
    assert len(schedule.turns) == 3
    for turn in schedule.turns:
        promised += turn.made(state, 0.0, place)
    found = at_natural(replaced(state, warm=place.warm), joined(state.problem, place.naturals))
    assert found is not None
    assert promised > 0.1
    assert found.elbo - state.elbo > promised - 1e-8


def _scaled(*leaves, point=(), **data):
    """Return the names of what is scaled together, and the plates that have scales of their own."""
    counts = np.random.default_rng(0).poisson(3.0, size=(8, 5))
    values = dict.fromkeys(("x", "y")[: len(leaves)], counts)
    bound = (
        cv.Model(*leaves)
        .fit({**values, **data}, max_iter=1, init="prior", point=list(point))
        ._evaluator.bind({**values, **data})[0]
    )
    return [
        (
            [(own.variable.name, own.is_dual) for own in scaling.members],
            [plate.name for plate in scaling.along],
        )
        for scaling in scalings_of(bound)
    ]


def test_only_what_is_multiplied_alone_is_scaled():
    column, part = cv.Plate("column", 5), cv.Plate("part", 2)
    both = ROW, column

    def gammas(names, plates, shape=2.0):
        return [cv.Gamma(name, shape, 1.0, plates=plates) for name in names]

    (u,), (v, w) = gammas("u", (ROW, part)), gammas("vw", (column, part))
    dot = cv.dot(u, v)
    (exposure,), (level,), (of_all,) = gammas("e", ROW), gammas("l", column), gammas("a", ())

    def of(rate, *leaves, **more):
        return _scaled(cv.Poisson("x", rate, plates=both), *leaves, **more)

    alone = ([("u", False), ("v", True)], ["part"])
    assert of(dot) == [alone]
    # what is added is no part of the product
    assert of(dot + level) == [alone]
    assert of(level) == of(3.0 * level) == []
    # one side has two tables
    assert of(dot, cv.Poisson("y", cv.dot(u, w), plates=both)) == [
        ([("u", False), ("v", True), ("w", True)], ["part"])
    ]
    # of three each pair
    assert of(exposure * level * of_all) == [
        ([("e", False), ("l", True)], []),
        ([("e", False), ("a", True)], []),
        ([("l", False), ("a", True)], []),
    ]
    # numbers that are elsewhere, too; or points
    assert of(dot, cv.Poisson("y", level * cv.dot(u, v), plates=both)) == [alone]
    assert of(level * of_all, cv.Poisson("y", level, plates=both)) == []
    assert of(dot, point=["v"]) == []
