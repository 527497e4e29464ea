"""Standard deviations of linear response beside a long Gibbs run, on real data.

    python benchmarks/real_data_uncertainty.py [--data DIR] [--draws 20000] [--seed 0]

Six models on tables that caviar has, and two more with --data DIR, a folder with sleepstudy.csv.gz (of lme4) and
newcomb.csv.gz (of MASS) somewhere in it. The Gibbs samplers are written out here and share no code with caviar. The
table shows for each parameter the mean of either in units of the sampler's standard deviation, and the standard
deviations of mean field and of linear response over the sampler's.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

import caviar as cv

OBS = cv.Plate("obs")
Draws = dict[str, np.ndarray]


@dataclass(frozen=True)
class Comparison:
    """A model fitted to a table, and what a sampler says of the same parameters."""

    name: str
    model: cv.Model
    data: dict[str, Any]
    sampler: Callable[[int, np.random.Generator], Draws]


@dataclass(frozen=True)
class Additive:
    r"""A linear model, :math:`y = X b + e`, whose coefficients are in groups with a precision each.

    Attributes
    ----------
    X, y
        The design and the outcomes.
    groups
        Name -> columns, and the precision of their prior, or shape and rate of the Gamma that it is drawn from.
    noise
        Shape and rate of the precision of the noise; None where it is 1.
    df
        Degrees of freedom of Student-t noise; None for Normal noise.
    is_probit
        Whether the outcomes are signs of y.
    """

    X: np.ndarray
    y: np.ndarray
    groups: dict[str, tuple[slice, Any]]
    noise: tuple[float, float] | None = (2.0, 2.0)
    df: float | None = None
    is_probit: bool = False

    def gibbs(self, n: int, rng: np.random.Generator) -> Draws:
        """Return n draws of coefficients by group, of their precisions and of that of the noise, after n / 10."""
        X, y = self.X, np.array(self.y, dtype=float)
        tau: Any = 1.0
        scales, b = np.ones(len(y)), np.zeros(X.shape[1])
        precisions = {name: 1.0 if isinstance(own, tuple) else own for name, (_, own) in self.groups.items()}
        kept: dict[str, list[Any]] = {}
        for number in range(-(n // 10), n):
            if self.is_probit:
                y = _signed_normals(X @ b, self.y, rng)
            prior = np.concatenate(
                [np.full(b[columns].size, precisions[name]) for name, (columns, _) in self.groups.items()]
            )
            weighted = X * (tau * scales)[:, None]
            lower: np.ndarray = np.linalg.cholesky(X.T @ weighted + np.diag(prior))
            noise = np.linalg.solve(lower, weighted.T @ y) + rng.standard_normal(len(b))
            b = np.linalg.solve(lower.T, noise)
            residual = y - X @ b
            if self.df is not None:
                scales = rng.gamma((self.df + 1) / 2, 1.0 / (self.df / 2 + tau * residual**2 / 2))
            if self.noise is not None:
                rate = self.noise[1] + (scales * residual**2).sum() / 2
                tau = rng.gamma(self.noise[0] + len(y) / 2) / rate
            for name, (columns, own) in self.groups.items():
                if isinstance(own, tuple):
                    rate = own[1] + (b[columns] ** 2).sum() / 2
                    precisions[name] = rng.gamma(own[0] + b[columns].size / 2) / rate
            if number >= 0:
                drawn = {name: b[columns] for name, (columns, _) in self.groups.items()}
                learnt = {
                    f"of_{name}": precisions[name]
                    for name, (_, own) in self.groups.items()
                    if isinstance(own, tuple)
                }
                for name, value in {**drawn, **learnt, "tau": tau}.items():
                    kept.setdefault(name, []).append(value)
        return {name: np.array(values) for name, values in kept.items()}


def _signed_normals(mean: np.ndarray, positive: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return Normals of variance one that are positive where the outcome is 1, and negative elsewhere."""
    below = ndtr(-mean)
    share = rng.random(len(mean))
    return mean + ndtri(
        np.clip(np.where(positive > 0, below + share * (1 - below), share * below), 1e-300, 1 - 1e-16)
    )


