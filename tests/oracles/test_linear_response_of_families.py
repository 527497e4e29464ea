"""Linear response of families behind links, tables, zeros and labels is the limit of tilted fits, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import caviar as cv
from oracles.tilted import Settled

OBS = cv.Plate("obs")
COLUMNS = cv.Data("X", plates=OBS)
N = 40
_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(N, 2))
_Z = _RNG.normal(size=(N, 4))
_NOISE = np.random.default_rng(3).normal(size=N)
_LINE = _X @ [1.0, -0.5] + _RNG.normal(size=N)
_VALUES = _RNG.normal(1.0, 1.0, N)

Stated = tuple[cv.Model, dict[str, Any]]


def _predictor() -> Any:
    return cv.dot(COLUMNS, cv.MultivariateNormal("w", np.zeros(2), 0.5 * np.eye(2)))


def _ordered() -> Stated:
    cuts = np.array([-1.0, 0.2, 1.1])
    y = cv.Categorical("y", cv.ordered(_predictor(), cuts), plates=OBS)
    return cv.Model(y), {"X": _X, "y": np.searchsorted(cuts, _LINE)}


def _censored() -> Stated:
    kind = np.where(_VALUES > 1.8, 1, np.where(_VALUES < 0, -1, 0))
    m, tau = cv.Normal("m", 0, 0.1), cv.Gamma("tau", 2, 2)
    y = cv.CensoredNormal("y", m, tau, censored=cv.Data("kind", plates=OBS), plates=OBS)
    return cv.Model(y), {"y": np.clip(_VALUES, 0, 1.8), "kind": kind}


def _truncated_normal() -> Stated:
    m, tau = cv.Normal("m", 0, 0.5), cv.Gamma("tau", 5, 5)
    y = cv.TruncatedNormal("y", m, tau, lower=-1.0, plates=OBS)
    return cv.Model(y), {"y": _VALUES[_VALUES > -1.0]}


def _single_effect() -> Stated:
    b = cv.SingleEffect("b", 4, precision=1.0)
    y = cv.Normal("y", cv.dot(COLUMNS, b), cv.Gamma("tau", 2, 2), plates=OBS)
    return cv.Model(y), {"X": _Z, "y": 0.5 * _Z[:, 2] + np.random.default_rng(2).normal(size=N)}


def _spike_slab() -> Stated:
    b = cv.SpikeSlab("b", cv.Beta("share", 2, 2), precision=1.0, length=4)
    y = cv.Normal("y", cv.dot(COLUMNS, b), cv.Gamma("tau", 2, 2), plates=OBS)
    return cv.Model(y), {"X": _Z, "y": 0.5 * _Z[:, 2] + np.random.default_rng(3).normal(size=N)}


def _around_sticks() -> Stated:
    weights = cv.Dirichlet("pi", 5.0 * cv.StickBreaking("beta", 1.7, 3), plates=cv.Plate("group", 12))
    return cv.Model(weights), {"pi": np.random.default_rng(2).dirichlet([2.0, 3.0, 1.0], 12)}


def _counts() -> Stated:
    y = cv.NegativeBinomial("y", cv.exp(_predictor()), 3.0, plates=OBS)
    return cv.Model(y), {"X": _X, "y": np.random.default_rng(4).poisson(2.0, N)}


def _binomial() -> Stated:
    y = cv.Binomial("y", 5, cv.logistic(_predictor()), plates=OBS)
    return cv.Model(y), {"X": _X, "y": np.random.default_rng(5).integers(0, 6, N)}


def _sum_of_rates() -> Stated:
    a = cv.Gamma("a", 2, 1, plates=cv.Plate("group", 2))
    y = cv.Poisson("y", a[cv.Data("g", plates=OBS)] + cv.Gamma("b", 2, 1), plates=OBS)
    return cv.Model(y), {
        "g": np.arange(12) % 2,
        "y": np.random.default_rng(6).poisson(2.0 + np.arange(12) % 2),
    }


def _tabulated() -> Stated:
    y = cv.Gamma("y", cv.Gamma("a", 2, 1), cv.Gamma("b", 2, 1), plates=OBS)
    return cv.Model(y), {"y": np.random.default_rng(7).gamma(2.0, 1.0, N)}


def _potential() -> Stated:
    z = cv.Categorical("z", cv.Dirichlet("p", [2.0, 1.0, 1.0]), plates=OBS)
    return cv.Model(cv.Potential("table", z, plates=OBS)), {
        "table": 2 * np.random.default_rng(8).normal(size=(N, 3))
    }


def _kinds_of_chains() -> Stated:
    state, kind, rng = cv.Plate("state", 2), cv.Plate("kind", 2), np.random.default_rng(0)
    steps = cv.Dirichlet("steps", [2.0, 2.0], plates=(kind, state))
    initial, starts = rng.dirichlet(np.ones(2), 2), cv.Data("starts", plates=OBS)
    s = cv.MarkovChainMixture("s", [0.3, 0.7], initial, steps, along=OBS, starts=starts)
    shown = cv.Dirichlet("shown", [3.0, 2.0, 1.0], plates=state)
    data = {"x": rng.integers(0, 3, 24), "starts": np.isin(np.arange(24), [0, 6, 12, 18])}
    return cv.Model(cv.Categorical("x", shown[s], plates=OBS)), data


def _hypotheses() -> Stated:
    trial, patient = cv.Plate("trial"), cv.Plate("patient", 10)
    which = cv.Categorical("which", cv.Dirichlet("prior", [2.0, 2.0]), plates=trial)
    rate = cv.Beta("rate", 1, 1, plates=(trial, cv.Plate("cell", 3)))
    cell = cv.Data("cell", plates=(patient, cv.Plate("hypothesis", 2)))
    cells = np.stack([np.zeros(10, dtype=int), 1 + np.repeat([0, 1], 5)], axis=1)
    cured = cv.Bernoulli("cured", rate[cell[which]], plates=(trial, patient))
    return cv.Model(cured), {"cured": np.random.default_rng(9).integers(0, 2, (7, 10)), "cell": cells}


def _network() -> Stated:
    dyad, person, sides = cv.Plate("dyad"), cv.Plate("person", 6), (cv.Plate("from", 2), cv.Plate("to", 2))
    z = cv.Categorical("z", cv.Dirichlet("shares", [1.0, 1.0]), plates=person)
    block = cv.Beta("block", [[2.0, 1.0], [1.0, 2.0]], 1, plates=sides)
    a, b = (z[cv.Data(name, plates=dyad)] for name in ("sender", "receiver"))
    sender, receiver = np.array([(i, j) for i in range(6) for j in range(6) if i != j]).T
    edge = np.random.default_rng(1).random(30) < np.where((sender < 3) == (receiver < 3), 0.7, 0.3)
    return cv.Model(cv.Bernoulli("edge", block[a, b], plates=dyad)), {
        "sender": sender,
        "receiver": receiver,
        "edge": edge.astype(int),
    }


def _weights_of_groups() -> Stated:
    shares = cv.Dirichlet("w", 3.0 * cv.StickBreaking("sticks", 1.5, 3), plates=cv.Plate("group", 4))
    z = cv.Categorical("z", shares[cv.Data("g", plates=OBS)], plates=OBS)
    mean = cv.Normal("mean", [-2.0, 0.0, 2.0], 1.0, plates=cv.Plate("component", 3))
    rng = np.random.default_rng(2)
    x = rng.choice([-2.0, 0.0, 2.0], N) + 0.5 * rng.normal(size=N)
    return cv.Model(cv.Normal("x", mean[z], 4.0, plates=OBS)), {"g": np.arange(N) % 4, "x": x}


def _half_normals() -> Stated:
    tau = cv.Gamma("tau", 2, 1)
    mean = cv.HalfNormal("a", tau) * cv.Data("u", plates=OBS) + cv.HalfNormal("b", tau)
    return cv.Model(cv.Normal("y", mean, cv.Gamma("noise", 2, 2), plates=OBS)), {
        "u": _X[:, 0],
        "y": 0.5 + _LINE,
    }


def _concentrations() -> Stated:
    a = cv.Gamma("a", 2, 1, plates=cv.Plate("category", 3))
    shares = np.random.default_rng(2).dirichlet([2.0, 3.0, 1.0], 12)
    return cv.Model(cv.Dirichlet("p", a, plates=cv.Plate("group"))), {"p": shares}


def _thresholds() -> Stated:
    y = cv.Categorical("y", cv.ordered(_predictor(), cv.Thresholds("cut", 3)), plates=OBS)
    return cv.Model(y), {"X": _X, "y": np.searchsorted([-1.0, 0.2, 1.1], _LINE)}


def _softmax() -> Stated:
    kinds = cv.Plate("kinds", 3)
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=kinds)
    y = cv.Categorical("y", cv.softmax(cv.dot(COLUMNS, w), along=kinds), plates=OBS)
    return cv.Model(y), {"X": _X, "y": np.random.default_rng(3).integers(0, 3, N)}


def _gated() -> Stated:
    u, v = (
        cv.Bernoulli(f"g{d}", 0.3) * cv.Normal(f"w{d}", 0, 1.0) * cv.Data(f"x{d}", plates=OBS) for d in (0, 1)
    )
    return cv.Model(cv.Normal("y", u + v, 1.0, plates=OBS)), {
        "x0": _X[:, 0],
        "x1": _X[:, 1],
        "y": 0.5 * _X @ [1.0, -1.0] + _NOISE,
    }


def _nested() -> Stated:
    group = cv.Plate("group", 6)
    member = cv.Plate("member", within=group)
    z = cv.Categorical("z", cv.Dirichlet("p", [2.0, 2.0]), plates=group)
    rate = cv.Beta("rate", [2.0, 1.0], [1.0, 2.0], plates=cv.Plate("kind", 2))
    y = cv.Bernoulli("y", rate[z[cv.Data("group", plates=member)]], plates=member)
    return cv.Model(y), {"y": np.random.default_rng(4).integers(0, 2, 30), "group": np.arange(30) // 5}


def _few_responsibilities() -> Stated:
    centres = np.random.default_rng(10).integers(0, 4, 80)
    return cv.models.gaussian_mixture(2, 4), {
        "x": 4.0 * centres[:, None] + np.random.default_rng(11).normal(size=(80, 2))
    }


_STATED: list[Callable[[], Stated]] = [
    _ordered,
    _censored,
    _truncated_normal,
    _single_effect,
    _spike_slab,
    _around_sticks,
    _counts,
    _binomial,
    _sum_of_rates,
    _tabulated,
    _potential,
    _kinds_of_chains,
    _hypotheses,
    _network,
    _weights_of_groups,
    _half_normals,
    _concentrations,
    _thresholds,
    _softmax,
    _gated,
    _nested,
]


@pytest.mark.slow
@pytest.mark.parametrize("state", _STATED)
def test_means_move_as_those_of_tilted_fits(state: Callable[[], Stated]) -> None:
    model, data = state()
    posterior = model.fit(data, seed=0, tol=1e-10, max_iter=3000, factors="apart")
    assert Settled(posterior, data).worst_of_all() < 5e-7


def test_few_responsibilities_respond_as_all_do() -> None:
    """Linear response is of all responsibilities, whatever the fit kept of them."""
    model, data = _few_responsibilities()
    few, every = (model.fit(data, seed=0, tol=1e-10, responsibilities=own) for own in (2, "all"))
    one, other = (own.linear_response(data) for own in (few, every))
    for name in ("mean", "weights"):
        np.testing.assert_allclose(np.sort(one.sd(name), axis=0), np.sort(other.sd(name), axis=0), rtol=0.02)
    assert Settled(few, data).worst_of_all() < 1e-7


@pytest.mark.slow
def test_topics_move_as_those_of_tilted_fits() -> None:
    """Documents with weights, an empty one, and one of a single word; a word that occurs nowhere."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(6, 0.3), 2)
    counts = np.stack([rng.multinomial(25, p @ topics) for p in rng.dirichlet([1.0, 1.0], 14)])
    counts[3], counts[4], counts[:, 2] = 0, 0, 0
    counts[4, 1] = 1
    data, weights = {"word": csr_array(counts)}, rng.uniform(0.5, 2.0, 14)
    model = cv.models.latent_dirichlet_allocation(2, 6, concentration=np.array([0.7, 1.1]))
    posterior = model.fit(data, seed=0, tol=1e-11, max_iter=3000, sample_weight=weights)
    settled = Settled(posterior, data, sample_weight=weights)
    assert settled.worst_of_all() < 1e-6
    # topics that share words are wider than their factors say
    sd = np.sqrt(settled.response.variance("topics")).reshape(2, 6)
    assert (sd / np.sqrt(settled.factors["topics"].variance)).max() > 1.2


def test_topics_of_a_hierarchical_process_are_refused_at_once() -> None:
    document = cv.Plate("document")
    token = cv.Plate("token", within=document)
    topics = cv.Dirichlet("topics", np.full(6, 0.5), plates=cv.Plate("topic", 3))
    shares = cv.StickBreaking("shares", 1.5, 3)
    proportions = cv.Dirichlet("proportions", 2.0 * shares, plates=document)
    z = cv.Categorical("z", proportions, plates=token)
    counts = np.random.default_rng(0).poisson(1.0, (8, 6)) + 1
    model = cv.Model(cv.Categorical("word", topics[z], plates=token))
    with pytest.raises(cv.ModelError, match="proportions have hidden parents"):
        model.fit({"word": csr_array(counts)}, uncertainty="linear_response")
