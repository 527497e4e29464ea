"""Fits of one structure share compiled terms, and nothing else: each is the fit that the statement has by itself."""

import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.fitting import model as fitting
from caviar.language.structure import Structure, Structures

Fit = tuple[cv.Model, dict[str, Any], dict[str, Any]]


class Unshared(Structures):
    """Every statement has its own nodes for a structure."""

    def of(self, nodes, leaves):
        return Structure(tuple(nodes), tuple(leaves))


def mixtures(rng: np.random.Generator) -> Iterator[Fit]:
    """Yield mixtures whose priors, rows, missing entries and places differ."""
    for number, n_rows in enumerate([30, 40, 40, 40, 30]):
        obs, k = cv.Plate("obs"), cv.Plate("k", 2)
        z = cv.Categorical("z", cv.Dirichlet("w", rng.uniform(0.5, 2.0, 2)), plates=obs)
        theta = cv.NormalWishart(
            "theta",
            rng.normal(size=2),
            rng.uniform(0.1, 1.0),
            3.0 + number,
            np.eye(2) * (1 + number),
            plates=k,
        )
        x = rng.normal(size=(n_rows, 2)) + 6.0 * (np.arange(n_rows) % 2)[:, None]
        if number == 2:
            x[3, 1] = x[5, :] = np.nan
        if number == 3:
            x += 1e5
        yield cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs)), {"x": x}, {}


def groups(rng: np.random.Generator) -> Iterator[Fit]:
    """Yield regressions on known groups, whose labels, coefficients and numbers of rows differ."""
    for number, n_rows in enumerate([20, 25, 25, 25]):
        obs, g = cv.Plate("obs"), cv.Plate("g", 3)
        level = cv.Normal("level", cv.Normal("all", 0.0, rng.uniform(0.1, 1.0)), 1.0, plates=g)
        slope = cv.Normal("slope", 0.0, 0.0 if number == 2 else rng.uniform(0.1, 1.0))
        times = 2.0 if number < 3 else 3.0
        mean = level[cv.Data("of", plates=obs)] + times * slope * cv.Data("u", plates=obs)
        labels = rng.integers(0, 3 if number else 2, n_rows)
        data = {"y": rng.normal(size=n_rows), "of": labels, "u": rng.normal(size=n_rows)}
        yield cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1.0 + number, 1.0), plates=obs)), data, {}


def zeros(rng: np.random.Generator) -> Iterator[Fit]:
    """Yield labels with known probabilities, of which some are zero in some of the statements."""
    for row in ([0.5, 0.5, 0.0], [0.3, 0.3, 0.4], [0.2, 0.8, 0.0], [0.1, 0.1, 0.8]):
        obs, k = cv.Plate("obs"), cv.Plate("k", 2)
        z = cv.Categorical("z", cv.Dirichlet("w", [1.0, 1.0]), plates=obs)
        p = cv.Constant("p", np.array([row, [0.2, 0.3, 0.5]]), plates=k)
        yield cv.Model(cv.Categorical("x", p[z], plates=obs)), {"x": rng.integers(0, 3, 30)}, {}


def numbers(rng: np.random.Generator) -> Iterator[Fit]:
    """Yield models of numbers alone: names that come again in other structures, points, values that are known."""
    for number in range(6):
        obs = cv.Plate("obs", 12) if number == 2 else cv.Plate("obs")
        mean = cv.Normal("mean", rng.normal(), rng.uniform(0.1, 1.0))
        noise = cv.Gamma("noise", 2.0, rng.uniform(0.5, 1.0), plates=obs if number == 3 else ())
        data = {"x": rng.normal(size=12), **({"mean": np.array(0.5)} if number == 4 else {})}
        yield (
            cv.Model(cv.Normal("x", mean, noise, plates=obs)),
            data,
            {"point": ["noise"]} if number == 5 else {},
        )


def floors(rng: np.random.Generator) -> Iterator[Fit]:
    """Yield mixtures by maximum likelihood whose smallest variances differ, and decide: many rows are equal."""
    for _ in range(4):
        obs, k = cv.Plate("obs"), cv.Plate("k", 2)
        z = cv.Categorical("z", cv.Dirichlet("w", [1.0, 1.0]), plates=obs)
        mean = cv.MultivariateNormal("mean", np.zeros(2), np.zeros((2, 2)), plates=k)
        floor = rng.uniform(0.01, 0.5, 2)
        width = cv.Wishart("width", 3.0, np.zeros((2, 2)), smallest_variance=floor, plates=k)
        x = np.where(np.arange(30)[:, None] % 2, 3.0, rng.normal(size=(30, 2)) - 3.0)
        model = cv.Model(cv.MultivariateNormal("x", mean[z], width[z], plates=obs))
        yield model, {"x": x}, {"point": ["w", "mean", "width"]}


