"""Known labels that two labels choose, ``p[cell[z, v]]``: cases, and columns that tell clusters apart or not."""

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln, logsumexp

import caviar as cv
from caviar.testing import elbo_slopes

CELL = np.array([[0, 1, 1], [2, 0, 1]])
OF_Z, OF_V = np.array([0.4, 0.6]), np.array([0.2, 0.5, 0.3])
RATE = np.array([0.2, 0.5, 0.9])
Y = np.random.default_rng(0).integers(0, 2, 6)
OBS, CELLS = cv.Plate("obs"), cv.Plate("cells", 3)


def stated(rate, *, of_rows=True, cell_of_rows=False):
    """Return answers whose rate is in the cell of two labels."""
    plates = OBS if of_rows else ()
    z, v = cv.Categorical("z", OF_Z, plates=plates), cv.Categorical("v", OF_V, plates=plates)
    cases = (cv.Plate("case of z", 2), cv.Plate("case of v", 3))
    cell = cv.Data("cell", plates=(OBS, *cases) if cell_of_rows else cases)
    return cv.Model(cv.Bernoulli("y", rate[cell[z, v]], plates=OBS))


def test_labels_of_the_rows_have_one_factor():
    model = stated(cv.Constant("rate", RATE, plates=CELLS))
    joint = (
        np.log(OF_Z)[:, None] + np.log(OF_V) + np.log(np.where(Y[:, None, None], RATE[CELL], 1 - RATE[CELL]))
    )
    data = {"y": Y, "cell": CELL}
    posterior = model.fit(data)
    assert posterior.elbo == pytest.approx(logsumexp(joint, axis=(1, 2)).sum(), rel=1e-13)
    found = posterior.local(data)["z"].of("z", "v")
    np.testing.assert_allclose(
        found, np.exp(joint - logsumexp(joint, axis=(1, 2), keepdims=True)), atol=1e-13
    )
    assert model.fit(data, factors=[]).elbo < posterior.elbo - 0.1
    values = {"z": np.zeros(6, dtype=int), "v": np.full(6, 2)}
    assert model.log_joint({**data, **values}) == pytest.approx(joint[:, 0, 2].sum(), rel=1e-13)


@pytest.mark.parametrize("cell_of_rows", [False, True])
def test_labels_of_all_rows_share_a_factor_with_the_rates(cell_of_rows):
    cell = np.random.default_rng(1).integers(0, 3, (6, 2, 3)) if cell_of_rows else CELL
    model = stated(cv.Beta("rate", 1, 2, plates=CELLS), of_rows=False, cell_of_rows=cell_of_rows)
    posterior = model.fit({"y": Y, "cell": cell}, seed=0)
    joint = np.empty((2, 3))
    for k, v in np.ndindex(2, 3):
        own = cell[:, k, v] if cell_of_rows else np.full(6, cell[k, v])
        yes, no = (np.bincount(own, weights=side, minlength=3) for side in (Y, 1 - Y))
        joint[k, v] = np.log(OF_Z[k] * OF_V[v]) + (betaln(1 + yes, 2 + no) - betaln(1, 2)).sum()
    assert posterior.elbo == pytest.approx(logsumexp(joint), rel=1e-12)
    np.testing.assert_allclose(
        posterior["v"].probabilities, np.exp(logsumexp(joint, axis=0) - logsumexp(joint)), rtol=1e-10
    )


@pytest.mark.usefixtures("figures_of_factors")
def test_unknown_rates_are_at_an_optimum_and_are_saved(tmp_path):
    model = stated(cv.Beta("rate", 1, 2, plates=CELLS))
    data = {"y": Y, "cell": CELL}
    posterior = model.fit(data, seed=0, tol=1e-12)
    assert elbo_slopes(posterior, data, n_directions=2)["rate"] < 1e-3
    posterior.save(tmp_path / "two.caviar")
    again = cv.load(tmp_path / "two.caviar")
    assert again.elbo_at({}, data) == pytest.approx(posterior.elbo, rel=1e-12)
    drawn = again.model.simulate(0, sizes={"obs": 4}, data={"cell": CELL})
    assert drawn["y"].shape == (4,)


