"""Cases of mechanisms that few models go through, or that no schedule meets by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from digests import figures_of_posterior
from invariants import registry
from scipy.sparse import csr_array

import caviar as cv
import caviar.models
from caviar.execution.threads import Threads

__all__ = ["MECHANISMS", "broken_off"]

Case = Callable[[int], dict[str, Any]]

FEW = {"seed": 0, "max_iter": 6, "tol": 0.0}
INCREMENTAL, STOCHASTIC = {"schedule": cv.Incremental(4)}, {"schedule": cv.Stochastic(100), "max_iter": 3}
SCHEDULES: dict[str, dict[str, Any]] = {"batch": {}, "incremental": INCREMENTAL, "stochastic": STOCHASTIC}


class _Broken(Exception):
    """What breaks a fit off."""


class _Breaking(Threads):
    """One thread that fails once, at some chunk of rows: mostly in the middle of a pass."""

    def __init__(self, chunks: int) -> None:
        super().__init__(1)
        self.left = chunks

    def map(self, function: Callable[[int], Any], n_tasks: int) -> Iterator[Any]:
        for number in range(n_tasks):
            self.left -= 1
            if self.left == -1:
                raise _Broken
            yield function(number)


def broken_off(fit: Callable[..., cv.Posterior], path: Path, *, after: int) -> tuple[cv.Posterior, int]:
    """Return a fit that was broken off after some iterations, and made again from its checkpoint; and how often."""
    told: list[object] = []

    def callback(event: object) -> None:
        told.append(event)
        if len(told) == after:
            raise _Broken

    kept = {"checkpoint": path, "checkpoint_every": 0}
    breaks = 0
    try:
        fit(**kept, progress=callback)
    except _Broken:
        breaks = 1
    return fit(**kept), breaks


def _in_each_schedule(
    model: cv.Model, data: dict[str, Any], threads: int, schedules: Any = SCHEDULES, **more: Any
) -> dict[str, Any]:
    found = {}
    for name, arguments in schedules.items():
        posterior = model.fit(data, **{**FEW, "executor": threads, **more, **arguments})
        figures = figures_of_posterior(posterior, data if name == "batch" else None)
        found |= {f"{name} {key}": value for key, value in figures.items()}
    return found


def _far(widths: float, n: int = 300, columns: int = 2) -> np.ndarray:
    """Return three clusters of width 1e-3, so many widths from each other."""
    rng = np.random.default_rng(6)
    steps = np.linspace(1.0, -0.5, columns)
    return 1e-3 * (rng.normal(size=(n, columns)) + widths * rng.integers(0, 3, (n, 1)) * steps)


def _origins(kind: str) -> Callable[[float], Case]:
    """Return cases of components with an origin of their own, by how many widths they are apart."""

    def model() -> cv.Model:
        if kind == "joint":
            return cv.models.normal_wishart_mixture(2, 3, mean_precision=1e-9, inverse_scale=1e-6)
        if kind == "tied joint":
            return cv.models.tied_mixture(2, 3, mean_precision=1e-9, df=3.5, inverse_scale=1e-6 * np.eye(2))
        if kind == "diagonal":
            return cv.models.diagonal_mixture(2, 3, mean_precision=1e-9, rate=1e-6)
        obs, component = cv.Plate("obs"), cv.Plate("component", 3)
        mean = cv.MultivariateNormal("mean", np.zeros(2), 1e-6 * np.eye(2), plates=component)
        shared = () if kind == "tied" else component
        precision = cv.Wishart("precision", 3.0, 1e-6 * np.eye(2), plates=shared)
        z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=obs)
        return cv.Model(
            cv.MultivariateNormal("x", mean[z], precision if kind == "tied" else precision[z], plates=obs)
        )

    def of(widths: float) -> Case:
        return lambda threads: _in_each_schedule(model(), {"x": _far(widths)}, threads)

    return of


def _origins_that_go_late(kind: str) -> Case:
    """Components as wide as the table at the start, by labels that are partly wrong: origins come during the fit."""

    def case(threads: int) -> dict[str, Any]:
        model = {
            "joint": lambda: cv.models.normal_wishart_mixture(2, 3, inverse_scale=1e-6),
            "tied": lambda: cv.models.tied_mixture(2, 3, inverse_scale=1e-6 * np.eye(2)),
        }[kind]()
        x, rng = _far(1e5), np.random.default_rng(8)
        labels = np.argsort(np.argsort(x[:, 0])) // 100
        z = np.where(rng.random(300) < 0.1, rng.integers(0, 3, 300), labels)
        return _in_each_schedule(model, {"x": x}, threads, init={"z": z})

    return case


def _origins_with_gaps(kind: str) -> Case:
    """Origins x patterns of missing entries x weights, some of them zero."""

    def case(threads: int) -> dict[str, Any]:
        rng, x = np.random.default_rng(9), _far(1e5, columns=3)
        x[rng.random(x.shape) < 0.2] = np.nan
        model = {
            "joint": lambda: cv.models.normal_wishart_mixture(3, 3, mean_precision=1e-9, inverse_scale=1e-6),
            "tied": lambda: cv.models.tied_mixture(3, 3, mean_precision=1e-9, inverse_scale=1e-6 * np.eye(3)),
            "apart": lambda: cv.models.gaussian_mixture(3, 3, prior_precision=1e-6, inverse_scale=1e-6),
            "diagonal": lambda: cv.models.diagonal_mixture(3, 3, mean_precision=1e-9, rate=1e-6),
        }[kind]()
        weights = rng.gamma(1.0, size=len(x)) * (rng.random(len(x)) < 0.9)
        return _in_each_schedule(model, {"x": x}, threads, sample_weight=weights)

    return case


def _robust(**more: Any) -> Case:
    """Student-t components with weights."""

    def case(threads: int) -> dict[str, Any]:
        rng = np.random.default_rng(10)
        x = rng.standard_t(2, (300, 2)) + 6 * rng.integers(0, 2, (300, 1))
        weights = rng.gamma(1.0, size=300) * (rng.random(300) < 0.8)
        model = cv.models.robust_mixture(2, 2, prior_precision=0.1)
        return _in_each_schedule(model, {"x": x}, threads, sample_weight=weights, **more)

    return case


def _inactive(name: str, missing: Callable[[np.random.Generator, dict[str, Any]], None]) -> Case:
    """Rows of which nothing is observed below a local variable, among others."""

    def case(threads: int) -> dict[str, Any]:
        rng = np.random.default_rng(12)
        data = {
            key: np.array(value, dtype=float) for key, value in registry.CASES[name].draw(rng, 300).items()
        }
        if "group" in data:
            data["group"] = data["group"].astype(int)
        missing(rng, data)
        weights = rng.gamma(1.0, size=300) + 0.01
        arguments = registry.CASES[name].arguments
        return _in_each_schedule(
            registry.CASES[name].state(), data, threads, sample_weight=weights, **arguments
        )

    return case


def _whole_rows(rng: np.random.Generator, data: dict[str, Any]) -> None:
    data["x"][rng.random(300) < 0.25] = np.nan


def _inactive_latents(threads: int) -> dict[str, Any]:
    """Rows that count, because one leaf is observed, with nothing observed below the local variables of the other."""
    obs, component, kind = cv.Plate("obs"), cv.Plate("component", 2), cv.Plate("kind", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    mean = cv.Normal("mean", 0.0, 0.1, plates=component)
    t = cv.Normal("t", mean[z], cv.Gamma("tau", 2.0, 1.0, plates=component)[z], plates=obs)
    v = cv.Categorical("v", cv.Dirichlet("shares", np.ones(2)), plates=obs)
    rate = cv.Gamma("rate", 1.0, 0.5, plates=kind)
    model = cv.Model(cv.Normal("x", t, 2.0, plates=obs), cv.Poisson("y", rate[v], plates=obs))
    rng = np.random.default_rng(30)
    x, y = (
        registry.CASES["measured"].draw(rng, 300)["x"],
        rng.poisson(rng.choice([1.0, 8.0], 300)).astype(float),
    )
    x[rng.random(300) < 0.3], y[rng.random(300) < 0.3] = np.nan, np.nan
    weights = rng.gamma(1.0, size=300)
    return _in_each_schedule(model, {"x": x, "y": y}, threads, sample_weight=weights)


def _tail_of_a_chain(threads: int) -> dict[str, Any]:
    """Sequences that end in rows without an observation below the chain, with gaps before; another leaf is there."""
    rng = np.random.default_rng(13)
    x = rng.normal(size=(400, 2)) + 2 * np.repeat(rng.integers(0, 2, 40), 10)[:, None]
    x[rng.random(x.shape) < 0.1] = np.nan
    x[180:200], x[370:] = np.nan, np.nan
    found = {}
    for name in ("alone", "beside another leaf"):
        model, data = _markov(with_starts=True), {"x": x, "starts": np.arange(400) % 50 == 0}
        if name == "beside another leaf":
            (leaf,), data["y"] = model.leaves, rng.poisson(3.0, 400)
            rate = cv.Gamma("rate", 1.0, 1.0)
            model = cv.Model(leaf, cv.Poisson("y", rate, plates=model.variables["s"].plates))
        found |= {f"{name} {key}": value for key, value in _in_each_schedule(model, data, threads).items()}
    return found


def _empty_groups(threads: int) -> dict[str, Any]:
    obs, group = cv.Plate("obs"), cv.Plate("group", 8)
    m = cv.Normal("m", cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 1.0, 1.0), plates=group)
    model = cv.Model(cv.Normal("x", m[cv.Data("g", plates=obs)], cv.Gamma("noise", 2.0, 2.0), plates=obs))
    rng = np.random.default_rng(14)
    g = rng.choice([0, 1, 4, 6], 300)
    return _in_each_schedule(model, {"x": rng.normal(size=300) + g, "g": g}, threads)


def _warm_locals(threads: int) -> dict[str, Any]:
    """Local factors that depend on each other, and so start from the last pass; long moves, some of them refused."""
    found, rng = {}, np.random.default_rng(15)
    cases = {
        "measured": (registry.measured(), registry.CASES["measured"].draw(rng, 300), {"factors": []}),
        "robust": (
            cv.models.robust_mixture(2, 3, scale_df=2.0),
            {"x": rng.standard_t(1.5, (300, 2)) * np.array([1.0, 5.0])},
            {"factors": []},
        ),
    }
    for name, (model, data, more) in cases.items():
        schedules = {"batch": {"max_iter": 40}, "incremental": {**INCREMENTAL, "max_iter": 15}}
        figures = _in_each_schedule(model, data, threads, schedules, **more)
        found |= {f"{name} {key}": value for key, value in figures.items()}
    return found


def _documents(threads: int) -> dict[str, Any]:
    """Documents whose proportions begin anew in each pass, until that lowers the ELBO; then from the last pass."""
    rng, found = np.random.default_rng(16), {}
    counts = csr_array(rng.poisson(0.4, (60, 30)))
    model = cv.models.latent_dirichlet_allocation(4, 30, concentration=0.3, word_concentration=0.1)
    schedules = {
        "batch": {"max_iter": 60},
        "incremental": {**INCREMENTAL, "max_iter": 40},
        "stochastic": STOCHASTIC,
    }
    for name, arguments in schedules.items():
        posterior = model.fit({"word": counts}, **{**FEW, "tol": 1e-7, "executor": threads, **arguments})
        found |= {
            f"{name} {key}": value for key, value in figures_of_posterior(posterior, {"word": counts}).items()
        }
    return found


def _nested_tokens(threads: int) -> dict[str, Any]:
    """Topics stated token by token, with plates within another: the general path, and its first rounds."""
    document, topic = cv.Plate("document"), cv.Plate("topic", 3)
    token = cv.Plate("token", within=document)
    z = cv.Categorical("z", cv.Dirichlet("proportions", np.full(3, 0.3), plates=document), plates=token)
    topics = cv.Dirichlet("topics", np.full(12, 0.2), plates=topic)
    rng = np.random.default_rng(17)
    words = [rng.choice(12, size=rng.integers(3, 20)) for _ in range(20)]
    model = cv.Model(cv.Categorical("word", topics[z], plates=token))
    return _in_each_schedule(model, {"word": words}, threads, data_plate="token")


def _nested_numbers(threads: int) -> dict[str, Any]:
    group = cv.Plate("group")
    m = cv.Normal("m", cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 1.0, 1.0), plates=group)
    row = cv.Plate("row", within=group)
    model = cv.Model(cv.Normal("x", m, cv.Gamma("noise", 2.0, 2.0), plates=row))
    rng = np.random.default_rng(18)
    values = [rng.normal(rng.normal(), 1, size=rng.integers(1, 9)) for _ in range(40)]
    return _in_each_schedule(model, {"x": values}, threads, data_plate="row")


def _long_sequence(model: Callable[[], cv.Model], threads: int) -> dict[str, Any]:
    """One sequence of 30,000 steps; it has the same bits on 1 and on 8 threads."""
    rng = np.random.default_rng(19)
    x = np.repeat(rng.integers(0, 3, 3000), 10)[:, None] * np.array([2.0, -1.0]) + rng.normal(
        size=(30_000, 2)
    )
    fits = [model().fit({"x": x}, seed=0, max_iter=2, tol=0.0, executor=number) for number in (1, 8)]
    here, there = map(figures_of_posterior, fits)
    assert here["trace"].tobytes() == there["trace"].tobytes()
    return {
        **{f"1 {key}": value for key, value in here.items()},
        **{f"8 {key}": value for key, value in there.items()},
    }


def _sequences(model: Callable[[], cv.Model], threads: int) -> dict[str, Any]:
    """Many sequences, short and long, in all schedules."""
    rng = np.random.default_rng(20)
    x = np.repeat(rng.integers(0, 2, 200), 5)[:, None] * np.array([3.0, -1.0]) + rng.normal(size=(1000, 2))
    starts = rng.random(1000) < 0.03
    starts[0] = True
    return _in_each_schedule(model(), {"x": x, "starts": starts}, threads)


def _dynamical(*, with_starts: bool = False) -> cv.Model:
    return cv.models.linear_dynamical_system(2, 2, with_starts=with_starts)


def _markov(*, with_starts: bool = False) -> cv.Model:
    return cv.models.gaussian_hidden_markov_model(2, 3, with_starts=with_starts)


def _interrupted(name: str, **more: Any) -> Case:
    """A fit that is broken off in the middle of passes, again and again, and goes on from its checkpoint."""

    def case(threads: int) -> dict[str, Any]:
        data = registry.CASES[name].draw(np.random.default_rng(5), 20_000)
        settings = {"max_iter": 3, "tol": 0.0, "init": "prior", **more}
        whole = registry.CASES[name].fit(data, **settings, executor=threads)
        breaks, resumed = 0, None
        with TemporaryDirectory() as folder:
            kept = {"checkpoint": Path(folder) / "checkpoint", "checkpoint_every": 0}
            while resumed is None:
                # each is let run further than the one before, so that all of them together come to the end
                try:
                    resumed = registry.CASES[name].fit(
                        data, **settings, **kept, executor=_Breaking(1 + 2 * breaks)
                    )
                except _Broken:
                    breaks += 1
        assert breaks >= 3
        assert resumed.elbo_trace.tobytes() == whole.elbo_trace.tobytes()
        return figures_of_posterior(resumed, data)

    return case


def _single_to_double(threads: int) -> dict[str, Any]:
    """In float32 until that leads no further, then in float64; and data that are beyond the budget of float32."""
    found = {}
    for name, x in {
        "near": registry.CASES["joint"].draw(np.random.default_rng(21), 600)["x"],
        "far": _far(3e4),
    }.items():
        device = cv.Device("device1", library="array_api_strict", dtype="float32", block_rows=200)
        model = cv.models.normal_wishart_mixture(2, 3, inverse_scale=1.0 if name == "near" else 1e-6)
        posterior = model.fit({"x": x}, seed=0, max_iter=80, executor=device)
        found |= {f"{name} {key}": value for key, value in figures_of_posterior(posterior).items()}
    return found


def _known_in_part(threads: int) -> dict[str, Any]:
    data = registry.CASES["independent"].draw(np.random.default_rng(22), 300)
    data["mean"] = np.array([[0.0, 0.0], [np.nan, np.nan], [2.0, 1.0]])
    data["z"] = np.where(np.arange(300) % 3 == 0, (data["x"][:, 0] > 0) * 2.0, np.nan)
    return _in_each_schedule(registry.independent(), data, threads)


def _given_start(threads: int) -> dict[str, Any]:
    rng = np.random.default_rng(23)
    data = registry.CASES["independent"].draw(rng, 300)
    q = cv.families.MultivariateNormal(rng.normal(size=(3, 2)), np.tile(np.eye(2), (3, 1, 1)))
    return _in_each_schedule(
        registry.independent(), data, threads, init={"mean": q}, order=["precision", "mean", "weights"]
    )


def _stream(threads: int) -> dict[str, Any]:
    """An earlier posterior in the place of the priors; points among its factors too."""
    found = {}
    for name in ("joint", "map", "regression", "counts"):
        case, rng = registry.CASES[name], np.random.default_rng(24)
        posterior = case.fit(case.draw(rng, 150), max_iter=10)
        for _ in range(2):
            posterior = posterior.update(case.draw(rng, 100), seed=0, max_iter=5)
        found |= {f"{name} {key}": value for key, value in figures_of_posterior(posterior).items()}
    return found


def _collapse(threads: int) -> dict[str, Any]:
    """Maximum likelihood with more components than clusters: starts collapse."""
    model = cv.models.maximum_likelihood_mixture(1, 4)
    x = np.random.default_rng(25).normal(size=(30, 1))
    arguments = {"point": ["weights", "mean", "precision"], "n_restarts": 4}
    return _in_each_schedule(model, {"x": x}, threads, {"batch": {"max_iter": 60}}, **arguments)


def _saddle(threads: int) -> dict[str, Any]:
    """Equal components: a saddle point that the fit leaves."""
    data = registry.CASES["joint"].draw(np.random.default_rng(26), 200)
    posterior = registry.joint().fit(data, init={"z": np.full((200, 3), 1 / 3)}, seed=0, executor=threads)
    return figures_of_posterior(posterior, data)


def _crossed(threads: int) -> dict[str, Any]:
    """Two known label arrays in one predictor, Gaussian and logistic."""
    rng, found = np.random.default_rng(27), {}
    obs, one, two = cv.Plate("obs"), cv.Plate("one", 6), cv.Plate("two", 5)
    a = cv.Normal("a", 0.0, cv.Gamma("tau a", 2.0, 1.0), plates=one)
    b = cv.Normal("b", 0.0, cv.Gamma("tau b", 2.0, 1.0), plates=two)
    predictor = a[cv.Data("i", plates=obs)] + b[cv.Data("j", plates=obs)] + cv.Normal("level", 0.0, 0.1)
    models = {
        "gaussian": cv.Model(cv.Normal("x", predictor, cv.Gamma("noise", 2.0, 1.0), plates=obs)),
        "logistic": cv.Model(cv.Bernoulli("x", cv.logistic(predictor), plates=obs)),
        "probit": cv.Model(cv.Bernoulli("x", cv.probit(predictor), plates=obs)),
    }
    i, j = rng.integers(0, 6, 300), rng.integers(0, 5, 300)
    eta = rng.normal(size=6)[i] + rng.normal(size=5)[j]
    for name, model in models.items():
        x = eta + rng.normal(size=300) if name == "gaussian" else (eta + rng.logistic(size=300) > 0) * 1
        figures = _in_each_schedule(model, {"x": x, "i": i, "j": j}, threads)
        found |= {f"{name} {key}": value for key, value in figures.items()}
    return found


def _products(threads: int) -> dict[str, Any]:
    """Matrix factorisation: two index arrays in one term, and a product of globals."""
    rng = np.random.default_rng(28)
    model = cv.models.matrix_factorisation(8, 6, 2)
    names = [node.name for node in model.nodes if isinstance(node, cv.Data)]
    data = {
        "x": rng.normal(size=200),
        **dict(zip(names, (rng.integers(0, 6, 200),) * len(names), strict=True)),
    }
    leaf = model.leaves[0].name
    return _in_each_schedule(model, {**{k: v for k, v in data.items() if k != "x"}, leaf: data["x"]}, threads)


def _sparse(threads: int) -> dict[str, Any]:
    """Sparse rows of counts under a mixture."""
    rng = np.random.default_rng(29)
    counts = csr_array(
        rng.poisson(np.where(rng.random((300, 1)) < 0.5, [[0.1, 1.0, 0.3, 0.0]], [[1.0, 0.1, 0.1, 0.5]]))
    )
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    p = cv.Dirichlet("p", np.full(4, 0.7), plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    model = cv.Model(cv.Multinomial("x", counts.sum(axis=1), p[z], plates=obs))
    return _in_each_schedule(model, {"x": counts}, threads)


MECHANISMS: dict[str, Case] = {
    **{
        f"origins, {kind}, {widths:g} widths": _origins(kind)(widths)
        for kind in ("tied", "tied joint", "joint", "apart", "diagonal")
        for widths in (330.0, 1e5)
    },
    **{f"origins that go late, {kind}": _origins_that_go_late(kind) for kind in ("tied", "joint")},
    **{
        f"origins, missing patterns, weights, {kind}": _origins_with_gaps(kind)
        for kind in ("joint", "tied", "apart", "diagonal")
    },
    "Student-t, weights": _robust(),
    "Student-t, weights, factors apart": _robust(factors=[]),
    **{
        f"inactive rows, {name}": _inactive(name, _whole_rows)
        for name in (
            "joint",
            "measured",
            "measured-apart",
            "robust",
            "items",
            "factors",
            "regression",
            "categoricals",
        )
    },
    "inactive latents": _inactive_latents,
    "inactive rows, tail of a chain": _tail_of_a_chain,
    "inactive groups": _empty_groups,
    "refused moves, warm locals": _warm_locals,
    "documents, fresh to settled": _documents,
    "nested tokens": _nested_tokens,
    "nested numbers": _nested_numbers,
    "long sequence, 1 and 8 threads, Markov": lambda threads: _long_sequence(_markov, threads),
    "long sequence, 1 and 8 threads, linear Gaussian": lambda threads: _long_sequence(_dynamical, threads),
    "sequences, Markov": lambda threads: _sequences(lambda: _markov(with_starts=True), threads),
    "sequences, linear Gaussian": lambda threads: _sequences(lambda: _dynamical(with_starts=True), threads),
    "interrupted within a pass, stochastic": _interrupted("joint", schedule=cv.Stochastic(4000)),
    "interrupted within a pass, batch, warm locals": _interrupted("measured-apart"),
    "interrupted within a pass, incremental": _interrupted("deconvolved", schedule=cv.Incremental(3)),
    "float32 to float64": _single_to_double,
    "known in part": _known_in_part,
    "given start": _given_start,
    "stream": _stream,
    "collapse": _collapse,
    "saddle": _saddle,
    "crossed labels": _crossed,
    "products": _products,
    "sparse counts": _sparse,
}
"""Case by name; each is given a number of threads."""
