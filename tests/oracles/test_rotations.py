"""Parameter expansion: hidden vectors turned, precisions settled, and where that leads."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import digamma

import caviar as cv
from caviar.engine.ascent.schedules.expansion import expanded
from caviar.engine.ascent.schedules.expansion.expanded import _best, _turn
from caviar.engine.ascent.schedules.expansion.groups import groups_of, shrunk_of
from caviar.engine.ascent.schedules.expansion.relevance import settled_precision
from caviar.engine.ascent.schedules.expansion.rotation import Turned, best_rotation, best_scales
from caviar.engine.ascent.schedules.expansion.sides import sides_of
from caviar.engine.ascent.schedules.expansion.turn import Turned as Place
from caviar.engine.ascent.state import at_natural, joined
from caviar.numerics.simple_structure import simple_turn
from oracles.turns import states_before_turns

OBS = cv.Plate("obs")


def _moments(rng, size, count):
    rows = rng.normal(size=(count, size)) @ rng.normal(size=(size, size))
    return rows.T @ rows


def _sides(seed, size=3):
    rng = np.random.default_rng(seed)
    relevant = np.full(size, 12.0), np.full(size, 0.3)
    return [
        Turned(_moments(rng, size, 50), 50.0, False, np.eye(size)),
        Turned(_moments(rng, size, 20), 20.0, True, None, *relevant),
        Turned(_moments(rng, size, 9), 9.0, True, 0.7 * np.eye(size)),
    ]


def _prior(sides, turn):
    """What the priors say of turned vectors, from the formula of each."""
    total, dual = 0.0, np.linalg.inv(turn).T
    for own in sides:
        matrix = dual if own.is_dual else turn
        spread = matrix @ own.moments @ matrix.T
        total += own.count * np.log(abs(np.linalg.det(matrix)))
        if own.precision is not None:
            total -= 0.5 * np.trace(own.precision @ spread)
        else:
            total -= own.shape @ np.log(own.rate + 0.5 * np.diag(spread))
    return total


@pytest.mark.parametrize("seed", range(3))
def test_no_turn_is_better_than_the_best(seed):
    sides = _sides(seed)
    best = best_rotation(sides)
    top = _prior(sides, best)
    assert top > _prior(sides, np.eye(3)) + 1.0
    rng = np.random.default_rng(10 + seed)
    for _ in range(50):
        assert _prior(sides, best @ (np.eye(3) + 0.03 * rng.normal(size=(3, 3)))) < top + 1e-4
    searched = minimize(lambda flat: -_prior(sides, flat.reshape(3, 3)), np.eye(3).ravel(), method="BFGS")
    assert top == pytest.approx(-searched.fun, abs=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_coordinates_that_are_silent_do_not_hide_the_best_turn(seed):
    rng = np.random.default_rng(seed)
    size, silent = 5, np.diag([1.0, 1.0, 1.0, 1e-4, 1e-4])
    sides = [
        Turned(_moments(rng, size, 100), 100.0, False, np.eye(size)),
        *(
            Turned(
                scale @ _moments(rng, size, 90) @ scale, 90.0, True, None, np.full(size, 45.0), np.zeros(size)
            )
            for scale in (np.eye(size), silent)
        ),
    ]
    best = best_rotation(sides)
    dual = np.linalg.inv(best).T
    turned = [own.turned(turn) for own, turn in zip(sides, (best, dual, dual), strict=True)]
    # the derivative by each entry of a further turn, in units of its curvature: nothing is left in any direction
    step, rest = 1e-4, _prior(turned, np.eye(size))
    for k, j in np.ndindex(size, size):
        curvature = sum(
            (own.precisions[j] * own.moments[k, k] if own.is_dual else own.precisions[k] * own.moments[j, j])
            for own in turned
        )
        way = np.zeros((size, size))
        way[k, j] = step / np.sqrt(curvature)
        rise = (_prior(turned, np.eye(size) + way) - _prior(turned, np.eye(size) - way)) / (2 * step)
        assert abs(rise) < 0.02
        assert _prior(turned, np.eye(size) + 1e3 * way) < rest + 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_no_scales_are_better_than_the_best(seed):
    sides = _sides(seed)
    best = best_scales(sides)
    searched = minimize(lambda logs: -_prior(sides, np.diag(np.exp(logs))), np.zeros(3), method="BFGS")
    assert _prior(sides, np.diag(best)) == pytest.approx(-searched.fun, abs=1e-4)


def test_settled_precisions_are_where_turns_of_updates_lead():
    rng = np.random.default_rng(0)
    curvature = rng.gamma(2.0, 1.0, size=(40, 5))
    linear = np.sqrt(curvature) * rng.normal(size=(40, 5)) * np.array([3.0, 1.1, 1.6, 0.2, 2.0])
    shape, rate = np.full(5, 21.0), np.full(5, 1.0)
    alpha = np.array([1.0, 5.0, 0.01, 2.0, 30.0])
    found = settled_precision(alpha, linear, curvature, shape, rate)
    for _ in range(20_000):
        width = 1 / (alpha + curvature)
        alpha = shape / (rate + 0.5 * (width + (linear * width) ** 2).sum(axis=0))
    np.testing.assert_allclose(found, alpha, rtol=1e-5)


@pytest.mark.parametrize("learnt", [False, True])
def test_settled_priors_of_sparse_vectors_are_where_updates_change_nothing(learnt, monkeypatch):
    monkeypatch.setattr(expanded, "_ROUNDS", 40)
    rng = np.random.default_rng(1)
    size, n_entries = 4, 60
    curvature = rng.gamma(4.0, 5.0, size=(n_entries, size))
    # the third coordinate falls silent
    linear = np.sqrt(curvature) * rng.normal(size=(n_entries, size)) * np.array([3.0, 1.8, 0.5, 2.2])
    odds, shape, rate = np.full((n_entries, size), 0.2), np.full(size, 1e-2), np.full(size, 1e-3)
    below = digamma(shape + 30.0) - np.log(shape + 30.0)
    share = (np.ones(size), np.ones(size)) if learnt else None
    start = np.log(np.array([1.0, 3.0, 20.0, 0.5]))
    slabs = expanded._Slabs(odds, linear, curvature, below, (shape, rate), share)
    log_alpha, shift, count = slabs.settled(start)
    precision, psi = np.exp(log_alpha) + curvature, odds[0] + shift
    logit = psi + 0.5 * (log_alpha + below - np.log(precision) + linear**2 / precision)
    included = 1 / (1 + np.exp(-logit))
    squares = 1 / precision + (linear / precision) ** 2
    alpha = (shape + 0.5 * included.sum(axis=0)) / (rate + 0.5 * (included * squares).sum(axis=0))
    assert log_alpha[2] > np.log(100)
    np.testing.assert_allclose(np.log(alpha), log_alpha, atol=1e-3)
    np.testing.assert_allclose(count, included.sum(axis=0), rtol=1e-10)
    if learnt:
        np.testing.assert_allclose(digamma(1 + count) - digamma(61 - count), psi, atol=1e-6)
    else:
        assert not shift.any()


def test_priors_of_sparse_vectors_are_found():
    start = {"w0": _draw(15), "w1": _draw(10)}
    model, data = views(sparse=True)
    seen, _ = states_before_turns(model, data, seed=0, max_iter=1, init=start)
    found = [
        tuple(own.name for own in (priors.variable, *priors.priors))
        for priors in seen[0][0].shrunk
        if isinstance(priors, expanded.SparsePriors)
    ]
    assert found == [("w0", "alpha0", "share0"), ("w1", "alpha1", "share1")]
    model, data = views()
    seen, _ = states_before_turns(model, data, seed=0, max_iter=1, init=start)
    assert not any(isinstance(own, expanded.SparsePriors) for own in seen[0][0].shrunk)


@pytest.mark.parametrize("seed", range(4))
def test_a_simple_structure_is_found_again(seed):
    rng = np.random.default_rng(seed)
    sparse = rng.normal(size=(200, 4)) * (rng.random((200, 4)) < 0.15)
    mixed = sparse @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turn = simple_turn(mixed)
    np.testing.assert_allclose(turn @ turn.T, np.eye(4), atol=1e-12)
    found = mixed @ turn
    # the criterion of the truth is reached or passed, which mixed loadings are far from
    criteria = [np.var(own**2, axis=0).sum() for own in (found, sparse, mixed)]
    assert criteria[0] >= criteria[1] - 1e-9 > criteria[2]
    agreement = np.abs(np.corrcoef(found.T, sparse.T)[:4, 4:])
    assert np.all(agreement.max(axis=0) > 0.85)


def views(n_rows=60, n_factors=3, sparse=False, columns=(15, 10)):
    """Return several views of the same factors, with relevances of their own, and their values."""
    rng = np.random.default_rng(7)
    scores = rng.normal(size=(n_rows, n_factors))
    factor = cv.Plate("factor", n_factors)
    z = cv.MultivariateNormal("z", np.zeros(n_factors), np.eye(n_factors), plates=OBS)
    leaves, data = [], {}
    for m, size in enumerate(columns):
        column = cv.Plate(f"column{m}", size)
        relevance = cv.Gamma(f"alpha{m}", 1e-3, 1e-3, plates=factor)
        if sparse:
            share = cv.Beta(f"share{m}", 1, 1, plates=factor)
            w = cv.SpikeSlab(f"w{m}", share, precision=relevance, plates=column)
        else:
            w = cv.MultivariateNormal(f"w{m}", np.zeros(n_factors), cv.diagonal(relevance), plates=column)
        level = cv.Normal(f"level{m}", 0, 1e-2, plates=column)
        noise = cv.Gamma(f"tau{m}", 1e-3, 1e-3, plates=column)
        leaves.append(cv.Normal(f"y{m}", level + cv.dot(w, z), noise, plates=(OBS, column)))
        loadings = rng.normal(size=(size, n_factors)) * (np.arange(n_factors) != m)
        data[f"y{m}"] = scores @ loadings.T + 0.5 * rng.normal(size=(n_rows, size))
    return cv.Model(*leaves), data


@pytest.mark.parametrize("sparse", [False, True])
def test_a_turn_gains_what_it_promises_and_more(sparse):
    model, data = views(sparse=sparse)
    seen, _ = states_before_turns(model, data, seed=0, max_iter=4, init={"w0": _draw(15), "w1": _draw(10)})
    schedule, state = seen[0]
    (group,) = (own.group for own in schedule.turns)
    assert group.is_scaled is sparse
    turn, gain = _best(group, sides_of(state, group))
    place = Place.of(state)
    _turn(state.problem, group, sides_of(state, group), turn, place)
    found = at_natural(state, joined(state.problem, place.naturals))
    # factors of the rows are at their optimum afterwards, and not only turned
    assert gain > 0.1
    assert found.elbo - state.elbo > gain - 1e-6
    # vectors are turned, and nothing else is done to them
    for own in (own for own in group.members if own.variable.name != "z"):
        matrix = np.linalg.inv(turn).T if own.is_dual else turn
        before, after = (state.q[own.variable], found.q[own.variable])
        np.testing.assert_allclose(after.mean, before.mean @ matrix.T, atol=1e-8)
        if sparse:
            np.testing.assert_allclose(after.inclusion, before.inclusion, atol=1e-8)
        else:
            np.testing.assert_allclose(after.covariance, matrix @ before.covariance @ matrix.T, atol=1e-8)


def _draw(size, n_factors=3):
    return np.random.default_rng(size).normal(size=(size, n_factors))


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
def test_nothing_moves_at_a_fixed_point(sparse):
    model, data = views(sparse=sparse)
    seen, posterior = states_before_turns(model, data, seed=0, max_iter=1000, tol=1e-9)
    assert posterior.converged
    assert np.all(np.diff(posterior.elbo_trace) > -1e-7)
    schedule, state = seen[-1]
    (group,) = (own.group for own in schedule.turns)
    _, gain = _best(group, sides_of(state, group))
    assert 0 <= gain < 1e-3
    after = schedule.step(state)
    assert after.elbo >= state.elbo - 1e-9
    assert after.elbo - state.elbo < 1e-3


@pytest.mark.slow
def test_factors_of_several_views_need_few_sweeps():
    model, data = views(n_factors=4)
    start = {"w0": _draw(15, 4), "w1": _draw(10, 4)}
    few = model.fit(data, seed=0, init=start, max_iter=40)
    more = model.fit(data, seed=0, init=start, max_iter=300)
    plain = model.fit(data, seed=0, init=start, max_iter=40, accelerate=False)
    assert more.elbo - few.elbo < 0.1
    assert few.elbo - plain.elbo > 2.0


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(3))
def test_probabilistic_components_reach_their_closed_form_in_ten_sweeps(seed):
    rng = np.random.default_rng(seed)
    n_rows, n_columns, size = 300, 8, 3
    y = rng.normal(size=(n_rows, size)) * [2.0, 1.5, 1.0] @ rng.normal(size=(size, n_columns))
    y += 0.7 * rng.normal(size=y.shape)
    y -= y.mean(axis=0)
    spectrum = np.linalg.eigvalsh(y.T @ y / n_rows)[::-1]
    noise = spectrum[size:].mean()
    # Tipping and Bishop (1999), equation 8
    log_det = np.log(spectrum[:size]).sum() + (n_columns - size) * np.log(noise)
    closed = -0.5 * n_rows * (n_columns * np.log(2 * np.pi) + log_det + n_columns)
    z = cv.MultivariateNormal("z", np.zeros(size), np.eye(size), plates=OBS)
    column = cv.Plate("column", n_columns)
    w = cv.MultivariateNormal("w", np.zeros(size), 0, plates=column)
    model = cv.Model(cv.Normal("y", cv.dot(w, z), cv.Gamma("tau", 1, 0), plates=(OBS, column)))
    arguments = {"point": ["w", "tau"], "max_iter": 10, "seed": 0}
    assert closed - model.fit({"y": y}, **arguments).elbo == pytest.approx(0.0, abs=1e-6)
    start = {"w": rng.normal(size=(n_columns, size)), "tau": 1.0}
    drawn = model.fit({"y": y}, init=start, **arguments)
    plain = model.fit({"y": y}, init=start, accelerate=False, **arguments)
    assert closed - drawn.elbo < 0.01
    assert closed - plain.elbo > 1.0


def _crossed(seed, sizes=(60, 40), widths=(1.0, 0.05)):
    rng = np.random.default_rng(seed)
    labels = [rng.integers(size, size=1000) for size in sizes]
    y = 1.0 + rng.normal(size=1000)
    mean = cv.Normal("level", 0, 1e-4)
    data = {}
    for k, (size, width) in enumerate(zip(sizes, widths, strict=True)):
        y = y + width * rng.normal(size=size)[labels[k]]
        effect = cv.Normal(f"a{k}", 0, cv.Gamma(f"g{k}", 1e-3, 1e-3), plates=cv.Plate(f"group{k}", size))
        mean = mean + effect[cv.Data(f"label{k}", plates=OBS)]
        data[f"label{k}"] = labels[k]
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1e-3, 1e-3), plates=OBS))
    return model, {**data, "y": y}


@pytest.mark.parametrize("widths", [(1.0, 0.05), (0.1, 0.0)])
def test_widths_of_crossed_effects_need_few_sweeps(widths):
    model, data = _crossed(3, widths=widths)
    plain = model.fit(data, factors="apart", accelerate=False, max_iter=2000, tol=1e-9)
    found = model.fit(data, factors="apart", max_iter=2000, tol=1e-9)
    assert found.elbo > plain.elbo - 1e-3
    assert found.n_iter < plain.n_iter / 3
    assert np.all(np.diff(found.elbo_trace) > -1e-8)


def _problem(model, data):
    return model.fit(data, max_iter=1)._evaluator.bind(data)[0]


@pytest.mark.slow
def test_only_what_meets_in_products_alone_is_turned():
    model, data = views()
    (group,) = groups_of(_problem(model, data))
    assert {own.variable.name: own.is_dual for own in group.members} in (
        {"z": True, "w0": False, "w1": False},
        {"z": False, "w0": True, "w1": True},
    )
    assert {own.relevance.name for own in group.members if own.relevance is not None} == {"alpha0", "alpha1"}
    assert {own.variable.name for own in shrunk_of(_problem(model, data))} == {"w0", "w1"}
    rng = np.random.default_rng(0)
    column = cv.Plate("column", 4)
    z = cv.MultivariateNormal("z", np.zeros(2), np.eye(2), plates=OBS)
    known = cv.Data("X", plates=OBS)
    values = {"y": rng.normal(size=(20, 4)), "X": rng.normal(size=(20, 2)), "v": rng.normal(size=20)}

    def stated(mean_of_w=(0.0, 0.0), more=None, leaf=None):
        w = cv.MultivariateNormal("w", np.array(mean_of_w), np.eye(2), plates=column)
        mean = cv.dot(w, z) if more is None else cv.dot(w, z) + more(w)
        leaves = [cv.Normal("y", mean, 1.0, plates=(OBS, column))]
        leaves += [] if leaf is None else [leaf(w)]
        names = {"y", *({"X"} if more else ()), *({"v"} if leaf else ())}
        return groups_of(_problem(cv.Model(*leaves), {name: values[name] for name in names}))

    assert len(stated()) == 1
    assert stated(mean_of_w=(0.0, 1.0)) == []
    assert stated(more=lambda w: cv.dot(known, w)) == []
    # scores that a regression has, too, turn with its coefficients if these are hidden
    b = cv.MultivariateNormal("b", np.zeros(2), np.eye(2))
    (three,) = stated(leaf=lambda w: cv.Normal("v", cv.dot(b, z), 1.0, plates=OBS))
    assert {own.variable.name for own in three.members} == {"w", "z", "b"}
    assert stated(leaf=lambda w: cv.Normal("v", cv.dot([1.0, 0.5], z), 1.0, plates=OBS)) == []


@pytest.mark.slow
def test_weights_and_missing_values_are_turned_alike():
    model, data = views()
    rng = np.random.default_rng(3)
    data = {name: np.where(rng.random(own.shape) < 0.2, np.nan, own) for name, own in data.items()}
    posterior = model.fit(data, seed=0, max_iter=300, sample_weight=rng.integers(1, 3, size=60).astype(float))
    assert np.all(np.diff(posterior.elbo_trace) > -1e-7)
