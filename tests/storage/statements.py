"""Models that, together with those of the invariants, have every kind of node and of slot; with data and arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from invariants.registry import CASES
from scipy.sparse import csr_array

import caviar as cv

__all__ = ["FITS", "fit_of"]

_RNG = np.random.default_rng(5)
_X = _RNG.normal(size=(24, 2))
_Y = _X @ [0.5, -1.0] + 0.3 * _RNG.normal(size=24)
_STARTS = np.arange(24) % 8 == 0


def topics() -> tuple[cv.Model, dict[str, Any]]:
    documents = [_RNG.integers(0, 5, size) for size in (4, 7, 2, 9)]
    return cv.models.latent_dirichlet_allocation(2, 5), {"word": documents}


def counted_topics() -> tuple[cv.Model, dict[str, Any]]:
    return topics()[0], {"word": csr_array(_RNG.poisson(0.8, (6, 5)) + np.eye(6, 5, dtype=int))}


def hidden_markov() -> tuple[cv.Model, dict[str, Any]]:
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    rows = cv.Dirichlet("rows", np.array([[3.0, 1.0], [1.0, 2.0]]), plates=state)
    s = cv.MarkovChain(
        "s", cv.Dirichlet("initial", [1.0, 1.0]), rows, along=time, starts=cv.Data("starts", plates=time)
    )
    theta = cv.NormalGamma("theta", [-1.0, 1.0], 0.2, 1.5, 1.0, plates=state)
    return cv.Model(cv.Normal("x", theta[s], plates=time)), {"x": _Y, "starts": _STARTS}


def known_chain() -> tuple[cv.Model, dict[str, Any]]:
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    s = cv.MarkovChain("s", [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], along=time)
    rate = cv.Gamma("rate", 2.0, 1.0, plates=state)
    return cv.Model(cv.Poisson("x", rate[s], plates=time)), {"x": _RNG.poisson(3.0, 24)}


def level() -> tuple[cv.Model, dict[str, Any]]:
    time = cv.Plate("time")
    noise = cv.Wishart("noise", 2.0, [[0.5]])
    s = cv.LinearGaussianChain("s", [0.0], [[0.01]], [[0.9]], noise, along=time)
    return cv.Model(cv.Normal("x", cv.dot([1.0], s), cv.Gamma("tau", 2, 1), plates=time)), {"x": _Y}


def dynamics() -> tuple[cv.Model, dict[str, Any]]:
    time, row, out = cv.Plate("time"), cv.Plate("row", 2), cv.Plate("out", 2)
    a = cv.MultivariateNormal("a", np.zeros(2), np.eye(2), plates=row)
    q = cv.diagonal(cv.Gamma("q", 2.0, 1.0, plates=row))
    first = cv.MultivariateNormal("first", np.zeros(2), np.eye(2))
    s = cv.LinearGaussianChain("s", first, np.eye(2), a, q, along=time, starts=cv.Data("starts", plates=time))
    c = cv.MultivariateNormal("c", np.zeros(2), np.eye(2), plates=out)
    x = cv.Normal("x", cv.dot(c, s), cv.Gamma("tau", 2.0, 1.0, plates=out), plates=(time, out))
    return cv.Model(x), {"x": _X, "starts": _STARTS}


def known_noise() -> tuple[cv.Model, dict[str, Any]]:
    time, row = cv.Plate("time"), cv.Plate("row", 2)
    a = cv.MultivariateNormal("a", np.zeros(2), np.eye(2), plates=row)
    s = cv.LinearGaussianChain("s", [0.0, 0.0], np.eye(2), a, np.diag([1.0, 2.0]), along=time)
    return cv.Model(cv.MultivariateNormal("x", s, np.eye(2), plates=time)), {"x": _X}


def joint_parts() -> tuple[cv.Model, dict[str, Any]]:
    obs, group = cv.Plate("obs"), cv.Plate("group", 3)
    theta = cv.NormalGamma("theta", np.zeros(2), 0.3 * np.eye(2), 1.5, 1.0, plates=group)
    by = cv.Data("by", plates=obs)
    mean = 0.25 - 2.0 * cv.Normal("shift", 0.0, 0.3) + cv.dot(cv.Data("X", plates=obs), theta[by].mean)
    y = cv.Normal("y", mean, 2.0 * theta[by].precision * cv.Data("w", plates=obs), plates=obs)
    data = {"y": _Y, "X": _X, "by": np.arange(24) % 3, "w": np.linspace(0.5, 2.0, 24)}
    return cv.Model(y), data


def constants() -> tuple[cv.Model, dict[str, Any]]:
    """Named and plain constants in sums, dot products of plain vectors, a product of precisions, several leaves."""
    obs, group = cv.Plate("obs"), cv.Plate("group", 2)
    by = cv.Data("by", plates=obs)
    offset = cv.Constant("offset", [0.5, -0.5], plates=group)
    w = cv.MultivariateNormal("w", [0.0, 0.1], cv.diagonal(cv.Gamma("a", 1.0, 2.0, plates=cv.Plate("d", 2))))
    tau = cv.Gamma("tau", 1.5, cv.Gamma("rate", 1.0, 1.0))
    eta = offset[by] + cv.dot([1.0, 2.0], w) + 0.5 * cv.dot(cv.Data("X", plates=obs), w)
    y = cv.Normal("y", eta, 3.0 * tau * cv.Constant("scale", 2.0), plates=obs)
    flat = cv.Normal("flat", 0.0, 0.0)
    v = cv.Normal("v", flat + 1.0, tau, plates=obs)
    return cv.Model(y, v), {"y": _Y, "v": _Y + 1, "X": _X, "by": np.arange(24) % 2}


def products() -> tuple[cv.Model, dict[str, Any]]:
    user, item = cv.Plate("user"), cv.Plate("item", 3)
    u = cv.MultivariateNormal("u", np.zeros(2), np.eye(2), plates=user)
    v = cv.MultivariateNormal("v", np.zeros(2), np.eye(2), plates=item)
    x = cv.Normal("x", cv.dot(u, v), cv.Gamma("tau", 2.0, 1.0), plates=(user, item))
    return cv.Model(x), {"x": _RNG.normal(size=(8, 3))}


def floors() -> tuple[cv.Model, dict[str, Any]]:
    obs, component, d = cv.Plate("obs"), cv.Plate("component", 2), cv.Plate("d", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=obs)
    mean = cv.Normal("mean", 0.0, 0.0, plates=(component, d))
    tau = cv.Gamma("tau", 1.0, 0.0, smallest_variance=[0.1, 0.2], plates=(component, d))
    precision = cv.Wishart("precision", 3, np.zeros((2, 2)), smallest_variance=0.5)
    y = cv.MultivariateNormal("y", np.zeros(2), precision, plates=obs)
    return cv.Model(cv.Normal("x", mean[z], tau[z], plates=(obs, d)), y), {"x": _X, "y": _X[::-1]}


def beta_and_counts() -> tuple[cv.Model, dict[str, Any]]:
    obs, kind = cv.Plate("obs"), cv.Plate("kind", 3)
    p = cv.Beta("p", [1.0, 2.0, 0.5], 1.5, plates=kind)
    x = cv.Multinomial("x", None, cv.StickBreaking("q", 1.5, 4), plates=obs)
    y = cv.Bernoulli("y", p[cv.Data("by", plates=obs)], plates=obs)
    data = {"x": _RNG.poisson(1.0, (24, 4)), "y": np.arange(24) % 2, "by": np.arange(24) % 3}
    return cv.Model(x, y), data


def global_choice() -> tuple[cv.Model, dict[str, Any]]:
    mean = cv.Normal("mean", [-1.0, 1.0], 1.0, plates=cv.Plate("option", 2))
    z = cv.Categorical("z", [0.4, 0.6])
    return cv.Model(cv.Normal("x", mean[z], 1.0, plates=cv.Plate("obs"))), {"x": _Y}


def tied_products() -> tuple[cv.Model, dict[str, Any]]:
    obs, m = cv.Plate("obs"), cv.Plate("m", 2)
    theta = cv.NormalWishart("theta", np.zeros(2), 0.5, 3.0, np.eye(2), plates=m, tied=m)
    z = cv.Categorical("z", cv.StickBreaking("weights", 2.0, 2), plates=obs)
    u = cv.Gamma("u", 2.0, 2.0, plates=obs)
    x = cv.MultivariateNormal("x", np.zeros(2), u * cv.Wishart("scale", 3.0, np.eye(2)), plates=obs)
    return cv.Model(cv.MultivariateNormal("y", theta[z], plates=obs), x), {"x": _X, "y": _X + 1}


def mixture() -> tuple[cv.Model, dict[str, Any]]:
    return CASES["joint"].state(), {"x": np.vstack([_X - 2, _X + 2])}


def lacking() -> tuple[cv.Model, dict[str, Any]]:
    model, data = mixture()
    x = data["x"].copy()
    x[::5, 0] = np.nan
    x[3] = np.nan
    return model, {"x": x}


def partly_known() -> tuple[cv.Model, dict[str, Any]]:
    component, obs = cv.Plate("component", 3), cv.Plate("obs")
    mean = cv.MultivariateNormal("mean", np.zeros(2), np.eye(2) / 9, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=obs)
    model = cv.Model(cv.MultivariateNormal("x", mean[z], np.eye(2), plates=obs))
    return model, {"x": _X, "mean": [[0.0, 1.0], [np.nan, np.nan], [np.nan, np.nan]]}


def known_pair() -> tuple[cv.Model, dict[str, Any]]:
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    theta = cv.NormalGamma("theta", 0.1, 0.3, 1.5, 1.2, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    model = cv.Model(cv.Normal("x", theta[z], plates=obs))
    return model, {"x": _Y, "theta": ([0.5, np.nan], [2.0, np.nan])}


def covariates() -> tuple[cv.Model, dict[str, Any]]:
    """Covariates that are stated as observed, and hidden in some rows."""
    obs = cv.Plate("obs")
    mean = cv.MultivariateNormal("mean", np.zeros(2), np.eye(2))
    x = cv.MultivariateNormal("x", mean, cv.Wishart("precision", 3.0, np.eye(2)), plates=obs)
    b = cv.MultivariateNormal("b", np.zeros(2), np.eye(2))
    y = cv.Normal("y", cv.dot(b, x), cv.Gamma("tau", 2.0, 1.0), plates=obs)
    known = _X.copy()
    known[::5] = np.nan
    return cv.Model(y, x), {"y": _Y, "x": known}


FITS: dict[str, tuple[Any, dict[str, Any]]] = {
    **{name: (case, {**case.arguments}) for name, case in CASES.items()},
    "topics": (topics, {}),
    "counted topics": (counted_topics, {}),
    "hidden Markov": (hidden_markov, {}),
    "known chain": (known_chain, {}),
    "level": (level, {}),
    "dynamics": (dynamics, {}),
    "known noise": (known_noise, {}),
    "joint parts": (joint_parts, {}),
    "constants": (constants, {}),
    "products": (products, {}),
    "products, other rows": (products, {"data_plate": "item"}),
    "floors": (floors, {"point": ["mean", "tau", "precision"]}),
    "beta and counts": (beta_and_counts, {}),
    "global choice": (global_choice, {}),
    "chosen point": (global_choice, {"point": ["z"]}),
    "tied products": (tied_products, {}),
    "lacking": (lacking, {}),
    "points of pairs": (mixture, {"point": ["theta"]}),
    "apart": (tied_products, {"factors": []}),
    "weighted": (mixture, {"sample_weight": np.arange(48) % 3}),
    "restarts": (mixture, {"n_restarts": 3}),
    "partly known": (partly_known, {}),
    "known pair": (known_pair, {}),
    "covariates": (covariates, {}),
    "stochastic": (mixture, {"schedule": "stochastic"}),
}
"""Name -> what gives a model and data, and arguments of the fit."""


def fit_of(name: str) -> tuple[cv.Posterior, dict[str, Any]]:
    """Return a posterior that has not converged, and the data that it was fitted to."""
    state, arguments = FITS[name]
    if callable(state):
        model, data = state()
    else:
        model, data = state.state(), state.draw(np.random.default_rng(0), 24)
    return model.fit(data, **{"seed": 0, "max_iter": 4, **arguments}), data
