"""The models over which every invariant of a fit is tested: each with random data, priors that fit, and a start."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import caviar as cv
import caviar.models

__all__ = ["CASES", "ON_DEVICES", "Case"]

Data = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A model with data for it.

    Attributes
    ----------
    state
        Returns the model.
    draw
        Returns data of a number of rows, rows first.
    arguments
        Further arguments of the fit.
    """

    state: Callable[[], cv.Model]
    draw: Callable[[np.random.Generator, int], Data]
    arguments: dict[str, Any] = field(default_factory=dict)

    def fit(self, data: Data, **arguments: Any) -> cv.Posterior:
        """Fit the model, from seed 0 unless told otherwise."""
        return self.state().fit(data, **{"seed": 0, **self.arguments, **arguments})

    @property
    def labels(self) -> bool:
        """Whether the only local variable is a Categorical z."""
        local = [v for v in self.state().variables.values() if any(p.name == "obs" for p in v.plates)]
        latent = [v for v in local if v.name != "x"]
        return len(latent) == 1 and isinstance(latent[0], cv.Categorical)


def _clusters(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.normal(0, 1, (n, d)) + rng.choice([-2.5, 0.0, 2.0], (n, 1)) * np.linspace(1, 0.5, d)


def known_variance() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    mean = cv.Normal("mean", 0.5, 0.1, plates=component)
    return cv.Model(cv.Normal("x", mean[cv.Categorical("z", [0.2, 0.3, 0.5], plates=obs)], 1.0, plates=obs))


def independent() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    weights = cv.Dirichlet("weights", [1.0, 0.7, 2.0])
    mean = cv.MultivariateNormal("mean", [0.2, -0.3], np.eye(2) / 9, plates=component)
    precision = cv.Wishart("precision", 3.5, np.array([[1.5, 0.3], [0.3, 0.8]]), plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))


def joint() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    scale = np.array([[1.5, 0.3], [0.3, 0.8]])
    theta = cv.NormalWishart("theta", [0.2, -0.3], 0.2, 3.5, scale, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 0.7, 2.0]), plates=obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))


def tied() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    mean = cv.MultivariateNormal("mean", np.zeros(2), np.eye(2) / 9, plates=component)
    precision = cv.Wishart("precision", 3.0, np.eye(2))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision, plates=obs))


def diagonal() -> cv.Model:
    obs, component, feature = cv.Plate("obs"), cv.Plate("component", 2), cv.Plate("feature", 2)
    theta = cv.NormalGamma("theta", 0.1, 0.3, 1.5, 1.2, plates=(component, feature))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    return cv.Model(cv.Normal("x", theta[z], plates=(obs, feature)))


def shared_precision() -> cv.Model:
    obs, component, feature = cv.Plate("obs"), cv.Plate("component", 2), cv.Plate("feature", 3)
    mean = cv.Normal("mean", 0.0, 0.1, plates=(component, feature))
    tau = cv.Gamma("tau", 1.5, cv.Gamma("rate", 2.0, 1.0), plates=feature)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    return cv.Model(cv.Normal("x", mean[z], tau, plates=(obs, feature)))


def tied_joint() -> cv.Model:
    scale = np.array([[1.5, 0.3], [0.3, 0.8]])
    return cv.models.tied_mixture(
        2, 2, concentration=[1.0, 0.7], mean_precision=0.3, df=3.5, inverse_scale=scale
    )


def diagonal_apart() -> cv.Model:
    return cv.models.diagonal_mixture_independent(2, 2, prior_precision=0.1, shape=1.5, rate=[1.2, 0.7])


def spherical() -> cv.Model:
    return cv.models.spherical_mixture(3, 2, mean_precision=0.3, shape=1.5, rate=1.2)


def spherical_apart() -> cv.Model:
    return cv.models.spherical_mixture_independent(3, 2, prior_precision=0.1, shape=1.5, rate=1.2)


def unit() -> cv.Model:
    return cv.models.unit_variance_mixture(2, 3, mean_precision=0.1, variance=[1.0, 0.5])


