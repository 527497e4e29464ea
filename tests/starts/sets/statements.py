"""Random statements of a label and what it chooses among, in every shape that a batch of starts may meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import caviar as cv

Rng = np.random.Generator


class Statement:
    """A random model of small tables with its data, and how it is fitted.

    Parameters
    ----------
    seed
        Everything follows from it.
    """

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.data: dict[str, Any] = {}
        self._strange = rng.choice([0.1, 0.4, 1.0])
        self.n, self.k, self.s = (
            int(rng.choice([2, 3, 5, 9, 20, 60, 200])),
            int(rng.integers(2, 7)),
            self._few(),
        )
        self.row = cv.Plate("row", self.n if self.either(0.6) else None)
        self.site, self.label = cv.Plate("site", self.s), cv.Plate("label", self.k)
        self.z = self._hidden()
        kinds = list(_LEAVES)
        if self.n * self.s > 60:
            kinds = [kind for kind in kinds if kind not in ("regression", "partly seen", "indexed")]
        chosen = rng.choice(kinds, size=int(rng.choice([1, 1, 2, 3])), replace=False)
        leaves = [_LEAVES[kind](self, f"x{place}") for place, kind in enumerate(chosen)]
        self.said = f"{seed}: n={self.n} k={self.k} s={self.s} {', '.join(chosen)}"
        self.model = cv.Model(*leaves)
        self._with_gaps([leaf.name for leaf in leaves])
        self.settings = self._settings()

    def either(self, chance: float = 0.5) -> bool:
        """Return True with this chance."""
        return bool(self.rng.random() < chance)

    def is_odd(self, chance: float) -> bool:
        """Return True with at most this chance: something that few statements have."""
        return bool(self.rng.random() < chance * self._strange)

    def _few(self) -> int:
        return int(self.rng.choice([1, 2, 3, 4, 12]))

    def _hidden(self) -> cv.Categorical:
        """Return the label: of rows, of sites, or of both."""
        ones, way = np.ones(self.k), self.rng.random() / self._strange
        self.of_z = self.plates(0.15, 0.1)
        if way < 0.1:
            weights: Any = ones / self.k
        elif way < 0.2:
            weights = cv.StickBreaking("p", 1.0, self.k)
        elif way < 0.3 and self.of_z[-1].size:
            weights = self.rng.dirichlet(ones, self.of_z[-1].size)
        elif way < 0.4:
            weights = cv.Dirichlet("p", ones, plates=self.of_z[-1])
        elif way < 0.45:
            weights = cv.Dirichlet("p", self.rng.uniform(0.5, 2.0, self.k))
        else:
            weights = cv.Dirichlet("p", ones)
        return cv.Categorical("z", weights, plates=self.of_z)

    def plates(self, of_both: float = 0.35, of_site: float = 0.03) -> tuple[cv.Plate, ...]:
        """Return plates of an observed variable or a label, in any order."""
        way = self.rng.random() / self._strange
        if way < of_site:
            return (self.site,)
        if way < of_site + of_both:
            return (self.row, self.site) if self.either(0.6) else (self.site, self.row)
        return (self.row,)

    def plates_of_leaf(self) -> tuple[cv.Plate, ...]:
        """Return plates of an observed variable: those of the label, and perhaps more."""
        if len(self.of_z) == 2:
            return self.of_z if self.either(0.8) else self.of_z[::-1]
        own = self.plates()
        if self.of_z[0] in own:
            return own
        return self.of_z if self.either() else (*own, *self.of_z)

    def shape(self, plates: tuple[cv.Plate, ...]) -> tuple[int, ...]:
        """Return the sizes of some plates."""
        return tuple({"row": self.n, "site": self.s, "label": self.k}[plate.name] for plate in plates)

    def of_labels(self, plates: tuple[cv.Plate, ...]) -> tuple[cv.Plate, ...]:
        """Return plates of a parameter that the label chooses from."""
        if self.site in plates and self.either(0.4):
            return (self.label, self.site) if self.either(0.7) else (self.site, self.label)
        return (self.label,)

    def chosen(self, make: Callable[..., Any], plates: tuple[cv.Plate, ...]) -> Any:
        """Return a parameter: one of the label mostly, or the same everywhere, or of the sites."""
        if not self.is_odd(0.2):
            return make(plates=self.of_labels(plates))[self.z]
        return make(plates=(self.site,)) if self.site in plates and self.either(0.3) else make()

    def known(self, name: str, values: Any, plates: tuple[cv.Plate, ...]) -> Any:
        """Return known positive numbers: one, an array over the last plate, or data along some of the plates."""
        if not self.is_odd(0.7):
            return values(())
        way = self.rng.random()
        own = (plates, plates[-1:], plates[:1])[int(self.rng.integers(3))]
        if way < 0.6:
            return values(self.shape(plates[-1:]))
        if way < 0.7 and all(plate.size for plate in own):
            return cv.Constant(f"{name}.c", values(self.shape(own)), plates=own)
        self.data[f"{name}.d"] = values(self.shape(own))
        return cv.Data(f"{name}.d", plates=own)

    def labels(self, plates: tuple[cv.Plate, ...]) -> Any:
        """Return labels to make data from, that broadcast over plates."""
        shape = [
            size if plate in self.of_z else 1 for plate, size in zip(plates, self.shape(plates), strict=True)
        ]
        return self.rng.integers(self.k, size=shape)

    def positive(self, shape: tuple[int, ...]) -> Any:
        """Return known positive numbers."""
        return self.rng.uniform(0.5, 2.0, shape) if shape else float(self.rng.uniform(0.5, 2.0))

    def trials(self, shape: tuple[int, ...]) -> Any:
        """Return known numbers of trials."""
        return self.rng.integers(1, 9, shape) if shape else int(self.rng.integers(1, 9))

    def _with_gaps(self, names: list[str]) -> None:
        if not self.is_odd(0.2):
            return
        way = self.rng.random()
        name = names[int(self.rng.integers(len(names)))]
        if way < 0.3 and self.of_z == (self.row,):
            seen = self.rng.integers(self.k, size=self.n).astype(float)
            seen[self.rng.random(self.n) < 0.7] = np.nan
            self.data["z"] = seen
            return
        values = np.array(self.data[name], dtype=float)
        gone = self.rng.random(values.shape[:1] if way < 0.6 else values.shape) < 0.2
        values[gone] = np.nan
        self.data[name] = values

    def _settings(self) -> dict[str, Any]:
        rng, found = self.rng, {"seed": int(self.rng.integers(99))}
        if self.either(0.3):
            n = self.n if self.row.size is None or self.n >= self.s else self.s
            found["sample_weight"] = (
                rng.integers(1, 4, n), rng.integers(0, 3, n), rng.uniform(0.1, 3.0, n), np.ones(n)
            )[int(rng.integers(4))]  # fmt: skip
        if self.is_odd(0.3):
            names = [name for name in self.model.variables if name not in self.data and name != "z"]
            found["point"] = [name for name in names if self.either()]
        floored = [v.name for v in self.model.variables.values() if getattr(v, "floor", None) is not None]
        if floored:
            found["point"] = [*{*found.get("point", []), *floored}]
        if self.is_odd(0.15):
            found["data_plate"] = "row" if self.either(0.7) else "site"
        if self.is_odd(0.15):
            found["factors"] = []
        return found | {"n_restarts": int(rng.integers(2, 5)), "accelerate": self.either()}


def _prec(of: Statement, name: str, plates: tuple[cv.Plate, ...]) -> Any:
    way = of.rng.random()
    if way < 0.4:
        return of.known(f"{name}.t", of.positive, plates)
    least = 0.05 if of.is_odd(0.15) else None
    return of.chosen(
        lambda plates=(): cv.Gamma(f"{name}.t", 2, 1, smallest_variance=least, plates=plates), plates
    )


def _normal(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    of.data[name] = of.rng.normal(size=of.shape(plates)) + 3.0 * of.labels(plates) + of.rng.choice([0, 0, 50])
    if of.either(0.2):
        pair = of.chosen(
            lambda plates=(): cv.NormalGamma(f"{name}.m", 0.0, 0.1, 2.0, 1.0, plates=plates), plates
        )
        return cv.Normal(name, pair, plates=plates)
    centre = of.rng.normal(size=of.k) if of.is_odd(0.2) else 0.0

    def make(plates: Any = ()) -> Any:
        own = centre if plates and plates[-1] is of.label else 0.0
        return cv.Normal(f"{name}.m", own, 0.1, plates=plates)

    mean = of.chosen(make, plates)
    if of.is_odd(0.15):
        mean = mean + cv.Normal(f"{name}.b", 0.0, 1.0)
    return cv.Normal(name, mean, _prec(of, name, plates), plates=plates)


def _regression(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    of.data[name] = of.rng.normal(size=of.shape(plates)) + of.labels(plates)
    of.data[f"{name}.X"] = of.rng.normal(size=(*of.shape(plates[:1]), 2))
    w = of.chosen(
        lambda plates=(): cv.MultivariateNormal(f"{name}.w", [0, 0], np.eye(2), plates=plates), plates
    )
    eta = cv.dot(cv.Data(f"{name}.X", plates=plates[:1]), w)
    return cv.Normal(name, eta, _prec(of, name, plates), plates=plates)


def _vector(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    of.data[name] = of.rng.normal(size=(*of.shape(plates), 2)) + 3.0 * of.labels(plates)[..., None]
    way = of.rng.random()
    if way < 0.3:
        pair = lambda plates=(): cv.NormalWishart(f"{name}.m", [0, 0], 0.1, 4.0, np.eye(2), plates=plates)  # noqa: E731
        return cv.MultivariateNormal(name, of.chosen(pair, plates), plates=plates)
    mean = of.chosen(
        lambda plates=(): cv.MultivariateNormal(f"{name}.m", [0, 0], np.eye(2) / 9, plates=plates), plates
    )
    if way < 0.5:
        return cv.MultivariateNormal(name, mean, np.eye(2), plates=plates)
    least = 0.05 if of.is_odd(0.15) else None
    wide = of.chosen(
        lambda plates=(): cv.Wishart(f"{name}.t", 4.0, np.eye(2), smallest_variance=least, plates=plates),
        plates,
    )
    return cv.MultivariateNormal(name, mean, wide, plates=plates)


def _poisson(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    of.data[name] = of.rng.poisson(1.0 + 4.0 * of.labels(plates), of.shape(plates))
    rate = of.chosen(lambda plates=(): cv.Gamma(f"{name}.r", 1, 0.2, plates=plates), plates)
    if of.either(0.4):
        rate = rate * of.known(f"{name}.e", of.positive, plates)
    return cv.Poisson(name, rate, plates=plates)


def _share(of: Statement, name: str, plates: tuple[cv.Plate, ...]) -> Any:
    return of.chosen(lambda plates=(): cv.Beta(f"{name}.p", 1, 1, plates=plates), plates)


def _bernoulli(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    of.data[name] = of.rng.integers(2, size=of.shape(plates))
    if of.either(0.6):
        return cv.Bernoulli(name, _share(of, name, plates), plates=plates)
    eta = of.chosen(lambda plates=(): cv.Normal(f"{name}.h", 0.0, 1.0, plates=plates), plates)
    return cv.Bernoulli(name, (cv.logistic, cv.probit)[int(of.rng.integers(2))](eta), plates=plates)


def _binomial(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    trials = of.known(f"{name}.n", of.trials, plates)
    of.data[name] = of.rng.integers(2, size=of.shape(plates))
    if of.either(0.7):
        return cv.Binomial(name, trials, _share(of, name, plates), plates=plates)
    eta = of.chosen(lambda plates=(): cv.Normal(f"{name}.h", 0.0, 1.0, plates=plates), plates)
    return cv.Binomial(name, trials, cv.logistic(eta), plates=plates)


def _table(of: Statement, name: str, plates: tuple[cv.Plate, ...]) -> Any:
    return of.chosen(lambda plates=(): cv.Dirichlet(f"{name}.p", np.ones(3), plates=plates), plates)


def _multinomial(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    table, way = _table(of, name, plates), of.rng.random()
    if way < 0.3:
        counts = of.rng.multinomial(5, np.ones(3) / 3, of.shape(plates))
        trials: Any = 5 if of.either() else np.full(of.shape(plates)[-1:], 5)
    else:
        totals = of.trials(of.shape(plates))
        counts = of.rng.multinomial(totals, np.ones(3) / 3)
        trials = totals if way < 0.6 else None
    of.data[name] = counts
    return cv.Multinomial(name, trials, table, plates=plates)


def _categorical(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    of.data[name] = of.rng.integers(3, size=of.shape(plates))
    return cv.Categorical(name, _table(of, name, plates), plates=plates)


def _gamma(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    of.data[name] = of.rng.gamma(2.0, 1.0 + of.labels(plates), of.shape(plates))
    rate = of.chosen(lambda plates=(): cv.Gamma(f"{name}.r", 1, 1, plates=plates), plates)
    shape = 1.0 if of.either(0.3) else of.known(f"{name}.a", of.positive, plates)
    return cv.Gamma(name, shape, rate, plates=plates)


def _negative_binomial(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    of.data[name] = of.rng.poisson(1.0 + 4.0 * of.labels(plates), of.shape(plates))
    rate = of.chosen(lambda plates=(): cv.Gamma(f"{name}.r", 1, 0.2, plates=plates), plates)
    return cv.NegativeBinomial(name, rate, 2.0, plates=plates)


def _potential(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    of.data[name] = of.rng.normal(size=(*of.shape(plates), of.k))
    return cv.Potential(name, of.z, plates=plates)


def _grid(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    of.data[name] = of.rng.normal(size=(*of.shape(plates), 4))
    place = of.chosen(lambda plates=(): cv.Categorical(f"{name}.g", np.full(4, 0.25), plates=plates), plates)
    return cv.Potential(name, place, plates=plates)


def _simple(of: Statement, name: str) -> Any:
    """Return a leaf whose parents are known, or chosen by the label from known numbers."""
    plates, way = of.plates_of_leaf(), int(of.rng.integers(4))
    shape = of.shape(plates)
    if way == 0:
        of.data[name] = of.rng.dirichlet(np.ones(3), shape)
        return cv.Dirichlet(name, [1.0, 2.0, 1.0], plates=plates)
    if way == 1:
        of.data[name] = of.rng.beta(1.0, 2.0, shape)
        return cv.Beta(name, 1.0, 2.0, plates=plates)
    of.data[name] = of.rng.normal(size=shape) + of.labels(plates)
    if way == 2:
        return cv.Normal(name, of.known(f"{name}.m", of.positive, plates), 1.0, plates=plates)
    means = cv.Constant(f"{name}.m", of.rng.normal(size=of.k), plates=of.label)
    return cv.Normal(name, means[of.z], _prec(of, name, plates), plates=plates)


def _measured(of: Statement, name: str) -> Any:
    """Return what is seen of a hidden value of each row."""
    plates = of.of_z
    of.data[name] = of.rng.normal(size=of.shape(plates)) + 3.0 * of.labels(plates)
    mean = of.chosen(lambda plates=(): cv.Normal(f"{name}.m", 0.0, 0.1, plates=plates), plates)
    u = cv.Normal(f"{name}.u", mean, _prec(of, f"{name}.u", plates), plates=plates)
    return cv.Normal(name, u, of.known(f"{name}.t", of.positive, plates), plates=plates)


def _indexed(of: Statement, name: str) -> Any:
    """Return a leaf whose parameter depends on the label, and on a known label of each row."""
    plates = of.plates_of_leaf()
    of.data[name] = of.rng.normal(size=of.shape(plates)) + 3.0 * of.labels(plates)
    of.data[f"{name}.of"] = of.rng.integers(3, size=of.shape(plates[:1]))
    mean = cv.Normal(f"{name}.m", 0.0, 0.1, plates=(of.label, cv.Plate(f"{name}.kind", 3)))
    return cv.Normal(name, mean[of.z][cv.Data(f"{name}.of", plates=plates[:1])], 1.0, plates=plates)


def _partly_seen(of: Statement, name: str) -> Any:
    plates = of.plates_of_leaf()
    mean = of.chosen(lambda plates=(): cv.Normal(f"{name}.m", 0.0, 0.1, plates=plates), plates)
    of.data[name] = np.abs(of.rng.normal(size=of.shape(plates))) + of.labels(plates)
    return cv.TruncatedNormal(name, mean, 1.0, lower=0.0, plates=plates)


_LEAVES: dict[str, Callable[[Statement, str], Any]] = {
    "normal": _normal,
    "normal again": _normal,
    "regression": _regression,
    "vector": _vector,
    "poisson": _poisson,
    "bernoulli": _bernoulli,
    "binomial": _binomial,
    "multinomial": _multinomial,
    "categorical": _categorical,
    "gamma": _gamma,
    "negative binomial": _negative_binomial,
    "potential": _potential,
    "grid": _grid,
    "simple": _simple,
    "measured": _measured,
    "indexed": _indexed,
    "partly seen": _partly_seen,
}
