"""What no device takes is refused before a fit starts, and what is wrong with a device when it is stated."""

import numpy as np
import pytest
from scipy import sparse

import caviar as cv
from caviar.engine.ascent.problem import statistics_of
from caviar.engine.rows.device.device_pass import DevicePass
from caviar.engine.rows.device.layout import layout_of
from caviar.engine.rows.tasks import rows_at
from caviar.execution import array_libraries as libraries
from device.devices import reached, strict

OBS = cv.Plate("obs")


def full(k=2):
    return cv.models.gaussian_mixture(2, k)


def rows(n=60):
    return np.random.default_rng(0).normal(size=(n, 2))


def with_gaps():
    x = rows()
    x[::4, 0] = np.nan
    return x


def labels(n=60):
    found = np.full(n, np.nan)
    found[:5] = 0
    return found


def counts():
    return sparse.csr_array(np.random.default_rng(0).poisson(0.3, (40, 6)))


def vocabulary():
    words = cv.Dirichlet("words", np.ones(20), plates=cv.Plate("topic", 2))
    z = cv.Categorical("z", [0.5, 0.5], plates=OBS)
    return cv.Model(cv.Categorical("x", words[z], plates=OBS))


REFUSED = {
    "a chain": (
        lambda: cv.models.gaussian_hidden_markov_model(2, 2),
        lambda: {"x": rows()},
        "not a Categorical by itself",
    ),
    "vectors missing in part": (
        full,
        lambda: {"x": with_gaps()},
        "not a Categorical by itself|missing in part",
    ),
    "labels known in part": (full, lambda: {"x": rows(), "z": labels()}, "labels of 'z' are known in part"),
    "continuous local variables": (
        lambda: cv.models.factor_analysis(2, 1),
        lambda: {"x": rows()},
        "not a Categorical by itself, but a factor of MultivariateNormal",
    ),
    "no local variable": (
        lambda: cv.Model(cv.Normal("x", cv.Normal("mean", 0, 1), 1.0, plates=OBS)),
        lambda: {"x": rows()[:, 0]},
        "no local variable",
    ),
    "many categories": (
        vocabulary,
        lambda: {"x": np.random.default_rng(0).integers(20, size=50)},
        "'x' has 20 categories",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_models_that_no_device_takes(name):
    state, data, reason = REFUSED[name]
    with pytest.raises(cv.ParameterError, match=reason) as error:
        state().fit(data(), executor=strict())
    assert "Leave executor= out: the fit then runs on the processor's cores" in str(error.value)


def test_sparse_counts():
    rates = cv.Dirichlet("rates", np.ones(6), plates=cv.Plate("component", 2))
    z = cv.Categorical("z", [0.5, 0.5], plates=OBS)
    model = cv.Model(cv.Multinomial("x", None, rates[z], plates=OBS))
    with pytest.raises(cv.ParameterError, match="the data of 'x' are a sparse matrix"):
        model.fit({"x": counts()}, executor=strict())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"library": "tensorflow"},
            "library must be one of 'torch', 'cupy', 'array_api_strict'; got 'tensorflow'",
        ),
        (
            {"library": "array_api_strict", "device": "gpu"},
            "array_api_strict cannot hold float64 numbers on the device",
        ),
        ({"library": "array_api_strict", "device": "no_float64"}, "does not support dtype"),
        (
            {"library": "array_api_strict", "dtype": "float16"},
            "dtype is 'float64' or 'float32'; got 'float16'",
        ),
        ({"library": "array_api_strict", "block_rows": 0}, "block_rows must be a whole number >= 1"),
        (
            {"library": "array_api_strict", "keep": 1.0},
            "keep, a share of the device's memory, is between 0 and 0.7",
        ),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(cv.ParameterError, match=message):
        cv.Device(**{"device": "cpu", **arguments})


def test_a_library_that_is_not_installed(monkeypatch):
    def without(name, *args, **kwargs):
        if name.startswith(("torch", "cupy")):
            raise ImportError(f"No module named {name!r}")
        return real(name, *args, **kwargs)

    real = libraries.import_module
    monkeypatch.setattr(libraries, "import_module", without)
    for library in ("torch", "cupy"):
        with pytest.raises(cv.ParameterError, match=r"need the package .* pip install .*torch>=2\.4"):
            cv.Device(library=library)


def test_arrays_of_two_devices_do_not_mix():
    problem, q, row_map = reached(full(), {"x": rows()})
    layout = layout_of(problem.rows, None)
    block = layout.move(rows_at(row_map.source, (0, 60)), libraries.library_of("array_api_strict", "device2"))
    coefficients = problem.rows.coefficients(statistics_of(problem, q))
    there = DevicePass(
        problem.rows, coefficients, layout, libraries.library_of("array_api_strict", "device1")
    )
    with pytest.raises((ValueError, TypeError), match="device"):
        there.summarize(block)
