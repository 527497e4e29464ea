"""What the candidates of a start are made from: sets of points, each once, and local factors at random."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import caviar as cv
from caviar.engine.binding.bind import bind
from caviar.engine.rows.row_map import RowMap
from caviar.engine.rows.subsample import sample_of
from caviar.engine.starts.candidates import basis_of
from caviar.engine.starts.guesses.partitioned import in_fewer_clusters
from caviar.engine.starts.regroup import regrouping_of
from caviar.execution.threads import Threads
from caviar.fitting.rows import rows_of


def made_from(model, data, seed=0, point=()):
    problem = model._problem(bind(model.nodes, model.leaves, data), point, None)
    row_map = RowMap(problem.rows, rows_of(problem.bound), Threads())
    return basis_of(problem, sample_of(row_map.source), row_map, np.random.default_rng(seed))


@pytest.mark.parametrize("n_columns", [1, 4])
def test_each_set_of_points_is_there_once(n_columns):
    """Where nothing is averaged over, averages and values by themselves are the same points."""
    counts = np.random.default_rng(0).poisson(3.0, (60, n_columns))
    basis = made_from(cv.models.poisson_mixture(n_columns, 2), {"x": counts})
    (gate,) = basis.gates
    assert len(basis.clouds(gate)) == 1


@pytest.mark.parametrize("is_chain", [False, True])
def test_what_nothing_varies_along_is_averaged_over(is_chain):
    """Counts over two plates with one rate: averages of what they are evened to, or each by itself."""
    obs, a, b = cv.Plate("obs"), cv.Plate("a", 2), cv.Plate("b", 5)
    component = cv.Plate("component", 4)
    z = cv.Categorical("z", np.full(4, 0.25), plates=obs)
    if is_chain:
        transition = cv.Dirichlet("transition", np.ones(4), plates=component)
        z = cv.MarkovChain("z", np.full(4, 0.25), transition, along=obs)
    rate = cv.Gamma("rate", 1.0, 0.1, plates=component)
    leaf = cv.Poisson("x", rate[z], plates=(obs, a, b))
    rates = 5.0 + 20.0 * (np.arange(12) % 3)
    x = np.random.default_rng(0).poisson(rates[:, None, None], (12, 2, 5)).astype(float)
    x[0, 1, 2] = x[3, 0, 0] = np.nan
    basis = made_from(cv.Model(leaf), {"x": x})
    averages, each = (cloud.points for cloud in basis.clouds(basis.gates[0]))
    assert (averages.shape, each.shape) == ((12, 1), (12, 10))
    # along the last plate first, in some unit; a sample has its own order of the rows
    points = np.nanmean(np.nanmean(leaf.evened(x), axis=2), axis=1)
    np.testing.assert_allclose(np.corrcoef(np.sort(averages[:, 0]), np.sort(points))[0, 1], 1.0, rtol=1e-12)
    # states are merged and split by the first of them, and labels not at all where it is not the only one
    regrouping = regrouping_of(basis)
    assert (regrouping and regrouping.cloud) is (basis.clouds(basis.gates[0])[0] if is_chain else None)


def _alike(k):
    return cv.models.poisson_mixture(2, k), ["weights", "rate"]


def _different(k):
    """Return a mixture one of whose components has another prior than the others."""
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(k)), plates=obs)
    shapes = cv.Constant("shapes", np.array([50.0, *np.ones(k - 1)]), plates=component)
    rate = cv.Gamma("rate", shapes, 1.0, plates=component)
    return cv.Model(cv.Poisson("x", rate[z], plates=obs)), ["weights", "rate"]


@pytest.mark.parametrize(
    ("stated", "is_point", "expected"),
    [(_alike, False, True), (_alike, True, False), (_different, False, True), (_different, True, True)],
)
def test_components_are_left_empty_except_in_maximum_likelihood_of_an_ordinary_mixture(
    stated, is_point, expected
):
    """There an empty component is a likelihood given away; elsewhere fewer clusters may be the better start."""
    model, points = stated(4)
    counts = np.random.default_rng(0).poisson(np.repeat([[2.0], [30.0]], 60, axis=0), (120, 2))
    data = {"x": counts if stated is _alike else counts[:, 0]}
    basis = made_from(model, data, point=points if is_point else ())
    found = [len(np.unique(labels)) for guess in in_fewer_clusters(basis) for labels in guess.values()]
    assert bool(found) == expected
    assert all(1 <= number < 4 for number in found)


def test_vectors_that_a_label_gates_are_drawn_with_it():
    """All statistics of a label's vector are those of one value, and zero at the other labels."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    centres = np.array([[-90.0, 0.0], [0.0, 90.0], [90.0, 0.0]])
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=obs)
    t = cv.MultivariateNormal("t", cv.Constant("mean", centres, plates=component)[z], np.eye(2), plates=obs)
    model = cv.Model(cv.MultivariateNormal("x", t, 4.0 * np.eye(2), plates=obs))
    data = {"x": np.random.default_rng(1).normal(size=(50, 2)) + centres[np.arange(50) % 3]}
    basis = made_from(model, data)
    (factor,) = basis.problem.factors
    expected = basis.draws[factor.key]
    one_hot, first, second = (factor.view(expected, key) for key in (("z", "x"), ("t", "x"), ("t", "xx")))
    assert set(np.unique(one_hot)) == {0.0, 1.0}
    np.testing.assert_array_equal(one_hot.sum(axis=0), 1.0)
    values = first.sum(axis=0)
    np.testing.assert_array_equal(first, one_hot[:, None] * values)
    np.testing.assert_allclose(second, one_hot[:, None, None] * values[:, None] * values, rtol=1e-13)
    from_origin = values.T + basis.problem.coordinates.of(t)
    assert np.abs(from_origin - centres[one_hot.argmax(axis=0)]).max() < 6.0