def factorised_normal() -> cv.Model:
    mean, tau = cv.Normal("mean", 1.0, 0.2), cv.Gamma("tau", 1.5, 0.8)
    return cv.Model(cv.Normal("x", mean, tau, plates=cv.Plate("obs")))


def nested_wishart() -> cv.Model:
    precision = cv.Wishart("precision", 4.0, cv.Wishart("scale", 3.5, np.eye(2)))
    mean = cv.MultivariateNormal("mean", np.zeros(2), np.eye(2) / 4)
    return cv.Model(cv.MultivariateNormal("x", mean, precision, plates=cv.Plate("obs")))


def bernoullis() -> cv.Model:
    obs, component, feature = cv.Plate("obs"), cv.Plate("component", 2), cv.Plate("feature", 4)
    p = cv.Beta("p", 0.8, 1.5, plates=(component, feature))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    return cv.Model(cv.Bernoulli("x", p[z], plates=(obs, feature)))


def categoricals() -> cv.Model:
    obs, component, feature = cv.Plate("obs"), cv.Plate("component", 2), cv.Plate("feature", 3)
    p = cv.Dirichlet("p", [0.6, 1.0, 1.7], plates=(component, feature))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    return cv.Model(cv.Categorical("x", p[z], plates=(obs, feature)))


def vocabulary() -> cv.Model:
    obs, component, feature = cv.Plate("obs"), cv.Plate("component", 2), cv.Plate("feature", 3)
    p = cv.Dirichlet("p", np.full(20, 0.7), plates=(component, feature))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    return cv.Model(cv.Categorical("x", p[z], plates=(obs, feature)))


def counts() -> cv.Model:
    obs, component, feature = cv.Plate("obs"), cv.Plate("component", 2), cv.Plate("feature", 3)
    rate = cv.Gamma("rate", 1.2, cv.Gamma("scale", 2.0, 1.0), plates=(component, feature))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    return cv.Model(cv.Poisson("x", rate[z], plates=(obs, feature)))


def tallies() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    p = cv.Dirichlet("p", [0.6, 1.0, 1.7], plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    return cv.Model(cv.Multinomial("x", 8, p[z], plates=obs))


def times() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    rate = cv.Gamma("rate", 1.2, 0.8, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    return cv.Model(cv.Gamma("x", 2.5, rate[z], plates=obs))


def sticks() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 4)
    weights = cv.StickBreaking("weights", cv.Gamma("gamma", 2.0, 1.5), 4)
    theta = cv.NormalWishart("theta", [0.2, -0.3], 0.2, 3.5, np.eye(2), plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))


def measured() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    mean = cv.Normal("mean", 0.0, 0.1, plates=component)
    tau = cv.Gamma("tau", 2.0, 1.0, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    t = cv.Normal("t", mean[z], tau[z], plates=obs)
    return cv.Model(cv.Normal("x", t, cv.Data("noise", plates=obs), plates=obs))


def regression() -> cv.Model:
    obs, group, feature = cv.Plate("obs"), cv.Plate("group", 3), cv.Plate("feature", 2)
    spread = cv.Gamma("spread", 1.5, 1.0, plates=feature)
    w = cv.MultivariateNormal("w", np.array([0.5, -0.2]), cv.diagonal(spread), plates=group)
    mean = cv.dot(cv.Data("X", plates=obs), w[cv.Data("group", plates=obs)]) + cv.Normal("shift", 0.0, 0.3)
    return cv.Model(cv.Normal("x", mean, cv.Gamma("tau", 1.5, 1.0), plates=obs))


def utilities() -> cv.Model:
    obs, group = cv.Plate("obs"), cv.Plate("group", 3)
    w = cv.MultivariateNormal("w", np.array([0.5, -0.2]), np.eye(2))
    shift = cv.Normal("shift", cv.Normal("middle", 0.0, 0.5), cv.Gamma("spread", 2.0, 1.0), plates=group)
    predictor = cv.dot(cv.Data("X", plates=obs), w) + shift[cv.Data("group", plates=obs)]
    return cv.Model(cv.Bernoulli("x", cv.probit(predictor), plates=obs))


def odds() -> cv.Model:
    obs, feature = cv.Plate("obs"), cv.Plate("feature", 2)
    w = cv.MultivariateNormal("w", np.zeros(2), cv.diagonal(cv.Gamma("spread", 1.5, 1.0, plates=feature)))
    predictor = cv.dot(cv.Data("X", plates=obs), w) + cv.Normal("shift", 0.1, 0.3)
    return cv.Model(cv.Bernoulli("x", cv.logistic(predictor), plates=obs))


def expected_odds() -> cv.Model:
    obs = cv.Plate("obs")
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
    predictor = cv.dot(cv.Data("X", plates=obs), w) + cv.Normal("shift", 0.1, cv.Gamma("spread", 2.0, 1.0))
    return cv.Model(cv.Bernoulli("x", cv.logistic(predictor, method="expectation"), plates=obs))


def experts() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 2.0]), plates=obs)
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=component)
    return cv.Model(cv.Bernoulli("x", cv.probit(cv.dot(cv.Data("X", plates=obs), w[z])), plates=obs))


