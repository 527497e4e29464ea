"""One pass that forms the changes of all sums with all entries of their matrices, against passes along directions."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.state import begin
from caviar.engine.design.backend import Workspace
from caviar.engine.evaluation.evaluate import in_frame
from caviar.engine.response import factors
from caviar.engine.response.operator import ResponseOperator
from caviar.engine.response.passes.blocks import CurveBlocks, RespondBlocks
from caviar.engine.response.quantities import Response
from caviar.engine.rows.tasks import InferBlocks, rows_at
from caviar.engine.rows.terms.curvature import Products, n_pairs

OBS = cv.Plate("obs")


def _with_weights(rng):
    x = np.concatenate([rng.normal(0, 1, (60, 3)), rng.normal(2, 1, (40, 3))])
    return cv.models.gaussian_mixture(3, 3), {"x": x}, rng.uniform(0.5, 2.0, 100)


def _whole_rows_missing(rng):
    x = np.concatenate([rng.normal(0, 1, (60, 2)), rng.normal(4, 1, (40, 2))])
    x[::9] = np.nan
    return cv.models.gaussian_mixture(2, 2), {"x": x}, None


def _numbers_and_counts(rng):
    z = cv.Categorical("z", cv.Dirichlet("w", [1.0] * 3), plates=OBS)
    of = cv.Plate("component", 3)
    mean = cv.Normal("mean", 0, 0.1, plates=of)
    x = cv.Normal("x", mean[z], cv.Gamma("tau", 2, 2, plates=of)[z], plates=OBS)
    y = cv.Poisson("y", cv.Gamma("rate", 2, 0.5, plates=of)[z], plates=OBS)
    label = rng.integers(0, 3, 90)
    return cv.Model(x, y), {"x": 3.0 * label + rng.normal(size=90), "y": rng.poisson(1 + 4 * label)}, None


def _operator(make):
    model, data, weights = make(np.random.default_rng(1))
    posterior = model.fit(data, seed=0, tol=1e-8, sample_weight=weights)
    problem, rows = posterior._evaluator.bind(data, weights)
    problem = problem.with_rows(problem.rows.thorough())
    state = begin(problem, in_frame(problem, {name: posterior[name] for name in posterior}), rows)
    return ResponseOperator(state.problem, state.q, state.arrays, state.rows, state.warm)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("make", [_with_weights, _whole_rows_missing, _numbers_and_counts])
def test_one_pass_gives_what_passes_along_directions_give(make):
    curved, directional = _operator(make), _operator(make)
    vars(curved)["_is_curved"], vars(directional)["_is_curved"] = True, False
    expected = directional.matrix()
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(curved.matrix(), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    columns = np.random.default_rng(0).normal(size=(curved.size, 5))
    np.testing.assert_allclose(curved.apply(columns), expected @ columns, rtol=0, atol=1e-10)


@pytest.mark.parametrize("most", [1, 60])
def test_small_factors_respond_to_all_changes_at_once_as_to_one_after_the_other(most, monkeypatch):
    together = _operator(_with_weights)
    monkeypatch.setattr(factors, "_MOST_TOGETHER", most)
    apart = _operator(_with_weights)
    columns = np.random.default_rng(0).normal(size=(together.size, 5))
    np.testing.assert_allclose(together.times(columns), apart.times(columns), rtol=1e-12, atol=1e-14)
    for one, other in zip(together.factors, apart.factors, strict=True):
        np.testing.assert_allclose(one.covariances, other.covariances, rtol=1e-12)


def _one_column(rng):
    return cv.models.gaussian_mixture(1, 2), {"x": rng.normal(size=(80, 1))}, None


@pytest.mark.parametrize("make", [_with_weights, _whole_rows_missing, _numbers_and_counts, _one_column])
def test_products_of_features_are_written_after_those_that_they_are_made_of(make):
    """Of one column x^4 is x times x^3, which is written just before."""
    operator = _operator(make)
    ((_, table),) = operator.problem.rows.tables.items()
    products = Products(table)
    block = rows_at(operator._rows.source, (0, 80))
    features = np.empty((table.n_rows, block.n_rows))
    table.fill(block.columns, features, Workspace())
    out = np.empty((products.number, block.n_rows))
    products.write(features, out)
    np.testing.assert_allclose(out[products.places], features[:, None] * features, rtol=1e-14)
    np.testing.assert_allclose(out, features[products.pairs[0]] * features[products.pairs[1]], rtol=1e-14)


def test_equal_products_of_features_are_summed_once():
    operator = _operator(_with_weights)
    ((factor, table),) = operator.problem.rows.tables.items()
    products = Products(table)
    # monomials of degree at most 4 in three numbers, and pairs of different categories
    assert (products.number, n_pairs(factor)) == (35, 3)
    x = np.random.default_rng(2).normal(size=(3, 7))
    features = np.empty((table.n_rows, 7))
    for feature, rows in zip(table.features, table.slices, strict=True):
        if feature.source is None:
            features[rows] = 1.0
        elif feature.statistic == "x":
            features[rows] = x
        else:
            i, j = feature.pairs
            features[rows] = x[i] * x[j]
    out = np.empty((products.number, 7))
    products.write(features, out)
    np.testing.assert_allclose(out[products.places], features[:, None] * features, rtol=1e-14)


@pytest.mark.parametrize("make", [_with_weights, _whole_rows_missing, _numbers_and_counts])
def test_the_look_that_forms_them_is_that_of_the_objective(make, monkeypatch):
    model, data, weights = make(np.random.default_rng(1))
    posterior = model.fit(data, seed=0, tol=1e-8, sample_weight=weights)
    problem, rows = posterior._evaluator.bind(data, weights)
    passes = []
    summed = type(rows.executor).sum
    monkeypatch.setattr(type(rows.executor), "sum", lambda *given: passes.append(given[1]) or summed(*given))
    response = Response(problem, {name: posterior[name] for name in posterior}, rows)
    for name in posterior:
        response.variance(name)
    assert sum(isinstance(work, CurveBlocks) for work in passes) == 1
    assert not any(isinstance(work, InferBlocks | RespondBlocks) for work in passes)
    assert response.elbo == pytest.approx(posterior.elbo, rel=1e-13)
