"""A parameter may be a Constant over a plate: the same model as with an array."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import betaln

import caviar as cv

OBS, GROUP = cv.Plate("obs"), cv.Plate("group", 2)
LABELS = {"g": np.array([0, 1, 1, 0, 1])}
NUMBERS = {"x": np.array([0.3, 1.2, 2.0, 0.7, 0.1]), **LABELS}
COUNTS = {"x": np.array([0, 1, 2, 0, 1]), **LABELS}
BINARY = {"x": np.array([0, 1, 1, 0, 1]), **LABELS}
VECTORS = {"x": np.random.default_rng(0).normal(size=(5, 2)), **LABELS}
EYE = np.eye(2)


def chosen(node):
    return node[cv.Data("g", plates=OBS)]


STATEMENTS = {
    "Normal": (
        lambda **own: cv.Normal("x", chosen(cv.Normal("t", **own, plates=GROUP)), 1.0, plates=OBS),
        {"mean": [0.0, 1.0], "precision": [1.0, 2.0]},
        NUMBERS,
    ),
    "Gamma": (
        lambda **own: cv.Poisson("x", chosen(cv.Gamma("t", **own, plates=GROUP)), plates=OBS),
        {"shape": [1.0, 2.0], "rate": [1.0, 2.0]},
        COUNTS,
    ),
    "Beta": (
        lambda **own: cv.Bernoulli("x", chosen(cv.Beta("t", **own, plates=GROUP)), plates=OBS),
        {"a": [1.0, 2.0], "b": [3.0, 2.0]},
        BINARY,
    ),
    "Dirichlet": (
        lambda **own: cv.Categorical("x", chosen(cv.Dirichlet("t", **own, plates=GROUP)), plates=OBS),
        {"concentration": [[1.0, 2.0, 1.0], [3.0, 2.0, 1.0]]},
        COUNTS,
    ),
    "StickBreaking": (
        lambda **own: cv.Categorical(
            "x", chosen(cv.StickBreaking("t", **own, truncation=3, plates=GROUP)), plates=OBS
        ),
        {"concentration": [1.0, 2.0]},
        COUNTS,
    ),
    "NormalGamma": (
        lambda **own: cv.Normal("x", chosen(cv.NormalGamma("t", **own, plates=GROUP)), plates=OBS),
        {"mean": [0.0, 1.0], "mean_precision": [1.0, 2.0], "shape": [1.0, 2.0], "rate": [1.0, 3.0]},
        NUMBERS,
    ),
    "MultivariateNormal": (
        lambda **own: cv.MultivariateNormal(
            "x", chosen(cv.MultivariateNormal("t", **own, plates=GROUP)), EYE, plates=OBS
        ),
        {"mean": [[0.0, 1.0], [1.0, 1.0]], "precision": [EYE, 2 * EYE]},
        VECTORS,
    ),
    "Wishart": (
        lambda **own: cv.MultivariateNormal(
            "x", np.zeros(2), chosen(cv.Wishart("t", **own, plates=GROUP)), plates=OBS
        ),
        {"df": [3.0, 4.0], "inverse_scale": [EYE, 2 * EYE]},
        VECTORS,
    ),
    "NormalWishart": (
        lambda **own: cv.MultivariateNormal(
            "x", chosen(cv.NormalWishart("t", **own, plates=GROUP)), plates=OBS
        ),
        {
            "mean": [[0.0, 1.0], [1.0, 1.0]],
            "mean_precision": [1.0, 2.0],
            "df": [3.0, 4.0],
            "inverse_scale": [EYE, 2 * EYE],
        },
        VECTORS,
    ),
}


def elbo(state, parameters, data):
    return cv.Model(state(**parameters)).fit(data, seed=0).elbo


@pytest.mark.parametrize("family", STATEMENTS)
def test_arrays_and_constants_state_the_same(family):
    state, parameters, data = STATEMENTS[family]
    arrays = {name: np.array(value) for name, value in parameters.items()}
    repeated = {name: cv.Constant(f"c {name}", value, plates=GROUP) for name, value in arrays.items()}
    single = {name: cv.Constant(f"one {name}", value[0]) for name, value in arrays.items()}
    expected = elbo(state, arrays, data)
    assert_allclose(elbo(state, repeated, data), expected, rtol=1e-13)
    for name, value in arrays.items():
        assert_allclose(elbo(state, {**arrays, name: repeated[name]}, data), expected, rtol=1e-13)
        first = elbo(state, {**arrays, name: value[0]}, data)
        assert abs(first - expected) > 1e-3
        assert_allclose(elbo(state, {**arrays, name: single[name]}, data), first, rtol=1e-13)


@pytest.mark.parametrize("b", [[2.0, 1.0], 4.0])
def test_shapes_of_a_beta(tmp_path, b):
    """With known groups the evidence is a ratio of Beta functions, also after the model was saved."""
    a = np.array([1.0, 2.0])
    shapes = cv.Constant("a", [1, 2], plates=GROUP), cv.Constant("b", b, plates=GROUP) if np.ndim(b) else b
    p = cv.Beta("p", *shapes, plates=GROUP)
    model = cv.Model(cv.Bernoulli("x", chosen(p), plates=OBS))
    evidence = np.sum(betaln(a + np.array([0, 3]), b + np.array([2, 0])) - betaln(a, b))
    model.save(tmp_path / "model.caviar")
    for own in (model, cv.load(tmp_path / "model.caviar")):
        assert_allclose(own.fit(BINARY, seed=0).elbo, evidence, rtol=1e-12)


def test_shapes_of_a_beta_chosen_by_a_label():
    """Hidden probabilities of rows whose prior a known label chooses: each row has evidence of its own."""
    a, b = np.array([1.0, 2.0]), np.array([2.0, 1.5])
    by = cv.Data("g", plates=OBS)
    shapes = [cv.Constant(name, value, plates=GROUP)[by] for name, value in (("a", a), ("b", b))]
    model = cv.Model(cv.Bernoulli("x", cv.Beta("p", *shapes, plates=OBS), plates=OBS))
    g, x = BINARY["g"], BINARY["x"]
    evidence = np.sum(np.log(np.where(x == 1, a[g], b[g]) / (a[g] + b[g])))
    assert_allclose(model.fit(BINARY, seed=0).elbo, evidence, rtol=1e-12)


def test_what_the_shapes_of_a_beta_cannot_be():
    with pytest.raises(cv.ModelError, match="'b' of Beta 'p' cannot be the Data 'd'"):
        cv.Beta("p", 1.0, cv.Data("d", plates=OBS), plates=OBS)
    with pytest.raises(cv.PlateError, match="'a' of Beta 'p' must be a number; 'c' is a vector"):
        cv.Beta("p", cv.Constant("c", [[1.0, 2.0]] * 2, plates=GROUP), 99.0, plates=GROUP)
    with pytest.raises(cv.ConjugacyError, match="'a' of Beta 'p' cannot be the Normal 'g'"):
        cv.Beta("p", cv.Normal("g", 1, 1), 1.0)
    with pytest.raises(cv.ModelError, match="'b' of Beta 'p' must be positive"):
        cv.Beta("p", 1.0, cv.Constant("c", -1.0))
    other = cv.Data("h", plates=OBS)
    first, second = (cv.Constant(name, [1.0, 2.0], plates=GROUP) for name in "cd")
    with pytest.raises(cv.PlateError, match="same plate by the same variable"):
        cv.Beta("p", first[cv.Data("g", plates=OBS)], second[other], plates=OBS)