@pytest.mark.parametrize("is_chained", [False, True])
def test_one_of_both_may_be_known(is_chained):
    z, known = cv.Categorical("z", OF_Z, plates=OBS), cv.Data("known", plates=OBS)
    cell = cv.Data("cell", plates=(cv.Plate("case of z", 2), cv.Plate("case of v", 3)))
    rate = cv.Constant("rate", RATE, plates=CELLS)
    chosen = cell[z][known] if is_chained else cell[z, known]
    v = np.array([0, 1, 2, 2, 1, 0])
    posterior = cv.Model(cv.Bernoulli("y", rate[chosen], plates=OBS)).fit({"y": Y, "cell": CELL, "known": v})
    each = RATE[CELL[:, v]]
    exact = logsumexp(np.log(OF_Z)[:, None] + np.log(np.where(Y, each, 1 - each)), axis=0).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-13)


def test_the_bound_is_below_the_sum_over_columns_and_rows():
    rng = np.random.default_rng(3)
    p, x = rng.dirichlet(np.ones(2), size=(3, 3)), rng.integers(0, 2, (6, 3))
    item, component = cv.Plate("item", 3), cv.Plate("component", 2)
    z = cv.Categorical("z", OF_Z, plates=OBS)
    relevant = cv.Categorical("relevant", [0.3, 0.7], plates=item)
    table = cv.Constant("p", p, plates=(CELLS, item))
    cell = cv.Data("cell", plates=(cv.Plate("told", 2), component))
    model = cv.Model(cv.Categorical("x", table[cell[relevant, z]], plates=(OBS, item)))
    posterior = model.fit({"x": x, "cell": np.array([[2, 2], [0, 1]])}, seed=0)
    each = []
    for told in product([0, 1], repeat=3):
        of = np.where(told, np.arange(2)[:, None], 2)  # (cluster, column)
        rows = np.log(p[of[None], np.arange(3), x[:, None, :]]).sum(axis=2) + np.log(OF_Z)
        each.append(np.log(np.take([0.3, 0.7], told)).sum() + logsumexp(rows, axis=1).sum())
    exact = logsumexp(each)
    assert exact - 0.5 < posterior.elbo < exact


def test_a_hidden_label_of_a_hidden_label_is_one_label_of_all_its_values():
    """``rate[kind[z]]`` with both hidden: ``ways`` says what each ``kind`` is."""
    every = np.array(list(product(range(3), repeat=2)))
    weights = np.array([0.2, 0.3, 0.5])
    ways = cv.Categorical("ways", weights[every].prod(axis=1))
    z = cv.Categorical("z", OF_Z, plates=OBS)
    cell = cv.Data("cell", plates=(cv.Plate("way", 9), cv.Plate("case", 2)))
    model = cv.Model(cv.Bernoulli("y", cv.Constant("rate", RATE, plates=CELLS)[cell[ways, z]], plates=OBS))
    y = np.tile(Y, 5)
    posterior = model.fit({"y": y, "cell": every}, seed=0)
    given = np.where(y[:, None, None], RATE[every], 1 - RATE[every]) @ OF_Z
    joint = np.log(weights[every]).sum(axis=1) + np.log(given).sum(axis=0)
    assert logsumexp(joint) - 2 < posterior.elbo < logsumexp(joint)
    known = {"y": y, "cell": every, "z": np.zeros(30, dtype=int)}
    assert model.log_joint({**known, "ways": 4}) == pytest.approx(
        np.log(weights[1] ** 2 * OF_Z[0] ** 30) + np.log(np.where(y, RATE[1], 1 - RATE[1])).sum()
    )
