"""Products of three hidden numbers, or more, begin at alternating least squares."""

from math import prod

import numpy as np
import pytest
from scipy.optimize import minimize

import caviar as cv
from caviar.engine.starts.products.several.alternating import Cells, alternated
from caviar.engine.starts.products.several.ways import widths_of_sides
from starts.registry import CASES


def cells_of(values, weights=None, is_positive=False):
    places = np.nonzero(~np.isnan(values))
    seen = values[places]
    weights = np.ones(len(seen)) if weights is None else weights[places]
    n_ways = values.ndim
    variances = [np.nanmean(values**2) ** (1 / n_ways)] * n_ways
    return Cells(np.arange(len(seen)), places, values.shape, seen, weights, variances, [is_positive] * n_ways)


def table(rng, shape, rank, draw=None):
    letters = "ijkl"[: len(shape)]
    true = [(draw or rng.normal)(size=(size, rank)) for size in shape]
    return np.einsum(",".join(f"{own}r" for own in letters) + "->" + letters, *true)


def product_of(factors):
    letters = "ijkl"[: len(factors)]
    return np.einsum(",".join(f"{own}r" for own in letters) + "->" + letters, *factors)


@pytest.mark.parametrize("shape", [(7, 6, 5), (5, 4, 3, 4)])
def test_a_table_of_few_products_is_found_from_a_part_of_its_cells(shape):
    rng = np.random.default_rng(0)
    whole = 1e3 * table(rng, shape, 2)
    values = np.where(rng.random(shape) < 0.2, np.nan, whole)
    found = product_of(alternated(cells_of(values), 2, rng))
    assert np.abs(found - whole)[np.isnan(values)].max() < 1e-3 * whole.std()


def test_what_one_product_leaves_is_no_more_than_from_many_draws():
    """Of one product the least squares are those of a general optimiser from the best of many draws."""
    rng = np.random.default_rng(1)
    values = table(rng, (4, 3, 3), 1) + rng.normal(size=(4, 3, 3))

    def left(point):
        return np.square(values - product_of([own[:, None] for own in np.split(point, [4, 7])])).sum()

    least = min(minimize(left, rng.normal(size=10)).fun for _ in range(5))
    found = np.square(values - product_of(alternated(cells_of(values), 1, rng))).sum()
    assert least <= found * (1 + 1e-9)
    assert found < least * 1.05


def test_a_slice_of_nearly_all_weight_has_its_singular_vectors():
    rng = np.random.default_rng(2)
    values = table(rng, (6, 5, 4), 1) + 0.3 * rng.normal(size=(6, 5, 4))
    weights = np.where(np.arange(6) == 2, 1e6, 1.0)[:, None, None] * np.ones((5, 4))
    left, sizes, right = np.linalg.svd(values[2])
    expected = sizes[0] * np.outer(left[:, 0], right[0])
    found = product_of(alternated(cells_of(values, weights), 1, rng))[2]
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_factors_that_are_not_negative_are_found():
    rng = np.random.default_rng(3)
    whole = table(rng, (8, 7, 6), 2, lambda size: rng.gamma(0.5, size=size))
    factors = alternated(cells_of(whole, is_positive=True), 2, rng)
    assert all((own > 0).all() for own in factors)
    assert np.square(product_of(factors) - whole).mean() < 0.01 * np.square(whole).mean()


@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0])
def test_widths_are_the_best_for_the_priors(size):
    variances, numbers = np.array([1.0, 0.2, 4.0]), np.array([20, 7, 3])

    def loss(two):
        logs = np.array([*two, np.log(size) - sum(two)])
        return (numbers * (np.exp(2 * logs) / (2 * variances) - logs)).sum()

    best = minimize(
        loss, np.full(2, np.log(size) / 3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
    )
    found = widths_of_sides(size, variances.tolist(), numbers.tolist())
    assert np.prod(found) == pytest.approx(size)
    np.testing.assert_allclose(np.log(found[:2]), best.x, atol=1e-5)


def test_widths_of_learnt_variances_adapt_to_the_known_ones():
    found = widths_of_sides(6.0, [None, 4.0, None], [5, 6, 7])
    np.testing.assert_allclose(found, [3**0.5, 2.0, 3**0.5])


def of_indices(rng):
    """Rows with an index for each way, products with coefficients, and an effect beside them."""
    sizes = 9, 8, 6
    true = [rng.normal(size=(size, 2)) for size in sizes]
    rows = np.argwhere(rng.random(sizes) < 0.7)
    obs = cv.Plate("obs")
    places = [
        (cv.Plate(n, size), cv.Data(f"of_{n}", plates=obs)) for n, size in zip("abc", sizes, strict=True)
    ]
    products = [
        scale
        * prod(cv.Normal(f"{n}{r}", 0, 1, plates=p)[of] for n, (p, of) in zip("abc", places, strict=True))
        for r, scale in enumerate((-2.0, 0.5))
    ]
    level = cv.Normal("level", 0, 0.01)
    model = cv.Model(
        cv.Normal("y", products[0] + products[1] + level, cv.Gamma("tau", 1e-3, 1e-3), plates=obs)
    )
    eta = np.prod([own[places] for own, places in zip(true, rows.T, strict=True)], axis=0) @ [-2.0, 0.5]
    data = {"y": eta + 3.0 + 0.2 * rng.normal(size=len(rows))}
    data.update({f"of_{n}": own for n, own in zip("abc", rows.T, strict=True)})
    init = {f"{n}{r}": own[:, r] for n, own in zip("abc", true, strict=True) for r in range(2)}
    return model, data, {**init, "level": 3.0, "tau": 25.0}


def test_indices_coefficients_and_an_effect_beside_them():
    model, data, init = of_indices(np.random.default_rng(4))
    good = model.fit(data, init=init, seed=0, max_iter=25).elbo
    found = model.fit(data, seed=0, max_iter=25)
    assert (good - found.elbo) / len(data["y"]) < 0.01
    assert found["tau"].mean ** -0.5 == pytest.approx(0.2, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("three ways")])
def test_ten_seeds_of_ten_end_where_the_truth_leads_without_more_passes(name):
    problem = CASES[name].problem()
    good = problem.model.fit(problem.data, init=problem.init, seed=0, max_iter=2000).elbo
    for seed in range(10):
        found = problem.model.fit(problem.data, seed=seed)
        assert (good - found.elbo) / problem.rows < 0.01
        assert found.n_iter < 100