def found(fit: Fit) -> list[object]:
    """Return what a fit ends with, its factors and what it says of the rows."""
    model, data, arguments = fit
    posterior = model.fit(data, seed=0, max_iter=40, **arguments)
    again = pickle.loads(pickle.dumps(posterior))
    return [
        posterior.elbo_trace,
        posterior.elbo_terms,
        [again[name].expected_statistics for name in again],
        [own.log_partition for own in again.local(data).values() if hasattr(own, "log_partition")],
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fits", "in_threads"),
    [
        (mixtures, False),
        (mixtures, True),
        (groups, False),
        (groups, True),
        (zeros, False),
        (numbers, False),
        (floors, False),
    ],
)
def test_each_fit_is_its_own(
    fits: Callable[[np.random.Generator], Iterator[Fit]], in_threads: bool, monkeypatch: pytest.MonkeyPatch
):
    alone, several = (list(fits(np.random.default_rng(seed))) for seed in (5, 6))
    monkeypatch.setattr(fitting, "STRUCTURES", Unshared())
    expected = [found(fit) for fit in alone]
    monkeypatch.setattr(fitting, "STRUCTURES", Structures())
    # the first and second sight of each structure, from other values, and then these
    later = list(fits(np.random.default_rng(5)))
    if in_threads:
        with ThreadPoolExecutor(4) as pool:
            outcome = list(pool.map(found, [*several, *later]))
    else:
        outcome = [found(fit) for fit in [*several, *later]]
    for own, wanted in zip(outcome[len(several) :], expected, strict=True):
        assert_equal(own, wanted)
    assert any(len(fit[0].structure.plans) for fit in later)


def assert_equal(one: object, other: object) -> None:
    """Compare nested lists, tuples and dictionaries of arrays, to the bit."""
    if isinstance(one, dict):
        assert isinstance(other, dict)
        assert list(one) == list(other)
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list | tuple):
        assert isinstance(other, list | tuple)
        for own, wanted in zip(one, other, strict=True):
            assert_equal(own, wanted)
    else:
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def statement(
    coefficient: float = 1.0, rate: Any = 1.0, size: int | None = None, event: int = 2, name: str = "b"
) -> cv.Model:
    obs = cv.Plate("obs", size)
    b = cv.MultivariateNormal(name, np.zeros(event), np.eye(event))
    mean = coefficient * cv.dot(cv.Data("X", plates=obs), b)
    return cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1.0, rate), plates=obs))


def test_only_values_of_constants_may_differ():
    shared = Structures()

    def structure(model: cv.Model) -> Structure:
        return shared.of(model.nodes, model.leaves)

    first, second, third = (structure(statement(rate=rate)) for rate in (1.0, 2.0, 3.0))
    assert first is not second
    assert second is third
    hidden = cv.Gamma("beta", 1.0, 1.0)
    others = [
        {"coefficient": 2.0},
        {"size": 4},
        {"event": 3},
        {"name": "c"},
        {"rate": hidden},
        {"rate": 2.0 * hidden},
        {"rate": 0.0},
    ]
    for other in others:
        kinds = [structure(statement(**other)) for _ in range(2)]
        assert all(kind is not second for kind in kinds)
    assert structure(statement(rate=5.0)) is second


@pytest.mark.slow
def test_a_structure_keeps_no_values():
    def model(value: np.ndarray) -> cv.Model:
        obs = cv.Plate("obs")
        return cv.Model(cv.MultivariateNormal("x", value, np.eye(len(value)), plates=obs))

    kept = []
    gc.collect()
    for shift in range(4):
        value, rows = np.full(3, float(shift)), np.full((5, 3), float(shift))
        own = model(value)
        own.fit({"x": rows})
        constant = next(node for node in own.nodes if isinstance(node, cv.Constant) and node.name == "x.mean")
        kept += [weakref.ref(constant.value), weakref.ref(rows)]
        del own, constant, value, rows
    gc.collect()
    # the nodes of a statement that was made once may be kept, those of its repetitions are not
    assert [ref() for ref in kept if ref() is not None] == []
