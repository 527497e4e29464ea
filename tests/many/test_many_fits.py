"""Many fits in one call: each is the fit of its group alone, from the same start to rounding."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import caviar as cv
from caviar.engine.ascent.problem import Problem
from caviar.engine.assemble import again
from caviar.engine.design.keys import ColumnKey
from caviar.engine.groups import fit
from caviar.engine.groups.ascent import GroupedEnds, ascend, moved_to
from caviar.engine.groups.problem import GroupedProblem, Groups
from caviar.engine.groups.rows import GroupedRows
from caviar.engine.groups.starts import begun, clustered, points_of, sums_of
from caviar.fitting.model import assembled
from caviar.models.maximum_likelihood_mixture import POINT


def _tables(n_groups: int, gap: float = 4.0, n_rows: Any = 60, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = np.broadcast_to(n_rows, n_groups)
    return [
        rng.normal(size=(n, 2)) + gap * (rng.random((n, 1)) < 0.4) + 20 * rng.normal(size=2) for n in rows
    ]


def _counts(n_groups: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.poisson(np.where(rng.random((80, 1)) < 0.5, 2.0, 9.0), size=(80, 3)) for _ in range(n_groups)]


CASES = {
    "joint": (cv.models.normal_wishart_mixture(2, 2), (), _tables(6)),
    "independent": (cv.models.gaussian_mixture(2, 2), (), _tables(6)),
    "tied": (cv.models.tied_mixture(2, 2), (), _tables(6)),
    "other numbers of rows": (cv.models.tied_mixture(2, 2), (), _tables(6, n_rows=[40, 44, 46, 50, 48, 41])),
    "likelihood": (cv.models.maximum_likelihood_mixture(2, 2), POINT, _tables(6)),
    "process": (cv.models.dirichlet_process_mixture(2, 3), (), _tables(6)),
    "counts": (cv.models.poisson_mixture(3, 2), (), _counts(6)),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("case", CASES)
def test_a_group_in_a_batch_ends_where_a_fit_of_it_ends(case: str) -> None:
    """From the same labels: the same objective and weights, in about as many iterations; the trace never falls."""
    model, point, tables = CASES[case]
    counts = np.array([len(own) for own in tables])
    stacked = np.zeros((len(tables), counts.max(), *tables[0].shape[1:]))
    labels = np.zeros(stacked.shape[:2], dtype=int)
    for number, own in enumerate(tables):
        stacked[number, : len(own)] = own
        labels[number, : len(own)] = own[:, 0] > own[:, 0].mean()
    one = assembled(model, {"x": tables[0]}, point)
    groups = Groups({ColumnKey("x"): stacked}, counts, {}, {})
    problem = GroupedProblem(one, again, groups)
    ends = GroupedEnds.none(len(tables))
    assert ascend(begun(problem, sums_of(problem, labels)), ends, 300, 1e-9) is None
    factors = problem.factors(ends.vector, np.arange(len(tables)))
    for number, own in enumerate(tables):
        init = {"z": labels[number, : len(own)]}
        single = model.fit({"x": own}, point=point, init=init, tol=1e-9, uncertainty="mean_field")
        np.testing.assert_allclose(ends.elbo[number], single.elbo, rtol=1e-9)
        assert abs(ends.n_iter[number] - single.n_iter) <= 5
        trace = ends.trace(number)
        assert len(trace) == ends.n_iter[number] + 1
        assert np.all(np.diff(trace) > -1e-8 * np.abs(trace[-1]))
        weights = [each["weights"].mean for each in ({n: f[number] for n, f in factors.items()}, single)]
        np.testing.assert_allclose(*weights, rtol=1e-3)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("gap", [4.0, 2.0])
@pytest.mark.parametrize("case", ["joint", "likelihood"])
def test_groups_end_before_a_step_that_is_foreseen_to_gain_nothing(
    case: str, gap: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer steps end less than the tolerance lower, and rows of groups that have ended are not looked at."""
    model, point, _ = CASES[case]
    tables, tol = _tables(200, gap=gap, n_rows=100), 1e-6
    stacked, counts = np.stack(tables), np.full(200, 100)
    labels = (stacked[..., 0] > stacked[..., 0].mean(axis=1, keepdims=True)).astype(int)
    problem = GroupedProblem(
        assembled(model, {"x": tables[0]}, point), again, Groups({ColumnKey("x"): stacked}, counts, {}, {})
    )
    seen, look = [], GroupedRows.look

    def counted(rows: GroupedRows, matrices: Any, groups: Any = None) -> Any:
        seen.append(len(matrices))
        return look(rows, matrices, groups)

    monkeypatch.setattr(GroupedRows, "look", counted)
    found, looks = [], []
    for foresees in (False, True):
        seen.clear()
        ends = GroupedEnds.none(200)
        assert ascend(begun(problem, sums_of(problem, labels)), ends, 300, tol, foresees=foresees) is None
        assert ends.has_settled.all()
        found.append(ends)
        looks.append(sum(seen))
    after, before = found
    assert (before.n_iter <= after.n_iter).all()
    assert after.n_iter.mean() - before.n_iter.mean() > 0.5
    assert looks[1] < looks[0] - 50
    # these steps are from the same places
    assert np.all(before.elbo > after.elbo - 2 * tol * counts)
    for number in (0, 120):
        trace = before.trace(number)
        assert len(trace) == before.n_iter[number] + 1
        assert trace[-1] == before.elbo[number]


