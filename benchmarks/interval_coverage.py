"""How often intervals hold the truth: of mean field, of linear response, to second order, and of the exact posterior.

    python benchmarks/interval_coverage.py [--datasets 200] [--level 0.9] [--models crossed,probit] [--seed 0]
    python benchmarks/interval_coverage.py --apart           # variables that are added up in a factor each
    python benchmarks/interval_coverage.py --new-rows        # intervals of new rows
    python benchmarks/interval_coverage.py --integrated      # precisions between groups, integrated over

Each data set is drawn from its model with all priors, fitted as users do, and asked for the interval of each entry of
some variables. An interval of level 0.9 that is right covers 90% of the truths (simulation-based calibration). The
exact posterior is that of importance sampling with --draws draws (0: leave it out), where its weights are usable.

Given the data a truth is a draw of the exact posterior. So the probability that the exact posterior has inside an
interval is what covering would average to over all truths of these data, without the chance of one truth: its mean over
data sets is the coverage, with an error ten times smaller than that of counted truths. An exact interval has 90%.

Fits that end elsewhere than a fit that begins at the truth are in another mode, where no interval is right; they are
counted ("modes") and left out. The table shows the share of truths that the intervals of linear response hold; the
coverage by the exact posterior of mean field, linear response, second order ("2nd") and what is shown by default, with
standard errors over data sets; the medians of their standard deviations over the exact ones; the mean distances (root
mean square) of the means of the fit, of those to second order and of those shown from the exact ones, in exact standard
deviations; and seconds of a fit, of its linear response, and of second order. "exact of" is the number of data sets
with usable weights. Fits are those of a user: variables that are added up share a factor, as by default, unless --apart
is given.
With --markdown the lines are those of the table in docs/uncertainty.md.
With --integrated the column "response" is that of posterior.integrated over a precision.
With --new-rows the intervals are those of 50 new rows of each data set, as ``predict`` gives them from each of the two.

It is not called ``coverage.py``: numba imports the package ``coverage`` if there is one, and would find a script of
this name beside any benchmark that it runs in.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import caviar as cv

OBS = cv.Plate("obs")


@dataclass(frozen=True)
class Case:
    """A model, what is known with it, the variables whose intervals are asked for, and those that are added up.

    ``over`` has the precisions to integrate over.
    """

    state: Callable[[], cv.Model]
    known: Callable[[np.random.Generator], dict[str, Any]]
    asked: tuple[str, ...]
    sizes: Mapping[str, int]
    shared: tuple[str, ...] = ()
    over: tuple[str, ...] = ()


def crossed() -> cv.Model:
    a = cv.Normal("a", 0, 1.0, plates=cv.Plate("row", 20))
    b = cv.Normal("b", 0, 1.0, plates=cv.Plate("column", 15))
    at = cv.Normal("mu", 0, 0.5) + a[cv.Data("g", plates=OBS)] + b[cv.Data("h", plates=OBS)]
    return cv.Model(cv.Normal("y", at, cv.Gamma("tau", 5, 5), plates=OBS))


def level_and_groups() -> cv.Model:
    a = cv.Normal("a", 0, cv.Gamma("between", 5, 5), plates=cv.Plate("row", 10))
    at = cv.Normal("mu", 0, 0.5) + a[cv.Data("g", plates=OBS)]
    return cv.Model(cv.Normal("y", at, cv.Gamma("tau", 5, 5), plates=OBS))


def hierarchy() -> cv.Model:
    group = cv.Plate("group", 8)
    level = cv.Normal("level", cv.Normal("mu", 0, 0.5), cv.Gamma("between", 5, 5), plates=group)
    return cv.Model(cv.Normal("y", level[cv.Data("g", plates=OBS)], cv.Gamma("tau", 5, 5), plates=OBS))


def probit(method: str = "bound") -> cv.Model:
    w = cv.MultivariateNormal("w", np.zeros(3), 0.5 * np.eye(3))
    eta = cv.dot(cv.Data("X", plates=OBS), w)
    return cv.Model(cv.Bernoulli("y", cv.probit(eta, method=method), plates=OBS))


def logistic(method: str = "bound") -> cv.Model:
    w = cv.MultivariateNormal("w", np.zeros(3), 0.5 * np.eye(3))
    eta = cv.dot(cv.Data("X", plates=OBS), w)
    return cv.Model(cv.Bernoulli("y", cv.logistic(eta, method=method), plates=OBS))


def regression() -> cv.Model:
    w = cv.MultivariateNormal("w", np.zeros(3), np.eye(3))
    at = cv.dot(cv.Data("X", plates=OBS), w)
    return cv.Model(cv.Normal("y", at, cv.Gamma("tau", 2, 2), plates=OBS))


def student() -> cv.Model:
    w = cv.MultivariateNormal("w", np.zeros(3), np.eye(3))
    at = cv.dot(cv.Data("X", plates=OBS), w)
    scale = cv.Gamma("scale", 2.0, 2.0, plates=OBS)
    return cv.Model(cv.Normal("y", at, scale, plates=OBS))


def mixture() -> cv.Model:
    component = cv.Plate("component", 3)
    mean = cv.Normal("mean", [-3.0, 0.0, 3.0], 1.0, plates=component)
    tau = cv.Gamma("tau", 5, 5, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.full(3, 4.0)), plates=OBS)
    return cv.Model(cv.Normal("x", mean[z], tau[z], plates=OBS))


def hidden_markov() -> cv.Model:
    state = cv.Plate("state", 2)
    initial, transition = np.full(2, 0.5), cv.Dirichlet("transition", [4.0, 2.0], plates=state)
    s = cv.MarkovChain("s", initial, transition, along=OBS)
    mean = cv.Normal("mean", [-1.0, 1.0], 2.0, plates=state)
    return cv.Model(cv.Normal("x", mean[s], cv.Gamma("tau", 5, 5, plates=state)[s], plates=OBS))


def mean_and_precision() -> cv.Model:
    return cv.Model(cv.Normal("y", cv.Normal("m", 0, 0.5), cv.Gamma("tau", 2, 2), plates=OBS))


def nested() -> cv.Model:
    region, school = cv.Plate("region", 5), cv.Plate("school", 15)
    of_region = cv.Normal("of_region", 0, cv.Gamma("between_regions", 5, 5), plates=region)
    of_school = cv.Normal("of_school", 0, cv.Gamma("between_schools", 5, 5), plates=school)
    at = cv.Normal("mu", 0, 0.5) + of_region[cv.Data("r", plates=OBS)] + of_school[cv.Data("s", plates=OBS)]
    return cv.Model(cv.Normal("y", at, cv.Gamma("tau", 5, 5), plates=OBS))


def random_slopes() -> cv.Model:
    group = cv.Plate("group", 8)
    g, x = cv.Data("g", plates=OBS), cv.Data("x", plates=OBS)
    a = cv.Normal("a", 0, cv.Gamma("of_a", 5, 5), plates=group)
    b = cv.Normal("b", 0, cv.Gamma("of_b", 5, 5), plates=group)
    at = cv.Normal("mu", 0, 0.5) + cv.Normal("slope", 0, 0.5) * x + a[g] + b[g] * x
    return cv.Model(cv.Normal("y", at, cv.Gamma("tau", 5, 5), plates=OBS))


def logistic_groups(method: str = "bound") -> cv.Model:
    a = cv.Normal("a", 0, cv.Gamma("between", 5, 5), plates=cv.Plate("group", 8))
    at = cv.Normal("mu", 0, 0.5) + a[cv.Data("g", plates=OBS)]
    return cv.Model(cv.Bernoulli("y", cv.logistic(at, method=method), plates=OBS))


def probit_groups(method: str = "bound") -> cv.Model:
    a = cv.Normal("a", 0, cv.Gamma("between", 5, 5), plates=cv.Plate("group", 8))
    at = cv.Normal("mu", 0, 0.5) + a[cv.Data("g", plates=OBS)]
    return cv.Model(cv.Bernoulli("y", cv.probit(at, method=method), plates=OBS))


def counts() -> cv.Model:
    rate = cv.Gamma("rate", 3.0, cv.Gamma("scale", 3, 3), plates=cv.Plate("group", 8))
    return cv.Model(cv.Poisson("y", rate[cv.Data("g", plates=OBS)], plates=OBS))


def poisson_mixture() -> cv.Model:
    rate = cv.Gamma("rate", [4.0, 16.0], [2.0, 2.0], plates=cv.Plate("component", 2))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.full(2, 4.0)), plates=OBS)
    return cv.Model(cv.Poisson("x", rate[z], plates=OBS))


def vector_mixture() -> cv.Model:
    component = cv.Plate("component", 2)
    mean = cv.MultivariateNormal("mean", [[-2.0, 0.0], [2.0, 0.0]], np.eye(2), plates=component)
    precision = cv.Wishart("precision", 8.0, 8.0 * np.eye(2), plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.full(2, 4.0)), plates=OBS)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=OBS))


def latent_classes() -> cv.Model:
    component, question = cv.Plate("component", 2), cv.Plate("question", 5)
    concentration = np.broadcast_to(np.array([[2.0], [6.0]]), (2, 5))
    p = cv.Beta("p", concentration, concentration[::-1], plates=(component, question))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.full(2, 4.0)), plates=OBS)
    return cv.Model(cv.Bernoulli("x", p[z], plates=(OBS, question)))


def relevance() -> cv.Model:
    alpha = cv.Gamma("alpha", 2.0, 2.0, plates=cv.Plate("feature", 3))
    w = cv.MultivariateNormal("w", np.zeros(3), cv.diagonal(alpha))
    at = cv.dot(cv.Data("X", plates=OBS), w)
    return cv.Model(cv.Normal("y", at, cv.Gamma("tau", 2, 2), plates=OBS))


def unequal_noise() -> cv.Model:
    group = cv.Plate("group", 6)
    tau = cv.Gamma("tau", 3.0, cv.Gamma("scale", 3, 1), plates=group)
    return cv.Model(cv.Normal("y", cv.Normal("mu", 0, 0.5), tau[cv.Data("g", plates=OBS)], plates=OBS))


def student_location() -> cv.Model:
    scale = cv.Gamma("scale", 2.0, 2.0, plates=OBS)
    tau = cv.Gamma("tau", 3, 3)
    return cv.Model(cv.Normal("y", cv.Normal("mu", 0, 0.5), tau * scale, plates=OBS))


def covariance_analysis() -> cv.Model:
    w = cv.MultivariateNormal("w", np.zeros(2), 4.0 * np.eye(2))
    at = cv.dot(cv.Data("X", plates=OBS), w)
    a = cv.Normal("a", 0, 1.0, plates=cv.Plate("group", 4))
    return cv.Model(cv.Normal("y", at + a[cv.Data("g", plates=OBS)], cv.Gamma("tau", 2, 2), plates=OBS))


def local_level() -> cv.Model:
    level = cv.LinearGaussianChain(
        "level", [0.0], [[1.0]], [[1.0]], cv.Wishart("of_steps", 8.0, [[2.0]]), along=OBS
    )
    at = cv.dot(np.ones(1), level)
    return cv.Model(cv.Normal("y", at, cv.Gamma("tau", 4, 4), plates=OBS))


def categorical_chain() -> cv.Model:
    state = cv.Plate("state", 2)
    transition = cv.Dirichlet("transition", [[8.0, 2.0], [2.0, 8.0]], plates=state)
    s = cv.MarkovChain("s", np.full(2, 0.5), transition, along=OBS)
    p = cv.Dirichlet("p", [[6.0, 2.0, 1.0], [1.0, 2.0, 6.0]], plates=state)
    return cv.Model(cv.Categorical("x", p[s], plates=OBS))


def factors() -> cv.Model:
    feature = cv.Plate("feature", 5)
    loadings = cv.MultivariateNormal("loadings", np.zeros(2), np.eye(2), plates=feature)
    scores = cv.MultivariateNormal("scores", np.zeros(2), np.eye(2), plates=OBS)
    noise = cv.Gamma("tau", 3, 1, plates=feature)
    return cv.Model(cv.Normal("x", cv.dot(loadings, scores), noise, plates=(OBS, feature)))


def _columns(n: int) -> Callable[[np.random.Generator], dict[str, Any]]:
    def known(rng: np.random.Generator) -> dict[str, Any]:
        return {"X": np.column_stack([np.ones(n), rng.normal(size=(n, 2))])}

    return known


def _groups(n: int, **levels: int) -> Callable[[np.random.Generator], dict[str, Any]]:
    def known(rng: np.random.Generator) -> dict[str, Any]:
        return {name: np.append(np.arange(k), rng.integers(0, k, n - k)) for name, k in levels.items()}

    return known


def _nested(rng: np.random.Generator) -> dict[str, Any]:
    s = np.append(np.arange(15), rng.integers(0, 15, 75))
    return {"s": s, "r": s % 5}


def _slopes(rng: np.random.Generator) -> dict[str, Any]:
    return {**_groups(80, g=8)(rng), "x": rng.normal(size=80)}


def _both(rng: np.random.Generator) -> dict[str, Any]:
    return {"X": rng.normal(size=(40, 2)), **_groups(40, g=4)(rng)}


CASES = {
    "crossed": Case(crossed, _groups(200, g=20, h=15), ("mu", "a", "tau"), {"obs": 200}, ("mu", "a", "b")),
    "level": Case(
        level_and_groups, _groups(60, g=10), ("mu", "a", "between", "tau"), {"obs": 60}, ("mu", "a")
    ),
    "hierarchy": Case(hierarchy, _groups(60, g=8), ("mu", "between", "tau"), {"obs": 60}, ("mu", "level")),
    "probit": Case(probit, _columns(60), ("w",), {"obs": 60}),
    "logistic": Case(logistic, _columns(60), ("w",), {"obs": 60}),
    "regression": Case(regression, _columns(15), ("w", "tau"), {"obs": 15}),
    "student": Case(student, _columns(40), ("w",), {"obs": 40}),
    "mixture": Case(mixture, lambda rng: {}, ("mean", "tau", "weights"), {"obs": 100}),
    "hidden-markov": Case(hidden_markov, lambda rng: {}, ("mean", "tau", "transition"), {"obs": 120}),
    "mean-precision": Case(mean_and_precision, lambda rng: {}, ("m", "tau"), {"obs": 8}),
    "nested": Case(
        nested,
        _nested,
        ("mu", "of_region", "between_schools", "tau"),
        {"obs": 90},
        ("mu", "of_region", "of_school"),
    ),
    "random-slopes": Case(
        random_slopes, _slopes, ("mu", "slope", "of_b", "tau"), {"obs": 80}, ("mu", "slope", "a", "b")
    ),
    "logistic-groups": Case(
        logistic_groups, _groups(120, g=8), ("mu", "a", "between"), {"obs": 120}, ("mu", "a")
    ),
    "probit-groups": Case(
        probit_groups, _groups(120, g=8), ("mu", "a", "between"), {"obs": 120}, ("mu", "a")
    ),
    "counts": Case(counts, _groups(32, g=8), ("rate", "scale"), {"obs": 32}),
    "poisson-mixture": Case(poisson_mixture, lambda rng: {}, ("rate", "weights"), {"obs": 80}),
    "vector-mixture": Case(vector_mixture, lambda rng: {}, ("mean", "precision", "weights"), {"obs": 80}),
    "latent-classes": Case(latent_classes, lambda rng: {}, ("p", "weights"), {"obs": 80}),
    "relevance": Case(relevance, _columns(20), ("w", "alpha", "tau"), {"obs": 20}),
    "unequal-noise": Case(unequal_noise, _groups(36, g=6), ("mu", "tau", "scale"), {"obs": 36}),
    "student-location": Case(student_location, lambda rng: {}, ("mu", "tau"), {"obs": 30}),
    "covariance-analysis": Case(covariance_analysis, _both, ("w", "a", "tau"), {"obs": 40}, ("w", "a")),
    "local-level": Case(local_level, lambda rng: {}, ("of_steps", "tau"), {"obs": 80}),
    "categorical-chain": Case(categorical_chain, lambda rng: {}, ("transition", "p"), {"obs": 150}),
}

for _name, _over in {
    "level": "between",
    "hierarchy": "between",
    "regression": "tau",
    "mean-precision": "tau",
    "nested": "between_schools",
    "random-slopes": "of_b",
    "logistic-groups": "between",
    "probit-groups": "between",
}.items():
    CASES[_name] = replace(CASES[_name], over=(_over,))

NEW_ROWS_ONLY = {"factors": Case(factors, lambda rng: {}, ("loadings",), {"obs": 40})}
"""Models of which only predictions are asked: the factors may be turned."""

for _own in (probit, logistic, logistic_groups, probit_groups):
    _name = _own.__name__.replace("_", "-")
    CASES[f"{_name}-expectation"] = replace(CASES[_name], state=partial(_own, "expectation"))
"""The same with the expected log density itself in the ELBO."""

OF_REAL_NUMBERS = (
    "crossed",
    "level",
    "hierarchy",
    "regression",
    "student",
    "student-location",
    "mean-precision",
    "unequal-noise",
    "mixture",
    "vector-mixture",
    "relevance",
    "covariance-analysis",
    "random-slopes",
    "nested",
    "factors",
)
NEW_ROWS = 50
SAME_MODE = 0.1
"""Nats by which objectives differ at most if two fits are in one mode."""


@dataclass
class Tally:
    """What was seen of a variable by data set: whether intervals covered, and standard deviations over exact ones."""

    truths: list[float] = field(default_factory=list)
    """Share of the entries whose truth is in the interval of linear response."""
    mean_field: list[float] = field(default_factory=list)
    response: list[float] = field(default_factory=list)
    second: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    """Probability of the exact posterior inside the intervals of each; shown is what a user sees by default."""
    mean_field_ratios: list[float] = field(default_factory=list)
    response_ratios: list[float] = field(default_factory=list)
    second_ratios: list[float] = field(default_factory=list)
    shown_ratios: list[float] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)
    second_shifts: list[float] = field(default_factory=list)
    shown_shifts: list[float] = field(default_factory=list)
    """Squared distances of the means from the exact ones, in exact standard deviations; means over entries."""


@dataclass
class Run:
    """What was seen of a model: tallies by variable, seconds of fits and responses, and what was left out."""

    tallies: dict[str, Tally]
    fit_seconds: float = 0.0
    response_seconds: float = 0.0
    second_seconds: float = 0.0
    other_modes: int = 0
    refused: int = 0
    weighed: int = 0


def inside(sample: Any, name: str, ends: Any) -> float:
    """Return the probability of weighted draws inside intervals, the mean over entries."""
    values = np.asarray(sample.draws[name])
    within = (values >= ends[0]) & (values <= ends[1])
    return float(np.mean(np.tensordot(sample.weights, within, axes=1)))


def covered(truth: Any, ends: Any) -> float:
    """Return the share of entries inside their interval."""
    return float(np.mean((np.asarray(truth) >= ends[0]) & (np.asarray(truth) <= ends[1])))


def simulated(case: Case, seed: int, number: int) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    """Return a model, its data, and the true values."""
    rng = np.random.default_rng([seed, number])
    known = case.known(rng)
    model = case.state()
    drawn = model.simulate(rng, data=known, sizes=case.sizes)
    leaves = {leaf.name: drawn[leaf.name] for leaf in model.leaves}
    return model, {**known, **leaves}, drawn


def arguments_of(apart: bool) -> dict[str, Any]:
    """Return the arguments of fits, by default those of a user."""
    return {"tol": 1e-9, "max_iter": 3000, **({"factors": "apart"} if apart else {})}


def fitted(case: Case, model: cv.Model, data: Any, truth: Any, found: Run, *, apart: bool) -> Any:
    """Return the fit of a user, or None if it is in another mode than that of a start at the truth."""
    arguments = arguments_of(apart)
    start = time.process_time()
    posterior = model.fit(data, seed=0, **arguments)
    found.fit_seconds += time.process_time() - start
    at_truth = {name: truth[name] for name in case.asked if apart or name not in case.shared}
    beside = model.fit(data, init=at_truth, **arguments)
    if abs(posterior.elbo - beside.elbo) > SAME_MODE:
        found.other_modes += 1
        return None
    return posterior


def run(
    case: Case, n: int, level: float, seed: int, draws: int, *, apart: bool = False, integrated: bool = False
) -> Run:
    """Return what was seen of n data sets of a model."""
    found = Run({name: Tally() for name in case.asked})
    for number in range(n):
        model, data, drawn = simulated(case, seed, number)
        posterior = fitted(case, model, data, drawn, found, apart=apart)
        if posterior is None:
            continue
        start = time.process_time()
        try:
            response = (
                posterior.integrated(data, case.over) if integrated else posterior.linear_response(data)
            )
            told = {name: (response.interval(name, level), response.sd(name)) for name in case.asked}
        except cv.ModelError:
            found.refused += 1
            continue
        found.response_seconds += time.process_time() - start
        start = time.process_time()
        second = model.fit(data, seed=0, **arguments_of(apart), uncertainty="second_order")
        found.second_seconds += time.process_time() - start
        sample = posterior.importance_sample(data, n_draws=draws, seed=number) if draws else None
        is_weighed = sample is not None and sample.is_usable
        found.weighed += is_weighed
        for name in case.asked:
            (own,) = posterior[name].entry_marginals((0.5 - level / 2, 0.5 + level / 2))
            tally, (ends, sd) = found.tallies[name], told[name]
            tally.truths.append(covered(drawn[name], ends))
            if sample is not None and is_weighed:
                tally.mean_field.append(inside(sample, name, (own.lower, own.upper)))
                tally.response.append(inside(sample, name, ends))
                tally.second.append(inside(sample, name, second.interval(name, level)))
                exact, mean = sample.sd(name), response.mean(name) if integrated else own.mean
                tally.mean_field_ratios.append(float(np.median(own.sd / exact)))
                tally.response_ratios.append(float(np.median(sd / exact)))
                tally.second_ratios.append(float(np.median(second.sd(name) / exact)))
                tally.shown.append(inside(sample, name, posterior.interval(name, level)))
                tally.shown_ratios.append(float(np.median(posterior.sd(name) / exact)))
                means = (tally.shifts, mean), (tally.second_shifts, second.mean(name))
                for shifts, of_fit in (*means, (tally.shown_shifts, posterior.mean(name))):
                    shifts.append(float(np.mean(((of_fit - sample.mean(name)) / exact) ** 2)))
    return found


def run_new_rows(case: Case, n: int, level: float, seed: int) -> tuple[list[float], list[float], float]:
    """Return the shares of new rows inside their intervals, and the median ratio of standard deviations."""
    shares: tuple[list[float], list[float]] = ([], [])
    ratios = []
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        known = case.known(rng)
        model = case.state()
        drawn = model.simulate(rng, data=known, sizes=case.sizes)
        leaf = model.leaves[0].name
        data = {**known, leaf: drawn[leaf]}
        truth = {name: drawn[name] for name in model.variables if name in drawn}
        fitted = {name: truth[name] for name in case.asked}
        posterior = model.fit(data, init=fitted, tol=1e-9, max_iter=3000)
        chosen = rng.integers(0, case.sizes["obs"], NEW_ROWS)
        new = {name: values[chosen] for name, values in known.items()}
        given = {name: truth[name] for name in posterior}
        sizes = {"obs": NEW_ROWS}
        y = model.simulate(rng, data=new, sizes=sizes, given=given)[leaf]
        both = [posterior.predict(new)[leaf]]
        # factors that may be turned have no linear response
        with suppress(cv.ModelError):
            both.append(posterior.linear_response(data).predict(new)[leaf])
        for found, told in zip(shares, both, strict=False):
            found.append(covered(y, np.broadcast_to(told.interval(level), (2, *y.shape))))
        if len(both) == len(shares):
            ratios.append(float(np.median(both[1].sd / both[0].sd)))
    return *shares, float(np.median(ratios)) if ratios else np.nan


def percent(shares: list[float]) -> str:
    """Return a mean share as text; empty if there is none."""
    return f"{100 * np.mean(shares):.1f}" if shares else ""


def error(shares: list[float]) -> str:
    """Return the standard error of a mean share, in percent, as text; empty if there is none."""
    return f"{100 * np.std(shares, ddof=1) / np.sqrt(len(shares)):.1f}" if len(shares) > 1 else ""


def median(ratios: list[float]) -> str:
    """Return a median as text; empty if there is none."""
    return f"{np.median(ratios):.2f}" if ratios else ""


def print_new_rows(arguments: argparse.Namespace) -> None:
    """Print the table of intervals of new rows."""
    print(f"{'model':14s} {'mean field':>10s} {'response':>9s} {'+-':>5s} {'sd ratio':>8s}")
    asked = OF_REAL_NUMBERS if arguments.models == ",".join(CASES) else arguments.models.split(",")
    for name in asked:
        case = {**CASES, **NEW_ROWS_ONLY}[name]
        q, response, ratio = run_new_rows(case, arguments.datasets, arguments.level, arguments.seed)
        error = 100 * np.std(q, ddof=1) / np.sqrt(len(q))
        told = f"{percent(q):>10s} {percent(response):>9s} {error:5.1f} {ratio:8.3f}"
        print(f"{name:14s} {told}", flush=True)


def rms(squares: list[float]) -> str:
    """Return the root of a mean of squares as text; empty if there is none."""
    return f"{np.sqrt(np.mean(squares)):.2f}" if squares else ""


def print_model(name: str, arguments: argparse.Namespace) -> None:
    """Print the rows of a model."""
    case, n = CASES[name], arguments.datasets
    how = {"apart": arguments.apart, "integrated": arguments.integrated}
    found = run(case, n, arguments.level, arguments.seed, arguments.draws, **how)
    for variable, tally in found.tallies.items():
        shares = percent(tally.mean_field), percent(tally.response), error(tally.response)
        second = percent(tally.second), error(tally.second), percent(tally.shown), error(tally.shown)
        sds = (tally.mean_field_ratios, tally.response_ratios, tally.second_ratios, tally.shown_ratios)
        ratios = [median(own) for own in sds]
        shifts = [rms(own) for own in (tally.shifts, tally.second_shifts, tally.shown_shifts)]
        if arguments.markdown:
            title = name.replace("-", " ") + (", apart" if arguments.apart else "")
            counts = str(found.weighed), str(found.other_modes)
            print(
                "|",
                " | ".join((title, variable, *shares, *second, *ratios, *shifts, *counts)),
                "|",
                flush=True,
            )
            continue
        print(
            f"{name:22s} {variable:15s} {percent(tally.truths):>6s} {error(tally.truths):>4s} "
            f"{shares[0]:>10s} {shares[1]:>8s} {shares[2]:>4s} {second[0]:>5s} {second[1]:>4s} "
            f"{second[2]:>5s} {second[3]:>4s} {ratios[0]:>10s} {ratios[1]:>8s} {ratios[2]:>5s} {ratios[3]:>5s} "
            f"{shifts[0]:>6s} {shifts[1]:>6s} {shifts[2]:>6s} "
            f"{found.other_modes:5d} {found.refused:7d} {found.weighed:8d} "
            f"{found.fit_seconds / n:7.3f} {found.response_seconds / n:7.3f} "
            f"{(found.second_seconds - found.fit_seconds) / n:7.3f}",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--level", type=float, default=0.9)
    parser.add_argument("--models", default=",".join(CASES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--integrated", action="store_true")
    parser.add_argument("--new-rows", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", cv.ConvergenceWarning)
    if arguments.new_rows:
        print_new_rows(arguments)
        return
    if not arguments.markdown:
        print(
            f"{'':38s} {'covered, %':^58s} {'sd over exact':^31s} {'mean off':^20s}\n"
            f"{'model':22s} {'variable':15s} {'truths':>6s} {'+-':>4s} {'mean field':>10s} {'response':>8s} {'+-':>4s} "
            f"{'2nd':>5s} {'+-':>4s} {'shown':>5s} {'+-':>4s} {'mean field':>10s} {'response':>8s} {'2nd':>5s} "
            f"{'shown':>5s} {'fit':>6s} {'2nd':>6s} {'shown':>6s} "
            f"{'modes':>5s} {'refused':>7s} {'exact of':>8s} {'fit s':>7s} {'resp. s':>7s} {'2nd s':>7s}"
        )
    for name in arguments.models.split(","):
        case = CASES[name]
        if (case.shared or not arguments.apart) and (case.over or not arguments.integrated):
            print_model(name, arguments)


if __name__ == "__main__":
    main()