def mixture_gibbs(x: np.ndarray) -> Callable[[int, np.random.Generator], Draws]:
    """Return a Gibbs sampler of two Normals with the priors of :func:`waiting_mixture`."""

    def sampler(n: int, rng: np.random.Generator) -> Draws:
        mean, tau, weights = np.array([-1.0, 1.0]), np.full(2, 4.0), np.full(2, 0.5)
        kept: dict[str, list[Any]] = {"mean": [], "tau": [], "weights": []}
        for number in range(-(n // 10), n):
            logs = np.log(weights) + 0.5 * np.log(tau) - 0.5 * tau * (x[:, None] - mean) ** 2
            second = rng.random(len(x)) < 1.0 / (1.0 + np.exp(logs[:, 0] - logs[:, 1]))
            for k, own in enumerate((x[~second], x[second])):
                precision = 1.0 + tau[k] * len(own)
                mean[k] = rng.normal(([-1.0, 1.0][k] + tau[k] * own.sum()) / precision, precision**-0.5)
                tau[k] = rng.gamma(2 + len(own) / 2) / (0.5 + ((own - mean[k]) ** 2).sum() / 2)
            weights = rng.dirichlet([2 + (~second).sum(), 2 + second.sum()])
            if number >= 0:
                for name, value in (("mean", mean), ("tau", tau), ("weights", weights)):
                    kept[name].append(value.copy())
        return {name: np.array(values) for name, values in kept.items()}

    return sampler


def _scaled(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def _penguins() -> tuple[cv.datasets.Dataset, np.ndarray]:
    table = cv.datasets.load_penguins()
    return table, table.values[np.isfinite(table.values).all(axis=1)]


def _regression(X: np.ndarray, y: np.ndarray, name: str) -> Comparison:
    w = cv.MultivariateNormal("w", np.zeros(X.shape[1]), np.eye(X.shape[1]))
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), cv.Gamma("tau", 2, 2), plates=OBS))
    return Comparison(name, model, {"X": X, "y": y}, Additive(X, y, {"w": (slice(None), 1.0)}).gibbs)


def penguin_mass() -> Comparison:
    _, rows = _penguins()
    X = np.column_stack([np.ones(len(rows)), _scaled(rows[:, 2:5])])
    return _regression(X, _scaled(rows[:, 5]), "penguins: mass by three lengths")


def penguin_sex() -> Comparison:
    _, rows = _penguins()
    X = np.column_stack([np.ones(len(rows)), _scaled(rows[:, [2, 3, 5]])])
    y = rows[:, 6]
    w = cv.MultivariateNormal("w", np.zeros(4), np.eye(4))
    model = cv.Model(cv.Bernoulli("y", cv.probit(cv.dot(cv.Data("X", plates=OBS), w)), plates=OBS))
    gibbs = Additive(X, y, {"w": (slice(None), 1.0)}, noise=None, is_probit=True).gibbs
    return Comparison("penguins: sex, probit", model, {"X": X, "y": y}, gibbs)


def penguin_groups() -> Comparison:
    _, rows = _penguins()
    g = np.unique(rows[:, [0, 1, 7]], axis=0, return_inverse=True)[1].ravel()
    y, levels = _scaled(rows[:, 4]), int(g.max()) + 1
    a = cv.Normal("a", 0, cv.Gamma("of_a", 2, 2), plates=cv.Plate("group", levels))
    at = cv.Normal("mu", 0, 1.0) + a[cv.Data("g", plates=OBS)]
    model = cv.Model(cv.Normal("y", at, cv.Gamma("tau", 2, 2), plates=OBS))
    X = np.column_stack([np.ones(len(y)), np.eye(levels)[g]])
    gibbs = Additive(X, y, {"mu": (slice(0, 1), 1.0), "a": (slice(1, None), (2.0, 2.0))}).gibbs
    return Comparison("penguins: flippers by group", model, {"g": g, "y": y}, gibbs)


def eruptions() -> Comparison:
    rows = _scaled(cv.datasets.load_faithful().values)
    return _student(
        np.column_stack([np.ones(len(rows)), rows[:, 0]]), rows[:, 1], "faithful: Student-t regression"
    )


def galaxies() -> Comparison:
    y = _scaled(cv.datasets.load_galaxies().values)[:, 0]
    return _student(np.ones((len(y), 1)), y, "galaxies: Student-t location")


def _student(X: np.ndarray, y: np.ndarray, name: str) -> Comparison:
    w = cv.MultivariateNormal("w", np.zeros(X.shape[1]), np.eye(X.shape[1]))
    precision = cv.Gamma("tau", 2, 2) * cv.Gamma("u", 2.0, 2.0, plates=OBS)
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), precision, plates=OBS))
    return Comparison(name, model, {"X": X, "y": y}, Additive(X, y, {"w": (slice(None), 1.0)}, df=4.0).gibbs)


def waiting_mixture() -> Comparison:
    x = _scaled(cv.datasets.load_faithful().values)[:, 1]
    component = cv.Plate("component", 2)
    mean = cv.Normal("mean", [-1.0, 1.0], 1.0, plates=component)
    tau = cv.Gamma("tau", 2, 0.5, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.full(2, 2.0)), plates=OBS)
    model = cv.Model(cv.Normal("x", mean[z], tau[z], plates=OBS))
    return Comparison("faithful: two waiting times", model, {"x": x}, mixture_gibbs(x))