def test_groups_without_factors_at_a_move_stay_at_their_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the others move; only factors of the variable that has none somewhere are made again."""
    model, point, tables = CASES["likelihood"]
    one, stacked = assembled(model, {"x": tables[0]}, point), np.stack(tables)
    problem = GroupedProblem(one, again, Groups({ColumnKey("x"): stacked}, np.full(6, 60), {}, {}))
    labels = (stacked[..., 0] > stacked[..., 0].mean(axis=1, keepdims=True)).astype(int)
    state = ascend(begun(problem, sums_of(problem, labels)), GroupedEnds.none(6), 2, 0.0)
    assert state is not None
    vector, tried, going = 1.01 * state.vector, np.arange(6) < 4, [0, 1, 3]
    expected, _ = moved_to(state, vector, np.isin(np.arange(6), going))
    vector[2] = -vector[2]
    made, plain = [], Problem.factor

    def counted(own: Problem, variable: Any, natural: Any) -> Any:
        made.append(variable.name)
        return plain(own, variable, natural)

    monkeypatch.setattr(Problem, "factor", counted)
    found, is_moved = moved_to(state, vector, tried)
    assert is_moved.nonzero()[0].tolist() == going
    assert len(made) < 2 * len(set(made))
    np.testing.assert_array_equal(found.vector[going], vector[going])
    for own, other in zip(found.arrays.values(), expected.arrays.values(), strict=True):
        np.testing.assert_array_equal(own, other)
    np.testing.assert_array_equal(found.own_entropy, expected.own_entropy)


@pytest.mark.parametrize(
    "mixture",
    [
        cv.BayesianGaussianMixture(2, random_state=0),
        cv.BayesianGaussianMixture(2, covariance_type="diag", random_state=0),
        cv.BayesianGaussianMixture(2, covariance_type="spherical", random_state=0),
        cv.BayesianGaussianMixture(2, mean_precision_family="independent", random_state=0),
        cv.GaussianMixture(2, random_state=0),
        cv.GaussianMixture(2, covariance_type="diag", random_state=0),
    ],
    ids=str,
)
def test_estimators_are_fitted_as_they_fit_one_table(mixture: Any) -> None:
    """Priors and floors of each group are those of its own fit: the same ELBO, parameters and predictions."""
    tables = _tables(5, n_rows=80)
    fits = cv.fit_many(mixture, tables)
    assert fits.is_batched.all()
    for number in (0, 3):
        alone = type(mixture)(**mixture.get_params()).fit(tables[number])
        fit = fits[number]
        np.testing.assert_allclose(
            [fit.elbo_, fits.elbo[number]], [alone.elbo_, alone.posterior_.elbo], rtol=1e-6
        )
        away = np.abs(fit.means_[:, None] - alone.means_[None]).sum(axis=-1)
        rows, columns = linear_sum_assignment(away)
        assert away[rows, columns].max() < 1e-2
        np.testing.assert_allclose(
            fit.score_samples(tables[number]), alone.score_samples(tables[number]), atol=1e-2
        )
        # the objective of the batch is that of the factors, computed anew by a single fit
        state = fit.posterior_.model.fit(
            {"x": tables[number]},
            init={name: fit.posterior_[name] for name in fit.posterior_},
            point=mixture._state(mixture._rows_to_fit(tables[number], None, None, reset=True), None).point,
            max_iter=0,
        )
        np.testing.assert_allclose(state.elbo, fits.elbo[number], rtol=1e-10)


def test_starts_race_together_as_they_do_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of overlapping clusters, where other starts are tried."""
    tables = _tables(6, gap=1.5)
    together = cv.fit_many(cv.GaussianMixture(2, random_state=0), tables, n_jobs=1)
    monkeypatch.setattr(fit, "_TOGETHER", 1)
    one_by_one = cv.fit_many(cv.GaussianMixture(2, random_state=0), tables, n_jobs=1)
    raced = [batch.ends.others for batch in together._batches]
    assert any(raced), "another start won somewhere"
    np.testing.assert_allclose(together.elbo, one_by_one.elbo, rtol=1e-12)
    np.testing.assert_array_equal(together.n_iter, one_by_one.n_iter)