def items() -> cv.Model:
    obs, item = cv.Plate("obs"), cv.Plate("item", 4)
    ability = cv.Normal("ability", 0.0, 1.0, plates=obs)
    predictor = ability - cv.Normal("difficulty", 0.0, 0.5, plates=item)
    return cv.Model(cv.Bernoulli("x", cv.logistic(predictor), plates=(obs, item)))


def conjugate_regression() -> cv.Model:
    obs, feature = cv.Plate("obs"), cv.Plate("feature", 2)
    spread = cv.diagonal(cv.Gamma("spread", 1.5, 1.0, plates=feature))
    theta = cv.NormalGamma("theta", np.array([0.5, -0.2]), spread, 1.5, 1.0)
    mean = cv.dot(cv.Data("X", plates=obs), theta.mean) + cv.Normal("shift", 0.0, 0.3)
    return cv.Model(cv.Normal("x", mean, theta.precision, plates=obs))


def mixed_regressions() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    theta = cv.NormalGamma("theta", np.array([0.5, -0.2]), 0.4 * np.eye(2), 1.5, 1.0, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    mean = cv.dot(cv.Data("X", plates=obs), theta[z].mean)
    return cv.Model(cv.Normal("x", mean, theta[z].precision, plates=obs))


def robust() -> cv.Model:
    return cv.models.robust_mixture(2, 2, prior_precision=0.1)


def factors() -> cv.Model:
    return cv.models.factor_analysis(3, 2, mean_precision=0.1)


def deconvolved() -> cv.Model:
    return cv.models.measured_mixture(2, 2, mean_precision=0.1, independent_errors=True)


def _one(d: int | None) -> Callable[[np.random.Generator, int], Data]:
    def draw(rng: np.random.Generator, n: int) -> Data:
        x = _clusters(rng, n, d or 1)
        return {"x": x if d else x[:, 0]}

    return draw


def _answers(kinds: int, d: int) -> Callable[[np.random.Generator, int], Data]:
    def draw(rng: np.random.Generator, n: int) -> Data:
        likely = rng.dirichlet(np.ones(kinds), (2, d))[rng.integers(0, 2, n)]
        return {"x": (rng.random((n, d, 1)) > likely.cumsum(axis=-1)).sum(axis=-1).clip(0, kinds - 1)}

    return draw


def _counted(rng: np.random.Generator, n: int) -> Data:
    return {"x": rng.poisson(np.array([[0.5, 4.0, 9.0], [6.0, 1.0, 8.0]])[rng.integers(0, 2, n)])}


def _tallied(rng: np.random.Generator, n: int) -> Data:
    return {"x": rng.multinomial(8, np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])[rng.integers(0, 2, n)])}


def _timed(rng: np.random.Generator, n: int) -> Data:
    return {"x": rng.gamma(2.5, np.array([0.4, 3.0])[rng.integers(0, 2, n)])}


def _noisy(rng: np.random.Generator, n: int) -> Data:
    return {"x": _clusters(rng, n, 1)[:, 0], "noise": rng.gamma(2, 2, n)}


def _with_errors(rng: np.random.Generator, n: int) -> Data:
    return {"x": _clusters(rng, n, 2), "noise_precision": rng.gamma(2, 2, (n, 2))}