def sleepstudy(path: Path) -> Comparison:
    table = np.genfromtxt(path, delimiter=",", names=True)
    g = np.unique(table["Subject"], return_inverse=True)[1].ravel()
    y, x, levels = _scaled(table["Reaction"]), (table["Days"] - 4.5) / 4.5, int(g.max()) + 1
    subject = cv.Plate("subject", levels)
    label, days = cv.Data("g", plates=OBS), cv.Data("x", plates=OBS)
    a = cv.Normal("a", 0, cv.Gamma("of_a", 2, 0.5), plates=subject)
    b = cv.Normal("b", 0, cv.Gamma("of_b", 2, 0.5), plates=subject)
    at = cv.Normal("mu", 0, 1.0) + cv.Normal("slope", 0, 1.0) * days + a[label] + b[label] * days
    model = cv.Model(cv.Normal("y", at, cv.Gamma("tau", 2, 2), plates=OBS))
    ones = np.eye(levels)[g]
    X = np.column_stack([np.ones(len(y)), x, ones, ones * x[:, None]])
    groups = {
        "mu": (slice(0, 1), 1.0),
        "slope": (slice(1, 2), 1.0),
        "a": (slice(2, 2 + levels), (2.0, 0.5)),
        "b": (slice(2 + levels, None), (2.0, 0.5)),
    }
    return Comparison(
        "sleepstudy: slopes of subjects", model, {"g": g, "x": x, "y": y}, Additive(X, y, groups).gibbs
    )


def newcomb(path: Path) -> Comparison:
    y = _scaled(np.genfromtxt(path, delimiter=",", skip_header=1))
    return _student(np.ones((len(y), 1)), y, "newcomb: Student-t location")


def comparisons(folder: Path | None) -> Iterator[Comparison]:
    """Yield what is compared."""
    for make in (penguin_mass, penguin_groups, penguin_sex, eruptions, galaxies, waiting_mixture):
        yield make()
    for name, make in {"sleepstudy": sleepstudy, "newcomb": newcomb}.items():
        for path in [] if folder is None else sorted(folder.rglob(f"{name}.csv.gz"))[:1]:
            yield make(path)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", cv.ConvergenceWarning)
    print(
        f"{'':32s} {'':8s} {'mean off, sd':^24s} {'sd over Gibbs':^33s}\n{'data and model':32s} {'entry':8s} "
        f"{'mean field':>10s} {'second':>6s} {'sample':>6s} {'mean field':>10s} {'response':>8s} {'second':>6s} "
        f"{'sample':>6s} {'fit s':>6s} {'resp. s':>7s} {'2nd s':>7s} {'Gibbs s':>7s}"
    )
    for own in comparisons(asked.data):
        start = time.process_time()
        posterior = own.model.fit(own.data, seed=0, tol=1e-10, max_iter=5000)
        fit = time.process_time() - start
        start = time.process_time()
        response = posterior.linear_response(own.data)
        widths = {name: response.sd(name) for name in posterior}
        seconds = time.process_time() - start
        start = time.process_time()
        second = own.model.fit(own.data, seed=0, tol=1e-10, max_iter=5000, uncertainty="second_order")
        of_second = time.process_time() - start - fit
        sample = posterior.importance_sample(own.data, n_draws=4000)
        start = time.process_time()
        drawn = own.sampler(asked.draws, np.random.default_rng(asked.seed))
        gibbs = time.process_time() - start
        for name in [name for name in posterior if name in drawn]:
            values = drawn[name].reshape(len(drawn[name]), -1)
            mean, sd = values.mean(axis=0), values.std(axis=0)
            (factor,) = posterior[name].entry_marginals((0.05, 0.95))
            off = " ".join(
                f"{max(abs(np.ravel(own_mean) - mean) / sd):{w}.2f}"
                for own_mean, w in ((factor.mean, 10), (second.mean(name), 6), (sample.mean(name), 6))
            )
            sds = (factor.sd, 10), (widths[name], 8), (second.sd(name), 6), (sample.sd(name), 6)
            told = " ".join(f"{np.median(np.ravel(width) / sd):{w}.3f}" for width, w in sds)
            seconds_told = f"{fit:6.2f} {seconds:7.3f} {of_second:7.3f} {gibbs:7.1f}"
            print(f"{own.name:32s} {name:8s} {off} {told} {seconds_told}", flush=True)


if __name__ == "__main__":
    main()