def test_the_number_of_threads_changes_no_bit() -> None:
    tables = _tables(160, gap=2.5)
    one, two = (cv.fit_many(cv.GaussianMixture(2, random_state=0), tables, n_jobs=jobs) for jobs in (1, 2))
    assert len(two._batches) > 3, "those of three parts, and those that went on"
    np.testing.assert_array_equal(one.elbo, two.elbo)
    np.testing.assert_array_equal(one.n_iter, two.n_iter)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("n_rows", [60, np.arange(240) % 11 + 55], ids=["equal", "other"])
@pytest.mark.parametrize("max_iter", [500, 9])
@pytest.mark.filterwarnings("ignore:.*max_iter passes were made")
def test_groups_left_of_several_parts_end_as_those_of_one(n_rows, max_iter, monkeypatch) -> None:
    """Where few go on they ascend together, from where each is: the same ends, steps and traces."""
    monkeypatch.setattr(fit, "_CLEAR", np.inf)
    monkeypatch.setattr(fit, "_FEW", 0.125)
    monkeypatch.setattr(import_module("caviar.fitting.many.fit_many"), "_LOW", np.inf)
    tables, mixture = (
        _tables(240, gap=3.0, n_rows=n_rows),
        cv.GaussianMixture(2, max_iter=max_iter, random_state=0),
    )
    several = cv.fit_many(mixture, tables)
    assert len(several._batches) == 4
    left = several._batches[-1].groups
    assert 2 <= len(left) <= 240 // 8
    # the labels that they begin at are drawn in blocks of a part
    monkeypatch.setattr(fit, "_FEW", 0.0)
    apart = cv.fit_many(mixture, tables)
    assert len(apart._batches) == 3
    np.testing.assert_allclose(several.elbo, apart.elbo, rtol=1e-9)
    assert several.status == apart.status
    np.testing.assert_array_equal(several.n_iter, apart.n_iter)
    for number in left[:4]:
        for own in (several[number], apart[number]):
            assert len(own.elbo_trace_) == several.n_iter[number] + 1
        np.testing.assert_allclose(several[number].elbo_trace_, apart[number].elbo_trace_, rtol=1e-9)