def _grouped(rng: np.random.Generator, n: int) -> Data:
    return {"x": _clusters(rng, n, 1)[:, 0], "X": rng.normal(size=(n, 2)), "group": rng.integers(0, 3, n)}


def _answered(rng: np.random.Generator, n: int) -> Data:
    X = rng.normal(size=(n, 2))
    return {"x": (rng.normal(size=n) < 1.5 * X[:, 0]) * 1, "X": X, "group": rng.integers(0, 3, n)}


def _decided(rng: np.random.Generator, n: int) -> Data:
    data = _answered(rng, n)
    return {"x": data["x"], "X": data["X"]}


def _solved(rng: np.random.Generator, n: int) -> Data:
    ability, ease = rng.normal(size=(n, 1)), np.array([-1.0, 0.0, 0.5, 1.0])
    return {"x": (rng.normal(size=(n, 4)) < ability + ease) * 1}


def _lined(rng: np.random.Generator, n: int) -> Data:
    return {"x": _clusters(rng, n, 1)[:, 0], "X": rng.normal(size=(n, 2))}


def table_of_two() -> cv.Model:
    obs, first, second, column = (
        cv.Plate("obs"),
        cv.Plate("first", 2),
        cv.Plate("second", 2),
        cv.Plate("column", 2),
    )
    z = cv.Categorical("z", cv.Dirichlet("shares", [2.0, 1.0]), plates=obs)
    v = cv.Categorical("v", cv.Dirichlet("given", [[2.0, 1.0], [1.0, 2.0]], plates=first)[z], plates=obs)
    mean = cv.Normal("mean", 0.0, 0.01, plates=(first, second, column))
    return cv.Model(cv.Normal("x", mean[z, v], cv.Gamma("tau", 2, 2, plates=first)[z], plates=(obs, column)))


CASES = {
    "known-variance": Case(known_variance, _one(None)),
    "independent": Case(independent, _one(2)),
    "joint": Case(joint, _one(2)),
    "tied": Case(tied, _one(2)),
    "diagonal": Case(diagonal, _one(2)),
    "tied-joint": Case(tied_joint, _one(2)),
    "diagonal-apart": Case(diagonal_apart, _one(2)),
    "spherical": Case(spherical, _one(3)),
    "spherical-apart": Case(spherical_apart, _one(3)),
    "unit": Case(unit, _one(2)),
    "shared-precision": Case(shared_precision, _one(3)),
    "factorised-normal": Case(factorised_normal, _one(None)),
    "nested-wishart": Case(nested_wishart, _one(2)),
    "bernoullis": Case(bernoullis, _answers(2, 4)),
    "categoricals": Case(categoricals, _answers(3, 3)),
    "vocabulary": Case(vocabulary, _answers(20, 3)),
    "counts": Case(counts, _counted),
    "tallies": Case(tallies, _tallied),
    "times": Case(times, _timed),
    "sticks": Case(sticks, _one(2)),
    "measured": Case(measured, _noisy),
    "measured-apart": Case(measured, _noisy, {"factors": []}),
    "deconvolved": Case(deconvolved, _with_errors),
    "regression": Case(regression, _grouped),
    "utilities": Case(utilities, _answered),
    "odds": Case(odds, _decided),
    "expected odds": Case(expected_odds, _decided, {"factors": "apart"}),
    "experts": Case(experts, _decided),
    "items": Case(items, _solved),
    "conjugate-regression": Case(conjugate_regression, _lined),
    "mixed-regressions": Case(mixed_regressions, _lined),
    "robust": Case(robust, _one(2)),
    "factors": Case(factors, _one(3)),
    "table-of-two": Case(table_of_two, _one(2)),
    "map": Case(independent, _one(2), {"point": ["mean", "precision"]}),
}

ON_DEVICES = (
    "known-variance",
    "independent",
    "joint",
    "tied",
    "diagonal",
    "tied-joint",
    "diagonal-apart",
    "spherical",
    "spherical-apart",
    "unit",
    "shared-precision",
    "bernoullis",
    "categoricals",
    "counts",
    "tallies",
    "times",
    "sticks",
    "map",
)
"""Cases with models that a device takes; all others are refused."""