def test_a_prior_of_steps_that_favours_to_stay_makes_no_state_differ():
    """Renaming the states leaves such a model as it is: there is nothing to assign clusters by."""
    chain = cv.models.gaussian_hidden_markov_model(2, 4, transition_concentration=0.1 + 5 * np.eye(4))
    basis = made_from(chain, {"x": np.random.default_rng(0).normal(size=(50, 2))})
    (gate,) = basis.gates
    assert not basis.differs(gate)
    cycle = cv.models.gaussian_hidden_markov_model(
        2, 4, transition_concentration=0.1 + np.diag([5.0, 1, 1, 1])
    )
    basis = made_from(cycle, {"x": np.random.default_rng(0).normal(size=(50, 2))})
    (gate,) = basis.gates
    assert basis.differs(gate)


@pytest.mark.parametrize(("n_free", "is_fewer"), [(5, True), (70, False)])
def test_points_of_many_columns_keep_their_distances_in_fewer_directions(n_free, is_fewer):
    """Densities along a grid vary in few directions, in which points are clustered sooner."""
    rng = np.random.default_rng(2)
    roots = rng.dirichlet(np.ones(n_free), 200) @ rng.dirichlet(np.ones(70), n_free)
    roots /= np.linalg.norm(roots, axis=1, keepdims=True)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=cv.Plate("row"))
    grid = cv.Categorical("grid", np.full(70, 1 / 70), plates=cv.Plate("cluster", 3))
    basis = made_from(cv.Model(cv.Potential("table", grid[z], plates=z.plates)), {"table": 2 * np.log(roots)})
    gate = next(gate for gate in basis.gates if gate.variable.name == "z")
    points = basis.clouds(gate)[0].points
    in_units = (roots - roots.mean(axis=0)) / roots.std(axis=0)
    assert points.shape == (200, 5 if is_fewer else 70)
    np.testing.assert_allclose(np.sort(pdist(points)), np.sort(pdist(in_units)), rtol=1e-6)