def test_each_group_begins_at_the_better_clusters() -> None:
    """Columns of clusters that are round are told apart by column, those that are long once the rows are whitened."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 80, 2)) + 3.0 * (np.arange(80) < 35)[:, None]
    rows[10:] = (rng.normal(size=(10, 80, 2)) + [5.0, 0] * (np.arange(80) < 35)[:, None]) @ [
        [1, -1],
        [15, 15],
    ]
    one = assembled(cv.models.normal_wishart_mixture(2, 2), {"x": rows[0]}, ())
    counts = np.full(20, 80)
    groups = Groups({ColumnKey("x"): rows}, counts, {}, {})
    problem = GroupedProblem(one, again, groups)
    points, turns = points_of(problem)
    sums = [sums_of(problem, clustered(points, turn, counts, 2, np.random.default_rng(1))) for turn in turns]
    each = np.array([begun(problem, own).elbo for own in sums])
    gain = each[0] - each[1]
    assert (gain > 5).sum() >= 2
    assert (gain < -5).sum() >= 2
    better = begun(problem, *sums).elbo
    # these are compared before a look at the rows, which may reverse a close call
    assert np.isclose(better, each, rtol=1e-10).any(axis=0).all()
    is_clear = np.abs(gain) > 5
    np.testing.assert_allclose(better[is_clear], each.max(axis=0)[is_clear], rtol=1e-10)
    np.testing.assert_array_equal(begun(problem, *sums[::-1]).elbo, better)


def test_known_variances_of_columns_are_fitted_in_a_batch():
    """Sums over the rows that nothing hidden enters, by column, have a value for each group."""
    rng = np.random.default_rng(3)
    model = cv.models.unit_variance_mixture(2, 2, variance=[1.0, 0.5])
    tables = [{"x": rng.normal(size=(40, 2)) + 5 * rng.integers(2, size=(40, 1))} for _ in range(4)]
    alone = [model.fit(table, seed=0, tol=1e-10).elbo for table in tables]
    np.testing.assert_allclose(cv.fit_many(model, tables, seed=0, tol=1e-10).elbo, alone, rtol=1e-8)


def _of_a_stated_size(rng):
    """The number of rows is part of the model."""
    row, column, k = cv.Plate("row", 30), cv.Plate("column", 2), cv.Plate("k", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=row)
    mean = cv.Normal("mean", 0.0, 0.1, plates=(k, column))
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=(row, column)))
    return model, rng.normal(size=(4, 30, 2)) + 6 * rng.integers(2, size=(4, 30, 1))


def _labels_of_columns(rng):
    """At the priors all clusters of columns are alike."""
    column, k = cv.Plate("column", 8), cv.Plate("k", 2)
    z = cv.Categorical("z", [0.5, 0.5], plates=column)
    mean = cv.Normal("mean", 0.0, 0.1, plates=k)
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=(cv.Plate("row"), column)))
    return model, rng.normal(size=(4, 30, 8)) + 6 * (np.arange(8) % 2)


def _product(rng):
    """At the priors both factors are 0, and no update moves either."""
    column = cv.Plate("column", 8)
    mean = cv.Normal("a", 0.0, 1.0, plates=column) * cv.Normal("b", 0.0, 1.0)
    model = cv.Model(cv.Normal("x", mean, 1.0, plates=(cv.Plate("row"), column)))
    return model, 2 * rng.normal(size=(4, 1, 8)) + rng.normal(size=(4, 30, 8))


def _labels_and_product(rng):
    """Labels of rows choose the one factor."""
    row, column, k = cv.Plate("row"), cv.Plate("column", 8), cv.Plate("k", 2)
    z = cv.Categorical("z", [0.5, 0.5], plates=row)
    mean = cv.Normal("a", 0.0, 0.1, plates=k)[z] * cv.Normal("b", 0.0, 1.0, plates=column)
    model = cv.Model(cv.Normal("x", mean, 1.0, plates=(row, column)))
    size = np.array([-4.0, 2.0])[rng.integers(2, size=(4, 30, 1))]
    return model, size * rng.normal(size=(4, 1, 8)) + rng.normal(size=(4, 30, 8))


def _priors_of_components(rng):
    """Clusters have an order by the priors of their means."""
    row, k = cv.Plate("row"), cv.Plate("k", 3)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=row)
    places, widths = (
        cv.Constant("m", [0.0, 6.0, -6.0], plates=k),
        cv.Constant("p", [0.01, 100.0, 1.0], plates=k),
    )
    mean = cv.Normal("mean", places, widths, plates=k)
    model = cv.Model(cv.Normal("x", mean[z], cv.Gamma("t", 1, 1), plates=row))
    return model, np.array([-6.0, 0.0, 6.0])[rng.integers(3, size=(4, 60))] + rng.normal(size=(4, 60))


MODELS = [_of_a_stated_size, _labels_of_columns, _product, _labels_and_product, _priors_of_components]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("make", MODELS)
def test_each_group_ends_where_its_own_fit_does(make):
    model, tables = make(np.random.default_rng(4))
    alone = [model.fit({"x": table}, seed=0, tol=1e-9).elbo for table in tables]
    many = cv.fit_many(model, [{"x": table} for table in tables], seed=0, tol=1e-9)
    np.testing.assert_allclose(many.elbo, alone, rtol=1e-6)


def test_a_group_with_another_number_of_rows_than_stated_is_refused():
    model, tables = _of_a_stated_size(np.random.default_rng(4))
    groups = [{"x": table} for table in tables]
    groups[2] = {"x": np.concatenate([tables[2], tables[2, :1]])}
    with pytest.raises(cv.PlateError, match="group 2: plate 'row' has 31 rows in 'x' but 30"):
        cv.fit_many(model, groups)


@pytest.mark.parametrize("is_merged", [True, False])
def test_groups_that_begin_too_low_are_fitted_one_by_one(is_merged, monkeypatch):
    """Data far from the mean of their prior: both clusters in one component are 2.5 nats a row above two of them."""
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(60, 2)) + 3 * rng.integers(2, size=(60, 1)) + 200 for _ in range(4)]
    model = cv.models.gaussian_mixture(2, 2)
    if not is_merged:
        monkeypatch.setattr(fit, "merged", lambda problem, sums: (sums, np.zeros(problem.size, dtype=bool)))
    fits = cv.fit_many(model, [{"x": own} for own in tables], seed=0)
    singly = [model.fit({"x": own}, seed=0).elbo for own in tables]
    assert fits.is_batched.all() == is_merged
    np.testing.assert_allclose(fits.elbo, singly, rtol=1e-3)


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_clusters_of_too_many_are_one_component_in_a_batch(n_clusters):
    """Three components of fewer clusters: no group ends lower than a fit that begins at the true labels."""
    rng = np.random.default_rng(n_clusters)
    truth = np.arange(60) % n_clusters
    tables = [rng.normal(size=(60, 2)) + 5 * truth[:, None] + 20 * rng.normal(size=(1, 2)) for _ in range(12)]
    model = cv.models.normal_wishart_mixture(2, 3)
    fits = cv.fit_many(model, [{"x": own} for own in tables], seed=0)
    assert fits.is_batched.all()
    for own, elbo in zip(tables, fits.elbo, strict=True):
        assert elbo > model.fit({"x": own}, init={"z": truth}).elbo - 0.01


def test_components_without_rows_and_without_a_prior_are_where_a_fit_has_them():
    """One cluster in two components, with flat priors of means and precisions: each group has finite figures."""
    rng = np.random.default_rng(2)
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    mean, z = cv.Normal("mean", 0, 0, plates=component), cv.Categorical("z", [0.5, 0.5], plates=obs)
    model = cv.Model(cv.Normal("x", mean[z], cv.Gamma("t", 1, 0, plates=component)[z], plates=obs))
    tables = [{"x": rng.normal(size=40) + 20 * rng.normal()} for _ in range(6)]
    fits = cv.fit_many(model, tables, seed=0, point=["t"])
    assert fits.is_batched.all()
    assert np.isfinite(fits.elbo).all()
    assert all(np.isfinite(own["mean"].mean).all() for own in fits)
